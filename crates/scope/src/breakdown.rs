//! The breakdown of a sample: what stood between the moment when it was due and the moment when
//! it was taken, in parts that add up to its lateness exactly.

mod attribution;
mod cause;
mod functions;
mod parts;
mod stages;
#[cfg(test)]
mod tests;
mod threads;

use punctual_model::Nanos;

use crate::guest_clock::GuestClock;
use crate::names::Name;
use crate::preemption::Preemption;
use crate::walk::Walk;

use attribution::Attribution;

/// How far the sample has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PathStage {
    /// It is due; the interrupt that says so is not taken yet.
    Interrupt,
    /// The interrupt is handled; the thread is not woken yet.
    Handler,
    /// The thread is ready; another one has the CPU.
    Switch,
    /// One thread gives way to another in the kernel: it blocks, yields, or lets it go on.
    Call,
    /// The thread is in the kernel still, and goes back.
    Return,
    /// It is in user space, and reads the clock.
    User,
}

impl PathStage {
    /// All, in their order.
    pub const ALL: [Self; 6] = [
        Self::Interrupt,
        Self::Handler,
        Self::Switch,
        Self::Call,
        Self::Return,
        Self::User,
    ];

    /// What ends it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Interrupt => "interrupt",
            Self::Handler => "wake-up",
            Self::Switch => "switch",
            Self::Call => "call",
            Self::Return => "return",
            Self::User => "sample",
        }
    }
}

/// What kept the sample from going on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// It was not watched.
    Unseen,
    /// The CPU slept until the interrupt came.
    Idle,
    /// Interrupts were open: the interrupt was pending.
    Pending,
    /// Interrupts were masked.
    IrqsOff,
    /// An interrupt was handled.
    HardIrq,
    /// An exception was handled: a page fault, above all.
    Exception,
    /// A soft interrupt was handled.
    Softirq,
    /// Preemption was off.
    PreemptOff,
    /// A lock was held that one may not be preempted with.
    Lock,
    /// The kernel was at work for another thread, and is not preempted on this subject.
    NotPreemptible,
    /// Another thread ran.
    OtherThread,
    /// The thread itself cleaned up after the one that had the CPU before.
    CleanUp,
    /// The scheduler was at work.
    Scheduler,
    /// Nothing: this is the path itself.
    Path,
}

impl Cause {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unseen => "not watched",
            Self::Idle => "idle",
            Self::Pending => "pending",
            Self::IrqsOff => "interrupts off",
            Self::HardIrq => "interrupt",
            Self::Exception => "exception",
            Self::Softirq => "soft interrupt",
            Self::PreemptOff => "preemption off",
            Self::Lock => "spinning lock",
            Self::NotPreemptible => "no preemption point",
            Self::OtherThread => "another thread",
            Self::CleanUp => "cleaning up",
            Self::Scheduler => "scheduler",
            Self::Path => "the path itself",
        }
    }

    /// Whether it stood in the way, rather than being the path.
    pub fn is_in_the_way(self) -> bool {
        !matches!(
            self,
            Self::Path | Self::Scheduler | Self::Pending | Self::Idle
        )
    }
}

/// A function, and how long it ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionTime {
    /// The function.
    pub function: String,
    /// What called it.
    pub caller: Option<String>,
    /// How long, with all that it called, within the part.
    pub time: Nanos,
    /// How long from its begin on, which may lie before the sample was due.
    pub whole: Nanos,
    /// How often it was entered.
    pub times: u32,
}

/// A part of the time between due and taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// How far the sample has come.
    pub stage: PathStage,
    /// What kept it.
    pub cause: Cause,
    /// Where it begins, counted from the moment when the sample was due.
    pub from: Nanos,
    /// How long it is.
    pub length: Nanos,
    /// Which function masked interrupts, switched preemption off, took the lock or cleaned up.
    pub by: Option<String>,
    /// For whom the CPU worked.
    pub thread: String,
    /// The innermost function that filled most of it.
    pub main: Option<FunctionTime>,
    /// What took most of the time within that.
    pub within: Vec<FunctionTime>,
}

/// From when to when a sample is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// From the moment when it was due to the one when it was taken: an interrupt begins it.
    Lateness,
    /// From a thread's reading of the clock to another thread's.
    Handover,
    /// From a thread's reading of the clock to its next one.
    Gap,
}

/// The breakdown of a sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breakdown {
    /// From when to when it is.
    pub measure: Measure,
    /// How late it was, or how long.
    pub late: Nanos,
    /// The parts, without gaps.
    pub parts: Vec<Part>,
    /// Which of them is the culprit.
    pub culprit: Option<usize>,
    /// The threads' functions, the outermost first, parted by `;`, and their own time.
    pub flame: Vec<(String, Nanos)>,
    /// Functions as they were entered and left: for a viewer.
    pub functions: Vec<FunctionSpan>,
    /// Each block that ran: when, the number of its instructions, where it is, and
    /// its function.
    pub blocks: Vec<(Nanos, u32, u64, String)>,
    /// What is to be known about it besides.
    pub notes: Vec<String>,
}

/// A function from where it was entered to where it was left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionSpan {
    /// The function.
    pub function: String,
    /// For whom it ran.
    pub thread: String,
    /// When, counted from the moment when the sample was due.
    pub from: Nanos,
    /// How long.
    pub length: Nanos,
}

/// What is known of the sample and its subject.
#[derive(Clone, Copy, Debug)]
pub struct SampleContext {
    /// Instructions and time.
    pub clock: GuestClock,
    /// From when to when it is.
    pub measure: Measure,
    /// How late it was, or how long.
    pub late: Nanos,
    /// How long before the clock was read it ended: where other stages follow.
    pub ends_before: Nanos,
    /// How far its kernel can be preempted.
    pub preemption: Preemption,
}

/// Why there is no breakdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unexplained {
    /// Nothing was read in the window.
    #[error("the clock was not read in the window")]
    NoClock,
    /// It was early.
    #[error("the sample is not late: there is nothing to explain")]
    NotLate,
    /// The window is another sample's, or its begin was not watched.
    #[error("no reading of the clock in the window is so long before the last one")]
    NoBegin,
}

/// Most of a part is this share of it.
const MOST: f64 = 0.8;

/// The breakdown of the sample in a window.
pub fn breakdown(
    walk: &Walk,
    names: &[Name],
    about: SampleContext,
) -> Result<Breakdown, Unexplained> {
    if about.late.0 <= 0 {
        return Err(Unexplained::NotLate);
    }
    let clock = *walk.clocks.last().ok_or(Unexplained::NoClock)?;
    let end = clock.saturating_sub(about.clock.instructions(about.ends_before));
    let attribution = Attribution::new(walk, names, about, end)?;
    let mut parts = attribution.parts();
    attribution.mend(&mut parts);
    let parts: Vec<Part> = parts.iter().map(|piece| attribution.part(piece)).collect();
    let culprit = culprit(&parts).filter(|number| held(&parts, *number).0 * 5 >= about.late.0);
    Ok(Breakdown {
        measure: about.measure,
        late: about.late,
        culprit,
        flame: attribution.flame(),
        functions: attribution.functions(),
        blocks: attribution.blocks(),
        notes: attribution.notes(),
        parts,
    })
}

/// The part that stood in the way for longest, with those that are the same.
fn culprit(parts: &[Part]) -> Option<usize> {
    let in_the_way = |number: &usize| parts[*number].cause.is_in_the_way();
    let numbers = (0..parts.len()).filter(in_the_way);
    numbers.max_by_key(|number| (held(parts, *number), parts[*number].length))
}

/// How long a part and those like it are together: an interrupt parts what is one. Interrupts
/// themselves are each their own.
fn held(parts: &[Part], number: usize) -> Nanos {
    if matches!(parts[number].cause, Cause::HardIrq | Cause::Exception) {
        return parts[number].length;
    }
    let function = |part: &Part| part.main.as_ref().map(|main| main.function.clone());
    let key = |part: &Part| (part.cause, part.by.clone(), function(part));
    let alike = key(&parts[number]);
    let alike = parts.iter().filter(|part| key(part) == alike);
    alike.fold(Nanos::ZERO, |sum, part| sum + part.length)
}

impl Breakdown {
    /// How long the culprit stood in the way, all its parts together.
    pub fn held(&self) -> Nanos {
        self.culprit
            .map_or(Nanos::ZERO, |number| held(&self.parts, number))
    }
}

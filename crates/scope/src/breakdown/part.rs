// SPDX-License-Identifier: MIT OR Apache-2.0
//! The parts into which a sample is broken down.

use punctual_model::Nanos;
use punctual_model::probe::SampleSpan;

/// The stage that the sample has reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PathStage {
    /// It is due, but the interrupt that says so is not taken yet.
    Interrupt,
    /// The interrupt is handled, but the thread is not woken yet.
    Handler,
    /// Another CPU has sent an interrupt for it, which is not taken yet.
    Ipi,
    /// The thread is ready, but another one has the CPU.
    Switch,
    /// One thread gives way to another in the kernel: it blocks, yields, or lets it go on.
    Call,
    /// The thread is still in the kernel, and goes back.
    Return,
    /// It is in user space, and reads the clock.
    User,
    /// A thread is on its way to send a frame.
    Send,
    /// The queueing discipline has the frame.
    Queue,
    /// The driver has the frame, but the card's interrupt is not taken yet.
    Driver,
    /// The card's interrupt is handled, until its card is served or a thread is woken that serves
    /// it.
    CardIrq,
    /// The thread that serves the card is ready, but another one has the CPU.
    IrqThread,
    /// The card is served: the driver takes the frame from it.
    Napi,
    /// The protocol and its socket have the frame, but the thread is not woken yet.
    Socket,
    /// The thread has the CPU for its cycle, and does not wait again yet.
    Wait,
}

impl PathStage {
    /// All stages, in their order.
    pub const ALL: [Self; 15] = [
        Self::Interrupt,
        Self::Handler,
        Self::Call,
        Self::Ipi,
        Self::Send,
        Self::Queue,
        Self::Driver,
        Self::CardIrq,
        Self::IrqThread,
        Self::Napi,
        Self::Socket,
        Self::Switch,
        Self::Return,
        Self::User,
        Self::Wait,
    ];

    /// Returns the name of what ends the stage.
    pub fn name(self) -> &'static str {
        match self {
            Self::Interrupt => "interrupt",
            Self::Handler => "wake-up",
            Self::Ipi => "IPI",
            Self::Switch => "switch",
            Self::Call => "call",
            Self::Return => "return",
            Self::User => "sample",
            Self::Send => "send",
            Self::Queue => "qdisc",
            Self::Driver => "driver",
            Self::CardIrq => "card IRQ",
            Self::IrqThread => "IRQ thread",
            Self::Napi => "NAPI",
            Self::Socket => "socket",
            Self::Wait => "wait",
        }
    }
}

/// The obstacle that kept the sample from going on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// It was not watched.
    Unseen,
    /// The CPU slept until the interrupt came.
    Idle,
    /// Interrupts were open, and the interrupt was pending.
    Pending,
    /// Interrupts were masked.
    IrqsOff,
    /// An interrupt was handled.
    HardIrq,
    /// An exception was handled, a page fault above all.
    Exception,
    /// A soft interrupt was handled.
    Softirq,
    /// Preemption was off.
    PreemptOff,
    /// A lock was held that forbids preemption.
    Lock,
    /// The kernel worked for another thread, and on this subject it is not preempted.
    NotPreemptible,
    /// Another thread ran.
    OtherThread,
    /// A thread that got the CPU cleaned up after the previous one.
    CleanUp,
    /// The scheduler was at work.
    Scheduler,
    /// Nothing: this is the path itself.
    Path,
    /// Another CPU had its turn.
    OtherTurn,
    /// The CPU spun for something that another CPU was to do.
    Spin,
    /// Another CPU had its turn, for which this one spun.
    AwaitedTurn,
    /// The program itself ran.
    Program,
    /// The kernel carried out a system call of the program.
    Call,
    /// The program's thread slept within its cycle.
    Asleep,
    /// The CPU was in user space, and the interrupt did not come. The kernel's tracer cannot tell
    /// why.
    Outside,
}

impl Cause {
    /// Returns the cause in words.
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
            Self::OtherTurn => "another CPU's turn",
            Self::Spin => "spinning",
            Self::AwaitedTurn => "awaited CPU's turn",
            Self::Program => "the program",
            Self::Call => "system call",
            Self::Asleep => "asleep",
            Self::Outside => "outside the kernel",
        }
    }

    /// Returns true if another CPU ran.
    pub fn is_turn(self) -> bool {
        matches!(self, Self::OtherTurn | Self::AwaitedTurn)
    }

    /// Returns true if it stood in the way, rather than being the path.
    pub fn is_in_the_way(self) -> bool {
        !matches!(
            self,
            Self::Path | Self::Scheduler | Self::Pending | Self::Idle | Self::OtherTurn
        )
    }
}

/// A function and its running time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionTime {
    /// The function.
    pub function: String,
    /// The function that called it.
    pub caller: Option<String>,
    /// Its time within the part, with all that it called.
    pub time: Nanos,
    /// Its time from its start, which may lie before the sample was due, to its end. It is `time`
    /// if either was not watched.
    pub whole: Nanos,
    /// The number of times that it was entered.
    pub times: u32,
}

/// A part of the time between due and taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The stage that the sample has reached.
    pub stage: PathStage,
    /// The cause that kept it.
    pub cause: Cause,
    /// Start, counted from the moment when the sample was due.
    pub from: Nanos,
    /// Length.
    pub length: Nanos,
    /// The function that masked interrupts, switched preemption off, took the lock or cleaned up.
    pub by: Option<String>,
    /// The CPU on which it was spent; `None` where there is only one.
    pub cpu: Option<u32>,
    /// The thread for which the CPU worked.
    pub thread: String,
    /// The innermost function that filled most of it.
    pub main: Option<FunctionTime>,
    /// The functions within that one that took most of the time.
    pub within: Vec<FunctionTime>,
}

/// The breakdown of a sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breakdown {
    /// The span that is broken down.
    pub span: SampleSpan,
    /// Lateness of the sample, or length of the span.
    pub late: Nanos,
    /// The parts, without gaps.
    pub parts: Vec<Part>,
    /// Index of the part that is the culprit.
    pub culprit: Option<usize>,
    /// The threads' functions, outermost first and separated by `;`, with their own time.
    pub flame: Vec<(String, Nanos)>,
    /// Functions as they were entered and left, for a viewer.
    pub functions: Vec<FunctionSpan>,
    /// Blocks that ran: the time, the number of instructions, the address and the function of each.
    pub blocks: Vec<(Nanos, u32, u64, String)>,
    /// Arrivals between the two readings of a gap; empty for other spans.
    pub arrivals: Vec<Arrival>,
    /// The interrupts of other CPUs that stood in its way or were part of it.
    pub ipis: Vec<Ipi>,
    /// The places where it spun for another CPU.
    pub spins: Vec<Spin>,
    /// Further notes on the sample.
    pub notes: Vec<String>,
}

/// Something that took the CPU from a thread that ran there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The entry to which the CPU went, such as `apic_timer_interrupt` or `exc_page_fault`; or the
    /// thread that got it.
    pub entry: String,
    /// The work that was carried out there and that somebody had asked for before: timers, work,
    /// functions for this CPU, each once and in order.
    pub did: Vec<String>,
    /// The time that the CPU itself spent on it, other CPUs' turns left out.
    pub own: Nanos,
    /// Index in the breakdown's `ipis` of the interrupt, if another CPU sent it.
    pub ipi: Option<usize>,
}

/// An interrupt that one CPU sent another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ipi {
    /// The function that sent it.
    pub sender: String,
    /// The functions that called it, innermost first.
    pub callers: Vec<String>,
    /// The thread for which it ran.
    pub thread: String,
    /// The CPU that sent it.
    pub from: u32,
    /// The entry at which it was taken.
    pub entry: String,
    /// The CPU that took it.
    pub to: u32,
    /// The moment when it was sent, counted from the moment when the sample was due.
    pub sent: Nanos,
    /// The moment when it was taken, counted likewise.
    pub taken: Nanos,
}

/// A function from its entry to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionSpan {
    /// The function.
    pub function: String,
    /// The thread for which it ran.
    pub thread: String,
    /// Start, counted from the moment when the sample was due.
    pub from: Nanos,
    /// Length.
    pub length: Nanos,
}

/// A CPU's spinning for something that another one was to do, most often to give back a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spin {
    /// The CPU.
    pub cpu: u32,
    /// The function that spun.
    pub function: String,
    /// The function that called it, leaving out those that only take locks.
    pub caller: Option<String>,
    /// Start, counted from the moment when the sample was due.
    pub from: Nanos,
    /// Length, including the turns of the other CPUs.
    pub length: Nanos,
    /// The code that ended it, as far as that is known.
    pub holder: Option<Holder>,
}

/// The code of another CPU that was waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The CPU.
    pub cpu: u32,
    /// The function that held the lock, or ran when the waiting was over.
    pub function: String,
    /// The function that called it.
    pub caller: Option<String>,
    /// True if it gave back the very lock.
    pub certain: bool,
}

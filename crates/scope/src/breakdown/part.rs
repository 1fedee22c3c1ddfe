// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a sample is broken down into.

use punctual_model::Nanos;
use punctual_model::probe::SampleSpan;

/// How far the sample has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PathStage {
    /// It is due; the interrupt that says so is not taken yet.
    Interrupt,
    /// The interrupt is handled; the thread is not woken yet.
    Handler,
    /// Another CPU has sent an interrupt for it, which is not taken yet.
    Ipi,
    /// The thread is ready; another one has the CPU.
    Switch,
    /// One thread gives way to another in the kernel: it blocks, yields, or lets it go on.
    Call,
    /// The thread is in the kernel still, and goes back.
    Return,
    /// It is in user space, and reads the clock.
    User,
    /// A thread is on its way to send a frame.
    Send,
    /// The queueing discipline has the frame.
    Queue,
    /// The driver has the frame; the card's interrupt is not taken yet.
    Driver,
    /// The card's interrupt is handled, up to where its card is served or a thread is woken that
    /// serves it.
    CardIrq,
    /// The thread that serves the card is ready; another one has the CPU.
    IrqThread,
    /// The card is served: the driver takes the frame from it.
    Napi,
    /// The protocol has the frame, and its socket; the thread is not woken yet.
    Socket,
    /// The thread has the CPU for its cycle, and does not wait again yet.
    Wait,
}

impl PathStage {
    /// All, in their order.
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

    /// What ends it.
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
    /// A thread that got the CPU cleaned up after the one that had it before.
    CleanUp,
    /// The scheduler was at work.
    Scheduler,
    /// Nothing: this is the path itself.
    Path,
    /// Another CPU had its turn.
    OtherTurn,
    /// It spun for what another CPU was to do.
    Spin,
    /// Another CPU had its turn, for which it spun.
    AwaitedTurn,
    /// The program itself ran.
    Program,
    /// The kernel carried out a system call of the program.
    Call,
    /// The program's thread slept within its cycle.
    Asleep,
    /// The CPU was in user space, and the interrupt did not come: the kernel's tracer cannot
    /// tell why.
    Outside,
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
            Self::OtherTurn => "another CPU's turn",
            Self::Spin => "spinning",
            Self::AwaitedTurn => "awaited CPU's turn",
            Self::Program => "the program",
            Self::Call => "system call",
            Self::Asleep => "asleep",
            Self::Outside => "outside the kernel",
        }
    }

    /// Whether another CPU ran.
    pub fn is_turn(self) -> bool {
        matches!(self, Self::OtherTurn | Self::AwaitedTurn)
    }

    /// Whether it stood in the way, rather than being the path.
    pub fn is_in_the_way(self) -> bool {
        !matches!(
            self,
            Self::Path | Self::Scheduler | Self::Pending | Self::Idle | Self::OtherTurn
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
    /// On which CPU it was spent; none where there is one only.
    pub cpu: Option<u32>,
    /// For whom the CPU worked.
    pub thread: String,
    /// The innermost function that filled most of it.
    pub main: Option<FunctionTime>,
    /// What took most of the time within that.
    pub within: Vec<FunctionTime>,
}

/// The breakdown of a sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breakdown {
    /// From when to when it is.
    pub span: SampleSpan,
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
    /// What came in between the two readings of a gap; empty for other spans.
    pub arrivals: Vec<Arrival>,
    /// The interrupts of other CPUs that stood in its way or were part of it.
    pub ipis: Vec<Ipi>,
    /// Where it spun for another CPU.
    pub spins: Vec<Spin>,
    /// What is to be known about it besides.
    pub notes: Vec<String>,
}

/// Something that took the CPU from a thread that ran there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Where the CPU went, as `apic_timer_interrupt` or `exc_page_fault`; or the thread that
    /// got it.
    pub entry: String,
    /// What was carried out there that somebody had asked for before: timers, work, functions
    /// for this CPU, each once, in their order.
    pub did: Vec<String>,
    /// How long the CPU itself was at it, other CPUs' turns left out.
    pub own: Nanos,
    /// Who sent the interrupt, where another CPU did: the number of that among the breakdown's.
    pub ipi: Option<usize>,
}

/// An interrupt that one CPU sent another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ipi {
    /// The function that sent it.
    pub sender: String,
    /// Those that called it, the innermost first.
    pub callers: Vec<String>,
    /// For whom it ran.
    pub thread: String,
    /// On which CPU.
    pub from: u32,
    /// Where it was taken.
    pub entry: String,
    /// On which CPU.
    pub to: u32,
    /// When it was sent, counted from the moment when the sample was due.
    pub sent: Nanos,
    /// When it was taken.
    pub taken: Nanos,
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

/// A CPU spun for what another one was to do: most often, to give back a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spin {
    /// The CPU.
    pub cpu: u32,
    /// The function that spun.
    pub function: String,
    /// The function that called it, but for those that only take locks.
    pub caller: Option<String>,
    /// When, counted from the moment when the sample was due.
    pub from: Nanos,
    /// How long, the turns of the others with it.
    pub length: Nanos,
    /// What ended it, as far as that is known.
    pub holder: Option<Holder>,
}

/// What another CPU did when it was waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The CPU.
    pub cpu: u32,
    /// The function that held the lock, or ran when the waiting was over.
    pub function: String,
    /// What called it.
    pub caller: Option<String>,
    /// Whether it gave back the very lock.
    pub certain: bool,
}

//! The story of a sample: what stood between the moment when it was due and the moment when
//! it was taken, in parts that add up to its lateness exactly.

use std::collections::HashMap;

use punctual_model::Nanos;

use crate::names::{Kind, Name};
use crate::scale::Scale;
use crate::walk::{Number, Span, Task, Wake, Walk};

/// How far the sample has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// It is due; the interrupt that says so is not taken yet.
    Interrupt,
    /// The interrupt is handled; the thread is not woken yet.
    Handler,
    /// The thread is ready; another one has the CPU.
    Switch,
    /// The thread has the CPU; it is in the kernel still.
    Return,
    /// It is in user space, and reads the clock.
    User,
}

impl Stage {
    /// All, in their order.
    pub const ALL: [Self; 5] = [
        Self::Interrupt,
        Self::Handler,
        Self::Switch,
        Self::Return,
        Self::User,
    ];

    /// What ends it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Interrupt => "interrupt",
            Self::Handler => "wake-up",
            Self::Switch => "switch",
            Self::Return => "return",
            Self::User => "sample",
        }
    }
}

/// What kept the sample from going on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Hold {
    /// It was not watched.
    Unseen,
    /// The CPU slept until the interrupt came.
    Idle,
    /// Interrupts were open: the interrupt was on its way.
    Coming,
    /// Interrupts were masked.
    IrqsOff,
    /// An interrupt was handled.
    HardIrq,
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
    /// The scheduler was at work.
    Scheduler,
    /// Nothing: this is the way itself.
    Way,
}

impl Hold {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unseen => "not watched",
            Self::Idle => "idle",
            Self::Coming => "on its way",
            Self::IrqsOff => "interrupts off",
            Self::HardIrq => "interrupt",
            Self::Softirq => "soft interrupt",
            Self::PreemptOff => "preemption off",
            Self::Lock => "spinning lock",
            Self::NotPreemptible => "no preemption point",
            Self::OtherThread => "another thread",
            Self::Scheduler => "scheduler",
            Self::Way => "the way itself",
        }
    }

    /// Whether it stood in the way, rather than being the way.
    pub fn is_in_the_way(self) -> bool {
        !matches!(
            self,
            Self::Way | Self::Scheduler | Self::Coming | Self::Idle
        )
    }
}

/// A function, and how long it ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ran {
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
    pub stage: Stage,
    /// What kept it.
    pub hold: Hold,
    /// Where it begins, counted from the moment when the sample was due.
    pub from: Nanos,
    /// How long it is.
    pub length: Nanos,
    /// Which function masked interrupts, switched preemption off or took the lock.
    pub by: Option<String>,
    /// For whom the CPU worked.
    pub thread: String,
    /// The innermost function that filled most of it.
    pub main: Option<Ran>,
    /// What took most of the time within that.
    pub within: Vec<Ran>,
}

/// The story of a sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Story {
    /// How late it was.
    pub late: Nanos,
    /// The parts, without gaps.
    pub parts: Vec<Part>,
    /// Which of them is the culprit.
    pub culprit: Option<usize>,
    /// The threads' functions, the outermost first, parted by `;`, and their own time.
    pub flame: Vec<(String, Nanos)>,
    /// Functions as they were entered and left: for a viewer.
    pub functions: Vec<Entered>,
    /// Each block that ran: when, the number of its instructions, where it is, and
    /// its function.
    pub blocks: Vec<(Nanos, u32, u64, String)>,
    /// What is to be known about it besides.
    pub notes: Vec<String>,
}

/// A function from where it was entered to where it was left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entered {
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
pub struct Circumstances {
    /// Instructions and time.
    pub scale: Scale,
    /// How late it was.
    pub late: Nanos,
    /// How long before the clock was read it ended: where other stages follow.
    pub ends_before: Nanos,
    /// Whether the kernel is preempted where nothing forbids it.
    pub preemptible: bool,
}

/// Why there is no story.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Untold {
    /// Nothing was read in the window.
    #[error("the clock was not read in the window")]
    NoClock,
    /// It was early.
    #[error("the sample is not late: there is nothing to explain")]
    NotLate,
}

/// A timer that an idle CPU waits for comes so much after it is due, at most: the clocks that
/// it is programmed in are coarser than a nanosecond.
const GRAIN: Nanos = Nanos(100);
/// Most of a part is this share of it.
const MOST: f64 = 0.8;
/// How many functions are told within a culprit.
const TOLD: usize = 4;

/// Tells the story of a window.
pub fn tell(walk: &Walk, names: &[Name], about: Circumstances) -> Result<Story, Untold> {
    if about.late.0 <= 0 {
        return Err(Untold::NotLate);
    }
    let clock = *walk.clocks.last().ok_or(Untold::NoClock)?;
    let end = clock.saturating_sub(about.scale.instructions(about.ends_before));
    let teller = Teller::new(walk, names, about, end);
    let mut parts = teller.parts();
    teller.mend(&mut parts);
    let parts: Vec<Part> = parts.iter().map(|piece| teller.part(piece)).collect();
    let culprit = culprit(&parts).filter(|number| held(&parts, *number).0 * 5 >= about.late.0);
    Ok(Story {
        late: about.late,
        culprit,
        flame: teller.flame(),
        functions: teller.functions(),
        blocks: teller.blocks(),
        notes: teller.notes(),
        parts,
    })
}

/// The part that stood in the way for longest, with those that are the same.
fn culprit(parts: &[Part]) -> Option<usize> {
    let in_the_way = |number: &usize| parts[*number].hold.is_in_the_way();
    let numbers = (0..parts.len()).filter(in_the_way);
    numbers.max_by_key(|number| (held(parts, *number), parts[*number].length))
}

/// How long a part and those like it are together: an interrupt parts what is one.
fn held(parts: &[Part], number: usize) -> Nanos {
    let function = |part: &Part| part.main.as_ref().map(|main| main.function.clone());
    let key = |part: &Part| (part.hold, part.by.clone(), function(part));
    let alike = key(&parts[number]);
    let alike = parts.iter().filter(|part| key(part) == alike);
    alike.fold(Nanos::ZERO, |sum, part| sum + part.length)
}

impl Story {
    /// How long the culprit stood in the way, all its parts together.
    pub fn held(&self) -> Nanos {
        self.culprit
            .map_or(Nanos::ZERO, |number| held(&self.parts, number))
    }
}

/// A part on its way.
struct Piece {
    stage: Stage,
    hold: Hold,
    site: Option<Number>,
    task: Task,
    from: Nanos,
    to: Nanos,
    /// Its spans.
    spans: std::ops::Range<usize>,
}

struct Teller<'a> {
    walk: &'a Walk,
    names: &'a [Name],
    about: Circumstances,
    /// Where it was taken.
    end: u64,
    /// Where it was due, or the CPU woke up thereafter.
    begin: u64,
    /// Whether it is the latter.
    slept: bool,
    /// From where to where which spans lie.
    spans: std::ops::Range<usize>,
    task: Task,
    /// The stages, each with where it ends.
    milestones: Vec<(u64, Stage)>,
    switched: bool,
    woken: bool,
    threads: HashMap<Task, String>,
}

impl<'a> Teller<'a> {
    fn new(walk: &'a Walk, names: &'a [Name], about: Circumstances, end: u64) -> Self {
        let due = end.saturating_sub(about.scale.instructions(about.late));
        let halt = walk.halts.iter().copied().rfind(|at| *at < end);
        let after = |from: u64| walk.spans.partition_point(|span| end_of(span) <= from);
        // An interrupt that is pending when the CPU would sleep wakes it at once: then it did
        // not sleep, and what ran before counts.
        let masked = || {
            walk.spans
                .get(after(due))
                .is_some_and(|span| span.irqs_off.is_some())
        };
        let slept =
            halt.filter(|at| *at > due && (about.scale.time(*at - due) <= GRAIN || !masked()));
        let begin = slept.unwrap_or(due);
        let spans = after(begin)..walk.spans.partition_point(|span| span.from < end);
        let switch = walk.switches.iter().copied().rfind(|(at, _)| *at < end);
        let task = switch.map_or(0, |(_, task)| task);
        let mut teller = Self {
            walk,
            names,
            about,
            end,
            begin,
            slept: slept.is_some(),
            spans,
            task,
            milestones: Vec::new(),
            switched: false,
            woken: false,
            threads: HashMap::new(),
        };
        teller.threads = teller.threads();
        teller.find_milestones();
        teller
    }

    /// Goes back from where it was taken: who woke the thread, who woke that one, up to the
    /// interrupt that began it.
    fn find_milestones(&mut self) {
        let switched = self.switch_to(self.task, self.end);
        let from = switched.unwrap_or(self.begin);
        let user = |span: &&Span| span.user && span.from >= from;
        let spans = &self.walk.spans[self.spans.clone()];
        let user = spans.iter().find(user).map_or(self.end, |span| span.from);
        let mut found = vec![(user, Stage::Return)];
        let (mut task, mut switched) = (self.task, switched);
        while let Some(at) = switched {
            found.push((at, Stage::Switch));
            let ours =
                |wake: &&Wake| wake.at < at && wake.at >= self.begin && wake.bases.contains(&task);
            let Some(wake) = self.walk.wakes.iter().rfind(ours) else {
                break;
            };
            self.woken = true;
            found.push((wake.at, Stage::Handler));
            if let Some(entry) = self.interrupt_of(wake.by) {
                found.push((entry, Stage::Interrupt));
                break;
            }
            // A thread did it, which was itself woken for that, it may be.
            task = self.walk.activation(wake.by).task;
            switched = self.switch_to(task, wake.at);
        }
        self.switched = found.len() > 1;
        if !self.switched {
            found.extend(self.find_handler());
        }
        found.reverse();
        self.milestones = found;
    }

    /// Where a thread got the CPU, the last time before `before`.
    fn switch_to(&self, task: Task, before: u64) -> Option<u64> {
        let ours = |(at, to): &&(u64, Task)| *to == task && *at < before && *at >= self.begin;
        self.walk.switches.iter().rfind(ours).map(|(at, _)| *at)
    }

    /// Where the interrupt was taken in which a function runs.
    fn interrupt_of(&self, function: Number) -> Option<u64> {
        let chain = self.walk.chain(function);
        let entry = chain
            .filter(|number| self.is(*number, Kind::Interrupt))
            .last()?;
        self.walk.activation(entry).begin
    }

    /// Where it ends in an interrupt's handler, nobody need be woken for it.
    fn find_handler(&self) -> Vec<(u64, Stage)> {
        let last = self.walk.spans[self.spans.clone()].last();
        let entry = last.and_then(|last| self.interrupt_of(last.top));
        entry.map_or_else(Vec::new, |entry| {
            vec![(self.end, Stage::Handler), (entry, Stage::Interrupt)]
        })
    }

    fn is(&self, number: Number, kind: Kind) -> bool {
        self.kind(number) == kind
    }

    fn kind(&self, number: Number) -> Kind {
        self.names[self.walk.activation(number).func as usize].kind
    }

    fn text(&self, number: Number) -> &str {
        &self.names[self.walk.activation(number).func as usize].text
    }

    // --- parts ------------------------------------------------------------------------------

    fn at(&self, position: u64) -> Nanos {
        self.about.late - self.about.scale.time(self.end.saturating_sub(position))
    }

    fn parts(&self) -> Vec<Piece> {
        let mut pieces: Vec<Piece> = Vec::new();
        let watched = self.walk.spans.first().map_or(self.end, |span| span.from);
        if self.slept || watched > self.begin {
            let first = self.at(self.begin.max(watched));
            pieces.push(Piece {
                stage: Stage::Interrupt,
                hold: if self.slept { Hold::Idle } else { Hold::Unseen },
                site: None,
                task: 0,
                from: Nanos::ZERO,
                to: first,
                spans: self.spans.start..self.spans.start,
            });
        }
        for number in self.spans.clone() {
            let span = &self.walk.spans[number];
            let from = span.from.max(self.begin);
            let (stage, (hold, site)) = (self.stage(from), self.hold(span, self.stage(from)));
            let to = self.at(end_of(span).min(self.end));
            match pieces.last_mut() {
                Some(last)
                    if (last.stage, last.hold, last.site) == (stage, hold, site)
                        && (last.task == span.task || hold != Hold::OtherThread)
                        && !last.spans.is_empty() =>
                {
                    last.to = to;
                    last.spans.end = number + 1;
                }
                _ => {
                    let from = pieces.last().map_or(Nanos::ZERO, |last| last.to);
                    pieces.push(Piece {
                        stage,
                        hold,
                        site,
                        task: span.task,
                        from,
                        to,
                        spans: number..number + 1,
                    });
                }
            }
        }
        pieces.retain(|piece| piece.to > piece.from);
        pieces
    }

    fn stage(&self, position: u64) -> Stage {
        let passed = |(until, _): &(u64, Stage)| *until <= position;
        let next = self.milestones.partition_point(passed);
        self.milestones
            .get(next)
            .map_or(Stage::User, |(_, stage)| *stage)
    }

    fn hold(&self, span: &Span, stage: Stage) -> (Hold, Option<Number>) {
        let masked = (Hold::IrqsOff, span.irqs_off);
        match stage {
            Stage::Interrupt if span.irqs_off.is_some() => masked,
            Stage::Interrupt => (Hold::Coming, None),
            Stage::Switch => self.hold_of_switch(span),
            Stage::Handler | Stage::Return | Stage::User => match self.context(span) {
                Kind::Interrupt => (Hold::HardIrq, None),
                Kind::Softirq => (Hold::Softirq, None),
                _ => (Hold::Way, None),
            },
        }
    }

    fn hold_of_switch(&self, span: &Span) -> (Hold, Option<Number>) {
        match self.context(span) {
            Kind::Interrupt => return (Hold::HardIrq, None),
            Kind::Softirq => return (Hold::Softirq, None),
            Kind::Scheduler => return (Hold::Scheduler, None),
            _ => {}
        }
        if span.user {
            return (Hold::OtherThread, None);
        }
        if !self.about.preemptible {
            return (Hold::NotPreemptible, None);
        }
        match (span.preempt_off, span.irqs_off) {
            (Some(site), _) => (self.preempt_hold(site), Some(site)),
            (None, Some(site)) => (Hold::IrqsOff, Some(site)),
            (None, None) => (Hold::OtherThread, None),
        }
    }

    fn preempt_hold(&self, site: Number) -> Hold {
        if self.is(site, Kind::Lock) {
            Hold::Lock
        } else {
            Hold::PreemptOff
        }
    }

    /// In what the CPU is: the innermost that is an interrupt, a soft interrupt or the
    /// scheduler.
    fn context(&self, span: &Span) -> Kind {
        let kinds = self.walk.chain(span.top).map(|number| self.kind(number));
        let telling = [
            Kind::Interrupt,
            Kind::Softirq,
            Kind::Scheduler,
            Kind::Syscall,
            Kind::User,
        ];
        let mut kinds = kinds.filter(|kind| telling.contains(kind));
        kinds.next().unwrap_or(Kind::Plain)
    }

    /// Where the kernel is not preempted at all, but was not preemptible for a reason of its
    /// own most of the time, that is the reason.
    fn mend(&self, pieces: &mut [Piece]) {
        for piece in pieces.iter_mut() {
            if piece.hold != Hold::NotPreemptible {
                continue;
            }
            let mut sites: HashMap<Number, u64> = HashMap::new();
            for span in &self.walk.spans[piece.spans.clone()] {
                if let Some(site) = span.preempt_off {
                    *sites.entry(site).or_default() += u64::from(span.length);
                }
            }
            let longest = sites
                .into_iter()
                .max_by_key(|(site, length)| (*length, *site));
            if let Some((site, length)) = longest {
                let whole = (piece.to - piece.from).0 as f64;
                if self.about.scale.time(length).0 as f64 >= MOST * whole {
                    (piece.hold, piece.site) = (self.preempt_hold(site), Some(site));
                }
            }
        }
    }

    fn part(&self, piece: &Piece) -> Part {
        let (main, within) = self.main(piece);
        Part {
            stage: piece.stage,
            hold: piece.hold,
            from: piece.from,
            length: piece.to - piece.from,
            by: piece.site.map(|site| self.site(site)),
            thread: self.thread(piece.task).to_owned(),
            main,
            within,
        }
    }

    /// The function that did it itself, or had it done by a lock or the like.
    fn site(&self, site: Number) -> String {
        let helper = |number: &Number| !matches!(self.kind(*number), Kind::Lock | Kind::Switch);
        let own = self.walk.chain(site).find(helper).unwrap_or(site);
        if own == site {
            return self.text(site).to_owned();
        }
        format!("{} in {}", self.text(site), self.text(own))
    }

    // --- functions --------------------------------------------------------------------------

    /// The innermost function that filled most of a part, and what took the time in it.
    fn main(&self, piece: &Piece) -> (Option<Ran>, Vec<Ran>) {
        let mut times: HashMap<Number, u64> = HashMap::new();
        for span in &self.walk.spans[piece.spans.clone()] {
            for number in self.walk.chain(span.top) {
                *times.entry(number).or_default() += self.inside(span);
            }
        }
        let whole = (piece.to - piece.from).0 as f64;
        let most = |length: &u64| self.about.scale.time(*length).0 as f64 >= MOST * whole;
        let depth = |number: Number| self.walk.chain(number).count();
        let filling = times.iter().filter(|(_, length)| most(length));
        let main = filling.max_by_key(|(number, _)| (depth(**number), **number));
        let Some((main, length)) = main.map(|(main, length)| (*main, *length)) else {
            return (None, self.most(&times, None, whole));
        };
        let caller = self.walk.activation(main).parent;
        let ran = Ran {
            function: self.text(main).to_owned(),
            caller: caller.map(|caller| self.text(caller).to_owned()),
            time: self.about.scale.time(length),
            whole: self.about.scale.time(self.whole(main)),
            times: 1,
        };
        (Some(ran), self.most(&times, Some(main), whole))
    }

    /// How many instructions ran in a function and all that it called, in the whole window.
    fn whole(&self, main: Number) -> u64 {
        let spans = self.walk.spans.iter();
        let within = spans.filter(|span| self.walk.chain(span.top).any(|number| number == main));
        within.map(|span| u64::from(span.length)).sum()
    }

    /// The functions that took most of the time, by name: those called by `within` itself.
    fn most(&self, times: &HashMap<Number, u64>, within: Option<Number>, whole: f64) -> Vec<Ran> {
        let mut by_name: HashMap<&str, (u64, u32)> = HashMap::new();
        for (number, length) in times {
            let parent = self.walk.activation(*number).parent;
            if parent == within
                || within.is_none() && !self.is(*number, Kind::User) && parent.is_some()
            {
                let sum = by_name.entry(self.text(*number)).or_default();
                *sum = (sum.0 + length, sum.1 + 1);
            }
        }
        let ran = by_name.into_iter().map(|(function, (length, times))| Ran {
            function: function.to_owned(),
            caller: None,
            time: self.about.scale.time(length),
            whole: self.about.scale.time(length),
            times,
        });
        let mut ran: Vec<Ran> = ran
            .filter(|ran| ran.time.0 as f64 >= 0.05 * whole)
            .collect();
        ran.sort_by(|a, b| {
            b.time
                .cmp(&a.time)
                .then_with(|| a.function.cmp(&b.function))
        });
        ran.truncate(TOLD);
        ran
    }

    /// How many instructions of a span lie between due and taken.
    fn inside(&self, span: &Span) -> u64 {
        end_of(span)
            .min(self.end)
            .saturating_sub(span.from.max(self.begin))
    }

    fn flame(&self) -> Vec<(String, Nanos)> {
        let mut stacks: HashMap<(Task, Number), u64> = HashMap::new();
        for span in &self.walk.spans[self.spans.clone()] {
            *stacks.entry((span.task, span.top)).or_default() += self.inside(span);
        }
        let mut folded: HashMap<String, u64> = HashMap::new();
        for ((task, top), length) in stacks {
            let mut frames: Vec<&str> = self.walk.chain(top).map(|n| self.text(n)).collect();
            frames.push(self.thread(task));
            frames.reverse();
            frames.dedup();
            *folded.entry(frames.join(";")).or_default() += length;
        }
        let time = |(stack, length)| (stack, self.about.scale.time(length));
        let mut folded: Vec<(String, Nanos)> = folded.into_iter().map(time).collect();
        folded.sort();
        folded
    }

    fn functions(&self) -> Vec<Entered> {
        let mut found = Vec::new();
        for activation in &self.walk.activations {
            let begin = activation.begin.unwrap_or(0).max(self.begin);
            let end = activation.end.unwrap_or(self.end).min(self.end);
            if end > begin {
                found.push(Entered {
                    function: self.names[activation.func as usize].text.clone(),
                    thread: self.thread(activation.task).to_owned(),
                    from: self.at(begin),
                    length: self.at(end) - self.at(begin),
                });
            }
        }
        found
    }

    fn blocks(&self) -> Vec<(Nanos, u32, u64, String)> {
        let spans = &self.walk.spans[self.spans.clone()];
        let block = |span: &Span| {
            let from = self.at(span.from.max(self.begin));
            let ran = self.inside(span) as u32;
            (from, ran, span.address, self.text(span.top).to_owned())
        };
        spans.iter().map(block).collect()
    }

    // --- threads ----------------------------------------------------------------------------

    /// Names for threads: the program in user space, or a kernel thread's own function.
    fn threads(&self) -> HashMap<Task, String> {
        let mut threads: HashMap<Task, String> = HashMap::new();
        for span in self.walk.spans.iter().filter(|span| span.user) {
            let text = self.text(span.top);
            if text != "[vdso]" {
                threads.entry(span.task).or_insert_with(|| text.to_owned());
            }
        }
        for (number, activation) in self.walk.activations.iter().enumerate() {
            if threads.contains_key(&activation.task) || activation.task == 0 {
                continue;
            }
            let chain = self
                .walk
                .chain(number as Number)
                .map(|number| self.text(number));
            let known = chain.filter(|name| THREADS.iter().any(|(function, _)| function == name));
            if let Some(name) = known.last() {
                let told = THREADS.iter().find(|(function, _)| *function == name);
                let told = told.map_or(name, |(_, thread)| thread);
                threads.insert(activation.task, told.to_owned());
            }
        }
        threads
    }

    fn thread(&self, task: Task) -> &str {
        match self.threads.get(&task) {
            Some(name) => name,
            None if task == self.task => "the probe's thread",
            None => "(a thread of unknown name)",
        }
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.walk.mended > 0 {
            notes.push(format!(
                "{} times the state that was followed had to be mended by what the code proved",
                self.walk.mended
            ));
        }
        if !self.switched {
            notes.push("no other thread had the CPU before: there was no switch".to_owned());
        } else if !self.woken {
            notes.push("who woke the thread was not seen".to_owned());
        }
        notes
    }
}

/// Kernel threads, by the function in which they wait.
const THREADS: [(&str, &str); 12] = [
    ("do_idle", "idle"),
    ("cpu_startup_entry", "idle"),
    ("cpuidle_idle_call", "idle"),
    ("irq_thread", "kernel thread (irq_thread)"),
    ("smpboot_thread_fn", "kernel thread (smpboot_thread_fn)"),
    ("worker_thread", "kernel thread (worker_thread)"),
    ("kthread_worker_fn", "kernel thread (kthread_worker_fn)"),
    ("rcu_gp_kthread", "kernel thread (rcu_gp_kthread)"),
    ("kcompactd", "kernel thread (kcompactd)"),
    ("kswapd", "kernel thread (kswapd)"),
    ("kthreadd", "kernel thread (kthreadd)"),
    ("rcu_tasks_kthread", "kernel thread (rcu_tasks_kthread)"),
];

fn end_of(span: &Span) -> u64 {
    span.from + u64::from(span.length)
}

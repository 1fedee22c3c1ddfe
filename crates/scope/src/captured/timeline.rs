// SPDX-License-Identifier: MIT OR Apache-2.0
//! Splits the way of a sample into parts, by the events of its CPU.

use punctual_model::Nanos;
use punctual_model::capture::{Capture, Happened, NoiseKind, Task, TraceEvent, Tracer};
use punctual_model::probe::SampleSpan;

use super::stack;
use crate::breakdown::{Cause, FunctionTime, Part, PathStage};
use crate::preemptibility::Preemptibility;

/// Times up to this belong to the way itself: the kernel gives moments in whole microseconds, and
/// takes some of them for noting events.
const GRAIN: Nanos = Nanos::from_micros(3);

/// The longest time without an event for a thread that has the CPU and is on its way to reading the
/// clock. Beyond it, the thread does something that the tracer does not see: it cleans up after the
/// previous thread, say.
pub const LONGEST_WAY: Nanos = Nanos::from_micros(100);

/// The sample's moments, by the tracer's events.
#[derive(Clone, Copy, Debug, Default)]
struct Milestones {
    /// The moment when its interrupt was taken.
    interrupt: Nanos,
    /// The moment when its thread was woken.
    woken: Nanos,
    /// The moment when its thread got the CPU.
    running: Nanos,
}

/// The state of the CPU at one moment, by the events.
#[derive(Clone, Debug, Default)]
struct State {
    task: Task,
    /// The interrupts that are being handled, the outermost first.
    irqs: Vec<String>,
    softirq: Option<String>,
}

/// A capture that is being explained.
pub struct Timeline<'a> {
    capture: &'a Capture,
    span: SampleSpan,
    preemption: Preemptibility,
    milestones: Milestones,
    /// The event of the wake-up, and that of the switch.
    waking: Option<&'a TraceEvent>,
    switch: Option<&'a TraceEvent>,
    /// The entry of the interrupt that woke it.
    entry: Option<&'a TraceEvent>,
}

impl<'a> Timeline<'a> {
    /// Finds the sample's moments. The error is the reason why they cannot be determined.
    pub fn new(
        capture: &'a Capture,
        span: SampleSpan,
        preemption: Preemptibility,
    ) -> Result<Self, String> {
        if capture.events.is_empty() {
            return Err(match capture.lost {
                0 => "the tracer's ring held nothing of it".into(),
                lost => {
                    format!("{lost} events of it were lost or could not be read, and none is left")
                }
            });
        }
        match capture.tracer {
            _ if span == SampleSpan::Gap => Self::of_gap(capture, preemption),
            Tracer::Osnoise | Tracer::Timerlat => Self::of_noise(capture, preemption),
            _ => Self::of_events(capture, preemption),
        }
    }

    /// Finds the moments of a thread that never sleeps: the events between the two readings are
    /// what came in.
    fn of_gap(capture: &'a Capture, preemption: Preemptibility) -> Result<Self, String> {
        let timeline = Self {
            capture,
            span: SampleSpan::Gap,
            preemption,
            milestones: Milestones::default(),
            waking: None,
            switch: None,
            entry: None,
        };
        let within = |at: &Nanos| (Nanos::ZERO..=capture.sample.value).contains(at);
        let changes = timeline.changes();
        let mut moments = changes.iter().map(|(at, _)| *at).filter(within);
        let interrupt = moments.next().ok_or("the trace holds nothing of it")?;
        let running = moments.next_back().unwrap_or(interrupt);
        Ok(Self {
            milestones: Milestones {
                interrupt,
                woken: interrupt,
                running,
            },
            ..timeline
        })
    }

    fn of_events(capture: &'a Capture, preemption: Preemptibility) -> Result<Self, String> {
        let events = &capture.events;
        let late = capture.sample.value;
        let gets = |event: &TraceEvent| match &event.what {
            Happened::Switch { next, .. } => next.pid == capture.pid && event.at <= late,
            _ => false,
        };
        let wakes = |event: &TraceEvent| match &event.what {
            Happened::Waking { task } => task.pid == capture.pid && event.at <= late,
            _ => false,
        };
        let waking = events.iter().rposition(wakes);
        let waking = waking.ok_or("the trace does not hold the wake-up of its thread")?;
        let switch = events[waking..].iter().find(|event| gets(event));
        // Where a kernel has not noted the switch, others had the CPU until their last event.
        let is_other = |event: &&TraceEvent| event.task.pid != capture.pid && event.at <= late;
        let last_of_others = events[waking..].iter().rfind(is_other);
        let running = switch
            .or(last_of_others)
            .map_or(events[waking].at, |event| event.at);
        let before = &events[..waking];
        let entry = before
            .iter()
            .rposition(|event| matches!(event.what, Happened::IrqEntry { .. }));
        let timer = before
            .iter()
            .rposition(|event| matches!(event.what, Happened::TimerExpires { .. }));
        let is_open = |place: &usize| {
            let mut after = before[*place..].iter();
            !after.any(|event| matches!(event.what, Happened::IrqExit { .. }))
        };
        let entry = entry.filter(is_open).or(timer).unwrap_or(waking);
        let milestones = Milestones {
            interrupt: events[entry].at,
            woken: events[waking].at,
            running,
        };
        Ok(Self {
            capture,
            span: SampleSpan::Lateness,
            preemption,
            milestones: milestones.within(late),
            waking: Some(&events[waking]),
            switch,
            entry: Some(&events[entry]),
        })
    }

    /// Finds the moments by `osnoise`, which says of each thing that ran when it began and for how
    /// long, once it has ended.
    fn of_noise(capture: &'a Capture, preemption: Preemptibility) -> Result<Self, String> {
        let late = capture.sample.value;
        // The number behind another thing's name is no thread's.
        let own = format!(":{}", capture.pid);
        // When something ended that ran while the sample was due.
        let ended = |event: &'a TraceEvent, wanted: NoiseKind| match &event.what {
            Happened::Noise {
                kind, name, start, ..
            } if *kind == wanted && (wanted != NoiseKind::Thread || !name.ends_with(&own)) => {
                let is_within = event.at > Nanos::ZERO && event.at <= late;
                is_within.then_some((name, *start, event.at))
            }
            _ => None,
        };
        let events = || capture.events.iter();
        let mut threads = events().rev();
        let thread = threads.find_map(|event| ended(event, NoiseKind::Thread));
        let before = thread.map_or(late, |(_, _, end)| end);
        let irqs = || {
            let irqs = events().filter_map(|event| ended(event, NoiseKind::Irq));
            irqs.filter(|(_, start, _)| *start <= before)
        };
        // The first one of a timer since it was due has expired its timer; where that began
        // earlier, or is called otherwise, the last one has.
        let mut timers = irqs().filter(|(name, ..)| name.contains("timer"));
        let irq = timers.find(|(_, start, _)| *start >= Nanos::ZERO);
        let irq = irq.or_else(|| irqs().next_back());
        let (_, interrupt, end) = irq.ok_or("the trace does not hold its interrupt")?;
        let running = thread.map_or(end, |(_, _, end)| end);
        let milestones = Milestones {
            interrupt,
            woken: interrupt,
            running,
        };
        Ok(Self {
            capture,
            span: SampleSpan::Lateness,
            preemption,
            milestones: milestones.within(late),
            waking: None,
            switch: None,
            entry: None,
        })
    }

    /// Returns the parts, without gaps.
    pub fn parts(&self) -> Vec<Part> {
        let Milestones {
            interrupt,
            woken,
            running,
        } = self.milestones;
        let late = self.capture.sample.value;
        let stages = [
            (PathStage::Interrupt, Nanos::ZERO, interrupt),
            (PathStage::Handler, interrupt, woken),
            (PathStage::Switch, woken, running),
            (PathStage::Return, running, late),
        ];
        let of_gap = [
            (PathStage::Interrupt, Nanos::ZERO, interrupt),
            (PathStage::Return, interrupt, running),
            (PathStage::User, running, late),
        ];
        let stages = match self.span {
            SampleSpan::Gap => &of_gap[..],
            _ => &stages,
        };
        let mut parts = Vec::new();
        for &(stage, from, to) in stages {
            for (from, to, doing) in self.pieces(from, to) {
                let part = self.part(stage, from, to, &doing);
                push(&mut parts, part);
            }
        }
        parts
    }

    /// Returns what the CPU did from one moment to another, piece by piece.
    fn pieces(&self, from: Nanos, to: Nanos) -> Vec<(Nanos, Nanos, State)> {
        let mut doing = State::default();
        let mut pieces = Vec::new();
        let mut begin = from;
        for (at, change) in self.changes() {
            if at > from && at > begin && begin < to {
                pieces.push((begin, at.min(to), doing.clone()));
                begin = at.min(to);
            }
            change.make(&mut doing);
        }
        if begin < to {
            pieces.push((begin, to, doing));
        }
        pieces
    }

    /// Returns the changes on the CPU, in the order of time.
    fn changes(&self) -> Vec<(Nanos, Change<'a>)> {
        // Who had the CPU before anything changed.
        let first = self.capture.events.first();
        let first = first.map(|event| (Nanos(i64::MIN), Change::Task(event.task.clone())));
        let mut changes: Vec<_> = first.into_iter().collect();
        for event in &self.capture.events {
            let at = event.at;
            match &event.what {
                Happened::Switch { next, .. } => changes.push((at, Change::Task(next.clone()))),
                Happened::IrqEntry { name } => changes.push((at, Change::Irq(name))),
                Happened::IrqExit { .. } => changes.push((at, Change::NoIrq)),
                Happened::SoftirqEntry { name } => changes.push((at, Change::Softirq(name))),
                Happened::SoftirqExit { .. } => changes.push((at, Change::NoSoftirq)),
                Happened::Noise {
                    kind,
                    name,
                    start,
                    ran,
                } => match kind {
                    NoiseKind::Irq | NoiseKind::Nmi => {
                        changes.push((*start, Change::Irq(name)));
                        changes.push((*start + *ran, Change::NoIrq));
                    }
                    NoiseKind::Softirq => {
                        changes.push((*start, Change::Softirq(name)));
                        changes.push((at, Change::NoSoftirq));
                    }
                    NoiseKind::Thread => {
                        changes.push((*start, Change::Task(noisy(name))));
                        changes.push((at, Change::Task(self.own())));
                    }
                },
                _ => {}
            }
        }
        changes.sort_by_key(|(at, _)| *at);
        changes
    }

    fn own(&self) -> Task {
        Task {
            comm: "punctual-target".into(),
            pid: self.capture.pid,
        }
    }

    fn part(&self, stage: PathStage, from: Nanos, to: Nanos, doing: &State) -> Part {
        let length = to - from;
        let (cause, place) = self.cause(stage, (from, to), doing);
        let main = match (cause, place) {
            (Cause::HardIrq, _) => doing.irqs.last().map(|name| (name.clone(), None)),
            (Cause::Softirq, _) => doing.softirq.clone().map(|name| (name, None)),
            (_, Some(place)) => Some((place.function.to_owned(), place.caller.map(str::to_owned))),
            _ => None,
        };
        let main = main.map(|(function, caller)| FunctionTime {
            function,
            caller,
            time: length,
            whole: length,
            times: 1,
        });
        Part {
            stage,
            cause,
            from,
            length,
            by: None,
            cpu: None,
            thread: format!("{}-{}", doing.task.comm, doing.task.pid),
            main,
            within: Vec::new(),
        }
    }

    fn cause(
        &self,
        stage: PathStage,
        (from, to): (Nanos, Nanos),
        doing: &State,
    ) -> (Cause, Option<stack::Place<'a>>) {
        let length = to - from;
        match stage {
            _ if self.span == SampleSpan::Gap => (self.cause_in_gap(length, doing), None),
            PathStage::Interrupt if !doing.irqs.is_empty() => (Cause::HardIrq, None),
            PathStage::Interrupt if length <= GRAIN => (Cause::Pending, None),
            PathStage::Interrupt if doing.task.pid == 0 => (Cause::Idle, None),
            PathStage::Interrupt => self.cause_of_masking(),
            PathStage::Switch => self.cause_of_waiting((from, to), doing),
            // The handler itself, and nothing that a tracer knows of, is the way.
            PathStage::Handler => (Cause::Path, None),
            _ if !doing.irqs.is_empty() => (Cause::HardIrq, None),
            _ if doing.softirq.is_some() => (Cause::Softirq, None),
            _ if length > LONGEST_WAY => (Cause::Unseen, None),
            _ => (Cause::Path, None),
        }
    }

    /// Returns what keeps a thread that never sleeps.
    fn cause_in_gap(&self, length: Nanos, doing: &State) -> Cause {
        if !doing.irqs.is_empty() {
            return Cause::HardIrq;
        }
        if doing.softirq.is_some() {
            return Cause::Softirq;
        }
        match doing.task.pid {
            pid if pid != self.capture.pid => Cause::OtherThread,
            _ if length > GRAIN * 2 => Cause::Unseen,
            _ => Cause::Path,
        }
    }

    /// Returns the cause where nothing was noted while the interrupt was due: the code that it came
    /// to in the end masked it, or the kernel did not have the CPU.
    fn cause_of_masking(&self) -> (Cause, Option<stack::Place<'a>>) {
        let Some(waking) = self.waking else {
            return (Cause::IrqsOff, None);
        };
        match stack::interrupted(&waking.stack) {
            Some(place) => (Cause::IrqsOff, Some(place)),
            None if stack::has_entry(&waking.stack) => (Cause::Outside, None),
            None => (Cause::IrqsOff, None),
        }
    }

    /// Returns the cause where the thread is ready and does not get the CPU.
    fn cause_of_waiting(
        &self,
        (from, to): (Nanos, Nanos),
        doing: &State,
    ) -> (Cause, Option<stack::Place<'a>>) {
        let length = to - from;
        // The rest of the handler that has woken it is the way.
        let is_waking = self.entry.is_some() && from == self.milestones.woken;
        if !doing.irqs.is_empty() {
            let is_way = is_waking && length <= GRAIN * 7;
            return (if is_way { Cause::Path } else { Cause::HardIrq }, None);
        }
        if doing.softirq.is_some() {
            return (Cause::Softirq, None);
        }
        if length <= GRAIN {
            return (Cause::Scheduler, None);
        }
        let stack = stack_of(self.switch);
        let place = stack::switched(stack);
        let Some(entry) = self.entry else {
            return (Cause::OtherThread, None);
        };
        let is_last = to == self.milestones.running;
        if !is_last {
            return (Cause::OtherThread, None);
        }
        if entry.context.soft_irq && self.preemption != Preemptibility::Rt {
            return (Cause::Softirq, None);
        }
        if doing.task.pid != entry.task.pid {
            return (Cause::OtherThread, None);
        }
        if self.preemption == Preemptibility::Asked {
            let woken = stack_of(self.waking);
            let is_user = stack::has_entry(woken) && stack::interrupted(woken).is_none();
            return if is_user {
                (Cause::Scheduler, None)
            } else {
                (
                    Cause::NotPreemptible,
                    place.filter(|_| !stack::is_return_to_user(stack)),
                )
            };
        }
        match place {
            _ if entry.context.preempt_depth == 0 => (Cause::Scheduler, None),
            Some(place) if place.gave_lock_back => (Cause::Lock, Some(place)),
            place => (Cause::PreemptOff, place),
        }
    }
}

fn stack_of(event: Option<&TraceEvent>) -> &[String] {
    event.map_or(&[], |event| &event.stack)
}

/// Returns the thread that `osnoise` calls `comm:pid`.
fn noisy(name: &str) -> Task {
    let (comm, pid) = name.rsplit_once(':').unwrap_or((name, ""));
    Task {
        comm: comm.trim().to_owned(),
        pid: pid.parse().unwrap_or_default(),
    }
}

/// Adds a part. One that goes on where the last one ended is merged with it.
fn push(parts: &mut Vec<Part>, part: Part) {
    let function = |part: &Part| part.main.as_ref().map(|main| main.function.clone());
    if let Some(last) = parts.last_mut() {
        let is_same = (last.stage, last.cause, &last.thread)
            == (part.stage, part.cause, &part.thread)
            && function(last) == function(&part);
        if is_same {
            last.length += part.length;
            if let Some(main) = &mut last.main {
                main.time = last.length;
                main.whole = last.length;
            }
            return;
        }
    }
    parts.push(part);
}

impl Milestones {
    /// Keeps the moments within the sample. The kernel's moments are cut to microseconds, and one
    /// may lie before the sample was due.
    fn within(self, late: Nanos) -> Self {
        let interrupt = self.interrupt.clamp(Nanos::ZERO, late);
        let woken = self.woken.clamp(interrupt, late);
        let running = self.running.clamp(woken, late);
        Self {
            interrupt,
            woken,
            running,
        }
    }
}

/// A change on a CPU.
enum Change<'a> {
    Task(Task),
    Irq(&'a str),
    NoIrq,
    Softirq(&'a str),
    NoSoftirq,
}

impl Change<'_> {
    fn make(self, doing: &mut State) {
        match self {
            Self::Task(task) => doing.task = task,
            Self::Irq(name) => doing.irqs.push(name.to_owned()),
            Self::NoIrq => drop(doing.irqs.pop()),
            Self::Softirq(name) => doing.softirq = Some(name.to_owned()),
            Self::NoSoftirq => doing.softirq = None,
        }
    }
}

/// Returns the parts of a sample of which a tracer tells only the longest latency since it was
/// read.
pub fn of_longest(capture: &Capture) -> Result<Vec<Part>, String> {
    let longest = capture.longest.as_ref();
    let longest = longest.ok_or("the tracer has seen nothing since it was read last")?;
    let late = capture.sample.value;
    let length = longest.latency.clamp(Nanos::ZERO, late);
    let part = |stage, cause, from, length, function: &str| Part {
        stage,
        cause,
        from,
        length,
        by: None,
        cpu: None,
        thread: format!("{}-{}", longest.task.comm, longest.task.pid),
        main: (!function.is_empty()).then(|| FunctionTime {
            function: function.to_owned(),
            caller: None,
            time: length,
            whole: length,
            times: 1,
        }),
        within: Vec::new(),
    };
    if capture.tracer == Tracer::Irqsoff {
        let masked = part(
            PathStage::Interrupt,
            Cause::IrqsOff,
            Nanos::ZERO,
            length,
            &longest.started,
        );
        let rest = part(PathStage::Return, Cause::Unseen, length, late - length, "");
        return Ok(vec![masked, rest]);
    }
    if longest.task.pid != capture.pid {
        let (comm, pid) = (&longest.task.comm, longest.task.pid);
        return Err(format!(
            "the longest wake-up that the tracer has seen was another thread's: {comm}-{pid}, {}",
            longest.latency
        ));
    }
    let before = part(
        PathStage::Interrupt,
        Cause::Unseen,
        Nanos::ZERO,
        late - length,
        "",
    );
    let waiting = part(PathStage::Switch, Cause::Unseen, late - length, length, "");
    Ok(vec![before, waiting])
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! A late thread of `timerlat`: by rtla's own analysis, or by the trace that it is made from.

use punctual_formats::rtla_analysis::Analysis;
use punctual_model::Nanos;
use punctual_model::capture::{Happened, NoiseKind, TraceEvent};

use super::{Kind, Page, Piece, Told, name, notes, way};
use crate::captured::stack;

/// Times up to this belong to the way itself.
const GRAIN: Nanos = Nanos::from_micros(3);
/// The scheduler's own way, from the interrupt to the thread.
const SWITCH: Nanos = Nanos::from_micros(5);

/// The kernel prints moments cut to microseconds: they may be later by up to this.
const PRINTED: Nanos = Nanos::from_micros(1);

/// Explains rtla's analysis.
pub fn told(analysis: &Analysis) -> Told {
    let mut told = Told {
        source: "rtla timerlat".into(),
        cpu: analysis.cpu,
        whose: Some("rtla's measuring thread".into()),
        ..of(analysis, None)
    };
    if analysis.cpu.is_none() {
        told.notes
            .push("this rtla does not say which CPU it was".into());
    }
    told.notes
        .push("it sums up: when each part began, and in what order, is not in it".into());
    told.settle();
    told
}

/// Returns the parts of an analysis, in the order in which `timerlat` meets them. `interrupted` is
/// the thread that its interrupt came to, where no thread is said to have gone on after it.
fn of(analysis: &Analysis, interrupted: Option<&str>) -> Told {
    let mut pieces = Vec::new();
    let mut at = Nanos::ZERO;
    let mut put = |kind,
                   length: Nanos,
                   thread: Option<&str>,
                   place: Option<stack::Place<'_>>,
                   what: Option<&str>| {
        if length > Nanos::ZERO {
            let mut piece = Piece::new(kind, at, length);
            piece.thread = thread.map(str::to_owned);
            piece.what = place.map(|place| place.function.to_owned());
            piece.caller = place.and_then(|place| place.caller).map(str::to_owned);
            if let Some(what) = what {
                piece.what = Some(what.to_owned());
            }
            pieces.push(piece);
            at += length;
        }
    };
    let blocking = analysis.blocking.first().map(|(name, _)| name.as_str());
    let blocking = blocking.or(interrupted);
    let place = stack::interrupted(&analysis.stack);
    let masked = cause_of_delay(analysis);
    let place_of_delay = place.filter(|_| masked == Kind::InterruptsOff);
    put(masked, analysis.irq_delay, blocking, place_of_delay, None);
    put(
        Kind::Interrupt,
        analysis.irq_duration,
        None,
        None,
        Some("the timer's"),
    );
    for (name, time) in &analysis.irqs {
        put(Kind::Interrupt, *time, None, None, Some(name));
    }
    put(Kind::Hardware, analysis.nmis, None, None, Some("NMI"));
    for (name, time) in &analysis.softirqs {
        put(Kind::SoftInterrupt, *time, None, None, Some(name));
    }
    for (name, time) in &analysis.blocking {
        let kind = cause_of_blocking(analysis, name, *time);
        let place = place.filter(|_| kind == Kind::PreemptionOff);
        put(kind, *time, Some(name), place, None);
    }
    for (name, time) in &analysis.threads {
        put(Kind::HigherThread, *time, Some(name), None, None);
    }
    let rest = analysis.latency - at;
    if rest > Nanos::ZERO {
        pieces.push(Piece::new(way(rest), at, rest));
    }
    Told {
        whole: Some(analysis.latency.max(at)),
        pieces,
        undecided: is_not_told(analysis, masked).then(|| {
            "its interrupt came late, and no stack says where it came to: code with interrupts \
             off, or hardware"
                .into()
        }),
        ..Told::default()
    }
}

/// Returns why the timer's interrupt came late.
fn cause_of_delay(analysis: &Analysis) -> Kind {
    let delay = analysis.irq_delay;
    let is_in_user =
        || stack::has_entry(&analysis.stack) && stack::interrupted(&analysis.stack).is_none();
    match () {
        () if delay <= GRAIN => Kind::Path,
        () if analysis.previous_irq * 2 >= delay => Kind::Interrupt,
        () if analysis.from_idle => Kind::Idle,
        // Nothing masks an interrupt there.
        () if is_in_user() => Kind::Hardware,
        () => Kind::InterruptsOff,
    }
}

/// Returns true if the interrupt's delay is most of it and nothing says where the interrupt came.
fn is_not_told(analysis: &Analysis, masked: Kind) -> bool {
    let is_most = analysis.irq_delay * 2 >= analysis.latency;
    masked == Kind::InterruptsOff && is_most && !stack::has_entry(&analysis.stack)
}

/// Returns why a thread went on after the interrupt.
fn cause_of_blocking(analysis: &Analysis, name: &str, time: Nanos) -> Kind {
    if name.starts_with("swapper") || name.starts_with("<idle>") {
        return Kind::Idle;
    }
    let is_in_kernel = stack::interrupted(&analysis.stack).is_some();
    match () {
        () if time <= SWITCH => Kind::Scheduler,
        () if is_in_kernel => Kind::PreemptionOff,
        // In user space nothing but its priority keeps a thread there.
        () if stack::has_entry(&analysis.stack) => Kind::HigherThread,
        () => Kind::Thread,
    }
}

/// A sample of `timerlat`: `#58634 context thread timer_latency 30328 ns`.
struct Sample<'a> {
    event: &'a TraceEvent,
    cpu: u32,
    number: u64,
    is_irq: bool,
    late: Nanos,
}

impl<'a> Sample<'a> {
    fn read(event: &'a TraceEvent, cpu: u32) -> Option<Self> {
        let Happened::Other { name, detail } = &event.what else {
            return None;
        };
        // trace-cmd prints `timerlat:` before it.
        let text = if detail.contains("timer_latency") {
            detail
        } else {
            name
        };
        let mut words = text
            .split_whitespace()
            .skip_while(|word| !word.starts_with('#'));
        let number = words.next()?.strip_prefix('#')?.parse().ok()?;
        let kind = words
            .by_ref()
            .skip_while(|word| *word != "context")
            .nth(1)?;
        let late = words.skip_while(|word| *word != "timer_latency").nth(1)?;
        Some(Self {
            event,
            cpu,
            number,
            is_irq: kind == "irq",
            late: Nanos(late.parse().ok()?),
        })
    }
}

impl Page<'_> {
    /// Explains the worst sample of `timerlat`, or the one at which the trace was stopped.
    pub(super) fn of_timerlat(&self) -> Option<Told> {
        let events = || self.trace.events.iter().zip(&self.trace.cpus);
        let samples: Vec<Sample<'_>> = events()
            .filter_map(|(event, cpu)| Sample::read(event, *cpu))
            .collect();
        let stopped = events().find_map(|(event, _)| Some((event, stopped_on(event)?)));
        let last = stopped.and_then(|(event, (cpu, _))| {
            let is_before = |one: &&Sample<'_>| one.cpu == cpu && one.event.at <= event.at;
            samples.iter().rfind(is_before)
        });
        // A thread is no earlier than its interrupt, and is noted after it.
        let worst = last.or_else(|| samples.iter().max_by_key(|sample| sample.late))?;
        let is_its = |one: &&Sample<'_>| (one.cpu, one.number) == (worst.cpu, worst.number);
        let irq = samples.iter().find(|one| one.is_irq && is_its(one));
        let analysis = self.analysis(worst, irq);
        // The task of an interrupt's sample is the one that it came to.
        let is_thread = |one: &&Sample<'_>| one.cpu == worst.cpu && !one.is_irq;
        let thread = Some(worst).filter(is_thread);
        let thread = thread.or_else(|| samples.iter().rfind(is_thread));
        let interrupted = irq.map(|irq| name(&irq.event.task));
        let unnamed = || format!("timerlat/{}", worst.cpu);
        let mut told = Told {
            whose: Some(thread.map_or_else(unnamed, |one| name(&one.event.task))),
            cpu: Some(worst.cpu),
            source: "timerlat".into(),
            end: Some(worst.event.at),
            ..of(&analysis, interrupted.as_deref())
        };
        if worst.is_irq {
            told.notes.push(
                "this is the lateness of the interrupt: the text does not show that of the thread"
                    .into(),
            );
        }
        let is_noise = |event: &&TraceEvent| matches!(event.what, Happened::Noise { .. });
        if !worst.is_irq && !self.of_cpu(worst.cpu).iter().any(is_noise) {
            told.notes.push(notes::NO_NOISE.into());
            let irq = analysis.irq_delay;
            // What stood between the interrupt and the thread is not in it.
            if irq * 2 < worst.late {
                told.undecided = Some(
                    "its thread came late after its interrupt, and no event of osnoise says why"
                        .into(),
                );
            }
        }
        let is_by_thread = stopped.is_some_and(|(_, (_, is_by_thread))| is_by_thread);
        let missing = match irq {
            None => Some("the sample of its interrupt"),
            Some(_) if worst.is_irq && is_by_thread => Some("the sample of its thread"),
            Some(_) => None,
        };
        if let Some(missing) = missing {
            let ways = told.pieces.iter_mut();
            for piece in ways.filter(|piece| piece.kind == Kind::Path) {
                piece.kind = Kind::Unknown;
            }
            told.undecided = Some(format!("{missing} is not in it"));
        }
        Some(told)
    }

    /// Sums up what ran between the moment when a sample was due and the sample. The parts are not
    /// longer than the sample.
    fn analysis(&self, worst: &Sample<'_>, irq: Option<&Sample<'_>>) -> Analysis {
        let due = worst.event.at - worst.late;
        // Without its interrupt's sample, all of its time may be told.
        let at_irq = irq.map_or(due, |irq| irq.event.at);
        let mut analysis = Analysis {
            cpu: Some(worst.cpu),
            irq_delay: irq.map_or(Nanos::ZERO, |irq| irq.late),
            from_idle: irq.is_some_and(|irq| irq.event.task.pid == 0),
            stack: worst.event.stack.clone(),
            latency: worst.late,
            ..Analysis::default()
        };
        let mut is_timer_seen = false;
        // Time after the interrupt that those took that interrupt soft interrupts, and threads.
        let (mut by_irqs, mut by_softirqs) = (Nanos::ZERO, Nanos::ZERO);
        for event in self.of_cpu(worst.cpu) {
            let Happened::Noise {
                kind,
                name,
                start,
                ran,
            } = &event.what
            else {
                continue;
            };
            // It ran without its interruptions, so that it ended when it was noted.
            let end = event.at.min(worst.event.at);
            if end + PRINTED < due || *start > worst.event.at {
                continue;
            }
            let since = |moment: Nanos, taken: Nanos| {
                let room = end - (*start).max(moment) - taken;
                if *ran <= room + PRINTED {
                    *ran
                } else {
                    room.max(Nanos::ZERO)
                }
            };
            let is_timer = name.contains("timer");
            let is_with = *kind == NoiseKind::Irq && !is_timer && event.at == at_irq;
            let is_before = event.at < at_irq || is_with;
            // Of what began before, the rest counts, without what interrupted that.
            let taken = match kind {
                _ if *start >= at_irq => Nanos::ZERO,
                NoiseKind::Irq | NoiseKind::Nmi => Nanos::ZERO,
                NoiseKind::Softirq => by_irqs,
                NoiseKind::Thread => by_irqs + by_softirqs,
            };
            let own = since(at_irq, taken);
            match kind {
                _ if is_before => {}
                NoiseKind::Irq | NoiseKind::Nmi => by_irqs += own,
                NoiseKind::Softirq => by_softirqs += own,
                NoiseKind::Thread => {}
            }
            let after = || (name.clone(), own);
            match kind {
                NoiseKind::Irq if is_before => {
                    analysis.previous_irq += since(due, Nanos::ZERO);
                }
                NoiseKind::Irq if is_timer && !is_timer_seen => {
                    is_timer_seen = true;
                    analysis.irq_duration = since(due, Nanos::ZERO);
                }
                NoiseKind::Irq => analysis.irqs.push(after()),
                NoiseKind::Nmi if is_before => {
                    let time = since(due, Nanos::ZERO).min(analysis.irq_delay);
                    analysis.irq_delay = analysis.irq_delay - time;
                    analysis.nmis += time;
                }
                NoiseKind::Nmi => analysis.nmis += own,
                // These do not keep an interrupt from coming.
                NoiseKind::Softirq | NoiseKind::Thread if is_before => {}
                NoiseKind::Softirq => analysis.softirqs.push(after()),
                NoiseKind::Thread if analysis.blocking.is_empty() => {
                    analysis.blocking.push(after());
                }
                NoiseKind::Thread => analysis.threads.push(after()),
            }
        }
        fit(&mut analysis);
        analysis
    }
}

/// Shortens the parts of a sample so that they are not longer than it together. The thread that
/// went on after the interrupt has what the others leave.
fn fit(analysis: &mut Analysis) {
    let Analysis {
        irq_delay,
        irq_duration,
        nmis,
        irqs,
        softirqs,
        threads,
        blocking,
        latency,
        ..
    } = analysis;
    let mut left = *latency;
    let listed = [irqs, softirqs, threads, blocking].into_iter().flatten();
    let times = [irq_delay, irq_duration, nmis].into_iter();
    for time in times.chain(listed.map(|(_, time)| time)) {
        *time = (*time).min(left);
        left = left - *time;
    }
}

/// Reads `timerlat_main: stop tracing hit on cpu 6`: the CPU, and true if its thread was too late,
/// not its interrupt (`timerlat_irq`).
fn stopped_on(event: &TraceEvent) -> Option<(u32, bool)> {
    let (Happened::Other { name, detail }
    | Happened::Function {
        name,
        caller: detail,
    }) = &event.what
    else {
        return None;
    };
    let texts = [detail, name];
    let is_by_thread = texts.iter().any(|text| text.starts_with("timerlat_main"));
    let (_, cpu) = texts
        .into_iter()
        .find_map(|text| text.split_once("hit on cpu "))?;
    Some((cpu.trim().parse().ok()?, is_by_thread))
}

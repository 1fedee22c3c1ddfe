// SPDX-License-Identifier: MIT OR Apache-2.0
//! A late thread of `timerlat`: by rtla's own analysis, or by the trace that it is made from.

use punctual_formats::rtla_analysis::Analysis;
use punctual_model::Nanos;
use punctual_model::capture::{Happened, NoiseKind, TraceEvent};

use super::{Kind, Page, Piece, Told, notes};
use crate::captured::stack;

/// Times up to this belong to the way itself.
const GRAIN: Nanos = Nanos::from_micros(3);
/// The scheduler's own way, from the interrupt to the thread.
const SWITCH: Nanos = Nanos::from_micros(5);

/// Explains rtla's analysis.
pub fn told(analysis: &Analysis) -> Told {
    let mut told = Told {
        source: "rtla timerlat".into(),
        cpu: analysis.cpu,
        whose: Some("rtla's measuring thread".into()),
        ..of(analysis)
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

/// Returns the parts of an analysis, in the order in which `timerlat` meets them.
fn of(analysis: &Analysis) -> Told {
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
        pieces.push(Piece::new(Kind::Path, at, rest));
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
#[derive(Clone, Copy)]
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
    /// Explains the worst thread of `timerlat`, or the one at which the trace was stopped.
    pub(super) fn of_timerlat(&self) -> Option<Told> {
        let events = || self.trace.events.iter().zip(&self.trace.cpus);
        let samples: Vec<Sample<'_>> = events()
            .filter_map(|(event, cpu)| Sample::read(event, *cpu))
            .collect();
        let threads = || samples.iter().filter(|sample| !sample.is_irq);
        let stopped = events().find_map(|(event, _)| stopped_on(event));
        let last = stopped.and_then(|cpu| threads().rfind(|sample| sample.cpu == cpu));
        let worst = last.or_else(|| threads().max_by_key(|sample| sample.late));
        let worst = worst.or_else(|| samples.iter().max_by_key(|sample| sample.late))?;
        let analysis = self.analysis(worst, &samples);
        let mut told = Told {
            whose: Some(format!(
                "{}-{}",
                worst.event.task.comm, worst.event.task.pid
            )),
            cpu: Some(worst.cpu),
            source: "timerlat".into(),
            ..of(&analysis)
        };
        let is_noise = |event: &&TraceEvent| matches!(event.what, Happened::Noise { .. });
        if !self.of_cpu(worst.cpu).iter().any(is_noise) {
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
        Some(told)
    }

    fn analysis(&self, worst: &Sample<'_>, samples: &[Sample<'_>]) -> Analysis {
        let is_its = |sample: &&Sample<'_>| {
            sample.is_irq && (sample.cpu, sample.number) == (worst.cpu, worst.number)
        };
        let irq = samples.iter().find(is_its).copied();
        let due = worst.event.at - worst.late;
        let at_irq = irq.map_or(worst.event.at, |irq| irq.event.at);
        let mut analysis = Analysis {
            cpu: Some(worst.cpu),
            irq_delay: irq.map_or(Nanos::ZERO, |irq| irq.late),
            from_idle: irq.is_some_and(|irq| irq.event.task.pid == 0),
            stack: worst.event.stack.clone(),
            latency: worst.late,
            ..Analysis::default()
        };
        let mut is_timer_seen = false;
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
            let end = *start + *ran;
            // The kernel prints whole microseconds.
            if end + Nanos(1_000) < due || *start > worst.event.at {
                continue;
            }
            let (name, ran) = (name.clone(), (*ran).min(worst.event.at - due));
            match kind {
                NoiseKind::Irq if event.at <= at_irq && !name.contains("timer") => {
                    analysis.previous_irq += ran;
                }
                NoiseKind::Irq if name.contains("timer") && !is_timer_seen => {
                    is_timer_seen = true;
                    analysis.irq_duration = ran;
                }
                NoiseKind::Irq => analysis.irqs.push((name, ran)),
                NoiseKind::Nmi => analysis.nmis += ran,
                NoiseKind::Softirq => analysis.softirqs.push((name, ran)),
                NoiseKind::Thread if event.at < at_irq => {}
                NoiseKind::Thread if analysis.blocking.is_empty() => {
                    let left = worst.late - analysis.irq_delay - analysis.irq_duration;
                    let ran = ran.min(left.max(Nanos::ZERO));
                    analysis.blocking.push((name, ran));
                }
                NoiseKind::Thread => analysis.threads.push((name, ran)),
            }
        }
        analysis
    }
}

/// Reads `timerlat_main: stop tracing hit on cpu 6`.
fn stopped_on(event: &TraceEvent) -> Option<u32> {
    let (Happened::Other { name, detail }
    | Happened::Function {
        name,
        caller: detail,
    }) = &event.what
    else {
        return None;
    };
    let (_, cpu) = [detail, name]
        .into_iter()
        .find_map(|text| text.split_once("hit on cpu "))?;
    cpu.trim().parse().ok()
}

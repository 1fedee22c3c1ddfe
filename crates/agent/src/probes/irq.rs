// SPDX-License-Identifier: MIT OR Apache-2.0
//! Probe `irq`: interrupt latency, from the line to the program that waits for it.
//!
//! Three stages apart, each a variant: `hard`, from the moment when the interrupt is
//! asserted to the hard handler; `thread`, from there to the threaded handler; `reader`,
//! from there to a thread that is back in user space. `hard+thread` combines the first two, and
//! `whole` all three. The interrupt meets a running thread; if no thread keeps
//! the CPU busy, the names begin with `idle`.

use std::io;
use std::path::Path;
use std::thread;

use punctual_model::probe::{FindingView, Form, ProbeInfo, Shape, View, Watched};
use punctual_model::recording::KEEP_MOST;
use punctual_model::{CpuId, Finding, Findings, Nanos, Reason, Recorder, Recording, RecordingKey};
use serde::Deserialize;

use super::{Context, Measurement, Probe, parameters, within};
use crate::busy;
use crate::rt::{self, Faults, Settings};
use crate::sink::Sink as _;
use crate::stall::{self, Stall};
use crate::status_page::{self, SeenRecorder};
use crate::sys::marker;
use crate::sys::pulse::{Burst, Interrupt, Pulse, Source, Stats};
use crate::sys::time::{self, now, sleep_until};
use crate::threads;

/// This probe.
pub const PROBE: Probe = Probe {
    name: "irq",
    summary: "interrupt latency (/dev/pulse): hard handler, threaded handler, reader",
    parse: |table| parameters::<Irq>(table, Irq::check),
};

/// The probe's description for the workstation.
pub const INFO: ProbeInfo = ProbeInfo {
    name: PROBE.name,
    view: View {
        shape: Shape::Latency,
        spoken: "interrupt latency",
        findings: &[FindingView::new("busy", "ran before", Form::Plain).only_of("hard")],
    },
    scope: Ok(Watched {
        stages: &[
            &["whole"],
            &["hard", "thread", "reader"],
            &["hard+thread", "reader"],
            &["idle whole"],
            &["idle hard", "idle thread", "idle reader"],
            &["idle hard+thread", "idle reader"],
        ],
        ..Watched::LATENESS
    }),
};

/// The device that makes the interrupts.
pub const DEVICE: &str = "/dev/pulse";
const LONGEST_PHASE: Nanos = Nanos::from_millis(4);
/// The priority of the triggering thread, below the threaded handler (50) and the reader: each
/// stage takes the CPU from it, and so its own way back to sleep is in none of them.
const TRIGGER_PRIORITY: u8 = 10;
/// The number of interrupts for which there is room until the reader has seen them.
const ROOM: u32 = 4096;
/// The time from the start of a stall to its interrupt: its thread must get the CPU first.
const STALL_OFFSET: Nanos = Nanos(-50_000);
/// The names of the variants, in the order of [`stages`].
const STAGES: [&str; 5] = ["hard", "thread", "reader", "hard+thread", "whole"];

#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Irq {
    /// The source of the interrupts. `edu` and `ipi` are triggered by a thread; the HPET
    /// interrupts by itself.
    source: Source,
    /// True if a thread of low priority keeps the CPU busy: then that thread is interrupted.
    busy: bool,
    /// The number of interrupts.
    samples: u64,
    /// The time between two interrupts.
    interval_us: u32,
    /// The reader's `SCHED_FIFO` priority.
    priority: u8,
    /// The CPU that is interrupted, and that the threads are bound to.
    cpu: CpuId,
    /// The CPU that sends the interrupts of `ipi`; if none, the one that is interrupted.
    from: Option<CpuId>,
    /// The number of first interrupts that are not counted.
    warmup: u32,
    /// The number of samples that are kept raw.
    keep: u32,
    /// A stall that falls into one interrupt of the HPET.
    stall: Option<Stall>,
}

impl Default for Irq {
    fn default() -> Self {
        Self {
            source: Source::Hpet,
            busy: true,
            samples: 10_000,
            interval_us: 997,
            priority: 80,
            cpu: CpuId(0),
            from: None,
            warmup: 40,
            keep: 1_000_000,
            stall: None,
        }
    }
}

impl Irq {
    fn check(&self) -> Result<(), String> {
        within("samples", self.samples, 1, 1_000_000_000)?;
        within("interval_us", self.interval_us, 50, 1_000_000)?;
        within("priority", self.priority, 11, 99)?;
        within("warmup", self.warmup, 1, 1_000_000)?;
        within("keep", self.keep, 0, KEEP_MOST)?;
        if self.from.is_some() && self.source != Source::Ipi {
            return Err("from is the sender of source = \"ipi\": no other has one".into());
        }
        let Some(stall) = self.stall else {
            return Ok(());
        };
        if self.source != Source::Hpet {
            return Err("only an interrupt of source = \"hpet\" comes in spite of a stall".into());
        }
        within("warmup", self.warmup, 40, 1_000_000)?;
        within("interval_us", self.interval_us, 500, 1_000_000)?;
        stall.check(self.samples.min(self.keep.into()))
    }

    fn interval(&self) -> Nanos {
        Nanos::from_micros(self.interval_us.into())
    }

    fn all(&self) -> u64 {
        self.samples + u64::from(self.warmup)
    }

    fn burst(&self) -> Burst {
        let by_itself = self.source == Source::Hpet;
        Burst {
            source: self.source,
            interval: if by_itself {
                self.interval()
            } else {
                Nanos::ZERO
            },
            count: self.all(),
            records: ROOM,
            cpu: Some(self.cpu),
            threaded: true,
            handler: Nanos::ZERO,
        }
    }

    /// Runs the triggering thread for its whole life. The reader always learns of the end.
    fn trigger(&self, pulse: &Pulse) -> Result<(), Reason> {
        let triggered = self.trigger_all(pulse);
        let stopped = pulse.stop();
        triggered.and(stopped.map_err(|error| format!("{DEVICE}: {error}").into()))
    }

    fn trigger_all(&self, pulse: &Pulse) -> Result<(), Reason> {
        rt::prepare_thread(self.from.unwrap_or(self.cpu), TRIGGER_PRIORITY)?;
        let mut due = now();
        for _ in 0..self.all() {
            if status_page::is_stop_requested() {
                break;
            }
            due += self.interval();
            sleep_until(due);
            pulse
                .trigger()
                .map_err(|error| format!("{DEVICE}: {error}"))?;
        }
        // The last one comes to its reader first.
        sleep_until(due + self.interval());
        Ok(())
    }

    /// Runs the reading thread for its whole life.
    fn read(&self, phase: Nanos) -> Result<Vec<Recording>, Reason> {
        let kept = self.samples.min(self.keep.into()) as usize;
        let mut recorders = Recorders {
            stages: [(); 4].map(|()| Recorder::new(kept)),
            whole: SeenRecorder::new(kept, self.samples),
        };
        let mut settings = rt::prepare_thread(self.cpu, self.priority)?;
        let pulse = Pulse::open(Path::new(DEVICE), &self.burst())?;
        let stall = self.stall.map(Stall::open).transpose()?;
        let mut measure = || {
            time::sleep(phase);
            let faults = Faults::of_thread();
            let seen = self.interrupted(&pulse, stall.as_ref(), &mut recorders)?;
            Ok((seen, faults.until_now()))
        };
        let (((first, stalled), faults), busy) = if self.busy {
            busy::beside(self.cpu, measure)?
        } else {
            (measure()?, None)
        };
        let stats = pulse
            .stats()
            .map_err(|error| format!("{DEVICE}: {error}"))?;
        settings.extend(self.facts(&stats));
        settings.extend(faults.facts());
        let mut findings = Self::findings(&stats);
        findings.extend(busy.map(|share| ("busy".into(), share)));
        let describe = |mut recording: Recording| {
            recording.interval = Some(self.interval());
            recording.warmup = self.warmup.into();
            recording.settings.clone_from(&settings);
            recording.findings.clone_from(&findings);
            if let Some(device) = &stall {
                device.tell(stalled, stalled - first, &mut recording)?;
            }
            Ok(recording)
        };
        let recordings = recorders.finish(self.busy).into_iter();
        recordings.map(describe).collect()
    }

    /// Runs the burst, from its start to the last sample. Returns the result of [`Self::listen`].
    fn interrupted(
        &self,
        pulse: &Pulse,
        stall: Option<&stall::Device>,
        recorders: &mut Recorders,
    ) -> Result<(Nanos, Nanos), Reason> {
        let failed = |error| format!("{DEVICE}: {error}");
        pulse.start().map_err(failed)?;
        thread::scope(|scope| {
            let triggered = self.source != Source::Hpet;
            let trigger = triggered.then(|| threads::start(scope, || self.trigger(pulse)));
            let trigger = trigger.transpose()?;
            let found = self.listen(pulse, stall, recorders);
            if let Some(trigger) = trigger {
                trigger.join()??;
            }
            found
        })
    }

    /// Receives the burst. Returns the times when its first sample was asserted, and when the one
    /// that is to be stalled is due.
    fn listen(
        &self,
        pulse: &Pulse,
        stall: Option<&stall::Device>,
        recorders: &mut Recorders,
    ) -> Result<(Nanos, Nanos), Reason> {
        let failed = |error| format!("{DEVICE}: {error}");
        let next = || {
            let interrupt = pulse.wait().map_err(failed)?;
            interrupt.ok_or_else(|| "the burst was over before the first sample".to_owned())
        };
        // The last interrupts before the first sample are read at leisure, as arming takes
        // its time.
        let mut last = next()?;
        let mut stalled = last.asserted;
        if let Some(device) = stall {
            let warmup = i64::from(self.warmup);
            let ahead = warmup + 1 - last.seq as i64 + device.sample() as i64;
            stalled += self.interval() * ahead;
            device.arm(stalled, STALL_OFFSET)?;
        }
        while last.seq < self.warmup.into() {
            last = next()?;
        }
        let first = sample(recorders, pulse, last.seq).map_err(failed)?;
        Ok((first, stalled))
    }

    fn facts(&self, stats: &Stats) -> Settings {
        let source = format!("{:?}", self.source).to_lowercase();
        let from = self.from.map(|cpu| ("from".into(), cpu.to_string().into()));
        let mut facts = Settings::from([
            ("source".into(), source.into()),
            ("irq".into(), stats.irq.into()),
            ("thread_pid".into(), stats.thread_pid.into()),
        ]);
        facts.extend(from);
        facts
    }

    fn findings(stats: &Stats) -> Findings {
        let counts = [
            ("raised", stats.raised),
            ("handled", stats.handled),
            ("extra", stats.extra),
            ("dropped", stats.dropped),
            ("skipped", stats.skipped),
        ];
        counts
            .map(|(name, count)| (name.into(), Finding::Count(count)))
            .into()
    }
}

impl Measurement for Irq {
    fn nominal(&self) -> Nanos {
        self.interval() * self.all() as i64
    }

    fn period(&self) -> Option<Nanos> {
        Some(self.interval())
    }

    fn run(&self, context: &mut Context) -> Result<Vec<Recording>, Reason> {
        let phase = context.phases.below(LONGEST_PHASE);
        threads::alone(|| self.read(phase))
    }
}

/// Measures: waits for an interrupt, and reads when it passed each stage. A gap in the sequence
/// means lost interrupts. Returns the time when the first one was asserted.
#[inline(never)]
fn sample(recorders: &mut Recorders, pulse: &Pulse, before: u64) -> io::Result<Nanos> {
    let mut before = before;
    let mut first = None;
    marker::armed();
    while let Some(interrupt) = pulse.wait()? {
        let read = now();
        marker::taken();
        let at = interrupt.asserted - *first.get_or_insert(interrupt.asserted);
        recorders.record(at, stages(&interrupt, read), interrupt.seq - before - 1);
        before = interrupt.seq;
        if recorders.whole.is_over() {
            break;
        }
        marker::armed();
    }
    Ok(first.unwrap_or(Nanos::ZERO))
}

/// Recorders of the stages, and of the whole.
struct Recorders {
    stages: [Recorder; 4],
    whole: SeenRecorder,
}

impl Recorders {
    #[inline]
    fn record(&mut self, at: Nanos, values: [Nanos; 5], missed: u64) {
        for (recorder, value) in self.stages.iter_mut().zip(values) {
            recorder.record(at, value);
            recorder.miss(missed);
        }
        self.whole.record(at, values[4]);
        self.whole.miss(missed);
    }

    fn finish(self, busy: bool) -> Vec<Recording> {
        let key = |stage: &str| {
            let idle = if busy { "" } else { "idle " };
            RecordingKey::of_variant(format!("{idle}{stage}"))
        };
        let stages = self.stages.into_iter().zip(STAGES);
        let stages = stages.map(|(recorder, stage)| recorder.finish(key(stage)));
        stages.chain([self.whole.finish(key(STAGES[4]))]).collect()
    }
}

/// Computes the values of the variants, in their order.
fn stages(interrupt: &Interrupt, read: Nanos) -> [Nanos; 5] {
    let Interrupt {
        asserted,
        hard,
        thread,
        ..
    } = *interrupt;
    [
        hard - asserted,
        thread - hard,
        read - thread,
        thread - asserted,
        read - asserted,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stages_add_up_to_the_whole() {
        let interrupt = Interrupt {
            seq: 1,
            asserted: Nanos(100),
            hard: Nanos(130),
            thread: Nanos(190),
        };
        let [hard, thread, reader, handlers, whole] = stages(&interrupt, Nanos(200));
        assert_eq!((hard, thread, reader), (Nanos(30), Nanos(60), Nanos(10)));
        assert_eq!(hard + thread, handlers);
        assert_eq!(hard + thread + reader, whole);
    }

    #[test]
    fn only_the_hpet_interrupts_in_spite_of_a_stall() {
        let parse = |source: &str| {
            let stall = "stall = { kind = \"irqs-off\", us = 500, sample = 3 }";
            let text = format!("source = \"{source}\"\n{stall}");
            (PROBE.parse)(&text.parse().unwrap()).map(|_| ())
        };
        assert!(parse("hpet").is_ok());
        assert!(parse("edu").unwrap_err().contains("hpet"));
        let from = |source: &str| {
            let text = format!("source = \"{source}\"\nfrom = 1");
            (PROBE.parse)(&text.parse().unwrap()).map(|_| ())
        };
        assert!(from("ipi").is_ok());
        assert!(from("hpet").unwrap_err().contains("ipi"));
    }
}

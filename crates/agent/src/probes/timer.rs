// SPDX-License-Identifier: MIT OR Apache-2.0
//! Probe `timer`: wake-up latency, the delay of a thread after its timer was due.

use std::sync::Barrier;
use std::thread;

use punctual_model::aim::Aim;
use punctual_model::probe::{ProbeInfo, Shape, View, Watched};
use punctual_model::recording::KEEP_MOST;
use punctual_model::{CpuId, Nanos, Reason, Recording, RecordingKey};
use serde::Deserialize;

use super::{Context, Measurement, Probe, parameters, within};
use crate::rt::{self, Faults, Periods};
use crate::sink::Sink;
use crate::stall::{self, Stall};
use crate::status_page::{self, SeenRecorder};
use crate::sys::periodic::Periodic;
use crate::sys::time::{now, sleep_until};
use crate::sys::{marker, sched};
use crate::threads::{self, Started};
use crate::tracer::Watcher;

/// This probe.
pub const PROBE: Probe = Probe {
    name: "timer",
    summary: "wake-up latency: how late a SCHED_FIFO thread runs after its timer was due",
    parse: |table| parameters::<Timer>(table, Timer::check),
};

/// The probe's description for the workstation.
pub const INFO: ProbeInfo = ProbeInfo {
    name: PROBE.name,
    view: View::of_samples(Shape::Latency, "wake-up latency"),
    scope: Ok(Watched::LATENESS),
};

/// The longest distance of the probe's first deadline from the round moment: a tick of 4 ms.
const LONGEST_PHASE: Nanos = Nanos::from_millis(4);
/// The life of a `SCHED_DEADLINE` thread before its periods begin: by then all others exist.
const GATHERING: Nanos = Nanos::from_millis(10);
/// The time from the start of a stall to its sample: its thread must get the CPU first.
const STALL_OFFSET: Nanos = Nanos(-50_000);

/// The scheduling of the threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Scheduling {
    /// `SCHED_FIFO`: a thread sleeps until a timer is due.
    #[default]
    Fifo,
    /// `SCHED_DEADLINE`: a thread gives up the rest of its runtime, and the kernel wakes it when
    /// its next period begins.
    Deadline,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Timer {
    /// The number of samples that each thread takes.
    samples: u64,
    /// The period. The default is no multiple of any tick, so that it does not beat with it.
    interval_us: u32,
    /// The scheduling of the threads.
    policy: Scheduling,
    /// The threads' `SCHED_FIFO` priority.
    priority: u8,
    /// The time that a `SCHED_DEADLINE` thread may run in each period; 0 means
    /// [`rt::DEADLINE_SHARE`] of the period.
    runtime_us: u32,
    /// One thread is bound to each of these CPUs; empty means all that the target may use.
    cpus: Vec<CpuId>,
    /// The number of first periods that are not counted.
    warmup: u32,
    /// The number of samples that are kept raw.
    keep: u32,
    /// A stall that falls into one sample of the first of these CPUs.
    stall: Option<Stall>,
}

impl Default for Timer {
    fn default() -> Self {
        Self {
            samples: 10_000,
            interval_us: 997,
            policy: Scheduling::Fifo,
            priority: 80,
            runtime_us: 0,
            cpus: vec![],
            warmup: 10,
            keep: 1_000_000,
            stall: None,
        }
    }
}

impl Timer {
    fn check(&self) -> Result<(), String> {
        within("samples", self.samples, 1, 1_000_000_000_000)?;
        within("interval_us", self.interval_us, 10, 10_000_000)?;
        within("priority", self.priority, 1, 99)?;
        within("keep", self.keep, 0, KEEP_MOST)?;
        within("runtime_us", self.runtime_us, 0, self.interval_us)?;
        match self.policy {
            Scheduling::Fifo if self.runtime_us > 0 => {
                return Err("runtime_us is for policy = \"deadline\"".into());
            }
            Scheduling::Deadline if self.stall.is_some() => {
                return Err("a stall is for policy = \"fifo\"".into());
            }
            _ => {}
        }
        self.stall.map_or(Ok(()), |stall| {
            stall.check(self.samples.min(self.keep.into()))
        })
    }

    fn interval(&self) -> Nanos {
        Nanos::from_micros(self.interval_us.into())
    }

    /// Returns the time that a thread may run in each period.
    fn runtime(&self) -> Nanos {
        match self.runtime_us {
            0 => Nanos(self.interval().0 / 100 * rt::DEADLINE_SHARE),
            micros => Nanos::from_micros(micros.into()),
        }
    }

    fn all_cpus(&self) -> Result<Vec<CpuId>, Reason> {
        if !self.cpus.is_empty() {
            return Ok(self.cpus.clone());
        }
        Ok(sched::affinity().map_err(|error| format!("sched_getaffinity: {error}"))?)
    }

    /// Runs one thread for its whole life.
    fn measure(
        &self,
        cpu: CpuId,
        phase: Nanos,
        start: &Barrier,
        stall: Option<&stall::Device>,
        (watcher, aim): (Option<&Watcher>, Aim),
    ) -> Result<Recording, Reason> {
        let kept = self.samples.min(self.keep.into()) as usize;
        let mut recorder = SeenRecorder::new(kept, self.samples).of_cpu(cpu);
        let settings = rt::prepare_thread(cpu, self.priority);
        // Also a thread that cannot measure comes to the barrier, so that the others go on.
        start.wait();
        let settings = settings?;
        let mut first = now() + self.interval() + phase;
        let mut stalled = first;
        if let Some(device) = stall {
            first += stall::ARMING;
            stalled = first + self.interval() * (i64::from(self.warmup) + device.sample() as i64);
            device.arm(stalled, STALL_OFFSET)?;
        }
        let due = warm_up(first, self.interval(), self.warmup);
        let faults = Faults::of_thread();
        let (mut captures, mut of_reading) = (Vec::new(), Faults::default());
        match watcher {
            None => sample(&mut recorder, due, self.interval(), self.samples, aim),
            Some(watcher) => {
                let mut watch = watcher.watch(recorder, cpu, due);
                sample(&mut watch, due, self.interval(), self.samples, aim);
                (recorder, captures, of_reading) = watch.finish();
            }
        }
        let mut recording = recorder.finish(RecordingKey::of_variant(cpu.to_string()));
        recording.captures = captures;
        recording.interval = Some(self.interval());
        recording.warmup = self.warmup.into();
        recording.settings = settings;
        let faults = faults.until_now().without(of_reading);
        recording.settings.extend(faults.facts());
        if let Some(device) = stall {
            device.tell(stalled, stalled - due, &mut recording)?;
        }
        Ok(recording)
    }
}

impl Timer {
    /// Runs a `SCHED_DEADLINE` thread for its whole life; there are as many as CPUs.
    fn measure_periods(
        &self,
        number: usize,
        phase: Nanos,
        start: &Barrier,
    ) -> Result<Recording, Reason> {
        let kept = self.samples.min(self.keep.into()) as usize;
        let mut recorder = SeenRecorder::new(kept, self.samples);
        let locked = rt::lock_memory();
        start.wait();
        locked?;
        sleep_until(now() + GATHERING + phase);
        let (runtime, interval) = (self.runtime(), self.interval());
        let (settings, mut periods) = rt::prepare_deadline_thread(runtime, interval)?;
        periods = warm_up_periods(periods, runtime, interval, self.warmup)?;
        let faults = Faults::of_thread();
        sample_periods(&mut recorder, periods, runtime, interval, self.samples)?;
        let faults = faults.until_now();
        let mut recording = recorder.finish(RecordingKey::of_variant(format!("thread{number}")));
        recording.interval = Some(interval);
        recording.warmup = self.warmup.into();
        recording.settings = settings;
        recording.settings.extend(faults.facts());
        Ok(recording)
    }
}

impl Measurement for Timer {
    fn nominal(&self) -> Nanos {
        self.interval() * (self.samples as i64 + i64::from(self.warmup))
    }

    fn period(&self) -> Option<Nanos> {
        Some(self.interval())
    }

    fn is_by_cpu(&self) -> bool {
        true
    }

    fn cpus(&self) -> &[CpuId] {
        &self.cpus
    }

    fn watched_priority(&self) -> Option<u8> {
        (self.policy == Scheduling::Fifo).then_some(self.priority)
    }

    fn run(&self, context: &mut Context) -> Result<Vec<Recording>, Reason> {
        let cpus = self.all_cpus()?;
        let start = Barrier::new(cpus.len());
        let phase = context.phases.below(LONGEST_PHASE);
        let stall = self.stall.map(Stall::open).transpose()?;
        // The first one's.
        let stalls = std::iter::once(stall.as_ref()).chain(std::iter::repeat(None));
        let with = (context.watcher.as_deref(), context.aim);
        let live = |((cpu, number), stall): ((CpuId, usize), _)| match self.policy {
            Scheduling::Fifo => self.measure(cpu, phase, &start, stall, with),
            Scheduling::Deadline => self.measure_periods(number, phase, &start),
        };
        let live = &live;
        thread::scope(|scope| {
            let members = cpus.into_iter().zip(0..).zip(stalls);
            let threads = threads::start_all(scope, None, members, live)?;
            let join = |thread: Started<'_, Result<_, Reason>>| thread.join()?;
            threads.into_iter().map(join).collect()
        })
    }
}

/// Lets `periods` periods pass from `first` on, and returns when the next one is due.
fn warm_up(first: Nanos, interval: Nanos, periods: u32) -> Nanos {
    let mut due = first;
    for _ in 0..periods {
        if status_page::is_stop_requested() {
            break;
        }
        sleep_until(due);
        due += interval * ((now() - due).0 / interval.0 + 1);
    }
    due
}

/// Measures: sleeps until the timer is due, and records how late it is.
///
/// If a sample comes so late that whole periods have passed, these are counted as
/// missed, and the next sample is due at the next coming period.
///
/// The sample that `aim` names is due the given time after the previous reading of the clock, and
/// is the last; a second timer may be due after it. Up to there, a run with an aim executes the
/// same instructions as one without.
#[inline(never)]
pub(crate) fn sample(sink: &mut impl Sink, first: Nanos, interval: Nanos, samples: u64, aim: Aim) {
    let (mut due, mut read) = (first, first);
    for number in 0..samples {
        // Also before the first one: a warm-up that was cut short is followed by no sample.
        if sink.is_over() {
            break;
        }
        let aimed = number == aim.sample;
        // By a product: a branch would take another time.
        due += (read + aim.after - due) * i64::from(aimed);
        let second = aim.second * i64::from(aimed);
        // A descriptor that is open until the sample is taken.
        let _second = (second > Nanos::ZERO).then(|| Periodic::once(due + second));
        marker::armed();
        sleep_until(due);
        read = now();
        let late = read - due;
        marker::taken();
        sink.record(due - first, late);
        if aimed {
            break;
        }
        let missed = late.0 / interval.0;
        sink.miss(missed as u64);
        due += interval * (missed + 1);
        if let Some(moment) = sink.held_until().filter(|moment| *moment >= due) {
            due += interval * ((moment - due).0 / interval.0 + 1);
        }
    }
}

/// Lets some periods pass, and returns the periods that are then in force.
fn warm_up_periods(
    mut periods: Periods,
    runtime: Nanos,
    interval: Nanos,
    count: u32,
) -> Result<Periods, Reason> {
    for _ in 0..count {
        if status_page::is_stop_requested() {
            break;
        }
        thread::yield_now();
        periods.first += interval;
        if now() - periods.first >= interval {
            periods = rt::begin_periods_anew(runtime, interval)?;
        }
    }
    Ok(periods)
}

/// Measures a `SCHED_DEADLINE` thread, as cyclicdeadline does: yields the rest of the period, and
/// records how late the next one begins.
///
/// If whole periods have passed, these are counted as missed, and the periods are restarted,
/// since a kernel that lags behind may have done so by itself.
#[inline(never)]
pub(crate) fn sample_periods(
    sink: &mut impl Sink,
    periods: Periods,
    runtime: Nanos,
    interval: Nanos,
    samples: u64,
) -> Result<(), Reason> {
    let begun = periods.first;
    let mut due = begun + interval;
    for _ in 0..samples {
        if sink.is_over() {
            break;
        }
        marker::armed();
        thread::yield_now();
        let late = now() - due;
        marker::taken();
        if late < Nanos::ZERO {
            return Err(format!("a period began {} before its time", Nanos::ZERO - late).into());
        }
        sink.record(due - begun, late);
        let missed = late.0 / interval.0;
        due += interval;
        if missed > 0 {
            sink.miss(missed as u64);
            due = rt::begin_periods_anew(runtime, interval)?.first + interval;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use punctual_model::Recorder;

    use super::*;
    use crate::sys::time;

    #[test]
    fn every_period_is_a_sample_or_missed_and_none_is_early() {
        let interval = Nanos::from_micros(200);
        let mut recorder = Recorder::new(100);
        let first = time::now();
        sample(&mut recorder, first, interval, 100, Aim::NONE);
        let recording = recorder.finish(RecordingKey::new("timer", "idle", "cpu0"));
        assert_eq!(recording.count, 100);
        assert!(recording.min() >= Some(Nanos::ZERO));
        let last = recording.samples.iter().last().unwrap();
        let periods = last.at.0 / interval.0;
        let missed_after_last = (last.value.0 / interval.0) as u64;
        assert_eq!(
            periods as u64 + 1,
            100 + recording.missed - missed_after_last
        );
    }

    #[test]
    fn a_late_start_is_one_late_sample_and_many_missed_periods() {
        let interval = Nanos::from_millis(1);
        let mut recorder = Recorder::new(1);
        sample(
            &mut recorder,
            time::now() - Nanos::from_millis(50),
            interval,
            1,
            Aim::NONE,
        );
        let recording = recorder.finish(RecordingKey::new("timer", "idle", "cpu0"));
        assert_eq!(recording.count, 1);
        assert!(recording.missed >= 50, "{}", recording.missed);
    }

    #[test]
    fn an_aimed_sample_is_due_at_its_moment_and_the_last() {
        // With a second timer behind it, too.
        for second in [Nanos::ZERO, Nanos::from_micros(3)] {
            let aim = Aim {
                step: 0,
                sample: 3,
                after: Nanos::from_micros(700),
                second,
            };
            let interval = Nanos::from_millis(2);
            let mut recorder = Recorder::new(10);
            let first = time::now();
            sample(&mut recorder, first, interval, 10, aim);
            let recording = recorder.finish(RecordingKey::new("timer", "idle", "cpu0"));
            let samples: Vec<_> = recording.samples.iter().collect();
            assert_eq!(samples.len(), 4);
            let read = samples[2].at + samples[2].value;
            assert_eq!(samples[3].at - read, aim.after);
        }
    }

    #[test]
    fn the_measuring_loop_allocates_nothing() {
        let mut recorder = Recorder::new(50);
        let first = time::now();
        let before = crate::sys::counting_allocator::allocations();
        // Twice as many as are kept raw, so that the loop is seen on both sides of the limit.
        sample(
            &mut recorder,
            first,
            Nanos::from_micros(100),
            100,
            Aim::NONE,
        );
        assert_eq!(crate::sys::counting_allocator::allocations(), before);
        drop(std::hint::black_box(Box::new(first)));
        assert_ne!(
            crate::sys::counting_allocator::allocations(),
            before,
            "the counter counts"
        );
    }
}

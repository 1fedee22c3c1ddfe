// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measurements that the probe `timer` does not make: another clock's timers (`-c 1`), sleeps that
//! begin when the previous sample has ended (`-r`, `-s`), and signals of a timer (`-x`).

use std::io;

use punctual_model::Nanos;

use super::options::Wait;
use crate::sink::Sink;
use crate::sys::alarm::Alarm;
use crate::sys::time::{self, Clock};

/// The way in which a thread waits until its next sample is due.
#[derive(Debug)]
pub struct Way {
    clock: Clock,
    step: Step,
}

#[derive(Debug)]
enum Step {
    /// Sleeps until the due time.
    Until,
    /// Sleeps for an interval.
    For,
    /// Sleeps for an interval by nanosleep(2).
    Nanosleep,
    /// Waits for a signal.
    Alarm(Alarm),
}

impl Way {
    /// Creates a way for the calling thread, whose first sample is due at `first`. A timer runs
    /// from now on, relative to now or not.
    pub fn of(
        wait: Wait,
        clock: Clock,
        relative: bool,
        first: Nanos,
        interval: Nanos,
    ) -> io::Result<Self> {
        let step = match wait {
            Wait::Clock if relative => Step::For,
            Wait::Clock => Step::Until,
            Wait::System => Step::Nanosleep,
            Wait::Timer => {
                let first = (!relative).then_some(first);
                Step::Alarm(Alarm::begin(clock, first, interval)?)
            }
        };
        Ok(Self { clock, step })
    }

    /// Waits for a sample that is due at `due`. Returns when it was due, and the number of samples
    /// that were missed meanwhile, if the timer has counted them.
    fn wait(&self, due: Nanos, interval: Nanos) -> io::Result<(Nanos, Option<i64>)> {
        match &self.step {
            Step::Until => self.clock.sleep_until(due)?,
            Step::For => {
                let due = self.clock.now()? + interval;
                self.clock.sleep_for(interval)?;
                return Ok((due, None));
            }
            Step::Nanosleep => {
                let due = self.clock.now()? + interval;
                time::nanosleep(interval)?;
                return Ok((due, None));
            }
            Step::Alarm(alarm) => return Ok((due, Some(alarm.wait()?.into()))),
        }
        Ok((due, None))
    }
}

/// The measuring loop of [`crate::probes::timer`], with a chosen way of waiting.
#[inline(never)]
pub fn sample(
    sink: &mut impl Sink,
    way: &Way,
    first: Nanos,
    interval: Nanos,
    samples: u64,
) -> io::Result<()> {
    let mut next = first;
    for _ in 0..samples {
        if sink.is_over() {
            break;
        }
        let (due, counted) = way.wait(next, interval)?;
        let late = way.clock.now()? - due;
        // A clock that is set back shows as a sample of nothing, as one that is set forward
        // shows as a long one: that is what is measured with such a clock.
        sink.record(due - first, late.max(Nanos::ZERO));
        let missed = counted.unwrap_or((late.0 / interval.0).max(0));
        sink.miss(missed as u64);
        next = due + interval * (missed + 1);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use punctual_model::{Recorder, RecordingKey};

    use super::*;

    const WAYS: [(Wait, bool); 5] = [
        (Wait::Clock, false),
        (Wait::Clock, true),
        (Wait::System, false),
        (Wait::Timer, false),
        (Wait::Timer, true),
    ];

    #[test]
    fn each_clock_and_each_way_gives_its_samples() {
        for clock in [Clock::Monotonic, Clock::Realtime] {
            for (wait, relative) in WAYS {
                let mut recorder = Recorder::new(20);
                let interval = Nanos::from_micros(200);
                let first = clock.now().unwrap() + interval;
                let way = Way::of(wait, clock, relative, first, interval).unwrap();
                sample(&mut recorder, &way, first, interval, 20).unwrap();
                let recording = recorder.finish(RecordingKey::new("timer", "idle", "cpu0"));
                assert_eq!(recording.count, 20, "{way:?}");
                let last = recording.samples.iter().last().unwrap();
                // Each sample has an interval of its own, whether or not some were missed.
                assert!(last.at >= interval * 19, "{way:?}: {last:?}");
                assert!(recording.min() >= Some(Nanos::ZERO));
            }
        }
    }

    #[test]
    fn a_timer_that_was_due_long_ago_has_one_late_sample_and_many_missed() {
        let interval = Nanos::from_millis(1);
        let first = time::now() - Nanos::from_millis(50);
        let way = Way::of(Wait::Timer, Clock::Monotonic, false, first, interval).unwrap();
        let mut recorder = Recorder::new(1);
        sample(&mut recorder, &way, first, interval, 1).unwrap();
        let recording = recorder.finish(RecordingKey::new("timer", "idle", "cpu0"));
        assert!(recording.missed >= 50, "{}", recording.missed);
        assert!(recording.min() >= Some(Nanos::from_millis(50)));
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the probe `timer` does not measure: another clock's timers (`-c 1`), and sleeps that
//! begin when the sample before has ended (`-r`).

use std::io;

use punctual_model::Nanos;

use crate::sink::Sink;
use crate::sys::time::Clock;

/// The measuring loop of [`crate::probes::timer`], by a clock of choice.
#[inline(never)]
pub fn sample(
    sink: &mut impl Sink,
    clock: Clock,
    relative: bool,
    interval: Nanos,
    samples: u64,
) -> io::Result<()> {
    let begun = clock.now()?;
    let mut due = begun + interval;
    for _ in 0..samples {
        if sink.is_over() {
            break;
        }
        if relative {
            due = clock.now()? + interval;
            clock.sleep_for(interval)?;
        } else {
            clock.sleep_until(due)?;
        }
        let late = clock.now()? - due;
        // A clock that is set back shows as a sample of nothing, as one that is set forward
        // shows as a long one: that is what is measured with such a clock.
        sink.record(due - begun, late.max(Nanos::ZERO));
        let missed = (late.0 / interval.0).max(0);
        sink.miss(missed as u64);
        due += interval * (missed + 1);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use punctual_model::{Recorder, RecordingKey};

    use super::*;

    #[test]
    fn each_clock_and_either_way_gives_its_samples() {
        for clock in [Clock::Monotonic, Clock::Realtime] {
            for relative in [false, true] {
                let mut recorder = Recorder::new(20);
                let interval = Nanos::from_micros(200);
                sample(&mut recorder, clock, relative, interval, 20).unwrap();
                let recording = recorder.finish(RecordingKey::new("timer", "idle", "cpu0"));
                assert_eq!(recording.count, 20, "{clock:?} {relative}");
                assert!(recording.min() >= Some(Nanos::ZERO));
            }
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The resolution of a clock (`-R`): what the kernel claims, and the smallest step that is seen.

use std::fmt::Write as _;
use std::io;

use punctual_model::Nanos;

use crate::sys::time::Clock;

/// The smallest and the largest number of readings.
const READINGS: [usize; 2] = [1_000, 100_000];

/// Returns the warnings about a clock: none if it is as fine as the kernel says, unless `always`.
pub fn warnings(clock: Clock, always: bool) -> io::Result<String> {
    let begun = clock.now()?;
    read(clock, READINGS[0])?;
    let took = clock.now()? - begun;
    let times = read(clock, readings_in_a_millisecond(took))?;
    let claimed = clock.resolution()?;
    Ok(text(claimed, smallest_step(&times), always))
}

fn read(clock: Clock, times: usize) -> io::Result<Vec<Nanos>> {
    (0..times).map(|_| clock.now()).collect()
}

/// Returns the number of readings in a millisecond, from the time that the smallest number takes. A
/// clock that does not move meanwhile is read most often.
fn readings_in_a_millisecond(took: Nanos) -> usize {
    let [least, most] = READINGS;
    match took.0 / least as i64 {
        ..=0 => most,
        each => (1_000_000 / each as usize).clamp(least, most),
    }
}

/// Returns the smallest step that is not zero; `None` if the clock does not move on.
fn smallest_step(times: &[Nanos]) -> Option<Nanos> {
    let steps = times.windows(2).map(|pair| pair[1] - pair[0]);
    steps.filter(|step| *step > Nanos::ZERO).min()
}

/// Formats the text as the original does.
fn text(claimed: Nanos, measured: Option<Nanos>, always: bool) -> String {
    if !always && measured.is_some_and(|step| step <= claimed) {
        return String::new();
    }
    let mut text = format!("WARN: reported clock resolution: {} nsec\n", claimed.0);
    if let Some(step) = measured {
        let _ = writeln!(
            text,
            "WARN: measured clock resolution approximately: {} nsec",
            step.0
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_step_is_found_and_none_where_there_is_none() {
        let step = |times: &[i64]| {
            let times: Vec<Nanos> = times.iter().copied().map(Nanos).collect();
            smallest_step(&times)
        };
        assert_eq!(step(&[5, 5, 30, 40, 40, 90]), Some(Nanos(10)));
        assert_eq!(step(&[90, 10, 40]), Some(Nanos(30)));
        assert_eq!((step(&[7, 7, 7]), step(&[7])), (None, None));
    }

    #[test]
    fn a_clock_is_read_for_a_millisecond_within_bounds() {
        let readings = |took| readings_in_a_millisecond(Nanos(took));
        assert_eq!(readings(50_000), 20_000);
        assert_eq!((readings(0), readings(999)), (100_000, 100_000));
        assert_eq!((readings(1_000), readings(i64::MAX)), (100_000, 1_000));
    }

    #[test]
    fn what_is_as_the_kernel_says_is_told_only_if_always() {
        let told = |step, always| text(Nanos(10), step, always).lines().count();
        assert_eq!(
            (told(Some(Nanos(10)), false), told(Some(Nanos(10)), true)),
            (0, 2)
        );
        assert_eq!((told(Some(Nanos(11)), false), told(None, false)), (2, 1));
        assert!(
            warnings(Clock::Realtime, true)
                .unwrap()
                .contains("measured")
        );
    }
}

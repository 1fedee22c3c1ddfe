// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rate of the processor's time stamp counter, as the kernel's clock takes it.

use punctual_model::Nanos;

use super::{arch, time};

/// Measures the time stamp counter's rate against `CLOCK_MONOTONIC_RAW`, in kHz, rounded.
///
/// No kernel shows the rate to programs; its log does, unless `quiet`. Here both clocks are
/// read twice, [`SPAN`] apart. A pair of readings is off by at most some 100 ns on a host,
/// and not at all in a guest whose clock counts instructions: there both pairs take the same
/// instructions. Returns `None` if the processor has no such counter.
pub fn khz() -> Option<u64> {
    let (counted, elapsed) = counted()?;
    // Counts per nanosecond times a million are thousands per second.
    let rate = u128::from(counted) * 1_000_000;
    let elapsed = u128::try_from(elapsed.0).ok().filter(|span| *span > 0)?;
    u64::try_from((rate + elapsed / 2) / elapsed).ok()
}

/// The time between the readings: 20 ms give the rate to a millionth if a reading is off by 10 ns.
const SPAN: Nanos = Nanos::from_millis(20);

fn counted() -> Option<(u64, Nanos)> {
    let (first, begin) = pair()?;
    time::sleep(SPAN);
    let (last, end) = pair()?;
    Some((last.wrapping_sub(first), end - begin))
}

/// Reads both clocks at about the same moment: of several readings, the quickest.
fn pair() -> Option<(u64, Nanos)> {
    const TRIES: usize = 16;
    let tries = (0..TRIES).map_while(|_| {
        let (before, time, after) = (arch::tsc()?, raw_time(), arch::tsc()?);
        let took = after.wrapping_sub(before);
        Some((took, (before.wrapping_add(took / 2), time)))
    });
    let best = tries.min_by_key(|(took, _)| *took)?;
    Some(best.1)
}

fn raw_time() -> Nanos {
    let mut time = time::timespec(Nanos::ZERO);
    // SAFETY: `time` is a live timespec.
    let result = unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_RAW, &raw mut time) };
    assert!(result == 0, "CLOCK_MONOTONIC_RAW cannot be read");
    time::nanos(time)
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_that_of_a_processor() {
        let found = khz().unwrap();
        assert!((100_000..20_000_000).contains(&found), "{found} kHz");
    }
}

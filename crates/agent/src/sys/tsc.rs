// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rate of the processor's time stamp counter, as the kernel's clock takes it.

use punctual_model::Nanos;

/// The time stamp counter's rate against `CLOCK_MONOTONIC_RAW`, in kHz, rounded.
///
/// No kernel shows the rate to programs; its log does, unless `quiet`. Here both clocks are
/// read twice, [`SPAN`] apart. A pair of readings is off by some 100 ns on a host at most,
/// and not at all in a guest whose clock counts instructions: there both pairs take the same
/// instructions. `None` where the processor has no such counter.
pub fn khz() -> Option<u64> {
    let (counted, elapsed) = counted()?;
    // Counts per nanosecond times a million are thousands per second.
    let rate = u128::from(counted) * 1_000_000;
    let elapsed = u128::try_from(elapsed.0).ok().filter(|span| *span > 0)?;
    u64::try_from((rate + elapsed / 2) / elapsed).ok()
}

/// How long it is measured: 20 ms tell the rate to a millionth where a reading is off by 10 ns.
#[cfg(target_arch = "x86_64")]
const SPAN: Nanos = Nanos::from_millis(20);

#[cfg(target_arch = "x86_64")]
#[expect(
    clippy::unnecessary_wraps,
    reason = "other processors may have no counter"
)]
fn counted() -> Option<(u64, Nanos)> {
    let (first, begin) = pair();
    super::time::sleep(SPAN);
    let (last, end) = pair();
    Some((last.wrapping_sub(first), end - begin))
}

#[cfg(not(target_arch = "x86_64"))]
fn counted() -> Option<(u64, Nanos)> {
    None
}

/// Both clocks at about the same moment: of several readings the one that took the least.
#[cfg(target_arch = "x86_64")]
fn pair() -> (u64, Nanos) {
    const TRIES: usize = 16;
    let tries = (0..TRIES).map(|_| {
        let (before, time, after) = (read(), raw_time(), read());
        let took = after.wrapping_sub(before);
        (took, (before.wrapping_add(took / 2), time))
    });
    let best = tries.min_by_key(|(took, _)| *took);
    best.expect("there is more than one try").1
}

#[cfg(target_arch = "x86_64")]
fn read() -> u64 {
    // SAFETY: reading the counter has no other effect; Linux lets every program do so unless
    // it has forbidden that to itself by prctl(PR_SET_TSC), which nothing here does.
    unsafe { core::arch::x86_64::_rdtsc() }
}

#[cfg(target_arch = "x86_64")]
fn raw_time() -> Nanos {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is a live timespec.
    let result = unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_RAW, &raw mut time) };
    assert!(result == 0, "CLOCK_MONOTONIC_RAW cannot be read");
    Nanos(time.tv_sec * 1_000_000_000 + time.tv_nsec)
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

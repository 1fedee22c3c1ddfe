// SPDX-License-Identifier: MIT OR Apache-2.0
//! A thread of low priority that keeps a CPU busy, so that measurements there begin in a
//! running thread and not in an idle CPU.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

use punctual_model::{CpuId, Finding, Nanos, Reason};

use crate::rt;
use crate::sys::sched::Policy;
use crate::sys::time::{self, now};
use crate::threads::{self, Over};

/// Runs `body` while a `SCHED_OTHER` thread computes on `cpu`. Also returns the part of the time
/// that the thread had. An error is the reason why it could not run there, or that of `body`.
pub fn beside<T>(
    cpu: CpuId,
    body: impl FnOnce() -> Result<T, Reason>,
) -> Result<(T, Option<Finding>), Reason> {
    let (runs, over) = (AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|scope| {
        let busy = threads::start(scope, || compute(cpu, &runs, &over))?;
        // Whatever becomes of `body`: a scope waits for its threads.
        let over = Over(&over);
        while !runs.load(Relaxed) && !busy.is_finished() {
            time::sleep(Nanos::from_millis(1));
        }
        let done = if busy.is_finished() {
            None
        } else {
            Some(body())
        };
        drop(over);
        let share = busy.join()??;
        let done = done.ok_or("the busy thread has ended by itself")?;
        Ok((done?, Some(share)))
    })
}

/// Runs the busy thread for its whole life; returns its part of the CPU's time.
fn compute(cpu: CpuId, runs: &AtomicBool, over: &AtomicBool) -> Result<Finding, Reason> {
    rt::pin(cpu)?;
    rt::schedule(Policy::Other, 0)?;
    let used = || time::used_by_thread().map_err(|error| format!("the thread's time: {error}"));
    let (begin, before) = (now(), used()?);
    runs.store(true, Relaxed);
    let mut count = 0_u64;
    while !over.load(Relaxed) {
        count = black_box(count.wrapping_add(1));
    }
    let (part, whole) = (used()? - before, now() - begin);
    Ok(Finding::ratio(part.0 as f64, whole.0 as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_runs_until_the_body_is_through_and_tells_its_part() {
        let cpu = crate::sys::sched::affinity().unwrap()[0];
        let (done, share) = beside(cpu, || Ok(7)).unwrap();
        assert_eq!(done, 7);
        assert!(matches!(share, Some(Finding::Ratio(share)) if (0.0..=1.01).contains(&share)));
        let refused = beside::<()>(cpu, || Err("no device".into())).unwrap_err();
        assert_eq!(refused, Reason::from("no device"));
        let nowhere = beside(CpuId(1_000_000), || Ok(()));
        assert!(nowhere.unwrap_err().to_string().contains("cpu1000000"));
    }
}

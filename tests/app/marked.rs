// SPDX-License-Identifier: MIT OR Apache-2.0
//! Twenty marked cycles, the eighth of which takes longer: see `marked.c`.

#[path = "../../include/punctual.rs"]
mod punctual;

use std::time::{Duration, Instant};

unsafe extern "C" {
    fn sched_setscheduler(pid: i32, policy: i32, param: *const i32) -> i32;
    fn clock_gettime(clock: i32, time: *mut [i64; 2]) -> i32;
}

fn now() -> i64 {
    let mut time = [0; 2];
    // SAFETY: the kernel writes two words, which are there.
    assert_eq!(unsafe { clock_gettime(1, &mut time) }, 0);
    time[0] * 1_000_000_000 + time[1]
}

fn main() {
    // SAFETY: the priority is read during the call only.
    assert_eq!(unsafe { sched_setscheduler(0, 1, &80) }, 0);
    let marks = punctual::Marks::open();
    let first = now() + 5_000_000;
    for cycle in 0..20 {
        let due = first + cycle * 1_000_000;
        while now() < due {}
        marks.begin(Some(due));
        if cycle == 7 {
            let begin = Instant::now();
            while begin.elapsed() < Duration::from_micros(300) {}
        }
        marks.end();
    }
}

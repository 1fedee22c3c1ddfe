// SPDX-License-Identifier: MIT OR Apache-2.0
//! A round: one target, many inputs.

use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fastrand::Rng;
use peak_alloc::PeakAlloc;
use rustix::time::{ClockId, clock_gettime};

use crate::Target;
use crate::mutate::mutate;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// No reader takes more memory than this, and no input is longer than 64 KiB. A histogram
/// has 250 KiB, and a recording in an input may have no more than 100 bytes.
const MEMORY_MAX: usize = 256 << 20;

/// Inputs of one target.
#[derive(Debug)]
pub struct Round<'a> {
    /// The target.
    pub target: &'a Target,
    /// Which inputs: those of another number are others.
    pub seed: u64,
    /// The first input's number.
    pub from: u64,
    /// How many.
    pub inputs: u64,
    /// Where the number of the input is noted that is read now.
    pub now: &'a AtomicU64,
}

/// What a round found.
#[derive(Debug, Default)]
pub struct Found {
    /// How many inputs the reader accepted.
    pub accepted: u64,
    /// The CPU time of the input that took longest.
    pub slowest: Duration,
    /// That input's number.
    pub slowest_input: u64,
    /// The most memory, in bytes, that an input took.
    pub largest: usize,
    /// That input's number.
    pub largest_input: u64,
    /// Inputs that failed, each with its number, its bytes, and what went wrong.
    pub failures: Vec<(u64, Vec<u8>, String)>,
}

impl Round<'_> {
    /// Has the target read all inputs. What a panic says is shown only where there is but one.
    pub fn run(&self) -> Found {
        let said = panic::take_hook();
        if self.inputs > 1 {
            panic::set_hook(Box::new(|_| ()));
        }
        let found = self.read_all();
        if self.inputs > 1 {
            panic::set_hook(said);
        }
        found
    }

    fn read_all(&self) -> Found {
        let seeds = (self.target.seeds)();
        let mut found = Found::default();
        for number in self.from..self.from + self.inputs {
            self.now.store(number, Ordering::Relaxed);
            let mut rng = Rng::with_seed(self.seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            self.read(number, &mutate(&seeds, &mut rng), &mut found);
        }
        found
    }

    fn read(&self, number: u64, input: &[u8], found: &mut Found) {
        let before = MEMORY.current_usage();
        MEMORY.reset_peak_usage();
        let begun = cpu_time();
        let result = catch_unwind(AssertUnwindSafe(|| (self.target.run)(input)));
        let (took, memory) = (cpu_time().saturating_sub(begun), MEMORY.peak_usage());
        let memory = memory.saturating_sub(before);
        if took > found.slowest {
            (found.slowest, found.slowest_input) = (took, number);
        }
        if memory > found.largest {
            (found.largest, found.largest_input) = (memory, number);
        }
        let wrong = match result {
            Err(_) => Some("panicked".to_owned()),
            Ok(_) if memory > MEMORY_MAX => Some(format!("took {memory} bytes of memory")),
            Ok(accepted) => {
                found.accepted += u64::from(accepted);
                None
            }
        };
        found
            .failures
            .extend(wrong.map(|wrong| (number, input.to_vec(), wrong)));
    }
}

fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

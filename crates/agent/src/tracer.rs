// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel's own tracer beside a probe: read when a sample is above a limit.
//!
//! It runs in an [instance](instance) of its own, so that nobody's settings are touched. A
//! thread whose sample is above the limit stops the tracer at once, reads the ring of its CPU,
//! and starts it again; no sample of that thread is due meanwhile. Without a limit nothing of
//! this is in a measuring loop.

mod instance;
pub mod threads;
pub mod tracefs;
mod watch;

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use punctual_model::capture::{STOPPED, TRACER, Tracing};
use punctual_model::{CpuId, Fact, Facts, Nanos, Reason, Recording};

use instance::Instance;
pub use watch::Watch;

/// What is done about samples above a limit, in one step.
#[derive(Debug)]
pub struct Watcher {
    request: Tracing,
    /// One thread reads at a time; the reason where there is no tracer to be read.
    instance: Result<Mutex<Instance>, Reason>,
    /// A sample was above the limit, and is the last one.
    is_over: AtomicBool,
}

impl Watcher {
    /// Starts the tracer for threads of this `SCHED_FIFO` priority. Where it cannot be had,
    /// samples are measured and watched nevertheless.
    pub fn start(request: Tracing, priority: u8) -> Self {
        Self {
            request,
            instance: Instance::start(request.tracer, priority).map(Mutex::new),
            is_over: AtomicBool::new(false),
        }
    }

    /// For a step whose samples are not watched.
    pub fn none(request: Tracing, why: &str) -> Self {
        Self {
            request,
            instance: Err(why.into()),
            is_over: AtomicBool::new(false),
        }
    }

    /// A sink that watches what it hands on to `sink`, for the calling thread, which takes its
    /// samples on `cpu`. `first` is the moment from which their times count.
    pub fn watch<S>(&self, sink: S, cpu: CpuId, first: Nanos) -> Watch<'_, S> {
        Watch::new(self, sink, cpu, first)
    }

    /// Says of a recording which tracer ran, or why none did.
    pub fn tell(&self, recording: &mut Recording) {
        let told = match &self.instance {
            Ok(_) => self.request.tracer.name().into(),
            Err(why) => Fact::Unknown {
                unknown: why.clone(),
            },
        };
        recording.settings.insert(TRACER.into(), told);
        let last = recording.count.checked_sub(1).filter(|_| self.is_stopped());
        let last = last.and_then(|seq| i64::try_from(seq).ok());
        let facts = last.map(|seq| (STOPPED.into(), seq.into()));
        recording
            .settings
            .extend(facts.into_iter().collect::<Facts>());
    }

    fn is_stopped(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    fn stop(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

/// Removes what a killed target left of its tracer, and says what that was.
pub fn remove_left_behind() -> Vec<String> {
    instance::remove_left_behind()
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel's own tracer beside a probe: read when a sample is above a limit.
//!
//! It runs in an [instance](instance) of its own, so that no other user's settings are touched. A
//! thread whose sample is above the limit stops the tracer at once, reads the ring of its CPU,
//! and starts it again; no sample of that thread is due meanwhile. Without a limit, none of
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

/// The watcher of samples above a limit, in one step.
#[derive(Debug)]
pub struct Watcher {
    request: Tracing,
    /// The instance, read by one thread at a time, or the reason why there is no tracer to read.
    instance: Result<Mutex<Instance>, Reason>,
    /// True if a sample was above the limit, and is the last one.
    is_over: AtomicBool,
}

impl Watcher {
    /// Starts the tracer for threads of this `SCHED_FIFO` priority. If there is no tracer,
    /// samples are measured and watched nevertheless.
    pub fn start(request: Tracing, priority: u8) -> Self {
        Self {
            request,
            instance: Instance::start(request.tracer, priority).map(Mutex::new),
            is_over: AtomicBool::new(false),
        }
    }

    /// Creates a watcher for a step whose samples are not watched.
    pub fn none(request: Tracing, why: &str) -> Self {
        Self {
            request,
            instance: Err(why.into()),
            is_over: AtomicBool::new(false),
        }
    }

    /// Creates a sink that watches samples and hands them on to `sink`, for the calling thread,
    /// which takes them on `cpu`. `first` is the moment from which their times count.
    pub fn watch<S>(&self, sink: S, cpu: CpuId, first: Nanos) -> Watch<'_, S> {
        Watch::new(self, sink, cpu, first)
    }

    /// Records in a recording which tracer ran, or why none did.
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

/// Removes the remains of a killed target's tracer, and names them.
pub fn remove_left_behind() -> Vec<String> {
    instance::remove_left_behind()
}

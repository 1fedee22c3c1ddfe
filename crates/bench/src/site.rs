//! A subject at its place, ready to carry out plans: what all benches have in common.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use punctual_model::{MachineRecord, Nanos, Record};

use crate::error::BenchError;

/// The time that a subject may keep silent beside what its step takes, unless said otherwise:
/// CPU time of QEMU, time on the wall on a host.
pub const SILENCE: Duration = Duration::from_secs(120);

/// A subject at its place.
pub trait Site: Sync {
    /// The machine that it is on, with all that is needed to repeat a run there.
    fn machine(&self) -> MachineRecord;

    /// Carries out a plan. `on` is told what happens; the run ends soon after `cancel`
    /// becomes true.
    fn run(&self, plan: &str, on: &mut dyn FnMut(Event), cancel: &AtomicBool) -> Outcome;
}

/// What happens while a subject carries out a plan.
#[derive(Debug)]
pub enum Event {
    /// Its guest is booted.
    Booting,
    /// Its guest is resumed from a snapshot.
    Resuming,
    /// The target has said something.
    Record(Box<Record>),
    /// How far the step is that runs; told some times a second where the bench can see it.
    Progress(Progress),
}

/// How far a step is. It is read while the step measures, from memory that its threads write
/// to as they go: no thread that measures does any input or output for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// The step's number in the plan, from 0.
    pub step: u32,
    /// How many samples were taken so far, by all of its threads; warm-up not counted.
    pub count: u64,
    /// How many it is to take; `None` where the probe cannot tell.
    pub of: Option<u64>,
    /// The largest sample so far; `None` before the first, and where the probe works its
    /// samples out only in the end.
    pub worst: Option<Nanos>,
    /// Periods so far in which no sample could be taken.
    pub missed: u64,
}

/// What came of a run, besides its records.
#[derive(Debug)]
pub struct Outcome {
    /// All that the console showed.
    pub console: String,
    /// From the call to the moment when the target began to carry out its plan.
    pub preparing: Duration,
    /// From there to its last record.
    pub measuring: Duration,
    /// Why it did not get to its end.
    pub result: Result<(), BenchError>,
}

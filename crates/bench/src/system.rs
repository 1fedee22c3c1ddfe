// SPDX-License-Identifier: MIT OR Apache-2.0
//! A subject at its place, ready to carry out plans: what all benches have in common.

use std::fmt;
use std::ops::ControlFlow;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use punctual_model::{MachineRecord, Progress, Record};

use crate::error::RunError;

/// The time that a subject may keep silent beside what its step takes, unless said otherwise:
/// CPU time of QEMU, time on the wall on a host.
pub const SILENCE: Duration = Duration::from_secs(120);

/// A subject at its place.
pub trait SystemUnderTest: Sync {
    /// The machine that it is on, with all that is needed to repeat a run there.
    fn machine(&self) -> MachineRecord;

    /// Carries out a plan. `on` is told what happens; the run ends as interrupted where it
    /// breaks off, and soon after `cancel` becomes true.
    fn run(&self, plan: &str, on: Listener, cancel: &AtomicBool) -> RunEnding;
}

/// Who is told what happens in a run; a break ends it.
pub type Listener<'a> = &'a mut dyn FnMut(Event) -> ControlFlow<()>;

/// What happens while a subject carries out a plan.
#[derive(Debug)]
pub enum Event {
    /// Its guest is booted.
    Booting,
    /// Its guest is resumed from a snapshot.
    Resuming,
    /// The target has said something.
    Record(Box<Record>),
    /// The connection to its board is lost, for this reason. What is measured there goes on,
    /// and it is tried to connect again.
    Unreached(String),
    /// Its board is heard of again.
    Reached,
    /// How far the step is that runs; told some times a second where the bench can see it.
    Progress(Progress),
}

/// What came of a run, besides its records.
#[derive(Debug)]
pub struct RunEnding {
    /// All that the console showed.
    pub console: String,
    /// From the call to the moment when the target began to carry out its plan.
    pub preparing: Duration,
    /// From there to its last record.
    pub measuring: Duration,
    /// Why it did not get to its end.
    pub result: Result<(), RunError>,
    /// What is still to be done.
    pub afterwards: Afterwards,
}

/// What is to be done as soon as all of a run is stored: till then the bench keeps what it has
/// of the run, which may be all that there is.
#[derive(Default)]
pub struct Afterwards(Option<Box<dyn FnOnce()>>);

impl Afterwards {
    /// This is to be done.
    pub fn new(what: impl FnOnce() + 'static) -> Self {
        Self(Some(Box::new(what)))
    }

    /// Does it.
    pub fn carry_out(self) {
        if let Some(what) = self.0 {
            what();
        }
    }
}

impl fmt::Debug for Afterwards {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Afterwards")
            .field(&self.0.is_some())
            .finish()
    }
}

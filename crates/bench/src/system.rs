// SPDX-License-Identifier: MIT OR Apache-2.0
//! A subject at its place, ready to carry out plans: the part that all benches share.

use std::fmt;
use std::ops::ControlFlow;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use punctual_model::{MachineRecord, Progress, Record};

use crate::error::RunError;

/// The time that a subject may stay silent in addition to what its step takes, unless told
/// otherwise: CPU time of QEMU, wall-clock time on a host.
pub const SILENCE: Duration = Duration::from_secs(120);

/// A subject at its place.
pub trait SystemUnderTest: Sync {
    /// The machine on which it runs, with everything needed to repeat a run there.
    fn machine(&self) -> MachineRecord;

    /// Carries out a plan. `on` is told what happens. The run ends as interrupted if `on` breaks
    /// off, and soon after `cancel` becomes true.
    fn run(&self, plan: &str, on: Listener, cancel: &AtomicBool) -> RunEnding;
}

/// Receives the events of a run; a break ends the run.
pub type Listener<'a> = &'a mut dyn FnMut(Event) -> ControlFlow<()>;

/// Something that happens while a subject carries out a plan.
#[derive(Debug)]
pub enum Event {
    /// Its guest is booted.
    Booting,
    /// Its guest is resumed from a snapshot.
    Resuming,
    /// The target has sent a record.
    Record(Box<Record>),
    /// The connection to its board is lost, for this reason. The measurement there goes on, and the
    /// bench tries to connect again.
    Unreached(String),
    /// Its board is heard of again.
    Reached,
    /// The progress of the running step; sent several times a second if the bench can see it.
    Progress(Progress),
}

/// The result of a run, besides its records.
#[derive(Debug)]
pub struct RunEnding {
    /// The whole console output.
    pub console: String,
    /// The time from the call until the target began to carry out its plan.
    pub preparing: Duration,
    /// The time from there to its last record.
    pub measuring: Duration,
    /// The reason why it did not get to its end, as an error.
    pub result: Result<(), RunError>,
    /// The work that is still to be done.
    pub afterwards: Afterwards,
}

/// Work to be done once all of a run is stored. Until then the bench keeps what it has of the run,
/// which may be all that exists.
#[derive(Default)]
pub struct Afterwards(Option<Box<dyn FnOnce()>>);

impl Afterwards {
    /// Wraps work to be done.
    pub fn new(what: impl FnOnce() + 'static) -> Self {
        Self(Some(Box::new(what)))
    }

    /// Does the work.
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

// SPDX-License-Identifier: MIT OR Apache-2.0
//! A run: one suite on one subject, with everything needed to repeat it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::Fact;
use crate::arrivals::{Arrivals, are_told_of};
use crate::digest::digest;
use crate::machine::{MachineRecord, VirtualClock};
use crate::plan::Plan;
use crate::record::{Provenance, StepRecord, Unsupported};
use crate::recording::{Recording, Work};

/// The subject of a run: the kernel that was judged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Subject {
    /// Its name in tables: `none`, `rt`.
    pub name: String,
    /// The kernel's id on the workstation.
    pub kernel: String,
    /// The boot arguments that were requested.
    pub boot: String,
    /// The bench on which it ran: `virtual`, `host`.
    pub bench: String,
}

/// The progress of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum State {
    /// The run has begun, and its process is alive.
    Running,
    /// The plan was carried out to its end.
    Finished,
    /// The run was stopped, or its process died; its results so far are kept.
    Interrupted,
    /// The bench or the subject failed; the results so far are kept.
    Failed,
}

impl State {
    /// Returns the name of the state, as it is stored and printed.
    pub fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Finished => "finished",
            Self::Interrupted => "interrupted",
            Self::Failed => "failed",
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for State {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        [
            Self::Running,
            Self::Finished,
            Self::Interrupted,
            Self::Failed,
        ]
        .into_iter()
        .find(|state| state.name() == name)
        .ok_or_else(|| format!("\"{name}\" is no state of a run"))
    }
}

/// The reason why a run has no digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoDigest {
    /// The run did not finish.
    Unfinished(State),
    /// There is no recording: none of the run's steps could be carried out.
    NothingMeasured,
    /// There are recordings, but they contain nothing that a digest covers.
    NoSample,
}

impl fmt::Display for NoDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unfinished(State::Running) => f.write_str("the run has not ended"),
            Self::Unfinished(State::Interrupted) => f.write_str("the run was interrupted"),
            Self::Unfinished(_) => f.write_str("the run did not finish"),
            Self::NothingMeasured => f.write_str("nothing was measured"),
            Self::NoSample => f.write_str("no sample was taken"),
        }
    }
}

/// The request for a run, as words of a command line. It holds whatever the rest of the run
/// does not say: enough to request the same again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Request {
    /// The thing to measure: `demo`, the absolute path of a suite, or `--probe timer`.
    pub what: Vec<String>,
    /// The subject: `--subject rt`, or `--kernel mine --boot preempt=full`; empty on a host.
    pub subject: Vec<String>,
    /// The number of subjects in the suite, if all of them were requested.
    pub all_subjects: Option<u32>,
    /// Amount and manner: `--samples 50 --memory 256`.
    pub options: Vec<String>,
}

/// The probe of a run that another program measured: the lateness of a thread that a timer
/// wakes up.
pub const IMPORTED_PROBE: &str = "timer";

/// Provenance fact of a run that another program measured: the SHA-256 of the file that the
/// run was imported from.
pub const IMPORTED: &str = "imported sha256";

/// Companion of [`IMPORTED`] that is the same for all copies of the file: the SHA-256 of its
/// letters and digits. White space, line ends and a mail's quotation marks do not count.
pub const IMPORTED_TEXT: &str = "imported text sha256";

/// One suite on one subject.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Its name in the store: short, and unique there.
    pub id: String,
    /// The suite's name.
    pub suite: String,
    /// The plan that the target was given, as TOML.
    pub plan: String,
    /// The seed.
    pub seed: u64,
    /// The request for the run.
    #[serde(default)]
    pub request: Request,
    /// The subject that was judged.
    pub subject: Subject,
    /// The progress of the run.
    pub state: State,
    /// The reason why it failed or was interrupted.
    pub error: Option<String>,
    /// The time at which it began, RFC 3339, UTC.
    pub started: String,
    /// The time at which it ended, RFC 3339, UTC.
    pub finished: Option<String>,
    /// The version of the program that made the run.
    pub punctual: String,
    /// The machine on which the run was made.
    pub machine: MachineRecord,
    /// The number of runs that make it up: more than one if a long measurement was divided.
    pub shards: u64,
    /// Facts that the target read back from the running kernel; `None` if it never got so far.
    pub provenance: Option<Provenance>,
    /// The steps that were carried out, in order.
    pub steps: Vec<StepRecord>,
    /// The recordings that the probes delivered.
    pub recordings: Vec<Recording>,
    /// Probes that could not run, with the reasons.
    pub unsupported: Vec<Unsupported>,
    /// The output on the subject's console.
    pub console: String,
    /// Known facts about its arrivals, step by step. Code that judges by them takes them from the
    /// data kept beside the run.
    #[serde(skip)]
    pub arrivals: Vec<Arrivals>,
}

impl Run {
    /// Returns the known facts about the arrivals of one of its recordings.
    pub fn arrivals_of(&self, recording: &Recording) -> Option<&Arrivals> {
        let key = are_told_of(&recording.key).then_some(&recording.key)?;
        self.arrivals.iter().find(|one| one.step == key.step)
    }

    /// Forgets the steps for which not every arrival is known. Nobody has asked for them, so they
    /// are no gap.
    pub fn forget_parts(&mut self) {
        self.arrivals.retain(|one| one.gap.is_none());
    }

    /// Returns true if another run was made on the same machine, to the last byte: in virtual
    /// time, only the seed tells them apart.
    pub fn is_made_like(&self, other: &Self) -> bool {
        let made = |run: &Self| {
            (
                run.machine.clone(),
                run.punctual.clone(),
                run.subject.boot.clone(),
            )
        };
        self.is_virtual() && made(self) == made(other)
    }

    /// Computes the digest over the measurements; `None` for the reason in [`Self::no_digest`].
    pub fn digest(&self) -> Option<String> {
        let has_none = self.no_digest().is_some();
        (!has_none).then(|| digest(&self.recordings, &self.steps, &self.unsupported))
    }

    /// Returns the reason why there is no digest, or `None` if there is one. Half a run has no
    /// identity, and two runs in which nothing was measured have nothing in common.
    pub fn no_digest(&self) -> Option<NoDigest> {
        if self.state != State::Finished {
            return Some(NoDigest::Unfinished(self.state));
        }
        if self.recordings.is_empty() {
            return Some(NoDigest::NothingMeasured);
        }
        let is_any = self.recordings.iter().any(Recording::is_hashed);
        (!is_any).then_some(NoDigest::NoSample)
    }

    /// Returns the digest, or the reason why there is none, in words: `none: nothing was measured`.
    pub fn digest_or_why(&self) -> String {
        match self.no_digest() {
            Some(why) => format!("none: {why}"),
            None => self.digest().unwrap_or_default(),
        }
    }

    /// Parses the plan that the run was told to measure.
    ///
    /// # Errors
    /// Fails if the plan cannot be read: then nobody knows what is missing in the run.
    pub fn parsed_plan(&self) -> Result<Plan, String> {
        toml::from_str(&self.plan).map_err(|error| {
            let said = error.message().trim();
            format!("its plan cannot be read: {said}")
        })
    }

    /// Returns the clock that its times count; `None` on a bench in real time.
    pub fn clock(&self) -> Option<VirtualClock> {
        self.machine.clock()
    }

    /// Returns true if its times are virtual.
    pub fn is_virtual(&self) -> bool {
        self.clock().is_some()
    }

    /// Describes how this machine differs from that of another run in real time, as far as both are
    /// described: `the host is a here and b there`. `None` on the virtual bench.
    pub fn other_machine(&self, other: &Self) -> Option<String> {
        let (MachineRecord::Host(own), MachineRecord::Host(theirs)) =
            (&self.machine, &other.machine)
        else {
            return None;
        };
        let fact = |run: &Self, name: &str| {
            let facts = &run.provenance.as_ref()?.facts;
            facts.get(name).and_then(Fact::text).map(str::to_owned)
        };
        let named = |host: &str| (!host.is_empty()).then(|| host.to_owned());
        let cpus = |cpus: Option<u32>| cpus.map(|cpus| cpus.to_string());
        let pairs = [
            ("host", [named(&own.host), named(&theirs.host)]),
            ("number of CPUs", [cpus(own.cpus), cpus(theirs.cpus)]),
            ("CPU", [self, other].map(|run| fact(run, "cpu"))),
            (
                "architecture",
                [self, other].map(|run| fact(run, "architecture")),
            ),
        ];
        pairs.into_iter().find_map(|(what, [here, there])| {
            let (here, there) = (here?, there?);
            (here != there).then(|| format!("the {what} is {here} here and {there} there"))
        })
    }

    /// Returns the load's work during a recording; empty when idle.
    pub fn work(&self, recording: &Recording) -> &[Work] {
        work_of(&self.steps, recording)
    }

    /// Returns true if another program measured the run.
    pub fn is_imported(&self) -> bool {
        let facts = self.provenance.as_ref().map(|found| &found.facts);
        facts.is_some_and(|facts| facts.contains_key(IMPORTED))
    }

    /// Returns the fingerprint that tells another program's file from others, but not from its own
    /// copies; `None` if it was not noted.
    pub fn imported_text(&self) -> Option<&str> {
        let facts = &self.provenance.as_ref()?.facts;
        facts.get(IMPORTED_TEXT)?.text()
    }

    /// Returns true if everything that was requested was measured.
    pub fn is_whole(&self) -> bool {
        self.state == State::Finished && self.unsupported.is_empty()
    }
}

/// Returns the load's work in the step of a recording.
pub(crate) fn work_of<'a>(steps: &'a [StepRecord], recording: &Recording) -> &'a [Work] {
    let mut steps = steps.iter();
    let found = steps.find(|step| step.step == recording.key.step);
    found.map_or(&[], |step| &step.work)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Finding;
    use crate::key::RecordingKey;
    use crate::pool::tests::run;
    use crate::recording::{OBSERVED, Recorder};
    use crate::units::Nanos;

    #[test]
    fn what_was_not_measured_has_no_digest_and_says_why() {
        let mut one = run(1, &[5]);
        assert_eq!((one.digest().is_some(), one.no_digest()), (true, None));
        one.state = State::Interrupted;
        assert_eq!(one.digest(), None);
        assert_eq!(one.digest_or_why(), "none: the run was interrupted");
        one.state = State::Finished;
        one.recordings = vec![Recorder::new(0).finish(RecordingKey::new("tick", "idle", ""))];
        assert_eq!(one.digest_or_why(), "none: no sample was taken");
        // That no event came while somebody looked out for one was measured.
        let looked = Finding::Nanos(Nanos::from_millis(1));
        one.recordings[0].findings.insert(OBSERVED.into(), looked);
        assert!(one.digest().is_some());
        one.recordings.clear();
        assert_eq!(one.digest(), None);
        assert_eq!(one.digest_or_why(), "none: nothing was measured");
    }

    #[test]
    fn a_plan_that_cannot_be_read_is_no_empty_plan() {
        let mut one = run(1, &[5]);
        one.plan = "step = []".into();
        assert_eq!(one.parsed_plan().unwrap().steps.len(), 0);
        one.plan = "not a plan [[".into();
        let why = one.parsed_plan().unwrap_err();
        assert!(why.starts_with("its plan cannot be read: "), "{why}");
    }
}

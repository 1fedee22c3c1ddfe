// SPDX-License-Identifier: MIT OR Apache-2.0
//! The lines of a file, and the most of each.

use std::borrow::Cow;
use std::collections::HashSet;

use punctual_model::Run;
use punctual_model::record::{StepRecord, Unsupported};
use punctual_model::recording::Recording;
use serde::{Deserialize, Serialize};

/// The longest line, in bytes: the most samples that a recording may keep take half of it.
pub const LINE_MOST: u64 = 256 << 20;

/// The most that all lines of a run take together, in bytes: the raw samples of some eight
/// recordings that keep as many as they may.
pub const RUN_MOST: u64 = 1 << 30;

/// The most output of programs in a run, all of it together, in bytes.
pub const OUTPUT_MOST: u64 = 64 << 20;

/// The longest suite, in bytes.
pub const SUITE_MOST: u64 = 1 << 20;

/// The most that all suites of a file take together, in bytes: they are kept until its end.
pub const ALL_SUITES_MOST: u64 = 16 << 20;

/// The most recordings in a run: each takes a quarter of a megabyte in memory, whatever it holds.
pub const RECORDINGS_MOST: usize = 2_000;

/// The most steps in a run, and also the most that were unsupported.
pub const STEPS_MOST: usize = 100_000;

/// The most suites in a file.
pub const SUITES_MOST: usize = 10_000;

/// A line.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Line<'a> {
    /// The first line.
    Header(Header<'a>),
    /// A suite, as TOML; the first has the number 0.
    Suite(Cow<'a, str>),
    /// The beginning of a run: what is known before its first step.
    Run(Box<Head<'a>>),
    /// The load's work in a step.
    Step(Cow<'a, StepRecord>),
    /// The recording of a probe.
    Recording(Box<Cow<'a, Recording>>),
    /// A measurement that was not possible.
    Unsupported(Cow<'a, Unsupported>),
    /// The last line.
    End(End<'a>),
}

/// The kind of the file.
#[derive(Serialize, Deserialize)]
pub struct Header<'a> {
    /// The form: [`SCHEMA`](crate::SCHEMA).
    pub schema: Cow<'a, str>,
    /// The version of the program that wrote it.
    pub punctual: Cow<'a, str>,
    /// Names of runs that others are compared with, if all their runs are in the file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub baselines: Vec<Baseline>,
}

/// A name for runs, which are given by their ids in the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Baseline {
    /// The name.
    pub name: String,
    /// The runs.
    pub runs: Vec<String>,
}

impl Baseline {
    /// The fault in the baselines of a file, if there is one.
    pub(crate) fn fault(all: &[Self]) -> Option<String> {
        let mut names = HashSet::new();
        all.iter().find_map(|Self { name, runs }| {
            let mut ids = HashSet::new();
            if name.trim().is_empty() || name.contains(char::is_control) {
                Some(format!(
                    "expected a baseline's name in one line, found {name:?}"
                ))
            } else if !names.insert(name) {
                Some(format!("expected each baseline once, found {name} twice"))
            } else if runs.is_empty() {
                Some(format!("baseline {name}: expected runs, found none"))
            } else {
                let twice = runs.iter().find(|id| !ids.insert(*id))?;
                Some(format!(
                    "baseline {name}: expected each run once, found {twice} twice"
                ))
            }
        })
    }
}

/// A run, and the number of lines that follow for it.
#[derive(Serialize, Deserialize)]
pub struct Head<'a> {
    /// The run, without steps and recordings.
    pub run: Cow<'a, Run>,
    /// The digest over what it measured.
    pub digest: Option<Cow<'a, str>>,
    /// The number of its suite, if that was known.
    pub suite: Option<usize>,
    /// The number of steps that follow.
    pub steps: usize,
    /// The number of recordings that follow.
    pub recordings: usize,
    /// The number of unsupported measurements that follow.
    pub unsupported: usize,
}

/// The proof that a file is complete.
#[derive(Serialize, Deserialize)]
pub struct End<'a> {
    /// The number of runs in the file.
    pub runs: u64,
    /// The SHA-256 of all lines before this one.
    pub sha256: Cow<'a, str>,
}

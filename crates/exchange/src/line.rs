// SPDX-License-Identifier: MIT OR Apache-2.0
//! The lines of a file, and how much of each there may be.

use std::borrow::Cow;

use punctual_model::Run;
use punctual_model::record::{StepRecord, Unsupported};
use punctual_model::recording::Recording;
use serde::{Deserialize, Serialize};

/// No line is longer, in bytes: the most samples that a recording may keep are half of it.
pub const LINE_MOST: u64 = 256 << 20;

/// No run takes more, all its lines together, in bytes: the raw samples of some eight recordings
/// that keep as many as they may.
pub const RUN_MOST: u64 = 1 << 30;

/// What programs have printed in a run is no longer, all of it together, in bytes.
pub const OUTPUT_MOST: u64 = 64 << 20;

/// No suite is longer, in bytes.
pub const SUITE_MOST: u64 = 1 << 20;

/// All suites of a file together are no longer, in bytes: they are kept until its end.
pub const ALL_SUITES_MOST: u64 = 16 << 20;

/// No run has more recordings: each takes a quarter of a megabyte in memory, whatever it holds.
pub const RECORDINGS_MOST: usize = 2_000;

/// No run has more steps, and none has more that was unsupported.
pub const STEPS_MOST: usize = 100_000;

/// No file has more suites.
pub const SUITES_MOST: usize = 10_000;

/// A line.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Line<'a> {
    /// The first of all.
    Header(Header<'a>),
    /// A suite, as TOML; the first has the number 0.
    Suite(Cow<'a, str>),
    /// A run begins: what is known of it before its first step.
    Run(Box<Head<'a>>),
    /// What the load of a step did.
    Step(Cow<'a, StepRecord>),
    /// What a probe delivered.
    Recording(Box<Cow<'a, Recording>>),
    /// What could not be measured.
    Unsupported(Cow<'a, Unsupported>),
    /// The last of all.
    End(End<'a>),
}

/// What a file is.
#[derive(Serialize, Deserialize)]
pub struct Header<'a> {
    /// The form: [`SCHEMA`](crate::SCHEMA).
    pub schema: Cow<'a, str>,
    /// The version of the program that wrote it.
    pub punctual: Cow<'a, str>,
    /// Names of runs that others are compared with, as far as all their runs are in the file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub baselines: Vec<Baseline>,
}

/// A name of runs, by their ids in the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Baseline {
    /// The name.
    pub name: String,
    /// The runs.
    pub runs: Vec<String>,
}

/// A run, and how much of it comes behind it.
#[derive(Serialize, Deserialize)]
pub struct Head<'a> {
    /// The run, without steps and recordings.
    pub run: Cow<'a, Run>,
    /// The digest over what it measured.
    pub digest: Option<Cow<'a, str>>,
    /// The number of its suite, where that was known.
    pub suite: Option<usize>,
    /// How many steps follow.
    pub steps: usize,
    /// How many recordings follow.
    pub recordings: usize,
    /// How much follows that was unsupported.
    pub unsupported: usize,
}

/// What makes a file whole.
#[derive(Serialize, Deserialize)]
pub struct End<'a> {
    /// How many runs it has.
    pub runs: u64,
    /// The SHA-256 of all lines before this one.
    pub sha256: Cow<'a, str>,
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a campaign asks for, in names.

use serde::{Deserialize, Serialize};

/// What a campaign asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    /// Its name.
    pub name: String,
    /// One line that says what it is for.
    pub summary: String,
    /// What was left out, with the reasons.
    pub left_out: Vec<String>,
    /// Each suite with its subjects.
    pub settings: Vec<Setting>,
}

/// A suite with its subjects, and the seeds that each has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    /// What tells it from the others.
    pub name: String,
    /// The names of its subjects.
    pub subjects: Vec<String>,
    /// The seeds.
    pub seeds: Vec<u64>,
}

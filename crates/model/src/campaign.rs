// SPDX-License-Identifier: MIT OR Apache-2.0
//! The request of a campaign, in names.

use serde::{Deserialize, Serialize};

/// The request of a campaign.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    /// Its name.
    pub name: String,
    /// One line that states its purpose.
    pub summary: String,
    /// The parts that were left out, with the reasons.
    pub left_out: Vec<String>,
    /// Each suite with its subjects.
    pub settings: Vec<Setting>,
}

/// A suite with its subjects, and the seeds that each has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    /// The name that distinguishes it from the others.
    pub name: String,
    /// The names of its subjects.
    pub subjects: Vec<String>,
    /// The seeds.
    pub seeds: Vec<u64>,
}

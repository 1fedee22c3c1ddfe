// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lists of CPUs, as people and kernels write them, and placements of loads.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::units::CpuId;

/// The most CPUs that Linux supports (`CONFIG_NR_CPUS` of x86).
const MOST_CPUS: u32 = 8191;

/// Parses a list of CPUs such as `1`, `0-3` or `0,2`; returns them in order, each once.
///
/// # Errors
/// Fails if the text is not such a list.
pub fn parse_list(text: &str) -> Result<Vec<CpuId>, String> {
    let expected = || format!("expected CPUs such as 1, 0-3 or 0,2, found {text:?}");
    let number = |word: &str| word.trim().parse::<u32>().map_err(|_| expected());
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (number(first)?, number(last)?);
        if first > last || last > MOST_CPUS {
            return Err(expected());
        }
        cpus.extend((first..=last).map(CpuId));
    }
    cpus.sort_unstable();
    cpus.dedup();
    Ok(cpus)
}

/// Formats such a list in the shortest form: `0-2,5`. The CPUs must be in order, each once.
pub fn show_list(cpus: &[CpuId]) -> String {
    let runs = cpus.chunk_by(|one, next| one.0 + 1 == next.0);
    let run = |run: &[CpuId]| match run {
        [only] => only.0.to_string(),
        _ => format!("{}-{}", run[0].0, run[run.len() - 1].0),
    };
    runs.map(run).collect::<Vec<_>>().join(",")
}

/// The CPUs on which the workers of a load may run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Placement {
    /// All online CPUs, except those that are isolated (`isolcpus=`), without a tick
    /// (`nohz_full=`), or measured.
    Housekeeping,
    /// All online CPUs, including isolated ones.
    All,
    /// The listed CPUs.
    Listed(Vec<CpuId>),
}

impl FromStr for Placement {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "housekeeping" => Ok(Self::Housekeeping),
            "all" => Ok(Self::All),
            list => parse_list(list).map(Self::Listed).map_err(|_| {
                format!("expected housekeeping, all, or CPUs such as 1, 0-3 or 0,2, found {text:?}")
            }),
        }
    }
}

impl TryFrom<String> for Placement {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Placement> for String {
    fn from(placement: Placement) -> Self {
        placement.to_string()
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Housekeeping => f.write_str("housekeeping"),
            Self::All => f.write_str("all"),
            Self::Listed(cpus) => f.write_str(&show_list(cpus)),
        }
    }
}

/// Splits a load's name as a step gives it, `stress on housekeeping`, into the load and its
/// placement, if the name has one.
pub fn placed(name: &str) -> (&str, Option<&str>) {
    match name.rsplit_once(" on ") {
        Some((load, place)) => (load.trim_end(), Some(place.trim_start())),
        None => (name, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_and_written() {
        let read = |text| parse_list(text).map(|cpus| show_list(&cpus));
        assert_eq!(read("0"), Ok("0".into()));
        assert_eq!(read("2,0-1,1"), Ok("0-2".into()));
        assert_eq!(read("0,2-3"), Ok("0,2-3".into()));
        for wrong in ["", "a", "3-1", "0-", "1,", "-1", "0-9999", "all"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        assert_eq!(show_list(&[]), "");
    }

    #[test]
    fn a_placement_is_a_word_or_a_list() {
        for text in ["housekeeping", "all", "0-2,5"] {
            assert_eq!(text.parse::<Placement>().unwrap().to_string(), text);
        }
        let error = "houskeeping".parse::<Placement>().unwrap_err();
        assert!(error.contains("housekeeping, all") && error.contains("\"houskeeping\""));
    }

    #[test]
    fn where_a_load_runs_is_behind_its_name() {
        assert_eq!(placed("stress"), ("stress", None));
        assert_eq!(placed("stress on 0-2"), ("stress", Some("0-2")));
        assert_eq!(
            placed("./on top.toml on all"),
            ("./on top.toml", Some("all"))
        );
    }
}

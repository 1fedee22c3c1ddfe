// SPDX-License-Identifier: MIT OR Apache-2.0
//! The output of jitterdebugger (`results.json`, version 3).

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::{FormatError, from_json};

/// One execution's results.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Results {
    /// The form's version.
    pub version: u32,
    /// The machine.
    pub sysinfo: SysInfo,
    /// The CPUs, by number.
    pub cpu: BTreeMap<u32, Cpu>,
}

/// The machine, as jitterdebugger describes it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct SysInfo {
    /// The machine's name.
    pub nodename: String,
    /// The kernel's release.
    pub release: String,
    /// The kernel's version.
    pub version: String,
    /// The machine's architecture.
    #[serde(default)]
    pub machine: String,
    /// The number of nanoseconds in a value's unit.
    pub resolution_in_ns: u64,
}

/// The measurement on one CPU.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Cpu {
    /// Counts by value.
    pub histogram: BTreeMap<u64, u64>,
    /// The number of values.
    pub count: u64,
    /// The smallest value.
    pub min: Option<u64>,
    /// The largest value.
    pub max: u64,
    /// The mean.
    pub avg: Option<f64>,
}

/// Reads such a file.
pub fn read(text: &str) -> Result<Results, FormatError> {
    from_json(text, "the results of jitterdebugger")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As written by jitterdebugger 0.3.1 (Debian 12), shortened.
    pub const FILE: &str = r##"{
  "version": 3,
  "sysinfo": {
    "sysname": "Linux",
    "nodename": "vm",
    "release": "6.18.44",
    "version": "#1 SMP PREEMPT_DYNAMIC",
    "machine": "x86_64",
    "cpus_online": 2,
    "resolution_in_ns": 1000
  },
  "cpu": {
    "0": {
      "histogram": {
        "8": 7,
        "880": 1
      },
      "count": 8,
      "min": 8,
      "max": 880,
      "avg": 12.82
    }
  }
}
"##;

    #[test]
    fn a_file_is_read_and_what_is_missing_is_named_with_its_line() {
        let results = read(FILE).unwrap();
        assert_eq!(results.sysinfo.resolution_in_ns, 1000);
        assert_eq!(results.cpu[&0].histogram[&8], 7);
        let error = read(&FILE.replace("\"count\"", "\"number\"")).unwrap_err();
        assert!(error.expected.contains("missing field `count`"), "{error}");
        assert_eq!(error.line, 22);
        assert_eq!(read(&FILE.replace("7,", "x,")).unwrap_err().line, 15);
    }
}

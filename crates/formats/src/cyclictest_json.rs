// SPDX-License-Identifier: MIT OR Apache-2.0
//! The output of cyclictest's `--json`. Some of its keys really end in a colon.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::{FormatError, from_json};

/// One execution's results.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Results {
    /// The command line.
    pub command: String,
    /// The version of rt-tests whose form it has: `2.40`.
    pub version: String,
    /// The time at which it began, as RFC 2822 writes a date.
    pub start: String,
    /// The time at which it ended.
    pub end: String,
    /// The program's exit status.
    pub return_code: i32,
    /// `sysname`, `nodename`, `release`, `version`, `machine`, in this order.
    pub system: [String; 5],
    /// True if the kernel is a real-time kernel.
    pub realtime: bool,
    /// True if values are nanoseconds instead of microseconds.
    pub nanoseconds: bool,
    /// The threads, in their order.
    pub threads: Vec<Thread>,
}

/// One thread's results.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct Thread {
    /// Counts by value, for values that have a bin.
    pub histogram: BTreeMap<u64, u64>,
    /// The number of values.
    pub cycles: u64,
    /// The smallest value.
    pub min: u64,
    /// The largest value.
    pub max: u64,
    /// The mean; 0 if there is no value.
    #[serde(deserialize_with = "number_or_none")]
    pub avg: f64,
    /// The CPU that the thread is bound to; [`UNKNOWN`] if it is not known.
    #[serde(deserialize_with = "known_or_minus_one")]
    pub cpu: u32,
    /// That CPU's node; [`UNKNOWN`] if it is not known: a kernel without NUMA has none.
    #[serde(deserialize_with = "known_or_minus_one")]
    pub node: u32,
}

/// An unknown CPU or node; it is written as -1.
pub const UNKNOWN: u32 = u32::MAX;

fn known_or_minus_one<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let number = i64::deserialize(deserializer)?;
    if number == -1 {
        return Ok(UNKNOWN);
    }
    u32::try_from(number).map_err(|_| serde::de::Error::custom(format!("{number}")))
}

fn zero_or_one<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    match u64::deserialize(deserializer)? {
        0 => Ok(false),
        1 => Ok(true),
        other => Err(serde::de::Error::custom(format!(
            "expected 0 or 1, found {other}"
        ))),
    }
}

fn number_or_none<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

fn written(number: u32) -> i64 {
    match number {
        UNKNOWN => -1,
        known => i64::from(known),
    }
}

const SYSTEM: [&str; 5] = ["sysname", "nodename", "release", "version", "machine"];

/// Returns the file's text. Unlike the original's, it is JSON whatever the command line contains,
/// and the mean is 0.00 if there is no value.
pub fn write(results: &Results) -> String {
    let threads = results.threads.iter().enumerate();
    let threads: Vec<String> = threads.map(|(index, one)| thread(index, one)).collect();
    write_with(results, &threads)
}

/// Returns the file's text, with the given text about each thread.
pub(crate) fn write_with(results: &Results, threads: &[String]) -> String {
    format!(
        "{}  \"num_threads\": {},\n  \"resolution_in_ns\": {},\n  \"thread\": {{\n{}\n  }}\n}}\n",
        head(results),
        threads.len(),
        u8::from(results.nanoseconds),
        threads.join(",\n")
    )
}

/// Returns the beginning of the file, which all programs of rt-tests have in common.
pub(crate) fn head(results: &Results) -> String {
    let quoted = |text: &str| Value::from(text).to_string();
    let mut text = String::from("{\n");
    let mut field = |key: &str, value: &str| {
        let _ = writeln!(text, "  \"{key}\": {value},");
    };
    field("file_version", "1");
    field("cmdline:", &quoted(&results.command));
    field("rt_test_version:", &quoted(&results.version));
    field("start_time", &quoted(&results.start));
    field("end_time", &quoted(&results.end));
    field("return_code", &results.return_code.to_string());
    text += "  \"sysinfo\": {\n";
    for (key, value) in SYSTEM.iter().zip(&results.system) {
        let _ = writeln!(text, "    \"{key}\": {},", quoted(value));
    }
    let _ = writeln!(
        text,
        "    \"realtime\": {}\n  }},",
        u8::from(results.realtime)
    );
    text
}

fn thread(index: usize, thread: &Thread) -> String {
    let bin = |(value, count): (&u64, &u64)| format!("\n        \"{value}\": {count}");
    let bins: Vec<String> = thread.histogram.iter().map(bin).collect();
    let end = if bins.is_empty() { "" } else { "\n" };
    format!(
        "    \"{index}\": {{\n      \"histogram\": {{{}{end}      }},\n      \"cycles\": {},\n      \
         \"min\": {},\n      \"max\": {},\n      \"avg\": {:.2},\n      \"cpu\": {},\n      \
         \"node\": {}\n    }}",
        bins.join(","),
        thread.cycles,
        thread.min,
        thread.max,
        thread.avg,
        written(thread.cpu),
        written(thread.node)
    )
}

/// Reads such a file.
pub fn read(text: &str) -> Result<Results, FormatError> {
    // Of a thread without a value printf writes no number.
    let text = &text.replace(": -nan", ": null").replace(": nan", ": null");
    let file: File = from_json(text, "the results of cyclictest --json")?;
    if let Some(index) = file.thread.keys().find(|index| **index >= file.num_threads) {
        let expected = format!("{} threads, as num_threads says", file.num_threads);
        let found = format!("a thread \"{index}\"");
        return Err(FormatError::new(1, expected, &found));
    }
    let system = file.sysinfo;
    let threads = (0..file.num_threads).map(|index| {
        let missing = || {
            let expected = format!("a thread \"{index}\" of {}", file.num_threads);
            FormatError::new(text.lines().count(), expected, "the end")
        };
        file.thread.get(&index).cloned().ok_or_else(missing)
    });
    Ok(Results {
        threads: threads.collect::<Result<_, _>>()?,
        command: file.command,
        version: file.version,
        start: file.start_time,
        end: file.end_time,
        return_code: file.return_code,
        system: [
            system.sysname,
            system.nodename,
            system.release,
            system.version,
            system.machine,
        ],
        realtime: system.realtime,
        nanoseconds: file.resolution_in_ns,
    })
}

/// The file in its written form.
#[derive(Deserialize)]
struct File {
    #[serde(rename = "cmdline:", alias = "cmdline")]
    command: String,
    #[serde(rename = "rt_test_version:", alias = "rt_test_version")]
    version: String,
    start_time: String,
    end_time: String,
    return_code: i32,
    sysinfo: SysInfo,
    num_threads: u32,
    #[serde(deserialize_with = "zero_or_one")]
    resolution_in_ns: bool,
    thread: BTreeMap<u32, Thread>,
}

#[derive(Deserialize)]
struct SysInfo {
    sysname: String,
    nodename: String,
    release: String,
    version: String,
    machine: String,
    #[serde(deserialize_with = "zero_or_one")]
    realtime: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As written by cyclictest 2.4, shortened.
    const FILE: &str = r##"{
  "file_version": 1,
  "cmdline:": "cyclictest -l 10 -q --json=/tmp/c.json -h 40 -t2 -p 80",
  "rt_test_version:": "2.40",
  "start_time": "Sat, 21 Nov 2026 10:48:46 +0000",
  "end_time": "Sat, 21 Nov 2026 10:48:47 +0000",
  "return_code": 0,
  "sysinfo": {
    "sysname": "Linux",
    "nodename": "vm",
    "release": "6.18.44",
    "version": "#1 SMP PREEMPT_DYNAMIC",
    "machine": "x86_64",
    "realtime": 0
  },
  "num_threads": 2,
  "resolution_in_ns": 0,
  "thread": {
    "0": {
      "histogram": {
        "19": 1,
        "22": 9
      },
      "cycles": 10,
      "min": 19,
      "max": 22,
      "avg": 21.70,
      "cpu": 0,
      "node": 0
    },
    "1": {
      "histogram": {      },
      "cycles": 10,
      "min": 124,
      "max": 2144,
      "avg": 243.00,
      "cpu": 1,
      "node": 0
    }
  }
}
"##;

    #[test]
    fn a_file_is_read_and_written_as_it_was() {
        let results = read(FILE).unwrap();
        assert_eq!(results.threads[0].histogram[&22], 9);
        assert_eq!(results.threads[1].max, 2144);
        assert_eq!(write(&results), FILE);
    }

    #[test]
    fn quotes_in_a_command_line_do_no_harm() {
        let mut results = read(FILE).unwrap();
        results.command = "cyclictest --json=\"a\\b\".json".into();
        assert_eq!(read(&write(&results)).unwrap(), results);
    }

    #[test]
    fn what_is_not_known_is_written_as_minus_one() {
        let text = FILE.replacen("\"node\": 0", "\"node\": -1", 1);
        let results = read(&text).unwrap();
        assert_eq!(
            (results.threads[0].cpu, results.threads[0].node),
            (0, UNKNOWN)
        );
        assert_eq!(write(&results), text);
        assert!(read(&FILE.replacen("\"node\": 0", "\"node\": -2", 1)).is_err());
        let plain = FILE
            .replace("cmdline:\"", "cmdline\"")
            .replace("version:\"", "version\"");
        assert_eq!(read(&plain).unwrap(), read(FILE).unwrap());
        let none = FILE.replace("\"avg\": 243.00", "\"avg\": -nan");
        assert!(read(&none).unwrap().threads[1].avg.abs() < 1e-9);
        let fewer = FILE.replace("\"num_threads\": 2", "\"num_threads\": 1");
        let error = read(&fewer).unwrap_err().to_string();
        assert!(error.contains("1 threads, as num_threads says"), "{error}");
    }

    #[test]
    fn what_is_missing_is_no_zero() {
        let error = read(&FILE.replace("\"max\"", "\"most\"")).unwrap_err();
        assert!(error.expected.contains("missing field `max`"), "{error}");
        let error = read(&FILE.replace("\"num_threads\": 2", "\"num_threads\": 3")).unwrap_err();
        assert!(error.expected.contains("a thread \"2\" of 3"), "{error}");
        assert_eq!(
            read(&FILE.replace("\"min\": 19,", "\"min\": nan,"))
                .unwrap_err()
                .line,
            25
        );
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! What cyclictest writes with `--json`. Some of its keys really end in a colon.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;

use crate::FormatError;

/// One execution's results.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Results {
    /// The command line.
    pub command: String,
    /// The version of rt-tests whose form this is: `2.40`.
    pub version: String,
    /// When it began, as RFC 2822 writes a date.
    pub start: String,
    /// When it ended.
    pub end: String,
    /// The program's exit status.
    pub return_code: i32,
    /// `sysname`, `nodename`, `release`, `version`, `machine`, in this order.
    pub system: [String; 5],
    /// Whether the kernel is a real-time kernel.
    pub realtime: bool,
    /// Whether values are nanoseconds, not microseconds.
    pub nanoseconds: bool,
    /// The threads, in their order.
    pub threads: Vec<Thread>,
}

/// One thread's results.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Thread {
    /// Counts by value, of those that have a bin.
    pub histogram: BTreeMap<u64, u64>,
    /// How many values there are.
    pub cycles: u64,
    /// The smallest value.
    pub min: u64,
    /// The largest value.
    pub max: u64,
    /// The mean.
    pub avg: f64,
    /// The CPU that the thread is bound to.
    pub cpu: u32,
    /// That CPU's node.
    pub node: u32,
}

const SYSTEM: [&str; 5] = ["sysname", "nodename", "release", "version", "machine"];

/// The file's text. Other than the original's it is JSON whatever the command line holds,
/// and where there is no value the mean is 0.00.
pub fn write(results: &Results) -> String {
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
    let _ = write!(
        text,
        "    \"realtime\": {}\n  }},\n  \"num_threads\": {},\n  \"resolution_in_ns\": {},\n",
        u8::from(results.realtime),
        results.threads.len(),
        u8::from(results.nanoseconds)
    );
    text += "  \"thread\": {\n";
    let threads = results.threads.iter().enumerate();
    let threads: Vec<String> = threads.map(|(index, one)| thread(index, one)).collect();
    text + &threads.join(",\n") + "\n  }\n}\n"
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
        thread.cpu,
        thread.node
    )
}

/// Reads such a file.
pub fn read(text: &str) -> Result<Results, FormatError> {
    let value: Value = serde_json::from_str(text).map_err(|error| {
        let line = text.lines().nth(error.line().saturating_sub(1));
        FormatError::new(error.line(), "JSON", line.unwrap_or_default())
    })?;
    results(&value).ok_or_else(|| FormatError::new(1, "the results of cyclictest --json", text))
}

fn results(value: &Value) -> Option<Results> {
    let word = |value: &Value| value.as_str().map(str::to_owned);
    let mut system = <[String; 5]>::default();
    for (place, key) in system.iter_mut().zip(SYSTEM) {
        *place = word(&value["sysinfo"][key])?;
    }
    let count = value["num_threads"].as_u64()?;
    let threads = (0..count).map(|index| read_thread(&value["thread"][index.to_string()]));
    Some(Results {
        command: word(&value["cmdline:"])?,
        version: word(&value["rt_test_version:"])?,
        start: word(&value["start_time"])?,
        end: word(&value["end_time"])?,
        return_code: i32::try_from(value["return_code"].as_i64()?).ok()?,
        system,
        realtime: value["sysinfo"]["realtime"].as_u64()? != 0,
        nanoseconds: value["resolution_in_ns"].as_u64()? != 0,
        threads: threads.collect::<Option<_>>()?,
    })
}

fn read_thread(value: &Value) -> Option<Thread> {
    let bin = |(value, count): (&String, &Value)| Some((value.parse().ok()?, count.as_u64()?));
    let small = |key: &str| u32::try_from(value[key].as_u64()?).ok();
    Some(Thread {
        histogram: value["histogram"]
            .as_object()?
            .iter()
            .map(bin)
            .collect::<Option<_>>()?,
        cycles: value["cycles"].as_u64()?,
        min: value["min"].as_u64()?,
        max: value["max"].as_u64()?,
        avg: value["avg"].as_f64()?,
        cpu: small("cpu")?,
        node: small("node")?,
    })
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
    fn what_is_missing_is_no_zero() {
        assert!(read(&FILE.replace("\"max\"", "\"most\"")).is_err());
        assert_eq!(
            read(&FILE.replace("\"min\": 19,", "\"min\": nan,"))
                .unwrap_err()
                .line,
            25
        );
    }
}

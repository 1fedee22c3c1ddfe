// SPDX-License-Identifier: MIT OR Apache-2.0
//! Latencies that another program has counted, whichever form they are in.

use std::collections::BTreeMap;

use crate::{
    FormatError, cyclictest_histogram, cyclictest_json, jitterdebugger, latmus, rtla_timerlat,
    xenomai_latency,
};

/// What a file says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Foreign {
    /// The program: `cyclictest`.
    pub program: &'static str,
    /// Its version.
    pub version: Option<String>,
    /// Its command line.
    pub command: Option<String>,
    /// The machine's name, the kernel's release and its version.
    pub system: Option<[String; 3]>,
    /// Whether the kernel is a real-time kernel.
    pub realtime: Option<bool>,
    /// When it began and ended, as RFC 2822 writes a date.
    pub times: Option<[String; 2]>,
    /// For how long was measured, in seconds.
    pub seconds: Option<u64>,
    /// How many nanoseconds a value's unit has; cyclictest's histogram does not say it.
    pub unit_ns: Option<u64>,
    /// The nominal time between two samples, in microseconds.
    pub period_us: Option<u64>,
    /// How many periods were missed.
    pub missed: Option<u64>,
    /// What else it says that its figures cannot be read without.
    pub remarks: Vec<(&'static str, String)>,
    /// Thread by thread, or CPU by CPU.
    pub counted: Vec<Counted>,
}

/// What was counted of a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Which: `cpu0`, `thread 1`.
    pub variant: String,
    /// Counts by value.
    pub bins: BTreeMap<u64, u64>,
    /// How many values there are in all.
    pub count: u64,
    /// The largest.
    pub max: Option<u64>,
    /// The largest in nanoseconds, where that is told and is finer than the unit.
    pub max_ns: Option<u64>,
}

/// Reads any of these forms: cyclictest's histogram (`-h`) and JSON, `rtla timerlat hist`,
/// jitterdebugger's `results.json`, `latmus -g` of EVL, `latency -h` of Xenomai.
pub fn read(text: &str) -> Result<Foreign, FormatError> {
    if text.trim_start().starts_with('{') {
        return if text.contains("\"rt_test_version:\"") {
            Ok(of_cyclictest(cyclictest_json::read(text)?))
        } else {
            Ok(of_jitterdebugger(jitterdebugger::read(text)?))
        };
    }
    let has = |title: &str| text.lines().any(|line| line.trim_end() == title);
    if has(rtla_timerlat::TITLE) {
        return Ok(of_rtla(rtla_timerlat::read(text)?));
    }
    if has("# Histogram") {
        return Ok(of_histogram(cyclictest_histogram::read(text)?));
    }
    if text.lines().any(latmus::is_title) {
        return of_latmus(latmus::read(text)?);
    }
    if xenomai_latency::is_one(text) {
        return Ok(of_xenomai(xenomai_latency::read(text)?));
    }
    let expected = "cyclictest's JSON or histogram (-h), what rtla timerlat hist or Xenomai's \
        latency -h prints, what latmus -g writes, or jitterdebugger's results.json";
    let first = text.lines().next().unwrap_or("nothing");
    Err(FormatError::new(1, expected, first))
}

fn of_cyclictest(results: cyclictest_json::Results) -> Foreign {
    let [_, node, release, version, _] = results.system;
    let counted = results.threads.into_iter().map(|thread| Counted {
        variant: format!("cpu{}", thread.cpu),
        bins: thread.histogram,
        count: thread.cycles,
        max: (thread.cycles > 0).then_some(thread.max),
        max_ns: None,
    });
    Foreign {
        program: "cyclictest",
        version: Some(results.version),
        command: Some(results.command),
        system: Some([node, release, version]),
        realtime: Some(results.realtime),
        times: Some([results.start, results.end]),
        unit_ns: Some(if results.nanoseconds { 1 } else { 1000 }),
        counted: counted.collect(),
        ..Foreign::default()
    }
}

fn of_histogram(columns: Vec<cyclictest_histogram::Column>) -> Foreign {
    let counted = columns.into_iter().enumerate().map(|(number, column)| {
        let bins = (0..).zip(column.bins).filter(|(_, count)| *count > 0);
        let bins: BTreeMap<u64, u64> = bins.collect();
        let count = bins
            .values()
            .copied()
            .fold(column.overflows, u64::saturating_add);
        Counted {
            variant: format!("thread {number}"),
            bins,
            count,
            max: (count > 0).then_some(column.max),
            max_ns: None,
        }
    });
    Foreign {
        program: "cyclictest",
        counted: counted.collect(),
        ..Foreign::default()
    }
}

fn of_rtla(results: rtla_timerlat::Results) -> Foreign {
    let counted = results.columns.into_iter().map(|column| Counted {
        variant: match column.stage.as_str() {
            "Thr" => format!("cpu{}", column.cpu),
            stage => format!("cpu{} {}", column.cpu, stage.to_lowercase()),
        },
        bins: column
            .bins
            .into_iter()
            .filter(|(_, count)| *count > 0)
            .collect(),
        count: column.count,
        max: column.max,
        max_ns: None,
    });
    Foreign {
        program: "rtla timerlat",
        seconds: Some(results.seconds),
        unit_ns: Some(if results.nanoseconds { 1 } else { 1000 }),
        counted: counted.collect(),
        ..Foreign::default()
    }
}

fn of_jitterdebugger(results: jitterdebugger::Results) -> Foreign {
    let system = results.sysinfo;
    let counted = results.cpu.into_iter().map(|(cpu, counted)| Counted {
        variant: format!("cpu{cpu}"),
        bins: counted.histogram,
        count: counted.count,
        max: (counted.count > 0).then_some(counted.max),
        max_ns: None,
    });
    Foreign {
        program: "jitterdebugger",
        system: Some([system.nodename, system.release, system.version]),
        unit_ns: Some(system.resolution_in_ns),
        counted: counted.collect(),
        ..Foreign::default()
    }
}

fn of_latmus(results: latmus::Results) -> Result<Foreign, FormatError> {
    let cpu = results.cpu.map(|cpu| format!("cpu{cpu}"));
    // A user's thread is what probe timer wakes: it stands in the same row.
    let context = (results.context != "user" || cpu.is_none()).then_some(results.context.as_str());
    let words: Vec<&str> = cpu.as_deref().into_iter().chain(context).collect();
    let variant = words.join(" ");
    // The last bin is also that of all that is larger, where there is any.
    let counted = counted(variant, results.bins, results.max_ns, results.has_outliers);
    if let Some(samples) = results.samples.filter(|samples| *samples != counted.count) {
        let found = format!("{} in all bins", counted.count);
        return Err(FormatError::new(1, format!("{samples} samples"), &found));
    }
    Ok(Foreign {
        program: "latmus",
        version: Some(results.version),
        system: linux_version(&results.kernel),
        seconds: Some(results.seconds),
        unit_ns: Some(1_000),
        period_us: Some(results.period_us),
        missed: Some(results.overruns),
        remarks: vec![
            ("woken", results.context),
            ("switches out of real time", results.switches.to_string()),
        ],
        counted: vec![counted],
        ..Foreign::default()
    })
}

fn of_xenomai(results: xenomai_latency::Results) -> Foreign {
    let max_ns = u64::try_from(results.max_ns).unwrap_or(0);
    // What is larger than the last bin is counted in it.
    let last = results.bins.last().map_or(0, |(bin, _)| *bin);
    let counted = counted(
        results.mode.clone(),
        results.bins,
        max_ns,
        max_ns / 1_000 > last,
    );
    Foreign {
        program: "xenomai latency",
        seconds: Some(results.seconds),
        unit_ns: Some(1_000),
        period_us: Some(results.period_us),
        missed: Some(results.overruns),
        remarks: vec![
            ("woken", results.mode),
            ("switches out of real time", results.switches.to_string()),
            // Its histogram has absolute values.
            ("smallest", format!("{} ns", results.min_ns)),
        ],
        counted: vec![counted],
        ..Foreign::default()
    }
}

/// What was counted in bins of microseconds; the last bin is none where larger values are in it.
fn counted(variant: String, mut bins: Vec<(u64, u64)>, max_ns: u64, is_last_open: bool) -> Counted {
    let count = bins
        .iter()
        .map(|(_, count)| *count)
        .fold(0, u64::saturating_add);
    if is_last_open {
        bins.pop();
    }
    Counted {
        variant,
        bins: bins.into_iter().filter(|(_, count)| *count > 0).collect(),
        count,
        max: (count > 0).then_some(max_ns / 1_000),
        max_ns: (count > 0).then_some(max_ns),
    }
}

/// The release and the version of `Linux version 5.5.0-rc7+ (…) #45 SMP …`.
fn linux_version(line: &str) -> Option<[String; 3]> {
    let rest = line.strip_prefix("Linux version ")?;
    let release = rest.split(' ').next()?.to_owned();
    let version = rest.find(" #").map_or("", |at| &rest[at + 1..]).to_owned();
    Some([String::new(), release, version])
}

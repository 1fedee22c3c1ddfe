// SPDX-License-Identifier: MIT OR Apache-2.0
//! Latencies that another program has counted, whichever form they are in.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

pub(crate) mod counted;
mod encoding;
mod known;

use crate::cyclictest_command::{self, Command};
use crate::cyclictest_lines::ThreadLine;
use crate::{
    FormatError, cyclictest_histogram, cyclictest_json, jitterdebugger, latmus, rtla_timerlat,
    xenomai_latency,
};

pub use counted::{Counted, Distribution, Range};
pub use encoding::decode;

/// The machine and its kernel, as far as a file says; empty where it does not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct System {
    /// The machine's name.
    pub node: String,
    /// The kernel's release.
    pub release: String,
    /// The kernel's version: `#1 SMP PREEMPT_RT …`.
    pub version: String,
    /// The machine's architecture.
    pub machine: String,
}

/// What a file says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Foreign {
    /// The program: `cyclictest`.
    pub program: &'static str,
    /// Its version.
    pub version: Option<String>,
    /// Its command line.
    pub command: Option<String>,
    /// The machine and its kernel.
    pub system: Option<System>,
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

/// Reads any of these forms: cyclictest's histogram (`-h`), JSON and threads' lines, `rtla
/// timerlat hist`, jitterdebugger's `results.json`, `latmus -g` of EVL, `latency -h` of Xenomai.
///
/// # Errors
/// Where it is none of these, is damaged, contradicts itself, or holds more than one result.
pub fn read(text: &str) -> Result<Foreign, FormatError> {
    if let Some(text) = json(text)? {
        return of_json(&text);
    }
    let titles: Vec<(usize, Form)> = (1..)
        .zip(text.lines())
        .filter_map(|(number, line)| Some((number, Form::of(line)?)))
        .collect();
    if let [_, (number, _), ..] = titles[..] {
        let line = text.lines().nth(number - 1).unwrap_or_default();
        let expected = "one result in a file (this is a second one: cut the file in two)";
        return Err(FormatError::new(number, expected, line));
    }
    match titles.first() {
        Some((_, Form::Rtla)) => return of_rtla(rtla_timerlat::read(text)?),
        Some((_, Form::Histogram)) => return of_histogram(text),
        Some((_, Form::Latmus)) => return of_latmus(latmus::read(text)?),
        Some((_, Form::Xenomai)) => return of_xenomai(xenomai_latency::read(text)?),
        None => {}
    }
    let lines = thread_lines(text)?;
    if !lines.is_empty() {
        return of_lines(&lines);
    }
    if let Some(known) = known::known(text) {
        return Err(known);
    }
    if xenomai_latency::is_one(text) {
        return of_xenomai(xenomai_latency::read(text)?);
    }
    let expected = "cyclictest's JSON or histogram (-h), what rtla timerlat hist or Xenomai's \
        latency -h prints, what latmus -g writes, or jitterdebugger's results.json";
    let first = text.lines().next().unwrap_or("nothing");
    Err(FormatError::new(1, expected, first))
}

/// What a line shows that there is one of in each result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Rtla,
    Histogram,
    Latmus,
    Xenomai,
}

impl Form {
    fn of(line: &str) -> Option<Self> {
        match line.trim_end() {
            rtla_timerlat::TITLE => Some(Self::Rtla),
            cyclictest_histogram::TITLE => Some(Self::Histogram),
            _ if latmus::is_title(line) => Some(Self::Latmus),
            _ if line.starts_with("RTS|") => Some(Self::Xenomai),
            _ => None,
        }
    }
}

/// The JSON of a text, at its lines, where it has some; what stands above it is passed over.
fn json(text: &str) -> Result<Option<String>, FormatError> {
    let is_begin = |line: &&str| line.trim_start().starts_with('{');
    let Some(above) = text.lines().position(|line| is_begin(&line)) else {
        return Ok(None);
    };
    if above > 0 && !text.contains("\"sysinfo\"") {
        return Ok(None);
    }
    let lines: Vec<&str> = text.lines().skip(above).collect();
    let json = "\n".repeat(above) + &lines.join("\n");
    let readable = json.replace(": -nan", ": null").replace(": nan", ": null");
    let mut all = serde_json::Deserializer::from_str(&readable).into_iter::<Value>();
    if let (Some(Ok(_)), Some(second)) = (all.next(), all.next()) {
        let at = second.map_or_else(|error| error.line(), |_| 0);
        let end = all.byte_offset();
        let number = match at {
            0 => readable[..end].lines().count(),
            at => at,
        };
        let expected = "one result in a file (this is a second one: cut the file in two)";
        let line = readable.lines().nth(number.max(1) - 1).unwrap_or_default();
        return Err(FormatError::new(number.max(1), expected, line));
    }
    Ok(Some(json))
}

fn of_json(text: &str) -> Result<Foreign, FormatError> {
    #[derive(Deserialize)]
    struct Head {
        #[serde(rename = "cmdline:", alias = "cmdline")]
        command: Option<String>,
        #[serde(rename = "rt_test_version:", alias = "rt_test_version")]
        version: Option<String>,
        cpu: Option<serde::de::IgnoredAny>,
        thread: Option<serde::de::IgnoredAny>,
    }
    let readable = text.replace(": -nan", ": null").replace(": nan", ": null");
    let head: Option<Head> = serde_json::from_str(&readable).ok();
    let Some(head) = head else {
        // It says what is wrong.
        return of_cyclictest(cyclictest_json::read(text)?);
    };
    if let Some(error) = head.command.as_deref().and_then(known::of_rt_tests) {
        return Err(error);
    }
    if head.command.is_some() || head.version.is_some() || head.thread.is_some() {
        return of_cyclictest(cyclictest_json::read(text)?);
    }
    if head.cpu.is_some() || text.contains("\"version\"") {
        return of_jitterdebugger(jitterdebugger::read(text)?);
    }
    let expected = "the results of cyclictest --json or of jitterdebugger";
    let first = text.lines().find(|line| !line.trim().is_empty());
    Err(FormatError::new(1, expected, first.unwrap_or_default()))
}

/// An error about a thread or CPU of the file.
fn wrong(counted: &Counted, what: impl std::fmt::Display) -> FormatError {
    FormatError::contradiction(format!("{}: {what}", counted.variant))
}

/// The file's content, once each thread agrees with what is said of it.
fn checked(foreign: Foreign) -> Result<Foreign, FormatError> {
    for counted in &foreign.counted {
        counted
            .distribution()
            .map_err(|what| wrong(counted, what))?;
    }
    if foreign.counted.is_empty() {
        return Err(FormatError::new(1, "a thread's or a CPU's samples", "none"));
    }
    Ok(foreign)
}

/// How many bins hold all values up to this: a round number.
fn bins_for(max: Option<i64>) -> u64 {
    let max = max.and_then(|max| u64::try_from(max).ok()).unwrap_or(0);
    let mut bins = 1_000;
    while bins <= max && bins < 1_000_000 {
        bins *= 10;
    }
    bins
}

/// Why some samples have no bin, and what would have given them one.
fn over_gap(counted: &Counted) -> Option<String> {
    let above = match counted.over {
        0 => return None,
        1 => "1 sample is".to_owned(),
        over => format!("{over} samples are"),
    };
    let bins = bins_for(counted.max);
    Some(format!(
        "{above} above the last bin: measure with -h {bins}"
    ))
}

fn of_cyclictest(results: cyclictest_json::Results) -> Result<Foreign, FormatError> {
    let command = cyclictest_command::read(&results.command)
        .map_err(|what| FormatError::new(1, what, &results.command))?;
    let bins = command.and_then(|command| command.bins);
    let has_bins = results.threads.iter().any(|one| !one.histogram.is_empty());
    if !has_bins && bins.is_none() && results.threads.iter().any(|one| one.cycles > 0) {
        let expected = "a histogram (this was measured without -h: measure with -h 1000)";
        return Err(FormatError::new(1, expected, &results.command));
    }
    let [_, node, release, version, machine] = results.system;
    let mut counted = Vec::new();
    for (index, thread) in results.threads.into_iter().enumerate() {
        let mut one = of_thread(index, thread, bins);
        one.gap = over_gap(&one);
        check_command(&one, command.as_ref())?;
        counted.push(one);
    }
    let status = results.return_code;
    let status = (status != 0).then(|| ("exit status", status.to_string()));
    checked(Foreign {
        program: "cyclictest",
        version: Some(results.version),
        command: Some(results.command),
        system: Some(System {
            node,
            release,
            version,
            machine,
        }),
        realtime: Some(results.realtime),
        times: Some([results.start, results.end]),
        unit_ns: Some(if results.nanoseconds { 1 } else { 1000 }),
        period_us: command.map(|command| command.interval_us),
        remarks: status.into_iter().collect(),
        counted,
        ..Foreign::default()
    })
}

fn of_thread(index: usize, thread: cyclictest_json::Thread, bins: Option<u64>) -> Counted {
    let variant = match thread.cpu {
        cyclictest_json::UNKNOWN => format!("thread {index}"),
        cpu => format!("cpu{cpu}"),
    };
    let is_any = thread.cycles > 0;
    let signed = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    let binned = thread.histogram.values().copied();
    let binned = binned.fold(0, u64::saturating_add);
    let filled = thread.histogram.iter().filter(|(_, count)| **count > 0);
    let above_last = filled.map(|(bin, _)| bin.saturating_add(1)).max();
    let least = above_last.unwrap_or(thread.min);
    Counted {
        variant,
        over: thread.cycles.saturating_sub(binned),
        over_from: bins.filter(|bins| *bins >= least).unwrap_or(least),
        count: thread.cycles,
        bins: thread.histogram,
        min: is_any.then(|| signed(thread.min)),
        max: is_any.then(|| signed(thread.max)),
        // Two decimals, rounded.
        mean: is_any.then_some((thread.avg - 0.01, thread.avg + 0.01)),
        ..Counted::default()
    }
}

/// Holds a thread against its command line.
fn check_command(counted: &Counted, command: Option<&Command>) -> Result<(), FormatError> {
    let Some(command) = command else {
        return Ok(());
    };
    let filled = counted.bins.iter().filter(|(_, count)| **count > 0);
    let last = filled.map(|(bin, _)| *bin).max();
    if let (Some(bins), Some(last)) = (command.bins, last) {
        if last > bins {
            let what = format!("a bin {last}, and -h {bins} in its command line");
            return Err(wrong(counted, what));
        }
    }
    match command.loops {
        Some(loops) if counted.count > loops => {
            let what = format!(
                "{} cycles, and -l {loops} in its command line",
                counted.count
            );
            Err(wrong(counted, what))
        }
        _ => Ok(()),
    }
}

fn of_histogram(text: &str) -> Result<Foreign, FormatError> {
    let columns = cyclictest_histogram::read(text)?;
    for line in ["# Min Latencies:", "# Avg Latencies:", "# Max Latencies:"] {
        if !text.lines().any(|own| own.starts_with(line)) {
            let expected = format!("the line \"{line}\" behind the bins");
            return Err(FormatError::new(text.lines().count(), expected, "the end"));
        }
    }
    let lines = thread_lines(text)?;
    let mut counted = Vec::new();
    for (number, column) in columns.into_iter().enumerate() {
        let mut one = of_column(number, &column);
        let listed = column.overflow_cycles.len() as u64;
        if listed > column.overflows {
            let what = format!(
                "{} overflows, and {listed} with their cycles",
                column.overflows
            );
            return Err(wrong(&one, what));
        }
        if let Some(line) = lines.iter().find(|line| line.index == number) {
            check_line(&one, line)?;
            one.interval_us = Some(line.interval_us).filter(|interval| *interval > 0);
        }
        counted.push(one);
    }
    checked(Foreign {
        program: "cyclictest",
        counted,
        ..Foreign::default()
    })
}

fn of_column(number: usize, column: &cyclictest_histogram::Column) -> Counted {
    let bins = (0..).zip(column.bins.iter().copied());
    let over_from = column.bins.len() as u64;
    let bins: BTreeMap<u64, u64> = bins.filter(|(_, count)| *count > 0).collect();
    let values = bins.values().copied();
    let count = values.fold(column.overflows, u64::saturating_add);
    let signed = |value: u64| (count > 0).then(|| i64::try_from(value).unwrap_or(i64::MAX));
    let mean = column.avg as f64;
    let mut counted = Counted {
        variant: format!("thread {number}"),
        bins,
        over: column.overflows,
        over_from,
        count,
        min: signed(column.min),
        max: signed(column.max),
        // Cut off.
        mean: (count > 0).then_some((mean, mean + 1.0)),
        ..Counted::default()
    };
    counted.gap = over_gap(&counted);
    counted
}

/// A thread's line was printed while it measured, or at its end.
fn check_line(counted: &Counted, line: &ThreadLine) -> Result<(), FormatError> {
    let found = |what: &str, of_line: u64, own: i64| {
        let what = format!("{what}{of_line} in its line T:, and {own} in its histogram");
        Err(wrong(counted, what))
    };
    if line.cycles > counted.count {
        let count = i64::try_from(counted.count).unwrap_or(i64::MAX);
        return found("C:", line.cycles, count);
    }
    if line.cycles == 0 {
        return Ok(());
    }
    let is_above = |max: &i64| i128::from(line.max) > i128::from(*max);
    if let Some(max) = counted.max.filter(is_above) {
        return found("Max:", line.max, max);
    }
    let is_below = |min: &i64| i128::from(line.min) < i128::from(*min);
    match counted.min.filter(is_below) {
        Some(min) => found("Min:", line.min, min),
        None => Ok(()),
    }
}

/// Whether a later line may be of the same measurement: nothing that was counted is lost.
fn goes_on(before: &ThreadLine, line: &ThreadLine) -> bool {
    before.tid == line.tid
        && before.cycles <= line.cycles
        && before.max <= line.max
        && before.min >= line.min
}

/// The last line of each thread; a screen shows them again and again.
fn thread_lines(text: &str) -> Result<Vec<ThreadLine>, FormatError> {
    let mut last: Vec<ThreadLine> = Vec::new();
    for (number, text) in (1..).zip(text.lines()) {
        if !text.trim_start().starts_with("T:") {
            continue;
        }
        let line = ThreadLine::read(number, text)?;
        let known = last.iter_mut().find(|known| known.index == line.index);
        match known {
            None => last.push(line),
            Some(known) if goes_on(known, &line) => *known = line,
            Some(_) => {
                let expected = "one result in a file (this is a second one: cut the file in two)";
                return Err(FormatError::new(number, expected, text));
            }
        }
    }
    last.sort_by_key(|line| line.index);
    Ok(last)
}

/// Threads of which only count, extremes and mean are known.
fn of_lines(lines: &[ThreadLine]) -> Result<Foreign, FormatError> {
    let mut counted = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        if line.index != number {
            let expected = format!("the line of thread {number}");
            return Err(FormatError::new(1, expected, &format!("T: {}", line.index)));
        }
        let count = line.cycles;
        let signed = |value: u64| (count > 0).then(|| i64::try_from(value).unwrap_or(i64::MAX));
        let mean = line.avg as f64;
        let bins = bins_for(signed(line.max));
        let one = Counted {
            variant: format!("thread {number}"),
            over: count,
            over_from: line.min,
            count,
            min: signed(line.min),
            max: signed(line.max),
            mean: (count > 0).then_some((mean, mean + 1.0)),
            interval_us: Some(line.interval_us).filter(|interval| *interval > 0),
            gap: Some(format!(
                "the file has no distribution: measure with -h {bins}"
            )),
            ..Counted::default()
        };
        if count > 0 && !(line.min..=line.max).contains(&line.act) {
            let (min, act, max) = (line.min, line.act, line.max);
            return Err(wrong(&one, format!("Min:{min}, Act:{act}, Max:{max}")));
        }
        counted.push(one);
    }
    checked(Foreign {
        program: "cyclictest",
        counted,
        ..Foreign::default()
    })
}

fn of_rtla(results: rtla_timerlat::Results) -> Result<Foreign, FormatError> {
    check_all(&results)?;
    let (width, is_told) = bucket_size(&results)?;
    let unit = if results.nanoseconds { "ns" } else { "µs" };
    let signed = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    let counted = results.columns.into_iter().map(|column| {
        let filled = column.bins.into_iter().filter(|(_, count)| *count > 0);
        let bins: BTreeMap<u64, u64> = filled.collect();
        let last = bins.keys().next_back();
        let known = |value: Option<u64>| value.filter(|_| column.count > 0).map(signed);
        let mut one = Counted {
            variant: match column.stage.as_str() {
                "Thr" => format!("cpu{}", column.cpu),
                stage => format!("cpu{} {}", column.cpu, stage.to_lowercase()),
            },
            over_from: last.map_or(column.min.unwrap_or(0), |last| last.saturating_add(1)),
            bins,
            width,
            over: column.over,
            count: column.count,
            min: known(column.min),
            max: known(column.max),
            mean: column.mean.filter(|_| column.count > 0),
            ..Counted::default()
        };
        let are = if is_told { "are" } else { "may be" };
        let wide = format!("its bins {are} {width} {unit} wide: measure with -b 1");
        let over = format!(
            "{} samples are above the last bin: measure with -E",
            one.over
        );
        one.gap = match (one.over, width) {
            (0, 0 | 1) => None,
            (0, _) => Some(wide),
            _ => Some(over),
        };
        one
    });
    checked(Foreign {
        program: "rtla timerlat",
        seconds: Some(results.seconds).filter(|seconds| *seconds > 0),
        unit_ns: Some(if results.nanoseconds { 1 } else { 1000 }),
        counted: counted.collect(),
        ..Foreign::default()
    })
}

/// How many values a bin has, and whether that is told. It is not in the output: what divides
/// the numbers of all bins is the most that it can be.
fn bucket_size(results: &rtla_timerlat::Results) -> Result<(u64, bool), FormatError> {
    let bins = results.columns.iter().flat_map(|column| &column.bins);
    let widest = bins.map(|(bin, _)| *bin).fold(0, greatest_common_divisor);
    if let Some(size) = results.bucket {
        if widest % size != 0 {
            let expected = format!("bins of {size}, as the command line above says");
            return Err(FormatError::new(1, expected, &format!("one of {widest}")));
        }
        return Ok((size, true));
    }
    // All are in the first bin: it has the largest, and more is not known.
    let largest = results.columns.iter().filter_map(|column| column.max).max();
    let widest = match widest {
        0 => largest.map_or(1, |largest| largest.saturating_add(1)),
        widest => widest,
    };
    Ok((widest, false))
}

fn greatest_common_divisor(one: u64, other: u64) -> u64 {
    match other {
        0 => one,
        _ => greatest_common_divisor(other, one % other),
    }
}

/// Holds the columns against the summary of all CPUs.
fn check_all(results: &rtla_timerlat::Results) -> Result<(), FormatError> {
    for all in &results.all {
        let own = || {
            let own = results.columns.iter();
            own.filter(|column| column.stage == all.stage && column.count > 0)
        };
        let count = own().map(|column| column.count);
        let count = count.fold(0, u64::saturating_add);
        let numbers = [
            ("count:", all.count, count),
            (
                "min:",
                all.min.unwrap_or(0),
                own().filter_map(|one| one.min).min().unwrap_or(0),
            ),
            (
                "max:",
                all.max.unwrap_or(0),
                own().filter_map(|one| one.max).max().unwrap_or(0),
            ),
        ];
        // Where nothing was measured, or a line was cut off, there is nothing to compare.
        let told = [true, all.min.is_some(), all.max.is_some()];
        let odd = numbers.iter().zip(told);
        let odd = odd.filter(|(_, is_told)| *is_told && count > 0 && all.count > 0);
        for ((name, found, expected), _) in odd {
            if found != expected {
                let stage = &all.stage;
                let expected =
                    format!("{name} {expected} of {stage} below ALL:, as its columns have");
                return Err(FormatError::new(1, expected, &found.to_string()));
            }
        }
    }
    Ok(())
}

fn of_jitterdebugger(results: jitterdebugger::Results) -> Result<Foreign, FormatError> {
    let system = results.sysinfo;
    let signed = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    let counted = results.cpu.into_iter().map(|(cpu, counted)| {
        let is_any = counted.count > 0;
        Counted {
            variant: format!("cpu{cpu}"),
            bins: counted.histogram,
            count: counted.count,
            min: counted.min.filter(|_| is_any).map(signed),
            max: is_any.then(|| signed(counted.max)),
            mean: counted
                .avg
                .filter(|_| is_any)
                .map(|avg| (avg - 0.01, avg + 0.01)),
            ..Counted::default()
        }
    });
    checked(Foreign {
        program: "jitterdebugger",
        system: Some(System {
            node: system.nodename,
            release: system.release,
            version: system.version,
            machine: system.machine,
        }),
        unit_ns: Some(system.resolution_in_ns),
        counted: counted.collect(),
        ..Foreign::default()
    })
}

fn of_latmus(results: latmus::Results) -> Result<Foreign, FormatError> {
    let cpu = results.cpu.map(|cpu| format!("cpu{cpu}"));
    // A user's thread is what probe timer wakes: it stands in the same row.
    let context = (results.context != "user" || cpu.is_none()).then_some(results.context.as_str());
    let words: Vec<&str> = cpu.as_deref().into_iter().chain(context).collect();
    let nanos = Nanoseconds {
        variant: words.join(" "),
        bin_ns: 1_000,
        min: results.min_ns,
        max: i64::try_from(results.max_ns).unwrap_or(i64::MAX),
        mean: results.mean_ns,
    };
    // The last bin is also that of all that is larger, where there is any.
    let counted = nanos.counted(results.bins, results.has_outliers, "-H");
    if let Some(samples) = results.samples.filter(|samples| *samples != counted.count) {
        let found = format!("{} in all bins", counted.count);
        return Err(FormatError::new(1, format!("{samples} samples"), &found));
    }
    checked(Foreign {
        program: "latmus",
        version: Some(results.version),
        system: linux_version(&results.kernel),
        seconds: Some(results.seconds),
        unit_ns: Some(1),
        period_us: Some(results.period_us).filter(|period| *period > 0),
        missed: Some(results.overruns),
        remarks: vec![
            ("woken", results.context),
            ("switches out of real time", results.switches.to_string()),
        ],
        counted: vec![counted],
        ..Foreign::default()
    })
}

fn of_xenomai(results: xenomai_latency::Results) -> Result<Foreign, FormatError> {
    // What is larger than the last of all bins is counted in it.
    let last = results.bins.last().map_or(0, |(bin, _)| *bin);
    let farthest = results.max_ns.max(results.min_ns.saturating_neg());
    let beyond = farthest.unsigned_abs() / results.bin_ns > last;
    let is_open = beyond && last.saturating_add(1) == results.size;
    // Of means of each second, and the last second may not be among them.
    let slack = results.mean_ns.unsigned_abs() as f64 * 0.05 + 50.0;
    let mean = results.mean_ns as f64;
    let bins = results.bins.iter();
    let bins = bins.map(|(bin, count)| (bin.saturating_mul(results.bin_ns), *count));
    let counted = Nanoseconds {
        variant: results.mode.clone(),
        bin_ns: results.bin_ns,
        min: Some(results.min_ns),
        max: results.max_ns,
        mean: Some((mean - slack, mean + slack)),
    };
    let counted = counted.counted_by_nanoseconds(bins.collect(), is_open, "-H");
    if let Err(what) = counted.distribution() {
        return Err(FormatError::contradiction(format!(
            "its bins of {} ns contradict its line RTS, as with latency -B: {what} ns",
            results.bin_ns
        )));
    }
    checked(Foreign {
        program: "xenomai latency",
        seconds: Some(results.seconds),
        unit_ns: Some(1),
        period_us: Some(results.period_us).filter(|period| *period > 0),
        missed: Some(results.overruns),
        remarks: vec![
            ("woken", results.mode),
            ("switches out of real time", results.switches.to_string()),
            // Its histogram has absolute values.
            ("smallest", format!("{} ns", results.min_ns)),
        ],
        counted: vec![counted],
        ..Foreign::default()
    })
}

/// What is told in nanoseconds, and counted in bins of a microsecond or more.
struct Nanoseconds {
    variant: String,
    bin_ns: u64,
    min: Option<i64>,
    max: i64,
    mean: Option<(f64, f64)>,
}

impl Nanoseconds {
    /// With bins by their numbers.
    fn counted(self, bins: Vec<(u64, u64)>, is_last_open: bool, option: &str) -> Counted {
        let bin_ns = self.bin_ns;
        let bins = bins.into_iter();
        let bins = bins.map(|(bin, count)| (bin.saturating_mul(bin_ns), count));
        self.counted_by_nanoseconds(bins.collect(), is_last_open, option)
    }

    /// With bins by their lowest value; the last one is none where larger values are in it.
    fn counted_by_nanoseconds(
        self,
        mut bins: Vec<(u64, u64)>,
        is_last_open: bool,
        option: &str,
    ) -> Counted {
        let counts = bins.iter().map(|(_, count)| *count);
        let count = counts.fold(0, u64::saturating_add);
        let open = if is_last_open { bins.pop() } else { None };
        let (over_from, over) = open.unwrap_or((0, 0));
        let us = self.bin_ns as f64 / 1e3;
        let gap = match over {
            0 => format!("its bins are {us} µs wide"),
            over => format!("{over} samples are in or above the last bin: measure with {option}"),
        };
        Counted {
            variant: self.variant,
            bins: bins.into_iter().filter(|(_, count)| *count > 0).collect(),
            width: self.bin_ns,
            is_absolute: true,
            over,
            over_from,
            count,
            min: self.min.filter(|_| count > 0),
            max: (count > 0).then_some(self.max),
            mean: self.mean.filter(|_| count > 0),
            interval_us: None,
            gap: Some(gap),
        }
    }
}

/// The release and the version of `Linux version 5.5.0-rc7+ (…) #45 SMP …`.
fn linux_version(line: &str) -> Option<System> {
    let rest = line.strip_prefix("Linux version ")?;
    let release = rest.split(' ').next()?.to_owned();
    let version = rest.find(" #").map_or("", |at| &rest[at + 1..]).to_owned();
    Some(System {
        release,
        version,
        ..System::default()
    })
}

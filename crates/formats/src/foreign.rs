// SPDX-License-Identifier: MIT OR Apache-2.0
//! Latencies that another program has counted, in any known form.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

pub(crate) mod counted;
mod encoding;
mod known;
mod lines;
mod results;
mod rtla;
mod whole;

use crate::cyclictest_command::{self, Command};
use crate::{
    FormatError, cyclictest_histogram, cyclictest_json, jitterdebugger, latmus, xenomai_latency,
};
use results::{Form, check_alone, second};
use whole::{cut_short, few_of, short_of_time, uneven};

pub use counted::{Counted, Distribution, Range};
pub use encoding::decode;
pub use known::name_of;

/// The machine and its kernel, as far as a file describes them; otherwise empty.
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

/// The content of a file.
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
    /// True if the kernel is a real-time kernel.
    pub realtime: Option<bool>,
    /// The times when it began and ended, as RFC 2822 writes a date.
    pub times: Option<[String; 2]>,
    /// The duration of the measurement, in seconds.
    pub seconds: Option<u64>,
    /// The number of nanoseconds in a value's unit; cyclictest's histogram does not state it.
    pub unit_ns: Option<u64>,
    /// The nominal time between two samples, in microseconds.
    pub period_us: Option<u64>,
    /// The number of missed periods.
    pub missed: Option<u64>,
    /// The measuring threads' real-time priority.
    pub priority: Option<u64>,
    /// The reason why it failed, if it did: then nothing is known of what it did not see.
    pub failed: Option<String>,
    /// The reason why it is not a whole measurement, if it was cut short.
    pub cut_short: Option<String>,
    /// True if there are no bins, only the number of samples, their extremes and their mean.
    pub is_summary: bool,
    /// Texts that distinguish it from other measurements with the same figures: times and comments.
    pub said: Vec<String>,
    /// The other settings that the command line asks for, in a fixed order, without the program's
    /// own defaults; empty if all are defaults. `None` if it does not state them.
    pub asked: Option<String>,
    /// Further statements without which its figures cannot be interpreted.
    pub remarks: Vec<(&'static str, String)>,
    /// The counts of each thread, or each CPU.
    pub counted: Vec<Counted>,
}

/// Reads any of these forms: cyclictest's histogram (`-h`), JSON and threads' lines, `rtla
/// timerlat hist`, jitterdebugger's `results.json`, `latmus -g` of EVL, `latency -h` of Xenomai.
///
/// # Errors
/// Fails if the text is none of these, is damaged, contradicts itself, or holds several results.
pub fn read(text: &str) -> Result<Foreign, FormatError> {
    let mut foreign = read_one(text)?;
    if let Some(value) = broken_off(text, &foreign)? {
        foreign.cut_short = Some(format!("it broke off at {value} (-b)"));
    }
    if foreign.times.is_none() {
        foreign.said = comments(text);
    }
    Ok(foreign)
}

/// Reads a file in its original bytes: decodes it, and checks how it ends.
///
/// # Errors
/// Fails if [`decode`] or [`read`] does.
pub fn read_bytes(bytes: &[u8]) -> Result<Foreign, FormatError> {
    let text = decode(bytes)?;
    let mut foreign = read(&text)?;
    if let Some(line) = whole::unended(bytes, &text) {
        foreign.cut_short.get_or_insert_with(|| {
            format!(
                "the file ends within its line \"{line}\", whose last number may be cut: end the \
                 line, where it is whole"
            )
        });
    }
    Ok(foreign)
}

/// Returns the value at which cyclictest reports that it broke off (`-b`), in the file's unit.
fn broken_off(text: &str, foreign: &Foreign) -> Result<Option<i64>, FormatError> {
    let mut found = None;
    for (number, line) in (1..).zip(text.lines()) {
        let Some((_, value)) = line.split_once("# Break value:") else {
            continue;
        };
        let value: i64 = value
            .trim()
            .parse()
            .map_err(|_| FormatError::new(number, "a break value", line))?;
        let most = foreign.counted.iter().filter_map(|one| one.max).max();
        if let Some(most) = most.filter(|most| *most < value) {
            let what = format!("a break value of {value}, and no sample above {most}");
            return Err(FormatError::contradiction(what));
        }
        found = Some(value);
    }
    Ok(found)
}

/// Returns the letters and digits of a text's comments, without those that hold figures.
fn comments(text: &str) -> Vec<String> {
    let is_comment = |line: &&str| {
        line.starts_with('#')
            && Form::of_title(line).is_none()
            && !cyclictest_histogram::is_foot(line)
            && !line.starts_with("# Thread ")
    };
    let said = |line: &str| line.chars().filter(|c| c.is_alphanumeric()).collect();
    let mut all: Vec<String> = text.lines().filter(is_comment).map(said).collect();
    all.sort();
    all.dedup();
    all
}

fn read_one(text: &str) -> Result<Foreign, FormatError> {
    let numbered = || (1..).zip(text.lines());
    if let Some((above, json)) = json(text)? {
        check_alone(numbered().take(above), Form::Json)?;
        let above: Vec<&str> = text.lines().take(above).collect();
        return of_json(&json, &above.join("\n"));
    }
    let titles: Vec<(usize, Form)> = numbered()
        .filter_map(|(number, line)| Some((number, Form::of_title(line)?)))
        .collect();
    if let [_, (number, _), ..] = titles[..] {
        let line = text.lines().nth(number - 1).unwrap_or_default();
        return Err(second(number, line));
    }
    if let Some((_, form)) = titles.first() {
        check_alone(numbered(), *form)?;
        return match form {
            Form::Rtla => rtla::of_text(text),
            Form::Latmus => of_latmus(latmus::read(text)?),
            Form::Xenomai => of_xenomai(xenomai_latency::read(text)?),
            Form::Histogram | Form::Json | Form::Lines => with_command(text, of_histogram(text)?),
        };
    }
    if lines::has_any(text) {
        check_alone(numbered(), Form::Lines)?;
        let lines = lines::thread_lines(text)?;
        return with_command(text, lines::of_lines(text, &lines)?);
    }
    if let Some(known) = known::known(text) {
        return Err(known);
    }
    if xenomai_latency::is_one(text) {
        return of_xenomai(xenomai_latency::read(text)?);
    }
    let expected = "cyclictest's JSON or histogram (-h), what rtla timerlat hist or Xenomai's \
        latency -h prints, what latmus -g writes, or jitterdebugger's results.json";
    let first = text.lines().find(|line| !line.trim().is_empty());
    Err(FormatError::new(
        1,
        expected,
        first.unwrap_or("an empty file"),
    ))
}

/// Returns the JSON of a text, at its original lines, and the number of lines above it, if any.
fn json(text: &str) -> Result<Option<(usize, String)>, FormatError> {
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
    if let (Some(Ok(_)), Some(other)) = (all.next(), all.next()) {
        let at = other.map_or_else(|error| error.line(), |_| 0);
        let end = all.byte_offset();
        let number = match at {
            0 => readable[..end].lines().count(),
            at => at,
        };
        let line = readable.lines().nth(number.max(1) - 1).unwrap_or_default();
        return Err(second(number.max(1), line));
    }
    Ok(Some((above, json)))
}

/// Reads a JSON file below some other lines.
fn of_json(text: &str, above: &str) -> Result<Foreign, FormatError> {
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
        return of_cyclictest(cyclictest_json::read(text)?, above);
    };
    if let Some(error) = head.command.as_deref().and_then(known::of_rt_tests) {
        return Err(error);
    }
    if head.cpu.is_some() && head.thread.is_some() {
        let what = "it has threads, as cyclictest's, and CPUs, as jitterdebugger's: cut it in two";
        return Err(FormatError::contradiction(what.to_owned()));
    }
    if head.command.is_some() || head.version.is_some() || head.thread.is_some() {
        return of_cyclictest(cyclictest_json::read(text)?, above);
    }
    if let Some((number, line)) = (1..)
        .zip(above.lines())
        .find(|(_, line)| line.starts_with("T:"))
    {
        return Err(second(number, line));
    }
    if head.cpu.is_some() || text.contains("\"version\"") {
        return of_jitterdebugger(jitterdebugger::read(text)?);
    }
    let expected = "the results of cyclictest --json or of jitterdebugger";
    let first = text.lines().find(|line| !line.trim().is_empty());
    Err(FormatError::new(1, expected, first.unwrap_or_default()))
}

/// Creates an error about a thread or CPU of the file.
fn wrong(counted: &Counted, what: impl std::fmt::Display) -> FormatError {
    FormatError::contradiction(format!("{}: {what}", counted.variant))
}

/// Returns the file's content if the counts of each thread agree with its other figures.
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

/// Returns the number of bins, a round number, that holds all values up to the given one.
fn bins_for(max: Option<i64>) -> u64 {
    let max = max.and_then(|max| u64::try_from(max).ok()).unwrap_or(0);
    let mut bins = 1_000;
    while bins <= max && bins < 1_000_000 {
        bins *= 10;
    }
    bins
}

/// Explains why some samples have no bin, and how they would have got one.
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

fn of_cyclictest(results: cyclictest_json::Results, above: &str) -> Result<Foreign, FormatError> {
    let command = cyclictest_command::read(&results.command)
        .map_err(|what| FormatError::new(1, what, &results.command))?;
    let asked = cyclictest_command::settings(&results.command);
    let bins = command.and_then(|command| command.bins);
    let has_bins = results.threads.iter().any(|one| !one.histogram.is_empty());
    if !has_bins && bins.is_none() && results.threads.iter().any(|one| one.cycles > 0) {
        let expected = "a histogram (this was measured without -h: measure with -h 1000)";
        return Err(FormatError::new(1, expected, &results.command));
    }
    if let Some(command) = command.filter(|own| own.nanoseconds != results.nanoseconds) {
        let without = if command.nanoseconds {
            "with"
        } else {
            "without"
        };
        let what = format!(
            "its resolution_in_ns is {}, and it was measured {without} -N",
            u8::from(results.nanoseconds)
        );
        return Err(FormatError::contradiction(what));
    }
    let [_, node, release, version, machine] = results.system;
    let mut counted = Vec::new();
    for (index, thread) in results.threads.into_iter().enumerate() {
        let mut one = of_thread(index, thread, bins);
        one.gap = over_gap(&one);
        counted.push(one);
    }
    check_command(&counted, command.as_ref())?;
    lines::check(above, &mut counted)?;
    let status = results.return_code;
    let failed = (status != 0).then(|| format!("cyclictest ended with status {status}"));
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
        said: vec![results.start.clone(), results.end.clone()],
        times: Some([results.start, results.end]),
        unit_ns: Some(if results.nanoseconds { 1 } else { 1000 }),
        period_us: command.map(|command| command.interval_us),
        priority: command.and_then(|command| command.priority),
        failed,
        asked,
        cut_short: command.and_then(|command| cut_short(&counted, &command)),
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

/// Checks threads against their command line.
fn check_command(counted: &[Counted], command: Option<&Command>) -> Result<(), FormatError> {
    let Some(command) = command else {
        return Ok(());
    };
    let known = counted.len() as u64;
    if let Some(threads) = command.threads.filter(|threads| *threads > known) {
        let what = format!("{known} threads, and -t {threads} in its command line");
        return Err(FormatError::contradiction(what));
    }
    let odd = |one: &Counted| Some(wrong(one, against(one, command)?));
    counted.iter().find_map(odd).map_or(Ok(()), Err)
}

/// Describes how a thread contradicts its command line.
fn against(counted: &Counted, command: &Command) -> Option<String> {
    let filled = counted.bins.iter().filter(|(_, count)| **count > 0);
    let last = filled.map(|(bin, _)| *bin).max();
    if let Some((bins, last)) = command.bins.zip(last).filter(|(bins, last)| last > bins) {
        return Some(format!("a bin {last}, and -h {bins} in its command line"));
    }
    let count = counted.count;
    if let Some(loops) = command.loops.filter(|loops| count > *loops) {
        return Some(format!(
            "{count} cycles, and -l {loops} in its command line"
        ));
    }
    let interval = command.interval_us;
    let taken = u128::from(count) * u128::from(interval);
    let room = |seconds: &u64| (u128::from(*seconds) + 2) * 1_050_000;
    let seconds = command.seconds.filter(|seconds| taken > room(seconds))?;
    Some(format!(
        "{count} cycles each {interval} us, and -D {seconds} s in its command line"
    ))
}

/// Returns the last understood command line of cyclictest above its output, if there is one.
fn command_above(text: &str) -> Option<(Command, Option<String>)> {
    let is_output = |line: &&str| line.starts_with("T:") || Form::of_title(line).is_some();
    let above = text.lines().take_while(|line| !is_output(line));
    let commands = above.filter_map(|line| {
        let name = "cyclictest ";
        let at = line.find(name)?;
        let begins = line[..at].ends_with(|c: char| c.is_whitespace() || "/#$".contains(c));
        let own = (at == 0 || begins).then(|| &line[at..])?;
        let end = own.find(['|', '>', '<', '&', ';']);
        let own = &own[..end.unwrap_or(own.len())];
        let command = cyclictest_command::read(own).ok()??;
        Some((command, cyclictest_command::settings(own)))
    });
    commands.last()
}

/// Adds the statements of a command line above a text in which nothing else states them.
fn with_command(text: &str, mut foreign: Foreign) -> Result<Foreign, FormatError> {
    let Some((command, asked)) = command_above(text) else {
        return Ok(foreign);
    };
    check_command(&foreign.counted, Some(&command))?;
    let intervals = foreign.counted.first().and_then(|one| one.interval_us);
    if let Some(own) = intervals.filter(|own| *own != command.interval_us) {
        let what = format!(
            "I:{own}, and -i {} in its command line",
            command.interval_us
        );
        return Err(FormatError::contradiction(what));
    }
    foreign.unit_ns = Some(if command.nanoseconds { 1 } else { 1_000 });
    foreign.period_us = Some(command.interval_us);
    foreign.priority = command.priority;
    foreign.asked = asked;
    let cut = cut_short(&foreign.counted, &command);
    foreign.cut_short = cut.or(foreign.cut_short);
    Ok(foreign)
}

fn of_histogram(text: &str) -> Result<Foreign, FormatError> {
    let columns = cyclictest_histogram::read(text)?;
    for line in ["# Min Latencies:", "# Avg Latencies:", "# Max Latencies:"] {
        if !text.lines().any(|own| own.starts_with(line)) {
            let expected = format!("the line \"{line}\" behind the bins");
            return Err(FormatError::new(text.lines().count(), expected, "the end"));
        }
    }
    let mut counted = Vec::new();
    for (number, column) in columns.into_iter().enumerate() {
        let one = of_column(number, &column);
        let listed = column.overflow_cycles.len() as u64;
        if listed > column.overflows {
            let what = format!(
                "{} overflows, and {listed} with their cycles",
                column.overflows
            );
            return Err(wrong(&one, what));
        }
        counted.push(one);
    }
    lines::check(text, &mut counted)?;
    checked(Foreign {
        program: "cyclictest",
        cut_short: uneven_lines(&counted),
        counted,
        ..Foreign::default()
    })
}

/// Like `uneven`, for a histogram's threads, whose measuring times only their lines state.
fn uneven_lines(counted: &[Counted]) -> Option<String> {
    let is_told = counted.iter().all(|one| one.interval_us.is_some());
    let empty = counted.iter().find(|one| one.count == 0);
    let most = counted.iter().map(|one| one.count).max().unwrap_or(0);
    if is_told {
        return uneven(counted);
    }
    empty.filter(|_| most > 0).map(|one| few_of(one, most))
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

fn of_jitterdebugger(results: jitterdebugger::Results) -> Result<Foreign, FormatError> {
    let system = results.sysinfo;
    if ![1, 1_000].contains(&system.resolution_in_ns) {
        let expected = "a resolution_in_ns of 1 or 1000";
        let found = system.resolution_in_ns.to_string();
        return Err(FormatError::new(1, expected, &found));
    }
    let signed = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    let counted = results.cpu.into_iter().map(|(cpu, counted)| {
        let is_any = counted.count > 0;
        // What is above the last of its bins, it counts and puts into none.
        let binned = counted.histogram.values().copied().fold(0, u64::saturating_add);
        let last = counted.histogram.keys().next_back().copied().unwrap_or(0);
        let is_above = counted.max > last;
        let mut one = Counted {
            over: counted.count.saturating_sub(binned) * u64::from(is_above),
            over_from: last.saturating_add(1),
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
        };
        let over = one.over;
        one.gap = (over > 0).then(|| {
            format!("{over} samples are longer than its interval, and have no bin: measure with a longer -i")
        });
        one
    });
    let counted: Vec<Counted> = counted.collect();
    checked(Foreign {
        program: "jitterdebugger",
        cut_short: uneven(&counted),
        system: Some(System {
            node: system.nodename,
            release: system.release,
            version: system.version,
            machine: system.machine,
        }),
        unit_ns: Some(system.resolution_in_ns),
        counted,
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
    check_time(
        &counted,
        results.overruns,
        results.period_us,
        Some(results.seconds).filter(|seconds| *seconds > 0),
    )?;
    let periods = u128::from(counted.count) + u128::from(results.overruns);
    checked(Foreign {
        program: "latmus",
        cut_short: short_of_time(&counted, periods, results.period_us, results.seconds),
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
    check_time(
        &counted,
        results.overruns,
        results.period_us,
        Some(results.seconds),
    )?;
    let is_short = |asked: &u64| u128::from(results.seconds) * 10 < u128::from(*asked) * 9;
    let cut_short = results.asked_seconds.filter(is_short);
    let seconds = results.seconds;
    let cut_short = cut_short.map(|asked| format!("{seconds} s of {asked} s"));
    let periods = u128::from(counted.count) + u128::from(results.overruns);
    let few = short_of_time(&counted, periods, results.period_us, seconds);
    checked(Foreign {
        program: "xenomai latency",
        cut_short: cut_short.or(few),
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

/// Checks samples and period against the stated time.
fn check_time(
    counted: &Counted,
    missed: u64,
    period_us: u64,
    seconds: Option<u64>,
) -> Result<(), FormatError> {
    let Some(seconds) = seconds else {
        return Ok(());
    };
    let periods = u128::from(counted.count) + u128::from(missed);
    let taken = periods * u128::from(period_us);
    if taken <= (u128::from(seconds) + 2) * 1_100_000 {
        return Ok(());
    }
    let count = counted.count;
    let what = format!("{count} samples each {period_us} us, {missed} missed, in {seconds} s");
    Err(wrong(counted, what))
}

/// Values stated in nanoseconds, and counted in bins of a microsecond or more.
struct Nanoseconds {
    variant: String,
    bin_ns: u64,
    min: Option<i64>,
    max: i64,
    mean: Option<(f64, f64)>,
}

impl Nanoseconds {
    /// Converts with bins by their numbers.
    fn counted(self, bins: Vec<(u64, u64)>, is_last_open: bool, option: &str) -> Counted {
        let bin_ns = self.bin_ns;
        let bins = bins.into_iter();
        let bins = bins.map(|(bin, count)| (bin.saturating_mul(bin_ns), count));
        self.counted_by_nanoseconds(bins.collect(), is_last_open, option)
    }

    /// Converts with bins by their lowest value; the last one is no bin if it holds larger values.
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
            gap: Some(gap),
            ..Counted::default()
        }
    }
}

/// Returns the release and the version of `Linux version 5.5.0-rc7+ (…) #45 SMP …`.
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

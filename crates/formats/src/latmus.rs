// SPDX-License-Identifier: MIT OR Apache-2.0
//! The histogram that EVL's `latmus -g FILE` writes for gnuplot (libevl, benchmarks/latmus.c).

use crate::foreign::counted::printed_mean;
use crate::{FormatError, hours_minutes_seconds, thousandths};

/// The results in the file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Results {
    /// The kernel's own description: `Linux version 5.5.0-rc7+ (…) #45 SMP PREEMPT …`.
    pub kernel: String,
    /// libevl's version.
    pub version: String,
    /// The context that was woken: `user`, `kernel`, `irq`.
    pub context: String,
    /// The CPU of the thread that was woken, if one was.
    pub cpu: Option<u32>,
    /// The nominal time between two samples, in microseconds.
    pub period_us: u64,
    /// The duration of the measurement, in seconds.
    pub seconds: u64,
    /// Periods that were missed.
    pub overruns: u64,
    /// The number of times that the thread left real time by mistake.
    pub switches: u64,
    /// The smallest latency, in nanoseconds, if it is stated.
    pub min_ns: Option<i64>,
    /// The bounds of the mean, in nanoseconds, if it is stated.
    pub mean_ns: Option<(f64, f64)>,
    /// The largest latency, in nanoseconds.
    pub max_ns: u64,
    /// The number of latencies that were counted; older versions do not state it.
    pub samples: Option<u64>,
    /// Counts of latencies by their whole microseconds.
    pub bins: Vec<(u64, u64)>,
    /// True if the last count also includes all larger latencies.
    pub has_outliers: bool,
}

/// The beginning of the file; newer versions write a capital letter.
pub const TITLE: &str = "# test started on:";

/// Reads such a file; values that it states twice must agree.
pub fn read(text: &str) -> Result<Results, FormatError> {
    let mut results = Results::default();
    let (mut titled, mut largest) = (false, false);
    let mut names: Vec<&str> = Vec::new();
    let mut shown: Vec<(usize, i64)> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let wrong = |expected: &'static str| FormatError::new(number, expected, line);
        if line.trim().is_empty() {
            continue;
        }
        if is_title(line) {
            titled = true;
        } else if !titled {
            // What it printed on the terminal before, each second.
            if let Some(rest) = line.strip_prefix("RTD|") {
                let max = rest
                    .split('|')
                    .nth(2)
                    .and_then(|max| thousandths(max.trim()));
                shown.push((
                    number,
                    max.ok_or_else(|| wrong("a largest with three decimals"))?,
                ));
            }
        } else if let Some(comment) = line.strip_prefix("# ") {
            largest |= comment.starts_with("max latency:");
            let name = comment.split_once(':').map_or(comment, |(name, _)| name);
            if NAMED.contains(&name) && names.contains(&name) {
                return Err(wrong("each of these lines once: a file holds one result"));
            }
            names.push(name);
            read_comment(&mut results, comment).ok_or_else(|| wrong("a number"))?;
        } else if results.has_outliers {
            return Err(wrong("the end, behind the bin with a +"));
        } else {
            let (bin, count) = line.split_once(' ').unwrap_or((line, ""));
            let parsed = bin.trim_end_matches('+').parse().ok();
            let parsed = parsed.zip(count.trim().parse().ok());
            results
                .bins
                .push(parsed.ok_or_else(|| wrong("a bin and its count, such as \"1 25561\""))?);
            results.has_outliers = bin.ends_with('+');
        }
    }
    let end = |expected: &'static str| FormatError::new(text.lines().count(), expected, "the end");
    if !largest {
        return Err(end("\"# max latency: 25.510\""));
    }
    let most = i64::try_from(results.max_ns).unwrap_or(i64::MAX);
    if let Some((number, max)) = shown.iter().find(|(_, max)| *max > most) {
        let expected = format!("a second within {most} ns, as max latency says");
        return Err(FormatError::new(*number, expected, &max.to_string()));
    }
    if results.bins.is_empty() {
        return Err(end("bins with their counts"));
    }
    Ok(results)
}

/// Names that occur only once.
const NAMED: [&str; 9] = [
    "context",
    "sampling period",
    "thread affinity",
    "duration (hhmmss)",
    "OVERRUNS",
    "min latency",
    "avg latency",
    "max latency",
    "sample count",
];

/// Returns true if the histogram begins at this line.
pub fn is_title(line: &str) -> bool {
    line.get(..TITLE.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(TITLE))
}

/// Reads a line of the head; lines that state nothing about the measurement are skipped.
fn read_comment(results: &mut Results, comment: &str) -> Option<()> {
    if comment.starts_with("Linux version ") {
        comment.clone_into(&mut results.kernel);
    }
    let Some((name, value)) = comment.split_once(':') else {
        return Some(());
    };
    let value = value.trim();
    match name {
        "libevl version" => value.clone_into(&mut results.version),
        "context" => value.clone_into(&mut results.context),
        "sampling period" => {
            results.period_us = value.strip_suffix(" microseconds")?.parse().ok()?;
        }
        "thread affinity" => {
            let cpu = value.strip_prefix("CPU")?;
            results.cpu = Some(cpu.trim_end_matches("-noisol").parse().ok()?);
        }
        "duration (hhmmss)" => results.seconds = hours_minutes_seconds(value)?,
        "OVERRUNS" => results.overruns = value.parse().ok()?,
        "IN-BAND SWITCHES" => results.switches = value.parse().ok()?,
        "min latency" => results.min_ns = Some(thousandths(value)?),
        "avg latency" => {
            let (low, high) = printed_mean(value)?;
            results.mean_ns = Some((low * 1e3, high * 1e3));
        }
        "max latency" => results.max_ns = u64::try_from(thousandths(value)?).ok()?,
        "sample count" => results.samples = Some(value.parse().ok()?),
        _ => {}
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From the source of libevl, with what the terminal shows before.
    const WRITTEN: &str = "\
RTD|      1.158|      1.275|      2.974|       0|     0|      1.135|      4.188
# test started on: Fri Jan 24 15:36:34 2020
# Linux version 5.5.0-rc7+ (rpm@cobalt) (gcc version 9.2.1) #45 SMP PREEMPT IRQPIPE
# BOOT_IMAGE=bzImage rw console=ttyS0,115200 isolcpus=1 evl.oob_cpus=1
# libevl version: evl.0 -- #a3ceb80 (2020-01-22 11:57:11 +0100)
# sampling period: 1000 microseconds
# clock gravity: 2000i 3500k 3500u
# clocksource: tsc
# context: user
# thread priority: 90
# thread affinity: CPU1-noisol
# C-state restricted
# duration (hhmmss): 00:01:12
# peak (hhmmss): 00:00:47
# OVERRUNS: 2
# min latency: 0.205
# avg latency: 2.097
# max latency: 4.510
# sample count: 71975
0 95
1 25561
2 46310
3 0
4 9
";

    #[test]
    fn a_histogram_is_read_with_its_head() {
        let results = read(WRITTEN).unwrap();
        assert_eq!(results.bins.len(), 5);
        assert_eq!(results.bins[2], (2, 46_310));
        assert_eq!((results.max_ns, results.samples), (4_510, Some(71_975)));
        assert_eq!((results.period_us, results.seconds), (1_000, 72));
        assert_eq!((results.cpu, results.overruns), (Some(1), 2));
        assert_eq!(results.context, "user");
        assert!(results.kernel.starts_with("Linux version 5.5.0-rc7+"));
        assert!(results.version.starts_with("evl.0"));
        assert!(!results.has_outliers);
        let newer = WRITTEN.replace("# test started", "# Test started");
        assert_eq!(read(&newer).unwrap(), results);
        assert!(
            read(&WRITTEN.replace("\n4 9", "\n4+ 9"))
                .unwrap()
                .has_outliers
        );
    }

    #[test]
    fn damage_is_told_with_its_line() {
        let line = |from: &str, to: &str| read(&WRITTEN.replacen(from, to, 1)).unwrap_err().line;
        assert_eq!(line("max latency: 4.510", "max latency: 4.51"), 18);
        assert_eq!(line("max latency: 4.510", "max latency: -4.510"), 18);
        assert_eq!(line("1 25561", "1 25x61"), 21);
        assert_eq!(line("1 25561", "25561"), 21);
        assert_eq!(line("CPU1", "one"), 11);
        assert_eq!(line("00:01:12", "72 s"), 13);
        assert_eq!(line("1 25561", "1+ 25561"), 22);
        assert_eq!(line("# max latency: 4.510\n", ""), 23);
        let head = WRITTEN.split("\n0 95").next().unwrap();
        assert!(read(head).unwrap_err().to_string().contains("bins"));
    }
}

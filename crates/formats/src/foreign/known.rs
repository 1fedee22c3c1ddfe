// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is known, and holds no latencies that could be judged: with what would.

use crate::FormatError;
use crate::cyclictest_lines::ValueLine;

/// How a text that is known shows itself.
enum Shows {
    /// A line begins with this.
    Begins(&'static str),
    /// A line has this in it.
    Has(&'static str),
}

use Shows::{Begins, Has};

/// What is known: how it shows itself, what it is, and what would be read.
const KNOWN: &[(Shows, &str, &str)] = &[
    (
        Has("RTLA osnoise"),
        "rtla osnoise",
        "measure latencies with rtla timerlat hist",
    ),
    (
        Has("Operating System Noise"),
        "rtla osnoise top",
        "measure latencies with rtla timerlat hist",
    ),
    (
        Has("Timer Latency"),
        "rtla timerlat top, which shows no histogram",
        "measure with rtla timerlat hist",
    ),
    (
        Has("hit stop tracing"),
        "the analysis of rtla timerlat alone",
        "keep the histogram above it, too",
    ),
    (
        Begins("oslat V"),
        "oslat, which measures gaps in a busy loop",
        "measure with cyclictest -h 1000",
    ),
    (
        Has("hwlatdetect:"),
        "hwlatdetect, which measures gaps of the hardware",
        "measure with cyclictest -h 1000",
    ),
    (
        Has("RTAI Testsuite"),
        "RTAI's latency, in nanoseconds and without a histogram",
        "only Xenomai's latency -h is read",
    ),
    (
        Begins("RTH|    lat min|    ovl min"),
        "RTAI's latency, in nanoseconds and without a histogram",
        "only Xenomai's latency -h is read",
    ),
    (
        Begins("# tracer:"),
        "a trace of the kernel's",
        "explain it with punctual explain",
    ),
    (
        Has("cyclic: sched"),
        "stress-ng --cyclic",
        "measure with cyclictest -h 1000",
    ),
    (
        Begins("Running in"),
        "hackbench, which measures no latency",
        "measure with cyclictest -h 1000",
    ),
    (
        Begins("Maximum:"),
        "oslat, which measures gaps in a busy loop",
        "measure with cyclictest -h 1000",
    ),
    (
        Has(", Cycles "),
        "a test of rt-tests without a histogram (pmqtest, ptsematest, svsematest, sigwaittest)",
        "measure with cyclictest -h 1000",
    ),
];

/// An error that names what the text is, where that is known.
pub fn known(text: &str) -> Option<FormatError> {
    for (number, line) in (1..).zip(text.lines()) {
        let shows = |(shows, ..): &&(Shows, &str, &str)| match shows {
            Begins(start) => line.starts_with(start),
            Has(part) => line.contains(part),
        };
        if let Some((_, what, instead)) = KNOWN.iter().find(shows) {
            return Some(not_usable(number, what, instead, line));
        }
    }
    let of = |is_it: &dyn Fn(&str) -> bool| (1..).zip(text.lines()).find(|(_, line)| is_it(line));
    if let Some((number, line)) = of(&is_rtla_row) {
        let what = "rtla timerlat hist with --no-header or --no-index";
        return Some(not_usable(number, what, "measure without these", line));
    }
    if let Some((number, line)) = of(&|line| line.starts_with("T:")) {
        let what = "lines of another test than cyclictest (signaltest, cyclicdeadline)";
        let instead = "measure with cyclictest -h 1000";
        return Some(not_usable(number, what, instead, line));
    }
    let (number, line) = of(&|line| {
        ValueLine::read(1, line).is_ok()
            || (line.starts_with("Thread ") && line.contains(" Interval:"))
    })?;
    let what = "what cyclictest -v prints, each value by itself";
    let instead = "measure with -h 1000 and without -v";
    Some(not_usable(number, what, instead, line))
}

/// The summary of rtla's histogram, or its bins.
fn is_rtla_row(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let first = words.next().unwrap_or_default();
    matches!(first, "over:" | "count:") && words.next().is_some()
}

/// The programs of rt-tests whose JSON is known.
const RT_TESTS: [&str; 9] = [
    "oslat",
    "signaltest",
    "pmqtest",
    "ptsematest",
    "svsematest",
    "sigwaittest",
    "cyclicdeadline",
    "deadline_test",
    "hwlatdetect",
];

/// An error that names the program of rt-tests which wrote a JSON file, where it is no
/// cyclictest.
pub fn of_rt_tests(command: &str) -> Option<FormatError> {
    let program = command.split_whitespace().next()?.rsplit('/').next()?;
    let known = RT_TESTS.iter().find(|known| **known == program)?;
    let what = format!("the results of {known}");
    Some(not_usable(
        1,
        &what,
        "measure with cyclictest -h 1000 --json",
        command,
    ))
}

fn not_usable(number: usize, what: &str, instead: &str, line: &str) -> FormatError {
    let expected = format!("a histogram of latencies (this is {what}: {instead})");
    FormatError::new(number, expected, line)
}

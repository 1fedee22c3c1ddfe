// SPDX-License-Identifier: MIT OR Apache-2.0
//! Known texts without latencies that could be judged, and the alternatives that have them.

use crate::FormatError;
use crate::cyclictest_histogram;
use crate::cyclictest_lines::ValueLine;

/// The way to recognise a known text.
enum Shows {
    /// A line begins with this text.
    Begins(&'static str),
    /// A line contains this text.
    Has(&'static str),
}

use Shows::{Begins, Has};

/// Known texts: how to recognise each, its description, and what would be read instead.
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
        Has("ovl min|"),
        "RTAI's or LinuxCNC's latency, in nanoseconds and without a histogram",
        "only Xenomai's latency -h is read",
    ),
    (
        Begins("# tracer: function_graph"),
        "a function_graph trace, which says how long functions took, and not who was late",
        "record events: trace-cmd record -e sched -e irq -e timer",
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
    (
        Has(", inner:"),
        "the report of hwlatdetect, which measures gaps of the hardware",
        "measure with cyclictest -h 1000",
    ),
    (
        Has("Hardware-related Noise"),
        "rtla hwnoise",
        "measure latencies with rtla timerlat hist",
    ),
    (
        Has("Runtime ms"),
        "perf sched latency, which has a mean and a maximum of each thread",
        "measure with cyclictest -h 1000",
    ),
    (
        Has("sch delay"),
        "perf sched timehist, which has each switch by itself",
        "measure with cyclictest -h 1000",
    ),
    (
        Has(": sched:sched_"),
        "what perf script prints, which says nothing of interrupts and preemption off",
        "measure with cyclictest -h 1000",
    ),
    (
        Has("# Running 'sched/"),
        "perf bench sched, which measures no latency",
        "measure with cyclictest -h 1000",
    ),
    (
        Has(": count     distribution"),
        "a histogram of bcc (runqlat, cpudist), whose bins are powers of two",
        "measure with cyclictest -h 1000",
    ),
    (
        Has("|@@@@"),
        "a histogram of bpftrace, whose bins are powers of two",
        "measure with cyclictest -h 1000",
    ),
    (
        Has("<rteval"),
        "rteval's XML",
        "run the cyclictest that it names yourself, with -h 1000 --json=FILE",
    ),
    (
        Has("rteval (v"),
        "a report of rteval",
        "run the cyclictest that it names yourself, with -h 1000 --json=FILE",
    ),
    (
        Has("loop processing time:"),
        "queuelat, which measures how long a packet's work takes",
        "measure with cyclictest -h 1000",
    ),
    (
        Begins("Parent pid:"),
        "rt-migrate-test, which tests where threads are moved to",
        "measure with cyclictest -h 1000",
    ),
    (
        Begins("forktest#"),
        "ssdd, which tests ptrace and measures no latency",
        "measure with cyclictest -h 1000",
    ),
    (
        Begins("FATAL:"),
        "an error of a program of rt-tests: nothing was measured",
        "measure with cyclictest -h 1000",
    ),
    (
        Has("Total inversion performed"),
        "pi_stress, which looks for deadlocks and measures no latency",
        "measure with cyclictest -h 1000",
    ),
    (
        Has("-max-latency "),
        "what LAVA's tests keep of cyclictest: its extremes",
        "keep the file of --json or --histfile beside them",
    ),
    (
        Begins("Max-Latency:"),
        "zyclictest of Zephyr",
        "of Zephyr's threads nothing is read",
    ),
    (
        Has("bogo ops"),
        "stress-ng's metrics, which count work and measure no latency",
        "measure with cyclictest -h 1000",
    ),
    (
        Has("stress-ng-version:"),
        "stress-ng's metrics, which count work and measure no latency",
        "measure with cyclictest -h 1000",
    ),
];

/// Returns the description of a known text: `oslat, which measures gaps in a busy loop`.
pub fn name_of(text: &str) -> Option<&'static str> {
    let lines = || text.lines();
    let is_in = |shows: &Shows| match shows {
        Begins(start) => lines().any(|line| line.starts_with(start)),
        Has(part) => lines().any(|line| line.contains(part)),
    };
    let known = KNOWN.iter().find(|(shows, ..)| is_in(shows));
    known.map(|(_, what, _)| *what)
}

/// Returns an error that describes the text, if it is known.
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
    let is_of_screen = |line: &str| line.starts_with("T:") && line.contains(" A:");
    if let Some((number, line)) = of(&is_of_screen) {
        let what = "what jitterdebugger shows while it measures";
        return Some(not_usable(
            number,
            what,
            "keep its results.json (-o DIR)",
            line,
        ));
    }
    let is_cyclictests =
        |line: &str| line.starts_with("T:") && line.contains("P:") && line.contains("I:");
    if let Some((number, line)) = of(&is_cyclictests) {
        let expected = "a line \"T: 0 (…) P:… I:… C:… Min:… Act:… Avg:… Max:…\" with whole numbers";
        return Some(FormatError::new(number, expected, line));
    }
    if let Some((number, line)) = of(&|line| line.starts_with("T:")) {
        let what = "lines of another test than cyclictest (signaltest, cyclicdeadline)";
        let instead = "measure with cyclictest -h 1000";
        return Some(not_usable(number, what, instead, line));
    }
    if let Some((number, line)) = of(&is_behind_something) {
        let expected = "lines as the program wrote them (other words stand before each: cut them)";
        return Some(FormatError::new(number, expected, line));
    }
    if let Some((number, line)) = of(&cyclictest_histogram::is_foot) {
        let what = "the foot of cyclictest's histogram without its rows";
        return Some(not_usable(number, what, "keep the whole file", line));
    }
    let (number, line) = of(&|line| {
        ValueLine::read(1, line).is_ok()
            || (line.starts_with("Thread ") && line.contains(" Interval:"))
    })?;
    let what = "what cyclictest -v prints, each value by itself";
    let instead = "measure with -h 1000 and without -v";
    Some(not_usable(number, what, instead, line))
}

/// Returns true if a known beginning of a line follows a log's own words.
fn is_behind_something(line: &str) -> bool {
    let known = [
        "# Histogram",
        "# Min Latencies:",
        "# RTLA timerlat",
        "RTD| ",
        "T: 0 (",
    ];
    let mut places = known.iter().filter_map(|known| line.find(known));
    !line.starts_with('#') && places.any(|place| place > 0)
}

/// Returns true for the summary of rtla's histogram, or its bins.
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

/// Returns an error that names the program of rt-tests that wrote a JSON file, unless it is
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

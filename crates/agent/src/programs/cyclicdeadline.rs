// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cyclicdeadline`, with the options and the output of rt-tests'. It measures with the code of
//! the probe `timer`, policy `deadline`.

use std::fs;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::sync::Barrier;
use std::thread;

use anyhow::{Context as _, Result, anyhow, bail};
use jiff::Timestamp;
use lexopt::Parser;
use punctual_formats::cyclicdeadline_json as json;
use punctual_formats::cyclictest_json::{Results, Thread};
use punctual_model::Nanos;

use super::getopt::{self, Given, Known, Refused};
use super::live::{Common, Limit, Live, Shared, Table, whole_micros};
use super::{Program, cpus, results};
use crate::probes::timer;
use crate::rt;
use crate::sys::signal;
use crate::threads::{self, Over, Started};

/// This program.
pub const PROGRAM: Program = Program {
    name: "cyclicdeadline",
    run,
};

const HELP: &str = "\
cyclicdeadline of Punctual, with the options and the output of rt-tests'.

Usage: cyclicdeadline [OPTIONS]

  -b, --breaktrace USEC  end, and stop the kernel's tracer, at a longer value
  -D, --duration TIME    end after TIME: 90, 10m, 2h, 1d
  -i, --interval USEC    the first thread's period, and deadline; default 1000
      --json FILE        results as JSON to FILE
  -q, --quiet            print only a summary
  -s, --step USEC        each thread's period is longer by this; default 500
  -t, --threads N        SCHED_DEADLINE threads; default 1
      --tracemark        with -b: write a mark into the trace
  -h, --help             this text

A thread may run for 60 % of its period, less where there are more threads than
CPUs. A value is how long after its period's begin a thread runs.
";

const REFUSED: &[Refused] = &[("-a", AFFINITY), ("-c", AFFINITY), ("--affinity", AFFINITY)];

const AFFINITY: &str = "the kernel admits deadline threads to all CPUs of a cpuset: make one with \
    cpuset.cpus.partition = root, and start this in it";

const KNOWN: Known = Known {
    program: "cyclicdeadline",
    longs: &[
        "breaktrace",
        "duration",
        "help",
        "interval",
        "json",
        "quiet",
        "step",
        "threads",
        "tracemark",
    ],
    refused: REFUSED,
};

/// The interval of looks at the threads, and of updates of the screen.
const PACE: Nanos = Nanos::from_millis(10);

/// The request of the command line.
#[derive(Debug, PartialEq, Eq)]
struct Options {
    threads: usize,
    interval_us: u64,
    step_us: u64,
    duration: Option<Nanos>,
    break_above: Option<u64>,
    mark: bool,
    json: Option<PathBuf>,
    quiet: bool,
}

/// One thread's part.
struct Part {
    runtime: Nanos,
    period: Nanos,
    shared: Shared,
}

fn parse(arguments: &mut Parser) -> Result<Option<Options>> {
    let mut options = Options {
        threads: 1,
        interval_us: 1_000,
        step_us: 500,
        duration: None,
        break_above: None,
        mark: false,
        json: None,
        quiet: false,
    };
    while let Some(given) = KNOWN.next(arguments)? {
        match given {
            Given::Short('b') | Given::Long("breaktrace") => {
                options.break_above = Some(getopt::within(arguments, "-b", 1, 1 << 40)?);
            }
            Given::Short('D') | Given::Long("duration") => {
                options.duration = getopt::duration(arguments, "-D")?;
            }
            Given::Short('i') | Given::Long("interval") => {
                options.interval_us = getopt::within(arguments, "-i", 100, 4_000_000)?;
            }
            Given::Short('s') | Given::Long("step") => {
                options.step_us = getopt::within(arguments, "-s", 0, 1_000_000)?;
            }
            Given::Short('t') | Given::Long("threads") => {
                options.threads = getopt::within(arguments, "-t", 1, 1_024)? as usize;
            }
            Given::Short('q') | Given::Long("quiet") => options.quiet = true,
            Given::Long("tracemark") => options.mark = true,
            Given::Long("json") => options.json = Some(arguments.value()?.into()),
            Given::Short('h') | Given::Long("help") => return Ok(None),
            // The original passes over words that belong to no option.
            Given::Operand(_) => {}
            Given::Short(_) | Given::Long(_) => return Err(KNOWN.unexpected(&given)),
        }
    }
    let last = options.interval_us + options.step_us * (options.threads as u64 - 1);
    if last > 4_000_000 {
        bail!("the last thread's period would be {last} us: the kernel takes 4000000 at most");
    }
    Ok(Some(options))
}

/// Returns the per cent of its period that a thread may run, as in the original.
fn share(threads: usize, cpus: usize) -> u64 {
    if threads > cpus {
        (cpus * 80 / threads) as u64
    } else {
        60
    }
}

fn run(arguments: &mut Parser) -> Result<()> {
    let (command, started) = (std::env::args().collect::<Vec<_>>(), Timestamp::now());
    let mut out = io::stdout().lock();
    let Some(options) = parse(arguments)? else {
        return Ok(out.write_all(HELP.as_bytes())?);
    };
    signal::hold(&signal::ENDING)?;
    rt::lock_memory().map_err(|why| anyhow!("{why}"))?;
    let online = cpus::read("online")?.len();
    let share = share(options.threads, online);
    let part = |index: usize| {
        let period = (options.interval_us + options.step_us * index as u64) as i64;
        Part {
            runtime: Nanos::from_micros(period * share as i64 / 100),
            period: Nanos::from_micros(period),
            shared: Shared::new(false),
        }
    };
    let parts: Vec<Part> = (0..options.threads).map(part).collect();
    writeln!(out, "Using all CPUS")?;
    for part in &parts {
        let micros = |time: Nanos| time.0 / 1_000;
        writeln!(
            out,
            "interval: {}:{}",
            micros(part.runtime),
            micros(part.period)
        )?;
    }
    let limit = |above| Limit::new(whole_micros(above), options.mark);
    let common = Common {
        limit: options.break_above.map(limit).transpose()?,
        ..Common::default()
    };
    let barrier = Barrier::new(parts.len());
    thread::scope(|scope| -> Result<()> {
        let (options, common, barrier) = (&options, &common, &barrier);
        let _over = Over(&common.over);
        let live = move |part| measure(options, part, common, barrier);
        let threads = threads::start_all(scope, None, &parts, live);
        let threads = threads.map_err(|why| anyhow!("{why}"))?;
        let mut shown = false;
        while !common.is_over() && !threads.iter().any(Started::is_finished) {
            if signal::wait_for(&signal::ENDING, PACE)?.is_some() {
                common.end();
            } else if !options.quiet {
                show(&parts, shown, &mut out)?;
                shown = true;
            }
        }
        common.end();
        for thread in threads {
            thread.join().map_err(|why| anyhow!("{why}"))??;
        }
        show(&parts, shown, &mut out)
    })?;
    tell_break(&common, &mut out)?;
    if let Some(path) = &options.json {
        let results = Results {
            threads: threads(&parts),
            ..results::now(&command.join(" "), started)
        };
        fs::write(path, json::write(&results)).with_context(|| path.display().to_string())?;
    }
    Ok(())
}

/// Runs one thread for its whole life.
fn measure(options: &Options, part: &Part, common: &Common, barrier: &Barrier) -> Result<()> {
    let mut live = Live::new(common, &part.shared, Table::default(), options.duration);
    // All threads are there before one of them is SCHED_DEADLINE.
    barrier.wait();
    let (_, periods) =
        rt::prepare_deadline_thread(part.runtime, part.period).map_err(|why| anyhow!("{why}"))?;
    let (runtime, period) = (part.runtime, part.period);
    timer::sample_periods(&mut live, periods, runtime, period, u64::MAX)
        .map_err(|why| anyhow!("{why}"))
}

/// Shows each thread's line, over the lines that were shown before.
fn show(parts: &[Part], again: bool, out: &mut impl io::Write) -> Result<()> {
    if again {
        write!(out, "\x1b[{}A", parts.len())?;
    }
    for (part, index) in parts.iter().zip(0..) {
        out.write_all(line(index, part).as_bytes())?;
    }
    Ok(out.flush()?)
}

/// Formats `T: 0 ( 1234) I:1000 C:   1000 Min:      3 Act:    5 Avg:    4 Max:       9`.
fn line(index: usize, part: &Part) -> String {
    let seen = part.shared.seen();
    let micros = |time: Nanos| time.0 / 1_000;
    let average = seen
        .sum
        .0
        .checked_div(seen.cycles as i64)
        .map_or(0, |mean| mean / 1_000);
    format!(
        "T:{index:2} ({:5}) I:{} C:{:7} Min:{:7} Act:{:5} Avg:{average:5} Max:{:8}\n",
        part.shared.tid.load(std::sync::atomic::Ordering::Relaxed),
        micros(part.period),
        seen.cycles,
        micros(seen.min.unwrap_or_default()),
        micros(seen.act),
        micros(seen.max),
    )
}

fn tell_break(common: &Common, out: &mut impl io::Write) -> Result<()> {
    let order = std::sync::atomic::Ordering::Relaxed;
    let (thread, value) = (common.broken.0.load(order), common.broken.1.load(order));
    if thread != 0 {
        writeln!(out, "# Break thread: {thread}")?;
        writeln!(out, "# Break value: {}", value / 1_000)?;
    }
    Ok(())
}

fn threads(parts: &[Part]) -> Vec<Thread> {
    let micros = |time: Nanos| (time.0 / 1_000).unsigned_abs();
    let thread = |part: &Part| {
        let seen = part.shared.seen();
        Thread {
            cycles: seen.cycles,
            min: micros(seen.min.unwrap_or_default()),
            max: micros(seen.max),
            avg: seen.sum.as_micros_f64() / seen.cycles.max(1) as f64,
            ..Thread::default()
        }
    };
    parts.iter().map(thread).collect()
}

#[cfg(test)]
mod tests {
    use punctual_model::Nanos;

    use super::*;
    use crate::sink::Sink as _;

    fn options(words: &[&str]) -> Result<Options> {
        parse(&mut Parser::from_args(words)).map(|options| options.expect("no --help"))
    }

    #[test]
    fn the_command_line_is_that_of_the_original() {
        let found = options(&[
            "-t2",
            "-i",
            "2000",
            "--step=100",
            "-D",
            "1m",
            "-q",
            "-b",
            "50",
        ]);
        let expected = Options {
            threads: 2,
            interval_us: 2_000,
            step_us: 100,
            duration: Some(Nanos(60_000_000_000)),
            break_above: Some(50),
            mark: false,
            json: None,
            quiet: true,
        };
        assert_eq!(found.unwrap(), expected);
        assert_eq!((share(2, 2), share(4, 2), share(1, 8)), (60, 40, 60));
    }

    #[test]
    fn what_is_wrong_or_not_offered_is_named() {
        let error = |words: &[&str]| options(words).unwrap_err().to_string();
        assert!(error(&["-a", "0"]).contains("cpuset"));
        assert!(error(&["-t", "9", "-i", "4000000"]).contains("4000000 at most"));
        assert!(error(&["-i", "0"]).contains("-i 0"));
        assert!(error(&["--nonsense"]).contains("--nonsense"));
    }

    #[test]
    fn a_thread_has_a_line_of_the_originals_form() {
        let part = Part {
            runtime: Nanos::from_micros(600),
            period: Nanos::from_micros(1_000),
            shared: Shared::new(false),
        };
        let common = Common::default();
        let mut live = Live::new(&common, &part.shared, Table::default(), None);
        for value in [3_999, 9_000, 5_000] {
            live.record(Nanos::ZERO, Nanos(value));
        }
        part.shared
            .tid
            .store(1_234, std::sync::atomic::Ordering::Relaxed);
        let expected =
            "T: 0 ( 1234) I:1000 C:      3 Min:      3 Act:    5 Avg:    5 Max:       9\n";
        assert_eq!(line(0, &part), expected);
        let of_thread = &threads(&[part])[0];
        assert_eq!((of_thread.cycles, of_thread.min, of_thread.max), (3, 3, 9));
    }
}

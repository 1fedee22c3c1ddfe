// SPDX-License-Identifier: MIT OR Apache-2.0
//! `realfeel`: the jitter of a periodic interrupt, as a histogram file of Andrew Morton's
//! program of that name, or of its successor. It measures with the code of the probe.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::thread;

use anyhow::{Context as _, Result, anyhow, bail};
use lexopt::{Arg, Parser, ValueExt as _};
use punctual_formats::realfeel::{self as format, Unit};
use punctual_model::Nanos;

use super::Program;
use super::getopt::{self, Refused};
use crate::probes::realfeel::{Measured, Realfeel};
use crate::sink::Sink;
use crate::sys::signal;

/// This program.
pub const PROGRAM: Program = Program {
    name: "realfeel",
    run,
};

const HELP: &str = "\
realfeel of Punctual: the jitter of a periodic interrupt, as a histogram file.

Usage: realfeel [OPTIONS] FILE

      --samples N    intervals to measure; without it, one minute of them
      --hertz HZ     frequency, a power of two from 64 to 8192; default 2048
      --unit ms|us   bins of 0.1 ms, as the original of 2001, or of 0.1 us from
                     -50 us on, as its successor of 2004 (default)
      --help         this text

Ctrl-C ends it early; the file is written all the same.
";

const REFUSED: &[Refused] = &[(
    "-h",
    "--help prints the options, --hertz sets the frequency",
)];

/// Without a number of samples.
const MINUTE_MS: u32 = 60_000;
/// With one: as long as it takes, up to a day.
const DAY_MS: u32 = 86_400_000;

#[derive(Debug)]
struct Options {
    measurement: Realfeel,
    unit: Unit,
    file: PathBuf,
}

fn parse(arguments: &mut Parser) -> Result<Option<Options>> {
    let mut measurement = Realfeel {
        samples: 1_000_000_000,
        duration_ms: MINUTE_MS,
        ..Realfeel::default()
    };
    let (mut unit, mut file) = (Unit::default(), None);
    while let Some(argument) = arguments.next()? {
        match argument {
            Arg::Long("samples") => {
                measurement.samples = arguments.value()?.parse()?;
                measurement.duration_ms = DAY_MS;
            }
            Arg::Long("hertz") => measurement.hertz = arguments.value()?.parse()?,
            Arg::Long("unit") => {
                unit = match arguments.value()?.string()?.as_str() {
                    "ms" => Unit::Milliseconds,
                    "us" => Unit::Microseconds,
                    other => bail!("--unit {other}: must be ms or us"),
                }
            }
            Arg::Long("help") => return Ok(None),
            Arg::Value(word) if file.is_none() => file = Some(PathBuf::from(word)),
            other => return Err(getopt::unknown("realfeel", &other, REFUSED)),
        }
    }
    measurement.check().map_err(|why| anyhow!("{why}"))?;
    Ok(Some(Options {
        measurement,
        unit,
        file: file.context("no histogram file is named; see realfeel --help")?,
    }))
}

fn run(arguments: &mut Parser) -> Result<()> {
    let mut out = io::stdout().lock();
    let Some(options) = parse(arguments)? else {
        return Ok(out.write_all(HELP.as_bytes())?);
    };
    // Before the first sample: what cannot be written shall not be measured for a minute.
    let shown = || options.file.display().to_string();
    let mut file = File::create(&options.file).with_context(shown)?;
    signal::hold(&signal::ENDING)?;
    writeln!(out, "{} Hz", options.measurement.hertz)?;
    let (counts, measured) = measure(&options)?;
    file.write_all(format::write(&counts.bins).as_bytes())
        .with_context(shown)?;
    write!(out, "{}", told(&counts, &measured))?;
    Ok(())
}

/// Measures until there are enough, or a signal asks for the end.
fn measure(options: &Options) -> Result<(Counts, Measured)> {
    let over = std::sync::atomic::AtomicBool::new(false);
    let counts = Counts::new(options.unit);
    let sink = Ended {
        counts,
        over: &over,
    };
    let measured = thread::scope(|scope| {
        let measuring = scope.spawn(|| options.measurement.measure_into(Nanos::ZERO, sink));
        while !measuring.is_finished() {
            if signal::wait_for(&signal::ENDING, Nanos::from_millis(50))?.is_some() {
                over.store(true, std::sync::atomic::Ordering::Relaxed);
            }
        }
        let joined = measuring.join();
        joined.map_err(|_| anyhow!("the starting thread has panicked"))
    })?;
    let (sink, measured) = measured.map_err(|why| anyhow!("{why}"))?;
    Ok((sink.counts, measured))
}

fn told(counts: &Counts, measured: &Measured) -> String {
    let micros = Nanos::as_micros_f64;
    let extremes = counts.extremes.map_or_else(String::new, |(min, max)| {
        format!(", jitter {:.1} to {:.1} us", micros(min), micros(max))
    });
    let mut text = format!("{} intervals{extremes}\n", counts.count);
    if counts.past > 0 {
        let _ = writeln!(text, "{} past the histogram's end", counts.past);
    }
    if counts.missed > 0 {
        let _ = writeln!(text, "{} interrupts were missed", counts.missed);
    }
    if let Some(why) = measured.settings.get("no_rtc") {
        let _ = writeln!(text, "interrupts of a timerfd: {why}");
    }
    text
}

/// A histogram of jitters; nothing is ever written past its end.
#[derive(Debug)]
struct Counts {
    unit: Unit,
    bins: Vec<u64>,
    past: u64,
    missed: u64,
    count: u64,
    extremes: Option<(Nanos, Nanos)>,
}

impl Counts {
    fn new(unit: Unit) -> Self {
        let mut bins = vec![1; format::BINS];
        bins.fill(0);
        Self {
            unit,
            bins,
            past: 0,
            missed: 0,
            count: 0,
            extremes: None,
        }
    }
}

/// Takes jitters until it is told to end.
struct Ended<'a> {
    counts: Counts,
    over: &'a std::sync::atomic::AtomicBool,
}

impl Sink for Ended<'_> {
    fn record(&mut self, _at: Nanos, value: Nanos) {
        let counts = &mut self.counts;
        let bin = counts.unit.bin(value.0, counts.bins.len());
        match bin.and_then(|bin| counts.bins.get_mut(bin)) {
            Some(count) => *count += 1,
            None => counts.past += 1,
        }
        counts.count += 1;
        let (min, max) = counts.extremes.unwrap_or((value, value));
        counts.extremes = Some((min.min(value), max.max(value)));
    }

    fn miss(&mut self, periods: u64) {
        self.counts.missed += periods;
    }

    fn is_over(&self) -> bool {
        self.over.load(std::sync::atomic::Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(words: &[&str]) -> Result<Options> {
        parse(&mut Parser::from_args(words)).map(|options| options.expect("no --help"))
    }

    #[test]
    fn the_command_line_is_that_of_the_original() {
        let options = options(&["--samples", "100", "--hertz", "64", "rt.hist"]).unwrap();
        assert_eq!(
            (options.measurement.samples, options.measurement.hertz),
            (100, 64)
        );
        assert_eq!(options.unit, Unit::Microseconds);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let error = |words: &[&str]| options(words).unwrap_err().to_string();
        assert!(error(&[]).contains("no histogram file"));
        assert!(error(&["--hertz", "1000", "f"]).contains("power of two"));
        assert!(error(&["--unit", "s", "f"]).contains("ms or us"));
        assert!(error(&["f", "g"]).contains('g'));
    }

    #[test]
    fn every_jitter_is_in_a_bin_or_counted_as_past_the_end() {
        let over = std::sync::atomic::AtomicBool::new(false);
        let counts = Counts::new(Unit::Milliseconds);
        let mut sink = Ended {
            counts,
            over: &over,
        };
        for jitter in [0, 99_999, 999_999_999, 1_000_000_000, i64::MAX, i64::MIN] {
            sink.record(Nanos::ZERO, Nanos(jitter));
        }
        let counts = sink.counts;
        assert_eq!((counts.bins[0], counts.bins[9_999], counts.past), (3, 1, 2));
        assert_eq!(counts.bins.iter().sum::<u64>() + counts.past, counts.count);
    }
}

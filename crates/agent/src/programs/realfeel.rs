// SPDX-License-Identifier: MIT OR Apache-2.0
//! `realfeel`: the jitter of a periodic interrupt, one on a line, and as a histogram file, as
//! Andrew Morton's program of that name and its successor write them. It measures with the
//! code of the probe.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::thread;

use anyhow::{Context as _, Result, anyhow, bail};
use lexopt::{Parser, ValueExt as _};
use punctual_formats::realfeel::{self as format, Unit};
use punctual_model::Nanos;

use super::Program;
use super::getopt::{Given, Known, Refused};
use super::live::{Common, Live, Shared, Table};
use crate::probes::realfeel::{Measured, Realfeel};
use crate::sink::Sink;
use crate::sys::{signal, tsc};
use crate::threads::{self, Over};

/// This program.
pub const PROGRAM: Program = Program {
    name: "realfeel",
    run,
};

const HELP: &str = "\
realfeel of Punctual: the jitter of a periodic interrupt, in ms, one on a line.

Usage: realfeel [OPTIONS] [FILE]

FILE gets a histogram in the end.

      --samples N    intervals to measure; without it, one minute of them
      --hertz HZ     frequency, a power of two from 64 to 8192; default 2048
      --unit ms|us   bins of 0.1 ms, as the original of 2001 (default), or of
                     0.1 us from -50 us on, as its successor of 2004
      --help         this text

Ctrl-C ends it early; the file is written all the same.
";

const REFUSED: &[Refused] = &[(
    "-h",
    "--help prints the options, --hertz sets the frequency",
)];

/// The duration in seconds if no number of samples is given.
const MINUTE: u64 = 60;

/// The time between two looks at the jitters that wait to be printed.
const PACE: Nanos = Nanos::from_millis(50);

#[derive(Debug)]
struct Options {
    measurement: Realfeel,
    unit: Unit,
    file: Option<PathBuf>,
}

const KNOWN: Known = Known {
    program: "realfeel",
    longs: &["help", "hertz", "samples", "unit"],
    refused: REFUSED,
};

fn parse(arguments: &mut Parser) -> Result<Option<Options>> {
    let mut measurement = Realfeel::default();
    let (mut unit, mut file, mut samples) = (Unit::default(), None, None);
    while let Some(given) = KNOWN.next(arguments)? {
        match given {
            Given::Long("samples") => samples = Some(arguments.value()?.parse()?),
            Given::Long("hertz") => measurement.hertz = arguments.value()?.parse()?,
            Given::Long("unit") => {
                unit = match arguments.value()?.string()?.as_str() {
                    "ms" => Unit::Milliseconds,
                    "us" => Unit::Microseconds,
                    other => bail!("--unit {other}: must be ms or us"),
                }
            }
            Given::Long("help") => return Ok(None),
            Given::Operand(word) if file.is_none() => file = Some(PathBuf::from(word)),
            other => return Err(KNOWN.unexpected(&other)),
        }
    }
    measurement.samples = samples.unwrap_or(MINUTE * u64::from(measurement.hertz));
    measurement.check().map_err(|why| anyhow!("{why}"))?;
    Ok(Some(Options {
        measurement,
        unit,
        file,
    }))
}

fn run(arguments: &mut Parser) -> Result<()> {
    let mut out = io::stdout().lock();
    let Some(options) = parse(arguments)? else {
        return Ok(out.write_all(HELP.as_bytes())?);
    };
    // Before the first sample: what cannot be written shall not be measured for a minute.
    let shown = || {
        format!(
            "{}",
            options.file.as_deref().unwrap_or("".as_ref()).display()
        )
    };
    let file = options.file.as_ref().map(File::create);
    let file = file.transpose().with_context(shown)?;
    signal::hold(&signal::ENDING)?;
    let (hertz, has_file) = (options.measurement.hertz, file.is_some());
    out.write_all(format::write_head(tsc::khz(), hertz, has_file).as_bytes())?;
    let (counts, measured) = measure(&options, &mut out)?;
    if let Some(mut file) = file {
        file.write_all(format::write(&counts.bins).as_bytes())
            .with_context(shown)?;
    }
    // Not among the jitters, which may go to a file that is plotted.
    eprint!("{}", told(&counts, &measured));
    Ok(())
}

/// Measures until there are enough jitters, or a signal asks for the end, and prints them as
/// they come.
fn measure(options: &Options, out: &mut impl io::Write) -> Result<(Counts, Measured)> {
    let (common, shared) = (Common::default(), Shared::new(true));
    let sink = Counted {
        counts: Counts::new(options.unit),
        live: Live::new(&common, &shared, Table::default(), None),
    };
    let mut printer = Printer {
        has_file: options.file.is_some(),
        next: 0,
        lost: 0,
    };
    let measured = thread::scope(|scope| {
        let _over = Over(&common.over);
        let measure = || options.measurement.measure_into(Nanos::ZERO, sink);
        let measuring = threads::start(scope, measure).map_err(|why| anyhow!("{why}"))?;
        let mut output = Ok(());
        while !measuring.is_finished() {
            if signal::wait_for(&signal::ENDING, PACE)?.is_some() || output.is_err() {
                common.end();
            }
            output = output.and_then(|()| printer.print(&shared, out));
        }
        let joined = measuring.join();
        output.and_then(|()| printer.print(&shared, out))?;
        joined.map_err(|why| anyhow!("{why}"))
    })?;
    let (sink, measured) = measured.map_err(|why| anyhow!("{why}"))?;
    let mut counts = sink.counts;
    counts.lost = printer.lost;
    Ok((counts, measured))
}

/// Prints each jitter once.
struct Printer {
    has_file: bool,
    /// The number of the first jitter that is not printed yet.
    next: u64,
    /// The number of jitters that were replaced by later ones before they were printed.
    lost: u64,
}

impl Printer {
    fn print(&mut self, shared: &Shared, out: &mut impl io::Write) -> io::Result<()> {
        for (number, jitter, _) in shared.values(self.next) {
            self.lost += number - self.next;
            self.next = number + 1;
            out.write_all(format::write_jitter(jitter.0, self.has_file).as_bytes())?;
        }
        out.flush()
    }
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
    if counts.lost > 0 {
        let _ = writeln!(text, "{} jitters could not be printed in time", counts.lost);
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
    lost: u64,
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
            lost: 0,
            count: 0,
            extremes: None,
        }
    }
}

/// Counts jitters, and passes them on for printing, until it is told to end.
struct Counted<'a> {
    counts: Counts,
    live: Live<'a>,
}

impl Counts {
    fn record(&mut self, value: Nanos) {
        let bin = self.unit.bin(value.0, self.bins.len());
        match bin.and_then(|bin| self.bins.get_mut(bin)) {
            Some(count) => *count += 1,
            None => self.past += 1,
        }
        self.count += 1;
        let (min, max) = self.extremes.unwrap_or((value, value));
        self.extremes = Some((min.min(value), max.max(value)));
    }
}

impl Sink for Counted<'_> {
    fn record(&mut self, at: Nanos, value: Nanos) {
        self.counts.record(value);
        self.live.record(at, value);
    }

    fn miss(&mut self, periods: u64) {
        self.counts.missed += periods;
    }

    fn is_over(&mut self) -> bool {
        self.live.is_over()
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
        assert_eq!(options.unit, Unit::Milliseconds);
        let minute = super::tests::options(&["--hertz", "64", "--unit", "us"]).unwrap();
        assert_eq!(
            (minute.measurement.samples, minute.unit),
            (3_840, Unit::Microseconds)
        );
        assert!(minute.file.is_none());
    }

    #[test]
    fn what_is_wrong_is_named() {
        let error = |words: &[&str]| options(words).unwrap_err().to_string();
        assert!(error(&["--hertz", "1000", "f"]).contains("power of two"));
        assert!(error(&["--unit", "s", "f"]).contains("ms or us"));
        assert!(error(&["f", "g"]).contains('g'));
    }

    #[test]
    fn every_jitter_is_in_a_bin_or_counted_as_past_the_end() {
        let mut counts = Counts::new(Unit::Milliseconds);
        for jitter in [0, 99_999, 999_999_999, 1_000_000_000, i64::MAX, i64::MIN] {
            counts.record(Nanos(jitter));
        }
        assert_eq!((counts.bins[0], counts.bins[9_999], counts.past), (3, 1, 2));
        assert_eq!(counts.bins.iter().sum::<u64>() + counts.past, counts.count);
    }
}

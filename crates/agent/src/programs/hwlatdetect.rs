// SPDX-License-Identifier: MIT OR Apache-2.0
//! `hwlatdetect`, with the options and the output of rt-tests': gaps that the hardware causes.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::PathBuf;

use anyhow::{Context as _, Result, anyhow, bail};
use lexopt::{Parser, ValueExt as _};
use punctual_formats::hwlat::{self as format, Gap};
use punctual_model::{CpuId, Nanos, Reason};

use super::getopt::{self, Given, Known};
use super::{Program, cpus};
use crate::hwlat::{Detector, Look};
use crate::sys::signal;
use crate::sys::time::now;

/// This program.
pub const PROGRAM: Program = Program {
    name: "hwlatdetect",
    run,
};

const HELP: &str = "\
hwlatdetect of Punctual, with the options and the output of rt-tests'.

Usage: hwlatdetect [OPTIONS]

      --duration TIME     for so long: 90, 10m, 2h, 1d; default 2m
      --threshold TIME    what is longer is a latency: 10us (the default), 1ms
      --hardlimit TIME    what is longer is a failure; default the threshold
      --window TIME       from one sample to the next; default 1s
      --width TIME        for so long of it is looked; default 500ms
      --report FILE       samples to FILE
      --cpu-list CPUS     where: 1,3-5; default all, in turn
      --watch             print samples as they come
      --quiet             print nothing else
      --debug             as always
  -h, --help              this text

A number alone is microseconds. The exit status is 1 where a latency is above
the hard limit. Settings of the tracer are turned back at the end.
";

const KNOWN: Known = Known {
    program: "hwlatdetect",
    longs: &[
        "cpu-list",
        "debug",
        "duration",
        "hardlimit",
        "help",
        "quiet",
        "report",
        "threshold",
        "watch",
        "width",
        "window",
    ],
    refused: &[],
};

/// The time between two looks at the tracer's notes.
const PACE: Nanos = Nanos::from_millis(100);

/// The request of the command line; times in microseconds.
#[derive(Debug, PartialEq, Eq)]
struct Options {
    seconds: u64,
    threshold_us: u64,
    hard_us: Option<u64>,
    window_us: u64,
    width_us: u64,
    report: Option<PathBuf>,
    cpus: Option<(String, Vec<CpuId>)>,
    watch: bool,
    quiet: bool,
}

fn parse(arguments: &mut Parser) -> Result<Option<Options>> {
    let mut options = Options {
        seconds: 120,
        threshold_us: 10,
        hard_us: None,
        window_us: 1_000_000,
        width_us: 500_000,
        report: None,
        cpus: None,
        watch: false,
        quiet: false,
    };
    let (mut window, mut width) = (None, None);
    while let Some(given) = KNOWN.next(arguments)? {
        match given {
            Given::Long("duration") => {
                let text = arguments.value()?.string()?;
                options.seconds = getopt::seconds("--duration", &text)?;
                if options.seconds == 0 {
                    bail!("--duration {text}: expected 1 s or more");
                }
            }
            Given::Long("threshold") => {
                options.threshold_us = micros(&arguments.value()?.string()?)?;
            }
            Given::Long("hardlimit") => {
                options.hard_us = Some(micros(&arguments.value()?.string()?)?);
            }
            Given::Long("window") => window = Some(micros(&arguments.value()?.string()?)?),
            Given::Long("width") => width = Some(micros(&arguments.value()?.string()?)?),
            Given::Long("report") => options.report = Some(arguments.value()?.into()),
            Given::Long("cpu-list") => {
                let list = arguments.value()?.string()?;
                options.cpus = Some((list.clone(), cpus::online_among(&list)?));
            }
            Given::Long("watch") => options.watch = true,
            Given::Long("quiet") => options.quiet = true,
            Given::Long("debug") => {}
            Given::Short('h') | Given::Long("help") => return Ok(None),
            other => return Err(KNOWN.unexpected(&other)),
        }
    }
    // As in the original, what was not said gives way.
    options.window_us = window.unwrap_or(options.window_us);
    options.width_us = width.unwrap_or(options.width_us.min(options.window_us / 2));
    if window.is_none() && options.width_us > options.window_us {
        options.window_us = options.width_us * 2;
    }
    if options.width_us > options.window_us || options.width_us == 0 {
        bail!(
            "--width {} us: must be from 1 to the window of {} us",
            options.width_us,
            options.window_us
        );
    }
    Ok(Some(options))
}

impl Options {
    fn look(&self) -> Look<'_> {
        Look {
            threshold_us: self.threshold_us,
            window_us: self.window_us,
            width_us: self.width_us,
            cpus: self.cpus.as_ref().map(|(_, cpus)| cpus.as_slice()),
        }
    }
}

#[expect(clippy::needless_pass_by_value)] // as map_err has it
fn wrong(why: Reason) -> anyhow::Error {
    anyhow!("{why}")
}

/// Reads `10us`, `5ms`, `1s`, or a number of microseconds.
fn micros(text: &str) -> Result<u64> {
    let text = text.trim();
    let units = [("us", 1), ("ms", 1_000), ("s", 1_000_000)];
    let found = units
        .iter()
        .find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, *factor)));
    let (digits, factor) = found.unwrap_or((text, 1));
    let number = digits.parse::<u64>().ok();
    let micros = number.and_then(|number| number.checked_mul(factor));
    micros
        .filter(|micros| *micros <= 3_600_000_000)
        .with_context(|| format!("\"{text}\" is no time: 10us, 5ms, 1s"))
}

fn run(arguments: &mut Parser) -> Result<()> {
    let mut out = io::stdout().lock();
    let Some(options) = parse(arguments)? else {
        return Ok(out.write_all(HELP.as_bytes())?);
    };
    // Before the first sample: what cannot be written shall not be looked for so long.
    let report = options.report.as_ref().map(File::create).transpose();
    let report = report.with_context(|| format!("{:?}", options.report))?;
    signal::hold(&signal::ENDING)?;
    let mut detector = Detector::start(&options.look()).map_err(wrong)?;
    if !options.quiet {
        out.write_all(head(&options).as_bytes())?;
        out.flush()?;
    }
    let gaps = watch(&options, &mut detector, &mut out)?;
    drop(detector);
    if !options.quiet {
        out.write_all(tail(&gaps).as_bytes())?;
    }
    let lines: String = gaps.iter().map(format::write).collect();
    if let Some(mut file) = report {
        file.write_all(lines.as_bytes())?;
        let path = options.report.as_deref().unwrap_or("".as_ref()).display();
        writeln!(out, "report saved to {path} ({} samples)", gaps.len())?;
    }
    if !options.watch {
        out.write_all(lines.as_bytes())?;
    }
    let hard = options.hard_us.unwrap_or(options.threshold_us);
    let largest = gaps.iter().map(Gap::largest_us).max().unwrap_or(0);
    if largest > hard {
        bail!("a latency of {largest} us is above the hard limit of {hard} us");
    }
    Ok(())
}

/// Gathers the tracer's notes, until the time is over or the user requests the end.
fn watch(options: &Options, detector: &mut Detector, out: &mut impl io::Write) -> Result<Vec<Gap>> {
    let until = now() + Nanos(options.seconds as i64 * 1_000_000_000);
    let mut gaps = Vec::new();
    let mut is_over = false;
    while !is_over {
        let asked = signal::wait_for(&signal::ENDING, PACE)?.is_some();
        is_over = asked || now() >= until;
        for gap in detector.take().map_err(wrong)? {
            if options.watch {
                out.write_all(format::write(&gap).as_bytes())?;
                out.flush()?;
            }
            gaps.push(gap);
        }
    }
    Ok(gaps)
}

fn head(options: &Options) -> String {
    let none = || "None".to_owned();
    let list = options
        .cpus
        .as_ref()
        .map_or_else(none, |(list, _)| list.clone());
    let report = options
        .report
        .as_ref()
        .map_or_else(none, |path| path.display().to_string());
    format!(
        "hwlatdetect:  test duration {} seconds\n   detector: tracer\n   parameters:\n        \
         CPU list:          {list}\n        Latency threshold: {}us\n        Sample window:     \
         {}us\n        Sample width:      {}us\n     Non-sampling period:  {}us\n        \
         Output File:       {report}\n\nStarting test\n",
        options.seconds,
        options.threshold_us,
        options.window_us,
        options.width_us,
        options.window_us - options.width_us
    )
}

fn tail(gaps: &[Gap]) -> String {
    let largest = gaps.iter().map(Gap::largest_us).max();
    let largest = largest.map_or("Below threshold".to_owned(), |us| format!("{us}us"));
    format!(
        "test finished\nMax Latency: {largest}\nSamples recorded: {0}\n\
         Samples exceeding threshold: {0}\n",
        gaps.len()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(words: &[&str]) -> Result<Options> {
        parse(&mut Parser::from_args(words)).map(|options| options.expect("no --help"))
    }

    #[test]
    fn the_command_line_is_that_of_the_original() {
        let words = [
            "--duration=1m",
            "--threshold",
            "5us",
            "--hardlimit=1ms",
            "--watch",
        ];
        let found = options(&words).unwrap();
        assert_eq!((found.seconds, found.threshold_us), (60, 5));
        assert_eq!((found.hard_us, found.watch), (Some(1_000), true));
        // What was not said gives way to what was.
        let narrow = options(&["--window=200ms"]).unwrap();
        assert_eq!((narrow.window_us, narrow.width_us), (200_000, 100_000));
        let wide = options(&["--width", "2s"]).unwrap();
        assert_eq!((wide.window_us, wide.width_us), (4_000_000, 2_000_000));
        let error = |words: &[&str]| options(words).unwrap_err().to_string();
        assert!(error(&["--window=1ms", "--width=2ms"]).contains("1 to the window of 1000 us"));
        assert!(error(&["--threshold", "5x"]).contains("5x"));
        assert!(error(&["--cpu-list", "65535"]).contains("cpu65535"));
    }

    #[test]
    fn it_says_what_it_does_and_what_it_found() {
        let said = head(&options(&["--duration", "10"]).unwrap());
        assert!(said.contains("        Latency threshold: 10us\n"), "{said}");
        assert!(
            said.contains("     Non-sampling period:  500000us\n"),
            "{said}"
        );
        assert!(tail(&[]).contains("Max Latency: Below threshold\nSamples recorded: 0\n"));
        let gap = Gap {
            at: "1.5".into(),
            inner_us: 11,
            outer_us: 12,
        };
        assert!(tail(&[gap]).contains("Max Latency: 12us\nSamples recorded: 1\n"));
    }
}

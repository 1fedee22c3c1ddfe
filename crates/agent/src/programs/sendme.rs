// SPDX-License-Identifier: MIT OR Apache-2.0
//! `sendme`: signal travel between a program and the driver `backfire`, with the options and
//! the output of OSADL's. It measures with the code of the probe `signal`.

use std::io::{self, Write as _};
use std::thread;

use anyhow::{Context as _, Result, anyhow, bail};
use lexopt::Parser;
use punctual_formats::sendme::{self as format, Travel, Way};
use punctual_model::{CpuId, Nanos};

use super::getopt::{self, Given, Known};
use super::live::{Common, Limit, Live, Seen, Shared, Table};
use super::tracing::Tracing;
use super::{Program, cpus};
use crate::probes::signal::{self as probe, Backfire};
use crate::rt;
use crate::sys::sched::{self, Policy};
use crate::sys::{memory, signal, time};
use crate::threads::{self, Over};

/// This program.
pub const PROGRAM: Program = Program {
    name: "sendme",
    run,
};

const HELP: &str = "\
sendme of Punctual, with the options and the output of OSADL's.
How long a signal takes from a program to the driver backfire, and back.

Usage: sendme [OPTIONS]

  -a, --affinity [CPU]   bind to this CPU; without a number to the current one
  -b, --breaktrace USEC  end, and stop the kernel's tracer, when a way back
                         takes longer
  -i, --interval USEC    period, default 1000
  -l, --loops N          number of signals; default 0, until Ctrl-C
  -p, --priority PRIO    SCHED_FIFO with this priority; default 0, SCHED_OTHER
      --help             this text
";

const KNOWN: Known = Known {
    program: "sendme",
    longs: &[
        "affinity",
        "breaktrace",
        "help",
        "interval",
        "loops",
        "priority",
    ],
    refused: &[],
};

/// The interval at which the lines are updated.
const PACE: Nanos = Nanos::from_millis(100);

#[derive(Debug)]
struct Options {
    cpu: Option<CpuId>,
    break_above: Option<Nanos>,
    interval: Nanos,
    loops: u64,
    priority: u8,
    help: bool,
}

fn parse(arguments: &mut Parser) -> Result<Options> {
    let mut options = Options {
        cpu: None,
        break_above: None,
        interval: Nanos::from_millis(1),
        loops: 0,
        priority: 0,
        help: false,
    };
    while let Some(given) = KNOWN.next(arguments)? {
        match given {
            Given::Short('a') | Given::Long("affinity") => {
                options.cpu = Some(match getopt::optional(arguments)? {
                    Some(cpu) => one_cpu(&cpu)?,
                    None => sched::current_cpu(),
                });
            }
            Given::Short('b') | Given::Long("breaktrace") => {
                let micros = getopt::within(arguments, "-b", 1, 1_000_000_000)?;
                options.break_above = Some(Nanos::from_micros(micros as i64));
            }
            Given::Short('i') | Given::Long("interval") => {
                let micros = getopt::within(arguments, "-i", 50, 1_000_000_000)?;
                options.interval = Nanos::from_micros(micros as i64);
            }
            Given::Short('l') | Given::Long("loops") => {
                options.loops = getopt::number(arguments, "-l")?;
            }
            Given::Short('p') | Given::Long("priority") => {
                options.priority = getopt::within(arguments, "-p", 0, 99)? as u8;
            }
            Given::Short('h' | '?') | Given::Long("help") => options.help = true,
            other => return Err(KNOWN.unexpected(&other)),
        }
    }
    Ok(options)
}

fn one_cpu(text: &str) -> Result<CpuId> {
    match cpus::online_among(text)?.as_slice() {
        [cpu] => Ok(*cpu),
        _ => bail!("-a {text}: one CPU is wanted"),
    }
}

fn run(arguments: &mut Parser) -> Result<()> {
    let options = parse(arguments)?;
    if options.help {
        return Ok(io::stdout().write_all(HELP.as_bytes())?);
    }
    let limit = match options.break_above {
        Some(above) => Some(Limit {
            above,
            tracing: Some(Tracing::open(false)?),
        }),
        None => None,
    };
    signal::hold(&signal::ENDING)?;
    memory::lock_all().context("memory cannot be locked: run as root, or raise RLIMIT_MEMLOCK")?;
    // Only the way back has the limit.
    let commons = [
        Common::default(),
        Common {
            limit,
            ..Common::default()
        },
    ];
    let ways = [Shared::new(false), Shared::new(false)];
    thread::scope(|scope| {
        let _over = Over(&commons[1].over);
        let measuring = threads::start(scope, || measure(&options, &commons, &ways));
        let measuring = measuring.map_err(|why| anyhow!("{why}"))?;
        let mut out = io::stdout().lock();
        let mut shown = Ok(());
        while shown.is_ok() && !measuring.is_finished() {
            if signal::wait_for(&signal::ENDING, PACE)?.is_some() {
                break;
            }
            if ways[1].seen().cycles > 0 && !measuring.is_finished() {
                shown = write!(out, "{}{}", lines(&ways), format::AGAIN).and_then(|()| out.flush());
            }
        }
        commons[1].end();
        measuring.join().map_err(|why| anyhow!("{why}"))??;
        shown?;
        out.write_all(lines(&ways).as_bytes())?;
        Ok(())
    })
}

fn measure(options: &Options, commons: &[Common; 2], ways: &[Shared; 2]) -> Result<()> {
    let prepare = || {
        if let Some(cpu) = options.cpu {
            rt::pin(cpu)?;
        }
        if options.priority > 0 {
            rt::schedule(Policy::Fifo, options.priority)?;
        }
        Backfire::open()
    };
    let advice = "; load it: modprobe backfire (kmod/README.md of Punctual says how to build it)";
    let backfire = prepare().map_err(|why| {
        let advice = why.missing_module().map_or("", |_| advice);
        anyhow!("{why}{advice}")
    })?;
    let live = |way: usize| Live::new(&commons[way], &ways[way], Table::default(), None);
    let samples = if options.loops == 0 {
        u64::MAX
    } else {
        options.loops
    };
    let first = time::now() + options.interval;
    let range = (first, options.interval, samples);
    let measured = probe::sample((&mut live(0), &mut live(1)), &backfire, range, None);
    measured.context("/dev/backfire")
}

fn lines(ways: &[Shared; 2]) -> String {
    let [to, from] = [ways[0].seen(), ways[1].seen()];
    format::write(&Travel {
        samples: from.cycles,
        to: way(to),
        from: way(from),
    })
}

fn way(seen: Seen) -> Way {
    // To the nearest, so that the mean lies between its extremes.
    let micros = |time: Nanos| ((time.0.max(0) + 500) / 1_000) as u64;
    let mean = seen.sum.0 / i64::try_from(seen.cycles).unwrap_or(i64::MAX).max(1);
    Way {
        min: micros(seen.min.unwrap_or_default()),
        cur: micros(seen.act),
        avg: micros(Nanos(mean)),
        max: micros(seen.max),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(words: &[&str]) -> Result<Options> {
        parse(&mut Parser::from_args(words))
    }

    #[test]
    fn the_published_command_line_is_understood() {
        let options = options(&["-i200", "-a", "-p99", "-l10000000"]).unwrap();
        assert_eq!(options.interval, Nanos::from_micros(200));
        assert_eq!((options.priority, options.loops), (99, 10_000_000));
        assert!(options.cpu.is_some());
    }

    #[test]
    fn the_mean_lies_between_the_extremes() {
        let seen = Seen {
            cycles: 50,
            sum: Nanos(846 * 50),
            min: Some(Nanos(846)),
            act: Nanos(846),
            max: Nanos(846),
            smis: 0,
        };
        let way = way(seen);
        assert_eq!((way.min, way.cur, way.avg, way.max), (1, 1, 1, 1));
    }

    #[test]
    fn what_is_out_of_range_is_named_with_the_range() {
        let error = options(&["-p", "100"]).unwrap_err().to_string();
        assert!(
            error.contains("-p 100") && error.contains("0 to 99"),
            "{error}"
        );
        assert!(options(&["-i", "0"]).is_err() && options(&["-a", "60000"]).is_err());
        assert!(options(&["--nonsense"]).is_err());
    }
}

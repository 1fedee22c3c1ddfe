//! `hackbench`, with the options and the output of rt-tests'.

use std::io::{self, Write as _};

use anyhow::{Context as _, Result, bail};
use lexopt::{Arg, Parser, ValueExt as _};
use punctual_formats::hackbench::{self as format, Work};

use super::Program;
use super::getopt::{self, Refused};
use crate::hackbench_workers::{self, Ipc, Job, Mode};

/// This program.
pub const PROGRAM: Program = Program {
    name: "hackbench",
    run,
};

const HELP: &str = "\
hackbench of Punctual, with the options and the output of rt-tests'.

Usage: hackbench [OPTIONS] [GROUPS]

  -p, --pipe          pipes instead of sockets
  -P, --process       processes as workers (default)
  -T, --threads       threads as workers
  -g, --groups N      groups of senders and receivers (default 10)
  -f, --fds N         senders, and receivers, in a group (default 20)
  -l, --loops N       messages from each sender to each receiver (default 100)
  -s, --datasize N    bytes in a message (default 100)
  -F, --fifo          SCHED_FIFO 1 for the main thread
      --nanoseconds   print the time in nanoseconds too
      --messages      print how many messages were passed, also after SIGTERM
  -h, --help          this text
";

const REFUSED: &[Refused] = &[
    ("-i", "messages travel by Unix sockets or pipes (-p)"),
    ("--inet", "messages travel by Unix sockets or pipes (-p)"),
];

/// What the command line asks for.
#[derive(Debug, Default)]
struct Options {
    job: Job,
    nanoseconds: bool,
    help: bool,
}

fn run(arguments: &mut Parser) -> Result<()> {
    let options = parse(arguments)?;
    let mut out = io::stdout().lock();
    if options.help {
        return Ok(out.write_all(HELP.as_bytes())?);
    }
    let job = &options.job;
    let work = Work {
        threads: job.mode == Mode::Thread,
        groups: job.groups,
        fds: job.fds,
        loops: job.loops,
        bytes: job.size,
    };
    out.write_all(format::write_work(&work).as_bytes())?;
    out.flush()?;
    let outcome = hackbench_workers::run(job)?;
    if job.tell {
        writeln!(out, "Messages: {}", outcome.messages)?;
    }
    let elapsed = outcome
        .elapsed
        .context("a worker was ended before its work was done")?;
    if options.nanoseconds {
        writeln!(out, "Nanoseconds: {}", elapsed.0)?;
    }
    out.write_all(format::write_time(elapsed.0 as u64).as_bytes())?;
    Ok(())
}

fn parse(arguments: &mut Parser) -> Result<Options> {
    let mut options = Options::default();
    let job = &mut options.job;
    while let Some(argument) = arguments.next()? {
        match argument {
            Arg::Short('p') | Arg::Long("pipe") => job.ipc = Ipc::Pipe,
            Arg::Short('P') | Arg::Long("process" | "processes") => job.mode = Mode::Process,
            Arg::Short('T') | Arg::Long("threads") => job.mode = Mode::Thread,
            Arg::Short('g') | Arg::Long("groups") => job.groups = arguments.value()?.parse()?,
            Arg::Short('f') | Arg::Long("fds") => job.fds = arguments.value()?.parse()?,
            Arg::Short('l') | Arg::Long("loops") => job.loops = arguments.value()?.parse()?,
            Arg::Short('s') | Arg::Long("datasize") => job.size = arguments.value()?.parse()?,
            Arg::Short('F') | Arg::Long("fifo") => job.fifo = true,
            Arg::Short('h') | Arg::Long("help") => options.help = true,
            Arg::Long("nanoseconds") => options.nanoseconds = true,
            Arg::Long("messages") => job.tell = true,
            // `hackbench 25`, as before there were options.
            Arg::Value(word) => job.groups = word.parse()?,
            other => return Err(getopt::unknown("hackbench", &other, REFUSED)),
        }
    }
    if job.groups == 0 || job.fds == 0 || job.loops == 0 || job.size == 0 {
        bail!("groups, fds, loops and datasize must be at least 1");
    }
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(words: &[&str]) -> Result<Job> {
        parse(&mut Parser::from_args(words)).map(|options| options.job)
    }

    #[test]
    fn groups_are_told_by_an_option_or_alone() {
        assert_eq!(job(&["25"]).unwrap().groups, 25);
        assert_eq!(job(&["-g25", "-T"]).unwrap().groups, 25);
        assert_eq!(job(&["-pl", "7"]).unwrap().loops, 7);
        assert!(job(&["-g", "0"]).is_err() && job(&["-g", "x"]).is_err());
    }

    #[test]
    fn what_there_is_not_is_refused_by_name() {
        let error = job(&["--inet"]).unwrap_err().to_string();
        assert!(error.contains("--inet") && error.contains("-p"), "{error}");
        assert!(
            job(&["--nonsense"])
                .unwrap_err()
                .to_string()
                .contains("--nonsense")
        );
    }
}

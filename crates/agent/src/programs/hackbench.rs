// SPDX-License-Identifier: MIT OR Apache-2.0
//! `hackbench`, with the options and the output of rt-tests'.

use std::io::{self, Write as _};

use anyhow::{Context as _, Result, anyhow, bail};
use lexopt::{Arg, Parser, ValueExt as _};
use punctual_formats::hackbench::{self as format, Work};

use super::Program;
use super::getopt;
use crate::hackbench_workers::{self, Ipc, Job, Mode};
use crate::loads;

/// This program.
pub const PROGRAM: Program = Program {
    name: "hackbench",
    run,
};

const HELP: &str = "\
hackbench of Punctual, with the options and the output of rt-tests'.

Usage: hackbench [OPTIONS] [GROUPS [process|thread [LOOPS]]]

  -i, --inet          TCP connections instead of Unix sockets
  -p, --pipe          pipes instead of sockets
  -P, --process       processes as workers (default)
  -T, --threads       threads as workers
  -g, --groups N      groups of senders and receivers (default 10)
  -f, --fds N         senders, and receivers, in a group (default 20)
  -l, --loops N       messages from each sender to each receiver (default 100)
  -s, --datasize N    bytes in a message (default 100)
  -F, --fifo          SCHED_FIFO 1 for the main thread
      --nanoseconds   print the time in nanoseconds too
  -h, --help          this text
";

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
    let messages = loads::own_counter().context("the file that counts its messages")?;
    let elapsed = hackbench_workers::run(job, messages)?
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
    let mut words = 0;
    while let Some(argument) = arguments.next()? {
        match argument {
            Arg::Short('i') | Arg::Long("inet") => job.ipc = Ipc::Inet,
            Arg::Short('p') | Arg::Long("pipe") => job.ipc = Ipc::Pipe,
            Arg::Short('P') | Arg::Long("process" | "processes") => job.mode = Mode::Process,
            Arg::Short('T') | Arg::Long("threads") => job.mode = Mode::Thread,
            Arg::Short('g') | Arg::Long("groups") => job.groups = count(arguments, "--groups")?,
            Arg::Short('f') | Arg::Long("fds") => job.fds = count(arguments, "--fds")?,
            Arg::Short('l') | Arg::Long("loops") => job.loops = count(arguments, "--loops")?,
            Arg::Short('s') | Arg::Long("datasize") => job.size = count(arguments, "--datasize")?,
            Arg::Short('F') | Arg::Long("fifo") => job.fifo = true,
            Arg::Short('h') | Arg::Long("help") => options.help = true,
            Arg::Long("nanoseconds") => options.nanoseconds = true,
            Arg::Value(word) => {
                positional(job, words, &word.string()?)?;
                words += 1;
            }
            other => return Err(getopt::unknown("hackbench", &other, &[])),
        }
    }
    Ok(options)
}

/// A number of which there must be at least one.
fn count<T: TryFrom<u64>>(arguments: &mut Parser, name: &str) -> Result<T> {
    let number = getopt::within(arguments, name, 1, i32::MAX as u64)?;
    T::try_from(number).map_err(|_| anyhow!("{name} {number}: too many"))
}

/// `hackbench 2 process 100`, as before there were options: groups, mode, loops.
fn positional(job: &mut Job, index: usize, word: &str) -> Result<()> {
    let number = || {
        let number = word.parse().ok().filter(|number| *number > 0);
        number.with_context(|| format!("\"{word}\": expected a whole number from 1"))
    };
    match (index, word) {
        (0, _) => job.groups = number()?,
        (1, "process") => job.mode = Mode::Process,
        (1, "thread") => job.mode = Mode::Thread,
        (1, _) => bail!("\"{word}\": expected process or thread"),
        (2, _) => job.loops = number()?,
        _ => bail!("\"{word}\": expected no more than groups, mode and loops"),
    }
    Ok(())
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
        let old = job(&["2", "process", "100"]).unwrap();
        assert_eq!((old.groups, old.mode, old.loops), (2, Mode::Process, 100));
        assert_eq!(job(&["2", "thread"]).unwrap().mode, Mode::Thread);
    }

    #[test]
    fn what_is_wrong_is_said_once() {
        let said = |words: &[&str]| format!("{:#}", job(words).unwrap_err());
        assert!(
            said(&["-g", "0"]).contains("-groups 0: must be from 1"),
            "{}",
            said(&["-g", "0"])
        );
        let number = said(&["-g", "abc"]);
        assert_eq!(number.matches("abc").count(), 1, "{number}");
        assert_eq!(said(&["x"]), "\"x\": expected a whole number from 1");
        assert_eq!(said(&["2", "x"]), "\"x\": expected process or thread");
    }

    #[test]
    fn what_there_is_not_is_refused_by_name() {
        assert_eq!(job(&["-i"]).unwrap().ipc, Ipc::Inet);
        assert!(
            job(&["--nonsense"])
                .unwrap_err()
                .to_string()
                .contains("--nonsense")
        );
    }
}

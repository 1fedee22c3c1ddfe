// SPDX-License-Identifier: MIT OR Apache-2.0
//! `hackbench`, with the options and the output of rt-tests'.

use std::io::{self, Write as _};

use anyhow::{Context as _, Result, anyhow};
use lexopt::Parser;
use punctual_formats::hackbench::{self as format, Work};

use super::Program;
use super::getopt::{self, Given, Known};
use crate::hackbench_workers::{self, Ipc, Job, Mode};
use crate::loads;

/// This program.
pub const PROGRAM: Program = Program {
    name: "hackbench",
    run,
};

const HELP: &str = "\
hackbench of Punctual, with the options and the output of rt-tests'.

Usage: hackbench [OPTIONS]

  -i, --inet          TCP connections instead of Unix sockets
  -p, --pipe          pipes instead of sockets
  -P, --processes     processes as workers (default)
  -T, --threads       threads as workers
  -g, --groups N      groups of senders and receivers (default 10)
  -f, --fds N         senders, and receivers, in a group (default 20)
  -l, --loops N       messages from each sender to each receiver (default 100)
  -s, --datasize N    bytes in a message (default 100)
  -F, --fifo          SCHED_FIFO 1 for the main thread
      --nanoseconds   print the time in nanoseconds too
  -h, --help          this text
";

const KNOWN: Known = Known {
    program: "hackbench",
    longs: &[
        "datasize",
        "fds",
        "fifo",
        "groups",
        "help",
        "inet",
        "loops",
        "nanoseconds",
        "pipe",
        "processes",
        "threads",
    ],
    refused: &[],
};

/// The request of the command line.
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
    while let Some(given) = KNOWN.next(arguments)? {
        match given {
            Given::Short('i') | Given::Long("inet") => job.ipc = Ipc::Inet,
            Given::Short('p') | Given::Long("pipe") => job.ipc = Ipc::Pipe,
            Given::Short('P') | Given::Long("processes") => job.mode = Mode::Process,
            Given::Short('T') | Given::Long("threads") => job.mode = Mode::Thread,
            Given::Short('g') | Given::Long("groups") => job.groups = count(arguments, "--groups")?,
            Given::Short('f') | Given::Long("fds") => job.fds = count(arguments, "--fds")?,
            Given::Short('l') | Given::Long("loops") => job.loops = count(arguments, "--loops")?,
            Given::Short('s') | Given::Long("datasize") => {
                job.size = count(arguments, "--datasize")?;
            }
            Given::Short('F') | Given::Long("fifo") => job.fifo = true,
            Given::Short('h') | Given::Long("help") => options.help = true,
            Given::Long("nanoseconds") => options.nanoseconds = true,
            // The original passes over words that belong to no option.
            Given::Operand(word) => {
                eprintln!("WARN: \"{word}\" belongs to no option: passed over (-g N: groups)");
            }
            Given::Short(_) | Given::Long(_) => return Err(KNOWN.unexpected(&given)),
        }
    }
    Ok(options)
}

/// Reads a number that must be at least one.
fn count<T: TryFrom<u64>>(arguments: &mut Parser, name: &str) -> Result<T> {
    let number = getopt::within(arguments, name, 1, i32::MAX as u64)?;
    T::try_from(number).map_err(|_| anyhow!("{name} {number}: too many"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(words: &[&str]) -> Result<Job> {
        parse(&mut Parser::from_args(words)).map(|options| options.job)
    }

    #[test]
    fn groups_are_told_by_an_option_and_other_words_change_nothing() {
        assert_eq!(job(&["-g25", "-T"]).unwrap().groups, 25);
        assert_eq!(job(&["-pl", "7"]).unwrap().loops, 7);
        let told = |words: &[&str]| {
            let job = job(words).unwrap();
            (job.groups, job.mode, job.loops)
        };
        assert_eq!(told(&["25"]), (10, Mode::Process, 100));
        assert_eq!(told(&["2", "process", "10"]), (10, Mode::Process, 100));
        assert_eq!(told(&["-g", "20", "-T", "256"]), (20, Mode::Thread, 100));
        assert_eq!(told(&["-g", "3", "-l", "10", "7"]), (3, Mode::Process, 10));
        assert_eq!(told(&["--thr", "--gro=2"]), (2, Mode::Thread, 100));
    }

    #[test]
    fn options_in_one_word_are_the_first_ones_value() {
        let job = job(&["-s 100 -l 10 -g 3 -f 5"]).unwrap();
        assert_eq!(
            (job.size, job.loops, job.groups, job.fds),
            (100, 100, 10, 20)
        );
    }

    #[test]
    fn what_is_wrong_is_said_once() {
        let said = |words: &[&str]| format!("{:#}", job(words).unwrap_err());
        assert!(said(&["-g", "0"]).contains("--groups 0: must be from 1"));
        let number = said(&["-g", "abc"]);
        assert_eq!(number.matches("abc").count(), 1, "{number}");
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

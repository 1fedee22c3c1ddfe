//! The program on the target side. See `punctual-target --help`.

use std::fs;
use std::io::{self, Read, Write};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use lexopt::{Arg, Parser, ValueExt};
use punctual_model::Plan;
use punctual_target::hackbench::{self, Ipc, Job, Mode};
use punctual_target::stream::Stream;
use punctual_target::{init, session, undertaker};

const HELP: &str = "\
The target side of punctual: probes and loads in one static program.

Usage:
  punctual-target run [PLAN]           carry out a plan (TOML; standard input without PLAN)
                                       and write the record stream to standard output
  punctual-target hackbench [OPTIONS]  pass messages between groups of workers
  punctual-target turn-back            turn back settings that a killed target left turned
  punctual-target --help | --version

As process 1 of a guest it takes its plan from the virtual bench.

Options of hackbench, as in rt-tests:
  -p, --pipe          pipes instead of sockets
  -P, --process       processes as workers (default)
  -T, --threads       threads as workers
  -g, --groups N      groups of senders and receivers (default 10)
  -f, --fds N         senders, and receivers, in a group (default 20)
  -l, --loops N       messages from each sender to each receiver (default 100)
  -s, --datasize N    bytes in a message (default 100)
      --nanoseconds   print the time in nanoseconds too
      --messages      print how many messages were passed, also after SIGTERM

Example:
  printf '[[step]]\\nprobe = \"timer\"\\nsamples = 1000\\n' | punctual-target run > stream
";

fn main() -> ExitCode {
    if std::process::id() == 1 {
        init::run();
    }
    match run(&mut Parser::from_env()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("punctual-target: {error:#}");
            let usage = error.downcast_ref::<lexopt::Error>().is_some();
            ExitCode::from(if usage { 2 } else { 1 })
        }
    }
}

fn run(arguments: &mut Parser) -> Result<()> {
    match arguments.next()? {
        Some(Arg::Value(word)) if word == "run" => run_plan(arguments),
        Some(Arg::Value(word)) if word == "hackbench" => run_hackbench(arguments),
        Some(Arg::Value(word)) if word == undertaker::TURN_BACK => {
            undertaker::turn_back();
            Ok(())
        }
        Some(Arg::Value(word)) if word == undertaker::WITH_PARENT => {
            let words: Vec<_> = arguments.raw_args()?.collect();
            let program = words.first().cloned().unwrap_or_default();
            Err(undertaker::become_with_parent(&words))
                .with_context(|| program.to_string_lossy().into_owned())
        }
        Some(Arg::Short('V') | Arg::Long("version")) => {
            println!("punctual-target {}", env!("CARGO_PKG_VERSION"));
            Ok(())
        }
        Some(Arg::Short('h') | Arg::Long("help")) | None => {
            print!("{HELP}");
            Ok(())
        }
        Some(other) => Err(other.unexpected().into()),
    }
}

fn run_plan(arguments: &mut Parser) -> Result<()> {
    let mut text = String::new();
    match arguments.next()? {
        Some(Arg::Value(path)) => {
            text =
                fs::read_to_string(&path).with_context(|| path.to_string_lossy().into_owned())?;
        }
        Some(other) => return Err(other.unexpected().into()),
        None => {
            io::stdin()
                .read_to_string(&mut text)
                .context("standard input")?;
        }
    }
    let plan: Plan = toml::from_str(&text).context("the plan cannot be read")?;
    undertaker::watch().context("cannot watch for signals")?;
    session::carry_out(&plan, &mut Stream::new(io::stdout())).context("cannot write the stream")
}

fn run_hackbench(arguments: &mut Parser) -> Result<()> {
    let mut job = Job::default();
    let (mut nanoseconds, mut messages) = (false, false);
    while let Some(argument) = arguments.next()? {
        match argument {
            Arg::Short('p') | Arg::Long("pipe") => job.ipc = Ipc::Pipe,
            Arg::Short('P') | Arg::Long("process") => job.mode = Mode::Process,
            Arg::Short('T') | Arg::Long("threads") => job.mode = Mode::Thread,
            Arg::Short('g') | Arg::Long("groups") => job.groups = arguments.value()?.parse()?,
            Arg::Short('f') | Arg::Long("fds") => job.fds = arguments.value()?.parse()?,
            Arg::Short('l') | Arg::Long("loops") => job.loops = arguments.value()?.parse()?,
            Arg::Short('s') | Arg::Long("datasize") => job.size = arguments.value()?.parse()?,
            Arg::Long("nanoseconds") => nanoseconds = true,
            Arg::Long("messages") => messages = true,
            other => return Err(other.unexpected().into()),
        }
    }
    if job.groups == 0 || job.fds == 0 || job.loops == 0 || job.size == 0 {
        bail!("groups, fds, loops and datasize must be at least 1");
    }
    let outcome = hackbench::run(&job)?;
    let mut out = io::stdout().lock();
    if messages {
        writeln!(out, "Messages: {}", outcome.messages)?;
    }
    let elapsed = outcome
        .elapsed
        .context("a worker was ended before its work was done")?;
    if nanoseconds {
        writeln!(out, "Nanoseconds: {}", elapsed.0)?;
    }
    writeln!(out, "Time: {:.3}", elapsed.as_secs_f64())?;
    Ok(())
}

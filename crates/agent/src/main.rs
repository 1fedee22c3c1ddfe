// SPDX-License-Identifier: MIT OR Apache-2.0
//! The program on the target side. See `punctual-target --help`.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use lexopt::{Arg, Parser};
use punctual_agent::dma_latency::DmaLatency;
use punctual_agent::hand_over::Told;
use punctual_agent::real_machine::{self, Smis};
use punctual_agent::stream::Stream;
use punctual_agent::{board, hwlat, init, programs, session, shutdown, status_page};
use punctual_model::{Facts, Plan};

const HELP: &str = "\
The target side of punctual: probes and loads in one static program.

Usage:
  punctual-target run [PLAN]           carry out a plan (TOML; standard input without PLAN)
                                       and write the record stream to standard output
  punctual-target NAME [OPTIONS]       do as a program that is known by this name:
                                       cyclictest, hackbench, realfeel, sendme;
                                       a link of that name does the same
  punctual-target restore              restore settings that a killed target left changed
  punctual-target --help | --version

As process 1 of a guest it takes its plan from the virtual bench.

Example:
  printf '[[step]]\\nprobe = \"timer\"\\nsamples = 1000\\n' | punctual-target run > stream
";

fn main() -> ExitCode {
    let called = std::env::args_os().next().unwrap_or_default();
    // In a container any program may be process 1.
    if std::process::id() == 1 && called == "/init" {
        init::run();
    }
    let parser = &mut Parser::from_env();
    let (name, result) = match programs::called(&called) {
        Some(program) => (program.name, (program.run)(parser)),
        None => ("punctual-target", run(parser)),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever reads the output has seen enough.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{name}: {error:#}");
            let usage = error.downcast_ref::<lexopt::Error>().is_some();
            ExitCode::from(if usage { 2 } else { 1 })
        }
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let error = error.downcast_ref::<io::Error>();
    error.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

fn run(arguments: &mut Parser) -> Result<()> {
    match arguments.next()? {
        Some(Arg::Value(word)) if word == "run" => run_plan(arguments),
        Some(Arg::Value(word)) if word == shutdown::RESTORE => {
            shutdown::restore();
            Ok(())
        }
        Some(Arg::Value(word)) if word == board::BOARD => {
            board::converse(&directory(arguments)?).context("the workstation")
        }
        Some(Arg::Value(word)) if word == board::JOB => {
            board::supervise(&directory(arguments)?).context("the job")
        }
        Some(Arg::Value(word)) if word == shutdown::WITH_PARENT => {
            let words: Vec<_> = arguments.raw_args()?.collect();
            let program = words.first().cloned().unwrap_or_default();
            Err(shutdown::become_with_parent(&words))
                .with_context(|| program.to_string_lossy().into_owned())
        }
        #[cfg(feature = "wire")]
        Some(Arg::Value(word)) if word == "echo" => punctual_agent::echo::run(arguments),
        Some(Arg::Value(word)) if programs::called(&word).is_some() => {
            programs::called(&word).map_or(Ok(()), |program| (program.run)(arguments))
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

fn directory(arguments: &mut Parser) -> Result<PathBuf> {
    Ok(PathBuf::from(arguments.value()?))
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
    if let Some(file) = std::env::var_os(status_page::FILE_VARIABLE) {
        status_page::map(Path::new(&file)).with_context(|| file.to_string_lossy().into_owned())?;
    }
    shutdown::watch().context("cannot watch for signals")?;
    let (_held, told) = DmaLatency::for_run(plan.allow_idle_states);
    let mut facts = real_machine::facts();
    facts.insert("cpu_dma_latency_us".into(), told);
    let longest_gap = |name: &str| {
        plan.hwlat_s
            .map(|seconds| (name.to_owned(), hwlat::longest_gap_us(seconds)))
    };
    facts.extend(longest_gap("hwlat_before_us"));
    let smis = Smis::begin();
    let in_the_end = || {
        let mut facts = Facts::from([("smis".into(), smis.so_far())]);
        facts.extend(longest_gap("hwlat_after_us"));
        facts
    };
    let mut stream = Stream::new(io::stdout());
    match plan.tell_every_s {
        None => session::carry_out(&plan, facts, in_the_end, &mut stream),
        Some(every) => Told::every(every, stream)
            .and_then(|mut told| session::carry_out(&plan, facts, in_the_end, &mut told)),
    }
    .context("cannot write the stream")
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! `punctual-calls`: runs programs of system calls one after the other, each in a process
//! of its own that is killed with all of its children when it has ended or its time is over.

use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, anyhow};
use lexopt::{Arg, Parser, ValueExt as _};
use punctual_agent::scratch::PrivateDirectory;
use punctual_agent::sys::{marker, process};
use punctual_model::Nanos;
use rustix::process::{Pid, Signal, kill_process};

use super::interpreter::Interpreter;
use super::{Grammar, Program};
use crate::sys::{self as calls, IS_SUPPORTED, Memory};

/// The time from a program's start to the moment that all its processes share.
const SOON: Nanos = Nanos::from_millis(20);
/// The time that an external program may take to end when it is asked to.
const GRACE: Nanos = Nanos::from_millis(500);
/// The most descriptors that a program may have: systemd allows more.
const DESCRIPTORS: u64 = 65_536;

const HELP: &str = "\
Runs programs of system calls, as `punctual search` finds them, one after the other, each in a
process of its own, which is killed with all of its children.

Usage: punctual-calls [OPTIONS] PROGRAM...

  --root           as root, not as an ordinary user
  --limit-ms N     end each after so long [50]
  --settle-ms N    wait for so long behind each [20]
  --grammar TEXT   further kinds of calls (TOML)
  --marked         tell the scope where each begins and ends

Example:
  punctual-calls 'create; lock-ranges *1024; unlock-range'
";

/// The kind of a candidate.
enum Candidate {
    /// A program of system calls.
    Calls(&'static Program),
    /// An external program, with its arguments: written `run PROGRAM ARGUMENT…`.
    Command(Vec<String>),
}

/// Candidates, and the way to run them.
pub struct Batch {
    grammar: &'static Grammar,
    candidates: Vec<(String, Candidate)>,
    /// True if each begins and ends with a mark, which the scope takes for a step.
    marked: bool,
    root: bool,
    limit: Nanos,
    settle: Nanos,
}

/// Runs `punctual-calls`, with these arguments.
pub fn run(arguments: &mut Parser) -> Result<()> {
    let batch = Batch::of(arguments)?;
    if !IS_SUPPORTED {
        return Err(anyhow!("programs of system calls need a 64-bit machine"));
    }
    batch.run()
}

impl Batch {
    fn of(arguments: &mut Parser) -> Result<Self> {
        let millis = |arguments: &mut Parser| -> Result<Nanos> {
            Ok(Nanos::from_millis(
                arguments.value()?.parse::<u32>()?.into(),
            ))
        };
        let mut grammar = Grammar::default();
        let mut texts = Vec::new();
        let mut batch = Self {
            grammar: Box::leak(Box::default()),
            candidates: Vec::new(),
            marked: false,
            root: false,
            limit: Nanos::from_millis(50),
            settle: Nanos::from_millis(20),
        };
        while let Some(argument) = arguments.next()? {
            match argument {
                Arg::Long("marked") => batch.marked = true,
                Arg::Long("root") => batch.root = true,
                Arg::Long("limit-ms") => batch.limit = millis(arguments)?,
                Arg::Long("settle-ms") => batch.settle = millis(arguments)?,
                Arg::Long("grammar") => {
                    let own = Grammar::parse(&arguments.value()?.string()?);
                    grammar = grammar.with(own.map_err(|why| anyhow!("--grammar: {why}"))?);
                }
                Arg::Value(text) => texts.push(text.string()?),
                Arg::Short('h') | Arg::Long("help") => {
                    print!("{HELP}");
                    std::process::exit(0)
                }
                Arg::Short('V') | Arg::Long("version") => {
                    println!("punctual-calls {}", env!("CARGO_PKG_VERSION"));
                    std::process::exit(0)
                }
                other => return Err(other.unexpected().into()),
            }
        }
        batch.grammar = Box::leak(Box::new(grammar));
        for text in texts {
            let candidate = Candidate::read(&text, batch.grammar).map_err(|why| anyhow!(why))?;
            batch.candidates.push((text, candidate));
        }
        Ok(batch)
    }

    fn run(&self) -> Result<()> {
        process::adopt_orphans().context("orphans cannot be adopted")?;
        let mut memory = Memory::new().context("no memory for programs")?;
        let temporary = std::env::temp_dir();
        for (text, candidate) in &self.candidates {
            // Nothing may be in the buffer when the process is forked.
            let directory = PrivateDirectory::new_in(&temporary).context("no directory")?;
            calls::give_away(directory.path()).context("no directory")?;
            memory.begin(SOON);
            let told = self
                .run_one(candidate, &mut memory, directory.path())
                .with_context(|| text.clone())?;
            let mut output = io::stdout().lock();
            writeln!(output, "{told}")?;
            output.flush()?;
        }
        Ok(())
    }

    /// Runs one candidate, and reports what it did.
    fn run_one(&self, candidate: &Candidate, memory: &mut Memory, place: &Path) -> Result<String> {
        if self.marked {
            marker::step();
        }
        let begun = calls::fork(|| {
            if let Candidate::Calls(program) = candidate {
                if self.grammar.outlive(&program.calls) {
                    calls::own_ipc();
                }
            }
            if self.prepare(place).is_err() {
                return memory.not_begun();
            }
            match candidate {
                Candidate::Calls(program) => {
                    Interpreter::new(self.grammar, *memory).program(program);
                }
                Candidate::Command(words) => {
                    // It returns only where the program cannot be executed.
                    let _ = Command::new(&words[0]).args(&words[1..]).exec();
                    memory.not_begun();
                }
            }
        });
        let child = process::Pid::try_from(begun)
            .ok()
            .filter(|child| *child > 0);
        let child = child.ok_or_else(|| anyhow!("it cannot be forked"))?;
        let mut ended = calls::ends_within(child, self.limit)?;
        if let (false, Candidate::Command(_)) = (ended, candidate) {
            let leader = Pid::from_raw(child);
            leader.map(|leader| kill_process(leader, Signal::INT));
            ended = calls::ends_within(child, GRACE)?;
        }
        calls::reap();
        calls::settle(self.settle);
        if self.marked {
            marker::step();
        }
        if !memory.is_begun() {
            return Err(anyhow!("it cannot be begun"));
        }
        let (made, refused) = memory.counted();
        let how = if ended { "ended" } else { "killed" };
        Ok(format!("{how}: {made} calls, {refused} refused"))
    }

    /// Prepares a child before its program begins: it may write there, and is an ordinary user.
    fn prepare(&self, place: &Path) -> io::Result<()> {
        std::env::set_current_dir(place)?;
        // Where memory runs out it is the one to end; a kernel without that is no reason to stop.
        let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
        calls::raise_descriptors(DESCRIPTORS);
        if self.root {
            return Ok(());
        }
        calls::become_ordinary()
    }
}

impl Candidate {
    fn read(text: &str, grammar: &Grammar) -> Result<Self, String> {
        let Some(command) = text.strip_prefix("run ") else {
            let program = Box::leak(Box::new(grammar.program(text)?));
            return Ok(Self::Calls(program));
        };
        let words: Vec<String> = command.split_whitespace().map(str::to_owned).collect();
        if words.is_empty() {
            return Err(format!("expected a program, found \"{text}\""));
        }
        Ok(Self::Command(words))
    }
}

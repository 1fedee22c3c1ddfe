// SPDX-License-Identifier: MIT OR Apache-2.0
//! One worker of a load: its command, started again whenever it ends.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::ops::{AddAssign, Sub};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use punctual_model::plan::{Count, Worker};
use punctual_model::suite::ROOT_PATH;
use punctual_model::{Nanos, NotLoaded, Reason};
use rustix::pipe::{PipeFlags, pipe_with};

use super::SELF;
use super::counter::{COUNTER_VARIABLE, Counter};
use crate::shutdown;
use crate::status_page::WorkerSlot;
use crate::sys::process::{self, Group, Usage};
use crate::sys::{pipe, time};

/// The work of a worker, up to a moment or between two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// The number of times that its command was done.
    pub rounds: u64,
    /// The amount of work, in its unit.
    pub amount: u64,
    /// The CPU time that the work took.
    pub cpu: Nanos,
}

impl Done {
    pub fn is_something(&self) -> bool {
        self.amount > 0 || self.cpu > Nanos::ZERO
    }
}

impl AddAssign for Done {
    fn add_assign(&mut self, other: Self) {
        self.rounds += other.rounds;
        self.amount += other.amount;
        self.cpu += other.cpu;
    }
}

/// The work between two moments. The kernel reports usage of ended children more coarsely, but
/// that never makes a difference negative.
impl Sub for Done {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self {
            rounds: self.rounds.saturating_sub(before.rounds),
            amount: self.amount.saturating_sub(before.amount),
            cpu: (self.cpu - before.cpu).max(Nanos::ZERO),
        }
    }
}

/// The ends of the rounds that were not stopped: successful, at their limit or otherwise.
#[derive(Clone, Copy, Debug, Default)]
struct Ends {
    well: u64,
    failed: u64,
    /// The end of the last of those.
    last: Option<ExitStatus>,
}

/// The state that a worker's thread shares with those that watch and stop it.
pub struct Shared {
    stop: AtomicBool,
    /// The processes of the running round.
    pub group: Group,
    /// The ends of its rounds.
    ends: Mutex<Ends>,
    /// The work of the rounds that have ended, as far as it is known only then. It is locked while
    /// the processes of a round are collected, so that nothing is counted twice or not at all.
    ended: Mutex<Done>,
    counter: Counter,
    /// The slot that shows its progress.
    slot: WorkerSlot,
}

impl Shared {
    /// Creates the state of a worker that does not run yet.
    pub fn new(worker: &Worker) -> Result<Self, Reason> {
        let counter = Counter::new(&worker.count);
        Ok(Self {
            stop: AtomicBool::new(false),
            group: Group::new(),
            ends: Mutex::default(),
            ended: Mutex::default(),
            counter: counter.map_err(|error| format!("no memory to count in: {error}"))?,
            slot: WorkerSlot::take(),
        })
    }

    /// Prevents further rounds.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::SeqCst);
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }

    /// Says that none of its rounds succeeded, and how many there were: their output is no work.
    pub fn failure(&self) -> Option<String> {
        let ends = *self.ends.lock().unwrap_or_else(PoisonError::into_inner);
        let last = ends.last.filter(|_| ends.well == 0)?;
        let rounds = match ends.failed {
            1 => "its only round".to_owned(),
            all => format!("each of its {all} rounds, the last of them"),
        };
        Some(format!(
            "{rounds}, ended with {last} (`ignore_status = true` where that says nothing)"
        ))
    }

    fn note_end(&self, status: ExitStatus, at_limit: bool) {
        let mut ends = self.ends.lock().unwrap_or_else(PoisonError::into_inner);
        if at_limit || status.success() {
            ends.well += 1;
        } else {
            ends.failed += 1;
            ends.last = Some(status);
        }
    }

    /// Returns the work of its ended rounds. No round ends while the guard is held.
    pub fn ended(&self) -> MutexGuard<'_, Done> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns its work up to now, from the work of its ended rounds and the usage of the processes
    /// that are running.
    pub fn done(&self, ended: Done, running: Usage) -> Done {
        Done {
            rounds: ended.rounds,
            amount: ended.amount + self.counter.amount(running),
            cpu: ended.cpu + running.cpu,
        }
    }

    /// Returns true if it did something between two moments: some work in its unit, if that
    /// is seen while it is done; otherwise, if it took CPU time.
    pub fn went_on(&self, now: &Done, before: &Done) -> bool {
        let took_time = !self.counter.is_live() && now.cpu > before.cpu;
        took_time || now.amount > before.amount
    }
}

/// Runs a worker's thread: round after round, until it is stopped; returns an error if one fails.
pub fn work(worker: &Worker, shared: &Shared) -> Result<(), Reason> {
    let failed = |error| Reason::not_loaded(&worker.run.join(" "), NotLoaded::Failed, error);
    while !shared.is_stopped() {
        round(worker, shared).map_err(failed)?;
        pause(worker.pause(), shared);
    }
    Ok(())
}

/// Waits between two rounds, unless the load is stopped meanwhile.
fn pause(span: Nanos, shared: &Shared) {
    let end = time::now() + span;
    let mut left = span;
    while left > Nanos::ZERO && !shared.is_stopped() {
        thread::park_timeout(Duration::from_nanos(left.0.unsigned_abs()));
        left = end - time::now();
    }
}

/// Runs the worker's command once, to its end or to the end of the load.
fn round(worker: &Worker, shared: &Shared) -> io::Result<()> {
    let mut command = command(&worker.run)?;
    if let Some(path) = shared.counter.path() {
        command.env(COUNTER_VARIABLE, path);
    }
    let mut child = command.spawn()?;
    let group = &shared.group;
    group.led_by(process::id(&child));
    // The load may have been stopped between the two.
    if shared.is_stopped() {
        group.stop();
    }
    let before = shared.counter.told();
    let listened = child
        .stdout
        .take()
        .map_or(Ok(false), |output| listen(output, worker.limit(), shared));
    if listened.is_err() {
        group.kill();
    }
    group.wait_for_end()?;
    let mut done = shared.ended();
    let written = process::written(group.leader());
    // A command's own children may outlive it: they end here too.
    let (ended, orphans) = group.collect()?;
    done.cpu += ended.cpu() + orphans;
    let code = ended.status.code();
    match worker.count {
        Count::Rounds => done.amount += u64::from(code.is_some()),
        Count::Written => done.amount += written,
        _ => {}
    }
    let is_whole = !shared.is_stopped();
    done.rounds += u64::from(is_whole);
    shared.slot.rounds(done.rounds);
    let amount = shared.done(*done, Usage::default()).amount;
    shared.slot.amount(amount);
    let did_nothing = done.amount == 0 && shared.counter.told() == before;
    drop(done);
    let at_limit = listened?;
    if is_whole {
        shared.note_end(ended.status, at_limit);
    }
    if did_nothing && code.is_some_and(|code| code != 0) {
        let text = format!("it did nothing and ended with {}", ended.status);
        return Err(io::Error::other(text));
    }
    Ok(())
}

/// Reads a command's output until it is closed, and ends the command at the limit. Returns true
/// if the limit was reached.
fn listen(mut output: ChildStdout, limit: Option<Nanos>, shared: &Shared) -> io::Result<bool> {
    let mut at_limit = false;
    let deadline = limit.map(|span| time::now() + span);
    let mut piece = vec![0; 64 * 1024];
    let mut line = Vec::new();
    loop {
        let left = deadline.map(|end| end - time::now());
        if !pipe::wait_readable(output.as_fd(), left)? {
            at_limit = true;
            shared.group.kill();
        }
        match output.read(&mut piece)? {
            0 => return Ok(at_limit),
            length => {
                shared.counter.feed(&piece[..length], &mut line);
                shared.slot.amount(shared.counter.told());
            }
        }
    }
}

/// Starts a command in a process group of its own, with its output in a pipe. On a host it ends
/// with the thread that starts it; a guest ends as a whole.
pub fn spawn(run: &[String]) -> io::Result<Child> {
    command(run)?.spawn()
}

/// Like [`spawn`], with further variables in its environment, in a root of its own if there is
/// one, and with its error output in the same pipe.
pub fn spawn_with(
    run: &[String],
    variables: &[(&str, &OsStr)],
    root: Option<&Path>,
) -> io::Result<(Child, File)> {
    let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
    let mut command = match root {
        None => command(run)?,
        Some(root) => command_in(run, root)?,
    };
    command
        .envs(variables.iter().copied())
        .stdout(writer.try_clone()?)
        .stderr(writer);
    Ok((command.spawn()?, reader.into()))
}

fn words(run: &[String]) -> io::Result<(&String, &[String])> {
    let empty = || io::Error::new(io::ErrorKind::InvalidInput, "the command is empty");
    run.split_first().ok_or_else(empty)
}

/// Returns a command of a userland, which is searched for it.
fn command_in(run: &[String], root: &Path) -> io::Result<Command> {
    let (program, arguments) = words(run)?;
    let mut command = Command::new(program);
    command.args(arguments).env("PATH", ROOT_PATH);
    process::enter_root(&mut command, root)?;
    lead_group(&mut command);
    Ok(command)
}

fn command(run: &[String]) -> io::Result<Command> {
    let (program, arguments) = words(run)?;
    let program = if program == SELF {
        "/proc/self/exe"
    } else {
        program
    };
    let mut command = shutdown::command(program)?;
    command.args(arguments).env("PATH", shutdown::search_path());
    lead_group(&mut command);
    Ok(command)
}

fn lead_group(command: &mut Command) {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0);
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_command_of_a_userland_is_looked_for_in_it_and_sees_nothing_else() {
        if !punctual_skip::root() || !punctual_skip::program("busybox") {
            return;
        }
        let root = tempfile::tempdir().unwrap();
        let bin = root.path().join("usr/local/bin");
        std::fs::create_dir_all(&bin).unwrap();
        let found = shutdown::find("busybox").unwrap();
        std::fs::copy(found, bin.join("busybox")).unwrap();
        symlink("/usr/local/bin/busybox", bin.join("sh")).unwrap();
        let run = ["sh", "-c", "echo $A; pwd; echo /*; echo gone >&2"].map(str::to_owned);
        let variables = [("A", OsStr::new("here"))];
        let (mut child, mut output) = spawn_with(&run, &variables, Some(root.path())).unwrap();
        let mut told = String::new();
        output.read_to_string(&mut told).unwrap();
        assert!(child.wait().unwrap().success());
        assert_eq!(told, "here\n/\n/usr\ngone\n");
        let absent = ["no-such-loop".to_owned()];
        let error = spawn_with(&absent, &[], Some(root.path())).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}

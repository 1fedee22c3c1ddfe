// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loads: stress beside a probe, and the proof that it happened.

use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdout, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use punctual_model::Nanos;
use punctual_model::plan::{Count, Load, Stop, Worker};
use punctual_model::recording::Work;

use crate::phases::Phases;
use crate::scratch::ScratchDirectory;
use crate::shutdown;
use crate::sys::process::{self, Group};
use crate::sys::{pipe, time};

/// A worker begins this long after the load is started, at most; the seed says when.
const LONGEST_PHASE: Nanos = Nanos::from_millis(50);

/// A worker that is told to end has this long to say what it did, and is then killed.
const GRACE: Nanos = Nanos::from_millis(500);

/// The name by which a load calls the target's own programs.
pub const SELF: &str = "punctual-target";

/// A load whose workers run, each started again whenever it ends.
pub struct RunningLoad {
    workers: Vec<RunningWorker>,
    /// Where the workers run, and leave their files. Taken away with everything in it.
    _directory: ScratchDirectory,
}

struct RunningWorker {
    shared: Arc<Shared>,
    thread: JoinHandle<Result<Work, String>>,
    stop: Stop,
}

/// What the thread of a worker and the one that stops it both see.
#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    /// The processes of the round that runs.
    group: Group,
}

impl RunningLoad {
    /// Starts all workers of a load; where one cannot be started, those before it are stopped.
    pub fn start(load: &Load, phases: &mut Phases) -> Result<Self, String> {
        let directory = ScratchDirectory::enter()
            .map_err(|error| format!("no directory for the load's files: {error}"))?;
        let mut running = Self {
            workers: Vec::new(),
            _directory: directory,
        };
        for worker in &load.workers {
            let phase = phases.below(LONGEST_PHASE);
            match RunningWorker::start(worker.clone(), phase) {
                Ok(worker) => running.workers.push(worker),
                Err(reason) => {
                    let _ = running.stop();
                    return Err(reason);
                }
            }
        }
        Ok(running)
    }

    /// Stops all workers, and tells what each of them did. A worker that did nothing is an
    /// error: the probe then ran beside another load than the one that is named.
    pub fn stop(self) -> Result<Vec<Work>, String> {
        for worker in &self.workers {
            worker.shared.stop.store(true, Ordering::SeqCst);
        }
        for worker in &self.workers {
            worker.thread.thread().unpark();
            worker.shared.group.stop(worker.stop);
        }
        let end_of_grace = time::now() + GRACE;
        while self.is_running() && time::now() < end_of_grace {
            time::sleep(Nanos::from_millis(1));
        }
        for worker in &self.workers {
            worker.shared.group.kill();
        }
        self.workers.into_iter().map(RunningWorker::join).collect()
    }

    fn is_running(&self) -> bool {
        self.workers
            .iter()
            .any(|worker| !worker.thread.is_finished())
    }
}

impl RunningWorker {
    fn start(worker: Worker, phase: Nanos) -> Result<Self, String> {
        let shared = Arc::new(Shared::default());
        let stop = worker.stop;
        let theirs = Arc::clone(&shared);
        let body = move || {
            time::sleep(phase);
            work(&worker, &theirs)
        };
        let thread = thread::Builder::new()
            .stack_size(64 * 1024)
            .spawn(body)
            .map_err(|error| format!("cannot start a worker's thread: {error}"))?;
        Ok(Self {
            shared,
            thread,
            stop,
        })
    }

    fn join(self) -> Result<Work, String> {
        self.thread
            .join()
            .map_err(|_| "a worker's thread has panicked".to_owned())?
    }
}

fn work(worker: &Worker, shared: &Shared) -> Result<Work, String> {
    let mut work = Work {
        worker: worker.run.join(" "),
        rounds: 0,
        amount: 0,
        unit: worker.unit.clone(),
        cpu: Nanos::ZERO,
    };
    while !shared.stop.load(Ordering::SeqCst) {
        let round = round(worker, shared)
            .map_err(|error| format!("load \"{}\" cannot run: {error}", work.worker))?;
        work.rounds += 1;
        work.amount += round.amount;
        work.cpu += round.cpu;
        pause(worker.pause(), shared);
    }
    if work.amount == 0 && work.cpu == Nanos::ZERO {
        return Err(format!(
            "load \"{}\" did nothing: no {}",
            work.worker, work.unit
        ));
    }
    Ok(work)
}

/// Waits between two rounds, unless the load is stopped meanwhile.
fn pause(span: Nanos, shared: &Shared) {
    let end = time::now() + span;
    let mut left = span;
    while left > Nanos::ZERO && !shared.stop.load(Ordering::SeqCst) {
        thread::park_timeout(Duration::from_nanos(left.0.unsigned_abs()));
        left = end - time::now();
    }
}

struct Round {
    amount: u64,
    cpu: Nanos,
}

/// Runs the worker's command once, to its end or to the end of the load.
fn round(worker: &Worker, shared: &Shared) -> io::Result<Round> {
    let mut child = spawn(&worker.run)?;
    let group = &shared.group;
    group.led_by(process::id(&child));
    // The load may have been stopped between the two.
    if shared.stop.load(Ordering::SeqCst) {
        group.stop(worker.stop);
    }
    let limit = (worker.limit_ms > 0).then(|| Nanos::from_millis(worker.limit_ms.into()));
    let mut counter = Counter::new(&worker.count);
    let listened = child
        .stdout
        .take()
        .map_or(Ok(()), |output| listen(output, limit, group, &mut counter));
    if listened.is_err() {
        group.kill();
    }
    // A command's own children may outlive it: they end here too.
    let (ended, orphans) = group.wait()?;
    listened?;
    let by_itself = ended.status.code().is_some();
    let amount = counter.amount(by_itself);
    if amount == 0 && ended.status.code().is_some_and(|code| code != 0) {
        return Err(io::Error::other(format!(
            "it did nothing and ended with {}",
            ended.status
        )));
    }
    Ok(Round {
        amount,
        cpu: ended.cpu() + orphans,
    })
}

/// Reads what a command prints until it closes its output, and ends it at the limit.
fn listen(
    mut output: ChildStdout,
    limit: Option<Nanos>,
    group: &Group,
    counter: &mut Counter,
) -> io::Result<()> {
    let deadline = limit.map(|span| time::now() + span);
    let mut piece = vec![0; 64 * 1024];
    loop {
        let left = deadline.map(|end| end - time::now());
        if !pipe::wait_readable(output.as_fd(), left)? {
            group.kill();
        }
        match output.read(&mut piece)? {
            0 => return Ok(()),
            length => counter.feed(&piece[..length]),
        }
    }
}

/// Starts a command in a process group of its own, its output in a pipe. On a host it ends
/// with the thread that starts it; a guest ends as a whole.
pub fn spawn(run: &[String]) -> io::Result<Child> {
    let Some((program, arguments)) = run.split_first() else {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "the command is empty",
        ));
    };
    let program = if program == SELF {
        "/proc/self/exe"
    } else {
        program
    };
    let mut command = shutdown::command(program)?;
    command
        .args(arguments)
        .env("PATH", shutdown::search_path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0);
    command.spawn()
}

/// Counts work in what a command prints.
struct Counter<'a> {
    how: &'a Count,
    amount: u64,
    /// The line that is not complete yet; kept only where lines are looked into.
    line: Vec<u8>,
}

impl<'a> Counter<'a> {
    fn new(how: &'a Count) -> Self {
        Self {
            how,
            amount: 0,
            line: Vec::new(),
        }
    }

    fn feed(&mut self, piece: &[u8]) {
        match self.how {
            Count::Bytes => self.amount += piece.len() as u64,
            Count::Lines => self.amount += piece.split(|byte| *byte == b'\n').count() as u64 - 1,
            Count::After(_) | Count::Before(_) => {
                for byte in piece {
                    self.feed_byte(*byte);
                }
            }
            Count::Rounds => {}
        }
    }

    fn feed_byte(&mut self, byte: u8) {
        if byte != b'\n' {
            self.line.push(byte);
            return;
        }
        let line = String::from_utf8_lossy(&self.line);
        self.amount += match self.how {
            Count::After(text) => number_after(&line, text),
            Count::Before(text) => number_before(&line, text),
            _ => 0,
        };
        self.line.clear();
    }

    fn amount(self, ended_by_itself: bool) -> u64 {
        match self.how {
            Count::Rounds => u64::from(ended_by_itself),
            _ => self.amount,
        }
    }
}

/// The whole number that follows `text` in a line; 0 where there is none.
fn number_after(line: &str, text: &str) -> u64 {
    let rest = line.split_once(text).map_or("", |(_, rest)| rest);
    let digits = rest.trim_start().split(no_digit).next();
    digits.and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

/// The whole number that precedes `text` in a line; 0 where there is none.
fn number_before(line: &str, text: &str) -> u64 {
    let rest = line.split_once(text).map_or("", |(before, _)| before);
    let digits = rest.trim_end().rsplit(no_digit).next();
    digits.and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

fn no_digit(letter: char) -> bool {
    !letter.is_ascii_digit()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worker(run: &[&str], count: Count) -> Worker {
        Worker {
            run: run.iter().map(|word| (*word).to_owned()).collect(),
            pause_ms: 0,
            limit_ms: 0,
            stop: Stop::Term,
            unit: "things".into(),
            count,
        }
    }

    fn run_for(load: &Load, span: Nanos) -> Result<Vec<Work>, String> {
        let running = RunningLoad::start(load, &mut Phases::new(1, 0)).unwrap();
        time::sleep(LONGEST_PHASE + span);
        running.stop()
    }

    fn load(worker: Worker) -> Load {
        Load {
            summary: String::new(),
            mix: Vec::new(),
            programs: Vec::new(),
            workers: vec![worker],
        }
    }

    #[test]
    fn work_is_counted_in_what_is_printed() {
        let count = |how: Count| {
            let mut counter = Counter::new(&how);
            counter.feed(b"messages: 12 of 13\nmess");
            counter.feed(b"ages: 30\nnothing\n");
            counter.amount(true)
        };
        assert_eq!(count(Count::After("messages:".into())), 42);
        assert_eq!(count(Count::Before(" of 13".into())), 12);
        assert_eq!(count(Count::Lines), 3);
        assert_eq!(count(Count::Bytes), 40);
        assert_eq!(count(Count::Rounds), 1);
    }

    #[test]
    fn a_load_runs_again_and_again_and_ends_when_told() {
        let work = run_for(
            &load(worker(&["echo", "x"], Count::Lines)),
            Nanos::from_millis(200),
        );
        let work = work.unwrap();
        assert!(work[0].rounds > 1, "{work:?}");
        // The last round may be ended before it has printed anything.
        assert!(work[0].amount + 1 >= work[0].rounds, "{work:?}");
    }

    #[test]
    fn a_round_that_would_never_end_is_ended_with_its_children() {
        let script = "sleep 1000 & yes";
        let work = run_for(
            &load(worker(&["sh", "-c", script], Count::Bytes)),
            Nanos::from_millis(50),
        );
        assert!(work.unwrap()[0].amount > 0);
    }

    #[test]
    fn a_round_is_ended_at_its_limit() {
        let mut busy = worker(&["yes"], Count::Bytes);
        busy.limit_ms = 20;
        let work = run_for(&load(busy), Nanos::from_millis(200)).unwrap();
        assert!(work[0].rounds > 1, "{work:?}");
    }

    #[test]
    fn a_pause_ends_with_the_load() {
        let mut rare = worker(&["echo", "x"], Count::Lines);
        rare.pause_ms = 3_600_000;
        let work = run_for(&load(rare), Nanos::from_millis(50)).unwrap();
        assert_eq!((work[0].rounds, work[0].amount), (1, 1));
    }

    #[test]
    fn a_command_that_fails_is_an_error_not_an_idle_machine() {
        let failing = worker(&["sh", "-c", "exit 7"], Count::Lines);
        let error = run_for(&load(failing), Nanos::from_millis(50)).unwrap_err();
        assert!(error.contains("exit status: 7"), "{error}");
    }

    #[test]
    fn a_load_that_cannot_start_is_an_error_not_an_idle_machine() {
        let error = run_for(
            &load(worker(&["no-such-program"], Count::Lines)),
            Nanos::ZERO,
        );
        assert!(error.unwrap_err().contains("no-such-program"));
    }
}

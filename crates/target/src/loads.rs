//! Loads: stress beside a probe, and the proof that it happened.

use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdout, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::thread::{self, JoinHandle};

use punctual_model::Nanos;
use punctual_model::plan::{Count, Load, Worker};
use punctual_model::recording::Work;

use crate::phase::Phases;
use crate::sys::{pipe, process, time};
use crate::undertaker;

/// A worker begins this long after the load is started, at most; the seed says when.
const LONGEST_PHASE: Nanos = Nanos::from_millis(50);

/// A worker that is told to end has this long to say what it did, and is then killed.
const GRACE: Nanos = Nanos::from_millis(500);

/// The name by which a load calls the target's own programs.
pub const SELF: &str = "punctual-target";

/// A load whose workers run, each started again whenever it ends.
pub struct RunningLoad {
    workers: Vec<RunningWorker>,
}

struct RunningWorker {
    shared: Arc<Shared>,
    thread: JoinHandle<Result<Work, String>>,
}

/// What the thread of a worker and the one that stops it both see.
#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    /// The process group of the round that runs; 0 where none does.
    group: AtomicI32,
}

impl RunningLoad {
    /// Starts all workers of a load.
    pub fn start(load: &Load, phases: &mut Phases) -> Result<Self, String> {
        let workers = load
            .workers
            .iter()
            .map(|worker| RunningWorker::start(worker.clone(), phases.below(LONGEST_PHASE)))
            .collect::<Result<_, _>>()?;
        Ok(Self { workers })
    }

    /// Stops all workers, and tells what each of them did. A worker that did nothing is an
    /// error: the probe then ran beside another load than the one that is named.
    pub fn stop(self) -> Result<Vec<Work>, String> {
        for worker in &self.workers {
            worker.shared.stop.store(true, Ordering::SeqCst);
        }
        self.signal(process::terminate_group);
        let end_of_grace = time::now() + GRACE;
        while self.is_running() && time::now() < end_of_grace {
            time::sleep(Nanos::from_millis(1));
        }
        self.signal(process::kill_group);
        self.workers.into_iter().map(RunningWorker::join).collect()
    }

    fn is_running(&self) -> bool {
        self.workers
            .iter()
            .any(|worker| !worker.thread.is_finished())
    }

    fn signal(&self, signal: fn(process::Pid)) {
        for worker in &self.workers {
            let group = worker.shared.group.load(Ordering::SeqCst);
            if group != 0 {
                signal(group);
            }
        }
    }
}

impl RunningWorker {
    fn start(worker: Worker, phase: Nanos) -> Result<Self, String> {
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        let body = move || {
            time::sleep(phase);
            work(&worker, &theirs)
        };
        let thread = thread::Builder::new()
            .stack_size(64 * 1024)
            .spawn(body)
            .map_err(|error| format!("cannot start a worker's thread: {error}"))?;
        Ok(Self { shared, thread })
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
        time::sleep(worker.pause());
    }
    if work.amount == 0 && work.cpu == Nanos::ZERO {
        return Err(format!(
            "load \"{}\" did nothing: no {}",
            work.worker, work.unit
        ));
    }
    Ok(work)
}

struct Round {
    amount: u64,
    cpu: Nanos,
}

/// Runs the worker's command once, to its end or to the end of the load.
fn round(worker: &Worker, shared: &Shared) -> io::Result<Round> {
    let mut child = spawn(&worker.run)?;
    let group = child.id() as i32;
    shared.group.store(group, Ordering::SeqCst);
    // The load may have been stopped between the two.
    if shared.stop.load(Ordering::SeqCst) {
        process::terminate_group(group);
    }
    let limit = (worker.limit_ms > 0).then(|| Nanos::from_millis(worker.limit_ms.into()));
    let mut counter = Counter::new(&worker.count);
    if let Some(output) = child.stdout.take() {
        listen(output, limit, group, &mut counter)?;
    }
    let ended = process::wait(group)?;
    // A command's own children may outlive it.
    process::kill_group(group);
    process::reap_group(group);
    shared.group.store(0, Ordering::SeqCst);
    let by_itself = ended.status.code().is_some();
    Ok(Round {
        amount: counter.amount(by_itself),
        cpu: ended.cpu(),
    })
}

/// Reads what a command prints until it closes its output, and ends it at the limit.
fn listen(
    mut output: ChildStdout,
    limit: Option<Nanos>,
    group: i32,
    counter: &mut Counter,
) -> io::Result<()> {
    let deadline = limit.map(|span| time::now() + span);
    let mut piece = vec![0; 64 * 1024];
    loop {
        let left = deadline.map(|end| end - time::now());
        if !pipe::wait_readable(output.as_fd(), left)? {
            process::kill_group(group);
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
    undertaker::command(program)?
        .args(arguments)
        .env(
            "PATH",
            std::env::var("PATH").unwrap_or_else(|_| "/bin:/sbin:/usr/bin:/usr/sbin".into()),
        )
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
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
            Count::After(text) => {
                for byte in piece {
                    if *byte == b'\n' {
                        self.amount += number_after(&self.line, text);
                        self.line.clear();
                    } else {
                        self.line.push(*byte);
                    }
                }
            }
            Count::Rounds => {}
        }
    }

    fn amount(self, ended_by_itself: bool) -> u64 {
        match self.how {
            Count::Rounds => u64::from(ended_by_itself),
            _ => self.amount,
        }
    }
}

/// The whole number that follows `text` in a line; 0 where there is none.
fn number_after(line: &[u8], text: &str) -> u64 {
    let line = String::from_utf8_lossy(line);
    let Some((_, rest)) = line.split_once(text) else {
        return 0;
    };
    let digits: String = rest
        .trim_start()
        .chars()
        .take_while(char::is_ascii_digit)
        .collect();
    digits.parse().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worker(run: &[&str], count: Count) -> Worker {
        Worker {
            run: run.iter().map(|word| (*word).to_owned()).collect(),
            pause_ms: 0,
            limit_ms: 0,
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
    fn a_load_that_cannot_start_is_an_error_not_an_idle_machine() {
        let error = run_for(
            &load(worker(&["no-such-program"], Count::Lines)),
            Nanos::ZERO,
        );
        assert!(error.unwrap_err().contains("no-such-program"));
    }
}

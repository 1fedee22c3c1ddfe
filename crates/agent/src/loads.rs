// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loads: stress beside a probe, and the proof that it ran while samples were taken.

mod counter;
mod window;
mod worker;

use std::io;
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

use punctual_model::cpus::show_list;
use punctual_model::plan::{Load, Worker};
use punctual_model::recording::Work;
use punctual_model::{CpuId, Nanos, NotLoaded, Reason};

pub use counter::own_counter;
pub use window::{begin, enter};
pub use worker::{spawn, spawn_with};

use crate::cpus;
use crate::phases::Phases;
use crate::scratch::ScratchDirectory;
use crate::status_page;
use crate::sys::{sched, time};
use window::Window;
use worker::{Done, Shared};

/// The longest time from the start of the load to that of a worker; the seed chooses it.
const LONGEST_PHASE: Nanos = Nanos::from_millis(50);

/// The time within which all workers must be at work, or the load is given up: forking the 4,000
/// processes of hackbench 100 takes seconds.
const LONGEST_START: Nanos = Nanos::from_millis(60_000);

/// The longest time that a worker may do nothing after the last sample before it counts as stopped:
/// one of a thousand that share a CPU waits for its turn for a second or two.
const LONGEST_REST: Nanos = Nanos::from_millis(10_000);

/// The time between two looks at the workers.
const LOOK: Nanos = Nanos::from_millis(10);

/// The time that a worker which is told to end has to do so, before it is killed.
const GRACE: Nanos = Nanos::from_millis(500);

/// The name by which a load calls the target's own programs.
pub const SELF: &str = "punctual-target";

/// A load whose workers run, each started again whenever it ends.
pub struct RunningLoad {
    workers: Vec<RunningWorker>,
    window: Arc<Window>,
    /// The directory where the workers run, and leave their files. It is removed with its content.
    _directory: ScratchDirectory,
}

struct RunningWorker {
    worker: Worker,
    /// The CPUs on which it may run.
    cpus: Vec<CpuId>,
    shared: Arc<Shared>,
    thread: JoinHandle<Result<(), Reason>>,
}

impl RunningLoad {
    /// Starts all workers of a load beside a probe that measures on the CPUs `measured`, and
    /// waits until each is at work; if one is not, all are stopped. From then on, their work
    /// is observed while samples are taken.
    pub fn start(load: &Load, measured: &[CpuId], phases: &mut Phases) -> Result<Self, Reason> {
        let directory = ScratchDirectory::enter()
            .map_err(|error| format!("no directory for the load's files: {error}"))?;
        let mut workers = Vec::new();
        let mut started = Ok(());
        for worker in &load.workers {
            match RunningWorker::start(worker, measured, phases.below(LONGEST_PHASE)) {
                Ok(worker) => workers.push(worker),
                Err(reason) => {
                    started = Err(reason);
                    break;
                }
            }
        }
        let shared = workers.iter().map(|worker| Arc::clone(&worker.shared));
        let running = Self {
            window: Window::of(shared.collect()),
            workers,
            _directory: directory,
        };
        match started.and_then(|()| running.come_up()) {
            Ok(()) => {
                running.window.watch();
                Ok(running)
            }
            // Why a command fails tells more than that it is not up.
            Err(reason) => Err(running.stop().err().unwrap_or(reason)),
        }
    }

    /// Waits until each worker is at work. One that pauses is not waited for, since the start of
    /// its round is part of its recipe.
    fn come_up(&self) -> Result<(), Reason> {
        let nothing = vec![Done::default(); self.workers.len()];
        let idle = self.idle_since(&nothing, LONGEST_START);
        idle.map_or(Ok(()), |worker| {
            let detail = format!("no {} in {LONGEST_START}", worker.unit);
            Err(Reason::not_loaded(
                &worker.run.join(" "),
                NotLoaded::NotUp,
                detail,
            ))
        })
    }

    /// Checks, after the probe, that the load still runs, stops it, and returns the work that each
    /// worker did while samples were taken. A worker that did nothing then, or had stopped, is an
    /// error: the probe ran beside another load than the one that is named.
    pub fn finish(self) -> Result<Vec<Work>, Reason> {
        let (span, done, end) = self.window.close();
        let stopped = self.idle_since(&end, LONGEST_REST);
        let stopped = stopped.map(|worker| worker.run.join(" "));
        let of = |one: &RunningWorker| (one.worker.clone(), show_list(&one.cpus));
        let workers: Vec<(Worker, String)> = self.workers.iter().map(of).collect();
        let failed = self.failed();
        self.stop()?;
        if status_page::is_stop_requested() {
            return Ok(works(&workers, &done, span));
        }
        for ((worker, _), done) in workers.iter().zip(&done) {
            if worker.pause_ms == 0 && !done.is_something() {
                return Err(Reason::not_loaded(
                    &worker.run.join(" "),
                    NotLoaded::Starved,
                    format!("no {} and no CPU time in {span}", worker.unit),
                ));
            }
        }
        if let Some(failed) = failed {
            return Err(failed);
        }
        if let Some(command) = stopped {
            let detail = format!("it did nothing in {LONGEST_REST} after it");
            return Err(Reason::not_loaded(&command, NotLoaded::Stopped, detail));
        }
        Ok(works(&workers, &done, span))
    }

    /// Returns an error if a worker never did its work.
    fn failed(&self) -> Option<Reason> {
        let mut workers = self.workers.iter();
        workers.find_map(|one| {
            let counts = !one.worker.ignore_status;
            let failure = counts.then(|| one.shared.failure()).flatten()?;
            let command = one.worker.run.join(" ");
            Some(Reason::not_loaded(&command, NotLoaded::Failed, failure))
        })
    }

    /// Returns the first worker, except those that pause, that for as long as `limit` does no more
    /// than it had done `before`; `None` as soon as each of them has done more. Ends
    /// early if a worker fails, or the target is asked to end.
    fn idle_since(&self, before: &[Done], limit: Nanos) -> Option<&Worker> {
        let deadline = time::now() + limit;
        let mut look = LOOK;
        loop {
            let seen = self.window.seen();
            let pairs = self.workers.iter().zip(seen.iter().zip(before));
            let mut idle = pairs.filter(|(one, (seen, before))| {
                one.worker.pause_ms == 0 && !one.shared.went_on(seen, before)
            });
            let (idle, _) = idle.next()?;
            let has_failed = self.workers.iter().any(|one| one.thread.is_finished());
            if has_failed || status_page::is_stop_requested() || time::now() >= deadline {
                return Some(&idle.worker);
            }
            time::sleep(look);
            look = (look * 2).min(LOOK * 20);
        }
    }

    /// Stops all workers; returns an error if one of them failed.
    fn stop(self) -> Result<(), Reason> {
        for worker in &self.workers {
            worker.shared.stop();
            worker.thread.thread().unpark();
            worker.shared.group.stop();
        }
        let end_of_grace = time::now() + GRACE;
        while self.is_running() && time::now() < end_of_grace {
            time::sleep(Nanos::from_millis(1));
        }
        for worker in &self.workers {
            worker.shared.group.kill();
        }
        let panicked = |_| "a worker's thread has panicked".into();
        self.workers
            .into_iter()
            .try_for_each(|worker| worker.thread.join().unwrap_or_else(|it| Err(panicked(it))))
    }

    fn is_running(&self) -> bool {
        self.workers
            .iter()
            .any(|worker| !worker.thread.is_finished())
    }
}

fn works(workers: &[(Worker, String)], done: &[Done], span: Nanos) -> Vec<Work> {
    let work = |((worker, cpus), done): (&(Worker, String), &Done)| Work {
        worker: worker.run.join(" "),
        rounds: done.rounds,
        amount: done.amount,
        unit: worker.unit.clone(),
        cpu: done.cpu,
        span,
        period: worker.period(),
        endless: worker.endless,
        cpus: cpus.clone(),
    };
    workers.iter().zip(done).map(work).collect()
}

impl RunningWorker {
    fn start(worker: &Worker, measured: &[CpuId], phase: Nanos) -> Result<Self, Reason> {
        if let Some(absent) = worker.needs.iter().find(|path| !Path::new(path).exists()) {
            let (command, detail) = (worker.run.join(" "), format!("there is no {absent}"));
            return Err(Reason::not_loaded(&command, NotLoaded::Failed, detail));
        }
        let shared = Arc::new(Shared::new(worker)?);
        let (theirs, command) = (Arc::clone(&shared), worker.clone());
        let place = worker.cpus.as_ref();
        let place = place.map(|place| cpus::of(place, measured)).transpose()?;
        let (tell, told) = mpsc::channel();
        let body = move || {
            // What it starts inherits this.
            let bound = place.map_or(Ok(()), |cpus| sched::bind(&cpus));
            _ = tell.send(bound.and_then(|()| sched::affinity()));
            time::sleep(phase);
            worker::work(&command, &theirs)
        };
        let thread = thread::Builder::new()
            .stack_size(64 * 1024)
            .spawn(body)
            .map_err(|error| format!("cannot start a worker's thread: {error}"))?;
        let cpus = told
            .recv()
            .unwrap_or_else(|error| Err(io::Error::other(error)));
        Ok(Self {
            worker: worker.clone(),
            cpus: cpus.map_err(|error| format!("cannot bind a worker to its CPUs: {error}"))?,
            shared,
            thread,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, PoisonError};

    use punctual_model::plan::Count;

    use super::*;

    fn worker(run: &[&str], count: Count) -> Worker {
        Worker {
            run: run.iter().map(|word| (*word).to_owned()).collect(),
            cpus: None,
            pause_ms: 0,
            limit_ms: 0,
            needs: Vec::new(),
            endless: false,
            ignore_status: false,
            unit: "things".into(),
            count,
        }
    }

    fn run_for(load: &Load, span: Nanos) -> Result<Vec<Work>, Reason> {
        let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let running = RunningLoad::start(load, &[], &mut Phases::new(1, 0))?;
        time::sleep(span);
        running.finish()
    }

    /// Serialises tests, since a load's work is seen by all threads of the process.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

    fn load(worker: Worker) -> Load {
        Load {
            summary: String::new(),
            mix: Vec::new(),
            programs: Vec::new(),
            disk: false,
            kernel_source: false,
            workers: vec![worker],
        }
    }

    /// Returns the work of a load that runs until it has done enough, or the last if it never does.
    fn run_until(load: &Load, is_enough: impl Fn(&Work) -> bool) -> Work {
        // On a busy machine it may not even begin within the first.
        let mut spans = [200, 2_000, 20_000, 60_000]
            .map(Nanos::from_millis)
            .into_iter();
        loop {
            let span = spans.next().unwrap();
            let work = match run_for(load, span) {
                Ok(mut works) => works.remove(0),
                Err(Reason::NotLoaded { why, .. })
                    if why == NotLoaded::Starved && spans.len() > 0 =>
                {
                    continue;
                }
                Err(reason) => panic!("{reason}"),
            };
            if is_enough(&work) || spans.len() == 0 {
                return work;
            }
        }
    }

    #[test]
    fn a_load_runs_again_and_again_and_ends_when_told() {
        let load = load(worker(&["echo", "x"], Count::Lines));
        let work = run_until(&load, |work| work.rounds > 1);
        assert!(work.rounds > 1, "{work:?}");
        // The last round may be ended before it has printed anything.
        assert!(work.amount + 1 >= work.rounds, "{work:?}");
    }

    #[test]
    fn a_round_that_would_never_end_is_ended_with_its_children() {
        let script = "sleep 1000 & yes";
        let load = load(worker(&["sh", "-c", script], Count::Bytes));
        let work = run_until(&load, |work| work.amount > 0);
        assert!(work.amount > 0, "{work:?}");
    }

    #[test]
    fn a_round_is_ended_at_its_limit() {
        let mut busy = worker(&["yes"], Count::Bytes);
        busy.limit_ms = 20;
        let work = run_until(&load(busy), |work| work.rounds > 1);
        assert!(work.rounds > 1, "{work:?}");
    }

    #[test]
    fn a_pause_ends_with_the_load() {
        let mut rare = worker(&["echo", "x"], Count::Lines);
        rare.pause_ms = 3_600_000;
        let work = run_for(&load(rare), Nanos::from_millis(500)).unwrap();
        assert!(work[0].rounds <= 1 && work[0].amount <= 1, "{work:?}");
        assert_eq!(work[0].period, Nanos::from_millis(3_600_000));
        assert!(work[0].periods() < Some(0.01), "{work:?}");
    }

    fn why(result: Result<Vec<Work>, Reason>) -> (NotLoaded, String) {
        match result.unwrap_err() {
            Reason::NotLoaded { why, detail, .. } => (why, detail),
            other => panic!("{other}"),
        }
    }

    #[test]
    fn a_command_that_fails_is_an_error_not_an_idle_machine() {
        let failing = worker(&["sh", "-c", "exit 7"], Count::Lines);
        let (why, detail) = why(run_for(&load(failing), Nanos::ZERO));
        assert_eq!(why, NotLoaded::Failed);
        assert!(detail.contains("exit status: 7"), "{detail}");
    }

    #[test]
    fn a_load_that_cannot_start_is_an_error_not_an_idle_machine() {
        let absent = worker(&["no-such-program"], Count::Lines);
        let error = run_for(&load(absent), Nanos::ZERO).unwrap_err();
        assert!(error.to_string().contains("no-such-program"), "{error}");
        let mut needy = worker(&["echo"], Count::Lines);
        needy.needs = vec!["/no/such/file".into()];
        let (why, detail) = why(run_for(&load(needy), Nanos::ZERO));
        assert_eq!(
            (why, &*detail),
            (NotLoaded::Failed, "there is no /no/such/file")
        );
    }

    #[test]
    fn a_load_that_stops_in_the_middle_is_an_error_though_it_did_something() {
        let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let directory = tempfile::tempdir().unwrap();
        let rests = directory.path().join("rests");
        let script = format!(
            "for i in $(seq 20); do echo at work; sleep 0.1; done; touch {}; exec sleep 1000",
            rests.display()
        );
        let load = load(worker(&["sh", "-c", &script], Count::Lines));
        let running = RunningLoad::start(&load, &[], &mut Phases::new(1, 0)).unwrap();
        let seen = || {
            let seen = running.window.seen();
            (seen[0].amount, seen[0].cpu)
        };
        // However slow this machine is: until it has done something, and rests.
        let (begin, mut before) = (seen(), seen());
        for _ in 0..200 {
            time::sleep(Nanos::from_millis(500));
            let now = seen();
            if now == before && now != begin && rests.exists() {
                break;
            }
            before = now;
        }
        let (why, _) = why(running.finish());
        assert_eq!(why, NotLoaded::Stopped);
    }

    #[test]
    fn only_what_is_done_while_threads_measure_is_counted() {
        let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let load = load(worker(&["yes"], Count::Bytes));
        let running = RunningLoad::start(&load, &[], &mut Phases::new(1, 0)).unwrap();
        time::sleep(Nanos::from_millis(300));
        let measure = || {
            enter();
            time::sleep(Nanos::from_millis(50));
        };
        for _ in 0..2 {
            thread::spawn(measure).join().unwrap();
        }
        time::sleep(Nanos::from_millis(300));
        let (_, all) = (time::now(), running.window.seen());
        let work = running.finish().unwrap();
        assert!(work[0].span >= Nanos::from_millis(100), "{work:?}");
        assert!(work[0].amount > 0 && work[0].cpu > Nanos::ZERO, "{work:?}");
        assert!(work[0].amount < all[0].amount && work[0].cpu < all[0].cpu);
    }
}

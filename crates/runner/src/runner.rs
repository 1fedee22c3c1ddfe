// SPDX-License-Identifier: MIT OR Apache-2.0
//! Carries out runs side by side and stores the results.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use jiff::Timestamp;
use punctual_bench::RunError;
use punctual_bench::system::{Event, RunEnding, SystemUnderTest};
use punctual_model::run::{Request, State};
use punctual_model::suite::SubjectSpec;
use punctual_model::{Plan, Record, Run, Subject};
use punctual_store::{Begun as InStore, End, Store, StoreError};

use crate::{Observer, preemption};

/// The pause before other processes' runs are asked about again.
const PAUSE: Duration = Duration::from_secs(1);

/// A run to be made.
pub struct Job<'a> {
    /// Its group: the runs of a group are pooled into one result.
    pub group: usize,
    /// The suite's name.
    pub suite: &'a str,
    /// The subject to measure.
    pub subject: &'a SubjectSpec,
    /// The system on which it runs.
    pub system: &'a dyn SystemUnderTest,
    /// The plan of the measurement.
    pub plan: Plan,
    /// The user's request, for the record.
    pub request: Request,
}

/// Carries out jobs side by side, and stores their results as they arrive.
pub struct Runner<'a> {
    /// The store.
    pub store: &'a Store,
    /// Receives news of the runs; `&()` if nobody wants to know.
    pub observer: &'a dyn Observer,
    /// Becomes true when the user asks for the end.
    pub cancel: &'a AtomicBool,
    /// True if a run that the store already holds is taken from there.
    pub resume: bool,
}

/// The results of all jobs.
#[derive(Debug)]
pub struct Results {
    /// The runs that were begun, in the order of their groups.
    pub runs: Vec<Run>,
    /// The number of jobs that were not begun.
    pub left: usize,
    /// The reason why some results could not be stored.
    pub unstored: Option<StoreError>,
}

/// A run that has ended, or that the store already had.
#[derive(Debug)]
pub struct Ended {
    /// The run.
    pub run: Run,
    /// The reason why some of it could not be stored.
    pub unstored: Option<StoreError>,
}

impl Results {
    /// Returns the results if the store has all of them.
    ///
    /// # Errors
    /// The reason why something could not be stored: then nothing may be said of these runs that
    /// others could not look up.
    pub fn stored(mut self) -> Result<Self, StoreError> {
        self.unstored.take().map_or(Ok(self), Err)
    }

    /// Returns true if a run was ended by the user, or was not begun.
    pub fn is_interrupted(&self) -> bool {
        let ended = |run: &Run| run.state == State::Interrupted;
        self.left > 0 || self.runs.iter().any(ended)
    }
}

impl Runner<'_> {
    /// Makes all runs, `side_by_side` of them at a time. The use of memory grows with the groups,
    /// not with the jobs.
    ///
    /// # Panics
    /// If the observer panics.
    pub fn carry_out(&self, jobs: &[Job], side_by_side: usize) -> Result<Results, StoreError> {
        let gathered = Mutex::new(Gathered::default());
        self.carry_out_each(jobs, side_by_side, &|| true, &|group, ended| {
            let mut gathered = gathered.lock().unwrap_or_else(PoisonError::into_inner);
            gathered.add(group, ended);
        })?;
        let gathered = gathered
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        Ok(gathered.results(jobs.len()))
    }

    /// Makes all runs, `side_by_side` of them at a time, as long as `goes_on` returns true before
    /// the next one begins. `take` gets each run with its group, in the order in which they end;
    /// none of it stays in memory here.
    ///
    /// # Panics
    /// If the observer or `take` panics.
    pub fn carry_out_each(
        &self,
        jobs: &[Job],
        side_by_side: usize,
        goes_on: &(dyn Fn() -> bool + Sync),
        take: &(dyn Fn(usize, Ended) + Sync),
    ) -> Result<(), StoreError> {
        let queue: Mutex<VecDeque<&Job>> = Mutex::new(jobs.iter().collect());
        let work = || -> Result<(), StoreError> {
            while !self.cancel.load(Ordering::SeqCst) && goes_on() {
                let (job, begun) = match self.begin_next(&queue)? {
                    Next::Begun(job, begun) => (job, begun),
                    Next::OfOthers => {
                        thread::sleep(PAUSE);
                        continue;
                    }
                    Next::None => break,
                };
                let made = match begun {
                    Begun::New(run) => self.make(job, run),
                    Begun::Kept(run) => Made::of(run),
                };
                let (run, unstored) = (*made.run, made.unstored);
                take(job.group, Ended { run, unstored });
            }
            Ok(())
        };
        let workers = side_by_side.clamp(1, jobs.len().max(1));
        thread::scope(|scope| {
            let threads: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
            for thread in threads {
                thread.join().expect("a worker does not panic")?;
            }
            Ok(())
        })
    }

    /// Begins the next run. A worker that takes a job begins its run before the next job can be
    /// taken, so that the order of ids is that of the jobs. A job that another process measures
    /// goes to the end of the queue.
    fn begin_next<'j>(&self, queue: &Mutex<VecDeque<&'j Job<'j>>>) -> Result<Next<'j>, StoreError> {
        let mut queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
        for _ in 0..queue.len() {
            let Some(job) = queue.pop_front() else { break };
            match self.begin(job)? {
                Some(begun) => return Ok(Next::Begun(job, begun)),
                None => queue.push_back(job),
            }
        }
        Ok(if queue.is_empty() {
            Next::None
        } else {
            Next::OfOthers
        })
    }

    /// Begins a run; returns `None` if it is not to be made again and another process measures it.
    fn begin(&self, job: &Job) -> Result<Option<Begun>, StoreError> {
        let mut run = job.run();
        if !self.resume {
            run.id = self.store.begin(&run)?;
            return Ok(Some(Begun::New(Box::new(run))));
        }
        match self.store.begin_unless_known(&run)? {
            InStore::New(id) => {
                run.id = id;
                Ok(Some(Begun::New(Box::new(run))))
            }
            InStore::Known(id) => {
                let kept = self.store.load(&id)?;
                // A right or a device that a real machine lacked may be there by now. What it could
                // measure is not measured again.
                let is_empty = kept.recordings.is_empty() && !kept.unsupported.is_empty();
                if !kept.is_virtual() && is_empty {
                    run.id = self.store.begin(&run)?;
                    return Ok(Some(Begun::New(Box::new(run))));
                }
                self.observer.kept(&kept, &job.plan);
                Ok(Some(Begun::Kept(Box::new(kept))))
            }
            InStore::Elsewhere(id) => {
                self.observer.elsewhere(&id, &run);
                Ok(None)
            }
        }
    }

    fn make(&self, job: &Job, run: Box<Run>) -> Made {
        self.observer.begun(&run, &job.plan);
        let plan = run.plan.clone();
        let mut made = Made::of(run);
        let on = &mut |event| self.take(&mut made, event);
        let mut ending = job.system.run(&plan, on, self.cancel);
        let afterwards = std::mem::take(&mut ending.afterwards);
        self.end(&mut made, ending);
        // What could not be stored is not dropped where it is.
        if made.unstored.is_none() {
            afterwards.carry_out();
        }
        made
    }

    /// Adds what the target reports to the run, and at once to the store.
    fn take(&self, made: &mut Made, event: Event) -> ControlFlow<()> {
        self.observer.event(&made.run, &event);
        if let Event::Record(record) = event {
            self.keep(made, *record);
        }
        match made.refused {
            Some(_) => ControlFlow::Break(()),
            None => ControlFlow::Continue(()),
        }
    }

    fn keep(&self, made: &mut Made, record: Record) {
        let (store, id) = (self.store, made.run.id.clone());
        let stored = match record {
            Record::Provenance(provenance) => {
                let stored = store.set_provenance(&id, &provenance);
                // A real machine is taken as it is, whatever its boot arguments ask for.
                if made.run.is_virtual() {
                    let boot = &made.run.subject.boot;
                    made.refused = preemption::contradiction(boot, &provenance.preemption);
                }
                made.run.provenance = Some(provenance);
                stored
            }
            Record::Step(mut step) => {
                step.marks = self.observer.marks(&made.run, step.step);
                let stored = store.add_step(&id, &step);
                made.run.steps.push(step);
                stored
            }
            Record::Recording(recording) | Record::SoFar(recording) => {
                let stored = store.put_recording(&id, &recording);
                let all = &mut made.run.recordings;
                all.retain(|before| before.key != recording.key);
                all.push(*recording);
                stored
            }
            Record::Unsupported(unsupported) => {
                let stored = store.add_unsupported(&id, &unsupported);
                made.run.unsupported.push(unsupported);
                stored
            }
            Record::Started(_)
            | Record::Refused(_)
            | Record::Finished(_)
            | Record::Interrupted(_) => Ok(()),
        };
        made.note(stored);
    }

    fn end(&self, made: &mut Made, mut ending: RunEnding) {
        let run = &mut made.run;
        run.console = std::mem::take(&mut ending.console);
        run.finished = Some(now());
        (run.state, run.error) = match &ending.result {
            _ if made.refused.is_some() => (State::Failed, made.refused.take()),
            Ok(()) => (State::Finished, None),
            Err(RunError::Interrupted) => (State::Interrupted, Some("interrupted".into())),
            Err(error) => (State::Failed, Some(error.to_string())),
        };
        // What the store lacks a part of is no finished run there.
        let whole = made.unstored.is_none();
        let digest = run.digest().filter(|_| whole);
        let end = End {
            state: if whole { run.state } else { State::Interrupted },
            error: run
                .error
                .as_deref()
                .or((!whole).then_some("not all of it could be stored")),
            finished: run.finished.as_deref().unwrap_or_default(),
            console: &run.console,
            digest: digest.as_deref(),
        };
        let stored = self.store.end(&run.id, &end);
        self.observer.ended(run, &ending);
        made.note(stored);
    }
}

impl Job<'_> {
    /// The run to be made: nothing has been measured yet.
    pub fn run(&self) -> Run {
        let machine = self.system.machine();
        Run {
            id: String::new(),
            suite: self.suite.to_owned(),
            plan: self.plan.to_toml(),
            seed: self.plan.seed,
            subject: Subject {
                name: self.subject.name.clone(),
                kernel: self.subject.kernel.clone(),
                boot: self.subject.boot.clone(),
                bench: machine.bench().to_owned(),
            },
            state: State::Running,
            error: None,
            started: now(),
            finished: None,
            punctual: env!("CARGO_PKG_VERSION").into(),
            machine,
            shards: 1,
            request: self.request.clone(),
            provenance: None,
            steps: Vec::new(),
            recordings: Vec::new(),
            unsupported: Vec::new(),
            console: String::new(),
            arrivals: Vec::new(),
        }
    }
}

/// The next action of a worker.
enum Next<'a> {
    /// It makes this run.
    Begun(&'a Job<'a>, Begun),
    /// Others make all remaining runs: it waits for their results.
    OfOthers,
    /// There is nothing left.
    None,
}

/// A run to be made, or one that the store already has.
enum Begun {
    New(Box<Run>),
    Kept(Box<Run>),
}

/// Runs by their groups.
#[derive(Default)]
struct Gathered {
    runs: BTreeMap<usize, Run>,
    begun: usize,
    unstored: Option<StoreError>,
}

impl Gathered {
    fn add(&mut self, group: usize, ended: Ended) {
        self.begun += 1;
        self.unstored = self.unstored.take().or(ended.unstored);
        match self.runs.entry(group) {
            Entry::Occupied(mut run) => run.get_mut().absorb(ended.run),
            Entry::Vacant(free) => _ = free.insert(ended.run),
        }
    }

    fn results(self, jobs: usize) -> Results {
        Results {
            runs: self.runs.into_values().collect(),
            left: jobs - self.begun,
            unstored: self.unstored,
        }
    }
}

/// A run, and the reason why it could not be stored.
struct Made {
    run: Box<Run>,
    /// The reason why it is not the run that was asked for.
    refused: Option<String>,
    unstored: Option<StoreError>,
}

impl Made {
    fn of(run: Box<Run>) -> Self {
        Self {
            run,
            refused: None,
            unstored: None,
        }
    }

    /// Notes the first trouble only: the others follow from it.
    fn note(&mut self, stored: Result<(), StoreError>) {
        if let Err(error) = stored {
            self.unstored.get_or_insert(error);
        }
    }
}

/// The current time in the form used in runs: RFC 3339, UTC, to the second.
pub fn now() -> String {
    Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::Arc;

    use punctual_bench::system::{Afterwards, Listener};
    use punctual_model::MachineRecord;
    use punctual_model::machine::HostMachine;

    use super::*;

    /// A system that measures nothing, and afterwards looks at what the store has of the run.
    struct Looks {
        store: PathBuf,
        seen: Arc<Mutex<Vec<State>>>,
    }

    impl SystemUnderTest for Looks {
        fn machine(&self) -> MachineRecord {
            MachineRecord::Host(HostMachine {
                host: "board".into(),
                release: None,
                cpus: None,
                target_sha256: None,
                ssh: None,
            })
        }

        fn run(&self, _plan: &str, _on: Listener, _cancel: &AtomicBool) -> RunEnding {
            let (store, seen) = (self.store.clone(), Arc::clone(&self.seen));
            RunEnding {
                console: String::new(),
                preparing: Duration::ZERO,
                measuring: Duration::ZERO,
                result: Ok(()),
                afterwards: Afterwards::new(move || {
                    let runs = Store::open(&store).unwrap().list().unwrap();
                    seen.lock()
                        .unwrap()
                        .extend(runs.iter().map(|run| run.state));
                }),
            }
        }
    }

    #[test]
    fn what_a_board_keeps_is_dropped_when_the_run_is_stored_as_finished() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("runs.db");
        let store = Store::open(&path).unwrap();
        let seen = Arc::default();
        let system = Looks {
            store: path,
            seen: Arc::clone(&seen),
        };
        let subject = SubjectSpec {
            name: "board".into(),
            kernel: "as it runs".into(),
            boot: String::new(),
        };
        let runner = Runner {
            store: &store,
            observer: &(),
            cancel: &AtomicBool::new(false),
            resume: false,
        };
        let job = Job {
            group: 0,
            suite: "none",
            subject: &subject,
            system: &system,
            plan: toml::from_str("seed = 1\nstep = []\n").unwrap(),
            request: Request::default(),
        };
        runner.carry_out(&[job], 1).unwrap();
        assert_eq!(*seen.lock().unwrap(), [State::Finished]);
    }
}

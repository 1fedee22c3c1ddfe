//! Carries out runs, side by side, and stores what comes.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use anyhow::Result;
use jiff::Timestamp;
use punctual_bench::site::{Event, Outcome, Site};
use punctual_bench::{BenchError, tail};
use punctual_model::run::State;
use punctual_model::suite::SubjectSpec;
use punctual_model::{Plan, Record, Run, Subject};
use punctual_store::{Store, StoreError};

use crate::progress::{Line, Progress};

/// One run to be made.
pub struct Job<'a> {
    /// The suite's name.
    pub suite: &'a str,
    /// What is judged.
    pub subject: &'a SubjectSpec,
    /// Where.
    pub site: &'a dyn Site,
    /// What is measured.
    pub plan: Plan,
}

/// Where runs are made and kept.
pub struct Lab<'a> {
    /// The store.
    pub store: &'a Store,
    /// Where progress is shown.
    pub progress: &'a Progress,
    /// Becomes true when the user wants an end.
    pub cancel: &'a AtomicBool,
}

/// What came of all jobs.
#[derive(Debug)]
pub struct Results {
    /// The runs that were begun, in the order of their jobs.
    pub runs: Vec<Run>,
    /// How many jobs were not begun.
    pub left: usize,
    /// Why some of it could not be stored.
    pub unstored: Option<StoreError>,
}

impl Job<'_> {
    fn name(&self) -> String {
        format!("{} (seed {})", self.subject.name, self.plan.seed)
    }
}

impl Lab<'_> {
    /// Makes all runs, `side_by_side` of them at a time.
    pub fn carry_out(&self, jobs: &[Job], side_by_side: usize) -> Result<Results> {
        let queue: Mutex<VecDeque<usize>> = Mutex::new((0..jobs.len()).collect());
        // Whoever takes a job begins its run before the next one can be taken, so that the
        // order of ids is that of the jobs.
        let begin_next = || -> Result<Option<(usize, Run)>> {
            let mut queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
            let next = queue.pop_front();
            next.map(|number| Ok((number, self.begin(&jobs[number])?)))
                .transpose()
        };
        let work = || -> Result<Vec<(usize, Made)>> {
            let mut made = Vec::new();
            while !self.cancel.load(Ordering::SeqCst) {
                let Some((number, run)) = begin_next()? else {
                    break;
                };
                made.push((number, self.make(&jobs[number], run)));
            }
            Ok(made)
        };
        let workers = side_by_side.clamp(1, jobs.len().max(1));
        let mut made = thread::scope(|scope| {
            let threads: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
            let mut made = Vec::new();
            for thread in threads {
                made.extend(thread.join().expect("a worker does not panic")?);
            }
            Ok::<_, anyhow::Error>(made)
        })?;
        made.sort_by_key(|(number, _)| *number);
        let mut results = Results {
            runs: Vec::new(),
            left: jobs.len() - made.len(),
            unstored: None,
        };
        for (_, made) in made {
            results.runs.push(made.run);
            results.unstored = results.unstored.or(made.unstored);
        }
        Ok(results)
    }

    fn begin(&self, job: &Job) -> Result<Run> {
        let mut run = new_run(job);
        run.id = self.store.begin(&run)?;
        Ok(run)
    }

    fn make(&self, job: &Job, run: Run) -> Made {
        let line = self.progress.line(job.name(), job.plan.steps.len());
        let plan = run.plan.clone();
        let mut made = Made {
            run,
            unstored: None,
        };
        let on = &mut |event| self.take(&mut made, &line, event);
        let outcome = job.site.run(&plan, on, self.cancel);
        self.end(&mut made, line, outcome);
        made
    }

    /// Takes what the target says: into the run, and at once into the store.
    fn take(&self, made: &mut Made, line: &Line, event: Event) {
        line.show(&event);
        let Event::Record(record) = event else { return };
        let (store, id) = (self.store, made.run.id.clone());
        let stored = match *record {
            Record::Provenance(provenance) => {
                let stored = store.set_provenance(&id, &provenance);
                made.run.provenance = Some(provenance);
                stored
            }
            Record::Recording(recording) => {
                let stored = store.add_recording(&id, &recording);
                made.run.recordings.push(*recording);
                stored
            }
            Record::Unsupported(unsupported) => {
                let stored = store.add_unsupported(&id, &unsupported);
                made.run.unsupported.push(unsupported);
                stored
            }
            Record::Started(_) | Record::Refused(_) | Record::Finished(_) => Ok(()),
        };
        made.note(stored);
    }

    fn end(&self, made: &mut Made, line: Line, outcome: Outcome) {
        let run = &mut made.run;
        run.console = outcome.console;
        run.finished = Some(now());
        (run.state, run.error) = match &outcome.result {
            Ok(()) => (State::Finished, None),
            Err(BenchError::Interrupted) => (State::Interrupted, Some("interrupted".into())),
            Err(error) => (State::Failed, Some(error.to_string())),
        };
        let stored = self.store.end(
            &run.id,
            run.state,
            run.error.as_deref(),
            run.finished.as_deref().unwrap_or_default(),
            &run.console,
            run.digest().as_deref(),
        );
        let spent = format!(
            "prepared in {:.1} s, measured in {:.1} s",
            outcome.preparing.as_secs_f64(),
            outcome.measuring.as_secs_f64()
        );
        line.end(&format!("{} is {}; {spent}", run.id, run.state));
        if run.state == State::Failed {
            let error = run.error.as_deref().unwrap_or_default();
            let (name, tail) = (&run.subject.name, tail(&run.console));
            self.progress
                .complain(&format!("punctual: {name}: {error}{tail}"));
        }
        made.note(stored);
    }
}

fn new_run(job: &Job) -> Run {
    let mut bench = job.site.facts();
    bench.insert("punctual".into(), env!("CARGO_PKG_VERSION").into());
    Run {
        id: String::new(),
        suite: job.suite.to_owned(),
        plan: job.plan.to_toml(),
        seed: job.plan.seed,
        ns_per_insn: job.site.ns_per_insn(),
        subject: Subject {
            name: job.subject.name.clone(),
            kernel: job.subject.kernel.clone(),
            boot: job.subject.boot.clone(),
            bench: job.site.bench().to_owned(),
        },
        state: State::Running,
        error: None,
        started: now(),
        finished: None,
        bench,
        provenance: None,
        recordings: Vec::new(),
        unsupported: Vec::new(),
        console: String::new(),
    }
}

/// A run, and what kept it from being stored.
struct Made {
    run: Run,
    unstored: Option<StoreError>,
}

impl Made {
    /// Only the first trouble is told: the others follow from it.
    fn note(&mut self, stored: Result<(), StoreError>) {
        if let Err(error) = stored {
            self.unstored.get_or_insert(error);
        }
    }
}

fn now() -> String {
    Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

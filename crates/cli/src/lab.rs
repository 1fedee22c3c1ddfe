//! Carries out runs: prepares machines, runs them side by side, and stores what comes.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result};
use jiff::Timestamp;
use punctual_bench::host::HostSite;
use punctual_bench::initramfs;
use punctual_bench::kernels::{Catalog, Kernel};
use punctual_bench::site::{Event, Outcome, Site};
use punctual_bench::virtual_bench::{Machine, Start, VirtualBench, VirtualSite, cmdline};
use punctual_bench::{BenchError, tail};
use punctual_model::run::State;
use punctual_model::suite::SubjectSpec;
use punctual_model::{Plan, Record, Run, Subject};
use punctual_store::{Store, StoreError};

use crate::progress::{Line, Progress};

/// Names the target program where it is not beside this one.
const TARGET_VARIABLE: &str = "PUNCTUAL_TARGET";

/// What every virtual subject of a suite gets.
#[derive(Debug)]
pub struct Equipment {
    /// Programs of this machine that the guest gets too.
    pub programs: Vec<PathBuf>,
    /// The guest's memory, in mebibytes.
    pub memory_mib: u32,
    /// Nanoseconds of virtual time per instruction.
    pub ns_per_insn: u32,
    /// How a run gets to a booted guest.
    pub start: Start,
}

/// One run to be made.
pub struct Job<'a> {
    /// The suite's name.
    pub suite: &'a str,
    /// What is judged.
    pub subject: &'a SubjectSpec,
    /// Where.
    pub site: &'a dyn Site,
    /// What is measured.
    pub plan: &'a Plan,
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

/// Virtual subjects at their places; kernels are fetched where that is needed.
pub fn virtual_sites(
    bench: &VirtualBench,
    catalog: &Catalog,
    equipment: &Equipment,
    subjects: &[SubjectSpec],
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<Box<dyn Site>>> {
    let (target, busybox) = (target()?, initramfs::find_busybox()?);
    let mut kernels: BTreeMap<&str, (Kernel, PathBuf, String)> = BTreeMap::new();
    let mut sites: Vec<Box<dyn Site>> = Vec::new();
    for subject in subjects {
        if !kernels.contains_key(subject.kernel.as_str()) {
            let kernel = catalog.ensure(&subject.kernel, progress)?;
            let programs = &equipment.programs;
            let initramfs = initramfs::base(&target, &busybox, &kernel.modules, programs)?;
            let (path, sha256) = bench.keep_initramfs(&initramfs)?;
            kernels.insert(&subject.kernel, (kernel, path, sha256));
        }
        let (kernel, path, sha256) = kernels[subject.kernel.as_str()].clone();
        let machine = Machine {
            cmdline: cmdline(&kernel, &subject.boot),
            kernel,
            initramfs: path,
            initramfs_sha256: sha256,
            memory_mib: equipment.memory_mib,
            ns_per_insn: equipment.ns_per_insn,
        };
        sites.push(Box::new(VirtualSite {
            bench: bench.clone(),
            machine,
            start: equipment.start,
        }));
    }
    Ok(sites)
}

/// This machine, as it is.
pub fn host_site(cache: PathBuf, silence: Duration) -> Result<Box<dyn Site>> {
    Ok(Box::new(HostSite {
        target: target()?,
        cache,
        silence,
    }))
}

/// The static target program: beside this one, or where the environment says.
fn target() -> Result<PathBuf> {
    if let Some(path) = std::env::var_os(TARGET_VARIABLE) {
        return Ok(path.into());
    }
    let this = std::env::current_exe().context("cannot find out where this program is")?;
    Ok(this.with_file_name("punctual-target"))
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
        let next = || {
            queue
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .pop_front()
        };
        let work = || -> Result<Vec<(usize, Made)>> {
            let mut made = Vec::new();
            while !self.cancel.load(Ordering::SeqCst) {
                let Some(number) = next() else { break };
                made.push((number, self.make(&jobs[number])?));
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

    fn make(&self, job: &Job) -> Result<Made> {
        let line = self.progress.line(job.name(), job.plan.steps.len());
        let mut run = begin(job);
        run.id = self.store.begin(&run)?;
        let mut made = Made {
            run,
            unstored: None,
        };
        let plan = made.run.plan.clone();
        let on = &mut |event| self.take(&mut made, &line, event);
        let outcome = job.site.run(&plan, on, self.cancel);
        self.end(&mut made, line, outcome);
        Ok(made)
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

fn begin(job: &Job) -> Run {
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

/// Programs by name or path, as paths; a name is looked up along the PATH.
pub fn find_programs(programs: &[String]) -> Result<Vec<PathBuf>> {
    let search = std::env::var_os("PATH").unwrap_or_default();
    let find = |name: &String| {
        if name.contains('/') {
            return Ok(PathBuf::from(name));
        }
        let candidates = std::env::split_paths(&search).map(|directory| directory.join(name));
        let found = candidates
            .into_iter()
            .find(|path: &PathBuf| Path::is_file(path));
        found.with_context(|| {
            format!("the suite wants the program {name} in the guest, and it is not installed here")
        })
    };
    programs.iter().map(find).collect()
}

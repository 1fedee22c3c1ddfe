// SPDX-License-Identifier: MIT OR Apache-2.0
//! Slurm: each run is a task of a job array, and its result is a file, which is merged exactly
//! once.
//!
//! ```text
//! DIR/programs/SHA/punctual   the program that the tasks run
//!     tasks/KEY.json          what a run is: machine, plan, subject
//!     batches/NAME            the keys of a job array, a line each; NAME is the job's
//!     batches/NAME.sh         its script
//!     results/KEY.punctual    what a task delivers, as `punctual export` writes it
//!     results/KEY.times       how long it took, and its guest ran
//!     logs/NAME-INDEX.log     what a task says
//! ```
//!
//! A run is known by its key, which depends on its content and not on who makes it. So a task may
//! be submitted twice, a node may come back from the dead, and this process may be killed at any
//! moment: a delivered result is a file that exists as a whole or not at all, and the store accepts
//! a run only if it has no equal one. Slurm itself is asked which tasks wait or run, by the names
//! of the job arrays.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::mem::take;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use punctual_exchange::{ExchangeError, Reader};
use punctual_kernels::checksum;
use punctual_kernels::paths::{Lock, write_atomically};
use punctual_model::Run;
use punctual_model::run::State;
use punctual_store::{Added, Store};
use serde::{Deserialize, Serialize};

use super::key;
use crate::Error;

/// The most submissions of a task that delivers nothing.
const ATTEMPTS: u32 = 5;

/// The most tasks of a job array: Slurm's own default allows one more.
const TASKS: usize = 1_000;

/// The pause before Slurm is asked again.
const PAUSE: Duration = Duration::from_secs(2);

/// The reasons, in Slurm's words, for which it does not start a task again by itself.
const HELD: [&str; 2] = ["launch failed requeued held", "JobHoldMaxRequeue"];

/// The prefix of the names of job arrays: a number follows.
const NAME: &str = "punctual-";

/// A cluster, as seen from a directory that all its nodes share.
pub struct Slurm<'a> {
    /// The shared directory, as an absolute path.
    pub directory: &'a Path,
    /// The directory of caches, which the nodes share as well: `XDG_CACHE_HOME` of the tasks.
    pub cache_home: &'a Path,
    /// Further options of `sbatch`.
    pub options: &'a [String],
    /// The memory of a node that a task takes, in mebibytes.
    pub memory_mib: u32,
    /// The store into which results are merged.
    pub store: &'a Store,
    /// Becomes true when the user asks for the end.
    pub cancel: &'a AtomicBool,
}

/// The duration of a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Times {
    /// The time that its guest ran, in seconds, without its preparation.
    pub guest_s: f64,
    /// The time that it had its node, in seconds: from the first line of its script to its result.
    pub allocated_s: f64,
}

/// Something that happens while a cluster measures.
#[derive(Debug)]
pub enum Event {
    /// This many tasks were put into the queue.
    Put(usize),
    /// A run was delivered, and is in the store under this id. Its duration is unknown if a file
    /// was lost.
    Merged(String, Box<Run>, Option<Times>),
    /// Something went wrong and is tried again.
    Trouble(String),
}

/// The outcome of a campaign on a cluster.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The runs that were not delivered, by key, with the messages about each.
    pub given_up: Vec<String>,
    /// The number of tasks that are still in the queue or running.
    pub under_way: usize,
}

/// The key and the run of a task.
pub fn task(directory: &Path, name: &str, index: usize) -> Result<(String, Run), Error> {
    let batch = directory.join("batches").join(name);
    let keys = fs::read_to_string(&batch).map_err(Error::at(&batch))?;
    let key = keys.lines().nth(index).ok_or_else(|| {
        let batch = batch.display();
        Error::Request(format!("{batch}: expected more than {index} lines"))
    })?;
    let path = directory.join("tasks").join(format!("{key}.json"));
    let text = fs::read(&path).map_err(Error::at(&path))?;
    let run = serde_json::from_slice(&text);
    let run: Run = run.map_err(|why| Error::Request(format!("{}: {why}", path.display())))?;
    Ok((key.to_owned(), run))
}

/// The path to which a task writes its result.
pub fn result(directory: &Path, key: &str) -> PathBuf {
    directory.join("results").join(format!("{key}.punctual"))
}

/// The path to which a task writes its duration.
pub fn times(directory: &Path, key: &str) -> PathBuf {
    result(directory, key).with_extension("times")
}

impl Slurm<'_> {
    /// Has these runs made, none of which is in the store. Tasks are submitted as long as `goes_on`
    /// returns true; `on` is told what happens.
    ///
    /// # Errors
    /// If files cannot be written, Slurm's programs are missing, or another process takes care of
    /// this directory.
    pub fn carry_out(
        &self,
        runs: Vec<Run>,
        goes_on: &dyn Fn() -> bool,
        on: &mut dyn FnMut(Event),
    ) -> Result<Outcome, Error> {
        let lock = self.directory.join("lock");
        let Some(_lock) = Lock::try_acquire(&lock).map_err(Error::at(&lock))? else {
            let lock = lock.display();
            return Err(Error::Request(format!(
                "{lock}: another punctual takes care of this directory"
            )));
        };
        let program = self.program()?;
        let mut open: BTreeMap<String, Run> = BTreeMap::new();
        for run in runs {
            open.insert(key(&run), run);
        }
        self.write_tasks(&open)?;
        self.gather(open, &program, goes_on, on)
    }

    /// Submits tasks and takes their results until nothing is left to wait for.
    fn gather(
        &self,
        mut open: BTreeMap<String, Run>,
        program: &Path,
        goes_on: &dyn Fn() -> bool,
        on: &mut dyn FnMut(Event),
    ) -> Result<Outcome, Error> {
        let mut attempts: BTreeMap<String, u32> = BTreeMap::new();
        let mut outcome = Outcome::default();
        let mut trouble = Said::default();
        loop {
            // First the queue, then the results: what ends in between is seen as delivered.
            let queue = self.queue();
            self.merge(&mut open, on)?;
            let waiting = match queue {
                Err(why) => {
                    trouble.tell(why, on)?;
                    open.keys().cloned().collect()
                }
                Ok(waiting) => waiting,
            };
            outcome.under_way = open.keys().filter(|key| waiting.contains(*key)).count();
            if open.is_empty() || self.cancel.load(Ordering::SeqCst) {
                return Ok(outcome);
            }
            if goes_on() {
                let lost = self.give_up(&mut open, &waiting, &attempts);
                outcome.given_up.extend(lost);
                let missing = open.keys().filter(|key| !waiting.contains(*key));
                let missing: Vec<String> = missing.cloned().collect();
                for keys in missing.chunks(TASKS) {
                    match self.put(program, keys) {
                        Ok(()) => on(Event::Put(keys.len())),
                        Err(why) => {
                            trouble.tell(why, on)?;
                            continue;
                        }
                    }
                    for key in keys {
                        *attempts.entry(key.clone()).or_default() += 1;
                    }
                }
            } else {
                self.withdraw();
                if outcome.under_way == 0 {
                    return Ok(outcome);
                }
            }
            self.pause();
        }
    }

    /// Removes tasks from `open` that were submitted often enough and are no longer in the queue;
    /// returns a message about each.
    fn give_up(
        &self,
        open: &mut BTreeMap<String, Run>,
        waiting: &BTreeSet<String>,
        attempts: &BTreeMap<String, u32>,
    ) -> Vec<String> {
        let is_lost = |(key, _): &(String, Run)| {
            attempts.get(key).is_some_and(|times| *times >= ATTEMPTS) && !waiting.contains(key)
        };
        let (lost, left): (Vec<_>, Vec<_>) = take(open).into_iter().partition(is_lost);
        open.extend(left);
        let logs = self.directory.join("logs");
        let logs = logs.display();
        let said = |(key, run): (String, Run)| {
            let (subject, seed) = (&run.subject.name, run.seed);
            format!(
                "{subject}, seed {seed}: {ATTEMPTS} tasks delivered nothing; {logs} has what \
                 they said ({key})"
            )
        };
        lost.into_iter().map(said).collect()
    }

    /// Waits a little, but stops at once if the user asks for the end.
    fn pause(&self) {
        let step = PAUSE / 20;
        for _ in 0..20 {
            if self.cancel.load(Ordering::SeqCst) {
                return;
            }
            thread::sleep(step);
        }
    }

    /// The path of this program where all nodes see it, named by its content.
    fn program(&self) -> Result<PathBuf, Error> {
        let own = Path::new("/proc/self/exe");
        let sum = checksum::of_file(own).map_err(Error::at(own))?;
        let path = self.directory.join("programs").join(sum).join("punctual");
        if !path.is_file() {
            let bytes = fs::read(own).map_err(Error::at(own))?;
            write_atomically(&path, &bytes).map_err(Error::at(&path))?;
            let mode = fs::Permissions::from_mode(0o755);
            fs::set_permissions(&path, mode).map_err(Error::at(&path))?;
        }
        Ok(path)
    }

    fn write_tasks(&self, open: &BTreeMap<String, Run>) -> Result<(), Error> {
        for directory in ["tasks", "results", "batches", "logs"] {
            let path = self.directory.join(directory);
            fs::create_dir_all(&path).map_err(Error::at(&path))?;
        }
        for (key, run) in open {
            let path = self.directory.join("tasks").join(format!("{key}.json"));
            let text = serde_json::to_vec(run).expect("the model's types can be written as JSON");
            write_atomically(&path, &text).map_err(Error::at(&path))?;
        }
        Ok(())
    }

    /// Submits a job array of these tasks. Its name and keys are written before Slurm knows of it.
    fn put(&self, program: &Path, keys: &[String]) -> Result<(), Trouble> {
        let passing = |error: io::Error| Trouble::Passing(error.to_string());
        let moment = jiff::Timestamp::now().as_nanosecond();
        let number = checksum::of_bytes(format!("{moment} {}", std::process::id()).as_bytes());
        let name = format!("{NAME}{number:.12}");
        let batch = self.directory.join("batches").join(&name);
        let lines = keys.join("\n") + "\n";
        write_atomically(&batch, lines.as_bytes()).map_err(passing)?;
        let script = batch.with_extension("sh");
        let words = [program, Path::new("work"), self.directory, Path::new(&name)];
        let words = words.map(quoted).join(" ");
        let cache = quoted(self.cache_home);
        let text = format!(
            "#!/bin/sh\nPUNCTUAL_BEGUN=$(date +%s.%N)\nXDG_CACHE_HOME={cache}\n\
             export PUNCTUAL_BEGUN XDG_CACHE_HOME\nexec {words} \"$SLURM_ARRAY_TASK_ID\"\n"
        );
        write_atomically(&script, text.as_bytes()).map_err(passing)?;
        let log = self.directory.join("logs").join(format!("{name}-%a.log"));
        let mut command = Command::new("sbatch");
        command
            .args(["--parsable", "--requeue", "--open-mode=append"])
            .args(["--ntasks=1", "--cpus-per-task=1"])
            .arg(format!("--mem={}", self.memory_mib))
            .arg(format!("--job-name={name}"))
            .arg(format!("--array=0-{}", keys.len() - 1))
            .arg(format!("--output={}", log.display()))
            .arg(format!("--chdir={}", self.directory.display()))
            .args(self.options)
            .arg(&script);
        asked(&mut command).map(drop)
    }

    /// The keys of all tasks that wait or run.
    fn queue(&self) -> Result<BTreeSet<String>, Trouble> {
        let passing = |error: io::Error| Trouble::Passing(error.to_string());
        let mut batches: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for entry in fs::read_dir(self.directory.join("batches")).map_err(passing)? {
            let path = entry.map_err(passing)?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if name.starts_with(NAME) && path.extension().is_none() {
                let keys = fs::read_to_string(&path).map_err(passing)?;
                let keys = keys.lines().map(str::to_owned).collect();
                batches.insert(name.into_owned(), keys);
            }
        }
        let mut command = Command::new("squeue");
        command.args(["--noheader", "--array", "--format=%i %j %K %r"]);
        let listed = asked(&mut command)?;
        let (waiting, held) = listed_tasks(&listed, &batches);
        for id in held {
            // It would wait for an operator. A controller that is away is asked again.
            _ = Command::new("scancel").arg(id).output();
        }
        Ok(waiting)
    }

    /// Takes waiting tasks out of the queue. Running tasks go on.
    fn withdraw(&self) {
        let Ok(entries) = fs::read_dir(self.directory.join("batches")) else {
            return;
        };
        let names = entries.flatten().map(|entry| entry.file_name());
        let names = names.filter_map(|name| name.into_string().ok());
        for name in names.filter(|name| name.starts_with(NAME) && !name.contains('.')) {
            let mut command = Command::new("scancel");
            command.args(["--state=PENDING", "--name", &name]);
            // A controller that is away is asked again the next time.
            _ = command.output();
        }
    }

    /// Moves results into the store, each run once.
    fn merge(
        &self,
        open: &mut BTreeMap<String, Run>,
        on: &mut dyn FnMut(Event),
    ) -> Result<(), Error> {
        let keys: Vec<String> = open.keys().cloned().collect();
        for key in keys {
            let path = result(self.directory, &key);
            let delivered = match File::open(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => Err(ExchangeError::Io(error)),
                Ok(file) => only_run(file),
            };
            match delivered {
                Ok(run) if super::key(&run) == key && run.state != State::Interrupted => {
                    let id = match self.store.id_of_equal(&run)? {
                        Some(id) => id,
                        None => match self.store.add(&run)? {
                            Added::New(id) | Added::Known(id) => id,
                        },
                    };
                    let took = fs::read(times(self.directory, &key));
                    let took = took
                        .ok()
                        .and_then(|text| serde_json::from_slice(&text).ok());
                    on(Event::Merged(id, Box::new(run), took));
                    open.remove(&key);
                }
                Ok(_) => {
                    let path = path.display();
                    on(Event::Trouble(format!(
                        "{path}: expected the run {key}, found another"
                    )));
                }
                Err(error) => on(Event::Trouble(format!("{}: {error}", path.display()))),
            }
            // What was merged is in the store; what is damaged is delivered again.
            _ = fs::remove_file(times(self.directory, &key));
            fs::remove_file(&path).map_err(Error::at(&path))?;
        }
        Ok(())
    }
}

/// Reads the output of `squeue` (`%i %j %K %r`) about the tasks of these batches. Returns the keys
/// of those that wait or run, and the ids of those that are held.
pub fn listed_tasks<'a>(
    listed: &'a str,
    batches: &BTreeMap<String, Vec<String>>,
) -> (BTreeSet<String>, Vec<&'a str>) {
    let (mut waiting, mut all_held) = (BTreeSet::new(), Vec::new());
    for line in listed.lines() {
        let words: Vec<&str> = line.trim().splitn(4, ' ').collect();
        let [id, name, index, reason] = words.as_slice() else {
            continue;
        };
        let keys = batches.get(*name);
        let key = keys.and_then(|keys| keys.get(index.parse::<usize>().ok()?));
        if HELD.iter().any(|held| reason.contains(held)) && key.is_some() {
            all_held.push(*id);
            continue;
        }
        waiting.extend(key.cloned());
    }
    (waiting, all_held)
}

/// The only run of a file.
fn only_run(file: File) -> Result<Run, ExchangeError> {
    let mut reader = Reader::new(file)?;
    let run = reader.next_run()?.ok_or(ExchangeError::Torn(1))?;
    match reader.next_run()? {
        None => Ok(run.run),
        Some(_) => Err(ExchangeError::Trailing),
    }
}

/// The reason why Slurm did not answer.
enum Trouble {
    /// It is not installed here.
    Missing(String),
    /// It may answer later.
    Passing(String),
}

/// The last trouble that was reported: the same is not reported again and again.
#[derive(Default)]
struct Said(String);

impl Said {
    /// Reports trouble that may pass; returns an error if it will not.
    fn tell(&mut self, trouble: Trouble, on: &mut dyn FnMut(Event)) -> Result<(), Error> {
        match trouble {
            Trouble::Missing(why) => return Err(Error::Request(why)),
            Trouble::Passing(why) if why != self.0 => {
                self.0.clone_from(&why);
                on(Event::Trouble(why));
            }
            Trouble::Passing(_) => {}
        }
        Ok(())
    }
}

/// Runs a program of Slurm's; returns its output.
fn asked(command: &mut Command) -> Result<String, Trouble> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output: Output = command.output().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Trouble::Missing(format!(
            "expected {name} of Slurm in the PATH, found none: install Slurm's client"
        )),
        _ => Trouble::Passing(format!("{name}: {error}")),
    })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(Trouble::Passing(format!("{name}: {}", said.trim())))
}

/// Quotes a word for a shell.
fn quoted(word: &Path) -> String {
    let word = word.to_string_lossy();
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_for_a_shell_stays_one() {
        assert_eq!(quoted(Path::new("/a b")), "'/a b'");
        assert_eq!(quoted(Path::new("it's")), "'it'\\''s'");
    }

    #[test]
    fn a_task_is_found_by_its_number() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["batches", "tasks"] {
            fs::create_dir(directory.path().join(name)).unwrap();
        }
        fs::write(directory.path().join("batches/punctual-1"), "a\nb\n").unwrap();
        let missing = task(directory.path(), "punctual-1", 2)
            .unwrap_err()
            .to_string();
        assert!(missing.contains("expected more than 2 lines"), "{missing}");
        let none = task(directory.path(), "punctual-1", 1)
            .unwrap_err()
            .to_string();
        assert!(none.contains("b.json"), "{none}");
    }
}

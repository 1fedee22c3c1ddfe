// SPDX-License-Identifier: MIT OR Apache-2.0
//! `punctual verify`: repeats here what others have measured.

mod witnesses;

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context as _, Result};
use clap::Args;
use punctual_exchange::{Exported, Reader};
use punctual_kernels::paths;
use punctual_model::{Plan, Run};
use punctual_report::verification::{
    Change, Claim, Outcome, Verification, claim, verification_json, verification_text,
};
use punctual_runner::repeats::{Ready, Repeats};
use punctual_runner::run_names::{ends, number, rising};
use punctual_runner::{Job, Runner};
use punctual_store::Store;

use super::measure::side_by_side;
use super::run_names::{LAST, is_range};
use super::{StoreArgs, catalog, is_run, virtual_bench};
use crate::hints::store_option;
use crate::output::say;
use crate::progress::Progress;
use crate::{ExitStatus, UsageError, interrupt, output};

const EXAMPLES: &str = "\
Examples:
  punctual verify rt.punctual
  punctual verify rt.punctual --only r3 --json
  punctual verify rt.punctual --sign ~/.ssh/id_ed25519
  punctual verify rt.punctual --witnesses

Each run is repeated in virtual time: its kernel by the very bytes (fetched
where its package is still to be had), its plan with its seed. Equal digests are
the same behaviour to the last sample. Another digest on the same machine
refutes the claim; another QEMU, or another target, leaves it open.
The repeats are kept like all runs: `punctual compare` shows more of them.

--sign adds your result to the file, signed with an SSH key. Then send the file
on; --witnesses lists all who did so.

A file of others is a stranger's: its guests reach nothing outside, and of
this machine's files they get those that its suite names.

Exit status: 0 all are equal; 4 one differs; 5 one stays open; 3 Ctrl-C has
ended it; 1 an error; 2 a wrong request.";

/// The number of runs in memory at a time.
const AT_ONCE: usize = 32;

/// Repeat the runs in a file of `punctual export`, and compare their digests
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Verify {
    /// The file
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Only this run of it, by its id there, or these: r1..r4 (may be repeated)
    #[arg(long, value_name = "RUN")]
    only: Vec<String>,
    /// Sign the result with this SSH key, and add that to the file: a
    /// private key, or a public one whose other half the agent has
    #[arg(long, value_name = "KEY", conflicts_with = "witnesses")]
    sign: Option<PathBuf>,
    /// Repeat nothing: list who has signed a result
    #[arg(long, conflicts_with_all = ["only", "jobs"])]
    witnesses: bool,
    /// With --witnesses: whose keys they are, as ssh-keygen(1) describes it
    /// [default: `~/.ssh/allowed_signers`]
    #[arg(long, value_name = "FILE", requires = "witnesses")]
    allowed_signers: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// How many run side by side [default: the number of CPUs]
    #[arg(long, value_name = "N", value_parser = super::measure::number_args::parse_jobs)]
    jobs: Option<std::num::NonZeroUsize>,
    /// Show no progress
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    store: StoreArgs,
}

impl Verify {
    /// Runs the command: the whole file is read before anything is repeated.
    pub fn run(self) -> Result<ExitStatus> {
        self.refuse_run()?;
        if self.witnesses {
            return witnesses::list(&self.file, self.allowed_signers.as_deref(), self.json);
        }
        let (wanted, sha256) = self.check()?;
        if let Some(key) = &self.sign {
            witnesses::check(&self.file, key)?;
        }
        let store = self.store.open_or_make()?;
        let (catalog, cache) = (catalog()?, paths::cache_dir()?);
        let bench = |cpus| virtual_bench(&cache, cpus).map_err(|error| into_runners(&error));
        let mut repeats = Repeats::new(&catalog, &cache, &bench);
        let mut verification = Verification {
            file: self.file.display().to_string(),
            claims: Vec::new(),
        };
        let cancel = interrupt::flag()?;
        let mut reader = self.reader()?;
        loop {
            let batch = self.batch(&mut reader, &wanted)?;
            if batch.is_empty() || cancel.load(Ordering::SeqCst) {
                break;
            }
            let claims = self.repeat(&batch, &mut repeats, &store)?;
            verification.claims.extend(claims);
        }
        let is_over = !cancel.load(Ordering::SeqCst);
        anyhow::ensure!(
            !is_over || reader.sha256() == sha256,
            "{}: it was replaced meanwhile",
            self.file.display()
        );
        let (json, text) = (
            || verification_json(&verification),
            |width| verification_text(&verification, width),
        );
        output::print_result(self.json, json, text)?;
        if cancel.load(Ordering::SeqCst) {
            let wanted = wanted.len();
            let left = wanted - verification.claims.len();
            let unsigned = if self.sign.is_some() {
                "; nothing was signed"
            } else {
                ""
            };
            say!("punctual: interrupted: {left} of {wanted} runs were not begun{unsigned}");
            return Ok(ExitStatus::Incomplete);
        }
        if let Some(key) = &self.sign {
            witnesses::sign(&self.file, &sha256, &verification, &store, key)?;
            say!("{} has your signature now", self.file.display());
        }
        Ok(match verification.outcome() {
            Outcome::Equal => ExitStatus::Done,
            Outcome::Differs => ExitStatus::Unfit,
            Outcome::Undecided => ExitStatus::Undecided,
        })
    }

    /// Refuses a run of the store in place of a file.
    fn refuse_run(&self) -> Result<(), UsageError> {
        let word = self.file.to_string_lossy();
        if !is_run(&word) || self.file.exists() {
            return Ok(());
        }
        let found = if is_range(&word) { "runs" } else { "a run" };
        let of = store_option();
        Err(UsageError(format!(
            "expected a file of `punctual export`, found {found}: `punctual export {word} -o \
             {word}.punctual{of}` makes one"
        )))
    }

    fn reader(&self) -> Result<Reader<File>> {
        let named = || self.file.display().to_string();
        Reader::new(super::open_named(&self.file)?).with_context(named)
    }

    /// Reads the whole file; returns the ids of the requested runs in it, and its checksum.
    fn check(&self) -> Result<(HashSet<String>, String)> {
        let mut reader = self.reader()?;
        let mut all = Vec::new();
        while let Some(exported) = self.next(&mut reader)? {
            all.push(exported.run.id);
        }
        let file = self.file.display().to_string();
        if all.is_empty() {
            return Err(UsageError(format!("{file} has no run")).into());
        }
        let wanted: HashSet<String> = if self.only.is_empty() {
            all.into_iter().collect()
        } else {
            chosen(&file, &all, &self.only).map_err(UsageError)?
        };
        Ok((wanted, reader.sha256().to_owned()))
    }

    fn next(&self, reader: &mut Reader<File>) -> Result<Option<Exported>> {
        let next = reader.next_run();
        next.with_context(|| self.file.display().to_string())
    }

    /// The next requested runs.
    fn batch(&self, reader: &mut Reader<File>, wanted: &HashSet<String>) -> Result<Vec<Exported>> {
        let mut batch = Vec::new();
        while batch.len() < AT_ONCE {
            let Some(exported) = self.next(reader)? else {
                break;
            };
            if wanted.contains(&exported.run.id) {
                batch.push(exported);
            }
        }
        Ok(batch)
    }

    /// Repeats runs, as far as possible.
    fn repeat(
        &self,
        batch: &[Exported],
        repeats: &mut Repeats<'_>,
        store: &Store,
    ) -> Result<Vec<Claim>> {
        let say = &mut |message: &str| {
            if !self.quiet {
                say!("{message}");
            }
        };
        for one in batch.iter().filter(|one| one.run.digest().is_some()) {
            repeats.prepare(&one.run, one.suite.as_deref(), say);
        }
        let machine = |run: &Run| -> Result<&Ready, String> {
            if let Some(why) = run.no_digest() {
                return Err(format!("there is no digest to compare: {why}"));
            }
            repeats.machine(run).map_err(str::to_owned)
        };
        let mut jobs = Vec::new();
        for (one, group) in batch.iter().zip(0..) {
            if let Ok(ready) = machine(&one.run) {
                jobs.push(Job {
                    group,
                    suite: &one.run.suite,
                    subject: &ready.subject,
                    system: ready.system.as_ref(),
                    plan: toml::from_str::<Plan>(&one.run.plan)?,
                    request: one.run.request.clone(),
                });
            }
        }
        let side_by_side = side_by_side(self.jobs)?;
        let plans = jobs.iter().map(|job| &job.plan);
        let progress = Progress::new(plans, true, side_by_side, self.quiet);
        let runner = Runner {
            store,
            observer: &progress,
            cancel: interrupt::flag()?,
            resume: false,
        };
        let made = Mutex::new((BTreeMap::new(), None));
        runner.carry_out_each(&jobs, side_by_side, &|| true, &|group, ended| {
            let mut made = made.lock().unwrap_or_else(PoisonError::into_inner);
            made.0.insert(group, ended.run);
            made.1 = made.1.take().or(ended.unstored);
        })?;
        progress.clear();
        let (made, unstored) = made.into_inner().unwrap_or_else(PoisonError::into_inner);
        unstored.map_or(Ok(()), Err)?;
        let claims = batch.iter().zip(0..).filter_map(|(one, group)| {
            let here = match (machine(&one.run), made.get(&group)) {
                (Err(why), _) => Err(why),
                (Ok(ready), Some(run)) => Ok((run, changes(ready))),
                // Ctrl-C came before it was begun.
                (Ok(_), None) => return None,
            };
            let misnamed = machine(&one.run).ok();
            let misnamed = misnamed.and_then(|ready| ready.misnamed.as_deref());
            Some(claim(&one.run, here, misnamed))
        });
        Ok(claims.collect())
    }
}

/// The ids of the runs of a file that words name: `r3`, `3`, `last`, or `r1..r4` for all that it
/// has of these. Both ends of a range must be in it.
fn chosen(file: &str, all: &[String], words: &[String]) -> Result<HashSet<String>, String> {
    let one = |word: &str| -> Result<&String, String> {
        if let Some(own) = all.iter().find(|id| *id == word) {
            return Ok(own);
        }
        let is_last = word.eq_ignore_ascii_case(LAST);
        let wanted = number(word);
        let own = if is_last {
            all.iter().max_by_key(|id| number(id))
        } else {
            let mut all = all.iter();
            all.find(|id| wanted.is_some() && number(id) == wanted)
        };
        own.ok_or_else(|| {
            if wanted.is_some() {
                let known = all.join(", ");
                return format!("{file} has no run {word}, but {known}");
            }
            format!("--only: expected runs such as r1 or r1..r4, found {word}")
        })
    };
    let mut wanted = HashSet::new();
    for word in words {
        let Some((first, last)) = ends(word) else {
            wanted.insert(one(word)?.clone());
            continue;
        };
        let end = |word: &str| -> Result<u64, String> { Ok(number(one(word)?).unwrap_or(0)) };
        let range = rising(end(first)?, end(last)?, word)?;
        let is_own = |id: &&String| number(id).is_some_and(|number| range.contains(&number));
        wanted.extend(all.iter().filter(is_own).cloned());
    }
    Ok(wanted)
}

fn changes(ready: &Ready) -> Vec<Change> {
    let changes = ready.changes.iter();
    let change = |one: &punctual_runner::repeats::Change| Change {
        what: one.what.clone(),
        then: one.then.clone(),
        now: one.now.clone(),
    };
    changes.map(change).collect()
}

fn into_runners(error: &anyhow::Error) -> punctual_runner::Error {
    punctual_runner::Error::Request(format!("{error:#}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_a_file_are_named_as_those_of_a_store() {
        let all = ["r2", "r3", "r5", "r10"].map(str::to_owned);
        let of = |words: &[&str]| -> Result<Vec<u64>, String> {
            let words: Vec<String> = words.iter().map(ToString::to_string).collect();
            let found = chosen("a.punctual", &all, &words)?;
            let mut found: Vec<u64> = found.iter().filter_map(|id| number(id)).collect();
            found.sort_unstable();
            Ok(found)
        };
        assert_eq!(of(&["r2..r5"]), Ok(vec![2, 3, 5]));
        assert_eq!(of(&["3..last", "R2", "r3"]), Ok(vec![2, 3, 5, 10]));
        assert_eq!(of(&["last"]), Ok(vec![10]));
        assert_eq!(of(&["5"]), Ok(vec![5]));
        for (word, expected) in [
            ("r4", "a.punctual has no run r4, but r2, r3, r5, r10"),
            ("r2..r4", "a.punctual has no run r4, but r2, r3, r5, r10"),
            (
                "r5..r2",
                "expected the earlier run first, r2..r5, found r5..r2",
            ),
            (
                "r2-r5",
                "--only: expected runs such as r1 or r1..r4, found r2-r5",
            ),
            (
                "r2..",
                "--only: expected runs such as r1 or r1..r4, found r2..",
            ),
        ] {
            assert_eq!(of(&[word]), Err(expected.to_owned()));
        }
    }
}

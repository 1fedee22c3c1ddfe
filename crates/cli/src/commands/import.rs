// SPDX-License-Identifier: MIT OR Apache-2.0
//! `punctual import`: measurements of other programs, and runs of other stores.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::Args;
use punctual_exchange::{Baseline, Reader};
use punctual_model::{Nanos, Run};
use punctual_report::repeat::quoted;
use punctual_report::text::{clean, counted, thousands};
use punctual_runner::import::{Told, UNREAD, import, is_unit_doubtful, machine_of};
use punctual_store::{Added, Store};

use super::{StoreArgs, is_run};
use crate::hints::store_option;
use crate::output::say;
use crate::scale_args::parse_duration;
use crate::{ExitStatus, UsageError};

const EXAMPLES: &str = "\
Examples:
  cyclictest -m -p 80 -a -t -D 1h -q -h 1000 --json=c.json
  punctual import c.json --subject mine --load stress-ng
  punctual judge last --limits limits.toml
  rtla timerlat hist -d 1h > t.txt; punctual import t.txt
  latmus -T 1h -g evl.txt; punctual import evl.txt --subject evl
  latency -h -T 3600 > latency.txt; punctual import latency.txt \\
      --subject xenomai
  punctual import rt.punctual  # what `punctual export` has written

Runs of `punctual export` are stored as they are, under new ids, and each once.

What another program has written becomes a run with the probe timer, so limits
and comparisons meet it. Values are as they are written: in whole microseconds,
rounded down. Where bins are wider, a quantile is known between two edges, and a
limit between them is undecided. Of cyclictest's lines T: the worst case is
known, and no quantile. What a file does not say stands in the run's provenance
as not known.";

/// Store the runs of `punctual export`, or make runs of what cyclictest (JSON, the
/// histogram of -h, or lines T:), rtla timerlat hist, jitterdebugger
/// (results.json), EVL's latmus (-g) or Xenomai's latency (-h) have written
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Import {
    /// Their files; each of another program becomes a run
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// What tables call the subject; else the kernel's release and the machine's
    /// name. Files that name no machine are of one subject only by this
    #[arg(long, value_name = "NAME")]
    subject: Option<String>,
    /// The load that was under way; else unknown
    #[arg(long, value_name = "NAME")]
    load: Option<String>,
    /// The time between two samples, where the file does not say it: 200us, 1ms
    #[arg(long, value_name = "TIME", value_parser = parse_interval)]
    interval: Option<Nanos>,
    /// The histogram's values are nanoseconds (cyclictest -N)
    #[arg(short = 'N', long)]
    nanoseconds: bool,
    #[command(flatten)]
    store: StoreArgs,
}

impl Import {
    /// Runs the command: all files are read before the first is stored.
    pub fn run(self) -> Result<ExitStatus> {
        let told = Told {
            subject: self.subject.clone(),
            load: self.load.clone(),
            interval: self.interval,
            nanoseconds: self.nanoseconds,
        };
        let (exports, files): (Vec<&PathBuf>, Vec<&PathBuf>) =
            self.files.iter().partition(|path| holds_runs(path));
        self.check_options(&exports)?;
        for path in &exports {
            each_run(path, &mut |_| Ok(()))?;
        }
        let read = |path: &PathBuf, content: &[u8]| -> Result<_> {
            if punctual_exchange::is_export(content) && !path.is_file() {
                let wrong = "expected text in a pipe, found compressed bytes: save them in a file";
                return Err(UsageError(wrong.into()).into());
            }
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            Ok(import(&name, content, &told)?)
        };
        let mut runs = Vec::new();
        for path in files {
            let content = content(path)?;
            let run = read(path, &content).with_context(|| path.display().to_string())?;
            runs.push((path, run));
        }
        self.check_machines(&runs)?;
        let mut is_nameless = false;
        let store = self.store.open_or_make()?;
        for path in exports {
            add_runs(&store, path)?;
        }
        let (mut known_ones, of) = (Vec::new(), store_option());
        for (path, run) in runs {
            let path = path.display();
            // As a whole or not at all: a kill in between leaves nothing.
            let id = match store.add(&run)? {
                Added::New(id) => id,
                Added::Known(known) => {
                    known_ones.push(format!(
                        "{path}: expected a new file, found what {known} holds already, to the \
                         last figure: the same run counts once (`punctual remove {known}{of}` \
                         first, to import it otherwise)"
                    ));
                    continue;
                }
            };
            is_nameless |= self.subject.is_none() && machine_of(&run).is_none();
            let count = counted(run.recordings.len(), "recording");
            let subject = &run.subject.name;
            say!("{id} is {path}, {}: {count}, subject {subject}", run.suite);
            if is_unit_doubtful(&run) {
                say!(
                    "Its smallest values are very large for microseconds: either that kernel has \
                     no high-resolution timers, or they are nanoseconds (cyclictest -N). Then \
                     `punctual remove {id}{of}`, and import it with --nanoseconds."
                );
            }
            match &run.error {
                Some(why) if why.starts_with(UNREAD) => say!(
                    "The measurement may be incomplete ({why}): no limit can be kept by it. \
                     Correct or remove that line, or measure with options that are understood."
                ),
                Some(why) => say!(
                    "The measurement is incomplete ({why}): no limit can be kept by it. Measure \
                     again."
                ),
                None => {}
            }
        }
        if is_nameless {
            say!(
                "A file that names no machine is a subject by itself: files of one machine are \
                 imported with --subject NAME."
            );
        }
        if !known_ones.is_empty() {
            return Err(UsageError(known_ones.join("\n")).into());
        }
        Ok(ExitStatus::Done)
    }

    /// Checks that one name belongs to one machine only.
    fn check_machines(&self, runs: &[(&PathBuf, Run)]) -> Result<(), UsageError> {
        let Some(subject) = &self.subject else {
            return Ok(());
        };
        let mut known = runs
            .iter()
            .filter_map(|(path, run)| Some((path, machine_of(run)?)));
        let Some((first, machine)) = known.next() else {
            return Ok(());
        };
        match known.find(|(_, other)| *other != machine) {
            Some((path, other)) => Err(UsageError(format!(
                "{} is of {machine} and {} of {other}: expected files of one machine for \
                 --subject {subject}",
                first.display(),
                path.display()
            ))),
            None => Ok(()),
        }
    }

    /// Refuses options that would contradict what a file of runs says itself.
    fn check_options(&self, exports: &[&PathBuf]) -> Result<(), UsageError> {
        let is_told = self.subject.is_some()
            || self.load.is_some()
            || self.interval.is_some()
            || self.nanoseconds;
        match exports.first() {
            Some(path) if is_told => Err(UsageError(format!(
                "{} holds runs, which say these things themselves: --subject, --load, \
                 --interval and -N are for files of other programs",
                path.display()
            ))),
            _ => Ok(()),
        }
    }
}

/// The time between two samples.
fn parse_interval(text: &str) -> Result<Nanos, String> {
    parse_duration(text).map_err(|_| "expected a time with its unit, such as 200us or 1ms".into())
}

/// The most bytes of a file that are read: results have far fewer.
const BYTES_MAX: u64 = 256 << 20;

/// Reads a file that the command line names.
fn content(path: &Path) -> Result<Vec<u8>> {
    let shown = path.display();
    if path.is_dir() {
        // The shell expands no sign within quotation marks.
        let all = format!("{}/*", quoted(path.to_string_lossy().trim_end_matches('/')));
        let wrong = format!("{shown}: expected a file, found a directory: name the files: {all}");
        return Err(UsageError(wrong).into());
    }
    let file = super::open_named(path)?;
    let advice = "import the lines of the result alone";
    super::read_at_most(file, BYTES_MAX, advice).with_context(|| shown.to_string())
}

/// Returns true if there is such a file of `punctual export`. Read errors are reported later, when
/// the file is read. A pipe can be read only once, and is none, whatever its name.
fn holds_runs(path: &Path) -> bool {
    path.is_file() && punctual_runner::is_export(path)
}

/// Calls `take` with each run of a file.
fn each_run(path: &Path, take: &mut dyn FnMut(Run) -> Result<()>) -> Result<Vec<Baseline>> {
    let named = || path.display().to_string();
    let mut reader = Reader::new(super::open_named(path)?).with_context(named)?;
    while let Some(exported) = reader.next_run().with_context(named)? {
        take(exported.run)?;
    }
    Ok(reader.baselines().to_vec())
}

/// Gives the baselines of a file their names here, unless such a name belongs to other runs. `ids`
/// maps the runs' ids in the file to those here.
fn name_baselines(
    store: &Store,
    baselines: &[Baseline],
    ids: &HashMap<String, String>,
) -> Result<()> {
    let known = store.baselines()?;
    for Baseline { name, runs } in baselines {
        let runs: Option<Vec<String>> = runs.iter().map(|run| ids.get(run).cloned()).collect();
        // Two runs of the file may be one here.
        let runs = runs.map(|runs| {
            let mut known = HashSet::new();
            let mut is_new = |one: &String| known.insert(one.clone());
            runs.into_iter().filter(&mut is_new).collect::<Vec<_>>()
        });
        let Some(runs) = runs.filter(|runs| !runs.is_empty() && !is_run(name)) else {
            continue;
        };
        match known.iter().find(|(own, _)| own == name) {
            None => {
                store.set_baseline(name, &runs)?;
                say!("baseline {name}: {}", runs.join(" "));
            }
            Some((_, own)) if *own == runs => {}
            Some((_, own)) => say!(
                "baseline {name} is of other runs here ({}) and stays so; that of the file is {}",
                own.join(" "),
                runs.join(" ")
            ),
        }
    }
    Ok(())
}

/// The runs of a file of `punctual export`, by their ids here. Runs that the store lacks are
/// stored, and nothing is printed.
pub fn of_file(store: &Store, path: &Path) -> Result<Vec<String>> {
    if !holds_runs(path) {
        let expected = "expected a baseline, a run, or a file of `punctual export`";
        return Err(UsageError(format!("{expected}, found {}", path.display())).into());
    }
    // A damaged file is refused before its first run is stored.
    each_run(path, &mut |_| Ok(()))?;
    let mut ids = Vec::new();
    each_run(path, &mut |run| {
        let (Added::New(id) | Added::Known(id)) = store.add(&run)?;
        ids.push(id);
        Ok(())
    })?;
    Ok(ids)
}

/// Stores the runs of a file that the store lacks.
fn add_runs(store: &Store, path: &Path) -> Result<()> {
    let (mut new, mut known) = (0, 0);
    let shown = path.display();
    let mut ids = HashMap::new();
    let baselines = each_run(path, &mut |run| {
        let added = store.add(&run)?;
        let (Added::New(id) | Added::Known(id)) = &added;
        ids.insert(run.id.clone(), id.clone());
        match added {
            Added::New(id) => {
                new += 1;
                say!(
                    "{id} is {} of {shown}: {}, {}",
                    clean(&run.id),
                    clean(&run.suite),
                    clean(&run.subject.name)
                );
            }
            Added::Known(id) => {
                known += 1;
                say!("{} of {shown} is here already: {id}", clean(&run.id));
            }
        }
        Ok(())
    })?;
    let (new, known) = (counted(new, "new run"), thousands(known));
    say!("{shown}: {new}, {known} that were here");
    name_baselines(store, &baselines, &ids)
}

#[cfg(test)]
mod tests {
    use punctual_exchange::Writer;

    use super::*;
    use crate::commands::read_at_most;

    #[test]
    fn what_is_no_file_is_named_once_and_no_file_is_read_without_bound() {
        let directory = tempfile::tempdir().unwrap();
        let none = directory.path().join("none");
        let inner = directory.path().join("my results");
        std::fs::create_dir(&inner).unwrap();
        for (path, told) in [
            (directory.path(), "found a directory: name the files: "),
            (inner.as_path(), "/my results'/*"),
            (none.as_path(), "found none of this name"),
        ] {
            let error = content(path).unwrap_err();
            assert!(error.is::<UsageError>(), "{error:?}");
            let error = format!("{error:#}");
            let named = format!("{}: expected a file, ", path.display());
            assert!(error.starts_with(&named), "{error}");
            assert!(error.contains(told), "{error}");
            assert_eq!(error.matches(": expected").count(), 1, "{error}");
        }
        let most = 1 << 20;
        let bytes = vec![b' '; most];
        assert_eq!(read_at_most(&bytes[..], most as u64, "").unwrap(), bytes);
        let error = read_at_most(std::io::repeat(b' '), most as u64, "").unwrap_err();
        assert!(error.to_string().contains("at most 1 MiB"), "{error}");
    }

    #[test]
    fn a_file_of_runs_is_known_by_the_rule_of_all_commands_and_must_be_there() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, bytes: &[u8]| {
            let path = directory.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            path
        };
        let writer = Writer::new(Vec::new(), "0.1.0").unwrap();
        let export: Vec<u8> = writer.finish().unwrap();
        let cut = &export[..export.len() - 1];
        for (path, expected) in [
            (write("a.punctual", &export), true),
            (write("renamed", &export), true),
            (write("cut", cut), true),
            (write("other.gz", b"\x1f\x8bof another program"), false),
            (write("text.punctual", b"T: 0 (1) P:80"), false),
            (write("empty.punctual", b""), false),
        ] {
            assert_eq!(holds_runs(&path), expected, "{}", path.display());
            assert_eq!(punctual_runner::is_export(&path), expected);
        }
        let none = directory.path().join("none.punctual");
        assert!(!holds_runs(&none) && punctual_runner::is_export(&none));
    }
}

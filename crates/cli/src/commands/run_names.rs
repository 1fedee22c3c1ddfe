// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names of runs on the command line, and the runs of the store that have them. Words that name
//! something else are refused with what they name.

use std::collections::HashSet;
use std::path::Path;

use anyhow::Result;
use punctual_model::Run;
use punctual_report::repeat::quoted;
use punctual_runner::run_names::{ends, is_one, number, rising};
use punctual_runner::{is_export, suites};
use punctual_store::{Filter, Store};

use super::{arrivals, no_runs};
use crate::UsageError;
use crate::hints::store_option;

pub use punctual_runner::run_names::{LAST, is_range, is_run};

/// The run of this name: `r3`, `R3`, `3`, or `last`.
pub fn load(store: &Store, name: &str) -> Result<Run> {
    let mut run = store.load(&id(store, name)?)?;
    arrivals::attach(store, &mut run)?;
    Ok(run)
}

/// The id of the run of this name.
pub fn id(store: &Store, name: &str) -> Result<String> {
    if name.eq_ignore_ascii_case(LAST) {
        let newest = store.newest()?;
        return newest.ok_or_else(|| UsageError(no_runs()).into());
    }
    if let Some(number) = number(name) {
        return Ok(format!("r{number}"));
    }
    if is_range(name) {
        return Err(UsageError(format!("expected one run, such as r3, found {name}")).into());
    }
    refuse(store, name)?;
    // The store knows which runs have a name like it.
    Ok(name.to_owned())
}

/// The ids of the runs of these names, in their order, each once. A range stands for all runs that
/// the store has of it.
pub fn ids(store: &Store, names: &[String]) -> Result<Vec<String>> {
    let mut ids = each(store, names)?;
    let mut seen = HashSet::new();
    ids.retain(|id| seen.insert(id.clone()));
    Ok(ids)
}

/// Refuses names of which two stand for the same run.
pub fn refuse_twice(store: &Store, names: &[String]) -> Result<()> {
    let mut seen = HashSet::new();
    for id in each(store, names)? {
        if !seen.insert(id.clone()) {
            return Err(UsageError(format!("{id} is named twice")).into());
        }
    }
    Ok(())
}

/// The ids of the runs of each of these names.
fn each(store: &Store, names: &[String]) -> Result<Vec<String>> {
    let mut ids = Vec::new();
    for name in names {
        match ends(name) {
            Some((first, last)) => ids.extend(between(store, first, last)?),
            None => ids.push(id(store, name)?),
        }
    }
    Ok(ids)
}

/// The ids of all runs from the first to the last, both of which must exist.
fn between(store: &Store, first: &str, last: &str) -> Result<Vec<String>> {
    let end = |word: &str| -> Result<u64> { Ok(number(&id(store, word)?).unwrap_or_default()) };
    let (from, to) = (end(first)?, end(last)?);
    let range = rising(from, to, &format!("{first}..{last}")).map_err(UsageError)?;
    let behind = format!("r{}", to.saturating_add(1));
    let most = usize::try_from(to - from).unwrap_or(usize::MAX);
    let newest_first = store.page(&Filter::default(), Some(&behind), most.saturating_add(1))?;
    let ids = newest_first.into_iter().rev().map(|run| run.id);
    let is_own = |id: &String| number(id).is_some_and(|number| range.contains(&number));
    let ids: Vec<String> = ids.filter(is_own).collect();
    for end in [from, to].map(|number| format!("r{number}")) {
        if !ids.contains(&end) {
            // The store says that there is none, and which runs have a name like it.
            store.load(&end)?;
        }
    }
    Ok(ids)
}

/// Refuses a word that names no run, but something that has runs.
pub fn refuse(store: &Store, word: &str) -> Result<()> {
    refuse_form(word)?;
    let baselines = store.baselines()?;
    let of_subject = Filter {
        subject: Some(word.to_owned()),
        ..Filter::default()
    };
    let found = if let Some((_, runs)) = baselines.iter().find(|(name, _)| name == word) {
        format!("a baseline, of {}: name its runs", runs.join(" "))
    } else if let Ok(suite) = suites::find(word) {
        let (name, of) = (quoted(&suite.name), store_option());
        format!("a suite: `punctual runs --suite {name}{of}` lists its runs")
    } else if !store.page(&of_subject, None, 1)?.is_empty() {
        let (name, of) = (quoted(word), store_option());
        format!("a subject: `punctual runs --subject {name}{of}` lists its runs")
    } else if is_list(word) {
        // Numbers only, such as 1-4: none of the others has this name.
        return Err(expected_runs(word).into());
    } else {
        return Ok(());
    };
    Err(UsageError(format!("{word} is {found}")).into())
}

/// Refuses a word that names no run, as its form or the file of this name shows.
pub fn refuse_form(word: &str) -> Result<(), UsageError> {
    if is_run(word) {
        return Ok(());
    }
    if is_export(Path::new(word)) {
        let (file, of) = (quoted(word), store_option());
        return Err(UsageError(format!(
            "expected a run, found a file of `punctual export`: `punctual import {file}{of}` \
             stores its runs"
        )));
    }
    // A trace may be in a file of such a name, and a baseline may be called 6.12.
    if word.starts_with(['r', 'R']) && is_list(word) && !Path::new(word).exists() {
        return Err(expected_runs(word));
    }
    Ok(())
}

fn expected_runs(word: &str) -> UsageError {
    UsageError(format!(
        "expected runs such as r1 r2 or r1..r4, found {word}"
    ))
}

/// Returns true if a word consists of several runs, in a form that is none of ours: `r1-r4`,
/// `r1,r2`, `1-4`, `r1 r2`.
fn is_list(word: &str) -> bool {
    let parts = word.split(['-', '–', ',', ':', '.', '=', ' ']);
    let mut parts = parts.filter(|part| !part.is_empty()).peekable();
    parts.peek().is_some() && parts.all(is_one)
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;
    use crate::fixtures::run;

    /// A store with the runs r1 to r5 of the subject `tuned`, of which r3 was removed, and the
    /// baseline `stable`.
    fn store() -> (TempDir, Store) {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(&directory.path().join("runs.db")).unwrap();
        for seed in 1..=5 {
            let mut run = run("", seed);
            run.subject.name = "tuned".into();
            store.add(&run).unwrap();
        }
        store.remove("r3").unwrap();
        let stable = ["r1", "r4"].map(str::to_owned);
        store.set_baseline("stable", &stable).unwrap();
        (directory, store)
    }

    #[test]
    fn a_range_has_all_runs_that_there_are_with_both_of_its_ends() {
        let (_directory, store) = store();
        let found = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(ToString::to_string).collect();
            let found = ids(&store, &words).map(|ids| ids.join(" "));
            found.map_err(|error| error.to_string())
        };
        assert_eq!(found(&["r1..r5"]).unwrap(), "r1 r2 r4 r5");
        assert_eq!(found(&["4..last", "R1"]).unwrap(), "r4 r5 r1");
        assert_eq!(found(&["r2..r2"]).unwrap(), "r2");
        assert_eq!(
            found(&["r2", "R2", "1..4", "last", "5"]).unwrap(),
            "r2 r1 r4 r5"
        );
        for (word, expected) in [
            (
                "r4..r1",
                "expected the earlier run first, r1..r4, found r4..r1",
            ),
            ("r1..r3", "there is no run \"r3\""),
            ("r3..r5", "there is no run \"r3\""),
            ("r0..r2", "there is no run \"r0\""),
            ("r1..r18446744073709551615", "there is no run \"r184467"),
            (
                "r1-r4",
                "expected runs such as r1 r2 or r1..r4, found r1-r4",
            ),
            (
                "r1,r4",
                "expected runs such as r1 r2 or r1..r4, found r1,r4",
            ),
            ("r1..", "expected runs such as r1 r2 or r1..r4, found r1.."),
            ("1-4", "expected runs such as r1 r2 or r1..r4, found 1-4"),
            (
                "r1 r2",
                "expected runs such as r1 r2 or r1..r4, found r1 r2",
            ),
        ] {
            let said = found(&[word]).unwrap_err();
            assert!(said.starts_with(expected), "{said}");
        }
        let one = id(&store, "r1..r2").unwrap_err().to_string();
        assert_eq!(one, "expected one run, such as r3, found r1..r2");
    }

    #[test]
    fn names_of_one_run_are_found_in_whatever_form() {
        let (_directory, store) = store();
        let refused = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(ToString::to_string).collect();
            refuse_twice(&store, &words).map_err(|error| error.to_string())
        };
        assert_eq!(refused(&["r1", "r2", "4..5"]), Ok(()));
        for words in [["r4", "4"], ["r2..r4", "R4"], ["r4", "4..last"]] {
            assert_eq!(refused(&words), Err("r4 is named twice".to_owned()));
        }
    }

    #[test]
    fn what_is_no_run_is_named_as_what_it_is() {
        let (_directory, store) = store();
        for (word, expected) in [
            ("stable", "stable is a baseline, of r1 r4: name its runs"),
            (
                "demo",
                "demo is a suite: `punctual runs --suite demo` lists its runs",
            ),
            (
                "tuned",
                "tuned is a subject: `punctual runs --subject tuned` lists its runs",
            ),
            (
                "./none.punctual",
                "expected a run, found a file of `punctual export`: `punctual import \
                 ./none.punctual` stores its runs",
            ),
        ] {
            let said = id(&store, word).unwrap_err().to_string();
            assert_eq!(said, expected);
        }
        // Whatever else it may be is said by the store.
        assert_eq!(id(&store, "r1x").unwrap(), "r1x");
    }
}

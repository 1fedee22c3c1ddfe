// SPDX-License-Identifier: MIT OR Apache-2.0
//! Knowledge of every arrival, as figures of a row.
//! Where the runs of both sides were watched, the worst case is no longer drawn by lot.

use std::collections::{BTreeMap, BTreeSet};

use punctual_model::arrivals::Arrivals;
use punctual_model::{Nanos, Recording, Run};

use super::Row;
use super::figures::{Drawn, Of};

/// One arrival of 10,000 is later. Of the latest ones of longer runs hardly any two are alike.
pub(super) const TAIL: f64 = 0.9999;
/// One arrival of 100 is later. From here on, samples are few of many arrivals.
const RARE: f64 = 0.99;

/// Each run's arrivals, by its seed.
type Known<'a> = Vec<(u64, &'a Arrivals)>;

/// Returns the arrivals of all of these, or nothing.
pub(super) fn known<'a>(found: &[(&'a Run, &'a Recording)]) -> Option<Known<'a>> {
    let each = found.iter();
    each.map(|(run, recording)| Some((run.seed, run.arrivals_of(recording)?)))
        .collect()
}

/// Returns the reason why not every arrival of a run is known, though somebody asked for them.
pub(super) fn gap<'a>(found: &(&'a Run, &'a Recording)) -> Option<(&'a str, &'a str)> {
    let (run, recording) = *found;
    let gap = run.arrivals_of(recording)?.gap.as_deref()?;
    Some((&run.id, gap))
}

/// Says that arrivals known of some runs only are not judged.
pub(super) fn note(rows: &[Row], runs: &[&Run]) -> Option<String> {
    let is_partly = |row: &Row| {
        let key = row.row.key();
        let own = runs.iter().filter_map(|run| {
            let mut all = run.recordings.iter();
            let own = all.find(|one| one.key.is_same_measurement(&key))?;
            Some(run.arrivals_of(own).is_some())
        });
        let own: Vec<bool> = own.collect();
        own.contains(&true) && own.contains(&false)
    };
    let partly = rows.iter().find(|row| is_partly(row))?;
    Some(format!(
        "{}: the arrivals of some runs are not known, so none are judged: --arrivals watches them.",
        partly.row.title()
    ))
}

/// Returns the figures of all arrivals, there and here.
/// The first of them leads. The others only tell if something got worse: they are draws, of which
/// each run has one.
pub(super) fn figures(there: &Known<'_>, here: &Known<'_>, floor: f64) -> Vec<Drawn> {
    let mut all = Vec::new();
    let mut add = |name: &str, of: Of, value: &dyn Fn(&Arrivals) -> Option<Nanos>| {
        let values = |side: &Known<'_>| -> Option<Vec<(u64, Nanos)>> {
            let value = |(seed, one): &(u64, &Arrivals)| Some((*seed, value(one)?));
            side.iter().map(value).collect()
        };
        let Some((there, here)) = values(there).zip(values(here)) else {
            return;
        };
        all.push(Drawn::new(name.to_owned(), of, there, here));
    };
    add("p99.99", Of::Arrivals, &|one| quantile(one, TAIL));
    add("arrival p99", Of::Latest, &|one| quantile(one, RARE));
    add("arrival", Of::Latest, &|one| Some(one.worst));
    // The latest of more aims is later.
    let aims: BTreeSet<usize> = there.iter().chain(here).map(|(_, one)| one.aims).collect();
    if aims.len() == 1 {
        add("reached", Of::Reached, &|one| one.reached);
    }
    let both = || there.iter().chain(here).map(|(_, one)| *one);
    for name in long(both().map(|one| &one.functions), floor) {
        add(name, Of::Function, &|one| {
            Some(one.functions.get(name).copied().unwrap_or_default())
        });
    }
    for name in long(both().filter_map(|one| one.in_step.as_ref()), floor) {
        add(name, Of::InStep, &|one| {
            let all = one.in_step.as_ref()?;
            Some(all.get(name).copied().unwrap_or_default())
        });
    }
    all
}

/// Returns the greatest quantile of the arrivals of any run that a tail of samples is a draw of: the
/// latest arrival for the worst sample. Of samples before the tail there are enough.
pub(super) fn latest(known: &Known<'_>, share: f64) -> Option<Nanos> {
    let each = known.iter().map(|(_, one)| {
        if share < 1.0 {
            quantile(one, RARE)
        } else {
            Some(one.worst)
        }
    });
    each.max().flatten().filter(|_| share >= RARE)
}

/// Returns a quantile of all arrivals, if it is one of those that were kept.
fn quantile(known: &Arrivals, share: f64) -> Option<Nanos> {
    let mut quantiles = known.quantiles.iter();
    let found = quantiles.find(|(own, _)| (own - share).abs() < 1e-9)?;
    Some(found.1)
}

/// Returns the functions that run for so long within one stretch, in any run of either side.
/// The side does not matter, as each function is judged.
fn long<'a>(
    all: impl Iterator<Item = &'a BTreeMap<String, Nanos>>,
    floor: f64,
) -> BTreeSet<&'a str> {
    let long = all.flatten().filter(|(_, time)| time.0 as f64 >= floor);
    long.map(|(name, _)| name.as_str()).collect()
}

/// The function that keeps the latest arrival of these runs waiting.
/// With `reached`, that of the latest aimed sample.
pub(super) fn to_blame(known: &Known<'_>, reached: bool) -> Option<String> {
    let late = |one: &Arrivals| {
        if reached {
            one.reached
        } else {
            Some(one.worst)
        }
    };
    let (_, latest) = known.iter().max_by_key(|(_, one)| late(one))?;
    let name = if reached {
        &latest.reached_function
    } else {
        &latest.function
    };
    name.clone()
}

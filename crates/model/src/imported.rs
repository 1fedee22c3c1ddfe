// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs that other programs measured: which of them are the same measurement, and which had
//! different requests.
//!
//! A file that was imported in two forms, with its command line or without, or at two moments of
//! its growth, is one measurement. Two runs that may be one count as one.

use std::collections::BTreeSet;
use std::f64::consts::PI;

use crate::digest::content;
use crate::finding::Fact;
use crate::recording::Recording;
use crate::run::Run;

/// Fact that is the same for all runs with the same bins, whatever their unit: the SHA-256 of
/// counts and values as they are written. A run without bins has none.
pub const FIGURES: &str = "imported figures sha256";

/// Fact that distinguishes files with the same figures: comments and times, the SHA-256 of each
/// cut to 8 digits, between blanks.
pub const SAID: &str = "imported comments";

/// Setting: the id of the measuring thread, if the file states it.
pub const THREAD: &str = "thread_id";

/// Setting: the real-time priority of the measuring thread, if the file states it.
pub const PRIORITY: &str = "priority";

/// Setting: the number of nanoseconds in a value's unit.
pub const UNIT: &str = "resolution_ns";

/// Setting: the command line's other requests, in a fixed order, if the file states them.
pub const ASKED: &str = "asked";

/// Exponent of the limit: two runs are one measurement if their counts agree by chance at most
/// once in ten to the power of this.
const POWER: f64 = 3.0;

/// The relation between two runs of other programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kin {
    /// They may be two measurements.
    None,
    /// They are one measurement.
    Same,
    /// They are one measurement, but state two units.
    OtherUnit,
}

/// Returns the relation between two runs; [`Kin::None`] if Punctual measured one of them.
pub fn kin(one: &Run, other: &Run) -> Kin {
    if !one.is_imported() || !other.is_imported() || one.suite != other.suite {
        return Kin::None;
    }
    let is_same = content(one) == content(other)
        || has_same_figures(one, other)
        || has_equal_counts(one, other)
        || is_moment(one, other)
        || is_moment(other, one);
    let unit = |run: &Run| {
        let first = run.recordings.first()?;
        first.settings.get(UNIT)?.number()
    };
    match is_same {
        false => Kin::None,
        true if unit(one) == unit(other) => Kin::Same,
        true => Kin::OtherUnit,
    }
}

/// Returns true if one run says more of a measurement than the other: bins, or more samples.
pub fn says_more(one: &Run, other: &Run) -> bool {
    let said = |run: &Run| {
        let counts = run.recordings.iter().map(|own| own.count);
        let count = counts.fold(0, u64::saturating_add);
        (fact(run, FIGURES).is_some(), count)
    };
    said(one) > said(other)
}

/// Returns true if each bin has the same count; two measurements have this by chance only if there
/// are few bins. Two counts about n are equal once in √(4πn) (two Poisson distributions); the
/// largest of a thread's bins is determined by the others.
pub fn has_equal_counts(one: &Run, other: &Run) -> bool {
    let is_import = one.is_imported() && other.is_imported() && one.suite == other.suite;
    let figures = fact(one, FIGURES).zip(fact(other, FIGURES));
    if !is_import || figures.is_none_or(|(one, other)| one != other) {
        return false;
    }
    let power = one.recordings.iter().map(|recording| {
        let bins = recording.histogram.bins().map(|bin| bin.count as f64);
        let mut counts: Vec<f64> = bins.filter(|count| *count > 0.0).collect();
        counts.sort_by(f64::total_cmp);
        counts.pop();
        let powers = counts.iter().map(|count| (4.0 * PI * count).log10() / 2.0);
        powers.sum::<f64>()
    });
    power.sum::<f64>() >= POWER
}

fn fact<'a>(run: &'a Run, name: &str) -> Option<&'a str> {
    run.provenance.as_ref()?.facts.get(name)?.text()
}

fn number(recording: &Recording, name: &str) -> Option<i64> {
    recording.settings.get(name).and_then(Fact::number)
}

/// Returns true if the bins are the same, and no statements differ.
fn has_same_figures(one: &Run, other: &Run) -> bool {
    let figures = fact(one, FIGURES).zip(fact(other, FIGURES));
    if figures.is_none_or(|(one, other)| one != other) {
        return false;
    }
    let words = |run| -> BTreeSet<&str> {
        let said = fact(run, SAID).unwrap_or_default();
        said.split_whitespace().collect()
    };
    let (own, others) = (words(one), words(other));
    (own.is_subset(&others) || others.is_subset(&own)) && threads(one, other) != Some(false)
}

/// Returns true if the threads are the same; `None` if one run does not name its threads.
fn threads(one: &Run, other: &Run) -> Option<bool> {
    let of = |run: &Run| -> Option<Vec<i64>> {
        let all = run.recordings.iter();
        all.map(|own| number(own, THREAD)).collect()
    };
    Some(of(one)? == of(other)?)
}

/// Returns true if one run shows the other at an earlier moment, or only its extremes: it has no
/// bins, and nothing of any thread that the other lacks.
fn is_moment(early: &Run, late: &Run) -> bool {
    let is_told = [early, late].iter().all(|run| fact(run, SAID).is_some());
    let is_summary = is_told && fact(early, FIGURES).is_none();
    if !is_summary || early.recordings.len() != late.recordings.len() {
        return false;
    }
    let is_known = threads(early, late);
    let pairs = early.recordings.iter().zip(&late.recordings);
    let mut pairs = pairs.map(|(early, late)| {
        // By their numbers: the units may differ.
        let unit = |own: &Recording| number(own, UNIT).filter(|unit| *unit > 0).unwrap_or(1);
        let extremes = |own: &Recording| {
            let all = own.extremes?;
            Some((all.0.0 / unit(own), all.1.0 / unit(own)))
        };
        let within = match (extremes(early), extremes(late)) {
            (Some((min, max)), Some((least, most))) => least <= min && max <= most,
            (None, _) => true,
            _ => false,
        };
        let is_end = early.count == late.count;
        let is_equal = extremes(early) == extremes(late);
        // Lines on a screen stop a little before the end.
        let is_near = early.count <= late.count && late.count / 100 * 99 <= early.count;
        match is_known {
            Some(is_same) => {
                is_same && within && early.count <= late.count && (!is_end || is_equal)
            }
            None => is_near && is_equal,
        }
    });
    is_known != Some(false) && !early.recordings.is_empty() && pairs.all(|is_it| is_it)
}

/// Describes how two imported runs' requests differ: `thread 0 has an interval of 1.00 ms here and
/// 200 µs there`, or the number of threads. A value that only one run states is no difference.
pub fn difference(one: &Run, other: &Run) -> Option<String> {
    if !one.is_imported() || !other.is_imported() {
        return None;
    }
    if one.suite != other.suite {
        let (one, other) = (&one.suite, &other.suite);
        return Some(format!("{one} has measured here and {other} there"));
    }
    let [own, others] = [one, other].map(|run| run.recordings.len());
    if own != others {
        return Some(format!(
            "the files have figures of {own} and of {others} threads"
        ));
    }
    let of_thread = one.recordings.iter().find_map(|own| {
        let mut alike = other.recordings.iter();
        let alike = alike.find(|one| one.key.is_alike(&own.key))?;
        let variant = &own.key.variant;
        let intervals = own.interval.zip(alike.interval);
        if let Some((own, other)) = intervals.filter(|(own, other)| own != other) {
            return Some(format!(
                "{variant} has an interval of {own} here and {other} there"
            ));
        }
        let priorities = number(own, PRIORITY).zip(number(alike, PRIORITY));
        let (own, other) = priorities.filter(|(own, other)| own != other)?;
        Some(format!(
            "{variant} has priority {own} here and {other} there"
        ))
    });
    of_thread.or_else(|| other_settings(one, other))
}

/// Compares their command lines' other requests. A value that only one run states is no difference.
fn other_settings(one: &Run, other: &Run) -> Option<String> {
    let asked = |run: &Run| -> Option<String> {
        let asked = run.recordings.first()?.settings.get(ASKED)?.text()?;
        Some(match asked {
            "" => "none of its own".to_owned(),
            asked => format!("\"{asked}\""),
        })
    };
    let both = asked(one).zip(asked(other));
    let (own, others) = both.filter(|(own, others)| own != others)?;
    let program = &one.suite;
    Some(format!(
        "{program} has the settings {own} here and {others} there"
    ))
}

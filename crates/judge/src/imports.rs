// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs that other programs have measured, held against each other by all that their files say:
//! settings beside intervals and priorities, and counts that no two measurements share.

use std::f64::consts::PI;

use punctual_model::imported::{self, FIGURES, Kin, UNIT};
use punctual_model::{Fact, Run};

/// The setting with what else a command line asked for.
const ASKED: &str = "asked";

/// Counts that agree by chance no more often than once in ten to the power of this are no two
/// measurements.
const POWER: f64 = 6.0;

/// What two runs have in common: as the model has it, and by their counts.
pub fn kin(one: &Run, other: &Run) -> Kin {
    let known = imported::kin(one, other);
    if known != Kin::None || !has_equal_counts(one, other) {
        return known;
    }
    let unit = |run: &Run| run.recordings.first()?.settings.get(UNIT)?.number();
    if unit(one) == unit(other) {
        Kin::Same
    } else {
        Kin::OtherUnit
    }
}

/// Whether each bin has the same count, which two measurements have by chance only where there
/// are few bins. Two counts about n are equal once in √(4πn) (two Poisson distributions); the
/// largest of a thread's bins is what the others leave.
pub fn has_equal_counts(one: &Run, other: &Run) -> bool {
    let figures = |run: &Run| -> Option<String> {
        let facts = &run.provenance.as_ref()?.facts;
        Some(facts.get(FIGURES)?.text()?.to_owned())
    };
    let is_import = one.is_imported() && other.is_imported() && one.suite == other.suite;
    let both = figures(one).zip(figures(other));
    if !is_import || both.is_none_or(|(one, other)| one != other) {
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

/// What two runs were not asked for alike. What one of them does not say is no difference.
pub fn difference(one: &Run, other: &Run) -> Option<String> {
    imported::difference(one, other).or_else(|| other_settings(one, other))
}

fn other_settings(one: &Run, other: &Run) -> Option<String> {
    let asked = |run: &Run| -> Option<String> {
        let first = run.recordings.first().filter(|_| run.is_imported())?;
        first
            .settings
            .get(ASKED)
            .and_then(Fact::text)
            .map(str::to_owned)
    };
    let (own, others) = asked(one)
        .zip(asked(other))
        .filter(|(one, other)| one != other)?;
    let shown = |text: &str| match text {
        "" => "none of its own".to_owned(),
        text => format!("\"{text}\""),
    };
    let program = &one.suite;
    let (own, others) = (shown(&own), shown(&others));
    Some(format!(
        "{program} has the settings {own} here and {others} there"
    ))
}

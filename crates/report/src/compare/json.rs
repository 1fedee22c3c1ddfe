// SPDX-License-Identifier: MIT OR Apache-2.0
//! A comparison for programs.

use std::collections::BTreeMap;

use punctual_judge::{Comparison as Judged, Verdict};
use punctual_model::Nanos;
use serde::Serialize;
use serde_json::{Value, json};

use super::{Cell, Comparison, Digests, Section, verdict_name};
use crate::names::Names;

/// The form's name and version; `docs/schema/compare-1.json` describes it.
const SCHEMA: &str = "punctual.compare/1";

/// Subjects side by side. Times are whole nanoseconds. New fields may be added to version 1; none
/// is removed or changes its meaning.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Document<'a> {
    #[cfg_attr(test, schemars(extend("const" = SCHEMA)))]
    schema: &'static str,
    /// The subject that the others are compared with.
    base: Option<&'a str>,
    /// The subjects; the base stands first.
    subjects: Vec<Subject<'a>>,
    /// The measurements, each with the figures of all subjects.
    measurements: Vec<Measurement<'a>>,
    /// Notes without which it may be misread.
    notes: &'a [String],
    /// The chance of telling a difference where there is none.
    level: f64,
    /// The smallest ratio that is to be found.
    effect: f64,
}

/// A subject, and its digests beside the base's.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Subject<'a> {
    /// Its name.
    name: &'a str,
    /// True if the digests are equal; null where they are not compared.
    digest_equal: Option<bool>,
    /// The same in words.
    digest: &'static str,
}

/// A measurement.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Measurement<'a> {
    #[serde(flatten)]
    names: Names<'a>,
    /// The figure that the verdicts are of, run by run: `arrival` where every arrival of all runs
    /// is known; null where nothing is judged.
    judged: Option<&'static str>,
    /// The subjects, in the same order as above.
    subjects: Vec<Measured<'a>>,
}

/// A subject's figures of one measurement.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Measured<'a> {
    /// The subject's name.
    subject: &'a str,
    /// The figures by their names.
    figures: BTreeMap<&'static str, Figure<'a>>,
    /// The verdict against the base; null for the base itself, and where nothing is judged.
    verdict: Option<Compared>,
}

/// A figure; a gap has a reason and no number.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(untagged)]
enum Figure<'a> {
    /// A time.
    Time {
        /// The time.
        ns: Nanos,
        /// The ratio to the base's; null for the base itself, and where they cannot be divided.
        ratio: Option<f64>,
        /// The percentage by which it is above the base's; null likewise.
        percent: Option<f64>,
    },
    /// A word that a probe told.
    Word {
        /// The word.
        text: &'a str,
    },
    /// No figure.
    Absent {
        /// The reason.
        absent: &'a str,
    },
}

/// The verdict on one subject against another, run by run.
#[derive(Clone, Copy, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Compared {
    /// `identical`, `lower`, `higher`, `not separated` or `undecided`.
    verdict: &'static str,
    /// The ratio of the two; null where there is none.
    ratio: Option<f64>,
    /// The ratio's lower bound.
    low: Option<f64>,
    /// The ratio's upper bound.
    high: Option<f64>,
    /// The share of divisions of the runs by chance that are as far to one side.
    p: Option<f64>,
    /// The number of further seeds of each subject that might tell.
    more: Option<u32>,
}

/// `punctual.compare/1`: times in nanoseconds; a gap has a reason and no number.
pub fn comparison_json(comparison: &Comparison) -> Value {
    let subjects = comparison.subjects.iter().zip(&comparison.digests);
    let subjects = subjects.map(|(name, digests)| Subject {
        name,
        digest_equal: match digests {
            Digests::Equal => Some(true),
            Digests::Different => Some(false),
            _ => None,
        },
        digest: digests.name(),
    });
    let sections = comparison.sections.iter();
    let measurements = sections.map(|one| Measurement::of(comparison, one));
    json!(Document {
        schema: SCHEMA,
        base: comparison.subjects.first().map(String::as_str),
        subjects: subjects.collect(),
        measurements: measurements.collect(),
        notes: &comparison.notes,
        level: comparison.rule.level,
        effect: comparison.rule.effect,
    })
}

impl<'a> Measurement<'a> {
    fn of(comparison: &'a Comparison, section: &'a Section) -> Self {
        let subjects = comparison.subjects.iter().zip(&section.cells);
        let subjects = subjects.zip(&section.verdicts);
        let subjects = subjects.map(|((subject, cells), judged)| {
            let figures = section.figures.iter().copied();
            Measured {
                subject,
                figures: figures.zip(cells.iter().map(Figure::of)).collect(),
                verdict: judged.as_ref().map(Compared::from),
            }
        });
        let leading = section.figures.first().copied();
        let is_judged = section.verdicts.iter().any(Option::is_some);
        Self {
            names: Names::from(&section.row),
            judged: leading.filter(|_| is_judged),
            subjects: subjects.collect(),
        }
    }
}

impl<'a> Figure<'a> {
    fn of(cell: &'a Cell) -> Self {
        match cell {
            Cell::Time { value, ratio } => Self::Time {
                ns: *value,
                ratio: *ratio,
                percent: cell.percent(),
            },
            Cell::Word(text) => Self::Word { text },
            Cell::Absent(absent) => Self::Absent { absent },
        }
    }
}

impl Compared {
    /// Returns the comparison of figures that have no verdict: undecided, without numbers.
    pub(crate) fn undecided() -> Self {
        Self {
            verdict: "undecided",
            ratio: None,
            low: None,
            high: None,
            p: None,
            more: None,
        }
    }
}

impl From<&Judged> for Compared {
    fn from(judged: &Judged) -> Self {
        let bounds = judged.ratio.and_then(|ratio| ratio.bounds);
        Self {
            verdict: verdict_name(&judged.verdict),
            ratio: judged.ratio.map(|ratio| ratio.estimate),
            low: bounds.map(|bounds| bounds.0),
            high: bounds.map(|bounds| bounds.1),
            p: judged.p,
            more: match judged.verdict {
                Verdict::NotSeparated { more } => more,
                Verdict::Undecided(few) => {
                    Some(few.needed.saturating_sub(few.have.0.min(few.have.1)) as u32)
                }
                _ => None,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_is_what_the_type_says() {
        crate::schema::assert_is_of::<Document<'_>>(
            "compare-1.json",
            "Runs against each other: what `punctual compare --json` prints",
        );
    }
}

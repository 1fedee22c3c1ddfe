// SPDX-License-Identifier: MIT OR Apache-2.0
//! The outcome of a claim, by the results of its comparisons, and the form of their figures.

use std::fmt;

use punctual_judge::{Comparison as Found, Interval, Rule, Typical, Verdict};
use punctual_model::units::Nanos;
use punctual_published::Measure;

use super::measure::{OfRun, by_run};
use crate::matrix::{Column, Measurement};
use crate::text::{seconds_span, span, time};

/// The outcome of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimVerdict {
    /// All figures show it.
    Holds,
    /// One of them shows the contrary, or that there is no difference.
    Fails,
    /// So many more seeds, or runs in real time, are needed to tell it.
    Undecided(usize),
    /// Something is missing that no number of runs supplies.
    CannotTell,
}

impl fmt::Display for ClaimVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Holds => "holds",
            Self::Fails => "does not hold",
            Self::Undecided(_) => "undecided",
            Self::CannotTell => "cannot be told here",
        })
    }
}

/// States the need of an undecided claim: `4 more seeds`. `unit` is that of its subjects.
pub fn needed(more: usize, unit: &str) -> String {
    match more {
        1 => format!("1 more {unit}"),
        more => format!("{more} more {unit}s"),
    }
}

/// The result of one comparison of several.
#[derive(Clone, Copy)]
pub enum Part {
    /// The claim.
    Shown,
    /// The contrary, or that there is no difference.
    Contradicted,
    /// Nothing, before there are so many more seeds, or runs in real time.
    Open(usize),
}

impl Part {
    /// Of runs that are to be above, or within, a bound.
    pub fn of(found: Typical, wanted: Typical) -> Self {
        match found {
            Typical::Undecided { more } => Self::Open(more),
            found if found == wanted => Self::Shown,
            _ => Self::Contradicted,
        }
    }
}

/// The results of all comparisons, and the gaps.
#[derive(Default)]
pub struct Judged {
    parts: Vec<Part>,
    evidence: Vec<String>,
    gaps: Vec<String>,
}

impl Judged {
    /// Adds one more comparison with its figures.
    pub fn push(&mut self, part: Part, evidence: String) {
        self.parts.push(part);
        self.evidence.push(evidence);
    }

    /// Adds a gap, once.
    pub fn gap(&mut self, gap: String) {
        if !self.gaps.contains(&gap) {
            self.gaps.push(gap);
        }
    }

    /// Returns the figure of each run. It notes a gap if there is none.
    pub fn figures<'a>(
        &mut self,
        column: &Column<'a>,
        measure: &Measure,
        rows: &[&Measurement],
    ) -> Option<Vec<OfRun<'a>>> {
        let found = by_run(column, rows, measure.statistic);
        let load = measure.load.as_ref().map(|load| format!(" ({load})"));
        let (name, load) = (measure.name(), load.unwrap_or_default());
        let gap = |why| self.gap(format!("{}, {name}{load}: {why}", column.name));
        found.map_err(gap).ok()
    }

    /// A claim of several figures holds where all of them show it.
    pub fn concluded(mut self) -> (ClaimVerdict, String) {
        let is_contradicted = |part: &Part| matches!(part, Part::Contradicted);
        let more = self.parts.iter().filter_map(|part| match part {
            Part::Open(more) => Some(*more),
            _ => None,
        });
        let outcome = if self.parts.iter().any(is_contradicted) {
            ClaimVerdict::Fails
        } else if self.parts.is_empty() || !self.gaps.is_empty() {
            ClaimVerdict::CannotTell
        } else {
            more.max()
                .map_or(ClaimVerdict::Holds, ClaimVerdict::Undecided)
        };
        self.evidence.append(&mut self.gaps);
        (outcome, self.evidence.join("; "))
    }
}

/// Returns the result of one comparison, by itself and among all of its claim.
/// Where all of a claim's figures must show it, each is held to the level by itself. A figure that
/// shows the contrary is held to the level among all.
///
/// Source: R. L. Berger, *Multiparameter hypothesis testing and acceptance sampling*, Technometrics
/// 24 (1982).
pub fn part([alone, among]: [&Found; 2], wanted: Verdict, rule: &Rule) -> Part {
    let contrary = match wanted {
        Verdict::Lower => Verdict::Higher,
        _ => Verdict::Lower,
    };
    match alone.verdict {
        found if found == wanted => Part::Shown,
        Verdict::Identical => Part::Contradicted,
        _ if among.verdict == contrary => Part::Contradicted,
        Verdict::NotSeparated { .. } if alone.excludes(rule.effect) => Part::Contradicted,
        Verdict::NotSeparated { more } => Part::Open(more.unwrap_or(1).max(1) as usize),
        Verdict::Undecided(few) => {
            Part::Open(few.needed.saturating_sub(few.have.0.min(few.have.1)).max(1))
        }
        Verdict::Lower | Verdict::Higher => Part::Open(1),
    }
}

/// `lower, 0.021 times (0.015–0.027)`.
pub fn says(found: &Found) -> String {
    let word = match found.verdict {
        Verdict::Lower => "lower",
        Verdict::Higher => "higher",
        Verdict::NotSeparated { .. } => "not separated",
        Verdict::Identical => return "the same to the last sample".to_owned(),
        Verdict::Undecided(few) => return few.to_string(),
    };
    let times = found.ratio.map(|ratio| format!(", {}", times(&ratio)));
    format!("{word}{}", times.unwrap_or_default())
}

fn times(ratio: &Interval) -> String {
    // Three digits, whether it is 1.02 or 0.0117.
    let short = |value: f64| {
        let places = (2.0 - value.log10().floor()).clamp(0.0, 6.0) as usize;
        format!("{value:.places$}")
    };
    let bounds = ratio.bounds;
    let bounds = bounds.map(|(low, high)| format!(" ({}–{})", short(low), short(high)));
    format!(
        "{} times{}",
        short(ratio.estimate),
        bounds.unwrap_or_default()
    )
}

/// The middle of several runs' times, and their range: `8.07 µs (7.90–8.20 µs)`.
pub fn spread(values: &[f64], is_work: bool) -> String {
    let mut values: Vec<Nanos> = values.iter().map(|ns| Nanos(ns.round() as i64)).collect();
    values.sort_unstable();
    let (Some(low), Some(high)) = (values.first(), values.last()) else {
        return "not measured".to_owned();
    };
    let middle = time(values[(values.len() - 1) / 2], is_work);
    match is_work {
        _ if time(*low, is_work) == time(*high, is_work) => middle,
        true => format!("{middle} ({})", seconds_span(*low, *high)),
        false => format!("{middle} ({})", span(*low, *high)),
    }
}

/// The smallest and the largest.
pub fn ends(values: &[f64]) -> (f64, f64) {
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    (
        low,
        values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
    )
}

/// The middle of several runs' percentages, and their range. `unit` is that of their subjects.
pub fn percents(values: &[f64], unit: &str) -> String {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (low, high) = ends(values);
    let middle = sorted[(sorted.len() - 1) / 2];
    match values.len() {
        1 => format!("{middle:+.1} %"),
        count => format!("{middle:+.1} % ({low:+.1} to {high:+.1} % over {count} {unit}s)"),
    }
}

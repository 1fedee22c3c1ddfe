// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether today's kernels still show what a document says.

use std::fmt;

use punctual_model::units::Nanos;
use punctual_published::{
    Check, Comparison, Direction, Document, Improved, Measure, Ratio, Role, Told,
};

use super::improvement::{Test, average, tests};
use super::measure::{Basis, basis, figure, loads, rows, too_few};
use super::roles::subjects;
use crate::matrix::{Cell, Column, Matrix};
use crate::text::thousands;
use crate::views;

/// What came of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All figures show it.
    Shown,
    /// Some do.
    Partly,
    /// None does.
    Gone,
    /// There are no figures for it.
    Unchecked,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Shown => "yes",
            Self::Partly => "in part",
            Self::Gone => "no",
            Self::Unchecked => "could not be checked",
        })
    }
}

/// A claim, and what came of it.
#[derive(Clone, Debug)]
pub struct Checked<'a> {
    /// The claim.
    pub direction: &'a Direction,
    /// What came of it.
    pub outcome: Outcome,
    /// The figures that say so; why it could not be checked.
    pub evidence: String,
}

/// All claims of a document.
pub fn checked<'a>(matrix: &Matrix<'_>, document: &'a Document) -> Vec<Checked<'a>> {
    let all = document.directions.iter();
    all.map(|direction| one(matrix, direction)).collect()
}

fn one<'a>(matrix: &Matrix<'_>, direction: &'a Direction) -> Checked<'a> {
    let found = if matrix.is_mixed() {
        Err("the subjects' clocks differ".to_owned())
    } else {
        match &direction.check {
            Check::Lower(comparison) => compared(matrix, comparison, |of, than| of < than),
            Check::Higher(comparison) => compared(matrix, comparison, |of, than| of > than),
            Check::Ratio(ratio) => quotients(matrix, ratio),
            Check::Told(told) => words(matrix, told),
            Check::Improved(improved) => improvement(matrix, improved),
        }
    };
    let (outcome, evidence) = match found {
        Ok(found) => found.concluded(),
        Err(why) => (Outcome::Unchecked, why),
    };
    Checked {
        direction,
        outcome,
        evidence,
    }
}

/// How many comparisons show a claim, of how many, and what they are.
#[derive(Default)]
struct Found {
    shown: usize,
    all: usize,
    parts: Vec<String>,
    gaps: Vec<String>,
}

impl Found {
    fn count(&mut self, shown: bool) {
        self.all += 1;
        self.shown += usize::from(shown);
    }

    fn gap(&mut self, gap: String) {
        if !self.gaps.contains(&gap) {
            self.gaps.push(gap);
        }
    }

    fn concluded(self) -> (Outcome, String) {
        let gaps = self.gaps.join("; ");
        let outcome = match self.shown {
            _ if self.all == 0 => {
                let told = self.parts.into_iter().chain(self.gaps);
                return (Outcome::Unchecked, told.collect::<Vec<_>>().join("; "));
            }
            0 => Outcome::Gone,
            shown if shown == self.all => Outcome::Shown,
            _ => Outcome::Partly,
        };
        let mut evidence = self.parts.join("; ");
        if outcome == Outcome::Partly {
            let (shown, all) = (thousands(self.shown as u64), thousands(self.all as u64));
            evidence = format!("{shown} of {all} comparisons: {evidence}");
        }
        if !gaps.is_empty() {
            evidence = format!("{evidence}; {gaps}");
        }
        (outcome, evidence)
    }
}

/// The subjects of a role; an error where there are none.
fn required<'a>(matrix: &'a Matrix<'a>, role: Role) -> Result<Vec<&'a Column<'a>>, String> {
    let subjects = subjects(matrix, role);
    if subjects.is_empty() {
        return Err(format!("there is no {} among the subjects", role.name()));
    }
    Ok(subjects)
}

fn compared(
    matrix: &Matrix<'_>,
    comparison: &Comparison,
    holds: fn(Nanos, Nanos) -> bool,
) -> Result<Found, String> {
    let (of, than) = (
        required(matrix, comparison.of)?,
        required(matrix, comparison.than)?,
    );
    let mut found = Found::default();
    for measure in &comparison.what {
        for rows in alike(matrix, measure) {
            compare_by(&mut found, measure, &rows, (&of, &than), holds);
        }
    }
    Ok(found)
}

/// The rows of a measure, those of one load and variant together: other work is not compared.
fn alike<'a>(matrix: &'a Matrix<'_>, measure: &Measure) -> Vec<Vec<&'a crate::Measurement>> {
    let mut groups: Vec<Vec<&crate::Measurement>> = Vec::new();
    for row in rows(matrix, measure, None) {
        // The worst of all CPUs is one figure, and so is that of all numbers of threads.
        let joined = !row.is_throughput();
        let same = |group: &&mut Vec<&crate::Measurement>| joined && group[0].load == row.load;
        match groups.iter_mut().find(same) {
            Some(group) => group.push(row),
            None => groups.push(vec![row]),
        }
    }
    if groups.is_empty() {
        groups.push(Vec::new());
    }
    groups
}

fn compare_by(
    found: &mut Found,
    measure: &Measure,
    rows: &[&crate::Measurement],
    (of, than): (&[&Column<'_>], &[&Column<'_>]),
    holds: fn(Nanos, Nanos) -> bool,
) {
    let name = match rows {
        [row] if row.is_throughput() && !row.variant.is_empty() => {
            format!(
                "{} {}, {}",
                row.probe,
                row.variant,
                measure.statistic.name()
            )
        }
        rows => format!("{}{}", measure.name(), loads(rows)),
    };
    let mut values = |columns: &[&Column<'_>]| -> Vec<(String, Nanos, Basis)> {
        let mut values = Vec::new();
        for column in columns {
            match figure(column, rows, measure.statistic) {
                Ok(value) => {
                    let known = basis(column, rows).map(|one| (column.name.clone(), value, one));
                    values.extend(known);
                }
                Err(why) => found.gap(format!("{}, {}: {why}", column.name, measure.probe)),
            }
        }
        values
    };
    let (of, than) = (values(of), values(than));
    for (_, one, basis) in &of {
        for (_, other, against) in &than {
            match too_few(rows, measure.statistic, [*basis, *against]) {
                None => found.count(holds(*one, *other)),
                Some(why) => found.gap(format!("{name}: {why}")),
            }
        }
    }
    if !of.is_empty() && !than.is_empty() {
        let named = of.iter().chain(&than);
        let named: Vec<String> = named
            .map(|(name, value, _)| format!("{name} {value}"))
            .collect();
        found.parts.push(format!("{name}: {}", named.join(", ")));
    }
}

fn quotients(matrix: &Matrix<'_>, ratio: &Ratio) -> Result<Found, String> {
    let mut found = Found::default();
    let (above, below) = (
        rows(matrix, &ratio.what, None),
        rows(matrix, &ratio.to, None),
    );
    for column in required(matrix, ratio.of)? {
        let value = |measure: &Measure, rows: &[_]| {
            let value = figure(column, rows, measure.statistic);
            value.map_err(|why| format!("{}, {}: {why}", column.name, measure.name()))
        };
        match (value(&ratio.what, &above), value(&ratio.to, &below)) {
            (Ok(one), Ok(other)) if other.0 > 0 => {
                let times = one.0 as f64 / other.0 as f64;
                found.count(times > ratio.above);
                let name = &column.name;
                found
                    .parts
                    .push(format!("{name} {one} against {other}, {times:.2} times"));
            }
            (Ok(_), Ok(_)) => found.gap(format!("{}: nothing to divide by", column.name)),
            (Err(why), _) | (_, Err(why)) => found.gap(why),
        }
    }
    Ok(found)
}

fn words(matrix: &Matrix<'_>, told: &Told) -> Result<Found, String> {
    let finding = views::of(&told.probe).findings.iter();
    let mut finding = finding.filter(|finding| finding.label == told.finding);
    let finding = finding
        .next()
        .ok_or_else(|| format!("no probe tells \"{}\"", told.finding))?;
    let mut found = Found::default();
    for column in required(matrix, told.of)? {
        let rows = matrix.rows.iter();
        let meant = rows.filter(|row| told.means(&row.probe, &row.variant));
        let before = found.all;
        for row in meant {
            let Cell::Measured { found: all, .. } = column.cell(row) else {
                continue;
            };
            for one in all {
                let said = views::told(finding, &one.recording.findings);
                if said.tone == views::Tone::Unknown {
                    continue;
                }
                found.count(said.text == told.word);
                let part = format!("{}, {}: {}", column.name, told.finding, said.text);
                if !found.parts.contains(&part) {
                    found.parts.push(part);
                }
            }
        }
        if found.all == before {
            found.gap(format!("{}: {} does not tell it", column.name, told.probe));
        }
    }
    Ok(found)
}

/// The tests' worst cases of an older and of a newer kernel. Where the subjects have no such
/// pair, of the first subject and of each other.
pub fn improvements(matrix: &Matrix<'_>, improved: &Improved) -> Vec<Improvement> {
    let (newer, older) = (
        subjects(matrix, improved.of),
        subjects(matrix, improved.than),
    );
    let pairs: Vec<(&Column<'_>, &Column<'_>)> = if newer.is_empty() || older.is_empty() {
        let others = matrix.columns.iter().skip(1);
        others.map(|other| (&matrix.columns[0], other)).collect()
    } else {
        let with_all = |newer| older.iter().map(move |older| (*older, newer));
        newer.into_iter().flat_map(with_all).collect()
    };
    // Times of different clocks are never divided by each other.
    let alike = pairs
        .into_iter()
        .filter(|(older, newer)| older.ns_per_insn == newer.ns_per_insn);
    alike
        .map(|(older, newer)| Improvement {
            older: older.name.clone(),
            newer: newer.name.clone(),
            tests: tests(matrix, older, newer, &improved.what),
        })
        .collect()
}

/// Two kernels, test by test.
#[derive(Clone, Debug)]
pub struct Improvement {
    /// The one that the other is compared with.
    pub older: String,
    /// The other.
    pub newer: String,
    /// The tests.
    pub tests: Vec<Test>,
}

fn improvement(matrix: &Matrix<'_>, improved: &Improved) -> Result<Found, String> {
    let (newer, older) = (
        required(matrix, improved.of)?,
        required(matrix, improved.than)?,
    );
    let mut found = Found::default();
    for newer in newer {
        for older in &older {
            let tests = tests(matrix, older, newer, &improved.what);
            let names = format!("{} against {}", newer.name, older.name);
            let Some((average, count)) = average(&tests) else {
                found.gap(format!("{names}: no test was measured on both"));
                continue;
            };
            found.count(average > 0.0);
            let all = tests.len();
            found.parts.push(format!(
                "{names}: {average:.1} % over {count} of {all} tests"
            ));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod cases;

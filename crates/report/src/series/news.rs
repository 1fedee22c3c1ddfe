// SPDX-License-Identifier: MIT OR Apache-2.0
//! News in lines that were reported before, for a job that runs each night.

use std::fmt;

use punctual_judge::{Comparison, Rule, compare, could_change_last};
use serde::{Deserialize, Serialize};

use super::{Level, Line, OfRun, Row, level_of_each};
use crate::matrix::distinct;
use crate::text::{arrow, counted, times};

/// A memory of reports on lines, so that nothing is reported twice.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Told {
    /// Each line.
    #[serde(default, rename = "line")]
    pub lines: Vec<ToldLine>,
}

/// A memory of reports on one line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToldLine {
    /// The line.
    pub name: String,
    /// The suite that measured it; a file of an earlier version does not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suite: Option<String>,
    /// The figures that changed, each with its release.
    #[serde(default)]
    pub changes: Vec<String>,
    /// The releases that could not be had or measured.
    #[serde(default)]
    pub missing: Vec<String>,
}

impl ToldLine {
    /// Returns true if it is about this line, measured by the same suite as far as it says.
    fn is_of(&self, line: &Line) -> bool {
        let suite = self.suite.as_ref();
        self.name == line.name && suite.is_none_or(|suite| *suite == line.suite)
    }
}

/// The outcome of a night.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Nothing changed that was not told before.
    Unchanged,
    /// The newest release has too few runs to show whether it differs.
    Undecided,
    /// A release that is new, or the newest, could not be measured.
    Missing,
    /// Something changed.
    Changed,
}

impl Standing {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unchanged => "no change",
            Self::Undecided => "undecided",
            Self::Missing => "incomplete",
            Self::Changed => "changed",
        }
    }
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The news.
#[derive(Debug)]
pub struct News {
    /// The changes, the largest first.
    pub changes: Vec<Change>,
    /// Figures of a newest release with too few runs: their lines and rows.
    pub undecided: Vec<(usize, usize)>,
    /// Releases that could not be had or measured, with the reasons.
    pub missing: Vec<String>,
}

/// A change that was not told before.
#[derive(Clone, Debug)]
pub struct Change {
    /// The number of its line.
    pub line: usize,
    /// The number of its row.
    pub row: usize,
    /// The last release before it, and the first with it, by their numbers.
    pub releases: (usize, usize),
    /// The releases before it, and those since.
    pub levels: [Level; 2],
    /// The runs since against those before.
    pub compared: Comparison,
}

impl Change {
    /// Returns the size of the change, as a ratio in either direction.
    fn size(&self) -> f64 {
        let [before, after] = self.levels.map(|level| level.middle.0.max(1) as f64);
        (after / before).ln().abs()
    }

    /// Returns true if it takes longer now, or more is done.
    pub fn is_higher(&self) -> bool {
        self.levels[1].middle > self.levels[0].middle
    }

    /// `2.38 → 5.38 µs, 2.26× (2.25 to 2.27), from 6.12.3 to 6.12.4, p 0.0005`.
    pub fn sentence(&self, line: &Line) -> String {
        let [before, after] = self.levels;
        let ratio = self.compared.ratio.map_or(String::new(), |ratio| {
            let range = ratio.bounds.map_or(String::new(), |(low, high)| {
                let [low, high] = [low, high].map(|bound| times(bound).replace('×', ""));
                format!(" ({low} to {high})")
            });
            format!(", {}{range}", times(ratio.estimate))
        });
        let (from, to) = self.releases;
        let [from, to] = [from, to].map(|at| &line.releases[at].version);
        let p = after
            .change
            .map_or(String::new(), |change| format!(", p {:.4}", change.p));
        let arrow = arrow(before.middle, after.middle);
        format!("{arrow}{ratio}, from {from} to {to}{p}")
    }
}

impl News {
    /// Collects the news in these lines.
    /// News are changes that were not told before and newest releases with too few runs to tell.
    /// Missing releases are news if they were not told before, or are the newest. Of a line that
    /// was never told, changes before its newest release that is no candidate are no news.
    pub fn of(lines: &[Line], told: &Told, rule: &Rule) -> Self {
        let mut news = Self {
            changes: Vec::new(),
            undecided: Vec::new(),
            missing: Vec::new(),
        };
        for (number, line) in lines.iter().enumerate() {
            let told = told.lines.iter().find(|one| one.is_of(line));
            let is_known = |(row, at): (&Row, usize)| match told {
                Some(told) => told.changes.contains(&key(line, row, at)),
                None => at < newest_final(line),
            };
            for (at, row) in line.rows.iter().enumerate() {
                let changes = changes(number, at, row, rule);
                let new = changes
                    .into_iter()
                    .filter(|one| !is_known((row, one.releases.1)));
                news.changes.extend(new);
                if is_undecided(row, level_of_each(rule, line.rows.len())) {
                    news.undecided.push((number, at));
                }
            }
            let is_new = |release: &str| {
                told.is_none_or(|told| !told.missing.iter().any(|one| one == release))
            };
            let missing = missing(line).into_iter();
            let missing = missing.filter(|one| one.is_newest || is_new(&one.release));
            news.missing.extend(missing.map(|one| one.why));
        }
        news.changes
            .sort_by(|one, other| other.size().total_cmp(&one.size()));
        news
    }

    /// Returns true if something changed.
    pub fn is_changed(&self) -> bool {
        !self.changes.is_empty()
    }

    /// Returns the outcome.
    pub fn standing(&self) -> Standing {
        if self.is_changed() {
            Standing::Changed
        } else if !self.missing.is_empty() {
            Standing::Missing
        } else if !self.undecided.is_empty() {
            Standing::Undecided
        } else {
            Standing::Unchanged
        }
    }

    /// Describes the news, sentence by sentence.
    pub fn sentences(&self, lines: &[Line]) -> Vec<String> {
        let mut said = vec![format!("Since last time: {}.", self.standing())];
        said.extend(self.changes.iter().map(|one| {
            let line = &lines[one.line];
            let title = line.rows[one.row].title();
            format!("{}: {title} {}.", line.name, one.sentence(line))
        }));
        for (number, line) in lines.iter().enumerate() {
            let own = self.undecided.iter().filter(|one| one.0 == number).count();
            if let Some(newest) = line.releases.last().filter(|_| own > 0) {
                let figures = counted(own, "figure");
                said.push(format!(
                    "{} {}: too few runs to tell whether {figures} changed: expected more seeds \
                     (--seeds), or more releases before it.",
                    line.name, newest.version
                ));
            }
        }
        said.extend(
            self.missing
                .iter()
                .map(|why| format!("Not measured: {why}.")),
        );
        said
    }
}

impl Told {
    /// Adds these lines, now that they are told, too. It keeps other lines, and those of other
    /// suites. It also keeps these lines' changes: a night in which a release is missing may not
    /// see them, and the next night is not to tell them again.
    pub fn add(&mut self, lines: &[Line]) {
        for line in lines {
            let (own, others): (Vec<ToldLine>, Vec<ToldLine>) =
                self.lines.drain(..).partition(|one| one.is_of(line));
            self.lines = others;
            let before = own.into_iter().flat_map(|one| one.changes);
            let now = line.rows.iter().flat_map(|row| {
                let changes = row.changes.iter();
                changes.map(move |one| key(line, row, one.at))
            });
            self.lines.push(ToldLine {
                name: line.name.clone(),
                suite: Some(line.suite.clone()),
                changes: distinct(before.chain(now)),
                missing: missing(line).into_iter().map(|one| one.release).collect(),
            });
        }
    }
}

/// Returns the key that tells one change from another, regardless of later measurements.
fn key(line: &Line, row: &Row, at: usize) -> String {
    format!("{}, {}", row.title(), line.releases[at].subject)
}

/// The number of the newest release that is no candidate of one; the first, where there is none.
fn newest_final(line: &Line) -> usize {
    let is_final = |one: &super::Release| {
        let number = |part: &str| part.strip_prefix("rc")?.parse::<u32>().ok();
        one.version.split('-').all(|part| number(part).is_none())
    };
    line.releases.iter().rposition(is_final).unwrap_or(0)
}

fn changes(line: usize, number: usize, row: &Row, rule: &Rule) -> Vec<Change> {
    let levels = row.levels();
    let pairs = levels.windows(2).filter_map(|pair| {
        let [before, after] = pair else { return None };
        after.change?;
        let values = |level: &Level| -> Vec<f64> {
            let (from, to) = level.releases;
            let runs = row.values[from..=to].iter().flatten();
            runs.map(|one| one.value.0 as f64).collect()
        };
        Some(Change {
            line,
            row: number,
            releases: (before.releases.1, after.releases.0),
            levels: [*before, *after],
            compared: compare(&values(after), &values(before), rule),
        })
    });
    pairs.collect()
}

/// Returns true if the newest release has too few runs to find a change of it.
/// It returns false if all is as it was.
fn is_undecided(row: &Row, level: f64) -> bool {
    let from = row.changes.last().map_or(0, |one| one.at);
    let releases: Vec<&Vec<OfRun>> = row.values[from..].iter().collect();
    let [before @ .., newest] = &releases[..] else {
        return false;
    };
    let values =
        |runs: &[OfRun]| -> Vec<_> { runs.iter().map(|one| (one.seed, one.value)).collect() };
    // Without one before it, it is where a change was found, or the only one that there is. A
    // difference between earlier ones is still open when the newest is as the last.
    let is_other = |one: &&&Vec<OfRun>| !one.is_empty() && values(one) != values(newest);
    let counts: Vec<usize> = releases.iter().map(|one| one.len()).collect();
    before.iter().any(|one| is_other(&one)) && !could_change_last(&counts, level)
}

/// A release that says nothing, or not everything.
struct Missing {
    release: String,
    why: String,
    is_newest: bool,
}

fn missing(line: &Line) -> Vec<Missing> {
    let left_out = line.left_out.iter().map(|one| Missing {
        release: one.kernel.clone(),
        why: one.to_string(),
        is_newest: one.is_newest,
    });
    let is_newest =
        |at| at + 1 == line.releases.len() && !line.left_out.iter().any(|one| one.is_newest);
    let gaps = line.releases.iter().enumerate();
    let gaps = gaps.filter(|(_, one)| !one.gaps.is_empty());
    let gaps = gaps.map(|(at, one)| Missing {
        release: one.subject.clone(),
        why: format!("{}: {}", one.subject, one.gaps.join("; ")),
        is_newest: is_newest(at),
    });
    let nothing = line.rows.is_empty().then(|| Missing {
        release: line.name.clone(),
        why: format!("{}: no figure of it was measured", line.name),
        is_newest: true,
    });
    left_out.chain(gaps).chain(nothing).collect()
}

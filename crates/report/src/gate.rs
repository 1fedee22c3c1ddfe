// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares kernels with the runs of a baseline.
//! Digests are compared first; where they differ, it tells what differs and if that is worse.

mod differences;
mod figures;
mod gaps;
mod json;
#[cfg(test)]
mod made_up;
mod mends;
mod page;
mod side;
mod standing;
mod symptom;
mod text;
mod watched;

use punctual_judge::{Difference, Rule, independent};
use punctual_model::{Findings, Run};

use self::mends::{Mend, without};
use crate::compare::{Refusal, of_two};
use crate::matrix::{Column, Measurement, rows_of};
use crate::why::Why;

pub use figures::{Judged, Of, Within};
pub use gaps::{Gap, gaps};
pub use json::gate_json;
pub use page::{gate_page, gated_page, page_runs};
pub use side::Side;
pub(crate) use side::machine;
pub use symptom::Symptom;
pub use text::{Detail, gate_text, sentence_of, title};
pub(crate) use text::{arrow, differs, how_sure, named};

/// The default for the smallest change that matters, as a share of a median.
pub const TOLERANCE: f64 = 0.01;

/// Above this number, seeds are not listed one by one.
const MOST_SEEDS: usize = 10;

/// The standing of something against its baseline; a worse one is greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// The same behaviour to the last sample.
    Unchanged,
    /// Lower, or not higher by as much as is worth finding.
    NotWorse,
    /// Higher, by less than what matters.
    Tolerated,
    /// No verdict is possible.
    Undecided,
    /// Higher.
    Worse,
}

impl Standing {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unchanged => "unchanged",
            Self::NotWorse => "not worse",
            Self::Tolerated => "changed, within tolerance",
            Self::Undecided => "undecided",
            Self::Worse => "worse",
        }
    }
}

/// All subjects against their baseline.
#[derive(Debug)]
pub struct Gate {
    /// The suite's name.
    pub suite: String,
    /// The baseline's name.
    pub baseline: String,
    /// One for each subject; never none.
    pub subjects: Vec<Gated>,
    /// The smallest change that matters, as a share of a median.
    pub tolerance: f64,
    /// The command that does the same again; `None` if it is not known.
    pub again: Option<String>,
    /// The command that decides what further seeds can decide.
    pub decide: Option<String>,
}

/// One subject's runs, and those of the baseline that they are compared with.
#[derive(Clone, Debug)]
pub struct Compared<'a> {
    /// The baseline's runs.
    pub there: &'a [&'a Run],
    /// The subject's own runs.
    pub here: &'a [&'a Run],
    /// The seeds of the baseline that can have no other result.
    pub implied: Vec<u64>,
}

impl Gate {
    /// Compares all subjects with their baselines, at this share of the level. `tolerance` is the
    /// smallest change that matters, as a share of a median.
    ///
    /// # Errors
    ///
    /// Fails if a subject's runs and its baseline's did not measure the same.
    pub fn of(
        suite: &str,
        baseline: &str,
        all: &[Compared<'_>],
        share: f64,
        tolerance: f64,
    ) -> Result<Self, Refusal> {
        let changed = all.iter().filter(|one| has_figures(one.there, one.here));
        let mut rule = rule_of_each(changed.count());
        rule.level *= share;
        let terms = Terms { rule, tolerance };
        let one = |one: &Compared<'_>| gated(one.there, one.here, one.implied.clone(), &terms);
        Ok(Self {
            suite: suite.to_owned(),
            baseline: baseline.to_owned(),
            subjects: all.iter().map(one).collect::<Result<_, _>>()?,
            tolerance,
            again: None,
            decide: None,
        })
    }

    /// The standing of all subjects: that of the worst of them.
    pub fn standing(&self) -> Standing {
        let all = self.subjects.iter().map(|one| one.standing);
        all.max().unwrap_or(Standing::Undecided)
    }

    /// Merges this look with an earlier one. Figures that the earlier one decided keep its verdict.
    /// *Unchanged* is none: it says that the samples so far are the same.
    #[must_use]
    pub fn after(mut self, before: &Self) -> Self {
        let is_decided =
            |one: &Judged| !matches!(one.standing, Standing::Undecided | Standing::Unchanged);
        for one in &mut self.subjects {
            let earlier = before.subjects.iter();
            let Some(earlier) = earlier.into_iter().find(|own| own.subject == one.subject) else {
                continue;
            };
            for row in &mut one.rows {
                let same = earlier.rows.iter().find(|own| own.row == row.row);
                for figure in &mut row.figures {
                    let known = same.and_then(|row| {
                        let mut figures = row.figures.iter();
                        figures.find(|own| own.name == figure.name)
                    });
                    if let Some(known) = known.filter(|known| is_decided(known)) {
                        figure.clone_from(known);
                    }
                }
                row.stand();
            }
            one.stand();
        }
        self
    }

    /// Returns the command that decides a row, if it is undecided and further seeds may decide it.
    pub fn decides(&self, row: &Row) -> Option<&str> {
        self.to_decide().filter(|_| row.has_open())
    }

    /// Returns the command that decides what is undecided. There is none where something is worse:
    /// no further look is made then.
    pub fn to_decide(&self) -> Option<&str> {
        let is_open = self.standing() == Standing::Undecided && self.needs_runs();
        self.decide.as_deref().filter(|_| is_open)
    }

    /// Returns true if something is undecided that further runs could decide. A gap remains one.
    pub fn needs_runs(&self) -> bool {
        let rows = self.subjects.iter().flat_map(|one| &one.rows);
        rows.into_iter().any(Row::needs_runs)
    }
}

/// One subject against its baseline.
#[derive(Debug)]
pub struct Gated {
    /// The subject's name.
    pub subject: String,
    /// Its standing.
    pub standing: Standing,
    /// The sides compared: the baseline's, and this one.
    pub sides: [Side; 2],
    /// Runs with one seed, there and here.
    pub pairs: Vec<Pair>,
    /// Seeds of the baseline that were not measured: the same machine would give the same results.
    pub implied: Vec<u64>,
    /// Each measurement; if everything is unchanged, only those that were not measured, or whose
    /// findings differ.
    pub rows: Vec<Row>,
    /// What is missing in the runs of either side, or makes them incomparable.
    pub missing: Vec<Gap>,
    /// The confidence rule for the verdicts.
    pub rule: Rule,
    /// Notes without which it may be misread.
    pub notes: Vec<String>,
    /// The sample that stands for what got worse, or may have, explained here and there.
    pub why: Option<Why>,
}

/// Two runs with one seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The seed.
    pub seed: u64,
    /// The baseline's run.
    pub there: String,
    /// The run that is judged.
    pub here: String,
    /// True if their digests are equal.
    pub is_equal: bool,
}

/// One measurement.
#[derive(Debug)]
pub struct Row {
    /// The measurement.
    pub row: Measurement,
    /// Its standing: that of its worst figure, or undecided if something is missing.
    pub standing: Standing,
    /// Median, p99 and worst, as far as there are samples for them: the one that leads last.
    pub figures: Vec<Judged>,
    /// The reason for no verdict, where no figure gives one.
    pub gap: Option<String>,
    /// True if the gap is about words of the probe that differ, and nothing is missing.
    pub has_words: bool,
    /// The differences, by seed; none in real time, where no run is the same as another.
    pub differences: Vec<(u64, Difference)>,
    /// True if a finding of the probe differs with a seed, even if by less than is shown.
    pub has_other_findings: bool,
    /// True in virtual time: only there a run without differences is the same.
    pub is_virtual: bool,
    /// The number of samples here, over all runs.
    pub samples: u64,
}

impl Row {
    /// The figure that explains the row's standing; of several, the most usual one.
    pub fn decisive(&self) -> Option<&Judged> {
        let mut figures = self.figures.iter().filter(|figure| figure.counts());
        figures.find(|figure| figure.standing == self.standing)
    }

    /// Takes the standing of the worst figure. With something missing, it is undecided at least.
    fn stand(&mut self) {
        let differs = !self.differences.is_empty() || self.has_other_findings;
        let least = match &self.gap {
            Some(_) => Standing::Undecided,
            None if self.is_virtual && !differs => Standing::Unchanged,
            None => Standing::NotWorse,
        };
        let figures = self.figures.iter().filter(|one| one.counts());
        let figures = figures.map(|one| one.standing);
        self.standing = figures.fold(least, Standing::max);
    }

    /// Returns true if further seeds may decide it.
    fn needs_runs(&self) -> bool {
        self.standing == Standing::Undecided && self.has_open()
    }

    /// Returns true if further seeds may decide one of its figures.
    fn has_open(&self) -> bool {
        let is_open = |figure: &Judged| {
            figure.counts() && figure.standing == Standing::Undecided && figure.within.is_none()
        };
        self.gap.is_none() && self.figures.iter().any(is_open)
    }
}

/// The terms of a verdict.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    /// The confidence that a verdict needs.
    pub rule: Rule,
    /// The smallest change that matters, as a share of a median.
    pub tolerance: f64,
}

#[cfg(test)]
impl Default for Terms {
    fn default() -> Self {
        Self {
            rule: Rule::default(),
            tolerance: TOLERANCE,
        }
    }
}

/// Returns the rule for each of several subjects that differ from their baselines.
/// All together give a false verdict of worse no more often than its level says.
pub fn rule_of_each(subjects: usize) -> Rule {
    Rule::default().share(subjects)
}

/// Returns true if each run has the digest of the baseline's run with its seed.
pub fn is_unchanged(there: &[&Run], here: &[&Run]) -> bool {
    let pairs = pairs(there, here);
    !pairs.is_empty() && pairs.len() == here.len() && pairs.iter().all(|pair| pair.is_equal)
}

/// Returns true if all runs were made on one machine.
/// Then equal digests mean equality to the last instruction, and not to the last sample only.
pub fn is_same_machine(there: &[&Run], here: &[&Run]) -> bool {
    let first = there.first();
    let mut all = there.iter().chain(here);
    first.is_some_and(|first| all.all(|one| first.is_made_like(one)))
}

/// Returns true if figures tell more than digests do.
/// That is so if digests differ. It is also so if runs were watched on two machines, where equal
/// samples say nothing of arrivals between them.
fn has_figures(there: &[&Run], here: &[&Run]) -> bool {
    let mut all = there.iter().chain(here);
    let is_watched = all.any(|run| !run.arrivals.is_empty());
    !is_unchanged(there, here) || (is_watched && !is_same_machine(there, here))
}

/// Returns true if findings differ with a seed, on two machines. Digests do not cover findings; on
/// one machine equal digests mean equal findings, too.
fn has_other_findings(there: &[&Run], here: &[&Run]) -> bool {
    let differ = |own: &&Run| {
        let mut others = there.iter().filter(|other| other.seed == own.seed);
        others.any(|other| findings(own).ne(findings(other)))
    };
    !is_same_machine(there, here) && here.iter().any(differ)
}

fn findings(run: &Run) -> impl Iterator<Item = &Findings> {
    run.recordings.iter().map(|one| &one.findings)
}

/// Compares a subject's runs with those of its baseline.
/// `implied` lists the seeds of the baseline that can have no other result.
///
/// Anything not measured on either side is undecided, even if all digests are equal: they are those
/// of the rest.
///
/// # Errors
///
/// Fails if these runs did not measure the same.
pub(crate) fn gated(
    there: &[&Run],
    here: &[&Run],
    implied: Vec<u64>,
    terms: &Terms,
) -> Result<Gated, Refusal> {
    let all: Vec<&Run> = there.iter().chain(here).copied().collect();
    for other in all.iter().skip(1) {
        if let Some(what) = of_two(all[0], other) {
            return Err(Refusal::of_two(all[0], other, &what));
        }
    }
    let mut missing = gaps::of_sides(there, here);
    let counted = [there, here].map(independent);
    missing.extend(gaps::of_counted(&counted));
    let mut notes: Vec<String> = counted.iter().flat_map(|one| one.remarks.clone()).collect();
    let counted = counted.map(|one| one.runs);
    let [there, here] = if without(Mend::Copies) {
        [there, here]
    } else {
        [counted[0].as_slice(), counted[1].as_slice()]
    };
    let is_unchanged = is_unchanged(there, here);
    let has_figures = has_figures(there, here);
    let mut rows = Vec::new();
    if let (true, Some(own), Some(other)) = (
        has_figures || has_other_findings(there, here),
        Column::of("here", here),
        Column::of("baseline", there),
    ) {
        rows = figures::rows(&rows_of(&all), &own, &other, terms);
        notes.extend(watched::note(&rows, &all));
        if is_unchanged {
            let differs = |row: &Row| has_figures && row.standing != Standing::Unchanged;
            rows.retain(|row| row.has_words || row.has_other_findings || differs(row));
        } else {
            notes.extend(side::notes(&all));
        }
    }
    gaps::put(&mut rows, &missing);
    let mut gated = Gated {
        subject: here.first().map_or("", |run| &run.subject.name).to_owned(),
        standing: Standing::Undecided,
        sides: [Side::of(there), Side::of(here)],
        pairs: pairs(there, here),
        implied,
        rows,
        missing,
        rule: terms.rule,
        notes,
        why: None,
    };
    gated.stand();
    Ok(gated)
}

fn pairs(there: &[&Run], here: &[&Run]) -> Vec<Pair> {
    let pair = |here: &&Run| {
        let there = there.iter().find(|there| there.seed == here.seed)?;
        let both = (there.digest(), here.digest());
        Some(Pair {
            seed: here.seed,
            there: there.id.clone(),
            here: here.id.clone(),
            is_equal: both.0.is_some() && both.0 == both.1,
        })
    };
    let here = here.iter().filter(|run| run.is_virtual());
    here.filter_map(pair).collect()
}

impl Gated {
    /// Takes the standing of the worst row. If no row is left, equal digests say all there is.
    fn stand(&mut self) {
        let is_equal = !self.pairs.is_empty()
            && self.pairs.len() == self.sides[1].runs.len()
            && self.pairs.iter().all(|pair| pair.is_equal);
        let least = if is_equal {
            Standing::Unchanged
        } else {
            Standing::NotWorse
        };
        let rows = self.rows.iter().map(|row| row.standing).max();
        self.standing = match rows {
            None if is_equal => Standing::Unchanged,
            None => Standing::Undecided,
            Some(worst) => worst.max(least),
        };
    }

    /// Returns the number of the row that tells most.
    /// Of rows that got worse, that is the one that did by most, else one of the undecided.
    pub fn worst(&self) -> Option<usize> {
        if self.standing < Standing::Undecided {
            return None;
        }
        let ratio = |row: &Row| {
            let figures = row.figures.iter();
            let figures = figures.filter(|figure| figure.counts());
            let own = figures.filter(|figure| figure.standing == row.standing);
            own.filter_map(Judged::ratio).fold(0.0, f64::max)
        };
        let own = self.rows.iter().enumerate();
        let own = own.filter(|(_, row)| row.standing == self.standing);
        // Of equals the first: the order in which they were measured.
        let by_most = own.rev().max_by(|(_, one), (_, other)| {
            let is_measured = |row: &Row| row.gap.is_none();
            (is_measured(one).cmp(&is_measured(other))).then(ratio(one).total_cmp(&ratio(other)))
        });
        by_most.map(|(number, _)| number)
    }

    /// Returns the row that is worth an explanation, and the share of its samples.
    /// The share is that of the median if it got worse, else that of p99 or the worst sample.
    pub fn to_explain(&self) -> Option<(usize, f64)> {
        let number = self.worst()?;
        let figure = self.rows[number].decisive()?;
        // No sample of a run stands for an arrival.
        let figure = Some(figure).filter(|figure| figure.is_of_samples())?;
        Some((number, figure.share))
    }

    /// Describes the finding in one sentence.
    pub fn sentence(&self) -> String {
        let numbers = |seeds: &[u64]| {
            if let ([first, .., last], true) = (seeds, seeds.len() > MOST_SEEDS) {
                return format!("{} seeds from {first} to {last}", seeds.len());
            }
            let seeds: Vec<String> = seeds.iter().map(ToString::to_string).collect();
            let word = if seeds.len() == 1 { "seed" } else { "seeds" };
            format!("{word} {}", seeds.join(", "))
        };
        let of = |is_equal: bool| -> Vec<u64> {
            let pairs = self.pairs.iter().filter(|pair| pair.is_equal == is_equal);
            pairs.map(|pair| pair.seed).collect()
        };
        let (equal, other) = (of(true), of(false));
        if other.is_empty() && !equal.is_empty() {
            let implied = match self.implied.as_slice() {
                [] => String::new(),
                seeds => format!(
                    "; the machine is the same to the last byte, and so are {}",
                    numbers(seeds)
                ),
            };
            return format!("exact: equal digests with {}{implied}", numbers(&equal));
        }
        let mut parts = vec![format!("the digest differs with {}", numbers(&other))];
        if other.is_empty() {
            parts = vec!["no seed is in both, or times are real".to_owned()];
        }
        if !equal.is_empty() {
            parts.push(format!("it is equal with {}", numbers(&equal)));
        }
        parts.join("; ")
    }
}

#[cfg(test)]
mod tests;

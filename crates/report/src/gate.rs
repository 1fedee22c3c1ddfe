// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether kernels behave as the runs of a baseline did: by digest, and where that differs,
//! what differs, and whether it is worse.

mod json;
mod page;
mod text;

use punctual_judge::{Comparison as Judged, Difference, Rule, Verdict};
use punctual_model::Run;

use crate::compare::{Cell, Comparable, Comparison, Digests, Refusal, Section, compare_by};
use crate::matrix::{Matrix, Measurement};
use crate::scope::Story;

pub use json::gate_json;
pub(crate) use page::why_page;
pub use page::{gate_page, gated_page};
pub use text::gate_text;
pub(crate) use text::{differs, why_text};

/// How something stands to its baseline; the worse, the greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// The same behaviour to the last sample.
    Unchanged,
    /// Lower, or not higher by as much as is worth finding.
    NotWorse,
    /// It cannot be told.
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
    /// What the baseline is called.
    pub baseline: String,
    /// One for each subject; never none.
    pub subjects: Vec<Gated>,
}

impl Gate {
    /// Of all subjects: as the worst of them.
    pub fn standing(&self) -> Standing {
        let all = self.subjects.iter().map(|one| one.standing);
        all.max().unwrap_or(Standing::Undecided)
    }
}

/// One subject against its baseline.
#[derive(Debug)]
pub struct Gated {
    /// The subject's name.
    pub subject: String,
    /// How it stands.
    pub standing: Standing,
    /// Runs with one seed, there and here.
    pub pairs: Vec<Pair>,
    /// Seeds of the baseline that were not measured: the machine is the same, and so the same
    /// would come of them.
    pub implied: Vec<u64>,
    /// Each measurement; none where all is unchanged.
    pub rows: Vec<Row>,
    /// How sure the verdicts are.
    pub rule: Rule,
    /// What must be known to read it rightly.
    pub notes: Vec<String>,
    /// The worst of what got worse, explained.
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
    /// Whether their digests are equal.
    pub is_equal: bool,
}

/// One measurement.
#[derive(Debug)]
pub struct Row {
    /// The measurement.
    pub row: Measurement,
    /// How it stands.
    pub standing: Standing,
    /// Run by run: lower, higher, not separated; `None` where no figure leads.
    pub judged: Option<Judged>,
    /// Why it cannot be told, where no figure says so.
    pub gap: Option<String>,
    /// What differs, by seed.
    pub differences: Vec<(u64, Difference)>,
}

/// The worst samples of what got worse, here and there.
#[derive(Debug)]
pub struct Why {
    /// The number of its row.
    pub row: usize,
    /// The run, and the story of its worst sample.
    pub here: (Run, Story),
    /// The same of the baseline.
    pub there: (Run, Story),
}

/// The rule for each of several subjects that differ from their baselines: all together are
/// told worse where they are not no more often than its level says.
pub fn rule_of_each(subjects: usize) -> Rule {
    let rule = Rule::default();
    Rule {
        level: rule.level / subjects.max(1) as f64,
        ..rule
    }
}

/// Whether each run has the digest of the baseline's with its seed.
pub fn is_unchanged(there: &[Run], here: &[Run]) -> bool {
    let pairs = pairs(there, here);
    !pairs.is_empty() && pairs.len() == here.len() && pairs.iter().all(|pair| pair.is_equal)
}

/// Compares a subject's runs with those of its baseline by a rule. `implied` are the seeds of
/// the baseline of which nothing else can come.
///
/// # Errors
/// Where these runs did not measure the same.
pub fn gated(there: &[Run], here: &[Run], implied: Vec<u64>, rule: Rule) -> Result<Gated, Refusal> {
    let subject = here.first().map_or("", |run| &run.subject.name).to_owned();
    let pairs = pairs(there, here);
    let mut gated = Gated {
        subject,
        standing: Standing::Unchanged,
        pairs,
        implied,
        rows: Vec::new(),
        rule,
        notes: Vec::new(),
        why: None,
    };
    let comparable = Comparable::new([renamed(there, &gated.subject), here.to_vec()].concat())?;
    if is_unchanged(there, here) {
        return Ok(gated);
    }
    let comparison = compare_by(&comparable, rule);
    let matrix = Matrix::new(comparable.runs());
    let sections = comparison.sections.iter();
    gated.rows = sections.map(|one| row(&comparison, one, &matrix)).collect();
    gated.standing = gated
        .rows
        .iter()
        .map(|row| row.standing)
        .max()
        .unwrap_or(Standing::Undecided);
    if comparison.digests.get(1) == Some(&Digests::Equal) {
        gated.standing = Standing::Unchanged;
    }
    gated.notes = comparison.notes;
    Ok(gated)
}

/// The baseline's runs as a subject of their own.
fn renamed(there: &[Run], subject: &str) -> Vec<Run> {
    let name = if subject == "baseline" {
        "the baseline"
    } else {
        "baseline"
    };
    let mut runs = there.to_vec();
    for run in &mut runs {
        name.clone_into(&mut run.subject.name);
    }
    runs
}

fn pairs(there: &[Run], here: &[Run]) -> Vec<Pair> {
    let pair = |here: &Run| {
        let there = there.iter().find(|there| there.seed == here.seed)?;
        let both = (there.digest(), here.digest());
        Some(Pair {
            seed: here.seed,
            there: there.id.clone(),
            here: here.id.clone(),
            is_equal: here.is_virtual() && both.0.is_some() && both.0 == both.1,
        })
    };
    here.iter().filter_map(pair).collect()
}

fn row(comparison: &Comparison, section: &Section, matrix: &Matrix<'_>) -> Row {
    let [there, here] = [0, 1].map(|at| matrix.columns[at].found(&section.row));
    let mut differences = Vec::new();
    for here in &here {
        let there = there.iter().find(|there| there.run.seed == here.run.seed);
        let difference = there.and_then(|there| {
            Difference::of((there.run, there.recording), (here.run, here.recording))
        });
        differences.extend(difference.map(|difference| (here.run.seed, difference)));
    }
    let judged = section.verdicts[1];
    let gap = gap(section);
    let standing = match (&gap, judged) {
        (Some(_), _) => Standing::Undecided,
        (None, Some(judged)) => standing(&judged, &comparison.rule),
        (None, None) if differences.is_empty() => Standing::Unchanged,
        (None, None) => Standing::NotWorse,
    };
    Row {
        row: section.row.clone(),
        standing,
        judged,
        gap,
        differences,
    }
}

/// What is missing here, or told otherwise than there.
fn gap(section: &Section) -> Option<String> {
    let (there, here) = (&section.cells[0], &section.cells[1]);
    let mut cells = section.figures.iter().zip(there.iter().zip(here));
    cells.find_map(|(figure, (there, here))| match (there, here) {
        (Cell::Absent(_), Cell::Absent(_)) => None,
        (_, Cell::Absent(why)) => Some(format!("{figure}: {why}")),
        (Cell::Absent(why), _) => Some(format!("{figure}: {why} in the baseline")),
        (Cell::Word(there), Cell::Word(here)) if there != here => {
            Some(format!("{figure}: {here}, where the baseline has {there}"))
        }
        _ => None,
    })
}

/// *Not worse* is shown, not assumed: the ratio's upper bound is below the smallest effect
/// worth finding.
fn standing(judged: &Judged, rule: &Rule) -> Standing {
    let bounds = judged.ratio.and_then(|ratio| ratio.bounds);
    match judged.verdict {
        Verdict::Identical => Standing::Unchanged,
        Verdict::Higher => Standing::Worse,
        Verdict::Lower => Standing::NotWorse,
        _ if bounds.is_some_and(|(_, high)| high <= rule.effect) => Standing::NotWorse,
        Verdict::NotSeparated { .. } | Verdict::Undecided(_) => Standing::Undecided,
    }
}

impl Gated {
    /// The number of the row that got worse by most.
    pub fn worst(&self) -> Option<usize> {
        let ratio = |row: &Row| row.judged.and_then(|judged| Some(judged.ratio?.estimate));
        let worse = self.rows.iter().enumerate();
        let worse = worse.filter(|(_, row)| row.standing == Standing::Worse);
        let by_most = worse.max_by(|(_, one), (_, other)| {
            let [one, other] = [one, other].map(|row| ratio(row).unwrap_or(f64::INFINITY));
            one.total_cmp(&other)
        });
        by_most.map(|(number, _)| number)
    }

    /// What was found, in one sentence.
    pub fn sentence(&self) -> String {
        let numbers = |seeds: &[u64]| {
            let seeds: Vec<String> = seeds.iter().map(ToString::to_string).collect();
            let word = if seeds.len() == 1 { "seed" } else { "seeds" };
            format!("{word} {}", seeds.join(", "))
        };
        let of = |is_equal: bool| -> Vec<u64> {
            let pairs = self.pairs.iter().filter(|pair| pair.is_equal == is_equal);
            pairs.map(|pair| pair.seed).collect()
        };
        let (equal, other) = (of(true), of(false));
        if self.standing == Standing::Unchanged {
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

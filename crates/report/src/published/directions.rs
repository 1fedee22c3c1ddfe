// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks today's kernels against a document's claims, run by run.

use std::collections::BTreeSet;
use std::ptr;

use punctual_judge::{
    Comparison as Found, Pair, Rule, Typical, Verdict, beyond_the_kernel, compare, compare_rows,
    runs_for_typical, typical,
};
use punctual_model::{MachineRecord, Run};
use punctual_published::{
    Below, Check, Comparison, Direction, Document, Improved, Measure, Need, Ratio, Role, Statistic,
    Told,
};

use super::improvement::{average, improvements};
use super::judged::{ClaimVerdict, Judged, Part, ends, needed, part, percents, says, spread};
use super::measure::{OfRun, independent, loads, rows, sharpest};
use super::roles::subjects;
use crate::arrivals::as_far_as_foretold;
use crate::matrix::{Column, Matrix, Measurement};
use crate::views;

/// A claim and its outcome.
#[derive(Clone, Debug)]
pub struct Checked<'a> {
    /// The claim.
    pub direction: &'a Direction,
    /// The outcome.
    pub outcome: ClaimVerdict,
    /// The figures that show it, or the reason why it cannot be told.
    pub evidence: String,
    /// The name of what tells a subject's runs from each other: `seed`, or `run` in real time.
    unit: &'static str,
}

impl Checked<'_> {
    /// States the need of an undecided claim: `4 more seeds`, or `4 more runs` in real time.
    pub fn needed(&self) -> Option<String> {
        match self.outcome {
            ClaimVerdict::Undecided(more) => Some(needed(more, self.unit)),
            _ => None,
        }
    }
}

/// All claims of a document.
pub fn checked<'a>(matrix: &Matrix<'_>, document: &'a Document) -> Vec<Checked<'a>> {
    let all = document.directions.iter();
    all.map(|direction| one(matrix, direction)).collect()
}

fn one<'a>(matrix: &Matrix<'_>, direction: &'a Direction) -> Checked<'a> {
    let judged = if matrix.is_mixed() {
        Err("the subjects' clocks differ".to_owned())
    } else {
        match &direction.check {
            Check::Lower(comparison) => compared(matrix, comparison, Verdict::Lower),
            Check::Higher(comparison) => compared(matrix, comparison, Verdict::Higher),
            Check::Ratio(ratio) => quotients(matrix, ratio),
            Check::Told(told) => words(matrix, told),
            Check::Improved(improved) => improvement(matrix, improved),
            Check::Below(below) => limits(matrix, below),
        }
    };
    let (outcome, evidence) = match judged {
        Ok(judged) => judged.concluded(),
        Err(why) => (ClaimVerdict::CannotTell, why),
    };
    let lacks = |need: &Need| matrix.columns.iter().any(|column| !has(column, *need));
    let lacking = direction.needs.filter(lacks);
    let mut runs = matrix.runs().filter(|_| lacking == Some(Need::RealTime));
    let beyond = runs.find_map(beyond_the_kernel);
    Checked {
        direction,
        outcome: lacking.map_or(outcome, |_| ClaimVerdict::CannotTell),
        evidence: match beyond {
            Some(why) => format!("{evidence}; {why}"),
            None => evidence,
        },
        unit: matrix.columns.first().map_or("run", Column::unit),
    }
}

/// Returns true if a subject ran where a claim can be told.
fn has(column: &Column<'_>, need: Need) -> bool {
    let several = |machine: &MachineRecord| match machine {
        MachineRecord::Virtual(machine) => machine.cpus > 1,
        MachineRecord::Host(machine) => machine.cpus.is_some_and(|cpus| cpus > 1),
    };
    match need {
        // A hypervisor's microseconds are not the machine's.
        Need::RealTime => {
            let is_real = |run: &&Run| !run.is_virtual() && beyond_the_kernel(run).is_none();
            column.runs.iter().all(is_real)
        }
        Need::SeveralCpus => column.runs.iter().all(|run| several(&run.machine)),
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

/// Two subjects by one figure.
struct Row {
    pair: Pair,
    /// `timer, max (celf-50): rt 8.07 µs against none 381 µs`.
    text: String,
    statistic: Statistic,
}

impl Row {
    /// Returns true if the rule's finding rests on less than a forecast has been wrong by.
    /// No further run decides that.
    fn is_too_close(&self, found: &Found) -> bool {
        self.statistic == Statistic::Arrival
            && as_far_as_foretold(*found, &self.pair).verdict != found.verdict
    }
}

fn compared(
    matrix: &Matrix<'_>,
    comparison: &Comparison,
    wanted: Verdict,
) -> Result<Judged, String> {
    let (of, than) = (
        required(matrix, comparison.of)?,
        required(matrix, comparison.than)?,
    );
    let (mut judged, mut compared) = (Judged::default(), Vec::new());
    for measure in &comparison.what {
        for rows in alike(matrix, measure) {
            for (of, than) in pairs(&of, &than) {
                let measure = sharpest(measure, [of, than], &rows);
                let both = [of, than].map(|column| judged.figures(column, &measure, &rows));
                if let [Some(one), Some(other)] = both {
                    compared.push(row(&measure, &rows, [(of, one), (than, other)]));
                }
            }
        }
    }
    let rule = Rule::default();
    let all: Vec<Pair> = compared.iter().map(|row| row.pair.clone()).collect();
    for (row, among) in compared.iter().zip(compare_rows(&all, &rule)) {
        let alone = if row.pair.is_identical {
            among
        } else {
            compare(&row.pair.of, &row.pair.than, &rule)
        };
        if row.is_too_close(&alone) {
            judged.gap(format!("{}: closer than a forecast errs", row.text));
            continue;
        }
        let (text, says) = (&row.text, says(&alone));
        judged.push(
            part([&alone, &among], wanted, &rule),
            format!("{text}: {says}"),
        );
    }
    Ok(judged)
}

/// Each of the one with each of the other.
fn pairs<'a, T, U>(one: &'a [T], other: &'a [U]) -> impl Iterator<Item = (&'a T, &'a U)> {
    let with_all = move |one| other.iter().map(move |other| (one, other));
    one.iter().flat_map(with_all)
}

/// The rows of a measure, those of one load and variant together: other work is not compared.
fn alike<'a>(matrix: &'a Matrix<'_>, measure: &Measure) -> Vec<Vec<&'a Measurement>> {
    let mut groups: Vec<Vec<&Measurement>> = Vec::new();
    for row in rows(matrix, measure, None) {
        // The worst of all CPUs is one figure, and so is that of all numbers of threads.
        let joined = !row.is_throughput();
        let same = |group: &&mut Vec<&Measurement>| joined && group[0].load == row.load;
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

fn row(
    measure: &Measure,
    rows: &[&Measurement],
    [(of, one), (than, other)]: [(&Column<'_>, Vec<OfRun<'_>>); 2],
) -> Row {
    let is_work = rows.iter().all(|row| row.is_throughput());
    let name = match rows {
        [row] if is_work && !row.variant.is_empty() => {
            let (probe, variant) = (&row.probe, &row.variant);
            format!("{probe} {variant}, {}", measure.statistic.name())
        }
        rows => format!("{}{}", measure.name(), loads(rows)),
    };
    let is_identical = one.len() == other.len()
        && one
            .iter()
            .zip(&other)
            .all(|(one, other)| one.is_same(other));
    let all = one.len().max(other.len());
    let [one, other] = [one, other].map(independent);
    let same = match all - one.len().min(other.len()) {
        0 => String::new(),
        _ if is_identical => String::new(),
        same if of.is_virtual() => format!("; of {all} seeds {same} changed nothing"),
        same => format!("; of {all} runs {same} repeat another to the last sample"),
    };
    let sides = [(of, &one), (than, &other)];
    let label = |(column, runs): (&Column<'_>, &Vec<OfRun<'_>>)| {
        let of_run = |run: &OfRun<'_>| format!("{} {}", column.name, run.number);
        runs.iter().map(of_run).collect::<Vec<_>>()
    };
    let runs = sides.map(label).concat();
    let [one, other] = [one, other].map(values);
    let text = format!(
        "{name}: {} {} against {} {}{same}",
        of.name,
        spread(&one, is_work),
        than.name,
        spread(&other, is_work)
    );
    let pair = Pair {
        of: one,
        than: other,
        runs,
        is_identical,
    };
    Row {
        pair,
        text,
        statistic: measure.statistic,
    }
}

fn values(runs: Vec<OfRun<'_>>) -> Vec<f64> {
    runs.into_iter().map(|run| run.value).collect()
}

fn quotients(matrix: &Matrix<'_>, ratio: &Ratio) -> Result<Judged, String> {
    let mut judged = Judged::default();
    for column in required(matrix, ratio.of)? {
        let both = [&ratio.what, &ratio.to]
            .map(|measure| judged.figures(column, measure, &rows(matrix, measure, None)));
        let [Some(above), Some(below)] = both else {
            continue;
        };
        let quotients = values(independent(divided(&above, &below)));
        if quotients.is_empty() {
            judged.gap(format!("{}: nothing to divide by", column.name));
            continue;
        }
        let part = typical(&quotients, ratio.above, Rule::default().level);
        let (low, high) = ends(&quotients);
        judged.push(
            Part::of(part, Typical::Above),
            format!(
                "{} {} against {}, {low:.2} to {high:.2} times",
                column.name,
                spread(&values(above), false),
                spread(&values(below), false)
            ),
        );
    }
    Ok(judged)
}

/// The quotient of each run that has both figures.
fn divided<'a>(above: &[OfRun<'a>], below: &[OfRun<'a>]) -> Vec<OfRun<'a>> {
    let quotient = |one: &OfRun<'a>| {
        let same = |other: &&OfRun<'a>| other.number == one.number && other.value > 0.0;
        let other = below.iter().find(same)?;
        Some(OfRun {
            number: one.number,
            seed: one.seed,
            value: one.value / other.value,
            recordings: [&one.recordings[..], &other.recordings].concat(),
        })
    };
    above.iter().filter_map(quotient).collect()
}

fn limits(matrix: &Matrix<'_>, below: &Below) -> Result<Judged, String> {
    let limit = below.nanos().ok_or("the limit is no time")?;
    let level = Rule::default().level;
    let of = required(matrix, below.of)?;
    let mut judged = Judged::default();
    for measure in &below.what {
        for (column, rows) in pairs(&of, &alike(matrix, measure)) {
            let Some(runs) = judged.figures(column, measure, rows) else {
                continue;
            };
            let runs = values(independent(runs));
            let name = format!("{}, {}{}", column.name, measure.name(), loads(rows));
            let is_above = runs.iter().any(|value| *value > limit);
            let part = if is_above {
                Part::Contradicted
            } else {
                Part::of(typical(&runs, limit, level), Typical::Within)
            };
            // Of independent runs of which none is above, this share may be.
            let share = 100.0 * (1.0 - level.powf(1.0 / runs.len() as f64));
            let mut text = format!("{name}: {}", spread(&runs, false));
            if !is_above {
                text = format!("{text}; at 95 %, at most {share:.0} % of such runs are above");
            }
            judged.push(part, text);
        }
    }
    Ok(judged)
}

fn words(matrix: &Matrix<'_>, told: &Told) -> Result<Judged, String> {
    let mut judged = Judged::default();
    let enough = runs_for_typical(Rule::default().level);
    for column in required(matrix, told.of)? {
        let name = &column.name;
        let (said, silent) = said(matrix, column, told)?;
        let part = match &said[..] {
            [] => {
                judged.gap(format!("{name}: {} does not tell it", told.probe));
                continue;
            }
            [(word, seeds)] if *word == told.word && seeds.len() >= enough => Part::Shown,
            [(word, seeds)] if *word == told.word => Part::Open(enough - seeds.len()),
            _ => Part::Contradicted,
        };
        let all = column.runs.len();
        if silent > 0 {
            let probe = &told.probe;
            judged.gap(format!(
                "{name}: {probe} does not tell it in {silent} of {all} runs"
            ));
        }
        let said = said.iter();
        let said = said.map(|(word, seeds)| format!("{word} ({} of {all})", seeds.len()));
        let said: Vec<String> = said.collect();
        judged.push(
            part,
            format!("{name}, {}: {}", told.finding, said.join(", ")),
        );
    }
    Ok(judged)
}

/// A word, and the runs that say it: in virtual time by their seeds, in real time, where seeds may be
/// equal, by their places among the subject's runs.
type Said = (String, Vec<u64>);

/// Each word that a subject's runs say, and the number of runs that say none: where the probe did
/// not run, it says nothing either.
fn said(
    matrix: &Matrix<'_>,
    column: &Column<'_>,
    told: &Told,
) -> Result<(Vec<Said>, usize), String> {
    let mut finding = views::of(&told.probe).findings.iter();
    let finding = finding.find(|finding| finding.label == told.finding);
    let finding = finding.ok_or_else(|| format!("no probe tells \"{}\"", told.finding))?;
    let name = |(place, run): (usize, &&Run)| {
        if column.is_virtual() {
            run.seed
        } else {
            place as u64
        }
    };
    let all: BTreeSet<u64> = column.runs.iter().enumerate().map(name).collect();
    let mut said: Vec<Said> = Vec::new();
    let rows = matrix.rows.iter();
    for row in rows.filter(|row| told.means(&row.probe, &row.variant)) {
        for one in column.found(row) {
            let word = views::told(finding, &one.recording.findings);
            let mut runs = column.runs.iter().enumerate();
            let own = runs.find(|(_, run)| ptr::eq(**run, one.run));
            let Some(run) = own.map(name).filter(|_| word.tone != views::Tone::Unknown) else {
                continue;
            };
            match said.iter_mut().find(|(text, _)| *text == word.text) {
                Some((_, runs)) if runs.contains(&run) => {}
                Some((_, runs)) => runs.push(run),
                None => said.push((word.text, vec![run])),
            }
        }
    }
    // Of several variants one is enough.
    let is_silent = |run: &&u64| said.iter().all(|(_, runs)| !runs.contains(run));
    let silent = all.iter().filter(is_silent).count();
    Ok((said, silent))
}

fn improvement(matrix: &Matrix<'_>, improved: &Improved) -> Result<Judged, String> {
    required(matrix, improved.of)?;
    required(matrix, improved.than)?;
    let mut judged = Judged::default();
    for one in improvements(matrix, improved) {
        let names = format!("{} against {}", one.newer, one.older);
        let (averages, count) = average(&one.tests);
        if averages.is_empty() {
            judged.gap(format!("{names}: no test was measured on both"));
            continue;
        }
        let found = typical(&averages, 0.0, Rule::default().level);
        let all = one.tests.len();
        judged.push(
            Part::of(found, Typical::Above),
            format!(
                "{names}: {} over {count} of {all} tests",
                percents(&averages, one.unit)
            ),
        );
    }
    Ok(judged)
}

#[cfg(test)]
mod cases;

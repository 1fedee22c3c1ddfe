// SPDX-License-Identifier: MIT OR Apache-2.0
//! The figure by which a bad kernel is worse than a good one, for a bisection between them.

use punctual_judge::Fitness;
use punctual_model::Run;

use super::{Compared, Gap, Gate, Judged, Row, Standing, is_same_machine, is_unchanged, text};
use crate::compare::Refusal;
use crate::matrix::Measurement;

/// The figure that got worse from a good kernel to a bad one: in the measurement that did so most,
/// the most usual figure that is worse.
///
/// A commit between them is bad if this figure is worse there than on the good kernel, and good if
/// it is worse on the bad kernel than there. Each is a verdict of the gate, at its level. Other
/// figures do not count: few runs could show that none of them is worse.
#[derive(Debug)]
pub struct Symptom {
    row: Measurement,
    name: String,
    is_function: bool,
    is_of_samples: bool,
    /// `the typical wake-up of timer, stress, cpu0, 4.15 → 4.66 µs`.
    told: String,
}

impl Symptom {
    /// Finds it in the gate that compares the bad kernel with the good one; `None` if nothing is
    /// worse there.
    pub fn of(bad: &Gate) -> Option<Self> {
        let mut worse = bad.subjects.iter();
        let one = worse.find(|one| one.standing == Standing::Worse)?;
        let row = &one.rows[one.worst()?];
        let figure = row.decisive()?;
        let name = text::usual(figure, &row.row.probe);
        Some(Self {
            row: row.row.clone(),
            name: figure.name.clone(),
            is_function: figure.of.is_function(),
            is_of_samples: figure.is_of_samples(),
            told: format!("{name} of {}, {}", row.row.title(), text::arrow(figure)),
        })
    }

    /// Describes a commit's verdict, with the figure's values on the good and on the bad kernel.
    pub fn sentence(&self, of: Fitness) -> String {
        let told = &self.told;
        match of {
            Fitness::Fit => format!("good: {told}: it got worse after this commit"),
            Fitness::Unfit => format!("bad: {told}: it is worse in this commit"),
            Fitness::Undecided => {
                format!("undecided: {told}: nothing shows on which side this commit is")
            }
        }
    }

    /// What a gate lacks in the step of this figure, or what makes its sides incomparable: then no
    /// verdict about the figure counts. Half a run has fewer chances to be late than a whole one.
    pub fn gap<'a>(&self, gate: &'a Gate) -> Option<&'a str> {
        let own = (&self.row.probe, &self.row.load);
        let is_own = |gap: &&Gap| gap.step.is_none() || (&gap.probe, &gap.load) == own;
        let mut all = gate.subjects.iter().flat_map(|one| &one.missing);
        all.find(is_own).map(|gap| gap.why.as_str())
    }

    /// Judges a commit by its gate against the good kernel, and by the runs of the good kernel, of
    /// the commit and of the bad kernel.
    ///
    /// # Errors
    /// If they did not measure the same.
    pub fn judge(&self, gate: &Gate, runs: [&[&Run]; 3]) -> Result<Fitness, Refusal> {
        let [good, commit, bad] = runs;
        if self.gap(gate).is_some() {
            return Ok(Fitness::Undecided);
        }
        if self.is_worse(gate) {
            return Ok(Fitness::Unfit);
        }
        // Equal samples say nothing of arrivals between them, unless the machine is the same.
        let is_told = self.is_of_samples || is_same_machine(good, commit);
        if is_told && is_unchanged(good, commit) {
            return Ok(Fitness::Fit);
        }
        let compared = Compared {
            there: commit,
            here: bad,
            implied: Vec::new(),
        };
        let bad = Gate::of(&gate.suite, "", &[compared], 1.0, gate.tolerance)?;
        Ok(if self.gap(&bad).is_none() && self.is_worse(&bad) {
            Fitness::Fit
        } else {
            Fitness::Undecided
        })
    }

    fn is_worse(&self, gate: &Gate) -> bool {
        let is_own =
            |one: &Judged| one.name == self.name && one.of.is_function() == self.is_function;
        let rows = gate.subjects.iter().flat_map(|one| &one.rows);
        let own = rows.filter(|row: &&Row| row.row == self.row);
        let mut figures = own.flat_map(|row| &row.figures);
        figures.any(|one| is_own(one) && one.standing == Standing::Worse)
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The share of a document's experiment that was repeated.

use crate::matrix::Matrix;
use crate::text::thousands;

/// The number of samples taken, and that of the document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scaled {
    /// `signal, osadl`.
    pub title: String,
    /// The number of samples taken.
    pub taken: u64,
    /// The number of samples that the document took.
    pub full: u64,
}

impl Scaled {
    /// `signal, osadl: 20,000 of 10,000,000 samples`.
    pub fn text(&self) -> String {
        let (taken, full) = (thousands(self.taken), thousands(self.full));
        format!("{}: {taken} of {full} samples", self.title)
    }
}

/// Returns the measurements with a plan that tells the document's number of samples.
/// Each has the fewest samples that a subject has.
pub fn scaled(matrix: &Matrix<'_>) -> Vec<Scaled> {
    let plan = matrix
        .runs()
        .next()
        .map(|run| run.plan.parse::<toml::Table>());
    let Some(Ok(plan)) = plan else {
        return Vec::new();
    };
    let steps = plan.get("step").and_then(toml::Value::as_array);
    let steps = steps.map_or(&[][..], Vec::as_slice);
    let text = |step: &toml::Value, key: &str, otherwise: &str| {
        let value = step.get(key).and_then(toml::Value::as_str);
        value.unwrap_or(otherwise).to_owned()
    };
    let named = |step: &toml::Value| (text(step, "probe", ""), text(step, "load", "idle"));
    let scaled = |step: &toml::Value| {
        let (probe, load) = named(step);
        // Where two steps have the same name, nothing tells whose samples these are.
        if steps
            .iter()
            .filter(|other| named(other) == (probe.clone(), load.clone()))
            .count()
            > 1
        {
            return None;
        }
        let full = step.get("full").and_then(toml::Value::as_integer)?;
        let rows = matrix.rows.iter();
        let row = rows
            .clone()
            .find(|row| (&row.probe, &row.load) == (&probe, &load))?;
        let found = matrix.columns.iter().map(|column| column.found(row));
        let found = found.filter(|found| !found.is_empty());
        let counts = found.map(|found| found.iter().map(|one| one.recording.count).sum());
        Some(Scaled {
            title: format!("{probe}, {load}"),
            taken: counts.min()?,
            full: u64::try_from(full).ok()?,
        })
    };
    steps.iter().filter_map(scaled).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;

    #[test]
    fn the_plan_says_how_many_samples_the_document_took() {
        let mut runs = fixtures::whole();
        runs[0].plan = "[[step]]\nprobe = \"timer\"\nload = \"stress\"\nfull = 36000000\n\
            [[step]]\nprobe = \"hackbench\"\n"
            .into();
        let scaled = scaled(&Matrix::new(&runs));
        let texts: Vec<String> = scaled.iter().map(Scaled::text).collect();
        assert_eq!(texts, ["timer, stress: 2,000 of 36,000,000 samples"]);
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! One sentence each for probes whose findings say more than their times.

use punctual_model::probe::FindingView;

use crate::matrix::{Column, Measurement};
use crate::text::list;
use crate::views::{self, FindingText, Tone, of};

/// The beginning of the names of variants without a protocol, which are controls.
const CONTROL: &str = "none";

/// States if mutexes prevented priority inversion.
pub fn inversion(columns: &[&Column<'_>], rows: &[Measurement]) -> Option<String> {
    let finding = of("inversion").verdict()?;
    let rows: Vec<&Measurement> = rows.iter().filter(|row| row.probe == "inversion").collect();
    let measured = |column: &&&Column<'_>| rows.iter().any(|row| !column.found(row).is_empty());
    let columns: Vec<&Column<'_>> = columns.iter().filter(measured).copied().collect();
    let names: Vec<String> = columns.iter().map(|column| column.name.clone()).collect();
    let mut protocols: Vec<String> = Vec::new();
    let mut exceptions: Vec<String> = Vec::new();
    for row in &rows {
        for column in &columns {
            let told = told(column, row, finding);
            let exception = told.is_empty() || told.iter().any(|one| one.tone != Tone::Plain);
            if exception {
                exceptions.push(format!("{} on {}", row.title(), column.name));
            } else if !is_control(row) && !protocols.contains(&row.variant) {
                protocols.push(row.variant.clone());
            }
        }
    }
    if columns.is_empty() {
        return None;
    }
    if !exceptions.is_empty() {
        let exceptions = list(&exceptions);
        return Some(format!("Not as it must be, or unknown: {exceptions}."));
    }
    // Without the control a pass would prove nothing.
    if protocols.is_empty() || !rows.iter().any(|row| is_control(row)) {
        return Some("Whether mutexes prevent priority inversion is unknown.".to_owned());
    }
    Some(format!(
        "Mutexes with {} prevented priority inversion on {}; without protocol it came about, \
         as it must.",
        list(&protocols),
        list(&names)
    ))
}

fn is_control(row: &Measurement) -> bool {
    row.variant.starts_with(CONTROL)
}

/// States if interrupts are handled in threads.
pub fn interrupts(columns: &[&Column<'_>], rows: &[Measurement]) -> Option<String> {
    let finding = of("kthreads").findings.first()?;
    let row = rows.iter().find(|row| row.probe == "kthreads")?;
    let on = |word: &str| {
        let says = |column: &&&Column<'_>| {
            let told = told(column, row, finding);
            let all = |word: &str| !told.is_empty() && told.iter().all(|one| one.text == word);
            match word {
                "unknown" => !told.is_empty() && !all("yes") && !all("no"),
                word => all(word),
            }
        };
        let columns = columns.iter().filter(says);
        let names: Vec<String> = columns.map(|column| column.name.clone()).collect();
        list(&names)
    };
    let parts = [
        ("yes", "all handled in threads on"),
        ("no", "not all handled in threads on"),
        ("unknown", "handled in an unknown way on"),
    ];
    let parts = parts.map(|(word, told)| (told, on(word)));
    let parts = parts.iter().filter(|(_, names)| !names.is_empty());
    let parts: Vec<String> = parts
        .map(|(told, names)| format!("{told} {names}"))
        .collect();
    (!parts.is_empty()).then(|| format!("Interrupts are {}.", list(&parts)))
}

/// Returns the finding of each run of a subject.
fn told(column: &Column<'_>, row: &Measurement, finding: &FindingView) -> Vec<FindingText> {
    let found = column.found(row).into_iter();
    found
        .map(|one| views::told(finding, &one.recording.findings))
        .collect()
}

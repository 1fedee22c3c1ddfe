// SPDX-License-Identifier: MIT OR Apache-2.0
//! What stands in the way of real-time work on a machine: for terminals and as JSON.

mod trials;

use punctual_doctor::{ALL, Diagnosis, Finding, Health, Severity, Verdict};
use serde_json::{Value, json};

use crate::text::{Lines, clean, list};

pub use trials::{Tried, Why, trials_text, tried};

/// The form's name and version; `docs/schema/doctor-1.json` describes it.
const SCHEMA: &str = "punctual.doctor/1";

/// How a diagnosis is shown on a terminal.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// So many columns.
    pub width: usize,
    /// With ANSI colours.
    pub colour: bool,
    /// What is fine, too, with what was found.
    pub all: bool,
}

/// How many columns the word before a finding takes.
const INDENT: usize = "medium  ".len();

/// A summary; what is wrong, the heaviest first; what cannot be told; then the rest.
pub fn doctor_text(diagnosis: &Diagnosis, look: Look) -> String {
    let mut lines = Lines::new(look.width);
    lines.put(&in_all(diagnosis));
    lines.put(&counts(diagnosis));
    for one in diagnosis.wrong() {
        let Verdict::Wrong(found) = &one.verdict else {
            continue;
        };
        head(&mut lines, one, look.colour);
        field(&mut lines, "found", &found.to_string());
        field(&mut lines, "do", one.check.advice);
        field(&mut lines, "see", one.check.source);
    }
    for one in &diagnosis.0 {
        if let Verdict::Unknown(reason) = &one.verdict {
            head(&mut lines, one, look.colour);
            field(&mut lines, "unknown", &format!("because {reason}"));
        }
    }
    let is_rest = |one: &Finding| ["fine", "moot"].contains(&one.verdict.name());
    if diagnosis.0.iter().any(is_rest) {
        lines.line("");
    }
    if look.all {
        rest(&mut lines, diagnosis);
    } else {
        for (name, title) in [("fine", "Fine"), ("moot", "Not for this machine")] {
            let names = ids(diagnosis, |one| one.verdict.name() == name);
            if !names.is_empty() {
                lines.put(&format!("{title}: {}.", names.join(", ")));
            }
        }
    }
    lines.finish()
}

/// The weight and the name of a check, then what it wants.
fn head(lines: &mut Lines, one: &Finding, colour: bool) {
    let check = one.check;
    let severity = check.severity.name();
    lines.line("");
    let (start, end) = match check.severity {
        _ if !colour => ("", ""),
        // As tables have it: what is worse is dark red, names are bold.
        Severity::Fatal | Severity::High => ("\u{1b}[1;31m", "\u{1b}[0m"),
        _ => ("\u{1b}[1m", "\u{1b}[0m"),
    };
    let gap = " ".repeat(INDENT - severity.len());
    lines.line(format!("{start}{severity}{gap}{}{end}", check.id));
    field(lines, "wanted", check.wanted);
}

fn field(lines: &mut Lines, name: &str, text: &str) {
    let indent = " ".repeat(INDENT);
    let first = format!("{indent}{name:INDENT$} ");
    let rest = " ".repeat(first.len());
    lines.wrap(&clean(text), &first, &rest);
}

/// What is fine, and what does not apply, with what was found.
fn rest(lines: &mut Lines, diagnosis: &Diagnosis) {
    for one in &diagnosis.0 {
        let told = match &one.verdict {
            Verdict::Fine(found) => found.to_string(),
            Verdict::Moot(why) => why.clone(),
            Verdict::Wrong(_) | Verdict::Unknown(_) => continue,
        };
        let first = format!("{:INDENT$}{}: ", one.verdict.name(), one.check.id);
        lines.wrap(&clean(&told), &first, &" ".repeat(INDENT + 2));
    }
}

fn ids(diagnosis: &Diagnosis, is_it: impl Fn(&Finding) -> bool) -> Vec<&'static str> {
    let all = diagnosis.0.iter().filter(|one| is_it(one));
    all.map(|one| one.check.id).collect()
}

/// `Unfit for real-time work: 1 fatal, 2 high.`
fn in_all(diagnosis: &Diagnosis) -> String {
    let wrong = diagnosis.wrong();
    let weights: Vec<Severity> = wrong.map(|one| one.check.severity).collect();
    let told = |severity: Severity| {
        let count = weights.iter().filter(|own| **own == severity).count();
        (count > 0).then(|| format!("{count} {}", severity.name()))
    };
    let told: Vec<String> = Severity::ALL.into_iter().filter_map(told).collect();
    let unknown = ids(diagnosis, |one| {
        one.check.severity.is_of_weight() && one.verdict.name() == "unknown"
    });
    let found = match told.as_slice() {
        [] => "nothing was found".to_owned(),
        told => format!("found {}", list(told)),
    };
    match diagnosis.health() {
        Health::Unfit => format!("Unfit for real-time work: {found}."),
        Health::Undecided => format!(
            "Undecided: {found}, and what weighs cannot be told of {}.",
            unknown.join(", ")
        ),
        Health::Fit => format!("Nothing of weight stands in the way: {found}."),
    }
}

/// `Checks: 20 fine, 3 wrong, …`
fn counts(diagnosis: &Diagnosis) -> String {
    let count = |name| ids(diagnosis, |one| one.verdict.name() == name).len();
    let left = ALL.into_iter().flatten().count() - diagnosis.0.len();
    let left = match left {
        0 => String::new(),
        left => format!("; {left} not asked for"),
    };
    format!(
        "Checks: {} fine, {} wrong, {} unknown, {} not for this machine{left}.",
        count("fine"),
        count("wrong"),
        count("unknown"),
        count("moot")
    )
}

/// A diagnosis with all that was found; `skipped` are the checks that were left out, `trials`
/// what was measured, if that was asked for.
pub fn doctor_json(diagnosis: &Diagnosis, skipped: &[String], trials: Option<&[Tried]>) -> Value {
    let one = |one: &Finding| {
        let (check, verdict) = (one.check, &one.verdict);
        let (found, reason, cause) = match verdict {
            Verdict::Fine(found) | Verdict::Wrong(found) => (json!(found), None, Value::Null),
            Verdict::Unknown(reason) => (Value::Null, Some(reason.to_string()), json!(reason)),
            Verdict::Moot(why) => (Value::Null, Some(why.clone()), Value::Null),
        };
        json!({
            "id": check.id,
            "severity": check.severity.name(),
            "verdict": verdict.name(),
            "wanted": check.wanted,
            "found": found,
            "reason": reason,
            "cause": cause,
            "advice": check.advice,
            "source": check.source,
            "needs_root": check.needs_root,
        })
    };
    json!({
        "schema": SCHEMA,
        "verdict": diagnosis.health().name(),
        "checks": diagnosis.0.iter().map(one).collect::<Vec<_>>(),
        "skipped": skipped,
        "trials": trials.map(trials::json),
    })
}

#[cfg(test)]
mod tests;

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Obstacles to real-time work on a machine, for terminals and as JSON.

mod page;
mod trials;

use punctual_doctor::{ALL, Diagnosis, Finding, Health, Purpose, Severity, Step, System, Verdict};
use serde_json::{Value, json};

use crate::text::{Lines, clean, list};

pub use page::doctor_page;
pub use trials::{Tried, Why, trials_text, tried};

/// The form's name and version; `docs/schema/doctor-1.json` describes it.
const SCHEMA: &str = "punctual.doctor/1";

/// The form of a diagnosis on a terminal.
#[derive(Clone, Copy, Debug)]
pub struct Look<'a> {
    /// The number of columns.
    pub width: usize,
    /// With ANSI colours.
    pub colour: bool,
    /// Each thing that is wrong or unknown with its reasons, and what is fine.
    pub all: bool,
    /// The first steps to take.
    pub steps: &'a [Step],
    /// The purpose of the machine; `None` if nobody said.
    pub purpose: Option<Purpose>,
}

/// The width of the word before a finding, in columns.
const INDENT: usize = "medium  ".len();

/// Describes a diagnosis: a summary and the first steps to take.
/// Then come all faults, the heaviest first, the unknown, and the rest; or their names alone.
pub fn doctor_text(diagnosis: &Diagnosis, look: Look<'_>) -> String {
    let mut lines = Lines::new(look.width);
    lines.put(&in_all(diagnosis, look.purpose));
    lines.put(&counts(diagnosis));
    for note in notes(diagnosis, look.purpose) {
        lines.put(note);
    }
    first(&mut lines, look.steps);
    if look.all {
        findings(&mut lines, diagnosis, look.colour);
        rest(&mut lines, diagnosis);
    } else {
        names(&mut lines, diagnosis, look.steps);
    }
    lines.finish()
}

/// The meaning of a delay for sound.
const AUDIO: &str = "At 48 kHz a period of 128 frames lasts 2.7 ms: a thread that comes 16 ms late \
                     misses six periods in a row, and everybody hears it.";

/// A limit that no command mends.
const VIRTUAL: &str = "This is a virtual machine: its host can stop it at any time, and nothing \
                       that is set here changes that.";

/// Returns notes to read before doing anything.
fn notes(diagnosis: &Diagnosis, purpose: Option<Purpose>) -> Vec<&'static str> {
    let is_virtual = diagnosis
        .wrong()
        .any(|one| one.check.id == "virtualisation");
    let is_audio = purpose == Some(Purpose::Audio);
    [(is_audio, AUDIO), (is_virtual, VIRTUAL)]
        .into_iter()
        .filter_map(|(is_so, note)| is_so.then_some(note))
        .collect()
}

/// `Do these first, in this order, on Debian:`
fn first_title(steps: &[Step]) -> String {
    let what = match steps.len() {
        1 => "Do this first",
        _ => "Do these first, in this order",
    };
    match steps.first().map(|step| &step.commands[..]) {
        Some([(system, _)]) => format!("{what}, on {}:", system.name()),
        _ => format!("{what}:"),
    }
}

/// The check that a step answers, and those that it settles, too.
fn answers(step: &Step) -> String {
    match step.settles.as_slice() {
        [] => step.check.to_owned(),
        settles => format!("{}; settles {}, too", step.check, settles.join(" and ")),
    }
}

/// The systems that take the same commands; `None` where all do.
fn taken_by(step: &Step, systems: &[System]) -> Option<String> {
    let names: Vec<String> = systems.iter().map(|one| one.name().to_owned()).collect();
    (systems.len() < step.commands.len()).then(|| format!("{}:", list(&names)))
}

/// After the steps.
const REBOOT: &str = "Then restart the machine (`sudo reboot`), and run `punctual doctor` again.";

/// Prints the first steps as commands: unchanged, for pasting.
fn first(lines: &mut Lines, steps: &[Step]) {
    if steps.is_empty() {
        return;
    }
    lines.line("");
    lines.put(&first_title(steps));
    for (step, number) in steps.iter().zip(1..) {
        let title = format!("{} ({})", step.title, answers(step));
        lines.wrap(&title, &format!("{number}. "), "   ");
        for (systems, commands) in step.by_commands() {
            if let Some(names) = taken_by(step, &systems) {
                lines.wrap(&names, "   ", "   ");
            }
            for command in commands {
                lines.line(format!("     {}", clean(command)));
            }
        }
    }
    if steps.iter().any(|step| step.reboot) {
        lines.put(REBOOT);
    }
}

/// Prints all faults, then all unknowns.
fn findings(lines: &mut Lines, diagnosis: &Diagnosis, colour: bool) {
    for one in diagnosis.wrong() {
        let Verdict::Wrong(found) = &one.verdict else {
            continue;
        };
        head(lines, one, colour);
        field(lines, "found", &found.to_string());
        field(lines, "do", one.check.advice);
        if let Some(by) = diagnosis.settled_by(one) {
            field(lines, "note", &format!("{by} settles it, too"));
        }
        field(lines, "see", one.check.source);
    }
    for one in &diagnosis.0 {
        if let Verdict::Unknown(reason) = &one.verdict {
            head(lines, one, colour);
            field(lines, "unknown", &format!("because {reason}"));
        }
    }
    if diagnosis
        .0
        .iter()
        .any(|one| ["fine", "moot"].contains(&one.verdict.name()))
    {
        lines.line("");
    }
}

/// Prints the names of everything that is not told above.
fn names(lines: &mut Lines, diagnosis: &Diagnosis, steps: &[Step]) {
    let is_told = |one: &Finding| {
        let is_its =
            |step: &Step| step.check == one.check.id || step.settles.contains(&one.check.id);
        steps.iter().any(is_its)
    };
    let wrong = if steps.is_empty() {
        "Wrong"
    } else {
        "Also wrong"
    };
    lines.line("");
    for (name, title) in [
        ("wrong", wrong),
        ("unknown", "Not known"),
        ("fine", "Fine"),
        ("moot", "Not for this machine"),
    ] {
        let names = ids(diagnosis, |one| one.verdict.name() == name && !is_told(one));
        if !names.is_empty() {
            lines.put(&format!("{title}: {}.", names.join(", ")));
        }
    }
    lines.put("--all says of each what was found, what to do, and who says so.");
}

/// The weight and the name of a check, then its demand.
fn head(lines: &mut Lines, one: &Finding, colour: bool) {
    let check = one.check;
    let severity = one.severity.name();
    lines.line("");
    let (start, end) = match one.severity {
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

/// Prints passed checks and checks that do not apply, with the findings.
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
fn in_all(diagnosis: &Diagnosis, purpose: Option<Purpose>) -> String {
    let aim = match purpose {
        Some(Purpose::Audio) => "sound",
        Some(Purpose::Control) => "control",
        Some(Purpose::Isolated) => "work on isolated CPUs",
        None => "real-time work",
    };
    let wrong = diagnosis.wrong();
    let weights: Vec<Severity> = wrong.map(|one| one.severity).collect();
    let told = |severity: Severity| {
        let count = weights.iter().filter(|own| **own == severity).count();
        (count > 0).then(|| format!("{count} {}", severity.name()))
    };
    let told: Vec<String> = Severity::ALL.into_iter().filter_map(told).collect();
    let unknown = ids(diagnosis, |one| {
        one.severity.is_of_weight() && one.verdict.name() == "unknown"
    });
    let found = match told.as_slice() {
        [] => "nothing was found".to_owned(),
        told => format!("found {}", list(told)),
    };
    match diagnosis.health() {
        Health::Unfit => format!("Unfit for {aim}: {found}."),
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

/// A diagnosis with all findings, for `purpose`, with the first steps to take.
/// `skipped` are the checks that were left out, `trials` the measurements, if these were asked for.
pub fn doctor_json(
    diagnosis: &Diagnosis,
    purpose: Option<Purpose>,
    steps: &[Step],
    skipped: &[String],
    trials: Option<&[Tried]>,
) -> Value {
    let one = |one: &Finding| {
        let (check, verdict) = (one.check, &one.verdict);
        let (found, reason, cause) = match verdict {
            Verdict::Fine(found) | Verdict::Wrong(found) => (json!(found), None, Value::Null),
            Verdict::Unknown(reason) => (Value::Null, Some(reason.to_string()), json!(reason)),
            Verdict::Moot(why) => (Value::Null, Some(why.clone()), Value::Null),
        };
        json!({
            "id": check.id,
            "severity": one.severity.name(),
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
        "purpose": purpose.map(Purpose::name),
        "steps": steps.iter().map(step_json).collect::<Vec<_>>(),
        "skipped": skipped,
        "trials": trials.map(trials::json),
    })
}

fn step_json(step: &Step) -> Value {
    let commands = step
        .commands
        .iter()
        .map(|(system, lines)| json!({ "system": system, "lines": lines }));
    json!({
        "check": step.check,
        "title": step.title,
        "settles": step.settles,
        "reboot": step.reboot,
        "commands": commands.collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests;

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Obstacles to real-time work on a machine, for terminals and as JSON.

mod page;
mod trials;

use punctual_doctor::{
    ALL, Diagnosis, Finding, Found, Health, Purpose, Severity, Step, System, Value as Of, Verdict,
};
use punctual_model::{CpuId, Nanos, Reason};
use serde::Serialize;
use serde_json::{Value, json};

use crate::text::{Lines, clean, is_or_are, list};

pub use page::doctor_page;
pub use trials::{Tried, Why, trials_text, tried};

/// The form's name and version; `docs/schema/doctor-1.json` describes it.
const SCHEMA: &str = "punctual.doctor/1";

/// New fields may be added to version 1; none is removed or changes its meaning.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Document<'a> {
    #[cfg_attr(test, schemars(extend("const" = SCHEMA)))]
    schema: &'static str,
    /// The overall result, by the checks of weight, which are those that are fatal or high: unfit
    /// if one of them is wrong, else undecided if one of them is unknown.
    #[cfg_attr(test, schemars(extend("enum" = ["fit", "unfit", "undecided"])))]
    verdict: &'static str,
    /// The checks, the heaviest first.
    checks: Vec<Checked<'a>>,
    /// The purpose of the machine, by `--for`; the checks weigh by it.
    #[cfg_attr(test, schemars(extend("enum" = ["audio", "control", "isolated", null])))]
    purpose: Option<&'static str>,
    /// The first steps to take, in this order, as far as commands do it.
    steps: Vec<Remedy<'a>>,
    /// The checks that were left out by `--skip`.
    skipped: &'a [String],
    /// The benefits of options in virtual time; null without `--measure`.
    trials: Option<Vec<trials::Outcome<'a>>>,
}

/// A check, and its outcome: what was found if it is fine or wrong, else the reason why not.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(
    test,
    schemars(extend(
        "if" = { "properties": { "verdict": { "enum": ["fine", "wrong"] } } },
        "then" = { "properties": { "found": { "type": "object" }, "reason": { "type": "null" } } },
        "else" = { "properties": { "found": { "type": "null" }, "reason": { "type": "string" } } }
    ))
)]
struct Checked<'a> {
    /// The name of the check.
    id: &'static str,
    /// Its weight.
    #[cfg_attr(test, schemars(extend("enum" = ["fatal", "high", "medium", "low", "info"])))]
    severity: &'static str,
    /// Its outcome; moot: the question does not arise on this machine.
    #[cfg_attr(test, schemars(extend("enum" = ["fine", "wrong", "unknown", "moot"])))]
    verdict: &'static str,
    /// The wanted state.
    wanted: &'static str,
    /// The state that was found; null if it is unknown or moot.
    found: Option<Observed<'a>>,
    /// The reason why it is unknown or moot, for people.
    reason: Option<String>,
    /// The reason why it is unknown, by kind, as in punctual.run/2.
    #[cfg_attr(test, schemars(with = "Value", extend("type" = ["string", "object", "null"])))]
    cause: Option<&'a Reason>,
    /// Advice for a machine on which it is wrong.
    advice: &'static str,
    /// The address of the document or thread that says so.
    #[cfg_attr(test, schemars(extend("pattern" = "^https://")))]
    source: &'static str,
    /// True if only root can see it.
    needs_root: bool,
}

/// An observation on the machine.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Observed<'a> {
    /// The thing examined: a setting, a file, a boot argument.
    name: &'a str,
    /// Its value.
    value: Amount<'a>,
}

/// The value of an observation.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
enum Amount<'a> {
    /// A number, in the unit that the setting's name ends in.
    Number(i64),
    /// A time.
    Nanos(#[cfg_attr(test, schemars(with = "i64"))] Nanos),
    /// A word, as the kernel shows it.
    Text(&'a str),
    /// CPUs.
    Cpus(#[cfg_attr(test, schemars(with = "Vec<u32>"))] &'a [CpuId]),
    /// Several names.
    Names(&'a [String]),
}

/// A remedy to apply.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Remedy<'a> {
    /// The check that it answers.
    check: &'static str,
    /// A title of a few words.
    title: &'a str,
    /// Other checks that it settles, too.
    settles: &'a [&'static str],
    /// True if it takes effect only from the next boot on.
    reboot: bool,
    /// The commands for the machine's own system, or for each common one if that is not known.
    commands: Vec<Commands<'a>>,
}

/// The commands of a remedy on one system.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Commands<'a> {
    /// The system.
    #[cfg_attr(
        test,
        schemars(with = "String", extend("enum" = [
            "debian",
            "ubuntu",
            "ubuntu-on-pi",
            "raspberry-pi",
            "raspberry-pi-32",
            "other"
        ]))
    )]
    system: System,
    /// The lines for a shell, together; remarks begin with #.
    lines: &'a [String],
}

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
        Health::Undecided => {
            let all: Vec<String> = unknown.iter().map(ToString::to_string).collect();
            let are = is_or_are(all.len());
            format!("Undecided: {found}, and {} {are} unknown.", list(&all))
        }
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
    json!(Document {
        schema: SCHEMA,
        verdict: diagnosis.health().name(),
        checks: diagnosis.0.iter().map(Checked::of).collect(),
        purpose: purpose.map(Purpose::name),
        steps: steps.iter().map(Remedy::of).collect(),
        skipped,
        trials: trials.map(|all| all.iter().map(trials::Outcome::of).collect()),
    })
}

impl<'a> Checked<'a> {
    fn of(one: &'a Finding) -> Self {
        let (check, verdict) = (one.check, &one.verdict);
        let (found, reason, cause) = match verdict {
            Verdict::Fine(found) | Verdict::Wrong(found) => (Some(found), None, None),
            Verdict::Unknown(reason) => (None, Some(reason.to_string()), Some(reason)),
            Verdict::Moot(why) => (None, Some(why.clone()), None),
        };
        Self {
            id: check.id,
            severity: one.severity.name(),
            verdict: verdict.name(),
            wanted: check.wanted,
            found: found.map(Observed::of),
            reason,
            cause,
            advice: check.advice,
            source: check.source,
            needs_root: check.needs_root,
        }
    }
}

impl<'a> Observed<'a> {
    fn of(found: &'a Found) -> Self {
        let value = match &found.value {
            Of::Number(number) => Amount::Number(*number),
            Of::Nanos(time) => Amount::Nanos(*time),
            Of::Text(text) => Amount::Text(text),
            Of::Cpus(cpus) => Amount::Cpus(cpus),
            Of::Names(names) => Amount::Names(names),
        };
        Self {
            name: &found.name,
            value,
        }
    }
}

impl<'a> Remedy<'a> {
    fn of(step: &'a Step) -> Self {
        let commands = step.commands.iter();
        let commands = commands.map(|(system, lines)| Commands {
            system: *system,
            lines,
        });
        Self {
            check: step.check,
            title: &step.title,
            settles: &step.settles,
            reboot: step.reboot,
            commands: commands.collect(),
        }
    }
}

#[cfg(test)]
mod tests;

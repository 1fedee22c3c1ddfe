// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measurements of others, repeated here: equal, different, or undecided.

use std::collections::BTreeSet;

use punctual_judge::{Difference, fate};
use punctual_model::record::Provenance;
use punctual_model::recording::{OBSERVED, Work};
use punctual_model::run::State;
use punctual_model::{Facts, Nanos, Recording, Run};
use serde::Serialize;
use serde_json::{Value, json};

use crate::gate::differs;
use crate::text::{Lines, clean, counted, is_or_are, list};

/// The form's name and version; `docs/schema/verification-1.json` describes it.
const SCHEMA: &str = "punctual.verification/1";

/// The result of repeating the runs in a file.
#[derive(Debug)]
pub struct Verification {
    /// The file's name.
    pub file: String,
    /// One for each run that was looked at.
    pub claims: Vec<Claim>,
}

/// A run that somebody else has measured, and the outcome of its repeat here.
#[derive(Debug)]
pub struct Claim {
    /// Its id in the file.
    pub run: String,
    /// Its suite's name.
    pub suite: String,
    /// The subject that was judged.
    pub subject: String,
    /// The seed.
    pub seed: u64,
    /// The digest in the file; `None` where that run did not finish.
    pub digest: Option<String>,
    /// The run here, and its digest.
    pub here: Option<(String, Option<String>)>,
    /// The outcome.
    pub outcome: Outcome,
    /// The reason why it is undecided, if it is.
    pub why: Option<String>,
    /// Circumstances that differ from those there.
    pub changes: Vec<Change>,
    /// Figures that a verdict reads and the digest does not cover, where they differ.
    pub figures: Vec<Change>,
    /// The recordings that differ, each with the difference.
    pub differences: Vec<Differing>,
}

/// A recording that is not what it was.
#[derive(Debug)]
pub struct Differing {
    /// `probe / load / variant`.
    pub recording: String,
    /// The difference; `None` if the recording is on one side only.
    pub how: Option<Difference>,
    /// The side that has it, if only one does.
    pub only: Option<&'static str>,
}

/// A circumstance or a figure that is not what it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Change {
    /// The name of what has changed.
    pub what: String,
    /// The state there.
    #[serde(rename = "there")]
    pub then: String,
    /// The state here.
    #[serde(rename = "here")]
    pub now: String,
}

/// The outcome of repeating a run.
// A worse one is greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// The same digest and the same figures, and every step was measured.
    Equal,
    /// It was not repeated, not all of it was measured, or only a different machine gave another
    /// result.
    Undecided,
    /// The very same machine gives another digest or another figure.
    Differs,
}

impl Outcome {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Equal => "equal",
            Self::Undecided => "undecided",
            Self::Differs => "differs",
        }
    }

    /// The outcome that has this word.
    pub fn of_name(name: &str) -> Option<Self> {
        let mut all = [Self::Equal, Self::Undecided, Self::Differs].into_iter();
        all.find(|one| one.name() == name)
    }
}

impl Verification {
    /// Of all runs: as the worst of them.
    pub fn outcome(&self) -> Outcome {
        let all = self.claims.iter().map(|claim| claim.outcome);
        all.max().unwrap_or(Outcome::Undecided)
    }

    /// Counts the runs with this outcome.
    fn count(&self, outcome: Outcome) -> usize {
        let claims = self.claims.iter();
        claims.filter(|claim| claim.outcome == outcome).count()
    }
}

/// Judges a run by its repeat here and the changes, or by the reason why there is none.
/// `misnamed` is the reason why nobody here knows that its kernel is the one whose name it has.
pub fn claim(
    there: &Run,
    here: Result<(&Run, Vec<Change>), String>,
    misnamed: Option<&str>,
) -> Claim {
    let mut claim = Claim {
        run: there.id.clone(),
        suite: there.suite.clone(),
        subject: there.subject.name.clone(),
        seed: there.seed,
        digest: there.digest(),
        here: None,
        outcome: Outcome::Undecided,
        why: None,
        changes: Vec::new(),
        figures: Vec::new(),
        differences: Vec::new(),
    };
    let (here, changes) = match here {
        Ok(here) => here,
        Err(why) => {
            claim.why = Some(why);
            return claim;
        }
    };
    claim.here = Some((here.id.clone(), here.digest()));
    claim.changes = changes;
    if here.state != State::Finished {
        claim.why = Some(format!("here, {}", fate(here)));
        return claim;
    }
    let no_digest = [(there, "in the file"), (here, "here")];
    let no_digest = no_digest.map(|(run, where_)| Some((run.no_digest()?, where_)));
    if let Some((why, where_)) = no_digest.into_iter().flatten().next() {
        claim.why = Some(format!("{where_} there is no digest: {why}"));
        return claim;
    }
    let is_equal = claim.digest == here.digest();
    claim.figures = figures(there, here);
    if is_equal && claim.figures.is_empty() {
        claim.why = unmeasured(there, here).or_else(|| misnamed.map(str::to_owned));
        if claim.why.is_none() {
            claim.outcome = Outcome::Equal;
        }
        return claim;
    }
    claim.differences = differences(there, here);
    if claim.changes.is_empty() {
        claim.outcome = Outcome::Differs;
    } else {
        let what: Vec<String> = claim.changes.iter().map(|one| one.what.clone()).collect();
        let verb = is_or_are(what.len());
        let differs = if is_equal {
            "the digest is equal, and other figures differ"
        } else {
            "the digest differs"
        };
        claim.why = Some(format!(
            "{differs}, and {} {verb} not the same: the same ones would tell",
            list(&what)
        ));
    }
    claim
}

/// Describes the steps that were not measured on either side, where the rest is equal.
/// Returns `None` if everything was measured.
fn unmeasured(there: &Run, here: &Run) -> Option<String> {
    let of = |run: &Run, where_: &str| -> Vec<String> {
        let absent = run.unsupported.iter();
        let told = absent.map(|one| {
            let (step, probe, load) = (one.step + 1, &one.probe, &one.load);
            format!("step {step} ({probe} / {load}) {where_}: {}", one.reason)
        });
        told.collect()
    };
    let mut all = of(there, "in the file");
    all.extend(of(here, "here"));
    let told = format!(
        "what was measured is equal, and this was not: {}",
        all.join("; ")
    );
    (!all.is_empty()).then_some(told)
}

/// Lists differing figures that a verdict reads and the digest does not cover.
fn figures(there: &Run, here: &Run) -> Vec<Change> {
    let mut changes = Vec::new();
    let mut differ = |title: &str, figure: &str, then: String, now: String| {
        if then != now {
            let what = format!("{title}: {figure}");
            changes.push(Change { what, then, now });
        }
    };
    let [then, now] = [there, here].map(read_back);
    for ((what, then), (_, now)) in then.into_iter().zip(now) {
        differ("kernel", what, then, now);
    }
    let [then, now] = [there, here].map(facts);
    for what in then.keys().chain(now.keys()).collect::<BTreeSet<_>>() {
        let told = |facts: &Facts| {
            facts
                .get(what)
                .map_or_else(|| "none".to_owned(), ToString::to_string)
        };
        differ("machine", what, told(&then), told(&now));
    }
    for one in &there.recordings {
        let mut all = here.recordings.iter();
        let Some(own) = all.find(|own| own.key == one.key) else {
            let step = format!("step {}", one.key.step + 1);
            differ(&one.title(), "recording", step, "none of this name".into());
            continue;
        };
        let title = one.title();
        for (figure, of) in FIGURES {
            differ(&title, figure, of(one), of(own));
        }
        let (then, now) = (there.work(one), here.work(own));
        differ(&title, "the load", work(then), work(now));
    }
    changes
}

/// Returns a run's statements on its kernel, both by whoever prepared it and by the kernel itself.
fn read_back(run: &Run) -> [(&'static str, String); 5] {
    let none = || "none".to_owned();
    let found = |of: fn(&Provenance) -> String| run.provenance.as_ref().map_or_else(none, of);
    let machine = run.machine.as_virtual();
    let release = machine.and_then(|machine| machine.release.clone());
    [
        ("release of its modules", release.unwrap_or_else(none)),
        ("release", found(|found| found.release.clone())),
        ("version", found(|found| found.version.clone())),
        ("command line", found(|found| found.cmdline.clone())),
        ("preemption", found(|found| found.preemption.to_string())),
    ]
}

/// Returns further facts read back, except the target: the initramfs tells that of another.
fn facts(run: &Run) -> Facts {
    let found = run.provenance.as_ref();
    let mut facts = found.map_or_else(Facts::default, |found| found.facts.clone());
    facts.remove("target");
    facts
}

/// A figure of a recording, for people: equal texts are equal figures.
type Figure = (&'static str, fn(&Recording) -> String);

const FIGURES: [Figure; 8] = [
    ("smallest and largest sample", |one| {
        one.extremes.map_or_else(
            || "none".to_owned(),
            |(min, max)| format!("{} ns and {} ns", min.0, max.0),
        )
    }),
    ("interval", |one| nanos(one.interval)),
    ("missed periods", |one| {
        let missed = one.missed_periods();
        missed.map_or_else(|| "not counted".to_owned(), |missed| missed.to_string())
    }),
    ("time of looking for events", |one| nanos(one.observed())),
    ("samples before the first", |one| one.warmup.to_string()),
    ("settings as read back", |one| {
        let told = one.settings.iter();
        let told: Vec<String> = told.map(|(name, fact)| format!("{name} {fact}")).collect();
        told.join(", ")
    }),
    ("end", |one| {
        let end = if one.interrupted {
            "interrupted"
        } else {
            "as planned"
        };
        end.to_owned()
    }),
    ("findings", |one| {
        let told = one.findings.iter().filter(|(name, _)| *name != OBSERVED);
        let told = told.map(|(name, found)| {
            let found = serde_json::to_string(found).unwrap_or_default();
            format!("{name} {found}")
        });
        told.collect::<Vec<_>>().join(", ")
    }),
];

fn nanos(time: Option<Nanos>) -> String {
    time.map_or_else(|| "none".to_owned(), |time| format!("{} ns", time.0))
}

fn work(all: &[Work]) -> String {
    let told = all.iter().map(|one| {
        let (worker, amount, unit, cpu, span) =
            (&one.worker, one.amount, &one.unit, one.cpu.0, one.span.0);
        format!("{worker}: {amount} {unit}, {cpu} ns of CPU time in {span} ns")
    });
    let told: Vec<String> = told.collect();
    if told.is_empty() {
        return "none".to_owned();
    }
    told.join("; ")
}

fn differences(there: &Run, here: &Run) -> Vec<Differing> {
    let mut found = Vec::new();
    let only = |recording: String, only| Differing {
        recording,
        how: None,
        only: Some(only),
    };
    for recording in &there.recordings {
        let mut own = here.recordings.iter();
        match own.find(|one| one.key == recording.key) {
            Some(own) => {
                let how = Difference::of((there, recording), (here, own));
                found.extend(how.map(|how| Differing {
                    recording: recording.title(),
                    how: Some(how),
                    only: None,
                }));
            }
            None => found.push(only(recording.title(), "there")),
        }
    }
    let is_there = |title: &String| there.recordings.iter().any(|one| one.title() == *title);
    let titles = here.recordings.iter().map(punctual_model::Recording::title);
    let new = titles.filter(|title| !is_there(title));
    found.extend(new.map(|title| only(title, "here")));
    found
}

/// Each run with its outcome, and all in one line; no line longer than `width`.
pub fn verification_text(verification: &Verification, width: usize) -> String {
    let mut lines = Lines::new(width);
    for claim in &verification.claims {
        for (depth, said) in told(claim) {
            let indent = "  ".repeat(depth);
            lines.wrap(&clean(&said), &indent, &(indent.clone() + "  "));
        }
    }
    lines.line("");
    lines.put(&clean(&in_all(verification)));
    lines.finish()
}

/// Returns the statements on a run, each with its depth.
fn told(claim: &Claim) -> Vec<(usize, String)> {
    let short = |digest: &Option<String>| {
        let digest = digest.as_deref().unwrap_or("none");
        digest.chars().take(12).collect::<String>()
    };
    let what = match (&claim.here, claim.outcome) {
        (Some((here, _)), Outcome::Equal) => {
            format!(", {}; here it is {here}", short(&claim.digest))
        }
        (Some((here, own)), _) => {
            let (there, own) = (short(&claim.digest), short(own));
            format!(", {there} there, {own} here ({here})")
        }
        (None, _) => String::new(),
    };
    let head = format!(
        "{} ({}, {}, seed {}): {}{what}",
        claim.run,
        claim.suite,
        claim.subject,
        claim.seed,
        claim.outcome.name()
    );
    let mut said = vec![(0, head)];
    said.extend(claim.why.iter().map(|why| (1, why.clone())));
    let change = |one: &Change| {
        (
            1,
            format!("{}: {} there, {} here", one.what, one.then, one.now),
        )
    };
    said.extend(claim.changes.iter().chain(&claim.figures).map(change));
    said.extend(claim.differences.iter().map(|one| (1, differing(one))));
    said
}

fn differing(one: &Differing) -> String {
    let how = match (&one.how, one.only) {
        (Some(how), _) => differs(how, "the file"),
        (None, Some("here")) => "only here".to_owned(),
        (None, _) => "only in the file".to_owned(),
    };
    format!("{}: {how}", one.recording)
}

/// `r.punctual: 3 of 4 runs are equal, 1 differs.`
fn in_all(verification: &Verification) -> String {
    let all = verification.claims.len();
    let words = [
        (Outcome::Equal, "equal"),
        (Outcome::Differs, "different"),
        (Outcome::Undecided, "undecided"),
    ];
    let counts = words.map(|(outcome, word)| (verification.count(outcome), word));
    let counts = counts.iter().filter(|(count, _)| *count > 0);
    let counts: Vec<String> = counts
        .map(|(count, word)| format!("{count} {word}"))
        .collect();
    let (file, runs) = (&verification.file, counted(all, "run"));
    format!("{file}: {runs}: {}.", list(&counts))
}

/// Runs of others, repeated here. Times are whole nanoseconds of virtual time. New fields may be
/// added to version 1; none is removed or changes its meaning.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Document<'a> {
    #[cfg_attr(test, schemars(extend("const" = SCHEMA)))]
    schema: &'static str,
    /// The file's name.
    file: &'a str,
    /// The outcome of all runs: that of the worst of them.
    outcome: Outcome,
    /// The runs that were looked at.
    runs: Vec<Repeated<'a>>,
}

/// A run that somebody else has measured, and the outcome of its repeat here.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Repeated<'a> {
    /// Its id in the file.
    run: &'a str,
    /// Its suite's name.
    suite: &'a str,
    /// The subject that was judged.
    subject: &'a str,
    /// The seed.
    seed: u64,
    /// The outcome.
    outcome: Outcome,
    /// The reason why it is undecided, if it is.
    why: Option<&'a str>,
    /// The digest in the file; null where that run did not finish, or nothing was measured.
    digest: Option<&'a str>,
    /// The repeat; null where there is none.
    here: Option<Repeat<'a>>,
    /// Circumstances that decide the guest's behaviour and are not what they were.
    changes: &'a [Change],
    /// Figures that a verdict reads and the digest does not cover, where they differ.
    figures: &'a [Change],
    /// The recordings that differ.
    recordings: Vec<Unequal<'a>>,
}

/// The run here.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Repeat<'a> {
    /// Its id.
    run: &'a str,
    /// Its digest; null where it did not finish, or nothing was measured.
    digest: Option<&'a str>,
}

/// A recording that differs; its figures are null if only one side has it.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Unequal<'a> {
    /// `probe / load / variant`.
    recording: &'a str,
    /// The side that has it, if only one does.
    #[cfg_attr(test, schemars(extend("enum" = ["there", "here", null])))]
    only: Option<&'static str>,
    /// The number of samples that both kept.
    compared: Option<u64>,
    /// The number of these that differ.
    differing: Option<u64>,
    /// The median of the differences of all samples: positive if they are longer here.
    middle_longer_ns: Option<Nanos>,
    /// The difference of the sample that differs most.
    most_longer_ns: Option<Nanos>,
}

/// `punctual.verification/1`.
pub fn verification_json(verification: &Verification) -> Value {
    json!(Document {
        schema: SCHEMA,
        file: &verification.file,
        outcome: verification.outcome(),
        runs: verification.claims.iter().map(Repeated::of).collect(),
    })
}

impl<'a> Repeated<'a> {
    fn of(claim: &'a Claim) -> Self {
        let here = claim.here.as_ref().map(|(run, digest)| Repeat {
            run,
            digest: digest.as_deref(),
        });
        Self {
            run: &claim.run,
            suite: &claim.suite,
            subject: &claim.subject,
            seed: claim.seed,
            outcome: claim.outcome,
            why: claim.why.as_deref(),
            digest: claim.digest.as_deref(),
            here,
            changes: &claim.changes,
            figures: &claim.figures,
            recordings: claim.differences.iter().map(Unequal::of).collect(),
        }
    }
}

impl<'a> Unequal<'a> {
    fn of(one: &'a Differing) -> Self {
        let how = one.how.as_ref();
        Self {
            recording: &one.recording,
            only: one.only,
            compared: how.map(|how| how.compared),
            differing: how.map(|how| how.differing),
            middle_longer_ns: how.map(|how| how.middle),
            most_longer_ns: how.map(|how| how.most),
        }
    }
}

#[cfg(test)]
mod tests {
    use punctual_model::Recorder;
    use punctual_model::record::Unsupported;

    use super::*;
    use crate::fixtures::{self, assert_has};

    fn changed() -> Run {
        let mut run = fixtures::run("rt", 1);
        run.id = "r9".into();
        let recording = &mut run.recordings[0];
        let mut recorder = Recorder::new(4_000);
        for sample in recording.samples.iter() {
            recorder.record(sample.at, sample.value + Nanos(1));
        }
        *recording = recorder.finish(recording.key.clone());
        run
    }

    fn qemu() -> Change {
        let change = ["QEMU", "QEMU 7.2", "QEMU 10.0"].map(str::to_owned);
        let [what, then, now] = change;
        Change { what, then, now }
    }

    fn all() -> Verification {
        let there = fixtures::run("rt", 1);
        let same = Run {
            id: "r8".into(),
            ..there.clone()
        };
        let failed = Run {
            state: State::Failed,
            error: Some(fixtures::NO_BOOT.into()),
            ..same.clone()
        };
        Verification {
            file: "a.punctual".into(),
            claims: vec![
                claim(&there, Ok((&same, vec![qemu()])), None),
                claim(&there, Ok((&changed(), Vec::new())), None),
                claim(&there, Ok((&changed(), vec![qemu()])), None),
                claim(&there, Ok((&failed, Vec::new())), None),
                claim(&there, Err("it was measured in real time".into()), None),
            ],
        }
    }

    #[test]
    fn only_the_very_machine_refutes_and_any_confirms() {
        let outcomes: Vec<Outcome> = all().claims.iter().map(|claim| claim.outcome).collect();
        let undecided = Outcome::Undecided;
        assert_eq!(
            outcomes,
            [
                Outcome::Equal,
                Outcome::Differs,
                undecided,
                undecided,
                undecided
            ]
        );
        assert_eq!(all().outcome(), Outcome::Differs);
        let none = Verification {
            claims: Vec::new(),
            ..all()
        };
        assert_eq!(none.outcome(), undecided, "nothing is no confirmation");
    }

    #[test]
    fn a_run_without_a_digest_is_never_confirmed() {
        let mut there = fixtures::run("rt", 1);
        there.state = State::Interrupted;
        let here = fixtures::run("rt", 1);
        assert_ne!(
            claim(&there, Ok((&here, Vec::new())), None).outcome,
            Outcome::Equal
        );
    }

    fn absent(step: u32) -> Unsupported {
        Unsupported {
            step,
            probe: "irq".into(),
            load: "idle".into(),
            reason: fixtures::NO_MODULE.into(),
        }
    }

    #[test]
    fn where_nothing_was_measured_nothing_is_confirmed() {
        let mut empty = fixtures::run("rt", 1);
        empty.recordings.clear();
        empty.unsupported = vec![absent(0)];
        assert_eq!(empty.digest(), None);
        let found = claim(&empty, Ok((&empty, Vec::new())), None);
        assert_eq!(found.outcome, Outcome::Undecided);
        let why = found.why.unwrap();
        assert_eq!(why, "in the file there is no digest: nothing was measured");
        let whole = fixtures::run("rt", 1);
        let found = claim(&whole, Ok((&empty, Vec::new())), None);
        assert_eq!(found.outcome, Outcome::Undecided);
        assert!(found.why.unwrap().starts_with("here there is no digest"));
    }

    #[test]
    fn a_step_that_was_not_measured_is_not_confirmed_by_the_others() {
        let mut part = fixtures::run("rt", 1);
        part.unsupported = vec![absent(7)];
        let found = claim(&part, Ok((&part.clone(), Vec::new())), None);
        assert_eq!(found.outcome, Outcome::Undecided);
        let why = found.why.unwrap();
        let step = "step 8 (irq / idle) in the file: ";
        assert!(
            why.starts_with("what was measured is equal") && why.contains(step),
            "{why}"
        );
        assert!(why.contains("step 8 (irq / idle) here: "), "{why}");
    }

    #[test]
    fn figures_that_a_verdict_reads_and_no_digest_covers_are_compared_too() {
        type Forgery = fn(&mut Run);
        let forgeries: [(Forgery, &str); 8] = [
            (
                |run| {
                    let settings = &mut run.recordings[0].settings;
                    settings.insert("policy".into(), "SCHED_OTHER".into());
                },
                "settings",
            ),
            (
                |run| run.recordings[0].extremes = Some((Nanos(1), Nanos(2))),
                "largest sample",
            ),
            (
                |run| run.recordings[0].interval = Some(Nanos(1 << 62)),
                "interval",
            ),
            (|run| run.recordings[0].interrupted = true, "end"),
            (
                |run| {
                    let unknown = punctual_model::Fact::Unknown { unknown: "".into() };
                    let settings = &mut run.recordings[0].settings;
                    settings.insert(punctual_model::recording::MISSED.into(), unknown);
                },
                "missed periods",
            ),
            (
                |run| {
                    let none = punctual_model::Finding::Nanos(Nanos(0));
                    let findings = &mut run.recordings[0].findings;
                    findings.insert("switches_untold".into(), none);
                },
                "findings",
            ),
            (
                |run| {
                    let hour = punctual_model::Finding::Nanos(Nanos::from_millis(3_600_000));
                    let findings = &mut run.recordings[0].findings;
                    findings.insert(punctual_model::recording::OBSERVED.into(), hour);
                },
                "time of looking",
            ),
            (
                |run| {
                    run.steps
                        .iter_mut()
                        .flat_map(|step| &mut step.work)
                        .for_each(|one| one.span = Nanos(1));
                },
                "the load",
            ),
        ];
        let here = fixtures::run("rt", 1);
        for (forgery, expected) in forgeries {
            let mut there = here.clone();
            forgery(&mut there);
            assert_eq!(there.digest(), here.digest(), "{expected}");
            let found = claim(&there, Ok((&here, Vec::new())), None);
            assert_eq!(found.outcome, Outcome::Differs, "{expected}");
            assert!(
                found.figures[0].what.contains(expected),
                "{:?}",
                found.figures
            );
            let found = claim(&there, Ok((&here, vec![qemu()])), None);
            assert_eq!(found.outcome, Outcome::Undecided, "{expected}");
        }
    }

    #[test]
    fn what_a_run_says_of_its_kernel_is_compared_too() {
        type Forgery = fn(&mut Run);
        fn found(run: &mut Run) -> &mut Provenance {
            run.provenance.get_or_insert_default()
        }
        let forgeries: [(Forgery, &str); 6] = [
            (|run| found(run).release.push_str("-rt"), "kernel: release"),
            (
                |run| found(run).version.push_str(" PREEMPT_RT"),
                "kernel: version",
            ),
            (
                |run| found(run).cmdline.push_str(" x"),
                "kernel: command line",
            ),
            (
                |run| found(run).preemption = punctual_model::Preemption::Lazy,
                "kernel: preemption",
            ),
            (
                |run| {
                    let facts = &mut found(run).facts;
                    facts.insert("virtualised".into(), "never".into());
                },
                "machine: virtualised",
            ),
            (
                |run| {
                    if let punctual_model::MachineRecord::Virtual(machine) = &mut run.machine {
                        machine.release = Some("7.2-rt".into());
                    }
                },
                "kernel: release of its modules",
            ),
        ];
        let here = fixtures::run("rt", 1);
        for (forgery, expected) in forgeries {
            let mut there = here.clone();
            forgery(&mut there);
            assert_eq!(there.digest(), here.digest(), "{expected}");
            let found = claim(&there, Ok((&here, Vec::new())), None);
            assert_eq!(found.outcome, Outcome::Differs, "{expected}");
            assert_eq!(found.figures[0].what, expected);
        }
        // Another target is told by the initramfs.
        let mut there = here.clone();
        found(&mut there)
            .facts
            .insert("target".into(), "0.0".into());
        let equal = claim(&there, Ok((&here, Vec::new())), None);
        assert_eq!(equal.outcome, Outcome::Equal);
    }

    #[test]
    fn a_name_that_nobody_here_knows_is_not_confirmed() {
        let run = fixtures::run("rt", 1);
        let found = claim(&run, Ok((&run, Vec::new())), Some("another name"));
        assert_eq!(found.outcome, Outcome::Undecided);
        assert_eq!(found.why.as_deref(), Some("another name"));
    }

    #[test]
    fn it_says_what_differs_and_how() {
        let text = verification_text(&all(), 80);
        assert_has(
            &text,
            &[
                "seed 1): equal, ",
                "here it is r8",
                "2,000 of 2,000 samples differ",
                "where the file has",
                "the digest differs, and QEMU is not the same: the same ones would tell",
                "QEMU: QEMU 7.2 there, QEMU 10.0 here",
                "here, the run failed",
                "a.punctual: 5 runs: 1 equal, 1 different and 3 undecided.",
            ],
        );
        assert!(
            text.lines().all(|line| line.chars().count() <= 80),
            "{text}"
        );
    }

    #[test]
    fn the_schema_is_what_the_type_says() {
        crate::schema::assert_is_of::<Document<'_>>(
            "verification-1.json",
            "Runs of others, repeated here: what `punctual verify --json` prints",
        );
    }

    #[test]
    fn what_is_printed_is_what_the_schema_describes() {
        let schema = include_str!("../../../docs/schema/verification-1.json");
        let mut value = verification_json(&all());
        crate::schema::check("verification-1.json", schema, &value).unwrap();
        value["outcome"] = json!("perhaps");
        assert!(crate::schema::check("verification-1.json", schema, &value).is_err());
    }
}

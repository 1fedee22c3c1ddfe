// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the kernel's tracers cost, and whether they are right: beside what the scope saw of the
//! very same samples.

use std::fmt::Write as _;

use punctual_model::{Nanos, Quantiles, Run, Tracer};
use punctual_scope::breakdown::{Breakdown, Cause, Part, PathStage};

use crate::scope::text::sentence;
use crate::scope::{Story, told};
use crate::text::{exact, wrap};

/// The stages of a sample of `timer`, of which the cost is told.
const STAGES: [PathStage; 5] = [
    PathStage::Interrupt,
    PathStage::Handler,
    PathStage::Switch,
    PathStage::Return,
    PathStage::User,
];

/// So many samples are told in words.
const IN_WORDS: usize = 6;

/// A run with a tracer, or without one.
#[derive(Debug)]
pub struct Traced {
    /// The run.
    pub run: Run,
    /// The tracer that was asked for.
    pub tracer: Option<Tracer>,
    /// Why it did not run, if it did not.
    pub absent: Option<String>,
    /// What the scope saw of some of its samples, evenly apart.
    pub followed: Vec<Story>,
    /// The samples that were caught.
    pub told: Vec<Told>,
}

/// A sample that was caught.
#[derive(Debug)]
pub struct Told {
    /// Its number.
    pub seq: u64,
    /// What the scope saw.
    pub truth: Story,
    /// What the tracer says, or why it says nothing.
    pub tracer: Result<Breakdown, String>,
}

/// How far a tracer agrees with the scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Agreement {
    /// The same function is named, or both say that nothing stood in the way.
    Function,
    /// The same kind of cause, of another function or of none.
    Kind,
    /// The scope saw that it was the tracer itself that took most of the time.
    Itself,
    /// Something else.
    Other,
    /// The tracer names nothing where something stood in the way.
    Nothing,
}

impl Told {
    /// `None` where the scope has no story.
    fn agreement(&self) -> Option<Agreement> {
        let truth = self.truth.as_ref().ok()?.breakdown.as_ref().ok()?;
        let Ok(tracer) = &self.tracer else {
            return Some(Agreement::Nothing);
        };
        let named = culprit(tracer).filter(|part| part.cause != Cause::Unseen);
        Some(match (culprit(truth), named) {
            (None, None) => Agreement::Function,
            (Some(truth), _) if is_tracing(truth) => Agreement::Itself,
            (Some(_), None) => Agreement::Nothing,
            (None, Some(_)) => Agreement::Other,
            (Some(truth), Some(tracer)) => agreement(truth, tracer),
        })
    }
}

/// Whether a part is the work of a tracer.
fn is_tracing(part: &Part) -> bool {
    let words = [
        "trace",
        "stack_walk",
        "unwind",
        "ring_buffer",
        "event_triggers",
        "probe_wakeup",
    ];
    let names = part
        .main
        .iter()
        .flat_map(|main| [Some(&main.function), main.caller.as_ref()]);
    let mut names = names.flatten();
    names.any(|name| words.iter().any(|word| name.contains(word)))
}

fn culprit(story: &Breakdown) -> Option<&Part> {
    story.culprit.map(|number| &story.parts[number])
}

fn agreement(truth: &Part, tracer: &Part) -> Agreement {
    let function = |part: &Part| {
        let main = part.main.as_ref()?;
        main.function.split(' ').next().map(str::to_owned)
    };
    let is_same = function(truth).is_some_and(|name| Some(name) == function(tracer));
    let is_same_thread = truth.cause == Cause::OtherThread && truth.thread == tracer.thread;
    if is_same || is_same_thread {
        Agreement::Function
    } else if kind(truth.cause) == kind(tracer.cause) || blames_thread(truth, tracer) {
        Agreement::Kind
    } else {
        Agreement::Other
    }
}

/// Whether a tracer that knows no more than threads blames the one that had the CPU.
fn blames_thread(truth: &Part, tracer: &Part) -> bool {
    let comm = |part: &Part| {
        let end = part.thread.find([' ', '-']).unwrap_or(part.thread.len());
        part.thread[..end].to_owned()
    };
    // The scope knows kernel threads by their functions only.
    let may_be = truth.thread.starts_with("kernel thread") && truth.stage == PathStage::Switch;
    tracer.cause == Cause::OtherThread && (may_be || comm(truth) == comm(tracer))
}

/// Causes between which a tracer cannot tell, made one.
fn kind(cause: Cause) -> &'static str {
    match cause {
        Cause::Lock | Cause::PreemptOff | Cause::NotPreemptible => "not preemptible",
        other => other.name(),
    }
}

/// The tables, and what was told of the samples of which the stories differ.
pub fn tracers_text(all: &[Traced], width: usize) -> String {
    let groups = groups(all);
    let mut text = costs(&groups);
    text += "\n";
    text += &agreements(&groups);
    text += &absences(&groups, width);
    text += &differing(all, width);
    text
}

/// The runs of one kernel with one tracer, all seeds.
struct Group<'a> {
    kernel: &'a str,
    tracer: Option<Tracer>,
    runs: Vec<&'a Traced>,
}

fn groups(all: &[Traced]) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for one in all {
        let kernel = one.run.subject.kernel.as_str();
        let is_own = |group: &&mut Group<'_>| group.kernel == kernel && group.tracer == one.tracer;
        match groups.iter_mut().find(is_own) {
            Some(group) => group.runs.push(one),
            None => groups.push(Group {
                kernel,
                tracer: one.tracer,
                runs: vec![one],
            }),
        }
    }
    // The kernels in the order in which they were given, each with all of its tracers.
    let mut kernels: Vec<&str> = groups.iter().map(|group| group.kernel).collect();
    kernels.dedup();
    let place = |group: &Group<'_>| kernels.iter().position(|one| *one == group.kernel);
    groups.sort_by_key(place);
    groups
}

impl Group<'_> {
    fn name(&self) -> &'static str {
        self.tracer.map_or("none", Tracer::name)
    }

    fn absent(&self) -> Option<&str> {
        self.runs.iter().find_map(|one| one.absent.as_deref())
    }

    fn median(&self) -> Option<Nanos> {
        let recordings = self.runs.iter().flat_map(|one| &one.run.recordings);
        Quantiles::of(recordings).at(0.5)
    }

    fn worst(&self) -> Option<Nanos> {
        let mut recordings = self.runs.iter().flat_map(|one| &one.run.recordings);
        let first = recordings.next()?.max();
        recordings.fold(first, |worst, one| worst.max(one.max()))
    }

    /// The median length of a stage, over the samples that were followed.
    fn stage(&self, stage: PathStage) -> Option<Nanos> {
        let stories = self.runs.iter().flat_map(|one| &one.followed);
        let stories = stories.filter_map(|story| story.as_ref().ok()?.breakdown.as_ref().ok());
        let length = |story: &Breakdown| {
            let own = story.parts.iter().filter(|part| part.stage == stage);
            own.fold(Nanos::ZERO, |sum, part| sum + part.length)
        };
        let mut lengths: Vec<Nanos> = stories.map(length).collect();
        lengths.sort_unstable();
        lengths.get(lengths.len() / 2).copied()
    }
}

/// How much longer samples are with each tracer than without one, and in which stages.
fn costs(groups: &[Group<'_>]) -> String {
    let mut text = format!(
        "What a tracer adds, in ns\n{:16} {:10} {:>9} {:>9}",
        "kernel", "tracer", "median", "worst"
    );
    for stage in STAGES {
        let _ = write!(text, " {:>9}", stage.name());
    }
    text.push('\n');
    for group in groups {
        let _ = write!(text, "{:16} {:10}", group.kernel, group.name());
        if group.absent().is_some() {
            text.push_str("  not had\n");
            continue;
        }
        let mut plain = groups.iter();
        let plain = plain.find(|one| one.kernel == group.kernel && one.tracer.is_none());
        let added = |of: &dyn Fn(&Group<'_>) -> Option<Nanos>| {
            let before = plain.filter(|_| group.tracer.is_some()).map(of);
            match (of(group), before) {
                (Some(now), None) => exact(now),
                (Some(now), Some(Some(before))) => signed(now - before),
                _ => "–".to_owned(),
            }
        };
        let figures = [
            added(&|group: &Group<'_>| group.median()),
            added(&|group: &Group<'_>| group.worst()),
        ];
        let stages = STAGES.map(|stage| added(&|group: &Group<'_>| group.stage(stage)));
        for figure in figures.iter().chain(&stages) {
            let _ = write!(text, " {figure:>9}");
        }
        text.push('\n');
    }
    text
}

fn signed(time: Nanos) -> String {
    let sign = if time > Nanos::ZERO { "+" } else { "" };
    format!("{sign}{}", exact(time))
}

/// How often each tracer's story names what the scope saw.
fn agreements(groups: &[Group<'_>]) -> String {
    let mut text = format!(
        "Whom a tracer blames for the samples that it caught\n{:16} {:10} {:>7} {:>8} {:>8} {:>8} {:>8} {:>8}\n",
        "kernel", "tracer", "caught", "the same", "its kind", "another", "nothing", "itself"
    );
    let traced = |group: &&Group<'_>| group.tracer.is_some() && group.absent().is_none();
    for group in groups.iter().filter(traced) {
        let told = || group.runs.iter().flat_map(|one| &one.told);
        let count = |wanted: Agreement| {
            let own = told().filter(|one| one.agreement() == Some(wanted));
            own.count()
        };
        let _ = writeln!(
            text,
            "{:16} {:10} {:>7} {:>8} {:>8} {:>8} {:>8} {:>8}",
            group.kernel,
            group.name(),
            told().count(),
            count(Agreement::Function),
            count(Agreement::Kind),
            count(Agreement::Other),
            count(Agreement::Nothing),
            count(Agreement::Itself),
        );
    }
    text
}

fn absences(groups: &[Group<'_>], width: usize) -> String {
    let mut text = String::new();
    for group in groups {
        if let Some(why) = group.absent() {
            let told = format!("{}, {}: {why}", group.kernel, group.name());
            text += &(wrap(&told, "", "  ", width).join("\n") + "\n");
        }
    }
    if text.is_empty() {
        text
    } else {
        format!("\n{text}")
    }
}

/// Samples of which the tracer tells another story than the scope, the worst first.
fn differing(all: &[Traced], width: usize) -> String {
    let mut found: Vec<(&Traced, &Told, Nanos)> = Vec::new();
    for one in all {
        for told in &one.told {
            let differs = matches!(
                told.agreement(),
                Some(Agreement::Other | Agreement::Nothing)
            );
            let truth = told.truth.as_ref().ok();
            if let (true, Some(truth)) = (differs, truth) {
                found.push((one, told, truth.chosen.sample.value));
            }
        }
    }
    found.sort_by_key(|(_, _, late)| -late.0);
    let mut kept: Vec<(&Traced, &Told, Nanos)> = Vec::new();
    // One of each tracer on each kernel first: the worst may all be of one.
    for one in &found {
        let is_alike = |other: &&(&Traced, &Told, Nanos)| {
            (&other.0.run.subject.name, other.0.tracer) == (&one.0.run.subject.name, one.0.tracer)
        };
        if kept.iter().filter(is_alike).count() < 1 && kept.len() < IN_WORDS {
            kept.push(*one);
        }
    }
    let mut text = String::new();
    for (traced, one, _) in kept {
        let run = &traced.run;
        let _ = writeln!(
            text,
            "\n{}, {}, sample {}",
            run.id, run.subject.name, one.seq
        );
        let tracer = one
            .tracer
            .as_ref()
            .map_or_else(|why| format!("nothing: {why}"), sentence);
        for (who, told) in [("the scope", told(&one.truth)), ("the tracer", tracer)] {
            let line = wrap(&format!("{who}: {told}"), "  ", "    ", width).join("\n");
            let _ = writeln!(text, "{line}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use punctual_model::Sample;
    use punctual_model::probe::SampleSpan;
    use punctual_scope::breakdown::FunctionTime;

    use super::*;
    use crate::fixtures;

    fn story(cause: Cause, function: &str) -> Breakdown {
        let part = Part {
            stage: PathStage::Interrupt,
            cause,
            from: Nanos::ZERO,
            length: Nanos(900),
            by: None,
            cpu: None,
            thread: "a-1".into(),
            main: Some(FunctionTime {
                function: function.into(),
                caller: None,
                time: Nanos(900),
                whole: Nanos(900),
                times: 1,
            }),
            within: Vec::new(),
        };
        Breakdown {
            culprit: Some(0),
            parts: vec![part],
            ..Breakdown::empty(SampleSpan::Lateness, Nanos(1_000))
        }
    }

    fn pair(truth: &Breakdown, tracer: Result<Breakdown, String>) -> Told {
        let run = fixtures::run("rt", 1);
        let sample: Sample = run.recordings[0].worst[0];
        let chosen = punctual_scope::explain::Wanted {
            worst: 1,
            ..Default::default()
        };
        let chosen = chosen.choose(&run).unwrap()[0];
        Told {
            seq: sample.seq,
            truth: Ok(punctual_scope::explain::Explained {
                chosen,
                breakdown: Ok(truth.clone()),
            }),
            tracer,
        }
    }

    #[test]
    fn a_tracer_is_right_where_it_names_the_function_and_nearly_where_it_names_the_kind() {
        let truth = story(Cause::IrqsOff, "stall_irqs_off [stall]");
        let nothing = Breakdown::empty(SampleSpan::Lateness, Nanos(1_000));
        for (tracer, expected) in [
            (
                Ok(story(Cause::IrqsOff, "stall_irqs_off")),
                Agreement::Function,
            ),
            (Ok(story(Cause::IrqsOff, "irq_work")), Agreement::Kind),
            (Ok(story(Cause::HardIrq, "irq_work")), Agreement::Other),
            (Ok(nothing.clone()), Agreement::Nothing),
            (Err("the ring held nothing".into()), Agreement::Nothing),
        ] {
            let told = pair(&truth, tracer.clone());
            assert_eq!(told.agreement(), Some(expected), "{tracer:?}");
        }
        let itself = story(Cause::HardIrq, "__ftrace_trace_stack");
        let told = pair(&itself, Ok(nothing.clone()));
        assert_eq!(told.agreement(), Some(Agreement::Itself));
        let unseen = story(Cause::Unseen, "");
        let told = pair(&truth, Ok(unseen));
        assert_eq!(told.agreement(), Some(Agreement::Nothing));
        let neither = pair(&nothing, Ok(nothing.clone()));
        assert_eq!(neither.agreement(), Some(Agreement::Function));
    }

    #[test]
    fn what_was_not_had_has_no_figures_and_a_reason() {
        let traced = |tracer, absent: Option<&str>| Traced {
            run: fixtures::run("rt", 1),
            tracer,
            absent: absent.map(str::to_owned),
            followed: Vec::new(),
            told: Vec::new(),
        };
        let why = "the kernel has no tracer irqsoff";
        let all = [traced(None, None), traced(Some(Tracer::Irqsoff), Some(why))];
        let text = tracers_text(&all, 80);
        let mut lines = text.lines().filter(|line| line.contains("irqsoff"));
        assert!(
            lines.next().unwrap().ends_with("irqsoff     not had"),
            "{text}"
        );
        assert!(lines.next().unwrap().contains(why), "{text}");
        assert_eq!(lines.next(), None);
    }
}

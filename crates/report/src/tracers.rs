// SPDX-License-Identifier: MIT OR Apache-2.0
//! Costs and accuracy of the kernel's tracers, beside the scope's view of the very same samples.

mod json;
mod text;

use punctual_model::{Nanos, Quantiles, Run, Tracer};
use punctual_scope::breakdown::{Breakdown, Cause, Part, PathStage};

pub use self::json::{TRACERS_SCHEMA, tracers_json};
pub use self::text::tracers_text;
use crate::scope::Story;

/// The stages of a sample of `timer` whose cost is told.
const STAGES: [PathStage; 5] = [
    PathStage::Interrupt,
    PathStage::Handler,
    PathStage::Switch,
    PathStage::Return,
    PathStage::User,
];

/// A run with a tracer, or without one.
#[derive(Debug)]
pub struct Traced {
    /// The run.
    pub run: Run,
    /// The tracer that was asked for.
    pub tracer: Option<Tracer>,
    /// The reason why it has no figures, if it has none: the tracer did not run, or the run was not
    /// measured to its end.
    pub absent: Option<String>,
    /// The scope's stories of some of its samples, evenly apart.
    pub followed: Vec<Story>,
    /// The samples that were caught.
    pub told: Vec<Told>,
}

/// A sample that was caught.
#[derive(Debug)]
pub struct Told {
    /// Its number.
    pub seq: u64,
    /// The scope's story.
    pub truth: Story,
    /// The tracer's story, or the reason for none.
    pub tracer: Result<Breakdown, String>,
}

/// The degree of agreement between a tracer and the scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Agreement {
    /// The same function is named, or both say that nothing stood in the way.
    Function,
    /// The same kind of cause, with another function or none.
    Kind,
    /// The scope saw that the tracer itself took most of the time.
    Itself,
    /// Something else.
    Other,
    /// The tracer names nothing where something stood in the way.
    Nothing,
}

impl Agreement {
    const ALL: [Self; 5] = [
        Self::Function,
        Self::Kind,
        Self::Other,
        Self::Nothing,
        Self::Itself,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::Function => "the same",
            Self::Kind => "its kind",
            Self::Other => "another",
            Self::Nothing => "nothing",
            Self::Itself => "itself",
        }
    }
}

impl Told {
    /// Returns the agreement of the tracer with the scope; `None` if the scope has no story.
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

/// Returns true if a part is the work of a tracer.
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

/// Returns true if a tracer that knows no more than threads blames the one that had the CPU.
fn blames_thread(truth: &Part, tracer: &Part) -> bool {
    let comm = |part: &Part| {
        let end = part.thread.find([' ', '-']).unwrap_or(part.thread.len());
        part.thread[..end].to_owned()
    };
    // The scope knows kernel threads by their functions only.
    let may_be = truth.thread.starts_with("kernel thread") && truth.stage == PathStage::Switch;
    tracer.cause == Cause::OtherThread && (may_be || comm(truth) == comm(tracer))
}

/// Causes that a tracer cannot tell apart, made one.
fn kind(cause: Cause) -> &'static str {
    match cause {
        Cause::Lock | Cause::PreemptOff | Cause::NotPreemptible => "not preemptible",
        other => other.name(),
    }
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

    fn told(&self) -> impl Iterator<Item = &Told> {
        self.runs.iter().flat_map(|one| &one.told)
    }

    /// Counts the samples with this agreement.
    fn count(&self, wanted: Agreement) -> usize {
        let own = self.told().filter(|one| one.agreement() == Some(wanted));
        own.count()
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

    fn traced(tracer: Option<Tracer>, absent: Option<&str>, told: Vec<Told>) -> Traced {
        Traced {
            run: fixtures::run("rt", 1),
            tracer,
            absent: absent.map(str::to_owned),
            followed: Vec::new(),
            told,
        }
    }

    #[test]
    fn a_caught_sample_that_the_scope_does_not_explain_has_a_reason() {
        let nothing = Breakdown::empty(SampleSpan::Lateness, Nanos(1_000));
        let untold = || Told {
            truth: Err("the marks do not fit".to_owned()),
            ..pair(&nothing, Ok(nothing.clone()))
        };
        let text = |told| {
            let mut events = traced(Some(Tracer::Events), None, told);
            events.followed = vec![Err("it has no marks".to_owned())];
            tracers_text(&[traced(None, None, Vec::new()), events], 200)
        };
        let found = text(vec![
            untold(),
            pair(&nothing, Ok(nothing.clone())),
            untold(),
        ]);
        for line in [
            "events: the scope does not explain 2 of the 3 caught samples: the marks do not fit",
            "events: the scope does not explain 1 of the 1 evenly spaced samples: it has no marks",
        ] {
            assert!(found.contains(line), "{found}");
        }
        let found = text(vec![pair(&nothing, Ok(nothing.clone()))]);
        assert!(!found.contains("caught samples"), "{found}");
    }

    #[test]
    fn without_figures_of_no_tracer_nothing_is_added_to_them() {
        let failed = "r1 (seed 1): the run failed: the guest's kernel panicked";
        let all = [
            traced(None, Some(failed), Vec::new()),
            traced(Some(Tracer::Events), None, Vec::new()),
        ];
        let text = tracers_text(&all, 200);
        assert!(text.contains(&format!("none: {failed}")), "{text}");
        let row = text.lines().find(|line| line.contains("events"));
        let figures = row.unwrap().split("events").nth(1).unwrap();
        assert!(figures.split_whitespace().all(|one| one == "–"), "{text}");
    }

    #[test]
    fn what_was_not_had_has_no_figures_and_a_reason() {
        let why = "the kernel has no tracer irqsoff";
        let all = [
            traced(None, None, Vec::new()),
            traced(Some(Tracer::Irqsoff), Some(why), Vec::new()),
        ];
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

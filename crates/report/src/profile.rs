// SPDX-License-Identifier: MIT OR Apache-2.0
//! Profiles of a run's steps, beside those of another run if there is one.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use punctual_model::{Nanos, Run};
use punctual_scope::profile::{Profile, Ran};
use serde::Serialize;

use crate::block::{self, Block};
use crate::scope::compare::OwnTimes;
use crate::shell;
use crate::text::{exact, thousands};

/// The form's name and version; `docs/schema/profile-1.json` describes it.
const SCHEMA: &str = "punctual.profile/1";

/// How long each function ran in the steps of a run, and how often it was entered. Times are whole
/// nanoseconds of virtual time. New fields may be added to version 1; none is removed or changes
/// its meaning.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Profiled {
    #[cfg_attr(test, schemars(extend("const" = SCHEMA)))]
    schema: &'static str,
    /// The run.
    pub run: Side,
    /// The run that it is compared with; null if there is none.
    pub compared_with: Option<Side>,
    /// The steps, in their order.
    pub steps: Vec<OfStep>,
}

/// A run.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Side {
    /// Its id.
    run: String,
    /// Its subject.
    subject: String,
    /// Its kernel.
    kernel: String,
    /// Its digest.
    digest: Option<String>,
}

/// A step.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OfStep {
    /// Its number in the plan, from 0.
    step: u32,
    /// The probe.
    probe: String,
    /// The load.
    load: String,
    /// Time of all functions together.
    #[serde(rename = "all_ns")]
    #[cfg_attr(test, schemars(with = "u64"))]
    all: Nanos,
    /// The same in the other run; null if there is none, or if it did not measure this.
    #[serde(rename = "other_all_ns")]
    #[cfg_attr(test, schemars(with = "Option<u64>"))]
    other_all: Option<Nanos>,
    /// The functions: those that ran longest first, or those that differ most from the other run's.
    functions: Vec<Function>,
}

/// A function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Function {
    /// Its name.
    pub function: String,
    /// Time in the function itself, without those that it calls; zero if it did not run.
    #[serde(rename = "own_ns")]
    #[cfg_attr(test, schemars(with = "u64"))]
    pub own: Nanos,
    /// The number of times that it was entered; null for code of programs, and for a function that
    /// only went on with what had begun before the step.
    pub entered: Option<u64>,
    /// Its own time in the other run; null if there is none, or if it did not measure this.
    #[serde(rename = "other_own_ns")]
    #[cfg_attr(test, schemars(with = "Option<u64>"))]
    pub other_own: Option<Nanos>,
    /// The number of times that it was entered there.
    pub other_entered: Option<u64>,
}

impl Function {
    /// The time by which it ran longer than in the other run; below zero if less long. Its own time
    /// if there is no other run.
    pub fn more(&self) -> Nanos {
        self.own - self.other_own.unwrap_or_default()
    }
}

/// Returns the time that each function ran itself.
pub(crate) fn own_times(profile: &Profile) -> OwnTimes<'_> {
    let each = profile.functions.iter();
    each.map(|(name, ran)| (name.as_str(), ran.own)).collect()
}

/// Returns the functions of a step: those that ran longest first, or those that differ most from the
/// other run's.
pub fn functions(own: &Profile, other: Option<&Profile>) -> Vec<Function> {
    let names: BTreeSet<&String> = [Some(own), other]
        .into_iter()
        .flatten()
        .flat_map(|one| one.functions.keys())
        .collect();
    let function = |name: &String| {
        // A function that did not run was entered by nobody.
        let ran = |of: &Profile| of.functions.get(name).copied();
        let none = Ran {
            own: Nanos::ZERO,
            entered: Some(0),
        };
        let own = ran(own).unwrap_or(none);
        let other = other.map(|other| ran(other).unwrap_or(none));
        Function {
            function: name.clone(),
            own: own.own,
            entered: own.entered,
            other_own: other.map(|other| other.own),
            other_entered: other.and_then(|other| other.entered),
        }
    };
    let mut all: Vec<Function> = names.into_iter().map(function).collect();
    all.sort_by_key(|one| Reverse(one.more().0.abs()));
    all
}

/// Returns the step of another run that measures the same as this one of a run; `None` if it has
/// none. Its plan may have it elsewhere.
pub fn step_beside(run: &Run, step: u32, other: &Run) -> Option<u32> {
    let own = run.recordings.iter().filter(|one| one.key.step == step);
    own.map(|one| &one.key).find_map(|key| {
        let mut all = other.recordings.iter();
        let found = all.find(|one| one.key.is_same_measurement(key))?;
        Some(found.key.step)
    })
}

impl Profiled {
    /// Puts the profiles of some of a run's steps together, each beside that of the step of another
    /// run that measures the same.
    pub fn of(run: &Run, profiles: &[Profile], other: Option<(&Run, &[Profile])>) -> Self {
        let step = |profile: &Profile| {
            let mut recordings = run.recordings.iter();
            let key = recordings.find(|one| one.key.step == profile.step);
            let key = key.map(|one| &one.key);
            let beside = other.and_then(|(other, all)| {
                let step = step_beside(run, profile.step, other)?;
                all.iter().find(|one| one.step == step)
            });
            OfStep {
                step: profile.step,
                probe: key.map(|key| key.probe.clone()).unwrap_or_default(),
                load: key.map(|key| key.load.clone()).unwrap_or_default(),
                all: profile.all,
                other_all: beside.map(|one| one.all),
                functions: functions(profile, beside),
            }
        };
        Self {
            schema: SCHEMA,
            run: Side::of(run),
            compared_with: other.map(|(run, _)| Side::of(run)),
            steps: profiles.iter().map(step).collect(),
        }
    }

    /// As text, with `top` functions of each step.
    pub fn text(&self, top: usize, width: usize) -> String {
        block::text(&self.blocks(top), width)
    }

    /// As a page, with `top` functions of each step.
    pub fn page(&self, top: usize) -> String {
        let (lead, chapters) = block::page(&self.blocks(top));
        let title = format!("{}: where did the time go?", self.run.name());
        shell::page(&title, &lead, chapters)
    }

    fn blocks(&self, top: usize) -> Vec<Block> {
        let against = self.compared_with.as_ref();
        let against = against.map_or_else(String::new, |other| format!(", and {}", other.name()));
        let mut blocks = vec![Block::Para(format!("{}{against}", self.run.name()))];
        for step in &self.steps {
            blocks.push(Block::Head(step.title(!against.is_empty())));
            blocks.push(step.table(top));
            let left = step.functions.len().saturating_sub(top);
            if left > 0 {
                let more = format!(
                    "{} more functions: --top N shows more, --json all of them.",
                    thousands(left as u64)
                );
                blocks.push(Block::Para(more));
            }
        }
        blocks.push(Block::Para(
            "A time is that of a function itself, without those that it calls. All threads and CPUs \
             count: the kernel's, the probe's and the load's. Virtual time: lengths of code paths, \
             not times of a certain CPU."
                .to_owned(),
        ));
        blocks
    }
}

impl Side {
    fn of(run: &Run) -> Self {
        Self {
            run: run.id.clone(),
            subject: run.subject.name.clone(),
            kernel: run.subject.kernel.clone(),
            digest: run.digest(),
        }
    }

    fn name(&self) -> String {
        format!("{}, {}", self.run, self.subject)
    }
}

impl OfStep {
    /// `step 3, hackbench / idle: 160 ms, where the other run has 40.0 ms`. For readers, the first
    /// step is 1.
    fn title(&self, is_compared: bool) -> String {
        let Self {
            step,
            probe,
            load,
            all,
            other_all,
            ..
        } = self;
        let other = match other_all {
            Some(other) => format!(", where the other run has {other}"),
            None if is_compared => ", which the other run did not measure".to_owned(),
            None => String::new(),
        };
        format!("step {}, {probe} / {load}: {all}{other}", step + 1)
    }

    fn table(&self, top: usize) -> Block {
        let head: &[&str] = if self.other_all.is_none() {
            &["itself, ns", "share", "entered", "function"]
        } else {
            &["itself, ns", "other, ns", "entered (other)", "function"]
        };
        let entered = |count: Option<u64>| count.map_or_else(|| "–".to_owned(), thousands);
        let row = |one: &Function| {
            let name = one.function.clone();
            if let Some(other) = one.other_own {
                vec![
                    exact(one.own),
                    exact(other),
                    format!("{} ({})", entered(one.entered), entered(one.other_entered)),
                    name,
                ]
            } else {
                let share = 100.0 * one.own.0 as f64 / self.all.0.max(1) as f64;
                let share = format!("{share:.1} %");
                vec![exact(one.own), share, entered(one.entered), name]
            }
        };
        Block::Table {
            head: head.iter().map(|word| (*word).to_owned()).collect(),
            rows: self.functions.iter().take(top).map(row).collect(),
            numbers: head.len() - 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{self, assert_has};

    fn profile(functions: &[(&str, i64, Option<u64>)]) -> Profile {
        let ran = |(name, own, entered): &(&str, i64, Option<u64>)| {
            let own = Nanos(*own);
            (
                (*name).to_owned(),
                Ran {
                    own,
                    entered: *entered,
                },
            )
        };
        Profile {
            step: 0,
            all: Nanos(functions.iter().map(|one| one.1).sum()),
            functions: functions.iter().map(ran).collect(),
        }
    }

    #[test]
    fn functions_that_ran_longest_or_differ_most_come_first() {
        let own = profile(&[("a", 10, Some(2)), ("b", 900, Some(3)), ("prog", 50, None)]);
        let name = |all: &[Function]| -> Vec<String> {
            all.iter().map(|one| one.function.clone()).collect()
        };
        assert_eq!(name(&functions(&own, None)), ["b", "prog", "a"]);
        let other = profile(&[
            ("a", 10, Some(2)),
            ("b", 905, Some(3)),
            ("gone", 30, Some(1)),
        ]);
        let both = functions(&own, Some(&other));
        assert_eq!(name(&both), ["prog", "gone", "b", "a"]);
        // What did not run was not entered; in programs nobody knows.
        let counts = both.iter().map(|one| (one.entered, one.other_entered));
        let expected = [
            (None, Some(0)),
            (Some(0), Some(1)),
            (Some(3), Some(3)),
            (Some(2), Some(2)),
        ];
        assert_eq!(counts.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_step_stands_beside_that_which_measures_the_same() {
        let run = |probes: &[&str]| {
            let recording = |(step, probe): (u32, &&str)| {
                let mut recording = fixtures::recording([*probe, "idle", ""], &[7]);
                recording.key.step = step;
                recording
            };
            fixtures::run_with((0..).zip(probes).map(recording).collect())
        };
        let of = |step, own| Profile {
            step,
            ..profile(&[("f", own, Some(1))])
        };
        let (here, there) = (run(&["timer", "hackbench"]), run(&["hackbench", "futex"]));
        let (own, other) = ([of(0, 10), of(1, 900)], [of(0, 800), of(1, 5)]);
        let found = Profiled::of(&here, &own, Some((&there, &other)));
        let beside: Vec<_> = found.steps.iter().map(|one| one.other_all).collect();
        assert_eq!(beside, [None, Some(Nanos(800))]);
        // What has nothing beside it has a share, and no column of another run.
        let told = found.text(9, 100);
        let expected = [
            "step 1, timer / idle: 10 ns, which the other run did not measure",
            "itself, ns    share  entered  function",
            "step 2, hackbench / idle: 900 ns, where the other run has 800 ns",
            "itself, ns  other, ns  entered (other)  function",
        ];
        assert_has(&told, &expected);
    }

    #[test]
    fn the_schema_is_what_the_type_says() {
        crate::schema::assert_is_of::<Profiled>(
            "profile-1.json",
            "How long each function ran in the steps of a run: what `punctual profile --json` prints",
        );
    }
}

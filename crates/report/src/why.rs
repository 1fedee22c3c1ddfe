// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the code did differently: the samples that stand for two sides, explained side by side.
//!
//! A sample whose path is not watched, such as the time that whole programs take, has the profiles
//! of its step instead.

use std::collections::BTreeSet;
use std::fmt;

use maud::{Markup, html};
use punctual_model::{Nanos, Run};
use punctual_scope::breakdown::Breakdown;
use punctual_scope::is_entry;
use punctual_scope::profile::Profile;
use serde::Serialize;

use crate::profile;
use crate::scope::compare::{OwnTimes, differences, own_times};
use crate::scope::page::{Other, code, compared};
use crate::scope::{Story, text, told};
use crate::text::{clean, wrap};

/// The most functions named that take longer than in the baseline.
const FUNCTIONS: usize = 3;
/// The most functions named beside them that did not run in the baseline.
const NEW_FUNCTIONS: usize = 2;
/// The most calls that are missing. If more are, the two samples took different ways.
const GONE: usize = 3;

/// The samples that stand for a row, here and there.
#[derive(Debug)]
pub struct Why {
    /// The number of its row.
    pub row: usize,
    /// The run, and the story of its sample.
    pub here: (Run, Story),
    /// The same of the baseline.
    pub there: (Run, Story),
    /// The profiles of the whole step, here and there, if its samples cannot be explained.
    pub profiles: Option<Box<[Profile; 2]>>,
}

/// A function that takes longer than in the baseline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Longer<'a> {
    /// The function's name.
    pub function: &'a str,
    /// The time in the function itself before; zero if it did not run.
    #[serde(rename = "before_ns")]
    #[cfg_attr(test, schemars(with = "u64"))]
    pub there: Nanos,
    /// The same here.
    #[serde(rename = "after_ns")]
    #[cfg_attr(test, schemars(with = "u64"))]
    pub here: Nanos,
}

/// A call that only the baseline makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Gone<'a> {
    /// The function that no longer makes it.
    pub caller: &'a str,
    /// The function that it called.
    pub callee: &'a str,
}

/// How long the whole step took on its CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct StepTimes {
    /// Time of all functions in the baseline's run.
    #[serde(rename = "before_ns")]
    #[cfg_attr(test, schemars(with = "u64"))]
    there: Nanos,
    /// The same here.
    #[serde(rename = "after_ns")]
    #[cfg_attr(test, schemars(with = "u64"))]
    here: Nanos,
}

/// What the code did differently.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Different<'a> {
    /// The functions that take longer here: those that do most, then those that did not run in the
    /// baseline.
    longer: Vec<Longer<'a>>,
    /// The calls that only the baseline's sample makes, by functions that run in both; none if the
    /// samples took different ways.
    gone: Vec<Gone<'a>>,
    /// Time of the whole step, whose profiles show what takes longer; null if the samples show it.
    step: Option<StepTimes>,
}

impl fmt::Display for Longer<'_> {
    /// Writes `__schedule 1.20 µs (was 903 ns)`, with the name in backquotes.
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "`{}` {} (was {})", self.function, self.here, self.there)
    }
}

impl fmt::Display for Gone<'_> {
    /// Writes `rt_mutex_setprio by task_blocks_on_rt_mutex`, with the names in backquotes.
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "`{}` by `{}`", self.callee, self.caller)
    }
}

impl fmt::Display for StepTimes {
    /// Writes `the whole step took 75.2 ms of CPU time (was 50.0 ms)`.
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { there, here } = self;
        write!(to, "the whole step took {here} of CPU time (was {there})")
    }
}

impl Why {
    /// Returns the functions that take longer than before: those that do most, then those that did
    /// not run at all before. The latter tell another path, however short they are.
    pub fn longer(&self) -> Vec<Longer<'_>> {
        let differences = match (&self.profiles, self.breakdowns()) {
            (Some(profiles), _) => {
                let [own, other] = profiles.each_ref().map(profile::own_times);
                differences(&named(own), &named(other))
            }
            (None, Some([own, other])) => {
                differences(&named(own_times(own)), &named(own_times(other)))
            }
            (None, None) => return Vec::new(),
        };
        let all = differences
            .into_iter()
            .map(|(function, here, there)| Longer {
                function,
                there,
                here,
            });
        let mut longer: Vec<_> = all.filter(|one| one.here > one.there).collect();
        let further = longer.split_off(FUNCTIONS.min(longer.len()));
        let new = further.into_iter().filter(|one| one.there == Nanos::ZERO);
        longer.extend(new.take(NEW_FUNCTIONS));
        longer
    }

    /// Returns the calls that only the baseline's sample makes, by functions that run in both; none
    /// if the samples took different ways.
    pub fn gone(&self) -> Vec<Gone<'_>> {
        let Some([own, other]) = self.breakdowns() else {
            return Vec::new();
        };
        let [here, there] = [own, other].map(calls);
        let runs: BTreeSet<&str> = own.flame.iter().flat_map(|one| frames(&one.0)).collect();
        let missing = there.difference(&here);
        // A function that is the outermost of a thread has a caller that nobody saw.
        let stacks = own.flame.iter();
        let outermost: BTreeSet<&str> = stacks.filter_map(|one| frames(&one.0).next()).collect();
        // A last call may be a jump, after which the caller's caller seems to call.
        let is_moved = |(caller, callee): (&str, &str)| {
            let mut new = here.difference(&there).filter(|one| one.1 == callee);
            new.any(|(by, _)| here.contains(&(*by, caller)) || here.contains(&(caller, *by)))
        };
        let is_missing = |call: &(&str, &str)| {
            runs.contains(call.0) && !outermost.contains(call.1) && !is_moved(*call)
        };
        let missing: Vec<(&str, &str)> = missing.copied().filter(is_missing).collect();
        // What a function called that is itself no longer called there went with it.
        let is_first = |call: &&(&str, &str)| missing.iter().all(|other| other.1 != call.0);
        let first = missing.iter().filter(is_first);
        let gone: Vec<Gone<'_>> = first
            .map(|&(caller, callee)| Gone { caller, callee })
            .collect();
        if gone.len() > GONE { Vec::new() } else { gone }
    }

    /// Returns how long the whole step took, if it was profiled.
    pub fn step(&self) -> Option<StepTimes> {
        let [own, other] = self.profiles.as_deref()?;
        Some(StepTimes {
            there: other.all,
            here: own.all,
        })
    }

    /// Returns what the code did differently.
    pub fn different(&self) -> Different<'_> {
        Different {
            longer: self.longer(),
            gone: self.gone(),
            step: self.step(),
        }
    }

    /// Tells what the code did differently, sentence by sentence.
    pub fn sentences(&self) -> Vec<String> {
        let listed = |head: &str, all: Vec<String>| {
            (!all.is_empty()).then(|| format!("{head}: {}", all.join(", ")))
        };
        let words = |all: &[Longer<'_>]| all.iter().map(ToString::to_string).collect();
        let gone = self.gone();
        let gone = gone.iter().map(ToString::to_string).collect();
        let all = [
            listed("no longer called", gone),
            listed("longer than before", words(&self.longer())),
            self.step().map(|step| step.to_string()),
        ];
        all.into_iter().flatten().collect()
    }

    /// Returns true if both samples are explained.
    pub fn is_explained(&self) -> bool {
        self.breakdowns().is_some()
    }

    fn breakdowns(&self) -> Option<[&Breakdown; 2]> {
        Some([breakdown(&self.here.1)?, breakdown(&self.there.1)?])
    }

    /// Both samples, the baseline's first; if both were explained, also their differences. Profiles
    /// tell them in place of samples.
    pub fn text(&self, width: usize) -> String {
        let ((here, own), (there, other)) = (&self.here, &self.there);
        if let (Ok(own), Ok(other), None) = (own, other, &self.profiles) {
            let (own, other) = (std::slice::from_ref(own), std::slice::from_ref(other));
            let own = Other {
                run: here,
                explained: own,
            };
            return text::compared(there, other, own, width);
        }
        let mut lines: Vec<String> = [(there, other), (here, own)]
            .map(|(run, story)| format!("{}, {}: {}", run.id, run.subject.name, told(story)))
            .into();
        lines.extend(self.sentences());
        let wrapped = lines
            .iter()
            .flat_map(|line| wrap(&clean(line), "", "  ", width));
        wrapped.map(|line| line + "\n").collect()
    }

    /// Both samples, the baseline's first; if both were explained, side by side. Profiles tell the
    /// differences in place of samples.
    pub fn page(&self) -> Markup {
        let ((here, own), (there, other)) = (&self.here, &self.there);
        html! {
            @if let (Ok(own), Ok(other), None) = (own, other, &self.profiles) {
                (compared(there, std::slice::from_ref(other), Other {
                    run: here,
                    explained: std::slice::from_ref(own),
                }))
            } @else {
                p { (there.id) ", " (there.subject.name) ": " (code(&told(other))) }
                p { (here.id) ", " (here.subject.name) ": " (code(&told(own))) }
                @for sentence in self.sentences() { p { (code(&sentence)) } }
            }
        }
    }
}

fn breakdown(story: &Story) -> Option<&Breakdown> {
    story.as_ref().ok()?.breakdown.as_ref().ok()
}

/// Returns the calls on the way of a sample: the caller, and what it called.
fn calls(story: &Breakdown) -> BTreeSet<(&str, &str)> {
    let mut calls = BTreeSet::new();
    for (stack, _) in &story.flame {
        let functions: Vec<&str> = frames(stack).collect();
        let pairs = functions.windows(2).map(|pair| (pair[0], pair[1]));
        // A part that a compiler has taken out of a function is no call, and no function leads to an
        // interrupt, an exception or a system call.
        let is_call = |(caller, callee): &(&str, &str)| caller != callee && !is_entry(callee);
        calls.extend(pairs.filter(is_call));
    }
    calls
}

/// Returns the functions of a stack, outermost first, without the thread and, before it, the turns of
/// another CPU.
fn frames(stack: &str) -> impl Iterator<Item = &str> {
    let threads = 1 + usize::from(stack.starts_with("the turns of "));
    stack.split(';').skip(threads).map(own_name)
}

/// What a compiler adds to the name of a function that it has changed: another release's need not.
const ADDED: [&str; 3] = [".constprop.", ".isra.", ".part."];

/// Returns a function's own name: that of `do_exit.isra.0` is `do_exit`.
fn own_name(name: &str) -> &str {
    let ends = ADDED.iter().filter_map(|added| name.find(*added));
    &name[..ends.min().unwrap_or(name.len())]
}

/// Returns the times by the functions' own names.
fn named(times: OwnTimes<'_>) -> OwnTimes<'_> {
    let mut all = OwnTimes::new();
    for (name, time) in times {
        *all.entry(own_name(name)).or_default() += time;
    }
    all
}

#[cfg(test)]
mod tests {
    use punctual_model::probe::SampleSpan;
    use punctual_scope::explain::{Explained, Wanted};
    use punctual_scope::profile::Ran;

    use super::*;
    use crate::fixtures;

    fn why(here: &[&str], there: &[&str]) -> Why {
        let explained = |stacks: &[&str]| {
            let run = fixtures::run("rt", 1);
            let worst = Wanted {
                worst: 1,
                ..Wanted::default()
            };
            let flame = stacks.iter().map(|one| ((*one).to_owned(), Nanos(5)));
            let breakdown = Breakdown {
                flame: flame.collect(),
                ..Breakdown::empty(SampleSpan::Lateness, Nanos(5_000))
            };
            let explained = Explained {
                chosen: worst.choose(&run).unwrap()[0],
                breakdown: Ok(breakdown),
            };
            (run, Ok(explained))
        };
        Why {
            row: 0,
            here: explained(here),
            there: explained(there),
            profiles: None,
        }
    }

    fn gone(here: &[&str], there: &[&str]) -> Vec<String> {
        let why = why(here, there);
        why.gone().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_call_that_is_missing_is_named_and_not_what_went_with_it() {
        let there = ["low;lock;block;boost;enqueue", "low;unlock;boost;dequeue"];
        let here = ["low;lock;block", "low;unlock;boost;dequeue"];
        assert_eq!(gone(&here, &there), ["`boost` by `block`"]);
        assert_eq!(gone(&there, &there), [""; 0]);
        // A thread calls nothing, and a function that does not run here has no calls here.
        assert_eq!(gone(&["high;wait"], &["low;lock;block"]), [""; 0]);
        assert_eq!(
            gone(&["low;lock"], &["the turns of CPU 1;low;lock;block"]),
            ["`block` by `lock`"]
        );
    }

    #[test]
    fn a_function_that_another_compiler_has_changed_is_still_called_and_no_other() {
        let there = ["t;block;boost.isra.0;boost.part.0"];
        let here = ["t;block;boost.constprop.1"];
        assert_eq!(gone(&here, &there), [""; 0]);
        assert_eq!(gone(&there, &here), [""; 0]);
        assert!(why(&here, &there).longer().is_empty());
        assert_eq!(gone(&["t;block"], &there), ["`boost` by `block`"]);
        // No part of a name that a compiler has not added goes.
        assert_eq!(own_name("ld-linux-x86-64.so.2"), "ld-linux-x86-64.so.2");
        assert_eq!(own_name("control (loop.c:17)"), "control (loop.c:17)");
    }

    #[test]
    fn an_interrupt_that_comes_elsewhere_is_no_call() {
        for entry in [
            "asm_sysvec_apic_timer_interrupt",
            "asm_exc_page_fault",
            "el1h_64_irq",
        ] {
            let there = format!("t;f;{entry};tick");
            assert_eq!(gone(&["t;f"], &[&there]), [""; 0]);
            let here = format!("t;g;{entry}");
            assert_eq!(gone(&[&here, "t;f"], &[&there]).len(), 1);
        }
    }

    #[test]
    fn a_call_whose_caller_is_unseen_or_that_is_a_jump_is_not_missing() {
        // The window began within it.
        assert_eq!(gone(&["t;f", "u;a"], &["t;f;a"]), [""; 0]);
        // A compiler has made a jump of the last call of `f`, or a call of the jump.
        let (called, jumped) = (["t;p;f", "t;p;f;a"], ["t;p;f", "t;p;a"]);
        assert_eq!(gone(&jumped, &called), [""; 0]);
        assert_eq!(gone(&called, &jumped), [""; 0]);
        // What the caller's caller called before tells nothing.
        let both = ["t;p;f;a", "t;p;a"];
        assert_eq!(gone(&jumped, &both), ["`a` by `f`"]);
    }

    #[test]
    fn samples_that_took_another_way_have_no_missing_call() {
        let there = ["t;f;a", "t;f;b", "t;f;c", "t;f;d"];
        assert_eq!(gone(&["t;f;a"], &there).len(), 3);
        assert_eq!(gone(&["t;f"], &there), [""; 0]);
    }

    #[test]
    fn profiles_are_told_where_the_samples_were_seen_but_not_broken_down() {
        let mut why = why(&["t;f"], &["t;f"]);
        if let Ok(explained) = &mut why.here.1 {
            explained.breakdown = Err("no clock".to_owned());
        }
        why.profiles = Some(Box::default());
        for told in [why.text(80), why.page().into_string()] {
            assert!(told.contains("the whole step took"), "{told}");
        }
    }

    #[test]
    fn profiles_name_what_takes_longer_in_place_of_samples() {
        let profile = |own: i64| {
            let ran = |own| Ran {
                own: Nanos(own),
                entered: Some(1),
            };
            let functions = [
                ("pipe_write".to_owned(), ran(own)),
                ("same".to_owned(), ran(7)),
            ];
            Profile {
                step: 0,
                all: Nanos(own + 7),
                functions: functions.into(),
            }
        };
        let none = |why: &str| (fixtures::run("rt", 1), Err(why.to_owned()));
        let why = Why {
            row: 0,
            here: none("throughput"),
            there: none("throughput"),
            profiles: Some(Box::new([profile(60_993), profile(1_993)])),
        };
        let expected = [
            "longer than before: `pipe_write` 61.0 µs (was 1.99 µs)",
            "the whole step took 61.0 µs of CPU time (was 2.00 µs)",
        ];
        assert_eq!(why.sentences(), expected);
        let told = why.text(60);
        for sentence in ["not explained: throughput", "`pipe_write` 61.0 µs"] {
            assert!(told.contains(sentence), "{told}");
            assert!(
                why.page()
                    .into_string()
                    .contains(sentence.trim_matches('`').split('`').next().unwrap())
            );
        }
    }
}

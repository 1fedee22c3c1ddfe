// SPDX-License-Identifier: MIT OR Apache-2.0
//! The plan that a target carries out: a suite with everything looked up.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};

use crate::aim::Aim;
use crate::capture::Tracing;
use crate::cpus::Placement;
use crate::units::Nanos;

/// The name of the empty load.
pub const IDLE: &str = "idle";

/// The largest seed: a plan as TOML, a store and JSON can all carry it.
pub const SEED_MAX: u64 = i64::MAX as u64;

/// Everything that a target needs to know, as TOML.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Changes the phase of loads and probes against each other and against the tick.
    #[serde(default)]
    pub seed: u64,
    /// The seed that decides what a guest did before, if it is not the plan's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub past: Option<u64>,
    /// The loads that the steps name; `idle` need not be among them.
    #[serde(default)]
    pub loads: BTreeMap<String, Load>,
    /// True if CPUs of a host may enter idle states while it is measured; by default,
    /// `/dev/cpu_dma_latency` is held at 0.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_idle_states: bool,
    /// The time for which the kernel's tracer `hwlat` looks for gaps caused by the hardware, before
    /// the first step and after the last. Not at all if no time is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hwlat_s: Option<NonZeroU32>,
    /// The interval, in seconds, at which the results so far are reported; never if there is
    /// none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tell_every_s: Option<NonZeroU32>,
    /// The kernel's own tracer that runs beside the probes, and the limit above which it is read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tracing: Option<Tracing>,
    /// Kernel modules that could not be brought along, with the reasons.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub absent: BTreeMap<String, String>,
    /// The steps to measure, in this order.
    #[serde(rename = "step")]
    pub steps: Vec<Step>,
    /// The sample that is due at a moment of its own. It is not part of the text that is sent: it
    /// follows in a line of its own.
    #[serde(skip, default = "unaimed")]
    pub aim: Aim,
}

fn unaimed() -> Aim {
    Aim::NONE
}

impl Plan {
    /// Returns the plan as the text that is sent to a target.
    ///
    /// # Panics
    /// Never: every plan can be written as TOML.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("a plan has no value that TOML lacks")
    }

    /// Describes how another plan's measurement differs: `step 1 differs: samples is 4000 here and
    /// 400 there`. `None` if both measure the same. Seeds, pasts, parts that could not be brought
    /// along, and the intervals of reports are not compared.
    pub fn difference(&self, other: &Self) -> Option<String> {
        let (left, right) = (self.steps.len(), other.steps.len());
        if left != right {
            return Some(format!("the suite has {left} steps here and {right} there"));
        }
        let steps = self.steps.iter().zip(&other.steps).zip(1..);
        let mut steps = steps.filter_map(|((left, right), number): ((&Step, &Step), u32)| {
            Some((number, left.difference(right)?))
        });
        if let Some((number, what)) = steps.next() {
            return Some(format!("step {number} differs: {what}"));
        }
        self.difference_around(other, self.loads == other.loads)
    }

    /// Describes how a step of another plan differs, wherever it stands there:
    /// `samples is 4000 here and 400 there`. Steps are counted from 0. `None` if both measure the
    /// same, or if one of the plans has no such step, as the plans of other programs have none.
    pub fn difference_of_step(&self, step: u32, other: &Self, there: u32) -> Option<String> {
        let of = |plan: &Self, step: u32| plan.steps.get(step as usize).cloned();
        let (left, right) = (of(self, step)?, of(other, there)?);
        let same_load = self.loads.get(&left.load) == other.loads.get(&right.load);
        left.difference(&right)
            .or_else(|| self.difference_around(other, same_load))
    }

    /// Describes the differences outside of the steps.
    fn difference_around(&self, other: &Self, same_loads: bool) -> Option<String> {
        let rules = [
            (same_loads, "the loads are defined differently"),
            (
                self.allow_idle_states == other.allow_idle_states,
                "CPUs may enter idle states in one of them only",
            ),
            (
                self.tracing == other.tracing,
                "the kernel's tracer runs otherwise beside them",
            ),
        ];
        let broken = rules.into_iter().find(|(is_same, _)| !is_same);
        broken.map(|(_, what)| what.to_owned())
    }
}

impl Step {
    /// Returns the first parameter in which another step differs. The number of samples in the
    /// document is ignored, since it changes nothing that is measured.
    fn difference(&self, other: &Self) -> Option<String> {
        let told = |step: &Self| {
            let mut all = step.params.clone();
            all.insert("probe".into(), step.probe.clone().into());
            all.insert("load".into(), step.load.clone().into());
            all.insert("skip".into(), step.skip.into());
            all
        };
        let (left, right) = (told(self), told(other));
        let shown = |step: &toml::Table, key: &str| {
            let value = step.get(key);
            value.map_or_else(|| "not set".to_owned(), ToString::to_string)
        };
        let mut keys = left.keys().chain(right.keys());
        let key = keys.find(|key| left.get(*key) != right.get(*key))?;
        let (left, right) = (shown(&left, key), shown(&right, key));
        Some(format!("{key} is {left} here and {right} there"))
    }
}

/// One probe under one load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// The probe's name.
    pub probe: String,
    /// The load's name.
    #[serde(default = "idle")]
    pub load: String,
    /// The number of samples in the document whose experiment this step repeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full: Option<u64>,
    /// True if the step is left out because another run of the same measurement has it. It keeps
    /// its number, so that all these runs number the steps alike.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub skip: bool,
    /// The probe's own parameters; each probe defines its own.
    #[serde(flatten)]
    pub params: toml::Table,
}

fn idle() -> String {
    IDLE.into()
}

/// Stress that runs beside a probe.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Load {
    /// One line that describes the load.
    pub summary: String,
    /// Loads that it contains, besides its own workers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mix: Vec<String>,
    /// Programs that must be this machine's own, not those of busybox: a guest gets them too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<String>,
    /// True if it needs the disk of a guest: `/dev/nullb0`, and a file system in
    /// `/run/punctual-disk`. On a host, its commands find what they need by themselves.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub disk: bool,
    /// True if it needs a piece of a kernel's source, preprocessed, in `/usr/src/linux/lib` of a
    /// guest.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub kernel_source: bool,
    /// The workers, all of which run at once.
    #[serde(default, rename = "worker", skip_serializing_if = "Vec::is_empty")]
    pub workers: Vec<Worker>,
}

/// One command of a load, started again whenever it ends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Worker {
    /// The program and its arguments. `punctual-target` is the target itself; a program that
    /// is not found in `PATH` is taken from busybox.
    pub run: Vec<String>,
    /// The CPUs on which it may run; by default, those that the kernel gives it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<Placement>,
    /// Files without which it cannot run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<String>,
    /// The pause between two rounds, in milliseconds.
    #[serde(default)]
    pub pause_ms: u32,
    /// End a round after this many milliseconds, done or not; 0 lets it end by itself.
    #[serde(default)]
    pub limit_ms: u32,
    /// True if the command never ends by itself: then no round is expected to end.
    #[serde(default)]
    pub endless: bool,
    /// True if the command's exit status means nothing: `ls` of a tree that changes meanwhile
    /// fails. Otherwise, a load whose every round fails is no load.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ignore_status: bool,
    /// The work that the worker does, as a plural noun: `files`, `messages`.
    pub unit: String,
    /// The way to count that work.
    pub count: Count,
}

impl Worker {
    /// Returns the pause between two rounds.
    pub fn pause(&self) -> Nanos {
        Nanos::from_millis(i64::from(self.pause_ms))
    }

    /// Returns the time after which a round is ended; `None` lets it end by itself.
    pub fn limit(&self) -> Option<Nanos> {
        (self.limit_ms > 0).then(|| Nanos::from_millis(i64::from(self.limit_ms)))
    }

    /// Returns the time after which the recipe repeats itself, as far as it says so: the pause plus
    /// the time after which a round is ended.
    pub fn period(&self) -> Nanos {
        self.pause() + self.limit().unwrap_or_default()
    }
}

/// The way to count a worker's work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Count {
    /// Each line that the worker prints counts as one.
    Lines,
    /// Each byte that the worker prints counts as one.
    Bytes,
    /// Each round that ended by itself counts as one.
    Rounds,
    /// Each byte that its processes write counts as one, as counted by the kernel
    /// (`/proc/PID/io`, `wchar`). A process that has ended counts only if it led the command.
    Written,
    /// Each echo request that this machine sends counts as one, as counted by the kernel
    /// (`/proc/net/snmp`, `OutEchos`): for `ping`, which reports its own count only at the end.
    EchoRequests,
    /// The worker counts in the memory that `$PUNCTUAL_WORK` names, a file that it maps and that
    /// holds one 64-bit number: `punctual-target hackbench` counts its messages there.
    Counter,
    /// The sum of the whole numbers that follow this text in the worker's output.
    After(String),
    /// The sum of the whole numbers that precede this text in the worker's output.
    Before(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: &str = r#"
        seed = 3
        [[step]]
        probe = "timer"
        load = "ls"
        samples = 100
        [loads.ls]
        summary = "a listing"
        [[loads.ls.worker]]
        run = ["ls", "-lRa", "/"]
        unit = "lines"
        count = "lines"
    "#;

    #[test]
    fn a_plan_survives_its_travel() {
        let plan: Plan = toml::from_str(PLAN).unwrap();
        assert_eq!(plan.steps[0].params["samples"].as_integer(), Some(100));
        assert_eq!(toml::from_str::<Plan>(&plan.to_toml()).unwrap(), plan);
    }

    #[test]
    fn plans_differ_in_what_is_measured_and_not_in_seeds() {
        let plan: Plan = toml::from_str(PLAN).unwrap();
        let mut other = plan.clone();
        (other.seed, other.past, other.steps[0].full) = (9, Some(4), Some(7));
        assert_eq!(plan.difference(&other), None);
        let differs = |change: fn(&mut Plan)| {
            let mut other = plan.clone();
            change(&mut other);
            plan.difference(&other).unwrap()
        };
        let samples = differs(|plan| {
            plan.steps[0].params.insert("samples".into(), 400.into());
        });
        assert_eq!(samples, "step 1 differs: samples is 100 here and 400 there");
        let load = differs(|plan| plan.steps[0].load = "idle".into());
        assert_eq!(
            load,
            "step 1 differs: load is \"ls\" here and \"idle\" there"
        );
        assert!(differs(|plan| plan.steps[0].skip = true).contains("skip"));
        assert!(differs(|plan| plan.steps.clear()).contains("1 steps here and 0"));
        assert!(differs(|plan| plan.allow_idle_states = true).contains("idle states"));
        assert!(differs(|plan| plan.loads.clear()).contains("loads"));
    }

    #[test]
    fn a_word_that_a_load_does_not_know_is_refused() {
        let wrong = PLAN.replace("unit =", "units =");
        assert!(
            toml::from_str::<Plan>(&wrong)
                .unwrap_err()
                .to_string()
                .contains("units")
        );
    }
}

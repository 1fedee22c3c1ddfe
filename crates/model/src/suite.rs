// SPDX-License-Identifier: MIT OR Apache-2.0
//! Suites: which probes run under which loads, on which subjects.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::aim::Aim;
use crate::limit::Limit;
use crate::network::{self, Card};
use crate::plan::{IDLE, Load, Plan, Step};

/// The directory where a guest has the userland of a suite's `root`, as its programs' root.
pub const ROOT: &str = "/userland";

/// The directories that are searched for programs in it, as in a container.
pub const ROOT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// A suite, as its TOML file describes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suite {
    /// The name by which it is called.
    pub name: String,
    /// One line that states its purpose.
    pub summary: String,
    /// The memory that a virtual subject gets, in mebibytes.
    #[serde(default = "memory_mib")]
    pub memory_mib: u32,
    /// The number of CPUs of a virtual subject: 1 to 8.
    #[serde(default = "one")]
    pub cpus: NonZeroU32,
    /// The cards of a virtual subject's wire; without them, it has no network. Written `true`
    /// (e1000e) or as a card's name.
    #[serde(
        default,
        deserialize_with = "network::of_suite",
        skip_serializing_if = "Option::is_none"
    )]
    pub network: Option<Card>,
    /// The number of runs of each virtual subject if the caller names no seed: those with the
    /// seeds from 1 on.
    #[serde(default = "one")]
    pub seeds: NonZeroU32,
    /// Programs of this machine that a virtual subject gets too, with their libraries.
    #[serde(default)]
    pub programs: Vec<String>,
    /// Further files of this machine that a virtual subject gets at the same paths; `*` stands
    /// for any part of a name.
    #[serde(default)]
    pub files: Vec<String>,
    /// A whole userland for the programs of the probe `app`: a directory, or a tar file such as an
    /// exported container image. A virtual subject gets it, and the files above, at
    /// [`ROOT`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    /// Punctual's own kernel modules that a virtual subject gets: `stall`, `pulse`, ….
    #[serde(default)]
    pub modules: Vec<String>,
    /// Loads of its own, by name; they replace other loads of the same name.
    #[serde(default, rename = "load")]
    pub loads: BTreeMap<String, Load>,
    /// The subjects to judge if the caller names none.
    #[serde(default, rename = "subject")]
    pub subjects: Vec<SubjectSpec>,
    /// The steps to measure, in this order.
    #[serde(rename = "step")]
    pub steps: Vec<Step>,
    /// The demands on the subjects.
    #[serde(default, rename = "limit", skip_serializing)]
    pub limits: Vec<Limit>,
}

fn one() -> NonZeroU32 {
    NonZeroU32::MIN
}

fn memory_mib() -> u32 {
    512
}

/// A subject that a suite asks for: a kernel and its boot arguments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SubjectSpec {
    /// Its name in tables.
    pub name: String,
    /// The kernel's id, as `punctual kernel list` shows it.
    pub kernel: String,
    /// Boot arguments in addition to those of the bench.
    #[serde(default)]
    pub boot: String,
}

/// Splits a command into the variables that it sets with `env A=1 B=2` before its program, and the
/// rest: the whole command if it sets none that way.
pub fn variables(run: &[String]) -> (&[String], &[String]) {
    let Some(rest) = run.strip_prefix(&["env".to_owned()]) else {
        return (&[], run);
    };
    let count = rest.iter().take_while(|word| is_variable(word)).count();
    match rest.split_at(count) {
        ([], _) | (_, []) => (&[], run),
        split => split,
    }
}

/// Returns true if a word sets a variable: `A=1`.
pub fn is_variable(word: &str) -> bool {
    let name = word.split_once('=').map(|(name, _)| name);
    name.is_some_and(|name| {
        !name.is_empty() && name.chars().all(|c| c == '_' || c.is_ascii_alphanumeric())
    })
}

/// A fault in a suite.
#[derive(Debug, Error)]
pub enum SuiteError {
    /// The text is not TOML, or not in the form of a suite.
    #[error("{0}")]
    Form(#[from] toml::de::Error),
    /// The suite measures nothing.
    #[error("suite \"{0}\" has no [[step]]: it would measure nothing")]
    Empty(String),
    /// A step names an unknown load.
    #[error("step {step} names the load \"{load}\"; there are: {known}")]
    UnknownLoad {
        /// The step's number, from 1.
        step: usize,
        /// The unknown name.
        load: String,
        /// The names of the known loads.
        known: String,
    },
}

impl Suite {
    /// Parses a suite.
    pub fn parse(text: &str) -> Result<Self, SuiteError> {
        let suite: Self = toml::from_str(text)?;
        if suite.steps.is_empty() {
            return Err(SuiteError::Empty(suite.name));
        }
        Ok(suite)
    }

    /// Returns the plan for one run on one subject: `steps`, the suite's or some of them, and the
    /// loads that they name.
    pub fn plan(
        &self,
        steps: &[Step],
        all: &BTreeMap<String, Load>,
        seed: u64,
    ) -> Result<Plan, SuiteError> {
        let mut loads = BTreeMap::new();
        for (step, number) in steps.iter().zip(1..).filter(|(step, _)| step.load != IDLE) {
            let Some(load) = all.get(&step.load) else {
                let known: Vec<&str> = all.keys().map(String::as_str).collect();
                return Err(SuiteError::UnknownLoad {
                    step: number,
                    load: step.load.clone(),
                    known: format!("{IDLE}, {}", known.join(", ")),
                });
            };
            loads.insert(step.load.clone(), load.clone());
        }
        Ok(Plan {
            allow_idle_states: false,
            hwlat_s: None,
            tell_every_s: None,
            tracing: None,
            seed,
            past: None,
            loads,
            absent: BTreeMap::new(),
            steps: steps.to_vec(),
            aim: Aim::NONE,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUITE: &str = r#"
        name = "s"
        summary = "a suite"
        [[step]]
        probe = "timer"
        load = "storm"
    "#;

    #[test]
    fn an_unknown_load_is_named_with_those_that_there_are() {
        let suite = Suite::parse(SUITE).unwrap();
        let error = suite
            .plan(&suite.steps, &BTreeMap::new(), 1)
            .unwrap_err()
            .to_string();
        assert!(error.contains("storm") && error.contains("idle"), "{error}");
    }

    #[test]
    fn a_suite_without_steps_is_refused() {
        let text = "name = \"s\"\nsummary = \"\"\nstep = []\n";
        assert!(matches!(Suite::parse(text), Err(SuiteError::Empty(_))));
    }

    #[test]
    fn a_wire_is_asked_for_by_a_card_or_by_yes() {
        let of = |word: &str| {
            let text = SUITE.replace("[[step]]", &format!("network = {word}\n[[step]]"));
            Suite::parse(&text).map(|suite| suite.network)
        };
        assert_eq!(of("true").unwrap(), Some(Card::E1000e));
        assert_eq!(of("\"e1000\"").unwrap(), Some(Card::E1000));
        assert_eq!(of("false").unwrap(), None);
        assert_eq!(Suite::parse(SUITE).unwrap().network, None);
        assert_eq!(of("\"igb\"").unwrap(), Some(Card::Igb));
        for wrong in ["\"rtl8139\"", "1"] {
            let error = of(wrong).unwrap_err().to_string();
            assert!(error.contains("\"e1000e\", \"e1000\""), "{error}");
        }
        // What a campaign or a file of runs carries is read as it was.
        let suite = Suite::parse(&SUITE.replace("[[step]]", "network = \"e1000\"\n[[step]]"));
        let text = toml::to_string(&suite.unwrap()).unwrap();
        assert_eq!(Suite::parse(&text).unwrap().network, Some(Card::E1000));
    }

    #[test]
    fn a_misspelt_word_is_named_with_its_line() {
        let error = Suite::parse(&SUITE.replace("summary", "sumary"))
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("sumary") && error.contains("line 3"),
            "{error}"
        );
    }

    #[test]
    fn variables_of_a_command_are_those_before_its_program() {
        let told = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(ToString::to_string).collect();
            let (variables, rest) = variables(&words);
            (variables.join(" "), rest.join(" "))
        };
        let split = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        let of_loop = told(&["env", "A=1", "_b=", "loop", "C=3"]);
        assert_eq!(of_loop, split("A=1 _b=", "loop C=3"));
        for whole in [
            &["env", "A=1"][..],
            &["env"],
            &["env", "-i", "A=1", "x"],
            &["loop", "A=1"],
            &["env", "=1", "x"],
        ] {
            assert_eq!(told(whole), split("", &whole.join(" ")));
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a check is, and what comes of it.

use std::fmt;

use punctual_model::Reason;
use punctual_model::cpus::show_list;
use punctual_model::units::{CpuId, Nanos};
use serde::Serialize;

use crate::machine::Machine;

/// How much what a check finds weighs; the worse, the greater.
///
/// Where the source of a check names a severity, it is that one; all others are by what it can
/// cost: *high* where it may delay a thread without limit or keep it from being one of real
/// time at all, *medium* where it delays by a known mechanism, *low* where it is small or rare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// To be known.
    Info,
    /// Small or rare.
    Low,
    /// It delays.
    Medium,
    /// It may delay without limit.
    High,
    /// There is no real time with it.
    Fatal,
}

impl Severity {
    /// From the heaviest on.
    pub const ALL: [Self; 5] = [Self::Fatal, Self::High, Self::Medium, Self::Low, Self::Info];

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Fatal => "fatal",
        }
    }

    /// Whether it decides about the machine.
    pub fn is_of_weight(self) -> bool {
        self >= Self::High
    }
}

/// One question to a machine.
#[derive(Debug)]
pub struct Check {
    /// Its name.
    pub id: &'static str,
    /// What it weighs.
    pub severity: Severity,
    /// What should be so, in a few words.
    pub wanted: &'static str,
    /// What to do where it is not.
    pub advice: &'static str,
    /// The document or thread that says so, by its address.
    pub source: &'static str,
    /// Whether only root sees it.
    pub needs_root: bool,
    /// How the virtual bench can tell what it costs.
    pub trial: Trial,
    /// Looks at a machine.
    pub(crate) look: fn(&Machine) -> Result<Verdict, Reason>,
}

/// How the virtual bench can tell what a check costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trial {
    /// By boot arguments; the load is on the CPU that is measured.
    Boot(&'static str),
    /// By boot arguments on a guest of two CPUs: CPU 1 is measured, the load is on CPU 0.
    Beside(&'static str),
    /// By another kernel: PREEMPT_RT's.
    Kernel,
    /// Not at all, because.
    None(&'static str),
}

/// What came of a check.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// It is as it should be.
    Fine(Found),
    /// It is not.
    Wrong(Found),
    /// It cannot be told.
    Unknown(Reason),
    /// The question does not arise on this machine, because.
    Moot(String),
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Found {
    /// What was looked at: a setting, a file, a boot argument.
    pub name: String,
    /// What it is.
    pub value: Value,
}

/// What something is.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Value {
    /// A number, in the unit that its name ends in.
    Number(i64),
    /// A time.
    Nanos(Nanos),
    /// A word, as the kernel shows it.
    Text(String),
    /// CPUs.
    Cpus(Vec<CpuId>),
    /// Names of several.
    Names(Vec<String>),
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.value)
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Nanos(time) => write!(f, "{time}"),
            Self::Text(text) if text.is_empty() => f.write_str("(empty)"),
            Self::Text(text) => f.write_str(text),
            Self::Cpus(cpus) if cpus.is_empty() => f.write_str("none"),
            Self::Cpus(cpus) => f.write_str(&show_list(cpus)),
            Self::Names(names) if names.is_empty() => f.write_str("none"),
            Self::Names(names) => f.write_str(&names.join(", ")),
        }
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Number(number)
    }
}

impl From<Nanos> for Value {
    fn from(time: Nanos) -> Self {
        Self::Nanos(time)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<Vec<CpuId>> for Value {
    fn from(cpus: Vec<CpuId>) -> Self {
        Self::Cpus(cpus)
    }
}

impl From<Vec<String>> for Value {
    fn from(names: Vec<String>) -> Self {
        Self::Names(names)
    }
}

impl Verdict {
    /// Fine where `is_fine`, else wrong.
    pub(crate) fn of(is_fine: bool, name: &str, value: impl Into<Value>) -> Self {
        let found = Found {
            name: name.to_owned(),
            value: value.into(),
        };
        if is_fine {
            Self::Fine(found)
        } else {
            Self::Wrong(found)
        }
    }

    /// The word for it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Fine(_) => "fine",
            Self::Wrong(_) => "wrong",
            Self::Unknown(_) => "unknown",
            Self::Moot(_) => "moot",
        }
    }
}

/// What came of one check.
#[derive(Debug)]
pub struct Finding {
    /// The check.
    pub check: &'static Check,
    /// What it weighs here: as the check says, or by the purpose.
    pub severity: Severity,
    /// What came of it.
    pub verdict: Verdict,
}

/// What came of all checks, the heaviest first.
#[derive(Debug)]
pub struct Diagnosis(pub Vec<Finding>);

/// What it comes to; the worse, the greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Health {
    /// Nothing of weight stands in the way.
    Fit,
    /// Something of weight cannot be told.
    Undecided,
    /// Something of weight stands in the way.
    Unfit,
}

impl Health {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fit => "fit",
            Self::Undecided => "undecided",
            Self::Unfit => "unfit",
        }
    }
}

impl Diagnosis {
    /// What it comes to, by what is of weight.
    pub fn health(&self) -> Health {
        let of_weight = self.0.iter().filter(|one| one.severity.is_of_weight());
        let health = of_weight.map(|one| match one.verdict {
            Verdict::Wrong(_) => Health::Unfit,
            Verdict::Unknown(_) => Health::Undecided,
            Verdict::Fine(_) | Verdict::Moot(_) => Health::Fit,
        });
        health.max().unwrap_or(Health::Fit)
    }

    /// What is wrong, the heaviest first.
    pub fn wrong(&self) -> impl Iterator<Item = &Finding> {
        let all = self.0.iter();
        all.filter(|one| matches!(one.verdict, Verdict::Wrong(_)))
    }
}

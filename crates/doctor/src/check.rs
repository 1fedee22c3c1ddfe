// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks and their verdicts.

use std::fmt;

use punctual_model::Reason;
use punctual_model::cpus::show_list;
use punctual_model::units::{CpuId, Nanos};
use serde::Serialize;

use crate::machine::Machine;

/// The weight of a finding; the worse, the greater.
///
/// Where the source of a check names a severity, that one applies. All others depend on the
/// possible cost: *high* if it may delay a thread without limit, or keep it from being a real-time
/// thread at all, *medium* if it delays by a known mechanism, *low* if the delay is small or rare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing.
    Info,
    /// Small or rare.
    Low,
    /// It delays.
    Medium,
    /// It may delay without limit.
    High,
    /// Real time is impossible with it.
    Fatal,
}

impl Severity {
    /// All severities, heaviest first.
    pub const ALL: [Self; 5] = [Self::Fatal, Self::High, Self::Medium, Self::Low, Self::Info];

    /// The severity as a word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Fatal => "fatal",
        }
    }

    /// Returns true if it decides about the machine.
    pub fn is_of_weight(self) -> bool {
        self >= Self::High
    }
}

/// One question to a machine.
#[derive(Debug)]
pub struct Check {
    /// Name of the check.
    pub id: &'static str,
    /// Weight of the check.
    pub severity: Severity,
    /// The wanted state, in a few words.
    pub wanted: &'static str,
    /// Advice for a machine that is not in that state.
    pub advice: &'static str,
    /// The address of the document or thread that says so.
    pub source: &'static str,
    /// True if only root can see it.
    pub needs_root: bool,
    /// The way the virtual bench measures its cost.
    pub trial: Trial,
    /// Examines a machine.
    pub(crate) look: fn(&Machine) -> Result<Verdict, Reason>,
}

/// The way the virtual bench measures the cost of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trial {
    /// By boot arguments; the load is on the CPU that is measured.
    Boot(&'static str),
    /// By boot arguments on a guest of two CPUs: CPU 1 is measured, the load is on CPU 0.
    Beside(&'static str),
    /// By another kernel: one with PREEMPT_RT.
    Kernel,
    /// Not at all, for this reason.
    None(&'static str),
}

/// The outcome of a check.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// It is as it should be.
    Fine(Found),
    /// It is not as it should be.
    Wrong(Found),
    /// It is unknown, for this reason.
    Unknown(Reason),
    /// The question does not arise on this machine, for this reason.
    Moot(String),
}

/// An observation on a machine.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Found {
    /// The thing examined: a setting, a file, a boot argument.
    pub name: String,
    /// Its value.
    pub value: Value,
}

/// The value of an observation.
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
    /// Several names.
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
    /// `Fine` if `is_fine`, else `Wrong`.
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

    /// The verdict as a word.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Fine(_) => "fine",
            Self::Wrong(_) => "wrong",
            Self::Unknown(_) => "unknown",
            Self::Moot(_) => "moot",
        }
    }
}

/// The outcome of one check on a machine.
#[derive(Debug)]
pub struct Finding {
    /// The check.
    pub check: &'static Check,
    /// The weight here: the check's own, or the purpose's.
    pub severity: Severity,
    /// The verdict.
    pub verdict: Verdict,
}

/// The outcome of all checks, heaviest first.
#[derive(Debug)]
pub struct Diagnosis(pub Vec<Finding>);

/// The overall result; the worse, the greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Health {
    /// Nothing of weight stands in the way.
    Fit,
    /// Something of weight is unknown.
    Undecided,
    /// Something of weight stands in the way.
    Unfit,
}

impl Health {
    /// The result as a word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fit => "fit",
            Self::Undecided => "undecided",
            Self::Unfit => "unfit",
        }
    }
}

impl Diagnosis {
    /// The overall result, by the findings of weight.
    pub fn health(&self) -> Health {
        let of_weight = self.0.iter().filter(|one| one.severity.is_of_weight());
        let health = of_weight.map(|one| match one.verdict {
            Verdict::Wrong(_) => Health::Unfit,
            Verdict::Unknown(_) => Health::Undecided,
            Verdict::Fine(_) | Verdict::Moot(_) => Health::Fit,
        });
        health.max().unwrap_or(Health::Fit)
    }

    /// The findings that are wrong, heaviest first.
    pub fn wrong(&self) -> impl Iterator<Item = &Finding> {
        let all = self.0.iter();
        all.filter(|one| matches!(one.verdict, Verdict::Wrong(_)))
    }
}

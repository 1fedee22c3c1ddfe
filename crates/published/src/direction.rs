// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which way a document says that things go, and how that is checked.

use serde::{Deserialize, Serialize};

use crate::document::{Quotes, Unit, number};

/// A claim about kernels that recordings can confirm or contradict.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Direction {
    /// Its name within the document.
    pub id: String,
    /// What is claimed, in a plain sentence.
    pub claim: String,
    /// Where it stands in the document.
    pub section: String,
    /// What the document says.
    pub quotes: Quotes,
    /// What a subject must have for this to be told of it.
    #[serde(default)]
    pub needs: Option<Need>,
    /// What one CPU, one bench, one size cannot show of it.
    #[serde(default)]
    pub note: Option<String>,
    /// How it is checked.
    pub check: Check,
}

/// What not every bench has, and a claim is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Need {
    /// CPUs that run at the same time, and wait for each other.
    SeveralCpus,
    /// Caches, buses, microseconds of a certain CPU: what virtual time has not.
    RealTime,
}

/// How a claim is checked.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Check {
    /// Each figure of the one is below that of the other.
    Lower(Comparison),
    /// Each figure of the one is above that of the other.
    Higher(Comparison),
    /// One figure is more than so many times another of the same subject.
    Ratio(Ratio),
    /// A probe told a certain word.
    Told(Told),
    /// The average improvement of all tests' worst cases is above zero.
    Improved(Improved),
    /// Each figure is below a length of time.
    Below(Below),
}

/// Two roles and the figures by which they are compared.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Comparison {
    /// Who is to be lower or higher.
    pub of: Role,
    /// Than whom.
    pub than: Role,
    /// By which figures; each must be so.
    pub what: Vec<Measure>,
}

/// Two figures of one subject.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ratio {
    /// Whose.
    pub of: Role,
    /// The figure.
    pub what: Measure,
    /// What it is divided by.
    pub to: Measure,
    /// Above which quotient the claim holds.
    pub above: f64,
}

/// Figures, and what they are to stay below.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Below {
    /// Whose.
    pub of: Role,
    /// Which figures.
    pub what: Vec<Measure>,
    /// The number, as it is printed.
    pub limit: String,
    /// What it counts.
    pub unit: Unit,
}

impl Below {
    /// The limit in nanoseconds; `None` if it is no length of time.
    pub fn nanos(&self) -> Option<f64> {
        Some(number(&self.limit)? * self.unit.nanos()?)
    }
}

/// What a probe tells besides its samples.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Told {
    /// Whose.
    pub of: Role,
    /// The probe.
    pub probe: String,
    /// The variant; empty for any.
    #[serde(default)]
    pub variant: String,
    /// What tables call the finding: `result`.
    pub finding: String,
    /// What it must say.
    pub word: String,
}

/// Two roles whose worst cases are compared test by test.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Improved {
    /// Who is to be better.
    pub of: Role,
    /// Than whom.
    pub than: Role,
    /// The worst case of each test.
    pub what: Vec<Measure>,
}

/// Which subjects are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// All.
    Every,
    /// Those whose kernel says that it is `PREEMPT_RT`.
    Rt,
    /// All others.
    Stock,
    /// Those whose kernel code goes on until it sleeps or returns: `vanilla`.
    None,
    /// Those that are preempted where kernel code asks.
    Voluntary,
    /// Those that are preempted wherever nothing forbids it.
    Full,
    /// Of the real-time kernels, that with the highest release.
    NewerRt,
    /// Of the real-time kernels, that with the lowest release.
    OlderRt,
    /// Of the others with the same preemption model, those with the highest release.
    NewerStock,
    /// Of the others with the same preemption model, those with the lowest release.
    OlderStock,
}

impl Role {
    /// What it is called in a sentence.
    pub fn name(self) -> &'static str {
        match self {
            Self::Every => "subject",
            Self::Rt => "real-time kernel",
            Self::Stock => "stock kernel",
            Self::None => "kernel without preemption",
            Self::Voluntary => "kernel with voluntary preemption",
            Self::Full => "preemptible kernel",
            Self::NewerRt | Self::OlderRt => "second, older or newer real-time kernel",
            Self::NewerStock | Self::OlderStock => "second, older or newer stock kernel",
        }
    }
}

/// Which figure of which recordings is meant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measure {
    /// The probe.
    pub probe: String,
    /// The variant, or its first words; empty for any.
    #[serde(default)]
    pub variant: String,
    /// The load; without it each that there is, by itself.
    #[serde(default)]
    pub load: Option<String>,
    /// The figure.
    pub statistic: Statistic,
}

/// Whether these words are all of the variant's, or the first of them; no words mean any.
fn means(words: &str, variant: &str) -> bool {
    let rest = variant.strip_prefix(words);
    words.is_empty() || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
}

impl Told {
    /// Whether a recording of this variant is meant.
    pub fn means(&self, probe: &str, variant: &str) -> bool {
        self.probe == probe && means(&self.variant, variant)
    }
}

impl Measure {
    /// Whether a recording of this variant is meant: `pipe` means `pipe process 1`, and
    /// `pipe process 1` does not mean `pipe process 10`.
    pub fn means(&self, probe: &str, variant: &str) -> bool {
        self.probe == probe && means(&self.variant, variant)
    }

    /// `signal from, max`.
    pub fn name(&self) -> String {
        let space = if self.variant.is_empty() { "" } else { " " };
        let (probe, variant) = (&self.probe, &self.variant);
        format!("{probe}{space}{variant}, {}", self.statistic.name())
    }
}

/// A figure of samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Statistic {
    /// The smallest.
    Min,
    /// The average.
    Mean,
    /// Of several variants' or repetitions' averages the largest; beginnings, which are
    /// variants too, left out.
    WorstMean,
    /// The largest.
    Max,
    /// The latest of every arrival, which takes the place of the largest where it is known.
    Arrival,
    /// The middle one.
    Median,
    /// The last one: what programs call the current one.
    Last,
    /// The distance from zero of that which is farthest from it.
    Farthest,
    /// The distance from zero that half of them do not exceed.
    MedianDistance,
}

impl Statistic {
    /// What tables call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Min => "min",
            Self::Mean => "average",
            Self::WorstMean => "average of the worst variant",
            Self::Max => "max",
            Self::Arrival => "latest arrival, foretold",
            Self::Median => "median",
            Self::Last => "last",
            Self::Farthest => "farthest from nominal",
            Self::MedianDistance => "median distance from nominal",
        }
    }
}

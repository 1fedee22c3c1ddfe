// SPDX-License-Identifier: MIT OR Apache-2.0
//! Trends that documents claim, and how each is checked.

use serde::{Deserialize, Serialize};

use crate::document::{Quotes, Unit, number};

/// A claim about kernels that recordings can confirm or contradict.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Direction {
    /// Name within the document.
    pub id: String,
    /// The claim, in a plain sentence.
    pub claim: String,
    /// Section of the document.
    pub section: String,
    /// The document's own words.
    pub quotes: Quotes,
    /// A property that a subject needs before the claim can be checked on it.
    #[serde(default)]
    pub needs: Option<Need>,
    /// The part that one CPU, one bench or one size cannot show.
    #[serde(default)]
    pub note: Option<String>,
    /// The check that confirms or contradicts the claim.
    pub check: Check,
}

/// A property that a claim depends on and that not every bench has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Need {
    /// CPUs that run at the same time, and wait for each other.
    SeveralCpus,
    /// Caches, buses, microseconds of a certain CPU: virtual time has none of these.
    RealTime,
}

/// A way to check a claim.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Check {
    /// Each figure of one role is below that of the other.
    Lower(Comparison),
    /// Each figure of one role is above that of the other.
    Higher(Comparison),
    /// One figure exceeds another of the same subject by more than a given factor.
    Ratio(Ratio),
    /// A probe reported a certain word.
    Told(Told),
    /// The average improvement of the worst cases of all tests is above zero.
    Improved(Improved),
    /// Each figure is below a length of time.
    Below(Below),
}

/// Two roles and the figures by which they are compared.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Comparison {
    /// The role whose figures must be lower or higher.
    pub of: Role,
    /// The role it is compared with.
    pub than: Role,
    /// The figures to compare; the check must hold for each.
    pub what: Vec<Measure>,
}

/// Two figures of one subject.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ratio {
    /// The subjects to check.
    pub of: Role,
    /// The figure.
    pub what: Measure,
    /// The divisor.
    pub to: Measure,
    /// The quotient above which the claim holds.
    pub above: f64,
}

/// Figures and the limit that they must stay below.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Below {
    /// The subjects to check.
    pub of: Role,
    /// The figures.
    pub what: Vec<Measure>,
    /// The limit, as printed.
    pub limit: String,
    /// Unit of the limit.
    pub unit: Unit,
}

impl Below {
    /// The limit in nanoseconds; `None` if it is not a length of time.
    pub fn nanos(&self) -> Option<f64> {
        Some(number(&self.limit)? * self.unit.nanos()?)
    }
}

/// A finding that a probe reports besides its samples.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Told {
    /// The subjects to check.
    pub of: Role,
    /// The probe.
    pub probe: String,
    /// The variant; empty for any.
    #[serde(default)]
    pub variant: String,
    /// The name of the finding in tables: `result`.
    pub finding: String,
    /// The word that the finding must have.
    pub word: String,
}

/// Two roles whose worst cases are compared test by test.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Improved {
    /// The role that must be better.
    pub of: Role,
    /// The role it is compared with.
    pub than: Role,
    /// The worst case of each test.
    pub what: Vec<Measure>,
}

/// The subjects that a claim is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// All.
    Every,
    /// Those whose kernel reports that it is `PREEMPT_RT`.
    Rt,
    /// All others.
    Stock,
    /// Those whose kernel code runs until it sleeps or returns: `vanilla`.
    None,
    /// Those whose kernel code is preempted where it asks for it.
    Voluntary,
    /// Those whose kernel code is preempted wherever nothing forbids it.
    Full,
    /// The real-time kernel with the highest release.
    NewerRt,
    /// The real-time kernel with the lowest release.
    OlderRt,
    /// Of the other kernels with the same preemption model, those with the highest release.
    NewerStock,
    /// Of the other kernels with the same preemption model, those with the lowest release.
    OlderStock,
}

impl Role {
    /// The name of the role in a sentence.
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

/// A figure, and the recordings that it is taken from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measure {
    /// The probe.
    pub probe: String,
    /// The variant, or its first words; empty for any.
    #[serde(default)]
    pub variant: String,
    /// The load; if absent, each load by itself.
    #[serde(default)]
    pub load: Option<String>,
    /// The figure.
    pub statistic: Statistic,
}

/// Returns true if these words are all of the variant's, or its first ones. No words mean any
/// variant.
fn means(words: &str, variant: &str) -> bool {
    let rest = variant.strip_prefix(words);
    words.is_empty() || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
}

impl Told {
    /// Returns true if a recording of this probe and variant is meant.
    pub fn means(&self, probe: &str, variant: &str) -> bool {
        self.probe == probe && means(&self.variant, variant)
    }
}

impl Measure {
    /// Returns true if a recording of this variant is meant: `pipe` means `pipe process 1`, and
    /// `pipe process 1` does not mean `pipe process 10`.
    pub fn means(&self, probe: &str, variant: &str) -> bool {
        self.probe == probe && means(&self.variant, variant)
    }

    /// The name of the figure, such as `signal from, max`.
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
    /// The largest of the averages of several variants or repetitions. Beginnings, which are
    /// variants too, are left out.
    WorstMean,
    /// The largest.
    Max,
    /// The latest of all arrivals, which replaces the largest where it is known.
    Arrival,
    /// The middle one.
    Median,
    /// The last one: programs call it the current one.
    Last,
    /// The distance from zero of the farthest sample.
    Farthest,
    /// The distance from zero that half of the samples do not exceed.
    MedianDistance,
}

impl Statistic {
    /// The name of the figure in tables.
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

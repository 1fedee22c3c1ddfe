// SPDX-License-Identifier: MIT OR Apache-2.0
//! A probe's findings besides its samples, and facts read back about how it measured.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::reason::Reason;
use crate::units::{CpuId, Nanos};

/// A finding of a probe besides its samples: a value, not rounded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Finding {
    /// A count.
    Count(u64),
    /// A count out of a total.
    Share {
        /// The count.
        count: u64,
        /// The total.
        of: u64,
    },
    /// A size.
    Bytes(u64),
    /// A time, in nanoseconds.
    Nanos(Nanos),
    /// A part of a whole, from 0 to 1.
    Ratio(f64),
    /// A rate per second.
    PerSecond(f64),
    /// An estimate with its 95 % confidence interval.
    Estimate {
        /// The most likely value.
        value: f64,
        /// The interval's lower end.
        low: f64,
        /// The interval's upper end.
        high: f64,
    },
    /// The verdict on whether the subject did as it should; a control is expected not to.
    Verdict {
        /// True if it did.
        passed: bool,
        /// True if it was expected to.
        expected: bool,
    },
    /// Yes or no, and the observation that it follows from.
    Answer {
        /// True for yes.
        yes: bool,
        /// The observation.
        why: String,
    },
    /// A word, if there is no value: `rtc`.
    Text(String),
    /// The value is not known, for this reason.
    Absent(Reason),
}

/// A probe's findings besides its samples, by name.
pub type Findings = BTreeMap<String, Finding>;

impl Finding {
    /// Creates an estimate; absent if it is not finite, or if its ends are in the wrong order.
    pub fn estimate(value: f64, (low, high): (f64, f64)) -> Self {
        if value.is_finite() && low.is_finite() && high.is_finite() && low <= high {
            Self::Estimate { value, low, high }
        } else {
            Self::Absent(format!("no estimate: {value} ({low} to {high})").into())
        }
    }

    /// Creates a part of a whole; absent if there is no whole.
    pub fn ratio(part: f64, whole: f64) -> Self {
        let ratio = part / whole;
        if ratio.is_finite() {
            Self::Ratio(ratio)
        } else {
            Self::Absent(format!("{part} of {whole} is no share").into())
        }
    }

    /// Creates the rate of a count in a time; absent if there was no time.
    pub fn rate(count: u64, time: Nanos) -> Self {
        if time > Nanos::ZERO {
            Self::PerSecond(count as f64 / time.as_secs_f64())
        } else {
            Self::Absent(format!("{count} in {time} is no rate").into())
        }
    }

    /// Creates a size, or an absent value with the reason.
    pub fn bytes(size: Result<u64, Reason>) -> Self {
        size.map_or_else(Self::Absent, Self::Bytes)
    }

    /// Returns the count, if the finding is one.
    pub fn count(&self) -> Option<u64> {
        match self {
            Self::Count(count) | Self::Share { count, .. } => Some(*count),
            _ => None,
        }
    }

    /// Returns the time, if the finding is one.
    pub fn nanos(&self) -> Option<Nanos> {
        match self {
            Self::Nanos(time) => Some(*time),
            _ => None,
        }
    }
}

/// One fact that was read back: the scheduling of a thread, a setting of a kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Fact {
    /// Yes or no.
    Flag(bool),
    /// A whole number, in the unit that its name ends in.
    Number(i64),
    /// A word.
    Text(String),
    /// The fact could not be read.
    Unknown {
        /// The reason.
        unknown: Reason,
    },
}

/// Facts by name.
pub type Facts = BTreeMap<String, Fact>;

impl Fact {
    /// Returns the number, if the fact is one.
    pub fn number(&self) -> Option<i64> {
        match self {
            Self::Number(number) => Some(*number),
            _ => None,
        }
    }

    /// Returns the word, if the fact is one.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Converts a text that a kernel shows: to a number if it is one.
    pub fn parse(text: &str) -> Self {
        text.parse().map_or_else(|_| text.into(), Self::Number)
    }
}

impl fmt::Display for Fact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(flag) => flag.fmt(f),
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => f.write_str(text),
            Self::Unknown { unknown } => write!(f, "unknown: {unknown}"),
        }
    }
}

impl From<bool> for Fact {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}

impl From<&str> for Fact {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for Fact {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<Nanos> for Fact {
    fn from(time: Nanos) -> Self {
        Self::Number(time.0)
    }
}

impl From<CpuId> for Fact {
    fn from(cpu: CpuId) -> Self {
        Self::Number(cpu.0.into())
    }
}

impl From<Reason> for Fact {
    fn from(unknown: Reason) -> Self {
        Self::Unknown { unknown }
    }
}

impl<T: Into<Fact>> From<Result<T, Reason>> for Fact {
    fn from(read: Result<T, Reason>) -> Self {
        read.map_or_else(Self::from, Into::into)
    }
}

macro_rules! numbers {
    ($($number:ty)*) => { $(
        impl From<$number> for Fact {
            fn from(number: $number) -> Self {
                i64::try_from(number).map_or_else(|_| Self::Text(number.to_string()), Self::Number)
            }
        }
    )* };
}

numbers!(u8 u32 u64 usize i32 i64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_number_is_absent_and_never_zero() {
        assert_eq!(Finding::ratio(1.0, 4.0), Finding::Ratio(0.25));
        assert!(matches!(Finding::ratio(0.0, 0.0), Finding::Absent(_)));
        let estimate = Finding::estimate;
        assert!(matches!(
            estimate(1.0, (0.5, 1.5)),
            Finding::Estimate { .. }
        ));
        for (value, ends) in [
            (f64::NAN, (0.0, 1.0)),
            (1.0, (f64::NAN, 1.0)),
            (1.0, (2.0, 1.0)),
        ] {
            assert!(matches!(estimate(value, ends), Finding::Absent(_)));
        }
    }

    #[test]
    fn facts_and_findings_come_back_from_both_forms() {
        let facts = [
            Fact::from(true),
            Fact::from(98_u32),
            Fact::from("SCHED_FIFO"),
            Fact::from(Reason::unreadable("/sys/x", "No such file")),
            Fact::from(Reason::from("x")),
        ];
        for fact in facts {
            let json = serde_json::to_string(&fact).unwrap();
            assert_eq!(serde_json::from_str::<Fact>(&json).unwrap(), fact, "{json}");
            let mut cbor = Vec::new();
            ciborium::into_writer(&fact, &mut cbor).unwrap();
            assert_eq!(ciborium::from_reader::<Fact, _>(&*cbor).unwrap(), fact);
        }
        let third = Finding::ratio(1.0, 3.0);
        let mut cbor = Vec::new();
        ciborium::into_writer(&third, &mut cbor).unwrap();
        assert_eq!(ciborium::from_reader::<Finding, _>(&*cbor).unwrap(), third);
    }
}

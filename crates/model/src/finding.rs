// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a probe finds besides its samples, and what was read back about how it measured.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::reason::Reason;
use crate::units::{CpuId, Nanos};

/// What a probe finds besides its samples: a value, not rounded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Finding {
    /// How many.
    Count(u64),
    /// How many of how many.
    Share {
        /// How many.
        count: u64,
        /// Of how many.
        of: u64,
    },
    /// A size.
    Bytes(u64),
    /// A time, in nanoseconds.
    Nanos(Nanos),
    /// A part of a whole, from 0 to 1.
    Ratio(f64),
    /// How often in a second.
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
    /// Whether the subject did as it should; a control is expected not to.
    Verdict {
        /// Whether it did.
        passed: bool,
        /// Whether it was expected to.
        expected: bool,
    },
    /// Yes or no, and what that follows from.
    Answer {
        /// Whether it is so.
        yes: bool,
        /// What was seen.
        why: String,
    },
    /// A word, where there is no value: `rtc`.
    Text(String),
    /// It is not known.
    Absent(Reason),
}

/// What a probe finds besides its samples, by name.
pub type Findings = BTreeMap<String, Finding>;

impl Finding {
    /// An estimate; absent where it is not finite, or where its ends are in the wrong order.
    pub fn estimate(value: f64, (low, high): (f64, f64)) -> Self {
        if value.is_finite() && low.is_finite() && high.is_finite() && low <= high {
            Self::Estimate { value, low, high }
        } else {
            Self::Absent(format!("no estimate: {value} ({low} to {high})").into())
        }
    }

    /// A part of a whole; absent where there is no whole.
    pub fn ratio(part: f64, whole: f64) -> Self {
        let ratio = part / whole;
        if ratio.is_finite() {
            Self::Ratio(ratio)
        } else {
            Self::Absent(format!("{part} of {whole} is no share").into())
        }
    }

    /// So many in so long a time; absent where there was none.
    pub fn rate(count: u64, time: Nanos) -> Self {
        if time > Nanos::ZERO {
            Self::PerSecond(count as f64 / time.as_secs_f64())
        } else {
            Self::Absent(format!("{count} in {time} is no rate").into())
        }
    }

    /// A size, or why it is not known.
    pub fn bytes(size: Result<u64, Reason>) -> Self {
        size.map_or_else(Self::Absent, Self::Bytes)
    }

    /// How many there are, where that is what it says.
    pub fn count(&self) -> Option<u64> {
        match self {
            Self::Count(count) | Self::Share { count, .. } => Some(*count),
            _ => None,
        }
    }

    /// The time that it says.
    pub fn nanos(&self) -> Option<Nanos> {
        match self {
            Self::Nanos(time) => Some(*time),
            _ => None,
        }
    }
}

/// One thing that was read back: how a thread was scheduled, what a kernel is set to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Fact {
    /// Whether it is so.
    Flag(bool),
    /// A whole number, in the unit that its name ends in.
    Number(i64),
    /// A word.
    Text(String),
    /// It could not be read.
    Unknown {
        /// Why not.
        unknown: Reason,
    },
}

/// Facts by name.
pub type Facts = BTreeMap<String, Fact>;

impl Fact {
    /// The number, if it is one.
    pub fn number(&self) -> Option<i64> {
        match self {
            Self::Number(number) => Some(*number),
            _ => None,
        }
    }

    /// The word, if it is one.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// A text that a kernel shows: a number where it is one.
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

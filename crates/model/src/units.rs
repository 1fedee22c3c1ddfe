// SPDX-License-Identifier: MIT OR Apache-2.0
//! Units as types: a bare integer never carries a time.

use std::fmt;
use std::ops::{Add, AddAssign, Mul, Sub};

use serde::{Deserialize, Serialize};

/// A time span or a point in time, in nanoseconds.
///
/// Signed, because jitter (interval minus nominal) is. The range is ±292 years.
/// On the virtual bench these are nanoseconds of virtual time.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub struct Nanos(pub i64);

impl Nanos {
    /// No time at all.
    pub const ZERO: Self = Self(0);

    /// Creates a span of whole microseconds, which saturates at the end of the range.
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros.saturating_mul(1_000))
    }

    /// Creates a span of whole milliseconds, which saturates at the end of the range.
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }

    /// Returns the span in seconds, for drawing and printing only.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Returns the span in microseconds, for drawing and printing only.
    pub fn as_micros_f64(self) -> f64 {
        self.0 as f64 / 1e3
    }
}

impl Add for Nanos {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Nanos {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Nanos {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Mul<i64> for Nanos {
    type Output = Self;
    fn mul(self, factor: i64) -> Self {
        Self(self.0.saturating_mul(factor))
    }
}

/// Prints with the unit that keeps the number short: `850 ns`, `12.3 µs`, `4.05 ms`, `1.25 s`.
impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.0 as f64;
        let (scaled, unit) = match self.0.unsigned_abs() {
            0..1_000 => return f.pad(&format!("{} ns", self.0)),
            1_000..1_000_000 => (value / 1e3, "µs"),
            1_000_000..1_000_000_000 => (value / 1e6, "ms"),
            _ => (value / 1e9, "s"),
        };
        let decimals = match scaled.abs() {
            x if x < 10.0 => 2,
            x if x < 100.0 => 1,
            _ => 0,
        };
        f.pad(&format!("{scaled:.decimals$} {unit}"))
    }
}

/// The number of a logical CPU, as the kernel counts it.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub struct CpuId(pub u32);

impl fmt::Display for CpuId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cpu{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nanos_print_in_the_unit_that_keeps_them_short() {
        let shown = |n| Nanos(n).to_string();
        assert_eq!(shown(0), "0 ns");
        assert_eq!(shown(999), "999 ns");
        assert_eq!(shown(4_050), "4.05 µs");
        assert_eq!(shown(381_400), "381 µs");
        assert_eq!(shown(-12_300), "-12.3 µs");
        assert_eq!(shown(4_000_000), "4.00 ms");
        assert_eq!(shown(1_250_000_000), "1.25 s");
    }

    #[test]
    fn a_span_beyond_the_range_ends_at_it() {
        assert_eq!(Nanos::from_micros(9_223_372_036_854_776), Nanos(i64::MAX));
        assert_eq!(Nanos::from_millis(i64::MIN), Nanos(i64::MIN));
    }
}

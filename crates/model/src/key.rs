// SPDX-License-Identifier: MIT OR Apache-2.0
//! The key that distinguishes one recording of a run from all others.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The key that distinguishes one recording of a run from all others.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RecordingKey {
    /// The number, from 0, of the step in its plan.
    pub step: u32,
    /// The probe's name.
    pub probe: String,
    /// The load's name; `idle` if there was none.
    pub load: String,
    /// The name within its step: `cpu0`, `pipe process 1`; may be empty.
    pub variant: String,
    /// The number, from 1, of this recording among those of its probe, load and variant in the run:
    /// a plan may measure the same more than once.
    pub repetition: u32,
}

impl RecordingKey {
    /// Creates the key of the first recording of the first step.
    pub fn new(probe: &str, load: &str, variant: &str) -> Self {
        Self {
            step: 0,
            probe: probe.into(),
            load: load.into(),
            variant: variant.into(),
            repetition: 1,
        }
    }

    /// Creates a key of the variant, which is all that a probe knows. The runner sets the rest.
    pub fn of_variant(variant: impl Into<String>) -> Self {
        let mut key = Self::new("", "", "");
        key.variant = variant.into();
        key
    }

    /// Returns the variant as shown to readers: the second recording of `cpu0` is `cpu0 (2)`.
    pub fn label(&self) -> String {
        match (self.repetition, self.variant.as_str()) {
            (0 | 1, variant) => variant.into(),
            (times, "") => format!("({times})"),
            (times, variant) => format!("{variant} ({times})"),
        }
    }

    /// Returns true if it is of the same probe, load and variant: perhaps another repetition.
    pub fn is_alike(&self, other: &Self) -> bool {
        (&self.probe, &self.load, &self.variant) == (&other.probe, &other.load, &other.variant)
    }

    /// Returns true if both are of the same probe, load, variant and repetition. The step is
    /// ignored: other suites have it elsewhere.
    pub fn is_same_measurement(&self, other: &Self) -> bool {
        self.is_alike(other) && self.repetition == other.repetition
    }
}

/// Prints `probe / load / variant`, as a reader would name the recording.
impl fmt::Display for RecordingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} / {} / {}", self.probe, self.load, self.label())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repetition_is_shown_and_is_no_part_of_the_variant() {
        let labelled = |variant: &str, repetition| {
            let mut key = RecordingKey::new("timer", "idle", variant);
            key.repetition = repetition;
            (key.label(), key.variant)
        };
        for (variant, times, label) in [
            ("cpu0", 1, "cpu0"),
            ("cpu0", 12, "cpu0 (12)"),
            ("", 1, ""),
            ("", 2, "(2)"),
            ("a (2)", 1, "a (2)"),
        ] {
            assert_eq!(labelled(variant, times), (label.into(), variant.into()));
        }
    }

    #[test]
    fn a_variant_that_looks_like_a_repetition_is_none() {
        let mut second = RecordingKey::new("timer", "idle", "cpu0");
        second.repetition = 2;
        let named = RecordingKey::new("timer", "idle", "cpu0 (2)");
        assert_eq!(second.to_string(), named.to_string());
        assert_ne!(second, named);
        assert!(!second.is_same_measurement(&named));
    }
}

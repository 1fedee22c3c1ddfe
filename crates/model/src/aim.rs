// SPDX-License-Identifier: MIT OR Apache-2.0
//! One sample whose deadline is moved to a chosen moment.
//!
//! A run that is aimed must be equal to one that is not, to the last bit, up to the moment when
//! the moved timer is armed. So each guest gets a line of one and the same length after its plan,
//! and handles it with the same instructions whatever its digits are.

use crate::units::Nanos;

/// An aim for one sample of the probe `timer`: which sample, and when it is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Aim {
    /// The step, from 0.
    pub step: u64,
    /// The sample's number in its step, from 1: the deadline is counted from the previous sample.
    pub sample: u64,
    /// The time from the clock reading that ended the previous sample to the deadline.
    pub after: Nanos,
    /// The time from that deadline until a second timer is due, whose interrupt falls into the
    /// path; 0 if there is no second timer.
    pub second: Nanos,
}

/// The number of digits in each number: all that fit into 63 bits.
const DIGITS: usize = 18;
/// The words before each number.
const WORDS: [&str; 4] = ["# aim step ", " sample ", " after ", " second "];
/// The length of the line.
pub const LINE: usize = {
    let words = WORDS[0].len() + WORDS[1].len() + WORDS[2].len() + WORDS[3].len();
    words + WORDS.len() * DIGITS + 1
};
/// A step and a sample that no plan has.
const NOWHERE: u64 = 999_999_999_999_999_999;
/// The power of two that exceeds the number of samples in a step.
const STEPS_APART: u32 = 42;

impl Aim {
    /// The aim at no sample.
    pub const NONE: Self = Self {
        step: NOWHERE,
        sample: NOWHERE,
        after: Nanos::ZERO,
        second: Nanos::ZERO,
    };

    /// Returns the line that follows a plan.
    pub fn line(self) -> String {
        let [after, second] = [self.after, self.second].map(|time| time.0.max(0) as u64);
        let numbers = [self.step, self.sample, after, second];
        let words = WORDS.into_iter().zip(numbers);
        let words = words.map(|(word, number)| format!("{word}{:018}", number.min(NOWHERE)));
        words.collect::<String>() + "\n"
    }

    /// Splits a plan that came with such a line into the plan and the line's content; `None` if
    /// there is no such line.
    pub fn split(text: &[u8]) -> Option<(&[u8], Self)> {
        let (plan, line) = text.split_at(text.len().checked_sub(LINE)?);
        let mut at = 0;
        let mut number = |word: &str| {
            let (begin, digits) = (line.get(at..)?, at + word.len());
            at = digits + DIGITS;
            let number = line.get(digits..at)?.iter();
            let is_word = begin.starts_with(word.as_bytes());
            is_word.then(|| number.fold(0, |sum, digit| sum * 10 + u64::from(digit & 0xf)))
        };
        let [step, sample, after, second] = WORDS.map(&mut number);
        let (after, second) = (Nanos(after? as i64), Nanos(second? as i64));
        let (step, sample) = (step?, sample?);
        Some((
            plan,
            Self {
                step,
                sample,
                after,
                second,
            },
        ))
    }

    /// Restricts the aim to the given step: for any other, it names a sample that does not exist.
    #[must_use]
    pub fn within(self, step: u32) -> Self {
        let other = (self.step ^ u64::from(step)) << STEPS_APART;
        let sample = self.sample ^ other;
        Self { sample, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_has_one_length_and_survives_its_travel() {
        let aim = Aim {
            step: 3,
            sample: 793,
            after: Nanos(412_345),
            second: Nanos(7_800),
        };
        for aim in [Aim::NONE, aim] {
            let text = format!("seed = 1\n{}", aim.line());
            assert_eq!(aim.line().len(), LINE);
            assert_eq!(Aim::split(text.as_bytes()), Some((&b"seed = 1\n"[..], aim)));
        }
        assert_eq!(Aim::split(b"seed = 1\n"), None);
        assert_eq!(Aim::split(&[b' '; 300]), None);
    }

    #[test]
    fn only_its_own_step_has_the_sample() {
        let aim = Aim {
            step: 3,
            sample: 793,
            after: Nanos(1),
            second: Nanos::ZERO,
        };
        assert_eq!(aim.within(3), aim);
        for (aim, step) in [(aim, 2), (aim, 0), (Aim::NONE, 0), (Aim::NONE, 7)] {
            assert!(aim.within(step).sample > 1_000_000_000_000, "{step}");
        }
    }
}

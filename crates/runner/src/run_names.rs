// SPDX-License-Identifier: MIT OR Apache-2.0
//! The form of names of runs: `r3`, `R3`, `3`, `last`, and `r1..r4` for all from `r1` to `r4`.

use std::ops::RangeInclusive;

/// The name of the newest run.
pub const LAST: &str = "last";

/// Returns true if a word names a run or a range of runs, not a suite or a baseline.
pub fn is_run(word: &str) -> bool {
    is_one(word) || is_range(word)
}

/// Returns true if a word names a range of runs.
pub fn is_range(word: &str) -> bool {
    ends(word).is_some()
}

/// Returns true if a word names one run.
pub fn is_one(word: &str) -> bool {
    word.eq_ignore_ascii_case(LAST) || number(word).is_some()
}

/// The number in `r3`, `R3` or `3`.
pub fn number(word: &str) -> Option<u64> {
    let digits = word.strip_prefix(['r', 'R']).unwrap_or(word);
    // A number could also be parsed with a sign.
    let are_digits = digits.bytes().all(|digit| digit.is_ascii_digit());
    digits.parse().ok().filter(|_| are_digits)
}

/// The ends of a range: of `r1..r4`, `r1` and `r4`.
pub fn ends(word: &str) -> Option<(&str, &str)> {
    let (first, last) = word.split_once("..")?;
    (is_one(first) && is_one(last)).then_some((first, last))
}

/// The numbers of a range, which is written as `word`.
///
/// # Errors
/// If the later run stands first.
pub fn rising(from: u64, to: u64, word: &str) -> Result<RangeInclusive<u64>, String> {
    if from > to {
        return Err(format!(
            "expected the earlier run first, r{to}..r{from}, found {word}"
        ));
    }
    Ok(from..=to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_a_number_the_last_one_or_a_range() {
        for word in [
            "r3", "R3", "3", "last", "LAST", "r1..r4", "1..4", "R2..last",
        ] {
            assert!(is_run(word), "{word}");
        }
        for word in [
            "r", "rt", "r1-r4", "r1..", "..", "..r4", "r1...r4", "demo", "r+3", "+3", "-3", "",
        ] {
            assert!(!is_run(word), "{word}");
        }
        assert!(is_range("r1..last") && !is_range("r1"));
        let numbers = ["r12", "0", "last"].map(number);
        assert_eq!(numbers, [Some(12), Some(0), None]);
    }

    #[test]
    fn a_range_begins_with_the_earlier_run() {
        assert_eq!(rising(1, 4, "r1..r4"), Ok(1..=4));
        assert_eq!(rising(2, 2, "r2..r2"), Ok(2..=2));
        let expected = "expected the earlier run first, r1..r4, found r4..1";
        assert_eq!(rising(4, 1, "r4..1"), Err(expected.to_owned()));
    }
}

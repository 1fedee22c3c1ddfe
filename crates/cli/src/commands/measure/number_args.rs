// SPDX-License-Identifier: MIT OR Apache-2.0
//! Numbers on the command line of `punctual run`, with errors that say what is expected.

use std::num::NonZeroUsize;

use punctual_bench::virtual_bench::NS_PER_INSN_MAX;

use crate::output::say;

/// The most runs; more are a typing mistake.
const SEEDS_MAX: u64 = 100_000;

/// The largest seed: plans are written in TOML, which has no larger whole number.
const SEED_MAX: u64 = i64::MAX as u64;

/// Seeds, one for each run.
#[derive(Clone, Debug)]
pub struct Seeds {
    /// The seeds.
    pub all: Vec<u64>,
    /// The number, if they were given as one.
    alone: Option<u64>,
}

impl Seeds {
    /// Says, unless nothing is to be said, that a single number is a seed and not how many.
    pub fn tell(&self, is_quiet: bool) {
        if let Some(remark) = self.remark().filter(|_| !is_quiet) {
            say!("{remark}");
        }
    }

    fn remark(&self) -> Option<String> {
        let seed = self.alone.filter(|seed| (2..=SEEDS_MAX).contains(seed))?;
        Some(format!(
            "--seeds {seed} is one run of each subject, with seed {seed}; {seed} runs are \
             --seeds 1..{seed}"
        ))
    }
}

/// Parses one seed.
pub fn parse_seed(text: &str) -> Result<u64, String> {
    let number = text.trim().parse().ok().filter(|seed| *seed <= SEED_MAX);
    number.ok_or_else(|| format!("expected a whole number from 0 to {SEED_MAX}, found {text}"))
}

/// Parses the one seed of `--seed`, beside which there is `--seeds`.
pub fn parse_one_seed(text: &str) -> Result<u64, String> {
    if text.contains("..") || text.contains(',') {
        return Err(format!(
            "expected one seed, found {text}: --seeds takes several"
        ));
    }
    parse_seed(text)
}

/// Parses seeds: `1..5`, including 5, or `1,2,7`.
pub fn parse_seeds(text: &str) -> Result<Seeds, String> {
    let Some((first, last)) = text.split_once("..") else {
        if !text.split(',').all(is_number) {
            return Err(format!(
                "expected seeds such as 1..5 or 1,2,7, found {text}"
            ));
        }
        let seeds: Vec<u64> = text.split(',').map(parse_seed).collect::<Result<_, _>>()?;
        let mut distinct = seeds.clone();
        distinct.sort_unstable();
        distinct.dedup();
        if distinct.len() < seeds.len() {
            return Err("expected each seed once".into());
        }
        let alone = seeds.first().copied().filter(|_| seeds.len() == 1);
        return Ok(Seeds { all: seeds, alone });
    };
    if !is_number(first) || !is_number(last.trim_start_matches('=')) {
        return Err(format!(
            "expected seeds such as 1..5 or 1,2,7, found {text}"
        ));
    }
    let (first, last) = (
        parse_seed(first)?,
        parse_seed(last.trim_start_matches('='))?,
    );
    if first > last {
        return Err(format!(
            "expected FIRST..LAST, the smaller one first: {last}..{first}"
        ));
    }
    if last - first >= SEEDS_MAX {
        return Err(format!("expected at most {SEEDS_MAX} seeds"));
    }
    Ok(Seeds {
        all: (first..=last).collect(),
        alone: None,
    })
}

fn is_number(text: &str) -> bool {
    let digits = text.trim();
    !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit())
}

/// Parses a power of two.
pub fn parse_ns_per_insn(text: &str) -> Result<u32, String> {
    text.parse()
        .ok()
        .filter(|ns: &u32| ns.is_power_of_two() && *ns <= NS_PER_INSN_MAX)
        .ok_or_else(|| format!("expected a power of two from 1 to {NS_PER_INSN_MAX}"))
}

/// Parses the number of guests at a time.
pub fn parse_jobs(text: &str) -> Result<NonZeroUsize, String> {
    let jobs = text.parse().ok();
    jobs.ok_or_else(|| "expected a whole number from 1, such as 2".into())
}

/// Parses a number of seconds, at least one.
pub fn parse_patience(text: &str) -> Result<u64, String> {
    let seconds = text
        .parse()
        .ok()
        .filter(|seconds| (1..=1_000_000_000).contains(seconds));
    seconds.ok_or_else(|| "expected a whole number of seconds from 1, such as 120".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_a_range_or_a_list() {
        let seeds = |text| parse_seeds(text).map(|seeds| seeds.all);
        assert_eq!(seeds("1..3"), Ok(vec![1, 2, 3]));
        assert_eq!(seeds("4"), Ok(vec![4]));
        assert_eq!(seeds("7, 2"), Ok(vec![7, 2]));
        assert!(seeds("a").is_err() && seeds("0..1000000").is_err() && seeds("1,1").is_err());
        assert!(seeds("3..1").unwrap_err().contains("1..3"));
        for wrong in ["1-5", "all", "", "-1", "1,,2"] {
            let expected = format!("expected seeds such as 1..5 or 1,2,7, found {wrong}");
            assert_eq!(seeds(wrong), Err(expected));
        }
        let large = seeds("9223372036854775808").unwrap_err();
        assert!(large.contains("from 0 to"), "{large}");
    }

    #[test]
    fn one_seed_is_no_range_and_no_list() {
        assert_eq!(parse_one_seed("5"), Ok(5));
        for wrong in ["1..5", "1,2"] {
            let expected = format!("expected one seed, found {wrong}: --seeds takes several");
            assert_eq!(parse_one_seed(wrong), Err(expected));
        }
        assert!(parse_one_seed("1-5").unwrap_err().contains("from 0 to"));
    }

    #[test]
    fn a_single_number_is_a_seed_and_that_is_said() {
        let remark = |text| parse_seeds(text).map(|seeds| seeds.remark());
        let five = "--seeds 5 is one run of each subject, with seed 5; 5 runs are --seeds 1..5";
        assert_eq!(remark("5"), Ok(Some(five.to_owned())));
        for clear in ["1", "0", "1..5", "5..5", "1,2,7"] {
            assert_eq!(remark(clear), Ok(None), "{clear}");
        }
    }

    #[test]
    fn a_seed_can_be_written_in_a_plan() {
        assert_eq!(parse_seed("9223372036854775807"), Ok(SEED_MAX));
        for wrong in ["9223372036854775808", "-1", "1.5", ""] {
            assert!(parse_seed(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_instruction_takes_a_power_of_two() {
        assert_eq!(parse_ns_per_insn("8"), Ok(8));
        assert!(parse_ns_per_insn("3").is_err() && parse_ns_per_insn("2048").is_err());
        assert!(parse_ns_per_insn("0").is_err());
    }

    #[test]
    fn jobs_and_patience_are_at_least_one() {
        assert!(parse_jobs("0").unwrap_err().contains("from 1"));
        assert!(parse_patience("0").unwrap_err().contains("from 1"));
        assert_eq!(parse_patience("3"), Ok(3));
    }
}

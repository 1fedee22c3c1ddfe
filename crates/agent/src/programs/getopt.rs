// SPDX-License-Identifier: MIT OR Apache-2.0
//! Words of a command line, read the way getopt's programs do: unambiguous beginnings of long
//! options, numbers as `atoi(3)` reads them.

use anyhow::{Result, anyhow, bail};
use lexopt::{Arg, Parser, ValueExt as _};
use punctual_model::Nanos;

/// An option of the original that is not offered here: its name, and what to use instead.
pub type Refused = (&'static str, &'static str);

/// The options that a program knows.
#[derive(Debug)]
pub struct Known {
    /// The program's name.
    pub program: &'static str,
    /// Its long options, without dashes.
    pub longs: &'static [&'static str],
    /// The options that only the original has.
    pub refused: &'static [Refused],
}

/// A word of the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Given {
    /// An option of one letter.
    Short(char),
    /// A long option, by its whole name.
    Long(&'static str),
    /// A word that belongs to no option.
    Operand(String),
}

impl Known {
    /// Returns the next word. A long option may be abbreviated as long as it is unambiguous.
    pub fn next(&self, parser: &mut Parser) -> Result<Option<Given>> {
        Ok(match parser.next()? {
            None => None,
            Some(Arg::Short(letter)) => Some(Given::Short(letter)),
            Some(Arg::Long(name)) => Some(Given::Long(self.whole(name)?)),
            Some(Arg::Value(word)) => Some(Given::Operand(word.string()?)),
        })
    }

    fn whole(&self, name: &str) -> Result<&'static str> {
        let refused = self
            .refused
            .iter()
            .filter_map(|(name, _)| name.strip_prefix("--"));
        let all = self.longs.iter().copied().chain(refused);
        let meant: Vec<&str> = all.filter(|known| known.starts_with(name)).collect();
        match meant.iter().find(|known| **known == name).or(meant.first()) {
            None => Err(self.unknown(&format!("--{name}"))),
            Some(known) if *known == name || meant.len() == 1 => {
                if self.longs.contains(known) {
                    return Ok(known);
                }
                Err(self.unknown(&format!("--{known}")))
            }
            Some(_) => bail!("--{name} is ambiguous: --{}", meant.join(", --")),
        }
    }

    /// Returns the error for a word that is no option here.
    pub fn unexpected(&self, given: &Given) -> anyhow::Error {
        match given {
            Given::Short(letter) => self.unknown(&format!("-{letter}")),
            Given::Long(name) => self.unknown(&format!("--{name}")),
            Given::Operand(word) => self.unknown(word),
        }
    }

    /// Returns the error for an unknown option. Those of the original name what to use instead.
    fn unknown(&self, name: &str) -> anyhow::Error {
        match self.refused.iter().find(|(known, _)| *known == name) {
            Some((_, instead)) => anyhow!("{name} is not offered here: {instead}"),
            None => anyhow!("unknown option {name}; see {} --help", self.program),
        }
    }
}

/// Returns the number that a text begins with, after spaces and a sign, and the rest without
/// surrounding spaces. Like `atoi(3)`, it reads a text without a number as 0. A number that does
/// not fit into 64 bits becomes the largest that does.
fn leading_number(text: &str) -> (i64, &str) {
    let text = text.trim();
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let digits = unsigned.len()
        - unsigned
            .trim_start_matches(|one: char| one.is_ascii_digit())
            .len();
    let number = unsigned[..digits].bytes().fold(0_i64, |number, digit| {
        number
            .saturating_mul(10)
            .saturating_add(i64::from(digit - b'0'))
    });
    let is_negative = text.starts_with('-');
    (
        if is_negative { -number } else { number },
        &unsigned[digits..],
    )
}

/// Like `leading_number`; if the text has a rest, standard error shows the number that was read.
pub fn atoi(name: &str, text: &str) -> i64 {
    let (number, behind) = leading_number(text);
    if !behind.is_empty() || text.trim().is_empty() {
        eprintln!("WARN: {name}: \"{text}\" is read as {number}");
    }
    number
}

/// Reads the number that an option must have; a negative one is an error.
pub fn number(parser: &mut Parser, name: &str) -> Result<u64> {
    within(parser, name, 0, i64::MAX as u64)
}

/// Reads the number that an option must have, within bounds.
pub fn within(parser: &mut Parser, name: &str, low: u64, high: u64) -> Result<u64> {
    let text = parser.value()?.string()?;
    among(name, &text, low, high)
}

/// Returns the number in this text, within bounds.
pub fn among(name: &str, text: &str, low: u64, high: u64) -> Result<u64> {
    let number = u64::try_from(atoi(name, text)).ok();
    match number.filter(|number| (low..=high).contains(number)) {
        Some(number) => Ok(number),
        None => bail!("{name} {}: must be from {low} to {high}", text.trim()),
    }
}

/// Reads a value that an option may have, either attached (`-t5`, `--threads=5`) or the next word,
/// if that begins like one: with a digit.
pub fn optional(parser: &mut Parser) -> Result<Option<String>> {
    if let Some(value) = parser.optional_value() {
        return Ok(Some(value.string()?.trim().to_owned()));
    }
    let Some(mut rest) = parser.try_raw_args() else {
        return Ok(None);
    };
    let begins = |word: &std::ffi::OsStr| {
        word.as_encoded_bytes()
            .first()
            .is_some_and(u8::is_ascii_digit)
    };
    let next = rest.next_if(begins);
    Ok(next.map(lexopt::ValueExt::string).transpose()?)
}

/// Returns the seconds for a letter after a number.
fn unit(letter: char) -> Option<i64> {
    Some(match letter.to_ascii_lowercase() {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        'd' => 86_400,
        _ => return None,
    })
}

/// Reads `1h30m0s`, as Go's programs write a time: each number has its unit.
fn go_duration(mut text: &str) -> Option<i64> {
    let mut sum = 0_i64;
    while let Some(letter) = text.find(|one: char| !one.is_ascii_digit()) {
        let number: i64 = text[..letter].parse().ok()?;
        let (of, behind) = (text[letter..].chars().next()?, text.get(letter + 1..)?);
        sum = sum.checked_add(number.checked_mul(unit(of)?)?)?;
        text = behind;
    }
    text.is_empty().then_some(sum)
}

/// Reads a span such as `90`, `10m`, `2H`, `1d` or `1h30m0s`, in whole seconds; after the first
/// unit anything else is ignored, as in the originals.
pub fn seconds(name: &str, text: &str) -> Result<u64> {
    let trimmed = text.trim();
    let (number, behind) = leading_number(trimmed);
    let seconds = match (behind.chars().next(), go_duration(trimmed)) {
        (None, _) => number,
        (Some(_), Some(sum)) => sum,
        (Some(letter), None) => {
            let seconds = number.saturating_mul(unit(letter).unwrap_or(1));
            eprintln!("WARN: {name}: \"{text}\" is read as {seconds} s");
            seconds
        }
    };
    // 100 years, so that nanoseconds fit.
    let seconds = u64::try_from(seconds).ok();
    match seconds.filter(|seconds| *seconds < 3_153_600_000) {
        Some(seconds) => Ok(seconds),
        None => bail!("{name} {trimmed}: expected a duration: 90, 10m, 2h, 1d"),
    }
}

/// Reads the span that an option must have; `None` for 0, which means no end.
pub fn duration(parser: &mut Parser, name: &str) -> Result<Option<Nanos>> {
    let seconds = seconds(name, &parser.value()?.string()?)?;
    Ok((seconds > 0).then_some(Nanos(seconds as i64 * 1_000_000_000)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: Known = Known {
        program: "hackbench",
        longs: &["pipe", "processes", "spike", "spike-nodes", "threads"],
        refused: &[
            ("--deepest-idle-state", "use --latency US"),
            ("-U", "use -S"),
        ],
    };

    #[test]
    fn a_long_option_may_be_shortened_as_long_as_it_means_but_one() {
        let next = |word: &str| {
            let next = KNOWN.next(&mut Parser::from_args([word]));
            next.map_err(|error| error.to_string())
        };
        let long = |word: &str| match next(word) {
            Ok(Some(Given::Long(name))) => name,
            other => panic!("{word}: {other:?}"),
        };
        assert_eq!((long("--thr"), long("--process")), ("threads", "processes"));
        assert_eq!((long("--pi"), long("--spike")), ("pipe", "spike"));
        assert_eq!(
            next("--p").unwrap_err(),
            "--p is ambiguous: --pipe, --processes"
        );
        assert!(
            next("--spik")
                .unwrap_err()
                .contains("--spike, --spike-nodes")
        );
        assert!(next("--deep").unwrap_err().contains("use --latency US"));
        assert!(
            next("--nonsense")
                .unwrap_err()
                .contains("unknown option --nonsense")
        );
        let short = KNOWN.unexpected(&Given::Short('U')).to_string();
        assert!(short.contains("use -S"), "{short}");
    }

    #[test]
    fn numbers_are_those_of_atoi() {
        let cases = [
            ("1000us", 1_000),
            (" 2000", 2_000),
            ("80x", 80),
            ("PM_QOS", 0),
            ("-p", 0),
            ("", 0),
            ("-5", -5),
            ("+7", 7),
            (" 100 -l 10 -g 3 -f 5", 100),
            ("99999999999999999999", i64::MAX),
        ];
        for (text, expected) in cases {
            assert_eq!(atoi("-x", text), expected, "{text}");
        }
        let error = among("-i", "abc", 10, 20).unwrap_err().to_string();
        assert_eq!(error, "-i abc: must be from 10 to 20");
        assert!(among("-l", "-5", 0, 20).is_err());
    }

    #[test]
    fn durations_have_the_units_of_the_originals_and_of_go() {
        let cases = [
            ("90", 90),
            ("10m", 600),
            ("2h", 7_200),
            ("2H", 7_200),
            ("1d", 86_400),
            ("1S", 1),
            ("0", 0),
            ("1m0s", 60),
            ("1h0m0s", 3_600),
            ("1h30m0s", 5_400),
            ("5x", 5),
            ("1mx", 60),
            ("1m30", 60),
            ("m", 0),
        ];
        for (text, expected) in cases {
            assert_eq!(seconds("-D", text).ok(), Some(expected), "{text}");
        }
        assert!(seconds("-D", "-1").is_err());
        assert!(seconds("-D", "40000d").is_err());
    }

    #[test]
    fn an_optional_value_may_be_the_next_word_if_it_is_a_number() {
        let value = |words: &[&str]| {
            let mut parser = Parser::from_args(words);
            parser.next().unwrap();
            optional(&mut parser).unwrap()
        };
        assert_eq!(value(&["-t5"]).as_deref(), Some("5"));
        assert_eq!(value(&["-a", "0-1"]).as_deref(), Some("0-1"));
        assert_eq!(value(&["--threads=2"]).as_deref(), Some("2"));
        assert_eq!(value(&["-t", "-q"]), None);
        assert_eq!(value(&["-t"]), None);
    }
}

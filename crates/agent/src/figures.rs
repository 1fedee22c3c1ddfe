// SPDX-License-Identifier: MIT OR Apache-2.0
//! Figures that a program prints about itself: the numbers after, or before, a text of its output.

use punctual_model::Nanos;
use serde::Deserialize;

/// The place of a figure in a program's output, and its unit.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// The text that precedes the number, at each of its occurrences.
    pub after: Option<String>,
    /// The text that follows the number, at each of its occurrences.
    pub before: Option<String>,
    /// The number's unit.
    pub unit: Unit,
}

/// A unit of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// Nanoseconds.
    Ns,
    /// Microseconds.
    Us,
    /// Milliseconds.
    Ms,
    /// Seconds.
    S,
}

impl Unit {
    /// Returns its spellings, longest first.
    fn names(self) -> &'static [&'static str] {
        match self {
            Self::Ns => &["nsecs", "nsec", "ns"],
            Self::Us => &["usecs", "usec", "us", "µs", "μs"],
            Self::Ms => &["msecs", "msec", "ms"],
            Self::S => &["seconds", "secs", "sec", "s"],
        }
    }

    /// Returns the number of digits after the point that a nanosecond has.
    fn digits(self) -> usize {
        match self {
            Self::Ns => 0,
            Self::Us => 3,
            Self::Ms => 6,
            Self::S => 9,
        }
    }
}

impl Figure {
    /// Checks that it says where the number is; an error says what is expected.
    pub fn check(&self, name: &str) -> Result<(), String> {
        let is_text = |text: &&String| !text.is_empty();
        match (&self.after, &self.before) {
            (Some(text), None) | (None, Some(text)) if is_text(&text) => Ok(()),
            _ => Err(format!(
                "figure.{name}: expected one of `after` and `before` with the text beside the \
                 number, such as {{ after = \"max_ns \", unit = \"ns\" }}"
            )),
        }
    }

    /// Describes the place of the number: `after "max_ns "`.
    pub fn place(&self) -> String {
        match (&self.after, &self.before) {
            (Some(text), _) => format!("after \"{text}\""),
            (None, text) => format!("before \"{}\"", text.as_deref().unwrap_or_default()),
        }
    }

    /// Returns its values in a program's output, in order. An error is a line with a number that
    /// cannot be read reliably: none of them is left out.
    pub fn values(&self, output: &str) -> Result<Vec<Nanos>, String> {
        let mut values = Vec::new();
        for line in output.lines() {
            let text = self.after.as_ref().or(self.before.as_ref());
            let places = text.map(|text| line.match_indices(text.as_str()));
            for (at, text) in places.into_iter().flatten() {
                let value = match self.after {
                    Some(_) => self.value_of(&line[at + text.len()..]),
                    None => self.value_before(&line[..at]),
                };
                values.push(value.ok_or_else(|| line.trim().to_owned())?);
            }
        }
        Ok(values)
    }

    /// Returns the number that a text begins with; none if it has another unit.
    fn value_of(&self, rest: &str) -> Option<Nanos> {
        let mut words = rest.trim_start().splitn(2, char::is_whitespace);
        let whole = words.next()?;
        let word = whole.split(CLOSES).next()?.trim_end_matches([',', '.']);
        let behind = words.next().unwrap_or_default();
        if is_clock(whole) || goes_on(behind) {
            return None;
        }
        let names = self.unit.names();
        let bare = names.iter().find_map(|name| word.strip_suffix(name));
        let next = behind.split_whitespace().next();
        let next = next.map(|next| next.trim_end_matches([',', '.', ';', ')']));
        let is_other = |next: &str| UNITS.contains(&next) && !names.contains(&next);
        if bare.is_none() && next.is_some_and(is_other) {
            return None;
        }
        nanos(bare.unwrap_or(word), self.unit.digits())
    }

    /// Returns the number that a text ends with.
    fn value_before(&self, rest: &str) -> Option<Nanos> {
        let opens = |letter: char| letter.is_whitespace() || OPENS.contains(&letter);
        let mut words = rest.trim_end().rsplitn(2, char::is_whitespace);
        let whole = words.next()?;
        let word = whole.rsplit(opens).next()?;
        let before = words.next().unwrap_or_default().split_whitespace();
        let is_group = |before: &str| {
            let is_begun = before.bytes().all(|byte| byte.is_ascii_digit());
            TIMES.contains(&before) || is_begun && is_thousands(word)
        };
        if is_clock(whole) || before.last().is_some_and(is_group) {
            return None;
        }
        nanos(word, self.unit.digits())
    }
}

/// Returns true if a word is a time of minutes and seconds: `12:30`.
fn is_clock(word: &str) -> bool {
    let digits = |text: &str| {
        text.bytes()
            .next()
            .is_some_and(|byte| byte.is_ascii_digit())
    };
    word.split_once(':')
        .is_some_and(|(before, behind)| digits(before) && digits(behind))
}

/// Returns true if a word is the last three digits of a number with a blank in it: `1 200`.
fn is_thousands(word: &str) -> bool {
    word.len() == 3 && word.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns true if the text after a number makes it another one: `1 200`, `12 x 1000`, `12 min`. A
/// word that has a number of its own is a name: `12 min 3`.
fn goes_on(behind: &str) -> bool {
    let mut words = behind.split_whitespace();
    let Some(next) = words.next() else {
        return false;
    };
    let is_number = |word: &str| word.parse::<f64>().is_ok();
    let is_name = words.next().is_some_and(is_number) && !words.next().is_some_and(is_time);
    is_thousands(next) || TIMES.contains(&next) || is_larger(next) && !is_name
}

fn is_time(word: &str) -> bool {
    UNITS.contains(&word) || is_larger(word)
}

/// Returns true for units above a second, and words that multiply.
fn is_larger(word: &str) -> bool {
    const LARGER: [&str; 12] = [
        "min", "mins", "minute", "minutes", "h", "hour", "hours", "m", "k", "K", "M", "G",
    ];
    LARGER.contains(&word.trim_end_matches([',', '.', ';', ')']))
}

/// Signs between the factors of a product.
const TIMES: [&str; 4] = ["x", "×", "*", "·"];

/// Characters that may come directly before a number, or directly after one.
const OPENS: [char; 8] = ['=', ':', '(', '[', '{', '|', '"', '\''];
const CLOSES: [char; 8] = [';', ':', ')', ']', '}', '|', '"', '\''];

/// Spellings of units of time.
const UNITS: [&str; 15] = [
    "ns", "nsec", "nsecs", "us", "µs", "μs", "usec", "usecs", "ms", "msec", "msecs", "s", "sec",
    "secs", "seconds",
];

/// Parses a decimal number. The first `digits` digits after the point are nanoseconds; further
/// ones are cut off.
fn nanos(number: &str, digits: usize) -> Option<Nanos> {
    let (sign, number) = match number.strip_prefix('-') {
        Some(number) => (-1, number),
        None => (1, number.strip_prefix('+').unwrap_or(number)),
    };
    let (number, exponent) = match number.split_once(['e', 'E']) {
        Some((number, exponent)) => (number, exponent.parse::<i8>().ok()?),
        None => (number, 0),
    };
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !is_number(whole) || !is_number(part) {
        return None;
    }
    let point = whole.len() as i64 + i64::from(exponent) + digits as i64;
    let all = whole.chars().chain(part.chars());
    let kept = all
        .chain(std::iter::repeat('0'))
        .take(point.max(0) as usize);
    let kept: String = std::iter::once('0').chain(kept).collect();
    let value: i64 = kept.parse().ok()?;
    Some(Nanos(sign * value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(figure: &str, output: &str) -> Result<Vec<i64>, String> {
        let figure: Figure = toml::from_str(figure).unwrap();
        figure.check("x").unwrap();
        let values = figure.values(output)?;
        Ok(values.iter().map(|value| value.0).collect())
    }

    fn values(figure: &str, output: &str) -> Vec<i64> {
        read(figure, output).unwrap()
    }

    #[test]
    fn a_part_of_a_number_is_none() {
        let after: Figure = toml::from_str("after = \"max \"\nunit = \"us\"").unwrap();
        let before: Figure = toml::from_str("before = \" us\"\nunit = \"us\"").unwrap();
        for line in [
            "max 1 200",
            "max 12 min",
            "max 12 M",
            "max 12 k",
            "max 12:30",
            "max 12 x 1000",
            "max 12 min 3 s",
            "max 12 h.",
        ] {
            assert_eq!(after.values(line), Err(line.to_owned()));
        }
        for line in ["1 200 us", "12 x 1000 us", "0:12 us"] {
            assert_eq!(before.values(line), Err(line.to_owned()));
        }
        let twelve = |found: Result<Vec<Nanos>, String>| assert_eq!(found, Ok(vec![Nanos(12_000)]));
        for line in [
            "max 12 min 3",
            "max 12 us",
            "max 12, min 3",
            "max 12 of 1000",
            "max 12: ok",
        ] {
            twelve(after.values(line));
        }
        for line in ["max: 12 us", "max 12 us", "max:12 us", "of 1000 12 us"] {
            twelve(before.values(line));
        }
    }

    #[test]
    fn numbers_are_found_beside_their_text() {
        let output = "start\nmax_ns 1234 of 9\nmax_ns: no\nmax_ns -5. max_ns 7ns\n m=7.25us mean\n";
        let after = "after = \"max_ns \"\nunit = \"ns\"";
        assert_eq!(values(after, output), [1_234, -5, 7]);
        assert_eq!(
            values("before = \"us mean\"\nunit = \"us\"", output),
            [7_250]
        );
        let after = |unit| values(&format!("after = \"a=\"\nunit = \"{unit}\""), "a=1.5004");
        assert_eq!(
            ["ns", "us", "ms", "s"].map(after).concat(),
            [1, 1_500, 1_500_400, 1_500_400_000]
        );
    }

    #[test]
    fn a_number_is_read_as_it_is_meant_or_not_at_all() {
        let us = |output: &str| read("after = \"lat \"\nunit = \"us\"", output);
        // What `%g` prints from a million on.
        assert_eq!(us("lat 1.2e+06 us").unwrap(), [1_200_000_000]);
        assert_eq!(us("lat 1.25e-01, next").unwrap(), [125]);
        assert_eq!(us("lat 5 us lat 2000 us").unwrap(), [5_000, 2_000_000]);
        assert_eq!(us("lat 5µs; lat 6").unwrap(), [5_000, 6_000]);
        for wrong in [
            "lat 2,000 us",
            "lat 1_000 us",
            "lat 0x7d0",
            "lat 2 ms",
            "lat 2ms",
            "lat 12k",
            "lat inf us",
            "lat nan",
            "lat timeout",
            "lat 99999999999999999999999",
            "lat 1-2",
            "lat ",
            "lat .",
            "lat 1.2.3",
            "lat 1e200",
        ] {
            let output = format!("lat 5 us\n{wrong}\nlat 7 us\n");
            assert_eq!(us(&output), Err(wrong.trim().to_owned()));
        }
        let before = |output: &str| read("before = \" us late\"\nunit = \"us\"", output);
        assert_eq!(before("1.2e+06 us late").unwrap(), [1_200_000_000]);
        assert!(before("2,000 us late").is_err() && before("0x7d0 us late").is_err());
    }

    #[test]
    fn a_figure_says_where_its_number_is() {
        for wrong in [
            "unit = \"ns\"",
            "after = \"\"\nunit = \"ns\"",
            "after = \"a\"\nbefore = \"b\"\nunit = \"ns\"",
        ] {
            let figure: Figure = toml::from_str(wrong).unwrap();
            assert!(figure.check("max").unwrap_err().contains("figure.max"));
        }
        let unit = toml::from_str::<Figure>("after = \"a\"\nunit = \"apples\"");
        assert!(unit.unwrap_err().message().contains("`ns`, `us`"));
    }
}

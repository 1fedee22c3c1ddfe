// SPDX-License-Identifier: MIT OR Apache-2.0
//! Figures that a program prints of itself: the numbers after, or before, a text of its output.

use punctual_model::Nanos;
use serde::Deserialize;

/// How a figure is found in what a program prints, and in which unit it is.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// The text that precedes the number: the first in its line.
    pub after: Option<String>,
    /// The text that follows the number: the first in its line.
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
    /// How many digits behind the point a nanosecond has.
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
    /// Whether it says where the number is; an error says what is expected.
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

    /// Where the number is, in words: `after "max_ns "`.
    pub fn place(&self) -> String {
        match (&self.after, &self.before) {
            (Some(text), _) => format!("after \"{text}\""),
            (None, text) => format!("before \"{}\"", text.as_deref().unwrap_or_default()),
        }
    }

    /// Its values in what was printed, one for each line that has one.
    pub fn values(&self, output: &str) -> Vec<Nanos> {
        output.lines().filter_map(|line| self.value(line)).collect()
    }

    fn value(&self, line: &str) -> Option<Nanos> {
        let is_of_number = |letter: char| letter.is_ascii_digit() || ".-".contains(letter);
        let number = match (&self.after, &self.before) {
            (Some(text), _) => {
                let rest = line.split_once(text)?.1.trim_start();
                let end = rest.find(|letter| !is_of_number(letter));
                &rest[..end.unwrap_or(rest.len())]
            }
            (None, Some(text)) => {
                let rest = line.split_once(text)?.0.trim_end();
                let begin = rest.rfind(|letter| !is_of_number(letter));
                // The letter before it may be of several bytes.
                let begin =
                    begin.map(|at| at + rest[at..].chars().next().map_or(0, char::len_utf8));
                &rest[begin.unwrap_or(0)..]
            }
            (None, None) => return None,
        };
        nanos(number.trim_end_matches('.'), self.unit.digits())
    }
}

/// A decimal number, of which so many digits behind the point are a nanosecond's and the further
/// ones are cut off.
fn nanos(number: &str, digits: usize) -> Option<Nanos> {
    let (sign, number) = match number.strip_prefix('-') {
        Some(number) => (-1, number),
        None => (1, number),
    };
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !is_number(whole) || !is_number(part) {
        return None;
    }
    let part: String = part
        .chars()
        .chain(std::iter::repeat('0'))
        .take(digits)
        .collect();
    let value: i64 = format!("{whole}{part}").parse().ok()?;
    Some(Nanos(sign * value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(figure: &str, output: &str) -> Vec<i64> {
        let figure: Figure = toml::from_str(figure).unwrap();
        figure.check("x").unwrap();
        figure.values(output).iter().map(|value| value.0).collect()
    }

    #[test]
    fn numbers_are_found_beside_their_text() {
        let output = "start\nmax_ns 1234 of 9\nmax_ns: no\nmax_ns -5.\n µ7.25us mean\n";
        let after = "after = \"max_ns \"\nunit = \"ns\"";
        assert_eq!(values(after, output), [1_234, -5]);
        assert_eq!(
            values("before = \"us mean\"\nunit = \"us\"", output),
            [7_250]
        );
        let after = |unit| values(&format!("after = \"a=\"\nunit = \"{unit}\""), "a=1.5004");
        assert_eq!(
            ["ns", "us", "ms", "s"].map(after).concat(),
            [1, 1_500, 1_500_400, 1_500_400_000]
        );
        let none = values("after = \"x\"\nunit = \"s\"", "x1-2\nx\nx.\nx1.2.3\n");
        assert!(none.is_empty(), "{none:?}");
        let too_large = "x99999999999999999999";
        assert!(values("after = \"x\"\nunit = \"ns\"", too_large).is_empty());
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

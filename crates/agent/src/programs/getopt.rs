// SPDX-License-Identifier: MIT OR Apache-2.0
//! Words of a command line, read the way getopt's programs do.

use anyhow::{Context as _, Result, anyhow, bail};
use lexopt::{Parser, ValueExt as _};

/// An option that there is not here: its name, and what to use instead.
pub type Refused = (&'static str, &'static str);

/// The error for an option; those that the original has are refused with what to use instead.
pub fn unknown(program: &str, argument: &lexopt::Arg<'_>, refused: &[Refused]) -> anyhow::Error {
    let name = match argument {
        lexopt::Arg::Short(letter) => format!("-{letter}"),
        lexopt::Arg::Long(name) => format!("--{name}"),
        lexopt::Arg::Value(word) => word.to_string_lossy().into_owned(),
    };
    match refused.iter().find(|(known, _)| *known == name) {
        Some((_, instead)) => anyhow!("{name} is not offered here: {instead}"),
        None => anyhow!("unknown option {name}; see {program} --help"),
    }
}

/// A number that an option must have.
pub fn number(parser: &mut Parser, name: &str) -> Result<u64> {
    let value = parser.value()?.string()?;
    // Spaces around it are nothing, as for atoi: rteval says "-h 2000" in one word.
    let number = value.trim().parse();
    number.with_context(|| format!("{name}: \"{value}\" is no number"))
}

/// A number that an option must have, within bounds.
pub fn within(parser: &mut Parser, name: &str, low: u64, high: u64) -> Result<u64> {
    let number = number(parser, name)?;
    if !(low..=high).contains(&number) {
        bail!("{name} {number}: must be from {low} to {high}");
    }
    Ok(number)
}

/// A value that an option may have, be it attached (`-t5`, `--threads=5`) or the next word,
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

/// A span such as `90`, `10m`, `2h` or `1d`, in seconds.
pub fn seconds(text: &str) -> Result<u64> {
    let text = text.trim();
    let (digits, factor) = match text.as_bytes().last() {
        Some(b'm') => (&text[..text.len() - 1], 60),
        Some(b'h') => (&text[..text.len() - 1], 3_600),
        Some(b'd') => (&text[..text.len() - 1], 86_400),
        Some(b's') => (&text[..text.len() - 1], 1),
        _ => (text, 1),
    };
    let seconds = digits
        .parse::<u64>()
        .ok()
        .and_then(|n| n.checked_mul(factor));
    // 100 years, so that nanoseconds fit.
    seconds
        .filter(|seconds| (1..3_153_600_000).contains(seconds))
        .with_context(|| format!("\"{text}\" is no duration: 90, 10m, 2h, 1d"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_the_suffixes_of_the_original() {
        let told = |text| seconds(text).ok();
        assert_eq!(
            (told("90"), told("10m"), told("2h")),
            (Some(90), Some(600), Some(7_200))
        );
        assert_eq!(
            (told("1d"), told(""), told("m")),
            (Some(86_400), None, None)
        );
        assert_eq!((told("-1"), told("0"), told("5x")), (None, None, None));
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

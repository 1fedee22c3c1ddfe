// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors of the command line, with remedies for the mistakes that are likely.

use clap::Error;
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// The commands whose first word is a suite.
const MEASURING: [&str; 3] = ["run", "judge", "gate"];

/// An option that these commands lack.
struct Lacking {
    /// The option.
    option: &'static str,
    /// Its value in the remedy, if the command line has none that would do.
    usual: &'static str,
    /// Its value as the remedy takes it; `None` if it would not do.
    value: fn(&str) -> Option<String>,
    /// The remedy, by command and value.
    remedy: fn(&str, &str) -> String,
}

/// Options of cyclictest, and one that all take for granted.
const LACKING: &[Lacking] = &[
    Lacking {
        option: "-i",
        usual: "1000",
        value: |found| is_number(found).then(|| found.to_owned()),
        remedy: |_, value| {
            format!("cyclictest's interval is -p interval_us={value} here, with --probe timer")
        },
    },
    Lacking {
        option: "-D",
        usual: "10m",
        // cyclictest counts seconds unless it is told otherwise.
        value: |found| {
            let unit = if is_number(found) { "s" } else { "" };
            let is_time = found.starts_with(|first: char| first.is_ascii_digit());
            is_time.then(|| format!("{found}{unit}"))
        },
        remedy: |_, value| format!("cyclictest's duration is --duration {value} here"),
    },
    Lacking {
        option: "--suite",
        usual: "demo",
        value: |found| (!found.is_empty()).then(|| found.to_owned()),
        remedy: |command, value| {
            format!("name the suite without an option: punctual {command} {value}")
        },
    },
];

/// Adds the remedy to an error, if there is one, and takes away advice that would mislead. `words`
/// are those of the command line.
pub fn with_remedy(mut error: Error, words: &[String]) -> Error {
    if has_kernel_and_subject(&error) {
        let why = "--kernel replaces the suite's subjects, so --subject selects none: leave one \
                   out\n";
        return Error::raw(ErrorKind::ArgumentConflict, why);
    }
    let mut tips = match error.remove(ContextKind::Suggested) {
        Some(ContextValue::StyledStrs(tips)) => tips,
        _ => Vec::new(),
    };
    // No word of any command is an option of another program.
    tips.retain(|tip| !tip.to_string().starts_with("to pass '"));
    if let Some(remedy) = remedy(&error, words) {
        error.remove(ContextKind::SuggestedArg);
        tips = vec![remedy.into()];
    }
    if !tips.is_empty() {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
    }
    error
}

fn has_kernel_and_subject(error: &Error) -> bool {
    let named = [ContextKind::InvalidArg, ContextKind::PriorArg].map(|kind| {
        let named = error.get(kind).map(ToString::to_string);
        named.unwrap_or_default()
    });
    let has = |option: &str| named.iter().any(|named| named.starts_with(option));
    error.kind() == ErrorKind::ArgumentConflict && has("--kernel ") && has("--subject ")
}

/// The remedy for an option that `run`, `judge` and `gate` lack or take otherwise.
fn remedy(error: &Error, words: &[String]) -> Option<String> {
    let is_measuring = |word: &&String| MEASURING.contains(&word.as_str());
    let command = words.iter().find(is_measuring)?;
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let option = text(ContextKind::InvalidArg)?;
    match error.kind() {
        ErrorKind::UnknownArgument => {
            let lacking = LACKING.iter().find(|lacking| lacking.option == option)?;
            let value = value_of(words, option).and_then(lacking.value);
            let value = value.unwrap_or_else(|| lacking.usual.to_owned());
            Some((lacking.remedy)(command, &value))
        }
        ErrorKind::ValueValidation if option.starts_with("--param ") => {
            let value = text(ContextKind::InvalidValue).filter(|value| is_number(value))?;
            Some(format!(
                "cyclictest's priority is -p priority={value} here, with --probe timer"
            ))
        }
        _ => None,
    }
}

/// The value that the command line gives an option: the next word, or what is attached to it.
fn value_of<'a>(words: &'a [String], option: &str) -> Option<&'a str> {
    let is_long = option.starts_with("--");
    let next = words.iter().skip(1).map(Some).chain([None]);
    words
        .iter()
        .zip(next)
        .find_map(|(word, next)| match word.strip_prefix(option)? {
            "" => next
                .map(String::as_str)
                .filter(|next| !next.starts_with('-')),
            attached if is_long => attached.strip_prefix('='),
            attached => Some(attached),
        })
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::commands::Cli;

    fn said(line: &str) -> String {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let error = Cli::try_parse_from(&words).unwrap_err();
        with_remedy(error, &words).to_string()
    }

    #[test]
    fn options_of_cyclictest_are_answered_with_those_of_punctual() {
        for (line, tip) in [
            (
                "punctual run -i 500 demo",
                "cyclictest's interval is -p interval_us=500 here, with --probe timer",
            ),
            (
                "punctual judge demo -i500",
                "cyclictest's interval is -p interval_us=500 here, with --probe timer",
            ),
            (
                "punctual run demo -i",
                "cyclictest's interval is -p interval_us=1000 here, with --probe timer",
            ),
            (
                "punctual run demo -D 10m",
                "cyclictest's duration is --duration 10m here",
            ),
            (
                "punctual run demo -D60",
                "cyclictest's duration is --duration 60s here",
            ),
            (
                "punctual run --probe timer -p 90",
                "cyclictest's priority is -p priority=90 here, with --probe timer",
            ),
            (
                "punctual run --suite celf --subject rt",
                "name the suite without an option: punctual run celf",
            ),
            (
                "punctual gate --baseline r1 --suite=celf",
                "name the suite without an option: punctual gate celf",
            ),
        ] {
            let said = said(line);
            let tip = format!("\n  tip: {tip}\n");
            assert!(said.contains(&tip), "{line}: {said}");
            assert_eq!(said.matches("tip:").count(), 1, "{line}: {said}");
        }
        let other = said("punctual run --probe timer -p samples");
        assert!(!other.contains("tip:"), "{other}");
    }

    #[test]
    fn an_option_is_never_advised_to_be_a_value() {
        for line in [
            "punctual run --interval 5",
            "punctual run demo -Z",
            "punctual show --nosuch r1",
            "punctual kernel add --nosuch x",
        ] {
            let said = said(line);
            assert!(said.contains("unexpected argument '-"), "{line}: {said}");
            assert!(!said.contains("as a value"), "{line}: {said}");
        }
        // What is near is still named.
        let near = said("punctual run demo --subjct rt");
        let similar = "a similar argument exists: '--subject'";
        assert!(near.contains(similar), "{near}");
    }

    #[test]
    fn kernels_take_the_place_of_subjects() {
        let expected = "error: --kernel replaces the suite's subjects, so --subject selects none: \
                        leave one out\n";
        for line in [
            "punctual run demo --kernel mine --subject rt",
            "punctual judge demo --subject rt --limits a.toml --kernel mine",
        ] {
            assert_eq!(said(line), expected, "{line}");
        }
    }
}

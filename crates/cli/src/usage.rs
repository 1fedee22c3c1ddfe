// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors of the command line, with remedies for the mistakes that are likely.

use clap::Error;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use punctual_runner::run_names::is_run;
use punctual_runner::suites;

/// The commands whose first word is a suite.
const MEASURING: [&str; 3] = ["run", "judge", "gate"];

/// An option that these commands lack.
struct Lacking {
    /// Its names.
    names: &'static [&'static str],
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
        names: &["-i", "--interval"],
        usual: "1000",
        value: number,
        remedy: |_, value| {
            format!("cyclictest's interval is -p interval_us={value} here, with --probe timer")
        },
    },
    Lacking {
        names: &["-D"],
        usual: "10m",
        // cyclictest counts seconds unless it is told otherwise.
        value: |found| {
            let unit = if is_number(found) { "s" } else { "" };
            let is_time = found.starts_with(|first: char| first.is_ascii_digit());
            is_time.then(|| format!("{found}{unit}"))
        },
        remedy: |_, value| duration(value),
    },
    Lacking {
        names: &["-l", "--loops"],
        usual: "100000",
        // 0 is cyclictest's word for no end.
        value: |found| number(found).filter(|count| count != "0"),
        remedy: |_, value| format!("cyclictest's loops are --samples {value} here"),
    },
    Lacking {
        names: &["--priority"],
        usual: "80",
        value: number,
        remedy: |_, value| priority(value),
    },
    Lacking {
        names: &["-S", "--smp", "-t", "--threads"],
        usual: "",
        value: |_| None,
        remedy: |_, _| {
            "the probe timer has a thread on each CPU; --bench host --cpus 2,3 names some"
                .to_owned()
        },
    },
    Lacking {
        names: &["-a", "--affinity"],
        usual: "2,3",
        value: |found| {
            let is_list = found.starts_with(|first: char| first.is_ascii_digit())
                && found
                    .bytes()
                    .all(|c| c.is_ascii_digit() || b",-".contains(&c));
            is_list.then(|| found.to_owned())
        },
        remedy: |_, value| {
            format!(
                "cyclictest's affinity is --bench host --cpus {value} here; without it, all CPUs"
            )
        },
    },
    Lacking {
        names: &["-m", "--mlockall"],
        usual: "",
        value: |_| None,
        remedy: |_, _| "memory is always locked here: leave it out".to_owned(),
    },
    Lacking {
        names: &["-b", "--breaktrace"],
        usual: "200us",
        value: |found| number(found).map(|micros| format!("{micros}us")),
        remedy: |_, value| format!("cyclictest's -b is `punctual run --stop-above {value}` here"),
    },
    Lacking {
        names: &["--histogram", "-H", "--histofall", "--histfile"],
        usual: "",
        value: |_| None,
        remedy: |_, _| {
            "`punctual run --report FILE` draws the histogram, and `--data DIR` writes it"
                .to_owned()
        },
    },
    Lacking {
        names: &["--suite"],
        usual: "demo",
        value: |found| (!found.is_empty()).then(|| found.to_owned()),
        remedy: |command, value| {
            format!("name the suite without an option: punctual {command} {value}")
        },
    },
];

fn priority(value: &str) -> String {
    format!("cyclictest's priority is -p priority={value} here, with --probe timer")
}

fn duration(value: &str) -> String {
    format!("cyclictest's duration is --duration {value} here")
}

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
    if let Some(suite) = suite_without_command(&error) {
        error.remove(ContextKind::SuggestedSubcommand);
        tips = vec![format!("{suite} is a suite: punctual run {suite}").into()];
    }
    if let Some(tip) = other_command(&error, words) {
        tips = vec![tip.into()];
    }
    if !tips.is_empty() {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
    }
    error
}

/// The suite that stands where a command is expected.
fn suite_without_command(error: &Error) -> Option<String> {
    match error.get(ContextKind::InvalidSubcommand) {
        Some(ContextValue::String(word)) if suites::find(word).is_ok() => Some(word.clone()),
        _ => None,
    }
}

/// The command that does what the user expects of a word that this command does not take.
fn other_command(error: &Error, words: &[String]) -> Option<String> {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let is_of = |command: &str| words.iter().any(|word| word == command);
    match error.kind() {
        ErrorKind::InvalidSubcommand if is_of("cache") => {
            let is_list = text(ContextKind::InvalidSubcommand)? == "list";
            is_list.then(|| "punctual cache prints the list".to_owned())
        }
        ErrorKind::UnknownArgument if is_of("runs") => {
            let run = text(ContextKind::InvalidArg).filter(|word| is_run(word))?;
            Some(format!("punctual show {run} shows it"))
        }
        _ => None,
    }
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
            let mut all = LACKING.iter();
            let lacking = all.find(|lacking| lacking.names.contains(&option))?;
            let value = value_of(words, option).and_then(lacking.value);
            let value = value.unwrap_or_else(|| lacking.usual.to_owned());
            Some((lacking.remedy)(command, &value))
        }
        ErrorKind::ValueValidation if option.starts_with("--param ") => {
            let value = text(ContextKind::InvalidValue).filter(|value| is_number(value))?;
            Some(priority(value))
        }
        ErrorKind::ValueValidation if option.starts_with("--duration ") => {
            let seconds = text(ContextKind::InvalidValue).and_then(number)?;
            Some(duration(&format!("{seconds}s")))
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

fn number(text: &str) -> Option<String> {
    is_number(text).then(|| text.to_owned())
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
                "punctual run --probe timer --priority=90",
                "cyclictest's priority is -p priority=90 here, with --probe timer",
            ),
            (
                "punctual run demo --interval 500",
                "cyclictest's interval is -p interval_us=500 here, with --probe timer",
            ),
            (
                "punctual run demo --duration 60",
                "cyclictest's duration is --duration 60s here",
            ),
            (
                "punctual run demo -l 5000",
                "cyclictest's loops are --samples 5000 here",
            ),
            (
                "punctual judge demo --loops=0",
                "cyclictest's loops are --samples 100000 here",
            ),
            (
                "punctual run -S demo",
                "the probe timer has a thread on each CPU; --bench host --cpus 2,3 names some",
            ),
            (
                "punctual run demo -t1",
                "the probe timer has a thread on each CPU; --bench host --cpus 2,3 names some",
            ),
            (
                "punctual run demo -a 1-3",
                "cyclictest's affinity is --bench host --cpus 1-3 here; without it, all CPUs",
            ),
            (
                "punctual run demo --affinity",
                "cyclictest's affinity is --bench host --cpus 2,3 here; without it, all CPUs",
            ),
            (
                "punctual run demo -m",
                "memory is always locked here: leave it out",
            ),
            (
                "punctual run demo -b 150",
                "cyclictest's -b is `punctual run --stop-above 150us` here",
            ),
            (
                "punctual run demo --histogram=400",
                "`punctual run --report FILE` draws the histogram, and `--data DIR` writes it",
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
    fn a_suite_in_place_of_a_command_is_told_with_the_command_that_measures_it() {
        let said = said("punctual demo run");
        let tip = "tip: demo is a suite: punctual run demo\n";
        assert!(said.contains(tip) && !said.contains("remove"), "{said}");
    }

    #[test]
    fn a_word_that_another_command_takes_is_told_with_that_command() {
        for (line, tip) in [
            ("punctual cache list", "punctual cache prints the list"),
            ("punctual runs r3", "punctual show r3 shows it"),
        ] {
            let said = said(line);
            assert!(said.contains(&format!("\n  tip: {tip}\n")), "{said}");
        }
        let other = said("punctual runs demo");
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

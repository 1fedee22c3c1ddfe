// SPDX-License-Identifier: MIT OR Apache-2.0
//! Faults in a TOML file, described for whoever wrote it.

use std::path::Path;

use punctual_model::Limit;
use punctual_published::PublishedError;
use serde::Deserialize;
use toml::{Spanned, Table, Value};

use crate::data_files::wrong_at;
use crate::error::{Error, did_you_mean};

/// The error for a TOML file with a fault, in one line: `FILE:LINE: reason`.
pub(crate) fn in_file(path: &Path, text: &str, error: &toml::de::Error) -> Error {
    let (line, reason) = explain(text, error);
    wrong_at(path, line, &reason.replace('\n', " "))
}

/// The error for a file of claims, or a published document, of the user's own.
pub(crate) fn in_published(path: &Path, text: &str, error: &PublishedError) -> Error {
    match error {
        PublishedError::Form { reason, .. } => in_file(path, text, reason),
        other => Error::Request(other.to_string()),
    }
}

/// The line of a place in `text`, counted from 1. The end belongs to the last line.
pub(crate) fn line_of(text: &str, at: usize) -> usize {
    let at = at.min(text.len().saturating_sub(1));
    let before = text.bytes().take(at);
    before.filter(|byte| *byte == b'\n').count() + 1
}

/// The line of an error in `text`, counted from 1, and its description, with the word that was
/// probably meant.
fn explain(text: &str, error: &toml::de::Error) -> (usize, String) {
    let message = error.message();
    let mut at = error.span().map_or(0, |span| span.start);
    if text.get(at..).is_some_and(|rest| rest.starts_with("[[")) {
        at = faulty_limit(text, message).unwrap_or(at);
    }
    let line = line_of(text, at);
    if let Some(list) = single(text, line, at, message) {
        return (line, format!("expected [[{list}]], found [{list}]"));
    }
    // An error of a whole table is at its head; its keys are from there to the next one.
    let part = text.get(at..).unwrap_or(text);
    let part = part.find("\n[").map_or(part, |end| &part[..end]);
    if let Some(below) = faulty_line(part, message) {
        return (line + below, message.to_owned());
    }
    let said = plain(message.trim_end());
    let missing = message.strip_prefix("missing field `");
    let Some((missing, _)) = missing.and_then(|rest| rest.split_once('`')) else {
        return (line, said);
    };
    let hint = did_you_mean(missing, &keys(part));
    let hint = hint.replace("did you mean", "did you mean it by");
    (line, said + &hint)
}

/// The tables of which files have several, each under `[[NAME]]`.
const LISTS: [&str; 7] = [
    "claim", "exclude", "limit", "option", "step", "subject", "worker",
];

/// The name of a table `[NAME]` that stands where `[[NAME]]` belongs, if that is the error.
fn single<'a>(text: &'a str, line: usize, at: usize, message: &str) -> Option<&'a str> {
    let head = text.lines().nth(line - 1)?.trim_start();
    let name = head.strip_prefix('[')?.split_once(']')?.0.trim();
    let is_single = !name.starts_with('[');
    // The table itself, and not something in it.
    let is_table = text.get(at..).is_some_and(|rest| rest.starts_with('['));
    let is_first = is_table && message == "invalid type: map, expected a sequence";
    // The reader takes the second one for the same table.
    let last = name.rsplit('.').next().unwrap_or_default().trim();
    let is_second = message == "duplicate key" && LISTS.contains(&last);
    (is_single && (is_first || is_second)).then_some(name)
}

/// The place of the limit with this error. The reader of TOML gives that of the first limit.
fn faulty_limit(text: &str, message: &str) -> Option<usize> {
    #[derive(Deserialize)]
    struct File {
        limit: Vec<Spanned<Value>>,
    }
    let file: File = toml::from_str(text).ok()?;
    let is_faulty = |limit: &&Spanned<Value>| {
        let read = limit.get_ref().clone().try_into::<Limit>();
        read.is_err_and(|error| error.message() == message)
    };
    Some(file.limit.iter().find(is_faulty)?.span().start)
}

/// The line of a table, counted from 0, that sets the key in the message `at_most: expected …`.
fn faulty_line(part: &str, message: &str) -> Option<usize> {
    let (about, _) = message.split_once(": ")?;
    let key = |line: &str| line.split_once('=').map(|(key, _)| key.trim() == about);
    part.lines().position(|line| key(line) == Some(true))
}

/// Translates an error of a TOML reader into plain words, with the word that was probably meant.
pub(crate) fn plain(said: &str) -> String {
    let hint = said
        .split_once("unknown ")
        .map_or(String::new(), |(_, rest)| {
            let mut quoted = rest.split('`').skip(1).step_by(2);
            let found = quoted.next().unwrap_or_default();
            did_you_mean(found, &quoted.collect::<Vec<_>>())
        });
    let mut said = said.to_owned();
    for word in ["u8", "u16", "u32", "u64", "usize", "i64"] {
        said = said.replace(&format!("expected {word}"), "expected a whole number");
    }
    said.replace("expected f64", "expected a number") + &hint
}

/// The same for an error in a probe's parameters. A value of another type is named with its key,
/// and a number with the unit in which the key ends.
pub(crate) fn in_parameters(said: &str, params: &Table) -> String {
    let said = plain(said.trim_end());
    let Some((about, (found, expected))) = said
        .split_once("invalid type: ")
        .and_then(|(about, rest)| Some((about, rest.rsplit_once(", expected ")?)))
    else {
        return said;
    };
    let described = |value: &Value| match value {
        Value::String(text) => format!("string {text:?}"),
        Value::Integer(number) => format!("integer `{number}`"),
        Value::Float(number) => format!("floating point `{number:?}`"),
        Value::Boolean(flag) => format!("boolean `{flag}`"),
        Value::Array(_) => "sequence".to_owned(),
        Value::Table(_) => "map".to_owned(),
        Value::Datetime(_) => String::new(),
    };
    let mut faulty = params.iter().filter(|(_, value)| described(value) == found);
    let (Some((key, value)), None) = (faulty.next(), faulty.next()) else {
        return said;
    };
    let units = [("_us", " of µs"), ("_ms", " of ms"), ("_ns", " of ns")];
    let unit = units.iter().find(|(end, _)| key.ends_with(end));
    let unit = unit.filter(|_| expected == "a whole number");
    let unit = unit.map_or("", |(_, unit)| unit);
    format!("{about}{key}: expected {expected}{unit}, found {value}")
}

/// The keys set in a piece of TOML.
fn keys(part: &str) -> Vec<&str> {
    let assignments = part.lines().filter_map(|line| line.split_once('='));
    let keys = assignments.map(|(key, _)| key.trim());
    keys.filter(|key| !key.contains(['"', ' ', '#'])).collect()
}

#[cfg(test)]
mod tests {
    use punctual_model::suite::{Suite, SuiteError};

    use super::*;

    fn said(text: &str) -> String {
        match Suite::parse(text).unwrap_err() {
            SuiteError::Form(error) => in_file(Path::new("s.toml"), text, &error).to_string(),
            other => other.to_string(),
        }
    }

    const SUITE: &str = "name = \"s\"\nsummary = \"\"\n[[step]]\nprobe = \"timer\"\n";

    #[test]
    fn a_misspelt_word_is_named_with_the_one_that_was_meant() {
        let text = "name = \"s\"\nsummary = \"\"\n[[step]]\nprob = \"timer\"\n";
        let missing = said(text);
        assert!(
            missing.starts_with("s.toml:3: missing field `probe`; did you mean it by prob?"),
            "{missing}"
        );
        let unknown = said(&text.replace("summary", "sumary").replace("prob ", "probe "));
        assert!(
            unknown.starts_with("s.toml:2: ") && unknown.ends_with("did you mean summary?"),
            "{unknown}"
        );
    }

    #[test]
    fn a_table_where_a_list_belongs_is_named_whether_there_are_one_or_two() {
        let limit = "[limit]\nprobe = \"timer\"\nwhat = \"worst\"\nat_most = \"9 us\"\n";
        let one = said(&format!("{SUITE}{limit}"));
        assert_eq!(one, "s.toml:5: expected [[limit]], found [limit]");
        let two = said(&format!("{SUITE}{limit}{limit}"));
        assert_eq!(two, "s.toml:9: expected [[limit]], found [limit]");
        let worker = said(&format!(
            "{SUITE}[load.mine]\nsummary = \"\"\n[load.mine.worker]\nrun = [\"ls\"]\n"
        ));
        assert_eq!(
            worker,
            "s.toml:7: expected [[load.mine.worker]], found [load.mine.worker]"
        );
        // What is twice and no list is twice.
        let twice = said(&format!("{SUITE}[load.a]\nsummary = \"\"\n[load.a]\n"));
        assert_eq!(twice, "s.toml:7: duplicate key");
    }

    #[test]
    fn a_fault_is_in_one_line_with_the_line_in_which_it_stands() {
        let limit = "[[limit]]\nprobe = \"timer\"\nwhat = \"worst\"\nat_most = \"9 us\"\n";
        let second = limit.replace("\"worst\"", "\"max\"");
        let wrong = said(&format!("{SUITE}{limit}{second}"));
        assert!(
            wrong.starts_with("s.toml:11: what: expected worst, ")
                && wrong.ends_with("found \"max\""),
            "{wrong}"
        );
        let open = said(&format!("{SUITE}load = \"idle\n"));
        assert!(open.starts_with("s.toml:5: "), "{open}");
        assert_eq!((line_of("", 0), line_of("a\nb\n", 4)), (1, 2));
    }

    #[test]
    fn a_misspelt_parameter_is_named_with_the_one_that_was_meant() {
        let said =
            plain("probe \"timer\": unknown field `sampls`, expected one of `samples`, `cpus`");
        assert!(said.ends_with("did you mean samples?"), "{said}");
    }

    #[test]
    fn a_parameter_of_another_type_is_named_with_its_unit() {
        let said = |text: &str| {
            let params: Table = toml::from_str(text).unwrap();
            let error = punctual_agent::probes::parse("timer", &params).unwrap_err();
            in_parameters(&error, &params)
        };
        assert_eq!(
            said("interval_us = \"1000us\"\nsamples = 9"),
            "probe \"timer\": interval_us: expected a whole number of µs, found \"1000us\""
        );
        assert_eq!(
            said("samples = 1.5"),
            "probe \"timer\": samples: expected a whole number, found 1.5"
        );
        // What is no fault of one value's type stays as it is.
        assert!(said("samples = 0").contains("from 1"));
        let misspelt = said("sampls = 5");
        assert!(misspelt.ends_with("did you mean samples?"), "{misspelt}");
    }

    #[test]
    fn kinds_of_values_have_ordinary_names() {
        let text =
            "name = \"s\"\nsummary = \"\"\nmemory_mib = \"much\"\n[[step]]\nprobe = \"timer\"\n";
        assert!(
            said(text).contains("expected a whole number"),
            "{}",
            said(text)
        );
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Faults in a TOML file, described for whoever wrote it.

use crate::error::did_you_mean;

/// Describes an error in `text`, with the word that was probably meant.
pub(crate) fn explain(text: &str, error: &toml::de::Error) -> String {
    let said = plain(error.to_string().trim_end());
    // An error of a whole table is at its head; its keys are from there to the next one.
    let at = error.span().map_or(0, |span| span.start);
    let part = text.get(at..).unwrap_or(text);
    let part = part.find("\n[").map_or(part, |end| &part[..end]);
    if let Some(line) = faulty_line(part, error.message()) {
        let before = text.get(..at).unwrap_or_default();
        let number = before.matches('\n').count() + 1 + line;
        return at_line(text, number, error.message());
    }
    let missing = error.message().strip_prefix("missing field `");
    let Some((missing, _)) = missing.and_then(|rest| rest.split_once('`')) else {
        return said;
    };
    let hint = did_you_mean(missing, &keys(part));
    said + &hint.replace("did you mean", "did you mean it by")
}

/// The line of a table, counted from 0, that sets the key in the message `at_most: expected …`.
fn faulty_line(part: &str, message: &str) -> Option<usize> {
    let (about, _) = message.split_once(": ")?;
    let key = |line: &str| line.split_once('=').map(|(key, _)| key.trim() == about);
    part.lines().position(|line| key(line) == Some(true))
}

/// A message about a line, in the form that the TOML reader uses.
fn at_line(text: &str, number: usize, message: &str) -> String {
    let line = text.lines().nth(number - 1).unwrap_or_default();
    let margin = " ".repeat(number.to_string().len());
    let marks = "^".repeat(line.trim_end().chars().count());
    format!(
        "TOML parse error at line {number}, column 1\n{margin} |\n{number} | {line}\n\
         {margin} | {marks}\n{message}"
    )
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
            SuiteError::Form(error) => explain(text, &error),
            other => other.to_string(),
        }
    }

    #[test]
    fn a_misspelt_word_is_named_with_the_one_that_was_meant() {
        let text = "name = \"s\"\nsummary = \"\"\n[[step]]\nprob = \"timer\"\n";
        let missing = said(text);
        assert!(missing.contains("did you mean it by prob?"), "{missing}");
        let unknown = said(&text.replace("summary", "sumary").replace("prob ", "probe "));
        assert!(unknown.contains("did you mean summary?"), "{unknown}");
    }

    #[test]
    fn a_misspelt_parameter_is_named_with_the_one_that_was_meant() {
        let said =
            plain("probe \"timer\": unknown field `sampls`, expected one of `samples`, `cpus`");
        assert!(said.ends_with("did you mean samples?"), "{said}");
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

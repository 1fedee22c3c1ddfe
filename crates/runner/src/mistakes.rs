//! What is wrong with a TOML file, in words for whoever wrote it.

use crate::error::did_you_mean;

/// The text of an error in `text`, with the word that was probably meant.
pub(crate) fn explain(text: &str, error: &toml::de::Error) -> String {
    let said = plain(error.to_string().trim_end());
    let quoted: Vec<&str> = error.message().split('`').skip(1).step_by(2).collect();
    let hint = match quoted.as_slice() {
        [found, known @ ..] if error.message().starts_with("unknown") => did_you_mean(found, known),
        [missing] if error.message().starts_with("missing") => {
            let part = error.span().and_then(|span| text.get(span)).unwrap_or(text);
            let close = did_you_mean(missing, &keys(part));
            close.replace("did you mean", "did you mean it by")
        }
        _ => String::new(),
    };
    format!("{said}{hint}")
}

/// The words of Rust for kinds of values, in ordinary words.
pub(crate) fn plain(said: &str) -> String {
    let mut said = said.to_owned();
    for word in ["u8", "u16", "u32", "u64", "usize", "i64"] {
        said = said.replace(&format!("expected {word}"), "expected a whole number");
    }
    said.replace("expected f64", "expected a number")
}

/// The keys that are set in a piece of TOML.
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
        let unknown = said(&text.replace("summary", "sumary"));
        assert!(unknown.contains("did you mean summary?"), "{unknown}");
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

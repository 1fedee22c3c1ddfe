// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files of claims with which a real machine is compared: those that come with Punctual, and the
//! user's own.

use std::path::{Path, PathBuf};

use include_dir::{Dir, include_dir};
use punctual_published::{Claims, parse_claims};

use crate::{Error, data_files, mistakes};

static CLAIMS: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/../../claims");

/// The claims with this name, or in the file at this path.
///
/// # Errors
/// If there is no such file, it cannot be read, or it is not in the form of claims.
pub fn find(name_or_path: &str) -> Result<Claims, Error> {
    if data_files::is_path(name_or_path) {
        let path = Path::new(name_or_path);
        return parsed(path, &data_files::read(path)?);
    }
    let texts: Vec<(PathBuf, String)> = data_files::all("claims", &CLAIMS)?;
    let known: Vec<String> = texts
        .iter()
        .map(|(path, _)| data_files::stem(path))
        .collect();
    // The user's own come last, and take the place of others of their name.
    if let Some(at) = known.iter().rposition(|name| name == name_or_path) {
        let (path, text) = &texts[at];
        return parsed(path, text);
    }
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    Err(Error::unknown("file of claims", name_or_path, &known))
}

fn parsed(path: &Path, text: &str) -> Result<Claims, Error> {
    parse_claims(path, text).map_err(|error| mistakes::in_published(path, text, &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_with_it_can_be_read() {
        let claims = find("docs").unwrap();
        assert!(claims.claims.len() > 10);
        assert!(crate::suites::find(&claims.suite).is_ok());
        let error = find("dosc").unwrap_err().to_string();
        assert!(error.contains("docs"), "{error}");
    }

    #[test]
    fn what_is_wrong_is_said_with_file_and_line() {
        let error = parsed(Path::new("mine.toml"), "sumary = \"\"\n").unwrap_err();
        let error = error.to_string();
        assert!(
            error.starts_with("mine.toml:1: unknown field `sumary`, "),
            "{error}"
        );
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Limits: those of a suite, and those in files of their own.

use std::io;
use std::path::Path;

use punctual_agent::probes;
use punctual_model::Limit;
use serde::Deserialize;

use crate::data_files::{read, wrong};
use crate::{Error, mistakes, suites};

/// A file of limits.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(rename = "limit", default)]
    limits: Vec<Limit>,
}

/// The limits in a file; returns an error if there are none.
pub fn in_file(path: &Path) -> Result<Vec<Limit>, Error> {
    let text = read(path).map_err(|error| match error {
        Error::Io { error, .. } if error.kind() == io::ErrorKind::NotFound => {
            Error::Request(format!(
                "expected a file of limits, found no {}: `punctual judge --help` shows one",
                path.display()
            ))
        }
        other => other,
    })?;
    parse(path, &text)
}

/// The limits in a text.
pub(crate) fn parse(path: &Path, text: &str) -> Result<Vec<Limit>, Error> {
    let file: File = toml::from_str(text).map_err(|error| mistakes::in_file(path, text, &error))?;
    if file.limits.is_empty() {
        return Err(wrong(path, "expected a [[limit]], found none"));
    }
    check(&file.limits).map_err(|reason| wrong(path, &reason))?;
    Ok(file.limits)
}

/// Returns true if a text has limits, and nothing else.
pub(crate) fn is_all_of(text: &str) -> bool {
    let table: Option<toml::Table> = toml::from_str(text).ok();
    table.is_some_and(|table| !table.is_empty() && table.keys().all(|key| key == "limit"))
}

/// The limits of the suite of this name or in this file; returns an error if it has none.
pub fn of_suite(name_or_path: &str) -> Result<Vec<Limit>, Error> {
    let limits = suites::find(name_or_path)?.limits;
    if limits.is_empty() {
        return Err(Error::Request(format!(
            "suite \"{name_or_path}\" has no [[limit]]: name a file that has, by --limits"
        )));
    }
    Ok(limits)
}

/// Checks that each limit names a known probe.
pub(crate) fn check(limits: &[Limit]) -> Result<(), String> {
    for (limit, number) in limits.iter().zip(1..) {
        check_probe(limit).map_err(|unknown| format!("limit {number}: {unknown}"))?;
    }
    Ok(())
}

/// Checks that a limit names a known probe.
pub(crate) fn check_probe(limit: &Limit) -> Result<(), String> {
    let known: Vec<&str> = probes::ALL.iter().map(|probe| probe.name).collect();
    if known.contains(&limit.probe.as_str()) {
        return Ok(());
    }
    Err(Error::unknown("probe", &limit.probe, &known).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> String {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("limits.toml");
        std::fs::write(&path, text).unwrap();
        in_file(&path).unwrap_err().to_string()
    }

    #[test]
    fn what_is_wrong_is_said_with_file_and_line() {
        let sound = "# mine\n[[limit]]\nprobe = \"timer\"\nwhat = \"worst\"\nat_most = \"9 us\"\n";
        let error = said(&sound.replace("9 us", "9"));
        assert!(
            error.contains("limits.toml:5: at_most: expected a time with its unit, such as "),
            "{error}"
        );
        assert_eq!(error.lines().count(), 1, "{error}");
        let both = said(&format!("{sound}at_least = \"3 us\"\n"));
        assert!(both.contains("limits.toml:2: "), "{both}");
        let error = said(&sound.replace("at_most", "atmost"));
        assert!(error.contains("limits.toml:5: "), "{error}");
        assert!(error.contains("did you mean at_most?"), "{error}");
        let error = said(&sound.replace("[[limit]]", "[limit]"));
        assert!(
            error.ends_with("limits.toml:2: expected [[limit]], found [limit]"),
            "{error}"
        );
        let error = said(&sound.replace("timer", "timr"));
        assert!(
            error.contains("limit 1") && error.contains("did you mean timer?"),
            "{error}"
        );
        assert!(said("").ends_with("expected a [[limit]], found none"));
        let none = in_file(Path::new("/none/limits.toml")).unwrap_err();
        assert!(none.is_request());
        assert_eq!(
            none.to_string(),
            "expected a file of limits, found no /none/limits.toml: `punctual judge --help` shows \
             one"
        );
    }

    #[test]
    fn a_suite_that_comes_along_may_have_limits() {
        let limits = of_suite("latest-stable").unwrap();
        assert!(
            limits.iter().all(|limit| limit.name.is_some()),
            "{limits:?}"
        );
        let none = of_suite("demo").unwrap_err().to_string();
        assert!(none.contains("has no [[limit]]"), "{none}");
    }
}

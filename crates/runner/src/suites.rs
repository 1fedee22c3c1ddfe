//! Suites: those that come with Punctual, and the user's own.
//!
//! A user's file in `~/.config/punctual/suites` takes the place of one of the same name that
//! comes with Punctual.

use std::collections::BTreeMap;
use std::path::Path;

use include_dir::{Dir, include_dir};
use punctual_model::suite::Suite;

use crate::Error;
use crate::data_files::{self, wrong};

static SUITES: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/../../suites");

/// All suites by name.
pub fn all() -> Result<BTreeMap<String, Suite>, Error> {
    let mut suites = BTreeMap::new();
    for (path, text) in data_files::all("suites", &SUITES)? {
        let suite = parse(&path, &text)?;
        suites.insert(suite.name.clone(), suite);
    }
    Ok(suites)
}

/// The suite of that name, or in that file.
pub fn find(name_or_path: &str) -> Result<Suite, Error> {
    if data_files::is_path(name_or_path) {
        let path = Path::new(name_or_path);
        return parse(path, &data_files::read(path)?);
    }
    let mut suites = all()?;
    suites.remove(name_or_path).ok_or_else(|| {
        let known: Vec<&str> = suites.keys().map(String::as_str).collect();
        Error::unknown("suite", name_or_path, &known)
    })
}

fn parse(path: &Path, text: &str) -> Result<Suite, Error> {
    Suite::parse(text).map_err(|error| wrong(path, &error.to_string()))
}

#[cfg(test)]
mod tests {
    use punctual_agent::probes;

    use super::*;
    use crate::loads;

    #[test]
    fn every_suite_that_comes_along_can_be_carried_out() {
        let loads = loads::all().unwrap();
        for (path, text) in data_files::all("suites", &SUITES).unwrap() {
            let suite = parse(&path, &text).unwrap();
            assert_eq!(suite.name, data_files::stem(&path));
            assert!(!suite.subjects.is_empty(), "{}", suite.name);
            let plan = suite.plan(&suite.steps, &loads, 1).unwrap();
            for step in &plan.steps {
                probes::parse(&step.probe, &step.params).map(drop).unwrap();
            }
        }
    }
}

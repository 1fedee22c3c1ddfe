// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sources: the kernels that can be fetched by name.
//!
//! Each is a file in `kernels/` at the top of the repository, and part of this program.

use include_dir::{Dir, include_dir};
use punctual_model::Architecture;
use serde::Deserialize;

static FILES: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/../../kernels");

/// A kernel that can be fetched as a package of the distribution.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// The name that users give: `debian-6.12-rt`.
    pub id: String,
    /// One line for tables.
    pub summary: String,
    /// An extended regular expression for the names of packages; the newest is taken,
    /// unless an id names a version (`debian-6.12@6.12.117`).
    pub package: String,
    /// The architecture of its processor; if it is not the system's, `suites` are needed.
    #[serde(default)]
    pub architecture: Architecture,
    /// The suites of Debian that have it (`bullseye-security`); empty for those of the system.
    #[serde(default)]
    pub suites: Vec<String>,
    /// Boot arguments with which it is always started.
    #[serde(default)]
    pub boot: String,
    /// The releases of its line.
    pub releases: Option<Releases>,
}

/// All releases of a line that the distribution still has.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Releases {
    /// An extended regular expression for the names of their packages.
    pub package: String,
    /// The suites of Debian that have them.
    pub suites: Vec<String>,
}

/// The error for a file in `kernels/` that is not a source.
#[derive(Debug, thiserror::Error)]
#[error("kernels/{file}: expected a kernel source with id, summary and package, found: {error}")]
pub struct SourceError {
    file: String,
    error: toml::de::Error,
}

/// All sources, sorted by name.
pub(super) fn all() -> Result<Vec<Source>, SourceError> {
    let mut sources = FILES
        .files()
        .filter(|file| file.path().extension().is_some_and(|end| end == "toml"))
        .map(parse)
        .collect::<Result<Vec<_>, _>>()?;
    sources.sort_by(|a, b| a.id.cmp(&b.id));
    Ok(sources)
}

fn parse(file: &include_dir::File<'_>) -> Result<Source, SourceError> {
    let text = String::from_utf8_lossy(file.contents());
    toml::from_str(&text).map_err(|error| SourceError {
        file: file.path().display().to_string(),
        error,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_file_is_a_source_of_its_own_name() {
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../kernels");
        let mut names: Vec<String> = std::fs::read_dir(directory)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter_map(|name| name.strip_suffix(".toml").map(str::to_owned))
            .collect();
        names.sort();
        let ids: Vec<String> = all().unwrap().into_iter().map(|source| source.id).collect();
        assert_eq!(ids, names, "left: in the program, right: in kernels/");
        assert!(ids.contains(&"debian-6.12-rt".to_owned()));
    }

    #[test]
    fn suites_are_named_for_another_architecture() {
        for source in all().unwrap() {
            let of_system = source.architecture == Architecture::Amd64;
            assert!(of_system || !source.suites.is_empty(), "{}", source.id);
            assert!(of_system || source.package.contains(source.architecture.debian()));
        }
    }

    #[test]
    fn the_pattern_of_a_package_is_anchored() {
        for source in all().unwrap() {
            let releases = source.releases.as_ref().map(|releases| &releases.package);
            for package in releases.into_iter().chain([&source.package]) {
                assert!(package.starts_with('^') && package.ends_with('$'));
            }
            assert!(crate::id::KernelId::parse(&source.id).is_ok_and(|id| id.version.is_none()));
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Places of labgrid: boards that are acquired, switched on and reached by `labgrid-client`.
//!
//! What it is told, and what its answers mean, is here. What it takes from its own environment
//! (`LG_COORDINATOR`, `LG_USERNAME`, `LG_ENV`, …) it takes from Punctual's.

mod client;
mod held;

use std::path::PathBuf;
use std::str::FromStr;

pub use client::{Client, VARIABLE};
pub(crate) use client::{complaint, fault, shown};
pub use held::{Held, Notice, Tell};

/// Why a place cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no `labgrid-client`.
    #[error(
        "expected labgrid's client as {program}, found none that runs ({error}): install it (`pip install labgrid`), or name it by {VARIABLE}"
    )]
    NoClient {
        /// What was looked for.
        program: String,
        /// What the system says.
        error: String,
    },
    /// There is no such place, or no coordinator.
    #[error("labgrid:{place}: {said} (the coordinator is the one that LG_COORDINATOR names)")]
    Unknown {
        /// The place.
        place: String,
        /// What `labgrid-client` says.
        said: String,
    },
    /// `labgrid-client` shows a place as no known version does.
    #[error("labgrid:{place}: expected a place as `labgrid-client show` shows it, found {found:?}")]
    Shown {
        /// The place.
        place: String,
        /// What it shows.
        found: String,
    },
    /// Somebody else has it.
    #[error("labgrid:{place} is held by {holder}: {said}")]
    HeldByOther {
        /// The place.
        place: String,
        /// Who has it, `HOST/USER`.
        holder: String,
        /// What `labgrid-client` says.
        said: String,
    },
    /// Another process of Punctual uses it.
    #[error("labgrid:{place} is in use by another run of Punctual on this machine")]
    InUse {
        /// The place.
        place: String,
    },
    /// It is not acquired.
    #[error("labgrid:{place} cannot be acquired: {said}")]
    NotAcquired {
        /// The place.
        place: String,
        /// What `labgrid-client` says.
        said: String,
    },
    /// Its power is not switched.
    #[error("labgrid:{place}: its power cannot be switched: {said}")]
    Power {
        /// The place.
        place: String,
        /// What `labgrid-client` says.
        said: String,
    },
    /// Its strategy does not get there.
    #[error("labgrid:{place} does not get to the state {state}: {said}")]
    State {
        /// The place.
        place: String,
        /// The state.
        state: String,
        /// What `labgrid-client` says.
        said: String,
    },
    /// A file of this machine cannot be used.
    #[error("{}: {error}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        error: std::io::Error,
    },
}

/// What `--bench labgrid:` names: `PLACE[:/DIRECTORY]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// As `labgrid-client -p` takes it: a name, a part of one, an alias, or `+TOKEN`.
    pub name: String,
    /// The directory there; the usual one where none is named.
    pub directory: Option<String>,
}

/// What is done with a place before anything is measured there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preparation {
    /// The file that describes how places are driven; `None` for what `LG_ENV` names, if
    /// anything.
    pub environment: Option<PathBuf>,
    /// Whether its power is switched off and on.
    pub power_cycle: bool,
    /// The state that its strategy has it brought to.
    pub state: Option<String>,
}

impl Preparation {
    /// Whether the place may have to boot.
    pub fn boots(&self) -> bool {
        self.power_cycle || self.state.is_some()
    }
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, directory) = match text.split_once(":/") {
            Some((name, directory)) => (name, Some(format!("/{directory}"))),
            None => (text, None),
        };
        let is_part = |c: char| !c.is_whitespace() && !c.is_control();
        let is_name = !name.is_empty() && !name.starts_with(['-', '/', ':']);
        if !is_name || !name.chars().all(is_part) {
            return Err(format!(
                "expected PLACE or PLACE:/DIRECTORY, found \"{text}\""
            ));
        }
        let name = name.to_owned();
        Ok(Self { name, directory })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_named_with_a_directory_or_without() {
        let parse = |text: &str| Place::from_str(text).map(|place| (place.name, place.directory));
        let of = |name: &str, directory: Option<&str>| {
            Ok((name.to_owned(), directory.map(ToOwned::to_owned)))
        };
        assert_eq!(parse("rack1"), of("rack1", None));
        assert_eq!(parse("rack1:/data/x"), of("rack1", Some("/data/x")));
        assert_eq!(parse("me:rack1"), of("me:rack1", None));
        assert_eq!(parse("+TOKEN"), of("+TOKEN", None));
        for wrong in ["", ":/data", "-p", "/data", "a b", "a\n"] {
            assert!(parse(wrong).unwrap_err().contains("expected PLACE"));
        }
    }
}

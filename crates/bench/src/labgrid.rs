// SPDX-License-Identifier: MIT OR Apache-2.0
//! Places of labgrid: boards that are acquired, switched on and reached by `labgrid-client`.
//!
//! The orders to `labgrid-client` and the meaning of its answers are here. Its environment
//! variables (`LG_COORDINATOR`, `LG_USERNAME`, `LG_ENV`, …) come from Punctual's environment.

mod client;
mod held;

use std::path::PathBuf;
use std::str::FromStr;

pub use client::{Client, VARIABLE};
pub(crate) use client::{complaint, fault, shown};
pub use held::{Held, Notice, Tell};

/// The reason why a place cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// `labgrid-client` is missing or does not run.
    #[error(
        "expected labgrid's client as {program}, found none that runs ({error}): install it (`pip install labgrid`), or name it by {VARIABLE}"
    )]
    NoClient {
        /// The command that was looked for.
        program: String,
        /// The error that the system reports.
        error: String,
    },
    /// There is no such place, or no coordinator.
    #[error("labgrid:{place}: {said} (the coordinator is the one that LG_COORDINATOR names)")]
    Unknown {
        /// The place.
        place: String,
        /// The complaint of `labgrid-client`.
        said: String,
    },
    /// `labgrid-client` shows a place in a way that no known version does.
    #[error("labgrid:{place}: expected a place as `labgrid-client show` shows it, found {found:?}")]
    Shown {
        /// The place.
        place: String,
        /// The output of `labgrid-client`.
        found: String,
    },
    /// Somebody else holds the place.
    #[error("labgrid:{place} is held by {holder}: {said}")]
    HeldByOther {
        /// The place.
        place: String,
        /// The holder, as `HOST/USER`.
        holder: String,
        /// The complaint of `labgrid-client`.
        said: String,
    },
    /// Another process of Punctual uses the place.
    #[error("labgrid:{place} is in use by another run of Punctual on this machine")]
    InUse {
        /// The place.
        place: String,
    },
    /// The place could not be acquired.
    #[error("labgrid:{place} cannot be acquired: {said}")]
    NotAcquired {
        /// The place.
        place: String,
        /// The complaint of `labgrid-client`.
        said: String,
    },
    /// The power of the place could not be switched.
    #[error("labgrid:{place}: its power cannot be switched: {said}")]
    Power {
        /// The place.
        place: String,
        /// The complaint of `labgrid-client`.
        said: String,
    },
    /// The strategy of the place did not reach the state.
    #[error("labgrid:{place} does not get to the state {state}: {said}")]
    State {
        /// The place.
        place: String,
        /// The state.
        state: String,
        /// The complaint of `labgrid-client`.
        said: String,
    },
    /// A file of this machine cannot be used.
    #[error("{}: {error}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The error.
        error: std::io::Error,
    },
}

/// The place that `--bench labgrid:` names, as `PLACE[:/DIRECTORY]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The name in the form that `labgrid-client -p` takes: a name, a part of one, an alias, or
    /// `+TOKEN`.
    pub name: String,
    /// The directory on the board; `None` for the usual one.
    pub directory: Option<String>,
}

/// Steps to take with a place before anything is measured there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preparation {
    /// The file that describes how places are driven; `None` for the one that `LG_ENV` names, if
    /// any.
    pub environment: Option<PathBuf>,
    /// True if the power is switched off and on.
    pub power_cycle: bool,
    /// The state to which the strategy brings the place.
    pub state: Option<String>,
}

impl Preparation {
    /// Returns true if the place may have to boot.
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

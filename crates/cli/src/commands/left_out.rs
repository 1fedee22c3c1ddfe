// SPDX-License-Identifier: MIT OR Apache-2.0
//! Commands without code in this build: `./demo` builds those that measure, `./build` builds all.

use std::ffi::OsString;
use std::iter;

use anyhow::Result;
use clap::Args;

use crate::{ExitStatus, UsageError};

/// Defines a command of this name, which only says how to get it.
macro_rules! left_out {
    ($command:ident, $name:literal, $feature:literal, $about:literal) => {
        #[cfg(not(feature = $feature))]
        #[doc = $about]
        #[derive(Debug, Args)]
        pub struct $command {
            /// What it would be given
            #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
            words: Vec<OsString>,
        }

        #[cfg(not(feature = $feature))]
        impl $command {
            /// # Errors
            /// Always.
            pub fn run(self) -> Result<ExitStatus> {
                Err(left_out($name, &self.words))
            }
        }
    };
}

left_out!(
    Serve,
    "serve",
    "serve",
    "Show runs to a team: not in this build, which `./build` completes"
);
left_out!(
    Completions,
    "completions",
    "manuals",
    "Print a completion script: not in this build, which `./build` completes"
);
left_out!(
    Man,
    "man",
    "manuals",
    "Print the manual page: not in this build, which `./build` completes"
);

/// The error for a missing command: the words that asked for it, and how to get it.
fn left_out(name: &str, words: &[OsString]) -> anyhow::Error {
    let words = words.iter().map(|word| word.to_string_lossy());
    let asked: Vec<_> = iter::once(name.into()).chain(words).collect();
    let asked = asked.join(" ");
    UsageError(format!(
        "`punctual {asked}` is not in this build, which has what ./demo needs: `./build` \
         makes target/release/punctual, which has all"
    ))
    .into()
}

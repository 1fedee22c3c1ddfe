// SPDX-License-Identifier: MIT OR Apache-2.0
//! In the place of `--live` where Punctual is built without it.

use std::sync::atomic::AtomicBool;

use anyhow::Result;
use punctual_runner::Observer;

use crate::UsageError;

/// Watches runs go on: there is no such thing in this build.
pub enum Live {}

impl Live {
    /// # Errors
    /// Always.
    pub fn begin(_: &'static AtomicBool) -> Result<Self> {
        let expected = "--live is not in this build, which has what ./demo needs: `./build` makes \
                        target/release/punctual, which has all";
        Err(UsageError(expected.to_owned()).into())
    }
}

impl Observer for Live {}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Replaces `--live` in a build without it.

use std::sync::atomic::AtomicBool;

use anyhow::Result;
use punctual_runner::Observer;

use crate::UsageError;

/// The live view, which does not exist in this build.
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

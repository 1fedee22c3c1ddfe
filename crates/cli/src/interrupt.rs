// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ctrl-C and its kin: the first asks for an orderly end, the second ends at once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context as _, Result};

static ASKED: AtomicBool = AtomicBool::new(false);
/// Whether the handler is there: who measures may also repeat.
static IS_HANDLED: Mutex<bool> = Mutex::new(false);

/// What a shell reports for a program that SIGINT has ended.
const KILLED_BY_SIGINT: i32 = 130;

/// From now on SIGINT, SIGTERM and SIGHUP set the flag that is returned.
pub fn flag() -> Result<&'static AtomicBool> {
    let mut is_handled = IS_HANDLED.lock().unwrap_or_else(PoisonError::into_inner);
    if !*is_handled {
        ctrlc::set_handler(|| {
            if ASKED.swap(true, Ordering::SeqCst) {
                // QEMU dies with this process, and the store shows its runs as interrupted.
                std::process::exit(KILLED_BY_SIGINT);
            }
        })
        .context("cannot handle Ctrl-C")?;
        *is_handled = true;
    }
    Ok(&ASKED)
}

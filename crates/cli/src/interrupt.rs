// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ctrl-C and its kin: the first asks for an orderly end, the second ends at once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

static ASKED: AtomicBool = AtomicBool::new(false);
static FIRST: OnceLock<Instant> = OnceLock::new();
/// True if the handler is installed: a command that measures may also repeat.
static IS_HANDLED: Mutex<bool> = Mutex::new(false);

/// The status that a shell reports for a program that SIGINT has ended.
const KILLED_BY_SIGINT: i32 = 130;

/// `timeout` and the like send a signal to a process and to its group: that counts as one request.
const ONCE: Duration = Duration::from_millis(500);

/// Makes SIGINT, SIGTERM and SIGHUP set the returned flag from now on.
pub fn flag() -> Result<&'static AtomicBool> {
    let mut is_handled = IS_HANDLED.lock().unwrap_or_else(PoisonError::into_inner);
    if !*is_handled {
        ctrlc::set_handler(|| {
            let first = FIRST.get_or_init(Instant::now);
            if ASKED.swap(true, Ordering::SeqCst) && first.elapsed() > ONCE {
                // QEMU dies with this process, and the store shows its runs as interrupted.
                std::process::exit(KILLED_BY_SIGINT);
            }
        })
        .context("cannot handle Ctrl-C")?;
        *is_handled = true;
    }
    Ok(&ASKED)
}

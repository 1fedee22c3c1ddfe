// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ctrl-C and its kin: the first asks for an orderly end, the second ends at once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

static ASKED: AtomicBool = AtomicBool::new(false);
static FIRST: OnceLock<Instant> = OnceLock::new();
/// Called before a second request ends the program.
static BEFORE_END: OnceLock<fn()> = OnceLock::new();
/// True if the handler is installed: a command that measures may also repeat.
static IS_HANDLED: Mutex<bool> = Mutex::new(false);

/// The status that a shell reports for a program that SIGINT has ended.
const KILLED_BY_SIGINT: i32 = 130;

/// `timeout` and the like send a signal to a process and to its group, and a key may repeat: both
/// count as one request.
const ONCE: Duration = Duration::from_millis(500);

/// Makes SIGINT, SIGTERM and SIGHUP set the returned flag from now on. A SIGHUP that is
/// ignored, as under `nohup`, stays so: then the measurement goes on when its user logs out.
pub fn flag() -> Result<&'static AtomicBool> {
    let mut is_handled = IS_HANDLED.lock().unwrap_or_else(PoisonError::into_inner);
    if !*is_handled {
        let mut signals = Signals::new(handled()).context("cannot handle Ctrl-C")?;
        thread::spawn(move || signals.forever().for_each(|_| ask()));
        *is_handled = true;
    }
    Ok(&ASKED)
}

/// The signals that ask for an end.
fn handled() -> Vec<i32> {
    let mut signals = vec![SIGINT, SIGTERM];
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    if !is_ignored(SIGHUP, &status) {
        signals.push(SIGHUP);
    }
    signals
}

/// Returns true if the process with this `/proc/PID/status` ignores a signal.
fn is_ignored(signal: i32, status: &str) -> bool {
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    ignored.is_some_and(|mask| mask & (1 << (signal - 1)) != 0)
}

/// Asks for an orderly end, as a signal does; a second request ends the program at once.
pub fn ask() {
    let was_asked = ASKED.swap(true, Ordering::SeqCst);
    let first = FIRST.get_or_init(Instant::now);
    if was_asked && is_second(first.elapsed()) {
        if let Some(before_end) = BEFORE_END.get() {
            before_end();
        }
        // QEMU dies with this process, and the store shows its runs as interrupted.
        std::process::exit(KILLED_BY_SIGINT);
    }
}

/// Calls this function before a second request ends the program: it gives back what a killed
/// program would keep, such as the terminal.
#[cfg(feature = "live")]
pub fn before_end(give_back: fn()) {
    _ = BEFORE_END.set(give_back);
}

/// Returns true if a request so long after the first one is a second one.
fn is_second(since_first: Duration) -> bool {
    since_first > ONCE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hang_up_that_nohup_has_ignored_stays_so() {
        let status = |mask: &str| format!("Name:\tpunctual\nSigIgn:\t{mask}\nSigCgt:\t0\n");
        assert!(is_ignored(SIGHUP, &status("0000000000001001")));
        assert!(!is_ignored(SIGHUP, &status("0000000000001000")));
        assert!(!is_ignored(SIGINT, &status("0000000000001001")));
        assert!(!is_ignored(SIGHUP, ""));
    }

    #[test]
    fn one_signal_that_comes_twice_and_a_key_that_repeats_are_one_request() {
        for (millis, expected) in [(0, false), (30, false), (500, false), (700, true)] {
            assert_eq!(is_second(Duration::from_millis(millis)), expected);
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The programs that people's scripts know, both ours and those of rt-tests, and the common form of
//! their output.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use rustix::process::{Pid, Signal, kill_process};

use crate::{Ended, programs};

/// Our program, by the link that `./build` makes.
///
/// # Panics
/// If it is missing.
pub fn ours(name: &str) -> PathBuf {
    programs().join("drop-in").join(name)
}

/// Runs our program to its end.
///
/// # Panics
/// If it cannot be started.
pub fn run_ours(name: &str, options: &[&str]) -> Ended {
    Ended::of(Command::new(ours(name)).args(options))
}

/// The original program, of the package rt-tests.
pub fn theirs(name: &str) -> PathBuf {
    PathBuf::from("/usr/bin").join(name)
}

/// Runs the original program to its end.
///
/// # Panics
/// If it cannot be started.
pub fn run_theirs(name: &str, options: &[&str]) -> Ended {
    Ended::of(Command::new(theirs(name)).args(options))
}

/// Returns true if this is root, who alone has real-time priorities, in their programs as in ours.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// A line with `#` for each number, including its sign and the spaces and zeros that fill its
/// column; a row of numbers becomes one `#`.
pub fn masked(line: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    for word in line.split([' ', '\t']).filter(|word| !word.is_empty()) {
        let mut mask = String::new();
        let mut letters = word.chars().peekable();
        while let Some(letter) = letters.next() {
            let letter = if letter.is_ascii_digit() { '#' } else { letter };
            // A timer of theirs that is very late gives a negative value.
            let is_sign = letter == '-'
                && (mask.is_empty() || mask.ends_with(':'))
                && letters.peek().is_some_and(char::is_ascii_digit);
            if !is_sign && (letter != '#' || !mask.ends_with('#')) {
                mask.push(letter);
            }
        }
        let mask = mask.replace("#.#", "#");
        // Both have either a hole or a number behind the colon, as it is wide.
        if words.last() != Some(&mask) || mask != "#" {
            words.push(mask);
        }
    }
    words.join(" ").replace(": #", ":#").replace("( #", "(#")
}

/// Each line masked in this way.
pub fn masked_lines(text: &str) -> Vec<String> {
    text.lines().map(masked).collect()
}

/// The positions at which columns of numbers begin and end, up to the first number that is too wide
/// for its column.
fn widths(line: &str) -> Vec<usize> {
    let is_wide = |text: &str| {
        let mut numbers = text.split(|letter: char| !letter.is_ascii_digit());
        numbers.any(|number| number.len() > 5)
    };
    let columns = line.match_indices(':');
    let mut widths = Vec::new();
    for ((place, _), behind) in columns.zip(line.split(':').skip(1)) {
        widths.push(place);
        if is_wide(behind) {
            break;
        }
    }
    widths
}

/// Returns true if columns are at the same positions, as far as both lines show them.
pub fn are_as_wide(ours: &str, theirs: &str) -> bool {
    let (ours, theirs) = (widths(ours), widths(theirs));
    ours.iter()
        .zip(&theirs)
        .all(|(ours, theirs)| ours == theirs)
}

/// The number of times that each thread of a process has waited.
pub fn waits(pid: u32) -> Vec<u64> {
    let threads = fs::read_dir(format!("/proc/{pid}/task"));
    let read = |thread: PathBuf| fs::read_to_string(thread.join("status")).ok();
    let waits = |status: String| {
        let mut lines = status.lines();
        lines.find_map(|line| {
            line.strip_prefix("voluntary_ctxt_switches:")?
                .trim()
                .parse()
                .ok()
        })
    };
    let threads = threads.into_iter().flatten().flatten();
    threads
        .filter_map(|thread| waits(read(thread.path())?))
        .collect()
}

/// Sends a signal to a process.
///
/// # Panics
/// If it does not exist.
pub fn send(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(pid as i32).unwrap(), signal).unwrap();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_are_masked_and_a_number_that_is_too_wide_ends_the_columns() {
        assert_eq!(masked("Act:-7 Max:  -12 -b 0-3"), "Act:# Max:# -b #-#");
        let line = "T: 0 (12345) Avg:   7 Max: 9";
        assert_eq!(widths(line), [1, 16, 25]);
        assert!(are_as_wide(line, "T: 0 (  123) Avg:123456 Max: 9"));
        assert!(!are_as_wide(line, "T: 0 (  123) Avg:  7 Max: 9"));
    }
}

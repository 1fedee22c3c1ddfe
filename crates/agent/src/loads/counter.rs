// SPDX-License-Identifier: MIT OR Apache-2.0
//! The amount of a worker's work, counted while it is done wherever that can be seen.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use punctual_model::plan::Count;
use rustix::fs::{MemfdFlags, memfd_create};

use crate::sys::memory;
use crate::sys::process::Usage;

/// The environment variable that names the file in which a worker counts.
pub const COUNTER_VARIABLE: &str = "PUNCTUAL_WORK";

/// Counts the work of one worker.
pub struct Counter {
    how: Count,
    /// The count from the worker's output.
    told: AtomicU64,
    /// The memory in which the worker counts by itself.
    own: Option<(File, &'static AtomicU64)>,
    /// The kernel's count before the worker began.
    before: u64,
}

impl Counter {
    /// Creates a counter that has counted nothing.
    pub fn new(how: &Count) -> io::Result<Self> {
        let own = (*how == Count::Counter).then(shared_number).transpose()?;
        Ok(Self {
            how: how.clone(),
            told: AtomicU64::new(0),
            own,
            before: match how {
                Count::EchoRequests => echo_requests(),
                _ => 0,
            },
        })
    }

    /// Returns true if work is seen while it is done; otherwise it is seen when a round has ended,
    /// or when the command reports it.
    pub fn is_live(&self) -> bool {
        !matches!(self.how, Count::Rounds | Count::After(_) | Count::Before(_))
    }

    /// Returns the file in which the worker is to count.
    pub fn path(&self) -> Option<PathBuf> {
        let (file, _) = self.own.as_ref()?;
        let process = std::process::id();
        Some(format!("/proc/{process}/fd/{}", file.as_raw_fd()).into())
    }

    /// Returns the count up to now, except for what is counted when a round ends; `running` is
    /// the usage of the processes that are running.
    pub fn amount(&self, running: Usage) -> u64 {
        match self.how {
            Count::Written => running.written,
            Count::EchoRequests => echo_requests().saturating_sub(self.before),
            _ => self.told(),
        }
    }

    /// Returns the count that the worker itself has reported up to now.
    pub fn told(&self) -> u64 {
        let number = self.own.as_ref().map_or(&self.told, |(_, number)| *number);
        number.load(Ordering::SeqCst)
    }

    /// Counts in a piece of its output; `line` is the last line, which was incomplete.
    pub fn feed(&self, piece: &[u8], line: &mut Vec<u8>) {
        let found = match &self.how {
            Count::Bytes => piece.len() as u64,
            Count::Lines => piece.split(|byte| *byte == b'\n').count() as u64 - 1,
            Count::After(_) | Count::Before(_) => {
                piece.iter().map(|byte| self.feed_byte(*byte, line)).sum()
            }
            Count::Rounds | Count::Written | Count::EchoRequests | Count::Counter => 0,
        };
        self.told.fetch_add(found, Ordering::SeqCst);
    }

    fn feed_byte(&self, byte: u8, line: &mut Vec<u8>) -> u64 {
        if byte != b'\n' {
            line.push(byte);
            return 0;
        }
        let text = String::from_utf8_lossy(line);
        let found = match &self.how {
            Count::After(before) => number_after(&text, before),
            Count::Before(after) => number_before(&text, after),
            _ => 0,
        };
        line.clear();
        found
    }
}

/// Creates a number in memory that others can map by a path.
fn shared_number() -> io::Result<(File, &'static AtomicU64)> {
    let file = File::from(memfd_create("punctual-work", MemfdFlags::CLOEXEC)?);
    file.set_len(8)?;
    let words = memory::words_of(&file, 1)?;
    Ok((file, &words[0]))
}

/// Returns the number in which this process, a worker of a load, counts its work. If nobody waits
/// for that, it is in memory that the process shares with the children that it forks.
pub fn own_counter() -> io::Result<&'static AtomicU64> {
    let words = match std::env::var_os(COUNTER_VARIABLE) {
        Some(path) => memory::words_of(&File::options().read(true).write(true).open(path)?, 1)?,
        None => memory::shared_words(1)?,
    };
    Ok(&words[0])
}

/// Returns the number of echo requests that this machine, or its network namespace, has sent:
/// `OutEchos` in the two lines `Icmp:` of `/proc/net/snmp`, the first of which has the names.
fn echo_requests() -> u64 {
    let text = fs::read_to_string("/proc/net/snmp").unwrap_or_default();
    parse_echo_requests(&text).unwrap_or(0)
}

fn parse_echo_requests(text: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("Icmp:"));
    let (names, numbers) = (lines.next()?, lines.next()?);
    let mut both = names.split_whitespace().zip(numbers.split_whitespace());
    both.find(|(name, _)| *name == "OutEchos")?.1.parse().ok()
}

/// Returns the whole number that follows `text` in a line; 0 if there is none.
fn number_after(line: &str, text: &str) -> u64 {
    let rest = line.split_once(text).map_or("", |(_, rest)| rest);
    let digits = rest.trim_start().split(no_digit).next();
    digits.and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

/// Returns the whole number that precedes `text` in a line; 0 if there is none.
fn number_before(line: &str, text: &str) -> u64 {
    let rest = line.split_once(text).map_or("", |(before, _)| before);
    let digits = rest.trim_end().rsplit(no_digit).next();
    digits.and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

fn no_digit(letter: char) -> bool {
    !letter.is_ascii_digit()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_counted_in_what_is_printed() {
        let count = |how: Count| {
            let counter = Counter::new(&how).unwrap();
            let mut line = Vec::new();
            counter.feed(b"messages: 12 of 13\nmess", &mut line);
            counter.feed(b"ages: 30\nnothing\n", &mut line);
            counter.amount(Usage::default())
        };
        assert_eq!(count(Count::After("messages:".into())), 42);
        assert_eq!(count(Count::Before(" of 13".into())), 12);
        assert_eq!(count(Count::Lines), 3);
        assert_eq!(count(Count::Bytes), 40);
        assert_eq!(count(Count::Rounds), 0);
    }

    #[test]
    fn a_worker_counts_in_memory_that_it_maps_by_a_path() {
        let counter = Counter::new(&Count::Counter).unwrap();
        let file = File::options()
            .read(true)
            .write(true)
            .open(counter.path().unwrap());
        let theirs = &memory::words_of(&file.unwrap(), 1).unwrap()[0];
        theirs.fetch_add(7, Ordering::SeqCst);
        assert_eq!(counter.amount(Usage::default()), 7);
    }

    #[test]
    fn echo_requests_are_the_column_of_that_name() {
        let text = "Icmp: InMsgs OutEchos OutEchoReps\nIcmp: 9 12 3\nUdp: OutEchos\nUdp: 5\n";
        assert_eq!(parse_echo_requests(text), Some(12));
        assert_eq!(parse_echo_requests("Icmp: InMsgs\nIcmp: 9\n"), None);
    }
}

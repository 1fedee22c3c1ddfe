// SPDX-License-Identifier: MIT OR Apache-2.0
//! The program of probe `app`: it is started, watched until it ends or is to end, and removed
//! without a trace.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use punctual_model::suite::{self, ROOT};
use punctual_model::{Nanos, Reason};

use crate::cycles::Thread;
use crate::loads::spawn_with;
use crate::probes::program::{MEASURED, not_started};
use crate::status_page;
use crate::sys::process::{self, Ended, Pid};
use crate::sys::sched;
use crate::sys::time;
use crate::threads;
use crate::tracer::threads::{MARKS_VARIABLE, ThreadEvents};

/// The most bytes of the program's output that are kept.
const OUTPUT_LIMIT: u64 = 1 << 20;

/// The time between two looks at whether the target is asked to end.
const LOOK: Nanos = Nanos::from_millis(100);

/// The priority of the guard that ends a program which leaves nobody the CPU.
const GUARD_PRIORITY: u8 = 99;

/// The time that a program which is asked to end has to do so, before it is killed.
const GRACE: Nanos = Nanos::from_millis(1_000);

/// The course of the program's run.
pub struct Ran {
    /// The number of its first process.
    pub leader: Pid,
    /// The way in which it ended, in words.
    pub end: String,
    /// The time for which it ran.
    pub lived: Nanos,
    /// The time at which it was asked to end; none if it ended by itself.
    pub stopped: Option<Nanos>,
    /// True if it ended by itself and failed: what it would have done is not known.
    pub has_failed: bool,
    /// The beginning of its output, including its errors.
    pub output: String,
    /// The number of further bytes of its output.
    pub not_kept: u64,
    /// The number of processes that were left when it had ended; they were killed.
    pub outlived_by: usize,
}

impl Ran {
    /// Explains why a thread has fewer cycles than it would have had.
    pub fn cut_short(&self, thread: &Thread) -> Option<String> {
        if self.has_failed {
            Some(format!("the program ended with {}", self.end))
        } else if thread.is_stuck {
            let name = &thread.name;
            Some(format!(
                "its thread {name} slept in the end, and no timer was to wake it"
            ))
        } else if thread.is_killed && self.stopped.is_none() {
            let name = &thread.name;
            Some(format!("a signal killed the process of its thread {name}"))
        } else if self.stopped.is_none() && self.outlived_by > 0 {
            Some("the program ended before what it left in the background, which was killed".into())
        } else {
            None
        }
    }

    /// Describes how it ended, with its last output.
    pub fn told_end(&self) -> String {
        let end = &self.end;
        if self.not_kept > 0 {
            return format!("it ended with {end}, and printed more than 1 MiB");
        }
        match self.output.lines().rfind(|line| !line.trim().is_empty()) {
            Some(last) => format!("it ended with {end}, and its last line is \"{last}\""),
            None => format!("it ended with {end}, and printed nothing"),
        }
    }
}

/// A program that is to run.
#[derive(Clone, Copy, Debug)]
pub struct Program<'a> {
    /// The program, after variables of its own, and its arguments.
    pub command: &'a [String],
    /// The time that it runs; then it is asked to end.
    pub duration: Nanos,
}

impl Program<'_> {
    /// Runs the program for the requested time, or until it ends.
    pub fn run(&self, events: &ThreadEvents) -> Result<Ran, Reason> {
        let named = |what: &dyn std::fmt::Display| format!("{}: {what}", self.command.join(" "));
        if std::process::id() == 1 {
            // Programs share memory and semaphores there. A guest is this process's own.
            let _ = fs::create_dir("/dev/shm");
        }
        let begin = time::now();
        let marks = events.marks();
        // Without an `env` of its own between: a thread's name is told when it leaves the CPU.
        let (variables, run) = suite::variables(self.command);
        let variables = variables.iter().filter_map(|word| word.split_once('='));
        let mut variables: Vec<(&str, &OsStr)> = variables
            .map(|(name, value)| (name, OsStr::new(value)))
            .collect();
        variables.push((MARKS_VARIABLE, marks.as_os_str()));
        let root = Path::new(ROOT);
        let root = (std::process::id() == 1 && root.is_dir()).then_some(root);
        let spawned = sched::as_ordinary(|| spawn_with(run, &variables, root));
        let (child, output) = spawned
            .and_then(|spawned| spawned)
            .map_err(|error| match root {
                None => not_started(run, &error),
                Some(_) => named(&error).into(),
            })?;
        let leader = process::id(&child);
        MEASURED.led_by(leader);
        thread::scope(|scope| {
            let (tell, ends) = mpsc::channel();
            let started = threads::start(scope, move || printed(output)).and_then(|printed| {
                let wait = move || {
                    let _ = tell.send(MEASURED.wait_for_end());
                };
                Ok((printed, threads::start(scope, wait)?))
            });
            let (goes_on, has_ended) = mpsc::channel();
            let guard = threads::start(scope, move || self.guard(&has_ended, events));
            let by_itself = started.is_ok() && ends_within(&ends, self.duration);
            let lived = time::now() - begin;
            let stopped = events.stop();
            if !by_itself {
                MEASURED.stop();
                if !ends_within(&ends, GRACE) {
                    MEASURED.kill();
                }
            }
            let (printed, waiter) = started?;
            waiter.join()?;
            // Also those in groups of their own: whoever reads what they print would wait for them.
            let with_marks = || process::with_variable(MARKS_VARIABLE, &marks);
            let mut left = with_marks();
            let (ended, _) = MEASURED.collect().map_err(|error| named(&error))?;
            if !by_itself {
                left = with_marks();
            }
            left.iter().copied().for_each(process::kill);
            drop(goes_on);
            let by_itself = !guard?.join()? && by_itself;
            stopped?;
            let (output, not_kept) = printed.join()?.map_err(|error| named(&error))?;
            Ok(Ran {
                leader,
                end: told(&ended, by_itself, left.len()),
                lived,
                stopped: (!by_itself).then(|| begin + self.duration),
                has_failed: by_itself && !ended.status.success(),
                output,
                not_kept,
                outlived_by: left.len(),
            })
        })
    }

    /// Ends the program in place of the thread that should do so, if that does not get the CPU: the
    /// program has it, at a real-time priority, and never waits. Returns true if this was needed.
    fn guard(&self, has_ended: &Receiver<()>, events: &ThreadEvents) -> bool {
        // Without the right to it nobody keeps this from running.
        let _ = sched::set_fifo(GUARD_PRIORITY);
        let is_over = |span: Nanos| {
            let span = Duration::from_nanos(span.0.unsigned_abs());
            has_ended.recv_timeout(span) != Err(RecvTimeoutError::Timeout)
        };
        if is_over(self.duration + LOOK) {
            return false;
        }
        // What it does from now on is no part of what is measured.
        let _ = events.stop();
        MEASURED.stop();
        if !is_over(GRACE) {
            MEASURED.kill();
        }
        true
    }
}

/// Waits for the program's end, or until the target is asked to end; returns true if the program
/// has ended. Between two looks at the latter, nothing of this gets the CPU.
fn ends_within(ends: &Receiver<io::Result<()>>, span: Nanos) -> bool {
    let last = time::now() + span;
    while !status_page::is_stop_requested() {
        let left = last - time::now();
        if left <= Nanos::ZERO {
            return false;
        }
        let look = Duration::from_nanos(left.min(LOOK).0.unsigned_abs());
        match ends.recv_timeout(look) {
            Err(RecvTimeoutError::Timeout) => {}
            Ok(_) | Err(RecvTimeoutError::Disconnected) => return true,
        }
    }
    false
}

fn told(ended: &Ended, by_itself: bool, left: usize) -> String {
    let end = match (by_itself, ended.status.code()) {
        (true, Some(code)) => format!("status {code}"),
        (true, None) => ended.status.to_string(),
        (false, Some(code)) => format!("status {code}, when it was asked to end"),
        (false, None) => "the signal that asked it to end".to_owned(),
    };
    match left {
        0 => end,
        1 => format!("{end}; 1 process that it had left in the background was killed"),
        left => format!("{end}; {left} processes that it had left in the background were killed"),
    }
}

/// Reads the program's output until its end. Only its beginning is kept; the further bytes
/// are counted.
fn printed(mut output: impl io::Read) -> io::Result<(String, u64)> {
    let mut kept = Vec::new();
    output.by_ref().take(OUTPUT_LIMIT).read_to_end(&mut kept)?;
    // It is read on, so that the program never waits for a reader.
    let not_kept = io::copy(&mut output, &mut io::sink())?;
    Ok((String::from_utf8_lossy(&kept).into_owned(), not_kept))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_program_prints_beyond_the_limit_is_counted() {
        let limit = OUTPUT_LIMIT as usize;
        let of = |length: usize| printed(&vec![b'x'; length][..]).unwrap();
        assert_eq!(of(3), ("xxx".into(), 0));
        let (kept, more) = of(limit + 7);
        assert_eq!((kept.len(), more), (limit, 7));
    }
}

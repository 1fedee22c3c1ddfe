// SPDX-License-Identifier: MIT OR Apache-2.0
//! A program that connects to boards (`ssh` or `labgrid-client`), and its end.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

/// Grace period for a client to end by itself once nobody speaks to it any more.
pub const GRACE: Duration = Duration::from_secs(2);

/// Grace period for a client to clean up after it was told to end.
const GRACE_OF_END: Duration = Duration::from_secs(5);

/// The most bytes that are kept of a client's complaints.
const COMPLAINTS: u64 = 64 << 10;

/// The interval between two looks.
const LOOK: Duration = Duration::from_millis(10);

/// The way in which a client is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It is killed at once: it leaves nothing behind.
    Killed,
    /// It ends by itself, or on SIGTERM: it has processes and files to clean up.
    Asked,
}

/// A running client.
#[derive(Debug)]
pub struct Client {
    /// Its process, which leads a group.
    pub child: Child,
    end: End,
}

/// The result of a client.
#[derive(Debug)]
pub struct Output {
    /// Its exit status.
    pub status: ExitStatus,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

impl Client {
    /// Starts a client.
    pub fn start(command: &mut Command, end: End) -> io::Result<Self> {
        command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Ctrl-C is for Punctual, which then sees to it that the target ends.
            .process_group(0);
        let child = command.spawn()?;
        Ok(Self { child, end })
    }

    /// Begins to take what the client complains of, up to a limit.
    pub fn complaints(&mut self) -> Option<JoinHandle<String>> {
        let stderr = self.child.stderr.take()?;
        Some(text_of(stderr.take(COMPLAINTS)))
    }

    /// Ends the client and everything that it has started.
    pub fn end(&mut self) {
        drop(self.child.stdin.take());
        let group = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        if self.end == End::Asked && !self.ends_within(GRACE) {
            let _ = group.map(|leader| kill_process(leader, Signal::TERM));
            if !self.ends_within(GRACE_OF_END) {
                let _ = group.map(|group| kill_process_group(group, Signal::KILL));
            }
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Waits for this time at most; returns true if the client has ended by itself by then.
    pub fn ends_within(&mut self, time: Duration) -> bool {
        let until = Instant::now() + time;
        loop {
            match self.child.try_wait() {
                Ok(None) if Instant::now() < until => thread::sleep(LOOK),
                Ok(None) => return false,
                Ok(Some(_)) | Err(_) => return true,
            }
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.end();
    }
}

/// Runs a client to its end; returns `None` if `cancel` became true before that.
pub fn output(
    command: &mut Command,
    end: End,
    input: Option<File>,
    cancel: &AtomicBool,
) -> io::Result<Option<Output>> {
    command.stdin(input.map_or_else(Stdio::null, Stdio::from));
    let mut client = Client::start(command, end)?;
    let stdout = client.child.stdout.take().map(text_of);
    let stderr = client.child.stderr.take().map(text_of);
    let status = loop {
        if let Some(status) = client.child.try_wait()? {
            break status;
        }
        if cancel.load(Ordering::SeqCst) {
            return Ok(None);
        }
        thread::sleep(LOOK);
    };
    let text = |reader: Option<JoinHandle<String>>| {
        let text = reader.map(JoinHandle::join).transpose();
        text.ok().flatten().unwrap_or_default()
    };
    Ok(Some(Output {
        status,
        stdout: text(stdout),
        stderr: text(stderr),
    }))
}

/// Reads everything that comes and converts it to text, whatever it is.
fn text_of(mut from: impl Read + Send + 'static) -> JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = from.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn what_a_client_prints_is_heard() {
        let going_on = AtomicBool::new(false);
        let mut command = sh("echo out; echo err >&2; exit 7");
        let output = output(&mut command, End::Killed, None, &going_on);
        let output = output.unwrap().unwrap();
        assert_eq!(output.status.code(), Some(7));
        assert_eq!((&*output.stdout, &*output.stderr), ("out\n", "err\n"));
    }

    #[test]
    fn a_client_that_is_not_wanted_any_more_is_ended() {
        let cancelled = AtomicBool::new(true);
        let mut command = sh("exec sleep 1000");
        let output = output(&mut command, End::Killed, None, &cancelled);
        assert!(output.unwrap().is_none());
    }

    #[test]
    fn a_client_that_is_asked_clears_away() {
        let directory = tempfile::tempdir().unwrap();
        let cleared = directory.path().join("cleared");
        let ready = directory.path().join("ready");
        let script = format!(
            "trap 'touch {}; exit' TERM; touch {}; while :; do sleep 0.1; done",
            cleared.display(),
            ready.display()
        );
        let mut client = Client::start(sh(&script).stdin(Stdio::null()), End::Asked).unwrap();
        while !ready.exists() {
            thread::sleep(LOOK);
        }
        client.end();
        assert!(cleared.exists());
    }
}

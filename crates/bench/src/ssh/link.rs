// SPDX-License-Identifier: MIT OR Apache-2.0
//! One connection: a client, with the target's end of the
//! [conversation](punctual_model::board) behind it.

use std::io::{self, Read, Write as _};
use std::process::{ChildStdin, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender, TryRecvError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use punctual_model::board::{Answer, Hello, Request};
use punctual_model::frame::{Decoder, Encoder, FrameError};

use super::client::{Client, GRACE};
use super::{Error, Route, shell};

/// A board that says nothing for this long is no longer reached: it says something each second.
const QUIET: Duration = Duration::from_secs(30);

/// The time that it may take to connect.
const FIRST: Duration = Duration::from_secs(90);

/// The interval at which the board is told that somebody is here.
const ALIVE: Duration = Duration::from_secs(10);

/// The interval at which the link checks whether it is still wanted.
const LOOK: Duration = Duration::from_millis(100);

/// The beginning of each frame.
const FRAME: &[u8] = b"PNCT";

/// The most bytes that a board may print before the first frame: its shell's start-up file may have
/// something to say.
const BEFORE: usize = 64 << 10;

/// The exit statuses of a shell that cannot run a program, or does not find it.
const NOT_RUN: [i32; 2] = [126, 127];

/// An answer, or the fault in what came.
type Heard = Result<Answer, FrameError>;

/// A connection.
#[derive(Debug)]
pub struct Link {
    route: Route,
    client: Client,
    requests: Option<ChildStdin>,
    encoder: Encoder,
    answers: Receiver<Heard>,
    complaints: Option<JoinHandle<String>>,
    has_heard: bool,
    heard: Instant,
    spoke: Instant,
}

impl Link {
    /// Begins to connect, with a command that ends in the target; does not wait for the connection.
    pub fn begin(route: &Route, words: &[&str]) -> Result<Self, Error> {
        let mut command = shell::command(route, words);
        command.stdin(Stdio::piped());
        let mut client = Client::start(&mut command, route.end())
            .map_err(|error| route.no_client(&command, &error))?;
        let (sender, answers) = mpsc::sync_channel(64);
        if let Some(stdout) = client.child.stdout.take() {
            thread::spawn(move || hear(stdout, &sender));
        }
        let complaints = client.complaints();
        Ok(Self {
            requests: client.child.stdin.take(),
            route: route.clone(),
            client,
            encoder: Encoder::default(),
            answers,
            complaints,
            has_heard: false,
            heard: Instant::now(),
            spoke: Instant::now(),
        })
    }

    /// Connects, and waits for the greeting of the target there.
    pub fn greet(
        route: &Route,
        program: &str,
        directory: &str,
        cancel: &AtomicBool,
    ) -> Result<Hello, Error> {
        let link = Self::begin(route, &[program, "board", directory])?;
        link.greeting(directory, cancel)
    }

    /// Waits for the greeting of the target in this directory.
    fn greeting(mut self, directory: &str, cancel: &AtomicBool) -> Result<Hello, Error> {
        let host = self.route.name().to_owned();
        let begun = Instant::now();
        loop {
            match self.answers.recv_timeout(LOOK) {
                Ok(Ok(Answer::Hello(hello))) => return Ok(hello),
                Err(RecvTimeoutError::Timeout) if cancel.load(Ordering::SeqCst) => {
                    return Err(Error::Interrupted);
                }
                Err(RecvTimeoutError::Timeout) if begun.elapsed() < FIRST => {}
                Err(RecvTimeoutError::Timeout) => {
                    let said = "it says nothing".into();
                    return Err(Error::Unreachable { host, said });
                }
                Ok(Err(FrameError::Magic { found, .. })) => {
                    let found = format!("{}…", String::from_utf8_lossy(&found));
                    return Err(Error::Shell { host, found });
                }
                heard => {
                    let said = match heard {
                        Ok(Err(fault)) => fault.to_string(),
                        _ => self.end(),
                    };
                    return Err(Error::Target {
                        host,
                        bench: self.route.bench(),
                        directory: directory.to_owned(),
                        said,
                    });
                }
            }
        }
    }

    /// Sends a request; a lost connection shows in a later call of [`Link::hear`].
    pub fn say(&mut self, request: &Request) {
        let frame = self.encoder.encode(request);
        if let Some(requests) = &mut self.requests {
            if requests.write_all(&frame).is_err() {
                self.requests = None;
            }
        }
        self.spoke = Instant::now();
    }

    /// The next answer, if there is one; an error if there will be no more.
    pub fn hear(&mut self) -> Result<Option<Answer>, String> {
        match self.answers.try_recv() {
            Ok(Ok(answer)) => {
                (self.heard, self.has_heard) = (Instant::now(), true);
                return Ok(Some(answer));
            }
            Ok(Err(error)) => return Err(error.to_string()),
            Err(TryRecvError::Disconnected) => return Err(self.why_over()),
            Err(TryRecvError::Empty) => {}
        }
        if self.heard.elapsed() > if self.has_heard { QUIET } else { FIRST } {
            return Err("the board says nothing any more".into());
        }
        if self.spoke.elapsed() > ALIVE {
            self.say(&Request::Alive);
        }
        Ok(None)
    }

    /// The name of the board.
    pub fn host(&self) -> &str {
        self.route.name()
    }

    /// The reason why nothing comes any more.
    fn why_over(&mut self) -> String {
        self.requests = None;
        // A client that is killed does not tell.
        self.client.ends_within(GRACE);
        let said = self.end();
        let status = self.client.child.wait().ok();
        let code = status.and_then(|status| status.code());
        if code.is_some_and(|code| NOT_RUN.contains(&code)) {
            return format!("the target was removed from the board: {said}");
        }
        said
    }

    /// Ends the connection; returns the last complaint.
    fn end(&mut self) -> String {
        self.requests = None;
        self.client.end();
        let complaints = self.complaints.take().map(JoinHandle::join);
        let text = complaints.map(Result::unwrap_or_default);
        text.map_or_else(String::new, |text| self.route.complaint(&text))
    }
}

#[cfg(test)]
impl Link {
    /// A link to nobody: the answers are what is sent to the other end, and no request is heeded.
    pub fn fake() -> (Self, SyncSender<Heard>) {
        Self::of("exec sleep 600")
    }

    /// The same, with a client of this script.
    fn of(script: &str) -> (Self, SyncSender<Heard>) {
        let (sender, answers) = mpsc::sync_channel(64);
        let mut command = std::process::Command::new("sh");
        command.args(["-c", script]).stdin(Stdio::null());
        let mut client = Client::start(&mut command, super::End::Killed).unwrap();
        let link = Self {
            requests: None,
            route: Route::Ssh("board".parse().unwrap()),
            encoder: Encoder::default(),
            answers,
            complaints: client.complaints(),
            client,
            has_heard: false,
            heard: Instant::now(),
            spoke: Instant::now(),
        };
        (link, sender)
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // What is at the other end sees that nobody speaks any more.
        self.requests = None;
    }
}

/// Passes on the board's answers until the connection ends.
fn hear(mut from: impl Read, sender: &SyncSender<Heard>) {
    let mut decoder = Decoder::default();
    let mut piece = vec![0; 1 << 16];
    // What has come before the first frame.
    let mut before = Some(Vec::new());
    loop {
        let piece = match from.read(&mut piece) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Ok(0) | Err(_) => return,
            Ok(length) => &piece[..length],
        };
        if let Some(mut come) = before.take() {
            come.extend_from_slice(piece);
            let begun = come.windows(FRAME.len()).position(|word| word == FRAME);
            match begun {
                Some(at) => decoder.feed(&come[at..]),
                // The decoder says what it is instead.
                None if come.len() > BEFORE => decoder.feed(&come),
                None => {
                    before = Some(come);
                    continue;
                }
            }
        } else {
            decoder.feed(piece);
        }
        while let Some(heard) = decoder.next_message().transpose() {
            let is_over = heard.is_err();
            if sender.send(heard).is_err() || is_over {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is heard of a board that prints this and ends, read in pieces of this size.
    fn heard(printed: &[u8], size: usize) -> Vec<Heard> {
        let (sender, answers) = mpsc::sync_channel(64);
        let pieces = Pieces(printed.chunks(size).collect());
        hear(pieces, &sender);
        drop(sender);
        answers.iter().collect()
    }

    /// A stream that comes in pieces.
    struct Pieces<'a>(std::collections::VecDeque<&'a [u8]>);

    impl Read for Pieces<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let Some(piece) = self.0.pop_front() else {
                return Ok(0);
            };
            buffer[..piece.len()].copy_from_slice(piece);
            Ok(piece.len())
        }
    }

    #[test]
    fn what_a_shell_prints_before_the_first_frame_is_passed_over() {
        let mut encoder = Encoder::default();
        let frames = [Answer::Alive, Answer::Gone].map(|answer| encoder.encode(&answer));
        for banner in ["", "Welcome to the board!\n", "PN\nP\nPNC\n"] {
            let printed = [banner.as_bytes(), &frames.concat()].concat();
            for size in [1, 3, 4096] {
                let expected = vec![Ok(Answer::Alive), Ok(Answer::Gone)];
                assert_eq!(heard(&printed, size), expected, "{banner} {size}");
            }
        }
        assert!(heard(b"Welcome\n", 4096).is_empty());
        let endless = vec![b'x'; BEFORE + 1];
        let found = heard(&endless, 4096);
        assert!(matches!(found[..], [Err(FrameError::Magic { .. })]));
    }

    #[test]
    fn only_what_is_no_frame_is_the_shells_doing() {
        let told = |fault| {
            let (link, board) = Link::fake();
            board.send(Err(fault)).unwrap();
            let greeting = link.greeting("/tmp", &AtomicBool::new(false));
            greeting.unwrap_err().to_string()
        };
        let banner = FrameError::Magic {
            frame: 0,
            found: *b"Welc",
        };
        let expected = "board: expected a POSIX shell, found one that answers \"Welc…\"";
        assert_eq!(told(banner), expected);
        let damaged = FrameError::Checksum {
            frame: 0,
            expected: 1,
            found: 2,
        };
        let expected = "board: the target does not run in /tmp: frame 0 is damaged: ";
        assert!(told(damaged).starts_with(expected));
    }

    #[test]
    fn a_target_that_is_not_there_any_more_is_no_lost_connection() {
        let why = |script: &str| {
            let (mut link, board) = Link::of(script);
            drop(board);
            link.hear().unwrap_err()
        };
        for status in NOT_RUN {
            let told = why(&format!("echo not found >&2; exit {status}"));
            assert_eq!(told, "the target was removed from the board: not found");
        }
        assert_eq!(why("echo closed >&2; exit 255"), "closed");
    }
}

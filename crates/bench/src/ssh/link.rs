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

use super::client::Client;
use super::{Error, Route, shell};

/// A board that says nothing for this long is no longer reached: it says something each second.
const QUIET: Duration = Duration::from_secs(30);

/// The time that it may take to connect.
const FIRST: Duration = Duration::from_secs(90);

/// The interval at which the board is told that somebody is here.
const ALIVE: Duration = Duration::from_secs(10);

/// The interval at which the link checks whether it is still wanted.
const LOOK: Duration = Duration::from_millis(100);

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
        let mut link = Self::begin(route, &[program, "board", directory])?;
        let host = route.name().to_owned();
        let begun = Instant::now();
        loop {
            match link.answers.recv_timeout(LOOK) {
                Ok(Ok(Answer::Hello(hello))) => return Ok(hello),
                Err(RecvTimeoutError::Timeout) if cancel.load(Ordering::SeqCst) => {
                    return Err(Error::Interrupted);
                }
                Err(RecvTimeoutError::Timeout) if begun.elapsed() < FIRST => {}
                Err(RecvTimeoutError::Timeout) => {
                    let said = "it says nothing".into();
                    return Err(Error::Unreachable { host, said });
                }
                _ => {
                    return Err(Error::Target {
                        host,
                        bench: route.bench(),
                        directory: directory.to_owned(),
                        said: link.end(),
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
            Err(TryRecvError::Disconnected) => return Err(self.end()),
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
        let (sender, answers) = mpsc::sync_channel(64);
        let mut command = std::process::Command::new("sleep");
        command.arg("600").stdin(Stdio::null());
        let link = Self {
            requests: None,
            route: Route::Ssh("board".parse().unwrap()),
            client: Client::start(&mut command, super::End::Killed).unwrap(),
            encoder: Encoder::default(),
            answers,
            complaints: None,
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
    loop {
        match from.read(&mut piece) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Ok(0) | Err(_) => return,
            Ok(length) => decoder.feed(&piece[..length]),
        }
        while let Some(heard) = decoder.next_message().transpose() {
            let is_over = heard.is_err();
            if sender.send(heard).is_err() || is_over {
                return;
            }
        }
    }
}

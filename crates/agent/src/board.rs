// SPDX-License-Identifier: MIT OR Apache-2.0
//! The target on a board: one end of the [conversation](punctual_model::board) with a
//! workstation, over standard input and output.
//!
//! No measurement depends on it: each runs as a [`Job`], a process of its own.

mod job;

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::thread;
use std::time::{Duration, Instant};

use punctual_model::board::{Answer, Hello, Request};
use punctual_model::frame::{Decoder, Encoder};
use punctual_model::status_page::Reader;
use punctual_model::{Progress, digest};

pub use job::{Job, supervise};

/// The subcommand that holds the conversation.
pub const BOARD: &str = "board";

/// The subcommand that runs a job.
pub const JOB: &str = "job";

/// The interval of looks at a job's output, each of which wakes this CPU, even if it is measured.
const LOOK: Duration = Duration::from_secs(1);

/// The time of silence after which a workstation is considered gone.
const GONE: Duration = Duration::from_secs(60);

/// The most bytes that are sent in one message.
const PIECE: u64 = 256 << 10;

/// The most messages that are sent before a request is read.
const BATCH: u32 = 16;

/// Holds the conversation until the workstation has gone; jobs are in `directory`.
pub fn converse(directory: &Path) -> io::Result<()> {
    let (sender, requests) = mpsc::sync_channel(16);
    thread::Builder::new().spawn(move || hear(&sender))?;
    let mut conversation = Conversation {
        directory: directory.to_owned(),
        out: Box::new(io::stdout()),
        encoder: Encoder::default(),
        followed: None,
    };
    conversation.say(&Answer::Hello(hello()))?;
    conversation.go_on(&requests)
}

/// Passes on the workstation's messages, until it has gone or sends one that cannot be understood.
fn hear(requests: &SyncSender<Request>) {
    let mut decoder = Decoder::default();
    let mut piece = vec![0; 1 << 16];
    loop {
        match io::stdin().read(&mut piece) {
            Ok(0) | Err(_) => return,
            Ok(length) => decoder.feed(&piece[..length]),
        }
        loop {
            match decoder.next_message() {
                Ok(None) => break,
                Ok(Some(request)) => {
                    if requests.send(request).is_err() {
                        return;
                    }
                }
                Err(error) => {
                    eprintln!("punctual-target: what the workstation says: {error}");
                    return;
                }
            }
        }
    }
}

fn hello() -> Hello {
    let line = |path| fs::read_to_string(path).map(|text| text.trim().to_owned());
    let known = |path| line(path).unwrap_or_else(|error| format!("unknown: {error}"));
    Hello {
        target_sha256: fs::read("/proc/self/exe")
            .ok()
            .map(|bytes| digest::sha256(&bytes)),
        host: known("/proc/sys/kernel/hostname"),
        release: known("/proc/sys/kernel/osrelease"),
        cmdline: known("/proc/cmdline"),
        cpus: thread::available_parallelism()
            .ok()
            .map(|cpus| cpus.get() as u32),
    }
}

struct Conversation {
    directory: PathBuf,
    out: Box<dyn Write>,
    encoder: Encoder,
    followed: Option<Followed>,
}

impl Conversation {
    fn go_on(&mut self, requests: &Receiver<Request>) -> io::Result<()> {
        let mut heard = Instant::now();
        let mut pause = Duration::ZERO;
        while heard.elapsed() < GONE {
            match requests.recv_timeout(pause) {
                Ok(request) => {
                    heard = Instant::now();
                    self.answer(request)?;
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
            let more = self.tell()?;
            pause = if more { Duration::ZERO } else { LOOK };
        }
        Ok(())
    }

    fn say(&mut self, answer: &Answer) -> io::Result<()> {
        self.out.write_all(&self.encoder.encode(answer))?;
        self.out.flush()
    }

    fn answer(&mut self, request: Request) -> io::Result<()> {
        match request {
            Request::Begin { job, plan, take_up } => {
                let begun = Job::begin(&self.directory, &job, &plan, take_up);
                self.say(&match begun {
                    Ok(job) => Answer::Begun { job },
                    Err(refusal) => Answer::Refused(refusal),
                })
            }
            Request::Follow {
                job,
                stream,
                console,
            } => match Job::find(&self.directory, &job) {
                Some(job) => {
                    self.followed = Some(Followed::new(job, stream, console)?);
                    Ok(())
                }
                None => self.say(&Answer::Gone),
            },
            Request::Stop { job } => {
                if let Some(job) = Job::find(&self.directory, &job) {
                    job.stop();
                }
                Ok(())
            }
            Request::Remove { job } => {
                self.followed = None;
                if let Some(job) = Job::find(&self.directory, &job) {
                    job.end();
                    job.remove()?;
                }
                self.say(&Answer::Removed)
            }
            Request::Alive => Ok(()),
        }
    }

    /// Sends news of the job that is followed; returns true if there is more.
    fn tell(&mut self) -> io::Result<bool> {
        let Some(mut followed) = self.followed.take() else {
            self.say(&Answer::Alive)?;
            return Ok(false);
        };
        // What a job said before it ended is there when its end is seen.
        let has_ended = !followed.job.is_alive();
        let mut more = true;
        for _ in 0..BATCH {
            let Some(answer) = followed.next_piece()? else {
                more = false;
                break;
            };
            self.say(&answer)?;
        }
        if more {
            self.followed = Some(followed);
        } else if has_ended {
            self.say(&Answer::Ended(followed.job.ended()))?;
        } else {
            let progress = followed.news().map_or(Answer::Alive, Answer::Progress);
            self.say(&progress)?;
            self.followed = Some(followed);
        }
        Ok(more)
    }
}

/// A job, and the amount of its output that was sent.
struct Followed {
    job: Job,
    stream: File,
    console: File,
    progress: Option<Progress>,
    reader: Reader,
    /// Lock that shows others that the job is followed.
    _lock: Option<File>,
}

impl Followed {
    fn new(job: Job, stream: u64, console: u64) -> io::Result<Self> {
        Ok(Self {
            stream: job.open("stream", stream)?,
            console: job.open("console", console)?,
            progress: None,
            reader: Reader::default(),
            _lock: job.lock_plan()?,
            job,
        })
    }

    fn next_piece(&mut self) -> io::Result<Option<Answer>> {
        let stream = piece(&self.stream)?;
        if !stream.is_empty() {
            return Ok(Some(Answer::Stream(stream)));
        }
        let console = piece(&self.console)?;
        Ok((!console.is_empty()).then_some(Answer::Console(console)))
    }

    /// Returns the progress of the step if it has changed since the last look.
    fn news(&mut self) -> Option<Progress> {
        let progress = self.job.progress(&mut self.reader)?;
        let before = self.progress.as_ref();
        if before.is_some_and(|before| !progress.is_news_after(before)) {
            return None;
        }
        self.progress = Some(progress.clone());
        Some(progress)
    }
}

fn piece(file: &File) -> io::Result<Vec<u8>> {
    let mut piece = Vec::new();
    file.take(PIECE).read_to_end(&mut piece)?;
    Ok(piece)
}

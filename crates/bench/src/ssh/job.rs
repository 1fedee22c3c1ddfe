// SPDX-License-Identifier: MIT OR Apache-2.0
//! A job on a board, as seen from this machine, which outlives any connection.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use punctual_kernels::checksum;
use punctual_model::Progress;
use punctual_model::board::{Answer, Hello, Request};

use super::Error;
use super::link::Link;
use crate::error::RunError;
use crate::system::Event;
use crate::watch::Watched;

/// Grace period for a target that is asked to end: it ends its step, and its records get here. It
/// gives up by itself after 5 s.
const GRACE_OF_STEP: Duration = Duration::from_secs(60);

/// Grace period for a target that is asked to end, from the last on that was heard of it: over a
/// slow line its records take long.
const GRACE_OF_WORDS: Duration = Duration::from_secs(10);

/// Grace period for the board to remove a job.
const GRACE: Duration = Duration::from_secs(60);

/// The pauses between two attempts to connect.
const PAUSES: [Duration; 5] = [
    Duration::from_millis(200),
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(5),
    Duration::from_secs(15),
];

/// Connects to the board; the argument is true if a job is still to be begun.
pub type Connect = Box<dyn Fn(bool) -> Result<Link, Error>>;

/// A job that is followed.
pub struct Job {
    connect: Connect,
    line: Line,
    /// The request that begins the job; `None` once it has begun.
    begin: Option<Begin>,
    /// The name of the board.
    board: String,
    /// The [system] for which it is begun.
    system: String,
    name: String,
    /// The files with what it has said so far.
    stream: Heard,
    console: Heard,
    progress: Option<Progress>,
    news: VecDeque<Event>,
    ended: Option<String>,
    /// True if the job was asked to end.
    is_stopped: bool,
    /// True if the job is to be removed, and `is_removed` once it has been.
    is_unwanted: bool,
    is_removed: bool,
    /// The time for which a lost connection is retried.
    patience: Duration,
    /// The time with a connection, up to its last loss.
    spent: Duration,
}

/// A request that begins a job.
struct Begin {
    request: Request,
    /// True once it was sent.
    is_sent: bool,
}

enum Line {
    Up {
        link: Link,
        since: Instant,
        /// The loss since which nothing was heard of the job, if the connection is a further
        /// attempt.
        lost: Option<Lost>,
    },
    Down {
        again: Instant,
        lost: Lost,
    },
}

#[derive(Clone)]
struct Lost {
    since: Instant,
    attempts: usize,
    why: String,
}

impl Job {
    /// Begins a job on the board that has sent this greeting. Its output goes to the files in
    /// `directory`.
    pub fn begin(
        connect: Connect,
        hello: &Hello,
        directory: &Path,
        name: &str,
        plan: &str,
        take_up: bool,
        patience: Duration,
    ) -> Result<Self, RunError> {
        let link = connect(true).map_err(RunError::bench)?;
        let board = link.host().to_owned();
        let system = system(hello);
        Ok(Self {
            connect,
            line: Line::Up {
                link,
                since: Instant::now(),
                lost: None,
            },
            begin: Some(Begin {
                request: Request::Begin {
                    job: name.to_owned(),
                    // What another kernel or machine measures by this plan is another job.
                    plan: format!("# on {system}\n{plan}"),
                    take_up,
                },
                is_sent: false,
            }),
            board,
            system,
            name: name.to_owned(),
            stream: Heard::new(&directory.join("stream"))?,
            console: Heard::new(&directory.join("console"))?,
            progress: None,
            news: VecDeque::new(),
            ended: None,
            is_stopped: false,
            is_unwanted: false,
            is_removed: false,
            patience,
            spent: Duration::ZERO,
        })
    }

    /// Returns true if the board may have begun the job: it was asked to, whether or not its answer
    /// has come.
    pub fn may_have_begun(&self) -> bool {
        self.begin.as_ref().is_none_or(|begin| begin.is_sent)
    }

    /// Tells the board, once it has greeted on a new connection, what is wanted.
    fn introduce(&mut self) {
        if self.is_unwanted {
            self.say(&Request::Remove {
                job: self.name.clone(),
            });
        } else if let Some(begin) = &mut self.begin {
            begin.is_sent = true;
            let request = begin.request.clone();
            self.say(&request);
        } else {
            self.follow();
        }
    }

    fn follow(&mut self) {
        self.say(&Request::Follow {
            job: self.name.clone(),
            stream: self.stream.length,
            console: self.console.length,
        });
        if self.is_stopped {
            self.say(&Request::Stop {
                job: self.name.clone(),
            });
        }
    }

    fn say(&mut self, request: &Request) {
        if let Line::Up { link, .. } = &mut self.line {
            link.say(request);
        }
    }

    /// Takes what has come, or tries to connect again.
    fn listen(&mut self) -> Result<(), RunError> {
        loop {
            let heard = match &mut self.line {
                Line::Up { link, .. } => link.hear(),
                Line::Down { again, .. } if Instant::now() < *again => return self.be_patient(),
                Line::Down { lost, .. } => {
                    let lost = lost.clone();
                    self.reconnect(lost);
                    return self.be_patient();
                }
            };
            match heard {
                Ok(Some(answer)) => self.take(answer)?,
                Ok(None) => return self.be_patient(),
                Err(why) => self.lose(why),
            }
        }
    }

    fn take(&mut self, answer: Answer) -> Result<(), RunError> {
        if !matches!(answer, Answer::Hello(_)) {
            self.found();
        }
        match answer {
            Answer::Hello(hello) => {
                if self.begin.is_some() && system(&hello) != self.system {
                    return Err(RunError::bench(Error::OtherKernel));
                }
                self.introduce();
            }
            Answer::Alive => {}
            Answer::Begun { job } => {
                (self.name, self.begin) = (job, None);
                self.follow();
            }
            Answer::Refused(refusal) => {
                (self.begin, self.is_removed) = (None, true);
                return Err(RunError::bench(refusal));
            }
            Answer::Stream(bytes) => self.stream.write(&bytes)?,
            Answer::Console(bytes) => self.console.write(&bytes)?,
            Answer::Progress(progress) => self.progress = Some(progress),
            Answer::Ended(how) => self.ended = Some(how),
            Answer::Gone => {
                self.is_removed = true;
                return Err(RunError::bench(Error::Gone));
            }
            Answer::Removed => self.is_removed = true,
        }
        Ok(())
    }

    /// Notes that the job is heard of again.
    fn found(&mut self) {
        if let Line::Up { lost, .. } = &mut self.line {
            if lost.take().is_some() {
                self.news.push_back(Event::Reached);
            }
        }
    }

    fn lose(&mut self, why: String) {
        let mut lost = Lost {
            since: Instant::now(),
            attempts: 0,
            why: why.clone(),
        };
        if let Line::Up {
            since,
            lost: before,
            ..
        } = &mut self.line
        {
            self.spent += since.elapsed();
            match before.take() {
                Some(before) => (lost.since, lost.attempts) = (before.since, before.attempts + 1),
                None => self.news.push_back(Event::Unreached(why)),
            }
        }
        let pause = PAUSES[lost.attempts.min(PAUSES.len() - 1)];
        self.line = Line::Down {
            again: Instant::now() + pause,
            lost,
        };
    }

    fn reconnect(&mut self, mut lost: Lost) {
        match (self.connect)(self.begin.is_some()) {
            Ok(link) => {
                self.line = Line::Up {
                    link,
                    since: Instant::now(),
                    lost: Some(lost),
                };
            }
            Err(error) => {
                lost.why = error.to_string();
                lost.attempts += 1;
                let pause = PAUSES[lost.attempts.min(PAUSES.len() - 1)];
                let again = Instant::now() + pause;
                self.line = Line::Down { again, lost };
            }
        }
    }

    /// Returns an error if the connection has been lost for too long.
    fn be_patient(&self) -> Result<(), RunError> {
        let lost = match &self.line {
            Line::Up { lost, .. } => lost.as_ref(),
            Line::Down { lost, .. } => Some(lost),
        };
        match lost {
            Some(lost) if lost.since.elapsed() > self.patience => {
                Err(RunError::bench(self.given_up(lost.why.clone())))
            }
            _ => Ok(()),
        }
    }

    /// The error for a board that has not been reached again.
    fn given_up(&self, why: String) -> Error {
        if self.may_have_begun() {
            let seconds = self.patience.as_secs();
            return Error::Lost { seconds, why };
        }
        let host = self.board.clone();
        Error::Unreachable { host, said: why }
    }

    /// Ends the job if it still runs, and leaves nothing of it on the board; returns false if the
    /// board could not be reached for that.
    pub fn remove(mut self) -> bool {
        let until = Instant::now() + GRACE;
        if !self.is_removed {
            (self.is_unwanted, self.begin) = (true, None);
            self.introduce();
        }
        while !self.is_removed && Instant::now() < until && self.listen().is_ok() {
            thread::sleep(Duration::from_millis(10));
        }
        self.is_removed
    }
}

impl Watched for Job {
    fn status(&mut self) -> Result<Option<String>, RunError> {
        self.listen()?;
        Ok(self.ended.clone())
    }

    fn ask_to_end(&mut self) -> Option<Duration> {
        if !self.may_have_begun() {
            return None;
        }
        self.is_stopped = true;
        self.say(&Request::Stop {
            job: self.name.clone(),
        });
        Some(GRACE_OF_STEP)
    }

    fn grace_of_words(&self) -> Duration {
        GRACE_OF_WORDS
    }

    fn progress(&mut self) -> Option<Progress> {
        self.progress.clone()
    }

    fn news(&mut self) -> Option<Event> {
        self.news.pop_front()
    }

    fn spent(&self) -> Duration {
        match &self.line {
            Line::Up { since, .. } => self.spent + since.elapsed(),
            Line::Down { .. } => self.spent,
        }
    }

    /// The job goes on without a connection.
    fn is_ready(&self) -> bool {
        true
    }
}

/// The machine and the kernel that greet, with its boot arguments, in hexadecimal digits.
fn system(hello: &Hello) -> String {
    let Hello {
        host,
        release,
        cmdline,
        ..
    } = hello;
    checksum::of_bytes(format!("{host}\n{release}\n{cmdline}").as_bytes())
}

/// The output of a job so far on one of its ports.
struct Heard {
    file: File,
    length: u64,
}

impl Heard {
    fn new(path: &Path) -> io::Result<Self> {
        Ok(Self {
            file: OpenOptions::new().append(true).create(true).open(path)?,
            length: 0,
        })
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.length += bytes.len() as u64;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hello(release: &str) -> Hello {
        Hello {
            host: "board".to_owned(),
            release: release.to_owned(),
            ..Hello::default()
        }
    }

    /// A job that is begun for the kernel 6.12, on a board that gives these answers and then falls
    /// silent.
    fn job(directory: &Path, answers: Vec<Answer>) -> Job {
        let connect = move |_: bool| {
            let (link, board) = Link::fake();
            for answer in &answers {
                board.send(Ok(answer.clone())).unwrap();
            }
            std::mem::forget(board);
            Ok(link)
        };
        let patience = Duration::from_secs(600);
        let job = Job::begin(
            Box::new(connect),
            &hello("6.12"),
            directory,
            "own",
            "seed = 1\n",
            false,
            patience,
        );
        job.unwrap()
    }

    fn begun() -> Answer {
        let job = "own".to_owned();
        Answer::Begun { job }
    }

    #[test]
    fn a_board_that_was_not_asked_for_a_job_has_none() {
        let directory = tempfile::tempdir().unwrap();
        let lost_after = |answers: Vec<Answer>| {
            let mut job = job(directory.path(), answers);
            job.status().unwrap();
            job.lose("no route to host".to_owned());
            job.connect = Box::new(|_| Err(Error::Gone));
            job.patience = Duration::ZERO;
            let may_end = job.ask_to_end();
            (job.status().unwrap_err(), may_end)
        };
        let (error, may_end) = lost_after(Vec::new());
        let told = "board is not reached: no route to host";
        assert_eq!((error.to_string().as_str(), may_end), (told, None));
        // The answer may be what was lost.
        let (error, may_end) = lost_after(vec![Answer::Hello(hello("6.12"))]);
        assert!(error.to_string().contains("--resume"), "{error}");
        assert_eq!(may_end, Some(GRACE_OF_STEP));
    }

    #[test]
    fn nothing_is_begun_under_another_kernel() {
        let directory = tempfile::tempdir().unwrap();
        let job = |answers| job(directory.path(), answers);
        let mut other = job(vec![Answer::Hello(hello("6.13")), begun()]);
        let error = other.status().unwrap_err();
        assert!(
            matches!(error.of_bench::<Error>(), Some(Error::OtherKernel)),
            "{error}"
        );
        assert!(other.begin.is_some());
        let mut same = job(vec![Answer::Hello(hello("6.12")), begun()]);
        assert_eq!(same.status().unwrap(), None);
        assert!(same.begin.is_none());
        // The rest of what was begun is fetched, whatever the board runs by now.
        let mut later = job(vec![
            Answer::Hello(hello("6.12")),
            begun(),
            Answer::Hello(hello("6.13")),
            Answer::Ended("it was killed".to_owned()),
        ]);
        assert_eq!(later.status().unwrap().as_deref(), Some("it was killed"));
    }

    #[test]
    fn a_plan_says_for_which_kernel_it_is() {
        let directory = tempfile::tempdir().unwrap();
        let job = job(directory.path(), Vec::new());
        let request = job.begin.as_ref().map(|begin| &begin.request);
        let Some(Request::Begin { plan, .. }) = request else {
            panic!("it has begun");
        };
        let expected = format!("# on {}\nseed = 1\n", system(&hello("6.12")));
        assert_eq!(*plan, expected);
        let mut booted_otherwise = hello("6.12");
        booted_otherwise.cmdline = "preempt=full".to_owned();
        for other in [hello("6.13"), booted_otherwise] {
            assert_ne!(system(&other), job.system);
        }
    }

    #[test]
    fn a_full_disk_is_an_error_of_this_machine() {
        let directory = tempfile::tempdir().unwrap();
        let piece = Answer::Stream(vec![0]);
        let mut job = job(directory.path(), vec![Answer::Hello(hello("6.12")), piece]);
        job.stream.file = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let error = job.status().unwrap_err();
        assert!(error.of_bench::<io::Error>().is_some(), "{error}");
        assert_eq!(job.stream.length, 0);
    }
}

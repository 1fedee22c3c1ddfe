// SPDX-License-Identifier: MIT OR Apache-2.0
//! Watches over a subject: gathers what it says, and notices when it will say nothing more.

use std::fs::File;
use std::io::{self, Read as _};
use std::ops::ControlFlow;
use std::path::Path;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use punctual_model::frame::Decoder;
use punctual_model::{Progress, Record};

use crate::console::Console;
use crate::error::RunError;
use crate::site::{Event, Listener};

/// How often it is looked how far a step is.
const LOOK_AT_PROGRESS: Duration = Duration::from_millis(200);

/// How often is looked.
const LOOK: Duration = Duration::from_millis(10);

/// A subject that spends no time at all for so long is stopped, not slow.
const STOPPED: Duration = Duration::from_secs(30);

/// What a subject may keep silent for, in seconds that it spends per second that its step
/// takes at least: ten times what a fully loaded guest takes.
const SPENT_PER_SECOND: f64 = 60.0;

/// A process in which a subject runs.
pub trait Watched {
    /// How it has ended, if it has.
    fn status(&mut self) -> io::Result<Option<ExitStatus>>;

    /// Whether the subject has paused itself since the last look.
    fn has_paused(&mut self) -> bool;

    /// Lets a paused subject go on.
    fn go_on(&mut self) -> Result<(), RunError>;

    /// Asks the subject to end after its sample and to send what it has; says how long it may
    /// take, or `None` where it cannot be asked.
    fn ask_to_end(&mut self) -> Option<Duration>;

    /// How far the step is that runs, where that can be seen.
    fn progress(&mut self) -> Option<Progress>;

    /// The time that it has spent: CPU time where its clock stands still while it does not
    /// run, time on the wall elsewhere.
    fn spent(&self) -> Duration;
}

/// When watching ends well.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// The guest has paused itself.
    Paused,
    /// The guest has said that it has finished.
    Finished,
}

/// Everything that a guest has said, and when it last said something.
pub struct Watch<'a> {
    stream: File,
    decoder: Decoder,
    console_file: File,
    /// The console so far.
    pub console: Console,
    patience: Patience,
    finished: bool,
    /// Until when a subject that was asked to end is waited for.
    ends_by: Option<Instant>,
    progress: Option<Progress>,
    progress_at: Instant,
    /// When the guest was let go on from its pause.
    pub went_on: Option<Instant>,
    on: Listener<'a>,
    cancel: &'a AtomicBool,
}

impl<'a> Watch<'a> {
    /// Watches over the guest whose ports are files in `directory`. `silence` is the CPU
    /// time that it may use between two signs of life, in addition to what the plan tells.
    pub fn begin(
        directory: &Path,
        silence: Duration,
        on: Listener<'a>,
        cancel: &'a AtomicBool,
    ) -> io::Result<Self> {
        Ok(Self {
            stream: File::open(directory.join("stream"))?,
            decoder: Decoder::default(),
            console_file: File::open(directory.join("console"))?,
            console: Console::default(),
            patience: Patience::new(silence),
            finished: false,
            ends_by: None,
            progress: None,
            progress_at: Instant::now(),
            went_on: None,
            on,
            cancel,
        })
    }

    /// Watches until it is so far; whatever else ends the guest is an error. A subject that
    /// measures when the run is cancelled is asked to end, and heard out.
    pub fn until(&mut self, end: Until, process: &mut dyn Watched) -> Result<(), RunError> {
        loop {
            self.heed_cancel(end, process)?;
            // The order matters: what a guest said before it ended is there when its end is
            // seen, and is taken after.
            let exited = process.status()?;
            let paused = process.has_paused();
            let heard = self.listen()?;
            if let Some(meaning) = self.console.sign() {
                self.hear_out(process)?;
                return Err(RunError::Guest(meaning));
            }
            if self.finished && end == Until::Finished {
                return Ok(());
            }
            if let Some(status) = exited {
                if self.ends_by.is_some() {
                    return Err(RunError::Interrupted);
                }
                self.decoder.finish()?;
                return Err(RunError::ended(status));
            }
            if paused {
                return match end {
                    Until::Paused => Ok(()),
                    Until::Finished => Err(RunError::Guest("the guest has paused again")),
                };
            }
            let is_alive = end == Until::Finished && self.look_at_progress(process)?;
            self.patience.look(heard || is_alive, process.spent())?;
            thread::sleep(LOOK);
        }
    }

    /// An error as soon as a run that was cancelled has ended, or takes too long to.
    fn heed_cancel(&mut self, end: Until, process: &mut dyn Watched) -> Result<(), RunError> {
        if !self.cancel.load(Ordering::SeqCst) {
            return Ok(());
        }
        if self.ends_by.is_none() && end == Until::Finished {
            self.ends_by = process.ask_to_end().map(|grace| Instant::now() + grace);
        }
        match self.ends_by {
            Some(ends_by) if Instant::now() < ends_by => Ok(()),
            _ => Err(RunError::Interrupted),
        }
    }

    /// Says how far the step is, if it is farther than before.
    fn look_at_progress(&mut self, process: &mut dyn Watched) -> Result<bool, RunError> {
        if self.progress_at.elapsed() < LOOK_AT_PROGRESS {
            return Ok(false);
        }
        self.progress_at = Instant::now();
        let progress = process.progress();
        let is_new = progress.is_some() && progress != self.progress;
        if let Some(progress) = progress.filter(|_| is_new) {
            self.progress = Some(progress);
            self.tell(Event::Progress(progress))?;
        }
        Ok(is_new)
    }

    /// Lets a paused guest go on.
    pub fn go_on(&mut self, process: &mut dyn Watched) -> Result<(), RunError> {
        self.went_on = Some(Instant::now());
        process.go_on()
    }

    /// Takes what is new on both ports; says whether there was anything.
    fn listen(&mut self) -> Result<bool, RunError> {
        let mut piece = Vec::new();
        self.console_file.read_to_end(&mut piece)?;
        self.console.feed(&piece);
        let mut heard = !piece.is_empty();
        piece.clear();
        self.stream.read_to_end(&mut piece)?;
        heard |= !piece.is_empty();
        self.decoder.feed(&piece);
        while let Some(record) = self.decoder.next_record()? {
            self.take(record)?;
        }
        Ok(heard)
    }

    fn take(&mut self, record: Record) -> Result<(), RunError> {
        match &record {
            Record::Started(started) => {
                self.patience.expect(started.nominal.as_secs_f64());
            }
            Record::Refused(reason) => return Err(RunError::Refused(reason.clone())),
            Record::Finished(_) => self.finished = true,
            Record::Interrupted(_) => return Err(RunError::Interrupted),
            Record::Provenance(_)
            | Record::Step(_)
            | Record::Recording(_)
            | Record::Unsupported(_) => {}
        }
        self.tell(Event::Record(Box::new(record)))
    }

    fn tell(&mut self, event: Event) -> Result<(), RunError> {
        match (self.on)(event) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(RunError::Interrupted),
        }
    }

    /// Gives a guest in trouble a moment to say all of it: after a panic it switches itself
    /// off at once.
    fn hear_out(&mut self, process: &mut dyn Watched) -> Result<(), RunError> {
        let until = Instant::now() + Duration::from_secs(2);
        while process.status()?.is_none() && Instant::now() < until {
            thread::sleep(LOOK);
        }
        // The trouble itself is what is reported, not what it did to the stream.
        let _ = self.listen();
        Ok(())
    }
}

/// Tells a guest that is slow from one that is lost. Time on the wall says nothing of that
/// on a busy machine; the CPU time that QEMU has used does.
struct Patience {
    silence: Duration,
    allowed: Duration,
    heard_at: Duration,
    used: Duration,
    used_since: Instant,
}

impl Patience {
    fn new(silence: Duration) -> Self {
        Self {
            silence,
            allowed: silence,
            heard_at: Duration::ZERO,
            used: Duration::ZERO,
            used_since: Instant::now(),
        }
    }

    /// The guest will be busy for so many seconds of its own time.
    fn expect(&mut self, nominal_s: f64) {
        let busy = Duration::try_from_secs_f64(nominal_s * SPENT_PER_SECOND);
        self.allowed = self.silence + busy.unwrap_or(Duration::MAX / 2);
    }

    fn look(&mut self, heard: bool, used: Duration) -> Result<(), RunError> {
        if heard {
            self.heard_at = used;
        }
        if used != self.used {
            (self.used, self.used_since) = (used, Instant::now());
        }
        if used.saturating_sub(self.heard_at) > self.allowed {
            return Err(RunError::Silent(self.allowed.as_secs()));
        }
        if self.used_since.elapsed() > STOPPED {
            return Err(RunError::Stopped(STOPPED.as_secs()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn silence_is_counted_in_cpu_time_from_the_last_sign_of_life() {
        let mut patience = Patience::new(10 * SECOND);
        patience.look(false, 10 * SECOND).unwrap();
        patience.look(true, 20 * SECOND).unwrap();
        patience.look(false, 30 * SECOND).unwrap();
        let error = patience.look(false, 31 * SECOND).unwrap_err();
        assert!(matches!(error, RunError::Silent(10)), "{error}");
    }

    #[test]
    fn a_long_step_may_be_silent_for_longer() {
        let mut patience = Patience::new(10 * SECOND);
        patience.expect(3.0);
        patience.look(false, 190 * SECOND).unwrap();
        assert!(patience.look(false, 191 * SECOND).is_err());
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Watches over a subject: gathers its output, and notices when no more will come.

use std::fs::File;
use std::io::{self, Read as _};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use punctual_model::frame::Decoder;
use punctual_model::{Progress, Record};

use crate::console::Console;
use crate::error::RunError;
use crate::system::{Event, Listener};

/// The interval at which the progress of a step is looked at.
const LOOK_AT_PROGRESS: Duration = Duration::from_millis(200);

/// The interval between two looks.
const LOOK: Duration = Duration::from_millis(10);

/// A subject that spends no time at all for this long is stopped, not slow.
const STOPPED: Duration = Duration::from_secs(30);

/// The silence allowed to a subject in real time, in seconds per second that its step takes at
/// least: ticks of 100 Hz are two and a half times as long as those that a step expects.
const SPENT_PER_SECOND: f64 = 3.0;

/// The least silence allowed to a probe's step, in seconds per second that it expects: while
/// anything is lost, `irqrate` doubles its intervals, up to 128 times, and reports no progress.
fn least_spent_per_second(probe: &str) -> f64 {
    if probe == "irqrate" { 60.0 } else { 0.0 }
}

/// Limits on a subject's output. A subject that exceeds them is ended: its output must not fill
/// this machine's memory or its disk.
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// Bytes on the console. The most talkative boot takes a tenth of it.
    console: u64,
    /// Bytes of the record stream: room for 200 million raw samples, or for a thousand interim
    /// results of a step on 64 CPUs.
    stream: u64,
    /// Records. In memory each [`Recording`](punctual_model::Recording) has 250 KiB of bins,
    /// however small its frame.
    records: u32,
}

const LIMITS: Limits = Limits {
    console: 4 << 20,
    stream: 4 << 30,
    records: 10_000,
};

/// The most bytes taken from a port at a time: a subject that writes faster than it is read must
/// not keep the watch from its other duties.
const PIECE: u64 = LIMITS.console;

/// The process or job in which a subject runs.
pub trait Watched {
    /// How it ended, in words, if it has ended; an error if that will never be known.
    fn status(&mut self) -> Result<Option<String>, RunError>;

    /// Returns true if the subject has paused itself since the last look.
    fn has_paused(&mut self) -> bool {
        false
    }

    /// Lets a paused subject go on.
    fn go_on(&mut self) -> Result<(), RunError> {
        Ok(())
    }

    /// Asks the subject to end after its sample and to send what it has. Returns the time that it
    /// may take, or `None` if it cannot be asked.
    fn ask_to_end(&mut self) -> Option<Duration>;

    /// The time that it has at least from its last words on, once it was asked to end: they may
    /// come over a slow line.
    fn grace_of_words(&self) -> Duration {
        Duration::ZERO
    }

    /// The progress of the running step, if it can be seen.
    fn progress(&mut self) -> Option<Progress>;

    /// The next event of the bench itself since the last look.
    fn news(&mut self) -> Option<Event> {
        None
    }

    /// The time it has spent: CPU time if its clock stands still while it does not run, wall-clock
    /// time otherwise.
    fn spent(&self) -> Duration;

    /// The silence allowed to it, in seconds that it spends per second that its step takes at
    /// least.
    fn spent_per_second(&self) -> f64 {
        SPENT_PER_SECOND
    }

    /// Returns true if it would run if it were let. A subject that spends no time is then not
    /// stopped.
    fn is_ready(&self) -> bool;
}

/// The condition on which watching ends well.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// The guest has paused itself.
    Paused,
    /// The guest has reported that it has finished.
    Finished,
}

/// Everything that a guest has said, and the time of its last words.
pub struct Watch<'a> {
    stream: Port,
    decoder: Decoder,
    /// The number of records that have come.
    records: u32,
    limits: Limits,
    console_port: Port,
    /// The console so far.
    pub console: Console,
    timeout: SilenceTimeout,
    finished: bool,
    /// The time until which the watch waits for a subject that was asked to end.
    ends_by: Option<Instant>,
    /// True if the subject was asked to end, and has not told its end in time.
    pub gave_up: bool,
    progress: Option<Progress>,
    progress_at: Instant,
    /// The time at which the guest was let go on from its pause.
    pub went_on: Option<Instant>,
    on: Listener<'a>,
    cancel: &'a AtomicBool,
}

impl<'a> Watch<'a> {
    /// Watches over the guest whose ports are files in `directory`. `silence` is the CPU time that
    /// it may use between two signs of life, in addition to what the plan takes.
    pub fn begin(
        directory: &Path,
        silence: Duration,
        on: Listener<'a>,
        cancel: &'a AtomicBool,
    ) -> io::Result<Self> {
        Ok(Self {
            stream: Port::open(&directory.join("stream"))?,
            decoder: Decoder::default(),
            records: 0,
            limits: LIMITS,
            console_port: Port::open(&directory.join("console"))?,
            console: Console::default(),
            timeout: SilenceTimeout::new(silence),
            finished: false,
            ends_by: None,
            gave_up: false,
            progress: None,
            progress_at: Instant::now(),
            went_on: None,
            on,
            cancel,
        })
    }

    /// Watches until the guest gets to `end`; anything else that ends the guest is an error. A
    /// subject that is measuring when the run is cancelled is asked to end, and heard out.
    pub fn until(&mut self, end: Until, process: &mut dyn Watched) -> Result<(), RunError> {
        self.timeout.spent_per_second = process.spent_per_second();
        loop {
            self.heed_cancel(end, process)?;
            // The order matters: what a guest said before it ended is there when its end is
            // seen, and is taken after.
            let exited = process.status()?;
            let paused = process.has_paused();
            let heard = self.listen()?;
            if let Some(ends_by) = self.ends_by.as_mut().filter(|_| heard) {
                *ends_by = (*ends_by).max(Instant::now() + process.grace_of_words());
            }
            while let Some(event) = process.news() {
                self.tell(event)?;
            }
            if let Some(meaning) = self.console.sign() {
                self.hear_out(process)?;
                return Err(RunError::Guest(meaning));
            }
            if self.finished && end == Until::Finished {
                return Ok(());
            }
            // More may be there than was taken at once.
            if let Some(status) = exited.filter(|_| !heard) {
                if self.ends_by.is_some() {
                    return Err(RunError::Interrupted);
                }
                self.decoder.finish()?;
                return Err(RunError::Ended(status));
            }
            if paused {
                return match end {
                    Until::Paused => Ok(()),
                    Until::Finished => Err(RunError::Guest("the guest has paused again")),
                };
            }
            let is_alive = end == Until::Finished && self.look_at_progress(process)?;
            let heard = heard || is_alive;
            self.timeout
                .look(heard, process.spent(), || process.is_ready())?;
            thread::sleep(LOOK);
        }
    }

    /// Returns an error as soon as a cancelled run has ended, or has taken too long to end.
    fn heed_cancel(&mut self, end: Until, process: &mut dyn Watched) -> Result<(), RunError> {
        if !self.cancel.load(Ordering::SeqCst) {
            return Ok(());
        }
        if self.ends_by.is_none() && end == Until::Finished {
            self.ends_by = process.ask_to_end().map(|grace| Instant::now() + grace);
        }
        match self.ends_by {
            Some(ends_by) if Instant::now() < ends_by => Ok(()),
            _ => {
                self.gave_up = true;
                Err(RunError::Interrupted)
            }
        }
    }

    /// Reports the progress of the step if it has advanced; returns true if it has.
    fn look_at_progress(&mut self, process: &mut dyn Watched) -> Result<bool, RunError> {
        if self.progress_at.elapsed() < LOOK_AT_PROGRESS {
            return Ok(false);
        }
        self.progress_at = Instant::now();
        let Some(progress) = process.progress() else {
            return Ok(false);
        };
        let before = self.progress.as_ref();
        if before.is_some_and(|before| !progress.is_news_after(before)) {
            return Ok(false);
        }
        self.progress = Some(progress.clone());
        self.tell(Event::Progress(progress))?;
        Ok(true)
    }

    /// Lets a paused guest go on.
    pub fn go_on(&mut self, process: &mut dyn Watched) -> Result<(), RunError> {
        self.went_on = Some(Instant::now());
        process.go_on()
    }

    /// Takes what is new on both ports, up to a [`PIECE`] of each; returns true if there was
    /// anything. The stream is read first: then the console has everything that the kernel
    /// printed before the records that are taken, such as an oops before the last of them.
    fn listen(&mut self) -> Result<bool, RunError> {
        let piece = self.stream.read()?;
        let said = self.console_port.read()?;
        self.console.feed(&said);
        self.console_port.check("console", self.limits.console)?;
        self.decoder.feed(&piece);
        while let Some(record) = self.decoder.next_record()? {
            self.take(record)?;
        }
        self.stream.check("record stream", self.limits.stream)?;
        Ok(!said.is_empty() || !piece.is_empty())
    }

    fn take(&mut self, record: Record) -> Result<(), RunError> {
        // What was measured so far takes the place of what was said so before.
        if !matches!(record, Record::SoFar(_)) {
            if self.records == self.limits.records {
                return Err(RunError::TooManyRecords(self.records));
            }
            self.records += 1;
        }
        match &record {
            Record::Started(started) => {
                let least = least_spent_per_second(&started.probe);
                self.timeout.expect(started.nominal.as_secs_f64(), least);
            }
            Record::Refused(reason) => return Err(RunError::Refused(reason.clone())),
            Record::Finished(_) => self.finished = true,
            Record::Interrupted(_) => return Err(RunError::Interrupted),
            Record::Provenance(_)
            | Record::Step(_)
            | Record::Recording(_)
            | Record::SoFar(_)
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

    /// Gives a guest in trouble a moment to say all of it: after a panic it switches itself off at
    /// once.
    fn hear_out(&mut self, process: &mut dyn Watched) -> Result<(), RunError> {
        let until = Instant::now() + Duration::from_secs(2);
        while process.status()?.is_none() && Instant::now() < until {
            thread::sleep(LOOK);
        }
        // The trouble itself is what is reported, not what it did to the stream.
        while let Ok(true) = self.listen() {}
        Ok(())
    }
}

/// A port of a subject: a file that grows.
struct Port {
    file: File,
    /// The number of bytes read.
    taken: u64,
}

impl Port {
    fn open(path: &Path) -> io::Result<Self> {
        Ok(Self {
            file: File::open(path)?,
            taken: 0,
        })
    }

    /// Reads what is new, up to a [`PIECE`].
    fn read(&mut self) -> io::Result<Vec<u8>> {
        let mut piece = Vec::new();
        (&self.file).take(PIECE).read_to_end(&mut piece)?;
        self.taken += piece.len() as u64;
        Ok(piece)
    }

    fn check(&self, port: &'static str, limit: u64) -> Result<(), RunError> {
        if self.taken > limit {
            return Err(RunError::TooMuch { port, limit });
        }
        Ok(())
    }
}

/// Tells a slow guest from a lost one. Wall-clock time says nothing about that on a busy machine;
/// the CPU time that QEMU has used does.
struct SilenceTimeout {
    silence: Duration,
    /// [`Watched::spent_per_second`] of the subject.
    spent_per_second: f64,
    allowed: Duration,
    heard_at: Duration,
    used: Duration,
    used_since: Instant,
}

impl SilenceTimeout {
    fn new(silence: Duration) -> Self {
        Self {
            silence,
            spent_per_second: SPENT_PER_SECOND,
            allowed: silence,
            heard_at: Duration::ZERO,
            used: Duration::ZERO,
            used_since: Instant::now(),
        }
    }

    /// Notes that the guest will be busy for this many seconds of its own time, with so much silence
    /// allowed at least.
    fn expect(&mut self, nominal_s: f64, least: f64) {
        let busy = Duration::try_from_secs_f64(nominal_s * self.spent_per_second.max(least));
        self.allowed = self.silence + busy.unwrap_or(Duration::MAX / 2);
    }

    /// Returns an error if the silence is too long. `is_ready` returns true if the subject would
    /// run if there were a CPU for it.
    fn look(
        &mut self,
        heard: bool,
        used: Duration,
        is_ready: impl Fn() -> bool,
    ) -> Result<(), RunError> {
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
            if !is_ready() {
                return Err(RunError::Stopped(STOPPED.as_secs()));
            }
            self.used_since = Instant::now();
        }
        Ok(())
    }
}

/// Returns true if a thread of this process waits for a CPU or a disk: on a busy machine that may
/// take long (`proc_pid_stat(5)`, field 3).
pub fn is_ready(pid: u32) -> bool {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{pid}/task")) else {
        return false;
    };
    threads.flatten().any(|thread| {
        let stat = std::fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        let state = stat.rsplit_once(')').map(|(_, rest)| rest.trim_start());
        state.is_some_and(|state| state.starts_with(['R', 'D']))
    })
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::fs;
    use std::io::Write as _;
    use std::process::Command;

    use punctual_model::Nanos;
    use punctual_model::frame::Encoder;
    use punctual_model::record::{Finished, Started, Unsupported};

    use super::*;

    #[test]
    fn the_document_on_security_has_the_limits_of_what_a_subject_may_say() {
        let document = include_str!("../../../SECURITY.md");
        let (console, stream) = (LIMITS.console >> 20, LIMITS.stream >> 30);
        let records = LIMITS.records.to_string();
        let (thousands, rest) = records.split_at(records.len() - 3);
        let limits = format!(
            "{console} MiB on its console, {stream} GiB and {thousands},{rest} records on its stream"
        );
        assert!(
            document.contains(&limits),
            "expected in SECURITY.md: {limits}"
        );
    }

    /// A process that does nothing; it has ended in this way, or lives as long as it is watched.
    struct Idle(Option<&'static str>);

    impl Watched for Idle {
        fn status(&mut self) -> Result<Option<String>, RunError> {
            Ok(self.0.map(str::to_owned))
        }

        fn ask_to_end(&mut self) -> Option<Duration> {
            None
        }

        fn progress(&mut self) -> Option<Progress> {
            None
        }

        fn spent(&self) -> Duration {
            Duration::ZERO
        }

        fn is_ready(&self) -> bool {
            false
        }
    }

    /// Watches a subject that has said this, within these limits. Returns the result, the number of
    /// records that were told, and the number of console bytes kept.
    fn watch(console: &[u8], stream: &[u8], limits: Limits) -> (Result<(), RunError>, u32, usize) {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("console"), console).unwrap();
        fs::write(directory.path().join("stream"), stream).unwrap();
        let mut told = 0;
        let mut on = |_| {
            told += 1;
            ControlFlow::Continue(())
        };
        let cancel = AtomicBool::new(false);
        let mut watch = Watch::begin(directory.path(), SECOND, &mut on, &cancel).unwrap();
        watch.limits = limits;
        let result = watch.until(Until::Finished, &mut Idle(None));
        let kept = watch.console.bytes().len();
        (result, told, kept)
    }

    /// A stream of this many records, and the last one.
    fn stream(records: u32) -> Vec<u8> {
        let mut encoder = Encoder::default();
        let unsupported = Record::Unsupported(Unsupported {
            step: 0,
            probe: "irq".into(),
            load: "idle".into(),
            reason: "no module".to_owned().into(),
        });
        let mut bytes: Vec<u8> = (0..records)
            .flat_map(|_| encoder.encode(&unsupported))
            .collect();
        bytes.extend(encoder.encode(&Record::Finished(Finished {
            recordings: 0,
            unsupported: records,
        })));
        bytes
    }

    #[test]
    fn an_oops_before_the_last_record_is_seen_though_both_come_while_the_ports_are_read() {
        let directory = tempfile::tempdir().unwrap();
        let port = |name: &str| directory.path().join(name);
        fs::write(port("console"), "").unwrap();
        // The stream is a pipe: its reader waits until its writer has closed it.
        let made = Command::new("mkfifo").arg(port("stream")).status().unwrap();
        assert!(made.success());
        thread::scope(|scope| {
            scope.spawn(|| {
                let pipe = File::options().write(true).open(port("stream"));
                let mut pipe = pipe.unwrap();
                // The reader is within its look at the ports by then.
                thread::sleep(Duration::from_millis(200));
                fs::write(port("console"), "[    3.1] Oops: 0000 [#1] SMP\n").unwrap();
                pipe.write_all(&stream(1)).unwrap();
            });
            let mut on = |_| ControlFlow::Continue(());
            let cancel = AtomicBool::new(false);
            let mut watch = Watch::begin(directory.path(), SECOND, &mut on, &cancel).unwrap();
            let mut ended = Idle(Some("exit status 0"));
            let result = watch.until(Until::Finished, &mut ended);
            assert!(matches!(result, Err(RunError::Guest(_))), "{result:?}");
        });
    }

    #[test]
    fn who_waits_for_a_cpu_is_ready_and_who_sleeps_is_not() {
        let sleeper = Command::new("sleep").arg("600").spawn();
        let spinner = Command::new("sh")
            .args(["-c", "while :; do :; done"])
            .spawn();
        let (mut sleeper, mut spinner) = (sleeper.unwrap(), spinner.unwrap());
        while !is_ready(spinner.id()) || is_ready(sleeper.id()) {
            thread::sleep(LOOK);
        }
        for child in [&mut sleeper, &mut spinner] {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        assert!(!is_ready(0));
    }

    #[test]
    fn what_is_within_the_limits_is_taken_whole() {
        let console = vec![b'x'; LIMITS.console as usize];
        let (result, told, kept) = watch(&console, &stream(LIMITS.records - 1), LIMITS);
        assert!(result.is_ok(), "{result:?}");
        assert_eq!(told, LIMITS.records);
        assert_eq!(kept, console.len());
    }

    #[test]
    fn a_console_without_end_ends_the_run_with_what_there_is() {
        let console = vec![b'x'; 4 * PIECE as usize];
        let (result, _, kept) = watch(&console, b"", LIMITS);
        let error = result.unwrap_err().to_string();
        assert!(error.contains("4 MiB to its console"), "{error}");
        assert_eq!(kept, 2 * PIECE as usize);
    }

    #[test]
    fn records_without_end_end_the_run_with_those_before() {
        let (result, told, _) = watch(b"", &stream(LIMITS.records), LIMITS);
        let error = result.unwrap_err();
        assert!(matches!(error, RunError::TooManyRecords(10_000)), "{error}");
        assert_eq!(told, LIMITS.records);
    }

    #[test]
    fn a_stream_without_end_ends_the_run() {
        let limits = Limits {
            stream: PIECE,
            ..LIMITS
        };
        // A frame that never becomes whole.
        let mut endless = b"PNCT\0\0\0\0\0\0\0\x08\0\0\0\0".to_vec();
        endless.resize(3 * PIECE as usize, b'x');
        let (result, told, _) = watch(b"", &endless, limits);
        let error = result.unwrap_err().to_string();
        assert!(error.contains("4 MiB to its record stream"), "{error}");
        assert_eq!(told, 0);
    }

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn silence_is_counted_in_cpu_time_from_the_last_sign_of_life() {
        let mut timeout = SilenceTimeout::new(10 * SECOND);
        timeout.look(false, 10 * SECOND, || false).unwrap();
        timeout.look(true, 20 * SECOND, || false).unwrap();
        timeout.look(false, 30 * SECOND, || false).unwrap();
        let error = timeout.look(false, 31 * SECOND, || false).unwrap_err();
        assert!(matches!(error, RunError::Silent(10)), "{error}");
    }

    #[test]
    fn a_long_step_may_be_silent_for_longer() {
        let mut timeout = SilenceTimeout::new(10 * SECOND);
        timeout.expect(3.0, 0.0);
        timeout.look(false, 19 * SECOND, || false).unwrap();
        assert!(timeout.look(false, 20 * SECOND, || false).is_err());
        timeout.spent_per_second = 60.0;
        timeout.expect(3.0, 0.0);
        timeout.look(false, 190 * SECOND, || false).unwrap();
        assert!(timeout.look(false, 191 * SECOND, || false).is_err());
    }

    /// A process that says nothing, and spends a second between two looks.
    struct Mute {
        spent: Cell<Duration>,
        spent_per_second: f64,
    }

    impl Watched for Mute {
        fn status(&mut self) -> Result<Option<String>, RunError> {
            Ok(None)
        }

        fn ask_to_end(&mut self) -> Option<Duration> {
            None
        }

        fn progress(&mut self) -> Option<Progress> {
            None
        }

        fn spent(&self) -> Duration {
            self.spent.set(self.spent.get() + SECOND);
            self.spent.get()
        }

        fn spent_per_second(&self) -> f64 {
            self.spent_per_second
        }

        fn is_ready(&self) -> bool {
            false
        }
    }

    #[test]
    fn what_is_watched_says_how_long_a_step_may_be_silent() {
        for (spent_per_second, allowed) in [(3.0, 7), (60.0, 121)] {
            let directory = tempfile::tempdir().unwrap();
            let started = Record::Started(Started {
                step: 0,
                probe: "timer".into(),
                load: "idle".into(),
                nominal: Nanos::from_millis(2_000),
            });
            fs::write(directory.path().join("console"), "").unwrap();
            let stream = Encoder::default().encode(&started);
            fs::write(directory.path().join("stream"), stream).unwrap();
            let mut on = |_| ControlFlow::Continue(());
            let cancel = AtomicBool::new(false);
            let mut watch = Watch::begin(directory.path(), SECOND, &mut on, &cancel).unwrap();
            let mut mute = Mute {
                spent: Cell::default(),
                spent_per_second,
            };
            let error = watch.until(Until::Finished, &mut mute).unwrap_err();
            let RunError::Silent(found) = error else {
                panic!("{error}");
            };
            assert_eq!(found, allowed);
        }
    }

    /// A process at the other end of a slow line: what it says comes piece by piece. The run is
    /// cancelled while the first one is on its way.
    struct Slow<'a> {
        pieces: Vec<Vec<u8>>,
        stream: File,
        grace_of_words: Duration,
        cancel: &'a AtomicBool,
    }

    impl Watched for Slow<'_> {
        fn status(&mut self) -> Result<Option<String>, RunError> {
            self.cancel.store(true, Ordering::SeqCst);
            if let Some(piece) = self.pieces.pop() {
                self.stream.write_all(&piece)?;
            }
            Ok(None)
        }

        fn ask_to_end(&mut self) -> Option<Duration> {
            None
        }

        fn grace_of_words(&self) -> Duration {
            self.grace_of_words
        }

        fn progress(&mut self) -> Option<Progress> {
            None
        }

        fn spent(&self) -> Duration {
            Duration::ZERO
        }

        fn is_ready(&self) -> bool {
            false
        }
    }

    #[test]
    fn who_is_asked_to_end_is_heard_out_as_long_as_words_come() {
        for (grace_of_words, is_heard_out) in [(3_600 * SECOND, true), (Duration::ZERO, false)] {
            let directory = tempfile::tempdir().unwrap();
            fs::write(directory.path().join("console"), "").unwrap();
            let path = directory.path().join("stream");
            let whole = stream(1);
            let (first, rest) = whole.split_at(whole.len() / 2);
            let cancel = AtomicBool::new(false);
            let mut slow = Slow {
                pieces: vec![rest.to_vec(), first.to_vec()],
                stream: File::create(path).unwrap(),
                grace_of_words,
                cancel: &cancel,
            };
            let mut on = |_| ControlFlow::Continue(());
            let mut watch = Watch::begin(directory.path(), SECOND, &mut on, &cancel).unwrap();
            // It was asked to end, and its time is over when the first piece comes.
            watch.ends_by = Some(Instant::now());
            let result = watch.until(Until::Finished, &mut slow);
            assert_eq!(result.is_ok(), is_heard_out, "{result:?}");
            assert_eq!(watch.gave_up, !is_heard_out);
        }
    }
}

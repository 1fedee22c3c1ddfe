// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads a file of runs from any source. Anything wrong in it ends the reading. A file that expands
//! to much more than its own size takes no more memory than one run and all suites may take: both
//! have a maximum.

use std::collections::HashSet;
use std::io::{self, BufRead as _, BufReader, Read};
use std::sync::Arc;

use flate2::bufread::GzDecoder;
use punctual_model::amount::against_step;
use punctual_model::digest::digest as raw_digest;
use punctual_model::plan::IDLE;
use punctual_model::run::IMPORTED_PROBE;
use punctual_model::run::State;
use punctual_model::suite::Suite;
use punctual_model::{Recording, Run};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use crate::line::{
    ALL_SUITES_MOST, Baseline, Head, LINE_MOST, Line, OUTPUT_MOST, RECORDINGS_MOST, RUN_MOST,
    STEPS_MOST, SUITE_MOST, SUITES_MOST,
};
use crate::witness::{self, Witness};
use crate::{ExchangeError, Exported, SCHEMA};

/// The first bytes of a compressed file.
const MAGIC: [u8; 2] = [0x1f, 0x8b];

/// Returns true if a file with this start is one of runs, and not of another program.
pub fn is_export(start: &[u8]) -> bool {
    start.starts_with(&MAGIC)
}

/// Reads a file of runs, one after the other. All of it is sound once no further run comes.
pub struct Reader<R: Read> {
    lines: BufReader<GzDecoder<BufReader<R>>>,
    sum: Sha256,
    /// The number of the last line read, from 1.
    number: u64,
    suites: Vec<Arc<Suite>>,
    /// The number of bytes that the suites may still take.
    suites_left: u64,
    /// The number of bytes that the run being read may still take.
    run_left: u64,
    baselines: Vec<Baseline>,
    runs: u64,
    is_over: bool,
    ids: HashSet<String>,
    sha256: String,
    witnesses: Vec<Witness>,
}

impl<R: Read> Reader<R> {
    /// Begins to read.
    pub fn new(file: R) -> Result<Self, ExchangeError> {
        let mut file = BufReader::new(file);
        if !is_export(file.fill_buf()?) {
            return Err(ExchangeError::Foreign);
        }
        let mut new = Self {
            lines: BufReader::new(GzDecoder::new(file)),
            sum: Sha256::new(),
            number: 0,
            suites: Vec::new(),
            suites_left: ALL_SUITES_MOST,
            run_left: RUN_MOST,
            baselines: Vec::new(),
            runs: 0,
            is_over: false,
            ids: HashSet::new(),
            sha256: String::new(),
            witnesses: Vec::new(),
        };
        new.header()?;
        Ok(new)
    }

    /// Names of runs of this file that others are compared with.
    pub fn baselines(&self) -> &[Baseline] {
        &self.baselines
    }

    /// The SHA-256 of its lines; complete once its end has been read.
    pub fn sha256(&self) -> &str {
        &self.sha256
    }

    /// The witnesses who have repeated its runs; complete once its end has been read.
    pub fn witnesses(&self) -> &[Witness] {
        &self.witnesses
    }

    /// The next run; `None` after the last one, if the checksum was right.
    ///
    /// # Errors
    /// If the file is not what was written, from the first line that shows it.
    pub fn next_run(&mut self) -> Result<Option<Exported>, ExchangeError> {
        while !self.is_over {
            let before = self.sum.clone();
            self.run_left = RUN_MOST;
            match self.line()? {
                Line::Suite(text) => self.suite(&text)?,
                Line::Run(head) => return self.run(*head).map(Some),
                Line::End(end) => self.end(end.runs, &end.sha256, before)?,
                _ => return Err(self.wrong("expected a run, found a part of one")),
            }
        }
        Ok(None)
    }

    fn header(&mut self) -> Result<(), ExchangeError> {
        // A later form may have other lines; its first one names it.
        #[derive(serde::Deserialize)]
        struct First {
            header: crate::line::Header<'static>,
        }
        let bytes = self.bytes().map_err(|error| match error {
            ExchangeError::Torn(0) | ExchangeError::Line { .. } => ExchangeError::Foreign,
            other => other,
        })?;
        let first: First = serde_json::from_slice(&bytes).map_err(|_| ExchangeError::Foreign)?;
        let header = first.header;
        if header.schema == SCHEMA {
            if let Some(what) = Baseline::fault(&header.baselines) {
                return Err(self.wrong(&what));
            }
            self.baselines = header.baselines;
            return Ok(());
        }
        if !header.schema.starts_with("punctual.export/") {
            return Err(ExchangeError::Foreign);
        }
        Err(ExchangeError::Newer {
            expected: SCHEMA,
            found: header.schema.into_owned(),
            punctual: header.punctual.into_owned(),
        })
    }

    fn suite(&mut self, text: &str) -> Result<(), ExchangeError> {
        if self.suites.len() >= SUITES_MOST {
            return Err(self.wrong(&format!("expected {SUITES_MOST} suites at most")));
        }
        let length = text.len() as u64;
        if length > SUITE_MOST {
            let most = format!("expected a suite of {SUITE_MOST} bytes at most, found {length}");
            return Err(self.wrong(&most));
        }
        let Some(left) = self.suites_left.checked_sub(length) else {
            let most = format!("expected suites of {ALL_SUITES_MOST} bytes at most, found more");
            return Err(self.wrong(&most));
        };
        self.suites_left = left;
        let suite = Suite::parse(text);
        let suite = suite.map_err(|why| self.wrong(&format!("expected a suite: {why}")))?;
        self.suites.push(Arc::new(suite));
        Ok(())
    }

    fn run(&mut self, head: Head<'_>) -> Result<Exported, ExchangeError> {
        let begun = self.number;
        let suite = match head.suite {
            None => None,
            Some(number) => match self.suites.get(number) {
                Some(suite) => Some(Arc::clone(suite)),
                None => return Err(self.wrong("expected its suite before the run")),
            },
        };
        for (found, most, what) in [
            (head.steps, STEPS_MOST, "steps"),
            (head.recordings, RECORDINGS_MOST, "recordings"),
            (head.unsupported, STEPS_MOST, "unsupported steps"),
        ] {
            if found > most {
                return Err(self.wrong(&format!("expected {most} {what} at most, found {found}")));
            }
        }
        let mut run = head.run.into_owned();
        let id = run.id.clone();
        let wrong = |what: String| ExchangeError::Run {
            id: id.clone(),
            what,
        };
        if !(run.steps.is_empty() && run.recordings.is_empty() && run.unsupported.is_empty()) {
            return Err(wrong("expected its parts on lines of their own".into()));
        }
        for _ in 0..head.steps {
            match self.line()? {
                Line::Step(step) => run.steps.push(step.into_owned()),
                _ => return Err(self.wrong("expected a step")),
            }
        }
        let mut output_left = OUTPUT_MOST;
        for _ in 0..head.recordings {
            let Line::Recording(recording) = self.line()? else {
                return Err(self.wrong("expected a recording"));
            };
            let printed = recording
                .output
                .as_ref()
                .map_or(0, |text| text.len() as u64);
            let Some(left) = output_left.checked_sub(printed) else {
                let most = format!("expected {OUTPUT_MOST} bytes of output at most, found more");
                return Err(self.wrong(&most));
            };
            output_left = left;
            run.recordings.push((*recording).into_owned());
        }
        for _ in 0..head.unsupported {
            match self.line()? {
                Line::Unsupported(unsupported) => run.unsupported.push(unsupported.into_owned()),
                _ => return Err(self.wrong("expected what was unsupported")),
            }
        }
        if let Some(what) = contradiction(&run, head.digest.as_deref()) {
            return Err(wrong(format!("{what} (from line {begun} on)")));
        }
        if !self.ids.insert(id) {
            return Err(self.wrong("expected each run once, found an id twice"));
        }
        self.runs += 1;
        Ok(Exported { run, suite })
    }

    /// Checks the last line and reads the witnesses behind it, if any.
    fn end(&mut self, runs: u64, expected: &str, before: Sha256) -> Result<(), ExchangeError> {
        let found = format!("{:x}", before.finalize());
        if found != expected {
            let expected = expected.chars().take(64).collect();
            return Err(ExchangeError::Checksum { expected, found });
        }
        if runs != self.runs {
            let found = self.runs;
            return Err(self.wrong(&format!("expected {runs} runs, found {found}")));
        }
        let mut more = [0];
        let read = self.lines.read(&mut more);
        if read.map_err(|error| self.unread(error))? > 0 {
            return Err(ExchangeError::Trailing);
        }
        self.witnesses = witness::read(self.lines.get_mut().get_mut())?;
        self.sha256 = found;
        self.is_over = true;
        Ok(())
    }

    fn line(&mut self) -> Result<Line<'static>, ExchangeError> {
        let bytes = self.bytes()?;
        let parsed = serde_json::from_slice(&bytes);
        parsed.map_err(|error| {
            let said = error.to_string();
            // The line's number in a text of one line says nothing.
            let said = said.split(" at line").next().unwrap_or_default();
            self.wrong(said)
        })
    }

    /// The next line, without its line end.
    fn bytes(&mut self) -> Result<Vec<u8>, ExchangeError> {
        let mut bytes = Vec::new();
        let most = LINE_MOST.min(self.run_left);
        let read = (&mut self.lines)
            .take(most + 1)
            .read_until(b'\n', &mut bytes);
        read.map_err(|error| self.unread(error))?;
        if bytes.len() as u64 > most {
            let most = match most {
                LINE_MOST => format!("expected {LINE_MOST} bytes at most, found more"),
                _ => format!("expected a run of {RUN_MOST} bytes at most, found more"),
            };
            return Err(self.wrong(&most));
        }
        self.run_left -= bytes.len() as u64;
        if bytes.last() != Some(&b'\n') {
            return Err(ExchangeError::Torn(self.number));
        }
        self.number += 1;
        self.sum.update(&bytes);
        bytes.pop();
        Ok(bytes)
    }

    /// The fault of a file that cannot be read further.
    fn unread(&self, error: io::Error) -> ExchangeError {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => ExchangeError::Torn(self.number),
            // What the decompressor says of damage.
            io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => {
                self.wrong(&format!("{error}: the file is damaged"))
            }
            _ => error.into(),
        }
    }

    fn wrong(&self, what: &str) -> ExchangeError {
        ExchangeError::Line {
            number: self.number,
            what: what.to_owned(),
        }
    }
}

/// The contradiction in a run, if there is one.
fn contradiction(run: &Run, digest: Option<&str>) -> Option<String> {
    if run.state == State::Running {
        return Some("expected a run that has ended, found it running".into());
    }
    let mut keys = HashSet::new();
    for recording in &run.recordings {
        let title = recording.title();
        if let Some(what) = recording.contradiction() {
            return Some(format!("{title}: expected a sound recording, found {what}"));
        }
        if !keys.insert(&recording.key) {
            return Some(format!("{title}: expected each recording once"));
        }
    }
    let found = run.digest();
    // Earlier versions gave one to runs in which nothing was measured.
    let is_of_nothing = || {
        let is_finished = run.state == State::Finished && found.is_none();
        let then = is_finished.then(|| raw_digest(&run.recordings, &run.steps, &run.unsupported));
        then.is_some() && then.as_deref() == digest
    };
    if found.as_deref() != digest && !is_of_nothing() {
        let word = |digest: Option<&str>| digest.unwrap_or("none").chars().take(64).collect();
        let (expected, found): (String, String) = (word(digest), word(found.as_deref()));
        return Some(format!(
            "expected digest {expected}, as the file says, found {found}"
        ));
    }
    // One of another version may say more than is known here: then nothing of it is repeated or
    // compared. What it says of steps and seed is read of any.
    let plan: Planned = match toml::from_str(&run.plan) {
        Ok(plan) => plan,
        Err(why) => return Some(format!("expected a plan: {}", why.message())),
    };
    if run.is_virtual() && plan.seed != run.seed {
        return Some(format!("expected seed {} in its plan", run.seed));
    }
    machine(run)
        .or_else(|| outside_the_plan(run, &plan))
        .or_else(|| beside_the_plan(run, &plan))
}

/// The content of plans of all versions.
#[derive(Deserialize)]
struct Planned {
    #[serde(default)]
    seed: u64,
    /// The kernel's tracer may end a step at a sample above its limit.
    tracing: Option<serde::de::IgnoredAny>,
    step: Vec<PlannedStep>,
}

#[derive(Deserialize)]
struct PlannedStep {
    probe: String,
    #[serde(default = "idle")]
    load: String,
    #[serde(default)]
    skip: bool,
    interval_us: Option<i64>,
    #[serde(flatten)]
    params: toml::Table,
}

fn idle() -> String {
    IDLE.into()
}

/// The impossible part of a run's machine, if there is one.
fn machine(run: &Run) -> Option<String> {
    let (said, bench) = (&run.subject.bench, run.machine.bench());
    if said != bench {
        return Some(format!(
            "expected the bench {bench}, as its machine is, found {said}"
        ));
    }
    if run.shards == 0 {
        return Some("expected a run of 1 part at least, found 0".into());
    }
    let machine = run.machine.as_virtual()?;
    let numbers = [
        ("CPUs", machine.cpus),
        ("ns per instruction", machine.ns_per_insn),
        ("MiB of memory", machine.memory_mib),
    ];
    let none = numbers.into_iter().find(|(_, found)| *found == 0);
    let none = none.map(|(what, _)| format!("expected a machine with {what}, found 0"));
    let imported = || {
        let wrong = "expected the file of another program from a machine in real time";
        run.is_imported().then(|| wrong.to_owned())
    };
    none.or_else(imported)
}

/// Finds in a run what its plan does not ask for. Runs of another program have no plan.
fn outside_the_plan(run: &Run, plan: &Planned) -> Option<String> {
    if run.is_imported() {
        return more_than_a_file(run, plan);
    }
    let recordings = run.recordings.iter().map(|one| {
        let key = &one.key;
        (key.step, &key.probe, &key.load, one.interval)
    });
    let absent = run.unsupported.iter();
    let absent = absent.map(|one| (one.step, &one.probe, &one.load, None));
    recordings
        .chain(absent)
        .find_map(|(number, probe, load, interval)| {
            let step = plan.step.get(number as usize);
            let step = step.filter(|step| !step.skip && (&step.probe, &step.load) == (probe, load));
            let Some(step) = step else {
                let number = u64::from(number) + 1;
                return Some(format!(
                    "expected {probe} / {load} as step {number} of its plan"
                ));
            };
            let asked = step.interval_us?;
            let found = interval.filter(|found| found.0 != asked.saturating_mul(1_000))?;
            Some(format!(
                "{probe} / {load}: expected the interval of its plan, {asked} us, found {found}"
            ))
        })
}

/// Finds in a finished run what differs from its plan. A run that ends early says so.
fn beside_the_plan(run: &Run, plan: &Planned) -> Option<String> {
    if run.state != State::Finished || plan.tracing.is_some() {
        return None;
    }
    run.recordings.iter().find_map(|recording| {
        let step = plan.step.get(recording.key.step as usize)?;
        let what = against_step(&step.params, recording)?;
        let title = recording.title();
        Some(format!("{title}: {what}"))
    })
}

/// Finds in a run what no file of another program holds: steps, samples, another probe.
fn more_than_a_file(run: &Run, plan: &Planned) -> Option<String> {
    let is_plain = |one: &Recording| {
        one.key.probe == IMPORTED_PROBE && one.samples.is_empty() && one.worst.is_empty()
    };
    let is_file = plan.step.is_empty()
        && run.steps.is_empty()
        && run.unsupported.is_empty()
        && run.recordings.iter().all(is_plain);
    (!is_file).then(|| {
        "expected what the file of another program holds, found what only Punctual measures"
            .to_owned()
    })
}

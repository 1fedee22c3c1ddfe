// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes a file of runs.

use std::borrow::Cow;
use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use punctual_model::Run;
use punctual_model::run::State;
use punctual_model::suite::Suite;
use sha2::{Digest as _, Sha256};

use crate::line::{
    Baseline, End, Head, Header, LINE_MOST, Line, OUTPUT_MOST, RECORDINGS_MOST, RUN_MOST,
    SUITE_MOST,
};
use crate::{ExchangeError, SCHEMA};

/// Writes a file of runs: the same runs give the same bytes.
pub struct Writer<W: Write> {
    out: GzEncoder<W>,
    sum: Sha256,
    suites: Vec<String>,
    runs: u64,
    /// The number of bytes that the run being written may still take.
    run_left: u64,
}

impl<W: Write> Writer<W> {
    /// Begins a file, of this version of the program.
    pub fn new(out: W, punctual: &str) -> Result<Self, ExchangeError> {
        Self::with_baselines(out, punctual, Vec::new())
    }

    /// Like [`Self::new`], with names of runs that are added.
    ///
    /// # Errors
    /// If no reader would take such names.
    pub fn with_baselines(
        out: W,
        punctual: &str,
        baselines: Vec<Baseline>,
    ) -> Result<Self, ExchangeError> {
        if let Some(what) = Baseline::fault(&baselines) {
            return Err(std::io::Error::other(what).into());
        }
        let mut new = Self {
            out: GzEncoder::new(out, Compression::default()),
            sum: Sha256::new(),
            suites: Vec::new(),
            runs: 0,
            run_left: RUN_MOST,
        };
        new.put(&Line::Header(Header {
            schema: SCHEMA.into(),
            punctual: punctual.into(),
            baselines,
        }))?;
        Ok(new)
    }

    /// Adds a run, with its suite as it was measured, if that is known.
    ///
    /// # Errors
    /// If it has not ended, or its content cannot be written so that it is read back unchanged.
    pub fn add(&mut self, run: &Run, suite: Option<&Suite>) -> Result<(), ExchangeError> {
        let wrong = |what: String| ExchangeError::Run {
            id: run.id.clone(),
            what,
        };
        if run.state == State::Running {
            return Err(wrong(
                "expected one that has ended, found it running".into(),
            ));
        }
        if run.recordings.len() > RECORDINGS_MOST {
            let found = run.recordings.len();
            let most = format!("expected {RECORDINGS_MOST} recordings at most, found {found}");
            return Err(wrong(most));
        }
        let printed = run.recordings.iter().filter_map(|one| one.output.as_ref());
        let printed: u64 = printed.map(|text| text.len() as u64).sum();
        if printed > OUTPUT_MOST {
            let most = format!("expected {OUTPUT_MOST} bytes of output at most, found {printed}");
            return Err(wrong(most));
        }
        let suite = suite.map(|suite| self.suite(suite)).transpose()?;
        self.run_left = RUN_MOST;
        let digest = run.digest();
        self.put(&Line::Run(Box::new(Head {
            run: Cow::Owned(without_samples(run)),
            digest: digest.map(Cow::Owned),
            suite,
            steps: run.steps.len(),
            recordings: run.recordings.len(),
            unsupported: run.unsupported.len(),
        })))?;
        for step in &run.steps {
            self.put(&Line::Step(Cow::Borrowed(step)))?;
        }
        for recording in &run.recordings {
            self.put(&Line::Recording(Box::new(Cow::Borrowed(recording))))?;
        }
        for unsupported in &run.unsupported {
            self.put(&Line::Unsupported(Cow::Borrowed(unsupported)))?;
        }
        self.runs += 1;
        Ok(())
    }

    /// Ends the file.
    pub fn finish(mut self) -> Result<W, ExchangeError> {
        self.run_left = RUN_MOST;
        let sha256 = format!("{:x}", self.sum.clone().finalize());
        self.put(&Line::End(End {
            runs: self.runs,
            sha256: sha256.into(),
        }))?;
        Ok(self.out.finish()?)
    }

    /// The number of a suite, which is written first if it is new.
    fn suite(&mut self, suite: &Suite) -> Result<usize, ExchangeError> {
        let text = toml::to_string(suite).map_err(std::io::Error::other)?;
        if let Some(number) = self.suites.iter().position(|own| *own == text) {
            return Ok(number);
        }
        if text.len() as u64 > SUITE_MOST {
            let found = text.len();
            let long = format!("a suite of {found} bytes, of which {SUITE_MOST} are the most");
            return Err(std::io::Error::other(long).into());
        }
        self.run_left = RUN_MOST;
        self.put(&Line::Suite(Cow::Borrowed(&text)))?;
        self.suites.push(text);
        Ok(self.suites.len() - 1)
    }

    fn put(&mut self, line: &Line<'_>) -> Result<(), ExchangeError> {
        let mut bytes = serde_json::to_vec(line).map_err(std::io::Error::other)?;
        bytes.push(b'\n');
        if bytes.len() as u64 > LINE_MOST {
            let found = bytes.len();
            let long = format!("a line of {found} bytes, of which {LINE_MOST} are the most");
            return Err(std::io::Error::other(long).into());
        }
        let Some(left) = self.run_left.checked_sub(bytes.len() as u64) else {
            let long = format!("a run of more than {RUN_MOST} bytes, which are the most");
            return Err(std::io::Error::other(long).into());
        };
        self.run_left = left;
        self.sum.update(&bytes);
        Ok(self.out.write_all(&bytes)?)
    }
}

/// A copy of a run without steps and recordings, which follow it.
fn without_samples(run: &Run) -> Run {
    Run {
        id: run.id.clone(),
        suite: run.suite.clone(),
        plan: run.plan.clone(),
        seed: run.seed,
        request: run.request.clone(),
        subject: run.subject.clone(),
        state: run.state,
        error: run.error.clone(),
        started: run.started.clone(),
        finished: run.finished.clone(),
        punctual: run.punctual.clone(),
        machine: run.machine.clone(),
        shards: run.shards,
        provenance: run.provenance.clone(),
        steps: Vec::new(),
        recordings: Vec::new(),
        unsupported: Vec::new(),
        console: run.console.clone(),
        arrivals: Vec::new(),
    }
}

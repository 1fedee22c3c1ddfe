// SPDX-License-Identifier: MIT OR Apache-2.0
//! The digest: equal digests mean equal behaviour.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

use crate::machine::MachineRecord;
use crate::record::{StepRecord, Unsupported};
use crate::recording::{Recording, Sample, Work};
use crate::run::{Run, work_of};

/// SHA-256 over a run's samples, in order, as lower-case hexadecimal digits.
///
/// Covered: per recording its names, counts, every kept sample, every bin, the worst
/// samples and its load's work; per unsupported probe its name. Not covered: dates, host
/// names, file names, program output and anything else that may differ between two machines with
/// the same behaviour. The exact bytes are given in `docs/method/digest.md`.
pub fn digest(
    recordings: &[Recording],
    steps: &[StepRecord],
    unsupported: &[Unsupported],
) -> String {
    let mut hasher = Hasher(Sha256::new());
    hasher.text("punctual.digest/1");
    hasher.number(recordings.len() as i64);
    for recording in recordings {
        hasher.recording(recording, work_of(steps, recording));
    }
    hasher.number(unsupported.len() as i64);
    for absent in unsupported {
        hasher.text(&absent.probe);
        hasher.text(&absent.load);
    }
    hasher.finish()
}

/// Returns the fingerprint of an imported run's content, whatever its name was at import. It
/// distinguishes the program's file from others, but not from its copies. If it was not noted, this
/// is the SHA-256 over all of the run's figures.
pub fn content(run: &Run) -> String {
    let mut hasher = Hasher(Sha256::new());
    hasher.text("punctual.content/1");
    if let Some(text) = run.imported_text() {
        hasher.text(text);
        return hasher.finish();
    }
    let mut recordings = run.recordings.clone();
    for recording in &mut recordings {
        // That is what whoever imports it says.
        recording.key.load.clear();
    }
    hasher.text(&digest(&recordings, &[], &[]));
    if let MachineRecord::Host(machine) = &run.machine {
        hasher.text(&machine.host);
    }
    if let Some(found) = &run.provenance {
        hasher.text(&found.release);
        hasher.text(&found.version);
    }
    hasher.finish()
}

/// Feeds values with their lengths, so that no two different runs give the same bytes.
struct Hasher(Sha256);

impl Hasher {
    fn text(&mut self, text: &str) {
        self.number(text.len() as i64);
        self.0.update(text);
    }

    fn number(&mut self, number: i64) {
        self.0.update(number.to_le_bytes());
    }

    fn sample(&mut self, sample: Sample) {
        self.number(sample.seq as i64);
        self.number(sample.at.0);
        self.number(sample.value.0);
    }

    fn work(&mut self, work: &Work) {
        self.number(work.rounds as i64);
        self.number(work.amount as i64);
    }

    fn recording(&mut self, recording: &Recording, work: &[Work]) {
        self.text(&recording.key.probe);
        self.text(&recording.key.load);
        self.text(&recording.key.label());
        self.number(recording.count as i64);
        self.number(recording.missed as i64);
        self.number(recording.sum.0);
        self.number(recording.samples.len() as i64);
        for sample in recording.samples.iter() {
            self.sample(sample);
        }
        for bin in recording.histogram.own() {
            self.number(bin.low.0);
            self.number(bin.count as i64);
        }
        self.number(recording.histogram.overflow() as i64);
        self.number(recording.histogram.negative() as i64);
        self.foreign(recording);
        for sample in &recording.worst {
            self.sample(*sample);
        }
        for work in work {
            self.work(work);
        }
    }

    /// Feeds the bins of another program, if there are any, with the extremes.
    fn foreign(&mut self, recording: &Recording) {
        let bins: Vec<_> = recording.histogram.foreign().collect();
        if bins.is_empty() {
            return;
        }
        self.text("foreign bins");
        self.number(bins.len() as i64);
        for bin in bins {
            self.number(bin.low.0);
            self.number(bin.high.0);
            self.number(bin.count as i64);
        }
        for extreme in [recording.min(), recording.max()].into_iter().flatten() {
            self.number(extreme.0);
        }
    }

    fn finish(self) -> String {
        hexadecimal(&self.0.finalize())
    }
}

/// Returns the SHA-256 of some bytes, in lower-case hexadecimal digits.
pub fn sha256(bytes: &[u8]) -> String {
    hexadecimal(&Sha256::digest(bytes))
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("writing to memory does not fail");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::RecordingKey;
    use crate::recording::Recorder;
    use crate::units::Nanos;

    fn recording(values: &[i64]) -> Recording {
        let mut recorder = Recorder::new(10);
        for value in values {
            recorder.record(Nanos(7), Nanos(*value));
        }
        recorder.finish(RecordingKey::new("timer", "idle", "cpu0"))
    }

    #[test]
    fn a_nanosecond_changes_the_digest_and_a_setting_does_not() {
        let first = recording(&[1, 2, 3]);
        let mut same = first.clone();
        same.settings.insert("policy".into(), "SCHED_FIFO".into());
        let digest_of = |recording: &Recording| digest(std::slice::from_ref(recording), &[], &[]);
        assert_eq!(digest_of(&first), digest_of(&same));
        assert_ne!(digest_of(&first), digest_of(&recording(&[1, 2, 4])));
        assert_eq!(digest_of(&first).len(), 64);
    }

    #[test]
    fn an_edge_of_a_foreign_bin_changes_the_digest() {
        let with = |high| {
            let mut recording = recording(&[1]);
            let (low, high) = (Nanos(0), Nanos(high));
            recording.histogram.record_between(low, high, 1);
            digest(&[recording], &[], &[])
        };
        assert_eq!(with(9), with(9));
        assert_ne!(with(9), with(8));
    }

    #[test]
    fn a_probe_that_could_not_run_changes_the_digest() {
        let absent = Unsupported {
            step: 0,
            probe: "irq".into(),
            load: "idle".into(),
            reason: "no module".into(),
        };
        assert_ne!(digest(&[], &[], &[]), digest(&[], &[], &[absent]));
    }
}

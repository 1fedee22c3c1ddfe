// SPDX-License-Identifier: MIT OR Apache-2.0
//! Samples, and the data that one probe delivers under one load.

use serde::{Deserialize, Serialize};

use crate::amount;
use crate::capture::{CAPTURES_MOST, Capture};
use crate::contradiction;
use crate::finding::{Fact, Facts, Finding, Findings};
use crate::histogram::{Histogram, is_close};
use crate::key::RecordingKey;
use crate::reason::Reason;
use crate::units::Nanos;

/// The number of worst samples that a recording keeps.
pub const WORST_KEPT: usize = 16;

/// The most raw samples that a recording may keep: 16 bytes for each in the target's memory,
/// and never more than fit into a frame.
pub const KEEP_MOST: u32 = 10_000_000;

/// The upper limit of every count in a recording: 2,000 years at 4 kHz. So counts can be added up.
pub const COUNT_MOST: u64 = 1 << 48;

/// Setting: the part of each sample that goes into taking its two time stamps, in ns.
pub const TRACING_OVERHEAD: &str = "tracing_overhead_ns";

/// Setting: missed periods were not counted, with the reason.
pub const MISSED: &str = "missed";

/// Finding: the time that a program's thread had been in its last cycle when it ended, if that is
/// longer than any cycle that counts. It is no cycle, since nobody knows how long it would last.
pub const ENDED_WITHIN: &str = "ended_within";

/// Finding: the number of a program's cycles for which the kernel did not report when the thread
/// got the CPU. Each of them is later, or executed for longer, than its sample says.
pub const UNTOLD: &str = "switches_untold";

/// Setting: the event that ended a recording before it had everything that was requested, unless
/// the user asked for it to end.
pub const ENDED_BY: &str = "ended_by";

/// Setting of a recording whose sum is not known exactly: the amount by which the mean may exceed
/// the one that follows from the sum, in ns.
pub const MEAN_WITHIN: &str = "mean_within_ns";

/// Setting: the reason why the distribution of samples is known only in part, and how to get the
/// whole.
pub const DISTRIBUTION: &str = "distribution";

/// Finding of a probe whose samples are events: the time for which it watched for them.
pub const OBSERVED: &str = "observed";

/// Settings: the numbers of page faults of the measuring threads, without and with input from a
/// device.
pub const FAULTS: [&str; 2] = ["minor_faults", "major_faults"];

/// One measured value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Sample {
    /// Its number within the recording, from 0, warm-up not counted.
    pub seq: u64,
    /// The time at which it was due or began, counted from the recording's start.
    #[serde(rename = "at_ns")]
    pub at: Nanos,
    /// The measured value.
    pub value: Nanos,
}

/// The data that one probe delivered under one load, in one variant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recording {
    /// The key that distinguishes it from all other recordings of its run.
    pub key: RecordingKey,
    /// The nominal time between two samples, if there is one.
    pub interval: Option<Nanos>,
    /// The number of samples taken, warm-up not counted.
    pub count: u64,
    /// The number of samples taken and discarded before the first that counts.
    pub warmup: u64,
    /// The sum of all samples.
    pub sum: Nanos,
    /// The smallest and the largest sample; `None` if there are no samples.
    pub extremes: Option<(Nanos, Nanos)>,
    /// Periods in which no sample could be taken because the previous one was so late.
    pub missed: u64,
    /// All samples by value.
    pub histogram: Histogram,
    /// The [`WORST_KEPT`] largest samples, largest first; of equal ones the earlier first.
    pub worst: Vec<Sample>,
    /// The samples themselves, in order, up to the limit that the plan set.
    pub samples: Samples,
    /// The largest sample of each part, in order, of a recording that was reported in parts while
    /// it was taken.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub maxima: Vec<Sample>,
    /// Captures of what the kernel's tracer had noted of samples above a limit, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub captures: Vec<Capture>,
    /// How it was measured: scheduling, affinity, timer slack, all as read back.
    pub settings: Facts,
    /// The probe's findings besides its samples.
    pub findings: Findings,
    /// Output of a foreign program, or the probe's own report besides its samples: a table,
    /// events in order.
    pub output: Option<String>,
    /// True if the target was asked to end during the measurement: there may be fewer samples
    /// than the plan asked for.
    #[serde(default)]
    pub interrupted: bool,
}

impl Recording {
    /// Returns the smallest sample.
    pub fn min(&self) -> Option<Nanos> {
        self.extremes.map(|(min, _)| min)
    }

    /// Returns the largest sample.
    pub fn max(&self) -> Option<Nanos> {
        self.extremes.map(|(_, max)| max)
    }

    /// Returns the mean, rounded to a nanosecond; `None` if it is known less precisely than a
    /// histogram would give it.
    pub fn mean(&self) -> Option<Nanos> {
        let (low, high) = self.mean_between()?;
        let mean = Nanos(low.round() as i64);
        is_close(mean, Nanos(high.round() as i64)).then_some(mean)
    }

    /// Returns the least and the greatest possible mean, in nanoseconds: the two are equal if
    /// samples were summed up. `None` if there are no samples.
    pub fn mean_between(&self) -> Option<(f64, f64)> {
        let low = (self.count > 0).then(|| self.sum.0 as f64 / self.count as f64)?;
        Some((low, low + self.mean_within() as f64))
    }

    /// Returns the amount by which the mean may exceed the one from the sum, in nanoseconds.
    pub(crate) fn mean_within(&self) -> i128 {
        let within = self.settings.get(MEAN_WITHIN).and_then(Fact::number);
        i128::from(within.unwrap_or(0).max(0))
    }

    /// Returns the reason why the distribution is only partly known, and the way to get the whole.
    pub fn distribution_gap(&self) -> Option<&Reason> {
        match self.settings.get(DISTRIBUTION) {
            Some(Fact::Unknown { unknown }) => Some(unknown),
            _ => None,
        }
    }

    /// Returns the number of missed periods; `None` if they were not counted.
    pub fn missed_periods(&self) -> Option<u64> {
        let is_unknown = matches!(self.settings.get(MISSED), Some(Fact::Unknown { .. }));
        (!is_unknown).then_some(self.missed)
    }

    /// Says that it was ended before it had everything requested, after how many samples, and by
    /// whom unless it was the user: `interrupted after 100 samples: …`.
    pub fn interruption(&self) -> Option<String> {
        let by = self.settings.get(ENDED_BY).and_then(Fact::text);
        let by = by.map_or_else(String::new, |by| format!(": {by}"));
        let count = self.count;
        self.interrupted
            .then(|| format!("interrupted after {count} samples{by}"))
    }

    /// Explains why it tells less than it should: it was interrupted, or the kernel did not report
    /// when a thread got the CPU, so that samples are lower than the true values.
    pub fn shortcoming(&self) -> Option<String> {
        let untold = self.findings.get(UNTOLD).and_then(Finding::count);
        let untold = untold.filter(|cycles| *cycles > 0).map(|cycles| {
            format!("the kernel did not tell when its thread got the CPU in {cycles} of its cycles")
        });
        self.interruption().or(untold)
    }

    /// Returns the part of each sample that goes into taking its two time stamps, if it is known.
    pub fn tracing_overhead(&self) -> Option<Nanos> {
        let overhead = self.settings.get(TRACING_OVERHEAD)?;
        overhead.number().map(Nanos)
    }

    /// Returns how long a probe watched for events; `None` if its samples are not events. If there
    /// is a time, even the absence of samples is a result.
    pub fn observed(&self) -> Option<Nanos> {
        self.findings.get(OBSERVED)?.nanos()
    }

    /// Returns true if a digest covers something measured in it: samples, missed periods, or the
    /// fact that it watched for events and saw none.
    pub fn is_hashed(&self) -> bool {
        let observed = self.observed().is_some_and(|time| time > Nanos::ZERO);
        self.count > 0 || self.missed > 0 || observed
    }

    /// Returns the number of page faults of the measuring threads; `None` if it is not known.
    pub fn page_faults(&self) -> Option<i64> {
        let count = |name: &&str| self.settings.get(*name)?.number();
        FAULTS.iter().map(count).sum()
    }

    /// Returns true if every sample was kept, not only counted.
    pub fn is_complete(&self) -> bool {
        self.samples.len() as u64 == self.count
    }

    /// Returns a contradiction within it, if any. A [`Recorder`] never makes one; a recording that
    /// was sent or stored may have been forged or damaged.
    pub fn contradiction(&self) -> Option<&'static str> {
        let kept = self.samples.values.len() as u64;
        let most = self.count.max(self.missed).max(self.warmup);
        let ordered = self.extremes.is_none_or(|(min, max)| min <= max);
        // Before it is told of which probe it is, it has no name.
        let probe = &*self.key.probe;
        let looks_out = probe.is_empty() || amount::TIMED.iter().any(|(name, _)| *name == probe);
        let rules = [
            (
                self.samples.steps.len() as u64 == kept,
                "sample columns of two lengths",
            ),
            (kept <= self.count, "more samples than were counted"),
            (
                self.histogram.count() == self.count,
                "bins that do not add up to its count",
            ),
            (
                self.extremes.is_some() == (self.count > 0),
                "extremes without samples, or none",
            ),
            (most <= COUNT_MOST, "a count that no time suffices for"),
            (ordered, "a smallest sample that is larger than the largest"),
            (self.worst.len() <= WORST_KEPT, "too many worst samples"),
            (
                self.maxima.len() as u64 <= self.count,
                "more largest samples than were counted",
            ),
            (self.captures.len() <= CAPTURES_MOST, "too many captures"),
            (
                looks_out || self.observed().is_none(),
                "a time observed by a probe that counts samples",
            ),
        ];
        let own = rules.iter().find(|(holds, _)| !holds);
        let captures = || self.captures.iter().find_map(Capture::contradiction);
        let figures = || contradiction::figures(self);
        own.map(|(_, what)| *what)
            .or_else(captures)
            .or_else(figures)
    }

    /// Returns `probe / load / variant`, as a reader would name this recording.
    pub fn title(&self) -> String {
        self.key.to_string()
    }
}

/// Samples as columns: the form in which they are sent and stored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Samples {
    /// Time from each sample to the next; the first counts from the recording's start.
    steps: Vec<Nanos>,
    /// The measured values.
    values: Vec<Nanos>,
}

impl Samples {
    /// Creates an empty set with room for `capacity` samples, each page of it touched.
    fn with_room(capacity: usize) -> Self {
        let touched = || {
            let mut column = vec![Nanos(-1); capacity];
            column.clear();
            column
        };
        Self {
            steps: touched(),
            values: touched(),
        }
    }

    /// The number of samples.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Returns true if there are no samples.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Time from each sample to the next; the first counts from the recording's start.
    pub(crate) fn steps(&self) -> &[Nanos] {
        &self.steps
    }

    /// Iterates over the samples in order.
    pub fn iter(&self) -> impl Iterator<Item = Sample> + '_ {
        let mut at = Nanos::ZERO;
        self.steps
            .iter()
            .zip(&self.values)
            .zip(0..)
            .map(move |((step, value), seq)| {
                at += *step;
                Sample {
                    seq,
                    at,
                    value: *value,
                }
            })
    }
}

/// The work of one of a load's workers while samples were taken: from the moment when the first
/// measuring thread was ready, its warm-up included, until the last thread took its last sample.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Work {
    /// The worker's command.
    pub worker: String,
    /// The number of times that the command was done.
    pub rounds: u64,
    /// The amount of work, counted in `unit`.
    pub amount: u64,
    /// The unit of `amount`: `messages`, `files`, `bytes`.
    pub unit: String,
    /// The CPU time that it took, user and system.
    pub cpu: Nanos,
    /// The time during which samples were taken; 0 in runs from before this was recorded.
    #[serde(default)]
    pub span: Nanos,
    /// The time after which the recipe repeats itself; 0 if it repeats with each round.
    #[serde(default)]
    pub period: Nanos,
    /// True if the command never ends by itself, so that no round is expected.
    #[serde(default)]
    pub endless: bool,
    /// The CPUs on which it may run, as read back: `0-2`; empty in runs from before this was
    /// recorded.
    #[serde(default)]
    pub cpus: String,
}

impl Work {
    /// Returns the number of the recipe's periods that were played: 2.5 for two and a half periods;
    /// `None` if it has no period, or if the time is not known.
    pub fn periods(&self) -> Option<f64> {
        let is_known = self.period > Nanos::ZERO && self.span > Nanos::ZERO;
        is_known.then(|| self.span.0 as f64 / self.period.0 as f64)
    }
}

/// Statistics of samples, taken without allocating: all memory is allocated, and touched,
/// beforehand.
#[derive(Clone, Debug)]
pub struct Tally {
    count: u64,
    sum: Nanos,
    min: Nanos,
    max: Nanos,
    missed: u64,
    histogram: Histogram,
    worst: Vec<Sample>,
}

impl Tally {
    /// Creates the tally of no samples.
    #[expect(clippy::new_without_default, reason = "it takes much memory")]
    pub fn new() -> Self {
        Self {
            count: 0,
            sum: Nanos::ZERO,
            min: Nanos(i64::MAX),
            max: Nanos(i64::MIN),
            missed: 0,
            histogram: Histogram::new(),
            worst: Vec::with_capacity(WORST_KEPT),
        }
    }

    /// Takes one sample.
    fn record(&mut self, at: Nanos, value: Nanos) {
        self.sum += value;
        self.take(at, value);
    }

    /// Takes one sample without adding it to the sum, which may overflow.
    pub(crate) fn take(&mut self, at: Nanos, value: Nanos) {
        self.histogram.record(value);
        self.note_worst(Sample {
            seq: self.count,
            at,
            value,
        });
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        self.count += 1;
    }

    fn note_worst(&mut self, sample: Sample) {
        if self.worst.len() == WORST_KEPT {
            if self
                .worst
                .last()
                .is_some_and(|least| sample.value <= least.value)
            {
                return;
            }
            self.worst.pop();
        }
        let place = self
            .worst
            .partition_point(|kept| kept.value >= sample.value);
        self.worst.insert(place, sample);
    }

    /// The number of samples.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The largest sample; the first of equal ones.
    pub fn worst(&self) -> Option<Sample> {
        self.worst.first().copied()
    }

    /// Adds samples that were taken after its own, and that were counted from 0.
    pub fn absorb(&mut self, later: &Self) {
        for sample in &later.worst {
            self.note_worst(Sample {
                seq: sample.seq + self.count,
                ..*sample
            });
        }
        self.histogram.add(&later.histogram);
        self.sum += later.sum;
        self.min = self.min.min(later.min);
        self.max = self.max.max(later.max);
        self.missed += later.missed;
        self.count += later.count;
    }

    /// Forgets all samples, but keeps its memory.
    pub fn clear(&mut self) {
        (self.count, self.sum, self.missed) = (0, Nanos::ZERO, 0);
        (self.min, self.max) = (Nanos(i64::MAX), Nanos(i64::MIN));
        self.histogram.clear();
        self.worst.clear();
    }

    /// Converts the tally into a recording without raw samples.
    pub fn finish(self, key: RecordingKey) -> Recording {
        Recording {
            key,
            interval: None,
            count: self.count,
            warmup: 0,
            sum: self.sum,
            extremes: (self.count > 0).then_some((self.min, self.max)),
            missed: self.missed,
            histogram: self.histogram,
            worst: self.worst,
            samples: Samples::default(),
            maxima: Vec::new(),
            captures: Vec::new(),
            settings: Facts::new(),
            findings: Findings::new(),
            output: None,
            interrupted: false,
        }
    }
}

/// Takes samples without allocating: all memory is allocated, and touched, beforehand.
#[derive(Debug)]
pub struct Recorder {
    /// The figures since the last hand-over.
    pub tally: Tally,
    samples: Samples,
    keep: usize,
    last_at: Nanos,
}

impl Recorder {
    /// Creates a recorder that keeps the first `keep` samples raw and counts all of them.
    pub fn new(keep: usize) -> Self {
        Self {
            tally: Tally::new(),
            samples: Samples::with_room(keep),
            keep,
            last_at: Nanos::ZERO,
        }
    }

    /// Takes one sample. Neither allocates nor locks, and never fails.
    pub fn record(&mut self, at: Nanos, value: Nanos) {
        if self.samples.values.len() < self.keep {
            self.samples.steps.push(at - self.last_at);
            self.samples.values.push(value);
            self.last_at = at;
        }
        self.tally.record(at, value);
    }

    /// Counts periods in which no sample could be taken.
    pub fn miss(&mut self, periods: u64) {
        self.tally.missed += periods;
    }

    /// Returns the finished recording.
    pub fn finish(self, key: RecordingKey) -> Recording {
        Recording {
            samples: self.samples,
            ..self.tally.finish(key)
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn record(values: &[i64], keep: usize) -> Recording {
        let mut recorder = Recorder::new(keep);
        for (seq, value) in values.iter().enumerate() {
            recorder.record(Nanos(seq as i64 * 1_000), Nanos(*value));
        }
        recorder.finish(RecordingKey::new("timer", "idle", "cpu0"))
    }

    proptest! {
        #[test]
        fn a_recording_agrees_with_its_samples(
            values in prop::collection::vec(-1_000_000_i64..1_000_000, 1..200)
        ) {
            let recording = record(&values, 1_000);
            let mut sorted = values.clone();
            sorted.sort_unstable();
            prop_assert_eq!(recording.min(), Some(Nanos(sorted[0])));
            prop_assert_eq!(recording.max(), Some(Nanos(sorted[sorted.len() - 1])));
            prop_assert_eq!(recording.count, recording.histogram.count());
            let kept: Vec<i64> = recording.samples.iter().map(|sample| sample.value.0).collect();
            prop_assert_eq!(&kept, &values);
            let worst: Vec<i64> = recording.worst.iter().map(|sample| sample.value.0).collect();
            sorted.reverse();
            sorted.truncate(WORST_KEPT);
            prop_assert_eq!(worst, sorted);
            for sample in &recording.worst {
                prop_assert_eq!(values[sample.seq as usize], sample.value.0);
                prop_assert_eq!(sample.at.0, sample.seq as i64 * 1_000);
            }
        }
    }

    proptest! {
        #[test]
        fn what_is_handed_over_in_parts_is_the_same_as_the_whole(
            values in prop::collection::vec(-1_000_i64..1_000_000, 1..200),
            cuts in prop::collection::vec(0_usize..200, 0..4),
        ) {
            let whole = record(&values, 10);
            let (mut recorder, mut total, mut part) = (Recorder::new(10), Tally::new(), Tally::new());
            for (seq, value) in values.iter().enumerate() {
                if cuts.contains(&seq) {
                    part.clear();
                    std::mem::swap(&mut recorder.tally, &mut part);
                    total.absorb(&part);
                }
                recorder.record(Nanos(seq as i64 * 1_000), Nanos(*value));
            }
            total.absorb(&recorder.tally);
            recorder.tally = total;
            let parts = recorder.finish(whole.key.clone());
            prop_assert_eq!(parts, whole);
        }
    }

    #[test]
    fn samples_past_the_limit_are_counted_and_only_then_dropped() {
        let recording = record(&[5, 9, 7, 1], 2);
        assert_eq!((recording.samples.len(), recording.count), (2, 4));
        assert!(!recording.is_complete());
        assert_eq!(recording.max(), Some(Nanos(9)));
    }

    #[test]
    fn a_recording_that_contradicts_itself_is_told_from_one_that_was_made() {
        assert_eq!(record(&[], 0).contradiction(), None);
        let sound = record(&[5, -9, i64::MAX, 1], 2);
        assert_eq!(sound.contradiction(), None);
        let wrong = |change: fn(&mut Recording)| {
            let mut forged = sound.clone();
            change(&mut forged);
            forged.contradiction().unwrap()
        };
        assert!(wrong(|one| one.missed = COUNT_MOST + 1).contains("no time"));
        assert!(wrong(|one| one.count = 5).contains("bins"));
        assert!(wrong(|one| one.count = 1).contains("more samples"));
        assert!(wrong(|one| one.extremes = None).contains("extremes"));
        assert!(wrong(|one| one.extremes = Some((Nanos(2), Nanos(1)))).contains("larger"));
        assert!(wrong(|one| one.samples.steps.clear()).contains("two lengths"));
        assert!(wrong(|one| one.worst = vec![one.worst[0]; 17]).contains("worst"));
    }

    #[test]
    fn what_was_cut_off_or_not_told_is_a_shortcoming() {
        let mut recording = record(&[5, 9], 2);
        assert_eq!(recording.shortcoming(), None);
        recording.findings.insert(UNTOLD.into(), Finding::Count(0));
        assert_eq!(recording.shortcoming(), None);
        recording.findings.insert(UNTOLD.into(), Finding::Count(3));
        let told = recording.shortcoming().unwrap();
        assert!(told.ends_with("got the CPU in 3 of its cycles"), "{told}");
        recording.interrupted = true;
        let told = recording.shortcoming().unwrap();
        assert_eq!(told, "interrupted after 2 samples");
    }

    #[test]
    fn an_empty_recording_has_no_extremes_and_no_mean() {
        let recording = record(&[], 10);
        assert_eq!((recording.extremes, recording.mean()), (None, None));
    }
}

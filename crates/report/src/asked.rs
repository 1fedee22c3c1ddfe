// SPDX-License-Identifier: MIT OR Apache-2.0
//! The samples that tell why two subjects differ: one of each, which stand for their runs.

use punctual_model::limit::{self, Demand};
use punctual_model::{Limit, Nanos, Recording, RecordingKey, Run};

/// A sample of one side, and one of the other, that are to be explained.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// The measurement.
    pub key: RecordingKey,
    /// The quantile of the sample: it is not shorter than this share of all; 1 is the worst.
    pub share: f64,
    /// The two runs: the one asked about, and the one that it is held against.
    pub runs: [String; 2],
}

impl Asked {
    /// Returns the question that a limit is about.
    /// The first runs break the limit, and the others keep to it. Returns `None` if nothing was
    /// measured on one side.
    pub fn of_limit(limit: &Limit, key: &RecordingKey, sides: [&[Run]; 2]) -> Option<Self> {
        let share = share_of(limit);
        // A limit of single samples is broken by the worst of all runs; a figure is one of
        // the typical run.
        let run = match limit.demand {
            Demand::Typical(..) | Demand::Relative(..) => middle_run,
            Demand::Never(_)
            | Demand::Arrival { .. }
            | Demand::Missed(_)
            | Demand::Jitter(_)
            | Demand::Rare { .. } => worst_run,
        };
        let [here, there] = sides.map(|runs| run(runs, key, share));
        Some(Self {
            key: key.clone(),
            share,
            runs: [here?.id.clone(), there?.id.clone()],
        })
    }

    /// Returns a question about samples at this share of all.
    /// Each is of the worst of all runs, or of their middle run.
    pub fn of_share(
        key: &RecordingKey,
        share: f64,
        sides: [&mut dyn Iterator<Item = &Run>; 2],
    ) -> Option<Self> {
        let [here, there] = sides.map(|runs| {
            let mut found = with_values(runs, key, share);
            found.sort_by_key(|(_, value)| *value);
            // Of equal ones the first.
            let most = found.last()?.1;
            let worst = found.iter().position(|(_, value)| *value == most)?;
            let at = if share >= 1.0 { worst } else { found.len() / 2 };
            Some(found[at].0.id.clone())
        });
        Some(Self {
            key: key.clone(),
            share,
            runs: [here?, there?],
        })
    }

    /// Its name: `worst`, `median`, `p99.9`.
    pub fn figure(&self) -> String {
        match self.share {
            1.0.. => "worst".to_owned(),
            0.5 => "median".to_owned(),
            share => format!("p{}", (share * 1e8).round() / 1e6),
        }
    }

    /// The number of the sample that stands for its run; `None` where that kept none.
    pub fn sample(&self, run: &Run) -> Option<u64> {
        let own = recording(run, &self.key)?;
        if self.share >= 1.0 {
            return own.worst.first().map(|sample| sample.seq);
        }
        let value = kept(own, self.share)?;
        let mut samples = own.samples.iter();
        samples.find(|one| one.value == value).map(|one| one.seq)
    }
}

/// Returns the share of the sample that stands for a limit.
fn share_of(limit: &Limit) -> f64 {
    let figure = match &limit.demand {
        Demand::Never(_)
        | Demand::Arrival { .. }
        | Demand::Missed(_)
        | Demand::Jitter(_)
        | Demand::Rare { .. } => {
            return 1.0;
        }
        Demand::Typical(figure, _) | Demand::Relative(figure, ..) => figure,
    };
    match figure {
        limit::Figure::Worst => 1.0,
        limit::Figure::Quantile(share) => *share,
        // No single sample is a mean, nor what a load did: the usual path stands for it.
        limit::Figure::Mean | limit::Figure::Cpu | limit::Figure::Work(_) => 0.5,
    }
}

/// The run in which that sample is as long as in the middle one of all runs.
pub fn middle_run<'a>(runs: &'a [Run], key: &RecordingKey, share: f64) -> Option<&'a Run> {
    let mut found = with_values(&mut runs.iter(), key, share);
    found.sort_by_key(|(_, value)| *value);
    found.get(found.len() / 2).map(|(run, _)| *run)
}

/// The run in which that sample is longest; of equals the first.
fn worst_run<'a>(runs: &'a [Run], key: &RecordingKey, share: f64) -> Option<&'a Run> {
    let found = with_values(&mut runs.iter(), key, share).into_iter().rev();
    found.max_by_key(|(_, value)| *value).map(|(run, _)| run)
}

fn with_values<'a>(
    runs: &mut dyn Iterator<Item = &'a Run>,
    key: &RecordingKey,
    share: f64,
) -> Vec<(&'a Run, Nanos)> {
    let of_run = |run: &'a Run| {
        let own = recording(run, key)?;
        let worst = || own.worst.first().map(|sample| sample.value);
        let value = if share >= 1.0 {
            worst()
        } else {
            kept(own, share)
        };
        Some((run, value?))
    };
    runs.filter_map(of_run).collect()
}

fn recording<'a>(run: &'a Run, key: &RecordingKey) -> Option<&'a Recording> {
    let mut own = run.recordings.iter();
    own.find(|one| one.key.is_same_measurement(key))
}

/// The value of the sample at this share of all that were kept.
fn kept(recording: &Recording, share: f64) -> Option<Nanos> {
    let mut values: Vec<Nanos> = recording.samples.iter().map(|one| one.value).collect();
    values.sort_unstable();
    let at = (values.len() as f64 * share) as usize;
    values.get(at.min(values.len().saturating_sub(1))).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;

    fn run(seed: u64, values: &[i64]) -> Run {
        let timer = fixtures::recording(["timer", "stress", "cpu0"], values);
        let mut run = fixtures::run_with(vec![timer]);
        run.id = format!("r{seed}");
        run.seed = seed;
        run
    }

    fn limit(rest: &str) -> Limit {
        toml::from_str(&format!("probe = \"timer\"\n{rest}")).unwrap()
    }

    #[test]
    fn a_figure_is_of_the_middle_run_and_a_broken_limit_of_the_worst() {
        let key = RecordingKey::new("timer", "stress", "cpu0");
        let here = [
            run(1, &[10, 20, 30]),
            run(2, &[10, 70, 90]),
            run(3, &[1, 30, 40]),
        ];
        let there = [run(4, &[1, 2, 3]), run(5, &[1, 2, 9])];
        let asked = |rest| Asked::of_limit(&limit(rest), &key, [&here, &there]).unwrap();
        let median = asked("what = \"median\"\nat_most = \"1 ns\"");
        assert_eq!((median.figure(), &*median.runs[0]), ("median".into(), "r3"));
        assert_eq!(median.sample(&here[2]), Some(1));
        let worst = asked("what = \"worst\"\nat_most = \"1 ns\"");
        assert_eq!((worst.figure(), &*worst.runs[0]), ("worst".into(), "r2"));
        assert_eq!((worst.sample(&here[1]), &*worst.runs[1]), (Some(2), "r5"));
        let most = asked("what = \"p99.9\"\nat_most = \"1 ns\"");
        assert_eq!(
            (most.figure(), most.sample(&here[0])),
            ("p99.9".into(), Some(2))
        );
        let none = RecordingKey::new("timer", "idle", "cpu0");
        let limit = limit("what = \"worst\"\nat_most = \"1 ns\"");
        assert_eq!(Asked::of_limit(&limit, &none, [&here, &there]), None);
    }
}

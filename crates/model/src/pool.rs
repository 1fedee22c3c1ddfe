// SPDX-License-Identifier: MIT OR Apache-2.0
//! Several runs of one subject combined into one: the shards of a long measurement.

use std::mem;

use crate::record::StepRecord;
use crate::recording::{Recording, WORST_KEPT, Work};
use crate::run::{Run, State};

impl Run {
    /// Adds the measurements of another run of the same subject and suite. Parts that cannot be
    /// added (raw samples, settings, the console) stay those of the run with the lowest seed, so
    /// that the order in which runs are added does not matter.
    pub fn absorb(&mut self, mut other: Self) {
        if other.seed < self.seed {
            mem::swap(self, &mut other);
        }
        self.shards += other.shards;
        pool(
            &mut self.recordings,
            other.recordings,
            is_same,
            Recording::absorb,
        );
        pool(
            &mut self.steps,
            other.steps,
            is_same_step,
            StepRecord::absorb,
        );
        for absent in other.unsupported {
            let known = |own: &_| own == &absent;
            if !self.unsupported.iter().any(known) {
                self.unsupported.push(absent);
            }
        }
        if self.state == State::Finished {
            self.state = other.state;
        }
        self.error = self.error.take().or(other.error);
        self.finished = self.finished.take().max(other.finished);
        self.started = mem::take(&mut self.started).min(other.started);
    }
}

/// Adds each of `others` to its counterpart in `all`, or to the end. Each counterpart takes at
/// most one, so that two measurements by one step stay two.
fn pool<T>(all: &mut Vec<T>, others: Vec<T>, is_same: fn(&T, &T) -> bool, add: fn(&mut T, T)) {
    let mut free = vec![true; all.len()];
    for other in others {
        let place = (0..free.len()).find(|place| free[*place] && is_same(&all[*place], &other));
        match place {
            Some(place) => {
                free[place] = false;
                add(&mut all[place], other);
            }
            None => all.push(other),
        }
    }
}

/// Returns true if two recordings are of the same step of the suite. The repetition is ignored:
/// a shard may lack the steps before.
fn is_same(one: &Recording, other: &Recording) -> bool {
    one.key.step == other.key.step && one.key.is_alike(&other.key)
}

fn is_same_step(one: &StepRecord, other: &StepRecord) -> bool {
    (one.step, &one.probe, &one.load) == (other.step, &other.probe, &other.load)
}

impl Recording {
    /// Returns both combined into one.
    #[cfg(test)]
    pub(crate) fn pooled(mut self, other: Self) -> Self {
        self.absorb(other);
        self
    }

    /// Adds the figures of another recording of the same kind; its raw samples are dropped.
    fn absorb(&mut self, other: Self) {
        self.count += other.count;
        self.warmup += other.warmup;
        self.missed += other.missed;
        self.sum += other.sum;
        self.extremes = match (self.extremes, other.extremes) {
            (Some((low, high)), Some((min, max))) => Some((low.min(min), high.max(max))),
            (own, others) => own.or(others),
        };
        self.histogram.add(&other.histogram);
        self.worst.extend(other.worst);
        self.worst
            .sort_by_key(|sample| (-sample.value.0, sample.at.0, sample.seq));
        self.worst.truncate(WORST_KEPT);
    }
}

impl StepRecord {
    fn absorb(&mut self, other: Self) {
        self.marks.extend(other.marks);
        for work in other.work {
            match self.work.iter_mut().find(|own| own.worker == work.worker) {
                Some(own) => own.absorb(&work),
                None => self.work.push(work),
            }
        }
    }
}

impl Work {
    fn absorb(&mut self, other: &Self) {
        self.rounds += other.rounds;
        self.amount += other.amount;
        self.cpu += other.cpu;
        self.span += other.span;
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use crate::key::RecordingKey;
    use crate::machine::MachineRecord;
    use crate::recording::Recorder;
    use crate::run::Subject;
    use crate::units::Nanos;

    use super::*;

    pub(crate) fn run(seed: u64, values: &[i64]) -> Run {
        let mut recorder = Recorder::new(100);
        for value in values {
            recorder.record(Nanos(*value), Nanos(*value));
        }
        Run {
            id: String::new(),
            suite: "s".into(),
            plan: String::new(),
            seed,
            subject: Subject::default(),
            state: State::Finished,
            error: None,
            started: String::new(),
            finished: None,
            punctual: String::new(),
            machine: MachineRecord::default(),
            shards: 1,
            request: crate::run::Request::default(),
            provenance: None,
            steps: Vec::new(),
            recordings: vec![recorder.finish(RecordingKey::new("timer", "idle", "cpu0"))],
            unsupported: Vec::new(),
            console: String::new(),
            arrivals: Vec::new(),
        }
    }

    #[test]
    fn shards_add_up_in_any_order() {
        let shards = [run(1, &[5, 9]), run(2, &[1, 7, 7]), run(3, &[20])];
        let pool = |order: [usize; 3]| {
            let mut pooled = shards[order[0]].clone();
            pooled.absorb(shards[order[1]].clone());
            pooled.absorb(shards[order[2]].clone());
            pooled
        };
        let pooled = pool([0, 1, 2]);
        let recording = &pooled.recordings[0];
        assert_eq!((recording.count, recording.sum), (6, Nanos(49)));
        assert_eq!(recording.extremes, Some((Nanos(1), Nanos(20))));
        assert_eq!(recording.histogram.count(), 6);
        assert_eq!(recording.worst[1].value, Nanos(9));
        assert_eq!((recording.samples.len(), pooled.shards), (2, 3));
        assert_eq!(pool([2, 0, 1]), pooled);
        assert_eq!(pool([1, 2, 0]), pooled);
    }

    #[test]
    fn half_a_shard_makes_half_a_pool() {
        let mut pooled = run(1, &[5]);
        let mut torn = run(2, &[]);
        torn.state = State::Failed;
        torn.error = Some("panic".into());
        pooled.absorb(torn);
        assert_eq!(pooled.digest(), None);
        assert_eq!(pooled.error.as_deref(), Some("panic"));
    }
}

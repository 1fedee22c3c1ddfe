//! Several runs of one subject as one: the shards of a long measurement.

use std::mem;

use crate::recording::{Recording, WORST_KEPT, Work};
use crate::run::{Run, State};

/// The fact that tells how many runs a pooled one is made of.
pub const SHARDS: &str = "shards";

impl Run {
    /// Adds what another run of the same subject and suite measured. What cannot be added
    /// (raw samples, settings, the console) stays that of the run with the lowest seed, so
    /// that the order in which runs are added does not matter.
    pub fn absorb(&mut self, mut other: Self) {
        if other.seed < self.seed {
            mem::swap(self, &mut other);
        }
        let shards = self.shards() + other.shards();
        self.bench.insert(SHARDS.into(), shards.to_string());
        for recording in other.recordings {
            let mut own = self.recordings.iter_mut();
            match own.find(|own| own.title() == recording.title()) {
                Some(own) => own.absorb(recording),
                None => self.recordings.push(recording),
            }
        }
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

    /// How many runs this one is made of.
    pub fn shards(&self) -> u64 {
        let told = self.bench.get(SHARDS);
        told.and_then(|count| count.parse().ok()).unwrap_or(1)
    }
}

impl Recording {
    /// Adds the figures of another recording of the same kind; its raw samples are let go.
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
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use crate::recording::Recorder;
    use crate::run::Subject;
    use crate::units::Nanos;

    use super::*;

    fn run(seed: u64, values: &[i64]) -> Run {
        let mut recorder = Recorder::new(100);
        for value in values {
            recorder.record(Nanos(*value), Nanos(*value));
        }
        Run {
            id: String::new(),
            suite: "s".into(),
            plan: String::new(),
            seed,
            ns_per_insn: Some(1),
            subject: Subject::default(),
            state: State::Finished,
            error: None,
            started: String::new(),
            finished: None,
            bench: BTreeMap::new(),
            provenance: None,
            recordings: vec![recorder.finish("timer", "idle", "cpu0")],
            unsupported: Vec::new(),
            console: String::new(),
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
        assert_eq!((recording.samples.len(), pooled.shards()), (2, 3));
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

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The state that is shown: each run that is under way, and each thread of its step.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use indicatif::HumanCount;
use punctual_bench::system::Event;
use punctual_model::plan::Step;
use punctual_model::record::Mark;
use punctual_model::{Nanos, Plan, Progress, Record, Run, ThreadProgress, WorkerProgress};

/// Bins of a histogram in each power of two.
const PER_OCTAVE: u32 = 16;
/// Bins in all: up to 2^40 ns, 18 minutes.
const BINS: usize = (40 * PER_OCTAVE) as usize;

/// The number of looks that the series keeps: at five a second, some minutes.
const SERIES: usize = 1_000;

/// All runs, and the ones chosen for display.
#[derive(Default)]
pub struct State {
    /// The runs that are under way.
    pub runs: Vec<RunState>,
    /// The index of the run that is shown.
    pub run: usize,
    /// The index of the thread that is shown; `None` for all threads.
    pub thread: Option<usize>,
    /// Messages to print at the end.
    pub messages: Vec<String>,
    /// True if the user wants to stop.
    pub is_stopping: bool,
}

/// A run that is under way.
pub struct RunState {
    /// The run's id.
    pub id: String,
    /// Subject and seed.
    pub name: String,
    /// The number of steps.
    pub steps: usize,
    /// The current activity: its step, or what comes before.
    pub doing: String,
    /// The activity, without the state of the connection.
    activity: String,
    /// Progress of the step.
    pub progress: Progress,
    /// The step's threads.
    pub threads: Vec<Seen>,
    /// The time at which the step began.
    pub begun: Instant,
    /// The number of the step, from 0; `None` before the first.
    pub step: Option<u32>,
    /// The marks, each with the number of its step.
    pub marks: Vec<(u32, Mark)>,
    /// The load's workers and their units, step by step.
    loads: Vec<Vec<Worker>>,
}

/// A worker of a load, as displayed.
#[derive(Clone, Debug)]
pub struct Worker {
    /// Its command.
    pub command: String,
    /// The unit of its work.
    pub unit: String,
}

/// The samples seen of a thread.
#[derive(Clone)]
pub struct Seen {
    bins: Vec<u64>,
    /// The number of samples in the bins: a look that comes too late misses some.
    pub samples: u64,
    /// The largest sample of each look, the latest last; `None` if there was none.
    pub series: VecDeque<Option<Nanos>>,
    /// The latest sample.
    pub last: Option<Nanos>,
    /// The time at which the largest sample so far was first seen, from the beginning of the step.
    pub worst_at: Option<Duration>,
    worst: Option<Nanos>,
}

impl Default for Seen {
    fn default() -> Self {
        Self {
            bins: vec![0; BINS],
            samples: 0,
            series: VecDeque::new(),
            last: None,
            worst_at: None,
            worst: None,
        }
    }
}

impl Seen {
    fn take(&mut self, thread: &ThreadProgress, at: Duration) {
        for sample in &thread.recent {
            self.bins[bin(*sample)] += 1;
        }
        self.samples += thread.recent.len() as u64;
        self.last = thread.recent.last().copied().or(self.last);
        let mut largest = thread.recent.iter().max().copied();
        if thread.worst > self.worst {
            self.worst = thread.worst;
            self.worst_at = Some(at);
            // It may be one that the look has missed.
            largest = thread.worst;
        }
        self.series.push_back(largest);
        if self.series.len() > SERIES {
            self.series.pop_front();
        }
    }

    /// Adds the samples seen of another thread.
    fn add(&mut self, other: &Self) {
        for (own, more) in self.bins.iter_mut().zip(&other.bins) {
            *own += more;
        }
        self.samples += other.samples;
        self.last = self.last.max(other.last);
        if other.worst > self.worst {
            (self.worst, self.worst_at) = (other.worst, other.worst_at);
        }
        while self.series.len() < other.series.len() {
            self.series.push_front(None);
        }
        let pairs = self.series.iter_mut().rev().zip(other.series.iter().rev());
        for (own, more) in pairs {
            *own = (*own).max(*more);
        }
    }

    /// The bins from the first to the last that has samples: the lower end and the count of each.
    pub fn histogram(&self) -> Vec<(Nanos, u64)> {
        let is_used = |count: &u64| *count > 0;
        let first = self.bins.iter().position(is_used);
        let last = self.bins.iter().rposition(is_used);
        let Some((first, last)) = first.zip(last) else {
            return Vec::new();
        };
        let bin = |at: usize| (begin(at), self.bins[at]);
        (first..=last).map(bin).collect()
    }
}

/// The bin of a sample; those below 1 ns are in the first.
fn bin(sample: Nanos) -> usize {
    let exact = (sample.0.max(1) as f64).log2() * f64::from(PER_OCTAVE);
    (exact as usize).min(BINS - 1)
}

/// The lower end of a bin.
fn begin(bin: usize) -> Nanos {
    Nanos((bin as f64 / f64::from(PER_OCTAVE)).exp2().ceil() as i64)
}

impl State {
    /// Adds a run that begins.
    pub fn begin(&mut self, run: &Run, plan: &Plan) {
        self.runs.push(RunState {
            id: run.id.clone(),
            name: format!("{} (seed {})", run.subject.name, run.seed),
            steps: plan.steps.len(),
            doing: "begins".into(),
            activity: "begins".into(),
            progress: Progress::default(),
            threads: Vec::new(),
            begun: Instant::now(),
            step: None,
            marks: Vec::new(),
            loads: plan.steps.iter().map(|step| workers(plan, step)).collect(),
        });
    }

    /// Handles an event of a run.
    pub fn take(&mut self, id: &str, event: &Event) {
        if let Some(run) = self.runs.iter_mut().find(|run| run.id == id) {
            run.take(event);
        }
    }

    /// Removes a run that has ended. If another one is shown, it stays in view.
    pub fn end(&mut self, run: &Run) {
        let ended = self.runs.iter().position(|own| own.id == run.id);
        if let Some(ended) = ended {
            self.runs.remove(ended);
            if ended < self.run {
                self.run -= 1;
            }
        }
        self.choose_run(0);
        let name = &run.subject.name;
        let said = format!("{name} (seed {}): {} is {}", run.seed, run.id, run.state);
        self.messages.push(said);
    }

    /// The run that is shown.
    pub fn shown(&self) -> Option<&RunState> {
        self.runs.get(self.run)
    }

    /// Shows another run.
    pub fn choose_run(&mut self, by: isize) {
        let count = self.runs.len().max(1) as isize;
        self.run = (self.run as isize + by).rem_euclid(count) as usize;
        self.choose(0);
    }

    /// Shows another thread; the view of all threads comes before the first.
    pub fn choose(&mut self, by: isize) {
        let count = self.shown().map_or(0, |run| run.threads.len()) as isize;
        let now = self.thread.map_or(0, |thread| thread as isize + 1);
        let next = (now + by).clamp(0, count);
        self.thread = (next as usize).checked_sub(1);
    }

    /// Marks the present state. Before the first step there is nothing to mark.
    pub fn mark(&mut self) {
        let Some(run) = self.runs.get_mut(self.run) else {
            return;
        };
        let Some(step) = run.step else { return };
        let mark = Mark {
            at: Nanos(i64::try_from(run.begun.elapsed().as_nanos()).unwrap_or(i64::MAX)),
            count: run.progress.count,
            worst: run.progress.worst,
        };
        run.marks.push((step, mark));
        let (number, at, count) = (run.marks.len(), mark.at, HumanCount(mark.count));
        let worst = mark.worst.map_or("none".into(), |worst| worst.to_string());
        self.messages.push(format!(
            "mark {number}: {} {}, {:.1} s after its beginning: {count} samples, worst {worst}",
            run.id,
            run.activity,
            at.as_secs_f64()
        ));
    }

    /// The marks in a step of a run.
    pub fn marks(&self, id: &str, step: u32) -> Vec<Mark> {
        let run = self.runs.iter().find(|run| run.id == id);
        let marks = run.into_iter().flat_map(|run| &run.marks);
        marks
            .filter(|(of, _)| *of == step)
            .map(|(_, mark)| *mark)
            .collect()
    }
}

/// The workers of a step's load.
fn workers(plan: &Plan, step: &Step) -> Vec<Worker> {
    let load = plan.loads.get(&step.load);
    let workers = load.into_iter().flat_map(|load| &load.workers);
    workers
        .map(|worker| Worker {
            command: worker.run.join(" "),
            unit: worker.unit.clone(),
        })
        .collect()
}

impl RunState {
    /// The workers of the step's load, with the work that they have done.
    pub fn workers(&self) -> impl Iterator<Item = (&Worker, &WorkerProgress)> {
        let step = self.step.and_then(|step| self.loads.get(step as usize));
        let workers = step.into_iter().flatten();
        workers.zip(&self.progress.workers)
    }

    fn take(&mut self, event: &Event) {
        match event {
            Event::Booting => self.begins("boots (once: the booted guest is kept)".into()),
            Event::Resuming => self.begins("starts (the booted guest was kept)".into()),
            Event::Unreached(why) => {
                self.doing = format!(
                    "{}: not reached ({why}); the measurement goes on there",
                    self.activity
                );
            }
            Event::Reached => self.doing.clone_from(&self.activity),
            Event::Record(record) => {
                if let Record::Started(started) = &**record {
                    let (number, all) = (started.step + 1, self.steps);
                    let (probe, load) = (&started.probe, &started.load);
                    self.begins(format!("step {number} of {all}: {probe}, {load}"));
                    self.step = Some(started.step);
                    self.progress = Progress::default();
                    self.threads.clear();
                    self.begun = Instant::now();
                }
            }
            Event::Progress(progress) => {
                let at = self.begun.elapsed();
                self.threads
                    .resize_with(progress.threads.len(), Seen::default);
                for (own, thread) in self.threads.iter_mut().zip(&progress.threads) {
                    own.take(thread, at);
                }
                self.progress = progress.clone();
            }
        }
    }

    fn begins(&mut self, activity: String) {
        self.doing.clone_from(&activity);
        self.activity = activity;
    }

    /// The samples seen of one thread, or of all.
    pub fn seen(&self, thread: Option<usize>) -> Seen {
        if let Some(own) = thread.and_then(|thread| self.threads.get(thread)) {
            return own.clone();
        }
        let mut all = Seen::default();
        for own in &self.threads {
            all.add(own);
        }
        all
    }
}

#[cfg(test)]
pub mod tests {
    use punctual_model::record::Started;

    use super::*;
    use crate::fixtures::run;

    /// These runs, none of which has begun a step.
    pub fn begun(ids: &[&str]) -> State {
        let plan = toml::from_str("seed = 1\n[[step]]\nprobe = \"timer\"\n").unwrap();
        let mut state = State::default();
        for id in ids {
            state.begin(&run(id, 1), &plan);
        }
        state
    }

    /// The first step begins.
    pub fn started() -> Event {
        let started = Started {
            step: 0,
            probe: "timer".into(),
            load: "idle".into(),
            nominal: Nanos(0),
        };
        Event::Record(Box::new(Record::Started(started)))
    }

    #[test]
    fn a_mark_belongs_to_a_step_that_has_begun() {
        let mut state = begun(&["r1"]);
        state.take("r1", &Event::Booting);
        state.mark();
        assert!(state.marks("r1", 0).is_empty());
        assert!(state.messages.is_empty(), "{:?}", state.messages);
        state.take("r1", &started());
        state.mark();
        assert_eq!(state.marks("r1", 0).len(), 1);
        let said = "mark 1: r1 step 1 of 1: timer, idle, 0.0 s after its beginning: 0 samples, ";
        assert!(state.messages[0].starts_with(said), "{:?}", state.messages);
    }

    #[test]
    fn a_step_is_named_while_its_board_is_not_reached_and_after_that() {
        let mut state = begun(&["r1"]);
        let mut doing = |event: &Event| {
            state.take("r1", event);
            state.runs[0].doing.clone()
        };
        let step = doing(&started());
        let lost = doing(&Event::Unreached("no route".into()));
        assert_eq!(
            lost,
            format!("{step}: not reached (no route); the measurement goes on there")
        );
        assert_eq!(doing(&Event::Reached), step);
    }

    #[test]
    fn the_shown_run_stays_where_an_earlier_one_ends() {
        let mut state = begun(&["r1", "r2", "r3"]);
        state.choose_run(1);
        state.end(&run("r1", 1));
        assert_eq!(state.shown().unwrap().id, "r2");
        state.end(&run("r3", 1));
        assert_eq!(state.shown().unwrap().id, "r2");
        state.end(&run("r2", 1));
        assert!(state.shown().is_none());
    }

    #[test]
    fn a_sample_is_in_the_bin_that_begins_at_or_before_it() {
        for sample in [1, 2, 3, 255, 256, 6_440, 1_000_000, 1 << 39] {
            let at = bin(Nanos(sample));
            assert!(begin(at).0 <= sample, "{sample}");
            assert!(sample < begin(at + 1).0.max(sample + 1), "{sample}");
        }
        assert_eq!((bin(Nanos(-5)), bin(Nanos(i64::MAX))), (0, BINS - 1));
    }

    #[test]
    fn a_worst_that_a_look_has_missed_is_in_the_series_all_the_same() {
        let mut seen = Seen::default();
        let thread = |recent: &[i64], worst| ThreadProgress {
            recent: recent.iter().map(|value| Nanos(*value)).collect(),
            worst: Some(Nanos(worst)),
            ..ThreadProgress::default()
        };
        seen.take(&thread(&[3, 4], 4), Duration::from_secs(1));
        seen.take(&thread(&[2], 90), Duration::from_secs(2));
        seen.take(&thread(&[2], 90), Duration::from_secs(3));
        assert_eq!(
            seen.series,
            [Some(Nanos(4)), Some(Nanos(90)), Some(Nanos(2))]
        );
        assert_eq!(seen.worst_at, Some(Duration::from_secs(2)));
        assert_eq!((seen.samples, seen.last), (4, Some(Nanos(2))));
        let mut both = seen.clone();
        both.add(&seen);
        assert_eq!(both.samples, 8);
        assert_eq!(both.histogram().iter().map(|bin| bin.1).sum::<u64>(), 8);
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Campaigns: subjects × figures over many seeds, their ranking, and measurements that failed.
//!
//! Only its figures are kept of each run, so that a campaign of thousands takes no more memory than
//! its numbers.

mod json;
mod page;
mod text;

use punctual_judge::{Judgement, fate};
use punctual_model::campaign::{self as asked, Asked};
use punctual_model::run::{Run, State};
use punctual_model::{Nanos, RecordingKey};

use crate::judgement::Stories;
use crate::matrix::{Column, Matrix, Measurement};
use crate::scope::Story;
use crate::series::{Figure, OfRun, figures, values};
use crate::text::counted;

pub use json::{PlannedRun, campaign_json, plan_json};
pub use page::{RUNS, campaign_document, campaign_page};
pub use text::campaign_text;

/// The results of a campaign.
#[derive(Debug, Default)]
pub struct Campaign {
    /// Its name.
    pub name: String,
    /// Its purpose in one line.
    pub summary: String,
    /// The parts left out, with the reasons.
    pub left_out: Vec<String>,
    /// Each suite with its subjects.
    pub settings: Vec<Setting>,
    /// The stories of the worst samples: the causes of their lateness.
    pub stories: Vec<(Worst, Run, Story)>,
    /// The use of a cluster, where one measured.
    pub cluster: Option<Cluster>,
}

/// The use of a cluster, by the tasks that delivered their measurements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cluster {
    /// The number of these tasks.
    pub tasks: usize,
    /// The time for which their guests ran, together, in seconds.
    pub guest_s: f64,
    /// The time for which they had a node, together, in seconds.
    pub allocated_s: f64,
}

/// A suite with its subjects, which may be compared with each other.
#[derive(Debug, Default)]
pub struct Setting {
    /// The name that tells it from the others.
    pub name: String,
    /// Each subject, in the order of the file.
    pub subjects: Vec<Subject>,
    /// Each figure of each measurement.
    pub rows: Vec<Row>,
    /// The verdicts, or the reason for none; `None` without a limit that its plan can answer.
    pub judgement: Option<Result<Judgement, String>>,
    /// The stories of samples that broke limits: the obstacles in their way.
    pub verdict_stories: Stories,
}

/// A subject, and its runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subject {
    /// The subject's name.
    pub name: String,
    /// The seeds asked for.
    pub seeds: Vec<u64>,
    /// The runs that have ended, by seed.
    pub runs: Vec<RunOf>,
    /// The number of runs under way.
    pub under_way: usize,
}

/// A run in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunOf {
    /// Its id in the store.
    pub id: String,
    /// Its seed.
    pub seed: u64,
    /// The state that it reached.
    pub state: State,
    /// The digest over its measurements.
    pub digest: Option<String>,
    /// The reasons why something of it is missing.
    pub gaps: Vec<String>,
}

/// One figure of one measurement, subject by subject.
#[derive(Clone, Debug)]
pub struct Row {
    /// The measurement.
    pub row: Measurement,
    /// The figure of the measurement.
    pub figure: Figure,
    /// Of each subject the figures of its runs, by seed.
    pub values: Vec<Vec<OfRun>>,
}

/// The worst sample of a subject in one measurement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Worst {
    /// The number of its setting.
    pub setting: usize,
    /// The subject's name.
    pub subject: String,
    /// The measurement.
    pub key: RecordingKey,
    /// The run.
    pub run: String,
    /// The sample.
    pub value: Nanos,
}

/// A subject's place in a setting.
#[derive(Clone, Debug, PartialEq)]
pub struct Rank {
    /// The subject's number.
    pub subject: usize,
    /// The geometric mean of its figures' ratios to the lowest in each row.
    /// Figures that no sample of a run stands for do not count.
    pub times: f64,
}

impl Campaign {
    /// Creates a campaign of which nothing has been measured yet.
    pub fn of(asked: &Asked) -> Self {
        let setting = |one: &asked::Setting| {
            Setting::new(&one.name, one.subjects.iter().cloned(), &one.seeds)
        };
        Self {
            name: asked.name.clone(),
            summary: asked.summary.clone(),
            left_out: asked.left_out.clone(),
            settings: asked.settings.iter().map(setting).collect(),
            stories: Vec::new(),
            cluster: None,
        }
    }

    /// Returns the number of finished runs, and the number of runs asked for.
    pub fn progress(&self) -> (usize, usize) {
        let subjects = || self.settings.iter().flat_map(|one| &one.subjects);
        let is_finished = |run: &&RunOf| run.state == State::Finished;
        let finished = subjects().map(|one| one.runs.iter().filter(is_finished).count());
        (finished.sum(), subjects().map(|one| one.seeds.len()).sum())
    }

    /// Returns true if everything asked for was measured.
    pub fn is_whole(&self) -> bool {
        let (finished, asked) = self.progress();
        finished == asked && self.gaps().is_empty()
    }

    /// Lists the measurements that failed or are missing, a line each.
    pub fn gaps(&self) -> Vec<String> {
        let mut gaps = Vec::new();
        for setting in &self.settings {
            for subject in &setting.subjects {
                let about = format!("{}: {}", setting.name, subject.name);
                let begun = subject.runs.len() + subject.under_way;
                let missing = subject.seeds.len().saturating_sub(begun);
                if missing > 0 {
                    let runs = if missing == 1 { "run was" } else { "runs were" };
                    gaps.push(format!("{about}: {missing} {runs} not begun"));
                }
                for run in &subject.runs {
                    let all = run.gaps.iter();
                    gaps.extend(all.map(|gap| format!("{about}, seed {}: {gap}", run.seed)));
                }
            }
        }
        gaps
    }

    /// Returns the worst samples of all, the latest first.
    /// These are at most so many, each of another subject, probe or load.
    pub fn worst(&self, most: usize) -> Vec<Worst> {
        let mut all = Vec::new();
        for (setting, number) in self.settings.iter().zip(0..) {
            for row in setting.rows.iter().filter(|row| row.is_explained()) {
                for (subject, values) in setting.subjects.iter().zip(&row.values) {
                    let worst = values.iter().max_by_key(|one| one.value);
                    all.extend(worst.map(|one| Worst {
                        setting: number,
                        subject: subject.name.clone(),
                        key: row.key(),
                        run: one.run.clone(),
                        value: one.value,
                    }));
                }
            }
        }
        all.sort_by_key(|one| std::cmp::Reverse(one.value));
        let mut chosen: Vec<Worst> = Vec::new();
        for one in all {
            let about = |one: &Worst| {
                let (probe, load) = (one.key.probe.clone(), one.key.load.clone());
                (one.setting, one.subject.clone(), probe, load)
            };
            if chosen.len() < most && !chosen.iter().any(|own| about(own) == about(&one)) {
                chosen.push(one);
            }
        }
        chosen
    }
}

impl Cluster {
    /// Sums the times of tasks: their guests' time, and the time that they had a node, in seconds.
    /// Returns `None` if no task had a node for any time.
    pub fn of(tasks: &[(f64, f64)]) -> Option<Self> {
        let sum = |of: fn(&(f64, f64)) -> f64| tasks.iter().map(of).sum();
        let allocated_s: f64 = sum(|one| one.1);
        (allocated_s > 0.0).then(|| Self {
            tasks: tasks.len(),
            guest_s: sum(|one| one.0),
            allocated_s,
        })
    }

    /// Returns the guests' share of the time that tasks had a node.
    pub fn efficiency(&self) -> f64 {
        self.guest_s / self.allocated_s
    }

    /// `On the cluster guests ran for 97.1 % of the time that 200 tasks had a node.`
    pub fn told(&self) -> String {
        format!(
            "On the cluster guests ran for {:.1} % of the time that {} had a node.",
            100.0 * self.efficiency(),
            counted(self.tasks, "task")
        )
    }
}

impl Setting {
    /// Creates a setting of which nothing has been measured yet.
    pub fn new(name: &str, subjects: impl Iterator<Item = String>, seeds: &[u64]) -> Self {
        let subject = |name: String| Subject {
            name,
            seeds: seeds.to_vec(),
            runs: Vec::new(),
            under_way: 0,
        };
        Self {
            name: name.to_owned(),
            subjects: subjects.map(subject).collect(),
            ..Self::default()
        }
    }

    /// Takes the figures of a run of the subject of this number.
    pub fn take(&mut self, subject: usize, run: &Run) {
        let matrix = Matrix::new(std::slice::from_ref(run));
        for column in &matrix.columns {
            for row in &matrix.rows {
                self.take_row(subject, column, row);
            }
        }
        let runs = &mut self.subjects[subject].runs;
        let of_run = RunOf {
            id: run.id.clone(),
            seed: run.seed,
            state: run.state,
            digest: run.digest(),
            gaps: gaps(run),
        };
        let place = runs.partition_point(|one| one.seed < run.seed);
        runs.insert(place, of_run);
    }

    fn take_row(&mut self, subject: usize, column: &Column<'_>, row: &Measurement) {
        for figure in figures(row) {
            let found = values(column, row, *figure);
            if found.is_empty() {
                continue;
            }
            let is_it = |own: &Row| own.row == *row && own.figure == *figure;
            let number = self.rows.iter().position(is_it).unwrap_or_else(|| {
                self.rows.push(Row {
                    row: row.clone(),
                    figure: *figure,
                    values: vec![Vec::new(); self.subjects.len()],
                });
                self.rows.len() - 1
            });
            let own = &mut self.rows[number].values[subject];
            own.extend(found);
            own.sort_by_key(|one| one.seed);
        }
    }

    /// Returns the subjects, the lowest figures first.
    /// Subjects that lack a figure that another has are not ranked.
    pub fn ranking(&self) -> Vec<Rank> {
        let mut ranks: Vec<Rank> = (0..self.subjects.len())
            .filter_map(|subject| {
                // Not every run need be watched.
                let rows = self.rows.iter().filter(|row| row.figure.share().is_some());
                let times: Option<Vec<f64>> = rows.map(|row| row.times(subject)).collect();
                let times = times.filter(|times| !times.is_empty())?;
                let mean = times.iter().map(|one| one.ln()).sum::<f64>() / times.len() as f64;
                Some(Rank {
                    subject,
                    times: mean.exp(),
                })
            })
            .collect();
        ranks.sort_by(|one, other| one.times.total_cmp(&other.times));
        ranks
    }
}

impl Row {
    /// `timer, stress, cpu0: worst`.
    pub fn title(&self) -> String {
        format!("{}: {}", self.row.title(), self.figure.name())
    }

    /// A subject's figure over all seeds: the worst of all, the middle of all medians.
    pub fn value(&self, subject: usize) -> Option<Nanos> {
        let mut values: Vec<Nanos> = self.values[subject].iter().map(|one| one.value).collect();
        values.sort_unstable();
        match self.figure {
            Figure::Worst | Figure::Arrival | Figure::Reached => values.last().copied(),
            Figure::Median => values.get(values.len() / 2).copied(),
        }
    }

    /// Returns the ratio of a subject's figure to the lowest of all subjects' figures.
    pub fn times(&self, subject: usize) -> Option<f64> {
        let lowest = (0..self.values.len())
            .filter_map(|one| self.value(one))
            .min()?;
        let times = |value: Nanos| value.0.max(1) as f64 / lowest.0.max(1) as f64;
        self.value(subject).map(times)
    }

    /// Returns true if its worst sample has a story: samples of work have none.
    fn is_explained(&self) -> bool {
        self.figure == Figure::Worst && !self.row.is_throughput()
    }

    fn key(&self) -> RecordingKey {
        RecordingKey {
            repetition: self.row.repetition,
            ..RecordingKey::new(&self.row.probe, &self.row.load, &self.row.variant)
        }
    }
}

/// Lists the reasons why something of a run is missing.
fn gaps(run: &Run) -> Vec<String> {
    let mut gaps = Vec::new();
    if run.state != State::Finished {
        gaps.push(format!("{}: {}", run.id, fate(run)));
    }
    for absent in &run.unsupported {
        let (probe, load, why) = (&absent.probe, &absent.load, &absent.reason);
        gaps.push(format!(
            "{}: {probe} / {load} is unsupported: {why}",
            run.id
        ));
    }
    if run.state == State::Finished {
        gaps.extend(run.recordings.iter().filter_map(|one| {
            let why = one.interruption()?;
            Some(format!("{}: {}: {why}", run.id, one.title()))
        }));
    }
    gaps
}

#[cfg(test)]
mod tests;

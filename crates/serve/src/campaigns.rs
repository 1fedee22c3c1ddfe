// SPDX-License-Identifier: MIT OR Apache-2.0
//! Campaigns while they go on. A run that has ended does not change, so its figures are read once
//! and kept between requests, until a story of it is added.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::routes::load;
use jiff::Timestamp;
use punctual_model::run::{Run, State};
use punctual_report::campaign::{Campaign as Report, RunOf};
use punctual_store::{Campaign, RunAt, Store, StoreError};

/// The figures of campaigns that were asked for.
#[derive(Default)]
pub struct Campaigns(Mutex<BTreeMap<String, Figures>>);

/// The results of the ended runs of a campaign.
#[derive(Default)]
pub struct Figures {
    /// The report as at the end of `punctual campaign`, but without verdicts and stories.
    pub report: Report,
    /// The runs that are in it, with the number of their stories.
    taken: BTreeMap<String, usize>,
    /// The total duration of the finished runs.
    took: Duration,
    finished: u32,
}

impl Campaigns {
    /// Forgets all figures, because the store is another one.
    pub fn forget(&self) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.clear();
    }

    /// Calls `draw` with a campaign as it is now, and its figures so far.
    pub fn now<T>(
        &self,
        store: &Store,
        id: &str,
        draw: impl FnOnce(&Campaign, &Figures) -> T,
    ) -> Result<T, StoreError> {
        let campaign = store.campaign(id)?;
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let figures = known.entry(id.to_owned()).or_default();
        figures.catch_up(store, &campaign)?;
        Ok(draw(&campaign, figures))
    }
}

impl Figures {
    /// Adds the runs that have ended since the last look. If a run has gone, another has taken its
    /// place, or it has another story, it begins anew.
    fn catch_up(&mut self, store: &Store, campaign: &Campaign) -> Result<(), StoreError> {
        let ended = || {
            campaign
                .runs
                .iter()
                .filter(|one| one.state != State::Running)
        };
        let now: BTreeMap<&String, usize> = ended().map(|one| (&one.run, one.stories)).collect();
        let is_other = |(id, stories): (&String, &usize)| now.get(id) != Some(stories);
        if self.taken.is_empty() || self.taken.iter().any(is_other) {
            *self = Self {
                report: Report::of(&campaign.summary.asked),
                ..Self::default()
            };
        }
        for one in ended() {
            if !self.taken.contains_key(&one.run) {
                match load(store, &one.run) {
                    Err(why @ StoreError::Part { .. }) => self.lack(one, &why),
                    run => self.take(one, &run?),
                }
                self.taken.insert(one.run.clone(), one.stories);
            }
        }
        for part in &mut self.report.settings {
            part.subjects
                .iter_mut()
                .for_each(|subject| subject.under_way = 0);
        }
        for one in campaign
            .runs
            .iter()
            .filter(|one| one.state == State::Running)
        {
            let part = self.report.settings.get_mut(one.setting);
            let subject = part.and_then(|part| part.subjects.get_mut(one.subject));
            if let Some(subject) = subject {
                subject.under_way += 1;
            }
        }
        Ok(())
    }

    fn take(&mut self, at: &RunAt, run: &Run) {
        let part = self.report.settings.get_mut(at.setting);
        if let Some(part) = part.filter(|part| at.subject < part.subjects.len()) {
            part.take(at.subject, run);
        }
        if let Some(took) = took(run).filter(|_| run.state == State::Finished) {
            self.took += took;
            self.finished += 1;
        }
    }

    /// Notes that a run is damaged: the others are shown, and what it measured is missing.
    fn lack(&mut self, at: &RunAt, why: &StoreError) {
        let part = self.report.settings.get_mut(at.setting);
        let subject = part.and_then(|part| part.subjects.get_mut(at.subject));
        let Some(runs) = subject.map(|subject| &mut subject.runs) else {
            return;
        };
        let lacking = RunOf {
            id: at.run.clone(),
            seed: at.seed,
            state: State::Failed,
            digest: None,
            gaps: vec![why.to_string()],
        };
        let place = runs.partition_point(|one| one.seed < at.seed);
        runs.insert(place, lacking);
    }

    /// Estimates the time for the remaining runs from the finished ones, with as many at a time as
    /// now. `None` if nobody runs any, or nothing is known yet.
    pub fn left(&self, campaign: &Campaign) -> Option<Duration> {
        let going = campaign
            .runs
            .iter()
            .filter(|one| one.state == State::Running);
        let at_a_time = u32::try_from(going.count())
            .ok()
            .filter(|count| *count > 0)?;
        let each = self.took.checked_div(self.finished)?;
        let left = campaign.summary.runs - campaign.summary.finished;
        Some(each * u32::try_from(left).ok()? / at_a_time)
    }
}

fn took(run: &Run) -> Option<Duration> {
    let begun: Timestamp = run.started.parse().ok()?;
    let ended: Timestamp = run.finished.as_deref()?.parse().ok()?;
    ended.duration_since(begun).try_into().ok()
}

#[cfg(test)]
mod tests {
    use punctual_store::Story;

    use super::*;
    use crate::tests::{campaign, fill};

    #[test]
    fn a_damaged_run_is_a_gap_and_hides_no_other() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("runs.db");
        fill(&path, &[300, 900]);
        let store = Store::open(&path).unwrap();
        let id = campaign(&store, &["r1", "r2"]);
        drop(store);
        // The version that made one of the runs.
        let mut bytes = std::fs::read(&path).unwrap();
        let at = bytes.windows(5).position(|part| part == b"0.1.0").unwrap();
        bytes[at..at + 5].copy_from_slice(b"0.1.9");
        std::fs::write(&path, bytes).unwrap();
        let store = Store::open(&path).unwrap();
        let is_damaged = |id: &&str| store.load(id).is_err();
        let damaged: Vec<&str> = ["r1", "r2"].into_iter().filter(is_damaged).collect();
        assert_eq!(damaged.len(), 1);
        let found = Campaigns::default().now(&store, &id, |_, figures| {
            let runs = &figures.report.settings[0].subjects[0].runs;
            let finished = runs.iter().filter(|run| run.state == State::Finished);
            (runs.len(), finished.count(), figures.report.gaps())
        });
        let (all, finished, gaps) = found.unwrap();
        assert_eq!((all, finished), (2, 1));
        let expected = format!("run {}: its row is damaged (", damaged[0]);
        assert!(gaps.len() == 1 && gaps[0].contains(&expected), "{gaps:?}");
    }

    #[test]
    fn a_run_is_read_again_once_it_has_another_story() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("runs.db");
        fill(&path, &[300, 900]);
        let store = Store::open(&path).unwrap();
        let id = campaign(&store, &["r1", "r2"]);
        let campaigns = Campaigns::default();
        let stories = || {
            let of = |_: &Campaign, figures: &Figures| {
                let runs = figures.report.settings[0].subjects[0].runs.len();
                let stories: Vec<usize> = figures.taken.values().copied().collect();
                (runs, stories)
            };
            campaigns.now(&store, &id, of).unwrap()
        };
        assert_eq!(stories(), (2, vec![0, 0]));
        let later = Story {
            made: "2026-01-09T00:00:00Z".into(),
            told: String::new(),
            json: "{}".into(),
        };
        store.add_story("r2", &later).unwrap();
        assert_eq!(stories(), (2, vec![0, 1]));
    }
}

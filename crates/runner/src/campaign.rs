// SPDX-License-Identifier: MIT OR Apache-2.0
//! Campaigns: kernels × boot arguments × suites × CPUs × loads × seeds, as a file.
//!
//! A file expands into [`Setting`]s, each a suite with its subjects and seeds, and these into the
//! runs that `punctual run` would make. Runs that the store already has are not measured again.

mod file;
pub mod slurm;

use std::path::Path;
use std::time::Duration;

use punctual_kernels::Catalog;
use punctual_model::campaign::{self as asked, Asked};
use punctual_model::plan::SEED_MAX;
use punctual_model::run::Request;
use punctual_model::suite::{SubjectSpec, Suite};
use punctual_model::{Limit, Plan};
pub use punctual_store::key;
use punctual_store::{PlannedRun, Store, StoreError};

use crate::systems::{Equipment, PreparedSystem};
use crate::{Error, Job, loads, preemption, suites};

pub use file::load;
pub(crate) use file::parse;

/// The most runs of a campaign: more are a typing mistake.
pub const RUNS_MOST: usize = 1_000_000;

/// The request in a campaign file.
#[derive(Clone, Debug, PartialEq)]
pub struct Campaign {
    /// Its name; the name of the file if it gives none.
    pub name: String,
    /// One line that states its purpose.
    pub summary: String,
    /// The suites with their subjects, one setting for each number of CPUs and each load.
    pub settings: Vec<Setting>,
    /// The limits that the subjects must meet, each with its line in the file.
    pub limits: Vec<(usize, Limit)>,
    /// The time during which new runs are begun.
    pub budget: Option<Duration>,
    /// The parts that are left out, with the reasons.
    pub left_out: Vec<String>,
}

/// A suite with its subjects and seeds.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// The name that tells it from the others: `demo`, `demo, load storm, 4 CPUs`.
    pub name: String,
    /// The suite, as it is measured.
    pub suite: Suite,
    /// The words that ask `punctual run` for the suite.
    pub what: Vec<String>,
    /// Further options of `punctual run`: `--memory 1024`.
    pub options: Vec<String>,
    /// The subjects to measure.
    pub subjects: Vec<Chosen>,
    /// The seeds; each subject has one run for each of them.
    pub seeds: Vec<u64>,
}

/// A subject, and the words that ask for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// The subject.
    pub spec: SubjectSpec,
    /// The words, such as `--kernel debian-6.12 --boot preempt=full`.
    pub words: Vec<String>,
}

/// A run of a campaign, by its numbers there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The number of the setting.
    pub setting: usize,
    /// The number of the subject in its setting.
    pub subject: usize,
    /// The seed.
    pub seed: u64,
}

impl Campaign {
    /// The number of runs that it asks for.
    pub fn size(&self) -> usize {
        let runs = |one: &Setting| one.subjects.len() * one.seeds.len();
        self.settings.iter().map(runs).sum()
    }

    /// All runs, breadth first: if a budget ends the campaign, each subject has as many seeds as
    /// the others.
    pub fn places(&self) -> Vec<Place> {
        let most = self.settings.iter().map(|one| one.seeds.len()).max();
        let mut places = Vec::new();
        for number in 0..most.unwrap_or(0) {
            for (one, setting) in self.settings.iter().zip(0..) {
                let Some(seed) = one.seeds.get(number) else {
                    continue;
                };
                places.extend((0..one.subjects.len()).map(|subject| Place {
                    setting,
                    subject,
                    seed: *seed,
                }));
            }
        }
        places
    }

    /// Leaves out the subjects whose kernel does not offer the preemption model in their boot
    /// arguments, and reports them. Fetches kernels that are not in the cache.
    pub fn leave_out_impossible(
        &mut self,
        catalog: &Catalog,
        say: &mut dyn FnMut(&str),
    ) -> Result<(), Error> {
        let left_out = &mut self.left_out;
        for setting in &mut self.settings {
            let mut kept = Vec::new();
            for chosen in setting.subjects.drain(..) {
                let spec = &chosen.spec;
                let kernel = catalog.ensure(&spec.kernel, say)?;
                match preemption::not_offered(&kernel, &spec.boot)? {
                    Some(why) => left_out.push(format!("{}: {}: {why}", setting.name, spec.name)),
                    None => kept.push(chosen),
                }
            }
            setting.subjects = kept;
        }
        self.settings.retain(|setting| !setting.subjects.is_empty());
        left_out.sort();
        left_out.dedup();
        if self.settings.is_empty() {
            let why = left_out.join("; ");
            return Err(Error::Request(format!("no subject is left: {why}")));
        }
        Ok(())
    }
}

impl Setting {
    /// Its subjects, without the words that ask for them.
    pub fn specs(&self) -> Vec<SubjectSpec> {
        self.subjects.iter().map(|one| one.spec.clone()).collect()
    }

    /// The equipment that its guests get.
    pub fn equipment(&self, say: &mut dyn FnMut(&str)) -> Result<Equipment, Error> {
        Equipment::of(&self.suite, &loads::of(&self.suite)?, say)
    }

    fn request(&self, subject: usize) -> Request {
        Request {
            what: self.what.clone(),
            subject: self.subjects[subject].words.clone(),
            all_subjects: None,
            options: self.options.clone(),
        }
    }
}

/// A campaign whose subjects are ready to run.
pub struct Ready<'a> {
    /// The campaign.
    pub campaign: &'a Campaign,
    /// The subjects of each setting.
    systems: Vec<Vec<PreparedSystem>>,
    /// The plan of each setting with one seed, regardless of modules that a system lacks.
    plans: Vec<Plan>,
}

impl<'a> Ready<'a> {
    /// Makes all subjects ready: `build` does for a setting what [`Builder::build`] does for a
    /// suite.
    ///
    /// [`Builder::build`]: crate::systems::Builder::build
    pub fn new(
        campaign: &'a Campaign,
        build: &mut dyn FnMut(&Setting) -> Result<Vec<PreparedSystem>, Error>,
    ) -> Result<Self, Error> {
        let systems = campaign.settings.iter().map(build);
        let plan = |setting: &Setting| {
            let suite = &setting.suite;
            suites::plan(suite, &suite.steps, &loads::of(suite)?, 0)
        };
        Ok(Self {
            systems: systems.collect::<Result<_, _>>()?,
            plans: campaign
                .settings
                .iter()
                .map(plan)
                .collect::<Result<_, _>>()?,
            campaign,
        })
    }

    /// The job of a run, with `group` as its group.
    pub fn job(&self, place: Place, group: usize) -> Job<'_> {
        let setting = &self.campaign.settings[place.setting];
        let system = &self.systems[place.setting][place.subject];
        Job {
            group,
            suite: &setting.suite.name,
            subject: &setting.subjects[place.subject].spec,
            system: system.system.as_ref(),
            plan: Plan {
                seed: place.seed,
                absent: system.absent.clone(),
                ..self.plans[place.setting].clone()
            },
            request: setting.request(place.subject),
        }
    }

    /// The request, for the store.
    pub fn asked(&self) -> Asked {
        let campaign = self.campaign;
        let setting = |one: &Setting| asked::Setting {
            name: one.name.clone(),
            subjects: one.specs().into_iter().map(|spec| spec.name).collect(),
            seeds: one.seeds.clone(),
        };
        Asked {
            name: campaign.name.clone(),
            summary: campaign.summary.clone(),
            left_out: campaign.left_out.clone(),
            settings: campaign.settings.iter().map(setting).collect(),
        }
    }

    /// Its runs, for the store.
    pub fn planned(&self, places: &[Place]) -> Vec<PlannedRun> {
        let planned = |place: &Place| PlannedRun {
            setting: place.setting,
            subject: place.subject,
            seed: place.seed,
            key: key(&self.job(*place, 0).run()),
        };
        places.iter().map(planned).collect()
    }

    /// The id of the equal run in the store, if there is one.
    pub fn known(&self, place: Place, store: &Store) -> Result<Option<String>, StoreError> {
        store.id_of_equal(&self.job(place, 0).run())
    }
}

/// The durations of runs in the store, from which those of others are estimated.
#[derive(Debug, Default)]
pub struct Durations(Vec<(String, String, f64)>);

impl Durations {
    /// The durations of the finished runs in virtual time.
    pub fn of(store: &Store) -> Result<Self, StoreError> {
        let seconds = |from: &str, to: &str| {
            let from: jiff::Timestamp = from.parse().ok()?;
            let to: jiff::Timestamp = to.parse().ok()?;
            Some(to.duration_since(from).as_secs_f64().max(0.5))
        };
        let runs = store.list()?.into_iter();
        let known = runs.filter_map(|run| {
            let is_virtual = run.subject.bench == "virtual" && run.digest.is_some();
            let took = seconds(&run.started, run.finished.as_deref()?)?;
            is_virtual.then_some((run.suite, run.subject.kernel, took))
        });
        Ok(Self(known.collect()))
    }

    /// The median over a suite's runs on a kernel, or over its runs on any kernel if there are
    /// none.
    pub fn middle(&self, suite: &str, kernel: &str) -> Option<Duration> {
        let of = |is_it: &dyn Fn(&str) -> bool| {
            let own = self.0.iter().filter(|(own, _, _)| own == suite);
            let own = own.filter(|(_, kernel, _)| is_it(kernel));
            let mut took: Vec<f64> = own.map(|(_, _, took)| *took).collect();
            took.sort_by(f64::total_cmp);
            took.get(took.len() / 2).copied()
        };
        let middle = of(&|own| own == kernel).or_else(|| of(&|_| true));
        middle.map(Duration::from_secs_f64)
    }
}

/// The seeds from 1 to `count`.
fn first_seeds(count: u64) -> Vec<u64> {
    (1..=count.min(SEED_MAX)).collect()
}

/// Resolves a path against the directory of the campaign's file; a name stays as it is.
fn from_here(word: &str, directory: &Path) -> String {
    if crate::is_path(word) {
        return directory.join(word).to_string_lossy().into_owned();
    }
    word.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_what_runs_took_is_expected_of_others() {
        let of = |suite: &str, kernel: &str, took| (suite.to_owned(), kernel.to_owned(), took);
        let known = Durations(vec![
            of("s", "a", 3.0),
            of("s", "a", 9.0),
            of("s", "b", 1.0),
        ]);
        let middle = |suite, kernel| known.middle(suite, kernel).map(|time| time.as_secs());
        assert_eq!(middle("s", "a"), Some(9));
        assert_eq!((middle("s", "b"), middle("s", "c")), (Some(1), Some(3)));
        assert_eq!(middle("t", "a"), None);
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The format of a campaign's file, and the faults in one, by file and line.

use std::fmt::Display;
use std::num::NonZeroU32;
use std::ops::Range;
use std::path::{Path, PathBuf, absolute};
use std::time::Duration;

use jiff::SignedDuration;
use punctual_bench::virtual_bench::CPUS_MAX;
use punctual_kernels::{Catalog, KernelError};
use punctual_model::Limit;
use punctual_model::limit::{Demand, Reference};
use punctual_model::plan::SEED_MAX;
use punctual_model::suite::{SubjectSpec, Suite};
use serde::Deserialize;
use toml::Spanned;

use super::{Campaign, Chosen, RUNS_MOST, Setting, first_seeds, from_here};
use crate::data_files::{read, stem, wrong, wrong_at};
use crate::{Choice, Error, choose, did_you_mean, limits, loads, mistakes, suites};

/// The contents of a campaign file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: Option<Spanned<String>>,
    #[serde(default)]
    summary: String,
    suites: Vec<Spanned<String>>,
    #[serde(default)]
    kernels: Vec<Spanned<String>>,
    #[serde(default)]
    boot: Vec<String>,
    #[serde(default, rename = "subject")]
    subjects: Vec<Spanned<SubjectSpec>>,
    seeds: Option<Spanned<Seeds>>,
    #[serde(default)]
    cpus: Vec<Spanned<u32>>,
    #[serde(default)]
    loads: Vec<Spanned<String>>,
    memory_mib: Option<Spanned<u32>>,
    budget: Option<Spanned<String>>,
    #[serde(default, rename = "exclude")]
    excludes: Vec<Spanned<Exclude>>,
    #[serde(default, rename = "limit")]
    limits: Vec<Spanned<Limit>>,
}

/// The number of seeds, or the seeds themselves.
#[derive(Clone, Debug, Deserialize)]
#[serde(
    untagged,
    expecting = "expected a number of seeds, a range such as \"1..20\", or a list"
)]
enum Seeds {
    Count(u64),
    Range(String),
    List(Vec<u64>),
}

/// An exclusion: it applies to everything that matches all its fields.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Exclude {
    suite: Option<String>,
    kernel: Option<String>,
    boot: Option<String>,
    load: Option<String>,
    cpus: Option<u32>,
}

/// Loads the campaign in a file. Checks that its kernels, suites and loads exist.
///
/// # Errors
/// If the file is not a campaign; the error gives its path, the line, and what was expected.
pub fn load(path: &Path, catalog: &Catalog) -> Result<Campaign, Error> {
    let text = read(path)?;
    parse(path, &text, &|kernel| match catalog.get(kernel) {
        Err(KernelError::NotFetched(_)) => Ok(()),
        got => got.map(drop),
    })
}

/// Returns an error unless a kernel of this name exists.
pub(crate) type IsKernel<'a> = &'a dyn Fn(&str) -> Result<(), KernelError>;

/// Parses the campaign in a text.
pub(crate) fn parse(path: &Path, text: &str, is_kernel: IsKernel<'_>) -> Result<Campaign, Error> {
    let file: File = toml::from_str(text).map_err(|error| mistakes::in_file(path, text, &error))?;
    let reader = Reader { path, text };
    reader.check(&file, is_kernel)?;
    let budget = file.budget.as_ref().map(|text| reader.budget(text));
    let with_line = |limit: &Spanned<Limit>| {
        let line = mistakes::line_of(text, limit.span().start);
        (line, limit.get_ref().clone())
    };
    let campaign = Campaign {
        name: file
            .name
            .as_ref()
            .map_or_else(|| stem(path), |name| name.get_ref().clone()),
        summary: file.summary.clone(),
        settings: reader.settings(&file)?,
        limits: file.limits.iter().map(with_line).collect(),
        budget: budget.transpose()?,
        left_out: Vec::new(),
    };
    if campaign.size() > RUNS_MOST {
        let found = campaign.size();
        let most = format!("expected {RUNS_MOST} runs at most, found {found}");
        return Err(wrong(path, &most));
    }
    Ok(campaign)
}

/// A file that is being read.
struct Reader<'a> {
    path: &'a Path,
    text: &'a str,
}

impl Reader<'_> {
    /// An error at a place in the file.
    fn at(&self, place: Range<usize>, what: &str) -> Error {
        wrong_at(self.path, mistakes::line_of(self.text, place.start), what)
    }

    fn check(&self, file: &File, is_kernel: IsKernel<'_>) -> Result<(), Error> {
        let empty = |list: &str| {
            let what = format!("expected at least one of `{list}`, found none");
            Err(wrong(self.path, &what))
        };
        if file.suites.is_empty() {
            return empty("suites");
        }
        self.once("suite", &file.suites)?;
        self.once("load", &file.loads)?;
        self.once("number of CPUs", &file.cpus)?;
        self.names(file)?;
        let kernels = file.kernels.iter();
        let kernels = kernels.map(|one| (one.span(), one.get_ref().as_str()));
        let subjects = file.subjects.iter();
        let subjects = subjects.map(|one| (one.span(), one.get_ref().kernel.as_str()));
        for (place, kernel) in kernels.chain(subjects) {
            is_kernel(kernel).map_err(|error| self.at(place, &unknown_kernel(kernel, &error)))?;
        }
        if !file.boot.is_empty() && file.kernels.is_empty() && !file.subjects.is_empty() {
            let what = "`boot` is for `kernels`, of which there are none: write it into each \
                        [[subject]]";
            return Err(wrong(self.path, what));
        }
        for cpus in &file.cpus {
            let found = cpus.get_ref();
            if !(1..=CPUS_MAX).contains(found) {
                let what = format!("expected 1 to {CPUS_MAX} CPUs, found {found}");
                return Err(self.at(cpus.span(), &what));
            }
        }
        if let Some(memory) = &file.memory_mib {
            let found = memory.get_ref();
            if !(16..=1 << 20).contains(found) {
                let what = format!("expected 16 to 1048576 MiB, found {found}");
                return Err(self.at(memory.span(), &what));
            }
        }
        self.limits(&file.limits)
    }

    /// Checks that each limit names a known probe, and compares with nothing but subjects.
    fn limits(&self, all: &[Spanned<Limit>]) -> Result<(), Error> {
        for (limit, number) in all.iter().zip(1..) {
            let at_limit =
                |reason: &str| self.at(limit.span(), &format!("limit {number}: {reason}"));
            limits::check_probe(limit.get_ref()).map_err(|reason| at_limit(&reason))?;
            if let Demand::Relative(.., Reference::Baseline(name)) = &limit.get_ref().demand {
                let name = name
                    .as_ref()
                    .map_or(String::new(), |name| format!(":{name}"));
                return Err(at_limit(&format!(
                    "of: expected the name of another subject, found \"baseline{name}\": `punctual \
                     judge` compares with a baseline"
                )));
            }
        }
        Ok(())
    }

    /// Refuses a list in which something is twice.
    fn once<T: Display + PartialEq>(&self, what: &str, list: &[Spanned<T>]) -> Result<(), Error> {
        for (one, number) in list.iter().zip(0..) {
            let found = one.get_ref();
            if list[..number].iter().any(|other| other.get_ref() == found) {
                let what = format!("{what} \"{found}\" is named twice: it would be measured twice");
                return Err(self.at(one.span(), &what));
            }
        }
        Ok(())
    }

    /// Refuses names without a word in them.
    fn names(&self, file: &File) -> Result<(), Error> {
        let own = file.name.iter();
        let own = own.map(|name| (name.span(), name.get_ref()));
        let subjects = file.subjects.iter();
        let subjects = subjects.map(|one| (one.span(), &one.get_ref().name));
        for (place, name) in own.chain(subjects) {
            if name.trim().is_empty() {
                return Err(self.at(place, &format!("expected a name, found \"{name}\"")));
            }
        }
        Ok(())
    }

    fn budget(&self, text: &Spanned<String>) -> Result<Duration, Error> {
        let parsed: Option<SignedDuration> = text.get_ref().parse().ok();
        let parsed = parsed.filter(|time| *time > SignedDuration::ZERO);
        parsed.map(SignedDuration::unsigned_abs).ok_or_else(|| {
            let found = text.get_ref();
            let what = format!("expected a time with its unit, such as 90m or 12h, found {found}");
            self.at(text.span(), &what)
        })
    }

    fn seeds(&self, seeds: &Spanned<Seeds>) -> Result<Vec<u64>, Error> {
        let wrong = |found: &str| {
            let what = format!(
                "expected a number of seeds from 1, a range such as \"1..20\" (the 20 included), \
                 or a list, each seed once, found {found}"
            );
            self.at(seeds.span(), &what)
        };
        let most = RUNS_MOST as u64;
        match seeds.get_ref() {
            Seeds::Count(count) if (1..=most).contains(count) => Ok(first_seeds(*count)),
            Seeds::Count(count) => Err(wrong(&count.to_string())),
            Seeds::Range(text) => {
                let ends = text.split_once("..");
                let ends = ends.map(|(first, last)| (first.trim(), last.trim_start_matches('=')));
                let parse = |end: &str| end.trim().parse::<u64>().ok();
                let ends = ends.and_then(|(first, last)| Some((parse(first)?, parse(last)?)));
                let ends = ends.filter(|(first, last)| first <= last && *last <= SEED_MAX);
                let ends = ends.filter(|(first, last)| last - first < most);
                ends.map(|(first, last)| (first..=last).collect())
                    .ok_or_else(|| wrong(text))
            }
            Seeds::List(list) => {
                let mut distinct = list.clone();
                distinct.sort_unstable();
                distinct.dedup();
                let is_sound = !list.is_empty()
                    && distinct.len() == list.len()
                    && list.iter().all(|seed| *seed <= SEED_MAX);
                if is_sound {
                    Ok(list.clone())
                } else {
                    Err(wrong(&format!("{list:?}")))
                }
            }
        }
    }

    /// The settings: each suite, with each load and each number of CPUs.
    fn settings(&self, file: &File) -> Result<Vec<Setting>, Error> {
        let seeds = file.seeds.as_ref().map(|seeds| self.seeds(seeds));
        let seeds = seeds.transpose()?;
        let directory = self.path.parent().unwrap_or(Path::new(""));
        let loads = options(&file.loads);
        let cpus = options(&file.cpus);
        let mut used = vec![false; file.excludes.len()];
        let mut settings = Vec::new();
        let mut named = Vec::new();
        for name in &file.suites {
            for load in &loads {
                for cpus in &cpus {
                    let found = self.suite(name, *load, *cpus, directory)?;
                    let (mut suite, what) = found;
                    self.other_name(&mut named, &suite, name)?;
                    suite.memory_mib = file
                        .memory_mib
                        .as_ref()
                        .map_or(suite.memory_mib, |memory| *memory.get_ref());
                    let subjects = self.subjects(file, &suite)?;
                    let is_kept = |one: &Chosen| {
                        let excluded = file.excludes.iter().zip(&mut used);
                        let mut hits = excluded.filter_map(|(exclude, used)| {
                            let hit = exclude.get_ref().means(name.get_ref(), one, *load, *cpus);
                            *used |= hit;
                            hit.then_some(())
                        });
                        hits.next().is_none()
                    };
                    let subjects: Vec<Chosen> = subjects.into_iter().filter(is_kept).collect();
                    if subjects.is_empty() {
                        continue;
                    }
                    let own = || first_seeds(suite.seeds.get().into());
                    let memory = file.memory_mib.as_ref();
                    let memory = memory.map(|mib| ["--memory".into(), mib.get_ref().to_string()]);
                    settings.push(Setting {
                        name: title(&suite.name, *load, *cpus),
                        seeds: seeds.clone().unwrap_or_else(own),
                        what,
                        options: memory.into_iter().flatten().collect(),
                        subjects,
                        suite,
                    });
                }
            }
        }
        if let Some((exclude, _)) = file.excludes.iter().zip(&used).find(|(_, used)| !**used) {
            let what = "expected an [[exclude]] that leaves something out, found one that does not";
            return Err(self.at(exclude.span(), what));
        }
        if settings.is_empty() {
            return Err(wrong(
                self.path,
                "expected a run, found that all are excluded",
            ));
        }
        Ok(settings)
    }

    /// Refuses a suite that has the name of another, and so could not be told from it. `named` are
    /// the names so far, each with the word that asks for it.
    fn other_name<'a>(
        &self,
        named: &mut Vec<(String, &'a str)>,
        suite: &Suite,
        word: &'a Spanned<String>,
    ) -> Result<(), Error> {
        let own = word.get_ref().as_str();
        let is_other = |one: &&(String, &str)| one.0 == suite.name && one.1 != own;
        if let Some((name, other)) = named.iter().find(is_other) {
            let what = format!(
                "expected suites of different names, found \"{name}\" in {other} and in {own}: \
                 rename one of them"
            );
            return Err(self.at(word.span(), &what));
        }
        named.push((suite.name.clone(), own));
        Ok(())
    }

    /// A suite under a load with this many CPUs, and the words that ask for it.
    fn suite(
        &self,
        name: &Spanned<String>,
        load: Option<&Spanned<String>>,
        cpus: Option<&Spanned<u32>>,
        directory: &Path,
    ) -> Result<(Suite, Vec<String>), Error> {
        let word = from_here(name.get_ref(), directory);
        let at_suite = |error: Error| self.at(name.span(), &error.to_string());
        let mut suite = suites::find(&word).map_err(at_suite)?;
        let mut what = vec![whole(&word)];
        if let Some(load) = load {
            let at_load = |error: Error| self.at(load.span(), &error.to_string());
            let word = from_here(load.get_ref(), directory);
            suite = suites::under(suite, std::slice::from_ref(&word)).map_err(at_load)?;
            let known = loads::of(&suite).map_err(at_load)?;
            suites::plan(&suite, &suite.steps, &known, 1).map_err(at_load)?;
            what.extend(["--load".to_owned(), whole(&word)]);
        }
        if let Some(cpus) = cpus {
            suite.cpus = NonZeroU32::new(*cpus.get_ref()).unwrap_or(NonZeroU32::MIN);
            what.extend(["--cpus".to_owned(), cpus.get_ref().to_string()]);
        }
        let known = loads::of(&suite).map_err(at_suite)?;
        suites::plan(&suite, &suite.steps, &known, 1).map_err(at_suite)?;
        Ok((suite, what))
    }

    /// The kernels with each of the boot arguments, and the named subjects; the suite's own
    /// subjects if the file has neither.
    fn subjects(&self, file: &File, suite: &Suite) -> Result<Vec<Chosen>, Error> {
        let kernels: Vec<String> = file
            .kernels
            .iter()
            .map(|one| one.get_ref().clone())
            .collect();
        let mut chosen = Vec::new();
        if !kernels.is_empty() || file.subjects.is_empty() {
            let choice = Choice {
                kernels: &kernels,
                boots: &file.boot,
                names: &[],
            };
            let specs = choose(suite, &choice).map_err(|error| {
                let place = file.kernels.first().map_or(0..0, Spanned::span);
                self.at(place, &error.to_string())
            })?;
            let boots = file.boot.len().max(1);
            for (spec, number) in specs.into_iter().zip(0..) {
                let own = || &suite.subjects[number / boots].name;
                let kernel = kernels.get(number / boots);
                let option = kernel.map_or("--subject", |_| "--kernel").to_owned();
                let words = [option, kernel.unwrap_or_else(own).clone()];
                let boot = file.boot.get(number % boots);
                let boot = boot.map(|boot| ["--boot".to_owned(), boot.clone()]);
                let words = words.into_iter().chain(boot.into_iter().flatten());
                chosen.push(Chosen {
                    spec,
                    words: words.collect(),
                });
            }
        }
        for named in &file.subjects {
            let spec = named.get_ref().clone();
            if chosen.iter().any(|one: &Chosen| one.spec.name == spec.name) {
                let what = format!("there is another subject {}: rename one of them", spec.name);
                return Err(self.at(named.span(), &what));
            }
            let mut words = vec!["--kernel".to_owned(), spec.kernel.clone()];
            if !spec.boot.is_empty() {
                words.extend(["--boot".to_owned(), spec.boot.clone()]);
            }
            chosen.push(Chosen { spec, words });
        }
        Ok(chosen)
    }
}

impl Exclude {
    fn means(
        &self,
        suite: &str,
        subject: &Chosen,
        load: Option<&Spanned<String>>,
        cpus: Option<&Spanned<u32>>,
    ) -> bool {
        let is = |named: &Option<String>, found: Option<&str>| {
            named.as_deref().is_none_or(|named| found == Some(named))
        };
        // Boot arguments of the file stand behind those of the suite's subject.
        let boot = self.boot.as_deref().is_none_or(|named| {
            let own = &subject.spec.boot;
            own == named || own.ends_with(&format!(" {named}"))
        });
        is(&self.suite, Some(suite))
            && is(&self.kernel, Some(&subject.spec.kernel))
            && boot
            && is(&self.load, load.map(|load| load.get_ref().as_str()))
            && self
                .cpus
                .is_none_or(|named| cpus.map(|cpus| *cpus.get_ref()) == Some(named))
    }
}

/// Each value of a list, or a single `None` if the list is empty.
fn options<T>(list: &[T]) -> Vec<Option<&T>> {
    if list.is_empty() {
        return vec![None];
    }
    list.iter().map(Some).collect()
}

/// The title of a setting: `demo, load storm, 4 CPUs`.
fn title(suite: &str, load: Option<&Spanned<String>>, cpus: Option<&Spanned<u32>>) -> String {
    let load = load.map(|load| format!("load {}", load.get_ref()));
    let cpus = cpus.map(|cpus| match cpus.get_ref() {
        1 => "1 CPU".to_owned(),
        cpus => format!("{cpus} CPUs"),
    });
    let parts = [Some(suite.to_owned()), load, cpus];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    parts.join(", ")
}

/// Makes a path absolute; a name stays as it is.
fn whole(word: &str) -> String {
    let path = || absolute(PathBuf::from(word)).ok();
    let path = crate::is_path(word).then(path).flatten();
    path.map_or_else(
        || word.to_owned(),
        |path| path.to_string_lossy().into_owned(),
    )
}

fn unknown_kernel(kernel: &str, error: &KernelError) -> String {
    match error {
        KernelError::Unknown { known, .. } => {
            let names: Vec<&str> = known.split(", ").collect();
            let hint = did_you_mean(kernel, &names);
            format!("expected a kernel, found {kernel}{hint} (there are: {known})")
        }
        error => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Campaign, Error> {
        let known = ["debian-6.12", "debian-6.12-rt"];
        parse(Path::new("c.toml"), text, &|kernel| {
            let is_known = known.contains(&kernel);
            let error = || KernelError::Unknown {
                id: kernel.to_owned(),
                known: known.join(", "),
            };
            is_known.then_some(()).ok_or_else(error)
        })
    }

    const MATRIX: &str = "summary = \"x\"\nsuites = [\"demo\"]\n\
        kernels = [\"debian-6.12\", \"debian-6.12-rt\"]\nboot = [\"preempt=full\", \"quiet\"]\n\
        seeds = \"1..3\"\ncpus = [1, 2]\nloads = [\"stress\", \"storm\"]\nbudget = \"90m\"\n";

    #[test]
    fn a_matrix_is_the_product_of_what_it_names() {
        let campaign = parsed(MATRIX).unwrap();
        assert_eq!(
            (campaign.name.as_str(), campaign.size()),
            ("c", 2 * 2 * 4 * 3)
        );
        let names: Vec<&str> = campaign.settings.iter().map(|one| &*one.name).collect();
        assert_eq!(
            names,
            [
                "demo, load stress, 1 CPU",
                "demo, load stress, 2 CPUs",
                "demo, load storm, 1 CPU",
                "demo, load storm, 2 CPUs"
            ]
        );
        let setting = &campaign.settings[3];
        assert_eq!(setting.what, ["demo", "--load", "storm", "--cpus", "2"]);
        assert_eq!(setting.suite.cpus.get(), 2);
        assert!(setting.suite.steps.iter().all(|step| step.load == "storm"));
        let subject = &setting.subjects[2];
        assert_eq!(subject.spec.name, "debian-6.12-rt preempt=full");
        assert_eq!(
            subject.words,
            ["--kernel", "debian-6.12-rt", "--boot", "preempt=full"]
        );
        assert_eq!(campaign.budget, Some(Duration::from_secs(5_400)));
    }

    #[test]
    fn runs_come_seed_by_seed_so_that_an_end_leaves_all_alike() {
        let places = parsed(MATRIX).unwrap().places();
        assert_eq!(places.len(), 48);
        assert!(places[..16].iter().all(|place| place.seed == 1));
        assert!(places[32..].iter().all(|place| place.seed == 3));
    }

    #[test]
    fn a_suites_own_subjects_and_seeds_are_taken_where_none_are_named() {
        let campaign = parsed("suites = [\"demo\"]\n").unwrap();
        let setting = &campaign.settings[0];
        let names: Vec<&str> = setting.subjects.iter().map(|one| &*one.spec.name).collect();
        assert_eq!(names, ["none", "voluntary", "full", "rt"]);
        assert_eq!(setting.subjects[3].words, ["--subject", "rt"]);
        assert_eq!(setting.seeds, [1, 2, 3, 4, 5]);
        let seeds = |value: &str| {
            let campaign = parsed(&format!("suites = [\"demo\"]\nseeds = {value}\n"));
            campaign.map(|campaign| campaign.settings[0].seeds.clone())
        };
        assert_eq!(seeds("2").unwrap(), [1, 2]);
        assert_eq!(seeds("[7, 3]").unwrap(), [7, 3]);
        for wrong in ["0", "\"3..1\"", "[1, 1]", "[]", "\"a\"", "\"0..99999999\""] {
            let said = seeds(wrong).unwrap_err().to_string();
            assert!(
                said.contains("c.toml:2: expected a number of seeds"),
                "{said}"
            );
        }
        let said = seeds("1.5").unwrap_err().to_string();
        assert!(
            said.starts_with("c.toml:2: expected a number of seeds"),
            "{said}"
        );
    }

    #[test]
    fn what_is_excluded_is_left_out_and_what_excludes_nothing_is_a_mistake() {
        let exclude = "[[exclude]]\nkernel = \"debian-6.12-rt\"\nboot = \"quiet\"\n";
        let campaign = parsed(&format!("{MATRIX}{exclude}")).unwrap();
        assert_eq!(campaign.size(), 2 * 2 * 3 * 3);
        let cpus = "[[exclude]]\nload = \"storm\"\ncpus = 2\n";
        let campaign = parsed(&format!("{MATRIX}{cpus}")).unwrap();
        assert_eq!(campaign.settings.len(), 3);
        let none = parsed(&format!("{MATRIX}[[exclude]]\ncpus = 3\n"));
        let said = none.unwrap_err().to_string();
        assert!(
            said.starts_with("c.toml:9: expected an [[exclude]] that"),
            "{said}"
        );
        let all = parsed(&format!("{MATRIX}[[exclude]]\n"));
        assert!(all.unwrap_err().to_string().contains("all are excluded"));
    }

    #[test]
    fn what_is_wrong_is_said_with_file_and_line() {
        let said = |from: &str, to: &str| {
            assert!(MATRIX.contains(from), "{from}");
            parsed(&MATRIX.replace(from, to)).unwrap_err().to_string()
        };
        let kernel = said("debian-6.12-rt", "debian-6.12-tr");
        assert!(
            kernel.starts_with("c.toml:3: expected a kernel, found debian-6.12-tr; did you mean"),
            "{kernel}"
        );
        let suite = said("\"demo\"", "\"dmeo\"");
        assert!(
            suite.starts_with("c.toml:2: there is no suite") && suite.contains("demo?"),
            "{suite}"
        );
        let load = said("\"storm\"", "\"strom\"");
        assert!(
            load.starts_with("c.toml:7: ") && load.contains("did you mean storm?"),
            "{load}"
        );
        let cpus = said("[1, 2]", "[1, 9]");
        assert_eq!(cpus, "c.toml:6: expected 1 to 8 CPUs, found 9");
        let budget = said("90m", "90");
        assert!(
            budget.starts_with("c.toml:8: expected a time with its unit"),
            "{budget}"
        );
        let word = said("budget", "bugdet");
        assert!(
            word.starts_with("c.toml:8: ") && word.ends_with("did you mean budget?"),
            "{word}"
        );
        for (from, to, expected) in [
            (
                "[\"demo\"]",
                "[\"demo\", \"demo\"]",
                "c.toml:2: suite \"demo\" is named twice",
            ),
            (
                "\"storm\"",
                "\"stress\"",
                "c.toml:7: load \"stress\" is named twice",
            ),
            (
                "[1, 2]",
                "[2, 1, 2]",
                "c.toml:6: number of CPUs \"2\" is named twice",
            ),
            (
                "suites",
                "name = \"\"\nsuites",
                "c.toml:2: expected a name, found \"\"",
            ),
        ] {
            let found = said(from, to);
            assert!(found.starts_with(expected), "{found}");
        }
        let model = said("preempt=full", "preempt=fulll");
        assert!(model.contains("did you mean full?"), "{model}");
        assert!(
            parsed("suites = []\n")
                .unwrap_err()
                .to_string()
                .contains("`suites`")
        );
        let many = said("1..3", "1..900000");
        assert!(many.contains("1000000 runs at most"), "{many}");
    }

    #[test]
    fn suites_of_one_name_could_not_be_told_apart() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("mine.toml");
        let suite = "summary = \"\"\n[[step]]\nprobe = \"timer\"\n";
        let said = |name: &str| {
            std::fs::write(&path, format!("name = \"{name}\"\n{suite}")).unwrap();
            let path = path.display();
            parsed(&format!(
                "suites = [\"demo\",\n\"{path}\"]\nkernels = [\"debian-6.12\"]\ncpus = [1, 2]\n"
            ))
        };
        assert_eq!(said("mine").unwrap().settings.len(), 4);
        let error = said("demo").unwrap_err().to_string();
        assert!(
            error.starts_with("c.toml:2: expected suites of different names, found \"demo\" in "),
            "{error}"
        );
    }

    #[test]
    fn a_limit_that_no_campaign_can_answer_is_a_mistake_at_its_line() {
        let limit = "[[limit]]\nprobe = \"timer\"\nwhat = \"worst\"\nat_most = \"9 us\"\n";
        let lines = |text: &str| {
            let campaign = parsed(&format!("suites = [\"demo\"]\n{text}"));
            campaign.map(|one| one.limits.iter().map(|(line, _)| *line).collect::<Vec<_>>())
        };
        assert_eq!(lines(&limit.repeat(2)).unwrap(), [2, 6]);
        let said = |from: &str, to: &str| {
            let second = limit.replace(from, to);
            lines(&format!("{limit}{second}")).unwrap_err().to_string()
        };
        let probe = said("timer", "timr");
        assert!(
            probe.starts_with("c.toml:6: limit 2: ") && probe.contains("did you mean timer?"),
            "{probe}"
        );
        for of in ["baseline", "baseline:stable"] {
            let found = said("9 us\"", &format!("115 %\"\nof = \"{of}\""));
            let expected = format!(
                "c.toml:6: limit 2: of: expected the name of another subject, found \"{of}\""
            );
            assert!(found.starts_with(&expected), "{found}");
        }
        // What is wrong with a limit itself is told with its line, too.
        let unit = said("9 us", "9");
        assert!(
            unit.starts_with("c.toml:9: at_most: expected a time"),
            "{unit}"
        );
    }

    #[test]
    fn the_campaign_that_comes_along_can_be_measured() {
        let campaign = parsed(include_str!("../../../../campaigns/preemption.toml")).unwrap();
        assert_eq!(campaign.size(), 240);
        assert_eq!(campaign.limits.len(), 2);
    }

    #[test]
    fn named_subjects_stand_beside_kernels() {
        let subject = "[[subject]]\nname = \"tuned\"\nkernel = \"debian-6.12-rt\"\n\
            boot = \"threadirqs\"\n";
        let campaign = parsed(&format!("suites = [\"demo\"]\n{subject}")).unwrap();
        let subjects = &campaign.settings[0].subjects;
        assert_eq!(subjects.len(), 1);
        assert_eq!(
            subjects[0].words,
            ["--kernel", "debian-6.12-rt", "--boot", "threadirqs"]
        );
        // Nobody would get it.
        let boot = "boot = [\"preempt=full\"]";
        let lost = parsed(&format!("suites = [\"demo\"]\n{boot}\n{subject}"));
        let lost = lost.unwrap_err().to_string();
        assert!(lost.contains("`boot` is for `kernels`"), "{lost}");
        let nameless = parsed(&format!(
            "suites = [\"demo\"]\n{}",
            subject.replace("tuned", " ")
        ));
        let nameless = nameless.unwrap_err().to_string();
        assert!(
            nameless.ends_with("expected a name, found \" \""),
            "{nameless}"
        );
        let twice = parsed(&format!("suites = [\"demo\"]\n{subject}{subject}"));
        assert!(
            twice
                .unwrap_err()
                .to_string()
                .contains("another subject tuned")
        );
    }
}

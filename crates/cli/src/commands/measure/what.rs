// SPDX-License-Identifier: MIT OR Apache-2.0
//! The options that choose the measurement: a suite, or probes and loads.

use std::iter;
use std::num::NonZeroU32;
use std::path::{Path, absolute};

use anyhow::{Context as _, Result};
use clap::{ArgGroup, Args, Parser};
use punctual_agent::probes;
use punctual_bench::virtual_bench::CPUS_MAX;
use punctual_model::plan::Step;
use punctual_model::suite::Suite;
use punctual_runner::{program, suites};
use toml::{Table, Value};

use crate::UsageError;

/// What is measured in place of a suite, or of it, where the suite is named otherwise.
#[derive(Clone, Debug, Default, Args)]
#[command(group(ArgGroup::new("measured").args(["probe", "program"]).multiple(true)))]
pub struct ProbeArgs {
    /// Measure with this probe: of the suite only its steps; without a suite on the four subjects
    /// of `demo` unless others are named, and idle unless --load says otherwise (may be repeated)
    #[arg(long, value_name = "NAME")]
    probe: Vec<String>,
    /// Measure under this load instead of the suite's: `idle`, a name that
    /// `punctual list loads` shows, or a TOML file; ` on 0-2`, ` on housekeeping` or ` on all`
    /// behind it says on which CPUs (may be repeated)
    #[arg(long, value_name = "LOAD")]
    load: Vec<String>,
    /// Measure the cycles of this program of yours, given with its arguments: how late each
    /// began, how long it took. A guest gets it with its libraries
    #[arg(long, value_name = "COMMAND", conflicts_with = "probe")]
    program: Option<String>,
    /// With --program: give guests this file too, at the same path; `*` stands for any part of
    /// a name (may be repeated)
    #[arg(long, value_name = "FILE", requires = "program")]
    file: Vec<String>,
    /// With --program: it is a program of this userland, a directory or a tar file such as of
    /// `docker export`. A guest gets all of it
    #[arg(long, value_name = "DIR|TAR", requires = "program")]
    root: Option<String>,
    /// Set a parameter of the probes named by --probe, or of --program: samples=500,
    /// `interval_us=1000`, priority=90; `punctual list probes NAME` has those of a probe
    #[arg(short, long = "param", value_name = "KEY=VALUE", requires = "measured", value_parser = parse_param)]
    params: Vec<(String, Value)>,
    /// How many CPUs a guest has, 1 to 8; with --bench host, on which is measured: 1, 0-3 or
    /// 0,2
    #[arg(long, value_name = "LIST", value_parser = parse_cpus)]
    cpus: Option<Cpus>,
}

impl ProbeArgs {
    /// Returns true if anything is named.
    pub fn is_given(&self) -> bool {
        self.is_subject() || !self.load.is_empty() || self.cpus.is_some()
    }

    /// Returns true if probes or a program are named, so that no suite is needed.
    fn is_subject(&self) -> bool {
        !self.probe.is_empty() || self.program.is_some()
    }

    /// Adds the suite that is named. Without one it is `default`, or none if probes or a program
    /// are named.
    pub fn with_or(&self, suite: Option<&str>, default: &str) -> WhatArgs {
        let default = Some(default).filter(|_| !self.is_subject());
        self.with(suite.or(default))
    }

    /// Adds a suite, or none.
    pub fn with(&self, suite: Option<&str>) -> WhatArgs {
        WhatArgs {
            suite: suite.map(str::to_owned),
            probes: self.clone(),
        }
    }
}

/// What is measured.
#[derive(Clone, Debug, Default, Args)]
#[command(group(ArgGroup::new("what").args(["suite", "probe", "program"]).multiple(true)))]
pub struct WhatArgs {
    /// The suite: a name that `punctual list suites` shows, or a TOML file
    suite: Option<String>,
    #[command(flatten)]
    probes: ProbeArgs,
}

impl WhatArgs {
    /// A suite, unchanged.
    pub fn of_suite(suite: &str) -> Self {
        Self {
            suite: Some(suite.to_owned()),
            ..Self::default()
        }
    }

    /// Returns true if anything is named.
    pub fn is_given(&self) -> bool {
        self.suite.is_some() || self.probes.is_subject() || !self.probes.load.is_empty()
    }

    /// The same on as many CPUs as `other` asks for, if it does.
    #[must_use]
    pub fn on_cpus_of(mut self, other: &Self) -> Self {
        if other.probes.cpus.is_some() {
            self.probes.cpus.clone_from(&other.probes.cpus);
        }
        self
    }

    /// Uses a guest of `count` CPUs, unless CPUs are asked for.
    pub fn take_cpus(&mut self, count: u32) {
        self.probes.cpus.get_or_insert_with(|| Cpus(vec![count]));
    }

    /// Returns true if a load is given without anything to measure.
    pub fn stray_load(&self) -> bool {
        self.suite.is_none() && !self.probes.is_subject() && !self.probes.load.is_empty()
    }

    /// The suite, if one is named.
    pub fn suite_named(&self) -> Option<&str> {
        self.suite.as_deref()
    }

    /// The suite, if nothing else is named.
    pub fn only_suite(&self) -> Option<&str> {
        let is_only = self.probes.probe.is_empty() && self.probes.load.is_empty();
        self.suite.as_deref().filter(|_| is_only)
    }

    /// Parses the words of a command line; `None` if they are not of this version.
    pub fn of_words(words: &[String]) -> Option<Self> {
        #[derive(Parser)]
        struct Words {
            #[command(flatten)]
            what: WhatArgs,
        }
        let program = iter::once("punctual").chain(words.iter().map(String::as_str));
        let words = Words::try_parse_from(program).ok().map(|words| words.what);
        words.filter(Self::is_given)
    }

    /// The probe timer under a load, with `samples` samples; on this CPU of a guest that has one
    /// CPU more than its number.
    pub fn of_timer(load: &str, samples: u64, cpu: Option<u32>) -> Self {
        let cpus = cpu.map(|cpu| ("cpus".to_owned(), Value::Array(vec![i64::from(cpu).into()])));
        let samples = ("samples".to_owned(), Value::Integer(samples as i64));
        let probes = ProbeArgs {
            probe: vec!["timer".to_owned()],
            load: vec![load.to_owned()],
            params: cpus.into_iter().chain([samples]).collect(),
            cpus: cpu.map(|cpu| Cpus(vec![cpu + 1])),
            ..ProbeArgs::default()
        };
        probes.with(None)
    }

    /// The suite that is asked for, on the named CPUs of this machine.
    pub fn suite_on_host(&self) -> Result<Suite> {
        self.on_host(self.suite(false)?)
    }

    /// A suite on the named CPUs of this machine.
    pub fn on_host(&self, mut suite: Suite) -> Result<Suite> {
        if let Some(root) = &suite.root {
            let wrong = format!(
                "{root}: only guests get a root; a real machine runs a program in a directory of \
                 its own by --program 'chroot DIRECTORY loop'"
            );
            return Err(UsageError(wrong).into());
        }
        if let Some(cpus) = &self.probes.cpus {
            suite.steps = on_cpus(suite.steps, &cpus.0)?;
        }
        Ok(suite)
    }

    /// The suite that is asked for, with the requested number of CPUs for its guests.
    pub fn suite_on_guest(&self) -> Result<Suite> {
        self.on_guest(self.suite(true)?)
    }

    /// A suite with the requested number of CPUs for its guests.
    pub fn on_guest(&self, mut suite: Suite) -> Result<Suite> {
        if let Some(cpus) = &self.probes.cpus {
            suite.cpus = cpus.count()?;
        }
        if suite.cpus.get() > CPUS_MAX {
            let (name, cpus) = (&suite.name, suite.cpus);
            let most = format!("suite \"{name}\": expected 1 to {CPUS_MAX} cpus, found {cpus}");
            return Err(UsageError(most).into());
        }
        Ok(suite)
    }

    fn suite(&self, in_guest: bool) -> Result<Suite> {
        let params = nested(&self.probes.params)?;
        if let Some(command) = &self.probes.program {
            if let Some(suite) = &self.suite {
                let wrong = format!("expected a suite or --program, found both: {suite}");
                return Err(UsageError(wrong).into());
            }
            let from = program::Origin {
                files: &self.probes.file,
                root: self.probes.root.as_deref(),
                in_guest,
            };
            return Ok(program::suite(command, from, &self.probes.load, &params)?);
        }
        match &self.suite {
            None if self.stray_load() => {
                let wrong = "--load says under which load, not what is measured: expected a suite, \
                             --probe or --program beside it";
                Err(UsageError(wrong.into()).into())
            }
            None if self.probes.probe.is_empty() => {
                let wrong = "expected a suite, --probe or --program: `punctual list suites` and \
                             `punctual list probes` show what there is";
                Err(UsageError(wrong.into()).into())
            }
            None => Ok(suites::of_probes(
                &self.probes.probe,
                &self.probes.load,
                &params,
            )?),
            Some(suite) => {
                let mut suite = suites::only(suites::find(suite)?, &self.probes.probe)?;
                for step in &mut suite.steps {
                    step.params.extend(params.clone());
                }
                Ok(suites::under(suite, &self.probes.load)?)
            }
        }
    }

    /// The words of a command line that ask for the same from any directory.
    pub fn words(&self) -> Result<Vec<String>> {
        let mut words = Vec::new();
        if let Some(suite) = &self.suite {
            words.push(name_or_path(suite)?);
        }
        for probe in &self.probes.probe {
            words.extend(["--probe".into(), probe.clone()]);
        }
        if let Some(program) = &self.probes.program {
            // Within a userland a path means the same everywhere.
            let program = match self.probes.root {
                Some(_) => program.clone(),
                None => suites::from_any_directory(program)?,
            };
            words.extend(["--program".into(), program]);
        }
        for file in &self.probes.file {
            words.extend(["--file".into(), name_or_path(file)?]);
        }
        if let Some(root) = &self.probes.root {
            let root = std::path::absolute(root)?;
            words.extend(["--root".into(), root.to_string_lossy().into_owned()]);
        }
        for load in &self.probes.load {
            words.extend(["--load".into(), name_or_path(load)?]);
        }
        for (key, value) in &self.probes.params {
            words.extend(["-p".into(), format!("{key}={value}")]);
        }
        if let Some(Cpus(cpus)) = &self.probes.cpus {
            let cpus: Vec<String> = cpus.iter().map(ToString::to_string).collect();
            words.extend(["--cpus".into(), cpus.join(",")]);
        }
        Ok(words)
    }
}

/// A name unchanged; a path as an absolute one.
fn name_or_path(word: &str) -> Result<String> {
    if !punctual_runner::is_path(word) {
        return Ok(word.to_owned());
    }
    let path = absolute(Path::new(word)).with_context(|| word.to_owned())?;
    Ok(path.to_string_lossy().into_owned())
}

/// CPUs, by number.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Cpus(Vec<u32>);

impl Cpus {
    /// The number, taken as a number of CPUs.
    fn count(&self) -> Result<NonZeroU32, UsageError> {
        let count = match self.0.as_slice() {
            [count @ 1..=CPUS_MAX] => NonZeroU32::new(*count),
            _ => None,
        };
        count.ok_or_else(|| {
            UsageError(format!(
                "--cpus: expected how many CPUs a guest has, 1 to {CPUS_MAX}; which ones to \
                 measure on is for --bench host"
            ))
        })
    }
}

/// The same steps on these CPUs. A probe that measures on several at once keeps one step; one that
/// measures on one CPU gets a step for each.
fn on_cpus(steps: Vec<Step>, cpus: &[u32]) -> Result<Vec<Step>> {
    let accepts = |step: &Step| probes::parse(&step.probe, &step.params).is_ok();
    let mut placed = Vec::new();
    let mut is_placed = false;
    for step in steps {
        let mut all = step.clone();
        let list = cpus.iter().map(|cpu| Value::from(i64::from(*cpu)));
        all.params
            .insert("cpus".into(), Value::Array(list.collect()));
        let one = |cpu: &u32| {
            let mut one = step.clone();
            one.params
                .insert("cpu".into(), Value::from(i64::from(*cpu)));
            one
        };
        let each: Vec<Step> = cpus.iter().map(one).collect();
        if accepts(&all) {
            placed.push(all);
        } else if each.iter().all(accepts) {
            placed.extend(each);
        } else {
            placed.push(step);
            continue;
        }
        is_placed = true;
    }
    if !is_placed {
        return Err(
            UsageError("--cpus: none of these probes measures on a certain CPU".into()).into(),
        );
    }
    Ok(placed)
}

fn parse_cpus(text: &str) -> Result<Cpus, String> {
    let cpus = punctual_model::cpus::parse_list(text)?;
    Ok(Cpus(cpus.iter().map(|cpu| cpu.0).collect()))
}

/// Parses a parameter: its value is TOML if possible, else a text.
fn parse_param(text: &str) -> Result<(String, Value), String> {
    let (key, value) = text
        .split_once('=')
        .filter(|(key, _)| !key.is_empty())
        .ok_or("expected KEY=VALUE, such as samples=500")?;
    let table: Option<Table> = toml::from_str(&format!("value = {value}")).ok();
    let parsed = table.and_then(|mut table| table.remove("value"));
    let value = parsed.unwrap_or_else(|| Value::String(value.to_owned()));
    Ok((key.to_owned(), value))
}

/// Parameters as a table: `figure.max=…` is `max` of the table `figure`, as in TOML.
fn nested(params: &[(String, Value)]) -> Result<Table> {
    let mut all = Table::new();
    for (key, value) in params {
        let mut parts: Vec<&str> = key.split('.').collect();
        let last = parts.pop().unwrap_or_default();
        let mut table = &mut all;
        for part in parts {
            let inner = table.entry(part).or_insert_with(|| Table::new().into());
            table = inner.as_table_mut().ok_or_else(|| {
                UsageError(format!("-p {key}: expected a table {part}, found a value"))
            })?;
        }
        table.insert(last.to_owned(), value.clone());
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_with_points_are_of_tables() {
        let nested = |params: &[&str]| {
            let params = params.iter().map(|text| parse_param(text));
            nested(&params.collect::<Result<Vec<_>, _>>().unwrap())
        };
        let all = nested(&["figure.a={ unit = \"ns\" }", "figure.b=1", "x=2"]).unwrap();
        assert_eq!(all["figure"]["a"]["unit"].as_str(), Some("ns"));
        assert_eq!((&all["figure"]["b"], &all["x"]), (&1.into(), &2.into()));
        assert!(nested(&["a=1", "a.b=2"]).is_err());
    }

    #[test]
    fn a_parameter_is_toml_or_a_text() {
        let value = |text| parse_param(text).unwrap().1;
        assert_eq!(value("samples=500"), Value::Integer(500));
        assert_eq!(value("cpus=[0, 1]").as_array().unwrap().len(), 2);
        assert_eq!(value("ipc=socket"), Value::String("socket".into()));
        assert_eq!(value("ipc=\"socket\""), Value::String("socket".into()));
        assert!(parse_param("samples").is_err() && parse_param("=3").is_err());
    }

    #[test]
    fn cpus_are_numbers_and_ranges() {
        let cpus = |text| parse_cpus(text).map(|cpus| cpus.0);
        assert_eq!(cpus("1"), Ok(vec![1]));
        assert_eq!(cpus("2,0-1,1"), Ok(vec![0, 1, 2]));
        for wrong in ["", "a", "3-1", "0-99999", "-1"] {
            assert!(cpus(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_probe_of_one_cpu_has_a_step_for_each() {
        let step = |probe: &str| Step {
            probe: probe.into(),
            load: "idle".into(),
            full: None,
            skip: false,
            params: Table::new(),
        };
        let steps = vec![step("timer"), step("tick"), step("footprint")];
        let placed = on_cpus(steps, &[0, 1]).unwrap();
        let shown: Vec<String> = placed
            .iter()
            .map(|step| format!("{} {}", step.probe, step.params))
            .collect();
        assert_eq!(placed.len(), 4, "{shown:?}");
        assert_eq!(placed[0].params["cpus"].as_array().unwrap().len(), 2);
        assert_eq!(placed[2].params["cpu"].as_integer(), Some(1));
        assert!(on_cpus(vec![step("footprint")], &[0]).is_err());
    }
}

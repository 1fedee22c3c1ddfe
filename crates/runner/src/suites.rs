// SPDX-License-Identifier: MIT OR Apache-2.0
//! Suites: those that come with Punctual, and the user's own.
//!
//! A user's file in `~/.config/punctual/suites` replaces one of the same name that comes with
//! Punctual.

use std::collections::BTreeMap;
use std::io;
use std::num::NonZeroU32;
use std::path::Path;

use include_dir::{Dir, include_dir};
use punctual_agent::probes;
use punctual_model::Plan;
use punctual_model::cpus::{Placement, placed};
use punctual_model::network::Card;
use punctual_model::plan::{IDLE, Load, Step};
use punctual_model::suite::{Suite, SuiteError};
use toml::{Table, Value};

use crate::data_files::{self, found_export, is_export, wrong};
use crate::loads::{self, Loads};
use crate::run_names::{is_range, is_run};
use crate::{Error, limits, mistakes, program};

static SUITES: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/../../suites");

/// All suites by name.
pub fn all() -> Result<BTreeMap<String, Suite>, Error> {
    let mut suites = BTreeMap::new();
    for (path, text) in data_files::all("suites", &SUITES)? {
        let suite = parse(&path, &text)?;
        suites.insert(suite.name.clone(), suite);
    }
    Ok(suites)
}

/// The suite of this name, or in this file.
pub fn find(name_or_path: &str) -> Result<Suite, Error> {
    if data_files::is_path(name_or_path) {
        let path = Path::new(name_or_path);
        if program::head(path).starts_with(b"\x7fELF") {
            return Err(Error::Request(format!(
                "{name_or_path} is a program, and no suite: `punctual run --program \
                 {name_or_path}` measures it"
            )));
        }
        let text = data_files::read(path).map_err(|error| match error {
            Error::Io { error, .. } if error.kind() == io::ErrorKind::NotFound => {
                Error::Request(format!(
                    "expected a suite's file, found no {name_or_path} here (`punctual list \
                     suites` shows those with names)"
                ))
            }
            other => other,
        })?;
        return parse(path, &text);
    }
    let mut suites = all()?;
    suites.remove(name_or_path).ok_or_else(|| {
        let path = Path::new(name_or_path);
        if path.is_file() && is_export(path) {
            return found_export(path);
        }
        if path.is_file() {
            let file = "a file is named with its directory";
            return Error::Request(format!(
                "there is no suite \"{name_or_path}\"; {file}: ./{name_or_path}"
            ));
        }
        if is_run(name_or_path) {
            let (is, it) = if is_range(name_or_path) {
                ("are runs", "them")
            } else {
                ("is a run", "it")
            };
            return Error::Request(format!(
                "{name_or_path} {is}; `punctual show {name_or_path}` shows {it}"
            ));
        }
        if known_probes().contains(&name_or_path) {
            return Error::Request(format!(
                "{name_or_path} is a probe, and no suite: `punctual run --probe {name_or_path}` \
                 measures with it"
            ));
        }
        let known: Vec<&str> = suites.keys().map(String::as_str).collect();
        Error::unknown("suite", name_or_path, &known)
    })
}

/// A suite that measures these probes, each under each of these loads, or idle if there are none.
/// Its subjects are those of the suite `demo`.
pub fn of_probes(probes: &[String], loads: &[String], params: &Table) -> Result<Suite, Error> {
    let known = known_probes();
    if let Some(unknown) = probes.iter().find(|probe| !known.contains(&probe.as_str())) {
        return Err(Error::unknown("probe", unknown, &known));
    }
    let step = |probe: &String| Step {
        probe: probe.clone(),
        load: IDLE.into(),
        full: None,
        skip: false,
        params: params.clone(),
    };
    let steps: Vec<Step> = probes.iter().map(step).collect();
    let mut modules: Vec<String> = steps.iter().flat_map(modules).map(String::from).collect();
    modules.sort();
    modules.dedup();
    let suite = Suite {
        name: probes.join("+"),
        summary: "probes of the command line".into(),
        memory_mib: 512,
        cpus: NonZeroU32::MIN,
        network: probes
            .iter()
            .any(|probe| probe == "packet")
            .then_some(Card::E1000e),
        seeds: NonZeroU32::MIN,
        programs: Vec::new(),
        files: Vec::new(),
        root: None,
        modules,
        loads: BTreeMap::new(),
        subjects: find("demo")?.subjects,
        steps,
        limits: Vec::new(),
    };
    under(suite, loads)
}

/// A command whose program is found from any directory.
///
/// # Errors
/// If its absolute path cannot be determined.
pub fn from_any_directory(command: &str) -> Result<String, Error> {
    let (program, rest) = command.split_once(' ').unwrap_or((command, ""));
    if !data_files::is_path(program) {
        return Ok(command.to_owned());
    }
    let path = std::path::absolute(program).map_err(Error::at(Path::new(program)))?;
    Ok(format!("{} {rest}", path.display()).trim_end().to_owned())
}

/// Punctual's own kernel modules that a step needs.
fn modules(step: &Step) -> impl Iterator<Item = &'static str> + use<> {
    let own = match step.probe.as_str() {
        "signal" => Some("backfire"),
        "irq" | "irqrate" => Some("pulse"),
        _ => None,
    };
    let stall = step.params.contains_key("stall").then_some("stall");
    own.into_iter().chain(stall)
}

/// The steps of a suite with these probes; all steps if no probe is named.
pub fn only(mut suite: Suite, probes: &[String]) -> Result<Suite, Error> {
    let known: Vec<&str> = suite.steps.iter().map(|step| step.probe.as_str()).collect();
    if let Some(unknown) = probes.iter().find(|probe| !known.contains(&probe.as_str())) {
        let kind = format!("step of suite \"{}\" with the probe", suite.name);
        return Err(Error::unknown(&kind, unknown, &known));
    }
    if !probes.is_empty() {
        suite.steps.retain(|step| probes.contains(&step.probe));
    }
    Ok(suite)
}

/// A suite with all its probes under each of these loads, which are names or paths, in place of its
/// own loads. The suite stays the same if no load is named. Steps that it already has under such a
/// load stay as they are.
pub fn under(mut suite: Suite, loads: &[String]) -> Result<Suite, Error> {
    if loads.is_empty() {
        return Ok(suite);
    }
    let mut steps: Vec<Step> = Vec::new();
    for load in loads {
        let name = adopt(&mut suite.loads, load, Path::new(""))?;
        for step in &suite.steps {
            let has_own = suite
                .steps
                .iter()
                .any(|own| own.probe == step.probe && own.load == name);
            let mut step = step.clone();
            if has_own && step.load != name {
                continue;
            }
            step.load.clone_from(&name);
            if !steps.contains(&step) {
                steps.push(step);
            }
        }
    }
    suite.steps = steps;
    Ok(suite)
}

/// The name of a load. If it is a path, which is relative to `directory`, the file is read and its
/// load becomes one of the suite's. The placement after the name is kept.
fn adopt(own: &mut Loads, load: &str, directory: &Path) -> Result<String, Error> {
    let (path, place) = placed(load);
    if !data_files::is_path(path) {
        return Ok(load.to_owned());
    }
    let path = directory.join(path);
    let (name, load) = loads::in_file(&path)?;
    if own.get(&name).is_some_and(|other| *other != load) {
        return Err(wrong(
            &path,
            &format!("there is another load \"{name}\": rename one of them"),
        ));
    }
    own.insert(name.clone(), load);
    Ok(place.map_or(name.clone(), |place| format!("{name} on {place}")))
}

pub(crate) fn parse(path: &Path, text: &str) -> Result<Suite, Error> {
    let mut suite = Suite::parse(text).map_err(|error| match error {
        SuiteError::Form(_) if limits::is_all_of(text) => {
            let path = path.display();
            Error::Request(format!(
                "{path} has limits and no steps: `punctual judge SUITE --limits {path}` takes them"
            ))
        }
        SuiteError::Form(error) => mistakes::in_file(path, text, &error),
        error => wrong(path, &error.to_string()),
    })?;
    for (name, load) in &suite.loads {
        loads::check(name, load)
            .map_err(|reason| wrong(path, &format!("load \"{name}\": {reason}")))?;
    }
    limits::check(&suite.limits).map_err(|reason| wrong(path, &reason))?;
    let directory = path.parent().unwrap_or(Path::new(""));
    if let Some(root) = &mut suite.root {
        let path = directory.join(&*root);
        let path = std::path::absolute(&path).map_err(Error::at(&path))?;
        *root = path.to_string_lossy().into_owned();
    }
    for step in &mut suite.steps {
        step.load = adopt(&mut suite.loads, &step.load, directory)?;
    }
    Ok(suite)
}

/// The names of all probes.
fn known_probes() -> Vec<&'static str> {
    probes::ALL.iter().map(|probe| probe.name).collect()
}

/// Returns true if a worker of this load runs on housekeeping CPUs: not on those that the step
/// names as measured.
fn is_on_housekeeping(load: &Load) -> bool {
    let mut workers = load.workers.iter();
    workers.any(|worker| worker.cpus == Some(Placement::Housekeeping))
}

/// The plan for one run of these steps, which are all or some of the suite's. Faults in them are
/// reported here, before any boot.
pub fn plan(suite: &Suite, steps: &[Step], loads: &Loads, seed: u64) -> Result<Plan, Error> {
    for (step, number) in steps.iter().zip(1..) {
        let wrong = |reason: String| {
            Error::Request(format!("suite \"{}\", step {number}: {reason}", suite.name))
        };
        let known = known_probes();
        if !known.contains(&step.probe.as_str()) {
            let unknown = Error::unknown("probe", &step.probe, &known);
            return Err(wrong(unknown.to_string()));
        }
        // Both take any program, and those who guess how are told.
        let takes_run = ["app", "program"].contains(&step.probe.as_str());
        if takes_run && !step.params.get("run").is_some_and(Value::is_array) {
            return Err(wrong(format!(
                "probe \"{}\": expected the words of a command, run = [\"loop\", \"--fast\"]; a \
                 program of this machine is measured by `punctual run --program './loop --fast'`",
                step.probe
            )));
        }
        let measurement = probes::parse(&step.probe, &step.params)
            .map_err(|reason| wrong(mistakes::in_parameters(&reason, &step.params)))?;
        let is_apart = loads.get(&step.load).is_some_and(is_on_housekeeping);
        if is_apart && measurement.cpus().is_empty() {
            return Err(wrong(format!(
                "load \"{}\" keeps away from the CPUs that the step measures: expected them in \
                 `cpus`, found none: name the load's CPUs (\"{} on 1-3\"), or the step's (`cpus = \
                 [0]`) if probe \"{}\" takes them",
                step.load,
                placed(&step.load).0,
                step.probe
            )));
        }
        if let (IDLE, Some(_)) = placed(&step.load) {
            return Err(wrong(format!(
                "expected a load before \" on \", found {IDLE}, which runs nowhere: write \
                 load = \"{IDLE}\""
            )));
        }
        if step.load != IDLE && !loads.contains_key(&step.load) {
            let mut known = vec![IDLE];
            known.extend(loads.keys().map(String::as_str));
            let unknown = Error::unknown("load", placed(&step.load).0, &known);
            return Err(wrong(unknown.to_string()));
        }
    }
    let plan = suite.plan(steps, loads, seed);
    plan.map_err(|error| Error::Request(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_suite_that_comes_along_can_be_carried_out() {
        for (path, text) in data_files::all("suites", &SUITES).unwrap() {
            let suite = parse(&path, &text).unwrap();
            let loads = loads::of(&suite).unwrap();
            assert_eq!(suite.name, data_files::stem(&path));
            assert!(!suite.subjects.is_empty(), "{}", suite.name);
            plan(&suite, &suite.steps, &loads, 1).unwrap();
        }
    }

    #[test]
    fn a_suite_in_a_file_that_is_not_there_is_told_with_the_list_of_names() {
        let error = find("loop.toml").unwrap_err();
        assert_eq!(
            error.to_string(),
            "expected a suite's file, found no loop.toml here (`punctual list suites` shows those \
             with names)"
        );
        assert!(error.is_request());
    }

    const LOAD: &str =
        "summary = \"\"\n[[worker]]\nrun = [\"ls\"]\nunit = \"lines\"\ncount = \"lines\"\n";

    fn pairs(suite: &Suite) -> Vec<String> {
        let pair = |step: &Step| format!("{} / {}", step.probe, step.load);
        suite.steps.iter().map(pair).collect()
    }

    #[test]
    fn probes_and_loads_of_the_command_line_make_a_suite_of_their_product() {
        let words = |words: &[&str]| words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>();
        let params: Table = toml::from_str("samples = 7").unwrap();
        let suite = of_probes(
            &words(&["timer", "irq"]),
            &words(&["idle", "stress"]),
            &params,
        )
        .unwrap();
        assert_eq!(
            pairs(&suite),
            [
                "timer / idle",
                "irq / idle",
                "timer / stress",
                "irq / stress"
            ]
        );
        assert_eq!(suite.modules, ["pulse"]);
        assert_eq!(suite.steps[3].params, params);
        let idle = of_probes(&words(&["timer"]), &[], &params).unwrap();
        assert_eq!(pairs(&idle), ["timer / idle"]);
        assert_eq!(idle.subjects, find("demo").unwrap().subjects);
        // It is no step of a suite that anybody has written.
        let unknown = of_probes(&words(&["timer", "tmier"]), &[], &params);
        let unknown = unknown.unwrap_err().to_string();
        let expected = "there is no probe \"tmier\"; did you mean timer?";
        assert!(unknown.starts_with(expected), "{unknown}");
    }

    #[test]
    fn a_suite_is_measured_under_another_load_once_for_each_probe_and_parameters() {
        let demo = || {
            let mut demo = find("demo").unwrap();
            demo.steps[1].params.insert("samples".into(), 4000.into());
            demo
        };
        let under = |load: &str| under(demo(), &[load.to_owned()]).unwrap();
        let stress = under("stress");
        assert_eq!(pairs(&stress)[0], "timer / stress");
        assert_eq!(
            stress.steps[0].params["samples"].as_integer(),
            Some(4000),
            "its own step"
        );
        let storm = under("storm");
        assert!(storm.steps.iter().all(|step| step.load == "storm"));
        let timer = only(demo(), &["timer".to_owned()]).unwrap();
        assert_eq!(pairs(&timer), ["timer / idle", "timer / stress"]);
        let error = only(demo(), &["timr".to_owned()]).unwrap_err().to_string();
        assert!(error.contains("did you mean timer?"), "{error}");
    }

    #[test]
    fn a_suite_can_bring_its_own_loads_or_name_their_files() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("mine.toml"), LOAD).unwrap();
        let text = format!(
            "name = \"s\"\nsummary = \"\"\n\
             [[step]]\nprobe = \"timer\"\nload = \"./mine.toml\"\n\
             [[step]]\nprobe = \"timer\"\nload = \"own\"\n\
             [load.own]\n{}",
            LOAD.replace("[[worker]]", "[[load.own.worker]]")
        );
        let path = directory.path().join("s.toml");
        std::fs::write(&path, &text).unwrap();
        let suite = find(path.to_str().unwrap()).unwrap();
        assert_eq!(pairs(&suite), ["timer / mine", "timer / own"]);
        let loads = loads::of(&suite).unwrap();
        let plan = plan(&suite, &suite.steps, &loads, 1).unwrap();
        assert_eq!(plan.loads.keys().collect::<Vec<_>>(), ["mine", "own"]);
        std::fs::write(&path, text.replace("./mine", "./none")).unwrap();
        let error = find(path.to_str().unwrap()).unwrap_err().to_string();
        assert!(error.contains("none.toml"), "{error}");
    }

    #[test]
    fn what_is_no_suite_is_named_as_what_it_is() {
        let said = |word: &str| find(word).unwrap_err().to_string();
        assert_eq!(said("r12"), "r12 is a run; `punctual show r12` shows it");
        assert_eq!(
            said("r1..r4"),
            "r1..r4 are runs; `punctual show r1..r4` shows them"
        );
        // In each form that commands of runs understand.
        assert_eq!(said("12"), "12 is a run; `punctual show 12` shows it");
        assert_eq!(said("last"), "last is a run; `punctual show last` shows it");
        assert_eq!(
            said("R1..last"),
            "R1..last are runs; `punctual show R1..last` shows them"
        );
        assert_eq!(
            said("timer"),
            "timer is a probe, and no suite: `punctual run --probe timer` measures with it"
        );
        for other in ["r", "rt", "r1x", "r1.."] {
            let said = said(other);
            assert!(said.starts_with("there is no suite "), "{said}");
        }
        let limit = "[[limit]]\nprobe = \"timer\"\nwhat = \"worst\"\nat_most = \"9 us\"\n";
        let path = Path::new("limits.toml");
        let limits = parse(path, limit).unwrap_err().to_string();
        assert_eq!(
            limits,
            "limits.toml has limits and no steps: `punctual judge SUITE --limits limits.toml` \
             takes them"
        );
        // With more than limits it is meant as a suite.
        let named = parse(path, &format!("name = \"s\"\n{limit}"));
        let named = named.unwrap_err().to_string();
        assert!(
            named.starts_with("limits.toml:1: missing field `"),
            "{named}"
        );
    }

    #[test]
    fn a_misspelt_probe_or_load_is_named_with_the_one_that_was_meant() {
        let mut suite = find("demo").unwrap();
        let loads = loads::all().unwrap();
        suite.steps[1].load = "strss".into();
        let error = plan(&suite, &suite.steps, &loads, 1)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("step 2") && error.contains("did you mean stress?"),
            "{error}"
        );
        suite.steps[1].load = "idle on 1".into();
        let error = plan(&suite, &suite.steps, &loads, 1)
            .unwrap_err()
            .to_string();
        assert!(
            error.ends_with("found idle, which runs nowhere: write load = \"idle\""),
            "{error}"
        );
        suite.steps[0].probe = "timr".into();
        let error = plan(&suite, &suite.steps, &loads, 1)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("step 1") && error.contains("did you mean timer?"),
            "{error}"
        );
    }

    #[test]
    fn a_load_keeps_away_only_from_cpus_that_the_step_names() {
        let planned = |step: &str| {
            let own = format!("[load.own]\n{LOAD}cpus = \"housekeeping\"\n");
            let own = own.replace("[[worker]]", "[[load.own.worker]]");
            let text = format!("name = \"s\"\nsummary = \"\"\n[[step]]\n{step}\n{own}");
            let suite = parse(Path::new("s.toml"), &text).unwrap();
            plan(&suite, &suite.steps, &loads::of(&suite).unwrap(), 1)
        };
        for step in [
            "probe = \"timer\"\ncpus = [1]\nload = \"stress on housekeeping\"",
            "probe = \"noise\"\ncpus = [1]\nload = \"own\"",
            "probe = \"tick\"\ncpu = 1\nload = \"stress on 0\"",
            "probe = \"timer\"\nload = \"own on 0\"",
        ] {
            assert!(planned(step).is_ok(), "{step}");
        }
        for step in [
            "probe = \"timer\"\nload = \"stress on housekeeping\"",
            "probe = \"tick\"\ncpu = 1\nload = \"stress on housekeeping\"",
            "probe = \"switch\"\nload = \"own\"",
        ] {
            let error = planned(step).unwrap_err().to_string();
            let expected = "expected them in `cpus`, found none: name the load's CPUs (\"";
            assert!(error.contains(expected), "{step}: {error}");
        }
    }
}

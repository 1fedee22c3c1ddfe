// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loads: those that come with Punctual, and the user's own.
//!
//! A user's file in `~/.config/punctual/loads` replaces one of the same name that comes with
//! Punctual.

use std::collections::BTreeMap;
use std::path::Path;

use include_dir::{Dir, include_dir};
use punctual_model::Plan;
use punctual_model::cpus::{Placement, placed};
use punctual_model::plan::{Count, IDLE, Load, Worker};
use punctual_model::suite::Suite;

use crate::data_files::{self, wrong};
use crate::error::{Error, did_you_mean};
use crate::mistakes;

static LOADS: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/../../loads");

/// Loads by name.
pub type Loads = BTreeMap<String, Load>;

/// All loads by name, which is that of their file; `idle` is not among them, as it is no load at
/// all. A mix also has the workers and programs of its parts.
pub fn all() -> Result<Loads, Error> {
    mixed(&raw()?)
}

/// The loads that the steps of a suite can name: all loads, with the suite's own replacing those of
/// the same name. A load that a step places on certain CPUs, such as `stress on housekeeping`, is
/// there under that name.
pub fn of(suite: &Suite) -> Result<Loads, Error> {
    let mut loads = raw()?;
    loads.extend(suite.loads.clone());
    let mut loads = mixed(&loads)?;
    for step in &suite.steps {
        if let (name, Some(list)) = of_stress_ng(placed(&step.load).0) {
            loads.insert(name.to_owned(), stress_ng(name, list)?);
        }
        if let (name, Some(place)) = placed(&step.load) {
            let place = place.parse::<Placement>();
            let place = place
                .map_err(|reason| Error::Request(format!("load \"{}\": {reason}", step.load)))?;
            // Where there is no such load it is said when the plan is made.
            if let Some(load) = loads.get(name) {
                let load = at(load, &place);
                loads.insert(step.load.clone(), load);
            }
        }
    }
    Ok(loads)
}

/// The loads of a plan that have the name of a load that comes with Punctual, but differ from it.
///
/// # Errors
/// If the loads that come with Punctual cannot be read.
pub fn namesakes(plan: &Plan) -> Result<Vec<&str>, Error> {
    let texts = data_files::included("loads", &LOADS)?;
    let included = texts.iter().map(|(path, text)| parse(path, text));
    let included = mixed(&included.collect::<Result<_, _>>()?)?;
    let is_other = |(name, load): &(&String, &Load)| {
        let own = included.get(name.as_str());
        own.is_some_and(|own| own != *load)
    };
    let others = plan.loads.iter().filter(is_other);
    Ok(others.map(|(name, _)| name.as_str()).collect())
}

/// The prefix of a load of stressors of stress-ng: `stress-ng:vm,fork`.
const STRESS_NG: &str = "stress-ng";

/// The stressors that would take as much memory or disk as a guest has. They get a limit by the
/// option `--NAME-bytes`.
const BYTES: [&str; 10] = [
    "copy-file",
    "fallocate",
    "hdd",
    "iomix",
    "memrate",
    "mmap",
    "mremap",
    "readahead",
    "shm",
    "vm",
];

/// A load's name, and the list of stressors in it, if it is a load of stress-ng.
fn of_stress_ng(name: &str) -> (&str, Option<&str>) {
    let list = name.strip_prefix(STRESS_NG);
    (name, list.and_then(|rest| rest.strip_prefix(':')))
}

/// The command that runs one stressor of stress-ng for `seconds`. Its metrics are printed in a form
/// that can be counted: `bogo-ops: 123`.
pub fn stressor(name: &str, seconds: u32) -> Vec<String> {
    let mut words = vec![STRESS_NG.to_owned(), format!("--{name}"), "1".to_owned()];
    if BYTES.contains(&name) {
        words.extend([format!("--{name}-bytes"), "16m".to_owned()]);
    }
    let seconds = seconds.to_string();
    let rest = [
        "--timeout",
        &seconds,
        "--temp-path",
        "/tmp",
        "--metrics-brief",
        "--yaml",
        "/proc/self/fd/1",
    ];
    words.extend(rest.map(str::to_owned));
    words
}

/// The load of these stressors, with a worker for each.
fn stress_ng(name: &str, list: &str) -> Result<Load, Error> {
    let stressors: Vec<&str> = list.split(',').map(str::trim).collect();
    let is_name = |name: &&str| {
        let is_of_it = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        name.starts_with(|c: char| c.is_ascii_lowercase()) && name.chars().all(is_of_it)
    };
    if let Some(wrong) = stressors.iter().find(|name| !is_name(name)) {
        return Err(Error::Request(format!(
            "load \"{name}\": expected names of stressors with commas between them, as \
             `stress-ng --stressors` lists them, found \"{wrong}\""
        )));
    }
    let worker = |name: &&str| Worker {
        run: stressor(name, 1),
        cpus: None,
        needs: Vec::new(),
        pause_ms: 0,
        limit_ms: 0,
        endless: false,
        ignore_status: false,
        unit: "bogo operations".to_owned(),
        count: Count::After("bogo-ops: ".to_owned()),
    };
    Ok(Load {
        summary: format!("stress-ng: {}", stressors.join(", ")),
        mix: Vec::new(),
        programs: vec![STRESS_NG.to_owned()],
        disk: false,
        kernel_source: false,
        workers: stressors.iter().map(worker).collect(),
    })
}

/// The same load with all of its workers on these CPUs.
fn at(load: &Load, place: &Placement) -> Load {
    let mut load = load.clone();
    for worker in &mut load.workers {
        worker.cpus = Some(place.clone());
    }
    load
}

/// The name of a load in runs, from a name or from the path of its file.
pub fn name_of(word: &str) -> String {
    if data_files::is_path(word) {
        data_files::stem(Path::new(word))
    } else {
        word.to_owned()
    }
}

/// The load in a file, and its name, which is that of the file.
pub fn in_file(path: &Path) -> Result<(String, Load), Error> {
    parse(path, &data_files::read(path)?)
}

/// All loads, as they are in their files.
fn raw() -> Result<Loads, Error> {
    let texts = data_files::all("loads", &LOADS)?;
    let loads = texts.iter().map(|(path, text)| parse(path, text));
    loads.collect()
}

/// Parses a load; its name is that of its file.
pub(crate) fn parse(path: &Path, text: &str) -> Result<(String, Load), Error> {
    let name = data_files::stem(path);
    let load: Load = toml::from_str(text).map_err(|error| mistakes::in_file(path, text, &error))?;
    check(&name, &load).map_err(|reason| wrong(path, &reason))?;
    Ok((name, load))
}

/// Checks a load of this name; the error says what is wrong with it.
pub(crate) fn check(name: &str, load: &Load) -> Result<(), String> {
    if name == IDLE {
        return Err(format!(
            "\"{IDLE}\" is the name of no load at all: rename it"
        ));
    }
    if placed(name).1.is_some() {
        return Err(format!(
            "in \"{name}\", \" on \" comes before the names of CPUs: rename it"
        ));
    }
    if of_stress_ng(name).1.is_some() {
        return Err(format!(
            "in \"{name}\", \"{STRESS_NG}:\" comes before the names of stressors: rename it"
        ));
    }
    if load.workers.is_empty() && load.mix.is_empty() {
        return Err("expected a [[worker]] or a mix, found neither".into());
    }
    Ok(())
}

/// The loads, with the workers and programs of the loads they mix.
fn mixed(loads: &Loads) -> Result<Loads, Error> {
    let whole = |name: &String| Ok((name.clone(), mix(loads, name, &[])?));
    loads.keys().map(whole).collect()
}

fn mix(loads: &Loads, name: &str, above: &[&str]) -> Result<Load, Error> {
    let path = [above, &[name]].concat();
    if above.contains(&name) {
        let circle = path.join(" of ");
        let circle = format!("loads are mixed of themselves: {circle}");
        return Err(Error::Request(circle));
    }
    if let (name, Some(list)) = of_stress_ng(name) {
        return stress_ng(name, list);
    }
    let Some(load) = loads.get(name) else {
        let known: Vec<&str> = loads.keys().map(String::as_str).collect();
        return Err(Error::Request(format!(
            "load \"{}\": there is no load \"{name}\"{} (there are: {})",
            above.join("\", \""),
            did_you_mean(name, &known),
            known.join(", ")
        )));
    };
    let mut load = load.clone();
    for part in std::mem::take(&mut load.mix) {
        let part = mix(loads, &part, &path)?;
        load.workers.extend(part.workers);
        load.programs.extend(part.programs);
        load.disk |= part.disk;
        load.kernel_source |= part.kernel_source;
    }
    load.programs.sort();
    load.programs.dedup();
    Ok(load)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loads_of(text: &str) -> Loads {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn a_mix_has_the_workers_and_programs_of_its_parts() {
        let loads = all().unwrap();
        let storm = &loads["storm"];
        assert_eq!((storm.workers.len(), storm.mix.len()), (4, 0));
        assert_eq!(storm.programs, ["dd", "ping"]);
        assert_eq!(loads["hardcore"].workers.len(), 5);
    }

    #[test]
    fn a_load_that_only_has_the_name_of_another_is_found() {
        let text = "name = \"s\"\nsummary = \"\"\n[[step]]\nprobe = \"timer\"\nload = \"stress\"\n";
        let namesakes = |text: &str| {
            let suite = Suite::parse(text).unwrap();
            let plan = suite.plan(&suite.steps, &of(&suite).unwrap(), 1).unwrap();
            namesakes(&plan).unwrap().join(" ")
        };
        assert_eq!(namesakes(text), "");
        let own = "[load.stress]\nsummary = \"\"\n[[load.stress.worker]]\nrun = [\"true\"]\n\
                   unit = \"lines\"\ncount = \"lines\"\n";
        assert_eq!(namesakes(&format!("{text}{own}")), "stress");
    }

    #[test]
    fn stressors_of_stress_ng_are_a_load_of_that_name() {
        let suite = |load: &str| {
            let text = "name = \"s\"\nsummary = \"\"\n[[step]]\nprobe = \"timer\"\nload = \"LOAD\"";
            Suite::parse(&text.replace("LOAD", load)).unwrap()
        };
        let loads = of(&suite("stress-ng:vm,fork on 1")).unwrap();
        let load = &loads["stress-ng:vm,fork on 1"];
        assert_eq!(load.programs, ["stress-ng"]);
        let words: Vec<_> = load.workers.iter().map(|one| one.run.join(" ")).collect();
        assert!(words[0].starts_with("stress-ng --vm 1 --vm-bytes 16m --timeout 1 "));
        assert!(words[1].starts_with("stress-ng --fork 1 --timeout 1 "));
        assert!(load.workers.iter().all(|worker| worker.cpus.is_some()));
        for wrong in [
            "stress-ng:",
            "stress-ng:vm;reboot",
            "stress-ng:vm,,fork",
            "stress-ng:--vm",
        ] {
            let error = of(&suite(wrong)).unwrap_err().to_string();
            assert!(error.contains("names of stressors"), "{error}");
        }
        let mixed = mixed(&loads_of("[a]\nsummary = \"\"\nmix = [\"stress-ng:vm\"]")).unwrap();
        assert_eq!(
            (mixed["a"].workers.len(), mixed["a"].programs.len()),
            (1, 1)
        );
    }

    #[test]
    fn a_load_of_ones_own_is_not_called_as_stressors_are() {
        let text =
            "summary = \"\"\n[[worker]]\nrun = [\"ls\"]\nunit = \"lines\"\ncount = \"lines\"\n";
        for name in ["stress-ng", "stress-ng-vm"] {
            parse(Path::new(&format!("{name}.toml")), text).unwrap();
        }
        let error = parse(Path::new("stress-ng:vm.toml"), text).unwrap_err();
        let expected = "comes before the names of stressors: rename it";
        assert!(error.to_string().ends_with(expected), "{error}");
    }

    #[test]
    fn a_load_that_is_somewhere_is_the_same_load_there() {
        let suite = |load: &str| {
            let text = "name = \"s\"\nsummary = \"\"\n[[step]]\nprobe = \"timer\"\nload = \"LOAD\"";
            Suite::parse(&text.replace("LOAD", load)).unwrap()
        };
        let loads = of(&suite("storm on 1-2")).unwrap();
        let (storm, there) = (&loads["storm"], &loads["storm on 1-2"]);
        assert_eq!(storm.workers.len(), there.workers.len());
        assert_eq!(there.programs, storm.programs);
        assert!(storm.workers.iter().all(|worker| worker.cpus.is_none()));
        for worker in &there.workers {
            assert_eq!(worker.cpus.as_ref().unwrap().to_string(), "1-2");
        }
        let error = of(&suite("storm on houskeeping")).unwrap_err().to_string();
        assert!(
            error.contains("expected housekeeping, all, or CPUs"),
            "{error}"
        );
        assert!(!of(&suite("strom on 1")).unwrap().contains_key("strom on 1"));
    }

    #[test]
    fn a_mix_of_an_unknown_load_or_of_itself_is_refused() {
        let error = |text| mixed(&loads_of(text)).unwrap_err().to_string();
        let unknown = error("[a]\nsummary = \"\"\nmix = [\"lss\"]");
        assert!(
            unknown.contains("\"a\"") && unknown.contains("lss"),
            "{unknown}"
        );
        let circle = "[a]\nsummary = \"\"\nmix = [\"b\"]\n[b]\nsummary = \"\"\nmix = [\"a\"]";
        assert!(error(circle).contains("a of b of a"), "{}", error(circle));
    }
}

//! Suites and loads: those that come with Punctual, and the user's own.
//!
//! A user's file in `~/.config/punctual/suites` or `…/loads` takes the place of one of the
//! same name that comes with Punctual.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use include_dir::{Dir, include_dir};
use punctual_kernels::paths;
use punctual_model::plan::{IDLE, Load};
use punctual_model::suite::Suite;
use punctual_published::Document;

use crate::UsageError;

static SUITES: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/../../suites");
static LOADS: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/../../loads");

/// All suites by name.
pub fn suites() -> Result<BTreeMap<String, Suite>> {
    let mut suites = BTreeMap::new();
    for (path, text) in texts("suites", &SUITES)? {
        let suite = parse_suite(&path, &text)?;
        suites.insert(suite.name.clone(), suite);
    }
    Ok(suites)
}

/// All loads by name, which is their file's; without the one that is none.
pub fn loads() -> Result<BTreeMap<String, Load>> {
    let mut loads = BTreeMap::new();
    for (path, text) in texts("loads", &LOADS)? {
        let name = stem(&path);
        if name == IDLE {
            return Err(UsageError(format!(
                "{}: \"{IDLE}\" is the name of no load at all: rename the file",
                path.display()
            ))
            .into());
        }
        let load: Load = toml::from_str(&text).map_err(|error| bad(&path, &error))?;
        if load.workers.is_empty() && load.mix.is_empty() {
            return Err(bad(&path, &"expected a [[worker]] or a mix, found neither").into());
        }
        loads.insert(name, load);
    }
    mixed(&loads)
}

/// The loads with the workers and programs of those that they are mixed of.
fn mixed(loads: &BTreeMap<String, Load>) -> Result<BTreeMap<String, Load>> {
    let whole = |name: &String| Ok((name.clone(), mix(loads, name, &[])?));
    loads.keys().map(whole).collect()
}

fn mix(loads: &BTreeMap<String, Load>, name: &str, above: &[&str]) -> Result<Load> {
    let path = [above, &[name]].concat();
    if above.contains(&name) {
        let circle = path.join(" of ");
        return Err(UsageError(format!("loads are mixed of themselves: {circle}")).into());
    }
    let Some(load) = loads.get(name) else {
        let known: Vec<&str> = loads.keys().map(String::as_str).collect();
        let UsageError(error) = unknown("load", name, &known);
        return Err(UsageError(format!("load \"{}\": {error}", above.join("\", \""))).into());
    };
    let mut load = load.clone();
    for part in std::mem::take(&mut load.mix) {
        let part = mix(loads, &part, &path)?;
        load.workers.extend(part.workers);
        load.programs.extend(part.programs);
    }
    load.programs.sort();
    load.programs.dedup();
    Ok(load)
}

/// All documents that suites repeat, and the user's own in `~/.config/punctual/published`,
/// which take the place of those about the same suite.
pub fn published() -> Result<Vec<Document>> {
    let mut documents = punctual_published::documents().context("a file that comes along")?;
    if let Ok(config) = paths::config_dir() {
        for (path, text) in files(&config.join("published"))? {
            if is_toml(&path) {
                let own = punctual_published::parse(&path, &text)
                    .map_err(|error| UsageError(error.to_string()))?;
                documents.retain(|one| one.suite != own.suite);
                documents.push(own);
            }
        }
    }
    Ok(documents)
}

/// The suite of that name, or in that file.
pub fn suite(name: &str) -> Result<Suite> {
    let path = Path::new(name);
    if name.contains('/') || is_toml(path) {
        let text = fs::read_to_string(path).with_context(|| name.to_owned())?;
        return parse_suite(path, &text);
    }
    let mut suites = suites()?;
    suites.remove(name).ok_or_else(|| {
        let known: Vec<&str> = suites.keys().map(String::as_str).collect();
        unknown("suite", name, &known).into()
    })
}

/// There is no such thing; tells which there are, and which was probably meant.
pub fn unknown(kind: &str, name: &str, known: &[&str]) -> UsageError {
    let distance = |candidate: &&&str| strsim::osa_distance(name, candidate);
    let close = known
        .iter()
        .min_by_key(distance)
        .filter(|close| distance(close) <= 2);
    let hint = close.map_or(String::new(), |close| format!("; did you mean {close}?"));
    UsageError(format!(
        "there is no {kind} \"{name}\"{hint} (there are: {})",
        known.join(", ")
    ))
}

fn parse_suite(path: &Path, text: &str) -> Result<Suite> {
    Ok(Suite::parse(text).map_err(|error| bad(path, &error))?)
}

fn bad(path: &Path, error: &dyn std::fmt::Display) -> UsageError {
    UsageError(format!(
        "{}: {}",
        path.display(),
        error.to_string().trim_end()
    ))
}

/// The paths and texts of what comes with Punctual, and after them of the user's own.
fn texts(kind: &str, included: &Dir<'static>) -> Result<Vec<(PathBuf, String)>> {
    let mut texts = Vec::new();
    for file in included.files() {
        let text = file
            .contents_utf8()
            .context("a data file is no UTF-8 text")?;
        texts.push((Path::new(kind).join(file.path()), text.to_owned()));
    }
    // Without a home there are no files of the user's own.
    if let Ok(config) = paths::config_dir() {
        texts.extend(files(&config.join(kind))?);
    }
    texts.retain(|(path, _)| is_toml(path));
    Ok(texts)
}

fn files(directory: &Path) -> Result<Vec<(PathBuf, String)>> {
    let named = || directory.display().to_string();
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.with_context(named)?,
    };
    let mut paths = Vec::new();
    for entry in entries {
        paths.push(entry.with_context(named)?.path());
    }
    paths.sort();
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        Ok((path, text))
    };
    paths
        .into_iter()
        .filter(|path| path.is_file())
        .map(read)
        .collect()
}

fn is_toml(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension == "toml")
}

fn stem(path: &Path) -> String {
    path.file_stem()
        .map_or_else(String::new, |stem| stem.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use punctual_agent::probes;

    use super::*;

    #[test]
    fn every_suite_that_comes_along_can_be_carried_out() {
        let loads = loads().unwrap();
        for (path, text) in texts("suites", &SUITES).unwrap() {
            let suite = parse_suite(&path, &text).unwrap();
            assert_eq!(suite.name, stem(&path));
            assert!(!suite.subjects.is_empty(), "{}", suite.name);
            let plan = suite.plan(&suite.steps, &loads, 1).unwrap();
            for step in &plan.steps {
                probes::parse(&step.probe, &step.params).map(drop).unwrap();
            }
        }
    }

    fn loads_of(text: &str) -> BTreeMap<String, Load> {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn a_mix_has_the_workers_and_programs_of_its_parts() {
        let loads = loads().unwrap();
        let storm = &loads["storm"];
        assert_eq!((storm.workers.len(), storm.mix.len()), (4, 0));
        assert_eq!(storm.programs, ["dd", "ping"]);
        assert_eq!(loads["hardcore"].workers.len(), 5);
    }

    #[test]
    fn a_mix_of_what_there_is_not_or_of_itself_is_refused() {
        let error = |text| mixed(&loads_of(text)).unwrap_err().to_string();
        let unknown = error("[a]\nsummary = \"\"\nmix = [\"lss\"]");
        assert!(
            unknown.contains("\"a\"") && unknown.contains("lss"),
            "{unknown}"
        );
        let circle = "[a]\nsummary = \"\"\nmix = [\"b\"]\n[b]\nsummary = \"\"\nmix = [\"a\"]";
        assert!(error(circle).contains("a of b of a"), "{}", error(circle));
    }

    #[test]
    fn a_near_miss_is_named() {
        let error = unknown("suite", "dmeo", &["celf", "demo"]).0;
        assert!(error.contains("did you mean demo?"), "{error}");
        let error = unknown("suite", "xyz", &["celf", "demo"]).0;
        assert!(
            !error.contains("mean") && error.contains("celf, demo"),
            "{error}"
        );
    }
}

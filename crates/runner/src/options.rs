// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files of options to try on a kernel, one at a time: those that come with Punctual, and the
//! user's own in `~/.config/punctual/options`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use include_dir::{Dir, include_dir};
use punctual_kernels::build::Setting;
use punctual_model::plan::{Count, IDLE, Load, Plan, Worker};
use serde::Deserialize;

use crate::data_files::{self, wrong};
use crate::{Error, mistakes};

static OPTIONS: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/../../options");

/// A file of options.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// One line for tables.
    #[serde(default)]
    pub summary: String,
    /// The suite to measure unless the user says otherwise.
    pub suite: Option<String>,
    /// Boot arguments of all subjects, including the base.
    #[serde(default)]
    pub boot: String,
    /// Programs of this machine that each guest gets for `setup`, in addition to the suite's.
    #[serde(default)]
    pub programs: Vec<String>,
    /// The options.
    #[serde(rename = "option", default)]
    pub options: Vec<OptionSpec>,
}

/// An option: its difference from the base, or the reason why it cannot be tried.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OptionSpec {
    /// The name of the option.
    pub name: String,
    /// Boot arguments in addition to those of the base.
    #[serde(default)]
    pub boot: String,
    /// Boot arguments of the base that it drops.
    #[serde(default)]
    pub without: String,
    /// A kernel that replaces the base's.
    pub kernel: Option<String>,
    /// Options of the kernel's configuration: the kernel is built from source with these.
    #[serde(default)]
    pub set: Vec<Setting>,
    /// The script that `sh` runs in the guest as root at the beginning of each step.
    #[serde(default)]
    pub setup: String,
    /// The advice that recommends it, with its source.
    pub advice: Option<Advice>,
    /// The reason why it is not tried: nothing that can be measured here would show its effect.
    pub untold: Option<String>,
}

/// The advice about an option.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Advice {
    /// The source of the advice: a document, and the place in it.
    pub source: String,
    /// The advice, in our words.
    pub says: String,
    /// The expected effect on samples.
    #[serde(default)]
    pub expects: Expects,
    /// The probe that it affects; `None` for each latency.
    pub probe: Option<String>,
    /// The load under which it has its effect; `None` for each load.
    pub load: Option<String>,
}

/// The direction in which samples should change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Expects {
    /// They should become shorter.
    #[default]
    Lower,
    /// They should become longer: the option takes away what is advised.
    Higher,
}

impl Options {
    /// Returns true if any option has a `setup` in the guest: then the base, too, has a command
    /// that runs there first.
    pub fn has_setup(&self) -> bool {
        let mut all = self.options.iter();
        all.any(|option| !option.setup.trim().is_empty())
    }
}

impl OptionSpec {
    /// Returns true if it can be tried.
    pub fn is_tried(&self) -> bool {
        self.untold.is_none()
    }

    /// The boot arguments `base` with those of this option applied.
    ///
    /// # Errors
    /// If it drops an argument that the base does not have.
    pub fn boot_with(&self, base: &str) -> Result<String, Error> {
        let mut words: Vec<&str> = base.split_whitespace().collect();
        for gone in self.without.split_whitespace() {
            let at = words.iter().position(|word| *word == gone);
            let at = at.ok_or_else(|| {
                Error::Request(format!(
                    "option \"{}\": expected the base to have the boot argument {gone}, found \
                     \"{base}\"",
                    self.name
                ))
            })?;
            words.remove(at);
        }
        words.extend(self.boot.split_whitespace());
        Ok(words.join(" "))
    }
}

/// The name of the load that an idle step gets if an option has a `setup`.
pub const SETUP: &str = "setup";

/// The script of the worker that waits for the commands, which are its arguments. Each command has
/// a shell of its own, and prints nothing that counts as work. Then the worker beats, as each
/// worker of a load must do something while samples are taken.
const SETUP_SCRIPT: &str = "\
for setup in \"$@\"; do sh -ec \"$setup\" > /dev/null || exit; done
mkfifo beat && exec 3<>beat && while echo; do read -t 0.02 beat <&3; done";

/// Makes each load of a plan run these commands first. Nothing is measured before they have ended,
/// and if one fails there is no load. The base of options has the same worker without commands.
///
/// The guest also gets `programs` of this machine for them.
///
/// # Errors
/// If a load of the suite's own has the name that idle steps get.
pub fn set_up(plan: &mut Plan, commands: &[String], programs: &[String]) -> Result<(), Error> {
    if plan.loads.contains_key(SETUP) {
        return Err(Error::Request(format!(
            "a load is called \"{SETUP}\", as what idle steps have beside an option's setup: call \
             it something else"
        )));
    }
    let words = ["sh", "-c", SETUP_SCRIPT, "setup"].map(str::to_owned);
    let worker = Worker {
        run: words.iter().chain(commands).cloned().collect(),
        cpus: None,
        needs: Vec::new(),
        pause_ms: 0,
        limit_ms: 0,
        endless: true,
        ignore_status: false,
        unit: "beats".to_owned(),
        count: Count::Lines,
    };
    for step in plan.steps.iter_mut().filter(|step| step.load == IDLE) {
        SETUP.clone_into(&mut step.load);
        plan.loads.entry(SETUP.to_owned()).or_insert_with(|| Load {
            summary: "nothing but what is set up before".to_owned(),
            mix: Vec::new(),
            programs: Vec::new(),
            disk: false,
            kernel_source: false,
            workers: Vec::new(),
        });
    }
    for load in plan.loads.values_mut() {
        load.workers.push(worker.clone());
        load.programs.extend_from_slice(programs);
    }
    Ok(())
}

/// All files of options by name, which is that of the file.
pub fn all() -> Result<BTreeMap<String, Options>, Error> {
    let texts = data_files::all("options", &OPTIONS)?;
    let one = |(path, text): &(PathBuf, String)| Ok((data_files::stem(path), parse(path, text)?));
    texts.iter().map(one).collect()
}

/// The file of options with this name, or at this path.
pub fn find(name_or_path: &str) -> Result<Options, Error> {
    if data_files::is_path(name_or_path) {
        let path = Path::new(name_or_path);
        return parse(path, &data_files::read(path)?);
    }
    let mut all = all()?;
    all.remove(name_or_path).ok_or_else(|| {
        let known: Vec<&str> = all.keys().map(String::as_str).collect();
        Error::unknown("file of options", name_or_path, &known)
    })
}

/// The options in a text.
pub(crate) fn parse(path: &Path, text: &str) -> Result<Options, Error> {
    let options: Options =
        toml::from_str(text).map_err(|error| mistakes::in_file(path, text, &error))?;
    check(&options).map_err(|reason| wrong(path, &reason))?;
    Ok(options)
}

fn check(options: &Options) -> Result<(), String> {
    if !options.programs.is_empty() && !options.has_setup() {
        return Err("programs are for the setup of options, and none has one".to_owned());
    }
    let all = &options.options;
    for (option, number) in all.iter().zip(1..) {
        let name = &option.name;
        if name.trim().is_empty() {
            return Err(format!("option {number}: expected a name, found none"));
        }
        if all[..number - 1].iter().any(|other| other.name == *name) {
            return Err(format!("option \"{name}\" is there twice"));
        }
        let differs = option.kernel.is_some()
            || !(option.boot.is_empty() && option.without.is_empty() && option.set.is_empty())
            || !option.setup.trim().is_empty();
        if differs == option.untold.is_some() {
            return Err(format!(
                "option \"{name}\": expected what differs (boot, without, kernel, set, setup), or \
                 why it is not tried (untold), and not both"
            ));
        }
    }
    if !all.iter().any(OptionSpec::is_tried) {
        return Err("expected an [[option]] that can be tried, found none".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Options, String> {
        parse(Path::new("mine.toml"), text).map_err(|error| error.to_string())
    }

    #[test]
    fn every_file_that_comes_along_is_sound() {
        let all = all().unwrap();
        let advice = &all["advice"];
        assert!(advice.options.iter().all(|one| one.advice.is_some()));
        assert!(advice.options.iter().any(|one| !one.is_tried()));
        let error = find("advise").unwrap_err().to_string();
        assert!(error.contains("did you mean advice?"), "{error}");
    }

    #[test]
    fn an_option_adds_to_the_base_or_takes_away_from_it() {
        let text = "boot = \"a b=1\"\n[[option]]\nname = \"no b\"\nwithout = \"b=1\"\n\
                    [[option]]\nname = \"c\"\nboot = \"c d\"\n";
        let options = parsed(text).unwrap();
        let boot = |at: usize| options.options[at].boot_with(&options.boot).unwrap();
        assert_eq!((boot(0).as_str(), boot(1).as_str()), ("a", "a b=1 c d"));
        let error = options.options[0].boot_with("a").unwrap_err().to_string();
        assert!(
            error.contains("expected the base to have the boot argument b=1"),
            "{error}"
        );
    }

    #[test]
    fn an_option_may_be_of_the_kernels_configuration() {
        let text = "[[option]]\nname = \"a\"\nset = [\"CONFIG_HZ_1000=y\", \"PREEMPT_RT=n\"]\n";
        let set = &parsed(text).unwrap().options[0].set;
        let set: Vec<String> = set.iter().map(ToString::to_string).collect();
        assert_eq!(set, ["HZ_1000=y", "PREEMPT_RT=n"]);
        let error = parsed(&text.replace("CONFIG_HZ_1000=y", "HZ_1000")).unwrap_err();
        assert!(error.contains("such as PREEMPT_LAZY=y"), "{error}");
    }

    #[test]
    fn what_is_wrong_is_said() {
        let option = "[[option]]\nname = \"a\"\nboot = \"a\"\n";
        for (text, expected) in [
            (String::new(), "expected an [[option]] that can be tried"),
            (format!("{option}{option}"), "option \"a\" is there twice"),
            (format!("{option}untold = \"x\"\n"), "and not both"),
            (option.replace("boot = \"a\"", ""), "expected what differs"),
            (
                option.replace("boot", "bot"),
                "mine.toml:3: unknown field `bot`, expected one of ",
            ),
            (option.replace("boot", "bot"), "did you mean boot?"),
            (
                format!("programs = [\"chrt\"]\n{option}"),
                "and none has one",
            ),
        ] {
            let error = parsed(&text).unwrap_err();
            assert!(error.contains(expected), "{error}");
            assert!(error.starts_with("mine.toml:"), "{error}");
        }
    }
}

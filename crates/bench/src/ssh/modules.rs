// SPDX-License-Identifier: MIT OR Apache-2.0
//! Punctual's own kernel modules on a board: built there against the headers of its kernel, and
//! loaded while a job runs.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Seek as _, Write as _};
use std::path::Path;
use std::sync::atomic::AtomicBool;

use punctual_kernels::kmod;
use rustix::fs::{MemfdFlags, memfd_create};

use super::{Board, Error, marked, shell};

const BUILD: &str = include_str!("build-modules.sh");
const LOAD: &str = include_str!("load-modules.sh");

/// Runs its words with the complaints as part of the output.
const TRY: &str = "exec \"$@\" 2>&1";

/// The line that ends each file in the script that writes the sources: no source has such a line.
const END: &str = "PUNCTUAL_END_OF_FILE";

/// Modules that are loaded with each job.
#[derive(Clone, Debug)]
pub struct Modules {
    /// Their directory on the board.
    directory: String,
    names: Vec<String>,
}

impl Modules {
    /// The words that come before a command that needs the modules.
    pub fn words(&self) -> Vec<&str> {
        let before = ["sh", "-c", LOAD, "punctual", &self.directory];
        let names = self.names.iter().map(String::as_str);
        before.into_iter().chain(names).chain(["--"]).collect()
    }
}

/// The reason why a board cannot have a module.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum Absence {
    /// The kernel takes no modules at all.
    #[error("its kernel takes no modules (CONFIG_MODULES)")]
    NoModules,
    /// Only root may load modules, and the user is not root.
    #[error("only root may load modules: log in as root (`--bench ssh:root@HOST`)")]
    NoRoot,
    /// `flock`, which makes sure that they are unloaded, is missing.
    #[error("there is no `flock`: install util-linux")]
    NoFlock,
    /// The headers of a kernel with this release are missing.
    #[error(
        "there are no headers of its kernel in /lib/modules/{0}/build: install them (on Debian, `apt-get install linux-headers-{0}`)"
    )]
    NoHeaders(String),
    /// `make` is missing.
    #[error("there is no `make`: install it")]
    NoMake,
    /// The compiler is missing.
    #[error("there is no compiler: install gcc")]
    NoCompiler,
    /// Another run is measuring: nothing is built during that.
    #[error("another run is measuring there, and a compiler would be its load")]
    NotQuiet,
    /// The compiler rejects the module.
    #[error("it cannot be built: {said} ({log} there has all)")]
    NotBuilt {
        /// The first complaint of the compiler.
        said: String,
        /// The path of the file with all its output.
        log: String,
    },
    /// The kernel takes only signed modules.
    #[error(
        "the kernel refuses it: {0}: with secure boot or `module.sig_enforce` it takes only signed modules"
    )]
    Unsigned(String),
    /// The kernel refuses the module for another reason.
    #[error("the kernel refuses it: {0}")]
    Refused(String),
    /// The connection was lost while the sources were sent.
    #[error("the connection was lost while its sources were sent")]
    NotSent,
}

impl Absence {
    /// The absence for which the script uses this word.
    fn of_word(word: &str, release: &str) -> Option<Self> {
        Some(match word {
            "modules" => Self::NoModules,
            "root" => Self::NoRoot,
            "flock" => Self::NoFlock,
            "headers" => Self::NoHeaders(release.to_owned()),
            "make" => Self::NoMake,
            "compiler" => Self::NoCompiler,
            "quiet" => Self::NotQuiet,
            _ => return None,
        })
    }

    /// The absence that this output of `insmod` means.
    fn of_refusal(said: &str) -> Self {
        let unsigned = [
            "Key was rejected",
            "Required key not",
            "Operation not permitted",
        ];
        let said = said.to_owned();
        if unsigned.iter().any(|part| said.contains(part)) {
            return Self::Unsigned(said);
        }
        Self::Refused(said)
    }
}

/// The state of a module on the board.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Found {
    /// It is loaded already, by somebody else.
    Loaded,
    /// It is built.
    Built,
    /// It is not built, but can be.
    Wanted,
    Absent(Absence),
}

impl Found {
    fn absence(self) -> Option<Absence> {
        match self {
            Self::Loaded | Self::Built => None,
            Self::Wanted => Some(Absence::NotSent),
            Self::Absent(why) => Some(why),
        }
    }
}

impl Board {
    /// Has the modules of these names built on the board, unless they are loaded or were built
    /// before, and loaded with each job. Returns those that it cannot have, with the reasons.
    pub fn build_modules(
        &mut self,
        names: &[String],
        cancel: &AtomicBool,
        say: &mut dyn FnMut(&str),
    ) -> Result<BTreeMap<String, Absence>, Error> {
        let place = format!("modules-{}-{}", kmod::short_digest(), self.hello.release);
        let mut found = self.ask_for_modules(&place, names, None, cancel)?;
        let wanted = of(&found, &Found::Wanted);
        if !wanted.is_empty() {
            say(&format!(
                "{}: building kernel modules for {}: {}",
                self.hello.host,
                self.hello.release,
                wanted.join(", ")
            ));
            let sources = archive(&wanted).map_err(|error| Error::Io {
                path: "memfd".into(),
                error,
            })?;
            found.extend(self.ask_for_modules(&place, &wanted, Some(sources), cancel)?);
        }
        let mut modules = Modules {
            directory: format!("{}/{place}", self.directory),
            names: of(&found, &Found::Built),
        };
        if !modules.names.is_empty() {
            found.extend(self.try_to_load(&modules, cancel)?);
            modules.names = of(&found, &Found::Built);
            self.modules = Some(modules);
        }
        let absent = found.into_iter();
        Ok(absent
            .filter_map(|(name, found)| Some((name, found.absence()?)))
            .collect())
    }

    /// Asks for the state of each module; builds them if their sources are given.
    fn ask_for_modules(
        &self,
        place: &str,
        names: &[String],
        sources: Option<File>,
        cancel: &AtomicBool,
    ) -> Result<BTreeMap<String, Found>, Error> {
        let words = names.iter().map(String::as_str);
        let words: Vec<&str> = [&*self.directory, place].into_iter().chain(words).collect();
        let said = shell::run(&self.route, BUILD, &words, sources, cancel)?;
        let directory = format!("{}/{place}", self.directory);
        understand(&said, names, &self.hello.release, &directory).ok_or_else(|| Error::Shell {
            host: self.route.name().to_owned(),
            found: said,
        })
    }

    /// Loads the modules, which unloads them at once as nothing is begun; returns those that are
    /// refused.
    fn try_to_load(
        &self,
        modules: &Modules,
        cancel: &AtomicBool,
    ) -> Result<BTreeMap<String, Found>, Error> {
        let words = [modules.words(), vec!["true"]].concat();
        let said = shell::run(&self.route, TRY, &words, None, cancel)?;
        let refused = said.lines().filter_map(|line| {
            let line = marked(line)?.strip_prefix("refused ")?;
            let (name, said) = line.split_once(' ')?;
            Some((name.to_owned(), Found::Absent(Absence::of_refusal(said))))
        });
        Ok(refused.collect())
    }
}

/// The modules in this state.
fn of(all: &BTreeMap<String, Found>, wanted: &Found) -> Vec<String> {
    let own = all.iter().filter(|(_, found)| *found == wanted);
    own.map(|(name, _)| name.clone()).collect()
}

/// Reads the script's output about modules with these names; `None` if it says nothing about one of
/// them.
fn understand(
    said: &str,
    names: &[String],
    release: &str,
    directory: &str,
) -> Option<BTreeMap<String, Found>> {
    let mut found = BTreeMap::new();
    let mut lack = None;
    for line in said.lines().filter_map(marked) {
        let (word, rest) = line.split_once(' ')?;
        let (name, said) = rest.split_once(' ').unwrap_or((rest, ""));
        let what = match word {
            "loaded" => Found::Loaded,
            "built" => Found::Built,
            "wanted" => Found::Wanted,
            "failed" => Found::Absent(Absence::NotBuilt {
                said: said.to_owned(),
                log: format!("{directory}/{name}.log"),
            }),
            _ => {
                lack = Some(Absence::of_word(rest, release)?);
                continue;
            }
        };
        found.insert(name.to_owned(), what);
    }
    if lack == Some(Absence::NoFlock) {
        // None can be loaded, not even one that was built before.
        found.retain(|_, found| *found == Found::Loaded);
    }
    for name in names {
        if !found.contains_key(name) {
            found.insert(name.clone(), Found::Absent(lack.clone()?));
        }
    }
    Some(found)
}

/// A script that writes the sources of modules where it runs, and at the very end a file that says
/// that they are complete. Any board has the means to read it.
fn archive(names: &[String]) -> io::Result<File> {
    let mut script = File::from(memfd_create("punctual-modules", MemfdFlags::CLOEXEC)?);
    // A file that cannot be written, such as on a full disk, ends it: they are not whole then.
    writeln!(script, "set -e")?;
    let sources = names.iter().flat_map(|name| kmod::sources(name));
    for (path, text) in sources.collect::<BTreeMap<_, _>>() {
        let directory = path.parent().unwrap_or(Path::new("")).display();
        let path = path.display();
        writeln!(
            script,
            "mkdir -p './{directory}' && cat >'{path}' <<'{END}'"
        )?;
        writeln!(script, "{text}{END}")?;
    }
    writeln!(script, ": >whole")?;
    script.rewind()?;
    Ok(script)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::{Command, Stdio};

    use super::*;
    use crate::ssh::Fault;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn the_sources_arrive_as_they_are() {
        let there = tempfile::tempdir().unwrap();
        let all = names(&kmod::NAMES);
        let script = archive(&all).unwrap();
        let mut shell = Command::new("sh");
        let status = shell.current_dir(there.path()).stdin(script).status();
        assert!(status.unwrap().success());
        for (path, text) in all.iter().flat_map(|name| kmod::sources(name)) {
            let arrived = fs::read_to_string(there.path().join(path)).unwrap();
            assert!(arrived == text, "{}", path.display());
        }
        assert!(there.path().join("whole").is_file());
    }

    #[test]
    fn sources_of_which_one_cannot_be_written_are_not_whole() {
        let there = tempfile::tempdir().unwrap();
        fs::create_dir(there.path().join("Kbuild")).unwrap();
        let script = archive(&names(&kmod::NAMES)).unwrap();
        let mut shell = Command::new("sh");
        let status = shell.current_dir(there.path()).stdin(script).status();
        assert!(!status.unwrap().success());
        assert!(!there.path().join("whole").exists());
    }

    #[test]
    fn a_directory_that_is_not_there_is_the_boards_fault_and_not_its_clients() {
        for script in [BUILD, super::super::PUT, super::super::PREPARE] {
            let mut shell = Command::new("sh");
            let words = ["-c", script, "punctual", "/dev/null/none", "name"];
            let status = shell.args(words).stdin(Stdio::null()).status().unwrap();
            let code = status.code().unwrap();
            assert_eq!(crate::labgrid::fault(code), Fault::Board, "{script}");
        }
        let load = LOAD.replace("/run/punctual", "/dev/null/none");
        let mut shell = Command::new("sh");
        let words = ["-c", &*load, "punctual", "/tmp", "--", "true"];
        let status = shell.args(words).status().unwrap();
        let code = status.code().unwrap();
        assert_eq!(crate::labgrid::fault(code), Fault::Board, "{load}");
    }

    #[test]
    fn a_board_says_what_is_with_each() {
        let of = |said: &str, of: &[&str]| understand(said, &names(of), "6.1", "/data/modules");
        let said = "hello\npunctual-board loaded pulse\npunctual-board built stall\n\
                    punctual-board lacks headers\n";
        let found = of(said, &["backfire", "pulse", "stall"]).unwrap();
        assert_eq!(found["pulse"], Found::Loaded);
        assert_eq!(found["stall"], Found::Built);
        let why = found["backfire"].clone().absence().unwrap().to_string();
        assert!(why.contains("/lib/modules/6.1/build"), "{why}");
        let failed = of("punctual-board failed pulse x.c:1: error: y\n", &["pulse"]).unwrap();
        let why = failed["pulse"].clone().absence().unwrap().to_string();
        assert!(
            why.contains("x.c:1: error: y (/data/modules/pulse.log"),
            "{why}"
        );
        let found = of(
            "\u{1b}]0;board\u{7}punctual-board built pulse\n",
            &["pulse"],
        );
        assert_eq!(found.unwrap()["pulse"], Found::Built);
        let said = "punctual-board built pulse\npunctual-board lacks flock\n";
        let found = of(said, &["pulse"]).unwrap();
        assert_eq!(found["pulse"], Found::Absent(Absence::NoFlock));
        assert_eq!(of("", &["pulse"]), None);
        assert_eq!(of("punctual-board lacks luck\n", &["pulse"]), None);
    }

    #[test]
    fn a_kernel_that_wants_signatures_is_told_from_others() {
        let why = Absence::of_refusal("insmod: can't insert 'x.ko': Operation not permitted");
        assert!(matches!(why, Absence::Unsigned(_)));
        let why = Absence::of_refusal("insmod: can't insert 'x.ko': invalid module format");
        assert!(matches!(why, Absence::Refused(_)));
    }
}

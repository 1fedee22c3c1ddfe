// SPDX-License-Identifier: MIT OR Apache-2.0
//! Punctual's own kernel modules on a board: built there against the headers of its kernel, and
//! loaded for as long as a job runs.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Seek as _, Write as _};
use std::path::Path;
use std::sync::atomic::AtomicBool;

use punctual_kernels::kmod;
use rustix::fs::{MemfdFlags, memfd_create};

use super::{Board, Error, MARK, shell};

const BUILD: &str = include_str!("build-modules.sh");
const LOAD: &str = include_str!("load-modules.sh");

/// What is complained of is part of what is said.
const TRY: &str = "exec \"$@\" 2>&1";

/// What ends each file in the script that writes the sources: no line of theirs.
const END: &str = "PUNCTUAL_END_OF_FILE";

/// Modules that are loaded with each job.
#[derive(Clone, Debug)]
pub struct Modules {
    /// Where they are there.
    directory: String,
    names: Vec<String>,
}

impl Modules {
    /// What comes before a command that is to have them.
    pub fn words(&self) -> Vec<&str> {
        let before = ["sh", "-c", LOAD, "punctual", &self.directory];
        let names = self.names.iter().map(String::as_str);
        before.into_iter().chain(names).chain(["--"]).collect()
    }
}

/// Why a board cannot have a module.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum Absence {
    /// The kernel takes none at all.
    #[error("its kernel takes no modules (CONFIG_MODULES)")]
    NoModules,
    /// Nobody else may load them.
    #[error("only root may load modules: log in as root (`--bench ssh:root@HOST`)")]
    NoRoot,
    /// What sees to it that they are unloaded.
    #[error("there is no `flock`: install util-linux")]
    NoFlock,
    /// The headers of a kernel with this release.
    #[error(
        "there are no headers of its kernel in /lib/modules/{0}/build: install them (on Debian, `apt-get install linux-headers-{0}`)"
    )]
    NoHeaders(String),
    /// What builds.
    #[error("there is no `make`: install it")]
    NoMake,
    /// What compiles.
    #[error("there is no compiler: install gcc")]
    NoCompiler,
    /// Nothing is built while somebody measures.
    #[error("another run is measuring there, and a compiler would be its load")]
    NotQuiet,
    /// The compiler refuses it.
    #[error("it cannot be built: {said} ({log} there has all)")]
    NotBuilt {
        /// What the compiler says first.
        said: String,
        /// Where all that it says is.
        log: String,
    },
    /// The kernel takes signed modules only.
    #[error(
        "the kernel refuses it: {0}: with secure boot or `module.sig_enforce` it takes only signed modules"
    )]
    Unsigned(String),
    /// The kernel takes others.
    #[error("the kernel refuses it: {0}")]
    Refused(String),
    /// The connection does not last.
    #[error("the connection was lost while its sources were sent")]
    NotSent,
}

impl Absence {
    /// By the word that the script has for it.
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

    /// By what `insmod` says.
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

/// What is with a module there.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Found {
    /// Somebody has loaded it.
    Loaded,
    /// It is built.
    Built,
    /// It can be built.
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
    /// Has the modules of these names built there, unless they are loaded or were built before,
    /// and loaded with each job. Those that it cannot have are returned, with the reasons.
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

    /// What is with each of them, and they are built where their sources are given.
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

    /// Loads them, which unloads them at once as nothing is begun; what is refused.
    fn try_to_load(
        &self,
        modules: &Modules,
        cancel: &AtomicBool,
    ) -> Result<BTreeMap<String, Found>, Error> {
        let words = [modules.words(), vec!["true"]].concat();
        let said = shell::run(&self.route, TRY, &words, None, cancel)?;
        let refused = said.lines().filter_map(|line| {
            let line = line.strip_prefix(MARK)?.strip_prefix("refused ")?;
            let (name, said) = line.split_once(' ')?;
            Some((name.to_owned(), Found::Absent(Absence::of_refusal(said))))
        });
        Ok(refused.collect())
    }
}

/// Those of which this was found.
fn of(all: &BTreeMap<String, Found>, wanted: &Found) -> Vec<String> {
    let own = all.iter().filter(|(_, found)| *found == wanted);
    own.map(|(name, _)| name.clone()).collect()
}

/// What the script says of modules with these names; `None` where it says nothing of one.
fn understand(
    said: &str,
    names: &[String],
    release: &str,
    directory: &str,
) -> Option<BTreeMap<String, Found>> {
    let mut found = BTreeMap::new();
    let mut lack = None;
    for line in said.lines().filter_map(|line| line.strip_prefix(MARK)) {
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

/// A script that writes the sources of modules where it runs, and last of all a file that says
/// that they are whole: any board has what reads that.
fn archive(names: &[String]) -> io::Result<File> {
    let mut script = File::from(memfd_create("punctual-modules", MemfdFlags::CLOEXEC)?);
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
    use std::process::Command;

    use super::*;

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

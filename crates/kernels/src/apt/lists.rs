// SPDX-License-Identifier: MIT OR Apache-2.0
//! The package lists that APT searches: the system's, or lists of Punctual's own, which cover other
//! releases of Debian. The system's own are never touched.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use punctual_model::Architecture;

use super::{AptError, output, run};
use crate::paths::{self, Lock};

/// The keys that sign Debian's archives; Debian and its derivatives have them.
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// The age up to which fetched lists are reused: otherwise a user who fetches twenty kernels would
/// fetch the lists twenty times.
const FRESH: Duration = Duration::from_secs(600);

/// A set of package lists.
#[derive(Clone, Debug)]
pub(crate) enum Lists {
    /// The system's lists.
    System,
    /// Lists of Punctual's own, in this directory:
    ///
    /// ```text
    /// CACHE/apt/SUITES/apt.conf       for APT_CONFIG
    ///                  sources.list
    ///                  lists/
    /// CACHE/apt/arm64-SUITES/…         for an architecture other than amd64
    /// ```
    Own(PathBuf),
}

impl Lists {
    /// The lists of these suites of Debian (`bullseye-security`), fetched again if they are older
    /// than [`FRESH`]; the system's lists if no suite is named.
    pub(crate) fn fetch(
        cache: &Path,
        architecture: Architecture,
        suites: &[String],
        progress: &mut dyn FnMut(&str),
    ) -> Result<Self, AptError> {
        let lists = Self::of(cache, architecture, suites);
        let Self::Own(directory) = &lists else {
            return Ok(lists);
        };
        let lock = directory.with_extension("lock");
        let _lock = Lock::acquire(&lock).map_err(at(&lock))?;
        let stamp = directory.join("fetched");
        if is_fresh(&stamp) {
            return Ok(lists);
        }
        progress(&format!(
            "reading the package lists of {}",
            suites.join(", ")
        ));
        set_up(directory, architecture, suites)?;
        run(
            "apt-get",
            lists.command("apt-get").args(["-qq", "update"]),
            "check the network and try again",
        )?;
        paths::write_atomically(&stamp, b"").map_err(at(&stamp))?;
        Ok(lists)
    }

    /// The same lists as they were last fetched.
    pub(crate) fn of(cache: &Path, architecture: Architecture, suites: &[String]) -> Self {
        if suites.is_empty() {
            return Self::System;
        }
        let suites = suites.join("+");
        let name = if architecture == Architecture::Amd64 {
            suites
        } else {
            format!("{}-{suites}", architecture.debian())
        };
        Self::Own(cache.join("apt").join(name))
    }

    /// The value of the environment variable `APT_CONFIG` for these lists.
    pub(crate) fn apt_config(&self) -> Option<PathBuf> {
        match self {
            Self::System => None,
            Self::Own(directory) => Some(directory.join("apt.conf")),
        }
    }

    /// A command for one of APT's programs, with these lists.
    pub(super) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("LC_ALL", "C");
        // As root, apt would hand the download to a user who may not write here.
        if rustix::process::geteuid().is_root() {
            command.args(["-o", "APT::Sandbox::User=root"]);
        }
        if let Some(config) = self.apt_config() {
            command.env("APT_CONFIG", config);
        }
        command
    }
}

/// Returns true if the file was written less than [`FRESH`] ago.
fn is_fresh(stamp: &Path) -> bool {
    let written = fs::metadata(stamp).and_then(|stamp| stamp.modified());
    written.is_ok_and(|at| at.elapsed().is_ok_and(|age| age < FRESH))
}

fn set_up(directory: &Path, architecture: Architecture, suites: &[String]) -> Result<(), AptError> {
    let keyring = Path::new(KEYRING);
    if !keyring.exists() {
        return Err(AptError::NoKeyring(KEYRING));
    }
    let partial = directory.join("lists/partial");
    fs::create_dir_all(&partial).map_err(at(&partial))?;
    let sources: Result<Vec<String>, AptError> =
        suites.iter().map(|s| source(architecture, s)).collect();
    let write = |name: &str, text: &str| {
        let path = directory.join(name);
        paths::write_atomically(&path, text.as_bytes()).map_err(at(&path))
    };
    write("sources.list", &sources?.concat())?;
    // What is installed here is of no interest to another architecture.
    write("status", "")?;
    write("apt.conf", &config(directory, architecture))
}

/// A line of sources.list(5).
fn source(architecture: Architecture, suite: &str) -> Result<String, AptError> {
    let (label, archive) = if suite.ends_with("-security") {
        ("Debian-Security", "debian-security")
    } else {
        ("Debian", "debian")
    };
    let base = mirror(label)?.unwrap_or_else(|| format!("http://deb.debian.org/{archive}"));
    Ok(format!(
        "deb [arch={} signed-by={KEYRING}] {base} {suite} main\n",
        architecture.debian()
    ))
}

/// The site from which the system gets the archive of this label.
fn mirror(label: &str) -> Result<Option<String>, AptError> {
    let mut command = Lists::System.command("apt-get");
    command.args(["indextargets", "--format", "$(SITE)"]);
    command.arg(format!("Label: {label}"));
    let sites = output("apt-get", &mut command)?.stdout;
    let sites = String::from_utf8_lossy(&sites);
    Ok(sites.lines().next().map(str::to_owned))
}

/// The apt.conf(5) for lists, archives and locks of their own; only the index of packages is
/// fetched, and an update that lacks the index of one suite fails.
fn config(directory: &Path, architecture: Architecture) -> String {
    let directory = directory.display();
    let of_architecture = if architecture == Architecture::Amd64 {
        String::new()
    } else {
        format!(
            "APT::Architecture \"{name}\";\n\
             APT::Architectures {{ \"{name}\"; }};\n\
             Dir::State::status \"{directory}/status\";\n",
            name = architecture.debian()
        )
    };
    format!(
        "Dir::Etc::SourceList \"{directory}/sources.list\";\n\
         Dir::Etc::SourceParts \"/dev/null\";\n\
         Dir::State::Lists \"{directory}/lists\";\n\
         Dir::Cache \"{directory}\";\n\
         Debug::NoLocking \"true\";\n\
         APT::Update::Error-Mode \"any\";\n\
         Acquire::Languages \"none\";\n\
         Acquire::IndexTargets::deb::DEP-11::DefaultEnabled \"false\";\n\
         Acquire::IndexTargets::deb::CNF::DefaultEnabled \"false\";\n{of_architecture}"
    )
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> AptError {
    let path = path.display().to_string();
    move |error| AptError::Io(path, error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_security_archive_is_another_one() {
        let line = source(Architecture::Amd64, "bullseye-security").unwrap_or_default();
        assert!(line.contains("-security bullseye-security main"), "{line}");
        let line = source(Architecture::Arm64, "bullseye").unwrap_or_default();
        assert!(line.ends_with(" bullseye main\n"), "{line}");
        assert!(!line.contains("-security "), "{line}");
        assert!(line.contains("[arch=arm64 "), "{line}");
    }

    #[test]
    fn an_update_that_lacks_one_suite_is_not_complete() {
        let config = config(Path::new("/lists"), Architecture::Amd64);
        let mode = "APT::Update::Error-Mode \"any\";\n";
        assert!(config.contains(mode), "{config}");
    }

    #[test]
    fn lists_are_the_systems_unless_suites_are_named() {
        let cache = Path::new("/cache");
        let amd64 = Architecture::Amd64;
        assert!(Lists::of(cache, amd64, &[]).apt_config().is_none());
        let suites = ["a".to_owned(), "b".to_owned()];
        assert_eq!(
            Lists::of(cache, amd64, &suites).apt_config(),
            Some("/cache/apt/a+b/apt.conf".into())
        );
        assert_eq!(
            Lists::of(cache, Architecture::Arm64, &suites).apt_config(),
            Some("/cache/apt/arm64-a+b/apt.conf".into())
        );
    }
}

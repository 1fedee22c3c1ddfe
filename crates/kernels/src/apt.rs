// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kernels from Debian packages: found, downloaded, verified, unpacked, never installed.
//!
//! apt itself has verified the signature of its index; the package must have the SHA-256 in this
//! index.

mod lists;
mod unpack;
mod version;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::checksum;
use crate::id::KernelId;

pub(crate) use lists::Lists;
pub(super) use unpack::{Unpacked, Wanted, unpack, unpack_file, unpack_modules};
pub(crate) use version::compare as compare_versions;

/// The reason why a package is not available.
#[derive(Debug, thiserror::Error)]
pub enum AptError {
    /// One of the programs of apt or dpkg is missing.
    #[error(
        "expected the program {0}, found none: fetching kernels needs Debian or a distribution made of it; elsewhere, add a kernel of your own"
    )]
    NoProgram(&'static str),
    /// The package lists have no matching package.
    #[error(
        "expected a package that matches {0} in apt's lists, found none: run `apt-get update` as root, or add a kernel of your own"
    )]
    NoPackage(String),
    /// The package lists have only other versions.
    #[error(
        "{id}: expected that version in apt's lists, which have {known}: name one of these, or get the package (older ones are kept by snapshot.debian.org) and add it as your own"
    )]
    NoVersion {
        /// The kernel's id, with the version.
        id: String,
        /// The available versions, newest first.
        known: String,
    },
    /// Other releases of Debian cannot be verified.
    #[error(
        "expected the keys of Debian's archives in {0}, found none: install debian-archive-keyring"
    )]
    NoKeyring(&'static str),
    /// A program failed.
    #[error("{program} failed ({status}): {stderr}: {advice}")]
    Failed {
        /// The program.
        program: &'static str,
        /// Its exit status.
        status: std::process::ExitStatus,
        /// Its error output, on one line.
        stderr: String,
        /// Advice to the user.
        advice: &'static str,
    },
    /// The archive no longer has the package of a fetched kernel.
    #[error(
        "{package} {version}: expected this package in the archive, found it gone: `punctual kernel fetch --refresh {line}` fetches the present kernel"
    )]
    Gone {
        /// The package.
        package: String,
        /// Its version.
        version: String,
        /// The kernel's id, without a version.
        line: String,
    },
    /// The downloaded file differs from the one in the index.
    #[error(
        "{package}: expected sha256 {expected}, as apt's index says, found {found}: run `apt-get update` as root and try again"
    )]
    Checksum {
        /// The package.
        package: String,
        /// The checksum in the signed index.
        expected: String,
        /// The checksum of the downloaded file.
        found: String,
    },
    /// The package contains no kernel.
    #[error(
        "{package}: expected a kernel's image and configuration in the package, found no {missing}: {advice}"
    )]
    NoImage {
        /// The package.
        package: String,
        /// The missing part.
        missing: &'static str,
        /// Advice to the user.
        advice: &'static str,
    },
    /// Files cannot be read or written.
    #[error("{0}: {1}")]
    Io(String, io::Error),
}

impl AptError {
    /// Returns true if the fault is in the request.
    pub(super) fn is_request(&self) -> bool {
        matches!(self, Self::NoVersion { .. })
    }

    /// Returns true if an index names a file that the archive does not have (any more, or yet), or
    /// does not name this version any more.
    pub(super) fn is_gone(&self) -> bool {
        let told = ["404  Not Found", "' was not found"];
        matches!(self, Self::Failed { stderr, .. } if told.iter().any(|one| stderr.contains(one)))
    }
}

/// Advice about a package that a source has found.
pub(super) const OTHER_KIND: &str =
    "the pattern in kernels/*.toml matches a package of another kind";

/// Advice about a package that the user has named.
pub(super) const NAME_ANOTHER: &str = "name a package with both, such as Debian's \
    linux-image-…-unsigned, or the image itself";

const UPDATE: &str = "run `apt-get update` as root and try again";

/// A package available for download.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) package: String,
    pub(super) version: String,
    pub(super) sha256: String,
    pub(super) size: u64,
}

/// Finds the packages that match a pattern and can be downloaded, newest first: those of the
/// version to which `id` is pinned, or all. The result is never empty.
pub(super) fn resolve(lists: &Lists, pattern: &str, id: &str) -> Result<Vec<Candidate>, AptError> {
    choose(all(lists, pattern)?, id)
}

/// The packages of all versions that match a pattern and can be downloaded, oldest first.
pub(super) fn releases(lists: &Lists, pattern: &str) -> Result<Vec<Candidate>, AptError> {
    let mut all = all(lists, pattern)?;
    all.sort_by(|a, b| version::compare(&a.version, &b.version));
    all.dedup_by(|a, b| a.version == b.version);
    Ok(all)
}

fn all(lists: &Lists, pattern: &str) -> Result<Vec<Candidate>, AptError> {
    let mut search = lists.command("apt-cache");
    search.args(["search", "--names-only", pattern]);
    let search = run("apt-cache", &mut search, UPDATE)?;
    let names = parse_names(&String::from_utf8_lossy(&search.stdout));
    let none = || AptError::NoPackage(pattern.to_owned());
    if names.is_empty() {
        return Err(none());
    }
    // It fails if one name has nothing to show, and shows the others nevertheless.
    let mut show = lists.command("apt-cache");
    let show = output(
        "apt-cache",
        show.args(["show", "--all-versions"]).args(&names),
    )?;
    let candidates = candidates(&names, &String::from_utf8_lossy(&show.stdout));
    if candidates.is_empty() {
        return Err(none());
    }
    Ok(candidates)
}

/// Finds the package of this name.
pub(super) fn resolve_name(lists: &Lists, name: &str) -> Result<Candidate, AptError> {
    let escaped = name.replace('.', r"\.").replace('+', r"\+");
    Ok(resolve(lists, &format!("^{escaped}$"), "any")?.swap_remove(0))
}

/// The candidates that fit an id, newest first; never empty.
fn choose(mut candidates: Vec<Candidate>, id: &str) -> Result<Vec<Candidate>, AptError> {
    candidates.sort_by(|a, b| version::compare(&b.version, &a.version));
    let known: Vec<&str> = candidates.iter().map(|one| &*one.version).collect();
    let known = known.join(", ");
    candidates.retain(|one| KernelId::parse(id).is_ok_and(|id| id.fits(&one.version)));
    if candidates.is_empty() {
        let id = id.to_owned();
        return Err(AptError::NoVersion { id, known });
    }
    Ok(candidates)
}

/// The package and the version that would be fetched, from the output of `apt-cache`.
pub fn choose_in(search: &str, show: &str, id: &str) -> Result<(String, String), AptError> {
    let chosen = choose(candidates(&parse_names(search), show), id)?.swap_remove(0);
    Ok((chosen.package, chosen.version))
}

/// The names in the output of `apt-cache search`: each line is `name - description`.
fn parse_names(search: &str) -> Vec<String> {
    search
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .map(str::to_owned)
        .collect()
}

/// The named packages that can be downloaded, from the output of `apt-cache show`.
///
/// Names without a candidate are not shown, and a package that is only installed is shown without a
/// file name: neither can be downloaded.
fn candidates(names: &[String], show: &str) -> Vec<Candidate> {
    show.split("\n\n")
        .filter_map(parse_stanza)
        .filter(|candidate| names.contains(&candidate.package))
        .collect()
}

fn parse_stanza(stanza: &str) -> Option<Candidate> {
    let field = |name: &str| {
        stanza.lines().find_map(|line| {
            let value = line.strip_prefix(name)?.strip_prefix(':')?;
            Some(value.trim().to_owned())
        })
    };
    field("Filename")?;
    Some(Candidate {
        package: field("Package")?,
        version: field("Version")?,
        sha256: field("SHA256")?.to_ascii_lowercase(),
        size: field("Size")?.parse().ok()?,
    })
}

/// Downloads a package into a directory and verifies it.
pub(super) fn download(
    lists: &Lists,
    candidate: &Candidate,
    directory: &Path,
) -> Result<PathBuf, AptError> {
    let mut command = lists.command("apt-get");
    command.current_dir(directory).args(["-qq", "download"]);
    command.arg(format!("{}={}", candidate.package, candidate.version));
    run(
        "apt-get",
        &mut command,
        "check the network, run `apt-get update` as root, and try again",
    )?;
    let deb = find_deb(directory)?;
    verify(candidate, &deb)?;
    Ok(deb)
}

fn find_deb(directory: &Path) -> Result<PathBuf, AptError> {
    let describe = |error| AptError::Io(directory.display().to_string(), error);
    let entries = fs::read_dir(directory).map_err(describe)?;
    let mut paths = entries.filter_map(|entry| entry.ok().map(|entry| entry.path()));
    paths
        .find(|path| path.extension().is_some_and(|end| end == "deb"))
        .ok_or_else(|| {
            describe(io::Error::new(
                io::ErrorKind::NotFound,
                "expected the package that apt-get downloaded, found none: try again",
            ))
        })
}

fn verify(candidate: &Candidate, deb: &Path) -> Result<(), AptError> {
    let found =
        checksum::of_file(deb).map_err(|error| AptError::Io(deb.display().to_string(), error))?;
    if found == candidate.sha256 {
        return Ok(());
    }
    Err(AptError::Checksum {
        package: format!("{}={}", candidate.package, candidate.version),
        expected: candidate.sha256.clone(),
        found,
    })
}

fn run(
    program: &'static str,
    command: &mut Command,
    advice: &'static str,
) -> Result<Output, AptError> {
    let output = output(program, command)?;
    if output.status.success() {
        return Ok(output);
    }
    Err(AptError::Failed {
        program,
        status: output.status,
        stderr: one_line(&String::from_utf8_lossy(&output.stderr)),
        advice,
    })
}

fn output(program: &'static str, command: &mut Command) -> Result<Output, AptError> {
    command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| not_started(program, error))
}

fn not_started(program: &'static str, error: io::Error) -> AptError {
    match error.kind() {
        io::ErrorKind::NotFound => AptError::NoProgram(program),
        _ => AptError::Io(program.to_owned(), error),
    }
}

fn one_line(text: &str) -> String {
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|l| !l.is_empty())
        .collect();
    lines.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn newest(names: &[String], show: &str) -> Option<Candidate> {
        choose(candidates(names, show), "k")
            .ok()
            .map(|mut all| all.swap_remove(0))
    }

    const SEARCH: &str = "\
linux-image-6.12.99+deb12-amd64-unsigned - Linux 6.12 for 64-bit PCs
linux-image-6.12.107+deb12-amd64-unsigned - Linux 6.12 for 64-bit PCs
linux-image-6.12.117+deb12-amd64-unsigned - Linux 6.12 for 64-bit PCs
linux-image-6.12.120+deb12-amd64-unsigned - Linux 6.12 for 64-bit PCs
linux-image-6.12.121+deb12-amd64-unsigned - Linux 6.12 for 64-bit PCs
";

    /// Output in which 6.12.120 has no candidate and is not shown, and 6.12.121 is only installed.
    const SHOW: &str = "\
Package: linux-image-6.12.99+deb12-amd64-unsigned
Source: linux-6.12
Version: 6.12.99-1~deb12u1
Description: Linux 6.12 for 64-bit PCs
 Version: of no interest
Filename: pool/a.deb
Size: 1
SHA256: 99AA

Package: linux-image-6.12.117+deb12-amd64-unsigned
Version: 6.12.117-1~deb12u1
Filename: pool/b.deb
Size: 107152768
SHA256: f3ce

Package: linux-image-6.12.107+deb12-amd64-unsigned
Version: 6.12.107-1~deb12u1
Filename: pool/c.deb
Size: 3
SHA256: ef90

Package: linux-image-6.12.121+deb12-amd64-unsigned
Status: install ok installed
Version: 6.12.121-1~deb12u1

Package: linux-image-6.12.130+deb12-rt-amd64-unsigned
Version: 6.12.130-1
Filename: pool/not-asked-for.deb
Size: 4
SHA256: 0000

";

    #[test]
    fn the_newest_package_that_can_be_downloaded_is_taken() {
        let names = parse_names(SEARCH);
        assert_eq!(names.len(), 5);
        let expected = Candidate {
            package: "linux-image-6.12.117+deb12-amd64-unsigned".to_owned(),
            version: "6.12.117-1~deb12u1".to_owned(),
            sha256: "f3ce".to_owned(),
            size: 107_152_768,
        };
        assert_eq!(newest(&names, SHOW), Some(expected));
    }

    #[test]
    fn a_version_can_be_named() {
        let pinned = |id| {
            let all = choose(candidates(&parse_names(SEARCH), SHOW), id);
            all.map(|mut all| all.swap_remove(0))
        };
        for id in ["k@6.12.99", "k@6.12.99-1~deb12u1"] {
            assert_eq!(pinned(id).unwrap().version, "6.12.99-1~deb12u1");
        }
        let error = pinned("k@6.12.98").unwrap_err().to_string();
        assert!(
            error.contains("6.12.117-1~deb12u1, 6.12.107-1~deb12u1"),
            "{error}"
        );
    }

    #[test]
    fn what_is_not_pinned_may_be_an_older_one_and_what_is_gone_is_known() {
        let all = choose(candidates(&parse_names(SEARCH), SHOW), "k").unwrap();
        let versions: Vec<&str> = all.iter().map(|one| &*one.version).collect();
        assert!(
            versions.is_sorted_by(|a, b| version::compare(a, b).is_gt()),
            "{versions:?}"
        );
        assert_eq!(versions.len(), 3);
        let failed = |stderr: &str| AptError::Failed {
            program: "apt-get",
            status: std::process::ExitStatus::default(),
            stderr: stderr.to_owned(),
            advice: UPDATE,
        };
        assert!(failed("E: Failed to fetch http://x/a.deb  404  Not Found [IP: ::1]").is_gone());
        assert!(!failed("E: Failed to fetch http://x/a.deb  Connection timed out").is_gone());
        assert!(failed("E: Version '6.12.1-9' for 'linux-image-a' was not found").is_gone());
    }

    #[test]
    fn names_without_candidates_give_nothing() {
        assert_eq!(newest(&parse_names(SEARCH), ""), None);
        assert_eq!(newest(&parse_names(SEARCH)[3..], SHOW), None);
        assert!(parse_names("").is_empty());
    }

    #[test]
    fn several_versions_of_one_package_are_compared() {
        let names = ["linux-image-6.1.0-56-amd64-unsigned".to_owned()];
        let stanza = |version: &str| {
            format!(
                "Package: {}\nVersion: {version}\nFilename: f\nSize: 1\nSHA256: a\n\n",
                names[0]
            )
        };
        let show = stanza("6.1.170-3") + &stanza("6.1.176-1") + &stanza("6.1.9-1");
        assert_eq!(newest(&names, &show).unwrap().version, "6.1.176-1");
    }

    #[test]
    fn another_checksum_than_the_index_says_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let deb = directory.path().join("x.deb");
        fs::write(&deb, "abc").unwrap();
        let mut candidate = newest(&parse_names(SEARCH), SHOW).unwrap();
        let error = verify(&candidate, &deb).unwrap_err().to_string();
        assert!(error.contains("expected sha256 f3ce"), "{error}");
        candidate.sha256 = checksum::of_bytes(b"abc");
        assert!(verify(&candidate, &deb).is_ok());
        assert_eq!(find_deb(directory.path()).unwrap(), deb);
    }

    #[test]
    fn a_missing_program_is_named() {
        let error = output("apt-cache", &mut Command::new("/nowhere/apt-cache")).unwrap_err();
        assert!(matches!(error, AptError::NoProgram("apt-cache")), "{error}");
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kernels from Debian packages: found, downloaded, verified, unpacked, never installed.
//!
//! apt itself has verified the signature of its index; the package must have the SHA-256
//! that this index gives.

use std::cmp::Ordering;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::checksum;
use crate::id::KernelId;

/// Why a package cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum AptError {
    /// One of apt's or dpkg's programs is not here.
    #[error(
        "expected the program {0}, found none: fetching kernels needs Debian or a distribution made of it; elsewhere, add a kernel of your own"
    )]
    NoProgram(&'static str),
    /// The package lists have nothing that fits.
    #[error(
        "expected a package that matches {0} in apt's lists, found none: run `apt-get update` as root, or add a kernel of your own"
    )]
    NoPackage(String),
    /// The package lists have other versions only.
    #[error(
        "{id}: expected that version in apt's lists, which have {known}: name one of these, or get the package (older ones are kept by snapshot.debian.org) and add it as your own"
    )]
    NoVersion {
        /// The kernel's id, with the version.
        id: String,
        /// The versions that there are, newest first.
        known: String,
    },
    /// A program failed.
    #[error("{program} failed ({status}): {stderr}: {advice}")]
    Failed {
        /// Which.
        program: &'static str,
        /// How it ended.
        status: std::process::ExitStatus,
        /// What it said, on one line.
        stderr: String,
        /// What to do.
        advice: &'static str,
    },
    /// What came is not what the index promised.
    #[error(
        "{package}: expected sha256 {expected}, as apt's index says, found {found}: run `apt-get update` as root and try again"
    )]
    Checksum {
        /// The package.
        package: String,
        /// What the signed index says.
        expected: String,
        /// What was downloaded.
        found: String,
    },
    /// The package has no kernel in it.
    #[error(
        "{package}: expected boot/vmlinuz-* and boot/config-* in the package, found no {missing}: the pattern in kernels/*.toml matches a package of another kind"
    )]
    NoImage {
        /// The package.
        package: String,
        /// What it lacks.
        missing: &'static str,
    },
    /// Files cannot be read or written.
    #[error("{0}: {1}")]
    Io(String, io::Error),
}

/// A package that can be downloaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) package: String,
    pub(super) version: String,
    pub(super) sha256: String,
    pub(super) size: u64,
}

/// What was taken out of a package.
#[derive(Debug)]
pub(super) struct Unpacked {
    pub(super) image: PathBuf,
    pub(super) config: PathBuf,
}

/// Finds the package that matches a pattern and can be downloaded: of the version that `id`
/// is pinned to, else the newest.
pub(super) fn resolve(pattern: &str, id: &str) -> Result<Candidate, AptError> {
    let advice = "run `apt-get update` as root and try again";
    let search = run(
        "apt-cache",
        apt_cache().args(["search", "--names-only", pattern]),
        advice,
    )?;
    let names = parse_names(&String::from_utf8_lossy(&search.stdout));
    let none = || AptError::NoPackage(pattern.to_owned());
    if names.is_empty() {
        return Err(none());
    }
    // It fails if one name has nothing to show, and shows the others nevertheless.
    let show = output(
        "apt-cache",
        apt_cache().args(["show", "--all-versions"]).args(&names),
    )?;
    let candidates = candidates(&names, &String::from_utf8_lossy(&show.stdout));
    if candidates.is_empty() {
        return Err(none());
    }
    choose(candidates, id)
}

/// The newest candidate that fits an id.
fn choose(mut candidates: Vec<Candidate>, id: &str) -> Result<Candidate, AptError> {
    candidates.sort_by(|a, b| compare_versions(&b.version, &a.version));
    let fits = |one: &&Candidate| KernelId::parse(id).is_ok_and(|id| id.fits(&one.version));
    candidates.iter().find(fits).cloned().ok_or_else(|| {
        let known: Vec<&str> = candidates.iter().map(|one| &*one.version).collect();
        AptError::NoVersion {
            id: id.to_owned(),
            known: known.join(", "),
        }
    })
}

/// The package and the version that would be fetched, by what `apt-cache` printed.
pub fn choose_in(search: &str, show: &str, id: &str) -> Result<(String, String), AptError> {
    let chosen = choose(candidates(&parse_names(search), show), id)?;
    Ok((chosen.package, chosen.version))
}

fn apt_cache() -> Command {
    let mut command = Command::new("apt-cache");
    command.env("LC_ALL", "C");
    command
}

/// The names in the output of `apt-cache search`: each line is `name - description`.
fn parse_names(search: &str) -> Vec<String> {
    search
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .map(str::to_owned)
        .collect()
}

/// Which of the named packages can be downloaded, by the output of `apt-cache show`.
///
/// Names without a candidate are not shown, and what is merely installed is shown without a
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

/// Compares versions as Debian does (deb-version(7)): epoch, upstream version, revision.
fn compare_versions(a: &str, b: &str) -> Ordering {
    let (a_epoch, a_upstream, a_revision) = split_version(a);
    let (b_epoch, b_upstream, b_revision) = split_version(b);
    a_epoch
        .cmp(&b_epoch)
        .then_with(|| compare_parts(a_upstream, b_upstream))
        .then_with(|| compare_parts(a_revision, b_revision))
}

fn split_version(version: &str) -> (u64, &str, &str) {
    let (epoch, rest) = version.split_once(':').unwrap_or(("0", version));
    let (upstream, revision) = rest.rsplit_once('-').unwrap_or((rest, "0"));
    (epoch.parse().unwrap_or(0), upstream, revision)
}

/// Texts and numbers take turns; `~` comes before the end, the end before letters, letters
/// before all else.
fn compare_parts(mut a: &str, mut b: &str) -> Ordering {
    while !a.is_empty() || !b.is_empty() {
        let (a_text, a_rest) = split_at(a, |c| c.is_ascii_digit());
        let (b_text, b_rest) = split_at(b, |c| c.is_ascii_digit());
        let (a_number, a_rest) = split_at(a_rest, |c| !c.is_ascii_digit());
        let (b_number, b_rest) = split_at(b_rest, |c| !c.is_ascii_digit());
        let order =
            compare_texts(a_text, b_text).then_with(|| number(a_number).cmp(&number(b_number)));
        if order.is_ne() {
            return order;
        }
        (a, b) = (a_rest, b_rest);
    }
    Ordering::Equal
}

fn split_at(text: &str, end: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(end).unwrap_or(text.len()))
}

fn number(digits: &str) -> u64 {
    digits.parse().unwrap_or(0)
}

fn compare_texts(a: &str, b: &str) -> Ordering {
    let rank = |text: &str, index: usize| match text.as_bytes().get(index) {
        Some(b'~') => -1,
        None => 0,
        Some(letter) if letter.is_ascii_alphabetic() => i32::from(*letter),
        Some(other) => 256 + i32::from(*other),
    };
    (0..a.len().max(b.len()))
        .map(|index| rank(a, index).cmp(&rank(b, index)))
        .find(|order| order.is_ne())
        .unwrap_or(Ordering::Equal)
}

/// Downloads a package into a directory and verifies it.
pub(super) fn download(candidate: &Candidate, directory: &Path) -> Result<PathBuf, AptError> {
    let mut command = Command::new("apt-get");
    command.env("LC_ALL", "C").current_dir(directory);
    // As root, apt would hand the download to a user who may not write here.
    if rustix::process::geteuid().is_root() {
        command.args(["-o", "APT::Sandbox::User=root"]);
    }
    command.args(["-qq", "download"]);
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

/// Takes the kernel and its configuration out of a package, and nothing else.
pub(super) fn unpack(deb: &Path, directory: &Path) -> Result<Unpacked, AptError> {
    let mut child = Command::new("dpkg-deb")
        .arg("--fsys-tarfile")
        .arg(deb)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| not_started("dpkg-deb", error))?;
    let stdout = child.stdout.take().expect("standard output is piped");
    let unpacked = take_boot_files(stdout, deb, directory);
    // The hundreds of megabytes that follow are of no interest. The package's checksum was
    // verified before, so how the program ends tells nothing more.
    let _ = child.kill();
    let _ = child.wait();
    unpacked
}

fn take_boot_files(archive: impl Read, deb: &Path, directory: &Path) -> Result<Unpacked, AptError> {
    let describe = |error| AptError::Io(deb.display().to_string(), error);
    let (mut image, mut config) = (None, None);
    let mut archive = tar::Archive::new(archive);
    for entry in archive.entries().map_err(describe)? {
        let mut entry = entry.map_err(describe)?;
        let path = entry.path().map_err(describe)?.into_owned();
        let (target, slot) = match boot_file(&path) {
            Some("vmlinuz") => (directory.join("vmlinuz"), &mut image),
            Some("config") => (directory.join("config"), &mut config),
            _ => continue,
        };
        let mut file = fs::File::create(&target).map_err(describe)?;
        io::copy(&mut entry, &mut file).map_err(describe)?;
        *slot = Some(target);
        if image.is_some() && config.is_some() {
            break;
        }
    }
    let missing = |missing| AptError::NoImage {
        package: deb.display().to_string(),
        missing,
    };
    Ok(Unpacked {
        image: image.ok_or_else(|| missing("vmlinuz"))?,
        config: config.ok_or_else(|| missing("config"))?,
    })
}

/// `vmlinuz` for `./boot/vmlinuz-6.12.117+deb12-amd64`.
fn boot_file(path: &Path) -> Option<&str> {
    let name = path
        .strip_prefix("./boot")
        .or_else(|_| path.strip_prefix("boot"));
    let name = name.ok()?.to_str()?;
    ["vmlinuz", "config"].into_iter().find(|kind| {
        name.strip_prefix(kind)
            .is_some_and(|rest| rest.starts_with('-'))
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
        choose(candidates(names, show), "k").ok()
    }

    const SEARCH: &str = "\
linux-image-6.12.99+deb12-amd64-unsigned - Linux 6.12 for 64-bit PCs
linux-image-6.12.107+deb12-amd64-unsigned - Linux 6.12 for 64-bit PCs
linux-image-6.12.117+deb12-amd64-unsigned - Linux 6.12 for 64-bit PCs
linux-image-6.12.120+deb12-amd64-unsigned - Linux 6.12 for 64-bit PCs
linux-image-6.12.121+deb12-amd64-unsigned - Linux 6.12 for 64-bit PCs
";

    /// 6.12.120 has no candidate and is not shown; 6.12.121 is merely installed.
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
        let pinned = |id| choose(candidates(&parse_names(SEARCH), SHOW), id);
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
    fn versions_are_ordered_as_dpkg_orders_them() {
        let ordered = [
            "1.0~rc1-1",
            "1.0-1~deb12u1",
            "1.0-1",
            "1.0-1+b1",
            "1.0-2",
            "1.0a-1",
            "1.0+x-1",
            "6.1.170-3",
            "6.12.9-1",
            "6.12.107-1~deb12u1",
            "6.12.107-1",
            "1:0.1-1",
        ];
        for (i, a) in ordered.iter().enumerate() {
            for (j, b) in ordered.iter().enumerate() {
                assert_eq!(compare_versions(a, b), i.cmp(&j), "{a} and {b}");
            }
        }
        assert_eq!(compare_versions("1.0", "1.0-0"), Ordering::Equal);
        assert_eq!(compare_versions("1.01", "1.1"), Ordering::Equal);
    }

    #[test]
    fn only_the_kernel_and_its_configuration_are_taken() {
        let of = |path: &str| boot_file(Path::new(path)).map(str::to_owned);
        assert_eq!(of("./boot/vmlinuz-6.12"), Some("vmlinuz".to_owned()));
        assert_eq!(of("boot/config-6.12"), Some("config".to_owned()));
        assert_eq!(of("./boot/System.map-6.12"), None);
        assert_eq!(of("./boot/"), None);
        assert_eq!(of("./lib/modules/6.12/vmlinuz-6.12"), None);
    }

    fn archive(paths: &[&str]) -> Vec<u8> {
        let mut builder = tar::Builder::new(Vec::new());
        for path in paths {
            let mut header = tar::Header::new_ustar();
            header.set_size(path.len() as u64);
            header.set_mode(0o644);
            builder
                .append_data(&mut header, path, path.as_bytes())
                .unwrap();
        }
        builder.into_inner().unwrap()
    }

    #[test]
    fn a_package_without_a_kernel_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let deb = Path::new("x.deb");
        let take = |paths: &[&str]| take_boot_files(&archive(paths)[..], deb, directory.path());
        let unpacked = take(&["boot/System.map-6", "boot/config-6", "boot/vmlinuz-6"]).unwrap();
        assert_eq!(fs::read(unpacked.image).unwrap(), b"boot/vmlinuz-6");
        assert_eq!(fs::read(unpacked.config).unwrap(), b"boot/config-6");
        let error = take(&["boot/config-6"]).unwrap_err().to_string();
        assert!(error.contains("found no vmlinuz"), "{error}");
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
        assert!(error.to_string().contains("punctual kernel add"));
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Modules out of the package of a distribution's kernel, kept by the kernel's release:
//! `CACHE/disk/RELEASE/null_blk.ko`.

use std::fs;
use std::path::{Path, PathBuf};

use crate::apt::{self, AptError, Candidate, Lists, Wanted};
use crate::error::{KernelError, at};
use crate::paths::Lock;
use crate::{Kernel, Package};

/// The file beside the modules with the names that were asked for, and the SHA-256 of the package
/// of their kernel. Earlier versions wrote this file without the SHA-256.
const ASKED: &str = "asked";

/// The directory that holds these modules of a kernel, fetched if need be. `what` is their purpose
/// and the name of the directory above it.
///
/// # Errors
/// If the package is not available, or lacks a needed module.
pub(crate) fn modules(
    cache: &Path,
    what: &str,
    kernel: &Kernel,
    package: &Package,
    wanted: Wanted,
    progress: &mut dyn FnMut(&str),
) -> Result<PathBuf, KernelError> {
    let (base, release) = (cache.join(what), &kernel.release);
    let lock = base.join(format!("{release}.lock"));
    let _lock = Lock::acquire(&lock).map_err(at(&lock))?;
    let place = base.join(release);
    let names = [wanted.needed, wanted.besides].concat().join("\n");
    let asked = format!("{names}\n{}", package.sha256);
    // What was fetched for fewer does not do for these, nor what a package of the same release has.
    let there = fs::read_to_string(place.join(ASKED)).ok();
    let is_there = there.is_some_and(|there| there == asked || there == names);
    if !is_there {
        progress(&format!("{}: fetching the {what}'s modules", kernel.id));
        fetch(cache, &place, kernel, package, (wanted, &asked))?;
    }
    Ok(place)
}

fn fetch(
    cache: &Path,
    place: &Path,
    kernel: &Kernel,
    package: &Package,
    (wanted, asked): (Wanted, &str),
) -> Result<(), KernelError> {
    let lists = Lists::of(cache, kernel.architecture, &kernel.suites);
    let base = place.parent().unwrap_or(cache);
    let work = tempfile::tempdir_in(base).map_err(at(base))?;
    let candidate = package_of_modules(&lists, kernel, package)?;
    let deb = apt::download(&lists, &candidate, work.path());
    let deb = deb.map_err(|error| gone(error, &kernel.id, &candidate))?;
    let modules = work.path().join("modules");
    fs::create_dir(&modules).map_err(at(&modules))?;
    apt::unpack_modules(&deb, &kernel.release, wanted, &modules)?;
    fs::write(modules.join(ASKED), asked).map_err(at(&modules))?;
    if place.is_dir() {
        fs::remove_dir_all(place).map_err(at(place))?;
    }
    fs::rename(&modules, place).map_err(at(place))
}

/// The error for a package that cannot be downloaded. If it is gone, the kernel's id says which
/// command helps.
fn gone(error: AptError, id: &str, candidate: &Candidate) -> AptError {
    if !error.is_gone() {
        return error;
    }
    AptError::Gone {
        package: candidate.package.clone(),
        version: candidate.version.clone(),
        line: id.split('@').next().unwrap_or(id).to_owned(),
    }
}

/// The package with the modules: from Linux 7.2 on, they are in a package of their own.
fn package_of_modules(
    lists: &Lists,
    kernel: &Kernel,
    package: &Package,
) -> Result<Candidate, KernelError> {
    if package.name.starts_with("linux-binary-") {
        return Ok(apt::resolve_name(
            lists,
            &format!("linux-modules-{}", kernel.release),
        )?);
    }
    Ok(Candidate {
        package: package.name.clone(),
        version: package.version.clone(),
        sha256: package.sha256.clone(),
        size: 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_that_is_gone_is_told_with_the_command_that_gets_the_present_one() {
        let candidate = Candidate {
            package: "linux-image-6.12.90".to_owned(),
            version: "6.12.90-1".to_owned(),
            sha256: String::new(),
            size: 0,
        };
        let failed = |stderr: &str| AptError::Failed {
            program: "apt-get",
            status: std::process::ExitStatus::default(),
            stderr: stderr.to_owned(),
            advice: "try again",
        };
        let told = |stderr| gone(failed(stderr), "debian-6.12@6.12.90", &candidate).to_string();
        let version = told("E: Version '6.12.90-1' for 'linux-image-6.12.90' was not found");
        assert!(
            version.contains("`punctual kernel fetch --refresh debian-6.12` fetches"),
            "{version}"
        );
        assert!(told("Connection timed out").ends_with(": try again"));
    }

    #[test]
    fn modules_of_another_package_of_the_same_release_are_not_taken() {
        let cache = tempfile::tempdir().unwrap();
        let place = cache.path().join("network/6.1.0-1-test");
        fs::create_dir_all(&place).unwrap();
        let package = Package {
            name: "linux-image-6.1.0-1-test".to_owned(),
            version: "6.1.2-1".to_owned(),
            sha256: "beef".to_owned(),
        };
        let kernel = Kernel {
            id: "k".to_owned(),
            release: "6.1.0-1-test".to_owned(),
            architecture: punctual_model::Architecture::Amd64,
            image: PathBuf::new(),
            image_sha256: String::new(),
            boot: String::new(),
            modules: Vec::new(),
            origin: String::new(),
            config: None,
            suites: Vec::new(),
            package: None,
            built: None,
        };
        let taken = |asked: &str| {
            fs::write(place.join(ASKED), asked).unwrap();
            let wanted = Wanted {
                needed: &["a"],
                besides: &["b"],
            };
            let cache = cache.path();
            modules(cache, "network", &kernel, &package, wanted, &mut |_| ()).is_ok()
        };
        assert!(taken("a\nb\nbeef") && taken("a\nb"));
        assert!(!taken("a\nb\ncafe") && !taken("a"));
    }
}

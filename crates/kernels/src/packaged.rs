// SPDX-License-Identifier: MIT OR Apache-2.0
//! Modules out of the package of a distribution's kernel, kept by the kernel's release:
//! `CACHE/disk/RELEASE/null_blk.ko`.

use std::fs;
use std::path::{Path, PathBuf};

use crate::apt::{self, Candidate, Lists, Wanted};
use crate::error::{KernelError, at};
use crate::paths::Lock;
use crate::{Kernel, Package};

/// The file beside the modules with the names that were asked for.
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
    // What was fetched for fewer does not do for these.
    let asked = [wanted.needed, wanted.besides].concat().join("\n");
    if fs::read_to_string(place.join(ASKED)).ok().as_ref() != Some(&asked) {
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
    let deb = apt::download(&lists, &candidate, work.path())?;
    let modules = work.path().join("modules");
    fs::create_dir(&modules).map_err(at(&modules))?;
    apt::unpack_modules(&deb, &kernel.release, wanted, &modules)?;
    fs::write(modules.join(ASKED), asked).map_err(at(&modules))?;
    if place.is_dir() {
        fs::remove_dir_all(place).map_err(at(place))?;
    }
    fs::rename(&modules, place).map_err(at(place))
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

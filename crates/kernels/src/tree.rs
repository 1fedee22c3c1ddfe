// SPDX-License-Identifier: MIT OR Apache-2.0
//! A piece of a kernel's source for loads that compile: `lib/` of Debian's source package,
//! preprocessed with the kernel's own configuration and flags. So a guest needs no headers, and
//! compiles what a kernel's build compiles.
//!
//! The files are kept by the kernel's release: `CACHE/tree/RELEASE/radix-tree.i`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Kernel;
use crate::error::{KernelError, at};
use crate::kmod;
use crate::paths::Lock;

const SCRIPT: &str = include_str!("tree.sh");

/// The preprocessed files, sorted by name; fetched and made if need be. Returns an error if the
/// kernel is not one of the distribution's, or its source or headers are not available.
pub fn preprocessed(
    cache: &Path,
    kernel: &Kernel,
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<PathBuf>, KernelError> {
    let base = cache.join("tree");
    let release = &kernel.release;
    let lock = base.join(format!("{release}.lock"));
    let _lock = Lock::acquire(&lock).map_err(at(&lock))?;
    let place = base.join(release);
    if !place.is_dir() {
        progress(&format!("{}: fetching a piece of its source", kernel.id));
        make(cache, kernel, &place, progress).map_err(at(&place))?;
    }
    let entries = fs::read_dir(&place).map_err(at(&place))?;
    let paths: io::Result<Vec<_>> = entries.map(|entry| Ok(entry?.path())).collect();
    let mut paths = paths.map_err(at(&place))?;
    paths.sort();
    Ok(paths)
}

fn make(
    cache: &Path,
    kernel: &Kernel,
    place: &Path,
    progress: &mut dyn FnMut(&str),
) -> io::Result<()> {
    let package = kernel.package.as_ref();
    let package = package.ok_or_else(|| io::Error::other("it is no kernel of Debian's"))?;
    // Whoever builds modules fetches the headers.
    let release = &kernel.release;
    kmod::modules(cache, kernel, &["stall".to_owned()], progress).map_err(io::Error::other)?;
    let headers = cache
        .join("headers")
        .join(release)
        .join(format!("usr/src/linux-headers-{release}"));
    let output = Command::new("sh")
        .args(["-c", SCRIPT, "tree.sh"])
        .arg(headers)
        .arg(format!(
            "linux-source-{}={}",
            series(release),
            package.version
        ))
        .arg(place)
        .stdin(Stdio::null())
        .output()?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let last = said.trim().lines().last().unwrap_or_default();
    Err(io::Error::other(format!("{}: {last}", output.status)))
}

/// `6.12` of `6.12.117+deb12-amd64`.
fn series(release: &str) -> String {
    let parts: Vec<&str> = release.split(['.', '-', '+']).take(2).collect();
    parts.join(".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_is_the_first_two_numbers_of_a_release() {
        assert_eq!(series("6.12.117+deb12-rt-amd64"), "6.12");
        assert_eq!(series("6.1.0-56-amd64"), "6.1");
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The busybox for guests with another processor than this machine's: Debian's, fetched, never
//! installed, and kept as `CACHE/busybox/ARCHITECTURE/busybox`.
//!
//! Guests with this machine's processor get the installed one
//! ([`find_busybox`](crate::initramfs::find_busybox)).

use std::fs;
use std::path::{Path, PathBuf};

use punctual_model::Architecture;

use crate::apt::{self, Lists};
use crate::error::{KernelError, at};
use crate::paths::Lock;

/// The release of Debian from which it comes, wherever it is fetched, so that digests of the same
/// kernel are the same on every machine.
const SUITE: &str = "bookworm";
const PACKAGE: &str = "busybox-static";

/// The path of busybox for guests of this architecture, fetched if need be.
pub fn of(
    cache: &Path,
    architecture: Architecture,
    progress: &mut dyn FnMut(&str),
) -> Result<PathBuf, KernelError> {
    let place = cache.join("busybox").join(architecture.debian());
    let path = place.join("busybox");
    let lock = place.with_extension("lock");
    let _lock = Lock::acquire(&lock).map_err(at(&lock))?;
    if path.is_file() {
        return Ok(path);
    }
    progress(&format!("fetching busybox for {architecture}"));
    fs::create_dir_all(&place).map_err(at(&place))?;
    let work = tempfile::tempdir_in(&place).map_err(at(&place))?;
    let lists = Lists::fetch(cache, architecture, &[SUITE.to_owned()], progress)?;
    let candidate = apt::resolve_name(&lists, PACKAGE)?;
    let deb = apt::download(&lists, &candidate, work.path())?;
    let unpacked = work.path().join("busybox");
    apt::unpack_file(&deb, &["bin/busybox", "usr/bin/busybox"], &unpacked)?;
    fs::rename(&unpacked, &path).map_err(at(&path))?;
    Ok(path)
}

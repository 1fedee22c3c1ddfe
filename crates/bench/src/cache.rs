// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the cache holds, and how it is kept small.
//!
//! Kernels stay until the user removes them: they are named, and fetching them takes a
//! network. Booted guests and initramfs are made anew wherever they are missing.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::SystemTime;

use crate::virtual_bench::snapshot::{self, Snapshot};
use punctual_kernels::paths::Lock;

/// One thing in the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// `kernel`, `snapshot` or `initramfs`.
    pub kind: &'static str,
    /// What it is, for people.
    pub what: String,
    /// The space that it takes.
    pub bytes: u64,
    /// When it was made or, for a snapshot, last resumed.
    pub used: SystemTime,
}

/// All that is in the cache: kernels by name, the others those used last first.
pub fn list(cache: &Path) -> io::Result<Vec<Entry>> {
    let mut entries = Vec::new();
    for path in children(&cache.join("kernels"))? {
        if path.is_dir() {
            entries.push(Entry {
                kind: "kernel",
                what: name(&path),
                bytes: size(&path)?,
                used: modified(&path)?,
            });
        }
    }
    for snapshot in snapshot::list(&cache.join("snapshots"))? {
        let record = &snapshot.record;
        entries.push(Entry {
            kind: "snapshot",
            what: format!(
                "{}, {} MiB, {} ns, initramfs {:.8}: {}",
                record.kernel,
                record.memory_mib,
                record.ns_per_insn,
                record.initramfs_sha256,
                own(&record.cmdline)
            ),
            bytes: snapshot.space(),
            used: snapshot.used,
        });
    }
    for path in children(&cache.join("initramfs"))? {
        entries.push(Entry {
            kind: "initramfs",
            what: name(&path).chars().take(8).collect(),
            bytes: size(&path)?,
            used: modified(&path)?,
        });
    }
    Ok(entries)
}

/// Removes snapshots that were not used since `limit`, and initramfs that no snapshot was
/// made of and that are as old; returns how many bytes that was. What another process is
/// making or reading just now stays.
pub fn prune(cache: &Path, limit: SystemTime) -> io::Result<u64> {
    let mut removed = 0;
    let mut in_use = Vec::new();
    for path in children(&cache.join("snapshots"))?
        .iter()
        .filter(|path| path.is_dir())
    {
        let snapshot = Snapshot::open(path);
        let keep = snapshot
            .as_ref()
            .is_some_and(|snapshot| snapshot.used > limit);
        let lock = Lock::try_acquire(&path.with_extension("lock"))?;
        if keep || lock.is_none() {
            in_use.extend(snapshot.map(|snapshot| snapshot.record.initramfs_sha256));
            continue;
        }
        removed += size(path)?;
        snapshot::remove(path)?;
    }
    for path in children(&cache.join("initramfs"))? {
        let recent = modified(&path)? > limit;
        if !recent && !in_use.iter().any(|sha256| name(&path).starts_with(sha256)) {
            removed += size(&path)?;
            fs::remove_file(&path)?;
        }
    }
    Ok(removed)
}

/// The boot arguments that are not those of every subject.
fn own(cmdline: &str) -> &str {
    let common: Vec<&str> = crate::virtual_bench::BOOT_ARGUMENTS
        .split_whitespace()
        .collect();
    cmdline
        .strip_prefix(&common.join(" "))
        .unwrap_or(cmdline)
        .trim()
}

fn children(directory: &Path) -> io::Result<Vec<std::path::PathBuf>> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut paths = entries
        .map(|entry| Ok(entry?.path()))
        .collect::<io::Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}

fn name(path: &Path) -> String {
    path.file_name()
        .map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

fn modified(path: &Path) -> io::Result<SystemTime> {
    fs::metadata(path)?.modified()
}

/// The space on the disk, in bytes.
fn size(path: &Path) -> io::Result<u64> {
    if !path.is_dir() {
        return Ok(fs::symlink_metadata(path)?.blocks() * 512);
    }
    children(path)?.iter().map(|child| size(child)).sum()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::virtual_bench::snapshot::SnapshotRecord;

    const HOUR: Duration = Duration::from_secs(3600);

    fn make(cache: &Path, key: &str, initramfs: &str) {
        fs::create_dir_all(cache.join("initramfs")).unwrap();
        fs::write(cache.join("memory"), "12345").unwrap();
        fs::write(cache.join("devices"), "123").unwrap();
        fs::write(cache.join("console"), "").unwrap();
        fs::write(cache.join(format!("initramfs/{initramfs}.cpio")), "123").unwrap();
        let record = |files| SnapshotRecord {
            kernel: "k".into(),
            cmdline: "quiet".into(),
            memory_mib: 64,
            ns_per_insn: 1,
            qemu: "QEMU".into(),
            initramfs_sha256: initramfs.into(),
            files,
        };
        Snapshot::keep(cache, &cache.join("snapshots").join(key), record).unwrap();
    }

    fn kinds(cache: &Path) -> Vec<&'static str> {
        list(cache)
            .unwrap()
            .iter()
            .map(|entry| entry.kind)
            .collect()
    }

    #[test]
    fn what_was_used_lately_stays_and_all_else_goes() {
        let directory = tempfile::tempdir().unwrap();
        let cache = directory.path();
        fs::create_dir_all(cache.join("kernels/debian")).unwrap();
        make(cache, "a", "aa");
        assert_eq!(prune(cache, SystemTime::now() - HOUR).unwrap(), 0);
        assert_eq!(kinds(cache), ["kernel", "snapshot", "initramfs"]);
        let snapshot = &list(cache).unwrap()[1];
        assert_eq!(snapshot.what, "k, 64 MiB, 1 ns, initramfs aa: quiet");
        assert!(snapshot.used > SystemTime::now() - HOUR);
        let removed = prune(cache, SystemTime::now() + HOUR).unwrap();
        assert!(removed > 8, "{removed}");
        assert_eq!(kinds(cache), ["kernel"]);
    }

    #[test]
    fn what_is_locked_stays() {
        let directory = tempfile::tempdir().unwrap();
        let cache = directory.path();
        make(cache, "a", "aa");
        let _lock = Lock::acquire(&cache.join("snapshots/a.lock")).unwrap();
        assert_eq!(prune(cache, SystemTime::now() + HOUR).unwrap(), 0);
        assert_eq!(kinds(cache), ["snapshot", "initramfs"]);
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The contents of the cache, and the means to keep it small.
//!
//! Kernels stay until the user removes them: they have names, and fetching them takes a network.
//! Booted guests, initramfs and symbols are made again whenever they are missing, so those that
//! have not been used for long make room for others.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::virtual_bench::hardware;
use crate::virtual_bench::snapshot::{self, Snapshot};
use punctual_kernels::paths::Lock;
use punctual_model::Architecture;

/// The total space, in bytes, for all entries that can be made again, unless the user says
/// otherwise.
pub const LIMIT: u64 = 10 << 30;

/// One thing in the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// `kernel`, `snapshot`, `initramfs` or `symbols`.
    pub kind: &'static str,
    /// Description for people.
    pub what: String,
    /// The space it takes, in bytes.
    pub bytes: u64,
    /// The time at which it was made or, for a snapshot, last resumed.
    pub used: SystemTime,
}

/// Lists everything in the cache: kernels by name, the others with the most recently used first.
pub fn list(cache: &Path) -> io::Result<Vec<Entry>> {
    let mut entries = Vec::new();
    for path in children(&cache.join("kernels"))? {
        if path.is_dir() {
            entries.extend(entry("kernel", name(&path), &path)?);
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
    let symbols = children(&cache.join("symbols"))?;
    let others = [("initramfs", initramfs(cache)?), ("symbols", symbols)];
    for (kind, paths) in others {
        for path in paths {
            let what = name(&path).chars().take(8).collect();
            entries.extend(entry(kind, what, &path)?);
        }
    }
    Ok(entries)
}

/// The entry for a file or directory; `None` if it is gone by now.
fn entry(kind: &'static str, what: String, path: &Path) -> io::Result<Option<Entry>> {
    let bytes = size(path)?;
    let used = modified(path)?;
    Ok(used.map(|used| Entry {
        kind,
        what,
        bytes,
        used,
    }))
}

/// Rule for what stays in the cache.
#[derive(Clone, Copy, Debug)]
pub struct Keep {
    /// Anything last used at or before this time goes.
    pub since: SystemTime,
    /// The most bytes that may stay; the most recently used entries come first.
    pub bytes: u64,
}

impl Keep {
    /// Keeps the most recently used entries, up to this many bytes.
    pub fn newest(bytes: u64) -> Self {
        let since = SystemTime::UNIX_EPOCH;
        Self { since, bytes }
    }
}

/// An entry that is made again whenever it is missing.
struct Made {
    path: PathBuf,
    bytes: u64,
    used: SystemTime,
    /// The lock that a process holds while it makes the entry or works with it.
    lock: Option<PathBuf>,
    /// The snapshot, if the entry is one: it is removed with all its files.
    snapshot: Option<Snapshot>,
}

impl Made {
    /// The entry at this path; `None` if it is gone by now.
    fn new(path: &Path, lock: Option<PathBuf>) -> io::Result<Option<Self>> {
        let snapshot = Snapshot::open(path);
        let used = match &snapshot {
            Some(snapshot) => Some(snapshot.used),
            None => modified(path)?,
        };
        let bytes = size(path)?;
        Ok(used.map(|used| Self {
            path: path.to_owned(),
            bytes,
            used,
            lock,
            snapshot,
        }))
    }

    /// The SHA-256 of the initramfs from which a snapshot was made.
    fn initramfs(&self) -> Option<&str> {
        let snapshot = self.snapshot.as_ref();
        snapshot.map(|snapshot| snapshot.record.initramfs_sha256.as_str())
    }

    /// Removes the entry, unless a process is making it or working with it; returns true if it was
    /// removed.
    fn remove(&self) -> io::Result<bool> {
        let lock = self.lock.as_deref().map(Lock::try_acquire).transpose()?;
        let is_locked = matches!(lock, Some(None));
        if is_locked || self.snapshot.as_ref().is_some_and(Snapshot::is_linked) {
            return Ok(false);
        }
        let removed = if self.path.is_dir() {
            snapshot::remove(&self.path)
        } else {
            fs::remove_file(&self.path)
        };
        there(&self.path, removed)?;
        Ok(true)
    }
}

/// Removes snapshots, initramfs and symbols, least recently used first, until only what is to be
/// kept remains. Returns the number of bytes removed. Entries that a process is making or working
/// with stay, and so does the initramfs of a snapshot that stays.
pub fn prune(cache: &Path, keep: Keep) -> io::Result<u64> {
    // One process at a time, or each would count what the other removes.
    let _lock = Lock::acquire(&cache.join("prune.lock"))?;
    let made = made(cache)?;
    let before: u64 = made.iter().map(|one| one.bytes).sum();
    let (mut left, mut needed) = (before, BTreeSet::new());
    for one in &made {
        let wanted = one.used > keep.since && left <= keep.bytes;
        if wanted || needed.contains(stem(&one.path).as_str()) || !one.remove()? {
            needed.extend(one.initramfs());
        } else {
            left -= one.bytes;
        }
    }
    Ok(before - left)
}

/// All entries that can be made again, least recently used first, an initramfs after its snapshots.
fn made(cache: &Path) -> io::Result<Vec<Made>> {
    let mut made = Vec::new();
    for path in children(&cache.join("snapshots"))? {
        if path.is_dir() {
            made.extend(Made::new(&path, Some(path.with_extension("lock")))?);
        }
    }
    let mut last = BTreeMap::new();
    for one in &made {
        let used = last.entry(one.initramfs().unwrap_or_default().to_owned());
        let used = used.or_insert(one.used);
        *used = one.used.max(*used);
    }
    for path in initramfs(cache)? {
        let one = Made::new(&path, Some(path.with_extension("lock")))?;
        made.extend(one.map(|mut one| {
            let last = last.get(&stem(&path));
            one.used = last.map_or(one.used, |used| one.used.max(*used));
            one
        }));
    }
    for path in children(&cache.join("symbols"))? {
        made.extend(Made::new(&path, None)?);
    }
    made.sort_by_key(|one| (one.used, one.snapshot.is_none()));
    Ok(made)
}

fn initramfs(cache: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = children(&cache.join("initramfs"))?;
    paths.retain(|path| {
        path.extension()
            .is_some_and(|extension| extension == "cpio")
    });
    Ok(paths)
}

/// Marks a file as used now.
pub fn touch(path: &Path) -> io::Result<()> {
    let file = File::options().append(true).open(path)?;
    file.set_modified(SystemTime::now())
}

/// The boot arguments beyond those that every subject gets.
fn own(cmdline: &str) -> &str {
    let common = |architecture| {
        let words = hardware(architecture).boot.split_whitespace();
        words.collect::<Vec<_>>().join(" ")
    };
    let mut all = Architecture::ALL.into_iter().map(common);
    all.find_map(|common| cmdline.strip_prefix(&common))
        .unwrap_or(cmdline)
        .trim()
}

/// The paths in a directory, without files that a process is writing and has not named yet.
fn children(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let Some(entries) = there(directory, fs::read_dir(directory))? else {
        return Ok(Vec::new());
    };
    let paths = entries.map(|entry| Ok(entry?.path()));
    let paths = there(directory, paths.collect::<io::Result<Vec<_>>>())?;
    let mut paths = paths.unwrap_or_default();
    paths.retain(|path| !name(path).starts_with(UNNAMED));
    paths.sort();
    Ok(paths)
}

/// The beginning of the names of files that [`punctual_kernels::paths::write_atomically`] writes.
const UNNAMED: &str = ".tmp";

/// What was found at a path; `None` if there is nothing, as another process may have removed it.
/// Any other error names the path.
fn there<T>(path: &Path, found: io::Result<T>) -> io::Result<Option<T>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => {
            let told = format!("{}: {error}", path.display());
            Err(io::Error::new(error.kind(), told))
        }
    }
}

fn name(path: &Path) -> String {
    path.file_name()
        .map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

fn stem(path: &Path) -> String {
    path.file_stem()
        .map_or_else(String::new, |stem| stem.to_string_lossy().into_owned())
}

/// The time of the last change; `None` if there is nothing any more.
fn modified(path: &Path) -> io::Result<Option<SystemTime>> {
    there(path, fs::metadata(path).and_then(|meta| meta.modified()))
}

/// The space on disk, in bytes; 0 if there is nothing any more.
fn size(path: &Path) -> io::Result<u64> {
    if !path.is_dir() {
        let meta = there(path, fs::symlink_metadata(path))?;
        return Ok(meta.map_or(0, |meta| meta.blocks() * 512));
    }
    children(path)?.iter().map(|child| size(child)).sum()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::virtual_bench::snapshot::SnapshotRecord;

    const HOUR: Duration = Duration::from_secs(3600);

    fn make(cache: &Path, key: &str, initramfs: &str, hours_ago: u32) {
        let path = cache.join(format!("initramfs/{initramfs}.cpio"));
        fs::create_dir_all(cache.join("initramfs")).unwrap();
        for (file, text) in [("memory", "12345"), ("devices", "123"), ("console", "")] {
            fs::write(cache.join(file), text).unwrap();
        }
        fs::write(&path, "123").unwrap();
        let record = |files| SnapshotRecord {
            kernel: "k".into(),
            cmdline: "quiet".into(),
            memory_mib: 64,
            ns_per_insn: 1,
            qemu: "QEMU".into(),
            initramfs_sha256: initramfs.into(),
            files,
        };
        let snapshot = cache.join("snapshots").join(key);
        Snapshot::keep(cache, &snapshot, record).unwrap();
        for path in [path, snapshot.join("snapshot.toml")] {
            let file = File::options().append(true).open(path).unwrap();
            file.set_modified(SystemTime::now() - HOUR * hours_ago)
                .unwrap();
        }
    }

    fn kinds(cache: &Path) -> Vec<&'static str> {
        let entries = list(cache).unwrap();
        entries.iter().map(|entry| entry.kind).collect()
    }

    fn snapshots(cache: &Path) -> Vec<String> {
        let all = children(&cache.join("snapshots")).unwrap();
        let directories = all.iter().filter(|path| path.is_dir());
        directories.map(|path| name(path)).collect()
    }

    fn since(since: SystemTime) -> Keep {
        Keep {
            since,
            bytes: u64::MAX,
        }
    }

    /// The bytes that one snapshot takes together with its initramfs.
    fn one(cache: &Path) -> u64 {
        let entries = list(cache).unwrap();
        let size = |kind| {
            entries
                .iter()
                .find(|entry| entry.kind == kind)
                .unwrap()
                .bytes
        };
        size("initramfs") + super::size(&cache.join("snapshots/a")).unwrap()
    }

    #[test]
    fn what_was_used_lately_stays_and_all_else_goes() {
        let directory = tempfile::tempdir().unwrap();
        let cache = directory.path();
        fs::create_dir_all(cache.join("kernels/debian")).unwrap();
        fs::create_dir_all(cache.join("symbols")).unwrap();
        fs::write(cache.join("symbols/a"), "0 T x").unwrap();
        make(cache, "a", "aa", 0);
        assert_eq!(prune(cache, since(SystemTime::now() - HOUR)).unwrap(), 0);
        assert_eq!(kinds(cache), ["kernel", "snapshot", "initramfs", "symbols"]);
        let snapshot = &list(cache).unwrap()[1];
        assert_eq!(snapshot.what, "k, 64 MiB, 1 ns, initramfs aa: quiet");
        assert!(snapshot.used > SystemTime::now() - HOUR);
        let removed = prune(cache, since(SystemTime::now() + HOUR)).unwrap();
        assert!(removed > 8, "{removed}");
        assert_eq!(kinds(cache), ["kernel"]);
    }

    #[test]
    fn what_was_used_longest_ago_makes_room() {
        let directory = tempfile::tempdir().unwrap();
        let cache = directory.path();
        for (key, hours_ago) in [("a", 2), ("b", 3), ("c", 1)] {
            make(cache, key, &key.repeat(2), hours_ago);
        }
        let one = one(cache);
        assert_eq!(prune(cache, Keep::newest(3 * one)).unwrap(), 0);
        // The snapshot alone is enough.
        let removed = prune(cache, Keep::newest(3 * one - 1)).unwrap();
        assert!(0 < removed && removed < one, "{removed} of {one}");
        assert_eq!(snapshots(cache), ["a", "c"]);
        prune(cache, Keep::newest(one)).unwrap();
        assert_eq!(snapshots(cache), ["c"]);
        assert_eq!(kinds(cache), ["snapshot", "initramfs"]);
    }

    #[test]
    fn an_initramfs_goes_with_the_last_of_its_snapshots() {
        let directory = tempfile::tempdir().unwrap();
        let cache = directory.path();
        make(cache, "a", "aa", 9);
        make(cache, "b", "aa", 0);
        // Older than its second snapshot.
        let file = File::options()
            .append(true)
            .open(cache.join("initramfs/aa.cpio"));
        file.unwrap()
            .set_modified(SystemTime::now() - HOUR * 8)
            .unwrap();
        prune(cache, since(SystemTime::now() - HOUR)).unwrap();
        assert_eq!(kinds(cache), ["snapshot", "initramfs"]);
        prune(cache, Keep::newest(0)).unwrap();
        assert!(kinds(cache).is_empty());
    }

    #[test]
    fn what_another_process_writes_or_has_removed_is_no_entry() {
        let directory = tempfile::tempdir().unwrap();
        let cache = directory.path();
        fs::create_dir_all(cache.join("symbols")).unwrap();
        let written = cache.join("symbols/.tmpA1b2C3");
        fs::write(&written, "0 T x").unwrap();
        assert!(kinds(cache).is_empty());
        assert_eq!(prune(cache, Keep::newest(0)).unwrap(), 0);
        assert!(written.is_file());
        let gone = cache.join("symbols/gone");
        assert_eq!(size(&gone).unwrap(), 0);
        assert!(Made::new(&gone, None).unwrap().is_none());
        assert_eq!(entry("symbols", "gone".to_owned(), &gone).unwrap(), None);
        // It goes between the look and the removal.
        fs::write(&gone, "0 T x").unwrap();
        let made = Made::new(&gone, None).unwrap().unwrap();
        fs::remove_file(&gone).unwrap();
        assert!(made.remove().unwrap());
    }

    #[test]
    fn what_cannot_be_looked_at_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("symbols");
        fs::write(&file, "").unwrap();
        let error = list(directory.path()).unwrap_err().to_string();
        assert!(error.starts_with(&file.display().to_string()), "{error}");
    }

    #[test]
    fn what_is_in_use_stays() {
        let directory = tempfile::tempdir().unwrap();
        let cache = directory.path();
        let all = Keep::newest(0);
        make(cache, "a", "aa", 0);
        let lock = Lock::acquire(&cache.join("snapshots/a.lock")).unwrap();
        assert_eq!(prune(cache, all).unwrap(), 0);
        assert_eq!(kinds(cache), ["snapshot", "initramfs"]);
        drop(lock);
        let linked = cache.join("linked");
        fs::hard_link(cache.join("snapshots/a/memory"), &linked).unwrap();
        assert_eq!(prune(cache, all).unwrap(), 0);
        fs::remove_file(linked).unwrap();
        let lock = Lock::share(&cache.join("initramfs/aa.lock")).unwrap();
        assert!(prune(cache, all).unwrap() > 0);
        assert_eq!(kinds(cache), ["initramfs"]);
        drop(lock);
        assert!(prune(cache, all).unwrap() > 0);
        assert!(kinds(cache).is_empty());
    }
}

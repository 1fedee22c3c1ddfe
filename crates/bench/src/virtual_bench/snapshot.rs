// SPDX-License-Identifier: MIT OR Apache-2.0
//! Booted guests, kept as files, so that each boots only once.
//!
//! ```text
//! CACHE/snapshots/KEY/memory         the guest's memory
//!                     devices        the state of its devices, as QEMU migrates it
//!                     console        what it said until then
//!                     snapshot.toml  what it is, and the files' lengths and checksums
//! ```
//!
//! KEY covers everything that decides what the guest does, so a snapshot never has to be brought up
//! to date: another guest has another key. The guest stops itself at one exact instruction, so a
//! snapshot that is made again leads to the same samples.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Seek as _, SeekFrom};
use std::ops::Range;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::cache::touch;
use punctual_kernels::paths::write_atomically;

/// The name of the file that makes a directory a snapshot; it is written last.
const RECORD: &str = "snapshot.toml";

/// The contents of `snapshot.toml`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotRecord {
    /// The kernel's id.
    pub kernel: String,
    /// The whole kernel command line.
    pub cmdline: String,
    /// Memory, in mebibytes.
    pub memory_mib: u32,
    /// Nanoseconds of virtual time per instruction.
    pub ns_per_insn: u32,
    /// QEMU's version.
    pub qemu: String,
    /// The initramfs's SHA-256.
    pub initramfs_sha256: String,
    /// Its files.
    pub files: Files,
}

/// The files of a snapshot, by name.
pub type Files = BTreeMap<String, Sum>;

/// Length and checksum that tell an intact file from any other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sum {
    /// Its length, in bytes.
    pub length: u64,
    /// The CRC-32 of its contents.
    pub crc32: u32,
}

const FILES: [&str; 3] = ["memory", "devices", "console"];

/// A snapshot in the cache.
#[derive(Clone, Debug)]
pub struct Snapshot {
    directory: PathBuf,
    /// The contents of its `snapshot.toml`.
    pub record: SnapshotRecord,
    /// The time at which it was last made or resumed.
    pub used: SystemTime,
}

impl Snapshot {
    /// Opens the snapshot in a directory; `None` if there is none.
    pub fn open(directory: &Path) -> Option<Self> {
        let path = directory.join(RECORD);
        Some(Self {
            directory: directory.to_owned(),
            record: toml::from_str(&fs::read_to_string(&path).ok()?).ok()?,
            used: fs::metadata(path).and_then(|meta| meta.modified()).ok()?,
        })
    }

    /// Makes a snapshot of the files `memory`, `devices` and `console` in `work`.
    pub fn keep(
        work: &Path,
        directory: &Path,
        describe: impl FnOnce(Files) -> SnapshotRecord,
    ) -> io::Result<Self> {
        // What is there is damaged, or it would have been used.
        remove(directory)?;
        fs::create_dir_all(directory)?;
        let mut files = Files::new();
        for name in FILES {
            let path = directory.join(name);
            fs::rename(work.join(name), &path)?;
            File::open(&path)?.sync_all()?;
            files.insert(name.to_owned(), sum(&path)?);
        }
        let text = toml::to_string(&describe(files)).map_err(io::Error::other)?;
        write_atomically(&directory.join(RECORD), text.as_bytes())?;
        Self::open(directory).ok_or_else(|| io::Error::other("the snapshot is gone again"))
    }

    /// Returns true if its files are the ones that were kept. A wrong bit in the guest's memory
    /// would end up as a wrong number.
    pub fn is_sound(&self) -> bool {
        let is_sound = |name: &str| {
            let found = sum(&self.directory.join(name));
            found.is_ok_and(|found| self.record.files.get(name) == Some(&found))
        };
        FILES.into_iter().all(is_sound)
    }

    /// Links the files to be resumed into `work`, where they stay whatever becomes of the snapshot.
    pub fn link(&self, work: &Path) -> io::Result<()> {
        for name in ["memory", "devices"] {
            fs::hard_link(self.directory.join(name), work.join(name))?;
        }
        Ok(())
    }

    /// The guest's console output up to the snapshot.
    pub fn console(&self) -> io::Result<Vec<u8>> {
        fs::read(self.directory.join("console"))
    }

    /// Returns true if a guest runs on it. Its files are then linked elsewhere, too, and its
    /// removal would free no space.
    pub fn is_linked(&self) -> bool {
        fs::metadata(self.directory.join("memory")).is_ok_and(|meta| meta.nlink() > 1)
    }

    /// The space it takes on disk, in bytes.
    pub fn space(&self) -> u64 {
        let space = |name| fs::metadata(self.directory.join(name)).map_or(0, |m| m.blocks() * 512);
        FILES.into_iter().map(space).sum()
    }

    /// Marks it as used now.
    pub fn touch(&self) -> io::Result<()> {
        touch(&self.directory.join(RECORD))
    }
}

/// All snapshots below a directory, most recently used first.
pub fn list(snapshots: &Path) -> io::Result<Vec<Snapshot>> {
    let entries = match fs::read_dir(snapshots) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut found = Vec::new();
    for entry in entries {
        found.extend(Snapshot::open(&entry?.path()));
    }
    found.sort_by_key(|snapshot: &Snapshot| std::cmp::Reverse(snapshot.used));
    Ok(found)
}

/// Removes a snapshot; its record goes first, so that half a snapshot counts as none.
pub fn remove(directory: &Path) -> io::Result<()> {
    for done in [
        fs::remove_file(directory.join(RECORD)),
        fs::remove_dir_all(directory),
    ] {
        match done {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// The length and checksum of a file. Four fifths of a guest's memory are holes. They are not read:
/// the kernel would fill a page of its own with zeros for each of them, which takes a second for a
/// fresh snapshot.
fn sum(path: &Path) -> io::Result<Sum> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    let mut hasher = crc32fast::Hasher::new();
    let mut piece = vec![0; 1 << 20];
    let mut at = 0;
    while let Some(data) = next_data(&file, at)? {
        add(&mut hasher, &mut io::repeat(0), data.start - at, &mut piece)?;
        file.seek(SeekFrom::Start(data.start))?;
        add(&mut hasher, &mut file, data.end - data.start, &mut piece)?;
        at = data.end;
    }
    add(&mut hasher, &mut io::repeat(0), length - at, &mut piece)?;
    let crc32 = hasher.finalize();
    Ok(Sum { length, crc32 })
}

/// The next part of a file at or after `at` that is not a hole.
fn next_data(file: &File, at: u64) -> io::Result<Option<Range<u64>>> {
    let start = match rustix::fs::seek(file, rustix::fs::SeekFrom::Data(at)) {
        Err(Errno::NXIO) => return Ok(None),
        start => start?,
    };
    let end = rustix::fs::seek(file, rustix::fs::SeekFrom::Hole(start))?;
    Ok(Some(start..end))
}

fn add(
    hasher: &mut crc32fast::Hasher,
    from: &mut impl Read,
    mut length: u64,
    piece: &mut [u8],
) -> io::Result<()> {
    while length > 0 {
        let most = length.min(piece.len() as u64) as usize;
        from.read_exact(&mut piece[..most])?;
        hasher.update(&piece[..most]);
        length -= most as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn record(files: Files) -> SnapshotRecord {
        SnapshotRecord {
            kernel: "k".into(),
            cmdline: "quiet".into(),
            memory_mib: 64,
            ns_per_insn: 1,
            qemu: "QEMU".into(),
            initramfs_sha256: "00".into(),
            files,
        }
    }

    fn keep(cache: &Path, memory: &[u8]) -> Snapshot {
        fs::write(cache.join("memory"), memory).unwrap();
        fs::write(cache.join("devices"), "CPU").unwrap();
        fs::write(cache.join("console"), "booted\n").unwrap();
        Snapshot::keep(cache, &cache.join("snapshots/key"), record).unwrap()
    }

    #[test]
    fn what_is_kept_is_found_again_and_a_later_one_takes_its_place() {
        let cache = tempfile::tempdir().unwrap();
        keep(cache.path(), b"first");
        let snapshot = keep(cache.path(), b"the second");
        snapshot.link(cache.path()).unwrap();
        assert_eq!(
            fs::read(cache.path().join("memory")).unwrap(),
            b"the second"
        );
        assert_eq!(snapshot.console().unwrap(), b"booted\n");
        assert!(snapshot.is_sound());
        let listed = list(&cache.path().join("snapshots")).unwrap();
        assert_eq!(listed.len(), 1);
        assert_eq!(listed[0].record, snapshot.record);
    }

    #[test]
    fn a_hole_counts_as_the_zeros_that_it_reads_as() {
        let cache = tempfile::tempdir().unwrap();
        let path = cache.path().join("memory");
        let mut file = File::create(&path).unwrap();
        file.set_len(5 << 20).unwrap();
        for place in [1 << 20, (3 << 20) + 7] {
            file.seek(SeekFrom::Start(place)).unwrap();
            file.write_all(b"punctual").unwrap();
        }
        file.sync_all().unwrap();
        let whole = fs::read(&path).unwrap();
        let expected = Sum {
            length: 5 << 20,
            crc32: crc32fast::hash(&whole),
        };
        assert_eq!(sum(&path).unwrap(), expected);
        fs::write(&path, whole).unwrap();
        assert_eq!(sum(&path).unwrap(), expected);
    }

    #[test]
    fn a_damaged_snapshot_is_not_sound() {
        let cache = tempfile::tempdir().unwrap();
        let snapshot = keep(cache.path(), b"memory");
        let file = snapshot.directory.join("memory");
        for damaged in ["mamory", "mem", ""] {
            fs::write(&file, damaged).unwrap();
            assert!(!snapshot.is_sound(), "{damaged}");
        }
        fs::remove_file(&file).unwrap();
        assert!(!snapshot.is_sound());
        fs::write(&file, "memory").unwrap();
        assert!(snapshot.is_sound());
    }

    #[test]
    fn a_removed_snapshot_leaves_nothing_and_removing_nothing_is_no_error() {
        let cache = tempfile::tempdir().unwrap();
        let snapshot = keep(cache.path(), b"memory");
        remove(&snapshot.directory).unwrap();
        remove(&snapshot.directory).unwrap();
        assert!(list(&cache.path().join("snapshots")).unwrap().is_empty());
        assert!(list(&cache.path().join("nowhere")).unwrap().is_empty());
    }
}

//! Booted guests, kept as files, so that a boot is paid for once.
//!
//! ```text
//! CACHE/snapshots/KEY/memory         QEMU's migration stream
//!                     console        what the guest said until then
//!                     snapshot.toml  what it is, and the stream's length and checksum
//! ```
//!
//! KEY covers everything that decides what the guest does, so a snapshot never has to be
//! brought up to date: another guest has another key. The guest stops itself at one exact
//! instruction, so a snapshot that is made anew resumes into the same samples.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use crate::paths::write_atomically;

/// The file that makes a directory a snapshot; written last.
const RECORD: &str = "snapshot.toml";

/// `snapshot.toml`.
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
    /// The length of `memory`, in bytes.
    pub length: u64,
    /// The CRC-32 of `memory`.
    pub crc32: u32,
}

/// A snapshot in the cache.
#[derive(Clone, Debug)]
pub struct Snapshot {
    directory: PathBuf,
    /// What it is.
    pub record: SnapshotRecord,
    /// When it was last made or resumed.
    pub used: SystemTime,
}

impl Snapshot {
    /// The snapshot in a directory; `None` where there is none, or none that is whole.
    pub fn open(directory: &Path) -> Option<Self> {
        let path = directory.join(RECORD);
        let record: SnapshotRecord = toml::from_str(&fs::read_to_string(&path).ok()?).ok()?;
        let length = fs::metadata(directory.join("memory")).ok()?.len();
        (length == record.length).then_some(Self {
            directory: directory.to_owned(),
            record,
            used: fs::metadata(path).and_then(|meta| meta.modified()).ok()?,
        })
    }

    /// Makes a snapshot of the files `memory` and `console` in `work`.
    pub fn keep(
        work: &Path,
        directory: &Path,
        describe: impl FnOnce(u64, u32) -> SnapshotRecord,
    ) -> io::Result<Self> {
        // What is there is torn, or it would have been used.
        remove(directory)?;
        fs::create_dir_all(directory)?;
        fs::rename(work.join("console"), directory.join("console"))?;
        let memory = directory.join("memory");
        fs::rename(work.join("memory"), &memory)?;
        File::open(&memory)?.sync_all()?;
        let (length, crc32) = checksum(&memory)?;
        let record = describe(length, crc32);
        let text = toml::to_string(&record).map_err(io::Error::other)?;
        write_atomically(&directory.join(RECORD), text.as_bytes())?;
        Self::open(directory).ok_or_else(|| io::Error::other("the snapshot is gone again"))
    }

    /// Whether the guest's memory is what was kept. A wrong bit in it would be a wrong
    /// number in the end.
    pub fn is_sound(&self) -> io::Result<bool> {
        let found = checksum(&self.memory())?;
        Ok(found == (self.record.length, self.record.crc32))
    }

    /// The file with the guest's memory.
    pub fn memory(&self) -> PathBuf {
        self.directory.join("memory")
    }

    /// What the guest had said until then.
    pub fn console(&self) -> io::Result<Vec<u8>> {
        fs::read(self.directory.join("console"))
    }

    /// Notes that it is used now.
    pub fn touch(&self) -> io::Result<()> {
        File::options()
            .append(true)
            .open(self.directory.join(RECORD))?
            .set_modified(SystemTime::now())
    }
}

/// All snapshots below a directory, those used last first.
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

/// Removes a snapshot; its record first, so that half of it is none.
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

fn checksum(path: &Path) -> io::Result<(u64, u32)> {
    let mut file = File::open(path)?;
    let mut hasher = crc32fast::Hasher::new();
    let mut piece = vec![0; 1 << 20];
    let mut length = 0;
    loop {
        match file.read(&mut piece)? {
            0 => return Ok((length, hasher.finalize())),
            got => {
                hasher.update(&piece[..got]);
                length += got as u64;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(length: u64, crc32: u32) -> SnapshotRecord {
        SnapshotRecord {
            kernel: "k".into(),
            cmdline: "quiet".into(),
            memory_mib: 64,
            ns_per_insn: 1,
            qemu: "QEMU".into(),
            initramfs_sha256: "00".into(),
            length,
            crc32,
        }
    }

    fn keep(cache: &Path, memory: &[u8]) -> Snapshot {
        fs::write(cache.join("memory"), memory).unwrap();
        fs::write(cache.join("console"), "booted\n").unwrap();
        Snapshot::keep(cache, &cache.join("snapshots/key"), record).unwrap()
    }

    #[test]
    fn what_is_kept_is_found_again_and_a_later_one_takes_its_place() {
        let cache = tempfile::tempdir().unwrap();
        keep(cache.path(), b"first");
        let snapshot = keep(cache.path(), b"the second");
        assert_eq!(fs::read(snapshot.memory()).unwrap(), b"the second");
        assert_eq!(snapshot.console().unwrap(), b"booted\n");
        assert!(snapshot.is_sound().unwrap());
        let listed = list(&cache.path().join("snapshots")).unwrap();
        assert_eq!(listed.len(), 1);
        assert_eq!(listed[0].record, snapshot.record);
    }

    #[test]
    fn a_torn_snapshot_is_none_and_a_damaged_one_is_not_sound() {
        let cache = tempfile::tempdir().unwrap();
        let snapshot = keep(cache.path(), b"memory");
        fs::write(snapshot.memory(), b"mamory").unwrap();
        assert!(!snapshot.is_sound().unwrap());
        fs::write(snapshot.memory(), b"mem").unwrap();
        assert!(Snapshot::open(&snapshot.directory).is_none());
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

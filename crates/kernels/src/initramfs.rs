// SPDX-License-Identifier: MIT OR Apache-2.0
//! The guest's first and only file system.
//!
//! It is made here, in process, and is the same to the byte wherever it is made from the same
//! files: entries are sorted, numbered in order, belong to root and date from 1970. That matters
//! because the guest unpacks it, instruction by instruction, before anything is measured.

mod applets;
mod error;
mod guest;
mod libraries;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry as MapEntry;
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::path::Path;

use cpio::newc::{self, Builder};
use punctual_model::Architecture;

use crate::{checksum, elf};

pub use error::{InitramfsError, build_command};
pub use guest::{Program, base, find_busybox};

/// The entry at one path in the guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A directory.
    Directory {
        /// Permission bits.
        mode: u32,
    },
    /// A file and all its bytes.
    File {
        /// Permission bits.
        mode: u32,
        /// Its contents.
        bytes: Vec<u8>,
    },
    /// A symbolic link.
    Symlink {
        /// The target.
        target: String,
    },
    /// A device node.
    Device {
        /// Character or block device.
        kind: DeviceKind,
        /// Major number.
        major: u32,
        /// Minor number.
        minor: u32,
    },
}

/// The two kinds of device nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceKind {
    /// Such as `/dev/console`.
    Character,
    /// Such as `/dev/vda`.
    Block,
}

/// An initramfs being made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Initramfs {
    /// Entries by path, without the leading slash. A directory sorts before its contents, which is
    /// the order in which the kernel must make them.
    entries: BTreeMap<String, Entry>,
}

impl Initramfs {
    /// Makes an empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// Puts a directory and its parents. An existing directory also gets this mode.
    pub fn dir(&mut self, path: &str, mode: u32) -> Result<&mut Self, InitramfsError> {
        let name = self.name_with_parents(path)?;
        match self.entries.entry(name) {
            MapEntry::Occupied(entry) if !matches!(entry.get(), Entry::Directory { .. }) => {
                return Err(InitramfsError::Conflict(path.to_owned()));
            }
            entry => *entry.or_insert(Entry::Directory { mode }) = Entry::Directory { mode },
        }
        Ok(self)
    }

    /// Puts a file and its parent directories.
    pub fn file(
        &mut self,
        path: &str,
        mode: u32,
        bytes: impl Into<Vec<u8>>,
    ) -> Result<&mut Self, InitramfsError> {
        let bytes = bytes.into();
        self.put(path, Entry::File { mode, bytes })
    }

    /// Puts a symbolic link and its parent directories.
    pub fn symlink(&mut self, path: &str, target: &str) -> Result<&mut Self, InitramfsError> {
        let target = target.to_owned();
        self.put(path, Entry::Symlink { target })
    }

    /// Puts a device node and its parent directories.
    pub fn device(
        &mut self,
        path: &str,
        kind: DeviceKind,
        major: u32,
        minor: u32,
    ) -> Result<&mut Self, InitramfsError> {
        let device = Entry::Device { kind, major, minor };
        self.put(path, device)
    }

    /// Puts a program of this machine, which is an x86-64 one, with its dynamic loader and every
    /// library that it needs; or a static program for another processor.
    ///
    /// Libraries keep their paths if they are where the dynamic loader looks without a
    /// cache; all others go beside the C library, which is there.
    pub fn program(
        &mut self,
        architecture: Architecture,
        host_path: &Path,
        guest_path: &str,
    ) -> Result<&mut Self, InitramfsError> {
        let bytes = read(host_path, "a program")?;
        let wrong = |found| InitramfsError::Program {
            path: host_path.to_owned(),
            architecture,
            found,
        };
        if architecture.is_foreign() {
            // Its libraries are not here.
            guest::require_static(&bytes, architecture).map_err(wrong)?;
            return self.file(guest_path, 0o755, bytes);
        }
        let needs = elf::needs(&bytes, architecture).map_err(wrong)?;
        self.file(guest_path, 0o755, bytes)?;
        for library in libraries::of(host_path, &needs)? {
            let bytes = read(&library.host_path, "a library")?;
            self.file(&library.guest_path, 0o755, bytes)?;
        }
        Ok(self)
    }

    /// The entry at a path.
    pub fn get(&self, path: &str) -> Option<&Entry> {
        self.entries.get(path.strip_prefix('/')?)
    }

    /// All paths, sorted, with their entries.
    pub fn entries(&self) -> impl Iterator<Item = (String, &Entry)> {
        let absolute = |(name, entry)| (format!("/{name}"), entry);
        self.entries.iter().map(absolute)
    }

    /// The archive in the form that the kernel takes.
    pub fn finish(&self) -> Result<Vec<u8>, InitramfsError> {
        let mut archive = Vec::new();
        for (index, (name, entry)) in self.entries.iter().enumerate() {
            let builder = header(Builder::new(name).ino(index as u32 + 1), entry);
            let contents = contents(entry);
            let len = u32::try_from(contents.len())
                .map_err(|_| InitramfsError::TooLarge(name.clone()))?;
            let mut writer = builder.write(archive, len);
            archive = writer
                .write_all(contents)
                .and_then(|()| writer.finish())
                .map_err(InitramfsError::Archive)?;
        }
        newc::trailer(archive).map_err(InitramfsError::Archive)
    }

    /// The archive's SHA-256: equal digests mean equal guests.
    pub fn digest(&self) -> Result<String, InitramfsError> {
        Ok(checksum::of_bytes(&self.finish()?))
    }

    /// Puts an entry. The same entry may be put twice: two programs may need one library.
    fn put(&mut self, path: &str, entry: Entry) -> Result<&mut Self, InitramfsError> {
        let name = self.name_with_parents(path)?;
        match self.entries.entry(name) {
            MapEntry::Occupied(there) if *there.get() != entry => {
                return Err(InitramfsError::Conflict(path.to_owned()));
            }
            there => _ = there.or_insert(entry),
        }
        Ok(self)
    }

    fn name_with_parents(&mut self, path: &str) -> Result<String, InitramfsError> {
        let name = entry_name(path).ok_or_else(|| InitramfsError::BadPath(path.to_owned()))?;
        for (end, _) in name.match_indices('/') {
            let parent = &name[..end];
            let entry = self.entries.entry(parent.to_owned());
            let there = entry.or_insert(Entry::Directory { mode: 0o755 });
            if !matches!(there, Entry::Directory { .. }) {
                return Err(InitramfsError::Conflict(format!("/{parent}")));
            }
        }
        Ok(name.to_owned())
    }
}

/// The regular files in an archive, by path without the leading slash, in its order.
pub fn files(mut archive: &[u8]) -> io::Result<Vec<(String, Vec<u8>)>> {
    let mut files = Vec::new();
    loop {
        let mut reader = newc::Reader::new(archive)?;
        let entry = reader.entry().clone();
        if entry.is_trailer() {
            return Ok(files);
        }
        if entry.mode() & FORMAT == REGULAR {
            let mut bytes = Vec::new();
            reader.read_to_end(&mut bytes)?;
            if bytes.len() != entry.file_size() as usize {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            files.push((entry.name().to_owned(), bytes));
        }
        archive = reader.finish()?;
    }
}

/// A path without its leading slash, if it is absolute and plain.
fn entry_name(path: &str) -> Option<&str> {
    let name = path.strip_prefix('/')?;
    let plain = |part: &str| !matches!(part, "" | "." | "..") && !part.contains('\0');
    // The archive ends with an entry of this name.
    (name.split('/').all(plain) && name != "TRAILER!!!").then_some(name)
}

/// The bits of a mode that give the kind of an entry.
const FORMAT: u32 = 0o170_000;
const REGULAR: u32 = 0o100_000;

fn header(builder: Builder, entry: &Entry) -> Builder {
    const DIRECTORY: u32 = 0o040_000;
    const SYMLINK: u32 = 0o120_000;
    const CHARACTER: u32 = 0o020_000;
    const BLOCK: u32 = 0o060_000;
    match entry {
        Entry::Directory { mode } => builder.mode(DIRECTORY | mode).nlink(2),
        Entry::File { mode, .. } => builder.mode(REGULAR | mode),
        Entry::Symlink { .. } => builder.mode(SYMLINK | 0o777),
        Entry::Device { kind, major, minor } => {
            let format = match kind {
                DeviceKind::Character => CHARACTER,
                DeviceKind::Block => BLOCK,
            };
            builder
                .mode(format | 0o600)
                .rdev_major(*major)
                .rdev_minor(*minor)
        }
    }
}

fn contents(entry: &Entry) -> &[u8] {
    match entry {
        Entry::File { bytes, .. } => bytes,
        Entry::Symlink { target } => target.as_bytes(),
        Entry::Directory { .. } | Entry::Device { .. } => &[],
    }
}

fn read(path: &Path, expected: &'static str) -> Result<Vec<u8>, InitramfsError> {
    fs::read(path).map_err(|error| InitramfsError::Unreadable {
        path: path.to_owned(),
        expected,
        error,
    })
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    const HOSTS: &str = "127.0.0.1 localhost\n";

    fn sample() -> Initramfs {
        let mut initramfs = Initramfs::new();
        initramfs
            .file("/etc/hosts", 0o644, HOSTS)
            .and_then(|i| i.symlink("/bin/sh", "busybox"))
            .and_then(|i| i.device("/dev/console", DeviceKind::Character, 5, 1))
            .and_then(|i| i.dir("/tmp", 0o1777))
            .and_then(|i| i.file("/empty", 0o600, ""))
            .unwrap();
        initramfs
    }

    /// Name, mode, contents, device.
    type Parsed = (String, u32, Vec<u8>, (u32, u32));

    /// The entries in the order of the archive.
    fn parse(archive: &[u8]) -> Vec<Parsed> {
        let mut entries = Vec::new();
        let mut rest = archive;
        loop {
            let mut reader = newc::Reader::new(rest).unwrap();
            let entry = reader.entry().clone();
            if entry.is_trailer() {
                return entries;
            }
            assert_eq!(entry.ino() as usize, entries.len() + 1);
            assert_eq!((entry.uid(), entry.gid(), entry.mtime()), (0, 0, 0));
            let mut bytes = Vec::new();
            reader.read_to_end(&mut bytes).unwrap();
            let device = (entry.rdev_major(), entry.rdev_minor());
            entries.push((entry.name().to_owned(), entry.mode(), bytes, device));
            rest = reader.finish().unwrap();
        }
    }

    #[test]
    fn the_archive_has_what_was_put_parents_first() {
        let entries = parse(&sample().finish().unwrap());
        let hosts = HOSTS.as_bytes().to_vec();
        let expected = [
            ("bin", 0o040_755, vec![], (0, 0)),
            ("bin/sh", 0o120_777, b"busybox".to_vec(), (0, 0)),
            ("dev", 0o040_755, vec![], (0, 0)),
            ("dev/console", 0o020_600, vec![], (5, 1)),
            ("empty", 0o100_600, vec![], (0, 0)),
            ("etc", 0o040_755, vec![], (0, 0)),
            ("etc/hosts", 0o100_644, hosts, (0, 0)),
            ("tmp", 0o041_777, vec![], (0, 0)),
        ];
        let expected = expected.map(|(name, mode, bytes, dev)| (name.to_owned(), mode, bytes, dev));
        assert_eq!(entries, expected);
    }

    #[test]
    fn its_files_are_read_back_and_an_archive_that_is_cut_is_refused() {
        let archive = sample().finish().unwrap();
        let expected = [("empty", ""), ("etc/hosts", HOSTS)];
        let expected = expected.map(|(name, text)| (name.to_owned(), text.as_bytes().to_vec()));
        assert_eq!(files(&archive).unwrap(), expected);
        // Behind the trailer's name nothing is needed.
        let end = archive.len() - 8;
        for cut in 0..end {
            assert!(files(&archive[..cut]).is_err(), "{cut} of {end}");
        }
    }

    #[test]
    fn the_order_of_putting_does_not_matter() {
        let mut other = Initramfs::new();
        other
            .file("/empty", 0o600, "")
            .and_then(|i| i.dir("/tmp", 0o1777))
            .and_then(|i| i.dir("/dev", 0o755))
            .and_then(|i| i.device("/dev/console", DeviceKind::Character, 5, 1))
            .and_then(|i| i.symlink("/bin/sh", "busybox"))
            .and_then(|i| i.file("/etc/hosts", 0o644, HOSTS))
            .unwrap();
        assert_eq!(other.finish().unwrap(), sample().finish().unwrap());
        assert_eq!(other.digest().unwrap(), sample().digest().unwrap());
        assert_eq!(
            checksum::of_bytes(&sample().finish().unwrap()),
            sample().digest().unwrap()
        );
    }

    #[test]
    fn the_program_cpio_reads_it() {
        if !punctual_skip::program("cpio") {
            return;
        }
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), sample().finish().unwrap()).unwrap();
        let input = fs::File::open(file.path()).unwrap();
        let output = Command::new("cpio")
            .args(["-t", "--quiet"])
            .stdin(input)
            .output();
        let output = output.unwrap();
        assert!(output.status.success());
        let names = String::from_utf8(output.stdout).unwrap();
        assert_eq!(names.lines().count(), 8);
        assert!(names.contains("dev/console\n"));
    }

    #[test]
    fn two_things_of_one_path_are_refused() {
        let mut initramfs = sample();
        assert!(initramfs.file("/etc/hosts", 0o644, HOSTS).is_ok());
        let other = initramfs.file("/etc/hosts", 0o644, "x").map(|_| ());
        assert!(matches!(other, Err(InitramfsError::Conflict(_))));
        let below = initramfs.file("/bin/sh/x", 0o644, "x").map(|_| ());
        assert!(matches!(below, Err(InitramfsError::Conflict(path)) if path == "/bin/sh"));
        let directory = initramfs.dir("/empty", 0o755).map(|_| ());
        assert!(matches!(directory, Err(InitramfsError::Conflict(_))));
        let file = initramfs.file("/tmp", 0o755, "").map(|_| ());
        assert!(matches!(file, Err(InitramfsError::Conflict(_))));
    }

    #[test]
    fn paths_are_absolute_and_plain() {
        for path in [
            "",
            "/",
            "etc",
            "/etc/",
            "//etc",
            "/etc/../x",
            "/./x",
            "/TRAILER!!!",
        ] {
            let put = Initramfs::new().file(path, 0o644, "").map(|_| ());
            assert!(matches!(put, Err(InitramfsError::BadPath(_))), "{path}");
        }
    }

    #[test]
    fn a_program_comes_with_its_loader_and_libraries() {
        let mut initramfs = Initramfs::new();
        initramfs
            .program(Architecture::Amd64, Path::new("/bin/ls"), "/usr/bin/ls")
            .unwrap();
        let paths: Vec<String> = initramfs.entries().map(|(path, _)| path).collect();
        let has = |part: &str| paths.iter().filter(|path| path.contains(part)).count();
        assert_eq!(has("/usr/bin/ls"), 1, "{paths:?}");
        assert_eq!(has("ld-linux-x86-64.so.2"), 1, "{paths:?}");
        assert_eq!(has("/libc.so.6"), 1, "{paths:?}");
        // A second program may need the same libraries.
        initramfs
            .program(Architecture::Amd64, Path::new("/bin/ls"), "/usr/bin/dir")
            .unwrap();
        assert_eq!(initramfs.entries().count(), paths.len() + 1);
    }

    #[test]
    fn a_script_is_no_program() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("script");
        fs::write(&path, "#!/bin/sh\n").unwrap();
        let error = Initramfs::new()
            .program(Architecture::Amd64, &path, "/bin/x")
            .map(|_| ());
        let error = error.unwrap_err().to_string();
        assert!(
            error.contains("expected an x86-64 program, found a script"),
            "{error}"
        );
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Made-up machines: their files in a directory.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::rc::Rc;

use flate2::Compression;
use flate2::write::GzEncoder;
use tempfile::TempDir;

use crate::Machine;

pub const RELEASE: &str = "6.12.117-rt1";
pub const CONFIG: &str = "/boot/config-6.12.117-rt1";

/// A directory in memory, if there is one: a disk would write each file that is replaced.
fn in_memory() -> TempDir {
    tempfile::tempdir_in("/dev/shm")
        .or_else(|_| tempfile::tempdir())
        .unwrap()
}

/// A thread's `stat`, by its name, its flags and its priority.
macro_rules! stat {
    ($name:literal, $flags:literal, $priority:literal) => {
        concat!(
            "701 (",
            $name,
            ") S 1 1 1 0 -1 ",
            $flags,
            " 0 0 0 0 0 0 0 0 20 0 1 0 5 0 0 0 0 0 0 ",
            "0 0 0 0 0 0 0 0 0 17 0 ",
            $priority,
            " 1 0 0 0 0 0 0 0 0 0 0 0"
        )
    };
}
pub(crate) use stat;

/// The `cpuinfo` of an Intel CPU, with further flags.
macro_rules! cpuinfo {
    ($flags:literal) => {
        concat!(
            "vendor_id\t: GenuineIntel\nflags\t\t: fpu tsc ",
            $flags,
            "\n"
        )
    };
}
pub(crate) use cpuinfo;

/// The registers of a CPU, with the counter of SMIs at their end.
macro_rules! msr {
    ($count:literal) => {
        concat!(
            "0123456789012345678901234567890123456789012345678901",
            $count
        )
    };
}
pub(crate) use msr;

/// A difference of one machine from another.
#[derive(Clone, Copy, Debug)]
pub enum Edit {
    /// A file has this content.
    File(&'static str, &'static str),
    /// There is no such file or directory.
    Gone(&'static str),
    /// A file is renamed: this release replaces the sound machine's in its path.
    Rename(&'static str, &'static str),
    /// An option of the kernel is on.
    Option(&'static str),
    /// An option of the kernel, or a boot argument, is not given.
    NoOption(&'static str),
    /// A further boot argument.
    Argument(&'static str),
}

/// A machine's files, and its directory once it is made.
#[derive(Clone)]
pub struct Tree {
    files: BTreeMap<String, Vec<u8>>,
    links: Vec<(&'static str, &'static str)>,
    empty: Vec<&'static str>,
    directories: Rc<std::cell::RefCell<Vec<TempDir>>>,
}

impl Tree {
    pub fn empty() -> Self {
        Self {
            files: BTreeMap::new(),
            links: Vec::new(),
            empty: Vec::new(),
            directories: Rc::default(),
        }
    }

    /// A machine on which no check finds anything.
    pub fn sound() -> Self {
        let mut tree = Self::empty();
        for line in include_str!("sound.txt")
            .lines()
            .filter(|line| !line.starts_with('#'))
        {
            let (path, text) = line.split_once(" = ").unwrap_or((line, ""));
            let text = text
                .replace("\\n", "\n")
                .replace("\\t", "\t")
                .replace("\\0", "\0");
            tree.files.insert(path.to_owned(), text.into_bytes());
        }
        tree
    }

    pub fn files(&self) -> impl Iterator<Item = &String> {
        self.files.keys()
    }

    fn words(&mut self, path: &str, edit: impl FnOnce(&str) -> String) {
        if let Some(text) = self.files.get_mut(path) {
            *text = edit(std::str::from_utf8(text).unwrap()).into_bytes();
        }
    }

    pub fn edited(mut self, edits: &[Edit]) -> Self {
        for edit in edits {
            match *edit {
                Edit::File(path, text) => {
                    self.files.insert(path.to_owned(), text.as_bytes().to_vec());
                }
                Edit::Gone(path) => {
                    let below = format!("{path}/");
                    self.files
                        .retain(|own, _| own != path && !own.starts_with(&below));
                }
                Edit::Rename(path, release) => {
                    let text = self.files.remove(path).unwrap();
                    self.files.insert(path.replace(RELEASE, release), text);
                }
                Edit::Option(name) => {
                    self.words(CONFIG, |text| format!("{text}\nCONFIG_{name}=y\n"));
                }
                Edit::NoOption(name) => {
                    let line = format!("CONFIG_{name}=");
                    let is_kept = |own: &&str| !own.starts_with(&line);
                    self.words(CONFIG, |text| {
                        text.lines().filter(is_kept).collect::<Vec<_>>().join("\n")
                    });
                    let argument = format!("{name}=");
                    let is_kept = |own: &&str| !own.starts_with(&argument);
                    self.words("/proc/cmdline", |text| {
                        text.split(' ')
                            .filter(is_kept)
                            .collect::<Vec<_>>()
                            .join(" ")
                    });
                }
                Edit::Argument(word) => {
                    self.words("/proc/cmdline", |text| format!("{text} {word}"));
                }
            }
        }
        self
    }

    pub fn packed_config(mut self, text: &str) -> Self {
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(text.as_bytes()).unwrap();
        self.files
            .insert("/proc/config.gz".into(), packed.finish().unwrap());
        self
    }

    pub fn linked(mut self, link: &'static str, to: &'static str) -> Self {
        self.links.push((link, to));
        self
    }

    /// A directory without files.
    pub fn directory(mut self, path: &'static str) -> Self {
        self.empty.push(path);
        self
    }

    /// The machine; its directory exists as long as the tree.
    pub fn machine(&self) -> Machine {
        let directory = self.make();
        let machine = Machine::new(directory.path());
        self.directories.borrow_mut().push(directory);
        machine
    }

    /// Writes the files to a directory.
    pub fn make(&self) -> TempDir {
        let directory = in_memory();
        let at = |path: &str| {
            let path = directory.path().join(path.trim_start_matches('/'));
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            path
        };
        for (path, text) in &self.files {
            fs::write(at(path), text).unwrap();
        }
        for (link, to) in &self.links {
            symlink(to, at(link)).unwrap();
        }
        for path in &self.empty {
            fs::create_dir_all(at(path)).unwrap();
        }
        directory
    }
}

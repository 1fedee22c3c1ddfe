// SPDX-License-Identifier: MIT OR Apache-2.0
//! A whole userland for the programs of a guest: a directory, or a tar file such as an exported
//! container image. It becomes a part of the guest's initramfs.
//!
//! Names and links stay as they are. Everything belongs to root there. Device nodes, sockets and
//! pipes, the setuid and setgid bits, and the contents of `/dev`, `/proc` and `/sys` are left out.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use punctual_model::Architecture;
use punctual_model::suite::{ROOT, ROOT_PATH};
use serde::Deserialize;
use tar::EntryType;

use crate::elf;
use crate::initramfs::{Entry, Initramfs, InitramfsError};
use crate::packed::{Packing, unpack};

/// The greatest size of a userland for a guest, in bytes.
const SIZE_MAX: u64 = 2 << 30;

/// Directories that belong to the kernel.
const OF_KERNEL: [&str; 3] = ["dev", "proc", "sys"];

/// The most symbolic links followed in a path, as by the kernel.
const LINKS_MAX: usize = 40;

/// The mask for the mode of a file, without setuid and setgid.
const MODE: u32 = 0o1777;

/// The prefix that marks a file which a layer removes; `EMPTIED` marks a directory whose earlier
/// contents it removes.
const TAKEN_AWAY: &str = ".wh.";
const EMPTIED: &str = ".wh..wh..opq";

/// The reason why something cannot be a userland, or lacks a program.
#[derive(Debug, thiserror::Error)]
pub enum UserlandError {
    /// It cannot be read.
    #[error("{}: expected a userland: a directory, or a tar file such as of `docker export`, found: {error}", .path.display())]
    Unreadable {
        /// The file or directory.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
    /// Some file in it cannot be in a guest.
    #[error("{}: {what}", .path.display())]
    Unfit {
        /// The userland.
        path: PathBuf,
        /// The fault, and advice.
        what: String,
    },
}

/// A userland.
#[derive(Clone, Debug)]
pub struct Userland {
    path: PathBuf,
    /// Entries by path, without the leading slash.
    entries: BTreeMap<String, Entry>,
    /// The number of bytes in its files, at most.
    size: u64,
    /// The number of device nodes, sockets and pipes that were left out.
    left_out: usize,
    /// The number of files that had setuid or setgid.
    lowered: usize,
}

impl Userland {
    /// Reads the userland in a directory or in a tar file: that of `docker export`, or that of
    /// `docker save` with one image; plain, or packed by gzip, xz or zstd.
    ///
    /// # Errors
    /// If it cannot be read, has names that cannot be in a guest, or is larger than 2 GiB.
    pub fn read(path: &Path) -> Result<Self, UserlandError> {
        let mut userland = Self {
            path: path.to_owned(),
            entries: BTreeMap::new(),
            size: 0,
            left_out: 0,
            lowered: 0,
        };
        let read = if path.is_dir() {
            userland.take_directory(path, "")
        } else {
            userland.take_file()
        };
        read.map_err(|failure| match failure {
            Failure::Io(error) => UserlandError::Unreadable {
                path: path.to_owned(),
                error,
            },
            Failure::Unfit(what) => UserlandError::Unfit {
                path: path.to_owned(),
                what,
            },
        })?;
        Ok(userland)
    }

    /// The number of bytes in its files, including those that a later layer replaces.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// A description in one line: its size, and the parts that were left out.
    pub fn told(&self) -> String {
        let is_file = |entry: &&Entry| matches!(entry, Entry::File { .. });
        let files = self.entries.values().filter(is_file).count();
        let mebibytes = self.size().div_ceil(1 << 20);
        let mut told = format!(
            "root {}: {files} files, {mebibytes} MiB",
            self.path.display()
        );
        let left_out = [
            (self.left_out, "device nodes, sockets and pipes"),
            (self.lowered, "setuid or setgid bits"),
        ];
        for (count, what) in left_out.into_iter().filter(|(count, _)| *count > 0) {
            let _ = write!(told, "; without {count} {what}");
        }
        told
    }

    /// Checks that a program in it can start on this architecture, as far as the files show. A name
    /// is looked up along the path that it has in a guest.
    ///
    /// # Errors
    /// The reason why it cannot.
    pub fn check_program(
        &self,
        name: &str,
        architecture: Architecture,
    ) -> Result<(), UserlandError> {
        let unfit = |what: String| UserlandError::Unfit {
            path: self.path.clone(),
            what,
        };
        let found = if name.contains('/') {
            self.follow(name)
        } else {
            let mut directories = ROOT_PATH.split(':');
            directories.find_map(|directory| self.follow(&format!("{directory}/{name}")))
        };
        let Some(Entry::File { mode, bytes }) = found else {
            return Err(unfit(format!(
                "expected the program {name} in it, found none{}: its path is that within the \
                 root, and `--file` brings one of this machine",
                found.map_or("", |_| " but a directory")
            )));
        };
        if mode & 0o111 == 0 {
            return Err(unfit(format!("{name} in it is not executable")));
        }
        let reader = if let Some(line) = bytes.strip_prefix(b"#!") {
            let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default();
            let line = String::from_utf8_lossy(line);
            Some(
                line.split_whitespace()
                    .next()
                    .unwrap_or_default()
                    .to_owned(),
            )
        } else {
            let needs = elf::needs(bytes, architecture);
            let needs = needs.map_err(|found| {
                unfit(format!(
                    "expected {name} in it as an {architecture} program, found {found}"
                ))
            })?;
            needs.interpreter
        };
        match reader {
            Some(reader) if self.follow(&reader).is_none() => Err(unfit(format!(
                "{name} in it needs {reader}, which it has not"
            ))),
            _ => Ok(()),
        }
    }

    /// Puts it at the root of a guest's programs, with the directories that are mounted there, and
    /// with files of this machine at their own paths.
    ///
    /// # Errors
    /// If two entries would have one path.
    pub fn put_into(
        &self,
        initramfs: &mut Initramfs,
        files: &[(String, u32, Vec<u8>)],
    ) -> Result<(), InitramfsError> {
        for (name, entry) in &self.entries {
            let path = format!("{ROOT}/{name}");
            match entry {
                Entry::Directory { mode } => initramfs.dir(&path, *mode)?,
                Entry::File { mode, bytes } => initramfs.file(&path, *mode, &bytes[..])?,
                Entry::Symlink { target } => initramfs.symlink(&path, target)?,
                Entry::Device { .. } => continue,
            };
        }
        for name in OF_KERNEL {
            initramfs.dir(&format!("{ROOT}/{name}"), 0o755)?;
        }
        if !self.entries.contains_key("tmp") {
            initramfs.dir(&format!("{ROOT}/tmp"), 0o1777)?;
        }
        for (path, mode, bytes) in files {
            initramfs.file(&format!("{ROOT}{path}"), *mode, &bytes[..])?;
        }
        Ok(())
    }

    /// The entry at a path within it, with all links followed.
    fn follow(&self, path: &str) -> Option<&Entry> {
        let mut names: Vec<String> = path.rsplit('/').map(str::to_owned).collect();
        let mut at: Vec<String> = Vec::new();
        let mut links = 0;
        while let Some(name) = names.pop() {
            match &*name {
                "" | "." => continue,
                ".." => {
                    at.pop();
                    continue;
                }
                _ => at.push(name),
            }
            if let Entry::Symlink { target } = self.entries.get(&at.join("/"))? {
                links += 1;
                if links > LINKS_MAX {
                    return None;
                }
                if target.starts_with('/') {
                    at.clear();
                } else {
                    at.pop();
                }
                names.extend(target.rsplit('/').map(str::to_owned));
            }
        }
        self.entries.get(&at.join("/"))
    }

    fn take_directory(&mut self, directory: &Path, name: &str) -> Result<(), Failure> {
        for found in fs::read_dir(directory).map_err(at(directory))? {
            let found = found.map_err(at(directory))?;
            let path = found.path();
            let own = found.file_name();
            let own = own.to_str().ok_or_else(|| not_utf8(&path))?;
            let name = format!("{name}/{own}");
            let about = found.metadata().map_err(at(&path))?;
            let mode = about.permissions().mode();
            if about.is_symlink() {
                let target = fs::read_link(&path).map_err(at(&path))?;
                let target = target.to_str().ok_or_else(|| not_utf8(&path))?.to_owned();
                self.put(&name, Entry::Symlink { target })?;
            } else if about.is_dir() {
                let mode = mode & MODE;
                self.put(&name, Entry::Directory { mode })?;
                if !is_of_kernel(&name) {
                    self.take_directory(&path, &name)?;
                }
            } else if about.is_file() {
                let mut file = File::open(&path).map_err(at(&path))?;
                self.put_file(&name, mode, &mut file)?;
            } else {
                self.left_out += 1;
            }
        }
        Ok(())
    }

    fn take_file(&mut self) -> Result<(), Failure> {
        let bytes = unpacked(fs::read(&self.path)?)?;
        let Some(layers) = layers(&bytes)? else {
            return self.take_tar(&bytes);
        };
        for layer in layers {
            let layer = unpacked(layer)?;
            self.take_away(&layer)?;
            self.take_tar(&layer)?;
        }
        Ok(())
    }

    /// Removes the files that a layer of an image marks as removed.
    fn take_away(&mut self, layer: &[u8]) -> Result<(), Failure> {
        for found in tar::Archive::new(layer).entries()? {
            let name = name_of(&found?.path_bytes())?;
            let (directory, own) = name.rsplit_once('/').unwrap_or(("", &name));
            let below = |directory: &str| {
                if directory.is_empty() {
                    String::new()
                } else {
                    format!("{directory}/")
                }
            };
            if own == EMPTIED {
                let gone = below(directory);
                self.entries.retain(|name, _| !name.starts_with(&gone));
            } else if let Some(own) = own.strip_prefix(TAKEN_AWAY) {
                let gone = format!("{}{own}", below(directory));
                let within = below(&gone);
                self.entries
                    .retain(|name, _| *name != gone && !name.starts_with(&within));
            }
        }
        Ok(())
    }

    fn take_tar(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        for found in tar::Archive::new(bytes).entries()? {
            let mut found = found?;
            let name = name_of(&found.path_bytes())?;
            let own = name.rsplit('/').next().unwrap_or_default();
            if name.is_empty() || own.starts_with(TAKEN_AWAY) {
                continue;
            }
            let mode = found.header().mode()?;
            let target = |found: &tar::Entry<'_, &[u8]>| -> Result<String, Failure> {
                let target = found.link_name_bytes().unwrap_or_default().into_owned();
                String::from_utf8(target).map_err(|_| not_utf8(Path::new(&name)))
            };
            match found.header().entry_type() {
                EntryType::Directory => {
                    let mode = mode & MODE;
                    self.put(&name, Entry::Directory { mode })?;
                }
                EntryType::Symlink => {
                    let target = target(&found)?;
                    self.put(&name, Entry::Symlink { target })?;
                }
                EntryType::Link => {
                    let target = name_of(target(&found)?.as_bytes())?;
                    let same = self.entries.get(&target).cloned();
                    let same = same.ok_or_else(|| {
                        Failure::Unfit(format!(
                            "its {name} is a link to {target}, which does not stand before it"
                        ))
                    });
                    if !is_of_kernel(&name) {
                        let same = same?;
                        if let Entry::File { bytes, .. } = &same {
                            self.grow(bytes.len())?;
                        }
                        self.put(&name, same)?;
                    }
                }
                EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => {
                    self.put_file(&name, mode, &mut found)?;
                }
                EntryType::XGlobalHeader => {}
                _ => self.left_out += 1,
            }
        }
        Ok(())
    }

    fn put_file(&mut self, name: &str, mode: u32, file: &mut impl Read) -> Result<(), Failure> {
        if is_of_kernel(name) {
            return Ok(());
        }
        let mut bytes = Vec::new();
        file.take(SIZE_MAX + 1)
            .read_to_end(&mut bytes)
            .map_err(at(Path::new(name)))?;
        self.grow(bytes.len())?;
        self.lowered += usize::from(mode & 0o6000 != 0);
        let mode = mode & MODE;
        self.put(name, Entry::File { mode, bytes })
    }

    fn grow(&mut self, length: usize) -> Result<(), Failure> {
        self.size += length as u64;
        if self.size > SIZE_MAX {
            return Err(too_large());
        }
        Ok(())
    }

    /// Puts an entry; it replaces an earlier one at the same path.
    fn put(&mut self, name: &str, entry: Entry) -> Result<(), Failure> {
        let name = name.trim_start_matches('/');
        if name.contains('\0') {
            return Err(Failure::Unfit(format!(
                "its name {name:?} is none for a file"
            )));
        }
        for (end, _) in name.match_indices('/') {
            let parent = &name[..end];
            let there = self.entries.entry(parent.to_owned());
            let there = there.or_insert(Entry::Directory { mode: 0o755 });
            if !matches!(there, Entry::Directory { .. }) {
                return Err(Failure::Unfit(format!(
                    "its {name} lies below {parent}, which is no directory"
                )));
            }
        }
        let is_directory = |entry: &Entry| matches!(entry, Entry::Directory { .. });
        if self.entries.get(name).is_some_and(is_directory) && !is_directory(&entry) {
            let within = format!("{name}/");
            self.entries.retain(|name, _| !name.starts_with(&within));
        }
        self.entries.insert(name.to_owned(), entry);
        Ok(())
    }
}

/// The fault in a userland that is being read.
enum Failure {
    Io(io::Error),
    Unfit(String),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Turns an error into one that names the file within the userland.
fn at(path: &Path) -> impl Fn(io::Error) -> Failure {
    let path = path.to_owned();
    move |error| {
        let told = format!("{}: {error}", path.display());
        Failure::Io(io::Error::new(error.kind(), told))
    }
}

fn not_utf8(path: &Path) -> Failure {
    Failure::Unfit(format!(
        "its {} has a name that is no UTF-8: leave it out",
        path.display()
    ))
}

fn too_large() -> Failure {
    let most = SIZE_MAX >> 20;
    Failure::Unfit(format!(
        "expected at most {most} MiB for a guest, found more"
    ))
}

/// Returns true if the path is one of the kernel's directories, or lies in one.
fn is_of_kernel(name: &str) -> bool {
    let first = name.trim_start_matches('/').split('/').next();
    first.is_some_and(|first| OF_KERNEL.contains(&first))
}

/// The name of a file in a tar file, without the part that stands for its root. A name that leads
/// out of the root is refused.
fn name_of(bytes: &[u8]) -> Result<String, Failure> {
    let Ok(name) = std::str::from_utf8(bytes) else {
        let name = String::from_utf8_lossy(bytes).into_owned();
        return Err(not_utf8(Path::new(&name)));
    };
    let parts: Vec<&str> = name
        .split('/')
        .filter(|part| !["", "."].contains(part))
        .collect();
    if parts.contains(&"..") {
        return Err(Failure::Unfit(format!(
            "its name {name} leads out of the root: expected names without .."
        )));
    }
    Ok(parts.join("/"))
}

/// The bytes of a file that may be packed.
fn unpacked(bytes: Vec<u8>) -> Result<Vec<u8>, Failure> {
    let packing = Packing::of(&bytes);
    unpack(bytes, packing, SIZE_MAX).map_err(|error| match error.kind() {
        io::ErrorKind::FileTooLarge => too_large(),
        _ => error.into(),
    })
}

/// An image as `docker save` describes it.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Image {
    layers: Vec<String>,
}

/// The layers of an image of `docker save`, lowest first; `None` if this is not one.
fn layers(bytes: &[u8]) -> Result<Option<Vec<Vec<u8>>>, Failure> {
    const ALONE: &str = "`docker export $(docker create IMAGE) -o image.tar` writes one that can \
                         be read";
    let mut files: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    for found in tar::Archive::new(bytes).entries()? {
        let mut found = found?;
        let name = name_of(&found.path_bytes())?;
        let is_of_image = ["manifest.json", "oci-layout"].contains(&&*name)
            || name.ends_with("/layer.tar")
            || name.starts_with("blobs/");
        if is_of_image && found.header().entry_type() == EntryType::Regular {
            let mut bytes = Vec::new();
            found.read_to_end(&mut bytes)?;
            files.insert(name, bytes);
        }
    }
    let Some(manifest) = files.get("manifest.json") else {
        if files.contains_key("oci-layout") {
            return Err(Failure::Unfit(format!("it is an image of OCI: {ALONE}")));
        }
        return Ok(None);
    };
    let Ok(images) = serde_json::from_slice::<Vec<Image>>(manifest) else {
        // A file of this name may be anybody's.
        return Ok(None);
    };
    let [image] = &images[..] else {
        let count = images.len();
        return Err(Failure::Unfit(format!(
            "expected one image, found {count}: {ALONE}"
        )));
    };
    let layers = image.layers.iter().map(|name| {
        // Two layers may be the same file.
        let layer = files.get(name).cloned();
        layer.ok_or_else(|| Failure::Unfit(format!("its layer {name} is not in it: {ALONE}")))
    });
    layers.collect::<Result<_, _>>().map(Some)
}

#[cfg(test)]
mod tests;

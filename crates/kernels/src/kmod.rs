// SPDX-License-Identifier: MIT OR Apache-2.0
//! Punctual's own kernel modules, built for kernels that do not run on this machine.
//!
//! Their sources are compiled into this program and written out to be built, so that an installed
//! Punctual needs no source tree. The modules are kept by the digest of the sources and by the
//! kernel's release: `CACHE/kmod/DIGEST/RELEASE/stall.ko`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use include_dir::{Dir, DirEntry, File, include_dir};

use punctual_model::Architecture;

use crate::Kernel;
use crate::apt::Lists;
use crate::build::BuildError;
use crate::checksum;
use crate::paths::Lock;

static SOURCES: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/../../kmod");

/// The names of all modules.
pub const NAMES: [&str; 3] = ["backfire", "pulse", "stall"];

/// The exit status of `kmod/build` if there are no headers.
const NO_HEADERS: i32 = 3;

/// The reason why modules cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum KmodError {
    /// The headers for that kernel are missing.
    #[error("no headers for {release} ({said})")]
    NoHeaders {
        /// The kernel's release.
        release: String,
        /// The message of the package tools.
        said: String,
    },
    /// The modules do not compile.
    #[error("the modules cannot be built for {release}: {said}")]
    Build {
        /// The kernel's release.
        release: String,
        /// The last output of the compiler.
        said: String,
    },
    /// The modules were not built with their kernel.
    #[error(
        "Punctual's modules of this version were not built with {0}: build it again (`punctual kernel build`)"
    )]
    NotBuilt(String),
    /// A file cannot be used.
    #[error("{}: {error}", .path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
}

/// The modules of these names for a kernel: those built with it, or else built now.
pub fn of_kernel(
    cache: &Path,
    kernel: &Kernel,
    names: &[String],
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<PathBuf>, KmodError> {
    let Some(built) = &kernel.built else {
        return modules(cache, kernel, names, progress);
    };
    let directory = built.join(built_directory());
    if directory.is_dir() {
        let path = |name: &String| directory.join(format!("{name}.ko"));
        return Ok(names.iter().map(path).collect());
    }
    Err(KmodError::NotBuilt(kernel.id.clone()))
}

/// The modules of these names for a kernel, built if need be. Its headers are looked up in its
/// suites of Debian, or in the system's own lists if it has none.
pub fn modules(
    cache: &Path,
    kernel: &Kernel,
    names: &[String],
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<PathBuf>, KmodError> {
    let release = &kernel.release;
    let base = cache.join("kmod").join(short_digest());
    let built = base.join(release);
    let lock = base.join(format!("{release}.lock"));
    let _lock = Lock::acquire(&lock).map_err(at(&lock))?;
    if !built.is_dir() {
        progress(&format!("building kernel modules for {release}"));
        build(&base, kernel, cache, &built, progress)?;
    }
    let path = |name: &String| built.join(format!("{name}.ko"));
    Ok(names.iter().map(path).collect())
}

fn build(
    base: &Path,
    kernel: &Kernel,
    cache: &Path,
    built: &Path,
    progress: &mut dyn FnMut(&str),
) -> Result<(), KmodError> {
    let release = &kernel.release;
    let lists = Lists::of(cache, kernel.architecture, &kernel.suites);
    let no_headers = |said: String| KmodError::NoHeaders {
        release: release.clone(),
        said,
    };
    let work = tempfile::tempdir_in(base).map_err(at(base))?;
    let (sources, out) = (work.path().join("kmod"), work.path().join("out"));
    fs::create_dir(&sources)
        .and_then(|()| SOURCES.extract(&sources))
        .map_err(at(&sources))?;
    let mut command = Command::new("sh");
    command
        .arg(sources.join("build"))
        .arg(release)
        .arg(&out)
        // The script keeps headers in punctual's own directory there.
        .env("XDG_CACHE_HOME", cache.parent().unwrap_or(cache))
        .stdin(Stdio::null());
    if let Some(config) = lists.apt_config() {
        command.env("APT_CONFIG", config);
    }
    // The programs that come with headers run here, whatever the headers are of.
    if kernel.architecture.is_foreign() {
        let own = Lists::fetch(cache, Architecture::Amd64, &kernel.suites, progress)
            .map_err(|error| no_headers(error.to_string()))?;
        if let Some(config) = own.apt_config() {
            command.env("KBUILD_APT_CONFIG", config);
        }
    }
    let output = command.output().map_err(at(Path::new("sh")))?;
    if !output.status.success() {
        let said = last_lines(&String::from_utf8_lossy(&output.stderr));
        let release = release.clone();
        return Err(match output.status.code() {
            Some(NO_HEADERS) => no_headers(said),
            _ => KmodError::Build { release, said },
        });
    }
    fs::rename(&out, built).map_err(at(built))
}

fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    lines[lines.len().saturating_sub(3)..].join("; ")
}

/// Writes the sources into a new directory; `own` gives each file to the user who compiles.
pub(crate) fn extract(
    to: &Path,
    own: &mut dyn FnMut(&Path) -> Result<(), BuildError>,
) -> Result<(), BuildError> {
    let mut write = |path: &Path, content: Option<&[u8]>| {
        let written = match content {
            Some(content) => fs::write(path, content),
            None => fs::create_dir(path),
        };
        written.map_err(BuildError::at(path))?;
        own(path)
    };
    write(to, None)?;
    let mut directories = vec![&SOURCES];
    while let Some(directory) = directories.pop() {
        for entry in directory.entries() {
            let content = match entry {
                DirEntry::Dir(directory) => {
                    directories.push(directory);
                    None
                }
                DirEntry::File(file) => Some(file.contents()),
            };
            write(&to.join(entry.path()), content)?;
        }
    }
    Ok(())
}

/// The files from which anybody with headers builds a module of this name, with their texts.
pub fn sources(name: &str) -> Vec<(&'static Path, &'static str)> {
    let common = ["Kbuild", "compat.h", "dkms.conf"];
    let mut files: Vec<&File<'_>> = common
        .iter()
        .filter_map(|common| SOURCES.get_file(common))
        .collect();
    let mut directories: Vec<&Dir<'_>> = SOURCES.get_dir(name).into_iter().collect();
    while let Some(directory) = directories.pop() {
        files.extend(directory.files());
        directories.extend(directory.dirs());
    }
    let text = |file: &&'static File<'_>| Some((file.path(), file.contents_utf8()?));
    files.iter().filter_map(text).collect()
}

/// Their directory among the files that were built with a kernel.
pub(crate) fn built_directory() -> String {
    format!("kmod-{}", short_digest())
}

/// The part of the sources' digest that names contain.
pub fn short_digest() -> String {
    digest()[..16].to_owned()
}

/// The digest of all sources, names included.
fn digest() -> String {
    let mut text = Vec::new();
    add(&SOURCES, &mut text);
    checksum::of_bytes(&text)
}

fn add(directory: &Dir<'_>, text: &mut Vec<u8>) {
    let mut entries: Vec<&DirEntry<'_>> = directory.entries().iter().collect();
    entries.sort_by_key(|entry| entry.path());
    for entry in entries {
        match entry {
            DirEntry::Dir(directory) => add(directory, text),
            DirEntry::File(file) => {
                text.extend(file.path().as_os_str().as_encoded_bytes());
                text.extend((file.contents().len() as u64).to_le_bytes());
                text.extend(file.contents());
            }
        }
    }
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> KmodError + use<> {
    let path = path.to_owned();
    move |error| KmodError::Io { path, error }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_module_has_its_sources_here() {
        for name in NAMES {
            assert!(
                SOURCES.get_file(format!("{name}/Kbuild")).is_some(),
                "{name}"
            );
        }
        assert!(SOURCES.get_file("build").is_some());
    }

    #[test]
    fn whoever_builds_a_module_gets_its_own_files_and_the_common_ones() {
        let names = |name| {
            let files = sources(name).into_iter();
            let mut names: Vec<&str> = files.filter_map(|(path, _)| path.to_str()).collect();
            names.sort_unstable();
            names
        };
        assert_eq!(
            names("stall"),
            [
                "Kbuild",
                "compat.h",
                "dkms.conf",
                "stall/Kbuild",
                "stall/stall.4",
                "stall/stall.c",
                "stall/uapi/stall.h"
            ]
        );
        for name in NAMES {
            assert!(names(name).contains(&&*format!("{name}/Kbuild")), "{name}");
        }
    }

    #[test]
    fn a_kernel_without_headers_says_so() {
        let cache = tempfile::tempdir().unwrap();
        let cache = cache.path().join("punctual");
        let names = ["stall".to_owned()];
        for (architecture, release) in [
            (Architecture::Amd64, "0.0.0-nobody"),
            (Architecture::Arm64, "0.0.0-nobody-arm64"),
        ] {
            let kernel = kernel(architecture, release);
            let error = modules(&cache, &kernel, &names, &mut |_| ()).unwrap_err();
            let error = error.to_string();
            assert!(
                error.contains(&format!("no headers for {release}")),
                "{error}"
            );
        }
    }

    fn kernel(architecture: Architecture, release: &str) -> Kernel {
        Kernel {
            id: "nobodys".to_owned(),
            release: release.to_owned(),
            architecture,
            image: PathBuf::new(),
            image_sha256: String::new(),
            boot: String::new(),
            modules: Vec::new(),
            origin: String::new(),
            config: None,
            suites: Vec::new(),
            package: None,
            built: None,
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! A kernel's record, and the ways in which its files come into a directory.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use punctual_model::Architecture;
use serde::{Deserialize, Serialize};

use crate::apt::{self, AptError, Candidate, Lists};
use crate::build::{BuildRecord, Product};
use crate::checksum;
use crate::error::{KernelError, at};
use crate::image;
use crate::module;
use crate::paths;
use crate::source::Source;

/// The contents of `kernel.toml`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) id: String,
    pub(super) release: String,
    /// The whole version text in the image.
    pub(super) banner: String,
    /// The architecture; records of earlier versions do not have it.
    #[serde(default, skip_serializing_if = "is_amd64")]
    pub(super) architecture: Architecture,
    pub(super) origin: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) package: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) deb_sha256: Option<String>,
    pub(super) vmlinuz_sha256: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) config_sha256: Option<String>,
    /// The suites of Debian in which it was found; empty for those of the system.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) suites: Vec<String>,
    /// The time at which it was put here, RFC 3339, UTC.
    pub(super) fetched_at: String,
    pub(super) boot: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) modules: Vec<RecordedModule>,
    /// The files that were built besides the kernel, as paths below `built/`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) built: Vec<RecordedModule>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) build: Option<BuildRecord>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde has it so")]
fn is_amd64(architecture: &Architecture) -> bool {
    *architecture == Architecture::Amd64
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RecordedModule {
    /// Its path below `modules/`: `0/stall.ko`.
    pub(super) file: String,
    pub(super) sha256: String,
}

/// Fetches the package that `id` asks for into `work`.
pub(super) fn fetch_into(
    work: &Path,
    cache: &Path,
    id: &str,
    source: &Source,
    progress: &mut dyn FnMut(&str),
) -> Result<Record, KernelError> {
    let mut say = |text: &str| progress(&format!("{id}: {text}"));
    let Found {
        lists,
        suites,
        candidate,
        unpacked,
    } = find(work, cache, id, source, &mut say)?;
    let info = image::inspect(unpacked.image()?)?;
    let config = match unpacked.config() {
        Ok(config) => config.to_owned(),
        Err(_) => fetch_config(work, &lists, &info.release, &mut say)?,
    };
    let (package, version) = (&candidate.package, &candidate.version);
    Ok(Record {
        id: id.to_owned(),
        release: info.release,
        banner: info.banner,
        architecture: info.architecture,
        origin: format!("debian package {package} {version}"),
        package: Some(package.clone()),
        version: Some(version.clone()),
        deb_sha256: Some(candidate.sha256.clone()),
        vmlinuz_sha256: sum(unpacked.image()?)?,
        config_sha256: Some(sum(&config)?),
        suites,
        fetched_at: now(),
        boot: source.boot.clone(),
        modules: Vec::new(),
        built: Vec::new(),
        build: None,
    })
}

/// A package, and the place where it was found.
struct Found {
    lists: Lists,
    suites: Vec<String>,
    candidate: Candidate,
    unpacked: apt::Unpacked,
}

/// The package that `id` asks for: among those that its source names, or else among all releases of
/// its line.
fn find(
    work: &Path,
    cache: &Path,
    id: &str,
    source: &Source,
    say: &mut dyn FnMut(&str),
) -> Result<Found, KernelError> {
    let mut find_in = |package: &str, suites: &[String]| {
        let lists = Lists::fetch(cache, source.architecture, suites, say)?;
        say(&format!("searching Debian for {}", plain(package)));
        let (candidate, unpacked) = newest(work, &lists, package, id, say)?;
        Ok(Found {
            lists,
            suites: suites.to_owned(),
            candidate,
            unpacked,
        })
    };
    match (find_in(&source.package, &source.suites), &source.releases) {
        (Err(KernelError::Apt(error)), Some(all)) if is_elsewhere(&error) => {
            find_in(&all.package, &all.suites)
        }
        (found, _) => found,
    }
}

/// Returns true if another archive may have the package that this one lacks.
fn is_elsewhere(error: &AptError) -> bool {
    matches!(error, AptError::NoVersion { .. } | AptError::NoPackage(_)) || error.is_gone()
}

/// The name at the beginning of a package pattern.
fn plain(pattern: &str) -> String {
    let name = pattern.trim_start_matches('^').replace("\\.", ".");
    let is_pattern = |c: char| "[(*+?$".contains(c);
    let begin = name.split(is_pattern).next().unwrap_or_default();
    begin.trim_end_matches(['.', '-']).to_owned()
}

/// The newest package that fits and can be downloaded: an index may name files that are gone.
fn newest(
    work: &Path,
    lists: &Lists,
    package: &str,
    id: &str,
    say: &mut dyn FnMut(&str),
) -> Result<(Candidate, apt::Unpacked), KernelError> {
    let mut gone = None;
    for candidate in apt::resolve(lists, package, id)? {
        match download_into(work, lists, &candidate, say) {
            Err(KernelError::Apt(error)) if error.is_gone() => {
                say(&format!("the archive does not have {}", candidate.version));
                gone = gone.or(Some(error));
            }
            found => return found.map(|unpacked| (candidate, unpacked)),
        }
    }
    Err(gone.expect("there is a candidate").into())
}

fn download_into(
    work: &Path,
    lists: &Lists,
    candidate: &Candidate,
    say: &mut dyn FnMut(&str),
) -> Result<apt::Unpacked, KernelError> {
    let (package, version) = (&candidate.package, &candidate.version);
    let megabytes = candidate.size.div_ceil(1_000_000);
    say(&format!("downloading {package} {version} ({megabytes} MB)"));
    let deb = apt::download(lists, candidate, work)?;
    say("unpacking the kernel");
    let unpacked = apt::unpack(&deb, work, apt::OTHER_KIND)?;
    fs::remove_file(&deb).map_err(at(&deb))?;
    Ok(unpacked)
}

/// Fetches the configuration, which is in a package of its own from Linux 7.2 on.
fn fetch_config(
    work: &Path,
    lists: &Lists,
    release: &str,
    say: &mut dyn FnMut(&str),
) -> Result<PathBuf, KernelError> {
    let candidate = apt::resolve_name(lists, &format!("linux-base-{release}"))?;
    let unpacked = download_into(work, lists, &candidate, say)?;
    Ok(unpacked.config()?.to_owned())
}

/// Copies a fetched kernel from its place in the cache into `work`, under another id.
pub(super) fn copy_into(
    work: &Path,
    id: &str,
    place: &Path,
    record: Record,
) -> Result<Record, KernelError> {
    for file in ["vmlinuz", "config"] {
        copy_file(&place.join(file), &work.join(file))?;
    }
    let id = id.to_owned();
    Ok(Record { id, ..record })
}

/// Copies a kernel of the user's own into `work`: an image, or a Debian package that contains one.
pub(super) fn add_into(
    work: &Path,
    id: &str,
    image: &Path,
    boot: &str,
    modules: &[PathBuf],
) -> Result<Record, KernelError> {
    let from = std::path::absolute(image).map_err(at(image))?;
    let copy = work.join("vmlinuz");
    let is_package = image.extension().is_some_and(|end| end == "deb");
    if is_package {
        let unpacked = apt::unpack(image, work, apt::NAME_ANOTHER)?;
        unpacked.image()?;
        unpacked.config()?;
    } else {
        image::inspect(image)?;
        copy_file(image, &copy)?;
    }
    // What is recorded is told from the copy, for the file may change meanwhile.
    let info = image::inspect(&copy)?;
    let config = if is_package {
        Some(sum(&work.join("config"))?)
    } else {
        copy_config(work, image, &info.release)?
    };
    Ok(Record {
        id: id.to_owned(),
        origin: format!("file {}", from.display()),
        package: None,
        version: None,
        deb_sha256: is_package.then(|| sum(image)).transpose()?,
        vmlinuz_sha256: sum(&copy)?,
        config_sha256: config,
        suites: Vec::new(),
        fetched_at: now(),
        boot: boot.trim().to_owned(),
        modules: add_modules(work, modules, &info.release)?,
        built: Vec::new(),
        build: None,
        release: info.release,
        banner: info.banner,
        architecture: info.architecture,
    })
}

/// Writes a kernel that was built into `work`.
pub(super) fn write_into(work: &Path, id: &str, product: Product) -> Result<Record, KernelError> {
    let write = |name: &str, bytes: &[u8]| {
        let path = work.join(name);
        paths::write_atomically(&path, bytes).map_err(at(&path))?;
        Ok::<_, KernelError>(checksum::of_bytes(bytes))
    };
    let vmlinuz_sha256 = write("vmlinuz", &product.image)?;
    let config_sha256 = write("config", product.config.as_bytes())?;
    let info = image::inspect(&work.join("vmlinuz"))?;
    let mut built = Vec::new();
    for (file, bytes) in product.files {
        let sha256 = write(&format!("built/{file}"), &bytes)?;
        built.push(RecordedModule { file, sha256 });
    }
    let record = product.record;
    let settings = record.settings.iter().map(|one| format!(" {one}"));
    Ok(Record {
        id: id.to_owned(),
        origin: format!(
            "built from {}, configuration of {}{}",
            record.described,
            record.config,
            settings.collect::<String>()
        ),
        package: None,
        version: None,
        deb_sha256: None,
        vmlinuz_sha256,
        config_sha256: Some(config_sha256),
        suites: Vec::new(),
        fetched_at: now(),
        boot: String::new(),
        modules: Vec::new(),
        release: info.release,
        banner: info.banner,
        architecture: info.architecture,
        built,
        build: Some(record),
    })
}

/// Copies a kernel that was built from its place in the cache into `work`, under another id.
pub(super) fn copy_built_into(
    work: &Path,
    id: &str,
    place: &Path,
    record: Record,
) -> Result<Record, KernelError> {
    let built = record.built.iter().map(|one| format!("built/{}", one.file));
    for file in ["vmlinuz", "config"]
        .map(str::to_owned)
        .into_iter()
        .chain(built)
    {
        let to = work.join(&file);
        let directory = to.parent().unwrap_or(work);
        fs::create_dir_all(directory).map_err(at(directory))?;
        copy_file(&place.join(&file), &to)?;
    }
    let id = id.to_owned();
    Ok(Record { id, ..record })
}

/// Copies a kernel's configuration, which distributions install beside it, under its release.
fn copy_config(work: &Path, image: &Path, release: &str) -> Result<Option<String>, KernelError> {
    let config = image.with_file_name(format!("config-{release}"));
    if !config.is_file() {
        return Ok(None);
    }
    let copy = work.join("config");
    copy_file(&config, &copy)?;
    sum(&copy).map(Some)
}

fn add_modules(
    work: &Path,
    modules: &[PathBuf],
    release: &str,
) -> Result<Vec<RecordedModule>, KernelError> {
    let mut recorded = Vec::new();
    for (index, path) in modules.iter().enumerate() {
        let module = module::read(path, release)?;
        // Two modules in different directories may have the same name.
        let file = format!("{index}/{}", module.file_name);
        let copy = work.join("modules").join(&file);
        paths::write_atomically(&copy, &module.bytes).map_err(at(&copy))?;
        recorded.push(RecordedModule {
            file,
            sha256: checksum::of_bytes(&module.bytes),
        });
    }
    Ok(recorded)
}

/// Copies the bytes, not the permissions: /boot/vmlinuz-* is often for root alone.
fn copy_file(from: &Path, to: &Path) -> Result<(), KernelError> {
    let mut source = fs::File::open(from).map_err(at(from))?;
    let mut target = fs::File::create(to).map_err(at(to))?;
    io::copy(&mut source, &mut target).map_err(at(to))?;
    Ok(())
}

pub(super) fn sum(path: &Path) -> Result<String, KernelError> {
    checksum::of_file(path).map_err(at(path))
}

fn now() -> String {
    let now = jiff::Timestamp::now();
    // A moment that cannot be rounded is told as it is.
    now.round(jiff::Unit::Second).unwrap_or(now).to_string()
}

//! The catalog: kernels in the cache.
//!
//! ```text
//! CACHE/kernels/ID/kernel.toml   what it is and where it came from
//!                  vmlinuz       the bzImage
//!                  config        its configuration, where known
//!                  modules/0/stall.ko …
//! CACHE/kernels/.lock-ID         held while the kernel is fetched, added or removed
//! CACHE/kernels/.work-ID         a kernel in the making
//! CACHE/kernels/.old-ID          a kernel on its way out
//! ```
//!
//! A kernel's directory is made beside its place and moved there when it is complete, so a
//! kernel is in the catalog as a whole or not at all. What a crash leaves of the last two is
//! cleared away by the next who works on a kernel of that id.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Kernel;
use super::apt::{self, AptError, Candidate};
use super::image::{self, ImageError};
use super::module::{self, ModuleError};
use super::source::{self, Source, SourceError};
use crate::checksum;
use crate::paths::{self, Lock};

/// Why a kernel cannot be had, added or removed.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// The id is not well-formed.
    #[error(
        "expected a kernel id of lower-case letters, digits and . _ + - that starts with a letter or digit, found \"{0}\""
    )]
    BadId(String),
    /// There is no such kernel.
    #[error(
        "expected one of the kernels {known}, found \"{id}\": choose one of these, or add your own with `punctual kernel add --id {id} /path/to/vmlinuz`"
    )]
    Unknown {
        /// What was asked for.
        id: String,
        /// What there is.
        known: String,
    },
    /// It has a source, and is not in the cache.
    #[error(
        "{0}: expected the kernel in the cache, found it not fetched yet: run `punctual kernel fetch {0}`"
    )]
    NotFetched(String),
    /// There is a kernel of this name.
    #[error(
        "{0}: expected a new kernel id, found one that exists: choose another, or replace it (`--replace`)"
    )]
    Taken(String),
    /// The name belongs to a source.
    #[error(
        "{0}: expected a kernel id of your own, found that of a kernel to be fetched: choose another, such as my-{0}"
    )]
    Reserved(String),
    /// A file in the cache is not what was put there.
    #[error("{}: expected sha256 {expected}, as when it was put there, found {found}: {advice}", .path.display())]
    Changed {
        /// The file.
        path: PathBuf,
        /// What its record says.
        expected: String,
        /// What it is.
        found: String,
        /// What to do.
        advice: String,
    },
    /// A kernel's record cannot be understood.
    #[error("{}: expected the record of a kernel, found: {error}: run `punctual kernel remove {id}`, then fetch or add it again", .path.display())]
    Record {
        /// The file.
        path: PathBuf,
        /// The kernel.
        id: String,
        /// What is wrong.
        error: String,
    },
    /// The image is no kernel for this bench.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// A module does not fit.
    #[error(transparent)]
    Module(#[from] ModuleError),
    /// The package cannot be had.
    #[error(transparent)]
    Apt(#[from] AptError),
    /// A source is not well-formed.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// Files cannot be read or written.
    #[error("{}: {error}", .path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What is wrong.
        error: io::Error,
    },
}

/// Makes an error of [`io::Error`] that names the path.
fn at(path: &Path) -> impl FnOnce(io::Error) -> KernelError + '_ {
    move |error| KernelError::Io {
        path: path.to_owned(),
        error,
    }
}

/// A kernel as tables show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// What users call it.
    pub id: String,
    /// A source's summary, or where an added kernel came from.
    pub summary: String,
    /// Whether it can be fetched by name.
    pub has_source: bool,
    /// Whether it is in the cache.
    pub state: State,
}

/// Whether a kernel is in the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// It is, with this release.
    Cached {
        /// What `uname -r` says there.
        release: String,
    },
    /// It can be fetched.
    NotFetched,
    /// It is there, and its record cannot be understood.
    Damaged {
        /// Why, and what to do.
        reason: String,
    },
}

/// `kernel.toml`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Record {
    id: String,
    release: String,
    /// The whole version text in the image.
    banner: String,
    origin: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    package: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deb_sha256: Option<String>,
    vmlinuz_sha256: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    config_sha256: Option<String>,
    /// When it was put here, RFC 3339, UTC.
    fetched_at: String,
    boot: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    modules: Vec<RecordedModule>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct RecordedModule {
    /// Below `modules/`: `0/stall.ko`.
    file: String,
    sha256: String,
}

/// The kernels in the cache, and those that can be fetched into it.
#[derive(Debug)]
pub struct Catalog {
    /// `CACHE/kernels`.
    directory: PathBuf,
    sources: Vec<Source>,
}

impl Catalog {
    /// Opens the catalog in Punctual's cache directory. Nothing is made or changed yet.
    pub fn open(cache_dir: &Path) -> Result<Self, KernelError> {
        Ok(Self {
            directory: cache_dir.join("kernels"),
            sources: source::all()?,
        })
    }

    /// The kernels that can be fetched by name.
    pub fn sources(&self) -> &[Source] {
        &self.sources
    }

    /// All kernels: the sources first, then what users added, each sorted by id.
    pub fn list(&self) -> Result<Vec<Listed>, KernelError> {
        let sources = self.sources.iter().map(|source| Listed {
            id: source.id.clone(),
            summary: source.summary.clone(),
            has_source: true,
            state: self.state(&source.id),
        });
        let added = self.added()?.into_iter().map(|id| Listed {
            summary: self.read_record(&id).map_or(String::new(), |r| r.origin),
            has_source: false,
            state: self.state(&id),
            id,
        });
        Ok(sources.chain(added).collect())
    }

    fn state(&self, id: &str) -> State {
        if !self.is_cached(id) {
            return State::NotFetched;
        }
        match self.read_record(id) {
            Ok(record) => State::Cached {
                release: record.release,
            },
            Err(error) => State::Damaged {
                reason: error.to_string(),
            },
        }
    }

    /// The ids in the cache that have no source.
    fn added(&self) -> Result<Vec<String>, KernelError> {
        let entries = match fs::read_dir(&self.directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(at(&self.directory))?,
        };
        let mut ids = Vec::new();
        for entry in entries {
            let name = entry.map_err(at(&self.directory))?.file_name();
            let id = name.to_string_lossy().into_owned();
            if check_id(&id).is_ok() && self.source(&id).is_none() && self.is_cached(&id) {
                ids.push(id);
            }
        }
        ids.sort();
        Ok(ids)
    }

    /// A kernel that is in the cache, after its files have been verified.
    pub fn get(&self, id: &str) -> Result<Kernel, KernelError> {
        check_id(id)?;
        if !self.is_cached(id) {
            return Err(self.absent(id));
        }
        let record = self.read_record(id)?;
        self.verify(&record)?;
        Ok(self.kernel(record))
    }

    /// A kernel from the cache, or else from its source.
    pub fn ensure(&self, id: &str, progress: &mut dyn FnMut(&str)) -> Result<Kernel, KernelError> {
        match self.get(id) {
            Err(KernelError::NotFetched(_)) => self.fetch(id, false, progress),
            result => result,
        }
    }

    /// Fetches a kernel from its source. What is in the cache already is returned at once,
    /// unless it is to be refreshed: then the newest package takes its place.
    pub fn fetch(
        &self,
        id: &str,
        refresh: bool,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Kernel, KernelError> {
        check_id(id)?;
        let Some(source) = self.source(id) else {
            // One that a user added is in the cache, and that is all there is to it.
            return self.get(id);
        };
        let _lock = self.lock(id, progress)?;
        // Another process may have fetched it while this one waited.
        if !refresh && self.is_cached(id) {
            return self.get(id);
        }
        progress(&format!("{id}: looking for {}", source.package));
        let candidate = apt::resolve(&source.package)?;
        let work = self.new_work_dir(id)?;
        let record = fetch_into(&work, source, &candidate, progress);
        self.install(&work, record)?;
        let kernel = self.get(id)?;
        progress(&format!("{id}: {} is ready", kernel.release));
        Ok(kernel)
    }

    /// Copies a user's own kernel into the cache. One of the same id is replaced only if that
    /// is asked for; its modules must have been built for it and are loaded in this order.
    pub fn add(
        &self,
        id: &str,
        image: &Path,
        boot: &str,
        modules: &[PathBuf],
        replace: bool,
    ) -> Result<Kernel, KernelError> {
        check_id(id)?;
        if self.source(id).is_some() {
            return Err(KernelError::Reserved(id.to_owned()));
        }
        let _lock = self.lock(id, &mut |_| ())?;
        if self.is_cached(id) && !replace {
            return Err(KernelError::Taken(id.to_owned()));
        }
        let work = self.new_work_dir(id)?;
        let record = add_into(&work, id, image, boot, modules);
        self.install(&work, record)?;
        self.get(id)
    }

    /// Removes a kernel from the cache. One that has a source can be fetched again.
    pub fn remove(&self, id: &str) -> Result<(), KernelError> {
        check_id(id)?;
        if !self.is_cached(id) {
            return Err(self.absent(id));
        }
        let _lock = self.lock(id, &mut |_| ())?;
        // Another process may have removed it while this one waited.
        if !self.is_cached(id) {
            return Err(self.absent(id));
        }
        self.retire(id)
    }

    fn source(&self, id: &str) -> Option<&Source> {
        self.sources.iter().find(|source| source.id == id)
    }

    fn is_cached(&self, id: &str) -> bool {
        self.record_path(id).exists()
    }

    fn place(&self, id: &str) -> PathBuf {
        self.directory.join(id)
    }

    fn record_path(&self, id: &str) -> PathBuf {
        self.place(id).join("kernel.toml")
    }

    fn absent(&self, id: &str) -> KernelError {
        if self.source(id).is_some() {
            return KernelError::NotFetched(id.to_owned());
        }
        let mut known: Vec<String> = self.sources.iter().map(|s| s.id.clone()).collect();
        known.extend(self.added().unwrap_or_default());
        KernelError::Unknown {
            id: id.to_owned(),
            known: known.join(", "),
        }
    }

    fn read_record(&self, id: &str) -> Result<Record, KernelError> {
        let path = self.record_path(id);
        let text = fs::read_to_string(&path).map_err(at(&path))?;
        toml::from_str(&text).map_err(|error| KernelError::Record {
            path,
            id: id.to_owned(),
            error: error.message().to_owned(),
        })
    }

    fn verify(&self, record: &Record) -> Result<(), KernelError> {
        let place = self.place(&record.id);
        self.verify_file(record, &place.join("vmlinuz"), &record.vmlinuz_sha256)?;
        if let Some(expected) = &record.config_sha256 {
            self.verify_file(record, &place.join("config"), expected)?;
        }
        for module in &record.modules {
            let path = place.join("modules").join(&module.file);
            self.verify_file(record, &path, &module.sha256)?;
        }
        Ok(())
    }

    fn verify_file(&self, record: &Record, path: &Path, expected: &str) -> Result<(), KernelError> {
        let found = match checksum::of_file(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => "no such file".to_owned(),
            result => result.map_err(at(path))?,
        };
        if found == expected {
            return Ok(());
        }
        let id = &record.id;
        let advice = match self.source(id) {
            Some(_) => format!("run `punctual kernel fetch --refresh {id}`"),
            None => format!("add it again with `punctual kernel add --replace --id {id}`"),
        };
        Err(KernelError::Changed {
            path: path.to_owned(),
            expected: expected.to_owned(),
            found,
            advice,
        })
    }

    fn kernel(&self, record: Record) -> Kernel {
        let place = self.place(&record.id);
        let modules = place.join("modules");
        Kernel {
            image: place.join("vmlinuz"),
            config: record.config_sha256.is_some().then(|| place.join("config")),
            modules: record
                .modules
                .iter()
                .map(|m| modules.join(&m.file))
                .collect(),
            id: record.id,
            release: record.release,
            image_sha256: record.vmlinuz_sha256,
            boot: record.boot,
            origin: record.origin,
        }
    }

    fn lock(&self, id: &str, progress: &mut dyn FnMut(&str)) -> Result<Lock, KernelError> {
        let path = self.directory.join(format!(".lock-{id}"));
        if let Some(lock) = Lock::try_acquire(&path).map_err(at(&path))? {
            return Ok(lock);
        }
        progress(&format!("{id}: waiting for another punctual"));
        Lock::acquire(&path).map_err(at(&path))
    }

    /// An empty directory to work in, beside the kernel's place. Needs the lock.
    fn new_work_dir(&self, id: &str) -> Result<PathBuf, KernelError> {
        let work = self.directory.join(format!(".work-{id}"));
        if work.exists() {
            fs::remove_dir_all(&work).map_err(at(&work))?;
        }
        fs::create_dir_all(&work).map_err(at(&work))?;
        Ok(work)
    }

    /// Moves a complete kernel to its place, or clears away what was begun. Needs the lock.
    fn install(&self, work: &Path, record: Result<Record, KernelError>) -> Result<(), KernelError> {
        let installed = record.and_then(|record| self.put(work, &record));
        if installed.is_err() {
            let _ = fs::remove_dir_all(work);
        }
        installed
    }

    fn put(&self, work: &Path, record: &Record) -> Result<(), KernelError> {
        let path = work.join("kernel.toml");
        let text = toml::to_string(record).expect("a record consists of texts");
        paths::write_atomically(&path, text.as_bytes()).map_err(at(&path))?;
        let place = self.place(&record.id);
        if place.exists() {
            self.retire(&record.id)?;
        }
        fs::rename(work, &place).map_err(at(&place))
    }

    /// Moves a kernel out of its place at once, then takes the time to remove it. Needs the
    /// lock.
    fn retire(&self, id: &str) -> Result<(), KernelError> {
        let old = self.directory.join(format!(".old-{id}"));
        if old.exists() {
            fs::remove_dir_all(&old).map_err(at(&old))?;
        }
        let place = self.place(id);
        fs::rename(&place, &old).map_err(at(&place))?;
        fs::remove_dir_all(&old).map_err(at(&old))
    }
}

/// Ids become names of files and parts of command lines.
pub(super) fn check_id(id: &str) -> Result<(), KernelError> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let sound = id.starts_with(plain) && id.chars().all(|c| plain(c) || "._+-".contains(c));
    if sound {
        return Ok(());
    }
    Err(KernelError::BadId(id.to_owned()))
}

fn fetch_into(
    work: &Path,
    source: &Source,
    candidate: &Candidate,
    progress: &mut dyn FnMut(&str),
) -> Result<Record, KernelError> {
    let id = &source.id;
    let (package, version) = (&candidate.package, &candidate.version);
    let megabytes = candidate.size.div_ceil(1_000_000);
    progress(&format!(
        "{id}: downloading {package} {version} ({megabytes} MB)"
    ));
    let deb = apt::download(candidate, work)?;
    progress(&format!("{id}: unpacking the kernel"));
    let unpacked = apt::unpack(&deb, work)?;
    fs::remove_file(&deb).map_err(at(&deb))?;
    let info = image::inspect(&unpacked.image)?;
    Ok(Record {
        id: id.clone(),
        release: info.release,
        banner: info.banner,
        origin: format!("debian package {package} {version}"),
        package: Some(package.clone()),
        version: Some(version.clone()),
        deb_sha256: Some(candidate.sha256.clone()),
        vmlinuz_sha256: sum(&unpacked.image)?,
        config_sha256: Some(sum(&unpacked.config)?),
        fetched_at: now(),
        boot: source.boot.clone(),
        modules: Vec::new(),
    })
}

fn add_into(
    work: &Path,
    id: &str,
    image: &Path,
    boot: &str,
    modules: &[PathBuf],
) -> Result<Record, KernelError> {
    image::inspect(image)?;
    let copy = work.join("vmlinuz");
    copy_file(image, &copy)?;
    // What is recorded is told from the copy, for the file may change meanwhile.
    let info = image::inspect(&copy)?;
    let from = std::path::absolute(image).map_err(at(image))?;
    Ok(Record {
        id: id.to_owned(),
        origin: format!("file {}", from.display()),
        package: None,
        version: None,
        deb_sha256: None,
        vmlinuz_sha256: sum(&copy)?,
        config_sha256: copy_config(work, image, &info.release)?,
        fetched_at: now(),
        boot: boot.trim().to_owned(),
        modules: add_modules(work, modules, &info.release)?,
        release: info.release,
        banner: info.banner,
    })
}

/// Distributions install a kernel's configuration beside it, under its release.
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

fn sum(path: &Path) -> Result<String, KernelError> {
    checksum::of_file(path).map_err(at(path))
}

fn now() -> String {
    jiff::Timestamp::now()
        .round(jiff::Unit::Second)
        .map_or_else(|_| String::new(), |time| time.to_string())
}

#[cfg(test)]
mod tests {
    use super::super::image::synthetic::bzimage;
    use super::super::module::synthetic::module_for;
    use super::*;

    struct Scratch {
        directory: tempfile::TempDir,
        catalog: Catalog,
    }

    impl Scratch {
        fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            let catalog = Catalog::open(&directory.path().join("cache")).unwrap();
            Self { directory, catalog }
        }

        fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
            let path = self.directory.path().join(name);
            fs::write(&path, bytes).unwrap();
            path
        }

        fn vmlinuz(&self) -> PathBuf {
            self.file("vmlinuz-6.12.1-test", &bzimage("6.12.1-test"))
        }

        fn add(&self, id: &str) -> Result<Kernel, KernelError> {
            self.catalog.add(id, &self.vmlinuz(), "", &[], false)
        }

        /// The names in the catalog's directory, but for locks.
        fn names(&self) -> Vec<String> {
            let mut names: Vec<String> = fs::read_dir(&self.catalog.directory)
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .filter(|name| !name.starts_with(".lock-"))
                .collect();
            names.sort();
            names
        }
    }

    #[test]
    fn a_kernel_is_added_listed_got_and_removed() {
        let scratch = Scratch::new();
        let vmlinuz = scratch.vmlinuz();
        scratch.file("config-6.12.1-test", b"CONFIG_64BIT=y\n");
        let modules = [
            scratch.file("stall.ko", &module_for("6.12.1-test")),
            scratch.file("pulse.ko", &module_for("6.12.1-test")),
        ];
        let catalog = &scratch.catalog;
        let added = catalog
            .add("mine", &vmlinuz, " preempt=full ", &modules, false)
            .unwrap();
        assert_eq!(added.release, "6.12.1-test");
        assert_eq!(added.boot, "preempt=full");
        assert_eq!(added.origin, format!("file {}", vmlinuz.display()));
        assert_eq!(added.image_sha256, sum(&vmlinuz).unwrap());
        assert_eq!(fs::read(&added.image).unwrap(), fs::read(&vmlinuz).unwrap());
        let config = fs::read(added.config.as_ref().unwrap()).unwrap();
        assert_eq!(config, b"CONFIG_64BIT=y\n");
        assert!(added.modules[0].ends_with("mine/modules/0/stall.ko"));
        assert!(added.modules[1].ends_with("mine/modules/1/pulse.ko"));

        assert_eq!(catalog.get("mine").unwrap(), added);
        assert_eq!(catalog.ensure("mine", &mut |_| ()).unwrap(), added);
        assert_eq!(catalog.fetch("mine", false, &mut |_| ()).unwrap(), added);
        let listed = catalog.list().unwrap();
        assert_eq!(listed.len(), catalog.sources().len() + 1);
        assert_eq!(listed[0].state, State::NotFetched);
        let last = listed.last().unwrap();
        assert_eq!((last.id.as_str(), last.has_source), ("mine", false));
        assert!(matches!(&last.state, State::Cached { release } if release == "6.12.1-test"));

        catalog.remove("mine").unwrap();
        assert!(scratch.names().is_empty());
        assert!(matches!(
            catalog.get("mine"),
            Err(KernelError::Unknown { .. })
        ));
        assert!(matches!(
            catalog.remove("mine"),
            Err(KernelError::Unknown { .. })
        ));
    }

    #[test]
    fn what_changed_in_the_cache_is_noticed() {
        let scratch = Scratch::new();
        let vmlinuz = scratch.vmlinuz();
        let modules = [scratch.file("stall.ko", &module_for("6.12.1-test"))];
        let kernel = scratch
            .catalog
            .add("mine", &vmlinuz, "", &modules, false)
            .unwrap();
        fs::write(&kernel.modules[0], "changed").unwrap();
        let error = scratch.catalog.get("mine").unwrap_err().to_string();
        assert!(error.contains("stall.ko: expected sha256"), "{error}");
        fs::write(&kernel.image, "changed").unwrap();
        let error = scratch.catalog.get("mine").unwrap_err().to_string();
        assert!(error.contains("vmlinuz: expected sha256"), "{error}");
        assert!(
            error.contains("punctual kernel add --replace --id mine"),
            "{error}"
        );
        fs::remove_file(&kernel.image).unwrap();
        let error = scratch.catalog.get("mine").unwrap_err().to_string();
        assert!(error.contains("found no such file"), "{error}");
    }

    #[test]
    fn an_id_is_taken_until_it_is_to_be_replaced() {
        let scratch = Scratch::new();
        scratch.add("mine").unwrap();
        let newer = scratch.file("newer", &bzimage("6.13.0"));
        let catalog = &scratch.catalog;
        let taken = catalog.add("mine", &newer, "", &[], false);
        assert!(matches!(taken, Err(KernelError::Taken(_))));
        assert_eq!(catalog.get("mine").unwrap().release, "6.12.1-test");
        catalog.add("mine", &newer, "", &[], true).unwrap();
        assert_eq!(catalog.get("mine").unwrap().release, "6.13.0");
        assert_eq!(scratch.names(), ["mine"]);
    }

    #[test]
    fn the_id_of_a_source_is_reserved() {
        let scratch = Scratch::new();
        let error = scratch.add("debian-6.12").unwrap_err();
        assert!(matches!(error, KernelError::Reserved(_)));
    }

    #[test]
    fn a_failed_addition_leaves_nothing_and_spoils_nothing() {
        let scratch = Scratch::new();
        scratch.add("mine").unwrap();
        let catalog = &scratch.catalog;
        let script = scratch.file("script", b"#!/bin/sh\n");
        let error = catalog.add("other", &script, "", &[], false).unwrap_err();
        assert!(error.to_string().contains("found a script"), "{error}");
        let wrong = [scratch.file("stall.ko", &module_for("5.10.0"))];
        let error = catalog.add("mine", &scratch.vmlinuz(), "", &wrong, true);
        assert!(matches!(error, Err(KernelError::Module(_))));
        assert_eq!(scratch.names(), ["mine"]);
        assert!(catalog.get("mine").is_ok());
    }

    #[test]
    fn ids_are_plain() {
        for id in ["debian-6.12-rt", "6.12", "a", "a_b+c.d-e"] {
            assert!(check_id(id).is_ok(), "{id}");
        }
        for id in ["", ".", "..", ".a", "-a", "A", "a/b", "a b", "ä", "a\n"] {
            assert!(matches!(check_id(id), Err(KernelError::BadId(_))), "{id}");
        }
        assert!(matches!(
            Scratch::new().catalog.get("../etc"),
            Err(KernelError::BadId(_))
        ));
    }

    #[test]
    fn what_is_not_there_is_explained() {
        let scratch = Scratch::new();
        let error = scratch.catalog.get("debian-6.12-rt").unwrap_err();
        assert!(
            error
                .to_string()
                .contains("`punctual kernel fetch debian-6.12-rt`")
        );
        scratch.add("mine").unwrap();
        let error = scratch.catalog.get("nobodys").unwrap_err().to_string();
        assert!(
            error.contains("debian-6.12-rt, mine, found \"nobodys\""),
            "{error}"
        );
        let error = scratch.catalog.fetch("nobodys", true, &mut |_| ());
        assert!(matches!(error, Err(KernelError::Unknown { .. })));
    }

    #[test]
    fn a_damaged_record_is_listed_and_can_be_removed() {
        let scratch = Scratch::new();
        scratch.add("mine").unwrap();
        fs::write(scratch.catalog.record_path("mine"), "id = 7").unwrap();
        let error = scratch.catalog.get("mine").unwrap_err();
        assert!(
            error.to_string().contains("punctual kernel remove mine"),
            "{error}"
        );
        let listed = scratch.catalog.list().unwrap();
        assert!(matches!(
            listed.last().unwrap().state,
            State::Damaged { .. }
        ));
        scratch.catalog.remove("mine").unwrap();
    }

    #[test]
    fn what_a_crash_left_over_is_cleared() {
        let scratch = Scratch::new();
        let left = scratch.catalog.directory.join(".work-mine");
        fs::create_dir_all(left.join("modules")).unwrap();
        fs::write(left.join("big.deb"), "x").unwrap();
        assert_eq!(
            scratch.catalog.list().unwrap().len(),
            scratch.catalog.sources().len()
        );
        scratch.add("mine").unwrap();
        assert_eq!(scratch.names(), ["mine"]);
        assert!(!scratch.catalog.place("mine").join("big.deb").exists());
    }

    /// Needs apt's lists, the network and a minute: `cargo test -- --ignored`.
    #[test]
    #[ignore = "downloads 107 MB"]
    fn a_kernel_is_fetched() {
        let scratch = Scratch::new();
        let kernel = scratch
            .catalog
            .ensure("debian-6.12-rt", &mut |message| println!("{message}"))
            .unwrap();
        println!("{kernel:#?}");
        let record = scratch.catalog.record_path("debian-6.12-rt");
        println!("{}", fs::read_to_string(record).unwrap());
        assert!(kernel.release.ends_with("-rt-amd64"));
        let config = fs::read_to_string(kernel.config.as_ref().unwrap()).unwrap();
        assert!(config.contains("CONFIG_PREEMPT_RT=y"));
        let mut names: Vec<_> = fs::read_dir(kernel.image.parent().unwrap())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        names.sort();
        assert_eq!(names, ["config", "kernel.toml", "vmlinuz"]);
        let again = scratch.catalog.fetch("debian-6.12-rt", false, &mut |_| ());
        assert_eq!(again.unwrap(), kernel);
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The catalog: kernels in the cache.
//!
//! ```text
//! CACHE/kernels/ID/kernel.toml   what it is and where it came from
//!                  vmlinuz       the image
//!                  config        its configuration, where known
//!                  modules/0/stall.ko …
//!                  built/kmod-DIGEST/stall.ko, built/disk/brd.ko …   of one built from source
//! CACHE/kernels/.lock-ID         held while the kernel is fetched, added or removed
//! CACHE/kernels/.work-ID         a kernel in the making
//! CACHE/kernels/.old-ID          a kernel on its way out
//! ```
//!
//! A kernel's directory is made beside its place and moved there when it is complete, so a kernel
//! is in the catalog as a whole or not at all. If a crash leaves `.work-ID` or `.old-ID` behind,
//! the next process that works on a kernel of that id clears them away.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::apt::{self, Candidate, Lists};
use crate::build::{BuildRecord, Order, Product};
use crate::checksum;
use crate::error::{KernelError, at};
use crate::id::KernelId;
use crate::paths::{self, Lock};
use crate::record::{Record, add_into, copy_built_into, copy_into, fetch_into, write_into};
use crate::source::{self, Source};
use crate::{Kernel, Package};

/// A kernel as shown in tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The name that users give.
    pub id: String,
    /// A source's summary, or the origin of an added kernel.
    pub summary: String,
    /// True if it can be fetched by name.
    pub has_source: bool,
    /// Its state in the cache.
    pub state: State,
}

/// The state of a kernel in the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// It is in the cache, with this release.
    Cached {
        /// The output of `uname -r` there.
        release: String,
    },
    /// It can be fetched.
    NotFetched,
    /// It is in the cache, but its record cannot be understood.
    Damaged {
        /// The reason, and advice.
        reason: String,
    },
}

/// A release of a line of kernels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Release {
    /// The name: `debian-6.12@6.12.43-1~bpo12+1`.
    pub id: String,
    /// Its package.
    pub package: String,
    /// The package's version.
    pub version: String,
    /// The package's size, in bytes.
    pub size: u64,
    /// True if it is in the cache.
    pub is_cached: bool,
}

/// The kernels in the cache, and those that can be fetched into it.
#[derive(Debug)]
pub struct Catalog {
    cache: PathBuf,
    /// `CACHE/kernels`.
    directory: PathBuf,
    sources: Vec<Source>,
}

impl Catalog {
    /// Opens the catalog in Punctual's cache directory. Nothing is made or changed yet.
    pub fn open(cache_dir: &Path) -> Result<Self, KernelError> {
        Ok(Self {
            cache: cache_dir.to_owned(),
            directory: cache_dir.join("kernels"),
            sources: source::all()?,
        })
    }

    /// The kernels that can be fetched by name.
    pub fn sources(&self) -> &[Source] {
        &self.sources
    }

    /// All kernels: the sources first, then pinned versions and users' additions, each sorted by
    /// id.
    pub fn list(&self) -> Result<Vec<Listed>, KernelError> {
        let sources = self.sources.iter().map(|source| Listed {
            id: source.id.clone(),
            summary: source.summary.clone(),
            has_source: true,
            state: self.state(&source.id),
        });
        let others = self.others()?.into_iter().map(|id| Listed {
            summary: self.read_record(&id).map_or(String::new(), |r| r.origin),
            has_source: self.source(&id).is_some(),
            state: self.state(&id),
            id,
        });
        Ok(sources.chain(others).collect())
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

    /// The ids in the cache other than those of the sources: pinned versions, and users' own.
    fn others(&self) -> Result<Vec<String>, KernelError> {
        let entries = match fs::read_dir(&self.directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(at(&self.directory))?,
        };
        let mut ids = Vec::new();
        for entry in entries {
            let name = entry.map_err(at(&self.directory))?.file_name();
            let id = name.to_string_lossy().into_owned();
            let is_source = self.sources.iter().any(|source| source.id == id);
            if KernelId::parse(&id).is_ok() && !is_source && self.is_cached(&id) {
                ids.push(id);
            }
        }
        ids.sort();
        Ok(ids)
    }

    /// A kernel in the cache, whose files are verified first.
    pub fn get(&self, id: &str) -> Result<Kernel, KernelError> {
        KernelId::parse(id)?;
        if !self.is_cached(id) {
            return Err(self.absent(id));
        }
        let record = self.read_record(id)?;
        self.verify(&record)?;
        Ok(self.kernel(record))
    }

    /// A kernel in the cache whose image has this SHA-256, whatever its name.
    pub fn of_image(&self, sha256: &str) -> Result<Option<Kernel>, KernelError> {
        let sources = self.sources.iter().map(|source| source.id.clone());
        for id in sources.chain(self.others()?) {
            let record = self.read_record(&id);
            let is_it = record.is_ok_and(|record| record.vmlinuz_sha256 == sha256);
            // A damaged one hides no other.
            let kernel = is_it.then(|| self.get(&id).ok()).flatten();
            if kernel.is_some() {
                return Ok(kernel);
            }
        }
        Ok(None)
    }

    /// A kernel from the cache, or else from its source.
    pub fn ensure(&self, id: &str, progress: &mut dyn FnMut(&str)) -> Result<Kernel, KernelError> {
        match self.get(id) {
            Err(KernelError::NotFetched(_)) => self.fetch(id, false, progress),
            result => result,
        }
    }

    /// Fetches a kernel from its source: the version to which the id is pinned
    /// (`debian-6.12@6.12.117-1~deb12u1`), else the newest package. A kernel that is already in the
    /// cache is returned at once, unless it is to be refreshed.
    pub fn fetch(
        &self,
        id: &str,
        refresh: bool,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Kernel, KernelError> {
        KernelId::parse(id)?;
        let Some(source) = self.source(id) else {
            // One that a user added is in the cache, and that is all there is to it.
            return self.get(id);
        };
        let _lock = self.lock(id, progress)?;
        // Another process may have fetched it while this one waited.
        if !refresh && self.is_cached(id) {
            return self.get(id);
        }
        let work = self.new_work_dir(id)?;
        let record = match self.cached_version(id) {
            Some(other) if !refresh => copy_into(&work, id, &self.place(&other.id), other),
            _ => fetch_into(&work, &self.cache, id, source, progress),
        };
        self.install(&work, record)?;
        let kernel = self.get(id)?;
        progress(&format!("{id}: {} is ready", kernel.release));
        Ok(kernel)
    }

    /// All releases of a source's line that the distribution still has, oldest first.
    pub fn releases(
        &self,
        id: &str,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Vec<Release>, KernelError> {
        let name = KernelId::parse(id)?.name;
        let line = self.source(id).filter(|_| name == id);
        let line = line.and_then(|source| Some((source, source.releases.as_ref()?)));
        let Some((source, releases)) = line else {
            return Err(if self.has(id) {
                KernelError::NoReleases(id.to_owned())
            } else {
                self.absent(id)
            });
        };
        let lists = Lists::fetch(&self.cache, source.architecture, &releases.suites, progress)?;
        let all = apt::releases(&lists, &releases.package)?.into_iter();
        let release = |one: Candidate| {
            let id = format!("{name}@{}", one.version);
            Release {
                is_cached: self.is_cached(&id),
                id,
                package: one.package,
                version: one.version,
                size: one.size,
            }
        };
        Ok(all.map(release).collect())
    }

    /// Copies a user's own kernel into the cache. One with the same id is replaced only if
    /// `replace` is true. Its modules must have been built for it and are loaded in this order.
    pub fn add(
        &self,
        id: &str,
        image: &Path,
        boot: &str,
        modules: &[PathBuf],
        replace: bool,
    ) -> Result<Kernel, KernelError> {
        self.check_own(id, false)?;
        self.put_own(id, replace, |work| add_into(work, id, image, boot, modules))
    }

    /// Puts a kernel that was just built into the cache.
    pub(crate) fn add_built(
        &self,
        id: &str,
        replace: bool,
        product: Product,
    ) -> Result<Kernel, KernelError> {
        self.put_own(id, replace, |work| write_into(work, id, product))
    }

    /// A kernel in the cache that was built with this key and these modules of Punctual's, under
    /// the id in the order; it is copied there if it has another id.
    pub(crate) fn built(
        &self,
        key: &str,
        kmod: &str,
        order: &Order,
    ) -> Result<Option<Kernel>, KernelError> {
        let records = self.others()?.into_iter();
        let records = records.filter_map(|id| self.read_record(&id).ok());
        let is_it = |build: &BuildRecord| build.key == key && build.kmod == kmod;
        let mut same: Vec<Record> = records
            .filter(|one| one.build.as_ref().is_some_and(is_it) && self.verify(one).is_ok())
            .collect();
        let Some(id) = &order.id else {
            return same.first().map(|one| self.get(&one.id)).transpose();
        };
        if same.iter().any(|one| one.id == *id) {
            return self.get(id).map(Some);
        }
        let Some(other) = same.pop() else {
            return Ok(None);
        };
        let place = self.place(&other.id);
        let copied = self.put_own(id, order.replace, |work| {
            copy_built_into(work, id, &place, other)
        });
        copied.map(Some)
    }

    /// The build record of a kernel in the cache; returns an error if it was not built.
    pub fn build_of(&self, id: &str) -> Result<BuildRecord, KernelError> {
        KernelId::parse(id)?;
        if !self.is_cached(id) {
            return Err(self.absent(id));
        }
        let build = self.read_record(id)?.build;
        build.ok_or_else(|| KernelError::NotBuilt(id.to_owned()))
    }

    /// Punctual's cache directory.
    pub(crate) fn cache(&self) -> &Path {
        &self.cache
    }

    /// Checks that a user's own kernel may have this id; only those of a repository's tags have
    /// versions.
    pub(crate) fn check_own(&self, id: &str, is_of_tag: bool) -> Result<(), KernelError> {
        let name = KernelId::parse(id)?.name;
        if self.source(id).is_some() {
            return Err(KernelError::Reserved(name.to_owned()));
        }
        if name != id && !is_of_tag {
            return Err(KernelError::NotPinned(id.to_owned()));
        }
        Ok(())
    }

    /// Checks that a kernel can be put there.
    pub(crate) fn check_free(&self, id: &str, replace: bool) -> Result<(), KernelError> {
        if self.is_cached(id) && !replace {
            return Err(KernelError::Taken(id.to_owned()));
        }
        Ok(())
    }

    /// Puts one of the user's own kernels into the cache, made by `make` in a directory. Its id has
    /// been checked.
    fn put_own(
        &self,
        id: &str,
        replace: bool,
        make: impl FnOnce(&Path) -> Result<Record, KernelError>,
    ) -> Result<Kernel, KernelError> {
        let _lock = self.lock(id, &mut |_| ())?;
        self.check_free(id, replace)?;
        let work = self.new_work_dir(id)?;
        self.install(&work, make(&work))?;
        self.get(id)
    }

    /// Removes a kernel from the cache. A kernel with a source can be fetched again.
    pub fn remove(&self, id: &str) -> Result<(), KernelError> {
        KernelId::parse(id)?;
        self.check_cached(id)?;
        let _lock = self.lock(id, &mut |_| ())?;
        // Another process may have removed it while this one waited.
        self.check_cached(id)?;
        self.retire(id)
    }

    fn check_cached(&self, id: &str) -> Result<(), KernelError> {
        if self.is_cached(id) {
            return Ok(());
        }
        let sources = self.sources.iter().map(|source| source.id.clone());
        let mut cached: Vec<String> = sources.filter(|id| self.is_cached(id)).collect();
        cached.extend(self.others()?);
        let id = id.to_owned();
        Err(KernelError::NotCached { id, cached })
    }

    /// The source of a kernel, with or without a pinned version.
    fn source(&self, id: &str) -> Option<&Source> {
        let name = KernelId::parse(id).ok()?.name;
        self.sources.iter().find(|source| source.id == name)
    }

    /// The kernel in the cache of the newest version to which `id` is pinned.
    fn cached_version(&self, id: &str) -> Option<Record> {
        let pinned = KernelId::parse(id).ok().filter(|id| id.version.is_some())?;
        let mut ids = self.others().ok()?;
        ids.push(pinned.name.to_owned());
        let fitting = ids.iter().filter_map(|id| {
            let record = self.read_record(id).ok()?;
            let version = record.version.clone()?;
            let same = KernelId::parse(&record.id).is_ok_and(|id| id.name == pinned.name);
            (same && pinned.fits(&version)).then_some((version, record))
        });
        let mut fitting: Vec<(String, Record)> = fitting.collect();
        fitting.sort_by(|(one, _), (other, _)| apt::compare_versions(other, one));
        let mut newest_first = fitting.into_iter().map(|(_, record)| record);
        newest_first.find(|record| self.verify(record).is_ok())
    }

    /// Returns true if a kernel of this id is in the cache, or can be fetched.
    pub(crate) fn has(&self, id: &str) -> bool {
        KernelId::parse(id).is_ok() && (self.source(id).is_some() || self.is_cached(id))
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
        known.extend(self.others().unwrap_or_default());
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
        for (directory, files) in [("modules", &record.modules), ("built", &record.built)] {
            for module in files {
                let path = place.join(directory).join(&module.file);
                self.verify_file(record, &path, &module.sha256)?;
            }
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
        Err(KernelError::Changed {
            path: path.to_owned(),
            expected: expected.to_owned(),
            found,
            id: record.id.clone(),
            is_own: self.source(&record.id).is_none(),
        })
    }

    fn kernel(&self, record: Record) -> Kernel {
        let place = self.place(&record.id);
        let modules = place.join("modules");
        Kernel {
            built: record.build.is_some().then(|| place.join("built")),
            architecture: record.architecture,
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
            suites: record.suites,
            package: match (record.package, record.version, record.deb_sha256) {
                (Some(name), Some(version), Some(sha256)) => Some(Package {
                    name,
                    version,
                    sha256,
                }),
                _ => None,
            },
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

    /// Makes an empty directory to work in, beside the kernel's place. Needs the lock.
    fn new_work_dir(&self, id: &str) -> Result<PathBuf, KernelError> {
        let work = self.directory.join(format!(".work-{id}"));
        if work.exists() {
            fs::remove_dir_all(&work).map_err(at(&work))?;
        }
        fs::create_dir_all(&work).map_err(at(&work))?;
        Ok(work)
    }

    /// Moves a complete kernel to its place, or clears an unfinished one away. Needs the lock.
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

#[cfg(test)]
mod tests;

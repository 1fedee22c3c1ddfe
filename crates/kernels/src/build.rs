// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kernels built from source: a source tree and a configuration become a kernel of the catalog.
//!
//! ```text
//! ROOT/source/linux-source-6.12@VERSION/   Debian's source, unpacked
//! ROOT/NAME-DIGEST/out/                    O= of one source path and configuration, kept, so
//!                                          that the next build compiles what has changed
//!                  kmod/                   Punctual's modules, built against it
//!                  log                     what make printed last
//!                  looked, begun, ended    the times of the last build of a user's source
//! ROOT/NAME-DIGEST.lock                    held while it is built
//! ROOT/ccache/                             for `ccache`, where it is installed
//! ```
//!
//! ROOT is `CACHE/build`, or `/var/cache/punctual/build` if root's cache is closed to the
//! [`Worker`], which has no privileges and does all the work.
//!
//! A build is identified by the source's identity and the final configuration, which contains the
//! versions of compiler and linker. Their digest is the kernel's *key*. It is a part of the
//! kernel's release, so two kernels have one release only if they are the same.

mod checkout;
mod config;
mod error;
mod fresh;
mod kconfig;
mod make;
mod setting;
mod source;
mod tags;
mod tools;
mod walk;
mod worker;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use punctual_model::Architecture;
use serde::{Deserialize, Serialize};

use crate::catalog::Catalog;
use crate::paths::Lock;
use crate::{Kernel, checksum, disk, kmod};
use checkout::Checkout;
pub(crate) use config::Config;
use fresh::Times;
pub(crate) use kconfig::why_refused_by;
use make::Make;
use source::SourceTree;
use worker::Worker;

pub use error::BuildError;
pub use setting::{Setting, SettingError};
pub use tags::{Tag, line_name, tags};

/// An order for a build.
#[derive(Clone, Debug)]
pub struct Order {
    /// A directory, or a Debian package such as `linux-source-6.12`, perhaps with `@VERSION`.
    pub source: String,
    /// The configuration to start from: that of a kernel in the catalog, or else a file. A word
    /// with a slash is a file's path.
    pub config: String,
    /// Options to set in it; of those of one name the last counts.
    pub settings: Vec<Setting>,
    /// True if it gets all drivers of its configuration, not only those of the virtual bench.
    pub is_full: bool,
    /// The number of compilers that run side by side.
    pub jobs: usize,
    /// The id for the kernel; `None` for `built-KEY`.
    pub id: Option<String>,
    /// True if it replaces another kernel with this id.
    pub replace: bool,
    /// The required identity of the source: that of another kernel, with which this one is
    /// compared.
    pub identity: Option<String>,
    /// The tag to build, if the source is a repository rather than its work tree.
    pub tag: Option<Tag>,
}

/// A kernel that was built, now or before.
#[derive(Clone, Debug)]
pub struct Built {
    /// The kernel.
    pub kernel: Kernel,
    /// True if it was there already.
    pub was_there: bool,
    /// The record of its build.
    pub record: BuildRecord,
}

/// The table `[build]` in `kernel.toml`: the record of a kernel's build.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BuildRecord {
    /// The identity of the build: SHA-256 of source and configuration.
    pub key: String,
    /// The source as the user named it; a directory by its absolute path.
    pub source: String,
    /// A description of the source: a version, a commit.
    pub described: String,
    /// The source's digest.
    pub identity: String,
    /// The kernel or file whose configuration it started from.
    pub config: String,
    /// The options that were set.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<String>,
    /// The compiler.
    pub compiler: String,
    /// The directory in which it was built, below ROOT.
    pub directory: String,
    /// The digest of the sources of Punctual's modules that were built with it.
    pub kmod: String,
    /// For a tag, the digest that shows without its files that it need not be built again. It
    /// covers the source's identity, the configuration to start from, and the compiler.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recipe: Option<String>,
    /// The reason why these could not be built.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub without_modules: Option<String>,
}

/// The files that a build has made.
pub(crate) struct Product {
    pub(crate) image: Vec<u8>,
    pub(crate) config: String,
    /// Modules: paths below `built/`, and bytes.
    pub(crate) files: Vec<(String, Vec<u8>)>,
    pub(crate) record: BuildRecord,
}

/// The number of digits of the key in names.
const KEY_DIGITS: usize = 12;

/// Builds a kernel, unless the catalog has one of the same source and configuration.
///
/// Stops if `cancel` is set; a second call goes on from there.
///
/// # Errors
/// For a fault in the order, the machine or the source; see [`BuildError`].
pub fn build(
    catalog: &Catalog,
    order: &Order,
    cancel: &AtomicBool,
    progress: &mut dyn FnMut(&str),
) -> Result<Built, BuildError> {
    if let Some(id) = &order.id {
        catalog.check_own(id, order.tag.is_some())?;
    }
    let settings = setting::that_count(&order.settings);
    let order = &Order {
        settings,
        ..order.clone()
    };
    let worker = Worker::new();
    tools::check(worker, Architecture::Amd64)?;
    let base = Base::find(catalog, order, progress)?;
    if base.architecture.is_foreign() {
        tools::check(worker, base.architecture)?;
    }
    let work = Work {
        catalog,
        order,
        cancel,
        worker,
        root: worker.root(catalog.cache())?,
        base,
    };
    let Some(tag) = &order.tag else {
        let tree = work.source(progress)?;
        return work.build(&tree, named(&order.source, &tree), progress);
    };
    let path = tags::repository(&order.source, worker)?;
    if let Some(built) = work.of_tag(tag, &path)? {
        return Ok(built);
    }
    let checkout = Checkout::of(tag, &path, &work.root, worker, progress)?;
    work.build(&checkout.tree, path.display().to_string(), progress)
}

/// An order, with everything that it takes.
struct Work<'a> {
    catalog: &'a Catalog,
    order: &'a Order,
    cancel: &'a AtomicBool,
    worker: Worker,
    root: PathBuf,
    base: Base,
}

impl Work<'_> {
    /// The source in its present state.
    fn source(&self, progress: &mut dyn FnMut(&str)) -> Result<SourceTree, BuildError> {
        let (order, cache) = (self.order, self.catalog.cache());
        let tree = source::find(&order.source, &self.root, cache, self.worker, progress)?;
        let wanted = order.identity.as_ref();
        if wanted.is_some_and(|wanted| *wanted != tree.identity) {
            let (path, base) = (tree.path, order.config.clone());
            return Err(BuildError::OtherSource { path, base });
        }
        Ok(tree)
    }

    /// The kernel of a tag, if it is in the catalog: its files are not needed for that.
    fn of_tag(&self, tag: &Tag, source_path: &Path) -> Result<Option<Built>, BuildError> {
        let Some(id) = &self.order.id else {
            return Ok(None);
        };
        let Ok(record) = self.catalog.build_of(id) else {
            return Ok(None);
        };
        let source_path = source_path.to_owned();
        let is_of_tree = Path::new(&record.source) == source_path;
        if !is_of_tree && record.identity != tag.identity {
            let (id, other) = (id.clone(), record.source);
            return Err(BuildError::OtherTree {
                id,
                source_path,
                other,
            });
        }
        let recipe = Some(self.recipe(&tag.identity)?);
        if record.recipe != recipe || record.kmod != kmod::short_digest() {
            return Ok(None);
        }
        Ok(Some(Built {
            kernel: self.catalog.get(id)?,
            was_there: true,
            record,
        }))
    }

    /// The digest of the inputs of a build.
    fn recipe(&self, identity: &str) -> Result<String, BuildError> {
        let settings = &self.order.settings;
        let config = self.base.config.clone().with(settings).text(settings);
        let tools = tools::versions(self.worker, self.base.architecture)?;
        let text = format!("{identity}\n{tools}\n{config}");
        Ok(checksum::of_bytes(text.as_bytes()))
    }

    /// Refuses a kernel whose source changed while it was compiled: nobody knows what it has of it.
    fn check_unchanged(
        &self,
        tree: &SourceTree,
        progress: &mut dyn FnMut(&str),
    ) -> Result<(), BuildError> {
        if tree.is_own {
            return Ok(());
        }
        let (order, cache) = (self.order, self.catalog.cache());
        let now = source::find(&order.source, &self.root, cache, self.worker, progress)?;
        if now.identity == tree.identity {
            Ok(())
        } else {
            Err(BuildError::ChangedMeanwhile(now.path))
        }
    }

    /// Builds a tree; `source` is the name for it in the record.
    fn build(
        &self,
        tree: &SourceTree,
        source: String,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Built, BuildError> {
        let (catalog, order) = (self.catalog, self.order);
        let site = Site::open(self.worker, &self.root, tree, &self.base, progress)?;
        let make = site.make(tree, &self.base, order.jobs, self.cancel);
        let config = configure(&make, &self.base.config, order, progress)?;
        let key = key(tree, &config);
        if let Some(kernel) = catalog.built(&key, &kmod::short_digest(), order)? {
            return Ok(Built {
                record: catalog.build_of(&kernel.id)?,
                kernel,
                was_there: true,
            });
        }
        let id = order.id.clone().unwrap_or_else(|| own_id(&key));
        catalog.check_free(&id, order.replace)?;
        progress(&format!(
            "{id}: compiling {} ({} at a time)",
            tree.described, order.jobs
        ));
        let record = BuildRecord {
            source,
            described: tree.described.clone(),
            identity: tree.identity.clone(),
            config: order.config.clone(),
            settings: order.settings.iter().map(ToString::to_string).collect(),
            compiler: config.value("CC_VERSION_TEXT").trim_matches('"').to_owned(),
            directory: site.name.clone(),
            kmod: kmod::short_digest(),
            recipe: Some(self.recipe(&tree.identity)?),
            without_modules: None,
            key,
        };
        site.begin(tree, progress)?;
        let product = compile(&make, &site, &id, &config, record, progress);
        site.times.end()?;
        let product = product?;
        self.check_unchanged(tree, progress)?;
        let record = product.record.clone();
        Ok(Built {
            kernel: catalog.add_built(&id, order.replace, product)?,
            was_there: false,
            record,
        })
    }
}

/// The tags of a repository as releases of a line, in their order, each with the id `NAME@VERSION`.
pub fn tagged(catalog: &Catalog, name: &str, tags: Vec<Tag>) -> Vec<Tagged> {
    let release = |tag: Tag| {
        let id = format!("{name}@{}", tag.version());
        let record = catalog.build_of(&id).ok();
        Tagged {
            is_cached: record.is_some_and(|record| record.identity == tag.identity),
            id,
            tag,
        }
    };
    tags.into_iter().map(release).collect()
}

/// A tag as a release of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tagged {
    /// The id of its kernel: `linux-debian-6.12-rt@6.13-rc1`.
    pub id: String,
    /// The tag.
    pub tag: Tag,
    /// True if a kernel built from these very files is in the cache.
    pub is_cached: bool,
}

/// Builds a variant of a kernel that was built: its source and configuration, with these options
/// set. Its id is made from both: `base+hz_1000-y`.
///
/// # Errors
/// As for [`build`]; also if the kernel was not built, or its source has changed since.
pub fn build_variant(
    catalog: &Catalog,
    base: &str,
    settings: &[Setting],
    cancel: &AtomicBool,
    progress: &mut dyn FnMut(&str),
) -> Result<Built, BuildError> {
    let record = catalog.build_of(base)?;
    let order = Order {
        source: record.source,
        config: base.to_owned(),
        settings: settings.to_vec(),
        is_full: false,
        jobs: one_for_each_cpu(),
        id: Some(variant_id(base, settings)),
        // It is called after what it is: another of this name is of an earlier base.
        replace: true,
        identity: Some(record.identity),
        tag: None,
    };
    build(catalog, &order, cancel, progress)
}

fn variant_id(base: &str, settings: &[Setting]) -> String {
    let word = |setting: &Setting| format!("+{}-{}", setting.name, setting.value);
    let words: String = settings.iter().map(word).collect();
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || "._+-".contains(c) {
            c
        } else {
            '-'
        }
    };
    let words: String = words.to_ascii_lowercase().chars().map(plain).collect();
    // What an id cannot say is in a digest, so that no other settings have the same id.
    let is_kept = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let is_said = |setting: &Setting| {
        let has_lower = setting.name.contains(|c: char| c.is_ascii_lowercase());
        !has_lower && setting.value.chars().all(is_kept)
    };
    if settings.iter().all(is_said) {
        return format!("{base}{words}");
    }
    let exact: Vec<String> = settings.iter().map(ToString::to_string).collect();
    let digest = checksum::of_bytes(exact.join("\n").as_bytes());
    format!("{base}{words}-{digest:.8}")
}

/// The number of CPUs, for one compiler on each.
pub fn one_for_each_cpu() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The name of the source for later builds.
fn named(word: &str, tree: &SourceTree) -> String {
    if Path::new(word).is_dir() {
        tree.path.display().to_string()
    } else {
        // With its version: a newer package is another source.
        let name = tree.path.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }
}

/// The id of a kernel for which the user gives none.
fn own_id(key: &str) -> String {
    format!("built-{}", &key[..KEY_DIGITS])
}

fn key(tree: &SourceTree, config: &Config) -> String {
    checksum::of_bytes(format!("{}\n{}", tree.identity, config.text(&[])).as_bytes())
}

/// The configuration from which a build starts.
struct Base {
    config: Config,
    /// The architecture of its kernel.
    architecture: Architecture,
    /// Its name in the name of the build's directory: builds of one base share one.
    name: String,
    /// The record of its build, if it was built: its variants are built in the same place.
    record: Option<BuildRecord>,
}

impl Base {
    fn find(
        catalog: &Catalog,
        order: &Order,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Self, BuildError> {
        let word = &order.config;
        let (path, name, record) = if is_file(catalog, word) {
            let path = Path::new(word);
            let path = path.canonicalize().map_err(BuildError::at(path))?;
            (path.clone(), path.display().to_string(), None)
        } else {
            let kernel = catalog.ensure(word, progress)?;
            let none = || {
                BuildError::Config(format!(
                    "{word}: expected a kernel of known configuration: name the file (--config ./.config)"
                ))
            };
            let record = catalog.build_of(word).ok();
            (kernel.config.ok_or_else(none)?, word.clone(), record)
        };
        let text = fs::read_to_string(&path).map_err(BuildError::at(&path))?;
        let config = Config::parse(&text);
        let Some(architecture) = config
            .architecture()
            .or_else(|| config::of_defconfig(&path))
        else {
            let found = if config.is_empty() {
                "no option at all"
            } else {
                "another"
            };
            return Err(BuildError::Config(format!(
                "{}: expected the configuration of a kernel for x86-64 or arm64 (CONFIG_X86_64=y or CONFIG_ARM64=y), found {found}",
                path.display()
            )));
        };
        let config = config.buildable();
        // What was built before is as it was asked for then.
        let is_as_it_is = order.is_full || record.is_some();
        Ok(Self {
            architecture,
            config: if is_as_it_is {
                config
            } else {
                config.trimmed()
            },
            name: if order.is_full {
                format!("{name} full")
            } else {
                name
            },
            record,
        })
    }
}

/// Returns true if a configuration is that of a file, and of no kernel.
fn is_file(catalog: &Catalog, config: &str) -> bool {
    config.contains('/') || (!catalog.has(config) && Path::new(config).is_file())
}

/// The directories in which one source is built with one configuration and its variants.
struct Site {
    worker: Worker,
    ccache: PathBuf,
    /// The name of its directory.
    name: String,
    out: PathBuf,
    log: PathBuf,
    times: Times,
    _lock: Lock,
}

impl Site {
    fn open(
        worker: Worker,
        root: &Path,
        tree: &SourceTree,
        base: &Base,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Self, BuildError> {
        let source = tree.path.file_name().unwrap_or_default().to_string_lossy();
        let digest =
            checksum::of_bytes(format!("{}\n{}", tree.path.display(), base.name).as_bytes());
        let own = format!("{source}-{}{}", &digest[..KEY_DIGITS], worker.mark());
        let is_same = |record: &&BuildRecord| tree.path.ends_with(&record.source);
        let of_base = base.record.as_ref().filter(is_same);
        let name = of_base.map_or(own, |record| record.directory.clone());
        let place = root.join(&name);
        let lock = root.join(format!("{name}.lock"));
        let lock = if let Some(lock) = Lock::try_acquire(&lock).map_err(BuildError::at(&lock))? {
            lock
        } else {
            progress(&format!("{name}: waiting for another punctual"));
            Lock::acquire(&lock).map_err(BuildError::at(&lock))?
        };
        worker::public_directory(&place)?;
        let out = place.join("out");
        worker.directory(&out)?;
        let ccache = root.join(format!("ccache{}", worker.mark()));
        worker.directory(&ccache)?;
        Ok(Self {
            worker,
            log: place.join("log"),
            times: Times::of(&place),
            ccache,
            name,
            out,
            _lock: lock,
        })
    }

    /// Begins to compile. Objects that `make` would take for new, and that may not be, are removed.
    fn begin(&self, tree: &SourceTree, progress: &mut dyn FnMut(&str)) -> Result<(), BuildError> {
        // Whatever Punctual writes there is new.
        if tree.is_own {
            return Ok(());
        }
        let config = self.out.join(".config");
        let has_objects = self.times.has_begun() || self.out.join("vmlinux").exists();
        if self.times.may_be_stale(&tree.path, &tree.outside)? && has_objects {
            progress(&format!(
                "{}: what was built there may not be of this source: all of it is compiled",
                self.name
            ));
            let text = self.worker.read(&config)?;
            fs::remove_dir_all(&self.out).map_err(BuildError::at(&self.out))?;
            self.worker.directory(&self.out)?;
            self.worker
                .write(&config, &String::from_utf8_lossy(&text))?;
        }
        self.times.begin()
    }

    fn make<'a>(
        &'a self,
        tree: &'a SourceTree,
        base: &Base,
        jobs: usize,
        cancel: &'a AtomicBool,
    ) -> Make<'a> {
        Make {
            worker: self.worker,
            architecture: base.architecture,
            source: &tree.path,
            out: &self.out,
            log: &self.log,
            ccache: self.ccache.clone(),
            jobs,
            cancel,
        }
    }
}

/// Has the source complete the configuration, and reads it back: each option that was set must have
/// the value to which it was set.
fn configure(
    make: &Make<'_>,
    base: &Config,
    order: &Order,
    progress: &mut dyn FnMut(&str),
) -> Result<Config, BuildError> {
    let file = make.out.join(".config");
    let config = base.clone().with(&order.settings);
    make.worker.write(&file, &config.text(&order.settings))?;
    make.run("its configuration", &["olddefconfig"], progress)?;
    let text = make.worker.read(&file)?;
    let config = Config::parse(&String::from_utf8_lossy(&text));
    let refused = order.settings.iter().filter(|setting| {
        // What is unknown is not set either, and a word that means nothing is a mistake.
        let is_unknown = setting.value == "n" && !config.has(&setting.name);
        config.value(&setting.name) != setting.value || is_unknown
    });
    let mut refused: Vec<String> = refused
        .filter_map(|setting| {
            let why = kconfig::why_refused(make.source, setting, &config);
            let is_hidden = setting.value == "n" && why.starts_with("its configuration");
            // Hidden by what it depends on, it is not set: that is what was asked for.
            (!is_hidden || config.value(&setting.name) != "n").then(|| format!("{setting}: {why}"))
        })
        .collect();
    if config.value("ARM64_16K_PAGES") == "y" {
        let why = "the virtual bench's processor, a Cortex-A57, has no such pages";
        refused.push(format!("ARM64_16K_PAGES=y: {why}: --set ARM64_4K_PAGES=y"));
    }
    if refused.is_empty() {
        Ok(config)
    } else {
        Err(BuildError::Refused(refused))
    }
}

/// Compiles the kernel and its modules.
fn compile(
    make: &Make<'_>,
    site: &Site,
    id: &str,
    config: &Config,
    mut record: BuildRecord,
    progress: &mut dyn FnMut(&str),
) -> Result<Product, BuildError> {
    let version = format!("LOCALVERSION=-punctual.{}", &record.key[..KEY_DIGITS]);
    let has_modules = config.value("MODULES") == "y";
    let (image, target) = tools::image(make.architecture);
    let mut targets = vec![version.as_str(), target];
    targets.extend(has_modules.then_some("modules"));
    make.run(id, &targets, progress)?;
    let mut files = Vec::new();
    if has_modules {
        let order = site.worker.read(&site.out.join("modules.order"))?;
        let order = String::from_utf8_lossy(&order);
        for path in disk::built_modules() {
            let built = site.out.join(path);
            // A module of an earlier configuration may still lie there.
            if is_listed(&order, path) && site.worker.can_read(&built)? {
                let name = Path::new(path).file_name().unwrap_or_default();
                let name = format!("disk/{}", name.to_string_lossy());
                files.push((name, site.worker.read(&built)?));
            }
        }
    }
    progress(&format!("{id}: compiling Punctual's modules"));
    match punctuals_modules(make, site, &version, progress) {
        Ok(modules) => files.extend(modules),
        Err(BuildError::Failed { lines, .. }) => record.without_modules = Some(lines),
        Err(error) => return Err(error),
    }
    Ok(Product {
        image: site.worker.read(&site.out.join(image))?,
        config: config.text(&[]),
        files,
        record,
    })
}

/// Returns true if `modules.order` lists a module: as its object from 6.2 on, before as `.ko` below
/// `kernel/`.
///
/// Source: `scripts/Makefile.build` and `scripts/Makefile.modfinal`.
fn is_listed(order: &str, module: &str) -> bool {
    let name = |line: &str| {
        let line = line.strip_prefix("kernel/").unwrap_or(line);
        line.rsplit_once('.').map(|(name, _)| name.to_owned())
    };
    order.lines().any(|line| name(line) == name(module))
}

/// Punctual's own modules, built against the new kernel.
fn punctuals_modules(
    make: &Make<'_>,
    site: &Site,
    version: &str,
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<(String, Vec<u8>)>, BuildError> {
    let sources = site.out.with_file_name("kmod");
    if sources.exists() {
        fs::remove_dir_all(&sources).map_err(BuildError::at(&sources))?;
    }
    kmod::extract(&sources, &mut |path| site.worker.own(path))?;
    let log = site.log.with_file_name("kmod.log");
    let make = Make {
        log: &log,
        ..make.clone()
    };
    let of = format!("M={}", sources.display());
    // Information for debuggers would hold paths.
    let words = [version, &of, "KCFLAGS=-g0", "modules"];
    make.run("Punctual's modules", &words, progress)?;
    let module = |name: &str| {
        let built = sources.join(format!("{name}/{name}.ko"));
        let bytes = site.worker.read(&built)?;
        Ok((format!("{}/{name}.ko", kmod::built_directory()), bytes))
    };
    kmod::NAMES.iter().map(|name| module(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(identity: &str) -> SourceTree {
        SourceTree {
            path: "/s".into(),
            identity: identity.to_owned(),
            described: "s".to_owned(),
            is_own: false,
            outside: Vec::new(),
        }
    }

    #[test]
    fn a_key_is_of_source_and_configuration() {
        let config = |text: &str| Config::parse(text);
        let first = key(&tree("a"), &config("# a comment\nCONFIG_A=y\nCONFIG_B=m\n"));
        // Order and comments of the file mean nothing.
        assert_eq!(key(&tree("a"), &config("CONFIG_B=m\nCONFIG_A=y\n")), first);
        for (identity, text) in [
            ("b", "CONFIG_A=y\nCONFIG_B=m\n"),
            ("a", "CONFIG_A=y\nCONFIG_B=y\n"),
            ("a", "CONFIG_A=y\n"),
            (
                "a",
                "CONFIG_A=y\nCONFIG_B=m\nCONFIG_CC_VERSION_TEXT=\"gcc 13\"\n",
            ),
        ] {
            assert_ne!(
                key(&tree(identity), &config(text)),
                first,
                "{identity}: {text}"
            );
        }
    }

    #[test]
    fn modules_that_are_listed_belong_to_this_build() {
        let order = "fs/configfs/configfs.o\nkernel/fs/ext4/ext4.ko\n";
        for (module, expected) in [
            ("fs/configfs/configfs.ko", true),
            ("fs/ext4/ext4.ko", true),
            ("fs/jbd2/jbd2.ko", false),
            ("configfs/configfs.ko", false),
        ] {
            assert_eq!(is_listed(order, module), expected, "{module}");
        }
    }

    #[test]
    fn a_variant_is_called_after_what_it_is() {
        let settings = ["HZ_1000=y", "DEFAULT_HOSTNAME=Ada L."].map(|one| one.parse().unwrap());
        let id = variant_id("base", &settings);
        let said = "base+hz_1000-y+default_hostname--ada-l.--";
        assert_eq!(id.strip_prefix(said).map(str::len), Some(8), "{id}");
    }

    #[test]
    fn variants_that_differ_have_different_ids() {
        let id = |word: &str| variant_id("base", &[word.parse().unwrap()]);
        assert_eq!(id("HZ=1000"), "base+hz-1000");
        assert_eq!(id("A=-1"), "base+a--1");
        for (one, other) in [
            ("DEFAULT_HOSTNAME=Ada", "DEFAULT_HOSTNAME=ada"),
            ("CMDLINE=\"a b\"", "CMDLINE=\"a=b\""),
            ("CMDLINE=a=b", "CMDLINE=a:b"),
            ("A=0x1F", "A=0x1f"),
            ("60xx_WDT=y", "60XX_WDT=y"),
        ] {
            assert_ne!(id(one), id(other));
        }
    }

    #[test]
    fn a_kernels_configuration_is_meant_where_a_file_has_its_name_too() {
        let directory = tempfile::tempdir().unwrap();
        let catalog = Catalog::open(directory.path()).unwrap();
        // A file of this crate, in which tests run.
        assert!(is_file(&catalog, "Cargo.toml"));
        assert!(is_file(&catalog, "./debian-6.12"));
        assert!(!is_file(&catalog, "debian-6.12"));
        assert!(!is_file(&catalog, "debian-6.12@6.12.43"));
        let vmlinuz = directory.path().join("vmlinuz");
        fs::write(&vmlinuz, crate::image::synthetic::bzimage("6.12.1-test")).unwrap();
        catalog.add("build.rs", &vmlinuz, "", &[], false).unwrap();
        assert!(!is_file(&catalog, "build.rs"));
    }
}

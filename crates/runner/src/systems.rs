// SPDX-License-Identifier: MIT OR Apache-2.0
//! Subjects ready to run: the parts that a suite asks for, looked up, built and put together.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use punctual_bench::host::HostSystem;
use punctual_bench::ssh::{Absence, AnsweredSystem, Board, Peer, SshSystem};
use punctual_bench::system::SystemUnderTest;
use punctual_bench::virtual_bench::{Machine, Start, TURN, VirtualBench, VirtualSystem, cmdline};
use punctual_kernels::busybox;
use punctual_kernels::disk::{self, DiskModule};
use punctual_kernels::initramfs::{self, Initramfs, InitramfsError, Program};
use punctual_kernels::kmod;
use punctual_kernels::network;
use punctual_kernels::tree;
use punctual_kernels::userland::Userland;
use punctual_kernels::{Catalog, Kernel, KernelError};
use punctual_model::network::{Card, MODULE};
use punctual_model::plan::Load;
use punctual_model::suite::{self, SubjectSpec, Suite};
use punctual_model::{Architecture, Nanos};

use crate::companion::CALLS;
use crate::memory::{self, BESIDE_GUEST_MIB};
use crate::{Companion, Error, did_you_mean};

pub use crate::preemption::not_offered;

/// The kernel from whose source guests compile a piece.
const COMPILED: &str = "debian-6.12";

/// The program that makes the file system on a guest's disk.
const MKE2FS: &str = "/usr/sbin/mke2fs";

/// A subject that is ready to run.
pub struct PreparedSystem {
    /// The subject and its bench.
    pub system: Box<dyn SystemUnderTest>,
    /// Kernel modules that could not be brought along, with the reasons.
    pub absent: BTreeMap<String, String>,
}

/// The equipment that every virtual subject of a suite gets.
#[derive(Debug)]
pub struct Equipment {
    /// Programs of this machine, with their libraries.
    programs: Vec<PathBuf>,
    /// Other files of this machine.
    files: Vec<PathBuf>,
    /// The userland for programs, and those programs of the suite's steps that must be in it.
    root: Option<(Userland, BTreeSet<String>)>,
    /// Punctual's own kernel modules, by name.
    modules: Vec<String>,
    /// True if it gets a disk.
    disk: bool,
    /// The two cards of its wire, if it gets one.
    pub network: Option<Card>,
    /// True if it gets a piece of a kernel's source.
    kernel_source: bool,
    /// Memory, in mebibytes.
    pub memory_mib: u32,
    /// The number of CPUs.
    pub cpus: u32,
    /// The longest turn of one of several CPUs: a whole number of microseconds.
    pub turn: Nanos,
    /// Nanoseconds of virtual time per instruction.
    pub ns_per_insn: u32,
    /// The way in which a run gets a booted guest.
    pub start: Start,
}

impl Equipment {
    /// Collects what a suite and its loads ask for, as far as it exists on this machine. Missing
    /// parts are reported; the probes that need them will be unsupported, and everything else can
    /// be measured.
    pub fn of(
        suite: &Suite,
        loads: &BTreeMap<String, Load>,
        say: &mut dyn FnMut(&str),
    ) -> Result<Self, Error> {
        check_modules(suite)?;
        let disk = of_steps(suite, loads).any(|load| load.disk);
        let mut programs = programs(suite, loads);
        programs.extend(disk.then(|| MKE2FS.to_owned()));
        Ok(Self {
            root: root(suite, say)?,
            disk,
            network: suite.network,
            kernel_source: of_steps(suite, loads).any(|load| load.kernel_source),
            programs: find_programs(&programs, say)?,
            files: find_files(&suite.files, say)?,
            modules: suite.modules.clone(),
            memory_mib: suite.memory_mib,
            cpus: suite.cpus.get(),
            turn: TURN,
            ns_per_insn: 1,
            start: Start::Resumed,
        })
    }
}

impl Equipment {
    /// Checks that the guest's files can be copied and fit into its memory.
    fn check_room(&self) -> Result<(), Error> {
        let mut bytes = 0;
        for path in self.programs.iter().chain(&self.files) {
            let found = fs::metadata(path).map_err(Error::at(path))?;
            let path = path.display();
            if !found.is_file() {
                return Err(Error::Request(format!("{path}: expected a file")));
            }
            bytes += found.len();
            let memory = self.memory_mib;
            if bytes > u64::from(memory) << 20 {
                return Err(Error::Request(format!(
                    "{path}: expected files that fit into a guest's {memory} MiB of memory"
                )));
            }
        }
        Ok(())
    }
}

impl Equipment {
    /// Checks that a userland fits into a guest's memory twice: once packed, and once unpacked, for
    /// which the kernel takes at most half of the memory.
    fn check_room_for(&self, userland: &Userland) -> Result<(), Error> {
        /// The memory for the rest of a guest, in mebibytes.
        const REST_MIB: u64 = 128;
        let needs = 2 * userland.size().div_ceil(1 << 20) + REST_MIB;
        if needs <= u64::from(self.memory_mib) {
            return Ok(());
        }
        let needs = needs.next_multiple_of(64);
        let here = memory::total_mib().filter(|here| *here < needs + u64::from(BESIDE_GUEST_MIB));
        let hint = here.map_or_else(
            || format!("--memory {needs}, or memory_mib = {needs} in the suite, gives it as much"),
            |here| format!("this machine has {here} MiB: expected a smaller userland"),
        );
        Err(Error::Request(format!(
            "{}: a guest with it needs {needs} MiB of memory, and has {}: {hint}",
            userland.told(),
            self.memory_mib
        )))
    }
}

/// Makes virtual subjects ready.
pub struct Builder<'a> {
    /// The bench.
    pub bench: &'a VirtualBench,
    /// The catalog from which kernels come.
    pub catalog: &'a Catalog,
    /// Punctual's cache directory.
    pub cache: &'a Path,
    /// The equipment that each subject gets.
    pub equipment: &'a Equipment,
}

impl Builder<'_> {
    /// Builds a system for each subject, in their order; fetches kernels and builds modules if
    /// needed.
    pub fn build(
        &self,
        subjects: &[SubjectSpec],
        progress: &mut dyn FnMut(&str),
    ) -> Result<Vec<PreparedSystem>, Error> {
        let mut guests: BTreeMap<&str, Guest> = BTreeMap::new();
        let mut systems = Vec::new();
        for subject in subjects {
            let id = subject.kernel.as_str();
            if !guests.contains_key(id) {
                guests.insert(id, self.guest(id, progress)?);
            }
            let guest = &guests[id];
            check_offered(&guest.kernel, subject)?;
            systems.push(self.system(guest, subject)?);
        }
        Ok(systems)
    }

    fn guest(&self, kernel: &str, progress: &mut dyn FnMut(&str)) -> Result<Guest, Error> {
        self.equipment.check_room()?;
        let kernel = self.catalog.ensure(kernel, progress);
        let kernel = kernel.map_err(with_likely_name)?;
        let architecture = kernel.architecture;
        let processor = architecture.into();
        // What the wire needs further would change the bytes, and with them the figures, of all
        // other guests.
        let target = if self.equipment.network.is_some() && !architecture.is_foreign() {
            Companion::Wire(processor)
        } else {
            Companion::Target(processor)
        };
        let target = target.find();
        let busybox = if architecture.is_foreign() {
            busybox::of(self.cache, architecture, progress)?
        } else {
            initramfs::find_busybox()?
        };
        let (own, mut absent) = self.modules(&kernel, progress)?;
        let modules = [kernel.modules.clone(), own].concat();
        let programs = self.programs(&kernel, progress);
        let mut initramfs = initramfs::base(architecture, &target, &busybox, &modules, &programs)?;
        for file in &self.equipment.files {
            put(&mut initramfs, file)?;
        }
        if let Some((userland, programs)) = &self.equipment.root {
            self.equipment.check_room_for(userland)?;
            put_root(&mut initramfs, userland, &self.equipment.files)?;
            for program in programs {
                userland.check_program(program, architecture)?;
            }
        }
        if self.equipment.disk && architecture.is_foreign() {
            // What makes its file system is a program of this machine.
            progress(&format!(
                "{}: no disk: guests for {architecture} have none",
                kernel.id
            ));
        } else if self.equipment.disk {
            // Without it the loads that need it are unsupported, and all else can be measured.
            match disk::modules(self.cache, &kernel, progress) {
                Ok(modules) => put_disk(&mut initramfs, &modules)?,
                Err(error) => progress(&format!("{}: no disk: {error}", kernel.id)),
            }
        }
        if self.equipment.kernel_source {
            match self.kernel_source(progress) {
                Ok(files) => put_kernel_source(&mut initramfs, &files)?,
                Err(error) => progress(&format!("{}: no kernel source: {error}", kernel.id)),
            }
        }
        let network = match self.network(&kernel, &mut initramfs, progress)? {
            Ok(card) => card,
            Err(why) => {
                absent.insert(MODULE.to_owned(), why);
                None
            }
        };
        let (path, sha256) = self.bench.keep_initramfs(&initramfs)?;
        Ok(Guest {
            kernel,
            initramfs: path,
            initramfs_sha256: sha256,
            network,
            absent,
        })
    }

    /// The cards of a guest's wire, whose driver goes into its initramfs, or the reason why it has
    /// none. Probes that need them are then unsupported, and everything else can be measured.
    fn network(
        &self,
        kernel: &Kernel,
        initramfs: &mut Initramfs,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Result<Option<Card>, String>, Error> {
        let Some(card) = self.equipment.network else {
            return Ok(Ok(None));
        };
        let why = if kernel.architecture.is_foreign() {
            format!("guests for {} have no network", kernel.architecture)
        } else {
            match network::modules(self.cache, kernel, card, progress) {
                Ok(modules) => {
                    put_network(initramfs, &modules)?;
                    return Ok(Ok(Some(card)));
                }
                Err(error) => error.to_string(),
            }
        };
        progress(&format!("{}: no network: {why}", kernel.id));
        Ok(Err(why))
    }

    /// This machine's programs for guests in which they run, and Punctual's own for other guests.
    /// Probes and loads that need a missing program are unsupported, and everything else can be
    /// measured.
    fn programs(&self, kernel: &Kernel, progress: &mut dyn FnMut(&str)) -> Vec<Program> {
        let architecture = kernel.architecture;
        let own = Companion::Calls(Architecture::Amd64).find();
        let mut programs = Vec::new();
        for path in &self.equipment.programs {
            let file = if !architecture.is_foreign() {
                Ok(path.clone())
            } else if *path == own {
                calls(architecture)
            } else {
                let path = path.display();
                Err(format!("{path} does not run on {architecture}"))
            };
            match file {
                Ok(file) => {
                    let name = path.file_name().unwrap_or_default().to_string_lossy();
                    programs.push(Program {
                        name: name.into_owned(),
                        file,
                    });
                }
                Err(why) => progress(&format!("{}: {why}: the guest goes without", kernel.id)),
            }
        }
        programs
    }

    /// The source to compile. It is the same on all kernels, as it would otherwise not be one load.
    fn kernel_source(&self, progress: &mut dyn FnMut(&str)) -> Result<Vec<PathBuf>, KernelError> {
        let kernel = self.catalog.ensure(COMPILED, progress)?;
        tree::preprocessed(self.cache, &kernel, progress)
    }

    /// Punctual's own modules for a kernel, or the reason why there are none. Probes that need them
    /// are then unsupported, and everything else can be measured.
    fn modules(
        &self,
        kernel: &Kernel,
        progress: &mut dyn FnMut(&str),
    ) -> Result<(Vec<PathBuf>, BTreeMap<String, String>), Error> {
        let names = &self.equipment.modules;
        if names.is_empty() {
            return Ok(Default::default());
        }
        match kmod::of_kernel(self.cache, kernel, names, progress) {
            Ok(modules) => Ok((modules, BTreeMap::new())),
            Err(error @ kmod::KmodError::Io { .. }) => Err(error.into()),
            Err(error) => {
                progress(&format!("{}: {error}", kernel.id));
                let absent = |name: &String| (name.clone(), error.to_string());
                Ok((Vec::new(), names.iter().map(absent).collect()))
            }
        }
    }

    /// The machine of one subject, to be watched; its kernel is fetched if needed.
    pub fn machine(
        &self,
        subject: &SubjectSpec,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Machine, Error> {
        let guest = self.guest(&subject.kernel, progress)?;
        check_offered(&guest.kernel, subject)?;
        Ok(self.machine_of(&guest, subject))
    }

    fn machine_of(&self, guest: &Guest, subject: &SubjectSpec) -> Machine {
        Machine {
            cmdline: cmdline(&guest.kernel, &subject.boot, self.equipment.cpus),
            kernel: guest.kernel.clone(),
            initramfs: guest.initramfs.clone(),
            initramfs_sha256: guest.initramfs_sha256.clone(),
            memory_mib: self.equipment.memory_mib,
            cpus: self.equipment.cpus,
            turn: self.equipment.turn,
            network: guest.network,
            ns_per_insn: self.equipment.ns_per_insn,
        }
    }

    fn system(&self, guest: &Guest, subject: &SubjectSpec) -> Result<PreparedSystem, Error> {
        let architecture = guest.kernel.architecture;
        Ok(PreparedSystem {
            system: Box::new(VirtualSystem {
                bench: self
                    .bench
                    .of(architecture, self.equipment.cpus, guest.network)?,
                machine: self.machine_of(guest, subject),
                start: self.equipment.start,
            }),
            absent: guest.absent.clone(),
        })
    }
}

/// Checks that a kernel offers the preemption model that a subject's boot arguments ask for.
fn check_offered(kernel: &Kernel, subject: &SubjectSpec) -> Result<(), Error> {
    match not_offered(kernel, &subject.boot)? {
        None => Ok(()),
        Some(mistake) => {
            let name = &subject.name;
            Err(Error::NotOffered(format!("subject \"{name}\": {mistake}")))
        }
    }
}

/// The error for an unknown kernel, with the name that was probably meant.
fn with_likely_name(error: KernelError) -> Error {
    let KernelError::Unknown { id, known } = error else {
        return error.into();
    };
    let likely = did_you_mean(&id, &known.split(", ").collect::<Vec<_>>());
    Error::UnknownKernel { id, likely, known }
}

/// The parts that subjects with the same kernel share.
struct Guest {
    kernel: Kernel,
    initramfs: PathBuf,
    initramfs_sha256: String,
    network: Option<Card>,
    absent: BTreeMap<String, String>,
}

/// The system for this machine, as it is, for a suite; an error if the program that measures is
/// missing.
pub fn host(suite: &Suite, cache: PathBuf, silence: Duration) -> Result<PreparedSystem, Error> {
    let architecture = Architecture::Amd64;
    let target = Companion::that_measures(suite, architecture.into()).find();
    if !target.exists() {
        let path = target;
        return Err(InitramfsError::NoTarget { path, architecture }.into());
    }
    Ok(PreparedSystem {
        system: Box::new(HostSystem {
            target,
            cache,
            silence,
        }),
        absent: not_loaded(suite, Path::new("/sys/module")),
    })
}

/// The modules of a suite that are not loaded on this machine, with what to do about it. `loaded`
/// is the kernel's directory of loaded modules.
fn not_loaded(suite: &Suite, loaded: &Path) -> BTreeMap<String, String> {
    let why = "install punctual-dkms, or build it as kmod/README.md says, then load it (modprobe)";
    let names = suite.modules.iter();
    let absent = names.filter(|name| !loaded.join(name).exists());
    absent.map(|name| (name.clone(), why.to_owned())).collect()
}

/// Checks that the modules that a suite asks for are Punctual's own.
fn check_modules(suite: &Suite) -> Result<(), Error> {
    for module in &suite.modules {
        if !kmod::NAMES.contains(&module.as_str()) {
            return Err(Error::unknown("kernel module", module, &kmod::NAMES));
        }
    }
    Ok(())
}

/// Has the kernel modules that a suite asks for built on a board, and loaded whenever it measures.
/// Returns those that the board cannot have, with the reasons, and reports these. Probes that need
/// them are unsupported, and everything else can be measured.
pub fn build_modules(
    board: &mut Board,
    suite: &Suite,
    cancel: &AtomicBool,
    say: &mut dyn FnMut(&str),
) -> Result<BTreeMap<String, String>, Error> {
    check_modules(suite)?;
    if suite.modules.is_empty() {
        return Ok(BTreeMap::new());
    }
    let absent = board.build_modules(&suite.modules, cancel, say)?;
    let reasons: BTreeSet<&Absence> = absent.values().collect();
    for reason in reasons {
        let own = absent.iter().filter(|(_, why)| *why == reason);
        let names: Vec<&str> = own.map(|(name, _)| name.as_str()).collect();
        say(&format!(
            "{}: no kernel module {}: {reason}",
            board.hello.host,
            names.join(", ")
        ));
    }
    let text = |(name, why): (String, Absence)| (name, why.to_string());
    Ok(absent.into_iter().map(text).collect())
}

/// The modules that a board lacks because nobody has asked for them, with that as the reason.
pub fn not_asked_for(suite: &Suite) -> BTreeMap<String, String> {
    let why = "--build-modules has it built and loaded there";
    let absent = |name: &String| (name.clone(), why.to_owned());
    suite.modules.iter().map(absent).collect()
}

/// A system for a board that was reached, with the modules that it cannot have and the reasons.
pub fn board(system: SshSystem, absent: BTreeMap<String, String>) -> PreparedSystem {
    PreparedSystem {
        system: Box::new(system),
        absent,
    }
}

/// A system with a peer that answers its frames as long as the system exists.
pub fn answered(
    prepared: PreparedSystem,
    peer: &Peer,
    cancel: &AtomicBool,
) -> Result<PreparedSystem, Error> {
    let PreparedSystem { system, absent } = prepared;
    let wire = |processor| Companion::Wire(processor).find();
    let system = AnsweredSystem::begin(system, peer, wire, cancel)?;
    Ok(PreparedSystem {
        system: Box::new(system),
        absent,
    })
}

/// Puts a disk's modules where the target looks for them, each beside its parameters.
fn put_disk(initramfs: &mut Initramfs, modules: &[DiskModule]) -> Result<(), Error> {
    for (number, module) in modules.iter().enumerate() {
        let name = module.path.file_stem().unwrap_or_default();
        let place = format!("/lib/modules/disk/{number:02}-{}", name.to_string_lossy());
        let bytes = fs::read(&module.path).map_err(Error::at(&module.path))?;
        initramfs.file(&format!("{place}.ko"), 0o644, bytes)?.file(
            &format!("{place}.parameters"),
            0o644,
            &*module.parameters,
        )?;
    }
    Ok(())
}

/// Puts the modules of a network card where the guest loads them in the order of their names, the
/// card's last.
fn put_network(initramfs: &mut Initramfs, modules: &[PathBuf]) -> Result<(), Error> {
    for (number, module) in modules.iter().enumerate() {
        let name = module.file_name().unwrap_or_default().to_string_lossy();
        let is_last = number + 1 == modules.len();
        let first = if is_last {
            String::new()
        } else {
            format!("{number:02}-")
        };
        let bytes = fs::read(module).map_err(Error::at(module))?;
        initramfs.file(&format!("/lib/modules/network/{first}{name}"), 0o644, bytes)?;
    }
    Ok(())
}

/// Puts the source where loads look for it.
fn put_kernel_source(initramfs: &mut Initramfs, files: &[PathBuf]) -> Result<(), Error> {
    for file in files {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let bytes = fs::read(file).map_err(Error::at(file))?;
        initramfs.file(&format!("/usr/src/linux/lib/{name}"), 0o644, bytes)?;
    }
    Ok(())
}

/// The userland of a suite, and the programs of its steps that must be in it.
fn root(
    suite: &Suite,
    say: &mut dyn FnMut(&str),
) -> Result<Option<(Userland, BTreeSet<String>)>, Error> {
    let Some(root) = &suite.root else {
        return Ok(None);
    };
    let userland = Userland::read(Path::new(root))?;
    say(&userland.told());
    let steps = suite.steps.iter().filter(|step| step.probe == "app");
    let programs = steps.filter_map(|step| {
        let run = step.params.get("run")?.as_array()?;
        let run: Option<Vec<String>> = run.iter().map(|w| Some(w.as_str()?.to_owned())).collect();
        suite::variables(&run?).1.first().cloned()
    });
    Ok(Some((userland, programs.collect())))
}

/// Puts a userland into the guest, and further files of the guest into that.
fn put_root(
    initramfs: &mut Initramfs,
    userland: &Userland,
    files: &[PathBuf],
) -> Result<(), Error> {
    let mut found = Vec::new();
    for file in files {
        let name = std::path::absolute(file).map_err(Error::at(file))?;
        let bytes = fs::read(file).map_err(Error::at(file))?;
        found.push((name.to_string_lossy().into_owned(), mode_of(file)?, bytes));
    }
    userland.put_into(initramfs, &found)?;
    Ok(())
}

fn put(initramfs: &mut Initramfs, file: &Path) -> Result<(), Error> {
    let name = file
        .to_str()
        .ok_or_else(|| Error::Request(format!("{}: expected a name in UTF-8", file.display())))?;
    let bytes = fs::read(file).map_err(Error::at(file))?;
    initramfs.file(name, mode_of(file)?, bytes)?;
    Ok(())
}

/// The mode of a file's copy in a guest: it can be executed there if somebody may execute it here.
fn mode_of(file: &Path) -> Result<u32, Error> {
    let found = fs::metadata(file).map_err(Error::at(file))?;
    let is_program = found.permissions().mode() & 0o111 != 0;
    Ok(if is_program { 0o755 } else { 0o644 })
}

/// The loads of a suite's steps.
fn of_steps<'a>(
    suite: &'a Suite,
    loads: &'a BTreeMap<String, Load>,
) -> impl Iterator<Item = &'a Load> {
    suite.steps.iter().filter_map(|step| loads.get(&step.load))
}

/// The programs that a suite and the loads of its steps name, each once.
fn programs(suite: &Suite, loads: &BTreeMap<String, Load>) -> BTreeSet<String> {
    let of_loads = of_steps(suite, loads).flat_map(|load| &load.programs);
    suite.programs.iter().chain(of_loads).cloned().collect()
}

/// Finds programs by name, path or path pattern, as paths; names are looked up along the PATH.
fn find_programs(
    programs: &BTreeSet<String>,
    say: &mut dyn FnMut(&str),
) -> Result<Vec<PathBuf>, Error> {
    let mut found = Vec::new();
    for name in programs {
        if let Some(path) = find_program(name)? {
            found.push(path);
            continue;
        }
        // One that users name, and that Debian has a package of by its own name.
        let is_known = name == "stress-ng";
        let hint = if is_known {
            " (apt install stress-ng)"
        } else {
            ""
        };
        say(&format!(
            "{name} is not installed here{hint}: the guest goes without"
        ));
    }
    Ok(found)
}

/// The program that runs programs of system calls, for guests of this architecture. If it is
/// missing, the error says how to get it.
pub fn calls(architecture: Architecture) -> Result<PathBuf, String> {
    let path = Companion::Calls(architecture).find();
    if path.is_file() {
        return Ok(path);
    }
    Err(format!(
        "expected {}, found no such file: build it with `{}`, or name it by {}",
        path.display(),
        initramfs::build_command(architecture),
        Companion::Calls(architecture).variable()
    ))
}

/// Finds a program by name, path or path pattern; a name is looked up along the PATH.
pub(crate) fn find_program(name: &str) -> Result<Option<PathBuf>, Error> {
    if name.contains('*') {
        return Ok(find(name)?.pop());
    }
    if name.contains('/') {
        return Ok(Some(PathBuf::from(name)).filter(|path| path.is_file()));
    }
    if name == CALLS {
        return Ok(calls(Architecture::Amd64).ok());
    }
    let search = std::env::var_os("PATH").unwrap_or_default();
    let candidates = std::env::split_paths(&search).map(|directory| directory.join(name));
    Ok(candidates.into_iter().find(|path| path.is_file()))
}

/// The files that match a pattern, sorted.
fn find(pattern: &str) -> Result<Vec<PathBuf>, Error> {
    let wrong = |error: glob::PatternError| Error::Request(format!("{pattern}: {error}"));
    let paths = glob::glob(pattern).map_err(wrong)?;
    let readable = |error: glob::GlobError| Error::Io {
        path: error.path().to_owned(),
        error: error.into(),
    };
    paths.map(|path| path.map_err(readable)).collect()
}

/// Directories of a guest's own, which hide files copied there.
const OF_GUESTS: [&str; 5] = ["/dev", "/proc", "/run", "/sys", "/tmp"];

/// The files that match these patterns, sorted.
fn find_files(patterns: &[String], say: &mut dyn FnMut(&str)) -> Result<Vec<PathBuf>, Error> {
    let mut files = Vec::new();
    for pattern in patterns {
        let found = find(pattern)?;
        if found.is_empty() {
            say(&format!(
                "there is no {pattern} here: the guest goes without"
            ));
        }
        for path in &found {
            let path = std::path::absolute(path).map_err(Error::at(path))?;
            if let Some(own) = OF_GUESTS.iter().find(|own| path.starts_with(own)) {
                return Err(Error::Request(format!(
                    "{}: a guest has {own} of its own: expected a file elsewhere",
                    path.display()
                )));
            }
        }
        files.extend(found);
    }
    files.sort();
    files.dedup();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_that_a_kernel_does_not_offer_is_an_error_of_its_own() {
        let directory = tempfile::tempdir().unwrap();
        let config = directory.path().join("config");
        fs::write(&config, "CONFIG_PREEMPT_RT=y\n").unwrap();
        let kernel = Kernel {
            id: "mine".to_owned(),
            release: "6.12.1-rt".to_owned(),
            architecture: Architecture::Amd64,
            image: PathBuf::new(),
            image_sha256: String::new(),
            boot: String::new(),
            modules: Vec::new(),
            origin: String::new(),
            config: Some(config),
            suites: Vec::new(),
            package: None,
            built: None,
        };
        let check = |boot: &str| {
            let subject = SubjectSpec {
                name: "s".to_owned(),
                kernel: "mine".to_owned(),
                boot: boot.to_owned(),
            };
            check_offered(&kernel, &subject)
        };
        assert!(check("preempt=full").is_ok());
        let error = check("preempt=none").unwrap_err();
        assert!(matches!(error, Error::NotOffered(_)) && error.is_request());
        let told = "subject \"s\": expected preempt=full, as mine offers, found preempt=none";
        assert_eq!(error.to_string(), told);
    }

    #[test]
    fn a_file_that_can_be_executed_here_can_be_executed_in_a_guest() {
        let directory = tempfile::tempdir().unwrap();
        let mut initramfs = Initramfs::new();
        for (name, here, there) in [("helper", 0o700, 0o755), ("data", 0o600, 0o644)] {
            let file = directory.path().join(name);
            fs::write(&file, "x").unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(here)).unwrap();
            put(&mut initramfs, &file).unwrap();
            let found = initramfs.get(file.to_str().unwrap());
            let expected = initramfs::Entry::File {
                mode: there,
                bytes: b"x".to_vec(),
            };
            assert_eq!(found, Some(&expected));
        }
    }

    #[test]
    fn a_module_that_this_machine_lacks_is_named_with_the_package_that_has_it() {
        let text = "name = \"s\"\nsummary = \"\"\nmodules = [\"backfire\", \"pulse\"]\n\
                    [[step]]\nprobe = \"irq\"\n";
        let suite = Suite::parse(text).unwrap();
        let loaded = tempfile::tempdir().unwrap();
        fs::create_dir(loaded.path().join("backfire")).unwrap();
        let absent = not_loaded(&suite, loaded.path());
        assert_eq!(absent.keys().collect::<Vec<_>>(), ["pulse"]);
        assert!(absent["pulse"].starts_with("install punctual-dkms, "));
    }
}

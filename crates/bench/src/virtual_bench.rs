// SPDX-License-Identifier: MIT OR Apache-2.0
//! The virtual bench: a real kernel in QEMU's software emulation, with a clock that counts
//! instructions.
//! A guest is booted once and kept as a [`snapshot`]; each run resumes from there with its own
//! plan. The guest's records come through a port of their own, and its console is kept apart. Both
//! are files in a [`WorkDir`], so no output of the guest waits for the host or is lost with it. A
//! [`Watch`] tells a slow guest from a lost one.

mod error;
mod guest_memory;
mod hardware;
mod plugin;
mod qemu;
mod qemu_args;
mod qmp;
pub mod snapshot;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

pub use error::Error;
pub use hardware::{Hardware, of as hardware};
pub use plugin::Plugin;
pub use qemu_args::{CPUS_MAX, Machine, Memory, NS_PER_INSN_MAX, TURN, cmdline};
#[doc(hidden)]
pub use qmp::Qmp;
pub use qmp::QmpError;

use crate::cache;
use crate::console::Console;
use crate::error::RunError;
use crate::system::{Afterwards, Event, Listener, RunEnding, SILENCE, SystemUnderTest};
use crate::watch::{Until, Watch};
use crate::workdir::WorkDir;
use punctual_kernels::checksum;
use punctual_kernels::initramfs::Initramfs;
use punctual_kernels::paths::{Lock, write_atomically};
use punctual_model::aim::Aim;
use punctual_model::frame::FrameError;
use punctual_model::machine::VirtualMachine;
use punctual_model::network::Card;
use punctual_model::{Architecture, MachineRecord};
use qemu::{Process, Qemu};
use snapshot::{Files, Snapshot, SnapshotRecord};

/// The way in which a run gets a booted guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// From a snapshot, which is made first if there is none.
    Resumed,
    /// By a boot of its own.
    Cold,
}

/// The fate of the running step when a run is cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cancel {
    /// Its samples are kept: the guest is asked to end, and gets time for that.
    Keep,
    /// It is discarded.
    Discard,
}

/// The bench on which virtual subjects run.
#[derive(Clone, Debug)]
pub struct VirtualBench {
    qemu: Qemu,
    cache: PathBuf,
    /// The CPU time that QEMU may use between two signs of life of its guest.
    pub silence: Duration,
    /// The plugin that watches the guests while they carry out their plans.
    pub plugin: Option<Plugin>,
    /// The sample whose deadline is moved to a chosen moment.
    pub aim: Aim,
    /// The space that booted guests may take in the cache, in bytes.
    pub cache_limit: u64,
    /// Locks on the files that this process needs in the cache, for as long as it has a bench.
    in_use: Arc<Mutex<BTreeMap<PathBuf, Lock>>>,
    /// The machines whose kernels failed to boot, by the keys of their snapshots.
    unbootable: Arc<Mutex<BTreeMap<String, Unbootable>>>,
}

/// A machine that does not boot. It will not boot with another seed either, as each boot is the
/// same.
#[derive(Clone, Debug)]
struct Unbootable {
    /// The meaning of its console.
    sign: &'static str,
    /// Its console output.
    console: Vec<u8>,
}

impl VirtualBench {
    /// Opens the bench that keeps its files in Punctual's cache directory, for x86-64 machines of
    /// up to `cpus` CPUs. Returns an error if QEMU is missing, or too old for several CPUs.
    pub fn open(cache: &Path, cpus: u32) -> Result<Self, Error> {
        Ok(Self {
            qemu: find_qemu(Architecture::Amd64, cache, cpus)?,
            cache: cache.to_owned(),
            silence: SILENCE,
            plugin: None,
            aim: Aim::NONE,
            cache_limit: cache::LIMIT,
            in_use: Arc::default(),
            unbootable: Arc::default(),
        })
    }

    /// The same bench for machines of this architecture, with these cards. Returns an error if
    /// QEMU for it is missing, or too old for that many CPUs or for the cards.
    pub fn of(
        &self,
        architecture: Architecture,
        cpus: u32,
        network: Option<Card>,
    ) -> Result<Self, Error> {
        let qemu = if network == Some(Card::Igb) {
            Qemu::find_fair(architecture, &self.cache)?
        } else if architecture == Architecture::Amd64 {
            self.qemu.clone()
        } else {
            find_qemu(architecture, &self.cache, cpus)?
        };
        Ok(Self {
            qemu,
            ..self.clone()
        })
    }

    /// Puts an initramfs where QEMU can find it; returns its path and its SHA-256.
    pub fn keep_initramfs(&self, initramfs: &Initramfs) -> Result<(PathBuf, String), Error> {
        let bytes = initramfs.finish()?;
        let sha256 = checksum::of_bytes(&bytes);
        let path = self.initramfs(&sha256)?;
        if !is_it(&path, &sha256).unwrap_or(false) {
            write_atomically(&path, &bytes).map_err(Error::at(&path))?;
            self.trim_cache()?;
        }
        Ok((path, sha256))
    }

    /// The record of a machine, with everything needed to repeat a run there.
    pub fn record(&self, machine: &Machine) -> VirtualMachine {
        VirtualMachine {
            release: Some(machine.kernel.release.clone()),
            image_sha256: machine.kernel.image_sha256.clone(),
            origin: machine.kernel.origin.clone(),
            initramfs_sha256: machine.initramfs_sha256.clone(),
            cmdline: machine.cmdline.clone(),
            memory_mib: machine.memory_mib,
            cpus: machine.cpus,
            network: machine.network,
            turn_us: (machine.cpus > 1).then_some((machine.turn.0 / 1_000) as u32),
            ns_per_insn: machine.ns_per_insn,
            qemu: self.qemu.version.clone(),
            qemu_command: machine.shown(),
        }
    }

    /// Carries out a plan on a machine. `on` is told what happens. The run ends as interrupted if
    /// `on` breaks off, and at once when `cancel` becomes true.
    pub fn run(
        &self,
        machine: &Machine,
        plan: &str,
        start: Start,
        on: Listener,
        cancel: &AtomicBool,
    ) -> RunEnding {
        self.carry_out(machine, plan, (start, Cancel::Discard), on, cancel)
    }

    fn carry_out(
        &self,
        machine: &Machine,
        plan: &str,
        (start, on_cancel): (Start, Cancel),
        on: Listener,
        cancel: &AtomicBool,
    ) -> RunEnding {
        let mut session = Session {
            bench: self,
            machine,
            on,
            cancel,
            on_cancel,
            console: Console::default(),
            went_on: None,
        };
        let begun = Instant::now();
        let result = match start {
            Start::Resumed => session.resumed(plan),
            Start::Cold => session.cold(plan),
        };
        let ended = Instant::now();
        let went_on = session.went_on.unwrap_or(ended);
        RunEnding {
            console: session.console.text(),
            preparing: went_on - begun,
            measuring: ended - went_on,
            result,
            afterwards: Afterwards::default(),
        }
    }

    /// The key of a machine's snapshot, and of everything that can be read from the booted guest.
    pub fn key(&self, machine: &Machine) -> String {
        machine.key(&self.qemu)
    }

    /// The path of an initramfs with this SHA-256. If the file exists, it stays as long as this
    /// bench and counts as used now.
    pub fn initramfs(&self, sha256: &str) -> Result<PathBuf, Error> {
        let path = self.cache.join("initramfs").join(format!("{sha256}.cpio"));
        let lock = Lock::share(&path.with_extension("lock")).map_err(Error::at(&path))?;
        let mut in_use = self.in_use.lock().unwrap_or_else(PoisonError::into_inner);
        in_use.insert(path.clone(), lock);
        if path.is_file() {
            cache::touch(&path).map_err(Error::at(&path))?;
        }
        Ok(path)
    }

    fn trim_cache(&self) -> Result<(), Error> {
        let trimmed = cache::prune(&self.cache, cache::Keep::newest(self.cache_limit));
        trimmed.map(drop).map_err(Error::at(&self.cache))
    }

    fn snapshots(&self) -> PathBuf {
        self.cache.join("snapshots")
    }
}

fn find_qemu(architecture: Architecture, cache: &Path, cpus: u32) -> Result<Qemu, Error> {
    if cpus > 1 {
        Qemu::find_fair(architecture, cache)
    } else {
        Qemu::find(architecture)
    }
}

/// A machine on the virtual bench.
#[derive(Clone, Debug)]
pub struct VirtualSystem {
    /// The bench.
    pub bench: VirtualBench,
    /// The machine.
    pub machine: Machine,
    /// The way in which it gets a booted guest.
    pub start: Start,
}

impl SystemUnderTest for VirtualSystem {
    fn machine(&self) -> MachineRecord {
        MachineRecord::Virtual(self.bench.record(&self.machine))
    }

    fn run(&self, plan: &str, on: Listener, cancel: &AtomicBool) -> RunEnding {
        let how = (self.start, Cancel::Keep);
        self.bench.carry_out(&self.machine, plan, how, on, cancel)
    }
}

/// A run in progress.
struct Session<'a> {
    bench: &'a VirtualBench,
    machine: &'a Machine,
    on: Listener<'a>,
    cancel: &'a AtomicBool,
    on_cancel: Cancel,
    /// The whole console output.
    console: Console,
    /// The moment at which the guest began to carry out its plan.
    went_on: Option<Instant>,
}

impl Session<'_> {
    /// Boots with the plan at hand, and goes on at the point where a snapshot would have been
    /// taken.
    fn cold(&mut self, plan: &str) -> Result<(), RunError> {
        let work = self.work_dir(plan)?;
        self.tell(Event::Booting)?;
        let mut process = self.start(&work, Memory::Fresh)?;
        let machine = self.machine;
        self.watching(&work, |watch| {
            watch.until(Until::Paused, &mut process)?;
            set_off(machine, watch, &mut process)?;
            watch.until(Until::Finished, &mut process)
        })
        .map_err(|error| self.silent_from_the_first(error))
    }

    /// Resumes from a snapshot, which is made first if there is none.
    fn resumed(&mut self, plan: &str) -> Result<(), RunError> {
        let work = self.work_dir(plan)?;
        self.console = self.take_snapshot(&work)?;
        self.tell(Event::Resuming)?;
        let process = self.start(&work, Memory::Resumed)?;
        let mut process = process.resumed(work.path(), self.cancel)?;
        let machine = self.machine;
        self.watching(&work, |watch| {
            set_off(machine, watch, &mut process)?;
            watch.until(Until::Finished, &mut process)
        })
    }

    /// Links the files of this machine's snapshot, made if need be, into `work`; returns the
    /// guest's console output until then. Another process may prune the cache meanwhile without
    /// harm.
    fn take_snapshot(&mut self, work: &WorkDir) -> Result<Console, RunError> {
        let key = self.bench.key(self.machine);
        let directory = self.bench.snapshots().join(&key);
        let _lock = self.lock(&directory.with_extension("lock"))?;
        let snapshot = match Snapshot::open(&directory) {
            Some(snapshot) if snapshot.is_sound() => snapshot,
            _ => self.boot_once(key, &directory)?,
        };
        snapshot.touch().map_err(Error::Snapshot)?;
        snapshot.link(work.path()).map_err(Error::Snapshot)?;
        let mut console = Console::default();
        console.feed(&snapshot.console().map_err(Error::Snapshot)?);
        Ok(console)
    }

    /// Makes a snapshot, unless this machine has failed to boot before.
    fn boot_once(&mut self, key: String, directory: &Path) -> Result<Snapshot, RunError> {
        let unbootable = Arc::clone(&self.bench.unbootable);
        let known = || unbootable.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(Unbootable { sign, console }) = known().get(&key) {
            self.console.feed(console);
            return Err(RunError::Guest(sign));
        }
        let made = self.make_snapshot(directory);
        if let Err(RunError::Guest(sign)) = made {
            let console = self.console.bytes().to_owned();
            known().insert(key, Unbootable { sign, console });
        }
        made
    }

    /// Boots this machine up to the point where it stops itself, and keeps it as a snapshot.
    fn make_snapshot(&mut self, directory: &Path) -> Result<Snapshot, RunError> {
        let work = self.work_dir("")?;
        self.tell(Event::Booting)?;
        let mut process = self.start(&work, Memory::Kept)?;
        self.watching(&work, |watch| watch.until(Until::Paused, &mut process))
            .map_err(|error| self.silent_from_the_first(error))?;
        process.save_devices()?;
        drop(process);
        let snapshot = Snapshot::keep(work.path(), directory, |files| self.describe(files));
        let snapshot = snapshot.map_err(Error::Snapshot)?;
        self.bench.trim_cache()?;
        Ok(snapshot)
    }

    fn tell(&mut self, event: Event) -> Result<(), RunError> {
        match (self.on)(event) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(RunError::Interrupted),
        }
    }

    /// Finds the reason for a guest that ended before its kernel printed its name: it differs from
    /// others.
    fn silent_from_the_first(&self, error: RunError) -> RunError {
        match error {
            RunError::Ended(_) if !self.console.has_kernel_spoken() => {
                Error::mute(&self.bench.cache, self.machine.memory_mib.into()).into()
            }
            error => error,
        }
    }

    fn describe(&self, files: Files) -> SnapshotRecord {
        SnapshotRecord {
            kernel: self.machine.kernel.id.clone(),
            cmdline: self.machine.cmdline.clone(),
            memory_mib: self.machine.memory_mib,
            ns_per_insn: self.machine.ns_per_insn,
            qemu: self.bench.qemu.version.clone(),
            initramfs_sha256: self.machine.initramfs_sha256.clone(),
            files,
        }
    }

    /// Waits until no other process is making this snapshot.
    fn lock(&self, path: &Path) -> Result<Lock, RunError> {
        loop {
            if self.cancel.load(Ordering::SeqCst) {
                return Err(RunError::Interrupted);
            }
            match Lock::try_acquire(path).map_err(Error::at(path))? {
                Some(lock) => return Ok(lock),
                None => thread::sleep(POLL),
            }
        }
    }

    fn work_dir(&self, plan: &str) -> Result<WorkDir, Error> {
        let cache = &self.bench.cache;
        let work = WorkDir::new(cache).map_err(Error::at(cache))?;
        let path = work.path().join("plan");
        let plan = plan.to_owned() + &self.bench.aim.line();
        fs::write(&path, plan).map_err(Error::at(&path))?;
        Ok(work)
    }

    fn start(&self, work: &WorkDir, memory: Memory) -> Result<Process, Error> {
        let (qemu, machine) = (&self.bench.qemu, self.machine);
        check(
            &machine.kernel.image,
            &machine.kernel.image_sha256,
            Error::Replaced,
        )?;
        // A resumed guest has unpacked it already.
        if memory != Memory::Resumed {
            check(
                &machine.initramfs,
                &machine.initramfs_sha256,
                Error::Damaged,
            )?;
        }
        let mut arguments = self.machine.arguments(memory);
        let mut environment = None;
        if let (Some(plugin), false) = (&self.bench.plugin, memory == Memory::Kept) {
            arguments.extend(plugin.arguments());
            environment = Some(Plugin::environment(&qemu.version)?);
        }
        let mut process = Process::start(qemu, &arguments, environment, work.path())?;
        if self.machine.is_board_made_later() {
            let mut made = process.make_board(self.machine.cpus);
            if memory == Memory::Resumed {
                made = made.and_then(|()| process.load_devices());
            }
            if let Err(error) = made {
                return Err(process.failed(error, work.path()));
            }
        }
        if self.on_cancel == Cancel::Keep && memory != Memory::Kept {
            process.watch_memory(self.machine.memory_mib);
        }
        Ok(process)
    }

    /// Watches over a guest, and keeps its console output however it ends.
    fn watching(
        &mut self,
        work: &WorkDir,
        body: impl FnOnce(&mut Watch) -> Result<(), RunError>,
    ) -> Result<(), RunError> {
        let silence = self.bench.silence;
        let mut watch = Watch::begin(work.path(), silence, self.on, self.cancel)?;
        let result = body(&mut watch);
        self.console.feed(watch.console.bytes());
        self.went_on = watch.went_on;
        let needed = self.machine.memory_mib.into();
        result.map_err(|error| out_of_room(error, &self.bench.cache, needed))
    }
}

/// Finds the reason for a guest that a full disk may have ended: QEMU gets the signal SIGBUS for a
/// page of the guest's memory that has no room, and what it cannot write is missing in the stream.
fn out_of_room(error: RunError, cache: &Path, needed_mib: u64) -> RunError {
    let may_be = match &error {
        RunError::Ended(how) => how == SIGBUS,
        RunError::Stream(fault) => matches!(fault, FrameError::Torn { .. }),
        _ => false,
    };
    let found = may_be.then(|| Error::no_room(cache, needed_mib)).flatten();
    found.map_or(error, Into::into)
}

/// The end of a QEMU that SIGBUS has killed, in words.
const SIGBUS: &str = "killed by signal 7";

/// Checks that a file is still the one that was looked up, as another command may have put another
/// one in its place, and disks lose bits; otherwise the error is `otherwise`.
fn check(path: &Path, sha256: &str, otherwise: fn(PathBuf) -> Error) -> Result<(), Error> {
    if is_it(path, sha256).map_err(Error::at(path))? {
        return Ok(());
    }
    Err(otherwise(path.to_owned()))
}

/// Returns true if the file has this SHA-256.
fn is_it(path: &Path, sha256: &str) -> io::Result<bool> {
    Ok(checksum::of_file(path)? == sha256)
}

/// Lets a booted guest go on to its plan.
fn set_off(machine: &Machine, watch: &mut Watch, process: &mut Process) -> Result<(), RunError> {
    if machine.cpus > 1 {
        process.set_turn(machine.turn)?;
    }
    watch.go_on(process)
}

/// The interval at which QEMU is asked whether it is done.
const POLL: Duration = Duration::from_millis(5);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_the_same_length_with_another_bit_is_not_the_one() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("initramfs");
        fs::write(&path, "070701").unwrap();
        let sha256 = checksum::of_bytes(b"070701");
        let check = || check(&path, &sha256, Error::Damaged);
        check().unwrap();
        fs::write(&path, "070700").unwrap();
        let told = check().unwrap_err().to_string();
        assert!(told.contains("damaged: measure again"), "{told}");
        fs::remove_file(&path).unwrap();
        assert!(matches!(check(), Err(Error::Io { .. })));
    }

    #[test]
    fn a_full_disk_is_named_where_it_may_have_ended_a_guest() {
        let cache = std::env::temp_dir();
        let told = |error, needed| out_of_room(error, &cache, needed).to_string();
        let killed = |signal| RunError::Ended(format!("killed by signal {signal}"));
        let torn = || RunError::Stream(FrameError::Torn { frame: 3, have: 7 });
        for error in [killed(7), torn()] {
            let told = told(error, u64::MAX);
            assert!(told.contains("MiB are free: free space"), "{told}");
        }
        // Something else has ended these.
        assert!(told(killed(7), 0).contains("killed by signal 7"));
        assert!(told(killed(11), u64::MAX).contains("killed by signal 11"));
        assert!(told(torn(), 0).contains("damaged"));
    }
}

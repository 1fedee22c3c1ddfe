// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host bench: the target as a child process on this machine, in real time.
//!
//! The kernel under test is the running one. As on the virtual bench, the target's records go
//! through a file, so that nothing is lost if either side dies; its complaints take the place of a
//! console. A target that is killed restores no settings: the bench then has that done.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::FileExt as _;
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use punctual_model::board;
use punctual_model::cpus::parse_list;
use punctual_model::machine::HostMachine;
use punctual_model::status_page::{BYTES, Reader};
use punctual_model::{MachineRecord, Progress};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Pid, Signal, kill_process};

use crate::error::{RunError, describe};
use crate::hwlat;
use crate::ssh::{OWN_ECHO, has_echo, sends_frames};
use crate::system::{Afterwards, Listener, RunEnding, SystemUnderTest};
use crate::watch::{Until, Watch, Watched, is_ready};
use crate::workdir::WorkDir;
use punctual_kernels::checksum;
use punctual_kernels::child::ends_with_parent;

/// Grace period for a target that is asked to end: it ends its step and sends what it has. It gives
/// up by itself after 5 s.
const GRACE_OF_STEP: Duration = Duration::from_secs(15);

/// Grace period for a target that is told to end at once: it stops its loads and restores what it
/// has changed.
const GRACE: Duration = Duration::from_secs(5);

/// The reason why the host bench does not work.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another run is already measuring on this machine.
    #[error(
        "another run is measuring on this machine, and two at a time would measure one another: wait until it has ended"
    )]
    NotAlone,
    /// An echo answers on this machine.
    #[error("{OWN_ECHO}")]
    OwnEcho,
    /// `setpriv`, which makes sure that the target does not outlive its parent, is missing.
    #[error("expected setpriv in the PATH, found none: install it (`apt-get install util-linux`)")]
    NoSetpriv,
    /// The tracer `hwlat` of another target runs, and cannot be ended.
    #[error(
        "expected no tracer hwlat at work, found {}: {}: end the hwlatdetect that reads it, or remove the instance as root (`rmdir`)",
        hwlat::INSTANCE,
        .0
    )]
    Hwlat(io::Error),
    /// A file of the bench cannot be used.
    #[error("{}: {error}", .path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
}

impl Error {
    fn at(path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |error| Self::Io { path, error }
    }
}

/// This machine.
#[derive(Clone, Debug)]
pub struct HostSystem {
    /// The target program.
    pub target: PathBuf,
    /// Punctual's cache directory.
    pub cache: PathBuf,
    /// The wall-clock time that the target may stay silent in addition to what its step takes.
    pub silence: Duration,
}

impl SystemUnderTest for HostSystem {
    fn machine(&self) -> MachineRecord {
        let line = |path| fs::read_to_string(path).map(|text| text.trim().to_owned());
        let host = line("/proc/sys/kernel/hostname");
        MachineRecord::Host(HostMachine {
            host: host.unwrap_or_else(|error| format!("unknown: {error}")),
            release: line("/proc/sys/kernel/osrelease").ok(),
            cpus: line("/sys/devices/system/cpu/online")
                .ok()
                .and_then(|list| count(&list)),
            target_sha256: checksum::of_file(&self.target).ok(),
            ssh: None,
        })
    }

    fn run(&self, plan: &str, on: Listener, cancel: &AtomicBool) -> RunEnding {
        let begun = Instant::now();
        let (console, result) = match self.start(plan) {
            Ok((work, mut process)) => self.watch(&work, &mut process, on, cancel),
            Err(error) => (String::new(), Err(RunError::bench(error))),
        };
        RunEnding {
            console,
            preparing: Duration::ZERO,
            measuring: begun.elapsed(),
            result,
            afterwards: Afterwards::default(),
        }
    }
}

/// The number of CPUs in a list of the kernel; `None` if it is not such a list.
fn count(list: &str) -> Option<u32> {
    let cpus = parse_list(list).ok()?;
    u32::try_from(cpus.len()).ok()
}

impl HostSystem {
    fn start(&self, plan: &str) -> Result<(WorkDir, Process), Error> {
        let socket = || Error::at(Path::new("@punctual-host"));
        let alone = board::alone().map_err(|error| match error.kind() {
            io::ErrorKind::AddrInUse => Error::NotAlone,
            _ => socket()(error),
        })?;
        let sockets = || fs::read_to_string("/proc/net/udp").unwrap_or_default();
        if sends_frames(plan) && has_echo(&sockets()) {
            return Err(Error::OwnEcho);
        }
        hwlat::end_left_behind(Path::new(hwlat::INSTANCE)).map_err(Error::Hwlat)?;
        let work = WorkDir::new(&self.cache).map_err(Error::at(&self.cache))?;
        let directory = work.path().to_owned();
        let at = || Error::at(&directory);
        fs::write(directory.join("plan"), plan).map_err(at())?;
        let file = |name: &str| File::create(directory.join(name)).map_err(at());
        let status_page = status_page().map_err(at())?;
        let child = ends_with_parent("TERM", &[], &self.target)
            .args([Path::new("run"), &directory.join("plan")])
            .env("PUNCTUAL_STATUS_PAGE", path_of(&status_page))
            .stdin(copy_of(&alone).map_err(socket())?)
            .stdout(file("stream")?)
            .stderr(file("console")?)
            // Ctrl-C is for Punctual, which then sees to it that the target ends.
            .process_group(0)
            .spawn()
            .map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => Error::NoSetpriv,
                _ => Error::at(&self.target)(error),
            })?;
        let begun = Instant::now();
        let process = Process {
            child,
            begun,
            status_page,
            reader: Reader::default(),
            target: self.target.clone(),
            restored: None,
            _alone: alone,
        };
        Ok((work, process))
    }

    fn watch(
        &self,
        work: &WorkDir,
        process: &mut Process,
        on: Listener,
        cancel: &AtomicBool,
    ) -> (String, Result<(), RunError>) {
        let mut watch = match Watch::begin(work.path(), self.silence, on, cancel) {
            Ok(watch) => watch,
            Err(error) => return (String::new(), Err(error.into())),
        };
        let result = watch.until(Until::Finished, process);
        let restored = process.end();
        (watch.console.text() + &restored, result)
    }
}

/// A copy of the lock on the machine as standard input, which a target with a plan does not read.
/// Whoever has it measures alone until it has ended, also if this process was killed before.
fn copy_of(alone: &UnixListener) -> io::Result<Stdio> {
    Ok(OwnedFd::from(alone.try_clone()?).into())
}

/// A file in memory. A page of a file on a disk would be written back now and then, and its next
/// writer, a thread that measures, would have to wait for that.
fn status_page() -> io::Result<File> {
    let file = File::from(memfd_create("punctual-status", MemfdFlags::CLOEXEC)?);
    file.set_len(BYTES as u64)?;
    Ok(file)
}

/// The path by which a process of the same user can open a file that has no name.
fn path_of(file: &File) -> PathBuf {
    format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()).into()
}

/// A running target.
struct Process {
    child: Child,
    begun: Instant,
    /// The page in which the target leaves its progress.
    status_page: File,
    reader: Reader,
    /// The target program.
    target: PathBuf,
    /// What was restored in its place, once that has been tried.
    restored: Option<String>,
    /// Lock on the machine, held until the target has ended.
    _alone: UnixListener,
}

impl Process {
    /// Asks the target to end; a second request makes it end at once.
    fn terminate(&self) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        if let Some(pid) = pid {
            let _ = kill_process(pid, Signal::TERM);
        }
    }

    /// Tells the target to end at once, and kills it if it does not. Returns lines with what was
    /// restored in its place just now.
    fn end(&mut self) -> String {
        let until = Instant::now() + GRACE;
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < until {
            // One that has finished ends by itself, and is not there any more to be told.
            self.terminate();
            thread::sleep(Duration::from_millis(10));
        }
        let _ = self.child.kill();
        let was_told = self.restored.is_some();
        match self.child.wait() {
            Ok(status) if !was_told => {
                let lines = self.restore_after(status).split("; ");
                let lines = lines.filter(|line| !line.is_empty());
                lines.flat_map(|line| [line, "\n"]).collect()
            }
            _ => String::new(),
        }
    }

    /// Restores, once, what a killed target left changed; returns a description of that.
    fn restore_after(&mut self, status: ExitStatus) -> &str {
        let target = &self.target;
        self.restored.get_or_insert_with(|| {
            if status.code().is_some() {
                return String::new();
            }
            restore(target) + &end_hwlat(Path::new(hwlat::INSTANCE))
        })
    }
}

/// Runs `punctual-target restore`; returns what it restored, or why it could not.
fn restore(target: &Path) -> String {
    let output = Command::new(target)
        .arg("restore")
        .stdin(Stdio::null())
        .output();
    match output {
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            let lines = said.lines();
            let lines = lines.map(|line| line.trim_start_matches("punctual-target: "));
            lines.flat_map(|line| ["; ", line]).collect()
        }
        Err(error) => format!(
            "; its settings are not restored: {} restore: {error}",
            target.display()
        ),
    }
}

/// Ends the tracer `hwlat` that a killed target has left in this instance; returns what it removed,
/// or why it could not.
fn end_hwlat(instance: &Path) -> String {
    match hwlat::end_left_behind(instance) {
        Ok(false) => String::new(),
        Ok(true) => "; removed tracing instance punctual-hwlat".to_owned(),
        Err(error) => format!(
            "; the kernel's tracer hwlat goes on: {}: {error}",
            instance.display()
        ),
    }
}

impl Watched for Process {
    fn status(&mut self) -> Result<Option<String>, RunError> {
        let Some(status) = self.child.try_wait()? else {
            return Ok(None);
        };
        let restored = self.restore_after(status);
        Ok(Some(describe(status) + restored))
    }

    fn ask_to_end(&mut self) -> Option<Duration> {
        self.terminate();
        Some(GRACE_OF_STEP)
    }

    fn progress(&mut self) -> Option<Progress> {
        let mut bytes = vec![0; BYTES];
        self.status_page.read_exact_at(&mut bytes, 0).ok()?;
        self.reader.read(&bytes)
    }

    fn spent(&self) -> Duration {
        self.begun.elapsed()
    }

    fn is_ready(&self) -> bool {
        is_ready(self.child.id())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use std::os::linux::net::SocketAddrExt as _;
    use std::os::unix::net::SocketAddr;

    use super::*;

    #[test]
    fn a_machine_is_free_once_the_target_has_ended() {
        let name = format!("punctual-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(name).unwrap();
        let alone = || UnixListener::bind_addr(&address);
        let own = alone().unwrap();
        let mut target = Command::new("sleep")
            .arg("600")
            .stdin(copy_of(&own).unwrap())
            .spawn()
            .unwrap();
        drop(own);
        assert_eq!(alone().unwrap_err().kind(), io::ErrorKind::AddrInUse);
        target.kill().unwrap();
        target.wait().unwrap();
        // A process that another test has just forked has the socket, too, until it executes.
        while let Err(error) = alone() {
            assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
            thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn a_machine_has_the_cpus_that_its_kernel_runs() {
        assert_eq!(count("0-3,8"), Some(5));
        assert_eq!(count(""), None);
        let system = HostSystem {
            target: "/nonexistent/punctual-target".into(),
            cache: PathBuf::new(),
            silence: Duration::ZERO,
        };
        let MachineRecord::Host(machine) = system.machine() else {
            panic!("expected a host");
        };
        // Whatever share of them this process may use.
        let online = fs::read_to_string("/sys/devices/system/cpu/online").unwrap();
        assert_eq!(machine.cpus, count(online.trim()));
    }

    #[test]
    fn what_a_target_that_is_killed_leaves_unrestored_is_told_once() {
        let name = format!("punctual-test-killed-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(name).unwrap();
        let mut process = Process {
            child: Command::new("sleep").arg("600").spawn().unwrap(),
            begun: Instant::now(),
            status_page: status_page().unwrap(),
            reader: Reader::default(),
            target: "/nonexistent/punctual-target".into(),
            restored: None,
            _alone: UnixListener::bind_addr(&address).unwrap(),
        };
        let told = process.end();
        assert!(
            told.starts_with("its settings are not restored: /"),
            "{told}"
        );
        assert!(told.ends_with('\n'), "{told}");
        assert_eq!(process.end(), "");
    }

    #[test]
    fn a_tracer_that_cannot_be_ended_is_named_with_its_place() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(end_hwlat(&directory.path().join("none")), "");
        fs::write(directory.path().join("current_tracer"), "").unwrap();
        let said = end_hwlat(directory.path());
        assert!(
            said.starts_with("; the kernel's tracer hwlat goes on: /"),
            "{said}"
        );
    }
}

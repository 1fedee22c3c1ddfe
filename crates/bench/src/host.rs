//! The host bench: the target as a child process on this machine, in real time.
//!
//! The kernel that is judged is the one that runs. What the target says goes through a file,
//! as on the virtual bench, so that nothing of it is lost with either side; what it complains
//! of takes the place of a console.

use std::fs::{self, File};
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use punctual_model::MachineRecord;
use punctual_model::machine::HostMachine;
use rustix::process::{Pid, Signal, kill_process};

use crate::error::BenchError;
use crate::site::{Event, Outcome, Site};
use crate::watch::{Until, Watch, Watched};
use crate::workdir::WorkDir;
use punctual_kernels::checksum;

/// How long a target that is told to end may take to stop its loads and turn back what it
/// has turned.
const GRACE: Duration = Duration::from_secs(5);

/// Who holds the socket of this name measures on this machine.
const ALONE: &[u8] = b"punctual-host";

/// This machine.
#[derive(Clone, Debug)]
pub struct HostSite {
    /// The target program.
    pub target: PathBuf,
    /// Punctual's cache directory.
    pub cache: PathBuf,
    /// The time on the wall that the target may keep silent beside what its step takes.
    pub silence: Duration,
}

impl Site for HostSite {
    fn machine(&self) -> MachineRecord {
        let line = |path| fs::read_to_string(path).map(|text| text.trim().to_owned());
        let host = line("/proc/sys/kernel/hostname");
        MachineRecord::Host(HostMachine {
            host: host.unwrap_or_else(|error| format!("unknown: {error}")),
            release: line("/proc/sys/kernel/osrelease").ok(),
            cpus: thread::available_parallelism()
                .ok()
                .map(|cpus| cpus.get() as u32),
            target_sha256: checksum::of_file(&self.target).ok(),
        })
    }

    fn run(&self, plan: &str, on: &mut dyn FnMut(Event), cancel: &AtomicBool) -> Outcome {
        let begun = Instant::now();
        let (console, result) = match self.start(plan) {
            Ok((work, mut process)) => self.watch(&work, &mut process, on, cancel),
            Err(error) => (String::new(), Err(error)),
        };
        Outcome {
            console,
            preparing: Duration::ZERO,
            measuring: begun.elapsed(),
            result,
        }
    }
}

impl HostSite {
    fn start(&self, plan: &str) -> Result<(WorkDir, Process), BenchError> {
        let alone = alone()?;
        let work = WorkDir::new(&self.cache).map_err(BenchError::at(&self.cache))?;
        let directory = work.path().to_owned();
        let at = || BenchError::at(&directory);
        fs::write(directory.join("plan"), plan).map_err(at())?;
        let file = |name: &str| File::create(directory.join(name)).map_err(at());
        let child = Command::new("setpriv")
            .args(["--pdeathsig", "TERM", "--"])
            .arg(&self.target)
            .args([Path::new("run"), &directory.join("plan")])
            .stdin(Stdio::null())
            .stdout(file("stream")?)
            .stderr(file("console")?)
            // Ctrl-C is for Punctual, which then sees to it that the target ends.
            .process_group(0)
            .spawn()
            .map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => BenchError::NoSetpriv,
                _ => BenchError::at(&self.target)(error),
            })?;
        let begun = Instant::now();
        let process = Process {
            child,
            begun,
            _alone: alone,
        };
        Ok((work, process))
    }

    fn watch(
        &self,
        work: &WorkDir,
        process: &mut Process,
        on: &mut dyn FnMut(Event),
        cancel: &AtomicBool,
    ) -> (String, Result<(), BenchError>) {
        let mut watch = match Watch::begin(work.path(), self.silence, on, cancel) {
            Ok(watch) => watch,
            Err(error) => return (String::new(), Err(error.into())),
        };
        let result = watch.until(Until::Finished, process);
        process.end();
        (watch.console.text(), result)
    }
}

/// Two runs at a time would measure one another. The name is the machine's, whoever's the
/// runs are, and the kernel gives it back when its holder dies.
fn alone() -> Result<UnixListener, BenchError> {
    let name = SocketAddr::from_abstract_name(ALONE)?;
    UnixListener::bind_addr(&name).map_err(|error| match error.kind() {
        io::ErrorKind::AddrInUse => BenchError::NotAlone,
        _ => error.into(),
    })
}

/// A target on its way.
struct Process {
    child: Child,
    begun: Instant,
    /// Held until the target has ended.
    _alone: UnixListener,
}

impl Process {
    /// Tells it to end, and makes it if it does not.
    fn end(&mut self) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        let until = Instant::now() + GRACE;
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < until {
            // One that has finished ends by itself, and is not there any more to be told.
            if let Some(pid) = pid {
                let _ = kill_process(pid, Signal::TERM);
            }
            thread::sleep(Duration::from_millis(10));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Watched for Process {
    fn status(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    fn has_paused(&mut self) -> bool {
        false
    }

    fn go_on(&mut self) -> Result<(), BenchError> {
        Ok(())
    }

    fn spent(&self) -> Duration {
        self.begun.elapsed()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! A QEMU process: found, started, and never left behind.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use punctual_kernels::child::ends_with_parent;
use punctual_model::{Architecture, Nanos, Progress};
use serde_json::json;

use super::Error;
use super::guest_memory::GuestMemory;
use super::hardware;
use super::qemu_args::DEVICES_STATE;
use super::qmp::{Qmp, QmpError};
use crate::error::{RunError, describe};
use crate::watch::{Watched, is_ready};

/// Grace period for a guest that is asked to end: it ends its step and sends what it has.
const GRACE: Duration = Duration::from_secs(60);

/// The silence allowed to a guest, in seconds of CPU time per second that its step takes at least:
/// ten times what a fully loaded one needs.
const SPENT_PER_SECOND: f64 = 60.0;

/// The installed QEMU.
#[derive(Clone, Debug)]
pub struct Qemu {
    path: PathBuf,
    /// The first line of its `--version` output.
    pub version: String,
}

impl Qemu {
    /// Finds QEMU for this architecture along the PATH and asks for its version.
    pub fn find(architecture: Architecture) -> Result<Self, Error> {
        let hardware = hardware::of(architecture);
        let search = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::split_paths(&search)
            .map(|directory| directory.join(hardware.program))
            .find(|path| path.is_file())
            .ok_or(Error::NoQemu(hardware.program, hardware.package))?;
        Self::at(path)
    }

    /// Finds a QEMU whose virtual CPUs have turns of equal length: along the PATH, or the one that
    /// `tools/other-qemu` puts into Punctual's cache directory.
    pub fn find_fair(architecture: Architecture, cache: &Path) -> Result<Self, Error> {
        let hardware = hardware::of(architecture);
        let installed = Self::find(architecture)?;
        if installed.is_fair() {
            return Ok(installed);
        }
        let other = cache.join("other-qemu").join("bin").join(hardware.program);
        if other.is_file() {
            let other = Self::at(other)?;
            if other.is_fair() {
                return Ok(other);
            }
        }
        Err(Error::UnfairQemu(installed.version))
    }

    /// Returns true if it is 8.1 or later, in which no CPU takes the turns of others (QEMU's commit
    /// 83ecdb18eb65).
    fn is_fair(&self) -> bool {
        version(&self.version).is_some_and(|version| version >= (8, 1))
    }

    fn at(path: PathBuf) -> Result<Self, Error> {
        let broken = |found: String| Error::BrokenQemu {
            path: path.clone(),
            found,
        };
        let output = Command::new(&path)
            .arg("--version")
            .stdin(Stdio::null())
            .output()
            .map_err(|error| broken(error.to_string()))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let version = text.lines().next().unwrap_or_default().to_owned();
        if !output.status.success() || version.is_empty() {
            return Err(broken(output.status.to_string()));
        }
        Ok(Self { path, version })
    }
}

/// The first two numbers of QEMU's version line.
pub(super) fn version(said: &str) -> Option<(u32, u32)> {
    let number = said.strip_prefix("QEMU emulator version ")?;
    let mut numbers = number.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// A QEMU that runs a machine. It is killed when this is dropped, and by the kernel when the thread
/// that started it dies for any reason.
pub struct Process {
    child: Child,
    qmp: Qmp,
    /// The guest's memory, by which its progress is seen and it is asked to end.
    memory: Option<GuestMemory>,
}

impl Process {
    /// Starts a machine in `directory`. Its `plan` is there and, if it is resumed, its `memory` and
    /// `devices`; `stream`, `console` and `stderr` are made there.
    pub fn start(
        qemu: &Qemu,
        arguments: &[OsString],
        environment: Option<(&str, String)>,
        directory: &Path,
    ) -> Result<Self, Error> {
        let stderr = File::create(directory.join("stderr")).map_err(Error::at(directory))?;
        let mut child = ends_with_parent("KILL", &[], &qemu.path)
            .args(arguments)
            .envs(environment)
            .current_dir(directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(stderr)
            // Ctrl-C is for Punctual, which then sees to it that QEMU ends.
            .process_group(0)
            .spawn()
            .map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => Error::NoSetpriv,
                _ => Error::at(&qemu.path)(error),
            })?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let qmp = Qmp::begin(
            stdin.expect("standard input is a pipe"),
            stdout.expect("standard output is a pipe"),
        );
        match qmp {
            Ok(qmp) => Ok(Self {
                child,
                qmp,
                memory: None,
            }),
            Err(error) => Err(ended(&mut child, error, directory)),
        }
    }

    /// The reason why this process, which has not begun yet, cannot begin.
    pub fn failed(mut self, error: QmpError, directory: &Path) -> Error {
        ended(&mut self.child, error, directory)
    }

    /// Begins to watch the memory of its guest, which has `mib` mebibytes. From now on its progress
    /// is seen, and it is asked to end when the run is cancelled.
    pub fn watch_memory(&mut self, mib: u32) {
        self.memory = Some(GuestMemory::new(self.child.id(), mib));
    }

    /// Has the waiting QEMU make a machine with this many CPUs.
    ///
    /// QEMU records no clock if its arguments ask for several CPUs, although it could: it keeps its
    /// main loop and its CPUs in step in the same way as for one.
    pub fn make_board(&mut self, cpus: u32) -> Result<(), QmpError> {
        let smp = json!({"path": "/machine", "property": "smp", "value": {"cpus": cpus}});
        self.qmp.execute("qom-set", &smp)?;
        self.qmp.execute("x-exit-preconfig", &json!({})).map(drop)
    }

    /// Loads the devices' state that [`Process::save_devices`] has written. The guest's status is
    /// `inmigrate` until that is done.
    pub fn load_devices(&mut self) -> Result<(), QmpError> {
        let arguments = json!({"uri": DEVICES_STATE});
        self.qmp.execute("migrate-incoming", &arguments).map(drop)
    }

    /// Limits the turns of several CPUs to this length from now on. A network filter that has
    /// nothing to filter looks at this interval, and a CPU runs up to the next timer at most.
    pub fn set_turn(&mut self, turn: Nanos) -> Result<(), QmpError> {
        let filter = json!({
            "qom-type": "filter-buffer", "id": "turns", "netdev": "turn", "interval": turn.0 / 1_000,
        });
        self.qmp.execute("object-add", &filter).map(drop)
    }

    /// Writes the state of the paused guest's devices, including the CPU, to the file `devices`.
    /// (Xen was the first to keep memory and devices apart.)
    pub fn save_devices(&mut self) -> Result<(), QmpError> {
        let arguments = json!({"filename": "devices"});
        self.qmp
            .execute("xen-save-devices-state", &arguments)
            .map(drop)
    }

    /// Waits until the guest is resumed; `directory` has the output of a QEMU that does not do it.
    pub fn resumed(mut self, directory: &Path, cancel: &AtomicBool) -> Result<Self, RunError> {
        while !cancel.load(Ordering::SeqCst) {
            match self.guest_status() {
                Ok(status) if status == "inmigrate" => thread::sleep(super::POLL),
                Ok(_) => return Ok(self),
                Err(error) => return Err(self.failed(error, directory).when_resumed().into()),
            }
        }
        Err(RunError::Interrupted)
    }

    /// The status of the guest as QEMU reports it: `running`, `inmigrate`, `guest-panicked`, ….
    fn guest_status(&mut self) -> Result<String, QmpError> {
        let status = self.qmp.execute("query-status", &json!({}))?;
        Ok(status["status"].as_str().unwrap_or_default().to_owned())
    }
}

impl Watched for Process {
    fn status(&mut self) -> Result<Option<String>, RunError> {
        Ok(self.child.try_wait()?.map(describe))
    }

    fn has_paused(&mut self) -> bool {
        std::iter::from_fn(|| self.qmp.event()).any(|event| event == "WATCHDOG")
    }

    fn go_on(&mut self) -> Result<(), RunError> {
        self.qmp.execute("cont", &json!({}))?;
        Ok(())
    }

    fn ask_to_end(&mut self) -> Option<Duration> {
        let asked = self.memory.as_mut()?.request_stop();
        asked.then_some(GRACE)
    }

    fn progress(&mut self) -> Option<Progress> {
        self.memory.as_mut()?.progress()
    }

    fn is_ready(&self) -> bool {
        is_ready(self.child.id())
    }

    fn spent(&self) -> Duration {
        let text = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()));
        cpu_ticks(&text.unwrap_or_default()).map_or(Duration::ZERO, |ticks| {
            let per_second = rustix::param::clock_ticks_per_second();
            Duration::from_millis(ticks * 1000 / per_second)
        })
    }

    fn spent_per_second(&self) -> f64 {
        SPENT_PER_SECOND
    }
}

/// User and system time in the text of `/proc/PID/stat` (`proc_pid_stat(5)`, fields 14, 15).
fn cpu_ticks(stat: &str) -> Option<u64> {
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut fields = after_name.split_whitespace().skip(11);
    let mut field = || fields.next()?.parse::<u64>().ok();
    Some(field()? + field()?)
}

/// The reason why a QEMU cannot begin: its last output, if it has ended by itself.
fn ended(child: &mut Child, error: QmpError, directory: &Path) -> Error {
    let _ = child.kill();
    match (child.wait(), error) {
        (Ok(status), QmpError::Closed) => Error::exited(status, directory),
        (Ok(_), error) => error.into(),
        (Err(error), _) => Error::at(directory)(error),
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself; either way nothing is left of it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program in the place of QEMU: it greets, and then does this.
    fn qemu_that(does: &str, directory: &Path) -> Process {
        let script = directory.join("script");
        let greets = r#"echo '{"QMP": {}}'; read -r _; echo '{"return": {}}'; read -r _"#;
        std::fs::write(&script, format!("{greets}\n{does}\n")).unwrap();
        let qemu = Qemu {
            path: "/bin/sh".into(),
            version: String::new(),
        };
        Process::start(&qemu, &[script.into()], None, directory).unwrap()
    }

    #[test]
    fn a_qemu_that_does_not_resume_says_why_and_is_not_waited_for_without_end() {
        let ends = "echo 'qemu: load of migration failed' >&2; exit 1";
        let waits = r#"while echo '{"return": {"status": "inmigrate"}}'; do read -r _; done"#;
        for (does, is_cancelled, expected) in [
            (ends, false, "qemu: load of migration failed"),
            (waits, true, "interrupted"),
        ] {
            let directory = tempfile::tempdir().unwrap();
            let process = qemu_that(does, directory.path());
            let cancel = AtomicBool::new(is_cancelled);
            let Err(error) = process.resumed(directory.path(), &cancel) else {
                panic!("expected an error that says: {expected}");
            };
            assert!(error.to_string().contains(expected), "{error}");
            let is_told = matches!(error.of_bench(), Some(Error::NotResumed { .. }));
            assert_eq!(is_told, !is_cancelled);
        }
    }

    #[test]
    fn turns_are_fair_from_8_1_on() {
        let is_fair = |version: &str| {
            let (path, version) = (PathBuf::new(), format!("QEMU emulator version {version}"));
            Qemu { path, version }.is_fair()
        };
        assert!(is_fair("10.0.2 (Debian 1:10.0.2+ds-2)") && is_fair("8.1.0"));
        assert!(!is_fair("8.0.5") && !is_fair("7.2.22 (Debian)") && !is_fair("new"));
    }

    #[test]
    fn cpu_time_is_read_past_a_name_with_parentheses() {
        let stat = "42 (a) b) c) S 1 42 42 0 -1 4194560 100 0 0 0 700 35 0 0 20 0 3 0 5";
        assert_eq!(cpu_ticks(stat), Some(735));
        assert_eq!(cpu_ticks(""), None);
    }
}

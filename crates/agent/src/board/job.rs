// SPDX-License-Identifier: MIT OR Apache-2.0
//! A measurement on a board that goes on by itself.
//!
//! ```text
//! DIRECTORY/jobs/NAME/plan      a comment with the target's SHA-256, and the plan
//!                     stream    the target's output; locked for as long as it may grow
//!                     console   the target's error messages
//!                     process   the supervisor, the target, the descriptor of the status page
//!                     stop      present if the job was asked to end
//!                     ended     how the target has ended, in words
//! ```
//!
//! The job is a supervisor in a session of its own, which starts the target and waits for it.
//! A target that is killed restores no setting: then the supervisor does.

use std::fs::{self, File};
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::fs::FileExt as _;
use std::os::unix::net::UnixListener;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use punctual_model::board::{self, Refusal};
use punctual_model::status_page::{BYTES, Reader};
use punctual_model::{Progress, digest};
use rustix::fs::{FlockOperation, MemfdFlags, flock, memfd_create};
use rustix::process::{Pid, Signal, kill_process, setsid};

use super::JOB;
use crate::{shutdown, status_page};

/// The time that a target which is told to end at once gets to stop its loads and to restore
/// everything that it has changed.
const GRACE: Duration = Duration::from_secs(5);

/// The interval of looks at whether a process has ended or begun.
const MOMENT: Duration = Duration::from_millis(50);

/// One job.
#[derive(Clone, Debug)]
pub struct Job {
    directory: PathBuf,
}

/// The processes of a running job.
struct Processes {
    supervisor: i32,
    target: i32,
    /// The supervisor's file descriptor.
    status_page: i32,
}

impl Job {
    /// Finds the job of this name, if there is one.
    pub fn find(directory: &Path, name: &str) -> Option<Self> {
        let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let directory = directory.join("jobs").join(name);
        (is_name && directory.join("plan").is_file()).then_some(Self { directory })
    }

    /// Returns the name of a job that carries out this plan: one that was begun as `name`, one with
    /// an equal plan if such a job is to be taken up, or a new one.
    pub fn begin(
        directory: &Path,
        name: &str,
        plan: &str,
        take_up: bool,
    ) -> Result<String, Refusal> {
        if Self::find(directory, name).is_some() {
            return Ok(name.to_owned());
        }
        let refused = |what: &Path| {
            let what = what.to_owned();
            move |error: io::Error| Refusal::Io(format!("{}: {error}", what.display()))
        };
        let target = fs::read("/proc/self/exe").map_err(refused(Path::new("/proc/self/exe")))?;
        let plan = format!("# target {}\n{plan}", digest::sha256(&target));
        let jobs = directory.join("jobs");
        let equal = equal_jobs(&jobs, &plan);
        if take_up {
            if let Some(job) = equal.first() {
                let lock = job.lock_plan().map_err(refused(&job.directory))?;
                return match lock {
                    Some(_) => Ok(job.name()),
                    None => Err(Refusal::Followed),
                };
            }
        }
        let alone = board::alone().map_err(|error| match error.kind() {
            io::ErrorKind::AddrInUse => Refusal::NotAlone,
            _ => Refusal::Io(error.to_string()),
        })?;
        // Nobody wants what an equal plan has measured before: it is measured anew.
        for job in equal.iter().filter(|job| !job.is_alive()) {
            job.remove().map_err(refused(&job.directory))?;
        }
        let job = Self {
            directory: jobs.join(name),
        };
        if let Err(error) = job.start(&plan, alone) {
            let _ = job.remove();
            return Err(refused(&job.directory)(error));
        }
        Ok(name.to_owned())
    }

    fn name(&self) -> String {
        let name = self.directory.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    /// Starts the supervisor. Its standard input is the socket that lets one measure alone, and its
    /// standard output is the stream, with the lock on it.
    fn start(&self, plan: &str, alone: UnixListener) -> io::Result<()> {
        fs::create_dir_all(&self.directory)?;
        let stream = File::create_new(self.directory.join("stream"))?;
        flock(&stream, FlockOperation::LockExclusive)?;
        let console = File::create_new(self.directory.join("console"))?;
        // Last of all: with a plan it is a job.
        let unnamed = self.directory.join("plan.new");
        fs::write(&unnamed, plan)?;
        fs::rename(unnamed, self.directory.join("plan"))?;
        Command::new("/proc/self/exe")
            .arg(JOB)
            .arg(&self.directory)
            .stdin(Stdio::from(OwnedFd::from(alone)))
            .stdout(stream)
            .stderr(console)
            .spawn()?;
        Ok(())
    }

    /// Returns true if the job may still write to its stream.
    pub fn is_alive(&self) -> bool {
        let Ok(stream) = File::open(self.directory.join("stream")) else {
            return false;
        };
        flock(&stream, FlockOperation::NonBlockingLockShared).is_err()
    }

    /// Opens one of its files, from an offset on.
    pub fn open(&self, name: &str, offset: u64) -> io::Result<File> {
        let mut file = File::open(self.directory.join(name))?;
        file.seek(SeekFrom::Start(offset))?;
        Ok(file)
    }

    /// Opens its plan, locked; `None` if somebody else has locked it.
    pub fn lock_plan(&self) -> io::Result<Option<File>> {
        let plan = File::open(self.directory.join("plan"))?;
        match flock(&plan, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(plan)),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn plan(&self) -> io::Result<String> {
        fs::read_to_string(self.directory.join("plan"))
    }

    /// Returns its processes, if it is running.
    fn processes(&self) -> Option<Processes> {
        let text = fs::read_to_string(self.directory.join("process")).ok()?;
        let mut numbers = text.split_whitespace().map(str::parse);
        let mut number = || numbers.next()?.ok();
        let processes = Processes {
            supervisor: number()?,
            target: number()?,
            status_page: number()?,
        };
        // Those of one that has ended may be others by now.
        self.is_alive().then_some(processes)
    }

    /// Returns the progress of its step, if it can be seen.
    pub fn progress(&self, reader: &mut Reader) -> Option<Progress> {
        let Processes {
            supervisor,
            status_page,
            ..
        } = self.processes()?;
        let page = File::open(format!("/proc/{supervisor}/fd/{status_page}")).ok()?;
        let mut bytes = vec![0; BYTES];
        page.read_exact_at(&mut bytes, 0).ok()?;
        reader.read(&bytes)
    }

    /// Asks it to end after its sample. Repeated calls ask only once, since a target that is asked
    /// twice ends at once.
    pub fn stop(&self) {
        let marked = File::create_new(self.directory.join("stop"));
        let is_first = !marked.is_err_and(|error| error.kind() == io::ErrorKind::AlreadyExists);
        let until = Instant::now() + GRACE;
        while is_first && self.is_alive() && Instant::now() < until {
            if self.signal(Signal::TERM) {
                return;
            }
            // It is just being started.
            thread::sleep(MOMENT);
        }
    }

    /// Asks it to end at once, and kills it if it does not.
    pub fn end(&self) {
        // One that has finished ends by itself.
        let until = Instant::now() + 10 * MOMENT;
        while self.is_alive() && Instant::now() < until {
            thread::sleep(MOMENT);
        }
        let until = Instant::now() + GRACE;
        while self.is_alive() && Instant::now() < until {
            self.signal(Signal::TERM);
            thread::sleep(MOMENT);
        }
        // The supervisor restores what is left to be restored, and ends.
        while self.signal(Signal::KILL) {
            thread::sleep(MOMENT);
        }
    }

    /// Sends a signal to its target; returns true if there is one.
    fn signal(&self, signal: Signal) -> bool {
        let processes = self.processes();
        let pid = processes.and_then(|processes| Pid::from_raw(processes.target));
        pid.is_some_and(|pid| kill_process(pid, signal).is_ok())
    }

    /// Describes how it has ended.
    pub fn ended(&self) -> String {
        let ended = fs::read_to_string(self.directory.join("ended")).ok();
        let known = ended.filter(|text| !text.is_empty());
        known.unwrap_or_else(|| "it was killed, or its machine was restarted".into())
    }

    /// Removes all of it, and the directory of jobs if it was the last.
    pub fn remove(&self) -> io::Result<()> {
        match fs::remove_dir_all(&self.directory) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        if let Some(jobs) = self.directory.parent() {
            // Other jobs may be there.
            let _ = fs::remove_dir(jobs);
        }
        Ok(())
    }
}

/// Returns the jobs with this plan, running ones first.
fn equal_jobs(jobs: &Path, plan: &str) -> Vec<Job> {
    let entries = fs::read_dir(jobs).into_iter().flatten().flatten();
    let mut equal: Vec<Job> = entries
        .map(|entry| Job {
            directory: entry.path(),
        })
        .filter(|job| job.plan().is_ok_and(|found| found == plan))
        .collect();
    equal.sort_by_key(|job| (!job.is_alive(), job.name()));
    equal
}

/// Carries out the job in `directory`; returns when its target has ended.
pub fn supervise(directory: &Path) -> io::Result<()> {
    setsid()?;
    let page = File::from(memfd_create("punctual-status", MemfdFlags::CLOEXEC)?);
    page.set_len(BYTES as u64)?;
    let (own, fd) = (std::process::id(), page.as_raw_fd());
    // With this process or without it the target measures alone.
    let alone = io::stdin().as_fd().try_clone_to_owned()?;
    let mut target = Command::new("/proc/self/exe")
        .arg("run")
        .arg(directory.join("plan"))
        .env(status_page::FILE_VARIABLE, format!("/proc/{own}/fd/{fd}"))
        .stdin(alone)
        .spawn()?;
    let processes = format!("{own} {} {fd}\n", target.id());
    fs::write(directory.join("process"), processes)?;
    let status = target.wait()?;
    if status.signal().is_some() {
        shutdown::restore();
    }
    let mut ended = File::create(directory.join("ended"))?;
    ended.write_all(describe(status).as_bytes())
}

fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (_, Some(9)) => "killed by signal 9: was it short of memory?".to_owned(),
        (_, Some(signal)) => format!("killed by signal {signal}"),
        (code, None) => format!("exit status {}", code.unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates a job that nobody has started.
    fn job(directory: &Path, name: &str, plan: &str) -> Job {
        let directory = directory.join("jobs").join(name);
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join("plan"), plan).unwrap();
        fs::write(directory.join("stream"), "").unwrap();
        Job { directory }
    }

    #[test]
    fn a_job_lives_as_long_as_its_stream_is_locked() {
        let scratch = tempfile::tempdir().unwrap();
        let job = job(scratch.path(), "a", "");
        assert!(!job.is_alive());
        let stream = File::open(job.directory.join("stream")).unwrap();
        flock(&stream, FlockOperation::LockExclusive).unwrap();
        assert!(job.is_alive());
        drop(stream);
        assert!(!job.is_alive());
        assert!(job.ended().contains("killed"));
        fs::write(job.directory.join("ended"), "exit status 0").unwrap();
        assert_eq!(job.ended(), "exit status 0");
    }

    #[test]
    fn only_jobs_of_an_equal_plan_are_taken_up_and_the_living_first() {
        let scratch = tempfile::tempdir().unwrap();
        job(scratch.path(), "a", "one");
        let living = job(scratch.path(), "b", "one");
        job(scratch.path(), "c", "two");
        let stream = File::open(living.directory.join("stream")).unwrap();
        flock(&stream, FlockOperation::LockExclusive).unwrap();
        let equal = equal_jobs(&scratch.path().join("jobs"), "one");
        let names: Vec<String> = equal.iter().map(Job::name).collect();
        assert_eq!(names, ["b", "a"]);
    }

    #[test]
    fn a_name_leads_nowhere_else() {
        let scratch = tempfile::tempdir().unwrap();
        let a = job(scratch.path(), "a", "");
        for name in ["", ".", "..", "../a", "a/", "b"] {
            assert!(Job::find(scratch.path(), name).is_none(), "{name}");
        }
        assert!(Job::find(scratch.path(), "a").is_some());
        a.remove().unwrap();
        assert!(!scratch.path().join("jobs").exists());
        a.remove().unwrap();
    }
}

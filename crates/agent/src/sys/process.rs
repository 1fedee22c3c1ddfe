// SPDX-License-Identifier: MIT OR Apache-2.0
//! Processes: forking, waiting, ending.

use std::collections::HashMap;
use std::ffi::CString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use punctual_model::Nanos;
use rustix::io::Errno;
use rustix::process::{Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid};
use rustix::system::{RebootCommand, reboot};

use super::time;

/// A process's number.
pub type Pid = libc::pid_t;

/// Returns the number of a child that was started.
pub fn id(child: &std::process::Child) -> Pid {
    // The kernel's numbers are positive and below 2^22.
    child.id() as Pid
}

/// Runs `body` in a forked child, which then ends: with status 0, or with 1 if `body` fails
/// or panics. Returns the child's number.
///
/// Fails if the calling process has more than one thread, or if that cannot be determined: the
/// child would inherit locks that nobody gives back.
pub fn fork(body: impl FnOnce() -> io::Result<()>) -> io::Result<Pid> {
    let threads = fs::read_dir("/proc/self/task")?.count();
    if threads != 1 {
        let text = format!("a process with {threads} threads cannot fork");
        return Err(io::Error::other(text));
    }
    // SAFETY: the process has one thread, so no lock is held by another one.
    match super::check(unsafe { libc::fork() })? {
        0 => {
            // A panic must not unwind into what belongs to the parent.
            let done = matches!(catch_unwind(AssertUnwindSafe(body)), Ok(Ok(())));
            // SAFETY: ends the child at once, without running its parent's exit handlers.
            unsafe { libc::_exit(i32::from(!done)) }
        }
        child => Ok(child),
    }
}

/// Makes a command run with this directory as its root.
pub fn enter_root(command: &mut Command, root: &Path) -> io::Result<()> {
    let root = CString::new(root.as_os_str().as_bytes())?;
    let enter = move || {
        rustix::process::chroot(root.as_c_str())?;
        Ok(rustix::process::chdir(c"/")?)
    };
    // SAFETY: between fork and exec it makes two system calls, and takes no memory.
    unsafe { command.pre_exec(enter) };
    Ok(())
}

/// Returns the calling thread's number, as the kernel counts threads.
pub fn thread_id() -> Pid {
    rustix::thread::gettid().as_raw_nonzero().get()
}

/// The end of a child, with the CPU time that it and its own children took.
#[derive(Debug)]
pub struct Ended {
    /// Its status.
    pub status: ExitStatus,
    /// The time that it spent in its own code.
    pub user: Nanos,
    /// The time that the kernel spent for it.
    pub system: Nanos,
}

impl Ended {
    /// Returns user and system time together.
    pub fn cpu(&self) -> Nanos {
        self.user + self.system
    }
}

/// Waits for one child, or for one of a process group if the number is negative.
pub fn wait(child: Pid) -> io::Result<Ended> {
    let mut status = 0;
    // SAFETY: a rusage is made of integers, for which all zeros is valid.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    loop {
        // SAFETY: `status` and `usage` are live.
        match super::check(unsafe { libc::wait4(child, &raw mut status, 0, &raw mut usage) }) {
            Ok(_) => break,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let span = |time: libc::timeval| Nanos(time.tv_sec * 1_000_000_000 + time.tv_usec * 1_000);
    Ok(Ended {
        status: ExitStatus::from_raw(status),
        user: span(usage.ru_utime),
        system: span(usage.ru_stime),
    })
}

/// A child that leads a process group of its own. Any thread may signal the group; the number
/// is used only while it is certainly this group's.
#[derive(Debug, Default)]
pub struct Group(AtomicI32);

/// Held while a group is signalled, and while its leader is reaped, after which its number may
/// become another's.
static REAPING: Mutex<()> = Mutex::new(());

fn nobody_reaps() -> MutexGuard<'static, ()> {
    REAPING.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Group {
    /// Creates a group without a leader.
    pub const fn new() -> Self {
        Self(AtomicI32::new(0))
    }

    /// Sets the group to that of this child, which was started as its leader.
    pub fn led_by(&self, child: Pid) {
        self.0.store(child, Ordering::SeqCst);
    }

    /// Asks all of its processes to end.
    pub fn stop(&self) {
        self.signal(Signal::TERM);
    }

    /// Ends all of its processes.
    pub fn kill(&self) {
        self.signal(Signal::KILL);
    }

    fn signal(&self, signal: Signal) {
        let _guard = nobody_reaps();
        signal_group(self.0.load(Ordering::SeqCst), signal);
    }

    /// Returns its number; 0 if it has no leader.
    pub fn leader(&self) -> Pid {
        self.0.load(Ordering::SeqCst)
    }

    /// Waits until its leader has ended, and collects all of its processes.
    pub fn wait(&self) -> io::Result<(Ended, Nanos)> {
        self.wait_for_end()?;
        self.collect()
    }

    /// Waits until its leader has ended, without collecting it.
    pub fn wait_for_end(&self) -> io::Result<()> {
        let pid = rustix::process::Pid::from_raw(self.leader()).ok_or(Errno::CHILD)?;
        let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while let Err(error) = waitid(WaitId::Pid(pid), ended) {
            if error != Errno::INTR {
                return Err(error.into());
            }
        }
        Ok(())
    }

    /// Ends, after its leader has ended, those that outlive it, and collects all of them, as far
    /// as they are this process's children: the others are, if it adopts orphans. Returns the
    /// leader's end, and the CPU time of the others.
    pub fn collect(&self) -> io::Result<(Ended, Nanos)> {
        let leader = self.leader();
        // The leader is not reaped yet: its number is still the group's.
        let guard = nobody_reaps();
        signal_group(leader, Signal::KILL);
        let ended = wait(leader);
        self.0.store(0, Ordering::SeqCst);
        drop(guard);
        let mut orphans = Nanos::ZERO;
        while let Ok(ended) = wait(-leader) {
            orphans += ended.cpu();
        }
        Ok((ended?, orphans))
    }
}

/// The resource usage of living processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Their CPU time. That of their ended children is known to 10 ms.
    pub cpu: Nanos,
    /// The number of bytes that they have written.
    pub written: u64,
}

/// Returns the usage of the processes of each of these groups, as far as they have not been
/// collected, by the groups' leaders. A value that cannot be read counts as nothing.
pub fn usage(leaders: &[Pid]) -> HashMap<Pid, Usage> {
    let mut usage: HashMap<Pid, Usage> = HashMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        let Some((group, children)) = group_and_children(&entry.path()) else {
            continue;
        };
        if leaders.contains(&group) {
            let all = usage.entry(group).or_default();
            all.cpu += time::of_process(pid).unwrap_or_default() + children;
            all.written += written(pid);
        }
    }
    usage
}

/// Returns a process's group, and the CPU time of its collected children: fields 5, 16 and 17
/// of proc(5)'s `stat`, counted from after the command's name, which may contain anything.
fn group_and_children(process: &Path) -> Option<(Pid, Nanos)> {
    let stat = fs::read_to_string(process.join("stat")).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let group = fields.nth(2)?.parse().ok()?;
    let mut ticks = || fields.next()?.parse::<i64>().ok();
    for _ in 0..10 {
        ticks();
    }
    // The kernel's clock for this is 100 Hz, whatever its tick is.
    Some((group, Nanos::from_millis(10) * (ticks()? + ticks()?)))
}

/// Returns the number of bytes that a process has written: `wchar` of proc(5)'s `io`.
pub fn written(pid: Pid) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/io")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("wchar:"));
    line.and_then(|number| number.trim().parse().ok())
        .unwrap_or(0)
}

/// Returns the processes that were started with a variable of this value in their environment, as
/// far as it may be read.
pub fn with_variable(name: &str, value: &Path) -> Vec<Pid> {
    let wanted = [name.as_bytes(), b"=", value.as_os_str().as_bytes()].concat();
    let has_it = |pid: &Pid| {
        let read = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        read.split(|byte| *byte == 0).any(|one| one == wanted)
    };
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    let all = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    all.filter(has_it).collect()
}

/// Ends the groups that the children of this process lead.
pub fn kill_children() {
    let _guard = nobody_reaps();
    let threads = fs::read_dir("/proc/self/task")
        .into_iter()
        .flatten()
        .flatten();
    for list in threads.flat_map(|thread| fs::read_to_string(thread.path().join("children"))) {
        for child in list.split_whitespace().flat_map(str::parse) {
            signal_group(child, Signal::KILL);
        }
    }
}

/// Signals a group. If it is gone already, that is the caller's aim.
fn signal_group(leader: Pid, signal: Signal) {
    if let Some(leader) = rustix::process::Pid::from_raw(leader) {
        let _ = kill_process_group(leader, signal);
    }
}

/// Makes orphaned grandchildren the children of this process, as they are of process 1.
pub fn adopt_orphans() -> io::Result<()> {
    Ok(rustix::process::set_child_subreaper(Some(
        rustix::process::getpid(),
    ))?)
}

/// Kills one process, a child that was not waited for yet.
pub fn kill(process: Pid) {
    // A process that is gone already is what the caller wants.
    if let Some(process) = rustix::process::Pid::from_raw(process) {
        let _ = kill_process(process, Signal::KILL);
    }
}

/// Switches the machine off; only process 1 of a guest calls this.
pub fn power_off() -> io::Error {
    rustix::fs::sync();
    match reboot(RebootCommand::PowerOff) {
        Ok(()) => io::Error::other("the machine goes on"),
        Err(error) => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt as _;
    use std::process::{Command, Stdio};
    use std::thread;
    use std::time::{Duration, Instant};

    use super::*;

    /// Returns the number of living processes in a group.
    fn members(leader: u32) -> usize {
        let processes = fs::read_dir("/proc").unwrap().flatten();
        let is_member = |process: &fs::DirEntry| {
            let stat = fs::read_to_string(process.path().join("stat")).unwrap_or_default();
            let fields = stat.rsplit_once(')').unwrap_or_default().1;
            let mut fields = fields.split_whitespace();
            let (state, group) = (fields.next(), fields.nth(1));
            state != Some("Z") && group.and_then(|id| id.parse().ok()) == Some(leader)
        };
        processes.filter(is_member).count()
    }

    #[test]
    fn a_group_ends_with_its_leader_and_is_then_nobody() {
        let group = Group::default();
        let mut command = Command::new("sh");
        let child = command.args(["-c", "sleep 1000 & exit 3"]).process_group(0);
        let child = child.spawn().unwrap().id();
        group.led_by(Pid::try_from(child).unwrap());
        let (ended, _) = group.wait().unwrap();
        assert_eq!(ended.status.code(), Some(3));
        // Who was killed ends when a CPU is free for it.
        let patience = Instant::now() + Duration::from_secs(600);
        while members(child) > 0 {
            assert!(Instant::now() < patience, "{} go on", members(child));
            thread::sleep(Duration::from_millis(10));
        }
        // Its number may be another's now: nothing is signalled any more.
        assert_eq!(group.0.load(Ordering::SeqCst), 0);
        assert!(group.wait().is_err());
    }

    #[test]
    fn what_a_group_does_is_seen_while_it_runs() {
        let group = Group::default();
        let mut command = Command::new("sh");
        let script = "head -c 100000 /dev/zero; exec sleep 1000";
        let child = command.args(["-c", script]).process_group(0);
        let mut child = child.stdout(Stdio::piped()).spawn().unwrap();
        let leader = id(&child);
        group.led_by(leader);
        let mut read = vec![0; 100_000];
        io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut read).unwrap();
        let seen = usage(&[leader]);
        assert!(seen[&leader].cpu > Nanos::ZERO, "{seen:?}");
        let own = rustix::process::getpgrp().as_raw_nonzero().get();
        assert!(usage(&[own])[&own].written > 0 && !usage(&[own]).contains_key(&leader));
        group.kill();
        group.wait().unwrap();
        assert!(child.wait().is_err(), "the group's leader was waited for");
        assert!(usage(&[leader]).is_empty());
    }

    #[test]
    fn who_was_started_with_a_variable_is_found() {
        let value = Path::new("/of/this/test");
        let mut command = Command::new("cat");
        let command = command.env("PUNCTUAL_TEST", value);
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // Until the program itself runs, its variables cannot be read.
        io::Write::write_all(child.stdin.as_mut().unwrap(), b".").unwrap();
        io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut [0]).unwrap();
        let found = with_variable("PUNCTUAL_TEST", value);
        kill(id(&child));
        child.wait().unwrap();
        assert_eq!(found, [id(&child)]);
        assert!(with_variable("PUNCTUAL_TEST", value).is_empty());
    }

    #[test]
    fn a_process_with_several_threads_does_not_fork() {
        let here = std::thread::spawn(|| fork(|| Ok(())).unwrap_err().to_string());
        let error = here.join().unwrap();
        assert!(error.contains("threads cannot fork"), "{error}");
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shutdown of a target on a host: loads are stopped and settings restored, whatever ends it.
//!
//! The signals that ask for the end are taken by a thread of its own. At the first, each measuring
//! thread ends after its sample, and the plan after its step: the results so far are kept. At
//! the second, or if the first has had no effect for a while, that thread kills the loads and
//! becomes another program (`punctual-target restore`): then no thread measures any more, and
//! no lock on the note of a setting is held. `SIGKILL`, which nobody can take, ends the loads
//! with the threads that started them, and leaves the settings to those that see it die: the bench
//! or the board's supervisor, or else the next target.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use punctual_model::Nanos;

use crate::probes::program::MEASURED;
use crate::scratch;
use crate::setting;
use crate::status_page;
use crate::sys::{process, signal};
use crate::tracer;

/// The subcommand that restores changes which a dead target left.
pub const RESTORE: &str = "restore";

/// The subcommand that starts a program which ends with its parent.
pub const WITH_PARENT: &str = "with-parent";

/// The length of one wait for a signal; waits are repeated.
const HOUR: Nanos = Nanos::from_millis(3_600_000);

static WATCHES: AtomicBool = AtomicBool::new(false);

/// The time that the running step may take to end after the first signal. A sample of a probe
/// that runs whole programs may take longer, and is then lost.
const GRACE: Nanos = Nanos::from_millis(5_000);

/// Lets signals shut this process down from now on. Must be called before it has other threads.
pub fn watch() -> io::Result<()> {
    signal::hold(&signal::ENDING)?;
    WATCHES.store(true, Ordering::SeqCst);
    thread::Builder::new().spawn(|| {
        while !matches!(signal::wait_for(&signal::ENDING, HOUR), Ok(Some(_))) {}
        status_page::request_stop();
        MEASURED.kill();
        // Whether it is a signal or the end of the time that ends this is the same.
        let _ = signal::wait_for(&signal::ENDING, GRACE);
        end_at_once();
    })?;
    Ok(())
}

/// Returns a command that runs `program` and, if this process is watched, ends with the calling
/// thread.
///
/// A measuring thread would pay for a fork that copies the address space, with a page fault in
/// each page that it writes to afterwards. So the child does not itself declare with whom it
/// ends, and the program is looked up here: the standard library forks if a program has to
/// be looked up in a `PATH` that is the child's own.
pub fn command(program: &str) -> io::Result<Command> {
    let path = find(program).ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, absent()))?;
    if !WATCHES.load(Ordering::SeqCst) {
        return Ok(Command::new(path));
    }
    // Its child would say so in the program's place.
    if let Some(why) = cannot_start(program) {
        return Err(io::Error::other(why));
    }
    let mut command = Command::new("/proc/self/exe");
    command.arg(WITH_PARENT).arg(path);
    Ok(command)
}

/// Returns the reason why a program cannot start, as far as its file shows.
pub fn cannot_start(program: &str) -> Option<String> {
    let Some(path) = find(program) else {
        return Some(absent());
    };
    let Ok(is) = path.metadata() else {
        return Some(absent());
    };
    if is.is_dir() {
        return Some("it is a directory".into());
    }
    if is.permissions().mode() & 0o111 == 0 {
        return Some("it is not executable (chmod +x)".into());
    }
    let mut head = Vec::new();
    let file = File::open(&path).ok()?;
    file.take(256).read_to_end(&mut head).ok()?;
    if let Some(line) = head.strip_prefix(b"#!") {
        let line = String::from_utf8_lossy(line);
        let interpreter = line.split_ascii_whitespace().next()?;
        let is_there = Path::new(interpreter).exists();
        return (!is_there).then(|| format!("it is a script, and its {interpreter} is not there"));
    }
    let own = File::open("/proc/self/exe").ok()?;
    let mut own_head = Vec::new();
    own.take(20).read_to_end(&mut own_head).ok()?;
    let is_foreign = head.starts_with(b"\x7fELF") && head.get(18..20)? != own_head.get(18..20)?;
    is_foreign.then(|| "it is a program for another architecture".into())
}

/// Returns advice on a program that does not exist.
fn absent() -> String {
    let what = if std::process::id() == 1 {
        "the guest has no such program: `punctual run --program` brings it along, and so does \
         `programs` in a suite"
    } else {
        "this machine has no such program"
    };
    what.to_owned()
}

/// Returns the directories that are searched for programs: process 1 of a guest has no `PATH`.
pub fn search_path() -> OsString {
    std::env::var_os("PATH").unwrap_or_else(|| "/bin:/sbin:/usr/bin:/usr/sbin".into())
}

pub(crate) fn find(program: &str) -> Option<PathBuf> {
    if program.contains('/') {
        return Some(program.into());
    }
    let path = search_path();
    let candidates = std::env::split_paths(&path).map(|directory| directory.join(program));
    candidates.into_iter().find(|path| path.is_file())
}

fn end_at_once() {
    process::kill_children();
    let error = Command::new("/proc/self/exe").arg(RESTORE).exec();
    eprintln!("punctual-target: cannot restore settings: {error}");
    std::process::exit(1);
}

/// Restores changes that a dead target left, and reports them; removes the files of
/// loads that have ended with their targets.
pub fn restore() {
    scratch::remove_left_behind();
    for setting in setting::restore_left_behind() {
        eprintln!("punctual-target: restored {setting}");
    }
    for instance in tracer::remove_left_behind() {
        eprintln!("punctual-target: removed {instance}");
    }
}

/// Becomes the program in `words`, which is killed when the thread that started this process
/// ends; returns only with an error.
pub fn become_with_parent(words: &[OsString]) -> io::Error {
    let Some((program, arguments)) = words.split_first() else {
        return io::Error::new(io::ErrorKind::InvalidInput, "no program is named");
    };
    match signal::die_with_parent() {
        Ok(()) => Command::new(program).args(arguments).exec(),
        Err(error) => error,
    }
}

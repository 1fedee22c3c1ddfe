//! An end in good order on a host: loads are stopped and settings turned back, whatever ends
//! the target.
//!
//! A signal that asks for the end is taken by a thread of its own. It kills the loads and
//! becomes another program (`punctual-target turn-back`): then no thread measures any more,
//! and no lock on a note of a setting is held. What nobody can take, `SIGKILL`, ends the loads
//! with the threads that started them, and leaves the settings to the next target.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::scratch;
use crate::setting;
use crate::sys::{process, signal};

/// The subcommand that turns back what a dead target left turned.
pub const RESTORE: &str = "restore";

/// The subcommand that starts a program which ends with its parent.
pub const WITH_PARENT: &str = "with-parent";

static WATCHES: AtomicBool = AtomicBool::new(false);

/// From now on this process ends in good order. To be called before it has other threads.
pub fn watch() -> io::Result<()> {
    signal::hold_ending()?;
    WATCHES.store(true, Ordering::SeqCst);
    thread::Builder::new().spawn(|| {
        if signal::wait_for_ending().is_ok() {
            end();
        }
    })?;
    Ok(())
}

/// A command that runs `program`, and where this process is watched ends with the calling
/// thread.
///
/// Whoever measures would pay for a fork that copies the address space, with a page fault in
/// each page that it writes to thereafter. So the child does not say by itself with whom it
/// ends, and the program is looked for here: the standard library forks where a program is to
/// be looked for in a `PATH` that is the child's own.
pub fn command(program: &str) -> io::Result<Command> {
    let path = find(program).ok_or(io::ErrorKind::NotFound)?;
    if !WATCHES.load(Ordering::SeqCst) {
        return Ok(Command::new(path));
    }
    let mut command = Command::new("/proc/self/exe");
    command.arg(WITH_PARENT).arg(path);
    Ok(command)
}

/// Where programs are looked for: process 1 of a guest has no `PATH`.
pub fn search_path() -> OsString {
    std::env::var_os("PATH").unwrap_or_else(|| "/bin:/sbin:/usr/bin:/usr/sbin".into())
}

fn find(program: &str) -> Option<PathBuf> {
    if program.contains('/') {
        return Some(program.into());
    }
    let path = search_path();
    let candidates = std::env::split_paths(&path).map(|directory| directory.join(program));
    candidates.into_iter().find(|path| path.is_file())
}

fn end() {
    for child in children() {
        process::kill_group(child);
    }
    let error = Command::new("/proc/self/exe").arg(RESTORE).exec();
    eprintln!("punctual-target: cannot turn back settings: {error}");
    std::process::exit(1);
}

/// The processes that this one has started; each leads a group of its own.
fn children() -> Vec<process::Pid> {
    let threads = fs::read_dir("/proc/self/task")
        .into_iter()
        .flatten()
        .flatten();
    let lists = threads.flat_map(|thread| fs::read_to_string(thread.path().join("children")));
    lists
        .flat_map(|list| {
            list.split_whitespace()
                .flat_map(str::parse)
                .collect::<Vec<_>>()
        })
        .collect()
}

/// Turns back what a dead target left turned, and says what that was; removes the files of
/// the loads of the target that became this program.
pub fn restore() {
    scratch::remove_left_behind();
    for setting in setting::restore_left_behind() {
        eprintln!("punctual-target: turned back {setting}");
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

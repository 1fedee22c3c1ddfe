// SPDX-License-Identifier: MIT OR Apache-2.0
//! The user who compiles: the caller; for root, the user who called `sudo`, else `nobody`.
//!
//! A kernel's source is a program of many thousand lines of make, shell and C. It runs without any
//! privilege, and root reads and writes the files of a build only as that user.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::error::BuildError;
use crate::child::ends_with_parent;

/// `nobody` and `nogroup` on Debian, and nearly everywhere else.
const NOBODY: u32 = 65_534;

/// The directory of root's builds if nobody else can reach root's cache.
const OF_ROOT: &str = "/var/cache/punctual/build";

/// The user who compiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Worker {
    /// User and group, if they differ from the caller's.
    other: Option<(u32, u32)>,
}

impl Worker {
    /// The worker for the current user.
    pub(crate) fn new() -> Self {
        let is_root = rustix::process::geteuid().is_root();
        let other = is_root.then(|| sudo().unwrap_or((NOBODY, NOBODY)));
        Self { other }
    }

    /// Its name in errors.
    pub(crate) fn name(self) -> String {
        match self.other {
            Some((NOBODY, _)) => "the user nobody".to_owned(),
            Some((user, _)) => format!("the user {user}"),
            None => "you".to_owned(),
        }
    }

    /// A command without privileges and with an environment of its own; it ends when this process
    /// does. Ctrl-C does not reach it.
    pub(crate) fn command(self, program: &str) -> Command {
        let mut options = vec!["--no-new-privs".to_owned()];
        if let Some((user, group)) = self.other {
            let other = ["--clear-groups".to_owned(), format!("--reuid={user}")];
            options.extend(other);
            options.push(format!("--regid={group}"));
        }
        let mut command = ends_with_parent("TERM", &options, program);
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("LC_ALL", "C")
            .stdin(Stdio::null())
            .process_group(0);
        command
    }

    /// A git command in a directory, whoever owns that.
    pub(crate) fn git(self, path: &Path) -> Command {
        let mut command = self.command("git");
        command.args(["-c", "core.fsmonitor=false", "-c"]);
        command.arg(format!("safe.directory={}", path.display()));
        command.arg("-C").arg(path);
        command
    }

    /// The directory of all builds: in the cache, or in another place that the worker can reach.
    pub(crate) fn root(self, cache: &Path) -> Result<PathBuf, BuildError> {
        fs::create_dir_all(cache).map_err(BuildError::at(cache))?;
        let reaches = |path: &Path| self.succeeds("test", &["-x"], path);
        let root = if reaches(cache)? {
            cache.join("build")
        } else {
            PathBuf::from(OF_ROOT)
        };
        for path in [root.clone(), root.join("source")] {
            public_directory(&path)?;
        }
        Ok(root)
    }

    /// The suffix that tells the worker's directories from those of another user who compiles for
    /// root; empty if there is no other.
    pub(crate) fn mark(self) -> String {
        match self.other {
            Some((user, _)) if user != NOBODY => format!("-{user}"),
            _ => String::new(),
        }
    }

    /// Makes a directory that belongs to the worker, unless it exists.
    pub(crate) fn directory(self, path: &Path) -> Result<(), BuildError> {
        match fs::create_dir(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
            made => made.map_err(BuildError::at(path))?,
        }
        self.own(path)
    }

    /// Gives the worker a file or directory, which nobody else can have touched.
    pub(crate) fn own(self, path: &Path) -> Result<(), BuildError> {
        match self.other {
            Some((user, group)) => {
                chown(path, Some(user), Some(group)).map_err(BuildError::at(path))
            }
            None => Ok(()),
        }
    }

    /// Returns true if the worker can read a file.
    pub(crate) fn can_read(self, path: &Path) -> Result<bool, BuildError> {
        self.succeeds("test", &["-r"], path)
    }

    /// Reads a file of a build.
    pub(crate) fn read(self, path: &Path) -> Result<Vec<u8>, BuildError> {
        let output = self.command("cat").arg("--").arg(path).output();
        let output = output.map_err(BuildError::of_setpriv)?;
        if output.status.success() {
            return Ok(output.stdout);
        }
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        Err(BuildError::at(path)(io::Error::other(said)))
    }

    /// Writes a file of a build.
    pub(crate) fn write(self, path: &Path, text: &str) -> Result<(), BuildError> {
        let mut child = self
            .command("tee")
            .arg("--")
            .arg(path)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(BuildError::of_setpriv)?;
        let mut stdin = child.stdin.take().expect("it is a pipe");
        let written = stdin.write_all(text.as_bytes());
        drop(stdin);
        let status = child.wait().map_err(BuildError::at(path))?;
        written.map_err(BuildError::at(path))?;
        if status.success() {
            return Ok(());
        }
        let error = io::Error::other(format!("{} cannot write it", self.name()));
        Err(BuildError::at(path)(error))
    }

    /// Removes a file of a build, if it exists.
    pub(crate) fn remove(self, path: &Path) -> Result<(), BuildError> {
        if self.succeeds("rm", &["-f", "--"], path)? {
            return Ok(());
        }
        let error = io::Error::other(format!("{} cannot remove it", self.name()));
        Err(BuildError::at(path)(error))
    }

    fn succeeds(self, program: &str, words: &[&str], path: &Path) -> Result<bool, BuildError> {
        let mut command = self.command(program);
        let status = command.args(words).arg(path).status();
        Ok(status.map_err(BuildError::of_setpriv)?.success())
    }
}

/// Makes a directory that everybody can read, whatever root's umask.
pub(crate) fn public_directory(path: &Path) -> Result<(), BuildError> {
    fs::create_dir_all(path)
        .and_then(|()| fs::set_permissions(path, fs::Permissions::from_mode(0o755)))
        .map_err(BuildError::at(path))
}

/// The user who called `sudo`, unless that was root.
fn sudo() -> Option<(u32, u32)> {
    let number = |name| std::env::var(name).ok()?.parse::<u32>().ok();
    let both = (number("SUDO_UID")?, number("SUDO_GID")?);
    (both.0 != 0).then_some(both)
}

/// Ends a program and everything that it has started, in its process group.
pub(crate) fn end(child: &mut Child) {
    let group = rustix::process::Pid::from_child(child);
    // Where it has just ended by itself there is nobody left to tell.
    let _ = rustix::process::kill_process_group(group, rustix::process::Signal::TERM);
    let _ = child.wait();
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt as _;

    #[test]
    fn root_does_not_compile_and_what_it_writes_is_the_workers() {
        let worker = Worker::new();
        let output = worker.command("id").arg("-u").output().unwrap();
        let user: u32 = String::from_utf8(output.stdout)
            .unwrap()
            .trim()
            .parse()
            .unwrap();
        assert_ne!(user, 0);
        let directory = tempfile::tempdir().unwrap();
        // What tempfile makes is for its owner alone.
        let own = directory.path().join("own");
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(directory.path(), open).unwrap();
        worker.directory(&own).unwrap();
        assert_eq!(fs::metadata(&own).unwrap().uid(), user);
        let file = own.join("a");
        worker.write(&file, "text").unwrap();
        assert_eq!(fs::metadata(&file).unwrap().uid(), user);
        assert_eq!(worker.read(&file).unwrap(), b"text");
        let error = worker.read(&own.join("b")).unwrap_err().to_string();
        assert!(error.contains("No such file"), "{error}");
    }

    #[test]
    fn a_program_ends_with_all_that_it_has_started() {
        let mut command = Worker::new().command("sh");
        command.args(["-c", "sleep 1000 & echo $!; wait"]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        let mut out = io::BufReader::new(child.stdout.take().unwrap());
        io::BufRead::read_line(&mut out, &mut line).unwrap();
        end(&mut child);
        // The pipe is closed when nobody has it any more.
        let mut rest = String::new();
        io::Read::read_to_string(&mut out, &mut rest).unwrap();
        assert_eq!(rest, "");
    }
}

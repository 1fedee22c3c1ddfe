// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs that do not outlive the process that starts them.

use std::ffi::OsStr;
use std::process::{self, Command};

/// A script that executes the program, unless the parent ended before the kernel was asked for a
/// signal: the script then has another parent.
const IS_CHILD_STILL: &str = r#"[ "$PPID" = "$0" ] && exec "$@""#;

/// A command for a program that gets a signal (`TERM`, `KILL`) when the thread that starts it ends
/// for any reason. It runs `setpriv` of util-linux, which takes these other options. Without
/// `setpriv`, spawning fails with an error of the kind `NotFound`.
pub fn ends_with_parent(signal: &str, options: &[String], program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("setpriv");
    command
        .args(options)
        .args(["--pdeathsig", signal, "--", "sh", "-c", IS_CHILD_STILL])
        .arg(process::id().to_string())
        .arg(program);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A shell in between acts as the other parent that a child has after its own was killed.
    #[test]
    fn what_has_lost_its_parent_does_not_begin() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("begun");
        let mut own = ends_with_parent("KILL", &[], "touch");
        own.arg(&file);
        let mut lost = Command::new("sh");
        lost.args(["-c", "\"$@\"; true", "sh"])
            .arg(own.get_program())
            .args(own.get_args());
        assert!(lost.status().unwrap().success());
        assert!(!file.exists());
        assert!(own.status().unwrap().success());
        assert!(file.exists());
    }
}

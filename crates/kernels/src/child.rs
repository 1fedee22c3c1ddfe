// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs that do not outlive whoever starts them.

use std::ffi::OsStr;
use std::process::{self, Command};

/// Goes on as the program, unless the parent has ended before the kernel was asked for a signal:
/// then it is another one.
const IS_CHILD_STILL: &str = r#"[ "$PPID" = "$0" ] && exec "$@""#;

/// A program that gets a signal (`TERM`, `KILL`) when the thread that starts it ends, for whatever
/// reason. `setpriv` of util-linux sees to it, and takes these other options: without it spawning
/// is an error of the kind `NotFound`.
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

    /// By a shell between, which is what a child has whose parent was killed: another parent.
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

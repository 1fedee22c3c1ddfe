// SPDX-License-Identifier: MIT OR Apache-2.0
//! Debian's Linux source as a git work tree, kept with its build results.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::Ended;

/// Debian's source of the kernel that the other tests run.
pub const SOURCE: &str = "linux-source-6.12";

/// A work tree that the compiling user can read.
pub const TREE: &str = "/var/tmp/punctual-kernel-builds/linux";

/// A kernel of a few hundred files: it takes a minute, where Debian's takes ten.
pub const SMALL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/small.config");

/// The same for arm64.
pub const SMALL_ARM64: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/small-arm64.config");

/// The output of git in the tree.
///
/// # Panics
/// If it fails.
pub fn git(words: &[&str]) -> String {
    let who = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"];
    let mut command = Command::new("git");
    command.args(["-C", TREE]).args(who).args(words);
    let ended = Ended::of(&mut command);
    assert_eq!(ended.status, Some(0), "git {words:?}: {}", ended.stderr);
    ended.stdout.trim().to_owned()
}

/// Makes the tree if it is missing; the tag `base` is its first commit. Removes what an earlier
/// test has left.
///
/// # Panics
/// If it cannot be fetched.
pub fn tree() {
    let tree = Path::new(TREE);
    if !tree.join(".git/refs/tags/base").is_file() {
        let script = "set -e; rm -rf \"$1\"; mkdir -p \"$1\"; cd \"$1\"\n\
            apt-get -q -o APT::Sandbox::User=root download \"$2\"\n\
            dpkg-deb --fsys-tarfile ./*.deb | tar -xO \"./usr/src/$2.tar.xz\" |\n\
                tar -xJ --strip-components=1\n\
            rm ./*.deb; git init -q -b main .";
        let mut command = Command::new("sh");
        let made = Ended::of(command.args(["-c", script, "sh", TREE, SOURCE]));
        assert_eq!(made.status, Some(0), "{}", made.stderr);
        // Debian's own .gitignore would have nothing in it.
        git(&["add", "--all", "--force", "."]);
        git(&["commit", "-q", "-m", "Debian's source"]);
        git(&["tag", "base"]);
    }
    let mut reset = Command::new("git");
    let _ = Ended::of(reset.args(["-C", TREE, "bisect", "reset"]));
    git(&["checkout", "-q", "--force", "-B", "trial", "base"]);
}

/// Replaces a text that occurs once in a file of the tree.
///
/// # Panics
/// If it does not occur exactly once.
pub fn put(file: &str, from: &str, to: &str) {
    let path = Path::new(TREE).join(file);
    let text = fs::read_to_string(&path).expect("a file of the source");
    assert_eq!(text.matches(from).count(), 1, "{file}: {from}");
    fs::write(&path, text.replace(from, to)).expect("a file of the source");
}

/// Adds a text to a file of the tree.
///
/// # Panics
/// If it cannot be written.
pub fn add(file: &str, text: &str) {
    let path = Path::new(TREE).join(file);
    let before = fs::read_to_string(&path).expect("a file of the source");
    fs::write(&path, before + text).expect("a file of the source");
}

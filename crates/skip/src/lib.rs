// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests that this machine cannot run: each reports that, or fails if everything is required.
//!
//! A test that lacks something calls [`skip`], or one of the functions that call it, and returns.
//! `PUNCTUAL_REQUIRE=all` turns each skipped test into a failure. Without it, the test's name and
//! the reason are printed as one line on standard error and in the file that `PUNCTUAL_SKIPPED_LOG`
//! names, which `./test` prints at its end.
#![forbid(unsafe_code)]

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::thread;

/// Reports that the calling test is skipped.
///
/// # Panics
/// If everything is required, or if the report fails.
pub fn skip(reason: &str) {
    let thread = thread::current();
    let line = format!("{}: {reason}\n", thread.name().unwrap_or("a test"));
    let policy = Policy::from(|name| std::env::var_os(name));
    let said = policy.and_then(|policy| policy.apply(&line));
    if let Err(failure) = said {
        panic!("{failure}");
    }
}

/// Returns true if this test runs as root; skips it otherwise.
pub fn root() -> bool {
    either(rustix::process::geteuid().is_root(), "needs root")
}

/// Returns true if the test may change this machine's settings and take a CPU for itself, which
/// `PUNCTUAL_HOST_TESTS=1` allows; skips it otherwise.
pub fn host() -> bool {
    let allowed = std::env::var_os("PUNCTUAL_HOST_TESTS").is_some_and(|value| value == "1");
    let reason = "turns this machine's settings: set PUNCTUAL_HOST_TESTS=1";
    root() && either(allowed, reason)
}

/// Returns true if a program is installed; skips the test otherwise.
pub fn program(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).any(|directory| directory.join(name).is_file());
    either(found, &format!("{name} is not installed"))
}

/// Returns true if a long test was asked for: `variable` is 1. Otherwise the test is listed as not
/// run, which is no failure.
///
/// # Panics
/// If it cannot be listed.
pub fn long(variable: &str) -> bool {
    let is_asked_for = std::env::var_os(variable).is_some_and(|value| value == "1");
    if !is_asked_for {
        let file = std::env::var_os("PUNCTUAL_SKIPPED_LOG");
        let test = std::thread::current().name().unwrap_or("a test").to_owned();
        let line = format!("{test}: takes long: set {variable}=1\n");
        log(file.as_ref(), &line).expect("the list of what is not run");
    }
    is_asked_for
}

/// Returns the value of a variable that names something outside the repository, such as a directory
/// of documents. Without it the test is listed as not run, which is no failure.
///
/// # Panics
/// If it cannot be listed.
pub fn beside(variable: &str, what: &str) -> Option<OsString> {
    let named = std::env::var_os(variable).filter(|value| !value.is_empty());
    if named.is_none() {
        let file = std::env::var_os("PUNCTUAL_SKIPPED_LOG");
        let test = std::thread::current().name().unwrap_or("a test").to_owned();
        let line = format!("{test}: {variable} names no {what}\n");
        log(file.as_ref(), &line).expect("the list of what is not run");
    }
    named
}

fn either(is_there: bool, reason: &str) -> bool {
    if !is_there {
        skip(reason);
    }
    is_there
}

/// The treatment of a test that cannot run.
#[derive(Debug)]
enum Policy {
    Fail,
    Log(Option<OsString>),
}

impl Policy {
    fn from(variable: impl Fn(&str) -> Option<OsString>) -> Result<Self, String> {
        match variable("PUNCTUAL_REQUIRE").filter(|value| !value.is_empty()) {
            None => Ok(Self::Log(variable("PUNCTUAL_SKIPPED_LOG"))),
            Some(value) if value == "all" => Ok(Self::Fail),
            Some(value) => Err(format!("expected PUNCTUAL_REQUIRE=all, found {value:?}")),
        }
    }

    fn apply(&self, line: &str) -> Result<(), String> {
        match self {
            Self::Fail => Err(format!("PUNCTUAL_REQUIRE=all, and skipped: {line}")),
            Self::Log(file) => log(file.as_ref(), line)
                .map_err(|error| format!("cannot say what is skipped in {file:?}: {error}")),
        }
    }
}

fn log(file: Option<&OsString>, line: &str) -> io::Result<()> {
    // Not by `eprint!`, which is not shown where a test passes.
    write!(io::stderr(), "skipped: {line}")?;
    let Some(file) = file else { return Ok(()) };
    let mut file = OpenOptions::new().append(true).create(true).open(file)?;
    // One call: tests in several processes add their lines at once.
    file.write_all(line.as_bytes())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_is_required_fails() {
        let policy = Policy::from(|name| (name == "PUNCTUAL_REQUIRE").then(|| "all".into()));
        let failure = policy.unwrap().apply("timer: needs root\n").unwrap_err();
        assert!(failure.contains("timer: needs root"), "{failure}");
    }

    #[test]
    fn another_word_is_refused() {
        let error = Policy::from(|_| Some("root".into())).unwrap_err();
        assert!(error.contains("\"root\""), "{error}");
    }

    #[test]
    fn each_skipped_test_is_a_line_of_the_file() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("skipped");
        let variable = |name: &str| (name == "PUNCTUAL_SKIPPED_LOG").then(|| file.clone().into());
        for line in ["first\n", "second\n"] {
            Policy::from(variable).unwrap().apply(line).unwrap();
        }
        assert_eq!(fs::read_to_string(&file).unwrap(), "first\nsecond\n");
        let nowhere = |name: &str| (name == "PUNCTUAL_SKIPPED_LOG").then(|| "/no/such".into());
        assert!(Policy::from(nowhere).unwrap().apply("third\n").is_err());
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! OpenSSH's own client: what it is told, and what it answers.

use std::fs::File;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Output, Stdio};

use super::{Destination, Error};

/// The environment variable that names another command in place of `ssh`: words between blanks.
pub const VARIABLE: &str = "PUNCTUAL_SSH";

/// The exit status of `ssh` where the fault is in the connection.
const NO_CONNECTION: i32 = 255;

/// A command that has the board's shell run these words. Nobody is asked for a password: the
/// connection is made again when it is lost, and nobody may be there then.
pub fn ssh(destination: &Destination, words: &[&str]) -> Command {
    let named = std::env::var(VARIABLE).unwrap_or_default();
    let mut named = named.split_whitespace();
    let mut command = Command::new(named.next().unwrap_or("ssh"));
    let quoted: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    command
        .args(named)
        .args(["-T", "-o", "BatchMode=yes", "--", &destination.host])
        .arg(format!("exec {}", quoted.join(" ")))
        // Ctrl-C is for Punctual, which then sees to it that the target ends.
        .process_group(0);
    command
}

/// Runs a script there; returns what it prints.
pub fn run(
    destination: &Destination,
    script: &str,
    arguments: &[&str],
    input: Option<File>,
) -> Result<String, Error> {
    let words = [&["sh", "-c", script, "punctual"], arguments].concat();
    let mut command = ssh(destination, &words);
    command.stdin(input.map_or_else(Stdio::null, Stdio::from));
    let output = command.output().map_err(|error| no_ssh(&command, &error))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(failure(destination, &output))
}

/// The command itself cannot be run.
pub fn no_ssh(command: &Command, error: &std::io::Error) -> Error {
    Error::NoSsh {
        program: command.get_program().to_string_lossy().into_owned(),
        error: error.to_string(),
    }
}

fn failure(destination: &Destination, output: &Output) -> Error {
    let host = destination.host.clone();
    let said = last_line(&String::from_utf8_lossy(&output.stderr));
    match output.status.code() {
        Some(NO_CONNECTION) | None => Error::Unreachable { host, said },
        Some(_) => Error::Directory { host, said },
    }
}

/// What was said last, which says why.
pub fn last_line(text: &str) -> String {
    let last = text.lines().rev().find(|line| !line.trim().is_empty());
    last.unwrap_or("it says nothing").trim().to_owned()
}

/// A word that any shell takes as it is.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

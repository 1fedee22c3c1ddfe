// SPDX-License-Identifier: MIT OR Apache-2.0
//! The orders to the board's shell, and its answers.

use std::fs::File;
use std::process::Command;
use std::sync::atomic::AtomicBool;

use super::client::{self, Output};
use super::route::Fault;
use super::{Error, Route};

/// A command that has the board's shell run these words.
pub fn command(route: &Route, words: &[&str]) -> Command {
    let quoted: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    route.command(&format!("exec {}", quoted.join(" ")))
}

/// Runs a script on the board; returns its output.
pub fn run(
    route: &Route,
    script: &str,
    arguments: &[&str],
    input: Option<File>,
    cancel: &AtomicBool,
) -> Result<String, Error> {
    let words = [&["sh", "-c", script, "punctual"], arguments].concat();
    let mut command = command(route, &words);
    let output = client::output(&mut command, route.end(), input, cancel);
    let output = output.map_err(|error| route.no_client(&command, &error))?;
    let output = output.ok_or(Error::Interrupted)?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    Err(failure(route, &output))
}

fn failure(route: &Route, output: &Output) -> Error {
    let host = route.name().to_owned();
    let said = route.complaint(&output.stderr);
    match route.fault(output.status.code()) {
        Fault::Connection => Error::Unreachable { host, said },
        Fault::Client => Error::Refused { host, said },
        Fault::Board => Error::Directory {
            host,
            bench: route.bench(),
            said,
        },
    }
}

/// The last line that is not empty, which gives the reason.
pub fn last_line(text: &str) -> String {
    let last = text.lines().rev().find(|line| !line.trim().is_empty());
    last.unwrap_or("it says nothing").trim().to_owned()
}

/// Quotes a word so that any shell takes it as it is.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

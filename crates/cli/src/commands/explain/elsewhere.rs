// SPDX-License-Identifier: MIT OR Apache-2.0
//! A trace from elsewhere, in a file or on standard input.

use std::io::{Read, stdin};
use std::path::Path;

use anyhow::{Context as _, Result};
use punctual_scope::pasted::{self, Told};

use super::super::{open_named, read_at_most};
use crate::UsageError;

/// The longest text that is read, in bytes.
const TEXT_MOST: u64 = 64 << 20;

/// Returns true if this names a file and no run: `-`, a path, or an existing file.
pub fn is_file(name: &str) -> bool {
    name == "-" || name.contains('/') || Path::new(name).is_file()
}

/// The error for a word that is neither a run nor a file.
pub fn neither(name: &str) -> UsageError {
    UsageError(format!(
        "there is neither a run nor a file \"{name}\" (`punctual runs` lists all runs)"
    ))
}

/// Explains the traces in a file.
pub fn explain(name: &str) -> Result<Vec<Told>> {
    let source: Box<dyn Read> = match name {
        "-" => Box::new(stdin()),
        _ => Box::new(open_named(Path::new(name))?),
    };
    let bytes = read_at_most(source, TEXT_MOST, "cut what is late out of it")
        .with_context(|| name.to_owned())?;
    let told = pasted::explain(&String::from_utf8_lossy(&bytes));
    if told.is_empty() {
        return Err(UsageError(no_trace(name, &bytes)).into());
    }
    Ok(told)
}

/// The error for input that is not text: what was expected, and what to do.
fn no_trace(name: &str, bytes: &[u8]) -> String {
    let is_of_trace_cmd = bytes.starts_with(b"\x17\x08\x44tracing");
    if is_of_trace_cmd {
        return format!(
            "{name}: it is trace-cmd's own form: `trace-cmd report {name} | punctual explain -`"
        );
    }
    format!("{name}: {}", pasted::no_trace(name, bytes))
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! A trace from elsewhere, in a file or on standard input.

use std::io::{Read as _, stdin};
use std::path::Path;

use anyhow::{Context as _, Result};
use punctual_scope::pasted::{self, Told};

use super::super::open_named;
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
    let mut bytes = Vec::new();
    if name == "-" {
        stdin().take(TEXT_MOST + 1).read_to_end(&mut bytes)?;
    } else {
        let file = open_named(Path::new(name))?;
        let read = file.take(TEXT_MOST + 1).read_to_end(&mut bytes);
        read.with_context(|| name.to_owned())?;
    }
    if bytes.len() as u64 > TEXT_MOST {
        let most = TEXT_MOST >> 20;
        let why =
            format!("{name}: expected at most {most} MiB of text: cut what is late out of it");
        return Err(UsageError(why).into());
    }
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

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The file in which a nightly job keeps what it has reported.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context as _, Result};
use punctual_kernels::paths;
use punctual_report::series::Told;

const HEAD: &str = "\
# What `punctual series --nightly` has reported, so that it reports nothing twice.
";

/// Reads the earlier reports; empty if there is no file yet.
pub fn read(path: &Path) -> Result<Told> {
    let text = match fs::read_to_string(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Told::default()),
        text => text.with_context(|| path.display().to_string())?,
    };
    let expected =
        "expected what an earlier --nightly wrote there: name another file, or remove it";
    toml::from_str(&text).with_context(|| format!("{}: {expected}", path.display()))
}

/// Writes the reports: as a whole, or not at all.
pub fn write(path: &Path, told: &Told) -> Result<()> {
    let text = HEAD.to_owned() + &toml::to_string(told).context("what was told")?;
    paths::write_atomically(path, text.as_bytes()).with_context(|| path.display().to_string())
}

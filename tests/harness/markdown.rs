// SPDX-License-Identifier: MIT OR Apache-2.0
//! The project's documents: their files, and the code in them.

use std::fs;
use std::path::{Path, PathBuf};

/// The repository's root.
///
/// # Panics
/// If it is missing.
pub fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    root.canonicalize().expect("the repository")
}

/// All files of the repository with this extension, sorted, except built and hidden ones.
///
/// # Panics
/// If a directory cannot be read.
pub fn files(extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut directories = vec![root()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).expect("a directory") {
            let path = entry.expect("an entry").path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if name.starts_with('.') || name == "target" {
                continue;
            }
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|found| found == extension) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// The lines of a document outside of code blocks, each with its number, counted from 1.
pub fn prose(text: &str) -> Vec<(usize, &str)> {
    let mut in_code = false;
    let mut lines = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        if line.starts_with("```") {
            in_code = !in_code;
        } else if !in_code {
            lines.push((number, line));
        }
    }
    lines
}

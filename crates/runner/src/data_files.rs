// SPDX-License-Identifier: MIT OR Apache-2.0
//! Data files: those that come with Punctual, and the user's own in `~/.config/punctual`.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use include_dir::Dir;
use punctual_exchange::{ExchangeError, Reader};
use punctual_kernels::paths;

use crate::Error;

/// The paths and texts of the TOML files that come with Punctual, followed by those of the user's
/// own in `~/.config/punctual/KIND`.
pub(crate) fn all(kind: &str, included: &Dir<'static>) -> Result<Vec<(PathBuf, String)>, Error> {
    let mut texts = self::included(kind, included)?;
    texts.extend(own(kind)?);
    Ok(texts)
}

/// The paths and texts of those that come with Punctual only.
pub(crate) fn included(
    kind: &str,
    included: &Dir<'static>,
) -> Result<Vec<(PathBuf, String)>, Error> {
    let mut texts = Vec::new();
    for file in included.files().filter(|file| is_toml(file.path())) {
        let path = Path::new(kind).join(file.path());
        let text = file
            .contents_utf8()
            .ok_or_else(|| wrong(&path, "expected UTF-8 text"))?;
        texts.push((path, text.to_owned()));
    }
    Ok(texts)
}

/// The paths and texts of the user's own TOML files of this kind, sorted by path.
pub(crate) fn own(kind: &str) -> Result<Vec<(PathBuf, String)>, Error> {
    // Without a home there are no files of the user's own.
    let Ok(config) = paths::config_dir() else {
        return Ok(Vec::new());
    };
    let directory = config.join(kind);
    let entries = match fs::read_dir(&directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(Error::at(&directory))?,
    };
    let mut paths = Vec::new();
    for entry in entries {
        paths.push(entry.map_err(Error::at(&directory))?.path());
    }
    paths.retain(|path| path.is_file() && is_toml(path));
    paths.sort();
    let with_text = |path: PathBuf| Ok((path.clone(), read(&path)?));
    paths.into_iter().map(with_text).collect()
}

/// The text of a TOML file.
pub(crate) fn read(path: &Path) -> Result<String, Error> {
    if path.is_file() && is_export(path) {
        return Err(found_export(path));
    }
    fs::read_to_string(path).map_err(Error::at(path))
}

/// The error for a file of `punctual export` in place of a TOML file.
pub(crate) fn found_export(path: &Path) -> Error {
    wrong(
        path,
        "expected a TOML file, found a file of `punctual export`",
    )
}

/// Returns true if a path is that of a file of `punctual export`: by its first line, or, where there
/// is no such file, by its name, which ends with `.punctual`. A pipe can be read only once.
pub fn is_export(path: &Path) -> bool {
    if path.is_file() {
        return File::open(path).is_ok_and(starts_as_export);
    }
    path.extension().is_some_and(|end| end == "punctual")
}

fn starts_as_export(file: File) -> bool {
    !matches!(
        Reader::new(file),
        Err(ExchangeError::Foreign | ExchangeError::Io(_))
    )
}

/// Returns true if a word of a command line or a suite is the path of a TOML file, not a name.
pub fn is_path(word: &str) -> bool {
    word.contains('/') || is_toml(Path::new(word))
}

fn is_toml(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension == "toml")
}

/// A file's name without its extension.
pub(crate) fn stem(path: &Path) -> String {
    path.file_stem()
        .map_or_else(String::new, |stem| stem.to_string_lossy().into_owned())
}

/// The error for a file with invalid content.
pub(crate) fn wrong(path: &Path, reason: &str) -> Error {
    Error::Request(format!("{}: {}", path.display(), reason.trim_end()))
}

/// The error for a file with invalid content in a line, which is counted from 1.
pub(crate) fn wrong_at(path: &Path, line: usize, reason: &str) -> Error {
    Error::Request(format!("{}:{line}: {}", path.display(), reason.trim_end()))
}

#[cfg(test)]
mod tests {
    use punctual_exchange::Writer;

    use super::*;

    #[test]
    fn a_file_of_runs_is_known_by_its_name_or_its_content_and_is_no_toml() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, bytes: &[u8]| {
            let path = directory.path().join(name);
            fs::write(&path, bytes).unwrap();
            path
        };
        let writer = Writer::new(Vec::new(), "0.1.0").unwrap();
        let export: Vec<u8> = writer.finish().unwrap();
        let renamed = write("renamed", &export);
        let other = write("other.gz", b"\x1f\x8bof another program");
        let text = write("text.toml", b"");
        assert!(is_export(&renamed) && is_export(Path::new("none.punctual")));
        assert!(!is_export(&other) && !is_export(&text) && !is_export(directory.path()));
        let error = read(&renamed).unwrap_err().to_string();
        assert!(
            error.ends_with("renamed: expected a TOML file, found a file of `punctual export`"),
            "{error}"
        );
        // What does not exist is not found to be something.
        let none = read(&directory.path().join("none.punctual")).unwrap_err();
        assert!(matches!(none, Error::Io { .. }), "{none}");
    }
}

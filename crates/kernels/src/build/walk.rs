// SPDX-License-Identifier: MIT OR Apache-2.0
//! A walk through the files of a source, and through those outside of it to which its links lead.

use std::collections::BTreeSet;
use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};

use super::error::BuildError;

/// The files that are left to see.
pub(super) struct Walk<'a> {
    /// The source, by its canonical path.
    source: &'a Path,
    left: Vec<PathBuf>,
    /// True if links that lead outside are followed.
    follows: bool,
    /// What was found outside: links may lead in circles.
    followed: BTreeSet<PathBuf>,
}

impl<'a> Walk<'a> {
    /// Sees all files of a source.
    pub(super) fn of(source: &'a Path) -> Self {
        Self::among(source, vec![source.to_owned()])
    }

    /// Sees all files of a source, and follows no links.
    pub(super) fn within(source: &'a Path) -> Self {
        Self {
            follows: false,
            ..Self::of(source)
        }
    }

    /// Sees some files, and those below some directories.
    pub(super) fn among(source: &'a Path, left: Vec<PathBuf>) -> Self {
        Self {
            source,
            left,
            follows: true,
            followed: BTreeSet::new(),
        }
    }

    /// Returns what there is at a path, unless that is a directory or gone: then others follow.
    fn visit(&mut self, path: &Path) -> Result<Option<Metadata>, BuildError> {
        let found = match fs::symlink_metadata(path) {
            // What is removed meanwhile is no source of anything.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            found => found.map_err(BuildError::at(path))?,
        };
        if found.is_symlink() && self.follows {
            let target = outside(self.source, path)?;
            let new = target.filter(|target| self.followed.insert(target.clone()));
            self.left.extend(new);
        }
        if !found.is_dir() {
            return Ok(Some(found));
        }
        for entry in fs::read_dir(path).map_err(BuildError::at(path))? {
            let entry = entry.map_err(BuildError::at(path))?;
            // What git keeps for itself is no part of the source.
            if entry.file_name() != ".git" {
                self.left.push(entry.path());
            }
        }
        Ok(None)
    }
}

impl Iterator for Walk<'_> {
    type Item = Result<(PathBuf, Metadata), BuildError>;

    fn next(&mut self) -> Option<Self::Item> {
        while let Some(path) = self.left.pop() {
            match self.visit(&path) {
                Ok(None) => {}
                Ok(Some(found)) => return Some(Ok((path, found))),
                Err(error) => return Some(Err(error)),
            }
        }
        None
    }
}

/// The target of a link that leads out of a source, whose path is canonical. `None` for a link that
/// leads into the source, or nowhere.
///
/// # Errors
/// If the target contains the source itself: no part of a kernel is meant by that.
pub(super) fn outside(source: &Path, link: &Path) -> Result<Option<PathBuf>, BuildError> {
    let target = link.canonicalize().ok();
    let Some(target) = target.filter(|target| !target.starts_with(source)) else {
        return Ok(None);
    };
    if source.starts_with(&target) {
        let link = link.to_owned();
        return Err(BuildError::LeadsOut { link, target });
    }
    Ok(Some(target))
}

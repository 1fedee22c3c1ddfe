// SPDX-License-Identifier: MIT OR Apache-2.0
//! Settings of the kernel that a probe changes for as long as it measures.
//!
//! A [`SettingGuard`] restores the setting when it is dropped. What was there is noted in a file
//! before the setting is changed, so that it can also be restored when the target was killed:
//! by the next one, when it starts. The notes lie where a reboot clears them, as it clears the
//! settings. A note is locked for as long as its owner lives, so that nobody takes it for
//! one that was left behind, and no two targets change the same setting.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

/// Where the notes are: one file per setting, named like it, containing what was there.
const NOTES: &str = "/run/punctual/settings";

/// A setting that is changed until this is dropped.
#[derive(Debug)]
pub struct SettingGuard {
    path: PathBuf,
    before: String,
    note: PathBuf,
    /// Locked; closed, and so unlocked, only after the note is gone.
    _lock: File,
}

impl SettingGuard {
    /// Writes `value` to the file that is the setting; an error is the reason why not.
    pub fn set(path: &str, value: &str) -> Result<Self, String> {
        Self::set_noted(Path::new(NOTES), Path::new(path), value)
    }

    fn set_noted(notes: &Path, path: &Path, value: &str) -> Result<Self, String> {
        let setting = note(notes, path).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => format!("{}: another target holds it", path.display()),
            _ => format!("{}: {error}", path.display()),
        })?;
        let refused = |what: &dyn std::fmt::Display| format!("{}: {what}", path.display());
        write(path, value).map_err(|error| refused(&error))?;
        let found = fs::read_to_string(path).map_err(|error| refused(&error))?;
        if found.trim() != value {
            let (found, written) = (found.trim(), value);
            return Err(refused(&format!(
                "reads {found} after {written} was written"
            )));
        }
        Ok(setting)
    }

    /// What was there before.
    pub fn before(&self) -> &str {
        self.before.trim()
    }
}

impl Drop for SettingGuard {
    fn drop(&mut self) {
        // Where this fails the note stays, and the next target tries again.
        if write(&self.path, &self.before).is_ok() {
            let _ = fs::remove_file(&self.note);
        }
    }
}

/// Takes a note of what a setting says, or takes over the note that was left behind.
fn note(notes: &Path, path: &Path) -> io::Result<SettingGuard> {
    let found = fs::read_to_string(path)?;
    fs::create_dir_all(notes)?;
    let note = notes.join(path.to_string_lossy().replace('/', "!"));
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(&note)?;
    flock(&file, FlockOperation::NonBlockingLockExclusive)?;
    let mut before = String::new();
    file.read_to_string(&mut before)?;
    if before.is_empty() {
        before = found;
        file.write_all(before.as_bytes())?;
    }
    Ok(SettingGuard {
        path: path.to_owned(),
        before,
        note,
        _lock: file,
    })
}

/// A setting exists already, and is no regular file.
fn write(path: &Path, value: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).open(path)?;
    file.write_all(value.as_bytes())
}

/// Restores every setting whose owner died, and says which.
pub fn restore_left_behind() -> Vec<String> {
    restore(Path::new(NOTES))
}

fn restore(notes: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(notes) else {
        return Vec::new();
    };
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    names.sort();
    let restore = |name: String| {
        let path = name.replace('!', "/");
        // Dropping it is what restores it.
        let setting = note(notes, Path::new(&path)).ok()?;
        Some(format!("{path} = {}", setting.before()))
    };
    names.into_iter().filter_map(restore).collect()
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    /// A directory of its own for each test, with a setting in it that says 950000.
    fn scratch() -> (TempDir, PathBuf, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let setting = directory.path().join("sched_rt_runtime_us");
        fs::write(&setting, "950000").unwrap();
        let notes = directory.path().join("notes");
        (directory, notes, setting)
    }

    fn says(setting: &Path) -> String {
        fs::read_to_string(setting).unwrap()
    }

    #[test]
    fn a_setting_is_restored_and_its_note_is_gone() {
        let (_directory, notes, path) = scratch();
        let setting = SettingGuard::set_noted(&notes, &path, "100000").unwrap();
        assert_eq!(
            (says(&path).as_str(), setting.before()),
            ("100000", "950000")
        );
        drop(setting);
        assert_eq!(says(&path), "950000");
        assert_eq!(fs::read_dir(&notes).unwrap().count(), 0);
    }

    #[test]
    fn after_a_crash_the_next_start_restores_it() {
        let (_directory, notes, path) = scratch();
        // What one leaves behind that is killed: a note that nobody holds.
        fs::create_dir(&notes).unwrap();
        let note = path.to_string_lossy().replace('/', "!");
        fs::write(notes.join(note), "950000").unwrap();
        fs::write(&path, "100000").unwrap();
        assert_eq!(restore(&notes), [format!("{} = 950000", path.display())]);
        assert_eq!(says(&path), "950000");
        assert!(restore(&notes).is_empty());
    }

    #[test]
    fn the_setting_of_a_living_target_is_left_alone() {
        let (_directory, notes, path) = scratch();
        let setting = SettingGuard::set_noted(&notes, &path, "100000").unwrap();
        assert!(restore(&notes).is_empty());
        let refused = SettingGuard::set_noted(&notes, &path, "200000").unwrap_err();
        assert!(refused.contains("another target"), "{refused}");
        assert_eq!(says(&path), "100000");
        drop(setting);
        assert_eq!(says(&path), "950000");
    }

    #[test]
    fn a_value_that_is_not_taken_is_an_error_and_changes_nothing() {
        let (_directory, notes, path) = scratch();
        // A file takes what is written but keeps what is longer.
        let refused = SettingGuard::set_noted(&notes, &path, "-1").unwrap_err();
        assert!(refused.contains("after -1 was written"), "{refused}");
        assert_eq!(says(&path), "950000");
        assert!(SettingGuard::set_noted(&notes, Path::new("/no/such/setting"), "1").is_err());
    }
}

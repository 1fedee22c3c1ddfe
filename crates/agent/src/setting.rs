// SPDX-License-Identifier: MIT OR Apache-2.0
//! Settings of the kernel that a probe changes for as long as it measures.
//!
//! A [`SettingGuard`] restores the setting when it is dropped. The previous value is noted in a
//! file before the setting is changed, so that it can also be restored after the target was killed:
//! by the next target, when it starts. The notes lie where a reboot clears them, as it clears the
//! settings. A note is locked for as long as its owner lives, so that nobody takes it for
//! one that was left behind, and no two targets change the same setting. A process that has locked
//! a note which no longer exists, because its owner has removed it meanwhile, takes another.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

/// The directory of the notes: one file per setting, named like it, with its previous value.
const NOTES: &str = "/run/punctual/settings";

/// A setting that is changed until this is dropped.
#[derive(Debug)]
pub struct SettingGuard {
    path: PathBuf,
    before: String,
    note: PathBuf,
    /// The note, locked; it is closed, and so unlocked, only after it is removed.
    _lock: File,
}

impl SettingGuard {
    /// Writes `value` to the file of the setting; an error is the reason why it could not be set.
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

    /// Returns the previous value.
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

/// Opens and locks a note that nobody else has locked, and that still exists.
fn lock(note: &Path, create: bool) -> io::Result<File> {
    loop {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(create)
            .truncate(false)
            .open(note)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        // Its owner may have removed it between the two.
        if file.metadata()?.nlink() > 0 {
            return Ok(file);
        }
    }
}

/// Notes the value of a setting, or takes over the note that was left behind.
fn note(notes: &Path, path: &Path) -> io::Result<SettingGuard> {
    fs::create_dir_all(notes)?;
    let note = notes.join(path.to_string_lossy().replace('/', "!"));
    // A setting that there is not leaves no note.
    fs::metadata(path)?;
    let mut file = lock(&note, true)?;
    let mut before = String::new();
    file.read_to_string(&mut before)?;
    if before.is_empty() {
        // Under the lock: before it was taken the setting may have been another target's.
        before = fs::read_to_string(path)?;
        file.write_all(before.as_bytes())?;
    }
    Ok(SettingGuard {
        path: path.to_owned(),
        before,
        note,
        _lock: file,
    })
}

/// Takes over a note that was left behind; `None` if there is none, or if its owner lives.
fn left_behind(notes: &Path, name: &str) -> Option<SettingGuard> {
    let note = notes.join(name);
    let mut file = lock(&note, false).ok()?;
    let mut before = String::new();
    file.read_to_string(&mut before).ok()?;
    if before.is_empty() {
        // Its owner has died before it changed anything.
        let _ = fs::remove_file(&note);
        return None;
    }
    Some(SettingGuard {
        path: name.replace('!', "/").into(),
        before,
        note,
        _lock: file,
    })
}

/// Writes to a setting, which exists already, and is no regular file.
fn write(path: &Path, value: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).open(path)?;
    file.write_all(value.as_bytes())
}

/// Restores every setting whose owner died, and names them.
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
        // Dropping it is what restores it.
        let setting = left_behind(notes, &name)?;
        Some(format!("{} = {}", setting.path.display(), setting.before()))
    };
    names.into_iter().filter_map(restore).collect()
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    /// Creates a directory for each test, with a setting in it that says 950000.
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
    fn a_note_that_its_owner_removes_meanwhile_is_nobodys() {
        let (_directory, notes, path) = scratch();
        let setting = SettingGuard::set_noted(&notes, &path, "100000").unwrap();
        // Who had opened the note before it was removed holds a file without a name. That it
        // can be locked says nothing.
        let opened = File::open(&setting.note).unwrap();
        drop(setting);
        flock(&opened, FlockOperation::NonBlockingLockExclusive).unwrap();
        assert_eq!(opened.metadata().unwrap().nlink(), 0);
        let next = SettingGuard::set_noted(&notes, &path, "200000").unwrap();
        assert!(next.note.exists());
        assert_eq!(next.before(), "950000");
    }

    #[test]
    fn many_at_once_leave_what_was_there_before_and_always_with_a_note() {
        let (_directory, notes, path) = scratch();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..500 {
                        let Ok(setting) = SettingGuard::set_noted(&notes, &path, "100000") else {
                            continue;
                        };
                        assert_eq!(setting.before(), "950000");
                        let note = fs::read_to_string(&setting.note).unwrap();
                        assert_eq!(note, "950000");
                    }
                });
            }
        });
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

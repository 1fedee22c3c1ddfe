//! Settings of the kernel that a probe changes for as long as it measures.
//!
//! A [`Knob`] is turned back when it is dropped. What was there is noted in a file before
//! the knob is turned, so that it can also be turned back when the target was killed: by
//! the next one, when it starts. The notes lie where a reboot clears them, as it clears the
//! settings. A note is locked for as long as its owner lives, so that nobody takes it for
//! one that was left behind, and no two targets turn the same knob.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use crate::sys::lock;

/// Where the notes are: one file per knob, named like it, containing what was there.
const NOTES: &str = "/run/punctual/knobs";

/// A setting that is changed until this is dropped.
#[derive(Debug)]
pub struct Knob {
    path: PathBuf,
    before: String,
    note: PathBuf,
    /// Locked; closed, and so unlocked, only after the note is gone.
    _lock: File,
}

impl Knob {
    /// Writes `value` to the file that is the knob; an error is the reason why not.
    pub fn turn(path: &str, value: &str) -> Result<Self, String> {
        Self::turn_noted(Path::new(NOTES), Path::new(path), value)
    }

    fn turn_noted(notes: &Path, path: &Path, value: &str) -> Result<Self, String> {
        let knob = note(notes, path).map_err(|error| match error.kind() {
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
        Ok(knob)
    }

    /// What was there before.
    pub fn before(&self) -> &str {
        self.before.trim()
    }
}

impl Drop for Knob {
    fn drop(&mut self) {
        // Where this fails the note stays, and the next target tries again.
        if write(&self.path, &self.before).is_ok() {
            let _ = fs::remove_file(&self.note);
        }
    }
}

/// Takes a note of what a knob says, or takes over the note that was left behind.
fn note(notes: &Path, path: &Path) -> io::Result<Knob> {
    let found = fs::read_to_string(path)?;
    fs::create_dir_all(notes)?;
    let note = notes.join(path.to_string_lossy().replace('/', "!"));
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(&note)?;
    lock::try_exclusive(&file)?;
    let mut before = String::new();
    file.read_to_string(&mut before)?;
    if before.is_empty() {
        before = found;
        file.write_all(before.as_bytes())?;
    }
    Ok(Knob {
        path: path.to_owned(),
        before,
        note,
        _lock: file,
    })
}

/// A knob exists already, and is no regular file.
fn write(path: &Path, value: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).open(path)?;
    file.write_all(value.as_bytes())
}

/// Turns back every knob whose owner died, and says which.
pub fn turn_back_left_behind() -> Vec<String> {
    turn_back(Path::new(NOTES))
}

fn turn_back(notes: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(notes) else {
        return Vec::new();
    };
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    names.sort();
    let turn = |name: String| {
        let path = name.replace('!', "/");
        // Dropping it is what turns it back.
        let knob = note(notes, Path::new(&path)).ok()?;
        Some(format!("{path} = {}", knob.before()))
    };
    names.into_iter().filter_map(turn).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory of its own for each test, with a knob in it that says 950000.
    fn scratch(name: &str) -> (PathBuf, PathBuf) {
        let unique = format!("punctual-knob-{name}-{}", std::process::id());
        let directory = std::env::temp_dir().join(unique);
        fs::create_dir_all(&directory).unwrap();
        let knob = directory.join("sched_rt_runtime_us");
        fs::write(&knob, "950000").unwrap();
        (directory.join("notes"), knob)
    }

    fn says(knob: &Path) -> String {
        fs::read_to_string(knob).unwrap()
    }

    #[test]
    fn a_knob_is_turned_back_and_its_note_is_gone() {
        let (notes, path) = scratch("drop");
        let knob = Knob::turn_noted(&notes, &path, "100000").unwrap();
        assert_eq!((says(&path).as_str(), knob.before()), ("100000", "950000"));
        drop(knob);
        assert_eq!(says(&path), "950000");
        assert_eq!(fs::read_dir(&notes).unwrap().count(), 0);
    }

    #[test]
    fn after_a_crash_the_next_start_turns_it_back() {
        let (notes, path) = scratch("crash");
        // What one leaves behind that is killed: a note that nobody holds.
        fs::create_dir(&notes).unwrap();
        let note = path.to_string_lossy().replace('/', "!");
        fs::write(notes.join(note), "950000").unwrap();
        fs::write(&path, "100000").unwrap();
        assert_eq!(turn_back(&notes), [format!("{} = 950000", path.display())]);
        assert_eq!(says(&path), "950000");
        assert!(turn_back(&notes).is_empty());
    }

    #[test]
    fn the_knob_of_a_living_target_is_left_alone() {
        let (notes, path) = scratch("living");
        let knob = Knob::turn_noted(&notes, &path, "100000").unwrap();
        assert!(turn_back(&notes).is_empty());
        let refused = Knob::turn_noted(&notes, &path, "200000").unwrap_err();
        assert!(refused.contains("another target"), "{refused}");
        assert_eq!(says(&path), "100000");
        drop(knob);
        assert_eq!(says(&path), "950000");
    }

    #[test]
    fn a_value_that_is_not_taken_is_an_error_and_changes_nothing() {
        let (notes, path) = scratch("refused");
        // A file takes what is written but keeps what is longer.
        let refused = Knob::turn_noted(&notes, &path, "-1").unwrap_err();
        assert!(refused.contains("after -1 was written"), "{refused}");
        assert_eq!(says(&path), "950000");
        assert!(Knob::turn_noted(&notes, Path::new("/no/such/knob"), "1").is_err());
    }
}

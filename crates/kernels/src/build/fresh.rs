// SPDX-License-Identifier: MIT OR Apache-2.0
//! Notices source that `make` would not: files that came after the last build with an older time.
//!
//! `make` compiles what is newer than its object. An archive that is unpacked, `cp -p` and `mv`
//! bring files whose modification time is older than that, though their contents are new. The time
//! of their last change of status tells them: nobody can set it.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use super::error::BuildError;

/// A moment on a file system's clock: seconds and nanoseconds.
type Moment = (i64, i64);

/// Begins a build: afterwards the file says when.
pub(super) fn begin(stamp: &Path) -> Result<(), BuildError> {
    fs::write(
        stamp,
        "the time of this file is the beginning of the last build\n",
    )
    .map_err(BuildError::at(stamp))
}

/// Returns true if objects of a build that began at this file's time may be older than their
/// source without looking so; also if it is not known when it began.
pub(super) fn may_be_stale(source: &Path, stamp: &Path) -> Result<bool, BuildError> {
    let Ok(stamp) = fs::symlink_metadata(stamp) else {
        return Ok(true);
    };
    let begun = (stamp.mtime(), stamp.mtime_nsec());
    let mut directories = vec![source.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).map_err(BuildError::at(&directory))? {
            let entry = entry.map_err(BuildError::at(&directory))?;
            let file = entry.path();
            // What is removed meanwhile is no source of anything.
            let Ok(found) = fs::symlink_metadata(&file) else {
                continue;
            };
            if found.is_dir() {
                let is_git = file.file_name().is_some_and(|name| name == ".git");
                directories.extend((!is_git).then_some(file));
            } else if looks_older(
                (found.mtime(), found.mtime_nsec()),
                (found.ctime(), found.ctime_nsec()),
                begun,
            ) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Returns true for a file that came after a build began, and looks as if it had been there.
fn looks_older(modified: Moment, changed: Moment, begun: Moment) -> bool {
    changed > begun && modified <= begun
}

#[cfg(test)]
mod tests {
    use std::fs::{File, FileTimes};
    use std::time::{Duration, SystemTime};

    use super::*;

    #[test]
    fn source_with_an_old_time_that_came_later_is_noticed() {
        let directory = tempfile::tempdir().unwrap();
        let (source, stamp) = (
            directory.path().join("source"),
            directory.path().join("stamp"),
        );
        fs::create_dir_all(source.join("kernel/sched")).unwrap();
        let core = source.join("kernel/sched/core.c");
        fs::write(&core, "old").unwrap();
        let is_stale = || may_be_stale(&source, &stamp).unwrap();
        assert!(is_stale(), "nobody knows when it was built");
        // Later than the source by more than a tick of the file system's clock.
        std::thread::sleep(Duration::from_millis(20));
        begin(&stamp).unwrap();
        assert!(!is_stale());
        std::thread::sleep(Duration::from_millis(20));
        // A new time: make sees it.
        fs::write(&core, "new").unwrap();
        assert!(!is_stale());
        let released = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        let times = FileTimes::new().set_modified(released);
        File::options()
            .write(true)
            .open(&core)
            .unwrap()
            .set_times(times)
            .unwrap();
        assert!(is_stale());
    }
}

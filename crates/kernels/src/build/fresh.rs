// SPDX-License-Identifier: MIT OR Apache-2.0
//! Notices source that `make` would not: files that came after the last build with an older time,
//! and files that changed while it ran.
//!
//! `make` compiles what is newer than its object. An archive that is unpacked, `cp -p` and `mv`
//! bring files whose modification time is older than that, though their contents are new. A file
//! that is saved while it is compiled is older than its object, too. The time of their last change
//! of status tells them: nobody can set it.

use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::error::BuildError;
use super::walk::Walk;

/// A moment on a file system's clock: seconds and nanoseconds.
type Moment = (i64, i64);

/// The times of the last build in a directory. Each is the time of a file beside it.
pub(super) struct Times {
    /// When the source was last looked at.
    looked: PathBuf,
    /// When the last build began.
    begun: PathBuf,
    /// When it ended, whatever came of it. It is missing if the build was killed.
    ended: PathBuf,
}

impl Times {
    /// The times that are kept in this directory.
    pub(super) fn of(directory: &Path) -> Self {
        Self {
            looked: directory.join("looked"),
            begun: directory.join("begun"),
            ended: directory.join("ended"),
        }
    }

    /// Returns true if a build has begun here.
    pub(super) fn has_begun(&self) -> bool {
        self.begun.exists()
    }

    /// Returns true if objects of the last build may be older than their source without looking so;
    /// also if it is not known when it began. This look is where the next build begins.
    /// `outside` are the files elsewhere that belong to the source.
    pub(super) fn may_be_stale(
        &self,
        source: &Path,
        outside: &[PathBuf],
    ) -> Result<bool, BuildError> {
        mark(&self.looked)?;
        let Some(begun) = time(&self.begun) else {
            return Ok(true);
        };
        let ended = time(&self.ended);
        let is_stale = |found: &Metadata| {
            // Of a link, make sees the time of the file to which it leads.
            let is_unseen = found.is_symlink() || ended.is_none_or(|end| modified(found) <= end);
            changed(found) >= begun && is_unseen
        };
        let is_old = |file: &PathBuf| fs::symlink_metadata(file).is_ok_and(|one| is_stale(&one));
        Ok(outside.iter().any(is_old) || any(source, is_stale)?)
    }

    /// Begins a build, at the time of the last look.
    pub(super) fn begin(&self) -> Result<(), BuildError> {
        match fs::remove_file(&self.ended) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            removed => removed.map_err(BuildError::at(&self.ended))?,
        }
        fs::rename(&self.looked, &self.begun).map_err(BuildError::at(&self.begun))
    }

    /// Ends a build.
    pub(super) fn end(&self) -> Result<(), BuildError> {
        mark(&self.ended)
    }
}

/// Gives a file the present time of its file system.
fn mark(file: &Path) -> Result<(), BuildError> {
    let text = "the time of this file is that of a build\n";
    fs::write(file, text).map_err(BuildError::at(file))
}

/// The time of a mark; `None` if there is none.
fn time(file: &Path) -> Option<Moment> {
    fs::symlink_metadata(file)
        .ok()
        .map(|found| modified(&found))
}

fn modified(found: &Metadata) -> Moment {
    (found.mtime(), found.mtime_nsec())
}

fn changed(found: &Metadata) -> Moment {
    (found.ctime(), found.ctime_nsec())
}

/// Returns true if this is so of any file of a source. What editors keep beside it does not count:
/// no file whose name begins with a dot is compiled.
fn any(source: &Path, is_so: impl Fn(&Metadata) -> bool) -> Result<bool, BuildError> {
    for found in Walk::within(source) {
        let (file, metadata) = found?;
        let name = Path::new(file.file_name().unwrap_or_default());
        let below = file.strip_prefix(source).unwrap_or(name);
        let is_hidden = |part: &OsStr| part.as_encoded_bytes().starts_with(b".");
        if is_so(&metadata) && !below.iter().any(is_hidden) {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use std::fs::{File, FileTimes};
    use std::thread::sleep;
    use std::time::{Duration, SystemTime};

    use super::*;

    /// More than a tick of the file system's clock.
    const TICK: Duration = Duration::from_millis(20);

    /// A source of one file, and the times of its builds.
    struct Scratch {
        directory: tempfile::TempDir,
        times: Times,
    }

    impl Scratch {
        fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            let out = directory.path().join("out");
            fs::create_dir_all(directory.path().join("source/kernel/sched")).unwrap();
            fs::create_dir(&out).unwrap();
            let scratch = Self {
                directory,
                times: Times::of(&out),
            };
            scratch.write("kernel/sched/core.c", "old");
            scratch
        }

        fn source(&self) -> PathBuf {
            self.directory.path().join("source")
        }

        fn write(&self, name: &str, text: &str) {
            fs::write(self.source().join(name), text).unwrap();
        }

        /// Sets the modification time of the source's file.
        fn set(&self, time: SystemTime) {
            let core = self.source().join("kernel/sched/core.c");
            let file = File::options().write(true).open(core).unwrap();
            file.set_times(FileTimes::new().set_modified(time)).unwrap();
        }

        /// Looks at the source.
        fn is_stale(&self) -> bool {
            let outside = [self.directory.path().join("outside.c")];
            self.times.may_be_stale(&self.source(), &outside).unwrap()
        }

        /// Builds, and does this meanwhile.
        fn build(&self, meanwhile: impl FnOnce()) {
            self.is_stale();
            self.times.begin().unwrap();
            sleep(TICK);
            meanwhile();
            sleep(TICK);
            self.times.end().unwrap();
            sleep(TICK);
        }
    }

    #[test]
    fn source_with_an_old_time_that_came_later_is_noticed() {
        let scratch = Scratch::new();
        assert!(scratch.is_stale(), "nobody knows when it was built");
        sleep(TICK);
        scratch.build(|| ());
        assert!(!scratch.is_stale());
        // A new time: make sees it.
        scratch.write("kernel/sched/core.c", "new");
        assert!(!scratch.is_stale());
        let released = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        scratch.set(released);
        assert!(scratch.is_stale());
    }

    #[test]
    fn source_that_was_saved_while_it_was_compiled_is_noticed_by_the_next_build() {
        let scratch = Scratch::new();
        sleep(TICK);
        scratch.build(|| scratch.write("kernel/sched/core.c", "new"));
        assert!(scratch.is_stale());
        assert!(scratch.is_stale(), "a look changes nothing");
        // All of it is compiled once.
        scratch.build(|| ());
        assert!(!scratch.is_stale());
        // What came after the end with a time before it is older than its object, too.
        let mut saved = SystemTime::UNIX_EPOCH;
        scratch.build(|| saved = SystemTime::now());
        scratch.set(saved);
        assert!(scratch.is_stale());
    }

    #[test]
    fn a_link_that_leads_to_another_file_is_noticed() {
        let scratch = Scratch::new();
        let link = scratch.source().join("kernel/driver.c");
        let lead_to = |file: &str| std::os::unix::fs::symlink(file, &link).unwrap();
        scratch.write("kernel/one.c", "1");
        scratch.write("kernel/other.c", "2");
        lead_to("one.c");
        sleep(TICK);
        scratch.build(|| ());
        assert!(!scratch.is_stale());
        fs::remove_file(&link).unwrap();
        lead_to("other.c");
        assert!(scratch.is_stale());
    }

    #[test]
    fn a_file_outside_with_an_old_time_is_noticed() {
        let scratch = Scratch::new();
        let outside = scratch.directory.path().join("outside.c");
        fs::write(&outside, "old").unwrap();
        let before = fs::metadata(&outside).unwrap().modified().unwrap();
        sleep(TICK);
        scratch.build(|| ());
        assert!(!scratch.is_stale());
        fs::write(&outside, "new").unwrap();
        assert!(!scratch.is_stale(), "make sees it");
        let file = File::options().write(true).open(&outside).unwrap();
        file.set_times(FileTimes::new().set_modified(before))
            .unwrap();
        assert!(scratch.is_stale());
    }

    #[test]
    fn the_end_of_a_build_that_was_killed_is_not_known() {
        let scratch = Scratch::new();
        sleep(TICK);
        scratch.build(|| ());
        scratch.is_stale();
        scratch.times.begin().unwrap();
        assert!(!scratch.is_stale());
        sleep(TICK);
        scratch.write("kernel/sched/core.c", "new");
        assert!(scratch.is_stale());
    }
}

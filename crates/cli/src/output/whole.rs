// SPDX-License-Identifier: MIT OR Apache-2.0
//! A file that takes a path's place as a whole, and the paths that nothing can replace: pipes,
//! devices, and what this process has open.

use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind, Seek as _, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, FlockOperation, access, flock};
use tempfile::{NamedTempFile, PersistError};

/// The end of the name of an incomplete file.
const PARTIAL: &str = ".punctual-partial";

/// The permissions of a new file, less those that the umask takes away.
const NEW: u32 = 0o666;

/// The number of links that the kernel follows in a path.
const LINKS: usize = 40;

/// A file that is being written. A reader finds all of it or the former one, unless its path is a
/// pipe, a device, or an open file: these get the bytes as they come.
pub struct WholeFile {
    sink: Sink,
    /// In bytes.
    size: u64,
}

enum Sink {
    /// The file that becomes the one of this path.
    Partial(NamedTempFile, PathBuf),
    Direct(Box<dyn Write>),
}

impl WholeFile {
    /// Begins the file of this path. Where no other file can be made beside it, it is written
    /// directly, unless nothing more fits there: then the former one stays.
    pub fn create(path: &Path) -> io::Result<Self> {
        let sink = match Target::of(path) {
            Target::Stdout => Sink::Direct(Box::new(io::stdout())),
            Target::Stderr => Sink::Direct(Box::new(io::stderr())),
            Target::Open(path) => {
                // Whoever has a regular file open keeps what is in it.
                let is_file = fs::metadata(&path)?.is_file();
                let file = File::options().write(true).append(is_file).open(&path)?;
                Sink::Direct(Box::new(file))
            }
            Target::Regular(path) => match partial(&path) {
                Ok(file) => Sink::Partial(file, path),
                Err(error) if is_full(&error) => return Err(error),
                // A directory in which no file can be made may have one that can be written.
                Err(_) => Sink::Direct(Box::new(File::create(&path)?)),
            },
        };
        Ok(Self { sink, size: 0 })
    }

    /// Waits until the disk has everything that was written.
    pub fn sync(&self) -> io::Result<()> {
        match &self.sink {
            Sink::Partial(file, _) => file.as_file().sync_all(),
            Sink::Direct(_) => Ok(()),
        }
    }

    /// Puts the file in its place; returns its size in bytes.
    pub fn finish(mut self) -> io::Result<u64> {
        self.flush()?;
        if let Sink::Partial(file, path) = self.sink {
            if let Err(PersistError { error, mut file }) = file.persist(&path) {
                // A mounted file cannot be replaced, nor can another user's in a directory such
                // as /tmp.
                if !is_refused(&error) {
                    return Err(error);
                }
                file.rewind()?;
                let mut former = File::create(&path)?;
                if let Err(error) = io::copy(&mut file, &mut former) {
                    let whole = file.into_temp_path().keep().map_err(|kept| kept.error)?;
                    let text = format!("{error}: {} has all of it", whole.display());
                    return Err(io::Error::new(error.kind(), text));
                }
            }
        }
        Ok(self.size)
    }
}

impl Write for WholeFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = match &mut self.sink {
            Sink::Partial(file, _) => file.write(bytes)?,
            Sink::Direct(to) => to.write(bytes)?,
        };
        self.size += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.sink {
            Sink::Partial(file, _) => file.flush(),
            Sink::Direct(to) => to.flush(),
        }
    }
}

/// Checks that the file of this path can be written; changes nothing.
pub fn check(path: &Path) -> io::Result<()> {
    match Target::of(path) {
        Target::Stdout | Target::Stderr => Ok(()),
        // Not opened: a pipe's reader takes its closing for the end.
        Target::Open(path) => Ok(access(&path, Access::WRITE_OK)?),
        Target::Regular(path) => {
            let was_there = path.exists();
            File::options().append(true).create(true).open(&path)?;
            if !was_there {
                // It was made for this check only.
                _ = fs::remove_file(&path);
            }
            Ok(())
        }
    }
}

/// The place that a path leads to.
enum Target {
    /// Standard output. What is printed goes there, too, one behind the other.
    Stdout,
    /// Standard error.
    Stderr,
    /// A pipe, a device, or a file that some process has open.
    Open(PathBuf),
    /// A regular file, or none yet.
    Regular(PathBuf),
}

impl Target {
    /// Follows the links of a path, but none of those in `/proc/*/fd`: a file with the name that
    /// they show is another one.
    fn of(path: &Path) -> Self {
        let mut path = path.to_owned();
        for _ in 0..LINKS {
            let Ok(directory) = directory_of(&path).canonicalize() else {
                break;
            };
            if directory.starts_with("/proc") && directory.ends_with("fd") {
                return Self::of_descriptor(&directory, path);
            }
            let Ok(link) = fs::read_link(&path) else {
                break;
            };
            path = directory.join(link);
        }
        match fs::metadata(&path) {
            Ok(found) if !found.is_file() && !found.is_dir() => Self::Open(path),
            _ => Self::Regular(path),
        }
    }

    fn of_descriptor(directory: &Path, path: PathBuf) -> Self {
        let own = Path::new("/proc/self/fd").canonicalize();
        let is_own = own.is_ok_and(|own| own == directory);
        match path.file_name().and_then(OsStr::to_str) {
            Some("1") if is_own => Self::Stdout,
            Some("2") if is_own => Self::Stderr,
            _ => Self::Open(path),
        }
    }
}

fn directory_of(path: &Path) -> &Path {
    let parent = path.parent().filter(|path| !path.as_os_str().is_empty());
    parent.unwrap_or(Path::new("."))
}

/// A file beside `path` that becomes it, with its permissions. Leftovers of killed processes are
/// removed first: a living one holds a lock on its file.
fn partial(path: &Path) -> io::Result<NamedTempFile> {
    let directory = directory_of(path);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let begin = format!(".{name}.");
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let other = entry.file_name().to_string_lossy().into_owned();
        if other.starts_with(&begin) && other.ends_with(PARTIAL) {
            let file = File::open(entry.path());
            if file.is_ok_and(|file| lock(&file).is_ok()) {
                _ = fs::remove_file(entry.path());
            }
        }
    }
    let former = fs::metadata(path).ok();
    let former = former.map(|file| file.permissions().mode() & 0o777);
    let mut builder = tempfile::Builder::new();
    builder.prefix(&begin).suffix(PARTIAL);
    builder.permissions(Permissions::from_mode(former.unwrap_or(NEW)));
    let mut file = builder.tempfile_in(directory)?;
    // Until it is locked, another process takes it for a leftover.
    while lock(file.as_file()).is_err_and(|error| error.kind() == ErrorKind::WouldBlock) {
        file = builder.tempfile_in(directory)?;
    }
    if let Some(former) = former {
        // The umask is for new files only.
        let former = Permissions::from_mode(former);
        file.as_file().set_permissions(former)?;
    }
    Ok(file)
}

fn is_full(error: &io::Error) -> bool {
    let full = [ErrorKind::StorageFull, ErrorKind::QuotaExceeded];
    full.contains(&error.kind())
}

/// Returns true if a file cannot be replaced, though it may be written; or if what was to replace it
/// has gone, and is only open still.
fn is_refused(error: &io::Error) -> bool {
    let kinds = [
        ErrorKind::PermissionDenied,
        ErrorKind::ReadOnlyFilesystem,
        ErrorKind::ResourceBusy,
        ErrorKind::CrossesDevices,
        ErrorKind::NotFound,
    ];
    kinds.contains(&error.kind())
}

fn lock(file: &File) -> io::Result<()> {
    Ok(flock(file, FlockOperation::NonBlockingLockExclusive)?)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd as _;
    use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, symlink};
    use std::process::Command;
    use std::thread;

    use tempfile::TempDir;

    use super::*;

    fn write(path: &Path, text: &str) -> io::Result<u64> {
        let mut file = WholeFile::create(path)?;
        file.write_all(text.as_bytes())?;
        file.finish()
    }

    fn names(directory: &TempDir) -> Vec<String> {
        let entries = fs::read_dir(directory.path()).unwrap().flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }

    #[test]
    fn what_a_killed_process_left_is_removed_by_the_next_and_nothing_else_is() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("mine.punctual");
        // As a killed one leaves it: a file that nobody has locked.
        let (_, left) = partial(&path).unwrap().keep().unwrap();
        let left = left.file_name().unwrap().to_string_lossy().into_owned();
        assert!(
            left.starts_with(".mine.punctual.") && left.ends_with(PARTIAL),
            "{left}"
        );
        let other = ".other.punctual.x.punctual-partial";
        fs::write(directory.path().join(other), "").unwrap();
        let alive = partial(&path).unwrap();
        assert!(!names(&directory).contains(&left));
        let beside = partial(&path).unwrap();
        assert_eq!(names(&directory).len(), 3, "{:?}", names(&directory));
        drop((alive, beside));
        assert_eq!(names(&directory), [other]);
        assert_eq!(write(&path, "whole").unwrap(), 5);
        assert_eq!(names(&directory), [other, "mine.punctual"]);
    }

    #[test]
    fn a_link_stays_and_its_file_is_replaced_or_made() {
        let directory = tempfile::tempdir().unwrap();
        let (file, link) = (directory.path().join("file"), directory.path().join("link"));
        // Relative to where it is, and to a file that is not there yet.
        symlink("file", &link).unwrap();
        check(&link).unwrap();
        assert_eq!(names(&directory), ["link"]);
        for text in ["one", "two"] {
            write(&link, text).unwrap();
            assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
            assert_eq!(fs::read_to_string(&file).unwrap(), text);
        }
        assert_eq!(names(&directory), ["file", "link"]);
    }

    #[test]
    fn a_new_file_has_the_permissions_of_any_new_file_and_another_keeps_its_own() {
        let directory = tempfile::tempdir().unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let (usual, path) = (directory.path().join("usual"), directory.path().join("own"));
        File::create(&usual).unwrap();
        write(&path, "one").unwrap();
        assert_eq!(mode(&path), mode(&usual));
        for own in [0o600, 0o664] {
            fs::set_permissions(&path, Permissions::from_mode(own)).unwrap();
            write(&path, "two").unwrap();
            assert_eq!(mode(&path), own);
        }
    }

    #[test]
    fn an_open_file_is_written_to_and_never_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let (path, link) = (directory.path().join("open"), directory.path().join("link"));
        let mut open = File::create(&path).unwrap();
        open.write_all(b"before, ").unwrap();
        let number = open.as_raw_fd();
        symlink(format!("/proc/self/fd/{number}"), &link).unwrap();
        let before = fs::metadata(&path).unwrap().ino();
        for way in [
            PathBuf::from(format!("/dev/fd/{number}")),
            PathBuf::from(format!("/proc/self/fd/{number}")),
            link,
        ] {
            check(&way).unwrap();
            write(&way, "more, ").unwrap();
        }
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(text, "before, more, more, more, ");
        assert_eq!(fs::metadata(&path).unwrap().ino(), before);
        for (way, is_so) in [
            ("/dev/stdout", (true, false)),
            ("/dev/fd/1", (true, false)),
            ("/dev/stderr", (false, true)),
            ("/proc/self/fd/2", (false, true)),
        ] {
            let target = Target::of(Path::new(way));
            let found = (
                matches!(target, Target::Stdout),
                matches!(target, Target::Stderr),
            );
            assert_eq!(found, is_so, "{way}");
        }
    }

    #[test]
    fn devices_and_pipes_are_written_to() {
        let directory = tempfile::tempdir().unwrap();
        let (pipe, null) = (directory.path().join("pipe"), directory.path().join("null"));
        let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        symlink("/dev/null", &null).unwrap();
        check(&null).unwrap();
        assert_eq!(write(&null, "three").unwrap(), 5);
        thread::scope(|scope| {
            let reader = scope.spawn(|| fs::read_to_string(&pipe).unwrap());
            // Its reader does not take this for the end.
            check(&pipe).unwrap();
            write(&pipe, "four").unwrap();
            assert_eq!(reader.join().unwrap(), "four");
        });
        let kind = fs::metadata(&pipe).unwrap().file_type();
        assert!(kind.is_fifo());
        assert_eq!(names(&directory), ["null", "pipe"]);
    }

    #[test]
    fn a_file_that_cannot_be_replaced_is_written_directly() {
        let directory = tempfile::tempdir().unwrap();
        // No name for another file beside it is short enough.
        let long = directory.path().join("x".repeat(250));
        check(&long).unwrap();
        write(&long, "new").unwrap();
        write(&long, "newer").unwrap();
        assert_eq!(fs::read_to_string(&long).unwrap(), "newer");
        let path = directory.path().join("short");
        let mut file = WholeFile::create(&path).unwrap();
        file.write_all(b"whole").unwrap();
        let Sink::Partial(partial, _) = &file.sink else {
            panic!("expected another file beside it");
        };
        fs::remove_file(partial.path()).unwrap();
        assert_eq!(file.finish().unwrap(), 5);
        assert_eq!(fs::read_to_string(&path).unwrap(), "whole");
        assert!(write(&directory.path().join("none/file"), "").is_err());
    }
}

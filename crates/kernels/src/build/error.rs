// SPDX-License-Identifier: MIT OR Apache-2.0
//! The reasons why a kernel cannot be built.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use crate::apt::AptError;
use crate::error::KernelError;

/// The reason why a kernel cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The path or name is not the source of a kernel.
    #[error(
        "{0}: expected the source of a Linux kernel: a directory with its Makefile and Kconfig, or a package of Debian's such as linux-source-6.12"
    )]
    NoSource(String),
    /// The source is not a repository.
    #[error(
        "{}: expected a repository of git, whose tags are built, found none", .0.display()
    )]
    NoRepository(PathBuf),
    /// An end of a range of tags is not a version.
    #[error("{option}: expected a version such as v6.13-rc1, found {word}")]
    NoVersion {
        /// The option that names it.
        option: &'static str,
        /// Its value.
        word: String,
    },
    /// No tag remains.
    #[error(
        "{}: --tags, --since and --until leave none of its {count} tags of kernels: widen them, or fetch first (`git fetch --tags`)", .path.display()
    )]
    NoTags {
        /// The repository.
        path: PathBuf,
        /// The number of tags that match the patterns.
        count: usize,
    },
    /// A kernel of that name exists, but is of another repository.
    #[error(
        "{id}: expected a kernel of {}, found one that was built from {other}: give these another name (--id)", .source_path.display()
    )]
    OtherTree {
        /// The kernel.
        id: String,
        /// The source that is to be built.
        source_path: PathBuf,
        /// The source from which it was built.
        other: String,
    },
    /// git cannot do something.
    #[error("{}: git: {said}", .path.display())]
    Git {
        /// The directory.
        path: PathBuf,
        /// The complaint of git.
        said: String,
    },
    /// A repository lacks files of a tag, since it was cloned with a filter.
    #[error(
        "{0}: git lacks files of {tag}: the clone leaves them out until they are asked for (--filter), and Punctual fetches nothing: `git -C {0} fetch --refetch --no-filter` fetches them", .path.display()
    )]
    Partial {
        /// The repository.
        path: PathBuf,
        /// The tag.
        tag: String,
    },
    /// The user who compiles cannot read the source.
    #[error(
        "{}: expected a directory that {user} can read, since root compiles nothing: move it out of a closed directory, or give rights to read (`chmod a+rX`)", .path.display()
    )]
    Closed {
        /// The directory or file.
        path: PathBuf,
        /// The user who compiles.
        user: String,
    },
    /// A variant would be compared with a kernel of another source.
    #[error(
        "{}: expected the source that {base} was built from, found it changed: build {base} again (`punctual kernel build --replace --id {base}`)", .path.display()
    )]
    OtherSource {
        /// The source.
        path: PathBuf,
        /// The kernel that was built from it earlier.
        base: String,
    },
    /// A link in the source leads to files of which its identity cannot tell.
    #[error(
        "{}: expected a link to files that can be a part of the source, found one to {}: put a copy in its place, or remove it", .link.display(), .target.display()
    )]
    LeadsOut {
        /// The link.
        link: PathBuf,
        /// The file or directory to which it leads.
        target: PathBuf,
    },
    /// The source changed while it was compiled.
    #[error(
        "{}: expected the source as it was at the beginning, found it changed while it was compiled: build it again", .0.display()
    )]
    ChangedMeanwhile(PathBuf),
    /// Somebody has built in the source tree itself.
    #[error(
        "{}: expected a source tree in which nothing was built, as the kernel's Makefile does: `make mrproper` cleans it, and removes its .config", .0.display()
    )]
    Unclean(PathBuf),
    /// The configuration does not exist, or cannot be used.
    #[error("{0}")]
    Config(String),
    /// Programs or headers are missing.
    #[error(
        "a kernel is built with {missing}, which are not here: install them (`apt-get install {packages}`)"
    )]
    Tools {
        /// The missing programs and headers.
        missing: String,
        /// The Debian packages that contain them.
        packages: String,
    },
    /// Options were set that the configuration did not take.
    #[error("{}", .0.join("\npunctual: "))]
    Refused(Vec<String>),
    /// The compiler, or another program of the build, failed.
    #[error("{what}: the build failed ({status}):\n{lines}\nAll of it is in {}", .log.display())]
    Failed {
        /// The name of the target.
        what: String,
        /// The exit status of make.
        status: ExitStatus,
        /// The first errors, line by line.
        lines: String,
        /// The file with the whole output.
        log: PathBuf,
    },
    /// Ctrl-C ended the build.
    #[error("the build was interrupted: the same command goes on where it was")]
    Interrupted,
    /// `setpriv` is missing: it takes privileges away, and makes sure that make does not outlive
    /// its parent.
    #[error("expected setpriv in the PATH, found none: install it (`apt-get install util-linux`)")]
    NoSetpriv,
    /// A package is not available.
    #[error(transparent)]
    Apt(#[from] AptError),
    /// A kernel is not available, or cannot be stored.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// A file cannot be used.
    #[error("{}: {error}", .path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
}

impl BuildError {
    /// Returns true if the fault is in the request.
    pub fn is_request(&self) -> bool {
        match self {
            Self::NoSource(_)
            | Self::NoRepository(_)
            | Self::NoVersion { .. }
            | Self::NoTags { .. }
            | Self::OtherTree { .. }
            | Self::LeadsOut { .. }
            | Self::Unclean(_)
            | Self::Partial { .. }
            | Self::Config(_)
            | Self::Refused(_) => true,
            Self::Kernel(error) => error.is_request(),
            Self::Apt(error) => error.is_request(),
            _ => false,
        }
    }

    /// Returns true if this state of the source cannot be built, but another may.
    pub fn is_of_source(&self) -> bool {
        matches!(self, Self::Failed { .. })
    }

    /// The same for a tag: it may also not know an option yet, or no longer know it, or have a link
    /// that leads out of its files.
    pub fn is_of_tag(&self) -> bool {
        self.is_of_source() || matches!(self, Self::Refused(_) | Self::LeadsOut { .. })
    }

    pub(crate) fn at(path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |error| Self::Io { path, error }
    }

    pub(crate) fn of_setpriv(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::NoSetpriv,
            _ => Self::at(Path::new("setpriv"))(error),
        }
    }
}

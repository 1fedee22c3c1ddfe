// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a kernel cannot be built.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use crate::apt::AptError;
use crate::error::KernelError;

/// Why a kernel cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The source is none.
    #[error(
        "{0}: expected the source of a Linux kernel: a directory with its Makefile and Kconfig, or a package of Debian's such as linux-source-6.12"
    )]
    NoSource(String),
    /// The source is no repository.
    #[error(
        "{}: expected a repository of git, whose tags are built, found none", .0.display()
    )]
    NoRepository(PathBuf),
    /// An end of a range of tags is no version.
    #[error("{option}: expected a version such as v6.13-rc1, found {word}")]
    NoVersion {
        /// The option that names it.
        option: &'static str,
        /// What it says.
        word: String,
    },
    /// No tag is left.
    #[error(
        "{}: --tags, --since and --until leave none of its {count} tags of kernels: widen them, or fetch first (`git fetch --tags`)", .path.display()
    )]
    NoTags {
        /// The repository.
        path: PathBuf,
        /// How many tags match the patterns.
        count: usize,
    },
    /// There is a kernel of that name, and it is of another repository.
    #[error(
        "{id}: expected a kernel of {}, found one that was built from {other}: give these another name (--id)", .source_path.display()
    )]
    OtherTree {
        /// The kernel.
        id: String,
        /// What is to be built.
        source_path: PathBuf,
        /// What it was built from.
        other: String,
    },
    /// git cannot do something.
    #[error("{}: git: {said}", .path.display())]
    Git {
        /// Where.
        path: PathBuf,
        /// What it says.
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
    /// Who compiles cannot read it.
    #[error(
        "{}: expected a directory that {user} can read, since root compiles nothing: move it out of a closed directory, or give rights to read (`chmod a+rX`)", .path.display()
    )]
    Closed {
        /// The directory or file.
        path: PathBuf,
        /// Who compiles.
        user: String,
    },
    /// A variant would be compared with a kernel of another source.
    #[error(
        "{}: expected the source that {base} was built from, found it changed: build {base} again (`punctual kernel build --replace --id {base}`)", .path.display()
    )]
    OtherSource {
        /// The source.
        path: PathBuf,
        /// The kernel that was built from it before.
        base: String,
    },
    /// Somebody has built in the source tree itself.
    #[error(
        "{}: expected a source tree in which nothing was built, as the kernel's Makefile does: `make mrproper` cleans it, and removes its .config", .0.display()
    )]
    Unclean(PathBuf),
    /// There is no such configuration.
    #[error("{0}")]
    Config(String),
    /// Programs or headers are missing.
    #[error(
        "a kernel is built with {missing}, which are not here: install them (`apt-get install {packages}`)"
    )]
    Tools {
        /// What is missing.
        missing: String,
        /// The packages of Debian that have it.
        packages: String,
    },
    /// Options were set that the configuration did not take.
    #[error("{}", .0.join("\npunctual: "))]
    Refused(Vec<String>),
    /// The compiler, or another program of the build, has failed.
    #[error("{what}: the build failed ({status}):\n{lines}\nAll of it is in {}", .log.display())]
    Failed {
        /// What was to be made.
        what: String,
        /// How make ended.
        status: ExitStatus,
        /// The first errors, line by line.
        lines: String,
        /// The file with all that was printed.
        log: PathBuf,
    },
    /// Ctrl-C has ended it.
    #[error("the build was interrupted: the same command goes on where it was")]
    Interrupted,
    /// `setpriv` takes privileges away, and sees to it that make does not outlive its parent.
    #[error("expected setpriv in the PATH, found none: install it (`apt-get install util-linux`)")]
    NoSetpriv,
    /// A package cannot be had.
    #[error(transparent)]
    Apt(#[from] AptError),
    /// A kernel cannot be had or kept.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// A file cannot be used.
    #[error("{}: {error}", .path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What is wrong.
        error: io::Error,
    },
}

impl BuildError {
    /// Whether the fault is in what was asked for.
    pub fn is_request(&self) -> bool {
        match self {
            Self::NoSource(_)
            | Self::NoRepository(_)
            | Self::NoVersion { .. }
            | Self::NoTags { .. }
            | Self::OtherTree { .. }
            | Self::Unclean(_)
            | Self::Partial { .. }
            | Self::Config(_)
            | Self::Refused(_) => true,
            Self::Kernel(error) => error.is_request(),
            _ => false,
        }
    }

    /// Whether this source does not become a kernel, and another state of it may.
    pub fn is_of_source(&self) -> bool {
        matches!(self, Self::Failed { .. })
    }

    /// The same of a tag: it may also know an option not yet, or no more.
    pub fn is_of_tag(&self) -> bool {
        self.is_of_source() || matches!(self, Self::Refused(_))
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

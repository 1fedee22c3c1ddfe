// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs make as the worker, with all its output in a file.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use punctual_model::Architecture;

use super::error::BuildError;
use super::tools;
use super::worker::{self, Worker};

/// The interval between two looks at whether make has ended, or Ctrl-C was pressed.
const LOOK: Duration = Duration::from_millis(50);

/// The interval between two reports on the progress of a build.
const TELL: Duration = Duration::from_secs(30);

/// The number of error lines that are shown.
const ERRORS_SHOWN: usize = 5;

/// A call of make for a kernel, with its directories.
#[derive(Clone, Debug)]
pub(crate) struct Make<'a> {
    pub(crate) worker: Worker,
    /// The architecture of the kernel.
    pub(crate) architecture: Architecture,
    pub(crate) source: &'a Path,
    /// The directory `O=` for the files that are built.
    pub(crate) out: &'a Path,
    /// The file for the output of make.
    pub(crate) log: &'a Path,
    /// The directory in which compiled files are kept for other builds, if `ccache` is installed.
    pub(crate) ccache: PathBuf,
    /// The number of compilers that run side by side.
    pub(crate) jobs: usize,
    /// Set by Ctrl-C.
    pub(crate) cancel: &'a AtomicBool,
}

impl Make<'_> {
    /// Makes these targets; `what` names them in an error.
    pub(crate) fn run(
        &self,
        what: &str,
        words: &[&str],
        progress: &mut dyn FnMut(&str),
    ) -> Result<(), BuildError> {
        let log = File::create(self.log).map_err(BuildError::at(self.log))?;
        let second = log.try_clone().map_err(BuildError::at(self.log))?;
        let mut command = self.command();
        command.args(words).stdout(log).stderr(second);
        let mut child = command.spawn().map_err(BuildError::of_setpriv)?;
        let mut told = Instant::now();
        let status = loop {
            let ended = child.try_wait().map_err(BuildError::at(self.log))?;
            if let Some(status) = ended {
                break status;
            }
            if self.cancel.load(Ordering::SeqCst) {
                worker::end(&mut child);
                return Err(BuildError::Interrupted);
            }
            if told.elapsed() >= TELL {
                told = Instant::now();
                progress(&format!("{what}: {}", Printed::read(self.log).so_far()));
            }
            std::thread::sleep(LOOK);
        };
        if status.success() {
            return Ok(());
        }
        let printed = Printed::read(self.log);
        if printed.0.contains("The source tree is not clean") {
            return Err(BuildError::Unclean(self.source.to_owned()));
        }
        Err(BuildError::Failed {
            what: what.to_owned(),
            status,
            lines: printed.errors(),
            log: self.log.to_owned(),
        })
    }

    /// Returns true if no kernel has been built in this directory.
    fn is_first(&self) -> bool {
        !self.out.join("vmlinux").exists()
    }

    fn command(&self) -> Command {
        let mut command = self.worker.command("make");
        command.arg(format!("-j{}", self.jobs));
        command.arg("-C").arg(self.source);
        let mut out = std::ffi::OsString::from("O=");
        out.push(self.out);
        command.arg(out);
        let prefix = tools::prefix(self.architecture);
        if self.architecture.is_foreign() {
            let name = tools::of_kernel(self.architecture);
            command.arg(format!("ARCH={name}"));
            command.arg(format!("CROSS_COMPILE={prefix}"));
        }
        if tools::find("ccache").is_some() {
            command.arg(format!("CC=ccache {prefix}gcc"));
            command.arg("HOSTCC=ccache gcc");
            command.env("CCACHE_DIR", &self.ccache);
            if self.is_first() {
                // Nothing would be found, and the rest is what make keeps.
                command.env("CCACHE_DISABLE", "1");
            }
        }
        // The same source and configuration make the same bytes, whoever builds and when.
        command
            .env("HOME", self.out)
            .env("KBUILD_BUILD_TIMESTAMP", "Thu Jan  1 00:00:00 UTC 1970")
            .env("KBUILD_BUILD_VERSION", "1")
            .env("KBUILD_BUILD_USER", "punctual")
            .env("KBUILD_BUILD_HOST", "punctual");
        command
    }
}

/// The output of a build.
struct Printed(String);

impl Printed {
    /// Reads the end of the output, or all of it: errors of parallel compilers stand near the end.
    fn read(log: &Path) -> Self {
        const MOST: u64 = 4 << 20;
        let mut bytes = Vec::new();
        let read = File::open(log).and_then(|mut file| {
            let length = file.metadata()?.len();
            file.seek(SeekFrom::Start(length.saturating_sub(MOST)))?;
            file.take(MOST).read_to_end(&mut bytes)
        });
        match read {
            Ok(_) => Self(String::from_utf8_lossy(&bytes).into_owned()),
            Err(error) => Self(format!("error: {}: {error}\n", log.display())),
        }
    }

    /// The progress of the build: `1204 files, now kernel/sched/core.o`.
    fn so_far(&self) -> String {
        let mut made = self.0.lines().filter_map(|line| {
            let mut words = line.strip_prefix("  ")?.split_whitespace();
            let tool = words.next().filter(|tool| !tool.contains('/'))?;
            Some((tool.len(), words.next_back()?))
        });
        let mut count = 0;
        let mut last = "";
        for (_, file) in made.by_ref() {
            count += 1;
            last = file;
        }
        format!("{count} files, now {last}")
    }

    /// The first lines that describe errors; the last lines if there are none.
    fn errors(&self) -> String {
        let lines: Vec<&str> = self.0.lines().collect();
        // kconfig and the kernel's own Makefile mark what they say by stars.
        let is_error = |line: &&&str| {
            let line = line.to_ascii_lowercase();
            ["error:", "error ", "fatal", "*** ", "undefined reference"]
                .iter()
                .any(|mark| line.contains(mark))
                && !line.starts_with("make")
        };
        let mut shown: Vec<&str> = lines
            .iter()
            .filter(is_error)
            .take(ERRORS_SHOWN)
            .copied()
            .collect();
        if shown.is_empty() {
            let last = lines.iter().rev().filter(|line| !line.trim().is_empty());
            shown = last.take(ERRORS_SHOWN).copied().collect();
            shown.reverse();
        }
        let shown: Vec<String> = shown
            .iter()
            .map(|line| format!("  {}", line.trim()))
            .collect();
        shown.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_errors_are_shown_and_how_far_it_is() {
        let printed = Printed(
            "make[1]: Entering directory '/x'\n  CC      kernel/fork.o\n  AR      a.a\n\
             /s/kernel/fork.c: In function 'f':\n/s/kernel/fork.c:7:2: error: 'x' undeclared\n\
             make[3]: *** [/s/scripts/Makefile.build:229: kernel/fork.o] Error 1\n"
                .to_owned(),
        );
        assert_eq!(printed.so_far(), "2 files, now a.a");
        assert_eq!(
            printed.errors(),
            "  /s/kernel/fork.c:7:2: error: 'x' undeclared"
        );
        let other = Printed("a\n\nb\n".to_owned()).errors();
        assert_eq!(other, "  a\n  b");
    }

    #[test]
    fn a_failed_make_says_where_all_is() {
        let directory = tempfile::tempdir().unwrap();
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(directory.path(), open).unwrap();
        let makefile = "bad:\n\t@echo 'a.c:1: error: no'; false\nslow:\n\tsleep 1000\n\
            unclean:\n\t@echo '*** The source tree is not clean, please run'; false\n";
        std::fs::write(directory.path().join("Makefile"), makefile).unwrap();
        let log = directory.path().join("log");
        let cancel = AtomicBool::new(false);
        let make = Make {
            worker: Worker::new(),
            architecture: Architecture::Amd64,
            source: directory.path(),
            out: directory.path(),
            log: &log,
            ccache: directory.path().join("ccache"),
            jobs: 1,
            cancel: &cancel,
        };
        let error = make
            .run("mine", &["bad"], &mut |_| ())
            .unwrap_err()
            .to_string();
        for part in [
            "mine: the build failed (exit status: 2)",
            "a.c:1: error: no",
            "/log",
        ] {
            assert!(error.contains(part), "{error}");
        }
        let unclean = make.run("mine", &["unclean"], &mut |_| ()).unwrap_err();
        assert!(unclean.to_string().contains("mrproper"), "{unclean}");
        cancel.store(true, Ordering::SeqCst);
        let ended = make.run("mine", &["slow"], &mut |_| ());
        assert!(matches!(ended, Err(BuildError::Interrupted)), "{ended:?}");
    }
}

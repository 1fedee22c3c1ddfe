// SPDX-License-Identifier: MIT OR Apache-2.0
//! A machine, as its files describe it.

use std::cell::OnceCell;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use punctual_model::Reason;
use punctual_model::cpus::parse_list;
use punctual_model::units::CpuId;

use crate::config::Config;

/// A machine: the directory that holds its files.
#[derive(Debug)]
pub struct Machine {
    root: PathBuf,
    config: OnceCell<Result<Config, Reason>>,
}

/// The largest size of a kernel's configuration, in bytes; a longer file is not one.
const LONGEST_CONFIG: u64 = 8 << 20;

impl Machine {
    /// The machine with these files: `/` is this one.
    pub fn new(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            config: OnceCell::new(),
        }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// The content of a file, without white space at its ends.
    pub(crate) fn text(&self, path: &str) -> Result<String, Reason> {
        let bytes = fs::read(self.at(path)).map_err(|error| unreadable(path, &error))?;
        Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
    }

    /// Like [`Self::text`]; `None` if there is no such file.
    pub(crate) fn find(&self, path: &str) -> Result<Option<String>, Reason> {
        match fs::symlink_metadata(self.at(path)) {
            Err(error) if is_missing(&error) => Ok(None),
            _ => self.text(path).map(Some),
        }
    }

    /// The number in a file that holds nothing else.
    pub(crate) fn number(&self, path: &str) -> Result<i64, Reason> {
        let text = self.text(path)?;
        let expected = || Reason::unreadable(path, format!("expected a number, found \"{text}\""));
        text.parse().map_err(|_| expected())
    }

    /// Bytes of a file from an offset on.
    pub(crate) fn bytes<const N: usize>(&self, path: &str, from: u64) -> Result<[u8; N], Reason> {
        let mut bytes = [0; N];
        let file = File::open(self.at(path)).map_err(|error| unreadable(path, &error))?;
        let read = file.read_exact_at(&mut bytes, from);
        read.map_err(|error| unreadable(path, &error))?;
        Ok(bytes)
    }

    /// The names in a directory, in order.
    pub(crate) fn names(&self, path: &str) -> Result<Vec<String>, Reason> {
        let entries = fs::read_dir(self.at(path)).map_err(|error| unreadable(path, &error))?;
        let name = |entry: io::Result<fs::DirEntry>| {
            let entry = entry.map_err(|error| unreadable(path, &error))?;
            Ok(entry.file_name().to_string_lossy().into_owned())
        };
        let mut names = entries.map(name).collect::<Result<Vec<_>, Reason>>()?;
        names.sort();
        Ok(names)
    }

    /// Returns true if a file or directory exists; its directory must be readable.
    pub(crate) fn has(&self, path: &str) -> Result<bool, Reason> {
        let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
        Ok(self.names(directory)?.iter().any(|own| own == name))
    }

    /// The target of a symbolic link.
    pub(crate) fn link(&self, path: &str) -> io::Result<PathBuf> {
        fs::read_link(self.at(path))
    }

    /// The value of a sysctl such as `kernel.watchdog`.
    pub(crate) fn sysctl(&self, name: &str) -> Result<i64, Reason> {
        self.number(&sysctl_path(name))
    }

    /// Like [`Self::sysctl`]; `None` if this kernel does not have it.
    pub(crate) fn find_sysctl(&self, name: &str) -> Result<Option<i64>, Reason> {
        let path = sysctl_path(name);
        match self.find(&path)? {
            None => Ok(None),
            Some(_) => self.number(&path).map(Some),
        }
    }

    /// The kernel's release, such as `6.12.117+deb12-rt-amd64`.
    pub(crate) fn release(&self) -> Result<String, Reason> {
        self.text(&sysctl_path("kernel.osrelease"))
    }

    /// Returns true if the kernel has this version or a later one.
    pub(crate) fn is_since(&self, major: u32, minor: u32) -> Result<bool, Reason> {
        let release = self.release()?;
        let mut parts = release.split(['.', '-', '+']).map(str::parse::<u32>);
        match (parts.next(), parts.next()) {
            (Some(Ok(own)), Some(Ok(own_minor))) => Ok((own, own_minor) >= (major, minor)),
            _ => Err(format!("expected a release such as 6.12, found \"{release}\"").into()),
        }
    }

    /// The kernel's configuration.
    pub(crate) fn config(&self) -> Result<&Config, Reason> {
        let config = self.config.get_or_init(|| self.read_config());
        config.as_ref().map_err(Clone::clone)
    }

    fn read_config(&self) -> Result<Config, Reason> {
        let release = self.release()?;
        if let Ok(file) = File::open(self.at("/proc/config.gz")) {
            let mut text = String::new();
            let mut unpacked = GzDecoder::new(file).take(LONGEST_CONFIG);
            let read = unpacked.read_to_string(&mut text);
            read.map_err(|error| unreadable("/proc/config.gz", &error))?;
            return parsed("/proc/config.gz", &text);
        }
        for path in [
            format!("/boot/config-{release}"),
            format!("/lib/modules/{release}/config"),
            format!("/lib/modules/{release}/build/.config"),
        ] {
            if let Some(text) = self.find(&path)? {
                return parsed(&path, &text);
            }
        }
        Err(format!(
            "the kernel's configuration is neither in /proc/config.gz (`modprobe configs`) nor in \
             /boot/config-{release}"
        )
        .into())
    }

    /// All boot arguments with their values, in order; words after `--` are for process 1. The
    /// kernel treats `-` as `_` in names, and the names here all have `_`.
    pub(crate) fn command_line(&self) -> Result<Vec<(String, String)>, Reason> {
        let line = self.text("/proc/cmdline")?;
        let words = line.split_whitespace().take_while(|word| *word != "--");
        let pair = |word: &str| {
            let (name, value) = word.split_once('=').unwrap_or((word, ""));
            (name.replace('-', "_"), value.to_owned())
        };
        Ok(words.map(pair).collect())
    }

    /// The values of the boot arguments of this name; empty for one without a value.
    pub(crate) fn arguments(&self, name: &str) -> Result<Vec<String>, Reason> {
        let name = name.replace('-', "_");
        let own = self.command_line()?.into_iter();
        let own = own.filter(|(own, _)| *own == name);
        Ok(own.map(|(_, value)| value).collect())
    }

    /// The value of the last boot argument of this name: `Some("")` if it has no value.
    pub(crate) fn argument(&self, name: &str) -> Result<Option<String>, Reason> {
        Ok(self.arguments(name)?.pop())
    }

    /// The CPUs that a file lists; none if it is empty.
    pub(crate) fn cpus(&self, path: &str) -> Result<Vec<CpuId>, Reason> {
        cpu_list(&self.text(path)?).map_err(|error| Reason::unreadable(path, error))
    }

    /// The online CPUs, at least one.
    pub(crate) fn online(&self) -> Result<Vec<CpuId>, Reason> {
        let path = "/sys/devices/system/cpu/online";
        let cpus = self.cpus(path)?;
        if cpus.is_empty() {
            return Err(Reason::unreadable(path, "expected CPUs, found none"));
        }
        Ok(cpus)
    }

    /// The CPUs of a boot argument's list, in which `all` is all CPUs and `N` the last one that is
    /// possible (`bitmap_parselist()` in the kernel's `lib`).
    pub(crate) fn listed(&self, list: &str) -> Result<Vec<CpuId>, Reason> {
        let list = if list.eq_ignore_ascii_case("all") {
            "0-N"
        } else {
            list
        };
        if !list.contains('N') {
            return cpu_list(list).map_err(Reason::from);
        }
        let possible = self.cpus("/sys/devices/system/cpu/possible");
        let possible = possible.or_else(|_| self.online())?;
        let greatest = possible.last().ok_or("no CPU is possible")?;
        cpu_list(&list.replace('N', &greatest.0.to_string())).map_err(Reason::from)
    }
}

/// Returns true if a part of an argument such as `managed_irq,domain,2-N` names CPUs; all other
/// parts are flags.
pub(crate) fn is_cpus(part: &str) -> bool {
    part.starts_with(|first: char| first.is_ascii_digit() || first == 'N')
}

/// The CPUs of a list; none if it is empty, or says `(null)`, as `nohz_full` does.
pub(crate) fn cpu_list(text: &str) -> Result<Vec<CpuId>, String> {
    if ["", "(null)"].contains(&text) {
        return Ok(Vec::new());
    }
    parse_list(text)
}

fn parsed(path: &str, text: &str) -> Result<Config, Reason> {
    let none = || Reason::unreadable(path, "expected a kernel's configuration, found no option");
    Config::parse(text).ok_or_else(none)
}

fn sysctl_path(name: &str) -> String {
    format!("/proc/sys/{}", name.replace('.', "/"))
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

fn unreadable(path: &str, error: &io::Error) -> Reason {
    let told = match error.raw_os_error() {
        Some(NO_FILE) if path.starts_with("/sys/kernel/debug") => {
            "there is no such file; is debugfs mounted, and does this kernel have it?".to_owned()
        }
        Some(NO_FILE) if path.starts_with("/sys/kernel/tracing") => {
            "there is no such file; is tracefs mounted, and does this kernel have it?".to_owned()
        }
        Some(NO_FILE) => "there is no such file".to_owned(),
        Some(NOT_THIS_USER) => "root may read it, this user may not".to_owned(),
        Some(NOBODY) => "the kernel lets nobody read it, as it does when locked down".to_owned(),
        _ => error.to_string(),
    };
    Reason::unreadable(path, told)
}

/// `ENOENT`, `EACCES`, `EPERM`, in `include/uapi/asm-generic/errno-base.h`.
const NO_FILE: i32 = 2;
const NOT_THIS_USER: i32 = 13;
const NOBODY: i32 = 1;

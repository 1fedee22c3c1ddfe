// SPDX-License-Identifier: MIT OR Apache-2.0
//! Unpacks the image and the configuration of a kernel, modules or single files from a package.

use std::cell::Cell;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{AptError, not_started, one_line};
use crate::module;

/// The files taken out of a package.
#[derive(Debug)]
pub(crate) struct Unpacked {
    image: Option<PathBuf>,
    config: Option<PathBuf>,
    package: String,
    advice: &'static str,
}

impl Unpacked {
    /// The kernel's image.
    ///
    /// # Errors
    /// If the package has none.
    pub(crate) fn image(&self) -> Result<&Path, AptError> {
        self.image.as_deref().ok_or_else(|| self.lacks("image"))
    }

    /// The kernel's configuration.
    ///
    /// # Errors
    /// If the package has none.
    pub(crate) fn config(&self) -> Result<&Path, AptError> {
        self.config
            .as_deref()
            .ok_or_else(|| self.lacks("configuration"))
    }

    fn lacks(&self, missing: &'static str) -> AptError {
        AptError::NoImage {
            package: self.package.clone(),
            missing,
            advice: self.advice,
        }
    }
}

/// Takes only a kernel's image and configuration, as far as present, out of a package into a
/// directory, as `vmlinuz` and `config`. `advice` is for a package without these.
pub(crate) fn unpack(
    deb: &Path,
    directory: &Path,
    advice: &'static str,
) -> Result<Unpacked, AptError> {
    each_file(deb, |archive| {
        take_kernel_files(archive, deb, directory, advice)
    })
}

/// Names of kernel modules to take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted<'a> {
    /// The modules that must be there.
    pub needed: &'a [&'a str],
    /// Modules that these need in some versions: in others they are a part of the kernel, or do not
    /// exist.
    pub besides: &'a [&'a str],
}

/// Takes kernel modules out of a package, unpacked, into a directory.
///
/// # Errors
/// If a needed module is missing.
pub(crate) fn unpack_modules(
    deb: &Path,
    release: &str,
    wanted: Wanted,
    directory: &Path,
) -> Result<(), AptError> {
    each_file(deb, |archive| {
        take_modules(archive, deb, release, wanted, directory)
    })
}

/// Takes the file with one of these paths out of a package.
pub(crate) fn unpack_file(deb: &Path, paths: &[&str], to: &Path) -> Result<(), AptError> {
    each_file(deb, |archive| take_file(archive, deb, paths, to))
}

/// Lets `take` read a package's archive as far as it wants.
///
/// # Errors
/// Those of `take`; but where the archive ended because `dpkg-deb` failed, what that says.
fn each_file<T>(
    deb: &Path,
    take: impl FnOnce(Watched<'_>) -> Result<T, AptError>,
) -> Result<T, AptError> {
    let describe = |error| AptError::Io(deb.display().to_string(), error);
    let mut child = Command::new("dpkg-deb")
        .arg("--fsys-tarfile")
        .arg(deb)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| not_started("dpkg-deb", error))?;
    let mut stdout = child.stdout.take().expect("standard output is piped");
    let has_ended = Cell::new(false);
    let taken = take(Watched {
        archive: &mut stdout,
        has_ended: &has_ended,
    });
    if !has_ended.get() {
        // The hundreds of megabytes that follow are of no interest.
        let _ = child.kill();
        let _ = child.wait();
        return taken;
    }
    let output = child.wait_with_output().map_err(describe)?;
    if output.status.success() {
        return taken;
    }
    Err(AptError::Failed {
        program: "dpkg-deb",
        status: output.status,
        stderr: one_line(&String::from_utf8_lossy(&output.stderr)),
        advice: "get the package again",
    })
}

/// An archive of which it is known whether it was read to its end.
struct Watched<'a> {
    archive: &'a mut dyn Read,
    has_ended: &'a Cell<bool>,
}

impl Read for Watched<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.archive.read(buffer)?;
        if count == 0 && !buffer.is_empty() {
            self.has_ended.set(true);
        }
        Ok(count)
    }
}

fn take_modules(
    archive: impl Read,
    deb: &Path,
    release: &str,
    wanted: Wanted,
    directory: &Path,
) -> Result<(), AptError> {
    let describe = |error| AptError::Io(deb.display().to_string(), error);
    let mut missing = [wanted.needed, wanted.besides].concat();
    let mut archive = tar::Archive::new(archive);
    for entry in archive.entries().map_err(describe)? {
        let mut entry = entry.map_err(describe)?;
        let path = entry.path().map_err(describe)?.into_owned();
        let name = path.file_name().and_then(|name| name.to_str());
        let stem = name.and_then(|name| name.split_once(".ko"));
        let Some(at) = stem.and_then(|(stem, _)| missing.iter().position(|name| *name == stem))
        else {
            continue;
        };
        let mut packed = Vec::new();
        entry.read_to_end(&mut packed).map_err(describe)?;
        let module = module::check(&path, packed, release)
            .map_err(|error| describe(io::Error::other(error)))?;
        fs::write(directory.join(module.file_name), module.bytes).map_err(describe)?;
        missing.swap_remove(at);
        if missing.is_empty() {
            return Ok(());
        }
    }
    missing.retain(|name| wanted.needed.contains(name));
    if missing.is_empty() {
        return Ok(());
    }
    let text = format!("it has no module {}", missing.join(", "));
    Err(describe(io::Error::new(io::ErrorKind::NotFound, text)))
}

fn take_file(archive: impl Read, deb: &Path, paths: &[&str], to: &Path) -> Result<(), AptError> {
    let describe = |error| AptError::Io(deb.display().to_string(), error);
    let mut archive = tar::Archive::new(archive);
    for entry in archive.entries().map_err(describe)? {
        let mut entry = entry.map_err(describe)?;
        let path = entry.path().map_err(describe)?.into_owned();
        let path = path.strip_prefix(".").unwrap_or(&path);
        let is_wanted = paths.iter().any(|wanted| path == Path::new(wanted));
        if is_wanted && entry.header().entry_type().is_file() {
            let mut file = fs::File::create(to).map_err(describe)?;
            io::copy(&mut entry, &mut file).map_err(describe)?;
            return Ok(());
        }
    }
    let text = format!("expected {} in it, found none", paths.join(" or "));
    Err(describe(io::Error::new(io::ErrorKind::NotFound, text)))
}

fn take_kernel_files(
    archive: impl Read,
    deb: &Path,
    directory: &Path,
    advice: &'static str,
) -> Result<Unpacked, AptError> {
    let describe = |error| AptError::Io(deb.display().to_string(), error);
    let mut unpacked = Unpacked {
        image: None,
        config: None,
        package: deb.display().to_string(),
        advice,
    };
    let mut archive = tar::Archive::new(archive);
    for entry in archive.entries().map_err(describe)? {
        let mut entry = entry.map_err(describe)?;
        let path = entry.path().map_err(describe)?.into_owned();
        let (target, slot) = match kernel_file(&path) {
            Some(KernelFile::Image) => (directory.join("vmlinuz"), &mut unpacked.image),
            Some(KernelFile::Config) => (directory.join("config"), &mut unpacked.config),
            None => continue,
        };
        if !entry.header().entry_type().is_file() {
            continue;
        }
        let mut file = fs::File::create(&target).map_err(describe)?;
        io::copy(&mut entry, &mut file).map_err(describe)?;
        *slot = Some(target);
        if unpacked.image.is_some() && unpacked.config.is_some() {
            break;
        }
    }
    Ok(unpacked)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KernelFile {
    Image,
    Config,
}

/// Recognises a file in a package: `boot/vmlinuz-RELEASE` and `boot/config-RELEASE` up to Linux
/// 6.19, `usr/lib/modules/RELEASE/vmlinuz.unsigned` and `usr/lib/modules/RELEASE/config` later.
fn kernel_file(path: &Path) -> Option<KernelFile> {
    let path = path.strip_prefix(".").unwrap_or(path).to_str()?;
    let kind = match path.strip_prefix("usr/lib/modules/") {
        Some(rest) => rest.split_once('/')?.1.trim_end_matches(".unsigned"),
        None => path.strip_prefix("boot/")?.split_once('-')?.0,
    };
    match kind {
        "vmlinuz" => Some(KernelFile::Image),
        "config" => Some(KernelFile::Config),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_kernel_and_its_configuration_are_taken() {
        let of = |path: &str| kernel_file(Path::new(path));
        assert_eq!(of("./boot/vmlinuz-6.12"), Some(KernelFile::Image));
        assert_eq!(of("boot/config-6.12"), Some(KernelFile::Config));
        let modules = "./usr/lib/modules/7.2.12+deb13-amd64";
        let in_modules = |name: &str| of(&format!("{modules}/{name}"));
        assert_eq!(in_modules("vmlinuz.unsigned"), Some(KernelFile::Image));
        assert_eq!(in_modules("config"), Some(KernelFile::Config));
        assert_eq!(in_modules("modules.order"), None);
        assert_eq!(in_modules("kernel/config"), None);
        assert_eq!(of("./boot/System.map-6.12"), None);
        assert_eq!(of("./boot/"), None);
        assert_eq!(of("./lib/modules/6.12/vmlinuz-6.12"), None);
    }

    fn archive(paths: &[&str]) -> Vec<u8> {
        let mut builder = tar::Builder::new(Vec::new());
        for path in paths {
            let mut header = tar::Header::new_ustar();
            header.set_size(path.len() as u64);
            header.set_mode(0o644);
            builder
                .append_data(&mut header, path, path.as_bytes())
                .unwrap();
        }
        builder.into_inner().unwrap()
    }

    #[test]
    fn one_file_is_taken_or_said_to_be_missing() {
        let directory = tempfile::tempdir().unwrap();
        let to = directory.path().join("x");
        let take = |paths: &[&str]| {
            let archive = archive(&["./bin/x", "usr/bin/y"]);
            take_file(&archive[..], Path::new("x.deb"), paths, &to)
        };
        take(&["usr/bin/x", "bin/x"]).unwrap();
        assert_eq!(fs::read(&to).unwrap(), b"./bin/x");
        let error = take(&["bin/z"]).unwrap_err().to_string();
        assert!(error.contains("expected bin/z in it"), "{error}");
    }

    #[test]
    fn a_package_without_a_kernel_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let deb = Path::new("x.deb");
        let take = |paths: &[&str]| {
            take_kernel_files(&archive(paths)[..], deb, directory.path(), "take another")
        };
        let unpacked = take(&["boot/System.map-6", "boot/config-6", "boot/vmlinuz-6"]).unwrap();
        assert_eq!(
            fs::read(unpacked.image().unwrap()).unwrap(),
            b"boot/vmlinuz-6"
        );
        assert_eq!(
            fs::read(unpacked.config().unwrap()).unwrap(),
            b"boot/config-6"
        );
        let error = take(&["boot/config-6"]).unwrap().image().unwrap_err();
        let told = "found no image: take another";
        assert!(error.to_string().contains(told), "{error}");
    }

    #[test]
    fn a_torn_package_is_told_by_dpkg_deb() {
        if !punctual_skip::program("dpkg-deb") {
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        let package = directory.path().join("package");
        let large = "a".repeat(1 << 20);
        for (name, content) in [
            (
                "DEBIAN/control",
                "Package: a\nVersion: 1\nArchitecture: all\nMaintainer: a <a@b>\nDescription: a\n",
            ),
            ("boot/a", large.as_str()),
            ("boot/config-6", "config"),
            ("boot/vmlinuz-6", "image"),
        ] {
            let path = package.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        let deb = directory.path().join("a.deb");
        // Without compression each part of it is as long as it looks.
        let mut packer = Command::new("dpkg-deb");
        packer.args(["-Znone", "--root-owner-group", "--build"]);
        let output = packer.arg(&package).arg(&deb).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let whole = unpack(&deb, directory.path(), "").unwrap();
        assert!(whole.image().is_ok() && whole.config().is_ok());
        let bytes = fs::read(&deb).unwrap();
        for torn in [&bytes[..bytes.len() / 2], &b"no package"[..]] {
            fs::write(&deb, torn).unwrap();
            let error = unpack(&deb, directory.path(), "").unwrap_err().to_string();
            let is_told = error.starts_with("dpkg-deb failed (exit status: 2): ");
            assert!(
                is_told && error.ends_with(": get the package again"),
                "{error}"
            );
        }
    }
}

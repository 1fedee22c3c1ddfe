// SPDX-License-Identifier: MIT OR Apache-2.0
//! The contents of the guest's file system: the target as process 1, busybox, modules, programs.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use punctual_model::Architecture;

use super::{DeviceKind, Initramfs, InitramfsError, applets, entry_name, read};
use crate::elf;

const PASSWD: &str = "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n";
const GROUP: &str = "root:x:0:\nnogroup:x:65534:\n";
const HOSTS: &str = "127.0.0.1 localhost\n";

/// A program of a guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Its name in `/usr/bin` there.
    pub name: String,
    /// Its path on this machine; it must be built for the guest's architecture.
    pub file: PathBuf,
}

/// The guest from which every virtual run starts: the target as init, busybox for loads, the
/// modules in the order in which they are loaded, and further programs in `/usr/bin`.
pub fn base(
    architecture: Architecture,
    target: &Path,
    busybox: &Path,
    modules: &[PathBuf],
    programs: &[Program],
) -> Result<Initramfs, InitramfsError> {
    let mut initramfs = Initramfs::new();
    put_skeleton(&mut initramfs)?;
    put_target(&mut initramfs, architecture, target)?;
    put_busybox(&mut initramfs, architecture, busybox, programs)?;
    put_modules(&mut initramfs, modules)?;
    for program in programs {
        let path = format!("/usr/bin/{}", program.name);
        initramfs.program(architecture, &program.file, &path)?;
    }
    Ok(initramfs)
}

fn put_skeleton(initramfs: &mut Initramfs) -> Result<(), InitramfsError> {
    for path in ["/dev", "/etc", "/proc", "/run", "/sys", "/usr/bin", "/var"] {
        initramfs.dir(path, 0o755)?;
    }
    initramfs.dir("/root", 0o700)?.dir("/tmp", 0o1777)?;
    // Init has a console only if this is there before it starts.
    initramfs.device("/dev/console", DeviceKind::Character, 5, 1)?;
    initramfs
        .file("/etc/passwd", 0o644, PASSWD)?
        .file("/etc/group", 0o644, GROUP)?
        .file("/etc/hosts", 0o644, HOSTS)?;
    Ok(())
}

fn put_target(
    initramfs: &mut Initramfs,
    architecture: Architecture,
    target: &Path,
) -> Result<(), InitramfsError> {
    let path = target.to_owned();
    if !target.exists() {
        return Err(InitramfsError::NoTarget { path, architecture });
    }
    let bytes = read(target, "punctual-target")?;
    require_static(&bytes, architecture).map_err(|found| InitramfsError::Target {
        path,
        architecture,
        found,
    })?;
    initramfs
        .file("/init", 0o755, bytes)?
        .symlink("/bin/punctual-target", "/init")?;
    Ok(())
}

fn put_busybox(
    initramfs: &mut Initramfs,
    architecture: Architecture,
    busybox: &Path,
    programs: &[Program],
) -> Result<(), InitramfsError> {
    let bytes = read(busybox, "a static busybox")?;
    check_busybox(busybox, &bytes, architecture)?;
    let applets = if architecture.is_foreign() {
        applets::in_bytes(&bytes).ok_or_else(|| InitramfsError::Busybox {
            path: busybox.to_owned(),
            architecture,
            found: "one that holds no row of applets' names".to_owned(),
        })?
    } else {
        told_applets(busybox, architecture)?
    };
    initramfs.file("/bin/busybox", 0o755, bytes)?;
    let mut taken = vec!["busybox", "punctual-target"];
    // A program that was asked for comes before an applet of its name.
    taken.extend(programs.iter().map(|program| program.name.as_str()));
    for applet in applets {
        if !taken.contains(&applet.as_str()) {
            initramfs.symlink(&format!("/bin/{applet}"), "busybox")?;
        }
    }
    Ok(())
}

/// The applets of a busybox, by asking it, as they differ from build to build.
fn told_applets(busybox: &Path, architecture: Architecture) -> Result<Vec<String>, InitramfsError> {
    let describe = |found: String| InitramfsError::Busybox {
        path: busybox.to_owned(),
        architecture,
        found,
    };
    let output = Command::new(busybox)
        .arg("--list")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| describe(format!("that it does not run here ({error})")))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let names: Vec<String> = text
        .lines()
        .filter(|name| entry_name(&format!("/{name}")).is_some() && !name.contains('/'))
        .map(str::to_owned)
        .collect();
    if !output.status.success() || names.is_empty() {
        return Err(describe("one without applets (`--list`)".to_owned()));
    }
    Ok(names)
}

fn put_modules(initramfs: &mut Initramfs, modules: &[PathBuf]) -> Result<(), InitramfsError> {
    for (index, path) in modules.iter().enumerate() {
        let bytes = read(path, "a kernel module")?;
        if !bytes.starts_with(b"\x7fELF") {
            return Err(InitramfsError::Module {
                path: path.clone(),
                found: "no ELF file".to_owned(),
            });
        }
        let guest_path = format!("/lib/modules/punctual/{index:02}-{}", file_name(path)?);
        initramfs.file(&guest_path, 0o644, bytes)?;
    }
    Ok(())
}

fn file_name(path: &Path) -> Result<&str, InitramfsError> {
    let name = path.file_name().and_then(|name| name.to_str());
    name.ok_or_else(|| InitramfsError::BadPath(path.display().to_string()))
}

/// Finds a busybox that runs here and in guests of this machine's architecture: in `/bin`,
/// `/usr/bin`, then along the PATH.
///
/// A dynamically linked one is passed over if a static one follows.
pub fn find_busybox() -> Result<PathBuf, InitramfsError> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let directories = ["/bin", "/usr/bin"].map(PathBuf::from);
    let directories = directories.into_iter().chain(std::env::split_paths(&path));
    first_busybox(directories.map(|directory| directory.join("busybox")))
}

fn first_busybox(candidates: impl Iterator<Item = PathBuf>) -> Result<PathBuf, InitramfsError> {
    let mut unfit = None;
    for path in candidates.filter(|path| is_executable(path)) {
        match read(&path, "a static busybox")
            .and_then(|bytes| check_busybox(&path, &bytes, Architecture::Amd64))
        {
            Ok(()) => return Ok(path),
            Err(error) => _ = unfit.get_or_insert(error),
        }
    }
    Err(unfit.unwrap_or(InitramfsError::NoBusybox))
}

fn is_executable(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

fn check_busybox(
    path: &Path,
    bytes: &[u8],
    architecture: Architecture,
) -> Result<(), InitramfsError> {
    require_static(bytes, architecture).map_err(|found| InitramfsError::Busybox {
        path: path.to_owned(),
        architecture,
        found,
    })
}

/// Returns an error that describes the bytes, unless they are a static program for this
/// architecture.
pub(super) fn require_static(bytes: &[u8], architecture: Architecture) -> Result<(), String> {
    let needs = elf::needs(bytes, architecture)?;
    match needs.interpreter {
        Some(interpreter) => Err(format!("a dynamically linked one (it needs {interpreter})")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::initramfs::Entry;

    #[test]
    fn the_base_is_complete() {
        let Ok(busybox) = find_busybox() else {
            return punctual_skip::skip("no static busybox is installed");
        };
        let directory = tempfile::tempdir().unwrap();
        let module = directory.path().join("stall.ko");
        fs::write(&module, "\x7fELF and so on").unwrap();
        let modules = [module.clone(), module];
        let programs = [Program {
            name: "ls".to_owned(),
            file: "/bin/ls".into(),
        }];
        // Any static program can stand in for the target.
        let make = || base(Architecture::Amd64, &busybox, &busybox, &modules, &programs).unwrap();
        let initramfs = make();
        let link = |target: &str| Entry::Symlink {
            target: target.to_owned(),
        };
        assert_eq!(initramfs.get("/bin/punctual-target"), Some(&link("/init")));
        assert_eq!(initramfs.get("/bin/sh"), Some(&link("busybox")));
        assert_eq!(initramfs.get("/bin/ls"), None);
        assert!(matches!(
            initramfs.get("/bin/busybox"),
            Some(Entry::File { .. })
        ));
        for path in [
            "/init",
            "/usr/bin/ls",
            "/dev/console",
            "/proc",
            "/sys",
            "/tmp",
            "/run",
            "/root",
            "/var",
            "/etc/passwd",
            "/etc/group",
            "/etc/hosts",
            "/lib/modules/punctual/00-stall.ko",
            "/lib/modules/punctual/01-stall.ko",
        ] {
            assert!(initramfs.get(path).is_some(), "{path}");
        }
        assert_eq!(initramfs.finish().unwrap(), make().finish().unwrap());
    }

    #[test]
    fn what_cannot_be_init_is_named() {
        let busybox = Path::new("/nowhere/busybox");
        let error = |architecture, target: &str| {
            let made = base(architecture, Path::new(target), busybox, &[], &[]);
            made.unwrap_err().to_string()
        };
        let missing = error(Architecture::Amd64, "/nowhere/punctual-target");
        assert!(
            missing.contains("found no such file: build it with `./build`"),
            "{missing}"
        );
        let missing = error(Architecture::Arm64, "/nowhere/punctual-target");
        assert!(
            missing.contains("build it with `./build --targets aarch64`"),
            "{missing}"
        );
        let foreign = error(Architecture::Arm64, "/bin/ls");
        assert!(
            foreign.contains("expected a static arm64 program, found an ELF file for x86-64"),
            "{foreign}"
        );
        let error = |target| error(Architecture::Amd64, target);
        let dynamic = error("/bin/ls");
        assert!(
            dynamic.contains("found a dynamically linked one"),
            "{dynamic}"
        );
        let text = error("/etc/passwd");
        assert!(text.contains("found no ELF file"), "{text}");
    }

    #[test]
    fn a_dynamic_busybox_is_passed_over() {
        let ls = PathBuf::from("/bin/ls");
        let error = first_busybox([ls.clone()].into_iter())
            .unwrap_err()
            .to_string();
        assert!(error.contains("busybox-static"), "{error}");
        let none = first_busybox([PathBuf::from("/nowhere/busybox")].into_iter());
        assert!(matches!(none, Err(InitramfsError::NoBusybox)));
        if let Ok(busybox) = find_busybox() {
            assert_eq!(
                first_busybox([ls, busybox.clone()].into_iter()).unwrap(),
                busybox
            );
        }
    }

    #[test]
    fn a_module_that_is_still_packed_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let module = directory.path().join("stall.ko.xz");
        fs::write(&module, "\u{fd}7zXZ").unwrap();
        let error = put_modules(&mut Initramfs::new(), &[module]).unwrap_err();
        assert!(error.to_string().contains("unpacked .ko file"));
    }
}

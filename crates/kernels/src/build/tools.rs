// SPDX-License-Identifier: MIT OR Apache-2.0
//! The programs and headers of this machine that build a kernel.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::Stdio;

use punctual_model::Architecture;

use super::error::BuildError;
use super::worker::Worker;

/// The kernel's name for an architecture.
pub(crate) fn of_kernel(architecture: Architecture) -> &'static str {
    match architecture {
        Architecture::Amd64 => "x86",
        Architecture::Arm64 => "arm64",
    }
}

/// The prefix of the names of compiler and linker for an architecture.
pub(crate) fn prefix(architecture: Architecture) -> &'static str {
    match architecture {
        Architecture::Amd64 => "",
        Architecture::Arm64 => "aarch64-linux-gnu-",
    }
}

/// The path of the image in the build directory, and the name of its `make` target.
pub(crate) fn image(architecture: Architecture) -> (&'static str, &'static str) {
    match architecture {
        Architecture::Amd64 => ("arch/x86/boot/bzImage", "bzImage"),
        Architecture::Arm64 => ("arch/arm64/boot/Image", "Image"),
    }
}

/// Programs, and the Debian packages that contain them.
const PROGRAMS: [(&str, &str); 7] = [
    ("make", "make"),
    ("gcc", "gcc"),
    ("ld", "binutils"),
    ("flex", "flex"),
    ("bison", "bison"),
    ("bc", "bc"),
    ("perl", "perl"),
];

/// The compiler for kernels of another architecture, and its package.
const CROSS: (&str, &str) = ("aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu");

/// Headers: `objtool` reads ELF files, and OpenSSL reads certificates.
const HEADERS: [(&str, &str); 3] = [
    ("stdlib.h", "libc6-dev"),
    ("gelf.h", "libelf-dev"),
    ("openssl/x509.h", "libssl-dev"),
];

/// Checks that everything is installed; one error names everything that is missing.
pub(crate) fn check(worker: Worker, architecture: Architecture) -> Result<(), BuildError> {
    let cross = architecture.is_foreign().then_some(CROSS);
    let mut missing: Vec<_> = PROGRAMS
        .into_iter()
        .chain(cross)
        .filter(|(program, _)| find(program).is_none())
        .collect();
    let has_compiler = missing.iter().all(|(program, _)| *program != "gcc");
    for (header, package) in HEADERS {
        if has_compiler && !has_header(worker, header)? {
            missing.push((header, package));
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    let (missing, packages): (Vec<_>, Vec<_>) = missing.into_iter().unzip();
    Err(BuildError::Tools {
        missing: missing.join(", "),
        packages: packages.join(" "),
    })
}

/// The compiler and the linker, each with its version.
pub(crate) fn versions(worker: Worker, architecture: Architecture) -> Result<String, BuildError> {
    let prefix = prefix(architecture);
    let version = |program: &str| -> Result<String, BuildError> {
        let mut command = worker.command(&format!("{prefix}{program}"));
        let output = command.arg("--version").output();
        let output = output.map_err(BuildError::of_setpriv)?;
        let text = String::from_utf8_lossy(&output.stdout);
        Ok(text.lines().next().unwrap_or_default().to_owned())
    };
    Ok(format!("{}\n{}", version("gcc")?, version("ld")?))
}

/// A program in the PATH.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut all = std::env::split_paths(&path).map(|directory| directory.join(program));
    all.find(|path| path.is_file())
}

fn has_header(worker: Worker, header: &str) -> Result<bool, BuildError> {
    let mut child = worker
        .command("gcc")
        .args(["-E", "-x", "c", "-o", "/dev/null", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(BuildError::of_setpriv)?;
    let mut stdin = child.stdin.take().expect("it is a pipe");
    // Where the compiler does not even read this, its status says so.
    let _ = stdin.write_all(format!("#include <{header}>\n").as_bytes());
    drop(stdin);
    let status = child.wait().map_err(BuildError::of_setpriv)?;
    Ok(status.success())
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Debian's RT kernel with a module that a test builds.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::{Ended, KERNELS, Scratch, assert_ends, user_cache};

/// Builds a module of these tests for the RT kernel; `flags` are for the compiler.
///
/// # Panics
/// If it cannot be built.
pub fn module(scratch: &Scratch, name: &str, flags: &str) -> String {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    let fetched = Scratch::new().run(&["kernel", "fetch", KERNELS[1]]);
    assert_eq!(fetched.status, Some(0), "{}", fetched.stderr);
    let release = fetched.stderr.trim().rsplit(' ').next().unwrap().to_owned();
    let source = scratch.path(&format!("{name}{}", flags.replace(['-', '=', ' '], "_")));
    fs::create_dir(&source).unwrap();
    for file in ["Kbuild", &format!("{name}.c")] {
        fs::copy(tests.join(name).join(file), source.join(file)).unwrap();
    }
    let headers = user_cache().join("punctual/headers").join(&release);
    let headers = headers.join(format!("usr/src/linux-headers-{release}"));
    if !headers.is_dir() {
        // This fetches them; what it builds takes three times as long as one module.
        let mut modules = Command::new(tests.join("../kmod/build"));
        let ended = Ended::of(modules.arg(&release).arg(scratch.path("kmod")));
        assert_eq!(ended.status, Some(0), "{}", ended.stderr);
    }
    let mut make = Command::new("make");
    make.arg("-C").arg(headers);
    make.arg(format!("M={}", source.display()));
    make.arg(format!("KCFLAGS=-g0 {flags}"));
    let ended = Ended::of(make.args(["CONFIG_DEBUG_INFO_BTF_MODULES=", "modules"]));
    assert_eq!(ended.status, Some(0), "{}{}", ended.stdout, ended.stderr);
    source
        .join(format!("{name}.ko"))
        .to_str()
        .unwrap()
        .to_owned()
}

/// Adds the RT kernel with a module, under this id.
///
/// # Panics
/// If it cannot be added.
pub fn add_kernel(scratch: &Scratch, id: &str, module: &str) {
    let image = user_cache().join("punctual/kernels").join(KERNELS[1]);
    let image = image.join("vmlinuz");
    let words = ["kernel", "add", "--id", id, image.to_str().unwrap()];
    let added = scratch.run(&[&words[..], &["--module", module]].concat());
    assert_ends(&added, 0, &[&format!("{id} is in the cache")]);
}

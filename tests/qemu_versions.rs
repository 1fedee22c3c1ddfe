// SPDX-License-Identifier: MIT OR Apache-2.0
//! Other releases of QEMU: the scope works in them, and they report what they cannot do.
//!
//! `scope.rs` tests the scope in the installed QEMU. `PUNCTUAL_OTHER_QEMU` names the place of
//! another one, as `tools/other-qemu` prints it.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use punctual_tests::explained::{check_sum, explain, number, samples};
use punctual_tests::{Scratch, digests, finding};
use serde_json::Value;

const STALL: &str = r#"
modules = ["backfire", "pulse", "stall"]
[[step]]
probe = "timer"
samples = 30
stall = { kind = "irqs-off", us = 300, sample = 20 }
"#;
const STRESS: &str = r#"
[[step]]
probe = "timer"
load = "stress"
samples = 100
"#;

/// The directory of the other QEMU.
fn other_qemu() -> Option<PathBuf> {
    let directory = std::env::var_os("PUNCTUAL_OTHER_QEMU").filter(|name| !name.is_empty());
    if directory.is_none() {
        punctual_skip::skip("PUNCTUAL_OTHER_QEMU names no other QEMU");
    }
    directory.map(PathBuf::from)
}

/// Puts a program before QEMU that runs this script, and continues as the QEMU that would have been
/// found without it.
fn wrap_qemu(scratch: &mut Scratch, script: &str) {
    let bin = scratch.path("wrapped");
    fs::create_dir(&bin).expect("a directory");
    let program = bin.join("qemu-system-x86_64");
    let script = format!("#!/bin/sh\n{script}\nPATH=${{PATH#*:}} exec qemu-system-x86_64 \"$@\"\n");
    fs::write(&program, script).expect("a script");
    fs::set_permissions(&program, Permissions::from_mode(0o755)).expect("a program");
    scratch.look_first_in(&bin);
}

#[test]
fn the_scope_works_in_another_qemu() {
    if !punctual_skip::long("PUNCTUAL_LONG") {
        return;
    }
    let Some(other) = other_qemu() else { return };
    let mut scratch = Scratch::new();
    scratch.look_first_in(&other);
    let suite = &scratch.suite("versions", &["full"], &[STALL, STRESS].concat());
    let first = scratch.measure(&[suite]);
    assert_eq!(digests(&first), digests(&scratch.measure(&[suite])));

    let explained = explain(&scratch, &["r1", "--worst", "100"]);
    assert_eq!(samples(&explained).len(), 100);
    samples(&explained).iter().for_each(check_sum);
    let late = finding(&first[0]["recordings"][0], "stalled_value");
    let stalled = samples(&explained)
        .iter()
        .find(|sample| number(&sample["late_ns"]) == late);
    let stalled = stalled.expect("the stalled sample is one of the worst");
    let culprit = stalled["story"]["culprit"].as_u64().expect("a culprit");
    let culprit = &stalled["story"]["parts"][culprit as usize];
    assert_eq!(culprit["cause"], "interrupts off", "{stalled:#}");
    assert_eq!(
        culprit["main"]["function"], "stall_irqs_off [stall]",
        "{stalled:#}"
    );

    let ended = scratch.run(&["survey", "r1", "--quiet", "--json"]);
    assert_eq!(ended.status, Some(0), "{}", ended.stderr);
    let survey: Value = serde_json::from_str(&ended.stdout).expect("JSON");
    assert_eq!(survey["digest_watched"], first[0]["digest"]);
    // 100 periods of 1 ms under a load that leaves no time to sleep.
    assert!(number(&survey["instructions"]) > 95_000_000);
    assert_eq!(survey["mended"], 0);
}

/// The error shows QEMU's own reason, not the warnings before it (QEMU 10.2 and later warn of the
/// machine's age), and the run still exists.
#[test]
fn a_qemu_that_refuses_the_plugin_is_quoted() {
    for directory in [None, other_qemu()] {
        let mut scratch = Scratch::new();
        if let Some(directory) = &directory {
            scratch.look_first_in(directory);
        }
        let suite = &scratch.suite("versions", &["full"], STALL);
        scratch.measure(&[suite]);
        wrap_qemu(
            &mut scratch,
            "echo \"$0: warning: this QEMU is old\" >&2\nexport PUNCTUAL_PLUGIN_API=99",
        );
        let ended = scratch.run(&["explain", "r1"]);
        assert_eq!(ended.status, Some(1), "{directory:?}: {}", ended.stderr);
        for word in [
            "does not load the scope's plugin",
            "API version 99",
            "only up to version",
        ] {
            assert!(ended.stderr.contains(word), "{word}: {}", ended.stderr);
        }
        assert!(!ended.stderr.contains("warning"), "{}", ended.stderr);
        assert_eq!(scratch.run(&["show", "r1"]).status, Some(0));
    }
}

#[test]
fn a_qemu_without_the_machine_is_named() {
    let mut scratch = Scratch::new();
    wrap_qemu(
        &mut scratch,
        "for w; do shift; case $w in pc-q35-*) w=pc-q35-0.1,${w#*,};; esac\n\
         set -- \"$@\" \"$w\"; done",
    );
    let suite = &scratch.suite("versions", &["full"], STALL);
    let ended = scratch.run(&["run", "--quiet", suite]);
    assert_eq!(ended.status, Some(1), "{}", ended.stderr);
    for word in ["pc-q35-7.2", "another QEMU"] {
        assert!(ended.stderr.contains(word), "{word}: {}", ended.stderr);
    }
}

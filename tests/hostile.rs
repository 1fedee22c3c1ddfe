// SPDX-License-Identifier: MIT OR Apache-2.0
//! A hostile guest neither fills this machine nor misleads it.

use punctual_tests::{Scratch, assert_has, runs};
use serde_json::Value;

/// Two steps; the load of the second runs this in a shell, as root.
fn steps(does: &str) -> String {
    format!(
        r#"
[[step]]
probe = "timer"
samples = 50
[[step]]
probe = "timer"
load = "harm"
samples = 1000000000
[load.harm]
summary = "harm"
[[load.harm.worker]]
run = ["sh", "-c", "{does}"]
unit = "rounds"
count = "rounds"
"#
    )
}

/// Runs a guest that does this; it must fail for that reason. Returns the run.
fn harmed(scratch: &Scratch, does: &str, reason: &str) -> Value {
    let suite = &scratch.suite("hostile", &["rt"], &steps(does));
    let ended = scratch.run(&["run", "--quiet", suite]);
    assert_eq!(ended.status, Some(1), "{}", ended.stderr);
    assert_has(&ended.stderr, &[reason]);
    let run = runs(&scratch.run(&["show", "r1", "--json"]).stdout).remove(0);
    assert_eq!(run["state"], "failed");
    assert!(run["digest"].is_null(), "half a run has no digest");
    assert_eq!(
        run["recordings"][0]["count"], 50,
        "what came before is kept"
    );
    run
}

#[test]
fn a_guest_that_prints_without_end_is_ended() {
    if !punctual_skip::long("PUNCTUAL_LONG") {
        return;
    }
    let scratch = Scratch::new();
    let flood = "yes xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx >/dev/ttyS0";
    harmed(&scratch, flood, "MiB to its console");
    let console = scratch.run(&["show", "r1", "--console"]).stdout;
    assert!(console.contains("Linux version"), "the console is kept");
    assert!(console.len() < 64 << 20, "{} bytes", console.len());
}

#[test]
fn a_guest_that_writes_into_the_stream_of_its_target_is_noticed() {
    let scratch = Scratch::new();
    // QEMU's debug console is at port 0xe9; process 1 is not the only one that may use it.
    let forge = "while :; do printf x | dd of=/dev/port bs=1 seek=233 count=1; done";
    harmed(&scratch, forge, "the record stream is damaged");
}

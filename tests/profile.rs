// SPDX-License-Identifier: MIT OR Apache-2.0
//! Profiles: each call is counted, two of one run are equal, and the gate names the functions that
//! make programs slower.

use punctual_tests::{KERNELS, Scratch, assert_ends, assert_has, json, schema};
use serde_json::Value;

/// One execution of `hackbench`, in which 20 processes write to 20 others, so many times each.
fn hackbench(loops: u32) -> String {
    format!(
        "name = \"pipes\"\nsummary = \"\"\n[[step]]\nprobe = \"timer\"\nsamples = 5\n\
         [[step]]\nprobe = \"hackbench\"\nipc = \"pipe\"\ngroups = 1\nloops = {loops}\nsamples = 1\n"
    )
}

#[test]
fn each_call_is_counted_and_what_makes_programs_slower_is_named() {
    let scratch = Scratch::new();
    let [path, _] = [2, 4].map(|loops| {
        let path = scratch.file(&format!("{loops}.toml"), hackbench(loops));
        scratch.measure(&[&path, "--kernel", KERNELS[1]]);
        path
    });
    let (short, long) = ("r1", "r2");
    let words = ["profile", short, "--probe", "hackbench"];
    let profile = |words: &[&str]| {
        let ended = scratch.run(&[words, &["--quiet", "--json"]].concat());
        assert_ends(&ended, 0, &[]);
        json(&ended)
    };
    let both = profile(&[&words[..], &["--compare", long]].concat());
    schema::check("profile", &both).unwrap();
    let steps = both["steps"].as_array().expect("steps");
    let numbers: Vec<_> = steps.iter().map(|one| one["step"].as_u64()).collect();
    assert_eq!(numbers, [Some(1)], "the step of hackbench alone");
    let functions = steps[0]["functions"].as_array().expect("functions");
    let of = |name: &str| {
        let mut all = functions.iter();
        all.find(|one| one["function"] == name).expect(name)
    };
    // Twenty writers, twenty readers, two messages more to each.
    for name in ["pipe_write", "pipe_read", "vfs_write"] {
        let entered = |field: &str| of(name)[field].as_u64().expect(field);
        assert_eq!(entered("other_entered") - entered("entered"), 800, "{name}");
    }
    assert_eq!(of("punctual-target")["entered"], Value::Null);
    // Each is rounded to a nanosecond.
    let sum: u64 = functions
        .iter()
        .filter_map(|one| one["own_ns"].as_u64())
        .sum();
    let all = steps[0]["all_ns"].as_u64().expect("all");
    assert!(all.abs_diff(sum) <= functions.len() as u64, "{all} {sum}");

    let [one, again] = [&words, &words].map(|words| profile(words));
    assert_eq!(one, again, "the second time, too");
    let told = scratch.run(&[&words[..], &["--quiet", "--top", "3"]].concat());
    assert_ends(
        &told,
        0,
        &[
            "step 2, hackbench / idle",
            "more functions: --top N shows more, --json all of them",
        ],
    );
    let refused = scratch.run(&["profile", short, "--probe", "packet", "--quiet"]);
    assert_ends(&refused, 2, &["no recording with probe \"packet\""]);
    let refused = scratch.run(&["explain", short, "--probe", "hackbench", "--quiet"]);
    assert_ends(
        &refused,
        2,
        &["`punctual profile` shows where its step's time goes"],
    );

    // Each object of the allocator keeps who took it and who gave it back, with their stacks.
    let words = [
        "run", &path, "--seeds", "1..5", "--quiet", "--kernel", KERNELS[1],
    ];
    assert_ends(&scratch.run(&words), 0, &[]);
    let stock = ["baseline", "set", "stock", "r3", "r4", "r5", "r6", "r7"];
    assert_ends(&scratch.run(&stock), 0, &[]);
    let words = ["gate", &path, "--baseline", "stock", "--kernel", KERNELS[1]];
    let gate = scratch.run(&[&words[..], &["--boot", "slub_debug=U", "--quiet"]].concat());
    assert_ends(&gate, 4, &["the whole step took ", "longer than before: `"]);
    assert_has(
        &gate.stdout,
        &["`unwind_next_frame` ", "punctual profile r"],
    );
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The cost of the time stamps is known: the correction for it equals the instructions between
//! them, to a nanosecond of virtual time.

use punctual_tests::Scratch;
use serde_json::Value;

const SUITE: &str = r#"
[[step]]
probe = "clock"
[[step]]
probe = "switch"
threads = [2]
[[step]]
probe = "mutex"
ticks = 4
"#;

fn overhead(recording: &Value) -> i64 {
    let overhead = &recording["settings"]["tracing_overhead_ns"];
    overhead
        .as_i64()
        .unwrap_or_else(|| panic!("no overhead: {recording}"))
}

#[test]
fn a_corrected_sample_is_the_instructions_between_its_stamps() {
    let scratch = Scratch::new();
    let suite = &scratch.suite("tracing", &[], SUITE);
    for ns_per_insn in [1, 8] {
        let rate = ns_per_insn.to_string();
        let runs = scratch.measure(&[suite, "--kernel", "debian-6.12", "--ns-per-insn", &rate]);
        check(runs[0]["recordings"].as_array().unwrap(), ns_per_insn);
    }
    let table = scratch.run(&["show", "r1"]).stdout;
    let line = |text: &str| {
        table
            .lines()
            .any(|line| line.trim_start().starts_with(text))
    };
    assert!(
        line("worst corr.") && line("mean corr.") && line("of it tracing"),
        "{table}"
    );
}

fn check(recordings: &[Value], ns_per_insn: i64) {
    let of = |variant: &str| {
        recordings
            .iter()
            .find(|one| one["variant"] == variant)
            .unwrap()
    };
    let (stamp, known) = (of("stamp"), of("stamp, 1000 instructions"));
    assert_eq!(overhead(known), stamp["min"].as_i64().unwrap());
    // But where something interrupts each sample is the same. The kernel makes nanoseconds of
    // the clock's counter, and rounds.
    for value in [&known["min"], &known["quantiles"]["0.5"]] {
        let corrected = value.as_i64().unwrap() - overhead(known);
        assert!(
            (corrected - 1_000 * ns_per_insn).abs() <= ns_per_insn,
            "{corrected}"
        );
    }
    // The probes' own stamps cost what those of clock do, but for its call between them.
    for recording in recordings.iter().filter(|one| one["probe"] != "clock") {
        let less = overhead(known) - overhead(recording);
        assert!(
            (0..=5 * ns_per_insn).contains(&less),
            "{recording}: {less} less"
        );
        assert!(recording["min"].as_i64().unwrap() > 5 * overhead(recording));
        for kind in ["minor_faults", "major_faults"] {
            assert_eq!(recording["settings"][kind], 0, "{recording}");
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! `irqrate` finds a limit and not chance: repetitions, seeds and longer bursts agree.

use punctual_tests::{Scratch, finding};

/// The largest of several limits of a kernel is at most this many times the smallest:
/// docs/method/probes/irqrate.md gives this figure and its origin.
const WIDTHS: [(&str, f64); 2] = [("debian-6.12", 4.0), ("debian-6.12-rt", 1.25)];

const SUITE: &str = r#"
modules = ["backfire", "pulse", "stall"]
[[step]]
probe = "irqrate"
burst_ms = 40
[[step]]
probe = "irqrate"
bursts = [1_000, 20_000]
burst_ms = 40
repeats = 1
"#;

#[test]
fn repetitions_seeds_and_longer_bursts_find_the_same_limit() {
    if !punctual_skip::long("PUNCTUAL_LONG") {
        return;
    }
    let scratch = Scratch::new();
    let suite = &scratch.suite("limits", &[], SUITE);
    for (kernel, width) in WIDTHS {
        let mut limits = Vec::new();
        for run in scratch.measure(&[suite, "--kernel", kernel, "--seeds", "1,2"]) {
            let recordings = run["recordings"].as_array().unwrap();
            assert_eq!(recordings.len(), 3);
            for recording in recordings {
                let limit = recording["max"].as_i64().unwrap();
                // One step above the longest interval that lost any.
                assert_eq!(limit, finding(recording, "longest_losing") + 100);
                let tried = recording["output"].as_str().unwrap();
                let rows = || tried.lines().skip(1);
                assert!(rows().any(|row| row.ends_with("  0")), "{tried}");
                assert!(rows().any(|row| !row.ends_with("  0")), "{tried}");
                limits.push(limit);
            }
        }
        println!("{kernel}: {limits:?}");
        let (low, high) = (limits.iter().min().unwrap(), limits.iter().max().unwrap());
        assert!(*high as f64 <= *low as f64 * width, "{kernel}: {limits:?}");
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Results of jitterdebugger.

use crate::{counts, has, read, worst_us};

/// jitterdebugger 0.3.1 counts what is longer than its interval, and puts it into no bin.
#[test]
fn what_jitterdebugger_leaves_out_of_its_bins_is_known_as_such() {
    let results = r#"{"version": 3, "sysinfo": {"sysname": "Linux", "nodename": "a",
        "release": "6.1", "version": "PREEMPT RT", "machine": "x86_64", "cpus_online": 1,
        "resolution_in_ns": 1000}, "cpu": {"0": {"histogram": {"15": 980, "822": 18},
        "count": 1000, "min": 15, "max": 1331, "avg": 31.83}}}"#;
    let run = read("x", results.as_bytes()).unwrap();
    assert_eq!((counts(&run), worst_us(&run)), (vec![1_000], vec![1_331]));
    let lost = results.replace("1331", "822");
    has(
        &read("x", lost.as_bytes()).unwrap_err(),
        &["expected 1000 samples"],
    );
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files that people write, results of other programs as runs, and what Slurm lists.

use std::collections::BTreeMap;

use punctual_runner::fuzzing::{files, listed_tasks};
use punctual_runner::import::{Told, import};

use super::{text, texts};
use crate::Target;

/// Campaigns, options, loads, suites, limits: each reader reads each input.
pub const FILES: Target = Target {
    name: "files",
    seeds: || {
        texts(&[
            include_str!("../../../campaigns/preemption.toml"),
            include_str!("../../../options/advice.toml"),
            include_str!("../../../loads/stress.toml"),
            include_str!("../../../suites/fieldbus.toml"),
            "[[limit]]\nprobe = \"timer\"\nload = \"stress\"\nwhat = \"p99.9\"\n\
             at_most = \"120 us\"\n[[limit]]\nprobe = \"app\"\ndeadline = \"1 ms\"\n",
        ])
    },
    run: |bytes| {
        let all = files(&text(bytes));
        for wrong in all.iter().filter_map(|read| read.as_ref().err()) {
            assert!(!wrong.is_empty());
        }
        all.iter().any(Result::is_ok)
    },
};

/// Results of other programs, as runs.
pub const IMPORT: Target = Target {
    name: "import",
    seeds: || {
        texts(&[
            "# /dev/cpu_dma_latency set to 0us\n# Histogram\n000002 000003\n000009 000001\n\
             # Total: 000000004\n# Min Latencies: 00002\n# Avg Latencies: 00003\n\
             # Max Latencies: 00009\n# Histogram Overflows: 00000\n",
            "# RTLA timerlat histogram\n# Time unit is microseconds (us)\n\
             # Duration:   0 00:00:10\nIndex   IRQ-000   Thr-000\n0  3  0\n2  0  3\n\
             over:  0  0\ncount:  3  3\nmin:  0  2\navg:  0  2\nmax:  0  2\n",
            "T: 0 ( 1234) P:80 I:1000 C:  10000 Min:      2 Act:    3 Avg:    3 Max:      41\n",
        ])
    },
    run: |bytes| {
        let told = Told::default();
        let Ok(run) = import("f", bytes, &told) else {
            return false;
        };
        for recording in &run.recordings {
            assert_eq!(recording.contradiction(), None);
        }
        true
    },
};

/// What `squeue` lists.
pub const SQUEUE: Target = Target {
    name: "squeue",
    seeds: || {
        texts(&["12_0 punctual-1 0 Resources\n12_1 punctual-1 1 None\n\
            13_0 punctual-2 0 (launch failed requeued held)\n14 other N/A Priority\n"])
    },
    run: |bytes| {
        let keys = |of: &str| vec![format!("{of}-0"), format!("{of}-1")];
        let batches = ["punctual-1", "punctual-2"].map(|name| (name.to_owned(), keys(name)));
        let batches = BTreeMap::from(batches);
        let text = text(bytes);
        let (waiting, held) = listed_tasks(&text, &batches);
        let known: Vec<&String> = batches.values().flatten().collect();
        assert!(waiting.iter().all(|key| known.contains(&key)));
        !waiting.is_empty() || !held.is_empty()
    },
};

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every load that can run in a guest does there what it says.

use std::fmt::Write as _;

use punctual_tests::Scratch;
use punctual_tests::explained::{check_sum, explain, samples};

/// Which loads there are, but those that need what only a host may have: a kernel's source,
/// the Linux Test Project.
const LOADS: [&str; 20] = [
    "celf-20",
    "celf-50",
    "combined",
    "compile",
    "dd-sync-rm",
    "dd-urandom",
    "dd-zero",
    "du",
    "find",
    "find-and-ls",
    "hackbench-20",
    "hackbench-kill",
    "interrupts",
    "linux-journal",
    "ls-recursive",
    "osadl",
    "ping-flood",
    "ping-flood-1400",
    "random-and-ping",
    "storm",
];

#[test]
fn every_load_of_a_guest_proves_its_work() {
    let scratch = Scratch::new();
    let mut suite = "name = \"loads\"\nsummary = \"\"\nmemory_mib = 2048\n".to_owned();
    for load in LOADS {
        writeln!(
            suite,
            "[[step]]\nprobe = \"timer\"\nload = \"{load}\"\nsamples = 1000"
        )
        .unwrap();
    }
    let suite = &scratch.file("loads.toml", suite);
    let run = &scratch.measure(&[suite, "--kernel", "debian-6.12-rt"])[0];
    let recordings = run["recordings"].as_array().unwrap();
    assert_eq!(recordings.len(), LOADS.len());
    let steps = run["steps"].as_array().unwrap();
    assert_eq!(steps.len(), LOADS.len());
    for (step, load) in steps.iter().zip(LOADS) {
        assert_eq!(step["load"], *load);
        let work = step["work"].as_array().unwrap();
        assert!(!work.is_empty(), "{load}");
        for worker in work {
            println!("{load}: {worker}");
            // A round that does not end in time is known by the time that it took.
            assert!(
                worker["cpu_ns"].as_i64().unwrap() > 10_000_000,
                "{load}: {worker}"
            );
            // Its 2,000 processes are hardly started when this step is over.
            let starts = load == "celf-50" && worker["unit"] == "messages";
            let amount = worker["amount"].as_i64().unwrap();
            assert!(starts || amount > 0, "{load}: {worker}");
        }
    }
}

/// A load's processes are started while it is measured. If the target forked for that, each
/// page that it writes to thereafter would be copied by a fault, within a sample.
#[test]
fn whoever_measures_has_no_page_fault() {
    let scratch = Scratch::new();
    let step = |probe: &str| format!("[[step]]\nload = \"interrupts\"\n{probe}\n");
    let steps = [
        "probe = \"switch\"\nthreads = [50]\nticks = 2",
        "probe = \"tick\"\nduration_ms = 500",
        "probe = \"mutex\"\nticks = 2",
    ];
    let suite = format!(
        "name = \"faults\"\nsummary = \"\"\n{}",
        steps.map(step).concat()
    );
    let suite = &scratch.file("faults.toml", suite);
    scratch.measure(&[suite, "--kernel", "debian-6.12-rt"]);
    let explained = explain(&scratch, &["r1", "--worst", "400"]);
    let probes = samples(&explained).iter().map(|sample| &sample["probe"]);
    let mutex = probes.filter(|probe| *probe == "mutex").count();
    assert!(mutex >= 100, "{mutex}");
    for sample in samples(&explained) {
        check_sum(sample);
        let parts = sample["story"]["parts"].as_array().unwrap();
        let faults = parts.iter().any(|part| part["cause"] == "exception");
        assert!(!faults, "{sample:#}");
    }
}

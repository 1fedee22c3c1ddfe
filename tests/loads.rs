//! Every load that can run in a guest does there what it says.

use std::fmt::Write as _;

use punctual_tests::Scratch;

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
    for (recording, load) in recordings.iter().zip(LOADS) {
        let work = recording["work"].as_array().unwrap();
        assert!(!work.is_empty(), "{load}");
        for worker in work {
            println!("{load}: {worker}");
            // A round that does not end in time is known by the time that it took.
            assert!(
                worker["cpu_ns"].as_i64().unwrap() > 10_000_000,
                "{load}: {worker}"
            );
            let long = ["celf", "hackbench", "storm", "osadl"]
                .iter()
                .any(|l| load.starts_with(l));
            assert!(
                long || worker["amount"].as_i64().unwrap() > 0,
                "{load}: {worker}"
            );
        }
    }
}

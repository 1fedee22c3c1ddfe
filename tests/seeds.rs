// SPDX-License-Identifier: MIT OR Apache-2.0
//! The seed affects every probe, or the probe's page says why it cannot.

use std::fs;
use std::path::Path;

use punctual_tests::Scratch;
use serde_json::Value;

/// The sentence on the page of a probe that no seed affects.
const UNMOVED: &str = "The seed does not move this probe";

/// The probes, each with parameters that make it short.
const SHORT: [(&str, &str); 20] = [
    (
        "app",
        "run = [\"sh\", \"-c\", \"for i in 1 2 3 4 5 6 7 8 9; do sleep 0.01; done\"]",
    ),
    ("clock", ""),
    ("eventfd", "samples = 50"),
    (
        "hackbench",
        "ipc = \"pipe\"\ngroups = 1\nloops = 5\nsamples = 2",
    ),
    ("image", "samples = 1"),
    ("inversion", ""),
    ("irq", "samples = 50"),
    // Of one burst at each interval as many may be lost by chance.
    ("irqrate", "burst_ms = 20\nrepeats = 3\nhandler_ns = 20000"),
    ("mutex", "ticks = 4"),
    ("migrate", "samples = 50"),
    ("noise", "duration_ms = 100"),
    ("packet", "samples = 50"),
    ("program", "run = [\"ls\", \"-R\", \"/\"]\nsamples = 1"),
    ("realfeel", "samples = 50"),
    ("semaphore", "ticks = 4"),
    // A signal is over before most ticks come: of so many some are not, where the tick is no
    // multiple of their interval.
    ("signal", "samples = 10000\ninterval_us = 53"),
    ("switch", "threads = [2]\nticks = 4"),
    ("tick", "duration_ms = 100"),
    ("timer", "samples = 50"),
    ("wake", "samples = 50\nby = [\"pipe\"]"),
];

/// The probes that are tried each time, one of each kind: the others with `PUNCTUAL_LONG=1`.
const OFTEN: [&str; 8] = [
    "clock", "image", "irq", "mutex", "noise", "switch", "timer", "wake",
];

/// The recordings of the probe as the first and only step: no other step's end affects it.
fn recordings(scratch: &Scratch, probe: &str, parameters: &str) -> Vec<Value> {
    let network = probe == "packet";
    let suite = format!(
        "name = \"{probe}\"\nsummary = \"\"\nnetwork = {network}\nmodules = [\"backfire\", \"pulse\", \"stall\"]\n\
         programs = [\"/usr/bin/convert\"]\n\
         files = [\"/usr/lib/x86_64-linux-gnu/ImageMagick-*/modules-*/coders/pnm.*\"]\n\
         [[step]]\nprobe = \"{probe}\"\n{parameters}\n"
    );
    let suite = &scratch.file(&format!("{probe}.toml"), suite);
    // With one past for both: nothing else than the phases can move them.
    let what = [
        suite,
        "--kernel",
        "debian-6.12",
        "--seeds",
        "1,2",
        "--past",
        "1",
    ];
    let runs = scratch.measure(&what);
    let found = runs.iter().map(|run| {
        assert_eq!(run["unsupported"], Value::Array(Vec::new()), "{probe}");
        run["recordings"].clone()
    });
    found.collect()
}

#[test]
fn each_probe_answers_to_the_seed_or_its_page_says_why_it_cannot() {
    let scratch = Scratch::new();
    let is_long = punctual_skip::long("PUNCTUAL_LONG");
    let pages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/method/probes");
    let mut deaf = Vec::new();
    for entry in fs::read_dir(pages).unwrap() {
        let path = entry.unwrap().path();
        let probe = path.file_stem().unwrap().to_str().unwrap().to_owned();
        if probe == "README" || fs::read_to_string(&path).unwrap().contains(UNMOVED) {
            continue;
        }
        let short = SHORT.iter().find(|(name, _)| *name == probe);
        let (_, parameters) = short.unwrap_or_else(|| panic!("{probe} is not in the table"));
        if !is_long && !OFTEN.contains(&probe.as_str()) {
            continue;
        }
        let found = recordings(&scratch, &probe, parameters);
        assert_eq!(found.len(), 2);
        if found[0] == found[1] {
            deaf.push(probe);
        }
    }
    assert!(
        deaf.is_empty(),
        "these give the same for every seed: {deaf:?}"
    );
}

#[test]
fn what_a_guest_did_before_is_decided_by_the_seed_and_by_nothing_else() {
    let scratch = Scratch::new();
    let what = ["--probe", "timer", "-p", "samples=50"];
    let on = |kernel: &str, more: &[&str]| {
        let runs = scratch.measure(&[&what[..], &["--kernel", kernel], more].concat());
        let past = |run: &Value| run["provenance"]["facts"]["aged"].to_string();
        let digest = |run: &Value| run["digest"].to_string();
        runs.iter()
            .map(|run| (past(run), digest(run)))
            .collect::<Vec<_>>()
    };
    let both = ["--seeds", "1,2"];
    let stock = on("debian-6.12", &both);
    assert!(stock[0].0.contains("processes"), "{stock:?}");
    assert_ne!(stock[0].0, stock[1].0);
    // Booted afresh or resumed: the same past, and so the same samples.
    let cold = on("debian-6.12", &["--seed", "2", "--cold"]);
    assert_eq!(cold, stock[1..]);
    // Whose kernel it is decides nothing of it.
    let pasts =
        |runs: &[(String, String)]| runs.iter().map(|run| run.0.clone()).collect::<Vec<_>>();
    assert_eq!(pasts(&on("debian-6.12-rt", &both)), pasts(&stock));
}

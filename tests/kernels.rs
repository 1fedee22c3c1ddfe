// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kernels of other releases of Debian: found in package lists of Punctual's own, and booted
//! with the preemption models that they offer.

use std::fs;
use std::time::SystemTime;

use punctual_tests::{Ended, Scratch, assert_has};

/// The system's package lists, with the times of their last change.
fn system_lists() -> Vec<(String, SystemTime)> {
    let entries = fs::read_dir("/var/lib/apt/lists").expect("APT's lists");
    let mut lists: Vec<_> = entries
        .map(|entry| {
            let entry = entry.expect("an entry");
            let changed = entry.metadata().and_then(|data| data.modified());
            let name = entry.file_name().to_string_lossy().into_owned();
            (name, changed.expect("a time"))
        })
        .collect();
    lists.sort();
    lists
}

fn run_with(scratch: &Scratch, boot: &str) -> Ended {
    let kernel = ["--kernel", "debian-7.2", "--boot", boot];
    // Its disk needs a module less than others: `crc32c_generic` is none any more.
    let run = ["run", "--probe", "timer", "--load", "disk-read"];
    let samples = ["--samples", "300", "--json"];
    scratch.run(&[&run[..], &samples, &kernel].concat())
}

#[test]
fn a_kernel_of_another_release_is_fetched_and_offers_full_and_lazy() {
    if !punctual_skip::long("PUNCTUAL_LONG") {
        return;
    }
    let scratch = Scratch::new();
    let before = system_lists();
    // Others may have fetched it long ago: its lists are read again all the same.
    let ended = scratch.run(&["kernel", "fetch", "--refresh", "debian-7.2"]);
    assert_eq!(ended.status, Some(0), "{}", ended.stderr);
    assert_eq!(system_lists(), before);
    let place = punctual_tests::user_cache().join("punctual/kernels/debian-7.2");
    let config = fs::read_to_string(place.join("config")).expect("its configuration");
    assert!(config.contains("CONFIG_ARCH_HAS_PREEMPT_LAZY=y"));

    let refused = run_with(&scratch, "preempt=none");
    assert_eq!(refused.status, Some(2), "{}", refused.stderr);
    let expected = "expected preempt=full|lazy, as debian-7.2 offers, found preempt=none";
    assert_has(&refused.stderr, &[expected]);
    for model in ["full", "lazy"] {
        let ended = run_with(&scratch, &format!("preempt={model}"));
        assert_eq!(ended.status, Some(0), "{}", ended.stderr);
        let run = &punctual_tests::runs(&ended.stdout)[0];
        assert_eq!(run["provenance"]["preemption"], model);
        let release = run["provenance"]["release"].as_str().expect("a release");
        assert!(release.starts_with("7.2."), "{release}");
        assert!(run["digest"].is_string(), "nothing was measured: {run}");
    }
}

/// In this kernel `ptp` and `pps_core` are modules, without which the card's module is not loaded.
#[test]
fn an_old_kernels_card_has_the_modules_that_it_needs() {
    if !punctual_skip::long("PUNCTUAL_LONG") {
        return;
    }
    let scratch = Scratch::new();
    let suite = "name = \"wire\"\nsummary = \"\"\nnetwork = true\n[[subject]]\nname = \"5.10\"\n\
                 kernel = \"debian-5.10-rt\"\n[[step]]\nprobe = \"packet\"\nsamples = 50\n";
    let suite = scratch.file("wire.toml", suite);
    let ended = scratch.run(&["run", &suite, "--json"]);
    assert_eq!(ended.status, Some(0), "{}", ended.stderr);
    let run = &punctual_tests::runs(&ended.stdout)[0];
    assert!(run["digest"].is_string(), "nothing was measured: {run}");
}

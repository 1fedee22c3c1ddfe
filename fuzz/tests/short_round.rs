// SPDX-License-Identifier: MIT OR Apache-2.0
//! A short round of each target: `PUNCTUAL_FUZZ_INPUTS` inputs each, 200 where it is not set.

use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, PoisonError};

use punctual_fuzz::{Round, TARGETS, Target};

fn inputs() -> u64 {
    let number = std::env::var("PUNCTUAL_FUZZ_INPUTS").ok();
    number.map_or(200, |number| number.parse().expect("a number"))
}

/// Memory is counted for the whole process: one test at a time.
static ALONE: Mutex<()> = Mutex::new(());

#[test]
fn no_reader_panics_or_takes_memory_without_bounds() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    for target in TARGETS {
        let round = Round {
            target,
            seed: 1,
            from: 0,
            inputs: inputs(),
            now: &AtomicU64::new(0),
        };
        let found = round.run();
        // Damage of which all is refused at the door would find nothing behind it.
        assert!(found.accepted > 0, "{}: nothing was accepted", target.name);
        let shown: Vec<String> = found
            .failures
            .iter()
            .map(|(number, _, wrong)| format!("input {number} {wrong}"))
            .collect();
        assert!(shown.is_empty(), "{}: {shown:?}", target.name);
    }
}

#[test]
fn each_reader_accepts_what_is_damaged_for_it() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut refused = Vec::new();
    for target in TARGETS {
        for seed in (target.seeds)().iter().filter(|seed| !(target.run)(seed)) {
            refused.push((target.name, String::from_utf8_lossy(seed).into_owned()));
        }
    }
    assert!(refused.is_empty(), "{refused:#?}");
}

const PANICS: Target = Target {
    name: "panics",
    seeds: || vec![b"sound".to_vec()],
    run: |input| {
        assert!(input != b"sounds", "found");
        true
    },
};

const BELIEVES: Target = Target {
    name: "believes",
    seeds: || vec![b"0 bytes".to_vec()],
    run: |input| {
        let text = String::from_utf8_lossy(input);
        let length = text.split(' ').next().and_then(|word| word.parse().ok());
        let bytes: Vec<u8> = Vec::with_capacity(length.unwrap_or(0_usize).min(1 << 33));
        std::hint::black_box(bytes).is_empty()
    },
};

/// A round that finds nothing finds what is there to be found.
#[test]
fn a_reader_that_panics_or_takes_too_much_is_found() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    for (target, wrong) in [(PANICS, "panicked"), (BELIEVES, "memory")] {
        let round = Round {
            target: &target,
            seed: 1,
            from: 0,
            inputs: 200_000,
            now: &AtomicU64::new(0),
        };
        let failures = round.run().failures;
        assert!(!failures.is_empty(), "{}", target.name);
        assert!(failures.iter().all(|(_, _, what)| what.contains(wrong)));
    }
}

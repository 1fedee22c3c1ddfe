// SPDX-License-Identifier: MIT OR Apache-2.0
//! One target under libFuzzer, which `tools/fuzz-coverage` names in `PUNCTUAL_FUZZ_TARGET`.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use punctual_fuzz::{TARGETS, Target};

static CHOSEN: LazyLock<&Target> = LazyLock::new(|| {
    let name = std::env::var("PUNCTUAL_FUZZ_TARGET").expect("a target's name");
    let mut all = TARGETS.iter();
    all.find(|target| target.name == name)
        .unwrap_or_else(|| panic!("there is no target {name}"))
});

fuzz_target!(|input: &[u8]| {
    (CHOSEN.run)(input);
});

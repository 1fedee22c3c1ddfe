// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the scope takes from a guest.

use std::sync::LazyLock;

use punctual_model::{Architecture, Nanos, Run};
use punctual_scope::FileLines;
use punctual_scope::guest_clock::GuestClock;
use punctual_scope::symbols::{Symbols, unpacked};

use super::{fixtures, text, texts};
use crate::Target;

/// A run of which nothing was read back: only its console tells the rate.
static SILENT: LazyLock<Run> = LazyLock::new(|| Run {
    provenance: None,
    recordings: Vec::new(),
    ..fixtures::run_without_samples("rt", 1)
});

/// Traces from elsewhere, and rtla's analysis.
pub const PASTED: Target = Target {
    name: "pasted",
    seeds: || {
        texts(&[
            include_str!("../../../crates/scope/src/pasted/tests/wakeup-mail-encoded.txt"),
            include_str!("../../../crates/scope/src/pasted/tests/wakeup-flowed.txt"),
            include_str!("../../../crates/scope/src/pasted/tests/preemptirqsoff-cpu128.txt"),
            include_str!("../../../crates/scope/src/pasted/tests/timerlat-seven-flags.txt"),
            include_str!("../../../crates/scope/src/pasted/tests/osnoise-kworker.txt"),
            include_str!("../../../crates/scope/src/pasted/tests/osnoise-table.txt"),
            include_str!("../../../crates/scope/src/pasted/tests/hwlat.txt"),
            include_str!("../../../crates/scope/src/pasted/tests/cyclictest-mark.txt"),
            include_str!("../../../crates/scope/src/pasted/tests/two-causes.txt"),
            include_str!("../../../crates/scope/src/pasted/tests/rtla-new.txt"),
            include_str!("../../../crates/scope/src/pasted/tests/rtla-2022.txt"),
        ])
    },
    run: |bytes| {
        let told = punctual_scope::pasted::explain(&text(bytes));
        drop(punctual_report::scope::pasted::text(&told, 80));
        !told.is_empty()
    },
};

/// A program of the user's, with its functions and lines.
pub const LINES: Target = Target {
    name: "lines",
    seeds: || vec![include_bytes!("../../seeds/program-with-lines").to_vec()],
    run: |bytes| {
        let file = FileLines::of(bytes);
        for address in [0, 1, u64::MAX] {
            let _ = file.at(address);
        }
        // The whole of its code.
        let told = (0x40_00b0..0x40_00c2).map(|address| file.at(address));
        let told: Vec<_> = told.collect();
        told.iter().any(|one| one.0.is_some()) && told.iter().any(|one| one.1.is_some())
    },
};

/// The rate of the time stamp counter, as a console says it.
pub const CLOCK: Target = Target {
    name: "clock",
    seeds: || {
        texts(&[
            "[    0.000000] tsc: Detected 999.993 MHz processor\n\
             [    1.8] tsc: Refined TSC clocksource calibration: 999.999 MHz\n",
            "[    0.0] tsc: Detected 0.001 MHz processor\n",
        ])
    },
    run: |bytes| {
        let run = Run {
            console: text(bytes).into_owned(),
            ..SILENT.clone()
        };
        let Ok(clock) = GuestClock::of_run(&run) else {
            return false;
        };
        for number in [0, 1, 1_000_000, u64::MAX] {
            clock.time(number);
            clock.instructions(Nanos(number as i64));
        }
        true
    },
};

/// `/proc/kallsyms`.
pub const KALLSYMS: Target = Target {
    name: "kallsyms",
    seeds: || {
        texts(&["0000000000034e80 A pcpu_hot\nffffffff81000000 T _stext\n\
            ffffffff81000000 t alias\nffffffff81001000 t first\nffffffff81002000 T second\n\
            ffffffff82000000 D data\nffffffffc0000000 t stall_run\t[stall]\n"])
    },
    run: |bytes| {
        let _ = unpacked(&text(bytes));
        let Ok(symbols) = Symbols::parse(Architecture::Amd64, &text(bytes)) else {
            return false;
        };
        for address in [0, 0xffff_ffff_8100_1abc, u64::MAX] {
            let _ = symbols
                .at(address)
                .map(|(symbol, _)| symbols.range(&symbol.name));
        }
        Symbols::parse(Architecture::Arm64, &text(bytes)).is_ok()
    },
};

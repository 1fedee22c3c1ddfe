// SPDX-License-Identifier: MIT OR Apache-2.0
//! The targets for boards of other architectures: the results of `./build --targets`, and
//! measurements with them as programs of QEMU's user emulation.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use punctual_bench::Processor;
use punctual_model::frame::Decoder;
use punctual_model::{Nanos, Record};
use punctual_tests::{Ended, Scratch, assert_has, programs, sized};

/// The largest program, in bytes: a board may have little room.
const LARGEST: u64 = 4_000_000;

/// An architecture's name, its number in ELF (`e_machine`), whether its words have 64 bits, and
/// the program that emulates it.
const MACHINES: [(&str, usize, bool, &str); 3] = [
    ("aarch64", 183, true, "qemu-aarch64"),
    ("armv7", 40, false, "qemu-arm"),
    ("riscv64", 243, true, "qemu-riscv64"),
];

/// The machines that `./test` builds for: the first, or with `PUNCTUAL_LONG=1` all.
fn machines() -> impl Iterator<Item = (&'static str, usize, bool, &'static str)> {
    MACHINES.into_iter().take(sized(1, MACHINES.len()))
}

/// The measurements that work there: the emulation's own threads keep a process from forking.
const PLAN: &str = r#"
[[step]]
probe = "clock"
samples = 200
[[step]]
probe = "timer"
samples = 20
[[step]]
probe = "switch"
ticks = 1
[[step]]
probe = "eventfd"
samples = 50
[[step]]
probe = "wake"
samples = 20
[[step]]
probe = "semaphore"
ticks = 1
[[step]]
probe = "noise"
duration_ms = 20
"#;

/// The target for an architecture; if it is not built, the test is skipped.
fn target(machine: &str) -> Option<PathBuf> {
    let path = programs().join(format!("punctual-target-{machine}"));
    if !path.is_file() {
        punctual_skip::skip(&format!(
            "no target for {machine} is built: ./build --targets {machine}"
        ));
    }
    path.is_file().then_some(path)
}

/// A number of `LENGTH` bytes in a little-endian file.
fn number<const LENGTH: usize>(bytes: &[u8], at: usize) -> usize {
    let mut word = [0; 8];
    word[..LENGTH].copy_from_slice(&bytes[at..at + LENGTH]);
    usize::try_from(u64::from_le_bytes(word)).unwrap()
}

/// The kinds of an ELF file's segments.
fn segments(bytes: &[u8], is_64: bool) -> Vec<usize> {
    let (first, size, count) = if is_64 {
        (number::<8>(bytes, 32), 54, 56)
    } else {
        (number::<4>(bytes, 28), 42, 44)
    };
    let (size, count) = (number::<2>(bytes, size), number::<2>(bytes, count));
    let all = 0..count;
    all.map(|nth| number::<4>(bytes, first + nth * size))
        .collect()
}

#[test]
fn each_target_is_one_small_static_program() {
    const DYNAMIC: usize = 2;
    const INTERPRETER: usize = 3;
    for (machine, number_of_machine, is_64, _) in machines() {
        let Some(target) = target(machine) else {
            continue;
        };
        let bytes = fs::read(target).unwrap();
        assert_eq!(bytes[..4], *b"\x7fELF");
        assert_eq!(bytes[4] == 2, is_64, "{machine}");
        let found = number::<2>(&bytes, 18);
        assert_eq!(found, number_of_machine, "{machine}");
        let segments = segments(&bytes, is_64);
        assert!(!segments.contains(&DYNAMIC) && !segments.contains(&INTERPRETER));
        assert!(bytes.len() as u64 <= LARGEST, "{machine}: {}", bytes.len());
    }
}

/// All output of the target there, from the plan to the end.
fn measure(emulator: &str, target: &Path) -> Vec<Record> {
    let scratch = Scratch::new();
    let plan = scratch.file("plan.toml", PLAN);
    let mut command = Command::new(emulator);
    let command = command.arg(target).args(["run", &plan]);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{emulator}: {said}");
    let mut stream = Decoder::default();
    stream.feed(&output.stdout);
    let records = std::iter::from_fn(|| stream.next_record().unwrap()).collect();
    stream.finish().unwrap();
    records
}

#[test]
fn each_target_measures_under_its_emulator() {
    for (machine, _, _, emulator) in machines() {
        let Some(target) = target(machine) else {
            continue;
        };
        if !punctual_skip::program(emulator) {
            continue;
        }
        let help = Ended::of(Command::new(emulator).arg(&target).arg("--help"));
        assert_has(&help.stdout, &["punctual-target run"]);
        let records = measure(emulator, &target);
        assert!(matches!(records.last(), Some(Record::Finished(_))));
        let mut measured = BTreeSet::new();
        for record in &records {
            match record {
                Record::Recording(recording) => {
                    assert!(recording.count > 0, "{machine}: {recording:?}");
                    assert!(recording.sum > Nanos::ZERO, "{machine}: {recording:?}");
                    measured.insert(recording.key.probe.as_str());
                }
                Record::Unsupported(found) => {
                    assert_eq!(found.probe, "noise", "{machine}: {found:?}");
                    let told = if machine == "aarch64" {
                        "on an arm64 board a program does not learn of each interruption"
                    } else {
                        "processor does not tell a program that it was interrupted"
                    };
                    assert_has(&found.reason.to_string(), &[told]);
                }
                _ => {}
            }
        }
        let all = ["clock", "eventfd", "semaphore", "switch", "timer", "wake"];
        assert_eq!(measured, BTreeSet::from(all), "{machine}");
    }
}

#[test]
fn the_program_and_the_scripts_have_the_same_machines() {
    let machine = |name: &str| {
        let tool = concat!(env!("CARGO_MANIFEST_DIR"), "/../tools/machine");
        Ended::of(Command::new(tool).arg(name))
    };
    for one in Processor::ALL {
        let names = machine(one.machine()).stdout;
        let is_own = one.machine() == std::env::consts::ARCH;
        assert!(is_own || names.starts_with(one.machine()), "{names:?}");
    }
    let refused = machine("mips64");
    assert_eq!(refused.status, Some(2));
    assert_has(&refused.stderr, &["aarch64, armv7 or riscv64", "mips64"]);
}

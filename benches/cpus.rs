// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a guest of four CPUs costs for each instruction, against one of a single CPU: CPU time of
//! this machine, on which both run in turns.
//!
//! `cargo bench -p punctual-benches --bench cpus`, after `./build`.

use std::time::Duration;

use anyhow::Result;
use punctual_benches::{figure, median, spent};
use punctual_tests::Scratch;

const ROUNDS: usize = 3;
/// A sample of `timer` each 997 µs. What a run costs besides is in the shorter one, too.
const SAMPLES: [&str; 2] = ["200", "800"];
/// In virtual time, between both. An instruction of whichever CPU is a nanosecond, and under
/// load one CPU at least has work.
const INSTRUCTIONS: f64 = 600.0 * 997_000.0;

fn main() -> Result<()> {
    let scratch = Scratch::new();
    let suite = |samples: &str| {
        let step = format!("[[step]]\nprobe = \"timer\"\nload = \"stress\"\nsamples = {samples}\n");
        scratch.suite(&format!("of-{samples}"), &[], &step)
    };
    let suites = SAMPLES.map(suite);
    let cost = |cpus: &str, suite: &str| -> Result<Duration> {
        let words = [
            "run",
            suite,
            "--kernel",
            "debian-6.12-rt",
            "--cpus",
            cpus,
            "--quiet",
        ];
        Ok(spent(&mut scratch.punctual(&words))?.cpu)
    };
    let (mut one, mut four) = (vec![], vec![]);
    for _ in 0..ROUNDS {
        for (cpus, costs) in [("1", &mut one), ("4", &mut four)] {
            // The first one boots the guest.
            cost(cpus, &suites[0])?;
            costs.push(cost(cpus, &suites[1])?.saturating_sub(cost(cpus, &suites[0])?));
        }
    }
    let nanos = |costs: &[Duration]| median(costs) * 1e9 / INSTRUCTIONS;
    let (one, four) = (nanos(&one), nanos(&four));
    println!("timer under stress, CPU time for each instruction of a guest, medians of {ROUNDS}");
    println!("one CPU    {one:6.1} ns");
    println!("four CPUs  {four:6.1} ns = {:.2} times", four / one);
    figure("cpus/instruction", four / one);
    Ok(())
}

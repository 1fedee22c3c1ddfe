// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the probe `timer` costs its subject, against cyclictest at the same period: CPU time
//! and samples per second, on this machine, in turns.
//!
//! `cargo bench -p punctual-benches --bench probe_cost`, as root, after `./build`.

use std::fs;
use std::process::Command;

use anyhow::Result;
use punctual_benches::{Spent, figure, median, spent};
use punctual_tests::{Scratch, programs};

const ROUNDS: usize = 3;
const SAMPLES: u32 = 30_000;

fn main() -> Result<()> {
    let scratch = Scratch::new();
    let plan = format!(
        "[[step]]\nprobe = \"timer\"\ninterval_us = 997\ncpus = [0]\nsamples = {SAMPLES}\n"
    );
    fs::write(scratch.path("plan"), plan)?;
    let (mut ours, mut theirs) = (vec![], vec![]);
    for _ in 0..ROUNDS {
        let target = programs().join("punctual-target");
        ours.push(spent(
            Command::new(target).arg("run").arg(scratch.path("plan")),
        )?);
        let samples = format!("-l{SAMPLES}");
        let options = ["-q", "-m", "-t1", "-a0", "-p80", "-i997", &samples];
        theirs.push(spent(Command::new("cyclictest").args(options))?);
    }
    let cpu = |costs: &[Spent]| median(&costs.iter().map(|cost| cost.cpu).collect::<Vec<_>>());
    let wall = |costs: &[Spent]| median(&costs.iter().map(|cost| cost.wall).collect::<Vec<_>>());
    println!("{SAMPLES} samples, one in 997 µs, medians of {ROUNDS} rounds");
    for (name, costs) in [("timer", &ours), ("cyclictest", &theirs)] {
        let (cpu, wall) = (cpu(costs), wall(costs));
        let rate = f64::from(SAMPLES) / wall;
        println!(
            "{name:10}  {rate:6.0} samples/s  {:5.2} % of a CPU",
            100.0 * cpu / wall
        );
    }
    println!(
        "timer / cyclictest: {:.2} times the rate, {:.2} times the CPU time",
        wall(&theirs) / wall(&ours),
        cpu(&ours) / cpu(&theirs)
    );
    figure("probe_cost/rate", wall(&theirs) / wall(&ours));
    figure("probe_cost/cpu", cpu(&ours) / cpu(&theirs));
    Ok(())
}

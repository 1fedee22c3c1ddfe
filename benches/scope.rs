// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the scope costs, in time and memory: the plain run, the run with a plugin that watches
//! next to nothing, a story of many samples, the survey, every arrival, and every arrival with ten
//! aimed samples, in turns.
//!
//! `cargo bench -p punctual-benches --bench scope`, after `./build` and
//! `punctual kernel fetch debian-6.12`.

use std::time::Duration;

use anyhow::Result;
use punctual_benches::{Cost, figure, median, time, watch};
use punctual_tests::Scratch;

const ROUNDS: usize = 3;

/// The last sample of the run is watched, so that all of it is repeated.
const SAMPLES: u32 = 3000;

fn main() -> Result<()> {
    let scratch = Scratch::new();
    let suite = format!(
        "name = \"scope\"\nsummary = \"\"\n[[step]]\nprobe = \"timer\"\nload = \"stress\"\n\
         samples = {SAMPLES}\n"
    );
    let suite = scratch.file("scope.toml", suite);
    let run = ["run", &suite, "--kernel", "debian-6.12"];
    let last = (SAMPLES - 1).to_string();
    let commands: [(&str, &[&str]); 6] = [
        ("punctual run", &run),
        (
            "explain, the last sample",
            &["explain", "r1", "--sample", &last],
        ),
        (
            "explain, the 100 worst",
            &["explain", "r1", "--worst", "100"],
        ),
        ("survey", &["survey", "r1"]),
        ("arrivals", &["arrivals", "r1", "--again"]),
        (
            "arrivals, ten aims",
            &["arrivals", "r1", "--again", "--aim", "10"],
        ),
    ];
    // What is made once and kept: the booted guest, its symbols.
    time(&mut scratch.punctual(&run))?;
    time(&mut scratch.punctual(&["explain", "r1"]))?;
    let mut costs = vec![Vec::new(); commands.len()];
    for round in 0..ROUNDS {
        eprintln!("round {} of {ROUNDS}", round + 1);
        for ((_, command), costs) in commands.iter().zip(&mut costs) {
            costs.push(watch(&mut scratch.punctual(command))?);
        }
    }
    println!("medians of {ROUNDS} rounds, wake-up latency under stress, {SAMPLES} samples");
    println!(
        "{:25} {:>16} {:>14} {:>14}",
        "", "seconds", "punctual", "QEMU"
    );
    let plain = seconds(&costs[0]);
    for ((name, _), costs) in commands.iter().zip(&costs) {
        let (seconds, most) = (seconds(costs), |of: fn(&Cost) -> u64| {
            costs.iter().map(of).max()
        });
        println!(
            "{name:25} {seconds:7.2} = {:4.2} x {:>10} MiB {:>10} MiB",
            seconds / plain,
            most(|cost| cost.mib).unwrap_or_default(),
            most(|cost| cost.children_mib).unwrap_or_default(),
        );
        figure(&format!("scope/{name}"), seconds / plain);
    }
    Ok(())
}

fn seconds(costs: &[Cost]) -> f64 {
    let times = costs
        .iter()
        .map(|cost| Duration::from_secs_f64(cost.seconds));
    median(&times.collect::<Vec<_>>())
}

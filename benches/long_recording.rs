// SPDX-License-Identifier: MIT OR Apache-2.0
//! What long recordings take: memory of target, store and report, and how long a page takes.
//!
//! `cargo bench -p punctual-benches --bench long_recording`, after `./build`; as root.

use std::process::Command;

use anyhow::Result;
use punctual_benches::{Cost, figure, peak_mib, watch};
use punctual_model::recording::KEEP_MOST;
use punctual_tests::{Scratch, long, programs};

const LONG: u64 = 100_000_000;

fn main() -> Result<()> {
    println!("target, probe clock (two recordings of N samples)");
    for (samples, keep) in [
        (10_000, 10_000),
        (10_000_000, 1_000_000),
        (100_000_000, 1_000_000),
    ] {
        let (mib, seconds) = target(samples, keep)?;
        println!("  N = {samples:>11}, {keep:>10} kept  {mib:6} MiB  {seconds:6.2} s");
        figure(
            &format!("long_recording/target-{samples}-{keep}-mib"),
            mib as f64,
        );
    }
    println!("punctual show --report, one recording of {LONG} samples");
    for keep in [0, 1_000_000, KEEP_MOST] {
        let scratch = Scratch::new();
        let path = scratch.path("runs.db");
        let before = peak_mib(std::process::id());
        long::store(&path, LONG, keep)?;
        let stored = peak_mib(std::process::id());
        let size = std::fs::metadata(&path)?.len() >> 20;
        let db = path.to_string_lossy().into_owned();
        let report = scratch.path("report.html").to_string_lossy().into_owned();
        let mut show = scratch.punctual(&["show", "r1", "--db", &db, "--report", &report]);
        let Cost { mib, seconds, .. } = watch(&mut show)?;
        println!(
            "  {keep:>10} kept  {mib:6} MiB  {seconds:6.2} s  store {size} MiB on disk, {} MiB to write",
            stored - before
        );
        figure(&format!("long_recording/show-{keep}-mib"), mib as f64);
    }
    Ok(())
}

/// The target's peak memory for a recording of so many samples, and the time that it took.
fn target(samples: u64, keep: u32) -> Result<(u64, f64)> {
    let scratch = Scratch::new();
    let plan = format!("[[step]]\nprobe = \"clock\"\nsamples = {samples}\nkeep = {keep}\n");
    let plan = scratch.file("plan.toml", plan);
    let mut command = Command::new(programs().join("punctual-target"));
    let cost = watch(command.args(["run", &plan]))?;
    Ok((cost.mib, cost.seconds))
}

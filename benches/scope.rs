//! What the scope costs: the plain run, the run with a plugin that watches next to nothing,
//! and the survey, in turns.
//!
//! `cargo bench -p punctual-benches --bench scope`, after `./build` and
//! `punctual kernel fetch debian-6.12`.

use anyhow::Result;
use punctual_benches::{median, time};
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
    let (mut plain, mut explain, mut survey) = (vec![], vec![], vec![]);
    // What is made once and kept: the booted guest, its symbols.
    time(&mut scratch.punctual(&run))?;
    time(&mut scratch.punctual(&["explain", "r1"]))?;
    for round in 0..ROUNDS {
        eprintln!("round {} of {ROUNDS}", round + 1);
        plain.push(time(&mut scratch.punctual(&run))?);
        explain.push(time(
            &mut scratch.punctual(&["explain", "r1", "--sample", &last]),
        )?);
        survey.push(time(&mut scratch.punctual(&["survey", "r1"]))?);
    }
    let (plain, explain, survey) = (median(&plain), median(&explain), median(&survey));
    println!("medians of {ROUNDS} rounds, wake-up latency under stress, {SAMPLES} samples");
    println!("punctual run                {plain:6.2} s");
    println!(
        "explain, the last sample    {explain:6.2} s  = {:.2} times",
        explain / plain
    );
    println!(
        "survey                      {survey:6.2} s  = {:.2} times",
        survey / plain
    );
    Ok(())
}

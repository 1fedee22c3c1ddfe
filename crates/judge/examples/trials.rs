// SPDX-License-Identifier: MIT OR Apache-2.0
//! Prints how often each rule is wrong, and how often it finds what is there:
//! `cargo run --release -p punctual-judge --example trials [TRIALS]`.

use punctual_judge::trials::{ALL, EFFECTS, Share};

fn main() {
    let given = std::env::args().nth(1).map(|word| word.parse());
    let trials: u64 = match given {
        None => 10_000,
        Some(Ok(trials)) if trials > 0 => trials,
        Some(_) => {
            eprintln!("expected the number of trials, such as 10000");
            std::process::exit(2);
        }
    };
    println!("| rule | wrong, at most 5 % | 1.2 | 1.5 | 2 | 5 |");
    println!("|---|---|---|---|---|---|");
    for (trial, seed) in ALL.iter().zip((1..).step_by(EFFECTS.len() + 1)) {
        let alarms = trial.share(1.0, trials, seed);
        let (low, high) = alarms.interval;
        let wrong = format!(
            "{} ({} to {})",
            percent(alarms.value),
            percent(low),
            percent(high)
        );
        let found = EFFECTS.iter().zip(seed + 1..);
        let found = found.map(|(effect, seed)| trial.share(*effect, trials, seed));
        let found: Vec<String> = found.map(|Share { value, .. }| percent(value)).collect();
        println!("| {} | {wrong} | {} |", trial.name, found.join(" | "));
    }
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Prints how often each rule is wrong, and how often it finds what is there:
//! `cargo run --release -p punctual-judge --example trials [TRIALS]`; of extreme values
//! `… --example trials tails [TRIALS]`.

use punctual_judge::trials::{ALL, EFFECTS, Share, TAILS};

fn main() {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    let is_tails = words.first().is_some_and(|word| word == "tails");
    if is_tails {
        words.remove(0);
    }
    let trials: u64 = match words.iter().map(|word| word.parse()).collect::<Vec<_>>()[..] {
        [] if is_tails => 400,
        [] => 10_000,
        [Ok(trials)] if trials > 0 => trials,
        _ => {
            eprintln!("expected the number of trials, such as 10000; before it tails, or nothing");
            std::process::exit(2);
        }
    };
    if is_tails {
        tails(trials);
    } else {
        rules(trials);
    }
}

fn rules(trials: u64) {
    println!("| rule | wrong, at most 5 % | 1.2 | 1.5 | 2 | 5 |");
    println!("|---|---|---|---|---|---|");
    for (trial, seed) in ALL.iter().zip((1..).step_by(EFFECTS.len() + 1)) {
        let wrong = with_interval(&trial.share(1.0, trials, seed));
        let found = EFFECTS.iter().zip(seed + 1..);
        let found = found.map(|(effect, seed)| trial.share(*effect, trials, seed));
        let found: Vec<String> = found.map(|Share { value, .. }| percent(value)).collect();
        println!("| {} | {wrong} | {} |", trial.name, found.join(" | "));
    }
}

fn tails(trials: u64) {
    println!("| 10,000 samples | refused | once in 10,000 is in the interval | once in 100,000 |");
    println!("|---|---|---|---|");
    for (trial, seed) in TAILS.iter().zip(1..) {
        let found = trial.shares(trials, seed);
        let contained = found.contained.map_or_else(
            || "to be refused | to be refused".to_owned(),
            |contained| contained.each_ref().map(with_interval).join(" | "),
        );
        println!(
            "| {} | {} | {contained} |",
            trial.name,
            with_interval(&found.refused)
        );
    }
}

fn with_interval(share: &Share) -> String {
    let (low, high) = share.interval;
    format!(
        "{} ({} to {})",
        percent(share.value),
        percent(low),
        percent(high)
    )
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

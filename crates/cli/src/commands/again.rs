// SPDX-License-Identifier: MIT OR Apache-2.0
//! A command that continues where this one ends.

use punctual_model::Nanos;
use punctual_report::repeat::quoted;

/// This command again.
pub fn again() -> String {
    repeated(own_words(), &[])
}

/// This command again, with a budget of `minutes` in place of these options.
pub fn within(minutes: u64, replaced: &[&str]) -> String {
    let command = repeated(own_words(), replaced);
    format!("{command} --budget {minutes}m")
}

/// Twice the budget that was not enough; 20 minutes if there was none.
pub fn further_minutes(budget: Option<Nanos>) -> u64 {
    budget.map_or(20, |budget| {
        let minutes = budget.0 as f64 / 60e9;
        (2.0 * minutes).ceil().max(1.0) as u64
    })
}

/// The words of this command, after its name.
fn own_words() -> impl Iterator<Item = String> {
    let words = std::env::args_os().skip(1);
    words.map(|word| word.to_string_lossy().into_owned())
}

/// The words, without these options and their values.
fn repeated(mut words: impl Iterator<Item = String>, without: &[&str]) -> String {
    let mut all = vec!["punctual".to_owned()];
    while let Some(word) = words.next() {
        let (option, value) = word
            .split_once('=')
            .map_or((&*word, None), |(option, value)| (option, Some(value)));
        match (without.contains(&option), value) {
            (true, None) => drop(words.next()),
            (true, Some(_)) => {}
            (false, _) => all.push(quoted(&word)),
        }
    }
    all.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_stands_in_place_of_seeds_and_of_another() {
        let of =
            |words: &str, without: &[&str]| repeated(words.split(' ').map(str::to_owned), without);
        let words = "judge demo --seeds 5 --limits a.toml --budget=3m";
        let without = of(words, &["--seeds", "--budget"]);
        assert_eq!(without, "punctual judge demo --limits a.toml");
        assert_eq!(of(words, &[]), format!("punctual {words}"));
        assert_eq!(further_minutes(Some(Nanos::from_millis(90_000))), 3);
    }
}

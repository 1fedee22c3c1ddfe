//! The commands that repeat runs: they lead to the same digests.

use std::collections::BTreeMap;

use punctual_model::run::Run;

use crate::matrix::Matrix;

/// The commands that repeat these runs, a line for each subject; its seeds in one.
pub fn commands(runs: &[Run]) -> Vec<String> {
    let matrix = Matrix::new(runs);
    let mut commands: BTreeMap<(usize, String), Vec<u64>> = BTreeMap::new();
    for (number, column) in matrix.columns.iter().enumerate() {
        for run in &column.runs {
            let seeds = commands.entry((number, command(run))).or_default();
            seeds.push(run.seed);
        }
    }
    let all = commands.into_iter();
    all.map(|((_, command), seeds)| format!("{command} {}", option(&seeds)))
        .collect()
}

fn command(run: &Run) -> String {
    let mut words = vec!["punctual run".to_owned(), quoted(&run.suite)];
    if !run.is_virtual() {
        words.push("--bench host".to_owned());
        return words.join(" ");
    }
    words.push(format!("--kernel {}", quoted(&run.subject.kernel)));
    if !run.subject.boot.is_empty() {
        words.push(format!("--boot {}", quoted(&run.subject.boot)));
    }
    if let Some(ns @ 2..) = run.ns_per_insn() {
        words.push(format!("--ns-per-insn {ns}"));
    }
    words.join(" ")
}

/// `--seed 1`, `--seeds 2..5`, `--seeds 1,7`.
fn option(seeds: &[u64]) -> String {
    let mut seeds = seeds.to_vec();
    seeds.sort_unstable();
    seeds.dedup();
    match seeds.as_slice() {
        [seed] => format!("--seed {seed}"),
        [first, .., last] if last - first + 1 == seeds.len() as u64 => {
            format!("--seeds {first}..{last}")
        }
        seeds => {
            let seeds: Vec<String> = seeds.iter().map(ToString::to_string).collect();
            format!("--seeds {}", seeds.join(","))
        }
    }
}

/// A word that a shell takes as it is.
pub fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=,:+".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;

    #[test]
    fn seeds_of_a_subject_are_one_command() {
        assert_eq!(option(&[5, 2, 4, 3]), "--seeds 2..5");
        assert_eq!(option(&[1, 7]), "--seeds 1,7");
        let commands = commands(&fixtures::seeds(3));
        assert_eq!(commands.len(), 4);
        let first =
            "punctual run demo --kernel debian-6.12.90-amd64 --boot preempt=none --seeds 1..3";
        assert_eq!(commands[0], first);
    }

    #[test]
    fn a_word_stays_a_word() {
        assert_eq!(quoted("preempt=none"), "preempt=none");
        assert_eq!(quoted("a b'c"), "'a b'\\''c'");
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The commands that repeat runs: they lead to the same digests.

use punctual_model::MachineRecord;
use punctual_model::machine::HostMachine;
use punctual_model::run::Run;

/// Returns the commands that repeat these runs.
/// There is one for all subjects of a suite if all of them were asked for, else one for each; the
/// seeds of a subject share one. No command repeats imported runs. Runs with an option's setup in
/// the guest need the file that has the option.
pub fn commands(runs: &[Run]) -> Vec<String> {
    let mut groups: Vec<SameCommand> = Vec::new();
    let mut ablations: Vec<String> = Vec::new();
    for run in runs.iter().filter(|run| !run.is_imported()) {
        if is_set_up(run) {
            let what = what(run);
            let suite = if what.starts_with("--") {
                ""
            } else {
                "--suite "
            };
            let command = format!("punctual ablate --kernel BASE {suite}{what} --options FILE");
            if !ablations.contains(&command) {
                ablations.push(command);
            }
            continue;
        }
        let (what, options) = (what(run), options(run));
        let same = |group: &SameCommand| group.what == what && group.options == options;
        let number = groups.iter().position(same).unwrap_or(groups.len());
        if number == groups.len() {
            groups.push(SameCommand {
                what,
                options,
                all_subjects: run.request.all_subjects,
                subjects: Vec::new(),
            });
        }
        groups[number].add(subject(run), run.seed);
    }
    let commands = groups.iter().flat_map(SameCommand::commands);
    commands.chain(ablations).collect()
}

/// Returns true if commands of an option ran in its guest, which no option of `punctual run` does.
fn is_set_up(run: &Run) -> bool {
    run.plan.contains(SETUP_UNIT)
}

/// The unit of the worker that waits for such commands, as a plan has it.
const SETUP_UNIT: &str = "unit = \"beats\"";

/// The commands that measure so many further runs of each, with seeds that none of them has.
pub fn further(runs: &[Run], more: usize) -> Vec<String> {
    let Some(last) = runs.iter().map(|run| run.seed).max() else {
        return Vec::new();
    };
    let mut subjects: Vec<&Run> = Vec::new();
    for run in runs.iter().filter(|run| !is_set_up(run)) {
        if !subjects.iter().any(|one| subject(one) == subject(run)) {
            subjects.push(run);
        }
    }
    let of_seed = |seed: u64| {
        subjects.iter().map(move |run| Run {
            seed,
            ..(*run).clone()
        })
    };
    let all: Vec<Run> = (1..=more as u64)
        .flat_map(|more| of_seed(last + more))
        .collect();
    commands(&all)
}

/// Runs that differ in subject and seed only.
struct SameCommand {
    what: String,
    options: String,
    all_subjects: Option<u32>,
    /// The subjects, in words, with their seeds.
    subjects: Vec<(String, Vec<u64>)>,
}

impl SameCommand {
    fn add(&mut self, subject: String, seed: u64) {
        match self.subjects.iter_mut().find(|(name, _)| *name == subject) {
            Some((_, seeds)) => seeds.push(seed),
            None => self.subjects.push((subject, vec![seed])),
        }
    }

    fn commands(&self) -> Vec<String> {
        let command = |subject: &str, seeds: &[u64]| {
            let words = [&self.what, subject, &self.options, &option(seeds)];
            let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
            format!("punctual run {}", words.join(" "))
        };
        let (_, seeds) = &self.subjects[0];
        let mut subjects = self.subjects.iter();
        let alike = subjects.all(|(_, other)| option(other) == option(seeds));
        if alike && self.all_subjects == Some(self.subjects.len() as u32) {
            return vec![command("", seeds)];
        }
        let each = self.subjects.iter();
        each.map(|(subject, seeds)| command(subject, seeds))
            .collect()
    }
}

fn what(run: &Run) -> String {
    words(&what_words(run))
}

/// Returns the words for what is measured; a run of an earlier version knows only the suite's name.
pub(crate) fn what_words(run: &Run) -> Vec<String> {
    if run.request.what.is_empty() {
        return vec![run.suite.clone()];
    }
    run.request.what.clone()
}

fn subject(run: &Run) -> String {
    if !run.request.subject.is_empty() {
        return words(&run.request.subject);
    }
    if !run.is_virtual() {
        return String::new();
    }
    let kernel = format!("--kernel {}", quoted(&run.subject.kernel));
    if run.subject.boot.is_empty() {
        return kernel;
    }
    format!("{kernel} --boot {}", quoted(&run.subject.boot))
}

fn options(run: &Run) -> String {
    words(&option_words(run))
}

/// The options for amount and manner, and for the bench if it is not the usual one.
pub(crate) fn option_words(run: &Run) -> Vec<String> {
    let mut options = run.request.options.clone();
    match run.clock().map(|clock| clock.ns_per_insn) {
        Some(ns @ 2..) => options.extend(["--ns-per-insn".to_owned(), ns.to_string()]),
        Some(_) => {}
        None => options.extend(["--bench".to_owned(), bench(&run.machine)]),
    }
    options
}

/// A real machine, as `--bench` names it.
fn bench(machine: &MachineRecord) -> String {
    match machine {
        MachineRecord::Host(HostMachine { ssh: Some(ssh), .. }) if is_place(ssh) => ssh.clone(),
        MachineRecord::Host(HostMachine { ssh: Some(ssh), .. }) => format!("ssh:{ssh}"),
        other => other.bench().to_owned(),
    }
}

/// Returns true if it is a place of labgrid, and not a directory on a machine of that name.
fn is_place(ssh: &str) -> bool {
    let place = ssh.strip_prefix("labgrid:");
    place.is_some_and(|place| !place.starts_with('/'))
}

fn words(words: &[String]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    quoted.join(" ")
}

/// `--seed 1`, `--seeds 2..5`, `--seeds 1,7`.
fn option(seeds: &[u64]) -> String {
    seed_words(seeds).join(" ")
}

/// The same as words.
pub(crate) fn seed_words(seeds: &[u64]) -> [String; 2] {
    let mut seeds = seeds.to_vec();
    seeds.sort_unstable();
    seeds.dedup();
    match seeds.as_slice() {
        [seed] => ["--seed".to_owned(), seed.to_string()],
        [first, .., last] if last - first + 1 == seeds.len() as u64 => {
            ["--seeds".to_owned(), format!("{first}..{last}")]
        }
        seeds => {
            let seeds: Vec<String> = seeds.iter().map(ToString::to_string).collect();
            ["--seeds".to_owned(), seeds.join(",")]
        }
    }
}

/// Quotes a word so that a shell takes it unchanged.
pub fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=,:+@".contains(c);
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
    fn what_was_set_up_in_a_guest_takes_the_file_of_options() {
        let mut runs = fixtures::seeds(3);
        let usual = commands(&runs);
        for run in &mut runs {
            run.plan = format!("[[loads.stress.worker]]\n{SETUP_UNIT}\n");
        }
        assert_eq!(
            commands(&runs),
            ["punctual ablate --kernel BASE --suite demo --options FILE"]
        );
        assert_eq!(further(&runs, 1), [""; 0]);
        assert!(usual[0].starts_with("punctual run "), "{usual:?}");
    }

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
    fn further_runs_have_seeds_that_none_has() {
        let runs = fixtures::seeds(3);
        let of_first: Vec<Run> = runs
            .iter()
            .filter(|run| run.subject.boot == "preempt=none")
            .cloned()
            .collect();
        let first =
            "punctual run demo --kernel debian-6.12.90-amd64 --boot preempt=none --seeds 4..9";
        assert_eq!(further(&of_first, 6), [first]);
        assert_eq!(further(&runs, 1).len(), 4, "one for each subject");
        assert!(further(&[], 1).is_empty() && further(&runs, 0).is_empty());
    }

    #[test]
    fn what_was_asked_for_is_asked_for_again() {
        let mut runs = fixtures::seeds(2);
        for run in &mut runs {
            run.request.what = vec!["/home/me/my loop.toml".into()];
            run.request.subject = vec!["--subject".into(), run.subject.name.clone()];
            run.request.options = vec!["--samples".into(), "50".into()];
            run.request.all_subjects = Some(4);
        }
        let all = "punctual run '/home/me/my loop.toml' --samples 50 --seeds 1..2";
        assert_eq!(commands(&runs), [all]);
        let one = commands(&runs[..1]);
        let expected = "punctual run '/home/me/my loop.toml' --subject none --samples 50 --seed 1";
        assert_eq!(one, [expected], "not all subjects, where one is shown");
    }

    #[test]
    fn a_run_in_real_time_is_repeated_in_real_time() {
        let mut run = fixtures::run("host", 1);
        run.machine = punctual_model::MachineRecord::default();
        let expected = "punctual run demo --bench host --seed 1";
        assert_eq!(commands(&[run.clone()]), [expected]);
        run.machine = MachineRecord::Host(HostMachine {
            ssh: Some("root@board".into()),
            ..HostMachine::default()
        });
        let expected = "punctual run demo --bench ssh:root@board --seed 1";
        assert_eq!(commands(&[run.clone()]), [expected]);
        for (ssh, bench) in [
            ("labgrid:rack1:/data", "labgrid:rack1:/data"),
            ("labgrid:/data", "ssh:labgrid:/data"),
        ] {
            run.machine = MachineRecord::Host(HostMachine {
                ssh: Some(ssh.into()),
                ..HostMachine::default()
            });
            let expected = format!("punctual run demo --bench {bench} --seed 1");
            assert_eq!(commands(&[run.clone()]), [expected]);
        }
    }

    #[test]
    fn a_word_stays_a_word() {
        assert_eq!(quoted("preempt=none"), "preempt=none");
        assert_eq!(quoted("a b'c"), "'a b'\\''c'");
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;
use crate::fixtures;
use punctual_model::MachineRecord;

fn pick(runs: &[Run], names: &[&str]) -> Vec<Run> {
    let chosen = names
        .iter()
        .flat_map(|name| runs.iter().filter(move |run| run.subject.name == *name));
    chosen.cloned().collect()
}

#[test]
fn two_subjects_read_as_the_demo_does() {
    let runs = pick(&fixtures::whole(), &["none", "rt"]);
    assert_eq!(
        summary(&runs),
        "Under load (stress), the worst wake-up latency was 8.07 µs on rt and 381 µs on none: \
         rt is 47 times lower. hackbench over pipes took 0.301 s on rt and 0.101 s on none: \
         3.0 times as long."
    );
}

#[test]
fn the_order_of_subjects_turns_nothing_round() {
    let runs = pick(&fixtures::whole(), &["rt", "none"]);
    assert_eq!(
        summary(&runs),
        summary(&pick(&fixtures::whole(), &["none", "rt"]))
    );
}

#[test]
fn a_third_subject_that_is_worse_is_not_kept_back() {
    let text = summary(&fixtures::whole());
    assert!(text.contains("8.07 µs on rt and 381 µs on none"), "{text}");
    assert!(text.contains("The highest was 508 µs on full."), "{text}");
}

#[test]
fn the_other_direction_comes_out_the_other_way_round() {
    let mut runs = pick(&fixtures::whole(), &["none", "rt"]);
    let (first, second) = runs.split_at_mut(1);
    std::mem::swap(&mut first[0].recordings, &mut second[0].recordings);
    let text = summary(&runs);
    assert!(
        text.contains("8.07 µs on none and 381 µs on rt: none is 47 times lower."),
        "{text}"
    );
    assert!(
        text.contains("0.301 s on none and 0.101 s on rt: 3.0 times as long."),
        "{text}"
    );
}

#[test]
fn both_better_is_said_too() {
    let mut runs = pick(&fixtures::whole(), &["none", "rt"]);
    let (first, second) = runs.split_at_mut(1);
    std::mem::swap(&mut first[0].recordings[2], &mut second[0].recordings[2]);
    let text = summary(&runs);
    assert!(
        text.contains("0.101 s on rt and 0.301 s on none: 3.0 times as fast."),
        "{text}"
    );
}

#[test]
fn small_differences_are_percentages_and_equal_ones_the_same() {
    let runs = pick(&fixtures::whole(), &["none", "voluntary"]);
    let text = summary(&runs);
    assert!(
        text.contains("381 µs on none and 384 µs on voluntary: none is 0.7 % lower."),
        "{text}"
    );
    assert!(
        text.contains("0.101 s on none and 0.104 s on voluntary: 2.9 % less."),
        "{text}"
    );
    let mut runs = runs;
    runs[1].recordings = runs[0].recordings.clone();
    // Equal values: there is no lowest to speak of.
    let text = summary(&runs);
    assert!(
        text.contains("381 µs on none and 381 µs on voluntary: the same."),
        "{text}"
    );
}

#[test]
fn one_subject_is_compared_with_nothing() {
    assert_eq!(
        summary(&[fixtures::run("rt", 1)]),
        "Under load (stress), the worst wake-up latency was 8.07 µs on rt. \
         hackbench over pipes took 0.301 s on rt."
    );
}

#[test]
fn seeds_are_told_once_or_each() {
    let text = summary(&fixtures::seeds(5));
    assert!(
        text.contains("the worst wake-up latency over 5 seeds was 8.07 µs on rt"),
        "{text}"
    );
    let mut runs = fixtures::seeds(5);
    runs.truncate(16);
    let text = summary(&runs);
    assert!(
        text.contains("on rt (1 seed) and 381 µs on none (5 seeds)"),
        "{text}"
    );
}

#[test]
fn what_is_missing_is_said() {
    let text = summary(&fixtures::with_gaps());
    assert!(
        text.contains("On full with seed 1, the run failed: "),
        "{text}"
    );
    assert!(text.contains("Not everywhere supported: irq."), "{text}");
    assert!(!text.contains("508"), "{text}");
}

#[test]
fn clocks_are_not_compared() {
    let mut runs = pick(&fixtures::whole(), &["none", "rt"]);
    runs[1].machine = MachineRecord::default();
    let text = summary(&runs);
    assert!(
        text.contains("In virtual time (1 ns per instruction): Under load"),
        "{text}"
    );
    assert!(text.contains("In real time: Under load"), "{text}");
    assert!(!text.contains("times lower"), "{text}");
}

#[test]
fn nothing_is_said_of_nothing() {
    assert_eq!(summary(&[]), "There are no runs.");
    let mut run = fixtures::run("rt", 1);
    run.recordings.clear();
    assert_eq!(summary(&[run]), "Nothing was measured.");
}

#[test]
fn findings_are_spoken_of_and_nothing_is_claimed_that_was_not_measured() {
    let mut runs = fixtures::all_probes();
    let text = summary(&runs);
    assert!(!text.contains("wake-up latency"), "{text}");
    for part in [
        "When idle, the worst jitter of a periodic interrupt was 12.1 µs",
        "Mutexes with inherit and protect prevented priority inversion on none and rt; \
         without protocol it came about, as it must.",
        "Interrupts are all handled in threads on rt and not all handled in threads on none.",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    runs[1].recordings[2].findings.clear();
    runs[1].recordings[1].findings.clear();
    let text = summary(&runs);
    let unknown = "Not as it must be, or unknown: inversion, idle, inherit on rt.";
    assert!(
        text.contains(unknown) && !text.contains("prevented"),
        "{text}"
    );
    assert!(text.contains("handled in an unknown way on rt"), "{text}");
}

#[test]
fn a_pass_without_its_control_proves_nothing() {
    let mut runs = fixtures::all_probes();
    for run in &mut runs {
        let kept = |recording: &punctual_model::Recording| {
            recording.key.probe == "inversion" && recording.key.variant != "none"
        };
        run.recordings.retain(kept);
    }
    assert_eq!(
        summary(&runs),
        "Whether mutexes prevent priority inversion is unknown."
    );
}

#[test]
fn findings_without_a_sentence_are_not_nothing() {
    let mut runs = fixtures::all_probes();
    runs.truncate(1);
    runs[0].recordings.truncate(1);
    assert_eq!(summary(&runs), "What was found stands in the table.");
}

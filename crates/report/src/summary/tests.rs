// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;
use crate::fixtures::{self, assert_has};
use punctual_model::{MachineRecord, Recording};

fn pick(runs: &[Run], names: &[&str]) -> Vec<Run> {
    let chosen = names
        .iter()
        .flat_map(|name| runs.iter().filter(move |run| run.subject.name == *name));
    chosen.cloned().collect()
}

#[test]
fn two_subjects_read_as_the_demo_does() {
    let runs = pick(&fixtures::seeds(5), &["none", "rt"]);
    let text = summary(&runs);
    let parts = [
        "Under load (stress), the worst wake-up latency over 5 seeds was 8.07 µs on rt and 381 µs \
         on none: run by run, rt is 47 times lower (",
        ") with 95 % confidence. hackbench over pipes took 0.302 s on rt and 0.102 s on none: run \
         by run, rt takes 3.0 times as long (",
    ];
    assert_has(&text, &parts);
}

#[test]
fn one_seed_is_no_verdict() {
    let runs = pick(&fixtures::whole(), &["none", "rt"]);
    assert_eq!(
        summary(&runs),
        "Under load (stress), the worst wake-up latency was 8.07 µs on rt and 381 µs on none: \
         no verdict from 1 seed of each, 5 are needed (--seeds 1..5). hackbench over pipes took \
         0.301 s on rt and 0.101 s on none: no verdict from 1 seed of each, 5 are needed (--seeds \
         1..5)."
    );
}

#[test]
fn imported_runs_lack_files_and_no_seeds() {
    let mut runs = pick(&fixtures::whole(), &["none", "rt"]);
    for run in &mut runs {
        run.machine = MachineRecord::default();
        let provenance = run.provenance.as_mut().unwrap();
        let imported = punctual_model::run::IMPORTED.to_owned();
        provenance.facts.insert(imported, "board.txt".into());
    }
    let text = summary(&runs);
    let expected = "no verdict from 1 file of each, 5 files of each machine are needed";
    assert!(
        !text.contains("--seeds") && !text.contains("seed"),
        "{text}"
    );
    assert_has(&text, &[expected]);
}

#[test]
fn the_order_of_subjects_turns_nothing_round() {
    let of = |names: [&str; 2]| summary(&pick(&fixtures::seeds(5), &names));
    assert_eq!(of(["rt", "none"]), of(["none", "rt"]));
}

#[test]
fn a_third_subject_that_is_worse_is_not_kept_back() {
    let text = summary(&fixtures::whole());
    let parts = [
        "8.07 µs on rt and 381 µs on none",
        "The highest was 508 µs on full.",
    ];
    assert_has(&text, &parts);
}

#[test]
fn the_other_direction_comes_out_the_other_way_round() {
    let mut runs = pick(&fixtures::seeds(5), &["none", "rt"]);
    let (first, second) = runs.split_at_mut(5);
    for (one, other) in first.iter_mut().zip(second) {
        std::mem::swap(&mut one.recordings, &mut other.recordings);
    }
    let text = summary(&runs);
    let parts = [
        "8.07 µs on none and 381 µs on rt: run by run, none is 47 times lower (",
        "on rt: run by run, none takes 3.0 times as long (",
    ];
    assert_has(&text, &parts);
}

#[test]
fn both_better_is_said_too() {
    let mut runs = pick(&fixtures::seeds(5), &["none", "rt"]);
    let (first, second) = runs.split_at_mut(5);
    for (one, other) in first.iter_mut().zip(second) {
        std::mem::swap(&mut one.recordings[2], &mut other.recordings[2]);
    }
    let text = summary(&runs);
    assert_has(&text, &["run by run, rt is 3.0 times as fast ("]);
}

#[test]
fn what_is_not_separated_is_not_called_lower() {
    let runs = pick(&fixtures::seeds(5), &["none", "voluntary"]);
    let text = summary(&runs);
    let parts = [
        "381 µs on none and 384 µs on voluntary: none and voluntary are not separated",
        "run by run, none takes 2.9 % less (",
    ];
    assert_has(&text, &parts);
    assert!(!text.contains("lower"), "{text}");
    let mut runs = runs;
    let (first, second) = runs.split_at_mut(5);
    for (one, other) in first.iter().zip(second) {
        other.recordings.clone_from(&one.recordings);
    }
    let text = summary(&runs);
    let part = "381 µs on none and on voluntary: the same, to the last sample.";
    assert_has(&text, &[part]);
}

/// Five seeds each of none and rt, on two CPUs: `second` makes what the second one took under load.
fn on_two_cpus(second: impl Fn(&Run) -> Recording) -> Vec<Run> {
    let mut runs = pick(&fixtures::seeds(5), &["none", "rt"]);
    for run in &mut runs {
        let mut recording = second(run);
        recording.key.variant = "cpu1".into();
        run.recordings.push(recording);
    }
    runs
}

/// What the first CPU of rt took under load, so many times; that of none as it is.
fn of_rt_times(times: i64) -> impl Fn(&Run) -> Recording {
    move |run: &Run| match run.subject.name.as_str() {
        "rt" => fixtures::changed(&run.recordings[1], &|ns| ns * times),
        _ => run.recordings[1].clone(),
    }
}

#[test]
fn a_verdict_beside_figures_of_all_cpus_is_that_of_the_smallest_effect() {
    let text = summary(&on_two_cpus(of_rt_times(10)));
    let part = "80.7 µs on rt and 381 µs on none: run by run, rt is 4.7 times lower (";
    assert_has(&text, &[part]);
}

#[test]
fn cpus_that_say_opposite_things_are_told_one_by_one() {
    let text = summary(&on_two_cpus(of_rt_times(100)));
    let part = "381 µs on none and 807 µs on rt: run by run, none is lower on cpu1 and higher on \
                cpu0 with 95 % confidence.";
    assert_has(&text, &[part]);
}

#[test]
fn a_cpu_that_is_not_separated_hides_no_other_that_is() {
    // On the second CPU both have the same five figures, of other seeds.
    let alike = |run: &Run| {
        let seed = match run.subject.name.as_str() {
            "rt" => 6 - run.seed,
            _ => run.seed,
        };
        fixtures::run("none", seed).recordings.swap_remove(1)
    };
    let text = summary(&on_two_cpus(alike));
    let part = "381 µs on none and on rt: run by run, none is higher on cpu0 with 95 % confidence; \
                none and rt are not separated on cpu1";
    assert_has(&text, &[part]);
}

#[test]
fn a_cpu_that_behaved_the_same_is_told_beside_one_that_did_not() {
    let same = |_: &Run| fixtures::run("rt", 1).recordings.swap_remove(1);
    let text = summary(&on_two_cpus(same));
    let part = "8.07 µs on rt and 381 µs on none: run by run, rt is lower on cpu0 with 95 % \
                confidence; the same on cpu1, to the last sample.";
    assert_has(&text, &[part]);
}

#[test]
fn a_cpu_that_one_side_has_not_measured_is_told_beside_the_others() {
    let mut runs = on_two_cpus(of_rt_times(10));
    for run in runs.iter_mut().filter(|run| run.subject.name == "rt") {
        run.recordings.pop();
    }
    let part = "8.07 µs on rt and 381 µs on none: run by run, rt is lower on cpu0 with 95 % \
                confidence; no verdict on cpu1, as no run of rt measured it to the end.";
    assert_has(&summary(&runs), &[part]);
    runs.retain(|run| run.seed == 1);
    let part = "8.07 µs on rt and 381 µs on none: no verdict on cpu0 from 1 seed of each, 5 are \
                needed (--seeds 1..5); no verdict on cpu1, as no run of rt measured it to the end.";
    assert_has(&summary(&runs), &[part]);
}

#[test]
fn what_each_side_lacks_is_told_of_that_side() {
    let mut runs = on_two_cpus(of_rt_times(1));
    for run in runs.iter_mut().filter(|run| run.subject.name == "none") {
        run.recordings.last_mut().unwrap().key.variant = "cpu2".into();
    }
    let part = "rt is lower on cpu0 with 95 % confidence; no verdict on cpu1, as no run of none \
                measured it to the end; no verdict on cpu2, as no run of rt measured it to the end.";
    let text = summary(&runs);
    let clauses: Vec<&str> = part.trim_end_matches('.').split("; ").collect();
    assert_has(&text, &clauses);
}

#[test]
fn a_cpu_of_another_machine_is_no_gap_here() {
    let mut runs = pick(&fixtures::seeds(5), &["none", "rt"]);
    let mut other = fixtures::run("full", 1);
    other.machine = MachineRecord::default();
    let mut recording = other.recordings[1].clone();
    recording.key.variant = "cpu1".into();
    other.recordings.push(recording);
    runs.push(other);
    let part = "8.07 µs on rt and 381 µs on none: run by run, rt is 47 times lower (";
    assert_has(&summary(&runs), &[part]);
}

#[test]
fn of_many_cpus_it_tells_how_many() {
    let row = |number: usize| {
        let verdict = if number < 5 {
            Verdict::Lower
        } else {
            Verdict::Higher
        };
        (format!("cpu{number}"), verdict)
    };
    let rows: Vec<(String, Verdict)> = (0..7).map(row).collect();
    let of = |wanted: Verdict| places(&rows, |verdict| *verdict == wanted);
    assert_eq!(of(Verdict::Lower).unwrap(), " on 5 of 7 CPUs");
    assert_eq!(of(Verdict::Higher).unwrap(), " on cpu5 and cpu6");
    assert_eq!(of(Verdict::Identical), None);
}

#[test]
fn one_subject_is_compared_with_nothing() {
    let expected = "Under load (stress), the worst wake-up latency was 8.07 µs on rt. \
        hackbench over pipes took 0.301 s on rt.";
    assert_eq!(summary(&[fixtures::run("rt", 1)]), expected);
}

#[test]
fn seeds_are_told_once_or_each() {
    let text = summary(&fixtures::seeds(5));
    let part = "the worst wake-up latency over 5 seeds was 8.07 µs on rt";
    assert_has(&text, &[part]);
    let mut runs = fixtures::seeds(5);
    runs.truncate(16);
    let text = summary(&runs);
    assert_has(&text, &["on rt (1 seed) and 381 µs on none (5 seeds)"]);
}

#[test]
fn in_real_time_it_speaks_of_runs_whose_seeds_may_be_equal() {
    let mut runs = pick(&fixtures::seeds(5), &["none", "voluntary"]);
    for run in &mut runs {
        (run.seed, run.machine) = (1, MachineRecord::default());
    }
    let text = summary(&runs);
    let part = "the worst wake-up latency over 5 runs was 381 µs on none and 384 µs on voluntary: \
                none and voluntary are not separated";
    assert_has(&text, &[part]);
    assert!(!text.contains("seed"), "{text}");
    runs.truncate(6);
    let part = "381 µs on none (5 runs) and 384 µs on voluntary (1 run): no verdict from 1 run of \
                each, ";
    assert_has(&summary(&runs), &[part]);
}

#[test]
fn what_is_missing_is_said() {
    let text = summary(&fixtures::with_gaps());
    let parts = [
        "On full with seed 1, the run failed: ",
        "Not everywhere supported: irq.",
    ];
    assert_has(&text, &parts);
    assert!(!text.contains("508"), "{text}");
}

#[test]
fn clocks_are_not_compared() {
    let mut runs = pick(&fixtures::whole(), &["none", "rt"]);
    runs[1].machine = MachineRecord::default();
    let text = summary(&runs);
    let parts = [
        "In virtual time (1 ns per instruction): Under load",
        "In real time: Under load",
    ];
    assert_has(&text, &parts);
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
    let parts = [
        "When idle, the worst jitter of a periodic interrupt was 12.1 µs",
        "Mutexes with inherit and protect prevented priority inversion on none and rt; \
         without protocol it came about, as it must.",
        "Interrupts are all handled in threads on rt and not all handled in threads on none.",
    ];
    assert_has(&text, &parts);
    runs[1].recordings[2].findings.clear();
    runs[1].recordings[1].findings.clear();
    let text = summary(&runs);
    let unknown = "Not as it must be, or unknown: inversion, idle, inherit on rt.";
    assert_has(&text, &[unknown, "handled in an unknown way on rt"]);
    assert!(!text.contains("prevented"), "{text}");
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
    let unknown = "Whether mutexes prevent priority inversion is unknown.";
    assert_eq!(summary(&runs), unknown);
}

#[test]
fn findings_without_a_sentence_are_not_nothing() {
    let mut runs = fixtures::all_probes();
    runs.truncate(1);
    runs[0].recordings.truncate(1);
    assert_eq!(summary(&runs), "What was found stands in the table.");
}

#[test]
fn a_small_effect_that_was_found_is_not_told_as_none() {
    let ratio = |estimate| Interval {
        estimate,
        bounds: Some((estimate - 0.000_1, estimate + 0.000_1)),
    };
    let told = by(ratio(0.999_4), &LATENCY.lower);
    assert_eq!(told, "is 0.060 % lower (0.050 to 0.070)");
    assert_eq!(
        by(ratio(1.42), &WORK.higher),
        "takes 42 % longer (42 to 42)"
    );
    assert_eq!(
        ["0.1", "0.0", "0.0", "3.0", "47"],
        [0.12, 0.0, 100.0 * f64::EPSILON, 3.0, 47.2].map(digits)
    );
}

#[test]
fn one_more_run_is_one() {
    assert_eq!(enough(1, "seed"), "1 more seed of each is");
    assert_eq!(enough(1_200, "run"), "1,200 more runs of each are");
}

#[test]
fn a_run_of_a_machine_that_failed_is_told_by_its_id() {
    let mut runs = fixtures::with_gaps();
    runs[2].id = "r7".into();
    assert_has(&summary(&runs), &["On full with seed 1, "]);
    runs[2].machine = MachineRecord::default();
    assert_has(&summary(&runs), &["On full in r7, "]);
}

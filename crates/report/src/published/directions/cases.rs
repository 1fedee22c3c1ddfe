// SPDX-License-Identifier: MIT OR Apache-2.0
use punctual_model::arrivals::Arrivals;
use punctual_model::{MachineRecord, Nanos, Run};
use punctual_published::documents;

use super::*;
use crate::fixtures::{self, assert_has};

/// A run with so much information on itself, and samples of each of these probes and variants.
fn run(seed: u64, [name, preemption, release]: [&str; 3], all: &[(&str, &str, &[i64])]) -> Run {
    let mut run = fixtures::run(name, seed);
    run.suite = "vub".into();
    let provenance = run.provenance.as_mut().unwrap();
    (provenance.preemption, provenance.release) =
        (fixtures::preemption(preemption), release.into());
    let recording = |(probe, variant, values): &(&str, &str, &[i64])| {
        fixtures::recording([*probe, "idle", *variant], values)
    };
    run.recordings = all.iter().map(recording).collect();
    run
}

/// Makes it a run on a real machine.
fn real(run: &mut Run) {
    run.machine = MachineRecord::default();
    let facts = &mut run.provenance.as_mut().unwrap().facts;
    facts.insert("virtualised".into(), false.into());
}

const OLD: [&str; 3] = ["old", "rt", "6.1.0-56-rt-amd64"];
const NEW: [&str; 3] = ["new", "rt", "6.12.117+deb12-rt-amd64"];

/// Returns the outcome of a claim.
fn outcome(runs: &[Run], document: usize, id: &str) -> (ClaimVerdict, String) {
    let documents = documents().unwrap();
    let checked = checked(&Matrix::new(runs), &documents[document]);
    let one = checked.into_iter().find(|one| one.direction.id == id);
    let one = one.unwrap_or_else(|| panic!("{id}"));
    (one.outcome, one.evidence)
}

/// An older and a newer kernel, a nanosecond more from seed to seed.
fn two_rt(seeds: u64, older: i64, newer: i64) -> Vec<Run> {
    let values = |kernel, ns: i64, seed: u64| {
        let ns = ns + seed as i64;
        let all: [(&str, &str, &[i64]); 3] = [
            ("tick", "tick", &[ns]),
            ("switch", "N=2", &[ns]),
            ("mutex", "release", &[3 * ns]),
        ];
        run(seed, kernel, &all)
    };
    let both = |seed| [values(OLD, older, seed), values(NEW, newer, seed)];
    (1..=seeds).flat_map(both).collect()
}

#[test]
fn a_direction_comes_out_whichever_way_the_figures_go() {
    let shorter = two_rt(5, 20_000, 10_000);
    let (found, evidence) = outcome(&shorter, 3, "tick-newer-lower");
    assert_eq!(found, ClaimVerdict::Holds);
    assert!(
        evidence.starts_with(
            "tick tick, average: new 10.0 µs against old 20.0 µs: lower, 0.500 times (0.500–0.500); tick tick, max: new "
        ),
        "{evidence}"
    );
    assert_eq!(
        outcome(&shorter, 3, "switch-newer-dearer").0,
        ClaimVerdict::Fails
    );
    let longer = two_rt(5, 10_000, 20_000);
    assert_eq!(
        outcome(&longer, 3, "tick-newer-lower").0,
        ClaimVerdict::Fails
    );
    assert_eq!(
        outcome(&longer, 3, "switch-newer-dearer").0,
        ClaimVerdict::Holds
    );
    // As long as before is not longer, nor shorter.
    let same = two_rt(5, 10_000, 10_000);
    for id in ["tick-newer-lower", "switch-newer-dearer"] {
        let (found, evidence) = outcome(&same, 3, id);
        assert_eq!(found, ClaimVerdict::Fails);
        assert_has(&evidence, &["the same to the last sample"]);
    }
}

#[test]
fn one_seed_tells_nothing_and_says_how_many_do() {
    let (found, evidence) = outcome(&two_rt(1, 20_000, 10_000), 3, "tick-newer-lower");
    assert_eq!(found, ClaimVerdict::Undecided(3));
    assert_has(&evidence, &["too few runs: 1 and 1"]);
    let four = two_rt(4, 20_000, 10_000);
    assert_eq!(outcome(&four, 3, "tick-newer-lower").0, ClaimVerdict::Holds);
    // A quotient of each seed takes five.
    let (found, _) = outcome(&four, 3, "mutex-release-double");
    assert_eq!(found, ClaimVerdict::Undecided(1));
}

/// Both kernels' ticks, seed by seed.
fn ticks(older: [i64; 5], newer: [i64; 5]) -> Vec<Run> {
    let tick = |kernel, (seed, ns): (u64, i64)| run(seed, kernel, &[("tick", "tick", &[ns])]);
    let older = (1..).zip(older).map(|one| tick(OLD, one));
    older
        .chain((1..).zip(newer).map(|one| tick(NEW, one)))
        .collect()
}

#[test]
fn ranges_that_overlap_are_no_difference() {
    let close = ticks(
        [10_000, 10_100, 10_200, 10_300, 10_400],
        [9_990, 10_110, 10_190, 10_310, 10_390],
    );
    let (found, evidence) = outcome(&close, 3, "tick-newer-lower");
    assert_eq!(found, ClaimVerdict::Fails, "{evidence}");
    assert_has(&evidence, &["not separated"]);
    // So wide that a ratio of 1.2 would not have been found either.
    let wide = ticks(
        [5_000, 10_100, 20_000, 8_000, 40_000],
        [9_990, 6_000, 30_000, 12_000, 15_000],
    );
    let (found, _) = outcome(&wide, 3, "tick-newer-lower");
    assert!(
        matches!(found, ClaimVerdict::Undecided(more) if more > 20),
        "{found:?}"
    );
}

#[test]
fn a_run_in_which_the_seed_changed_nothing_is_no_further_draw() {
    let image: [(&str, &str, &[i64]); 1] = [("tick", "tick", &[48_000, 80_000])];
    let less: [(&str, &str, &[i64]); 1] = [("tick", "tick", &[44_000, 80_000])];
    let both = |seed| [run(seed, OLD, &image), run(seed, NEW, &less)];
    let runs: Vec<Run> = (1..=5).flat_map(both).collect();
    let (found, evidence) = outcome(&runs, 3, "tick-newer-lower");
    assert_eq!(found, ClaimVerdict::Undecided(3));
    assert_has(
        &evidence,
        &["of 5 seeds 4 changed nothing: too few runs: 1 and 1"],
    );
}

#[test]
fn in_real_time_it_speaks_of_runs_and_not_of_seeds() {
    let old: [(&str, &str, &[i64]); 1] = [("tick", "tick", &[48_000, 80_000])];
    let new: [(&str, &str, &[i64]); 1] = [("tick", "tick", &[44_000, 80_000])];
    let both = |seed| [run(seed, OLD, &old), run(seed, NEW, &new)];
    let mut runs: Vec<Run> = (1..=5).flat_map(both).collect();
    for run in &mut runs {
        run.machine = MachineRecord::default();
    }
    let documents = documents().unwrap();
    let checked = checked(&Matrix::new(&runs), &documents[3]);
    let mut checked = checked.iter();
    let one = checked.find(|one| one.direction.id == "tick-newer-lower");
    let one = one.unwrap();
    assert_eq!(one.needed().as_deref(), Some("3 more runs"));
    let expected = "of 5 runs 4 repeat another to the last sample: too few runs: 1 and 1";
    assert_has(&one.evidence, &[expected]);
    assert!(!one.evidence.contains("seed"), "{}", one.evidence);
}

#[test]
fn a_quotient_is_checked_within_each_subject() {
    let (found, evidence) = outcome(&two_rt(5, 10_000, 20_000), 3, "mutex-release-double");
    assert_eq!(found, ClaimVerdict::Holds);
    assert!(
        evidence.starts_with("old 30.0 µs against 10.0 µs, 3.00 to"),
        "{evidence}"
    );
}

/// Five runs of each kernel in real time, where all have one seed. Each run takes so many times as
/// long as the first one of its kernel, and a mutex's release so many tenths of a switch.
fn in_real_time(older: i64, newer: i64, tenths: i64) -> Vec<Run> {
    let values = |kernel, ns: i64| {
        let all: [(&str, &str, &[i64]); 3] = [
            ("tick", "tick", &[ns]),
            ("switch", "N=2", &[ns]),
            ("mutex", "release", &[tenths * ns / 10]),
        ];
        let mut run = run(1, kernel, &all);
        run.machine = MachineRecord::default();
        run
    };
    let both = |times: i64| [values(OLD, times * older), values(NEW, times * newer)];
    (1..=5).flat_map(both).collect()
}

#[test]
fn in_real_time_a_quotient_is_of_one_run_though_all_have_one_seed() {
    let of = |tenths| {
        outcome(
            &in_real_time(10_000, 20_000, tenths),
            3,
            "mutex-release-double",
        )
    };
    let (found, evidence) = of(30);
    assert_eq!(found, ClaimVerdict::Holds, "{evidence}");
    assert_has(&evidence, &["old 90.0 µs (", ", 3.00 to 3.00 times"]);
    // Divided by the first run's switch, all others would be above twice that.
    let (found, evidence) = of(15);
    assert_eq!(found, ClaimVerdict::Fails, "{evidence}");
    assert_has(&evidence, &[", 1.50 to 1.50 times"]);
}

#[test]
fn in_real_time_runs_are_paired_by_their_places_and_not_by_their_one_seed() {
    let runs = in_real_time(20_000, 10_000, 30);
    let (found, evidence) = outcome(&runs, 3, "improved-on-average");
    assert_eq!(found, ClaimVerdict::Holds, "{evidence}");
    assert_eq!(
        evidence,
        "new against old: +50.0 % (+50.0 to +50.0 % over 5 runs) over 3 of 8 tests"
    );
}

#[test]
fn the_average_improvement_is_over_tests_measured_on_both_with_a_range() {
    let (found, evidence) = outcome(&two_rt(5, 20_000, 10_000), 3, "improved-on-average");
    assert_eq!(found, ClaimVerdict::Holds);
    assert_eq!(
        evidence,
        "new against old: +50.0 % (+50.0 to +50.0 % over 5 seeds) over 3 of 8 tests"
    );
    let (found, _) = outcome(&two_rt(5, 10_000, 11_000), 3, "improved-on-average");
    assert_eq!(found, ClaimVerdict::Fails);
    let (found, evidence) = outcome(&two_rt(1, 20_000, 10_000), 3, "improved-on-average");
    assert_eq!(found, ClaimVerdict::Undecided(4));
    assert_eq!(evidence, "new against old: +50.0 % over 3 of 8 tests");
    // Seeds that changed nothing are one draw.
    let image = |seed| {
        let older: [(&str, &str, &[i64]); 1] = [("tick", "tick", &[48_000, 80_000])];
        let newer: [(&str, &str, &[i64]); 1] = [("tick", "tick", &[44_000, 60_000])];
        [run(seed, OLD, &older), run(seed, NEW, &newer)]
    };
    let runs: Vec<Run> = (1..=5).flat_map(image).collect();
    let (found, evidence) = outcome(&runs, 3, "improved-on-average");
    assert_eq!(found, ClaimVerdict::Undecided(4));
    assert_eq!(evidence, "new against old: +25.0 % over 1 of 8 tests");
}

#[test]
fn what_the_recordings_lack_cannot_be_told() {
    let alone = [run(1, NEW, &[("tick", "tick", &[5])])];
    let (found, evidence) = outcome(&alone, 3, "tick-newer-lower");
    assert_eq!(found, ClaimVerdict::CannotTell);
    assert_has(
        &evidence,
        &["there is no second, older or newer real-time kernel"],
    );
    let two = two_rt(5, 1_000, 2_000);
    let (found, evidence) = outcome(&two, 3, "irqrate-newer-shorter");
    assert_eq!(found, ClaimVerdict::CannotTell);
    assert!(
        evidence.starts_with("new, irqrate") && evidence.contains("not measured; old, irqrate"),
        "{evidence}"
    );
    let mut broken_off = two.clone();
    for run in &mut broken_off[..4] {
        run.recordings[0].interrupted = true;
    }
    // Three of each are left: too few, however far they are apart.
    let (found, _) = outcome(&broken_off, 3, "tick-newer-lower");
    assert_eq!(found, ClaimVerdict::Undecided(1));
    for run in &mut broken_off {
        run.recordings[0].interrupted = true;
    }
    let (found, evidence) = outcome(&broken_off, 3, "tick-newer-lower");
    assert_eq!(found, ClaimVerdict::CannotTell);
    assert!(
        evidence.starts_with("new, tick tick, average: interrupted"),
        "{evidence}"
    );
    let mut mixed = two;
    mixed[0].machine = MachineRecord::default();
    let (found, evidence) = outcome(&mixed, 3, "tick-newer-lower");
    assert_eq!(
        (found, evidence.as_str()),
        (ClaimVerdict::CannotTell, "the subjects' clocks differ")
    );
}

#[test]
fn what_a_bench_has_not_is_no_verdict() {
    let threads = |seed, kernel| {
        let ns = 1_000 + seed as i64;
        let all: [(&str, &str, &[i64]); 2] =
            [("switch", "N=1000", &[2 * ns]), ("switch", "N=2", &[ns])];
        run(seed, kernel, &all)
    };
    let mut runs: Vec<Run> = (1..=5).map(|seed| threads(seed, NEW)).collect();
    let told = |runs: &[Run]| outcome(runs, 3, "many-threads-dearer").0;
    assert_eq!(told(&runs), ClaimVerdict::CannotTell);
    runs.iter_mut().for_each(real);
    assert_eq!(told(&runs), ClaimVerdict::Holds);
    // A hypervisor's microseconds are not the machine's.
    let facts = &mut runs[4].provenance.as_mut().unwrap().facts;
    facts.insert("virtualised".into(), true.into());
    let (found, evidence) = outcome(&runs, 3, "many-threads-dearer");
    assert_eq!(found, ClaimVerdict::CannotTell);
    assert_has(&evidence, &["; measured in a virtual machine in real time"]);
}

#[test]
fn a_limit_is_broken_by_one_run_and_kept_by_five() {
    let runs = |worst: [i64; 5]| -> Vec<Run> {
        let of_seed = |(seed, ns)| {
            let mut run = run(seed, NEW, &[("timer", "cpu0", &[ns])]);
            real(&mut run);
            run
        };
        (1..).zip(worst).map(of_seed).collect()
    };
    let (found, evidence) = outcome(
        &runs([99_000, 7_000, 8_000, 9_000, 7_500]),
        4,
        "rt-below-100-us",
    );
    assert_eq!(found, ClaimVerdict::Holds);
    assert!(
        evidence.ends_with("at 95 %, at most 45 % of such runs are above"),
        "{evidence}"
    );
    let broken = runs([101_000, 7_000, 8_000, 9_000, 7_500]);
    assert_eq!(
        outcome(&broken, 4, "rt-below-100-us").0,
        ClaimVerdict::Fails
    );
    let few = outcome(&broken[1..], 4, "rt-below-100-us").0;
    assert_eq!(few, ClaimVerdict::Undecided(1));
}

#[test]
fn what_a_probe_tells_is_checked_by_its_word_in_each_run() {
    let seeds = |count: u64| -> Vec<Run> {
        let of_seed = |seed| {
            let mut runs = fixtures::all_probes();
            for run in &mut runs {
                run.seed = seed;
            }
            runs
        };
        (1..=count).flat_map(of_seed).collect()
    };
    let mut runs = seeds(5);
    let told = |runs: &[Run], document, id| outcome(runs, document, id).0;
    for id in [
        "inherit-does-not",
        "none-inverts",
        "waiters-without-influence",
    ] {
        assert_eq!(told(&runs, 3, id), ClaimVerdict::Holds, "{id}");
        assert_eq!(told(&seeds(2), 3, id), ClaimVerdict::Undecided(3), "{id}");
    }
    for id in ["rt-threads-interrupts", "stock-threads-none"] {
        assert_eq!(told(&runs, 2, id), ClaimVerdict::Holds, "{id}");
    }
    // What two of seven runs do not tell was not told in each run.
    let mut partly = seeds(7);
    for run in partly.iter_mut().filter(|run| run.seed > 5) {
        for recording in &mut run.recordings {
            recording.findings.remove("waiters_matter");
        }
    }
    let (found, evidence) = outcome(&partly, 3, "waiters-without-influence");
    assert_eq!(found, ClaimVerdict::CannotTell, "{evidence}");
    assert_has(&evidence, &["semaphore does not tell it in 2 of 7 runs"]);
    // Nor what they did not measure.
    for run in partly.iter_mut().filter(|run| run.seed > 5) {
        run.recordings.retain(|one| one.key.probe != "semaphore");
    }
    let (found, evidence) = outcome(&partly, 3, "waiters-without-influence");
    assert_eq!(found, ClaimVerdict::CannotTell, "{evidence}");
    assert_has(&evidence, &["semaphore does not tell it in 2 of 7 runs"]);
    // In real time all runs may have one seed.
    let mut real = seeds(5);
    for run in &mut real {
        (run.seed, run.machine) = (1, MachineRecord::default());
    }
    assert_eq!(told(&real, 3, "inherit-does-not"), ClaimVerdict::Holds);
    for recording in &mut runs[1].recordings {
        if recording.key.variant == "inherit" {
            let failed = fixtures::verdict(false, true);
            recording.findings.insert("result".into(), failed);
        }
    }
    let (found, evidence) = outcome(&runs, 3, "inherit-does-not");
    assert_eq!(found, ClaimVerdict::Fails);
    assert_eq!(
        evidence,
        "none, result: pass (5 of 5); rt, result: FAIL (1 of 5), pass (4 of 5)"
    );
    for run in runs.iter_mut().step_by(2) {
        for recording in &mut run.recordings {
            recording.findings.remove("waiters_matter");
        }
    }
    let (found, evidence) = outcome(&runs, 3, "waiters-without-influence");
    assert_eq!(found, ClaimVerdict::CannotTell);
    assert_eq!(
        evidence,
        "rt, waiters matter: no (5 of 5); none: semaphore does not tell it"
    );
}

#[test]
fn hackbench_by_pipes_is_not_compared_with_hackbench_by_sockets() {
    let mut runs = fixtures::seeds(5);
    let (found, evidence) = outcome(&runs, 4, "rt-throughput-lower");
    assert_eq!(found, ClaimVerdict::CannotTell);
    assert!(
        evidence.starts_with("hackbench pipe process 1, median: rt 0.3"),
        "{evidence}"
    );
    assert!(
        evidence.ends_with("none, hackbench socket, median: not measured"),
        "{evidence}"
    );
    for run in &mut runs {
        let mut by_sockets = run.recordings[2].clone();
        by_sockets.key.variant = "socket process 1".into();
        run.recordings.push(by_sockets);
    }
    let (found, evidence) = outcome(&runs, 4, "rt-throughput-lower");
    assert_eq!(found, ClaimVerdict::Holds, "{evidence}");
    assert_has(&evidence, &["; hackbench pipe process 1, median"]);
    let faster = outcome(&runs, 4, "rt-one-group-by-sockets-faster").0;
    assert_eq!(faster, ClaimVerdict::Fails);
}

/// Two kernels under one load, each with its worst sample and its latest arrival of each seed.
fn watched(samples: [i64; 5], arrivals: [[i64; 5]; 2]) -> Vec<Run> {
    let mut runs = Vec::new();
    for (kernel, arrivals) in ["none", "full"].into_iter().zip(arrivals) {
        for (seed, (sample, worst)) in (1..).zip(samples.into_iter().zip(arrivals)) {
            let samples: [(&str, &str, &[i64]); 1] = [("timer", "cpu0", &[1_000, sample])];
            let mut run = run(seed, [kernel, kernel, "6.12.117"], &samples);
            run.arrivals = vec![Arrivals {
                step: run.recordings[0].key.step,
                worst: Nanos(worst),
                ..Arrivals::default()
            }];
            runs.push(run);
        }
    }
    runs
}

#[test]
fn a_worst_case_is_that_of_every_arrival_where_all_runs_know_it() {
    let id = "preemptible-worst-lower";
    let samples = [5_000, 90_000, 7_000, 60_000, 8_000];
    let none = [500_000, 510_000, 490_000, 505_000, 495_000];
    let lower = watched(samples, [none, none.map(|ns| ns / 2)]);
    let (found, evidence) = outcome(&lower, 4, id);
    assert_eq!(found, ClaimVerdict::Holds, "{evidence}");
    assert_has(&evidence, &["timer, latest arrival, foretold: full"]);
    let higher = watched(samples, [none, none.map(|ns| ns * 2)]);
    assert_eq!(outcome(&higher, 4, id).0, ClaimVerdict::Fails);
    // By 2 % forecasts have been wrong: so much less, in each run, is no difference.
    let none = [500_000, 500_010, 499_990, 500_005, 499_995];
    let close = watched(samples, [none, none.map(|ns| ns - 6_000)]);
    let (found, evidence) = outcome(&close, 4, id);
    assert_eq!(found, ClaimVerdict::CannotTell, "{evidence}");
    assert_has(&evidence, &["closer than a forecast errs"]);
    // One run that nobody watched: the samples decide, here the same of both kernels.
    let mut partly = lower;
    partly[0].arrivals.clear();
    let (found, evidence) = outcome(&partly, 4, id);
    assert_eq!(found, ClaimVerdict::Fails, "{evidence}");
    assert_has(
        &evidence,
        &["timer, max: full", "the same to the last sample"],
    );
}

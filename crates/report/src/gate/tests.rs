// SPDX-License-Identifier: MIT OR Apache-2.0
use std::collections::BTreeMap;

use punctual_model::arrivals::Arrivals;
use punctual_model::record::Unsupported;
use punctual_model::run::State;
use punctual_model::{Fact, Finding, MachineRecord, Nanos, Recorder, RecordingKey};
use serde_json::Value;

use super::*;
use crate::fixtures::{self, PLAN, changed};

/// Runs of `rt` with these seeds, each time in them changed.
fn runs_by(
    seeds: std::ops::RangeInclusive<u64>,
    id: &str,
    change: &dyn Fn(u64, i64) -> i64,
) -> Vec<Run> {
    let run = |seed| {
        let mut run = fixtures::run("rt", seed);
        run.id = format!("{id}{seed}");
        run.plan = PLAN.into();
        for recording in &mut run.recordings {
            *recording = changed(recording, &|value| change(seed, value));
        }
        run
    };
    seeds.map(run).collect()
}

/// The same, each time scaled to so many per cent.
fn runs(seeds: std::ops::RangeInclusive<u64>, id: &str, per_cent: i64) -> Vec<Run> {
    runs_by(seeds, id, &|_, value| value * per_cent / 100)
}

/// The same on a machine, where all runs have one seed.
fn in_real_time(mut all: Vec<Run>) -> Vec<Run> {
    for run in &mut all {
        (run.seed, run.machine) = (1, MachineRecord::default());
        let found = run.provenance.as_mut().unwrap();
        found.facts.insert("virtualised".into(), Fact::Flag(false));
    }
    all
}

fn one(there: &[Run], here: &[Run]) -> Result<Gated, Refusal> {
    let [there, here] = [there, here].map(|runs| runs.iter().collect::<Vec<_>>());
    gated(&there, &here, Vec::new(), &Terms::default())
}

fn gate(there: &[Run], here: &[Run]) -> Gate {
    Gate {
        suite: "demo".into(),
        baseline: "stable".into(),
        subjects: vec![one(there, here).unwrap()],
        tolerance: TOLERANCE,
        again: Some("punctual gate demo --baseline stable --kernel mine".into()),
        decide: Some("punctual gate demo --baseline stable --kernel mine --budget 20m".into()),
    }
}

fn text(gate: &Gate) -> String {
    gate_text(gate, 80, Detail::Short)
}

/// The same in one line.
fn flowing(gate: &Gate) -> String {
    let text = text(gate);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn schema(value: &Value) -> Result<(), String> {
    let text = include_str!("../../../../docs/schema/gate-1.json");
    crate::schema::check("gate-1.json", text, value)
}

fn unsupported(step: u32, probe: &str, load: &str) -> Unsupported {
    Unsupported {
        step,
        probe: probe.into(),
        load: load.into(),
        reason: "no module".into(),
    }
}

#[test]
fn equal_digests_are_unchanged_after_one_run() {
    let (there, here) = (runs(1..=5, "r", 100), runs(1..=1, "n", 100));
    let mut gate = gate(&there, &here);
    gate.subjects[0].implied = vec![2, 3, 4, 5];
    assert_eq!(gate.standing(), Standing::Unchanged);
    let digest: String = there[0].digest().unwrap().chars().take(12).collect();
    assert_eq!(
        text(&gate),
        format!(
            "unchanged: demo against baseline stable\n\n\
             before   rt: Linux 6.12.90-rt-amd64 (baseline stable, 5 runs)\n\
             after    rt: Linux 6.12.90-rt-amd64 (1 run)\n\
             machine  QEMU 7.2.22, 1 CPU, 256 MiB, 1 ns per instruction\n\
             verdict  unchanged; exact: equal digests with seed 1; the machine is the\n         \
             same to the last byte, and so are seeds 2, 3, 4, 5.\n\
             digests  r1 {digest} and 4 more → n1 {digest}\n\n\
             repeat: punctual gate demo --baseline stable --kernel mine\n"
        )
    );
    schema(&gate_json(&gate)).unwrap();
}

/// Asserts that each line has at most 72 columns, unless it is a command.
fn assert_can_be_mailed(text: &str) {
    for line in text.lines().filter(|line| !line.contains("punctual ")) {
        assert!(line.chars().count() <= 72, "{line}\n{text}");
    }
}

#[test]
fn what_all_seeds_show_is_worse_and_the_title_says_what() {
    // The path got longer by 500 ns; the worst sample, which differs by seed, hides it.
    let there = runs(1..=5, "r", 100);
    let here = runs_by(1..=5, "n", &|seed, value| {
        value
            + 500
            + if value > 5_000 {
                seed as i64 % 3 * 2_000
            } else {
                0
            }
    });
    let gate = gate(&there, &here);
    assert_eq!(gate.standing(), Standing::Worse, "{}", text(&gate));
    let row = &gate.subjects[0].rows[0];
    let median = &row.figures[0];
    assert_eq!(
        (
            median.name.as_str(),
            median.standing,
            median.higher,
            median.seeds
        ),
        ("median", Standing::Worse, 5, 5)
    );
    let shown = text(&gate);
    assert!(
        shown.starts_with("worse: the typical wake-up of timer, "),
        "{shown}"
    );
    let title = super::title(&gate);
    assert!(title.contains(" µs, 5 of 5 seeds"), "{title}");
    assert!(shown.contains("  median   3."), "{shown}");
    assert_can_be_mailed(&shown);
    schema(&gate_json(&gate)).unwrap();
    let (_, share) = gate.subjects[0].to_explain().unwrap();
    assert!(
        (share - 0.5).abs() < 1e-9,
        "the typical sample is explained"
    );
    let page = gate_page(&gate, &page_runs(there, here), &[]);
    let (title, runs) = (
        "worse: the typical wake-up of timer, ",
        "Which runs were compared",
    );
    assert!(page.contains(title), "numbers stand in the title");
    let at = |part: &str| page.rfind(part).unwrap_or_else(|| panic!("{part}"));
    assert!(at(runs) > at("Evidence"), "figures before numbers of runs");
}

#[test]
fn which_samples_differ_is_told_where_it_is_asked_for_or_few_do() {
    let (there, here) = (runs(1..=5, "r", 100), runs(1..=5, "n", 150));
    let all = gate(&there, &here);
    let asked = gate_text(&all, 80, Detail::Samples);
    let asked = asked.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = "2,000 of 2,000 samples differ, first";
    assert!(asked.contains(line), "{asked}");
    assert!(!text(&all).contains("samples differ"), "{}", text(&all));
    // Of each run one sample is one nanosecond longer.
    let mut here = runs(1..=5, "n", 100);
    for run in &mut here {
        let most = run.recordings[0].worst[0].value.0;
        run.recordings[0] = changed(&run.recordings[0], &|value| {
            value + i64::from(value == most)
        });
    }
    let few = gate(&there, &here);
    assert!(
        text(&few).contains("1 of 2,000 samples differ"),
        "{}",
        text(&few)
    );
    assert_ne!(few.standing(), Standing::Worse);
}

#[test]
fn what_is_lower_is_not_worse_and_too_few_runs_are_undecided() {
    let there = runs(1..=5, "r", 100);
    let lower = gate(&there, &runs(1..=5, "n", 60));
    assert_eq!(lower.standing(), Standing::NotWorse, "{}", text(&lower));
    let few = gate(&there[..1], &runs(1..=1, "n", 150));
    assert_eq!(few.standing(), Standing::Undecided);
    assert!(few.needs_runs());
    let shown = text(&few);
    let command = "to decide what is undecided:\n  punctual gate demo --baseline stable --kernel \
                   mine --budget 20m\n";
    assert!(shown.contains(command), "{shown}");
    let json = gate_json(&few);
    let rows = json["subjects"][0]["measurements"].as_array().unwrap();
    assert!(rows.iter().all(|row| row["decide"].is_string()), "{json}");
}

/// In real time all runs have one seed, and none is the same as another.
#[test]
fn in_real_time_it_speaks_of_runs_and_pairs_none() {
    let real = |count, id, per_cent| in_real_time(runs(1..=count, id, per_cent));
    let worse = gate(&real(5, "old", 100), &real(5, "new", 150));
    assert_eq!(worse.standing(), Standing::Worse, "{}", text(&worse));
    let title = title(&worse);
    assert!(title.ends_with(" µs"), "{title}");
    let told = worse.subjects[0].sentence();
    assert_eq!(told, "no seed is in both, or times are real");
    let all = gate_text(&worse, 80, Detail::Samples);
    assert!(!all.contains("seed 1"), "{all}");
    let json = gate_json(&worse);
    assert_eq!(json["subjects"][0]["runs"], serde_json::json!([]));
    schema(&json).unwrap();
    let few = flowing(&gate(&real(2, "old", 100), &real(2, "new", 150)));
    assert!(few.contains("2 of 6 runs that it takes"), "{few}");
    let mut partly = real(5, "new", 100);
    partly[4].recordings.remove(0);
    let partly = flowing(&gate(&real(5, "old", 100), &partly));
    assert!(partly.contains("nothing was measured (new5)"), "{partly}");
}

#[test]
fn what_is_higher_by_less_than_matters_is_tolerated_and_said() {
    // 10 ns of 2.9 µs are a third of a per cent, and all seeds show it.
    let there = runs_by(1..=5, "r", &|_, value| value / 1_000 * 1_000);
    let here = runs_by(1..=5, "n", &|_, value| value / 1_000 * 1_000 + 10);
    let within = gate(&there, &here);
    let row = &within.subjects[0].rows[0];
    assert_eq!(
        row.figures[0].standing,
        Standing::Tolerated,
        "{}",
        text(&within)
    );
    let shown = text(&within);
    assert!(shown.contains("changed, within tolerance"), "{shown}");
    assert!(shown.contains("tolerated: 1 % of a median"), "{shown}");
    schema(&gate_json(&within)).unwrap();
    // The same is worse where less is tolerated.
    let terms = Terms {
        tolerance: 0.001,
        ..Terms::default()
    };
    let [there, here] = [&there, &here].map(|runs| runs.iter().collect::<Vec<_>>());
    let strict = gated(&there, &here, Vec::new(), &terms).unwrap();
    assert_eq!(strict.rows[0].figures[0].standing, Standing::Worse);
}

#[test]
fn one_measurement_that_is_the_same_is_unchanged_beside_others() {
    let there = runs(1..=5, "r", 100);
    let mut here = runs(1..=5, "n", 150);
    for (here, there) in here.iter_mut().zip(&there) {
        here.recordings[0] = there.recordings[0].clone();
    }
    let gate = gate(&there, &here);
    let rows = &gate.subjects[0].rows;
    assert_eq!(rows[0].standing, Standing::Unchanged);
    assert!(rows[0].differences.is_empty());
    assert_eq!(rows[1].standing, Standing::Worse);
}

#[test]
fn what_is_missing_is_never_a_pass() {
    let there = runs(1..=5, "r", 100);
    let mut here = runs(1..=5, "n", 60);
    for run in &mut here {
        run.recordings.remove(1);
    }
    let missing = gate(&there, &here);
    assert_eq!(
        missing.standing(),
        Standing::Undecided,
        "{}",
        text(&missing)
    );
    let gap = missing.subjects[0].rows[1].gap.as_deref();
    assert_eq!(gap, Some("nothing was measured (n1, n2, n3, n4, n5)"));
    assert!(!missing.needs_runs(), "no seed decides it");
    schema(&gate_json(&missing)).unwrap();
    // A run that did not come to its end measured nothing for certain.
    let mut here = runs(1..=5, "n", 60);
    here[0].state = State::Failed;
    let failed = gate(&there, &here);
    assert_eq!(failed.standing(), Standing::Undecided, "{}", text(&failed));
    // Another plan is another question.
    let mut here = runs(1..=5, "n", 60);
    here[4].plan = PLAN.replace("stress", "memory");
    assert!(one(&there, &here).is_err());
}

/// Evidence is taken away, on either side, from a comparison in which all digests are equal.
#[test]
fn equal_digests_say_nothing_of_what_was_not_measured() {
    type Damage = fn(&mut Run);
    let damages: [Damage; 3] = [
        |run| run.unsupported.push(unsupported(1, "timer", "stress")),
        |run| {
            run.unsupported.push(unsupported(1, "timer", "stress"));
            run.recordings.retain(|one| one.key.step != 1);
        },
        |run| run.recordings.clear(),
    ];
    for (damage, number) in damages.iter().zip(1..) {
        let after = || {
            let mut runs = runs(1..=5, "r", 100);
            runs.iter_mut().for_each(damage);
            runs
        };
        let mut here = after();
        here.iter_mut()
            .for_each(|run| run.id = format!("n{}", run.seed));
        let both = gate(&after(), &here);
        assert_eq!(
            both.standing(),
            Standing::Undecided,
            "{number}: {}",
            text(&both)
        );
        schema(&gate_json(&both)).unwrap();
        let whole = runs(1..=5, "w", 100);
        for (there, here) in [(&whole, &here), (&here, &whole)] {
            let one_side = gate(there, here);
            assert_eq!(
                one_side.standing(),
                Standing::Undecided,
                "{number}: {}",
                text(&one_side)
            );
        }
    }
    // A plan that cannot be read is no plan without steps.
    let unreadable = |id: &str| {
        let mut runs = runs(1..=5, id, 100);
        runs.iter_mut().for_each(|run| run.plan = "[[step".into());
        runs
    };
    let unread = gate(&unreadable("r"), &unreadable("n"));
    assert_eq!(unread.standing(), Standing::Undecided);
    assert!(
        text(&unread).contains("its plan cannot be read"),
        "{}",
        text(&unread)
    );
}

/// Whatever is taken away from runs that are equal or lower, the verdict gets no better.
#[test]
fn taking_evidence_away_makes_no_verdict_better() {
    let there = runs(1..=5, "r", 100);
    for (per_cent, count) in [(100, 5), (60, 5), (150, 5)] {
        let here = runs(1..=count, "n", per_cent);
        let before = gate(&there, &here).standing();
        for run in 0..5 {
            for step in 0..3 {
                let mut less = here.clone();
                less[run].recordings.retain(|one| one.key.step != step);
                let after = gate(&there, &less).standing();
                assert!(
                    after >= before.min(Standing::Undecided),
                    "{per_cent} {run} {step}"
                );
                assert!(after >= Standing::Undecided, "{per_cent} {run} {step}");
            }
        }
    }
}

/// Five runs with these ids, with every arrival of the first step known.
/// The tail is steady, the latest arrival is not, and functions have their longest stretches.
fn watched(id: &str, tail: i64, latest: i64, functions: &[(&str, i64)]) -> Vec<Run> {
    let side = u64::from(id == "n");
    // The samples are draws; none of them tells a thing.
    let draw = |seed: u64, value: i64| value * (97 + (seed as i64 * 3 + side as i64) % 7) / 100;
    let mut all = runs_by(1..=5, id, &draw);
    for (run, number) in all.iter_mut().zip(0..) {
        // Of some functions each run has a stretch of another length.
        let mut known: BTreeMap<String, Nanos> = functions
            .iter()
            .map(|(name, time)| ((*name).to_owned(), Nanos(*time)))
            .collect();
        let shuffled = (number * 3 + side as i64) % 5;
        known.insert("drawn".to_owned(), Nanos(900 + 150 * shuffled));
        run.recordings.truncate(1);
        let own = &run.recordings[0];
        let mut recorder = Recorder::new(own.samples.len() + 1);
        let drawn = Nanos(8_000 + (run.seed * 37 + side * 41) as i64 % 90 * 100);
        let samples = own.samples.iter().map(|one| (one.at, one.value));
        for (at, value) in samples.chain([(Nanos::from_millis(999), drawn)]) {
            recorder.record(at, value);
        }
        let interval = own.interval;
        run.recordings[0] = recorder.finish(own.key.clone());
        run.recordings[0].interval = interval;
        run.plan = "seed = 1\n[[step]]\nprobe = \"timer\"\n".into();
        run.unsupported.clear();
        run.steps.clear();
        run.arrivals = vec![Arrivals {
            step: run.recordings[0].key.step,
            quantiles: vec![(0.99, Nanos(6_000)), (0.9999, Nanos(tail + shuffled * 20))],
            worst: Nanos(latest + shuffled * 1_000),
            function: Some("holds_up".into()),
            functions: known,
            ..Arrivals::default()
        }];
    }
    all
}

fn row_of(gate: &Gate) -> &Row {
    &gate.subjects[0].rows[0]
}

#[test]
fn every_arrival_shows_that_nothing_got_worse_where_the_worst_sample_cannot() {
    let there = watched("r", 10_500, 12_000, &[]);
    let here = watched("n", 10_510, 12_100, &[]);
    let known = gate(&there, &here);
    let shown = text(&known);
    assert_eq!(known.standing(), Standing::NotWorse, "{shown}");
    let leading = row_of(&known).figures.iter().find(|one| one.leads).unwrap();
    assert_eq!(
        (leading.name.as_str(), leading.of),
        ("p99.99", Of::Arrivals)
    );
    assert!(shown.contains("  arrival  14.0 → 14.1 µs    –"), "{shown}");
    assert_can_be_mailed(&shown);
    schema(&gate_json(&known)).unwrap();
    let html = gate_page(&known, &[], &[]);
    assert!(html.contains("p99.99"), "{html}");
    // Not watched on one side: the worst sample decides, and that is a draw.
    let mut some = here;
    some[4].arrivals.clear();
    let partly = gate(&there, &some);
    assert_eq!(partly.standing(), Standing::Undecided);
    let mut names = row_of(&partly).figures.iter().map(|one| &*one.name);
    assert_eq!(names.next_back(), Some("worst"));
    let shown = text(&partly);
    assert!(
        shown.contains("the arrivals of some runs are not known"),
        "{shown}"
    );
}

#[test]
fn a_function_that_holds_threads_up_for_longer_is_worse_and_to_blame() {
    let there = watched("r", 10_500, 12_000, &[("grows", 900)]);
    let with = |functions: &[(&str, i64)]| gate(&there, &watched("n", 10_500, 12_000, functions));
    let new = with(&[("grows", 900), ("burns", 1_000)]);
    let shown = text(&new);
    assert_eq!(new.standing(), Standing::Worse, "{shown}");
    let title = super::title(&new);
    assert!(
        title.starts_with("worse: the longest stretch in `burns` of timer, ")
            && title.ends_with(", 0 ns → 1.00 µs, 5 of 5 seeds"),
        "{title}"
    );
    assert!(
        shown.contains("  in burns 0 ns → 1.00 µs    worse     5 of 5"),
        "{shown}"
    );
    assert!(
        !shown.contains("grows") && !shown.contains("drawn"),
        "{shown}"
    );
    assert_can_be_mailed(&shown);
    schema(&gate_json(&new)).unwrap();
    // No sample of a run stands for it.
    assert_eq!(new.subjects[0].to_explain(), None);
    let grown = with(&[("grows", 2_000)]);
    assert!(
        text(&grown).contains("in grows 900 ns → 2.00 µs"),
        "{}",
        text(&grown)
    );
    // By less than a fifth of the usual wake-up nothing is said, nor of what is shorter.
    for functions in [
        &[("grows", 1_000)][..],
        &[("grows", 900), ("burns", 300)],
        &[],
    ] {
        let fine = with(functions);
        assert_eq!(fine.standing(), Standing::NotWorse, "{}", text(&fine));
    }
    // Not with each seed: it comes by chance.
    let mut some = watched("n", 10_500, 12_000, &[("grows", 900), ("burns", 1_000)]);
    for run in &mut some[..2] {
        run.arrivals[0].functions.remove("burns");
    }
    let some = gate(&there, &some);
    assert_eq!(some.standing(), Standing::NotWorse, "{}", text(&some));
}

/// A tail of samples that is later with each seed, and no later than arrivals were before, is a draw.
#[test]
fn a_tail_of_samples_within_the_arrivals_of_the_baseline_is_no_evidence() {
    let there = watched("r", 10_500, 12_000, &[]);
    // The latest samples of each run, one of 40 or only the last, as late as this.
    let with_tail = |share: usize, late: [i64; 5]| {
        let mut here = watched("n", 10_500, 12_000, &[]);
        for (run, late) in here.iter_mut().zip(late) {
            let own = &run.recordings[0];
            let mut values: Vec<Nanos> = own.samples.iter().map(|one| one.value).collect();
            values.sort_unstable();
            let least = values[values.len() - (values.len() / share).max(1)];
            let mut recorder = Recorder::new(own.samples.len());
            for one in own.samples.iter() {
                let is_late = one.value >= least;
                recorder.record(one.at, if is_late { Nanos(late) } else { one.value });
            }
            let interval = own.interval;
            run.recordings[0] = recorder.finish(own.key.clone());
            run.recordings[0].interval = interval;
        }
        here
    };
    let later = |latest: i64| with_tail(usize::MAX, [latest; 5]);
    let named = |gate: &Gate, name: &str| {
        let mut figures = row_of(gate).figures.iter();
        let own = figures.find(|one| one.name == name).unwrap();
        (own.standing, own.within)
    };
    let worst = |gate: &Gate| named(gate, "worst");
    for is_forecast in [false, true] {
        let with = |runs: &[Run]| {
            let mut runs = runs.to_vec();
            for run in &mut runs {
                run.arrivals[0].is_forecast = is_forecast;
            }
            runs
        };
        let judged = |latest: i64| gate(&with(&there), &with(&later(latest)));
        // Arrivals of the baseline took up to 16 us.
        let drawn = judged(16_000);
        let latest = Some(Within::Arrivals(Nanos(16_000)));
        assert_eq!(
            worst(&drawn),
            (Standing::Undecided, latest),
            "{}",
            text(&drawn)
        );
        assert!(drawn.standing() < Standing::Worse, "{}", text(&drawn));
        let told = flowing(&drawn).contains("no later than an arrival before (16.0 µs)");
        assert!(told, "{}", text(&drawn));
        schema(&gate_json(&drawn)).unwrap();
        assert!(drawn.to_decide().is_none(), "{}", text(&drawn));
        let beyond = judged(16_001);
        assert_eq!(worst(&beyond), (Standing::Worse, None), "{}", text(&beyond));
        assert_eq!(beyond.standing(), Standing::Worse, "{}", text(&beyond));
        // Two runs of five later than any arrival before are no draw, though the middle one is.
        let some = with_tail(usize::MAX, [15_900, 15_950, 16_000, 30_000, 32_000]);
        let some = gate(&with(&there), &with(&some));
        assert_eq!(worst(&some), (Standing::Worse, None), "{}", text(&some));
        // One sample in 40 is no draw of the latest arrival, but of those that one in 100 exceeds.
        for (late, expected) in [
            (
                5_990,
                (Standing::Undecided, Some(Within::Arrivals(Nanos(6_000)))),
            ),
            (6_010, (Standing::Worse, None)),
        ] {
            let tail = gate(&with(&there), &with(&with_tail(40, [late; 5])));
            assert_eq!(named(&tail, "p99"), expected, "{}", text(&tail));
        }
    }
}

/// A tick that meets a sample in each run of one kernel, and in none of the other's, tells of the
/// layout: the baseline's other samples of that step show how late that makes it.
#[test]
fn a_sample_that_an_interrupt_met_is_no_evidence_of_more_than_that() {
    let recorded = |load: &str, variant: &str, values: &[i64]| {
        let mut recorder = Recorder::new(values.len());
        for (at, value) in (0..).zip(values) {
            recorder.record(Nanos(at * 1_000_000), Nanos(*value));
        }
        recorder.finish(RecordingKey::new("timer", load, variant))
    };
    let spread =
        |most: i64| -> Vec<i64> { (0..49).map(|at| 15_670 + at % 3).chain([most]).collect() };
    let with = |load: &str, id: &str, own: i64, other: i64| -> Vec<Run> {
        let mut all = runs(1..=5, id, 100);
        for run in &mut all {
            // A tick met a sample of `other`, which is 18.6 us long otherwise.
            let long: Vec<i64> = spread(other).iter().map(|value| value + 3_000).collect();
            run.plan = format!("seed = 1\n[[step]]\nprobe = \"timer\"\nload = \"{load}\"\n");
            run.recordings = vec![
                recorded(load, "owner", &spread(own + run.seed as i64 % 2)),
                recorded(load, "other", &long),
                recorded(load, "third", &long),
            ];
        }
        all
    };
    let judged = |load: &str, own: i64| {
        let there = with(load, "r", 15_675, 17_500);
        gate(&there, &with(load, "n", own, 17_500))
    };
    let of_owner = |gate: &Gate| {
        let worst = row_of(gate).figures.iter().find(|one| one.name == "worst");
        worst.map(|one| (one.standing, one.within)).unwrap()
    };
    // The median, and the 1,829 ns that a sample of `other` was above its own.
    let may = Within::Interrupted(Nanos(17_500));
    let met = judged("idle", 17_499);
    assert_eq!(
        of_owner(&met),
        (Standing::Undecided, Some(may)),
        "{}",
        text(&met)
    );
    let told = flowing(&met).contains("no later than an interrupt makes it (17.5 µs)");
    assert!(told, "{}", text(&met));
    schema(&gate_json(&met)).unwrap();
    let later = judged("idle", 17_500);
    assert_eq!(
        of_owner(&later),
        (Standing::Worse, None),
        "{}",
        text(&later)
    );
    // One variant that varies by itself shows nothing of interrupts, nor do a program's threads.
    let alone = |probe: &str, is_alone: bool| {
        let sides = [("r", 15_675), ("n", 17_499)].map(|(id, own)| {
            let mut all = with("idle", id, own, 17_500);
            for run in &mut all {
                run.recordings.truncate(if is_alone { 2 } else { 3 });
                if is_alone {
                    // A third, which nothing met.
                    run.recordings
                        .push(recorded("idle", "third", &spread(15_672)));
                }
                for one in &mut run.recordings {
                    one.key.probe = probe.into();
                }
                run.plan = run.plan.replace("\"timer\"", &format!("\"{probe}\""));
            }
            all
        });
        let gate = gate(&sides[0], &sides[1]);
        let rows = gate.subjects[0].rows.iter();
        let owner = rows.filter(|row| row.row.variant == "owner");
        let worst = owner
            .flat_map(|row| &row.figures)
            .find(|one| one.name == "worst");
        worst.map(|one| (one.standing, one.within)).unwrap()
    };
    assert_eq!(alone("timer", false), (Standing::Undecided, Some(may)));
    assert_eq!(alone("timer", true), (Standing::Worse, None));
    assert_eq!(alone("app", false), (Standing::Worse, None));
    // Beside a load samples differ by much else.
    let loaded = judged("stress", 17_499);
    assert_eq!(
        of_owner(&loaded),
        (Standing::Worse, None),
        "{}",
        text(&loaded)
    );
}

/// Forecasts have been wrong by 1.2 µs: kernels are not told apart by less.
#[test]
fn arrivals_are_worse_by_more_than_a_forecast_may_be_wrong_by() {
    let there = watched("r", 10_500, 12_000, &[]);
    let little = gate(&there, &watched("n", 11_600, 13_100, &[]));
    assert_eq!(little.standing(), Standing::NotWorse, "{}", text(&little));
    let more = gate(&there, &watched("n", 11_900, 13_400, &[]));
    assert_eq!(more.standing(), Standing::Worse, "{}", text(&more));
}

/// Equal samples of the first seeds say nothing of further ones.
#[test]
fn an_earlier_look_at_equal_samples_decides_nothing_later() {
    let there = runs(1..=10, "r", 100);
    let here = runs_by(1..=10, "n", &|seed, value| {
        if seed > 5 { value * 40 } else { value }
    });
    let first = gate(&there[..5], &here[..5]);
    assert_eq!(first.standing(), Standing::Unchanged);
    let both = gate(&there, &here);
    let standing = both.standing();
    assert!(standing >= Standing::Undecided, "{}", text(&both));
    // The first look, with the rows that another row made it judge.
    let mut first = first;
    first.subjects[0].rows = gate(&there[..5], &runs(1..=5, "n", 101))
        .subjects
        .remove(0)
        .rows;
    for figure in first.subjects[0]
        .rows
        .iter_mut()
        .flat_map(|row| &mut row.figures)
    {
        figure.standing = Standing::Unchanged;
    }
    let after = gate(&there, &here).after(&first);
    assert_eq!(after.standing(), standing, "{}", text(&after));
}

/// The second of two steps of one name is not compared with the first of the other side.
#[test]
fn a_missing_step_is_not_replaced_by_another_of_its_name() {
    let plan = "seed = 1\n[[step]]\nprobe = \"timer\"\n[[step]]\nprobe = \"timer\"\n";
    let with_two = |mut run: Run| {
        run.plan = plan.into();
        run.unsupported.clear();
        run.recordings.truncate(1);
        let mut second = changed(&run.recordings[0], &|value| value * 5);
        (second.key.step, second.key.repetition) = (1, 2);
        run.recordings.push(second);
        run.steps.clear();
        run
    };
    let there: Vec<Run> = runs(1..=5, "r", 100).into_iter().map(with_two).collect();
    let mut here: Vec<Run> = runs(1..=5, "n", 101).into_iter().map(with_two).collect();
    for run in &mut here {
        run.recordings.remove(0);
        run.recordings[0].key.repetition = 1;
    }
    let missing = gate(&there, &here);
    assert_eq!(
        missing.standing(),
        Standing::Undecided,
        "{}",
        text(&missing)
    );
}

/// Findings that vary by seed are compared, too: numbers by their range, words seed by seed.
#[test]
fn findings_that_vary_by_seed_are_no_pass_where_they_differ() {
    let with = |id: &str, probe: &str, key: &str, values: [Finding; 5]| {
        // Not equal, and a little shorter here.
        let mut all = runs(1..=5, id, if id == "n" { 98 } else { 100 });
        for (run, value) in all.iter_mut().zip(values) {
            run.recordings.truncate(1);
            run.recordings[0].key.probe = probe.into();
            run.recordings[0].findings.insert(key.into(), value);
            run.plan = format!("seed = 1\n[[step]]\nprobe = \"{probe}\"\n");
            run.unsupported.clear();
            run.steps.clear();
        }
        all
    };
    let rates =
        |id, of: [f64; 5]| with(id, "noise", "interruption_rate", of.map(Finding::PerSecond));
    let there = rates("r", [11.5, 13.0, 12.1, 11.9, 12.4]);
    let higher = gate(&there, &rates("n", [245.1, 260.7, 250.0, 249.2, 251.3]));
    assert_eq!(higher.standing(), Standing::Undecided, "{}", text(&higher));
    let told = super::title(&higher);
    assert!(
        told.ends_with("where the baseline has 11.50 /s to 13.00 /s"),
        "{told}"
    );
    let alike = gate(&there, &rates("n", [12.9, 11.6, 12.0, 12.5, 12.2]));
    assert!(alike.standing() < Standing::Undecided, "{}", text(&alike));
    let passes = |id, of: [bool; 5]| {
        let verdict = |passed| Finding::Verdict {
            passed,
            expected: true,
        };
        with(id, "inversion", "result", of.map(verdict))
    };
    let there = passes("r", [true, true, false, true, true]);
    let worse = gate(&there, &passes("n", [true, false, false, false, false]));
    assert_eq!(worse.standing(), Standing::Undecided, "{}", text(&worse));
    let told = super::title(&worse);
    assert!(told.contains("FAIL with seed 2"), "{told}");
    let [there, here] = [
        [true, true, false, true, true],
        [true, false, false, false, false],
    ];
    let real = |id, of| in_real_time(passes(id, of));
    let worse = gate(&real("r", there), &real("n", here));
    assert_eq!(worse.standing(), Standing::Undecided, "{}", text(&worse));
    let told = super::title(&worse);
    assert!(told.ends_with("and not as in the baseline"), "{told}");
    let alike = gate(&real("r", there), &real("n", there));
    assert!(alike.standing() < Standing::Undecided, "{}", text(&alike));
}

/// A forecast passes nothing, and arrivals that were asked for and are not known neither.
#[test]
fn a_forecast_and_a_gap_pass_nothing() {
    let there = watched("r", 10_500, 12_000, &[]);
    let here = watched("n", 10_510, 12_100, &[]);
    let standing = |there: &[Run], here: &[Run]| gate(there, here).standing();
    let known = standing(&there, &here);
    let mut forecast = here.clone();
    forecast[0].arrivals[0].is_forecast = true;
    let mut gap = here.clone();
    gap[4].arrivals[0].gap = Some("they were not watched: two CPUs".into());
    let all = [known, standing(&there, &forecast), standing(&there, &gap)];
    assert_eq!(
        all,
        [Standing::NotWorse, Standing::Undecided, Standing::Undecided]
    );
    // What is longer by far is told all the same.
    let mut longer = watched("n", 12_900, 12_100, &[("burns", 2_000)]);
    longer[0].arrivals[0].is_forecast = true;
    assert_eq!(standing(&there, &longer), Standing::Worse);
}

/// Equal samples say nothing of arrivals between them.
#[test]
fn a_function_is_worse_also_where_no_sample_of_its_row_differs() {
    let [there, here] = [&[][..], &[("burns", 5_000)]].map(|functions| {
        let mut runs = watched("r", 10_500, 12_000, functions);
        let others = watched(if functions.is_empty() { "r" } else { "n" }, 0, 0, &[]);
        for (run, mut other) in runs.iter_mut().zip(others) {
            let mut second = other.recordings.remove(0);
            second.key.variant = "cpu1".into();
            run.recordings.push(second);
            run.id = other.id;
        }
        runs
    });
    let gate = gate(&there, &here);
    let row = row_of(&gate);
    assert_eq!(row.standing, Standing::Worse, "{}", text(&gate));
    let is_burns = |one: &&Judged| one.name == "burns";
    let burns = row.figures.iter().find(is_burns).unwrap();
    assert_eq!(burns.standing, Standing::Worse);
}

#[test]
fn the_latest_arrival_alarms_with_its_function() {
    let there = watched("r", 10_500, 12_000, &[]);
    let mut here = watched("n", 10_500, 30_000, &[]);
    let late = gate(&there, &here);
    let title = super::title(&late);
    assert_eq!(late.standing(), Standing::Worse, "{title}");
    assert!(
        title.contains("the latest arrival of ") && title.ends_with(", in `holds_up`"),
        "{title}"
    );
    // Who got longer is to blame, and not who happens to keep the latest waiting.
    let both = gate(&there, &watched("n", 12_900, 30_000, &[("burns", 1_000)]));
    let title = super::title(&both);
    assert!(
        title.contains("the arrival in 10,000 of ") && title.ends_with(", in `burns`"),
        "{title}"
    );
    for (run, late) in here
        .iter_mut()
        .zip([50_000, 51_000, 52_000, 53_000, 54_000])
    {
        run.arrivals[0].reached = Some(Nanos(late));
    }
    // Reached on one side only.
    let names = |gate: &Gate| -> Vec<String> {
        let figures = row_of(gate).figures.iter();
        figures.map(|one| one.name.clone()).collect()
    };
    assert!(!names(&gate(&there, &here)).contains(&"reached".to_owned()));
    let mut aimed = there;
    for run in &mut aimed {
        run.arrivals[0].reached = Some(Nanos(14_000));
    }
    assert!(names(&gate(&aimed, &here)).contains(&"reached".to_owned()));
}

/// Digests are of samples: on another kernel equal ones say nothing of arrivals between them.
#[test]
fn equal_digests_on_another_kernel_are_no_answer_for_arrivals() {
    let there = watched("r", 10_500, 12_000, &[]);
    let here = |functions: &[(&str, i64)], is_other: bool| -> Vec<Run> {
        let known = watched("n", 10_500, 12_000, functions);
        let runs = there.iter().zip(known).map(|(run, known)| {
            let mut run = run.clone();
            (run.id, run.arrivals) = (known.id, known.arrivals);
            if let (true, MachineRecord::Virtual(machine)) = (is_other, &mut run.machine) {
                machine.image_sha256 = "another".into();
            }
            run
        });
        runs.collect()
    };
    let standing = |here: &[Run]| gate(&there, here).standing();
    let burns: &[(&str, i64)] = &[("burns", 5_000)];
    let worse = gate(&there, &here(burns, true));
    assert!(worse.subjects[0].pairs.iter().all(|pair| pair.is_equal));
    let title = super::title(&worse);
    assert_eq!(worse.standing(), Standing::Worse, "{title}");
    assert!(title.contains("the longest stretch in `burns`"), "{title}");
    schema(&gate_json(&worse)).unwrap();
    // What was asked for and is not known passes nothing, and is no matter of further runs.
    let mut gap = here(&[], true);
    gap[2].arrivals[0].gap = Some("they were not watched: two CPUs".into());
    assert_eq!(standing(&gap), Standing::Undecided);
    assert!(!gate(&there, &gap).needs_runs());
    // Where nobody has asked, where all are equal, and on the same machine, nothing changed.
    let mut unasked = here(burns, true);
    unasked.iter_mut().for_each(|run| run.arrivals.clear());
    let mut plain = there.clone();
    plain.iter_mut().for_each(|run| run.arrivals.clear());
    assert_eq!(gate(&plain, &unasked).standing(), Standing::Unchanged);
    let mut same = here(&[], true);
    for (own, other) in same.iter_mut().zip(&there) {
        own.arrivals.clone_from(&other.arrivals);
    }
    assert_eq!(standing(&same), Standing::Unchanged);
    assert_eq!(standing(&here(burns, false)), Standing::Unchanged);
}

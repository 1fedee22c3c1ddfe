// SPDX-License-Identifier: MIT OR Apache-2.0
//! Verdicts from arrivals, and from the functions that keep them waiting.

use super::*;

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
        run.plan = "seed = 1\n[[step]]\nprobe = \"timer\"\nsamples = 2000\n".into();
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
    // The figures of the rest of the step alarm, too: where no sample is taken.
    let outside = |id: &str, functions: &[(&str, i64)]| {
        let mut runs = watched(id, 10_500, 12_000, &[("grows", 900)]);
        for run in &mut runs {
            let own = functions.iter();
            let own = own.map(|(name, time)| ((*name).to_owned(), Nanos(*time)));
            run.arrivals[0].in_step = Some(own.collect());
        }
        runs
    };
    let there = outside("r", &[("kills", 20_000), ("grows", 900)]);
    let here = outside("n", &[("kills", 520_000), ("grows", 900)]);
    let killed = gate(&there, &here);
    let title = super::title(&killed);
    assert!(
        title.starts_with("worse: the longest section in `kills` of the whole step of timer, ")
            && title.ends_with(", 20.0 → 520 µs, 5 of 5 seeds"),
        "{title}"
    );
    let shown = text(&killed);
    assert!(shown.contains("in kills, whole step"), "{shown}");
    assert_can_be_mailed(&shown);
    schema(&gate_json(&killed)).unwrap();
    // Less than half a microsecond is not kept: what is absent may be just below that.
    let grown = |time| gate(&outside("r", &[]), &outside("n", &[("kills", time)]));
    assert_eq!(grown(1_000).standing(), Standing::NotWorse);
    assert_eq!(grown(1_400).standing(), Standing::Worse);
    // It is not known of baselines that older programs made.
    let unknown = gate(&watched("r", 10_500, 12_000, &[("grows", 900)]), &here);
    assert_eq!(unknown.standing(), Standing::NotWorse, "{}", text(&unknown));
    // What samples meet is told of these.
    let mut both = outside("n", &[("burns", 1_200)]);
    for run in &mut both {
        run.arrivals[0]
            .functions
            .insert("burns".into(), Nanos(1_000));
    }
    let both = text(&gate(&outside("r", &[]), &both));
    assert!(both.contains("in burns 0 ns → 1.00 µs"), "{both}");
    assert!(!both.contains("whole step"), "{both}");
    let there = watched("r", 10_500, 12_000, &[("grows", 900)]);
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
            let step = format!("probe = \"timer\"\nload = \"{load}\"\nsamples = 50\n");
            run.plan = format!("seed = 1\n[[step]]\n{step}");
            run.steps[0].work = run.steps[1].work.clone();
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

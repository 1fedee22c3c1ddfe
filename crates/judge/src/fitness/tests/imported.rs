// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs of other programs: bins of some width, and files without a distribution.

use super::*;

/// Five runs of another program with these bins: lowest value, highest value and count.
fn imported(bins: &[(i64, i64, u64)]) -> Vec<Run> {
    let of_seed = |seed| {
        let mut run = synthetic::run("board", seed, &[]);
        let own = &mut run.recordings[0];
        for (low, high, count) in bins {
            let (low, high) = (Nanos(*low), Nanos(*high));
            own.histogram.record_between(low, high, *count);
            own.count += count;
            own.sum += low * *count as i64;
            let (least, most) = own.extremes.unwrap_or((low, high));
            own.extremes = Some((least.min(low), most.max(high)));
        }
        own.interval = Some(synthetic::INTERVAL);
        // Files with the same figures that say otherwise different things.
        let facts = [
            (punctual_model::run::IMPORTED.to_owned(), Fact::Flag(true)),
            (
                punctual_model::run::IMPORTED_TEXT.to_owned(),
                Fact::Text(format!("run {seed}")),
            ),
        ];
        run.provenance = Some(Provenance {
            release: String::new(),
            version: String::new(),
            cmdline: String::new(),
            preemption: punctual_model::Preemption::Rt,
            tsc_khz: None,
            facts: facts.into(),
        });
        run
    };
    (1..=5).map(of_seed).collect()
}

#[test]
fn a_limit_on_the_edge_of_a_bin_is_judged_by_no_rounding() {
    // As written: 9,000 samples of 5 µs and 1,000 of 9 µs.
    let written = imported(&[(5_000, 5_000, 9_000), (9_000, 9_000, 1_000)]);
    let told = |what: &str, bound: &str, runs: &[Run]| {
        let answer = only(&format!("what = \"{what}\"\n{bound}"), runs);
        (answer.fitness, answer.reason())
    };
    for (what, bound, expected) in [
        ("p99", "at_most = \"9 us\"", Fitness::Fit),
        ("p99", "at_most = \"8999 ns\"", Fitness::Unfit),
        ("median", "at_most = \"5 us\"", Fitness::Fit),
        ("median", "at_least = \"5 us\"", Fitness::Fit),
        ("mean", "at_most = \"5400 ns\"", Fitness::Fit),
        ("worst", "at_most = \"9 us\"", Fitness::Fit),
    ] {
        assert_eq!(told(what, bound, &written).0, expected, "{what} {bound}");
    }
    // Bins of 10 µs: what is within one is undecided, either way.
    let mut wide = imported(&[(0, 9_000, 9_000), (10_000, 19_000, 1_000)]);
    for run in &mut wide {
        let gap = Fact::Unknown {
            unknown: "bins of 10 µs".into(),
        };
        let settings = &mut run.recordings[0].settings;
        settings.insert(punctual_model::recording::DISTRIBUTION.into(), gap);
        settings.insert(punctual_model::recording::MEAN_WITHIN.into(), 9_000.into());
    }
    for (bound, expected) in [
        ("at_most = \"19 us\"", Fitness::Fit),
        ("at_most = \"15 us\"", Fitness::Undecided),
        ("at_most = \"10 us\"", Fitness::Undecided),
        ("at_most = \"9 us\"", Fitness::Unfit),
        ("at_least = \"10 us\"", Fitness::Fit),
        ("at_least = \"11 us\"", Fitness::Undecided),
        ("at_least = \"20 us\"", Fitness::Unfit),
    ] {
        assert_eq!(told("p99", bound, &wide).0, expected, "{bound}");
    }
    let (_, reason) = told("p99", "at_most = \"15 us\"", &wide);
    let expected = "p99 is somewhere from 10.0 µs to 19.0 µs: bins of 10 µs";
    assert_eq!(reason, expected);
    // The mean is from 1 µs to 10 µs.
    let mean = |bound: &str| told("mean", bound, &wide).0;
    assert_eq!(mean("at_most = \"5 us\""), Fitness::Undecided);
    assert_eq!(mean("at_most = \"10 us\""), Fitness::Fit);
    assert_eq!(mean("at_most = \"999 ns\""), Fitness::Unfit);
    // A share of something else, too.
    let both: Vec<Run> = written
        .iter()
        .chain(&wide)
        .cloned()
        .enumerate()
        .collect::<Vec<_>>()
        .into_iter()
        .map(|(number, mut run)| {
            run.subject.name = if number < 5 { "written" } else { "wide" }.into();
            run
        })
        .collect();
    let ratio = |most: &str| {
        told(
            "p99",
            &format!("subject = \"wide\"\nof = \"written\"\n{most}"),
            &both,
        )
        .0
    };
    assert_eq!(ratio("at_most = \"250 %\""), Fitness::Fit);
    assert_eq!(ratio("at_most = \"150 %\""), Fitness::Undecided);
    assert_eq!(ratio("at_most = \"105 %\""), Fitness::Unfit);
}

#[test]
fn a_file_without_a_distribution_answers_for_its_worst_case_alone() {
    let plain = imported(&[(1_000, 1_000, 1), (1_000, 50_000, 998), (50_000, 50_000, 1)]);
    let fitness = |rest: &str| only(rest, &plain).fitness;
    assert_eq!(
        fitness("what = \"worst\"\nat_most = \"50 us\""),
        Fitness::Fit
    );
    assert_eq!(
        fitness("what = \"worst\"\nat_most = \"49 us\""),
        Fitness::Unfit
    );
    assert_eq!(
        fitness("what = \"median\"\nat_most = \"9 us\""),
        Fitness::Undecided
    );
    // None is above the largest; of a smaller bound at least one is, and how many is not known.
    let rare = |above: &str| {
        let limit = format!("above = \"{above}\"\nonce_in = \"1 s\"");
        only(&limit, &plain)
    };
    assert_eq!(rare("50 us").fitness, Fitness::Fit);
    let open = rare("20 us");
    assert_eq!(
        (open.fitness, open.more),
        (Fitness::Undecided, Some(More::Whole))
    );
    assert!(
        open.reason().starts_with("at least 5 and at most 4995"),
        "{}",
        open.reason()
    );
    // Runs of another program have no seeds.
    let few = only("what = \"worst\"\nat_most = \"50 us\"", &plain[..1]);
    assert_eq!(few.more.unwrap().to_string(), "at least 4 more runs");
    let broken = only("what = \"worst\"\nat_most = \"9 us\"", &plain);
    assert!(!broken.reason().contains("seed"), "{}", broken.reason());
}

#[test]
fn a_file_counts_once_and_another_with_the_same_figures_counts_too() {
    let five = imported(&[(5_000, 5_000, 900), (9_000, 9_000, 100)]);
    let told = |runs: &[Run]| {
        let judgement = judge(&limits(WORST), runs, &Baselines::new()).unwrap();
        (
            judgement.fitness(),
            judgement.answers[0].runs,
            judgement.remarks,
        )
    };
    let (fitness, runs, remarks) = told(&five);
    assert_eq!((fitness, runs, remarks.len()), (Fitness::Fit, 5, 4));
    assert!(remarks[0].contains("have the same figures"), "{remarks:?}");
    // Under five names, with other white space, imported five times.
    let mut copies = vec![five[0].clone(); 5];
    for (copy, number) in copies.iter_mut().zip(1..) {
        (copy.id, copy.seed) = (format!("copy-{number}"), number);
        let facts = &mut copy.provenance.as_mut().unwrap().facts;
        facts.insert(
            punctual_model::run::IMPORTED.to_owned(),
            number.to_string().into(),
        );
    }
    let (fitness, runs, remarks) = told(&copies);
    assert_eq!((fitness, runs, remarks.len()), (Fitness::Undecided, 1, 4));
    assert!(remarks[0].contains("it counts once"), "{remarks:?}");
}

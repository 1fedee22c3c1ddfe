// SPDX-License-Identifier: MIT OR Apache-2.0
//! Demands of limits: a worst case, a rate, a typical run, a share, cycles of a program.

use super::*;

#[test]
fn a_worst_case_is_fit_after_five_runs_and_says_what_is_excluded() {
    let four = only(WORST, &runs("rt", 4));
    assert_eq!(four.fitness, Fitness::Undecided);
    assert_eq!(four.more, Some(More::Runs(1)));
    let five = only(WORST, &runs("rt", 5));
    assert_eq!((five.fitness, five.more), (Fitness::Fit, None));
    assert_eq!(five.sample.as_ref().unwrap().value, Nanos(9_005));
    assert_eq!(
        five.reason(),
        "none of 500 samples in 5 runs (500 ms) is above 100 µs; the worst was 9.01 µs"
    );
    // 3.0 in half a second; 1 − 0.05^(1/5) of runs.
    assert!((five.excluded.unwrap() - 5.991_46).abs() < 1e-3);
    assert_eq!(
        five.confidence().unwrap(),
        "excluded with 95 % confidence: such a sample more often than every 167 ms, or in more \
         than 45 % of runs"
    );
    let demanding = only(&format!("{WORST}\nruns = 9"), &runs("rt", 5));
    assert_eq!(demanding.more, Some(More::Runs(4)));
}

#[test]
fn one_sample_breaks_a_worst_case_and_is_named() {
    let mut all = runs("rt", 2);
    let mut values = vec![5_000; 100];
    values[41] = 250_000;
    all[1] = synthetic::run("rt", 2, &values);
    let answer = only(WORST, &all);
    assert_eq!(answer.fitness, Fitness::Unfit);
    assert_eq!(
        answer.reason(),
        "sample 41 of rt-2 (seed 2) was 250 µs, 2.5 times 100 µs; 1 of 2 runs have such a sample"
    );
    // Exactly the bound keeps to it.
    values[41] = 100_000;
    let exact: Vec<Run> = (1..=5)
        .map(|seed| synthetic::run("rt", seed, &values))
        .collect();
    assert_eq!(only(WORST, &exact).fitness, Fitness::Fit);
}

#[test]
fn a_rate_needs_three_times_its_time_without_a_sample_above() {
    // Half a second measured; 3.0 times 0.1 s is less, 3.0 times 0.2 s is more.
    let all = runs("rt", 5);
    let fit = only("above = \"50 us\"\nonce_in = \"100 ms\"", &all);
    assert_eq!(fit.fitness, Fitness::Fit);
    let open = only("above = \"50 us\"\nonce_in = \"200 ms\"", &all);
    assert_eq!(open.fitness, Fitness::Undecided);
    let Some(More::Time(more)) = open.more else {
        panic!("{open:?}")
    };
    // 2.9957 × 0.2 s − 0.5 s.
    assert!((more.0 - 99_146_000).abs() < 100_000, "{more:?}");
    let broken = only("above = \"5 us\"\nonce_in = \"10 s\"", &all);
    assert_eq!(broken.fitness, Fitness::Unfit);
    assert!(
        broken.reason().starts_with("5 of 500 samples"),
        "{}",
        broken.reason()
    );
}

#[test]
fn samples_that_were_only_counted_are_counted_to_either_side_of_the_bin() {
    let values: Vec<i64> = (0..100).map(|number| 100_000 + number).collect();
    let mut one = synthetic::run("rt", 1, &values);
    one.recordings = vec![recording(&values, 0)];
    let subjects = subjects(std::slice::from_ref(&one));
    let evidence = Evidence::of(&subjects[0], &Meant::all(&one)[0]);
    let (least, most) = evidence.above(Nanos(100_050));
    assert!(
        least.count() <= 49 && most.count() >= 49,
        "{least:?} {most:?}"
    );
    assert!(least.count() < most.count());
    // Ten are among the sixteen worst: exact.
    let (least, most) = evidence.above(Nanos(100_089));
    assert_eq!((least.count(), most.count()), (10, 10));
}

#[test]
fn the_typical_run_keeps_to_a_quantile() {
    let all = runs("rt", 5);
    let fit = only("what = \"median\"\nat_most = \"5 us\"", &all);
    assert_eq!(fit.fitness, Fitness::Fit);
    let unfit = only("what = \"median\"\nat_most = \"4 us\"", &all);
    assert_eq!(unfit.fitness, Fitness::Unfit);
    let few = only("what = \"median\"\nat_most = \"5 us\"", &all[..3]);
    assert_eq!(few.more, Some(More::Runs(2)));
    let unsupported = only("what = \"p99.9\"\nat_most = \"50 us\"", &all);
    assert_eq!(
        unsupported.reason(),
        "rt-1 (seed 1): 100 samples are too few for p99.9"
    );
    let work = only(
        "what = \"work\"\nunit = \"lines\"\nat_least = \"900 /s\"",
        &all,
    );
    assert_eq!(work.fitness, Fitness::Fit, "{}", work.reason());
    let work = only(
        "what = \"work\"\nunit = \"lines\"\nat_least = \"1100 /s\"",
        &all,
    );
    assert_eq!(work.fitness, Fitness::Unfit);
    let none = only(
        "what = \"work\"\nunit = \"files\"\nat_least = \"1 /s\"",
        &all,
    );
    assert!(
        none.reason()
            .ends_with("counted no files (it counted: lines)")
    );
}

#[test]
fn a_share_of_another_subject_is_judged_by_its_bounds() {
    let scaled = |subject: &str, factor: i64| -> Vec<Run> {
        let values = |seed: i64| vec![factor * (1_000 + seed); 100];
        (1..=5)
            .map(|seed| synthetic::run(subject, seed as u64, &values(seed)))
            .collect()
    };
    let all = [scaled("none", 10), scaled("rt", 11)].concat();
    let verdict = |share: &str| {
        only(
            &format!("what = \"mean\"\nat_most = \"{share}\"\nof = \"none\""),
            &all,
        )
    };
    assert_eq!(verdict("115 %").fitness, Fitness::Fit);
    assert_eq!(verdict("105 %").fitness, Fitness::Unfit);
    assert_eq!(verdict("110 %").fitness, Fitness::Undecided);
    assert_eq!(verdict("115 %").subject, "rt", "not none against itself");
}

#[test]
fn all_is_as_bad_as_the_worst_of_it() {
    let text = "what = \"missed\"\nat_most = 0\n[[limit]]\nprobe = \"timer\"\n";
    let both = |worst: &str| {
        let rest = format!("{text}what = \"worst\"\nat_most = \"{worst}\"");
        judge(&limits(&rest), &runs("rt", 5), &Baselines::new())
            .unwrap()
            .fitness()
    };
    assert_eq!(both("100 us"), Fitness::Fit);
    assert_eq!(both("8 us"), Fitness::Unfit);
    let mut missed = runs("rt", 5);
    missed[3].recordings[0].missed = 2;
    let answer = only("what = \"missed\"\nat_most = 1", &missed);
    assert_eq!(answer.fitness, Fitness::Unfit);
    assert_eq!(
        answer.reason(),
        "2 periods were missed in rt-4, the most of 5 runs"
    );
    missed[3].recordings[0].missed = 1;
    assert_eq!(
        only("what = \"missed\"\nat_most = 1", &missed).reason(),
        "1 period was missed in rt-4, the most of 5 runs"
    );
}

#[test]
fn runs_without_a_sample_show_no_missed_period_and_are_no_pass() {
    let empty = |seed| {
        let mut run = synthetic::run("rt", seed, &[]);
        run.plan = run.plan.replace("samples = 1", "samples = 0");
        run
    };
    let all: Vec<Run> = (1..=5).map(empty).collect();
    let answer = only("what = \"missed\"\nat_most = 0", &all);
    assert_eq!(answer.fitness, Fitness::Undecided);
    assert_eq!(answer.reason(), "rt-1 (seed 1): there is no sample");
}

#[test]
fn cycles_are_judged_by_limits_in_their_own_words() {
    let run = |seed: u64, most: i64| {
        let mut run = synthetic::run("rt", seed, &[2_000, 5_000, most]);
        let parts = ["lateness", "response"];
        let mut first = run.recordings.remove(0);
        first.key.probe = "app".into();
        run.plan = run.plan.replace("\"timer\"", "\"app\"");
        run.plan = run.plan.replace("cpus = [0]\n", "");
        run.steps[0].probe = "app".into();
        run.recordings = parts
            .map(|part| {
                let mut one = first.clone();
                one.key.variant = format!("loop {part}");
                one
            })
            .into();
        run
    };
    let judged = |limit: &str, most: i64, seeds: u64| {
        let limit: Limit = toml::from_str(limit).unwrap();
        let runs: Vec<Run> = (1..=seeds).map(|seed| run(seed, most)).collect();
        judge(&[limit], &runs, &Baselines::new()).map(|judged| judged.answers)
    };
    let one = |limit: &str, most, seeds| judged(limit, most, seeds).unwrap().remove(0);
    let deadline = one("deadline = \"9 us\"", 9_000, 5);
    assert_eq!(deadline.key.variant, "loop response");
    assert_eq!(deadline.fitness, Fitness::Fit, "{}", deadline.reason());
    assert_eq!(one("deadline = \"9 us\"", 9_001, 5).fitness, Fitness::Unfit);
    let jitter = "jitter = \"7 us\"\nthread = \"loop\"";
    assert_eq!(one(jitter, 9_000, 5).fitness, Fitness::Fit);
    assert_eq!(one(jitter, 9_000, 4).fitness, Fitness::Undecided);
    let broken = one(jitter, 9_001, 1);
    assert_eq!(
        (broken.fitness, &*broken.key.variant),
        (Fitness::Unfit, "loop lateness")
    );
    let reason = "samples differ by up to 7.00 µs in rt-1, the most of 1 run";
    assert_eq!(broken.reason(), reason);
    // One sample differs from none.
    let mut single: Vec<Run> = (1..=5).map(|seed| run(seed, 9_000)).collect();
    let few = synthetic::run("rt", 1, &[2_000]).recordings.remove(0);
    let key = single[0].recordings[0].key.clone();
    single[0].recordings[0] = punctual_model::Recording { key, ..few };
    let limit: Limit = toml::from_str(jitter).unwrap();
    let told = judge(&[limit], &single, &Baselines::new()).unwrap();
    assert_eq!(told.answers[0].fitness, Fitness::Undecided);
    // A thread that never says when it is due is not answered for by the other.
    let limit: Limit = toml::from_str("deadline = \"9 us\"").unwrap();
    let mut runs: Vec<Run> = (1..=5).map(|seed| run(seed, 9_000)).collect();
    for run in &mut runs {
        let mut marked = run.recordings[0].clone();
        marked.key.variant = "marked execution".into();
        run.recordings.push(marked);
    }
    let both = judge(&[limit], &runs, &Baselines::new()).unwrap();
    let told = both
        .answers
        .iter()
        .map(|one| (&*one.key.variant, one.fitness));
    assert_eq!(
        told.collect::<Vec<_>>(),
        [
            ("loop response", Fitness::Fit),
            ("marked response", Fitness::Undecided)
        ]
    );
    // A cycle within which its thread ended breaks no limit, and keeps none.
    for (limit, kept) in [("deadline = \"9 us\"", 9_000), ("jitter = \"7 us\"", 9_000)] {
        let ended = |last: i64| {
            let mut runs: Vec<Run> = (1..=5).map(|seed| run(seed, 9_000)).collect();
            for one in &mut runs[3].recordings {
                let last = Finding::Nanos(Nanos(last));
                one.findings.insert("ended_within".into(), last);
            }
            let limit: Limit = toml::from_str(limit).unwrap();
            judge(&[limit], &runs, &Baselines::new())
                .unwrap()
                .answers
                .remove(0)
        };
        assert_eq!(ended(kept).fitness, Fitness::Fit);
        let longer = ended(kept + 1);
        assert_eq!(longer.fitness, Fitness::Undecided);
        assert!(longer.reason().contains("rt-4 (seed 4): its last cycle"));
    }
    let other = judged("jitter = \"7 us\"\nthread = \"other\"", 9_000, 5).unwrap_err();
    assert!(
        other.to_string().contains("the variant other lateness"),
        "{other}"
    );
}

#[test]
fn one_sample_supports_no_quantile() {
    let single: Vec<Run> = (1..=5)
        .map(|seed| synthetic::run("rt", seed, &[5]))
        .collect();
    for what in ["median", "p99.9999"] {
        let answer = only(&format!("what = \"{what}\"\nat_most = \"9 us\""), &single);
        assert_eq!(answer.fitness, Fitness::Undecided, "{what}");
        assert!(
            answer.reason().contains("1 sample is too few for"),
            "{}",
            answer.reason()
        );
    }
    let mean = only("what = \"mean\"\nat_most = \"9 us\"", &single);
    assert_eq!(mean.fitness, Fitness::Fit);
}

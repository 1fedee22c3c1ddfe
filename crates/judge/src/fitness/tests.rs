// SPDX-License-Identifier: MIT OR Apache-2.0
use punctual_model::arrivals::Arrivals;
use punctual_model::record::{Provenance, StepRecord, Unsupported};
use punctual_model::recording::{OBSERVED, UNTOLD};
use punctual_model::run::State;
use punctual_model::{Fact, Finding, MachineRecord};
use serde::Deserialize;

use super::*;
use crate::synthetic::{self, recording};

#[derive(Deserialize)]
struct File {
    limit: Vec<Limit>,
}

fn limits(rest: &str) -> Vec<Limit> {
    let text = format!("[[limit]]\nprobe = \"timer\"\n{rest}\n");
    toml::from_str::<File>(&text).unwrap().limit
}

const WORST: &str = "what = \"worst\"\nat_most = \"100 us\"";

/// `seeds` runs of 100 samples of 5 µs, the last of each being 9 µs and its seed in ns.
fn runs(subject: &str, seeds: u64) -> Vec<Run> {
    let values = |seed: u64| {
        let mut values = vec![5_000; 100];
        values[99] = 9_000 + seed as i64;
        values
    };
    (1..=seeds)
        .map(|seed| synthetic::run(subject, seed, &values(seed)))
        .collect()
}

fn only(rest: &str, runs: &[Run]) -> Answer {
    let mut judgement = judge(&limits(rest), runs, &Baselines::new()).unwrap();
    assert_eq!(judgement.answers.len(), 1);
    judgement.answers.remove(0)
}

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

/// A run in which `noise` watched for two seconds and reports a number of seconds, and saw nothing.
fn quiet(seed: u64, seconds: i64) -> Run {
    let mut run = synthetic::run("rt", seed, &[]);
    let planned = "probe = \"noise\"\nduration_ms = 2000\n";
    run.plan = run.plan.replace("probe = \"timer\"\n", planned);
    run.steps[0].probe = "noise".into();
    run.recordings[0].key.probe = "noise".into();
    let observed = Finding::Nanos(Nanos::from_millis(1_000 * seconds));
    let findings = &mut run.recordings[0].findings;
    findings.insert(OBSERVED.into(), observed);
    run
}

/// The answer of a limit on `noise` for such runs.
fn of_noise(rest: &str, all: &[Run]) -> Answer {
    let text = format!("[[limit]]\nprobe = \"noise\"\n{rest}\n");
    let limits = toml::from_str::<File>(&text).unwrap().limit;
    let mut judgement = judge(&limits, all, &Baselines::new()).unwrap();
    judgement.answers.remove(0)
}

#[test]
fn events_that_were_looked_for_and_did_not_come_keep_to_a_worst_case() {
    let mut all: Vec<Run> = (1..=5).map(|seed| quiet(seed, 2)).collect();
    let answer = of_noise(WORST, &all);
    assert_eq!(answer.fitness, Fitness::Fit);
    assert_eq!(
        answer.reason(),
        "none of 0 samples in 5 runs (10.0 s) is above 100 µs"
    );
    let rare = of_noise("above = \"5 us\"\nonce_in = \"1 s\"", &all);
    assert_eq!(rare.fitness, Fitness::Fit);
    // A mean of none is none.
    let mean = of_noise("what = \"mean\"\nat_most = \"1 us\"", &all);
    assert_eq!(mean.fitness, Fitness::Undecided);
    all[2].recordings[0].findings.clear();
    let silent = of_noise(WORST, &all);
    assert_eq!(silent.reason(), "rt-3 (seed 3): there is no sample");
}

#[test]
fn who_looked_for_longer_or_missed_less_than_can_be_says_nothing() {
    let verdict = |seconds| {
        let all: Vec<Run> = (1..=5).map(|seed| quiet(seed, seconds)).collect();
        of_noise(WORST, &all)
    };
    assert_eq!(verdict(2).fitness, Fitness::Fit);
    let forged = verdict(2_000);
    assert_eq!(forged.fitness, Fitness::Undecided);
    assert!(
        forged.reason().contains("2000 s of 2"),
        "{}",
        forged.reason()
    );
    let late = |missed| {
        let late = |seed| {
            let mut run = synthetic::run("rt", seed, &[5_000, 3_400_000]);
            run.recordings[0].missed = missed;
            run
        };
        let all: Vec<Run> = (1..=5).map(late).collect();
        only("what = \"missed\"\nat_most = 3", &all)
    };
    assert_eq!(late(3).fitness, Fitness::Fit);
    assert_eq!(
        late(0).reason(),
        "rt-1 (seed 1): it claims fewer missed periods than its samples show: 0 of at least 3"
    );
}

#[test]
fn a_load_that_did_nothing_or_of_which_nothing_is_known_is_a_gap() {
    let told = |change: &dyn Fn(&mut StepRecord)| {
        let mut all = runs("rt", 5);
        change(&mut all[2].steps[0]);
        let answer = only(WORST, &all);
        assert_eq!(answer.fitness, Fitness::Undecided);
        answer.reason()
    };
    assert_eq!(
        told(&|step| step.work.clear()),
        "rt-3 (seed 3): nothing is known of what load stress did beside it"
    );
    // What is started, and waits for a minute, takes a thousandth of the time.
    let lazy = told(&|step| {
        (step.work[0].amount, step.work[0].cpu) = (0, Nanos(step.work[0].span.0 / 1_000));
    });
    assert_eq!(
        lazy,
        "rt-3 (seed 3): load stress did next to nothing beside it"
    );
    // Who compiles for longer than the step is at work.
    let mut all = runs("rt", 5);
    all[2].steps[0].work[0].amount = 0;
    assert_eq!(only(WORST, &all).fitness, Fitness::Fit);
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

/// Runs in real time whose target has read back this fact.
fn on_a_machine(runs: Vec<Run>, name: &str, fact: impl Into<Fact>) -> Vec<Run> {
    let fact = fact.into();
    let real = |mut run: Run| {
        run.machine = MachineRecord::default();
        run.provenance = Some(Provenance {
            facts: [
                ("virtualised".to_owned(), false.into()),
                (name.to_owned(), fact.clone()),
            ]
            .into(),
            ..Provenance::default()
        });
        run
    };
    runs.into_iter().map(real).collect()
}

#[test]
fn what_a_hypervisor_or_a_coarse_clock_keeps_to_is_no_fitness() {
    let verdict = |name: &str, fact: Fact| {
        let answer = only(WORST, &on_a_machine(runs("rt", 5), name, fact));
        (answer.fitness, answer.reason())
    };
    let (fitness, reason) = verdict("virtualised", true.into());
    assert_eq!(fitness, Fitness::Undecided);
    assert!(reason.contains("hypervisor"), "{reason}");
    let (fitness, reason) = verdict("clocksource", "jiffies".into());
    assert_eq!(fitness, Fitness::Undecided);
    assert!(reason.contains("jiffies"), "{reason}");
    for (name, fact) in [("virtualised", false.into()), ("clocksource", "tsc".into())] {
        assert_eq!(verdict(name, fact).0, Fitness::Fit, "{name}");
    }
    // Whoever does not say that there is none does not know.
    let mut silent = on_a_machine(runs("rt", 5), "virtualised", false);
    silent.iter_mut().for_each(|run| {
        run.provenance.as_mut().unwrap().facts.clear();
    });
    let answer = only(WORST, &silent);
    assert_eq!(answer.fitness, Fitness::Undecided);
    assert!(answer.reason().contains("not known"), "{}", answer.reason());
    // What was late was late.
    let broken = vec![synthetic::run("rt", 1, &[250_000])];
    let broken = on_a_machine(broken, "virtualised", true);
    assert_eq!(only(WORST, &broken).fitness, Fitness::Unfit);
    // A guest of the virtual bench is a virtual machine, too, and its time is exact.
    let mut guests = on_a_machine(runs("rt", 5), "virtualised", true);
    for (guest, run) in guests.iter_mut().zip(runs("rt", 5)) {
        guest.machine = run.machine;
    }
    assert_eq!(only(WORST, &guests).fitness, Fitness::Fit);
}

#[test]
fn a_gap_is_undecided_with_its_reason_and_hides_no_broken_limit() {
    let gap = |change: &dyn Fn(&mut Run)| {
        let mut all = runs("rt", 6);
        change(&mut all[2]);
        let answer = only(WORST, &all);
        assert_eq!(
            (answer.fitness, answer.more),
            (Fitness::Undecided, Some(More::Whole))
        );
        answer.reason()
    };
    let unsupported = gap(&|run| {
        run.recordings.clear();
        run.unsupported.push(Unsupported {
            step: 0,
            probe: "timer".into(),
            load: "stress".into(),
            reason: "no SCHED_FIFO".into(),
        });
    });
    assert_eq!(unsupported, "rt-3 (seed 3): unsupported: no SCHED_FIFO");
    let interrupted = gap(&|run| run.recordings[0].interrupted = true);
    assert_eq!(interrupted, "rt-3 (seed 3): interrupted after 100 samples");
    let untold = gap(&|run| {
        let two = Finding::Count(2);
        run.recordings[0].findings.insert(UNTOLD.into(), two);
    });
    assert_eq!(
        untold,
        "rt-3 (seed 3): the kernel did not tell when its thread got the CPU in 2 of its cycles"
    );
    let failed = gap(&|run| {
        run.state = State::Failed;
        run.error = Some("panic".into());
    });
    assert_eq!(failed, "rt-3 (seed 3): the run failed: panic");
    let fewer = gap(&|run| run.plan = run.plan.replace("[0]", "[0, 1]"));
    assert_eq!(fewer, "rt-3 (seed 3): fewer CPUs than asked for: no cpu1");
    let empty = gap(&|run| run.recordings[0] = recording(&[], 0));
    assert_eq!(
        empty,
        "rt-3 (seed 3): it has less than its plan asks for: 0 samples of 1"
    );
    let mut broken = runs("rt", 6);
    broken[2].recordings[0] = recording(&[200_000], 1);
    broken[2].recordings[0].interrupted = true;
    assert_eq!(only(WORST, &broken).fitness, Fitness::Unfit);
}

#[test]
fn nothing_measured_at_all_is_undecided_not_fit() {
    let mut all = runs("rt", 1);
    all[0].state = State::Failed;
    all[0].recordings.clear();
    for rest in [
        WORST,
        "what = \"median\"\nat_most = \"9 us\"",
        "what = \"missed\"\nat_most = 0",
        "above = \"50 us\"\nonce_in = \"10 s\"",
    ] {
        assert_eq!(only(rest, &all).fitness, Fitness::Undecided, "{rest}");
    }
}

#[test]
fn a_limit_that_no_recording_answers_is_an_error() {
    let error = |rest: &str| {
        judge(&limits(rest), &runs("rt", 5), &Baselines::new())
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        error(&format!("load = \"idle\"\n{WORST}")),
        "limit 1 (timer, worst at most 100 µs): expected a measurement by timer under idle, \
         found timer / stress / cpu0"
    );
    assert!(error(&format!("variant = \"cpu7\"\n{WORST}")).contains("expected the variant cpu7"));
    assert!(error(&format!("subject = \"none\"\n{WORST}")).contains("found rt"));
    let relative = "what = \"mean\"\nat_most = \"115 %\"\nof = \"none\"";
    assert!(error(relative).contains("expected the subject none"));
}

#[test]
fn the_same_seed_twice_is_one_run_in_virtual_time() {
    let mut all = runs("rt", 1);
    for _ in 0..9 {
        all.push(all[0].clone());
    }
    let answer = only(WORST, &all);
    assert_eq!((answer.runs, answer.fitness), (1, Fitness::Undecided));
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

/// Two runs of one seed and one past are not two draws, and a late sample in either counts.
#[test]
fn a_seed_with_its_own_past_named_adds_no_run_and_hides_no_sample() {
    let named = |worst: i64| {
        let mut all = runs("rt", 5);
        let mut again = synthetic::run("rt", 1, &[5_000, worst]);
        again.id = "again".into();
        again.plan = format!(
            "past = 1\n{}",
            again.plan.replace("samples = 2", "samples = 100")
        );
        again.recordings[0] = recording(&[vec![5_000; 99], vec![worst]].concat(), 1);
        again.recordings[0].key = all[0].recordings[0].key.clone();
        all.push(again);
        let limit = limits(WORST);
        let judgement = judge(&limit, &all, &Baselines::new()).unwrap();
        judgement.answers[0].fitness
    };
    assert_eq!(named(100_000), Fitness::Undecided);
    assert_eq!(named(100_001), Fitness::Unfit);
}

/// `seeds` runs that take `per_cent` of the time of those of [`runs`].
fn scaled(subject: &str, seeds: u64, per_cent: i64) -> Vec<Run> {
    let values = |seed: u64| vec![(9_000 + seed as i64) * per_cent / 100; 100];
    let run = |seed| synthetic::run(subject, seed, &values(seed));
    (1..=seeds).map(run).collect()
}

const OF_BASELINE: &str = "what = \"worst\"\nat_most = \"115 %\"\nof = \"baseline\"";

#[test]
fn a_share_of_a_baseline_is_of_the_same_subject_there() {
    let both = [scaled("none", 5, 100), scaled("rt", 5, 200)].concat();
    let of = |per_cent: i64, baseline: &[Run]| {
        let judged = [scaled("none", 5, per_cent), scaled("rt", 5, 200)].concat();
        let baselines = Baselines::from([(None, baseline.to_vec())]);
        judge(&limits(OF_BASELINE), &judged, &baselines).unwrap()
    };
    let fitness = |judgement: Judgement| -> Vec<Fitness> {
        judgement.answers.iter().map(|one| one.fitness).collect()
    };
    assert_eq!(fitness(of(110, &both)), [Fitness::Fit, Fitness::Fit]);
    assert_eq!(fitness(of(130, &both)), [Fitness::Unfit, Fitness::Fit]);
    // A baseline of one subject is what all are compared with.
    let rt = scaled("rt", 5, 100);
    assert_eq!(fitness(of(110, &rt)), [Fitness::Fit, Fitness::Unfit]);
}

#[test]
fn a_subject_that_was_not_measured_is_not_answered_for_by_another() {
    let mut both = runs("rt", 5);
    let mut others = runs("full", 5);
    others.iter_mut().for_each(|run| {
        run.plan = run.plan.replace("stress", "idle");
        run.recordings
            .iter_mut()
            .for_each(|one| one.key.load = "idle".into());
    });
    both.extend(others);
    let limit = format!("{WORST}\nload = \"stress\"");
    let judgement = judge(&limits(&limit), &both, &Baselines::new()).unwrap();
    let of = |name: &str| {
        let mut all = judgement.answers.iter();
        all.find(|one| one.subject == name).map(|one| one.fitness)
    };
    assert_eq!(of("rt"), Some(Fitness::Fit));
    assert_eq!(of("full"), Some(Fitness::Undecided));
    // One that is not meant needs no answer.
    let named = format!("{limit}\nsubject = \"rt\"");
    let judgement = judge(&limits(&named), &both, &Baselines::new()).unwrap();
    assert_eq!(judgement.answers.len(), 1);
}

#[test]
fn copies_that_say_different_things_of_their_loads_are_a_gap_in_any_order() {
    let first = runs("rt", 5);
    let mut other = first.clone();
    other[2].id = "x".into();
    other[2].steps[0].work[0].span = Nanos(1);
    for all in [
        [first.clone(), other.clone()].concat(),
        [other, first].concat(),
    ] {
        let answer = only(WORST, &all);
        assert_eq!(answer.fitness, Fitness::Undecided);
        assert!(
            answer.reason().contains("different things"),
            "{}",
            answer.reason()
        );
    }
}

type Change = fn(&mut Run);

#[test]
fn a_baseline_of_another_machine_or_plan_is_none() {
    let reason = |change: Change| {
        let mut there = on_a_machine(scaled("rt", 5, 100), "cpu", "A");
        there.iter_mut().for_each(change);
        let here = on_a_machine(scaled("rt", 5, 100), "cpu", "A");
        let baselines = Baselines::from([(None, there)]);
        let judgement = judge(&limits(OF_BASELINE), &here, &baselines).unwrap();
        (judgement.fitness(), judgement.answers[0].reason())
    };
    assert_eq!(reason(|_| {}).0, Fitness::Fit);
    let other: [(Change, &str); 2] = [
        (
            |run| {
                let facts = &mut run.provenance.as_mut().unwrap().facts;
                facts.insert("cpu".into(), "B".into());
            },
            "the CPU is A here and B there",
        ),
        (
            |run| run.plan = run.plan.replace("[[step]]\n", "[[step]]\npriority = 7\n"),
            "priority is not set here and 7 there",
        ),
    ];
    for (change, what) in other {
        let (fitness, told) = reason(change);
        assert_eq!(fitness, Fitness::Undecided, "{what}");
        assert!(told.contains(what), "{told}");
    }
}

#[test]
fn a_subject_that_is_not_there_may_be_one_of_the_baseline() {
    let judged = scaled("mine", 5, 110);
    let baselines = Baselines::from([(None, scaled("stable", 5, 100))]);
    let of_stable = OF_BASELINE.replace("baseline", "stable");
    let judgement = judge(&limits(&of_stable), &judged, &baselines).unwrap();
    assert_eq!(judgement.fitness(), Fitness::Fit);
    let alone = judge(&limits(&of_stable), &judged, &Baselines::new());
    let expected = "expected the subject stable to compare with, found mine";
    assert_eq!(alone.unwrap_err().reason, expected);
}

#[test]
fn what_is_identical_to_its_baseline_needs_no_further_run() {
    let baselines = Baselines::from([(None, scaled("rt", 1, 100))]);
    let of = |per_cent: i64| {
        let judged = scaled("rt", 1, per_cent);
        let judgement = judge(&limits(OF_BASELINE), &judged, &baselines).unwrap();
        judgement.fitness()
    };
    assert_eq!((of(100), of(101)), (Fitness::Fit, Fitness::Undecided));
}

#[test]
fn a_baseline_that_is_not_there_is_an_error() {
    let judged = runs("rt", 5);
    let of = |baselines: &Baselines| {
        let unanswered = judge(&limits(OF_BASELINE), &judged, baselines).unwrap_err();
        unanswered.reason
    };
    assert_eq!(of(&Baselines::new()), "expected the runs of the baseline");
    let others = [scaled("none", 1, 100), scaled("full", 1, 100)].concat();
    assert_eq!(
        of(&Baselines::from([(None, others)])),
        "expected the subject rt to compare with, found none; full"
    );
}

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

/// A finished run with these steps of `timer` beside `stress`, one on each of these CPUs. CPUs that
/// are present have samples, and the others are unsupported.
fn of_steps(seed: u64, steps: &[(i64, bool)]) -> Run {
    let mut run = synthetic::run("rt", seed, &[]);
    run.recordings.clear();
    let mut repetitions = std::collections::BTreeMap::new();
    let step = |(cpu, _): &(i64, bool)| {
        format!("[[step]]\nprobe = \"timer\"\nload = \"stress\"\ncpus = [{cpu}]\nsamples = 1\n")
    };
    let steps_toml: String = steps.iter().map(step).collect();
    run.plan = format!("seed = {seed}\n{steps_toml}[loads.stress]\nsummary = \"\"\n");
    synthetic::work_in(&mut run, steps.len() as u32);
    for ((cpu, is_there), number) in steps.iter().zip(0..) {
        if !is_there {
            run.unsupported.push(Unsupported {
                step: number,
                probe: "timer".into(),
                load: "stress".into(),
                reason: format!("there is no CPU {cpu}").into(),
            });
            continue;
        }
        let mut own = recording(&[5_000, 6_000 + seed as i64], 2);
        let times = repetitions.entry(*cpu).or_insert(0);
        *times += 1;
        own.key = RecordingKey::new("timer", "stress", &format!("cpu{cpu}"));
        (own.key.step, own.key.repetition) = (number, *times);
        run.recordings.push(own);
    }
    run
}

#[test]
fn a_step_that_was_unsupported_is_not_hidden_by_another_of_its_probe_and_load() {
    use Fitness::{Fit, Undecided};

    let judged = |steps: &[(i64, bool)], rest: &str| -> Vec<(u32, Fitness)> {
        let runs: Vec<Run> = (1..=5).map(|seed| of_steps(seed, steps)).collect();
        let answers = judge(&limits(rest), &runs, &Baselines::new())
            .unwrap()
            .answers;
        answers
            .iter()
            .map(|one| (one.key.step, one.fitness))
            .collect()
    };
    assert_eq!(judged(&[(0, true), (1, true)], WORST), [(0, Fit), (1, Fit)]);
    assert_eq!(
        judged(&[(0, true), (1, false)], WORST),
        [(0, Fit), (1, Undecided)]
    );
    assert_eq!(
        judged(&[(0, false), (0, true)], WORST),
        [(1, Fit), (0, Undecided)]
    );
    // What another CPU lacks is no gap of the one that is named.
    let named = format!("{WORST}\nvariant = \"cpu0\"");
    assert_eq!(judged(&[(0, true), (1, false)], &named), [(0, Fit)]);
    assert_eq!(
        judged(&[(0, true), (0, false)], &named),
        [(0, Fit), (1, Undecided)]
    );
    // In one run the first of two, in the others both: each answers for itself.
    let mut runs: Vec<Run> = (1..=5)
        .map(|seed| of_steps(seed, &[(0, true), (0, true)]))
        .collect();
    runs[2] = of_steps(3, &[(0, false), (0, true)]);
    let answers = judge(&limits(WORST), &runs, &Baselines::new())
        .unwrap()
        .answers;
    let found: Vec<Fitness> = answers.iter().map(|one| one.fitness).collect();
    assert_eq!(found, [Undecided, Fit]);
}

#[test]
fn a_plan_that_cannot_be_read_is_a_gap_and_no_empty_plan() {
    let mut all = runs("rt", 5);
    all[3].plan = "not a plan [[".into();
    let answer = only(WORST, &all);
    assert_eq!(answer.fitness, Fitness::Undecided);
    let reason = answer.reason();
    assert!(
        reason.starts_with("rt-4 (seed 4): its plan cannot be read"),
        "{reason}"
    );
    // Nor is it known whether what is missing was to be measured.
    for run in &mut all {
        run.plan = "not a plan [[".into();
        run.recordings.clear();
    }
    assert_eq!(only(WORST, &all).fitness, Fitness::Undecided);
    let mut broken = runs("rt", 5);
    broken[3].plan = "not a plan [[".into();
    broken[3].recordings[0] = recording(&[200_000], 1);
    assert_eq!(only(WORST, &broken).fitness, Fitness::Unfit);
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

#[test]
fn a_broken_limit_stays_broken_whatever_stands_beside_it() {
    let sound = runs("rt", 5);
    let late = |id: &str, seed: u64, change: &dyn Fn(&mut Run)| {
        let mut run = synthetic::run("rt", seed, &[200_000]);
        run.id = id.into();
        change(&mut run);
        run
    };
    let plan = |run: &mut Run| run.plan = run.plan.replace("[0]", "[0]\npriority = 7");
    let memory = |run: &mut Run| {
        if let MachineRecord::Virtual(machine) = &mut run.machine {
            machine.memory_mib = 512;
        }
    };
    let changes: [&dyn Fn(&mut Run); 3] = [&plan, &memory, &|_| {}];
    for change in changes {
        let mut all = sound.clone();
        all.push(late("late", 3, change));
        for turn in 0..all.len() {
            all.rotate_left(turn);
            let judgement = judge(&limits(WORST), &all, &Baselines::new()).unwrap();
            assert_eq!(judgement.fitness(), Fitness::Unfit, "{turn}");
            let named = format!("{WORST}\nsubject = \"rt\"");
            let judgement = judge(&limits(&named), &all, &Baselines::new()).unwrap();
            assert_eq!(judgement.fitness(), Fitness::Unfit, "{turn}");
        }
    }
}

#[test]
fn a_baseline_of_two_machines_is_not_one_to_compare_with() {
    let mut two = scaled("stable", 10, 100);
    for run in &mut two[5..] {
        if let MachineRecord::Virtual(machine) = &mut run.machine {
            machine.image_sha256 = "b".repeat(64);
        }
    }
    let baselines = Baselines::from([(None, two)]);
    let of_stable = OF_BASELINE.replace("baseline", "stable");
    let error = judge(&limits(&of_stable), &scaled("mine", 5, 100), &baselines).unwrap_err();
    assert!(
        error.reason.starts_with("expected one subject stable"),
        "{error}"
    );
}

#[test]
fn a_copy_that_leaves_out_what_speaks_against_a_run_hides_nothing() {
    let all = on_a_machine(runs("rt", 5), "virtualised", true);
    let mut copies = on_a_machine(runs("rt", 5), "virtualised", false);
    for copy in &mut copies {
        copy.id = format!("a-{}", copy.id);
    }
    for runs in [
        [all.clone(), copies.clone()].concat(),
        [copies, all].concat(),
    ] {
        let answer = only(WORST, &runs);
        assert_eq!((answer.runs, answer.fitness), (5, Fitness::Undecided));
        assert!(
            answer.reason().contains("hypervisor"),
            "{}",
            answer.reason()
        );
    }
}

#[test]
fn a_copy_from_which_another_step_was_left_out_adds_nothing() {
    let both = |number: u64| of_steps(number, &[(0, true), (1, true)]);
    let four = on_a_machine((1..=4).map(both).collect(), "virtualised", false);
    let mut copy = four[0].clone();
    copy.id = "copy".into();
    copy.recordings.remove(1);
    let runs = [four, vec![copy]].concat();
    let named = format!("{WORST}\nvariant = \"cpu0\"");
    let answer = only(&named, &runs);
    assert_eq!((answer.runs, answer.fitness), (4, Fitness::Undecided));
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

/// The arrivals known of a run's step; the latest has 40 µs, in `holds_up`.
fn known(worst: i64, reached: Option<i64>) -> Vec<Arrivals> {
    vec![Arrivals {
        time: Nanos(99_000_000),
        worst: Nanos(worst),
        function: Some("holds_up".into()),
        aims: usize::from(reached.is_some()),
        reached: reached.map(Nanos),
        reached_function: reached.map(|_| "holds_up".into()),
        ..Arrivals::default()
    }]
}

fn watched(worst: i64, reached: Option<i64>) -> Vec<Run> {
    let mut all = runs("rt", 5);
    for run in &mut all {
        run.arrivals = known(worst, reached);
    }
    all
}

const ARRIVAL: &str = "what = \"arrival\"\nat_most = \"50 us\"";
const REACHED: &str = "what = \"reached\"\nat_most = \"50 us\"";

#[test]
fn every_arrival_is_fit_where_each_run_was_watched_and_says_of_how_many_moments() {
    let fit = only(ARRIVAL, &watched(40_000, None));
    assert_eq!((fit.fitness, fit.more), (Fitness::Fit, None));
    assert_eq!(
        fit.reason(),
        "the latest arrival of 495,000,000 moments (495 ms) in 5 runs is 40.0 µs late"
    );
    assert_eq!(
        fit.confidence().unwrap(),
        "excluded with 95 % confidence: such an arrival in more than 45 % of runs"
    );
    let fit = only(REACHED, &watched(40_000, Some(39_000)));
    assert_eq!(fit.fitness, Fitness::Fit);
    assert!(
        fit.reason()
            .ends_with("; the latest aimed sample was 39.0 µs late")
    );
    let four = only(ARRIVAL, &watched(40_000, None)[..4]);
    assert_eq!(
        (four.fitness, four.more),
        (Fitness::Undecided, Some(More::Runs(1)))
    );
}

#[test]
fn an_interrupts_arrivals_are_judged_at_its_hard_handler_and_never_reached() {
    let of_probe = |probe: &str, variant: &str, rest: &str, limit: &str| {
        let mut all = watched(40_000, None);
        for run in &mut all {
            let planned = run.plan.replace("cpus = [0]\n", rest);
            run.plan = planned.replace("probe = \"timer\"", &format!("probe = \"{probe}\""));
            run.steps[0].probe = probe.into();
            let key = &mut run.recordings[0].key;
            (key.probe, key.variant) = (probe.into(), variant.into());
        }
        let limits = [toml::from_str(&format!("probe = \"{probe}\"\n{limit}")).unwrap()];
        let mut judgement = judge(&limits, &all, &Baselines::new()).unwrap();
        judgement.answers.remove(0)
    };
    let of = |variant: &str, limit: &str| of_probe("irq", variant, "", limit);
    for variant in ["hard", "idle hard"] {
        let fit = of(variant, ARRIVAL);
        assert_eq!(fit.fitness, Fitness::Fit, "{}", fit.reason());
        let unaimed = of(variant, REACHED);
        assert_eq!(
            (unaimed.fitness, unaimed.more),
            (Fitness::Undecided, Some(More::Whole))
        );
        let why = "no sample can be aimed at an interrupt: `what = \"arrival\"`";
        assert!(unaimed.reason().ends_with(why), "{}", unaimed.reason());
    }
    // A program's threads have no figure of it, and nobody is sent to look for one.
    let program = of_probe("app", "loop lateness", "run = [\"loop\"]\n", ARRIVAL);
    assert_eq!(program.fitness, Fitness::Undecided);
    let why = "of a program's threads `punctual arrivals` tells, and no limit is on that";
    assert!(program.reason().contains(why), "{}", program.reason());
    // What is known is known of no other stage of the same step.
    for variant in ["thread", "whole"] {
        let other = of(variant, ARRIVAL);
        assert_eq!(other.fitness, Fitness::Undecided);
        let why = "arrivals are known at the hard handler only: `variant = \"hard\"`";
        assert!(other.reason().ends_with(why), "{}", other.reason());
    }
}

#[test]
fn what_was_reached_is_proof_and_what_is_foretold_or_not_watched_is_none() {
    for limit in [ARRIVAL, REACHED] {
        let mut one = watched(40_000, Some(39_000));
        one[3].arrivals = known(61_000, Some(60_000));
        let unfit = only(limit, &one);
        assert_eq!((unfit.fitness, &unfit.sample), (Fitness::Unfit, &None));
        assert_eq!(
            unfit.reason(),
            "an aimed sample of rt-4 (seed 4) was 60.0 µs late in `holds_up`"
        );
        // A sample of the run is proof, too, be it watched or not.
        let mut broken = runs("rt", 1);
        broken[0] = synthetic::run("rt", 1, &[5_000, 51_000]);
        assert_eq!(only(limit, &broken).fitness, Fitness::Unfit);
        let foretold = only(limit, &watched(61_000, Some(49_000)));
        assert_eq!(foretold.fitness, Fitness::Undecided);
        assert_eq!(
            foretold.reason(),
            "rt-1 (seed 1): an arrival is foretold to be 61.0 µs late, in `holds_up`; the latest \
             aimed sample was 49.0 µs late"
        );
        let mut one = watched(40_000, Some(39_000));
        one[4].arrivals.clear();
        let not = only(limit, &one);
        assert_eq!(not.fitness, Fitness::Undecided);
        let command = "its arrivals were not watched: `punctual arrivals rt-5";
        assert!(not.reason().contains(command), "{}", not.reason());
        assert_eq!(
            not.more,
            Some(More::Watched {
                aimed: limit == REACHED
            })
        );
        let mut forecast = watched(40_000, Some(39_000));
        forecast[0].arrivals[0].is_forecast = true;
        assert_eq!(only(limit, &forecast).fitness, Fitness::Undecided);
        let mut part = watched(40_000, Some(39_000));
        part[1].arrivals[0].gap = Some("2 periods could not be looked at".into());
        let part = only(limit, &part);
        assert_eq!(
            (part.fitness, part.more),
            (Fitness::Undecided, Some(More::Whole))
        );
        let gap = "not every arrival is known: 2 periods could not be looked at";
        assert!(part.reason().ends_with(gap), "{}", part.reason());
        // What is foretold may be wrong by so much.
        let near = only(limit, &watched(48_900, Some(48_000)));
        assert_eq!(near.fitness, Fitness::Undecided);
        let within = "48.9 µs late, give or take 1.20 µs, in `holds_up`";
        assert!(near.reason().contains(within), "{}", near.reason());
        // Of another step nothing is known.
        let mut other = watched(40_000, Some(39_000));
        other[2].arrivals[0].step = 1;
        assert_eq!(only(limit, &other).fitness, Fitness::Undecided);
    }
    let unaimed = only(REACHED, &watched(40_000, None));
    assert_eq!(unaimed.fitness, Fitness::Undecided);
    assert!(
        unaimed
            .reason()
            .contains("`punctual arrivals rt-1 --aim 10`")
    );
    let open = only(ARRIVAL, &watched(61_000, None));
    assert!(
        open.reason()
            .ends_with(": `punctual arrivals rt-1 --aim 10` may prove it")
    );
    assert_eq!(open.fitness, Fitness::Undecided);
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measurements that are missing, or of which too little is known, keep no limit.

use punctual_model::recording::{OBSERVED, UNTOLD};
use punctual_model::run::State;

use super::*;

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

#[test]
fn a_limit_that_the_runs_do_not_answer_hides_no_other_verdict() {
    let all = runs("rt", 5);
    let broken = limits("what = \"worst\"\nat_most = \"1 us\"");
    for (rest, expected) in [
        ("variant = \"cpu7\"\n", "expected the variant cpu7, found "),
        ("subject = \"full\"\n", "expected a subject full, found rt"),
        (
            "load = \"idle\"\n",
            "expected a measurement by timer under idle, found ",
        ),
    ] {
        let both = [limits(&format!("{rest}{WORST}")), broken.clone()].concat();
        assert!(judge(&both, &all, &Baselines::new()).is_err(), "{rest}");
        let judgement = judge_each(&both, &all, &Baselines::new());
        let [open, unfit] = &judgement.answers[..] else {
            panic!("{judgement:?}")
        };
        assert_eq!(open.fitness, Fitness::Undecided);
        assert!(open.reason().starts_with(expected), "{}", open.reason());
        assert_eq!(unfit.fitness, Fitness::Unfit);
        assert_eq!(judgement.fitness(), Fitness::Unfit);
    }
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
    // Nor does a run that says nothing at all of its machine.
    silent.iter_mut().for_each(|run| run.provenance = None);
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
        // What cannot be told excludes nothing.
        assert!(answer.excluded.is_none() && answer.confidence().is_none());
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

/// A run whose samples are counted, and nobody knows in what time.
fn untimed(seed: u64, values: &[i64]) -> Run {
    let mut run = synthetic::run("rt", seed, values);
    let own = &mut run.recordings[0];
    *own = recording(values, 0);
    own.interval = None;
    own.worst.clear();
    run
}

#[test]
fn a_run_of_unknown_duration_keeps_to_no_rate_and_hides_no_broken_one() {
    // Twenty samples of one run are above, which is one burst: of 2,000 none, and of 10,000 it is
    // not known.
    let mut burst = vec![5_000; 2_000];
    burst[..20].fill(60_000);
    let of = |seed: u64, late: &[i64], quiet: &[i64]| {
        let values = if seed == 3 { late } else { quiet };
        synthetic::run("rt", seed, values)
    };
    let quiet = vec![5_000; 2_000];
    let timed: Vec<Run> = (1..=4).map(|seed| of(seed, &burst, &quiet)).collect();
    let rate = "above = \"50 us\"\nonce_in = \"250 ms\"";
    assert_eq!(only(rate, &timed).fitness, Fitness::Undecided);
    for more in [[5_000; 100], [60_000; 100]] {
        let mut all = timed.clone();
        all.push(untimed(5, &more));
        let answer = only(rate, &all);
        assert_eq!(
            (answer.fitness, answer.more),
            (Fitness::Undecided, Some(More::Whole))
        );
        let reason = "rt-5 (seed 5): the measured time is not known";
        assert_eq!(answer.reason(), reason);
    }
    let mut broken: Vec<Run> = (1..=4).map(|seed| of(seed, &burst, &burst)).collect();
    broken.push(untimed(5, &quiet));
    let often = "above = \"50 us\"\nonce_in = \"10 s\"";
    assert_eq!(only(often, &broken).fitness, Fitness::Unfit);
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

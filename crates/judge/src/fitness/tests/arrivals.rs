// SPDX-License-Identifier: MIT OR Apache-2.0
//! Limits on every arrival, and on what was reached.

use punctual_model::arrivals::Arrivals;

use super::*;

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

// SPDX-License-Identifier: MIT OR Apache-2.0
use punctual_judge::Baselines;
use punctual_model::Run;
use punctual_model::limit::{Bound, Demand, Figure, Reference};
use punctual_model::units::Nanos;
use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr as _;

use super::*;
use crate::fixtures::{self, assert_has};

fn limit(demand: Demand) -> Limit {
    Limit {
        name: None,
        probe: "timer".into(),
        load: Some("stress".into()),
        variant: None,
        part: None,
        subject: None,
        demand,
        confidence: 0.95,
        runs: None,
    }
}

fn judged(demands: Vec<Demand>, runs: &[Run]) -> Judgement {
    let limits: Vec<Limit> = demands.into_iter().map(limit).collect();
    punctual_judge::judge(&limits, runs, &Baselines::new()).unwrap()
}

/// Each kind of demand, so that each kind of reason comes.
fn every_kind() -> Judgement {
    let relative = |of: &str| {
        Demand::Relative(
            Figure::Mean,
            Bound::AtMost(1.15),
            Reference::Subject(of.into()),
        )
    };
    let demands = vec![
        Demand::Never(Nanos::from_micros(100)),
        Demand::Missed(0),
        Demand::Jitter(Nanos::from_micros(100)),
        Demand::Rare {
            above: Nanos::from_micros(50),
            once_in: Nanos::from_millis(60_000),
        },
        Demand::Typical(Figure::Quantile(0.999), Bound::AtMost(50_000.0)),
        Demand::Typical(Figure::Work("messages".into()), Bound::AtLeast(1_000.0)),
        relative("none"),
    ];
    let mut runs = fixtures::seeds(5);
    runs[6].recordings[1].interrupted = true;
    judged(demands, &runs)
}

#[test]
fn a_copy_that_counts_once_is_told_everywhere() {
    let mut runs = fixtures::seeds(2);
    let mut copy = runs[0].clone();
    copy.id = "r99".into();
    runs.push(copy);
    let judgement = judged(vec![Demand::Never(Nanos::from_micros(100))], &runs);
    let told = format!("r99 is the same run as {}: it counts once", runs[0].id);
    assert_eq!(
        judgement_json(&judgement, &Stories::new())["remarks"],
        json!([told])
    );
    assert_has(&judgement_text(&judgement, &Stories::new(), 200), &[&told]);
    assert_has(
        &judgement_page(&judgement, &Stories::new(), &runs, &[]),
        &[&told],
    );
}

#[test]
fn the_text_says_what_is_fit_what_is_not_and_what_would_decide() {
    let runs = fixtures::seeds(5);
    let judgement = judged(vec![Demand::Never(Nanos::from_micros(100))], &runs);
    let text = judgement_text(&judgement, &Stories::new(), 80);
    // A command is not broken, but for whom a terminal is too narrow.
    let mut lines = text
        .lines()
        .filter(|line| !line.contains("punctual explain"));
    assert!(lines.all(|line| line.width() <= 80), "{text}");
    assert!(text.starts_with("timer: worst at most 100 µs\n  unfit      none, stress, cpu0\n"));
    assert!(text.contains("  punctual explain none-1 --probe timer --load stress --sample 1234"));
    assert_has(&text, &["  fit        rt, stress, cpu0\n"]);
    assert!(
        text.ends_with("unfit: subjects none, voluntary and full; fit: subject rt.\n"),
        "{text}"
    );
    let limits = vec![Demand::Never(Nanos::from_micros(100))];
    let mut few = judged(limits, &fixtures::seeds(3)[9..]);
    assert_eq!(few.subjects_to_decide(), (vec!["rt"], 2));
    few.decide = vec!["punctual run demo --seeds 4..5".into()];
    let few = judgement_text(&few, &Stories::new(), 80);
    assert_has(
        &few,
        &[
            "to decide: at least 2 more runs",
            "to decide what is undecided:\n  punctual run demo --seeds 4..5\n",
        ],
    );
    assert!(few.ends_with("undecided: subject rt.\n"), "{few}");
}

fn schema() -> impl Fn(&Value) -> Result<(), String> {
    let text = include_str!("../../../../docs/schema/verdict-1.json");
    |value| crate::schema::check("verdict-1.json", text, value)
}

#[test]
fn what_is_printed_is_what_the_schema_describes() {
    let judgement = every_kind();
    let value = judgement_json(&judgement, &Stories::new());
    let validate = schema();
    validate(&value).unwrap();
    let mut kinds: Vec<&str> = value["answers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["why"]["kind"].as_str().unwrap())
        .collect();
    kinds.sort_unstable();
    kinds.dedup();
    assert_eq!(
        kinds,
        [
            "broken", "gap", "jitter", "kept", "missed", "rate", "ratio", "typical"
        ]
    );
    for (path, wrong) in [
        ("/verdict", json!("good")),
        ("/answers/0/limit/demand/kind", json!("other")),
        ("/answers/0/sample/value_ns", json!("1 us")),
        ("/answers/0/more", json!({ "kind": "luck" })),
        ("/answers/0/why", json!({ "kind": "rate" })),
        ("/answers", json!([])),
    ] {
        let mut changed = value.clone();
        *changed.pointer_mut(path).unwrap() = wrong;
        assert!(validate(&changed).is_err(), "{path}");
    }
    let mut added = value.clone();
    added["answers"][0]["luck"] = json!(1);
    assert!(
        validate(&added).is_err(),
        "a field that the schema does not name"
    );
}

/// One subject for each outcome of its cases: kept, broken, too few runs, unsupported, failed.
fn each_outcome() -> (Judgement, Vec<Run>) {
    let mut runs = fixtures::seeds(5);
    runs.retain(|run| run.subject.name == "rt" || run.subject.name == "full");
    for run in runs.iter_mut().filter(|run| run.subject.name == "rt") {
        run.recordings.remove(0);
        run.unsupported.push(punctual_model::record::Unsupported {
            step: 0,
            probe: "timer".into(),
            load: "idle".into(),
            reason: "no # of SCHED_FIFO".into(),
        });
        run.plan = "seed = 1\n[[step]]\nprobe = \"timer\"\nload = \"idle\"\nsamples = 2000\n\
                    [[step]]\nprobe = \"timer\"\nload = \"stress\"\nsamples = 2000\n"
            .into();
    }
    let mut idle = limit(Demand::Never(Nanos::from_micros(100)));
    idle.load = Some("idle".into());
    let limits = [limit(Demand::Never(Nanos::from_micros(100))), idle];
    let judgement = punctual_judge::judge(&limits, &runs, &Baselines::new()).unwrap();
    (judgement, runs)
}

#[test]
fn ktap_has_a_subtest_for_each_answer_and_skips_only_what_a_probe_cannot_measure() {
    let (judgement, mut runs) = each_outcome();
    let only = |name: &str| Judgement {
        answers: judgement
            .answers
            .iter()
            .filter(|one| one.subject == name)
            .cloned()
            .collect(),
        ..judgement.clone()
    };
    let rt = ktap(&cases(&only("rt")), &runs);
    assert_eq!(
        rt.text,
        "KTAP version 1\n1..1\n  KTAP version 1\n  # Subtest: rt\n  1..2\n  \
         # none of 10000 samples in 5 runs (9.97 s) is above 100 µs; the worst was 8.07 µs\n  \
         ok 1 timer: worst at most 100 µs: rt, stress, cpu0\n  \
         # rt-1 (seed 1): unsupported: no no. of SCHED_FIFO\n  \
         not ok 2 timer: worst at most 100 µs: rt, idle # SKIP rt-1 (seed 1): unsupported: no \
         no. of SCHED_FIFO\n\
         not ok 1 rt # SKIP not all of it\n"
    );
    assert_eq!(rt.result, Ksft::Skip);
    let all = ktap(&cases(&judgement), &runs);
    assert_eq!(all.result, Ksft::Fail, "{}", all.text);
    assert!(
        all.text.starts_with("KTAP version 1\n1..2\n"),
        "{}",
        all.text
    );
    // A run that failed says nothing of what the kernel lacks.
    let rt_run = runs.iter_mut().find(|run| run.subject.name == "rt");
    rt_run.unwrap().state = punctual_model::run::State::Failed;
    let failed = ktap(&cases(&only("rt")), &runs);
    assert_eq!(failed.result, Ksft::Fail, "{}", failed.text);
    assert_has(
        &failed.text,
        &["not ok 2 timer: worst at most 100 µs: rt, idle # ERROR undecided: "],
    );
    // Nothing that was tested is no pass.
    assert_eq!(ktap(&[], &runs).result, Ksft::Fail);
}

#[test]
fn ktap_skips_no_step_because_another_of_its_name_is_unsupported() {
    let mut runs = fixtures::seeds(5);
    runs.retain(|run| run.subject.name == "rt");
    for run in &mut runs {
        let step = "[[step]]\nprobe = \"timer\"\nload = \"stress\"\nsamples = 2000\n";
        run.plan = format!("seed = {}\n{}", run.seed, step.repeat(2));
        run.recordings.retain(|one| one.key.load == "stress");
        run.recordings[0].interrupted = true;
        run.unsupported.push(punctual_model::record::Unsupported {
            step: 0,
            probe: "timer".into(),
            load: "stress".into(),
            reason: "no such CPU".into(),
        });
    }
    let judgement = judged(vec![Demand::Never(Nanos::from_micros(100))], &runs);
    let found = ktap(&cases(&judgement), &runs);
    assert_has(
        &found.text,
        &[
            "rt, stress, cpu0 # ERROR undecided: rt-1 (seed 1): interrupted after 2000 samples",
            "rt, stress # SKIP rt-1 (seed 1): unsupported: no such CPU",
        ],
    );
    assert_eq!(found.result, Ksft::Fail);
}

#[test]
fn ktap_has_no_pass_for_what_is_undecided() {
    let judgement = every_kind();
    let found = ktap(&cases(&judgement), &fixtures::seeds(5));
    let of = |start: &str| {
        let lines = found.text.lines();
        lines.filter(|line| line.starts_with(start)).count()
    };
    let fitness = |own| {
        let answers = judgement.answers.iter();
        answers.filter(|one| one.fitness == own).count()
    };
    assert_eq!(of("  ok "), fitness(Fitness::Fit));
    assert_eq!(
        of("  not ok "),
        judgement.answers.len() - fitness(Fitness::Fit)
    );
    let errors = found.text.matches(" # ERROR undecided: ").count();
    assert!(errors >= fitness(Fitness::Undecided), "{}", found.text);
    assert_eq!(found.result, Ksft::Fail);
}

#[test]
fn lava_gets_a_signal_with_a_measurement_without_spaces_in_names() {
    let text = lava(&cases(&every_kind()));
    let first = "<LAVA_SIGNAL_TESTCASE TEST_CASE_ID=none-timer-stress-cpu0-worst RESULT=fail \
                 UNITS=ns MEASUREMENT=381400>";
    assert_eq!(text.lines().next(), Some(first));
    assert!(
        text.contains("RESULT=unknown") && text.contains("RESULT=pass"),
        "{text}"
    );
}

#[test]
fn junit_counts_what_it_holds_and_escapes_it() {
    let mut judgement = every_kind();
    judgement.answers[0].limit.name = Some("<\"a & b\">".into());
    let text = junit(&cases(&judgement));
    assert_has(&text, &["name=\"&lt;&quot;a &amp; b&quot;&gt; ("]);
    for (tag, fitness) in [("failure", Fitness::Unfit), ("error", Fitness::Undecided)] {
        let own = judgement
            .answers
            .iter()
            .filter(|one| one.fitness == fitness)
            .count();
        assert!(own > 0);
        assert_eq!(text.matches(&format!("<{tag} ")).count(), own, "{tag}");
        let attribute = format!(" {tag}s=\"");
        let told = text.split(&attribute).skip(1);
        let told = told.map(|rest| rest.split('"').next().unwrap().parse::<usize>().unwrap());
        assert_eq!(told.sum::<usize>(), own, "{tag}");
    }
}

#[test]
fn a_subject_whose_name_begins_with_that_of_another_has_its_own_build() {
    let mut runs = fixtures::seeds(5);
    runs.retain(|run| ["none", "rt"].contains(&run.subject.name.as_str()));
    for run in &mut runs {
        let own = if run.subject.name == "rt" { "-rt" } else { "" };
        run.subject.name = format!("debian-6.12{own}");
    }
    let judgement = judged(vec![Demand::Never(Nanos::from_micros(100))], &runs);
    let builds = |cases: &[Case]| -> Vec<Value> {
        let value = kcidb(cases, &runs);
        let tests = value["tests"].as_array().unwrap().iter();
        tests.map(|test| test["build_id"].clone()).collect()
    };
    let expected = [
        json!("punctual:debian-6.12.90-amd64"),
        json!("punctual:debian-6.12.90-rt-amd64"),
    ];
    let mut cases = cases(&judgement);
    assert_eq!(builds(&cases), expected);
    // Two machines of one name have more behind it.
    for case in &mut cases {
        case.subject = format!("{} (virtual, memory 256 MiB)", case.subject);
    }
    assert_eq!(builds(&cases), expected);
    // Two kernels of one name, too.
    for run in &mut runs {
        run.subject.name = "debian".into();
    }
    let judgement = judged(vec![Demand::Never(Nanos::from_micros(100))], &runs);
    let value = kcidb(&super::cases(&judgement), &runs);
    let tests = value["tests"].as_array().unwrap().iter();
    let found: Vec<Value> = tests.map(|test| test["build_id"].clone()).collect();
    assert_eq!(found, expected);
}

#[test]
fn kcidb_and_openmetrics_say_the_same_as_the_verdicts() {
    let judgement = every_kind();
    let runs = fixtures::seeds(5);
    let value = kcidb(&cases(&judgement), &runs);
    let tests = value["tests"].as_array().unwrap();
    assert_eq!(tests.len(), judgement.answers.len());
    let first = &tests[0];
    assert_eq!(
        (&first["status"], &first["path"]),
        (&json!("FAIL"), &json!("punctual.timer.stress.cpu0.worst"))
    );
    assert_eq!(
        first["number"],
        json!({ "value": 0.000_381_4, "unit": "s", "prefix": "metric" })
    );
    let mut ids: Vec<&str> = tests
        .iter()
        .map(|test| test["id"].as_str().unwrap())
        .collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), tests.len(), "ids are unique");
    let text = openmetrics(&cases(&judgement), &runs);
    let labels = "subject=\"rt\",probe=\"timer\",load=\"stress\",variant=\"cpu0\"";
    for line in [
        format!("punctual_sample_seconds_bucket{{{labels},le=\"0.00001\"}} 10000"),
        format!("punctual_sample_seconds_count{{{labels}}} 10000"),
        format!(
            "punctual_verdict{{{labels},limit=\"timer.stress.cpu0.worst worst at most 100 µs\"}} 0"
        ),
    ] {
        assert!(text.lines().any(|own| own == line), "{line}\n{text}");
    }
    assert!(text.ends_with("# EOF\n"));
}

#[test]
fn the_title_names_a_subject_that_is_alone_and_the_suite_of_several() {
    let page = |runs: &[Run]| {
        let judgement = judged(vec![Demand::Never(Nanos::from_micros(100))], runs);
        judgement_page(&judgement, &Stories::new(), runs, &[])
    };
    // Of four subjects three are unfit.
    let runs = fixtures::seeds(5);
    assert_has(&page(&runs), &["<h1>Punctual: demo is unfit: "]);
    assert_has(&page(&runs[..5]), &["<h1>Punctual: none is unfit: "]);
}

#[test]
fn a_table_names_a_figure_only_beside_its_value() {
    let table = cases_csv(&cases(&every_kind()));
    assert!(table.contains(",worst,381400,"), "{table}");
    assert!(!table.contains(",worst,,"), "{table}");
}

#[test]
fn a_time_that_is_not_known_is_no_zero_in_a_table() {
    let (judgement, _) = each_outcome();
    let table = cases_csv(&cases(&judgement));
    let missing = table.lines().find(|line| line.contains("SCHED_FIFO"));
    let missing = missing.unwrap();
    // Runs, samples, and no time.
    assert!(missing.contains(",missing,,,0,0,,"), "{missing}");
}

#[test]
fn two_limits_of_one_demand_are_two_series() {
    let mut limits = vec![Demand::Never(Nanos::from_micros(100)); 2];
    limits.push(Demand::Never(Nanos::from_micros(200)));
    let runs = fixtures::seeds(5);
    let text = openmetrics(&cases(&judged(limits, &runs)), &runs);
    let lines = text.lines().filter(|line| line.starts_with("punctual_"));
    let mut series: Vec<&str> = lines.map(|line| line.rsplit_once(' ').unwrap().0).collect();
    let all = series.len();
    series.sort_unstable();
    series.dedup();
    assert_eq!(series.len(), all, "{text}");
    assert_has(&text, &["at most 100 µs\"} ", "at most 100 µs-2\"} "]);
}

#[test]
fn of_samples_in_wide_bins_programs_get_what_is_known() {
    let mut runs = fixtures::seeds(5);
    for run in runs.iter_mut().filter(|run| run.subject.name == "rt") {
        run.recordings[1] = fixtures::in_a_wide_bin(&run.recordings[1]);
    }
    let text = openmetrics(&[], &runs);
    let of = |load: &str, what: &str, rest: &str| {
        let labels = format!("subject=\"rt\",probe=\"timer\",load=\"{load}\",variant=\"cpu0\"");
        text.contains(&format!("_seconds_{what}{{{labels}{rest}"))
    };
    // From 1 µs to the largest, 8.07 µs.
    assert!(of("stress", "bucket", ",le=\"0.000001\"} 0\n"), "{text}");
    assert!(of("stress", "bucket", ",le=\"0.00001\"} 10000\n"), "{text}");
    assert!(!of("stress", "bucket", ",le=\"0.000005\""), "{text}");
    for what in ["sum", "count"] {
        assert!(
            of("idle", what, "} ") && !of("stress", what, "} "),
            "{text}"
        );
    }
    // Sums are whole nanoseconds.
    let sums = text.lines().filter(|line| line.contains("_sum{"));
    for line in sums {
        let decimals = line.rsplit('.').next().unwrap();
        assert!(decimals.len() <= 9, "{line}");
    }
}

#[test]
fn no_character_that_xml_lacks_is_in_a_report_of_tests() {
    let mut judgement = every_kind();
    judgement.answers[0].limit.name = Some("a\u{fffe}b\u{ffff}c\u{1}d".into());
    let text = junit(&cases(&judgement));
    assert_has(&text, &["name=\"a b c d ("]);
}

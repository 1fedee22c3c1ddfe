// SPDX-License-Identifier: MIT OR Apache-2.0
use punctual_model::run::State;
use punctual_model::{MachineRecord, Run};
use unicode_width::UnicodeWidthStr as _;

use super::*;
use crate::fixtures::{self, assert_has};

fn refused(runs: Vec<Run>) -> String {
    Comparable::new(runs).unwrap_err().to_string()
}

fn two() -> Vec<Run> {
    vec![fixtures::run("none", 1), fixtures::run("rt", 1)]
}

#[test]
fn ratio_and_percentage_are_what_a_hand_finds() {
    let runs = Comparable::new(two()).unwrap();
    let comparison = compare(&runs);
    assert_eq!(comparison.subjects, ["none", "rt"]);
    let stress = &comparison.sections[1];
    assert_eq!(stress.figures, ["worst", "mean", "p99.9"]);
    let Cell::Time { value, ratio } = &stress.cells[0][0] else {
        panic!("no time")
    };
    assert_eq!((value.0, *ratio), (381_400, None));
    // 8,070 / 381,400 = 0.021159.
    let Cell::Time { value, ratio } = &stress.cells[1][0] else {
        panic!("no time")
    };
    assert_eq!(value.0, 8_070);
    assert!((ratio.unwrap() - 0.021_159).abs() < 1e-6);
    assert!((stress.cells[1][0].percent().unwrap() + 97.884).abs() < 0.001);
    let bench = &comparison.sections[2];
    assert_eq!(bench.figures, ["median", "longest"]);
    assert!((bench.cells[1][0].percent().unwrap() - 198.0198).abs() < 0.001);
    let text = comparison_text(&comparison, 80);
    assert_has(&text, &["8.07 µs     1/47   -97.9 %"]);
    assert!(text.lines().all(|line| line.width() <= 80), "{text}");
    // What has no room is said to be left out.
    assert_has(&text, &["Figures for which there is no room"]);
    let wide = comparison_text(&comparison, 200);
    assert!(wide.contains("p99") && !wide.contains("no room"), "{wide}");
}

#[test]
fn equal_digests_are_told_from_different_ones_and_from_other_seeds() {
    let mut again = fixtures::run("none", 1);
    again.id = "again".into();
    let verdicts = |runs| {
        let comparison = compare(&Comparable::new(runs).unwrap());
        (comparison.subjects, comparison.digests)
    };
    let (names, found) = verdicts(vec![fixtures::run("none", 1), again.clone()]);
    assert_eq!(names, ["none none-1", "none again"]);
    assert_eq!(found, [Digests::First, Digests::Equal]);
    assert_eq!(verdicts(two()).1, [Digests::First, Digests::Different]);
    let seeds = vec![fixtures::run("none", 1), fixtures::run("rt", 2)];
    assert_eq!(verdicts(seeds).1, [Digests::First, Digests::OtherSeeds]);
    again.recordings[0].missed = 1;
    let (_, found) = verdicts(vec![fixtures::run("none", 1), again]);
    assert_eq!(found, [Digests::First, Digests::Different]);
}

#[test]
fn the_second_of_two_steps_of_one_name_never_stands_beside_the_first() {
    let twice = |name: &str| {
        let mut run = fixtures::run(name, 1);
        let mut second = run.recordings[0].clone();
        let last = run.recordings.iter().map(|one| one.key.step).max().unwrap();
        (second.key.step, second.key.repetition) = (last + 1, 2);
        run.recordings.push(second);
        run
    };
    let (none, mut rt) = (twice("none"), twice("rt"));
    // The first recorded nothing there, so that the run numbers the second as its first.
    rt.recordings.remove(0);
    rt.recordings.last_mut().unwrap().key.repetition = 1;
    let rows = compare(&Comparable::new(vec![none, rt]).unwrap()).sections;
    let of_name = rows.iter().filter(|one| one.row.probe == rows[0].row.probe);
    let found: Vec<(u32, bool)> = of_name
        .filter(|one| one.row.load == rows[0].row.load && one.row.variant == rows[0].row.variant)
        .map(|one| {
            let is_there = matches!(one.cells[1].first(), Some(Cell::Time { .. }));
            (one.row.repetition, is_there)
        })
        .collect();
    assert_eq!(found, [(1, false), (2, true)]);
}

#[test]
fn nothing_is_not_equal_to_nothing() {
    let mut runs = vec![fixtures::run("none", 1), fixtures::run("rt", 1)];
    for run in &mut runs {
        run.recordings.clear();
    }
    let comparison = compare(&Comparable::new(runs).unwrap());
    assert_eq!(comparison.digests, [Digests::First, Digests::Unmeasured]);
    let value = comparison_json(&comparison);
    assert!(value["subjects"][1]["digest_equal"].is_null());
    assert_eq!(value["subjects"][1]["digest"], "none: nothing was measured");
}

#[test]
fn what_has_no_measurement_in_common_is_nothing_to_compare() {
    let told = |runs| Comparable::new(runs).unwrap().nothing_to_compare();
    let (one, mut other) = (fixtures::run("none", 1), fixtures::run("rt", 1));
    assert_eq!(told(vec![one.clone(), other.clone()]), None);
    let seeds = told(vec![one.clone(), fixtures::run("none", 2)]);
    assert_eq!(
        seeds.unwrap(),
        "none-1 and none-2 are seeds of one subject: nothing to compare; `punctual show none-1 \
         none-2` shows them together"
    );
    for own in &mut other.recordings {
        own.key.variant = format!("other {}", own.key.variant);
    }
    let why = told(vec![one, other]).unwrap();
    assert_has(&why, &["have measured nothing in common", "\n  rt: "]);
}

#[test]
fn what_is_not_the_same_measurement_is_refused_and_named() {
    let with = |change: &dyn Fn(&mut Run)| {
        let mut runs = two();
        change(&mut runs[1]);
        refused(runs)
    };
    assert_eq!(
        with(&|run| run.suite = "celf".into()),
        "none-1 is of suite demo, rt-1 of suite celf: measure both with one suite"
    );
    assert!(
        with(&|run| run.subject.bench = "host".into())
            .ends_with("the bench is virtual here and host there")
    );
    assert!(
        with(&|run| fixtures::virtual_machine(run).ns_per_insn = 2)
            .ends_with("the time is 1 ns per instruction here and 2 ns per instruction there")
    );
    assert!(
        with(&|run| fixtures::virtual_machine(run).cpus = 2)
            .ends_with("here and 1 ns per instruction of any of 2 CPUs there")
    );
    let mut scaled = two();
    for (run, samples) in scaled.iter_mut().zip([4000, 400]) {
        run.plan = format!("seed = 1\n[[step]]\nprobe = \"timer\"\nsamples = {samples}\n");
    }
    assert!(refused(scaled).ends_with("step 1 differs: samples is 4000 here and 400 there"));
    let mut same = fixtures::run("rt", 1);
    same.id = "none-1".into();
    assert_eq!(
        refused(vec![fixtures::run("none", 1), same]),
        "none-1 is named twice"
    );
}

#[test]
fn seeds_and_absent_modules_do_not_make_another_measurement() {
    let mut runs = two();
    runs[0].plan = "seed = 1\n[[step]]\nprobe = \"timer\"\n".into();
    runs[1].plan =
        "seed = 2\n[absent]\npulse = \"no\"\n[[step]]\nprobe = \"timer\"\nfull = 9\n".into();
    assert!(Comparable::new(runs).is_ok());
}

#[test]
fn half_a_run_is_refused_and_never_a_zero() {
    for state in [State::Interrupted, State::Failed, State::Running] {
        let mut runs = two();
        runs[1].state = state;
        let refusal = refused(runs);
        assert!(
            refusal.starts_with("rt-1 (rt) cannot be compared: the run"),
            "{refusal}"
        );
    }
    let mut runs = two();
    runs[1].recordings.remove(1);
    let comparison = compare(&Comparable::new(runs).unwrap());
    assert_eq!(
        comparison.sections[1].cells[1][0],
        Cell::Absent("not measured".into())
    );
    let json = comparison_json(&comparison);
    let worst = &json["measurements"][1]["subjects"][1]["figures"]["worst"];
    assert_eq!(*worst, serde_json::json!({ "absent": "not measured" }));
    assert_eq!(json["subjects"][1]["digest_equal"], false);
    // What the first lacks, the others cannot be divided by.
    let mut runs = two();
    runs[0].recordings.remove(1);
    let comparison = compare(&Comparable::new(runs).unwrap());
    let row = comparison
        .sections
        .iter()
        .find(|one| one.row.load == "stress")
        .unwrap();
    assert!(matches!(row.cells[1][0], Cell::Time { ratio: None, .. }));
}

#[test]
fn the_table_for_programs_has_a_line_for_each_figure_of_each_subject() {
    let mut runs = two();
    runs[1].recordings.remove(2);
    let table = comparison_csv(&compare(&Comparable::new(runs).unwrap()));
    let mut lines = table.lines();
    let head = "probe,load,variant,figure,subject,ns,ratio,verdict,run_by_run,low,high,p,note";
    assert_eq!(lines.next(), Some(head));
    let columns = head.split(',').count();
    assert!(
        lines.all(|line| line.split(',').count() == columns),
        "{table}"
    );
    assert_has(
        &table,
        &[
            "timer,stress,cpu0,worst,none,381400,,,,,,,\n",
            "timer,stress,cpu0,worst,rt,8070,0.0211",
            ",rt,,,,,,,,not measured\n",
        ],
    );
}

#[test]
fn a_ratio_for_programs_is_that_of_the_times_beside_it() {
    let mut runs = fixtures::seeds(5);
    runs.truncate(10);
    // The worst of one seed, ten times: the worst of all, and one run of five.
    let one = &mut runs[5].recordings[1];
    *one = fixtures::changed(one, &|ns| ns * 10);
    let comparison = compare(&Comparable::new(runs.clone()).unwrap());
    let json = comparison_json(&comparison);
    let subject = &json["measurements"][1]["subjects"][1];
    let (worst, verdict) = (&subject["figures"]["worst"], &subject["verdict"]);
    let number = |value: &serde_json::Value| value.as_f64().unwrap();
    let ratio = 3_841_200.0 / 381_400.0;
    assert_eq!(worst["ns"], 3_841_200);
    assert!((number(&worst["ratio"]) - ratio).abs() < 1e-9, "{worst}");
    let percent = (ratio - 1.0) * 100.0;
    assert!((number(&worst["percent"]) - percent).abs() < 1e-6);
    assert!(number(&verdict["ratio"]) < 2.0, "{verdict}");
    let table = comparison_csv(&comparison);
    let line = "timer,stress,cpu0,worst,voluntary,3841200,10.0713";
    assert_has(&table, &[line]);
    // The bounds are those of the ratio beside them.
    let line = table.lines().find(|own| own.starts_with(line)).unwrap();
    let fields: Vec<&str> = line.split(',').collect();
    let [between, low, high] = [8, 9, 10].map(|at| fields[at].parse::<f64>().unwrap());
    assert!((low..=high).contains(&between) && between < 2.0, "{line}");
    // People are shown the ratio that is judged, and are told so.
    let text = comparison_text(&comparison, 80);
    assert!(!text.contains("10.07×"), "{text}");
    assert_has(&text, &["3.84 ms", "first ratio is taken run by run"]);
    let page = crate::comparison_page(&runs, &[], &comparison);
    assert!(!page.contains("10.07×"), "{page}");
    assert_has(&page, &["first ratio is taken run by run"]);
}

#[test]
fn what_ended_early_is_not_lower_and_a_note_says_so() {
    let mut runs = fixtures::seeds(5);
    runs.retain(|run| ["none", "rt"].contains(&run.subject.name.as_str()));
    for run in &mut runs {
        run.recordings.retain(|one| one.key.load == "stress");
        run.recordings[0].interrupted = run.subject.name == "rt" && run.seed > 1;
    }
    let comparison = compare(&Comparable::new(runs).unwrap());
    let verdict = comparison.sections[0].verdicts[1].unwrap().verdict;
    assert_eq!(verdict_name(&verdict), "undecided");
    let note = "rt, timer, stress, cpu0: seed 2: interrupted after 2000 samples; no verdict counts \
                it.";
    assert!(
        comparison.notes.iter().any(|one| one == note),
        "{:?}",
        comparison.notes
    );
}

#[test]
fn the_verdict_on_one_row_alone_is_told_in_full() {
    let of = |seeds: u64| {
        let mut runs = fixtures::seeds(seeds);
        runs.retain(|run| ["none", "rt"].contains(&run.subject.name.as_str()));
        for run in &mut runs {
            run.recordings.retain(|one| one.key.load == "stress");
        }
        let sentences = verdict_sentences(&compare(&Comparable::new(runs).unwrap()));
        assert_eq!(sentences.len(), 1, "{sentences:?}");
        sentences.concat()
    };
    let told = of(5);
    let expected = "rt against none, timer, stress, cpu0: lower 1/47 (1/";
    assert!(told.starts_with(expected), "{told}");
    let told = of(1);
    let expected = "rt against none: undecided: too few runs: 1 and 1, ";
    assert!(told.starts_with(expected), "{told}");
}

#[test]
fn in_real_time_it_asks_for_more_runs_and_for_no_seeds() {
    let mut runs = fixtures::seeds(5);
    runs.truncate(10);
    for run in &mut runs {
        let times = [1, 7, 2, 30, 4][run.seed as usize - 1];
        run.machine = MachineRecord::default();
        run.recordings[1] = fixtures::changed(&run.recordings[1], &|ns| ns * times);
    }
    let told = verdict_sentences(&compare(&Comparable::new(runs).unwrap())).concat();
    let expected = "voluntary against none, timer, stress, cpu0: not separated";
    assert_has(
        &told,
        &[expected, " more runs of each are enough to see 1.20×"],
    );
    assert!(!told.contains("seed"), "{told}");
}

#[test]
fn two_builds_of_one_kernel_are_compared_as_two_subjects() {
    let mut runs = fixtures::seeds(5);
    runs.truncate(5);
    let other = runs.clone();
    runs.extend(other);
    for (number, run) in runs.iter_mut().enumerate() {
        run.id = format!("r{}", number + 1);
        if number >= 5 {
            fixtures::virtual_machine(run).image_sha256 = "ab".repeat(32);
            run.recordings[1] = fixtures::changed(&run.recordings[1], &|ns| ns / 10);
        }
    }
    let comparison = compare(&Comparable::new(runs).unwrap());
    let expected = ["none image 5f8c1d7e", "none image abababab"];
    assert_eq!(comparison.subjects, expected);
    let words = |at: usize| verdict_name(&comparison.sections[at].verdicts[1].unwrap().verdict);
    assert_eq!([words(0), words(1)], ["identical", "lower"]);
}

#[test]
fn words_stand_beside_words() {
    let runs = Comparable::new(fixtures::all_probes()).unwrap();
    let comparison = compare(&runs);
    let threads = comparison
        .sections
        .iter()
        .find(|one| one.row.probe == "kthreads")
        .unwrap();
    assert_eq!(threads.figures[0], "each irq threaded");
    assert_eq!(threads.cells[1][0], Cell::Word("yes".into()));
}

#[test]
fn verdicts_are_of_runs_and_not_of_bare_numbers() {
    let runs = [
        fixtures::seeds(5)[..5].to_vec(),
        fixtures::seeds(5)[15..].to_vec(),
    ]
    .concat();
    let comparison = compare(&Comparable::new(runs).unwrap());
    let words = |at: usize| verdict_name(&comparison.sections[at].verdicts[1].unwrap().verdict);
    assert_eq!([words(0), words(1), words(2)], ["lower", "lower", "higher"]);
    assert!(
        comparison
            .sections
            .iter()
            .all(|section| section.verdicts[0].is_none())
    );
    let text = comparison_text(&comparison, 80);
    assert_has(
        &text,
        &["  rt against none, timer, idle, cpu0: lower 0.34× ("],
    );
    let json = comparison_json(&comparison);
    let verdict = &json["measurements"][1]["subjects"][1]["verdict"];
    assert_eq!(
        (&verdict["verdict"], &verdict["more"]),
        (&"lower".into(), &serde_json::Value::Null)
    );
    // One run each has lower numbers and no verdict.
    let one = compare(&Comparable::new(two()).unwrap());
    let text = comparison_text(&one, 80);
    assert_has(
        &text,
        &["rt against none: undecided: too few runs: 1 and 1, 5 each are needed"],
    );
    let mut again = fixtures::run("none", 1);
    again.id = "again".into();
    let same = compare(&Comparable::new(vec![fixtures::run("none", 1), again]).unwrap());
    let text = comparison_text(&same, 80);
    assert_has(&text, &["none again against none none-1: identical."]);
}

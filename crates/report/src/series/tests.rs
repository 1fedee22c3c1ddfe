// SPDX-License-Identifier: MIT OR Apache-2.0
//! A line of kernels with known truth.

use punctual_model::record::Unsupported;

use super::*;
use crate::fixtures::{self, assert_has};

/// Eight releases with three runs each, the last four of which take twice as long.
/// A load's work never changes.
fn runs() -> Vec<Run> {
    let mut runs = Vec::new();
    for release in 0..8_i64 {
        for seed in 1..=3_i64 {
            let worst = if release < 4 { 7_000 } else { 14_000 } + 10 * seed + release;
            let timer = fixtures::recording(["timer", "stress", "cpu0"], &[3_000, 3_000, worst]);
            let mut run = fixtures::run_with(vec![timer]);
            run.id = format!("r{}", release * 3 + seed);
            run.seed = seed as u64;
            run.subject.kernel = format!("debian-6.12-rt@6.12.{}-1~bpo12+1", 43 + release);
            run.subject.name.clone_from(&run.subject.kernel);
            run.subject.boot = String::new();
            runs.push(run);
        }
    }
    runs
}

#[test]
fn a_change_is_found_named_and_asked_about() {
    let runs = runs();
    let found = lines(&runs, &Rule::default());
    let [line] = &found[..] else {
        panic!("{found:?}")
    };
    assert_eq!(
        (line.name.as_str(), line.releases.len()),
        ("debian-6.12-rt", 8)
    );
    assert_eq!(line.releases[0].version, "6.12.43");
    let [worst, median] = &line.rows[..] else {
        panic!("{line:?}")
    };
    assert_eq!(worst.title(), "timer, stress, cpu0: worst");
    assert_eq!(
        worst.changes.iter().map(|one| one.at).collect::<Vec<_>>(),
        [4]
    );
    assert!(median.changes.is_empty());
    let [before, after] = &worst.levels()[..] else {
        panic!("{worst:?}")
    };
    assert_eq!((before.releases, after.releases), ((0, 3), (4, 7)));
    let [question] = &questions(line, 9, &|_, _| true)[..] else {
        panic!("one question")
    };
    // Of three runs each the middle one.
    assert_eq!(
        (question.at, question.asked.runs.clone()),
        (4, ["r14".into(), "r11".into()])
    );
}

#[test]
fn all_forms_say_the_same() {
    let mut runs = runs();
    runs[5].state = State::Failed;
    runs[5].error = Some("it did not boot".into());
    let found = lines(&runs, &Rule::default());
    let text = series_text(&found, None, 80);
    assert_has(
        &text,
        &[
            "debian-6.12-rt: 8 releases, 6.12.43 to 6.12.50: 1 change in 2 figures.",
            "6.12.44: r6 (seed 3): ",
            "it did not boot",
            "6.12.47 to 6.12.50: 14.0 µs",
            "+7,005 ns (2.00×), p 0.0005",
            "timer, stress, cpu0: median: no change; 3.00 µs",
        ],
    );
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    let csv = series_csv(&found);
    assert_eq!(csv.lines().count(), 1 + 2 * 23);
    assert!(csv.contains("debian-6.12-rt,6.12.43,"), "{csv}");
    let schema = |value: &_| {
        let text = include_str!("../../../../docs/schema/series-1.json");
        crate::schema::check("series-1.json", text, value)
    };
    let json = series_json(&found, None);
    schema(&json).unwrap();
    let mut broken = json.clone();
    broken["lines"][0]["figures"][0]["values"][0][0]["ns"] = "7".into();
    assert!(schema(&broken).is_err());
    let page = series_page(&found, None, &runs, &[]);
    assert_has(&page, &["release by release", "<svg", "6.12.50"]);
    // What changed is seen at once, what did not when it is asked for.
    let folded = page.find("<details>").unwrap();
    let at = |title: &str| page.find(&format!("<b>{title}</b>")).unwrap();
    assert!(at("timer, stress, cpu0: worst") < folded);
    assert!(at("timer, stress, cpu0: median") > folded);
    assert_has(&page, &["What did not change <span>1 figure</span>"]);
}

/// Returns the outcome of a night, as in its JSON, whose form it checks against the schema.
fn standing(lines: &[Line], news: &News) -> Standing {
    let json = series_json(lines, Some(news));
    let schema = include_str!("../../../../docs/schema/series-1.json");
    crate::schema::check("series-1.json", schema, &json).unwrap();
    assert_eq!(json["news"]["standing"], news.standing().name());
    news.standing()
}

/// The first of these runs, as if more releases were still to come.
fn until(runs: &[Run], releases: usize) -> Vec<Line> {
    lines(&runs[..3 * releases], &Rule::default())
}

#[test]
fn what_is_new_is_told_once() {
    let rule = Rule::default();
    let runs = runs();
    let mut told = Told::default();
    // A first night tells nothing of changes before the newest release.
    let all = until(&runs, 8);
    let news = News::of(&all, &told, &rule);
    assert_eq!(news.standing(), Standing::Unchanged, "{news:?}");
    told.add(&all);
    assert_eq!(told.lines.len(), 1);

    // Told from the beginning, the change is news when it is seen, and only then.
    let mut told = Told::default();
    let mut standings = Vec::new();
    for releases in 2..=8 {
        let now = until(&runs, releases);
        let news = News::of(&now, &told, &rule);
        let of: Vec<usize> = news.changes.iter().map(|one| one.releases.1).collect();
        standings.push((releases, standing(&now, &news), of));
        let text = toml::to_string(&told).unwrap();
        assert_eq!(toml::from_str::<Told>(&text).unwrap(), told);
        told.add(&now);
    }
    let changed: Vec<_> = standings
        .iter()
        .filter(|one| one.1 == Standing::Changed)
        .collect();
    assert_eq!(changed.len(), 1, "{standings:?}");
    assert_eq!(changed[0].2, [4], "{standings:?}");
    // Too few runs are no pass: three of two releases tell nothing, where they differ.
    assert_eq!(standings[0].1, Standing::Undecided, "{standings:?}");
    assert_eq!(standings[6].1, Standing::Unchanged, "{standings:?}");
}

#[test]
fn two_suites_on_one_line_do_not_forget_what_the_other_has_told() {
    let rule = Rule::default();
    let of = |suite: &str, releases| {
        let mut runs = runs();
        for run in &mut runs {
            run.suite = suite.to_owned();
        }
        until(&runs, releases)
    };
    let mut told = Told::default();
    for suite in ["one", "other"] {
        told.add(&of(suite, 4));
    }
    let mut night = |suite: &str| {
        let found = of(suite, 8);
        let news = News::of(&found, &told, &rule);
        told.add(&found);
        news.standing()
    };
    let nights = ["one", "other", "one", "other"].map(&mut night);
    let (changed, unchanged) = (Standing::Changed, Standing::Unchanged);
    assert_eq!(nights, [changed, changed, unchanged, unchanged]);
    assert_eq!(told.lines.len(), 2);
}

#[test]
fn what_an_earlier_version_has_told_is_known() {
    let text = "[[line]]\nname = \"debian-6.12-rt\"\nchanges = [\"timer, stress, cpu0: worst, \
                debian-6.12-rt@6.12.47-1~bpo12+1\"]\n";
    let mut told: Told = toml::from_str(text).unwrap();
    let found = until(&runs(), 8);
    let news = News::of(&found, &told, &Rule::default());
    assert_eq!(news.standing(), Standing::Unchanged, "{news:?}");
    let known = told.lines[0].changes.clone();
    told.add(&found);
    let [line] = &told.lines[..] else {
        panic!("{told:?}")
    };
    assert_eq!((&line.changes, line.suite.is_some()), (&known, true));
}

#[test]
fn a_change_since_the_newest_release_is_news_even_on_the_first_night() {
    let mut runs = runs();
    for run in &mut runs {
        let release: usize = run.id[1..].parse::<usize>().unwrap().div_ceil(3);
        // Candidates of what comes after the third release.
        let version = if release > 3 {
            format!("6.13-rc{}", release - 3)
        } else {
            format!("6.12.{release}")
        };
        run.subject.kernel = format!("linux-mine@{version}");
        run.subject.name.clone_from(&run.subject.kernel);
    }
    let found = lines(&runs, &Rule::default());
    let versions: Vec<&str> = found[0].releases.iter().map(|one| &*one.version).collect();
    assert_eq!(versions[2..5], ["6.12.3", "6.13-rc1", "6.13-rc2"]);
    let news = News::of(&found, &Told::default(), &Rule::default());
    assert_eq!(news.standing(), Standing::Changed);
    let [change] = &news.changes[..] else {
        panic!("{news:?}")
    };
    assert!(change.is_higher());
    let sentence = change.sentence(&found[0]);
    assert_has(
        &sentence,
        &[
            "7.02 → 14.0 µs, 2.00× (",
            "from 6.13-rc1 to 6.13-rc2, p 0.0005",
        ],
    );
    let text = series_text(&found, Some(&news), 80);
    assert_has(&text, &["Since last time: changed.", "from 6.13-rc1 to"]);
    assert_eq!(standing(&found, &news), Standing::Changed);
    let json = series_json(&found, Some(&news));
    let change = &json["news"]["changes"][0];
    assert_eq!(
        (&change["from"], &change["to"]),
        (&"6.13-rc1".into(), &"6.13-rc2".into())
    );
    let page = series_page(&found, Some(&news), &runs, &[]);
    assert_has(
        &page,
        &["Since last time: changed.", "from 6.13-rc1 to 6.13-rc2"],
    );
}

#[test]
fn a_release_that_is_missing_is_told_once_and_the_newest_each_time() {
    let rule = Rule::default();
    let mut found = until(&runs(), 4);
    let left_out = |is_newest| LeftOut {
        kernel: "debian-6.12-rt@6.12.48-1".into(),
        why: "it does not compile".into(),
        is_newest,
    };
    for (is_newest, then) in [(false, Standing::Unchanged), (true, Standing::Missing)] {
        found[0].left_out = vec![left_out(is_newest)];
        let mut told = Told::default();
        told.add(&until(&runs(), 4));
        let news = News::of(&found, &told, &rule);
        assert_eq!(standing(&found, &news), Standing::Missing, "{news:?}");
        assert_has(&news.missing[0], &["6.12.48-1: it does not compile"]);
        told.add(&found);
        assert_eq!(News::of(&found, &told, &rule).standing(), then);
    }
}

/// Three seeds of three releases decide nothing, also where the third equals the second.
#[test]
fn what_is_undecided_stays_so_until_it_can_be_decided() {
    let mut runs = runs();
    runs.drain(3..12);
    let alike: Vec<_> = runs[3..6]
        .iter()
        .map(|run| run.recordings.clone())
        .collect();
    for (run, recordings) in runs[6..9].iter_mut().zip(alike) {
        run.recordings = recordings;
    }
    for releases in [2, 3] {
        let found = until(&runs, releases);
        let news = News::of(&found, &Told::default(), &Rule::default());
        assert_eq!(standing(&found, &news), Standing::Undecided, "{news:?}");
    }
}

#[test]
fn a_step_that_a_release_does_not_support_is_missing() {
    let mut runs = runs();
    runs[11].unsupported.push(Unsupported {
        step: 0,
        probe: "irq".into(),
        load: "stress".into(),
        reason: "there is no /dev/hpet".into(),
    });
    let found = until(&runs, 4);
    let news = News::of(&found, &Told::default(), &Rule::default());
    assert_eq!(standing(&found, &news), Standing::Missing, "{news:?}");
    assert_has(&news.missing[0], &["irq, stress: there is no /dev/hpet"]);
}

/// A program that crashed has measured less than was asked for.
#[test]
fn a_step_that_was_cut_short_is_missing() {
    let mut runs = runs();
    runs[11].recordings[0].interrupted = true;
    let found = until(&runs, 4);
    let news = News::of(&found, &Told::default(), &Rule::default());
    assert_eq!(standing(&found, &news), Standing::Missing, "{news:?}");
    assert_has(&news.missing[0], &["interrupted after "]);
}

#[test]
fn a_line_without_a_figure_is_missing() {
    let mut runs = runs();
    for run in &mut runs {
        run.recordings.clear();
    }
    let found = until(&runs, 4);
    let news = News::of(&found, &Told::default(), &Rule::default());
    assert_eq!(standing(&found, &news), Standing::Missing, "{news:?}");
}

#[test]
fn a_line_of_which_nothing_can_be_had_is_told_with_the_others() {
    let left_out = LeftOut {
        kernel: "debian-6.12@6.12.48-1".into(),
        why: "the package is gone".into(),
        is_newest: true,
    };
    let found = whole_lines(&runs(), &Rule::default(), "series", &[left_out]);
    let names: Vec<&str> = found.iter().map(|line| &*line.name).collect();
    assert_eq!(names, ["debian-6.12-rt", "debian-6.12"]);
    assert!(found[0].left_out.is_empty());
    let news = News::of(&found, &Told::default(), &Rule::default());
    assert_eq!(standing(&found[1..], &news), Standing::Missing, "{news:?}");
    let told = [
        "debian-6.12: nothing of it was measured.",
        "left out: debian-6.12@6.12.48-1: the package is gone",
    ];
    assert_has(&series_text(&found, None, 80), &told);
    assert_has(&series_page(&found, Some(&news), &runs(), &[]), &told[..1]);
}

#[test]
fn a_night_without_any_run_is_of_its_suite() {
    let left_out = LeftOut {
        kernel: "debian-6.12-rt@6.12.43-1".into(),
        why: "the package is gone".into(),
        is_newest: false,
    };
    let found = whole_lines(&[], &Rule::default(), "series", &[left_out]);
    let mut told = Told::default();
    told.lines.push(ToldLine {
        name: "debian-6.12-rt".into(),
        suite: Some("series".into()),
        missing: vec!["debian-6.12-rt@6.12.43-1".into()],
        ..ToldLine::default()
    });
    let news = News::of(&found, &told, &Rule::default());
    let known = "6.12.43-1";
    assert!(
        !news.missing.iter().any(|one| one.contains(known)),
        "{news:?}"
    );
    told.add(&found);
    assert_eq!(told.lines.len(), 1);
    assert_eq!(told.lines[0].suite.as_deref(), Some("series"));
}

#[test]
fn two_releases_of_one_version_are_told_apart() {
    let mut runs = runs();
    for run in &mut runs[..3] {
        run.subject.kernel = "debian-6.12-rt@6.12.44-2~bpo12+1".into();
        run.subject.name.clone_from(&run.subject.kernel);
    }
    let found = lines(&runs, &Rule::default());
    let versions: Vec<&str> = found[0].releases.iter().map(|one| &*one.version).collect();
    assert_eq!(versions[..3], ["6.12.44-2", "6.12.44-1", "6.12.45"]);
}

#[test]
fn a_night_that_misses_a_release_forgets_no_change() {
    let (runs, rule) = (runs(), Rule::default());
    let mut told = Told::default();
    for releases in [8, 4] {
        told.add(&until(&runs, releases));
    }
    let news = News::of(&until(&runs, 8), &told, &rule);
    assert_eq!(news.standing(), Standing::Unchanged, "{news:?}");
}

/// The fifth release alone differs, and the one behind it does not boot.
#[test]
fn a_release_without_figures_is_not_blamed_and_hides_no_change() {
    let mut runs = runs();
    for at in 15..24 {
        runs[at].recordings = runs[at - 15].recordings.clone();
    }
    for run in &mut runs[15..18] {
        run.state = State::Failed;
    }
    let found = lines(&runs, &Rule::default());
    let line = &found[0];
    let places: Vec<usize> = line.rows[0].changes.iter().map(|one| one.at).collect();
    assert_eq!(places, [4, 6]);
    let news = News::of(&found, &Told::default(), &Rule::default());
    assert!(news.changes.is_empty(), "{news:?}");
    let mut told = Told::default();
    told.add(&until(&runs, 4));
    let news = News::of(&found, &told, &Rule::default());
    let mut places: Vec<_> = news.changes.iter().map(|one| one.releases).collect();
    places.sort_unstable();
    assert_eq!(places, [(3, 4), (4, 6)]);
    // No level reaches into the gap.
    let levels = line.rows[0].levels();
    let levels: Vec<_> = levels.iter().map(|one| one.releases).collect();
    assert_eq!(levels, [(0, 3), (4, 4), (6, 7)]);
    // The release before the gap is asked about.
    let all = questions(line, 9, &|_, _| true);
    let back = all.iter().find(|one| one.at == 6).expect("a question");
    assert_eq!(back.asked.runs, ["r20", "r14"].map(str::to_owned));
}

#[test]
fn a_change_has_figures_on_both_sides() {
    let one = |at| ChangePoint { at, p: 0.01 };
    let series = [vec![1.0], vec![], vec![2.0], vec![]];
    assert_eq!(measured_changes(&series, vec![one(1), one(2)]), [one(2)]);
    assert!(measured_changes(&series, vec![one(3)]).is_empty());
    assert!(measured_changes(&series[1..], vec![one(1)]).is_empty());
}

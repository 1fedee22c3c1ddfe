// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;
use crate::fixtures;

#[test]
fn no_cell_is_empty_and_none_is_lost() {
    for runs in [fixtures::whole(), fixtures::with_gaps(), fixtures::seeds(5)] {
        let matrix = Matrix::new(&runs);
        let sheet = Sheet::new(&matrix, Range::Beside);
        assert_eq!(sheet.sections.len(), matrix.rows.len());
        for line in sheet.sections.iter().flat_map(|section| &section.lines) {
            assert_eq!(line.cells.len(), matrix.columns.len());
            assert!(line.cells.iter().all(|cell| !cell.text.trim().is_empty()));
        }
    }
}

#[test]
fn the_best_and_the_worst_are_told_apart() {
    let runs = fixtures::whole();
    let sheet = Sheet::new(&Matrix::new(&runs), Range::Beside);
    let worst = &sheet.sections[1].lines[0];
    let ranks: Vec<Rank> = worst.cells.iter().map(|cell| cell.rank).collect();
    assert_eq!(
        ranks,
        [Rank::Plain, Rank::Plain, Rank::Highest, Rank::Lowest]
    );
    assert_eq!(worst.cells[3].text, "8.07 µs");
}

#[test]
fn the_same_reason_is_one_note() {
    let runs = fixtures::with_gaps();
    let sheet = Sheet::new(&Matrix::new(&runs), Range::Beside);
    let about = |text: &str| {
        sheet
            .notes
            .iter()
            .filter(|note| note.contains(text))
            .count()
    };
    assert_eq!(
        (about(fixtures::NO_MODULE), about(fixtures::NO_BOOT)),
        (1, 1)
    );
}

#[test]
fn a_quantile_is_one_that_all_can_support() {
    let mut runs = fixtures::whole();
    let few = runs[1].recordings[2].clone();
    let stress = &mut runs[1].recordings[1];
    *stress = punctual_model::Recording {
        key: stress.key.clone(),
        ..few
    };
    let sheet = Sheet::new(&Matrix::new(&runs), Range::Beside);
    let labels = |at: usize| {
        sheet.sections[at]
            .lines
            .iter()
            .map(|line| line.label.as_str())
            .collect::<Vec<_>>()
    };
    assert_eq!(labels(0), ["worst", "mean", "p99.9", "missed", "samples"]);
    assert_eq!(labels(1), ["worst", "mean", "median", "missed", "samples"]);
}

#[test]
fn seeds_show_their_range() {
    let runs = fixtures::seeds(5);
    let matrix = Matrix::new(&runs);
    let cell = |range| {
        Sheet::new(&matrix, range).sections[1].lines[0].cells[0]
            .text
            .clone()
    };
    assert_eq!(cell(Range::Beside), "381 µs (355–381)");
    assert_eq!(cell(Range::Below), "381 µs");
    let below = Sheet::new(&matrix, Range::Below);
    assert_eq!(below.sections[1].lines[1].cells[0].text, "355–381 µs");
}

/// The texts of a line of the runs' table.
fn texts(runs: &[punctual_model::Run], title: &str, label: &str) -> Vec<String> {
    let sheet = Sheet::new(&Matrix::new(runs), Range::Beside);
    let section = sheet.sections.iter().find(|section| section.title == title);
    let section = section.unwrap_or_else(|| panic!("no section {title}"));
    let line = section.lines.iter().find(|line| line.label == label);
    let line = line.unwrap_or_else(|| panic!("no line {label} in {title}"));
    line.cells.iter().map(|cell| cell.text.clone()).collect()
}

#[test]
fn what_takes_no_samples_shows_what_it_found() {
    let runs = fixtures::all_probes();
    let kthreads = |label| texts(&runs, "kthreads, idle", label);
    assert_eq!(kthreads("each irq threaded"), ["no", "yes"]);
    assert_eq!(kthreads("threads"), ["40", "59"]);
    let footprint = |label| texts(&runs, "footprint, idle", label);
    assert_eq!(footprint("text"), ["16.0 MiB", "16.0 MiB"]);
    assert_eq!(footprint("bss"), ["unknown", "unknown"]);
    assert_eq!(footprint("memory in use"), ["unknown", "unknown"]);
    let notes = Sheet::new(&Matrix::new(&runs), Range::Beside).notes;
    assert!(
        notes.contains(&"rt, footprint, idle, bss: hidden".to_owned()),
        "{notes:?}"
    );
}

#[test]
fn a_verdict_stands_before_the_time_and_is_never_a_pass_by_default() {
    let mut runs = fixtures::all_probes();
    let inversion = |runs: &[_], variant: &str, label| {
        texts(runs, &format!("inversion, idle, {variant}"), label)
    };
    assert_eq!(inversion(&runs, "inherit", "result"), ["pass", "pass"]);
    assert_eq!(
        inversion(&runs, "none", "result"),
        ["inverted, as it must be"; 2]
    );
    assert_eq!(inversion(&runs, "protect", "worst"), ["5.10 µs", "5.10 µs"]);
    runs[0].recordings[2].findings.remove("result");
    runs[1].recordings[2]
        .findings
        .insert("result".into(), fixtures::verdict(false, true));
    assert_eq!(inversion(&runs, "inherit", "result"), ["unknown", "FAIL"]);
}

#[test]
fn one_seed_that_fails_is_not_outvoted() {
    let mut runs = fixtures::all_probes();
    runs[0] = runs[1].clone();
    runs[0].seed = 2;
    runs[0].recordings[2]
        .findings
        .insert("result".into(), fixtures::verdict(false, true));
    let result = || texts(&runs, "inversion, idle, inherit", "result");
    assert_eq!(result(), ["FAIL"]);
    let notes = Sheet::new(&Matrix::new(&runs), Range::Beside).notes;
    let note = "rt, inversion, idle, inherit, result: seed 2 FAIL, seed 1 pass".to_owned();
    assert!(notes.contains(&note), "{notes:?}");
}

#[test]
fn steps_are_one_section_with_a_line_for_each() {
    let mut runs = fixtures::all_probes();
    let title = "switch, idle: worst / mean, n = 3";
    assert_eq!(
        texts(&runs, title, "N=2"),
        ["21.8 / 8.20 µs", "21.8 / 8.20 µs"]
    );
    runs[1]
        .recordings
        .retain(|recording| recording.key.variant != "N=10");
    runs[0].recordings[5].missed = 3;
    assert_eq!(
        texts(&runs, title, "N=10"),
        ["9.80 / 4.23 µs", "not measured"]
    );
    let notes = Sheet::new(&Matrix::new(&runs), Range::Beside).notes;
    assert!(
        notes.contains(&"none, switch, idle, N=2: 3 missed".to_owned()),
        "{notes:?}"
    );
}

#[test]
fn each_kind_of_figure_has_its_lines() {
    let runs = fixtures::all_probes();
    let release = |label| texts(&runs, "semaphore, idle, release", label);
    assert_eq!(release("waiters matter"), ["no", "no"]);
    assert_eq!(release("ns per waiter")[0], "0.02 (-0.01 to 0.05)");
    assert_eq!(
        texts(&runs, "semaphore, idle, acquire", "waiters matter")[0],
        "unknown"
    );
    let jitter = |label| texts(&runs, "realfeel, idle, rtc 2048 Hz", label);
    assert_eq!(
        (&*jitter("longest")[0], &*jitter("shortest")[0]),
        ("12.0 µs", "-12.1 µs")
    );
    assert_eq!(
        texts(&runs, "image, idle, user", "spread")[0],
        "0.900–0.910 s"
    );
}

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
        probe: "timer".into(),
        load: "stress".into(),
        variant: "cpu0".into(),
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
    assert_eq!(labels(0), ["worst", "mean", "p99.9", "missed"]);
    assert_eq!(labels(1), ["worst", "mean", "median", "missed"]);
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

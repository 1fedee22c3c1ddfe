// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table for terminals.

use comfy_table::{Attribute, Cell, CellAlignment, Color, Table};
use punctual_model::run::{NoDigest, Run};
use unicode_width::UnicodeWidthStr;

use crate::matrix::{Column, Matrix};
use crate::rows::{Head, Line, Range, Rank, Sheet, clock_note, colour_note, places};
use crate::summary::summary;
use crate::text::{Lines, clean, cut, short_names};

/// Names of subjects have room for this many columns at least.
const NAME: usize = 16;
const GAP: usize = 2;
const INDENT: &str = "  ";

/// Runs side by side, no line longer than `width`; with ANSI colours if `colour`.
///
/// Subjects that do not fit beside each other stand in blocks below each other.
pub fn table(runs: &[Run], width: usize, colour: bool) -> String {
    let width = width.max(40);
    let matrix = Matrix::new(runs);
    if matrix.columns.is_empty() {
        return "There are no runs.\n".to_owned();
    }
    let sheet = fitting(&matrix, width);
    let mut lines = Lines::new(width);
    lines.wrap(&head_line(&matrix), "", "");
    for columns in blocks(&sheet, width) {
        lines.line("");
        for line in block(&sheet, columns, width, colour) {
            lines.line(line);
        }
    }
    lines.line("");
    for (number, note) in (1..).zip(&sheet.notes) {
        let mark = format!("{} ", superscript(&[number]));
        lines.wrap(&clean(note), &mark, INDENT);
    }
    if matrix.columns.len() > 1 {
        if !sheet.notes.is_empty() {
            lines.line("");
        }
        lines.wrap(&clean(&summary(runs)), "", "");
        lines.line("");
    }
    let colours = colour_note(&matrix, &sheet).filter(|_| colour);
    let places = colours.into_iter().chain(places(&matrix));
    for place in places.chain(clock_note(&matrix)) {
        lines.wrap(&clean(&place), "", "");
    }
    // In real time nothing comes twice: a digest there means nothing.
    let is_virtual = |column: &&Column| column.runs.iter().all(|run| run.is_virtual());
    let wide = sheet.heads.iter().map(|head| head.name.width());
    let wide = wide.max().unwrap_or(0).max(NAME);
    for (column, head) in matrix.columns.iter().zip(&sheet.heads) {
        if is_virtual(&column) {
            digests(column, &head.name, wide, &mut lines);
        }
    }
    lines.finish()
}

/// Ranges beside the worst cases where that fits, else below them.
fn fitting(matrix: &Matrix<'_>, width: usize) -> Sheet {
    let beside = named(Sheet::new(matrix, Range::Beside), width);
    if blocks(&beside, width).len() == 1 {
        return beside;
    }
    named(Sheet::new(matrix, Range::Below), width)
}

/// With names as wide as there is room for beside each other.
fn named(mut sheet: Sheet, width: usize) -> Sheet {
    let room = width.saturating_sub(label_width(&sheet)) / sheet.heads.len().max(1);
    let names: Vec<&String> = sheet.heads.iter().map(|head| &head.name).collect();
    let names = short_names(&names, room.saturating_sub(GAP + 2).max(NAME));
    for (head, name) in sheet.heads.iter_mut().zip(names) {
        head.name = name;
    }
    sheet
}

/// `demo, seed 1, Punctual 0.1.0`.
pub(crate) fn head_line(matrix: &Matrix<'_>) -> String {
    let seeds: Vec<String> = matrix.seeds().iter().map(ToString::to_string).collect();
    let word = if seeds.len() == 1 { "seed" } else { "seeds" };
    format!(
        "{}, {word} {}, Punctual {}",
        clean(&matrix.suites().join(" and ")),
        seeds.join(", "),
        env!("CARGO_PKG_VERSION")
    )
}

/// Columns that stand beside each other.
type Columns = std::ops::Range<usize>;

fn blocks(sheet: &Sheet, width: usize) -> Vec<Columns> {
    let (label, widths) = (label_width(sheet), widths(sheet));
    let (mut blocks, mut first, mut used) = (Vec::new(), 0, label);
    for (at, column) in widths.iter().enumerate() {
        if at > first && used + GAP + column > width {
            blocks.push(first..at);
            (first, used) = (at, label);
        }
        used += GAP + column;
    }
    blocks.push(first..widths.len());
    blocks
}

fn all_lines(sheet: &Sheet) -> impl Iterator<Item = &Line> {
    sheet.sections.iter().flat_map(|section| &section.lines)
}

fn label_width(sheet: &Sheet) -> usize {
    let labels = all_lines(sheet).map(|line| line.label.width());
    INDENT.len() + labels.max().unwrap_or(0)
}

fn widths(sheet: &Sheet) -> Vec<usize> {
    let column = |(at, head): (usize, &Head)| {
        let cells = all_lines(sheet).map(|line| cell_text(line, at).width());
        let head = head_text(head);
        let widths = cells.chain(head.lines().map(UnicodeWidthStr::width));
        widths.max().unwrap_or(0)
    };
    sheet.heads.iter().enumerate().map(column).collect()
}

/// Returns the head of a column: one line or two.
pub fn head_text(head: &Head) -> String {
    let name = &head.name;
    let notes = superscript(&head.notes);
    match &head.clock {
        Some(clock) => format!("{name}{notes}\n{clock}"),
        None => format!("{name}{notes}"),
    }
}

fn cell_text(line: &Line, at: usize) -> String {
    let cell = &line.cells[at];
    format!("{}{}", cell.text, superscript(&cell.notes))
}

/// The lines of one block: the heads, and each measurement below its title.
fn block(sheet: &Sheet, columns: Columns, width: usize, colour: bool) -> Vec<String> {
    let mut table = Table::new();
    table.load_preset(comfy_table::presets::NOTHING);
    if colour {
        table.enforce_styling();
    } else {
        table.force_no_tty();
    }
    let head = |at: usize| bold(Cell::new(head_text(&sheet.heads[at])));
    table.add_row(std::iter::once(Cell::new("")).chain(columns.clone().map(head)));
    for line in all_lines(sheet) {
        table.add_row(cells(line, columns.clone()));
    }
    for (at, column) in table.column_iter_mut().enumerate() {
        let (gap, side) = match at {
            0 => (0, CellAlignment::Left),
            _ => (GAP, CellAlignment::Right),
        };
        column.set_padding((gap as u16, 0)).set_cell_alignment(side);
    }
    let rendered: Vec<String> = table.lines().collect();
    let mut rendered = rendered.iter().map(|line| line.trim_end().to_owned());
    let head_height = 1 + usize::from(sheet.heads.iter().any(|head| head.clock.is_some()));
    let mut lines: Vec<String> = rendered.by_ref().take(head_height).collect();
    for section in &sheet.sections {
        lines.push(cut(&clean(&section.title), width));
        lines.extend(rendered.by_ref().take(section.lines.len()));
    }
    lines
}

fn bold(cell: Cell) -> Cell {
    cell.add_attribute(Attribute::Bold)
}

fn cells(line: &Line, columns: Columns) -> Vec<Cell> {
    let emphasis = |cell: Cell| if line.strong { bold(cell) } else { cell };
    let value = |at: usize| {
        let cell = emphasis(Cell::new(cell_text(line, at)));
        match line.cells[at].rank {
            Rank::Lower => cell.fg(Color::DarkGreen),
            Rank::Higher | Rank::Wrong => cell.fg(Color::DarkRed),
            Rank::Plain | Rank::Absent => cell,
        }
    };
    let label = emphasis(Cell::new(format!("{INDENT}{}", line.label)));
    std::iter::once(label).chain(columns.map(value)).collect()
}

/// One line per subject: the first digits of each run's digest.
fn digests(column: &Column<'_>, name: &str, wide: usize, lines: &mut Lines) {
    let padding = " ".repeat(wide.saturating_sub(name.width()));
    let several = column.runs.len() > 1;
    let each = column.runs.iter().map(|run| {
        let seed = if several {
            format!("{}:", run.seed)
        } else {
            String::new()
        };
        match (run.digest(), run.no_digest()) {
            (Some(digest), _) => format!("{seed}{digest:.12}"),
            (None, Some(NoDigest::Unfinished(state))) => format!("{seed}none: {state}"),
            (None, _) => format!("{seed}{}", run.digest_or_why()),
        }
    });
    let text = each.collect::<Vec<_>>().join("  ");
    let first = format!("digest  {name}{padding}  ");
    let rest = " ".repeat(first.width());
    lines.wrap(&text, &first, &rest);
}

fn superscript(numbers: &[usize]) -> String {
    let digits = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    let raised = |number: &usize| -> String {
        let number = number.to_string();
        number
            .bytes()
            .map(|digit| digits[usize::from(digit - b'0')])
            .collect()
    };
    numbers.iter().map(raised).collect::<Vec<_>>().join("˒")
}

#[cfg(test)]
mod tests {
    use punctual_model::MachineRecord;

    use super::*;
    use crate::fixtures::{self, assert_has};
    use crate::text::WIDTH;

    fn assert_narrow(text: &str, width: usize) {
        for line in text.lines() {
            let is = line.width();
            assert!(is <= width, "{is} columns: {line}\n{text}");
        }
    }

    fn line<'a>(text: &'a str, section: &str, label: &str) -> &'a str {
        let lines = text.lines().skip_while(|line| *line != section).skip(1);
        lines
            .take_while(|line| line.starts_with(INDENT))
            .find(|line| line.trim_start().starts_with(label))
            .unwrap_or_else(|| panic!("no \"{label}\" below \"{section}\":\n{text}"))
    }

    #[test]
    fn four_subjects_fit_with_every_figure() {
        let text = table(&fixtures::whole(), WIDTH, false);
        assert_narrow(&text, WIDTH);
        assert!(text.starts_with("demo, seed 1, Punctual "), "{text}");
        let worst = line(&text, "timer, stress, cpu0", "worst").split("  ");
        let worst: Vec<&str> = worst
            .map(str::trim)
            .filter(|part| !part.is_empty())
            .collect();
        assert_eq!(worst, ["worst", "381 µs", "384 µs", "508 µs", "8.07 µs"]);
        assert!(line(&text, "hackbench, idle, pipe process 1", "median").contains("0.301 s"));
        assert!(line(&text, "timer, idle, cpu0", "missed").contains('0'));
        assert!(text.contains("Virtual time: 1 ns per instruction."));
        let digest = fixtures::run("rt", 1).digest().unwrap();
        assert!(text.contains(&digest[..12]) && !text.contains(&digest[..13]));
    }

    #[test]
    fn seeds_show_their_range_beside_or_below_the_worst_case() {
        let text = table(&fixtures::seeds(5), WIDTH, false);
        assert_narrow(&text, WIDTH);
        let stress = |label| line(&text, "timer, stress, cpu0", label);
        assert_has(stress("worst"), &["381 µs"]);
        assert_has(stress("range"), &["355–381 µs"]);
        let wide = table(&fixtures::seeds(5), 100, false);
        assert_narrow(&wide, 100);
        let worst = line(&wide, "timer, stress, cpu0", "worst");
        assert_has(worst, &["381 µs (355–381)"]);
        assert!(text.starts_with("demo, seeds 1, 2, 3, 4, 5, Punctual "));
        assert_has(&text, &[" 5:"]);
    }

    #[test]
    fn what_failed_is_named_with_its_reason() {
        let text = table(&fixtures::with_gaps(), WIDTH, false);
        assert_narrow(&text, WIDTH);
        assert_has(line(&text, "timer, stress, cpu0", "worst"), &["failed¹"]);
        assert_has(line(&text, "irq, idle", "worst"), &["unsupported²"]);
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let parts = [fixtures::NO_BOOT, fixtures::NO_MODULE, "none: failed"];
        assert_has(&flat, &parts);
    }

    #[test]
    fn more_subjects_than_fit_stand_in_blocks() {
        let mut runs = Vec::new();
        for number in 0..9 {
            let mut run = fixtures::run("rt", 1);
            run.subject.name = format!("a-rather-long-name-{number}");
            runs.push(run);
        }
        let text = table(&runs, WIDTH, false);
        assert_narrow(&text, WIDTH);
        let worst = text.lines().filter(|line| line.starts_with("  worst"));
        let worst: usize = worst.map(|line| line.matches("8.07 µs").count()).sum();
        assert_eq!(worst, 9, "{text}");
        assert_has(&text, &["a-rather…-name-8"]);
        assert!(text.matches("timer, stress, cpu0").count() > 1);
    }

    #[test]
    fn clocks_are_marked_where_they_differ() {
        let mut runs = vec![fixtures::run("none", 1), fixtures::run("rt", 1)];
        runs[1].machine = MachineRecord::default();
        let text = table(&runs, WIDTH, false);
        assert_narrow(&text, WIDTH);
        assert_has(&text, &["(virtual)", "(real)"]);
        let words: Vec<&str> = text.split_whitespace().collect();
        assert_has(&words.join(" "), &["must not be compared"]);
        runs[0].machine = MachineRecord::default();
        let text = table(&runs, WIDTH, false);
        let is_marked = text.contains("Virtual time") || text.contains("(real)");
        assert!(!is_marked, "{text}");
    }

    #[test]
    fn colour_only_when_asked_for_and_foreign_text_sends_none() {
        let mut runs = fixtures::whole();
        runs[0].subject.name = "\u{1b}[31mevil".into();
        assert!(!table(&runs, WIDTH, false).contains('\u{1b}'));
        assert!(table(&fixtures::whole(), WIDTH, true).contains("\u{1b}["));
    }

    #[test]
    fn every_probe_fits() {
        let text = table(&fixtures::all_probes(), WIDTH, false);
        assert_narrow(&text, WIDTH);
        let result = line(&text, "inversion, idle, none", "result");
        let inverted = result.matches("inverted, as it must be");
        assert_eq!(inverted.count(), 2, "{text}");
        assert!(!text.contains("no sample"), "{text}");
    }

    #[test]
    fn no_run_is_said_too() {
        assert_eq!(table(&[], WIDTH, false), "There are no runs.\n");
    }
}

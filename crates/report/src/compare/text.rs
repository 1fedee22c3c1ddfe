// SPDX-License-Identifier: MIT OR Apache-2.0
//! A comparison for terminals: a line for each subject.

use unicode_width::UnicodeWidthStr as _;

use super::{Cell, Comparison, Section, verdict_sentences};
use crate::text::{clean, cut, time, times, wrap};

/// How many columns a subject's name may take.
const NAME: usize = 20;
/// How many columns ratio and percentage take.
const CHANGE: usize = 19;

/// No line is longer than `width`, as far as names and numbers allow.
pub fn comparison_text(comparison: &Comparison, width: usize) -> String {
    let first = comparison.subjects.first().map_or("", String::as_str);
    let mut lines = wrap(
        &format!(
            "Each subject against {}: how many times, and by how much.",
            clean(first)
        ),
        "",
        "",
        width,
    );
    let mut all_shown = true;
    for section in &comparison.sections {
        lines.push(String::new());
        let (more, shown) = section_lines(comparison, section, width);
        lines.extend(more);
        all_shown &= shown;
    }
    lines.push(String::new());
    if !all_shown {
        let hint = "Figures for which there is no room here: --json, --report, a wider terminal.";
        lines.extend(wrap(hint, "", "  ", width));
    }
    let confidence = comparison.rule.confidence_percent();
    let head = format!("Run by run, at {confidence} % over all rows of a subject:");
    lines.extend(wrap(&head, "", "  ", width));
    for sentence in verdict_sentences(comparison) {
        lines.extend(wrap(&clean(&sentence), "  ", "    ", width));
    }
    for (name, digests) in comparison.subjects.iter().zip(&comparison.digests) {
        lines.extend(wrap(
            &format!("digest of {}: {}", clean(name), digests.name()),
            "",
            "  ",
            width,
        ));
    }
    for note in &comparison.notes {
        lines.extend(wrap(&clean(note), "", "  ", width));
    }
    lines.join("\n") + "\n"
}

/// The lines, and whether they hold all figures.
fn section_lines(comparison: &Comparison, section: &Section, width: usize) -> (Vec<String>, bool) {
    let mut rows = vec![vec![section.row.title()]];
    rows[0].extend(
        section
            .figures
            .iter()
            .enumerate()
            .map(|(at, name)| head(section, at, name)),
    );
    for (name, cells) in comparison.subjects.iter().zip(&section.cells) {
        let mut row = vec![format!("  {}", cut(&clean(name), NAME))];
        row.extend(
            cells
                .iter()
                .map(|cell| cell_text(cell, section.row.is_throughput())),
        );
        rows.push(row);
    }
    // Figures that do not fit are left to --json and --report, the first never.
    let wide = |at: usize| {
        rows.iter()
            .skip(usize::from(at == 0))
            .map(|row| row[at].width())
            .max()
    };
    let widths: Vec<usize> = (0..rows[0].len()).map(|at| wide(at).unwrap_or(0)).collect();
    let title = rows[0][0].width().min(width / 2);
    let mut used = widths[0].max(title.min(NAME + 8));
    let label = used;
    let mut shown = 1;
    for wide in &widths[1..] {
        if shown > 1 && used + 2 + wide > width {
            break;
        }
        used += 2 + wide;
        shown += 1;
    }
    let mut lines = Vec::new();
    for (number, row) in rows.iter().enumerate() {
        let mut line = row[0].clone();
        if number == 0 && line.width() > label {
            // A long title has a line of its own.
            lines.extend(wrap(&line, "", "  ", width));
            line.clear();
        }
        line.push_str(&" ".repeat(label.saturating_sub(line.width())));
        for (cell, wide) in row[1..shown].iter().zip(&widths[1..shown]) {
            line.push_str("  ");
            line.push_str(&" ".repeat(wide - cell.width()));
            line.push_str(cell);
        }
        lines.push(line.trim_end().to_owned());
    }
    (lines, shown == widths.len())
}

/// A figure's name stands over its times, not over what is said of them.
fn head(section: &Section, at: usize, name: &str) -> String {
    let is_time = |cells: &Vec<Cell>| matches!(cells[at], Cell::Time { .. });
    let room = if section.cells.iter().any(is_time) {
        CHANGE
    } else {
        0
    };
    format!("{name}{}", " ".repeat(room))
}

/// `8.07 µs  1/47 -97.9 %`; the first one's figure stands alone.
fn cell_text(cell: &Cell, is_work: bool) -> String {
    match cell {
        Cell::Time { value, ratio } => {
            let change = match (ratio, cell.percent()) {
                (Some(ratio), Some(percent)) => {
                    format!("{:>9} {:>9}", times(*ratio), format!("{percent:+.1} %"))
                }
                _ => " ".repeat(CHANGE),
            };
            format!("{}{change}", time(*value, is_work))
        }
        Cell::Word(text) => text.clone(),
        Cell::Absent(why) => format!("({why})"),
    }
}

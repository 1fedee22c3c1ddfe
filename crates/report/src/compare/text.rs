// SPDX-License-Identifier: MIT OR Apache-2.0
//! A comparison for terminals: a line for each subject.

use std::iter;

use unicode_width::UnicodeWidthStr as _;

use super::{Cell, Comparison, Section, verdict_sentences};
use crate::text::{Lines, clean, short_names, time, times};

/// The most columns of a subject's name.
const NAME: usize = 24;
/// The columns of ratio and percentage.
const CHANGE: usize = 19;

/// No line is longer than `width`, as far as names and numbers allow.
pub fn comparison_text(comparison: &Comparison, width: usize) -> String {
    let first = clean(comparison.subjects.first().map_or("", String::as_str));
    let mut lines = Lines::new(width);
    let head = format!(
        "Each figure is followed by its ratio to {first} and the change in per cent. The first \
         ratio is taken run by run."
    );
    lines.wrap(&head, "", "");
    let mut all_shown = true;
    for section in &comparison.sections {
        lines.line("");
        all_shown &= put_section(comparison, section, width, &mut lines);
    }
    lines.line("");
    if !all_shown {
        lines.put("Figures for which there is no room here: --json, --report, a wider terminal.");
    }
    let confidence = comparison.rule.confidence_percent();
    lines.put(&format!(
        "Run by run, at {confidence} % over all rows of a subject:"
    ));
    for sentence in verdict_sentences(comparison) {
        lines.wrap(&clean(&sentence), "  ", "    ");
    }
    for (name, digests) in comparison.subjects.iter().zip(&comparison.digests) {
        lines.put(&format!("digest of {}: {}", clean(name), digests.name()));
    }
    for note in &comparison.notes {
        lines.put(&clean(note));
    }
    lines.finish()
}

/// Puts a section's lines. Returns true if they hold all figures.
fn put_section(
    comparison: &Comparison,
    section: &Section,
    width: usize,
    lines: &mut Lines,
) -> bool {
    let heads = section.figures.iter().enumerate();
    let heads = heads.map(|(at, name)| head(section, at, name));
    let mut rows: Vec<Vec<String>> = vec![iter::once(section.row.title()).chain(heads).collect()];
    let is_work = section.row.is_throughput();
    let names = short_names(&comparison.subjects, NAME);
    for (name, cells) in names.iter().zip(section.shown()) {
        let name = format!("  {name}");
        let cells = cells.iter().map(|cell| cell_text(cell, is_work));
        rows.push(iter::once(name).chain(cells).collect());
    }
    // Figures that do not fit are left to --json and --report, the first never.
    let wide = |at: usize| {
        let rows = rows.iter().skip(usize::from(at == 0));
        rows.map(|row| row[at].width()).max()
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
    for (number, row) in rows.iter().enumerate() {
        let mut line = row[0].clone();
        if number == 0 && line.width() > label {
            // A long title has a line of its own.
            lines.put(&line);
            line.clear();
        }
        line.push_str(&" ".repeat(label.saturating_sub(line.width())));
        for (cell, wide) in row[1..shown].iter().zip(&widths[1..shown]) {
            line = format!("{line}  {}{cell}", " ".repeat(wide - cell.width()));
        }
        lines.line(line.trim_end());
    }
    shown == widths.len()
}

/// Places a figure's name over its times, not over the remarks on them.
fn head(section: &Section, at: usize, name: &str) -> String {
    let is_time = |cells: &Vec<Cell>| matches!(cells[at], Cell::Time { .. });
    let has_time = section.cells.iter().any(is_time);
    format!("{name}{}", " ".repeat(if has_time { CHANGE } else { 0 }))
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

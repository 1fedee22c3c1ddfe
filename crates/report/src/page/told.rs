// SPDX-License-Identifier: MIT OR Apache-2.0
//! The output of probes and programs, and the differences between subjects' lists.

use maud::{Markup, html};

use super::evidence::{lines, name, recordings};
use crate::matrix::{Column, Matrix, Measurement};
use crate::shell::folded;
use crate::text::{counted, thousands};
use punctual_model::probe::Shape;

/// The output beside the samples, folded.
pub fn outputs(matrix: &Matrix<'_>) -> Markup {
    let mut told = recordings(matrix);
    told.retain(|(_, _, recording)| recording.output.is_some());
    let texts = html! { @for (row, run, recording) in &told {
        @let output = recording.output.as_deref().unwrap_or_default();
        @let title = format!("{}: {}", row.title(), name(matrix, run));
        (folded(&title, &lines(output), &html! { pre { (output) } }))
    } };
    let size = counted(told.len(), "text");
    html! { @if !told.is_empty() { (folded("What was printed", &size, &texts)) } }
}

/// The differences between the first subject's list and those of other subjects.
pub fn differences(matrix: &Matrix<'_>) -> Markup {
    let is_list = |row: &&Measurement| row.view().shape == Shape::List;
    let pairs = matrix
        .rows
        .iter()
        .filter(is_list)
        .flat_map(|row| pairs(matrix, row));
    html! { @for pair in pairs { (difference(&pair)) } }
}

/// The lists of two subjects.
pub struct Pair<'a> {
    /// The title of the lists.
    pub title: String,
    /// The names of the subjects.
    pub names: [&'a str; 2],
    /// The lists, a name on each line.
    pub lists: [&'a str; 2],
}

/// Each subject that has a list, beside the first that has one.
fn pairs<'a>(matrix: &'a Matrix<'a>, row: &Measurement) -> Vec<Pair<'a>> {
    let list = |column: &'a Column<'a>| {
        let recording = column.found(row).first()?.recording;
        Some((column.name.as_str(), recording.output.as_deref()?))
    };
    let mut all = matrix.columns.iter().filter_map(list);
    let Some((first, base)) = all.next() else {
        return Vec::new();
    };
    all.map(|(name, other)| Pair {
        title: row.title(),
        names: [first, name],
        lists: [base, other],
    })
    .collect()
}

/// The lines that only one of the two has.
pub fn difference(pair: &Pair<'_>) -> Markup {
    let [first, other] = pair.names;
    let [left, right] = pair.lists;
    let (gone, come) = (only_in(left, right), only_in(right, left));
    let same = gone.is_empty() && come.is_empty();
    html! {
        details {
            summary {
                (pair.title) ": " (first) " and " (other) " "
                span {
                    @if same { "the same" }
                    @else { (counted(gone.len(), "line")) " on " (first) " only, " (thousands(come.len() as u64)) " on " (other) " only" }
                }
            }
            @if !same { pre {
                @for line in gone { del { "- " (line) } "\n" }
                @for line in come { ins { "+ " (line) } "\n" }
            } }
        }
    }
}

/// The lines of a list that another lacks, in order.
/// A line that occurs more often than there is given as often as it is missing.
fn only_in<'a>(list: &'a str, other: &str) -> Vec<&'a str> {
    let mut rest: Vec<&str> = other.lines().collect();
    let lacks = |line: &&str| match rest.iter().position(|same| same == line) {
        Some(at) => {
            rest.swap_remove(at);
            false
        }
        None => true,
    };
    list.lines().filter(lacks).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_differs_is_listed_and_repetitions_count() {
        assert_eq!(only_in("a\nb\nb\nc", "b\na\nd"), ["b", "c"]);
        assert!(only_in("a\nb", "b\na").is_empty());
    }
}

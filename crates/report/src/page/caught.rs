// SPDX-License-Identifier: MIT OR Apache-2.0
//! The notes of the kernel's tracer on samples above a limit, told as the scope tells.

use maud::{Markup, html};
use punctual_model::{Capture, Run};
use punctual_scope::captured;
use punctual_scope::explain::Wanted;

use crate::matrix::Matrix;
use crate::scope::{page, text};
use crate::shell::folded;
use crate::text::counted;

/// The samples of each run, the worst first, with their events folded.
pub fn caught(matrix: &Matrix<'_>) -> Markup {
    let columns = matrix.columns.iter();
    let runs = columns.flat_map(|column| column.runs.iter().copied());
    html! { @for run in runs { (of_run(run)) } }
}

fn of_run(run: &Run) -> Markup {
    let wanted = Wanted {
        worst: usize::MAX,
        ..Wanted::default()
    };
    // Most runs have none.
    let explained = captured::explained(run, &wanted).unwrap_or_default();
    html! {
        @if !explained.is_empty() { h3 { (run.id) ", " (run.subject.name) } }
        @for (number, one) in explained.iter().enumerate() {
            (page::sample(run, one, number))
            @let captures = &run.recordings[one.chosen.recording].captures;
            @if let Some(capture) = captures.iter().find(|own| own.sample == one.chosen.sample) {
                (events(capture))
            }
        }
    }
}

fn events(capture: &Capture) -> Markup {
    let size = counted(capture.events.len(), "event");
    folded(
        "What it had noted",
        &size,
        &html! { pre { (text::noted(capture)) } },
    )
}

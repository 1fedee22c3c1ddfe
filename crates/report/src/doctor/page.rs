// SPDX-License-Identifier: MIT OR Apache-2.0
//! The page about a machine: the first steps to take, then each finding.

use maud::{Markup, html};
use punctual_doctor::{Diagnosis, Finding, Verdict};

use super::{
    Look, REBOOT, Tried, answers, counts, first_title, in_all, notes, taken_by, trials_text,
};
use crate::scope::page::code;
use crate::shell::{self, Chapter};

/// The columns of the trials' text.
const WIDTH: usize = 80;

/// One HTML file with all findings, whether a terminal shows them or not, and the trials.
pub fn doctor_page(diagnosis: &Diagnosis, look: Look<'_>, trials: Option<&[Tried]>) -> String {
    let title = in_all(diagnosis, look.purpose);
    let lead = html! {
        p { (counts(diagnosis)) }
        @for note in notes(diagnosis, look.purpose) { p { (code(note)) } }
    };
    let of = |name: &str| {
        let all = diagnosis.0.iter();
        all.filter(|one| one.verdict.name() == name)
            .collect::<Vec<_>>()
    };
    let tried = trials.map(|trials| trials_text(trials, diagnosis, WIDTH));
    let chapters = vec![
        Chapter::new(first_title(look.steps).trim_end_matches(':'), steps(look)),
        Chapter::new("Wrong", wrong(diagnosis, &of("wrong"))),
        Chapter::new("Not known", listed(&of("unknown"))),
        Chapter::new(
            "Measured in virtual time",
            html! { @if let Some(text) = tried { pre { (text) } } },
        ),
        Chapter::new("Fine", listed(&of("fine"))),
        Chapter::new("Not for this machine", listed(&of("moot"))),
    ];
    let title = title.trim_end_matches('.');
    shell::page(&format!("Doctor: {title}"), &lead, chapters)
}

fn steps(look: Look<'_>) -> Markup {
    if look.steps.is_empty() {
        return html! {};
    }
    html! {
        ol { @for step in look.steps { li {
            (code(&step.title)) " (" (answers(step)) ")"
            @for (systems, commands) in step.by_commands() {
                @if let Some(names) = taken_by(step, &systems) { p { (names) } }
                pre { (commands.join("\n")) }
            }
        } } }
        @if look.steps.iter().any(|step| step.reboot) { p { (code(REBOOT)) } }
    }
}

fn wrong(diagnosis: &Diagnosis, all: &[&Finding]) -> Markup {
    html! { @for one in all {
        h3 { (one.check.id) ", " (one.severity.name()) }
        p { "Wanted: " (code(one.check.wanted)) "."
            @if let Verdict::Wrong(found) = &one.verdict {
                " Found: " (code(&found.to_string())) "."
            }
        }
        p { "Do: " (code(one.check.advice)) }
        @if let Some(by) = diagnosis.settled_by(one) { p { (by) " settles it, too." } }
        p { a href=(one.check.source) { (one.check.source) } }
    } }
}

/// Lists each with its finding, or the reason for none.
fn listed(all: &[&Finding]) -> Markup {
    let said = |one: &Finding| match &one.verdict {
        Verdict::Fine(found) | Verdict::Wrong(found) => found.to_string(),
        Verdict::Unknown(reason) => reason.to_string(),
        Verdict::Moot(why) => why.clone(),
    };
    html! { @if !all.is_empty() { ul { @for one in all {
        li { b { (one.check.id) } ", " (one.severity.name()) ": " (code(&said(one))) }
    } } } }
}

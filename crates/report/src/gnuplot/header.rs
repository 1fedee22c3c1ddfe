// SPDX-License-Identifier: MIT OR Apache-2.0
//! The head of data: their provenance, in comments.

use std::fmt::Write as _;

use punctual_model::run::Run;

use crate::matrix::Measured;
use crate::text::clean;

/// The header of one recording's file.
pub fn of(one: &Measured<'_>) -> String {
    let recording = one.recording;
    let (version, title) = (env!("CARGO_PKG_VERSION"), clean(&recording.title()));
    let mut text = format!("# Punctual {version}: {title}\n{}", run(one.run));
    let mut line = |key: &str, value: &str| {
        let _ = writeln!(text, "# {}: {}", clean(key), clean(value));
    };
    if let Some(provenance) = &one.run.provenance {
        line("kernel", &provenance.release);
        line("version", &provenance.version);
        line("preemption", &provenance.preemption.to_string());
        line("command line", &provenance.cmdline);
    }
    for (key, value) in one.run.machine.facts() {
        line(key, &value);
    }
    for (key, value) in &recording.settings {
        line(key, &value.to_string());
    }
    line("samples", &recording.count.to_string());
    let missed = recording.missed_periods();
    let missed = missed.map_or_else(|| "unknown".to_owned(), |count| count.to_string());
    line("missed", &missed);
    line("unit", "nanoseconds");
    text
}

/// The run in one line, and its digest in another.
pub fn run(run: &Run) -> String {
    let time = match run.clock() {
        Some(clock) => format!("virtual time, {clock}"),
        None => "real time".to_owned(),
    };
    let texts = [&run.id, &run.suite, &run.subject.name, &run.started];
    let [id, suite, subject, started] = texts.map(|text| clean(text));
    let (seed, state, digest) = (run.seed, run.state, run.digest_or_why());
    format!(
        "# run {id}: suite {suite}, subject {subject}, seed {seed}, {time}, {state}, {started}\n\
         # digest: {digest}\n"
    )
}

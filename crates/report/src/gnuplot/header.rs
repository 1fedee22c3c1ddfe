// SPDX-License-Identifier: MIT OR Apache-2.0
//! What stands above data: where they come from, in comments.

use std::fmt::Write as _;

use punctual_model::run::Run;

use crate::matrix::Measured;

/// Text that cannot leave its line.
pub fn plain(text: &str) -> String {
    let no_control = |c: char| if c.is_control() { ' ' } else { c };
    text.chars().map(no_control).collect()
}

/// The header of one recording's file.
pub fn of(one: &Measured<'_>) -> String {
    let recording = one.recording;
    let mut text = format!(
        "# Punctual {}: {}\n",
        env!("CARGO_PKG_VERSION"),
        plain(&recording.title())
    );
    text.push_str(&run(one.run));
    let mut line = |key: &str, value: &str| {
        let (key, value) = (plain(key), plain(value));
        writeln!(text, "# {key}: {value}").expect("memory can be written");
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
    line("missed", &recording.missed.to_string());
    line("unit", "nanoseconds");
    text
}

/// The run in one line, and its digest in another.
pub fn run(run: &Run) -> String {
    let time = match run.ns_per_insn() {
        Some(ns) => format!("virtual time, {ns} ns per instruction"),
        None => "real time".to_owned(),
    };
    let digest = run.digest();
    format!(
        "# run {}: suite {}, subject {}, seed {}, {time}, {}, {}\n# digest: {}\n",
        plain(&run.id),
        plain(&run.suite),
        plain(&run.subject.name),
        run.seed,
        run.state,
        plain(&run.started),
        digest.as_deref().unwrap_or("none: the run did not finish")
    )
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Verdicts in the kernel's test protocol, KTAP 1
//! (<https://docs.kernel.org/dev-tools/ktap.html>), and as an exit status that the kernel's
//! selftests understand (`tools/testing/selftests/kselftest/runner.sh`).

use punctual_model::run::State;
use punctual_model::{RecordingKey, Run};

use super::{Case, Outcome};
use crate::matrix::distinct;
use crate::text::clean;

/// The result of a test of the kernel's selftests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ksft {
    /// Everything to be tested passes: 0.
    Pass,
    /// Something fails, or cannot be told: 1.
    Fail,
    /// Nothing fails, and something cannot be tested on this kernel: 4.
    Skip,
}

/// The verdicts as KTAP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ktap {
    /// The text: a test for each subject, a subtest for each case, the reason before it.
    pub text: String,
    /// The result of all of them.
    pub result: Ksft,
}

/// The result of a test in a line. A later one hides an earlier one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Line {
    Ok,
    /// The probe says why it cannot run there.
    Skip,
    /// It is not known.
    Error,
    NotOk,
}

/// A test for each subject, with its cases; `runs` tell the gaps of their probes.
///
/// Everything that does not pass is `not ok`, even if it was skipped: a reader of only `ok` must
/// not take it for a pass. A case is skipped if its probe could not measure it in any run. A case
/// that failed, was interrupted or does not suffice is an error.
pub fn ktap(cases: &[Case], runs: &[Run]) -> Ktap {
    let subjects = distinct(cases.iter().map(|case| case.subject.as_str()));
    let mut lines = vec![version(), format!("1..{}", subjects.len())];
    let mut worst = Line::Ok;
    for (subject, number) in subjects.iter().zip(1..) {
        let own: Vec<&Case> = cases.iter().filter(|one| one.subject == *subject).collect();
        let name = plain(subject);
        lines.extend([
            format!("  {}", version()),
            format!("  # Subtest: {name}"),
            format!("  1..{}", own.len()),
        ]);
        let mut of_all = Line::Ok;
        for (case, number) in own.iter().zip(1..) {
            let line = line_of(case, runs);
            let (name, reason) = (plain(&case.name), plain(&case.reason));
            lines.push(format!("  # {reason}"));
            lines.push(format!("  {}", result(line, number, &name, &reason)));
            of_all = of_all.max(line);
        }
        lines.push(result(of_all, number, &name, "not all of it"));
        worst = worst.max(of_all);
    }
    Ktap {
        text: lines.join("\n") + "\n",
        result: match worst {
            Line::Ok if cases.is_empty() => Ksft::Fail,
            Line::Ok => Ksft::Pass,
            Line::Skip => Ksft::Skip,
            Line::Error | Line::NotOk => Ksft::Fail,
        },
    }
}

fn version() -> String {
    "KTAP version 1".to_owned()
}

fn line_of(case: &Case, runs: &[Run]) -> Line {
    match case.outcome {
        Outcome::Pass => Line::Ok,
        Outcome::Fail => Line::NotOk,
        Outcome::Missing if is_unsupported(case, runs) => Line::Skip,
        Outcome::Undecided | Outcome::Missing => Line::Error,
    }
}

/// Returns true if each run of the subject came to its end, but could not measure the case.
fn is_unsupported(case: &Case, runs: &[Run]) -> bool {
    let [probe, load, label] = &case.key;
    let is_own = |run: &&Run| {
        // Subjects of one name have more behind it.
        let rest = case.subject.strip_prefix(run.subject.name.as_str());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(" ("))
    };
    let mut own = runs.iter().filter(is_own).peekable();
    let is_told = |run: &Run| {
        let mut all = run.unsupported.iter();
        let is_it = all.any(|one| (&one.probe, &one.load) == (probe, load));
        // Another step of the same name may be unsupported beside it.
        let is_own =
            |key: &RecordingKey| (&key.probe, &key.load) == (probe, load) && key.label() == *label;
        let is_measured = run.recordings.iter().any(|one| is_own(&one.key));
        run.state == State::Finished && is_it && !is_measured
    };
    own.peek().is_some() && own.all(is_told)
}

fn result(line: Line, number: u32, name: &str, reason: &str) -> String {
    match line {
        Line::Ok => format!("ok {number} {name}"),
        Line::NotOk => format!("not ok {number} {name}"),
        Line::Skip => format!("not ok {number} {name} # SKIP {reason}"),
        Line::Error => format!("not ok {number} {name} # ERROR undecided: {reason}"),
    }
}

/// Puts text on one line, without the character that begins a directive.
fn plain(text: &str) -> String {
    clean(text).replace('#', "no.")
}

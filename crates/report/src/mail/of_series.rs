// SPDX-License-Identifier: MIT OR Apache-2.0
//! The mail about lines of kernels in which something changed.

use std::collections::BTreeSet;

use punctual_judge::Rule;
use punctual_model::Run;

use super::of_gate::told_of;
use super::repeat::{again, again_of_tags};
use super::{Mail, Told, UNKNOWN, numbers};
use crate::judgement::Outcome;
use crate::matrix::distinct;
use crate::series::{Change, Line, News, Row};
use crate::text::{arrow, counted, is_or_are};

/// The mail about lines in which something changed; `None` if nothing did.
/// `runs` are all runs of the lines, `source` the words that ask for the kernels of tags. `page` is
/// the file that has everything, if there is one.
pub fn mail_of_series(
    lines: &[Line],
    news: &News,
    runs: &[Run],
    source: &[String],
    page: Option<&str>,
) -> Option<Mail> {
    let first = news.changes.first()?;
    let mut cases: Vec<Told> = news.changes.iter().map(|one| case(lines, one)).collect();
    cases.extend(news.undecided.iter().map(|(line, row)| Told {
        outcome: Outcome::Undecided,
        sentence: format!(
            "undecided: {}{}.",
            of(lines, *line),
            lines[*line].rows[*row].title()
        ),
        blame: Vec::new(),
    }));
    cases.extend(news.missing.iter().map(|why| Told {
        outcome: Outcome::Missing,
        sentence: format!("not wholly measured: {why}."),
        blame: Vec::new(),
    }));
    let line = &lines[first.line];
    let row = &line.rows[first.row];
    let (from, to) = first.releases;
    let subjects = [from, to].map(|at| line.releases[at].subject.as_str());
    let of_both = runs
        .iter()
        .filter(|run| subjects.contains(&&*run.subject.name));
    let of_both: Vec<&Run> = of_both.collect();
    let again = if source.is_empty() {
        again(&of_both)
    } else {
        // A subject's name has boot arguments, too.
        let versions = subjects.map(|one| {
            let kernel = one.split(' ').next().unwrap_or_default();
            kernel
                .split_once('@')
                .map_or(kernel, |(_, version)| version)
        });
        again_of_tags(&of_both, source, versions)
    };
    let [before, after] = first.levels;
    Some(Mail {
        verdict: "changed".to_owned(),
        title: format!(
            "{} {} in {}",
            row.title(),
            arrow(before.middle, after.middle),
            line.releases[to].version
        ),
        about: about(lines, news),
        cases,
        again,
        page: page.map(str::to_owned),
    })
}

/// Describes the lines, their numbers of releases, the results, and the confidence.
fn about(lines: &[Line], news: &News) -> String {
    let figures: usize = lines.iter().map(|line| line.rows.len()).sum();
    let figures = counted(figures, "figure");
    let changed: BTreeSet<_> = news.changes.iter().map(|one| (one.line, one.row)).collect();
    let undecided = news.undecided.iter().filter(|one| !changed.contains(*one));
    let parts = [(changed.len(), "changed"), (undecided.count(), "undecided")];
    let mut told = vec![format!(
        "Of {figures} {}, since the last report.",
        numbers(&parts)
    )];
    // A line without any figure is itself among what is missing.
    let lines_missing = lines.iter().filter(|line| line.rows.is_empty()).count();
    let releases = news.missing.len().saturating_sub(lines_missing);
    if releases > 0 {
        let verb = is_or_are(releases);
        let releases = counted(releases, "release");
        told.push(format!("{releases} {verb} not wholly measured."));
    }
    for line in lines {
        let [first, last] = [line.releases.first(), line.releases.last()];
        let [first, last] = [first, last].map(|one| one.map_or("none", |one| &*one.version));
        let releases = counted(line.releases.len(), "release");
        told.push(format!("{}: {releases}, {first} to {last}.", line.name));
    }
    let rule = Rule::default();
    let runs = distinct(news.changes.iter().map(|one| {
        let row = &lines[one.line].rows[one.row];
        row.values[one.releases.1].len()
    }));
    let runs: Vec<String> = runs.iter().map(ToString::to_string).collect();
    told.push(format!(
        "Seeds of a release: {}. Runs without a change would look like this in at most {:.0} of \
         100 such lines, over all figures; ratios are at {} %.",
        runs.join(", "),
        rule.level * 100.0,
        rule.confidence_percent()
    ));
    told.join(" ")
}

fn case(lines: &[Line], one: &Change) -> Told {
    let line = &lines[one.line];
    let row = &line.rows[one.row];
    let word = if one.is_higher() { "higher" } else { "lower" };
    let of = of(lines, one.line);
    Told {
        outcome: Outcome::Fail,
        sentence: format!("{word}: {of}{} {}.", row.title(), one.sentence(line)),
        blame: blame(row, one),
    }
}

/// Names a line, where there are several: `debian-6.12-rt: `.
fn of(lines: &[Line], line: usize) -> String {
    if lines.len() > 1 {
        format!("{}: ", lines[line].name)
    } else {
        String::new()
    }
}

/// Names the functions that take longer or shorter now, as far as somebody looked.
fn blame(row: &Row, change: &Change) -> Vec<String> {
    let own = row.why.iter().find(|(at, _)| *at == change.releases.1);
    match own {
        Some((_, why)) => told_of(why, row.figure.name()),
        None if row.why.is_empty() => vec![UNKNOWN.to_owned()],
        None => Vec::new(),
    }
}

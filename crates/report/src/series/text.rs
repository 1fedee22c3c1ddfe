// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lines of kernels for terminals.

use punctual_model::Nanos;

use super::{Level, Line, News, Row};
use crate::text::{clean, counted, exact, span, times, wrap};
use crate::why::Why;

/// Each line with its changes, then the news, if they are asked for.
/// No line of text is longer than `width`, but for tables of functions.
pub fn series_text(lines: &[Line], news: Option<&News>, width: usize) -> String {
    let mut text = Vec::new();
    for line in lines {
        text.extend(wrap(&clean(&head(line)), "", "  ", width));
        for gap in gaps(line) {
            text.extend(wrap(&clean(&gap), "  ", "    ", width));
        }
        let (changed, same): (Vec<&Row>, Vec<&Row>) =
            line.rows.iter().partition(|row| !row.changes.is_empty());
        for row in changed {
            text.extend(wrap(&clean(&row.title()), "", "  ", width));
            for said in levels_told(line, row) {
                text.extend(wrap(&clean(&said), "  ", "      ", width));
            }
        }
        for row in same {
            let level = row.levels().into_iter().next();
            let figures = level.map_or(String::new(), |level| figures_told(&level));
            let said = format!("{}: no change; {figures}", row.title());
            text.extend(wrap(&clean(&said), "", "  ", width));
        }
        text.push(String::new());
        for (row, at, why) in reasons(line) {
            let said = format!(
                "{}, what changed in {}:",
                row.title(),
                line.releases[at].version
            );
            text.extend(wrap(&clean(&said), "", "  ", width));
            text.extend(why.text(width).trim_end().lines().map(str::to_owned));
            text.push(String::new());
        }
    }
    for said in news.iter().flat_map(|news| news.sentences(lines)) {
        text.extend(wrap(&clean(&said), "", "  ", width));
    }
    text.join("\n") + "\n"
}

/// `debian-6.12-rt: 19 releases, 6.12.43 to 6.12.117.`
pub fn head(line: &Line) -> String {
    if line.releases.is_empty() {
        return format!("{}: nothing of it was measured.", line.name);
    }
    let all: Vec<&str> = line.releases.iter().map(|one| &*one.version).collect();
    let [first, last] = [all.first(), all.last()].map(|one| one.copied().unwrap_or_default());
    let found: usize = line.rows.iter().map(|row| row.changes.len()).sum();
    let rows = line.rows.len();
    format!(
        "{}: {}, {first} to {last}: {} in {}.",
        line.name,
        counted(all.len(), "release"),
        counted(found, "change"),
        counted(rows, "figure")
    )
}

/// The releases and the runs that say nothing, with the reasons.
pub fn gaps(line: &Line) -> Vec<String> {
    let left_out = line.left_out.iter().map(|why| format!("left out: {why}"));
    let releases = line.releases.iter();
    let all = releases.flat_map(|one| one.gaps.iter().map(move |gap| (&one.version, gap)));
    let all = all.map(|(version, gap)| format!("{version}: {gap}"));
    left_out.chain(all).collect()
}

/// `6.12.94 to 6.12.117: 2.05 µs (2.04–2.05 µs), +13 ns (1.01×), p 0.0005`.
pub fn levels_told(line: &Line, row: &Row) -> Vec<String> {
    let version = |at: usize| line.releases[at].version.as_str();
    let mut said = Vec::new();
    let mut before: Option<Level> = None;
    for level in row.levels() {
        let (first, last) = level.releases;
        let releases = if first == last {
            version(first).to_owned()
        } else {
            format!("{} to {}", version(first), version(last))
        };
        let change = before
            .zip(level.change)
            .map_or(String::new(), |(before, change)| {
                let by = level.middle - before.middle;
                let ratio = times(level.middle.0 as f64 / before.middle.0.max(1) as f64);
                format!(", {} ns ({ratio}), p {:.4}", signed(by), change.p)
            });
        said.push(format!("{releases}: {}{change}", figures_told(&level)));
        before = Some(level);
    }
    said
}

/// `+13`: a code path is longer by so many nanoseconds, exactly.
fn signed(by: Nanos) -> String {
    let sign = if by > Nanos::ZERO { "+" } else { "" };
    format!("{sign}{}", exact(by))
}

fn figures_told(level: &Level) -> String {
    let (least, most) = level.ends;
    format!("{} ({})", level.middle, span(least, most))
}

/// All explanations: the row, the number of the release, and the cause.
pub fn reasons(line: &Line) -> impl Iterator<Item = (&Row, usize, &Why)> {
    line.rows
        .iter()
        .flat_map(|row| row.why.iter().map(move |(at, why)| (row, *at, why)))
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! A gate's verdict for terminals, and for mail.

use punctual_judge::{Difference, Verdict, percent};
use punctual_model::Nanos;

use super::{Gate, Gated, Judged, Of, Row, Side, Standing, Within};
use crate::repeat::quoted;
use crate::scope::told;
use crate::text::{Lines, clean, thousands, times};
use crate::why::Why;

/// Lines that are to be mailed have no more columns.
const MAIL: usize = 72;
/// Fewer differing samples than this are listed one by one without a request.
const FEW: u64 = 10;

/// A space at which no line is broken.
pub(super) const KEPT: char = '\u{a0}';

/// The amount of detail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Contents for a mail: the verdict on each figure, and the functions to blame.
    Short,
    /// Also the samples that differ, with each seed.
    /// It also tells all functions on the way of the explained sample.
    Samples,
}

/// Describes a gate for terminals, its verdict first in one line.
/// It tells the sides, each figure before and after, the functions to blame, and commands to repeat
/// it. No line is longer than `width`, but for commands.
pub fn gate_text(gate: &Gate, width: usize, detail: Detail) -> String {
    let mut lines = Lines::new(width.min(MAIL));
    lines.wrap(&clean(&title(gate)), "", "  ");
    for one in &gate.subjects {
        lines.line("");
        put_subject(gate, one, detail, &mut lines);
        if let (Detail::Samples, Some(why)) = (detail, &one.why) {
            lines.line("");
            lines.line(why.text(width).trim_end().to_owned());
        }
    }
    lines.line("");
    if let Some(command) = gate.to_decide() {
        lines.line("to decide what is undecided:");
        lines.line(format!("  {}", clean(command)));
    }
    if let Some(command) = &gate.again {
        lines.line(format!("repeat: {}", clean(command)));
    }
    lines.finish().replace(KEPT, " ")
}

/// `worse: the typical wake-up of timer, stress, cpu0, 4.15 → 4.66 µs, 5 of 5 seeds`.
pub fn title(gate: &Gate) -> String {
    let against = format!("{} against baseline {}", gate.suite, gate.baseline);
    let standing = gate.standing();
    let subjects = gate.subjects.iter();
    let worst = subjects
        .filter(|one| one.standing == standing)
        .find_map(|one| Some((one, one.worst()?)));
    let Some((one, number)) = worst else {
        return format!("{}: {against}", standing.name());
    };
    let row = &one.rows[number];
    let of = if gate.subjects.len() > 1 {
        format!(" ({})", one.subject)
    } else {
        String::new()
    };
    let title = row.row.title();
    match (&row.gap, row.decisive()) {
        (Some(gap), _) if standing == Standing::Undecided => {
            format!("{}: {title}: {gap}{of}", standing.name())
        }
        (_, Some(figure)) => format!(
            "{}: {} of {title}, {}{}{}{}{of}",
            standing.name(),
            usual(figure, &row.row.probe),
            arrow(figure),
            seeds(figure),
            within(figure),
            blame(figure)
        ),
        _ => format!("{}: {title}{of}", standing.name()),
    }
}

/// A row's verdict in one sentence: `worse: median 4.15 → 4.66 µs, 5 of 5 seeds`.
pub fn sentence_of(row: &Row) -> String {
    let standing = row.standing.name();
    match (&row.gap, row.decisive()) {
        (Some(gap), _) if row.standing == Standing::Undecided => format!("{standing}: {gap}"),
        (_, Some(figure)) => {
            let (name, arrow) = (named(figure), arrow(figure));
            format!(
                "{standing}: {name} {arrow}{}{}{}",
                seeds(figure),
                within(figure),
                blame(figure)
            )
        }
        _ => standing.to_owned(),
    }
}

/// The sign of a figure that tells only if something got worse.
pub(super) const NOT_COUNTED: &str = "–";

/// Its name: `median`, `in burns_instructions`.
pub(crate) fn named(figure: &Judged) -> String {
    match figure.of {
        Of::Function => format!("in {}", figure.name),
        Of::InStep => format!("in {}, whole step", figure.name),
        _ => figure.name.clone(),
    }
}

/// `, in do_exit`: the function to blame for the latest arrival.
fn blame(figure: &Judged) -> String {
    let blame = figure.blame.as_ref();
    blame.map_or_else(String::new, |function| format!(", in `{function}`"))
}

/// `, no later than an arrival before (443 µs)`: the reason why a higher figure shows nothing.
pub(crate) fn within(figure: &Judged) -> String {
    match figure.within {
        None => String::new(),
        Some(Within::Arrivals(latest)) if figure.share < 1.0 => {
            format!(", no later than one arrival in 100 before ({latest})")
        }
        Some(Within::Arrivals(latest)) => format!(", no later than an arrival before ({latest})"),
        Some(Within::Interrupted(latest)) => {
            format!(", no later than an interrupt makes it ({latest})")
        }
    }
}

/// `the typical wake-up`.
pub(super) fn usual(figure: &Judged, probe: &str) -> String {
    let sample = if probe == "timer" {
        "wake-up"
    } else {
        "sample"
    };
    match figure.of {
        Of::Function => return format!("the longest stretch in `{}`", figure.name),
        Of::InStep => {
            return format!("the longest section in `{}` of the whole step", figure.name);
        }
        _ => {}
    }
    match figure.name.as_str() {
        "p99.99" => "the arrival in 10,000".to_owned(),
        "arrival" => "the latest arrival".to_owned(),
        "arrival p99" => "the arrival in 100".to_owned(),
        "reached" => "the latest aimed sample".to_owned(),
        "median" => format!("the typical {sample}"),
        "p99" => format!("the slowest {sample} of 100"),
        "worst" | "longest" => format!("the worst {sample}"),
        name => format!("the figure {name}"),
    }
}

/// `4.15 → 4.66 µs`.
pub(crate) fn arrow(figure: &Judged) -> String {
    crate::text::arrow(figure.there, figure.here)
}

/// `, 5 of 5 seeds`: the seeds with a higher figure.
fn seeds(figure: &Judged) -> String {
    match figure.compared.verdict {
        Verdict::Higher if figure.seeds > 0 => {
            format!(", {} of {} seeds", figure.higher, figure.seeds)
        }
        _ => String::new(),
    }
}

fn put_subject(gate: &Gate, one: &Gated, detail: Detail, lines: &mut Lines) {
    let [there, here] = &one.sides;
    for (head, side) in [("before", there), ("after ", here)] {
        let runs = match side.runs.len() {
            1 => "1 run".to_owned(),
            count => format!("{count} runs"),
        };
        let runs = if head == "before" {
            format!("baseline {}, {runs}", gate.baseline)
        } else {
            runs
        };
        let text = format!("{} ({runs})", side.told());
        lines.wrap(&clean(&text), &format!("{head}   "), "         ");
    }
    let machine = if there.machine == here.machine {
        there.machine.clone()
    } else {
        format!("{}; before: {}", here.machine, there.machine)
    };
    lines.wrap(&clean(&machine), "machine  ", "         ");
    lines.wrap(
        &clean(&format!("{}; {}.", one.standing.name(), one.sentence())),
        "verdict  ",
        "         ",
    );
    for row in &one.rows {
        put_row(row, detail, lines);
    }
    for note in &one.notes {
        lines.wrap(&clean(note), "", "  ");
    }
    if let Some(why) = &one.why {
        put_why(one, why, lines);
    }
    if !one.rows.is_empty() && one.rows.iter().any(|row| !row.figures.is_empty()) {
        let text = format!(
            "(middle runs; at {} % over all figures; tolerated: {} % of a median)",
            one.rule.confidence_percent(),
            percent(gate.tolerance)
        );
        lines.wrap(&text, "", " ");
    }
    lines.wrap(&digests(there, here), "digests  ", "         ");
}

/// `83ada1550001 → 1c2d…`: the digests of the first run of each side. It also counts the others.
fn digests(there: &Side, here: &Side) -> String {
    let told = |side: &Side| {
        let first = side.digests.first().map_or("none", String::as_str);
        let run = side.runs.first().map_or("", String::as_str);
        match side.digests.len() {
            0 | 1 => format!("{run} {first}"),
            count => format!("{run} {first} and {} more", count - 1),
        }
    };
    format!("{} → {}", told(there), told(here))
}

fn put_row(row: &Row, detail: Detail, lines: &mut Lines) {
    for (depth, text) in row_lines(row, detail) {
        let indent = "  ".repeat(depth);
        lines.wrap(&clean(&text), &indent, &format!("{indent}  "));
    }
}

/// A measurement's title, its figures, then the differences, each with its depth.
pub(super) fn row_lines(row: &Row, detail: Detail) -> Vec<(usize, String)> {
    let title = row.row.title();
    let standing = row.standing.name();
    // What is missing is no reason for a figure's verdict.
    let (leads, follows) = match &row.gap {
        Some(gap) if row.standing == Standing::Worse => (None, Some(gap)),
        gap => (gap.as_ref(), None),
    };
    let mut lines = vec![match leads {
        Some(gap) => (0, format!("{title}: {standing}: {gap}")),
        None if row.figures.is_empty() || row.standing == Standing::Unchanged => {
            (0, format!("{title}: {standing}"))
        }
        None => (0, title),
    }];
    if row.standing != Standing::Unchanged {
        let figures = row.figures.iter();
        lines.extend(figures.map(|figure| (1, figure_line(figure))));
    }
    lines.extend(follows.map(|gap| (1, gap.clone())));
    let differ_few = |found: &Difference| found.differing < FEW.min(found.compared);
    let mut found = row.differences.iter();
    let is_few = found.all(|(_, found)| differ_few(found));
    if detail == Detail::Samples || is_few {
        let of_seed = |(seed, found): &(u64, Difference)| {
            let told = differs(found, "the baseline");
            (2, format!("seed {seed}: {told}"))
        };
        lines.extend(row.differences.iter().map(of_seed));
    }
    lines
}

/// `median   4.15 → 4.66 µs    worse     1.12× (1.11 to 1.16), 5 of 5`.
fn figure_line(figure: &Judged) -> String {
    let head = format!(
        "{:<8} {:<17} {:<9}",
        named(figure),
        arrow(figure),
        if figure.counts() {
            figure.standing.name()
        } else {
            NOT_COUNTED
        }
    );
    let head = head.replace(' ', &KEPT.to_string());
    format!("{head} {}", how_sure(figure))
}

/// `1.12× (1.11 to 1.16), 5 of 5, in do_exit`: the ratio, its certainty, and the function to blame.
pub(crate) fn how_sure(figure: &Judged) -> String {
    let ratio = figure.compared.ratio.map_or(String::new(), |ratio| {
        let range = ratio.bounds.map_or(String::new(), |(low, high)| {
            let [low, high] = [low, high].map(|bound| times(bound).replace('×', ""));
            format!(" ({low} to {high})")
        });
        format!("{}{range}", times(ratio.estimate))
    });
    let higher = match figure.compared.verdict {
        Verdict::Higher if figure.seeds > 0 => {
            format!(", {} of {}", figure.higher, figure.seeds)
        }
        _ => String::new(),
    };
    let more = match figure.compared.verdict {
        _ if figure.within.is_some() => format!("{higher}{}", within(figure)),
        _ if figure.standing != Standing::Undecided || !figure.counts() => higher,
        Verdict::Undecided(few) => {
            let (have, needed) = (few.have.0.min(few.have.1), few.needed);
            format!(", {have} of {needed} {}s that it takes", figure.unit)
        }
        Verdict::NotSeparated { more: Some(more) } if more > 0 => {
            format!(", {more} more {}s", figure.unit)
        }
        Verdict::Higher => format!("{higher}, by more than is tolerated?"),
        _ => String::new(),
    };
    let all = format!("{ratio}{more}{}", blame(figure));
    all.trim_start_matches(", ").to_owned()
}

/// Prints the obstacles in the way of the explained sample, here and there.
/// It adds what the code did differently, and the command that tells more.
fn put_why(one: &Gated, why: &Why, lines: &mut Lines) {
    let ((here, own), (there, other)) = (&why.here, &why.there);
    let row = &one.rows[why.row];
    let key = row.row.key();
    if why.profiles.is_none() {
        let name = row
            .decisive()
            .map_or("worst", |figure| figure.name.as_str());
        let head = format!("{name} of it here, {}: {}", here.id, told(own));
        lines.wrap(&clean(&head), "  ", "    ");
        let head = format!("before, {}: {}", there.id, told(other));
        lines.wrap(&clean(&head), "  ", "    ");
    }
    for sentence in why.sentences() {
        lines.wrap(&clean(&sentence), "  ", "    ");
    }
    let words = [&key.probe, &key.load, &key.label()].map(|word| quoted(word));
    let [probe, load, variant] = words;
    let command = if why.profiles.is_some() {
        Some(("profile", format!("--compare {}", there.id)))
    } else {
        let sample = own.as_ref().ok().map(|one| one.chosen.sample.seq);
        sample.map(|sample| {
            let further = format!(
                "--variant {variant} --sample {sample} --compare {}",
                there.id
            );
            ("explain", further)
        })
    };
    if let Some((command, further)) = command {
        let id = &here.id;
        lines.line(format!(
            "  punctual {command} {id} --probe {probe} --load {load} \\"
        ));
        lines.line(format!("    {further}"));
    }
}

/// `12 of 2,000 samples differ, …`, from those of `other`.
pub fn differs(found: &Difference, other: &str) -> String {
    let [differing, compared] = [found.differing, found.compared].map(thousands);
    let Some((there, here)) = &found.first else {
        let (there, here) = found.counts;
        return if there == here {
            "the samples that were kept are the same; others, or the load's work, differ".to_owned()
        } else {
            format!(
                "{} samples, where {other} has {}",
                thousands(here),
                thousands(there)
            )
        };
    };
    let first = if there.value == here.value {
        format!("{} here and there, at another moment", here.value)
    } else {
        format!("{}, where {other} has {}", here.value, there.value)
    };
    format!(
        "{differing} of {compared} samples differ, first sample {}: {first}; the middle one is \
         {}, the one that differs most {}",
        here.seq,
        longer(found.middle),
        longer(found.most)
    )
}

/// `3.61 µs longer`.
fn longer(by: Nanos) -> String {
    if by < Nanos::ZERO {
        format!("{} shorter", Nanos(-by.0))
    } else {
        format!("{by} longer")
    }
}

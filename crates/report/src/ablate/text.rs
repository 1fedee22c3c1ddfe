// SPDX-License-Identifier: MIT OR Apache-2.0
//! Benefits of options, for terminals.

use std::cmp::Ordering;

use punctual_judge::Verdict;
use punctual_model::Nanos;

use super::{Ablation, Advice, Row, Trial};
use crate::compare::verdict_told;
use crate::text::{Lines, clean, exact};

/// Each option that changes something, ranked.
/// Then it lists pairs, options that change nothing, and those not tried. No line is longer than
/// `width`, but for tables of functions.
pub fn ablation_text(ablation: &Ablation, width: usize) -> String {
    let mut lines = Lines::new(width);
    for said in head(ablation) {
        lines.put(&clean(&said));
    }
    let (told, silent): (Vec<&Trial>, Vec<&Trial>) = ablation
        .trials
        .iter()
        .partition(|trial| !ablation.shown(trial).is_empty());
    for (trial, number) in told.into_iter().zip(1..) {
        lines.line("");
        let name = called(trial, ablation);
        let title = if trial.is_pair() {
            format!("Together: {name}")
        } else {
            format!("{number}. {name}")
        };
        lines.put(&clean(&title));
        for (_, said) in changes(ablation, trial) {
            lines.wrap(&clean(&said), "   ", "     ");
        }
        for said in also(ablation, trial) {
            lines.wrap(&clean(&said), "   ", "     ");
        }
    }
    for (why, trials) in by_reason(&silent) {
        lines.line("");
        let head = match &trials[0].gap {
            Some(gap) => format!("Not measured; {gap}:"),
            None if trials[0].is_pair() => format!("Together; {why}:"),
            None => format!("No effect shown; {why}:"),
        };
        lines.put(&clean(&head));
        for trial in trials {
            let said = [vec![called(trial, ablation)], also(ablation, trial)].concat();
            lines.wrap(&clean(&said.join("; ")), "  ", "    ");
        }
    }
    if !ablation.untried.is_empty() {
        lines.line("");
        lines.put("Not tried:");
        for one in &ablation.untried {
            let advice = one.advice.as_ref().map(advice_told);
            let advice = advice.map_or(String::new(), |said| format!("; {said}"));
            let said = format!("{}: {}{advice}", one.name, one.why);
            lines.wrap(&clean(&said), "  ", "    ");
        }
    }
    for trial in &ablation.trials {
        if let Some((asked, why)) = &trial.why {
            lines.line("");
            lines.put(&clean(&asked_told(trial, asked)));
            for line in why.text(width).trim_end().lines() {
                lines.line(line);
            }
        }
    }
    lines.finish()
}

/// Describes the two sides of the comparison, and its confidence.
pub fn head(ablation: &Ablation) -> Vec<String> {
    let base = &ablation.base;
    let boot = match base.boot.as_str() {
        "" => "without boot arguments".to_owned(),
        boot => format!("with {boot}"),
    };
    let mut said = vec![format!(
        "Base: {} {boot}; suite {}. Each option is compared with it, run by run; one in twenty such \
         tables shows an effect that is not there.",
        base.kernel, ablation.suite
    )];
    if ablation.trials.iter().any(Trial::is_pair) {
        said.push(
            "Two options together have figures and no verdict: Punctual shows those figures that \
             one of the two changes by itself."
                .to_owned(),
        );
    }
    if !ablation.unmeasured.is_empty() {
        said.push(format!(
            "Some of the base's runs could not measure this, and options are compared without \
             those runs: {}.",
            ablation.unmeasured.join("; ")
        ));
    }
    if ablation.is_interrupted {
        said.push("Interrupted: not all was tried; the same command goes on.".to_owned());
    }
    said
}

/// Returns its name, and its contents where the name does not tell them.
pub fn called(trial: &Trial, ablation: &Ablation) -> String {
    let name = trial.name();
    let (side, base) = (&trial.side, &ablation.base);
    let mut parts = Vec::new();
    if side.kernel != base.kernel {
        parts.push(side.kernel.clone());
    }
    if side.boot != base.boot && side.boot.trim() != name {
        parts.push(match side.boot.as_str() {
            "" => "without boot arguments".to_owned(),
            boot => boot.to_owned(),
        });
    }
    if side.setup != base.setup {
        parts.push(shortened(&side.setup.join("; ")));
    }
    parts.retain(|part| *part != name);
    if parts.is_empty() {
        return name;
    }
    format!("{name} ({})", parts.join(" "))
}

/// A command, or as much of it as fits into a line.
fn shortened(command: &str) -> String {
    const MOST: usize = 50;
    let lines = command
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty());
    let one_line = lines.collect::<Vec<_>>().join("; ");
    match one_line.char_indices().nth(MOST) {
        Some((at, _)) => format!("{}…", one_line[..at].trim_end()),
        None => one_line,
    }
}

/// The most figures listed of one measurement; of more, the one that changes most.
const LISTED: usize = 3;

/// Returns the changes that an option makes, or the figures of a pair, each with a row that it is
/// about. Many figures of one probe under one load that change the same way are one entry.
pub fn changes<'a>(ablation: &Ablation, trial: &'a Trial) -> Vec<(&'a Row, String)> {
    let mut groups: Vec<Vec<&Row>> = Vec::new();
    for row in ablation.shown(trial) {
        let is_alike = |group: &&mut Vec<&Row>| {
            let of = |row: &Row| {
                let (probe, load) = (row.row.probe.clone(), row.row.load.clone());
                (probe, load, way(trial, row))
            };
            of(group[0]) == of(row)
        };
        match groups.iter_mut().find(is_alike) {
            Some(group) => group.push(row),
            None => groups.push(vec![row]),
        }
    }
    let told = |row| row_told(ablation, trial, row);
    let entries = |group: Vec<&'a Row>| match group.as_slice() {
        [first, rest @ ..] if rest.len() >= LISTED => {
            let by = |row: &Row| exact(Nanos(row.by().0.abs()));
            let (most, least) = (by(rest[0]), by(rest[rest.len() - 1]));
            let by = match way(trial, first) {
                Ordering::Equal => ", too".to_owned(),
                _ if most == least => format!(" by {most} ns"),
                _ => format!(" by {least} to {most} ns"),
            };
            let more = format!("; {} more of its figures{by}", rest.len());
            vec![(*first, told(first) + &more)]
        }
        all => all.iter().map(|row| (*row, told(row))).collect(),
    };
    groups.into_iter().flat_map(entries).collect()
}

/// Groups options that change nothing by their reason.
fn by_reason<'a>(silent: &[&'a Trial]) -> Vec<(String, Vec<&'a Trial>)> {
    let mut groups: Vec<(String, Vec<&Trial>)> = Vec::new();
    for trial in silent {
        let why = nothing(trial);
        match groups.iter_mut().find(|(other, _)| *other == why) {
            Some((_, trials)) => trials.push(trial),
            None => groups.push((why, vec![trial])),
        }
    }
    groups
}

/// Returns the way in which an option changes a figure: by the verdict, and of a pair, which has
/// none, by the figures.
fn way(trial: &Trial, row: &Row) -> Ordering {
    match row.judged.verdict {
        _ if trial.is_pair() => row.with.cmp(&row.base),
        Verdict::Lower => Ordering::Less,
        _ => Ordering::Greater,
    }
}

/// `buys 922 ns of timer, idle, cpu0: median (4,671 to 3,749 ns): lower 0.80× (…)`; of a pair,
/// which has no verdict, `+700 ns of timer, idle, cpu0: worst (4,030 to 4,730 ns)`.
pub fn row_told(ablation: &Ablation, trial: &Trial, row: &Row) -> String {
    let by = exact(Nanos(row.by().0.abs()));
    let [base, with] = [row.base, row.with].map(exact);
    let title = row.title();
    if !trial.is_pair() {
        let word = match way(trial, row) {
            Ordering::Less => "buys",
            _ => "costs",
        };
        let judged = verdict_told(&row.judged, &ablation.rule);
        return format!("{word} {by} ns of {title} ({base} to {with} ns): {judged}");
    }
    let told = match row.by() {
        Nanos::ZERO => format!("leaves {title} as it is ({base} ns)"),
        by => format!("{} ns of {title} ({base} to {with} ns)", signed(by)),
    };
    let parts = ablation.sum_of_parts(trial, row);
    let parts = parts.map_or(String::new(), |sum| {
        format!("; each by itself, added up: {} ns", signed(sum))
    });
    told + &parts
}

fn signed(by: Nanos) -> String {
    let sign = if by > Nanos::ZERO { "+" } else { "" };
    format!("{sign}{}", exact(by))
}

/// Returns further remarks: unknown arguments, and the outcome of advice.
pub fn also(ablation: &Ablation, trial: &Trial) -> Vec<String> {
    let mut said = Vec::new();
    if !trial.unknown.is_empty() {
        said.push(format!(
            "its kernel does not know the boot argument {}",
            trial.unknown.join(", ")
        ));
    }
    if let (Some(advice), Some(outcome)) = (&trial.advice, trial.outcome(&ablation.rule)) {
        said.push(format!("{}: {}", advice_told(advice), outcome.name()));
    }
    said
}

/// `disable the tickless system (S3)`.
pub fn advice_told(advice: &Advice) -> String {
    format!("{} ({})", advice.says, advice.source)
}

/// Returns the reason why nothing is told of an option.
pub fn nothing(trial: &Trial) -> String {
    if let Some(gap) = &trial.gap {
        return format!("not measured: {gap}");
    }
    if trial.is_identical() {
        return "the same as the base, to the last sample".to_owned();
    }
    if trial.is_pair() {
        return "no figure that one of the two changes by itself was measured".to_owned();
    }
    let same = trial.rows.iter();
    let same = same.filter(|row| row.judged.verdict == Verdict::Identical);
    let (same, all) = (same.count(), trial.rows.len());
    let few = trial.rows.iter().find_map(|row| match row.judged.verdict {
        Verdict::Undecided(few) => Some(format!("; {few}")),
        _ => None,
    });
    format!(
        "{same} of {all} figures the same to the last sample, the others not separated{}",
        few.unwrap_or_default()
    )
}

/// `The median of timer, idle, cpu0, with nohz=off against the base:`
pub fn asked_told(trial: &Trial, asked: &crate::asked::Asked) -> String {
    let key = &asked.key;
    let (probe, load, label) = (&key.probe, &key.load, key.label());
    let (figure, name) = (asked.figure(), trial.name());
    format!("The {figure} of {probe}, {load}, {label}, with {name} against the base:")
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! A story as text for a terminal.

use std::fmt::Write as _;

use punctual_model::{Nanos, Run};

use super::compare;
use super::page::Other;
use crate::text::{cut, exact, thousands, wrap};
use punctual_model::probe::SampleSpan;
use punctual_scope::breakdown::{Breakdown, Cause, Part, PathStage};
use punctual_scope::explain::Explained;
use punctual_scope::survey::{SectionKind, Survey};
use punctual_scope::tally::tally;

/// Samples with their stories, no line longer than `width`: what they have in common first.
pub fn explained(run: &Run, explained: &[Explained], width: usize) -> String {
    let mut text = String::new();
    if explained.len() > 1 {
        text = in_the_way(explained, width) + "\n";
    }
    for one in explained {
        text.push_str(&heading(run, one));
        match &one.breakdown {
            Ok(story) => {
                text.push_str(&paragraph(&sentence(story), width));
                text.push('\n');
                text.push_str(&timeline(story, width));
            }
            Err(why) => text.push_str(&not_explained(why, width)),
        }
        text.push('\n');
    }
    text
}

/// Samples with each block that ran, one to a line.
pub fn traced(run: &Run, explained: &[Explained]) -> String {
    let one = |one: &Explained| {
        let body = match &one.breakdown {
            Ok(story) => sentence(story) + "\n\n" + &blocks(story),
            Err(why) => not_explained(why, usize::MAX),
        };
        heading(run, one) + &body + "\n"
    };
    explained.iter().map(one).collect()
}

fn heading(run: &Run, explained: &Explained) -> String {
    let title = super::title(run, explained);
    format!("{}, {}: {title}\n", run.id, run.subject.name)
}

fn not_explained(why: &str, width: usize) -> String {
    paragraph(&format!("not explained: {why}"), width)
}

/// What stood in the way of several samples.
fn in_the_way(explained: &[Explained], width: usize) -> String {
    let count = explained.len();
    let mut text = format!("In the way of {count} samples\n   times    longest ns\n");
    for tally in tally(explained) {
        let longest = tally.longest.map_or_else(String::new, exact);
        let name = cut(&tally.name(), width.saturating_sub(24));
        let _ = writeln!(text, "{:>8} {longest:>13}  {name}", tally.times);
    }
    text
}

/// Samples of two runs, in pairs, side by side.
pub fn compared(run: &Run, explained: &[Explained], other: Other<'_>, width: usize) -> String {
    let mut text = String::new();
    for (one, against) in explained.iter().zip(other.explained) {
        text.push_str(&heading(run, one));
        text.push_str(&heading(other.run, against));
        match (&one.breakdown, &against.breakdown) {
            (Ok(one), Ok(against)) => {
                for story in [one, against] {
                    text.push_str(&paragraph(&sentence(story), width));
                }
                let names = [run, other.run].map(|run| format!("{} {}", run.id, run.subject.name));
                let names = [names[0].as_str(), names[1].as_str()];
                text.push('\n');
                text.push_str(&compare::text(names, one, against, 25, width));
            }
            (Err(why), _) | (_, Err(why)) => text.push_str(&not_explained(why, width)),
        }
        text.push('\n');
    }
    text
}

/// Each block that ran, one to a line.
fn blocks(story: &Breakdown) -> String {
    let mut text = String::from("       at ns  instructions  address           function\n");
    for (at, ran, address, function) in &story.blocks {
        let at = exact(*at);
        let _ = writeln!(text, "{at:>12} {ran:>13}  {address:016x}  {function}");
    }
    text
}

/// The culprit in one sentence.
pub fn sentence(story: &Breakdown) -> String {
    let Some(part) = story.culprit.map(|number| &story.parts[number]) else {
        let longest = story.parts.iter().max_by_key(|part| part.length);
        let told = longest.map_or(String::new(), |part| {
            let (stage, length) = (part.stage.name(), part.length);
            let most = part.main.as_ref().or(part.within.first());
            let most = most.map_or(String::new(), |ran| {
                format!(", most of all `{}`: {}", ran.function, ran.time)
            });
            format!("; its longest part is {stage}, {length}{most}")
        });
        let in_the_way = story.parts.iter().filter(|part| part.cause.is_in_the_way());
        let in_the_way = in_the_way.fold(Nanos::ZERO, |sum, part| sum + part.length);
        let verdict = if in_the_way * 5 >= story.late * 2 {
            "much stood in the way, nothing for long"
        } else {
            "nothing stood in the way: this is the path itself"
        };
        return format!("{}: {verdict}{told}.", story.late);
    };
    let total = story.late;
    let Some(main) = &part.main else {
        let most = part.within.first().map_or(String::new(), |ran| {
            format!(", most of all `{}`: {}", ran.function, ran.time)
        });
        return format!("{total}: {} for {}{most}.", what(part), story.held());
    };
    let from = main
        .caller
        .as_ref()
        .map_or(String::new(), |caller| format!(" called from `{caller}`"));
    let function = &main.function;
    // In all parts, as far as the function itself fills this one.
    let time = story.held() - (part.length - main.time);
    let by = part.by.as_ref().filter(|by| *by != function);
    let by = by.map_or(String::new(), |by| format!(" (by `{by}`)"));
    let how = match part.cause {
        Cause::IrqsOff => format!("ran {time} with interrupts off{by}"),
        Cause::PreemptOff => format!("ran {time} with preemption off{by}"),
        Cause::Lock => format!("held a spinning lock for {time}{by}"),
        Cause::Softirq => format!("ran {time} in a soft interrupt"),
        Cause::HardIrq => format!("ran {time} in an interrupt"),
        Cause::Exception => format!("ran {time} in an exception"),
        Cause::OtherThread => format!("ran {time} in another thread ({})", part.thread),
        Cause::CleanUp => format!("ran {time} to clean up after the thread before{by}"),
        _ => format!("ran {time} without a preemption point"),
    };
    let whole = if (main.whole - time).0 * 20 > time.0 {
        format!("; that function ran {} in all", main.whole)
    } else {
        String::new()
    };
    format!("{total}: `{function}`{from} {how}{whole}.")
}

fn what(part: &Part) -> String {
    match part.cause {
        Cause::OtherThread => format!("another thread ({}) ran", part.thread),
        Cause::NotPreemptible => format!(
            "the kernel worked for {} without a preemption point",
            part.thread
        ),
        cause => cause.name().to_owned(),
    }
}

/// A survey's longest places of each kind, no line longer than `width`.
pub fn survey(run: &Run, survey: &Survey, top: usize, width: usize) -> String {
    let (id, subject) = (&run.id, &run.subject.name);
    let instructions = thousands(survey.instructions);
    let mut text = format!("{id}, {subject}: the whole run, {instructions} instructions\n");
    for what in SectionKind::ALL {
        let places: Vec<_> = survey.hotspots.iter().filter(|p| p.what == what).collect();
        if places.is_empty() {
            continue;
        }
        let count: u64 = places.iter().map(|place| place.count).sum();
        let _ = writeln!(text, "\n{}: {} sections", what.name(), thousands(count));
        text.push_str("  longest ns        times  function\n");
        for place in places.iter().take(top) {
            let (longest, times) = (exact(place.longest), thousands(place.count));
            let function = cut(&place.function, width.saturating_sub(27));
            let _ = writeln!(text, "{longest:>12} {times:>12}  {function}");
            let (most, time) = (&place.most.0, exact(place.most.1));
            if *most != place.function {
                let most = cut(most, width.saturating_sub(44 + time.len()));
                let _ = writeln!(text, "{:27}  most of it in {most}: {time}", "");
            }
        }
    }
    if survey.mended > 0 {
        let note = format!(
            "Note: {} times the state that was followed had to be mended by what the code proved; sections open then are not counted.",
            survey.mended
        );
        let _ = write!(text, "\n{}", paragraph(&note, width));
    }
    text
}

/// The timeline; numbers are never cut.
fn timeline(story: &Breakdown, width: usize) -> String {
    let mut text = String::new();
    let line = |from: Nanos, length: &str, rest: &str| {
        format!("{:>12} {length:>12}  {rest}\n", exact(from))
    };
    text.push_str("       at ns       for ns  until\n");
    let mut stage: Option<PathStage> = None;
    for part in &story.parts {
        let name = if stage == Some(part.stage) {
            ""
        } else {
            part.stage.name()
        };
        stage = Some(part.stage);
        let rest = format!("{name:10} {}", short(part, width.saturating_sub(38)));
        text.push_str(&line(part.from, &exact(part.length), rest.trim_end()));
        for told in told(part, story.span, width.saturating_sub(39)) {
            let _ = writeln!(text, "{:39}{told}", "");
        }
    }
    text.push_str(&line(story.late, "", "sample taken"));
    for note in &story.notes {
        text.push_str(&paragraph(&format!("Note: {note}."), width));
    }
    text
}

fn short(part: &Part, width: usize) -> String {
    let by = part
        .by
        .as_ref()
        .map_or(String::new(), |by| format!(" by {by}"));
    let who = match part.cause {
        Cause::OtherThread | Cause::NotPreemptible => format!(": {}", part.thread),
        _ => String::new(),
    };
    cut(&format!("{}{by}{who}", part.cause.name()), width)
}

/// A part in one line: `999,680 ns spinning lock, by f: g`.
pub fn described(part: &Part) -> String {
    let by = part
        .by
        .as_ref()
        .map_or(String::new(), |by| format!(", by {by}"));
    let main = part
        .main
        .as_ref()
        .map_or(String::new(), |main| format!(": {}", main.function));
    format!("{} ns {}{by}{main}", exact(part.length), part.cause.name())
}

/// Functions are told where a part is long enough to matter; their times are never cut.
pub fn told(part: &Part, span: SampleSpan, width: usize) -> Vec<String> {
    if part.length.0 < 1000 {
        return Vec::new();
    }
    let line = |indent: &str, function: &str, rest: String| {
        let room = width.saturating_sub(indent.len() + rest.len()).max(8);
        format!("{indent}{}{rest}", cut(function, room))
    };
    let mut told = Vec::new();
    if let Some(main) = &part.main {
        told.push(line("", &main.function, format!(" {}", exact(main.time))));
    }
    let is_telling = span == SampleSpan::Handover && part.main.is_some();
    if part.cause.is_in_the_way() || is_telling {
        told.extend(part.within.iter().map(|ran| {
            let times = match ran.times {
                0 | 1 => String::new(),
                times => format!(" ({times}x)"),
            };
            line("  ", &ran.function, format!(" {}{times}", exact(ran.time)))
        }));
    }
    told
}

/// Text broken into lines.
fn paragraph(text: &str, width: usize) -> String {
    wrap(text, "", "", width).join("\n") + "\n"
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! A story as text for a terminal.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write as _;

use punctual_model::{Nanos, Run};

use super::compare;
use super::page::Other;
use crate::text::{cut, exact, thousands, wrap};
use punctual_model::capture::{Capture, Happened, NoiseKind, Task};
use punctual_model::probe::SampleSpan;
use punctual_scope::breakdown::{Breakdown, Cause, FunctionTime, Ipi, Part, PathStage, Spin};
use punctual_scope::explain::Explained;
use punctual_scope::survey::{SectionKind, Survey};
use punctual_scope::tally::tally;

/// Samples with their stories, common parts first; no line longer than `width`.
pub fn explained(run: &Run, explained: &[Explained], width: usize) -> String {
    let mut text = String::new();
    if explained.len() > 1 {
        text = in_the_way(explained, width) + "\n";
    }
    let story = |story: &Breakdown| timeline(story, width);
    text.extend(explained.iter().map(|one| sample(run, one, width, story)));
    text
}

/// Samples with each block that ran, one to a line.
pub fn traced(run: &Run, explained: &[Explained]) -> String {
    let one = |one: &Explained| sample(run, one, usize::MAX, blocks);
    explained.iter().map(one).collect()
}

/// Samples with each event that the kernel's tracer had noted, one to a line.
pub fn events(run: &Run, explained: &[Explained]) -> String {
    let one = |one: &Explained| {
        let chosen = &one.chosen;
        let mut captures = run.recordings[chosen.recording].captures.iter();
        let capture = captures.find(|capture| capture.sample.seq == chosen.sample.seq);
        let events = capture.map_or_else(String::new, noted);
        sample(run, one, usize::MAX, |_| events.clone())
    };
    explained.iter().map(one).collect()
}

/// The events of a capture; below one with a stack, the functions, the innermost first.
pub(crate) fn noted(capture: &Capture) -> String {
    let mut text = String::from("       at ns  task                    event\n");
    for event in &capture.events {
        let (at, task) = (exact(event.at), task(&event.task));
        let _ = writeln!(text, "{at:>12}  {task:22}  {}", happened(&event.what));
        for function in &event.stack {
            let _ = writeln!(text, "{:38}  ← {function}", "");
        }
    }
    text
}

fn task(task: &Task) -> String {
    format!("{}-{}", task.comm, task.pid)
}

fn happened(what: &Happened) -> String {
    match what {
        Happened::Switch { prev, state, next } => {
            format!("switch from {} ({state}) to {}", task(prev), task(next))
        }
        Happened::Waking { task: woken } => format!("wakes {}", task(woken)),
        Happened::IrqEntry { name } => format!("interrupt {name} begins"),
        Happened::IrqExit { name } => format!("interrupt {name} ends"),
        Happened::SoftirqEntry { name } => format!("soft interrupt {name} begins"),
        Happened::SoftirqExit { name } => format!("soft interrupt {name} ends"),
        Happened::TimerExpires { function } => format!("timer expires: {function}"),
        Happened::Noise {
            kind,
            name,
            start,
            ran,
        } => {
            let kind = match kind {
                NoiseKind::Nmi => "NMI",
                NoiseKind::Irq => "interrupt",
                NoiseKind::Softirq => "soft interrupt",
                NoiseKind::Thread => "thread",
            };
            format!("{kind} {name} ran {ran}, from {} on", exact(*start))
        }
        Happened::Function { name, caller } => format!("{name} ← {caller}"),
        Happened::Mark(text) => format!("mark: {text}"),
        Happened::Other { name, detail } => format!("{name} {detail}"),
    }
}

/// A sample's heading, its sentence, and more of its story.
fn sample(
    run: &Run,
    explained: &Explained,
    width: usize,
    more: impl Fn(&Breakdown) -> String,
) -> String {
    let body = match &explained.breakdown {
        Ok(story) => paragraph(&sentence(story), width) + "\n" + &more(story),
        Err(why) => not_explained(why, width),
    };
    heading(run, explained) + &body + "\n"
}

fn heading(run: &Run, explained: &Explained) -> String {
    let title = super::title(run, explained);
    format!("{}: {title}\n", super::name(run, ","))
}

fn not_explained(why: &str, width: usize) -> String {
    paragraph(&format!("not explained: {why}"), width)
}

/// Tallies the obstacles in the way of several samples.
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
    let names = [run, other.run].map(|run| super::name(run, ""));
    for (one, against) in explained.iter().zip(other.explained) {
        text += &(heading(run, one) + &heading(other.run, against));
        match (&one.breakdown, &against.breakdown) {
            (Ok(one), Ok(against)) => {
                let sentences = [one, against].map(|story| paragraph(&sentence(story), width));
                text += &(sentences.concat() + "\n");
                text += &compare::text(&names, one, against, 25, width);
            }
            (Err(why), _) | (_, Err(why)) => text += &not_explained(why, width),
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
/// Where several CPUs take turns, a second one tells the share of the sample that was others'.
pub fn sentence(story: &Breakdown) -> String {
    let turns = story.others().filter(|others| *others > Nanos::ZERO);
    let turns = turns.map(|others| format!(" The turns of other CPUs took {others} of it."));
    culprit(story) + &turns.unwrap_or_default()
}

fn culprit(story: &Breakdown) -> String {
    let total = story.late;
    let most = |ran: Option<&FunctionTime>| {
        let told = |ran: &FunctionTime| format!(", most of all `{}`: {}", ran.function, ran.time);
        ran.map_or_else(String::new, told)
    };
    let Some(part) = story.culprit.map(|number| &story.parts[number]) else {
        let in_the_way = story.parts.iter().filter(|part| part.cause.is_in_the_way());
        let in_the_way = in_the_way.fold(Nanos::ZERO, |sum, part| sum + part.length);
        let verdict = if in_the_way * 5 >= story.late * 2 {
            "much stood in the way, nothing for long"
        } else {
            "nothing stood in the way: this is the path itself"
        };
        let Some(part) = story.parts.iter().max_by_key(|part| part.length) else {
            return format!("{total}: {verdict}.");
        };
        let (stage, length) = (part.stage.name(), part.length);
        let most = most(part.main.as_ref().or(part.within.first()));
        return format!("{total}: {verdict}; its longest part is {stage}, {length}{most}.");
    };
    let Some(main) = part.main.as_ref().filter(|_| part.cause != Cause::Asleep) else {
        let most = most(part.main.as_ref().or(part.within.first()));
        let what = what(part);
        return format!("{total}: {what} for {}{most}.", story.held());
    };
    let quoted = |before: &str, function: Option<&String>, after: &str| {
        function.map_or_else(String::new, |name| format!("{before}`{name}`{after}"))
    };
    let from = quoted(" called from ", main.caller.as_ref(), "");
    let function = &main.function;
    // In all parts, as far as the function itself fills this one.
    let time = story.held() - (part.length - main.time);
    let by = quoted(" (by ", part.by.as_ref().filter(|by| *by != function), ")");
    let how = match part.cause {
        Cause::IrqsOff => format!("ran {time} with interrupts off{by}"),
        Cause::PreemptOff => format!("ran {time} with preemption off{by}"),
        Cause::Lock => format!("held a spinning lock for {time}{by}"),
        Cause::Softirq => format!("ran {time} in a soft interrupt"),
        Cause::HardIrq => format!("ran {time} in an interrupt"),
        Cause::Exception => format!("ran {time} in an exception{by}"),
        Cause::OtherThread => format!("ran {time} in another thread ({})", part.thread),
        Cause::Spin => format!("spun {time} for another CPU{by}"),
        Cause::AwaitedTurn => format!("kept another CPU spinning for {time}{by}"),
        Cause::CleanUp => format!("ran {time} to clean up after the thread before{by}"),
        Cause::Program => format!("ran {time} in the program itself"),
        Cause::Call => format!("ran {time} in a system call{by}"),
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
        Cause::Program => "the program itself ran".to_owned(),
        Cause::Call | Cause::Exception | Cause::Asleep => {
            let what = match part.cause {
                Cause::Call => "the kernel carried out a system call",
                Cause::Asleep => "the program slept",
                _ => "the kernel handled an exception",
            };
            let by = part.by.as_ref().map(|by| format!(" (`{by}`)"));
            what.to_owned() + &by.unwrap_or_default()
        }
        Cause::Spin | Cause::AwaitedTurn => {
            let by = part.by.as_deref().unwrap_or_default();
            format!("it spun for another CPU (in `{by}`)")
        }
        cause => cause.name().to_owned(),
    }
}

/// A survey's longest places of each kind, no line longer than `width`.
pub fn survey(run: &Run, survey: &Survey, top: usize, width: usize) -> String {
    let (run, instructions) = (super::name(run, ","), thousands(survey.instructions));
    let mut text = format!("{run}: the whole run, {instructions} instructions\n");
    let of_cpu = |cpu: u32| match survey.cpus {
        1 => String::new(),
        _ => format!("{cpu:>3}  "),
    };
    for what in SectionKind::ALL {
        let places = || survey.hotspots.iter().filter(|place| place.what == what);
        let count: u64 = places().map(|place| place.count).sum();
        if count == 0 {
            continue;
        }
        let _ = writeln!(text, "\n{}: {} sections", what.name(), thousands(count));
        let cpu = if survey.cpus > 1 { "CPU  " } else { "" };
        let _ = writeln!(text, "  longest ns        times  {cpu}function");
        for place in places().take(top) {
            let (longest, times) = (exact(place.longest), thousands(place.count));
            let cpu = of_cpu(place.cpu);
            let function = cut(&place.function, width.saturating_sub(27 + cpu.len()));
            let _ = writeln!(text, "{longest:>12} {times:>12}  {cpu}{function}");
            let indent = " ".repeat(27 + cpu.len());
            let (most, time) = (&place.most.0, exact(place.most.1));
            if *most != place.function {
                let most = cut(most, width.saturating_sub(indent.len() + 17 + time.len()));
                let _ = writeln!(text, "{indent}  most of it in {most}: {time}");
            }
            if let Some((by, at)) = &place.awaited {
                let at = cut(at, width.saturating_sub(indent.len() + 16));
                let _ = writeln!(text, "{indent}  for CPU {by}, in {at}");
            }
        }
    }
    for note in survey_notes(survey) {
        text += &("\n".to_owned() + &paragraph(&format!("Note: {note}"), width));
    }
    text
}

/// Returns notes on a survey's figures.
pub(super) fn survey_notes(survey: &Survey) -> Vec<String> {
    let mut notes = Vec::new();
    if survey.cpus > 1 {
        notes.push(
            "A section is as long as what its own CPU executes, and what that one waits for: \
             the others' turns count only while it spins in the kernel. For whom it spun is the \
             CPU that had the turn before."
                .to_owned(),
        );
    }
    for cpu in &survey.unknown {
        notes.push(format!(
            "CPU {cpu} was never in user space, so what was off there is not known, and not told."
        ));
    }
    if survey.mended > 0 {
        notes.push(format!(
            "{} times the state that was followed had to be mended by what the code proved; \
             sections open then are not counted.",
            survey.mended
        ));
    }
    notes
}

/// The timeline; numbers are never cut.
fn timeline(story: &Breakdown, width: usize) -> String {
    let line = |from: Nanos, length: &str, rest: &str| {
        format!("{:>12} {length:>12}  {rest}\n", exact(from))
    };
    let mut text = "       at ns       for ns  until\n".to_owned();
    let mut stage: Option<PathStage> = None;
    let mut left = story.parts.as_slice();
    while let Some(part) = left.first() {
        let is_new = stage.replace(part.stage) != Some(part.stage);
        let name = if is_new { part.stage.name() } else { "" };
        let (these, others) = left.split_at(together(left));
        left = others;
        let (what, told) = if these.len() > 1 {
            let what = format!("{} parts of less than 1 µs", thousands(these.len() as u64));
            (what, in_all(these, width.saturating_sub(39)))
        } else {
            let told = told(part, story.span, width.saturating_sub(39));
            (short(part, width.saturating_sub(38)), told)
        };
        let length = these.iter().fold(Nanos::ZERO, |sum, one| sum + one.length);
        let rest = format!("{name:10} {what}");
        text.push_str(&line(part.from, &exact(length), rest.trim_end()));
        for told in told {
            let _ = writeln!(text, "{:39}{told}", "");
        }
    }
    let end = match story.span {
        SampleSpan::Cycle => "it waits again",
        _ => "sample taken",
    };
    text.push_str(&line(story.late, "", end));
    let told = story.ipis.iter().map(sent);
    for told in told.chain(story.spins.iter().map(spun)) {
        text.push_str(&paragraph(&told, width));
    }
    for note in &story.notes {
        text.push_str(&paragraph(&format!("Note: {note}."), width));
    }
    text
}

/// A part shorter than this is told without its functions.
const SHORT: Nanos = Nanos(1_000);

/// More short parts than this in a row are told together.
/// A thread that lets interrupts in again and again has thousands.
const MANY: usize = 30;

/// Counts the first parts that are told in one line.
fn together(parts: &[Part]) -> usize {
    let is_alike = |one: &&Part| one.length < SHORT && one.stage == parts[0].stage;
    match parts.iter().take_while(is_alike).count() {
        count if count > MANY => count,
        _ => 1,
    }
}

/// Sums up parts by kind, each with its count and its total time, the longest first.
fn in_all(parts: &[Part], width: usize) -> Vec<String> {
    let mut kinds = BTreeMap::<String, (usize, Nanos)>::new();
    for part in parts {
        let (times, sum) = kinds.entry(short(part, usize::MAX)).or_default();
        *times += 1;
        *sum += part.length;
    }
    let mut kinds: Vec<_> = kinds.into_iter().collect();
    kinds.sort_by_key(|(_, (_, sum))| Reverse(*sum));
    let line = |(kind, (times, sum)): (String, (usize, Nanos))| {
        let rest = format!(" {} ({times}x)", exact(sum));
        cut(&kind, width.saturating_sub(rest.len()).max(8)) + &rest
    };
    kinds.into_iter().map(line).collect()
}

/// An interrupt that one CPU sent another, in a sentence.
pub fn sent(ipi: &Ipi) -> String {
    let senders = std::iter::once(&ipi.sender).chain(&ipi.callers);
    let senders: Vec<String> = senders.map(|name| format!("`{name}`")).collect();
    let (senders, sent) = (senders.join(" ← "), exact(ipi.sent));
    let Ipi {
        from, to, entry, ..
    } = ipi;
    let later = ipi.taken - ipi.sent;
    format!(
        "At {sent} CPU {from} sent CPU {to} an interrupt ({senders}); `{entry}` began {later} later."
    )
}

fn short(part: &Part, width: usize) -> String {
    let mut text = part.cause.name().to_owned();
    text.extend(part.by.iter().map(|by| format!(" by {by}")));
    if matches!(
        part.cause,
        Cause::OtherThread | Cause::NotPreemptible | Cause::Asleep
    ) {
        let _ = write!(text, ": {}", part.thread);
    }
    if let Some(cpu) = part.cpu.filter(|_| part.cause.is_turn()) {
        text = format!("CPU {cpu}'s turn: {}", part.thread);
    }
    cut(&text, width)
}

/// A part in one line: `999,680 ns spinning lock, by f: g`.
pub fn described(part: &Part) -> String {
    let mut text = format!("{} ns {}", exact(part.length), part.cause.name());
    text.extend(part.by.iter().map(|by| format!(", by {by}")));
    text.extend(part.main.iter().map(|main| format!(": {}", main.function)));
    text
}

/// Tells functions where a part is long enough to matter; their times are never cut.
pub fn told(part: &Part, span: SampleSpan, width: usize) -> Vec<String> {
    if part.length < SHORT {
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

/// Describes the place of a CPU's spinning, and another CPU's action, in a sentence.
pub fn spun(spin: &Spin) -> String {
    let called = |name: Option<&String>| {
        name.map_or_else(String::new, |name| format!(" called from `{name}`"))
    };
    let Spin {
        cpu,
        function,
        length,
        ..
    } = spin;
    let (at, called_from) = (exact(spin.from), called(spin.caller.as_ref()));
    let mut text = format!("At {at} CPU {cpu} spun {length} in `{function}`{called_from}");
    if let Some(holder) = &spin.holder {
        let what = if holder.certain {
            "held the lock"
        } else {
            "probably held it up"
        };
        let from = called(holder.caller.as_ref());
        let _ = write!(
            text,
            "; CPU {} {what} in `{}`{from}",
            holder.cpu, holder.function
        );
    }
    text + "."
}

/// Text broken into lines.
pub(super) fn paragraph(text: &str, width: usize) -> String {
    wrap(text, "", "", width).join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A switch of these parts, each so long, turn and turn about.
    fn story(lengths: &[i64]) -> Breakdown {
        let mut from = Nanos::ZERO;
        let parts = lengths
            .iter()
            .zip([Cause::OtherThread, Cause::IrqsOff].iter().cycle());
        let parts = parts.map(|(length, cause)| {
            let begin = from;
            from += Nanos(*length);
            Part {
                stage: PathStage::Switch,
                cause: *cause,
                from: begin,
                length: Nanos(*length),
                by: None,
                cpu: None,
                thread: "kernel thread (rcuc)".to_owned(),
                main: None,
                within: Vec::new(),
            }
        });
        let parts = parts.collect();
        Breakdown {
            parts,
            ..Breakdown::empty(SampleSpan::Lateness, from)
        }
    }

    #[test]
    fn many_short_parts_in_a_row_are_told_together_with_all_their_time() {
        let lengths = [vec![5_000], vec![400; 31], vec![2_000]].concat();
        let text = timeline(&story(&lengths), 80);
        let expected = "       at ns       for ns  until\n\
            \x20          0        5,000  switch     another thread: kernel thread (rcuc)\n\
            \x20      5,000       12,400             31 parts of less than 1 µs\n\
            \x20                                      interrupts off 6,400 (16x)\n\
            \x20                                      another thread… thread (rcuc) 6,000 (15x)\n\
            \x20     17,400        2,000             another thread: kernel thread (rcuc)\n\
            \x20     19,400               sample taken\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_few_short_parts_are_told_each() {
        let text = timeline(&story(&[400; 30]), 80);
        assert_eq!(text.lines().count(), 32, "{text}");
    }
}

//! A story as text for a terminal.

use std::fmt::Write as _;

use punctual_model::{Nanos, Run};

use super::compare;
use punctual_scope::breakdown::{Breakdown, Cause, Measure, Part, PathStage};
use punctual_scope::explain::Explained;
use punctual_scope::survey::{SectionKind, Survey};
use punctual_scope::tally::tally;

/// A sample with its story.
pub fn explained(run: &Run, explained: &Explained, trace: bool) -> String {
    let mut text = title(run, explained);
    match &explained.breakdown {
        Ok(story) => {
            text.push_str(&wrap(&sentence(story), 80));
            text.push('\n');
            text.push_str(&if trace {
                blocks(story)
            } else {
                timeline(story)
            });
        }
        Err(why) => text.push_str(&wrap(&format!("not explained: {why}"), 80)),
    }
    text.push('\n');
    text
}

/// What stood in the way of several samples, 80 columns wide.
pub fn in_the_way(explained: &[Explained]) -> String {
    let count = explained.len();
    let mut text = format!("In the way of {count} samples\n   times    longest ns\n");
    for tally in tally(explained) {
        let times = number(tally.times as i64);
        let longest = tally
            .longest
            .map_or_else(String::new, |time| number(time.0));
        let line = format!("{times:>8} {longest:>13}  {}", tally.name());
        let _ = writeln!(text, "{}", cut(&line, 80));
    }
    text
}

fn title(run: &Run, explained: &Explained) -> String {
    let recording = &run.recordings[explained.chosen.recording];
    let (id, subject, title) = (&run.id, &run.subject.name, recording.title());
    format!(
        "{id}, {subject}: {title}, sample {}\n",
        explained.chosen.sample.seq
    )
}

/// Samples of two runs, in pairs, side by side.
pub fn compared(runs: [&Run; 2], ones: &[Explained], others: &[Explained]) -> String {
    let mut text = String::new();
    for (one, other) in ones.iter().zip(others) {
        text.push_str(&title(runs[0], one));
        text.push_str(&title(runs[1], other));
        match (&one.breakdown, &other.breakdown) {
            (Ok(one), Ok(other)) => {
                for story in [one, other] {
                    text.push_str(&wrap(&sentence(story), 80));
                }
                let name = |run: &Run| format!("{} {}", run.id, run.subject.name);
                let names = runs.map(name);
                let names = [names[0].as_str(), names[1].as_str()];
                text.push('\n');
                text.push_str(&compare::text(names, one, other, 25));
            }
            (Err(why), _) | (_, Err(why)) => {
                text.push_str(&wrap(&format!("not explained: {why}"), 80));
            }
        }
        text.push('\n');
    }
    text
}

/// Each block that ran, one to a line.
fn blocks(story: &Breakdown) -> String {
    let mut text = String::from("       at ns  instructions  address           function\n");
    for (at, ran, address, function) in &story.blocks {
        let at = number(at.0);
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
        return format!("{}: {verdict}{told}", story.late);
    };
    let total = story.late;
    let Some(main) = &part.main else {
        let most = part.within.first().map_or(String::new(), |ran| {
            format!(", most of all `{}`: {}", ran.function, ran.time)
        });
        return format!("{total}: {} for {}{most}", what(part), story.held());
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
        format!("; it ran {} in all", main.whole)
    } else {
        String::new()
    };
    format!("{total}: `{function}`{from} {how}{whole}")
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

/// A survey's longest places of each kind, 80 columns wide.
pub fn survey(run: &Run, survey: &Survey, top: usize) -> String {
    let (id, subject) = (&run.id, &run.subject.name);
    let instructions = number(survey.instructions as i64);
    let mut text = format!("{id}, {subject}: the whole run, {instructions} instructions\n");
    for what in SectionKind::ALL {
        let places: Vec<_> = survey.hotspots.iter().filter(|p| p.what == what).collect();
        if places.is_empty() {
            continue;
        }
        let count: u64 = places.iter().map(|place| place.count).sum();
        let _ = writeln!(text, "\n{}: {} sections", what.name(), number(count as i64));
        text.push_str("  longest ns        times  function\n");
        for place in places.iter().take(top) {
            let (longest, times) = (number(place.longest.0), number(place.count as i64));
            let line = format!("{longest:>12} {times:>12}  {}", place.function);
            let _ = writeln!(text, "{}", cut(&line, 80));
            if place.most.0 != place.function {
                let (most, time) = &place.most;
                let line = format!("{:27}  most of it in {most}: {}", "", number(time.0));
                let _ = writeln!(text, "{}", cut(&line, 80));
            }
        }
    }
    if survey.mended > 0 {
        let note = format!(
            "Note: {} times the state that was followed had to be mended by what the code proved; sections open then are not counted.",
            survey.mended
        );
        let _ = write!(text, "\n{}", wrap(&note, 80));
    }
    text
}

/// A number with its thousands apart.
pub fn number(value: i64) -> String {
    let digits = value.unsigned_abs().to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    if value < 0 { format!("-{text}") } else { text }
}

/// The timeline, 80 columns wide.
pub fn timeline(story: &Breakdown) -> String {
    let mut text = String::new();
    let line = |from: Nanos, length: &str, rest: &str| {
        format!("{:>12} {length:>12}  {rest}\n", number(from.0))
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
        let rest = format!("{name:10} {}", short(part, 42));
        text.push_str(&line(part.from, &number(part.length.0), rest.trim_end()));
        for told in details(part, story.measure) {
            let _ = writeln!(text, "{:39}{}", "", cut(&told, 41));
        }
    }
    text.push_str(&line(story.late, "", "sample taken"));
    for note in &story.notes {
        text.push_str(&wrap(&format!("Note: {note}."), 80));
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

/// Functions are told where a part is long enough to matter.
fn details(part: &Part, measure: Measure) -> Vec<String> {
    if part.length.0 < 1000 {
        return Vec::new();
    }
    let mut told = Vec::new();
    if let Some(main) = &part.main {
        told.push(format!("{} {}", main.function, number(main.time.0)));
    }
    let is_telling = measure == Measure::Handover && part.main.is_some();
    if part.cause.is_in_the_way() || is_telling {
        let times = |n: u32| {
            if n > 1 {
                format!(" ({n}x)")
            } else {
                String::new()
            }
        };
        let line = |ran: &punctual_scope::breakdown::FunctionTime| {
            format!(
                "  {} {}{}",
                ran.function,
                number(ran.time.0),
                times(ran.times)
            )
        };
        told.extend(part.within.iter().map(line));
    }
    told
}

/// At most so many characters.
pub fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let kept: String = text.chars().take(width - 1).collect();
    format!("{kept}…")
}

/// Lines of at most so many characters, broken between words.
pub fn wrap(text: &str, width: usize) -> String {
    let mut lines = String::new();
    let mut length = 0;
    for word in text.split(' ') {
        let word_length = word.chars().count();
        if length > 0 && length + 1 + word_length > width {
            lines.push('\n');
            length = 0;
        } else if length > 0 {
            lines.push(' ');
            length += 1;
        }
        lines.push_str(word);
        length += word_length;
    }
    lines.push('\n');
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_lines_are_easy_to_read() {
        assert_eq!(number(1_234_567), "1,234,567");
        assert_eq!(
            (number(999), number(-1_000)),
            ("999".into(), "-1,000".into())
        );
        assert_eq!(wrap("one two three", 7), "one two\nthree\n");
        assert_eq!(cut("abcdef", 4), "abc…");
    }
}

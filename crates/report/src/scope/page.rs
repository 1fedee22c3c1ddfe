// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stories as a page: obstacles first. Then each sample has its timeline and its flame graph.

use maud::{Markup, PreEscaped, html};
use punctual_model::probe::SampleSpan;
use punctual_model::{Nanos, Run};
use punctual_scope::breakdown::{Breakdown, Cause, Part};
use punctual_scope::explain::Explained;
use punctual_scope::survey::{SectionKind, Survey};
use punctual_scope::tally::tally;

use super::compare::{differences, own_times, stages};
use super::flame::flame;
use super::text::{described, sent, sentence, spun, survey_notes, told};
use crate::page::commands;
use crate::shell::{self, Chapter, folded, wide};
use crate::text::{exact, thousands};

/// The number of samples shown at length; the others are folded.
const OPEN: usize = 3;
/// The number of functions that a comparison names.
const FUNCTIONS: usize = 25;
/// A timeline's width, in units.
const WIDTH: f64 = 1000.0;

/// Another run's samples, beside which those of the page's run stand.
#[derive(Clone, Copy, Debug)]
pub struct Other<'a> {
    /// The other run.
    pub run: &'a Run,
    /// Its samples, in the order of those that they are compared with.
    pub explained: &'a [Explained],
}

/// The page about a run's samples, beside another run's where there is one.
pub fn page(run: &Run, explained: &[Explained], other: Option<Other<'_>>) -> String {
    let count = thousands(explained.len() as u64);
    let title = format!("In the way of {count} samples");
    let mut chapters = vec![Chapter::new(title, in_the_way(explained))];
    let mut runs = vec![run.clone()];
    if let Some(other) = other {
        let title = format!("Against {} ({})", other.run.id, other.run.subject.name);
        chapters.push(Chapter::new(title, compared(run, explained, other)));
        runs.push(other.run.clone());
    }
    let samples = html! { @for (number, one) in explained.iter().enumerate() {
        (sample(run, one, number))
    } };
    chapters.push(Chapter::new("Sample by sample", samples));
    chapters.push(to_repeat(&runs, &super::command(run, explained)));
    let longest = explained.iter().map(|one| one.chosen.sample.value).max();
    let longest = longest.map_or_else(String::new, |longest| format!(" of {longest}"));
    let title = format!("{}: where did the time{longest} go?", super::name(run, ","));
    shell::page(&title, &facts(run), chapters)
}

/// The page about the places of a run that could hurt.
pub fn survey_page(run: &Run, survey: &Survey, top: usize) -> String {
    let of = |what: SectionKind| {
        let places = survey.hotspots.iter();
        let places = places.filter(move |place| place.what == what);
        let table = html! { table.text.kept {
            thead { tr {
                @if survey.cpus > 1 { th.number { "CPU" } }
                th { "function" } th.number { "longest, ns" } th.number { "times" }
                th.number { "in all, ns" } th { "most of the longest in" }
            } }
            tbody { @for place in places.clone().take(top) { tr {
                @if survey.cpus > 1 { td.number { (place.cpu) } }
                td.free { code { (place.function) } }
                td.number { (exact(place.longest)) }
                td.number { (thousands(place.count)) }
                td.number { (exact(place.sum)) }
                td.free {
                    @if let Some((cpu, function)) = &place.awaited {
                        "for CPU " (cpu) ", in " code { (function) }
                    } @else {
                        code { (place.most.0) } ", " (exact(place.most.1))
                    }
                }
            } } }
        } };
        let some = places.clone().next().is_some();
        Chapter::new(what.name(), html! { @if some { (wide(&table)) } })
    };
    let longest = SectionKind::ALL.into_iter().filter_map(|what| {
        let places = survey.hotspots.iter().filter(|place| place.what == what);
        places.max_by_key(|place| place.longest)
    });
    let longest: Vec<_> = longest.collect();
    let lead = html! {
        @if longest.is_empty() { p.lead { "No section was found." } } @else {
            p.lead { "The longest: " @for (number, place) in longest.iter().enumerate() {
                @if number > 0 { "; " }
                (place.what.name()) " for " (place.longest) " by " code { (place.function) }
            } "." }
        }
        (facts(run))
    };
    let mut chapters: Vec<Chapter> = SectionKind::ALL.into_iter().map(of).collect();
    let notes = survey_notes(survey);
    let notes = html! { @for note in notes { p.soft { (note) } } };
    chapters.push(Chapter::new("What is counted", notes));
    let command = format!("punctual survey {}", run.id);
    chapters.push(to_repeat(std::slice::from_ref(run), &command));
    let longest = longest.into_iter().max_by_key(|place| place.longest);
    let longest = longest.map_or_else(String::new, |place| {
        let what = place.what.name();
        format!(": {what} for {} by {}", place.longest, place.function)
    });
    let title = format!("{}: the longest sections{longest}", super::name(run, ","));
    shell::page(&title, &lead, chapters)
}

/// The commands that repeat the runs, and the one that looks at the first again.
pub(super) fn to_repeat(runs: &[Run], command: &str) -> Chapter {
    let repeat = html! {
        (commands(runs))
        p.soft { "Then, with the run's own number: " code { (command) } }
    };
    Chapter::new("To repeat it", repeat)
}

fn facts(run: &Run) -> Markup {
    let subject = &run.subject;
    let digest = run.digest().map(|digest| format!("{digest:.12}"));
    let digest = digest.unwrap_or_else(|| run.digest_or_why());
    html! { p.soft {
        (subject.kernel) @if !subject.boot.is_empty() { " " (subject.boot) }
        "; suite " (run.suite) ", seed " (run.seed) "; digest " (digest)
        ". Times are virtual nanoseconds: lengths of code paths, not times of a certain CPU."
    } }
}

/// Tallies the obstacles in the way of all samples.
fn in_the_way(explained: &[Explained]) -> Markup {
    let table = html! { table.text {
        thead { tr { th.number { "samples" } th.number { "longest, ns" } th { "what" } } }
        tbody { @for tally in tally(explained) { tr {
            td.number { (tally.times) }
            td.number { (tally.longest.map_or_else(|| "–".to_owned(), exact)) }
            td { (tally.name()) }
        } } }
    } };
    html! { @if explained.len() > 1 { (wide(&table)) } }
}

/// A sample's story: the first three at length, the others folded.
pub(crate) fn sample(run: &Run, explained: &Explained, number: usize) -> Markup {
    let title = super::title(run, explained);
    let story = match &explained.breakdown {
        Ok(story) => story,
        Err(why) => return html! { h3 { (title) } p { "Not explained: " (why) "." } },
    };
    let sentence = code(&sentence(story));
    if number < OPEN {
        return html! { h3 { (title) } p { (sentence) } (story_body(story, number == 0)) };
    }
    html! { details {
        summary { (title) ": " span { (sentence) } }
        (story_body(story, false))
    } }
}

fn story_body(story: &Breakdown, is_open: bool) -> Markup {
    let between = match story.span {
        SampleSpan::Lateness => "between due and taken",
        SampleSpan::Cycle => "between due and the next wait",
        SampleSpan::Handover | SampleSpan::Gap => "between the two readings of the clock",
    };
    let count = story.parts.len();
    let size = if story.flame.is_empty() {
        count.to_string()
    } else {
        format!("{count}, to the nanosecond")
    };
    html! {
        (timeline(story))
        @for ipi in &story.ipis { p.soft { (code(&sent(ipi))) } }
        @for spin in &story.spins { p.soft { (code(&spun(spin))) } }
        @for note in &story.notes { p.soft { "Note: " (note) "." } }
        (folded("Parts", &size, &wide(&parts(story))))
        // The kernel's tracer does not see functions.
        @if !story.flame.is_empty() {
            details open[is_open] {
                summary { "Flame graph " span { "what ran " (between) } }
                (wide(&flame(story)))
            }
        }
    }
}

/// The parts as a bar, to scale, with a key to its colours.
/// Parts too short to be seen are in the table.
fn timeline(story: &Breakdown) -> Markup {
    let scale = WIDTH / story.late.0.max(1) as f64;
    let begin = match story.span {
        SampleSpan::Lateness | SampleSpan::Cycle => "due",
        SampleSpan::Handover | SampleSpan::Gap => "begun",
    };
    html! {
        svg.timeline viewBox=(format!("0 0 {WIDTH} 24")) preserveAspectRatio="none" role="img"
            aria-label="timeline" {
            @for (number, part) in story.parts.iter().enumerate() {
                @let (x, width) = (part.from.0 as f64 * scale, part.length.0 as f64 * scale);
                @let culprit = story.culprit == Some(number);
                rect.(class(part.cause)).culprit[culprit] x=(format!("{x:.1}")) y="0"
                    width=(format!("{width:.1}")) height="24" { title { (described(part)) } }
            }
        }
        div.ends { span { (begin) } span { "sample: " (exact(story.late)) " ns" } }
        ul.key { @for (cause, length) in causes(story) { li {
            svg.swatch viewBox="0 0 22 10" { rect.(class(cause)) width="22" height="10" {} }
            " " (cause.name()) " " (exact(length)) " ns"
        } } }
    }
}

/// Returns the time for which each cause kept the sample, in order of first appearance.
fn causes(story: &Breakdown) -> Vec<(Cause, Nanos)> {
    let mut all: Vec<(Cause, Nanos)> = Vec::new();
    for part in &story.parts {
        match all.iter_mut().find(|(cause, _)| *cause == part.cause) {
            Some((_, length)) => *length += part.length,
            None => all.push((part.cause, part.length)),
        }
    }
    all
}

/// Returns the paint of a cause: its class in the style sheet.
pub fn class(cause: Cause) -> &'static str {
    match cause {
        Cause::Idle | Cause::Pending | Cause::Unseen | Cause::Asleep => "idle",
        Cause::IrqsOff => "irqs",
        Cause::HardIrq | Cause::Exception => "hard",
        Cause::Softirq => "soft-irq",
        Cause::PreemptOff
        | Cause::Lock
        | Cause::NotPreemptible
        | Cause::Spin
        | Cause::AwaitedTurn => "preempt",
        Cause::OtherThread | Cause::CleanUp | Cause::OtherTurn | Cause::Outside => "other",
        Cause::Scheduler => "scheduler",
        Cause::Path | Cause::Program | Cause::Call => "way",
    }
}

fn parts(story: &Breakdown) -> Markup {
    let function = |part: &Part| {
        let main = part
            .main
            .as_ref()
            .map(|main| (&main.function, &main.caller));
        main.map_or_else(String::new, |(function, caller)| match caller {
            Some(caller) => format!("{function} ← {caller}"),
            None => function.clone(),
        })
    };
    html! { table.text.kept {
        thead { tr {
            th.number { "at, ns" } th.number { "for, ns" } th { "until" } th { "what" } th { "by" }
            th { "thread" } th { "function" } th { "within it" }
        } }
        tbody { @for (place, part) in story.parts.iter().enumerate() {
            tr.culprit[story.culprit == Some(place)] {
                td.number { (exact(part.from)) }
                td.number { (exact(part.length)) }
                td { (part.stage.name()) }
                td { (part.cause.name()) }
                td.free { code { (part.by.as_deref().unwrap_or_default()) } }
                td { (part.thread) }
                td.free { code { (function(part)) } }
                td.free { @for line in told(part, story.span, usize::MAX) { code { (line) } br; } }
            }
        } }
    } }
}

/// Samples in pairs, stage by stage and function by function.
pub(crate) fn compared(run: &Run, explained: &[Explained], other: Other<'_>) -> Markup {
    let names = [run, other.run].map(|run| super::name(run, ""));
    html! { @for (one, against) in explained.iter().zip(other.explained) {
        h3 { (super::title(run, one)) "; " (super::title(other.run, against)) }
        @match (&one.breakdown, &against.breakdown) {
            (Ok(one), Ok(other)) => {
                @for (name, story) in names.iter().zip([one, other]) {
                    p { b { (name) ":" } " " (code(&sentence(story))) }
                }
                (wide(&difference(&names, one, other)))
            }
            (Err(why), _) | (_, Err(why)) => { p { "Not explained: " (why) "." } }
        }
    } }
}

fn difference(names: &[String; 2], one: &Breakdown, other: &Breakdown) -> Markup {
    let row = |(name, a, b): (&str, Nanos, Nanos)| {
        html! { tr {
            td { (name) } td.number { (exact(a)) } td.number { (exact(b)) } td.number { (exact(b - a)) }
        } }
    };
    html! { table.text.kept {
        thead { tr {
            th { "stage, ns" }
            @for name in names { th.number { (name) } }
            th.number { "difference" }
        } }
        tbody {
            @for stage in stages(one, other) { (row(stage)) }
            tr { th { "function itself, ns" } th {} th {} th {} }
            @for function in differences(&own_times(one), &own_times(other)).into_iter().take(FUNCTIONS) {
                (row(function))
            }
        }
    } }
}

/// Marks text between back-ticks as code.
pub(crate) fn code(text: &str) -> Markup {
    let mut html = String::new();
    for (number, piece) in text.split('`').enumerate() {
        if number > 0 {
            html.push_str(if number % 2 == 1 { "<code>" } else { "</code>" });
        }
        html.push_str(&html! { (piece) }.0);
    }
    // A stranger's name may have one back-tick alone.
    if text.matches('`').count() % 2 == 1 {
        html.push_str("</code>");
    }
    PreEscaped(html)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped_and_code_is_marked() {
        assert_eq!(code("`f` < 3").0, "<code>f</code> &lt; 3");
        assert_eq!(code("a `b").0, "a <code>b</code>");
    }
}

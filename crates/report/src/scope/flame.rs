// SPDX-License-Identifier: MIT OR Apache-2.0
//! Flame graphs: everything that ran in a sample, callers below their callees, as wide as it took.

use std::collections::{BTreeMap, HashMap};

use maud::{Markup, html};
use punctual_model::Nanos;
use punctual_scope::breakdown::{Breakdown, Cause};

use super::page::class;
use crate::text::exact;

const WIDTH: f64 = 1100.0;
const ROW: usize = 17;
/// Anything narrower cannot be seen.
const NARROWEST: f64 = 0.4;
/// The width of a letter.
const LETTER: f64 = 6.4;

/// A function as it was called from the same callers.
#[derive(Default)]
struct Frame<'a> {
    time: Nanos,
    called: BTreeMap<&'a str, Frame<'a>>,
}

impl Frame<'_> {
    fn depth(&self) -> usize {
        let deepest = self.called.values().map(Frame::depth).max();
        deepest.map_or(0, |deepest| deepest + 1)
    }
}

/// The flame graph of a sample, each function in the colour of its main cause.
pub fn flame(story: &Breakdown) -> Markup {
    let mut root = Frame::default();
    for (stack, time) in &story.flame {
        root.time += *time;
        let mut frame = &mut root;
        for function in stack.split(';') {
            frame = frame.called.entry(function).or_default();
            frame.time += *time;
        }
    }
    let depth = root.depth();
    let mut drawing = Drawing {
        causes: causes(story),
        scale: WIDTH / root.time.0.max(1) as f64,
        bottom: depth * ROW,
        boxes: Vec::new(),
    };
    drawing.called(&root, 0.0, 0);
    html! {
        svg.flame viewBox=(format!("0 0 {WIDTH} {}", depth * ROW + 1)) role="img"
            aria-label="flame graph" { @for one in &drawing.boxes { (one) } }
    }
}

/// Returns the main cause of each function, by the parts that it ran in.
fn causes(story: &Breakdown) -> HashMap<&str, Cause> {
    let mut times: HashMap<&str, HashMap<Cause, Nanos>> = HashMap::new();
    for entered in &story.functions {
        let end = entered.from + entered.length;
        for part in &story.parts {
            let both = end.min(part.from + part.length) - entered.from.max(part.from);
            if both > Nanos::ZERO {
                let of = times.entry(&entered.function).or_default();
                *of.entry(part.cause).or_default() += both;
            }
        }
    }
    let most = |(function, of): (_, HashMap<Cause, Nanos>)| {
        let causes = of.into_iter();
        let longest = causes.max_by_key(|(cause, time)| (*time, cause.name()))?;
        Some((function, longest.0))
    };
    times.into_iter().filter_map(most).collect()
}

struct Drawing<'a> {
    causes: HashMap<&'a str, Cause>,
    scale: f64,
    bottom: usize,
    boxes: Vec<Markup>,
}

impl Drawing<'_> {
    /// Draws the callees of a frame, beside each other from `left`.
    fn called(&mut self, frame: &Frame<'_>, mut left: f64, row: usize) {
        for (function, one) in &frame.called {
            let width = one.time.0 as f64 * self.scale;
            if width >= NARROWEST {
                self.one(function, one.time, (left, width), row);
                self.called(one, left, row + 1);
            }
            left += width;
        }
    }

    fn one(&mut self, function: &str, time: Nanos, (x, width): (f64, f64), row: usize) {
        let y = self.bottom - (row + 1) * ROW;
        let cause = self.causes.get(function);
        let class = cause.map_or("idle", |cause| class(*cause));
        let letters = (width / LETTER) as usize;
        let name = (letters > 3).then(|| begin(function, letters));
        self.boxes.push(html! {
            rect class=(class) x=(format!("{x:.1}")) y=(y) width=(format!("{width:.1}"))
                height=(ROW) { title { (function) ": " (exact(time)) " ns" } }
            @if let Some(name) = name {
                text x=(format!("{:.1}", x + 3.0)) y=(y + 12) { (name) }
            }
        });
    }
}

/// As many letters of a name's begin as there is room for.
fn begin(name: &str, letters: usize) -> String {
    if name.chars().count() <= letters {
        return name.to_owned();
    }
    let kept: String = name.chars().take(letters - 1).collect();
    format!("{kept}…")
}

#[cfg(test)]
mod tests {
    use punctual_model::probe::SampleSpan;
    use punctual_scope::breakdown::{FunctionSpan, Part, PathStage};

    use super::*;
    use crate::fixtures::assert_has;

    #[test]
    fn frames_are_as_wide_as_they_took_and_in_the_colour_of_their_cause() {
        let part = |cause, from, length| Part {
            stage: PathStage::Switch,
            cause,
            from: Nanos(from),
            length: Nanos(length),
            by: None,
            cpu: None,
            thread: "t".to_owned(),
            main: None,
            within: Vec::new(),
        };
        let entered = |function: &str, from, length| FunctionSpan {
            function: function.to_owned(),
            thread: "t".to_owned(),
            from: Nanos(from),
            length: Nanos(length),
        };
        let stacks = [("t;work;<inner>", 750), ("t;go_on", 250)];
        let stacks = stacks.map(|(stack, time)| (stack.to_owned(), Nanos(time)));
        let story = Breakdown {
            parts: vec![part(Cause::IrqsOff, 0, 750), part(Cause::Path, 750, 250)],
            culprit: Some(0),
            flame: stacks.into(),
            functions: vec![entered("<inner>", 0, 750), entered("go_on", 750, 250)],
            ..Breakdown::empty(SampleSpan::Lateness, Nanos(1_000))
        };
        let svg = flame(&story).into_string();
        let inner = "<rect class=\"irqs\" x=\"275.0\" y=\"0\" width=\"825.0\" height=\"17\">\
                     <title>&lt;inner&gt;: 750 ns</title>";
        assert_has(&svg, &[inner]);
        let go_on = "<rect class=\"way\" x=\"0.0\" y=\"17\" width=\"275.0\"";
        assert_has(&svg, &[go_on]);
        assert_eq!(svg.matches("<rect").count(), 4);
    }
}

//! Stories as a page: one HTML file with timelines and flame graphs.

use std::fmt::Write as _;

use inferno::flamegraph::{self, Options};
use punctual_model::Run;

use super::text::{number, sentence};
use punctual_scope::breakdown::{Breakdown, Cause, Measure, Part};
use punctual_scope::explain::Explained;
use punctual_scope::tally::tally;

const STYLE: &str = include_str!("page.css");

/// The page about a run's samples.
pub fn page(run: &Run, explained: &[Explained]) -> String {
    let title = escape(&format!(
        "{}, {}: where did the time go?",
        run.id, run.subject.name
    ));
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>{title}</title>\n\
         <style>{STYLE}</style>\n<h1>{title}</h1>\n"
    );
    let subject = &run.subject;
    let kernel = format!("{} {}", subject.kernel, subject.boot);
    let kernel = escape(kernel.trim_end());
    let digest = run.digest().unwrap_or_default();
    let _ = writeln!(
        html,
        "<p class=\"facts\">{kernel}; suite {}, seed {}; digest {digest:.12}. Times are \
         virtual nanoseconds: lengths of code paths, not times of a certain CPU.</p>",
        escape(&run.suite),
        run.seed
    );
    if explained.len() > 1 {
        in_the_way(&mut html, explained);
    }
    for explained in explained {
        section(&mut html, run, explained);
    }
    html
}

/// What stood in the way of the samples, all together.
fn in_the_way(html: &mut String, explained: &[Explained]) {
    let _ = writeln!(
        html,
        "<h2>In the way of {} samples</h2>\n<table class=\"tally\"><tr><th class=\"n\">times\
         <th class=\"n\">longest, ns<th>what",
        explained.len()
    );
    for tally in tally(explained) {
        let _ = writeln!(
            html,
            "<tr><td class=\"n\">{}<td class=\"n\">{}<td>{}",
            tally.times,
            tally
                .longest
                .map_or_else(String::new, |time| number(time.0)),
            escape(&tally.name())
        );
    }
    html.push_str("</table>\n");
}

fn section(html: &mut String, run: &Run, explained: &Explained) {
    let recording = &run.recordings[explained.chosen.recording];
    let title = escape(&recording.title());
    let _ = writeln!(
        html,
        "<h2>{title}, sample {}</h2>",
        explained.chosen.sample.seq
    );
    match &explained.breakdown {
        Ok(story) => told(html, story),
        Err(why) => {
            let _ = writeln!(html, "<p>not explained: {}</p>", escape(why));
        }
    }
}

fn told(html: &mut String, story: &Breakdown) {
    let _ = writeln!(html, "<p class=\"culprit\">{}</p>", code(&sentence(story)));
    timeline(html, story);
    table(html, story);
    for note in &story.notes {
        let _ = writeln!(html, "<p class=\"facts\">Note: {}.</p>", escape(note));
    }
    match flame(story) {
        Ok(svg) => {
            let _ = writeln!(
                html,
                "<iframe title=\"flame graph\" height=\"{}\" srcdoc=\"{}\"></iframe>",
                height(&svg) + MARGIN,
                escape(&svg)
            );
        }
        Err(why) => {
            let _ = writeln!(html, "<p>no flame graph: {}</p>", escape(&why));
        }
    }
}

/// The parts as a bar, to scale; what is too short to be seen is in the table.
fn timeline(html: &mut String, story: &Breakdown) {
    const WIDTH: f64 = 1000.0;
    let scale = WIDTH / story.late.0 as f64;
    let _ = write!(
        html,
        "<svg viewBox=\"0 0 {WIDTH} 46\" role=\"img\" aria-label=\"timeline\">"
    );
    for (number, part) in story.parts.iter().enumerate() {
        let (x, width) = (part.from.0 as f64 * scale, part.length.0 as f64 * scale);
        let culprit = if story.culprit == Some(number) {
            " culprit"
        } else {
            ""
        };
        let _ = write!(
            html,
            "<rect class=\"{}{culprit}\" x=\"{x:.2}\" y=\"4\" width=\"{width:.2}\" height=\"24\">\
             <title>{}</title></rect>",
            class(part.cause),
            escape(&described(part))
        );
        if width > 90.0 {
            let _ = write!(
                html,
                "<text x=\"{:.2}\" y=\"20\">{}</text>",
                x + 4.0,
                part.cause.name()
            );
        }
    }
    let _ = writeln!(
        html,
        "<text class=\"axis\" x=\"0\" y=\"43\">{}</text><text class=\"axis end\" x=\"{WIDTH}\" \
         y=\"43\">sample: {} ns</text></svg>",
        begin(story.measure),
        number(story.late.0)
    );
}

/// What a sample begins with.
fn begin(measure: Measure) -> &'static str {
    match measure {
        Measure::Lateness => "due",
        Measure::Handover | Measure::Gap => "begun",
    }
}

fn class(cause: Cause) -> &'static str {
    match cause {
        Cause::Idle | Cause::Pending | Cause::Unseen => "idle",
        Cause::IrqsOff => "irqs",
        Cause::HardIrq | Cause::Exception => "hard",
        Cause::Softirq => "soft",
        Cause::PreemptOff | Cause::Lock | Cause::NotPreemptible => "preempt",
        Cause::OtherThread | Cause::CleanUp => "other",
        Cause::Scheduler | Cause::Path => "way",
    }
}

fn described(part: &Part) -> String {
    let by = part
        .by
        .as_ref()
        .map_or(String::new(), |by| format!(", by {by}"));
    let main = part
        .main
        .as_ref()
        .map_or(String::new(), |main| format!(": {}", main.function));
    format!(
        "{} ns {}{by}{main}",
        number(part.length.0),
        part.cause.name()
    )
}

fn table(html: &mut String, story: &Breakdown) {
    html.push_str(
        "<table><tr><th>at, ns<th>for, ns<th>until<th>what<th>by<th>thread<th>function\n",
    );
    for (place, part) in story.parts.iter().enumerate() {
        let culprit = if story.culprit == Some(place) {
            " class=\"culprit\""
        } else {
            ""
        };
        let main = part.main.as_ref();
        let function = main.map_or(String::new(), |main| {
            let caller = main
                .caller
                .as_ref()
                .map_or(String::new(), |c| format!(" ← {c}"));
            format!("{}{caller}", main.function)
        });
        let _ = writeln!(
            html,
            "<tr{culprit}><td class=\"n\">{}<td class=\"n\">{}<td>{}<td>{}<td><code>{}</code>\
             <td>{}<td><code>{}</code>",
            number(part.from.0),
            number(part.length.0),
            part.stage.name(),
            part.cause.name(),
            escape(part.by.as_deref().unwrap_or_default()),
            escape(&part.thread),
            escape(&function)
        );
    }
    html.push_str("</table>\n");
}

/// The flame graph of all that ran in the sample.
pub fn flame(story: &Breakdown) -> Result<String, String> {
    let lines: Vec<String> = story
        .flame
        .iter()
        .map(|(stack, time)| format!("{stack} {}", time.0))
        .collect();
    let mut options = Options::default();
    let between = match story.measure {
        Measure::Lateness => "due and taken",
        Measure::Handover | Measure::Gap => "the two readings of the clock",
    };
    options.title = format!("what ran between {between}");
    "ns".clone_into(&mut options.count_name);
    options.deterministic = true;
    options.image_width = Some(1120);
    let mut svg = Vec::new();
    let lines = lines.iter().map(String::as_str);
    flamegraph::from_lines(&mut options, lines, &mut svg).map_err(|error| error.to_string())?;
    String::from_utf8(svg).map_err(|error| error.to_string())
}

/// The margins of a document in a frame, above and below.
const MARGIN: u32 = 20;

/// The height that an image says that it has, in pixels.
fn height(svg: &str) -> u32 {
    let behind = svg.split_once(" height=\"").map(|(_, behind)| behind);
    let number = behind.and_then(|behind| behind.split_once('"'));
    number
        .and_then(|(number, _)| number.parse().ok())
        .unwrap_or(500)
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// What is between back-ticks is code.
fn code(text: &str) -> String {
    let mut html = String::new();
    for (number, piece) in escape(text).split('`').enumerate() {
        if number > 0 {
            html.push_str(if number % 2 == 1 { "<code>" } else { "</code>" });
        }
        html.push_str(piece);
    }
    html
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped_and_code_is_marked() {
        assert_eq!(code("`f` < 3"), "<code>f</code> &lt; 3");
        assert_eq!(escape("\"a&b\""), "&quot;a&amp;b&quot;");
    }

    #[test]
    fn a_frame_is_as_high_as_its_image() {
        assert_eq!(height("<svg width=\"1120\" height=\"326\" x>"), 326);
    }
}

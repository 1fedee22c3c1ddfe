// SPDX-License-Identifier: MIT OR Apache-2.0
//! The presentation of recordings, by what their probes say of it.
//! A finding that is missing is `unknown`, never a pass.

use punctual_agent::probes;
use punctual_model::probe::{FindingView, Form, Shape, View};
use punctual_model::{Finding, Findings};

use crate::text::thousands;

/// A probe that is not known is shown by its worst sample.
static ANY: View = View::of_samples(Shape::Latency, "sample");

/// The view of a probe.
pub fn of(probe: &str) -> &'static View {
    probes::info(probe).map_or(&ANY, |info| &info.view)
}

/// Returns true if the worst of a probe's samples counts, and not the middle of them.
pub fn counts_by_worst(probe: &str) -> bool {
    of(probe).shape == Shape::Latency
}

/// A probe's place in the order in which the summary prefers to speak.
pub fn rank(probe: &str) -> usize {
    let place = probes::INFOS.iter().position(|info| info.name == probe);
    place.unwrap_or(probes::INFOS.len())
}

/// The text of a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FindingText {
    /// A word or a number; never empty.
    pub text: String,
    /// Further text, too long for a table.
    pub more: Option<String>,
    /// The judgement on it.
    pub tone: Tone,
}

/// The judgement on a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// It is neutral.
    Plain,
    /// It is not as it must be.
    Wrong,
    /// It is not known.
    Unknown,
}

impl FindingText {
    fn plain(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            more: None,
            tone: Tone::Plain,
        }
    }

    fn wrong(text: &str) -> Self {
        Self {
            tone: Tone::Wrong,
            ..Self::plain(text)
        }
    }

    fn unknown(why: Option<&str>) -> Self {
        Self {
            text: "unknown".into(),
            more: why.map(str::to_owned),
            tone: Tone::Unknown,
        }
    }
}

/// Returns the text of a shown finding, from a recording's findings.
pub fn told(view: &FindingView, findings: &Findings) -> FindingText {
    match (findings.get(view.key), view.form) {
        (Some(Finding::Absent(reason)), _) => FindingText::unknown(Some(&reason.to_string())),
        (Some(Finding::Answer { yes, why }), Form::Agrees) => FindingText {
            more: Some(why.clone()),
            ..FindingText::plain(if *yes { "agrees" } else { "does not agree" })
        },
        (Some(value), Form::Plain | Form::Leading) => shown(value),
        (None, _) | (Some(_), Form::Agrees) => FindingText::unknown(None),
    }
}

/// Returns a finding unjudged, rounded for a reader.
fn shown(value: &Finding) -> FindingText {
    match value {
        Finding::Count(count) => FindingText::plain(thousands(*count)),
        Finding::Share { count, of } => {
            FindingText::plain(format!("{} of {}", thousands(*count), thousands(*of)))
        }
        Finding::Bytes(size) => FindingText::plain(bytes(*size)),
        Finding::Nanos(time) => FindingText::plain(time.to_string()),
        Finding::Ratio(ratio) => FindingText::plain(format!("{:.4} %", ratio * 100.0)),
        Finding::PerSecond(rate) => FindingText::plain(format!("{} /s", short(*rate))),
        Finding::Estimate { value, low, high } => {
            let [value, low, high] = [*value, *low, *high].map(short);
            FindingText::plain(format!("{value} ({low} to {high})"))
        }
        Finding::Verdict { passed, expected } => verdict(*passed, *expected),
        Finding::Answer { yes, why } => FindingText {
            more: Some(why.clone()).filter(|why| !why.is_empty()),
            ..FindingText::plain(yes_or_no(*yes))
        },
        Finding::Text(text) if text.is_empty() => FindingText::unknown(None),
        Finding::Text(text) => FindingText::plain(text),
        Finding::Absent(reason) => FindingText::unknown(Some(&reason.to_string())),
    }
}

fn yes_or_no(yes: bool) -> &'static str {
    if yes { "yes" } else { "no" }
}

/// Only a pass that was to be expected is one, and only the control may fail.
fn verdict(passed: bool, expected: bool) -> FindingText {
    match (passed, expected) {
        (true, true) => FindingText::plain("pass"),
        (false, false) => FindingText::plain("inverted, as it must be"),
        (false, true) => FindingText::wrong("FAIL"),
        (true, false) => FindingText::wrong("not inverted: no control"),
    }
}

/// Two digits after the point.
fn short(number: f64) -> String {
    // Adding zero turns -0.0 into 0.0.
    format!("{:.2}", (number * 100.0).round() / 100.0 + 0.0)
}

/// Bytes as people read them: `16.0 MiB`.
fn bytes(size: u64) -> String {
    match size {
        0..1_024 => format!("{size} B"),
        1_024..1_048_576 => format!("{:.1} KiB", size as f64 / 1_024.0),
        _ => format!("{:.1} MiB", size as f64 / 1_048_576.0),
    }
}

#[cfg(test)]
mod tests {
    use punctual_model::Nanos;

    use super::*;

    fn told(probe: &str, label: &str, value: Finding) -> FindingText {
        let finding = of(probe).findings.iter().find(|one| one.label == label);
        let finding = finding.unwrap();
        super::told(finding, &Findings::from([(finding.key.into(), value)]))
    }

    #[test]
    fn nothing_told_is_unknown_everywhere() {
        for finding in probes::INFOS.iter().flat_map(|info| info.view.findings) {
            assert_eq!(
                super::told(finding, &Findings::new()),
                FindingText::unknown(None)
            );
            let told = |value| super::told(finding, &Findings::from([(finding.key.into(), value)]));
            assert_eq!(told(Finding::Text(String::new())).tone, Tone::Unknown);
            let absent = told(Finding::Absent("no /proc".into()));
            assert_eq!(absent, FindingText::unknown(Some("no /proc")));
        }
    }

    #[test]
    fn only_what_was_expected_to_pass_can() {
        let result =
            |passed, expected| told("inversion", "result", Finding::Verdict { passed, expected });
        assert_eq!(result(true, true), FindingText::plain("pass"));
        assert_eq!(result(false, true).tone, Tone::Wrong);
        assert_eq!(result(true, false).tone, Tone::Wrong);
        let control = result(false, false);
        assert_eq!(control, FindingText::plain("inverted, as it must be"));
    }

    #[test]
    fn an_estimate_is_shown_with_its_interval() {
        let text = |value, low, high| {
            let estimate = Finding::Estimate { value, low, high };
            told("semaphore", "ns per waiter", estimate).text
        };
        assert_eq!(text(1.234, 1.0, 1.5), "1.23 (1.00 to 1.50)");
        assert_eq!(text(0.03, -0.004, 0.06), "0.03 (0.00 to 0.06)");
    }

    #[test]
    fn values_are_rounded_here_and_only_here() {
        let why = || "PREEMPT_RT, and 5 of 9 lines".to_owned();
        let yes = Finding::Answer {
            yes: true,
            why: why(),
        };
        let threaded = told("kthreads", "each irq threaded", yes.clone());
        assert_eq!((&*threaded.text, threaded.more), ("yes", Some(why())));
        assert_eq!(told("tick", "kernel's count", yes).text, "agrees");
        let text = |probe, label, value| told(probe, label, value).text;
        let size = Finding::Bytes(16 << 20);
        assert_eq!(text("footprint", "text", size), "16.0 MiB");
        let lost = Finding::Ratio(1.0 / 300.0);
        assert_eq!(text("tick", "lost in all", lost), "0.3333 %");
        let share = |count, of| Finding::Share { count, of };
        let first = |share| text("semaphore", "highest first", share);
        assert_eq!(first(share(3, 100)), "3 of 100");
        assert_eq!(first(share(1_000, 15_876)), "1,000 of 15,876");
        let threads = Finding::Count(1_204);
        assert_eq!(text("kthreads", "threads", threads), "1,204");
        let limit = Finding::Nanos(Nanos(7_300));
        assert_eq!(text("irqrate", "none lost at", limit), "7.30 µs");
    }
}

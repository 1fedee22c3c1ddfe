// SPDX-License-Identifier: MIT OR Apache-2.0
//! How recordings are shown, by what their probes say of it. A finding that is missing is
//! `unknown`, never a pass.

use punctual_agent::probes;
use punctual_model::probe::{FindingView, Form, Shape, View};
use punctual_model::{Finding, Findings};

/// A probe that is not known is shown by its worst sample.
static ANY: View = View::of_samples(Shape::Latency, "sample");

/// The view of a probe.
pub fn of(probe: &str) -> &'static View {
    probes::info(probe).map_or(&ANY, |info| &info.view)
}

/// A probe's place in the order in which the summary prefers to speak.
pub fn rank(probe: &str) -> usize {
    let place = probes::INFOS.iter().position(|info| info.name == probe);
    place.unwrap_or(probes::INFOS.len())
}

/// What a finding says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// A word or a number; never empty.
    pub text: String,
    /// More of it, which is too long for a table.
    pub more: Option<String>,
    /// What is to be thought of it.
    pub tone: Tone,
}

/// What is to be thought of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// It is as it is.
    Plain,
    /// It is not as it must be.
    Wrong,
    /// It is not known.
    Unknown,
}

impl Told {
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

/// What a recording's findings say of one that is shown.
pub fn told(view: &FindingView, findings: &Findings) -> Told {
    match (findings.get(view.key), view.form) {
        (Some(Finding::Absent(reason)), _) => Told::unknown(Some(&reason.to_string())),
        (Some(Finding::Answer { yes, why }), Form::Agrees) => Told {
            more: Some(why.clone()),
            ..Told::plain(if *yes { "agrees" } else { "does not agree" })
        },
        (Some(value), Form::Plain | Form::Leading) => shown(value),
        (None, _) | (Some(_), Form::Agrees) => Told::unknown(None),
    }
}

/// A finding as it is, rounded for a reader.
fn shown(value: &Finding) -> Told {
    match value {
        Finding::Count(count) => Told::plain(count.to_string()),
        Finding::Share { count, of } => Told::plain(format!("{count} of {of}")),
        Finding::Bytes(size) => Told::plain(bytes(*size)),
        Finding::Nanos(time) => Told::plain(time.to_string()),
        Finding::Ratio(ratio) => Told::plain(format!("{:.4} %", ratio * 100.0)),
        Finding::Estimate { value, low, high } => {
            let [value, low, high] = [*value, *low, *high].map(short);
            Told::plain(format!("{value} ({low} to {high})"))
        }
        Finding::Verdict { passed, expected } => verdict(*passed, *expected),
        Finding::Answer { yes, why } => Told {
            more: Some(why.clone()),
            ..Told::plain(yes_or_no(*yes))
        },
        Finding::Text(text) if text.is_empty() => Told::unknown(None),
        Finding::Text(text) => Told::plain(text),
        Finding::Absent(reason) => Told::unknown(Some(&reason.to_string())),
    }
}

fn yes_or_no(yes: bool) -> &'static str {
    if yes { "yes" } else { "no" }
}

/// Only a pass that was to be expected is one, and only the control may fail.
fn verdict(passed: bool, expected: bool) -> Told {
    match (passed, expected) {
        (true, true) => Told::plain("pass"),
        (false, false) => Told::plain("inverted, as it must be"),
        (false, true) => Told::wrong("FAIL"),
        (true, false) => Told::wrong("not inverted: no control"),
    }
}

/// Two digits after the point.
fn short(number: f64) -> String {
    // Adding zero turns -0.0 into 0.0.
    format!("{:.2}", (number * 100.0).round() / 100.0 + 0.0)
}

/// Bytes as people read them: `16.0 MiB`.
fn bytes(size: u64) -> String {
    let (value, unit) = match size {
        0..1_024 => return format!("{size} B"),
        1_024..1_048_576 => (size as f64 / 1_024.0, "KiB"),
        _ => (size as f64 / 1_048_576.0, "MiB"),
    };
    format!("{value:.1} {unit}")
}

#[cfg(test)]
mod tests {
    use punctual_model::Nanos;

    use super::*;

    fn told(probe: &str, label: &str, value: Finding) -> Told {
        let finding = of(probe).findings.iter().find(|one| one.label == label);
        let finding = finding.unwrap();
        super::told(finding, &Findings::from([(finding.key.into(), value)]))
    }

    #[test]
    fn nothing_told_is_unknown_everywhere() {
        for finding in probes::INFOS.iter().flat_map(|info| info.view.findings) {
            assert_eq!(super::told(finding, &Findings::new()), Told::unknown(None));
            let told = |value| super::told(finding, &Findings::from([(finding.key.into(), value)]));
            assert_eq!(told(Finding::Text(String::new())).tone, Tone::Unknown);
            let absent = told(Finding::Absent("no /proc".into()));
            assert_eq!(absent, Told::unknown(Some("no /proc")));
        }
    }

    #[test]
    fn only_what_was_expected_to_pass_can() {
        let result =
            |passed, expected| told("inversion", "result", Finding::Verdict { passed, expected });
        assert_eq!(result(true, true), Told::plain("pass"));
        assert_eq!(result(false, true).tone, Tone::Wrong);
        assert_eq!(result(true, false).tone, Tone::Wrong);
        let control = result(false, false);
        assert_eq!(control, Told::plain("inverted, as it must be"));
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
        assert_eq!(
            text("footprint", "text", Finding::Bytes(16 << 20)),
            "16.0 MiB"
        );
        assert_eq!(
            text("tick", "lost in all", Finding::Ratio(1.0 / 300.0)),
            "0.3333 %"
        );
        let share = Finding::Share { count: 3, of: 100 };
        assert_eq!(text("semaphore", "highest first", share), "3 of 100");
        let limit = Finding::Nanos(Nanos(7_300));
        assert_eq!(text("irqrate", "none lost at", limit), "7.30 µs");
    }
}

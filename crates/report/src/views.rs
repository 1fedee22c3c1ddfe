//! How recordings are shown, by what their probes say of it.
//!
//! What a probe tells besides its samples stands in its recording's settings. A finding
//! takes one of them into the table. A setting that is missing is `unknown`, never a pass.

use std::collections::BTreeMap;

use punctual_agent::probes;
use punctual_model::probe::{FindingView, Form, Shape, View};

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

type Settings = BTreeMap<String, String>;

/// What a recording's settings say of a finding.
pub fn told(finding: &FindingView, settings: &Settings) -> Told {
    let Some(value) = settings.get(finding.key).filter(|value| !value.is_empty()) else {
        return Told::unknown(None);
    };
    // Targets write "unknown: this kernel does not tell Slab".
    if let Some(why) = value.strip_prefix("unknown") {
        return Told::unknown(why.strip_prefix(": "));
    }
    let setting = |key: &str| settings.get(key).map_or("", String::as_str);
    match finding.form {
        Form::Text => text(value),
        Form::Bytes => value.parse().map_or_else(
            |_| Told::unknown(Some(value)),
            |size| Told::plain(bytes(size)),
        ),
        Form::Verdict => verdict(value, setting("expected")),
        Form::Slope => slope(value, setting("slope_interval_95")),
        Form::Matters => interval(value).map_or_else(
            || Told::unknown(Some(value)),
            |(low, high)| {
                Told::plain(if low <= 0.0 && high >= 0.0 {
                    "no"
                } else {
                    "yes"
                })
            },
        ),
    }
}

/// `yes: PREEMPT_RT, and …` is a word, and why.
fn text(value: &str) -> Told {
    match value.split_once(": ") {
        Some((word, why)) if !word.contains(' ') => Told {
            more: Some(why.to_owned()),
            ..Told::plain(word)
        },
        _ => Told::plain(value),
    }
}

/// Only a pass that was to be expected is one, and only the control may fail.
fn verdict(result: &str, expected: &str) -> Told {
    match (result, expected.split(' ').next()) {
        ("pass", Some("pass")) => Told::plain("pass"),
        ("fail", Some("fail")) => Told::plain("inverted, as it must be"),
        ("fail", Some("pass")) => Told::wrong("FAIL"),
        ("pass", Some("fail")) => Told::wrong("not inverted: no control"),
        _ => Told::unknown(Some("what was to be expected is not told")),
    }
}

fn slope(value: &str, interval_95: &str) -> Told {
    // Adding zero turns -0.0 into 0.0.
    let short = |number: f64| format!("{:.2}", (number * 100.0).round() / 100.0 + 0.0);
    match (value.parse::<f64>(), interval(interval_95)) {
        (Ok(slope), Some((low, high))) if slope.is_finite() => {
            let (slope, low, high) = (short(slope), short(low), short(high));
            Told::plain(format!("{slope} ({low} to {high})"))
        }
        _ => Told::unknown(Some(value)),
    }
}

/// The two ends of `-0.012 to 0.034`.
fn interval(text: &str) -> Option<(f64, f64)> {
    let (low, high) = text.split_once(" to ")?;
    let (low, high) = (low.parse::<f64>().ok()?, high.parse::<f64>().ok()?);
    (low <= high).then_some((low, high))
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
    use super::*;

    fn told(probe: &str, label: &str, settings: &[(&str, &str)]) -> Told {
        let finding = of(probe).findings.iter();
        let finding = finding.clone().find(|one| one.label == label);
        let settings = settings
            .iter()
            .map(|(key, value)| ((*key).into(), (*value).into()));
        super::told(finding.unwrap(), &settings.collect())
    }

    #[test]
    fn nothing_told_is_unknown_everywhere() {
        for finding in probes::INFOS.iter().flat_map(|info| info.view.findings) {
            assert_eq!(super::told(finding, &Settings::new()), Told::unknown(None));
            let empty = Settings::from([(finding.key.into(), String::new())]);
            assert_eq!(super::told(finding, &empty).tone, Tone::Unknown);
            let said = Settings::from([(finding.key.into(), "unknown: no /proc".into())]);
            assert_eq!(super::told(finding, &said), Told::unknown(Some("no /proc")));
        }
    }

    #[test]
    fn only_what_was_expected_to_pass_can() {
        let result = |result, expected| {
            told(
                "inversion",
                "result",
                &[("result", result), ("expected", expected)],
            )
        };
        assert_eq!(result("pass", "pass"), Told::plain("pass"));
        assert_eq!(result("fail", "pass").tone, Tone::Wrong);
        assert_eq!(result("pass", "fail (the control)").tone, Tone::Wrong);
        let control = result("fail", "fail (the control)");
        assert_eq!(control, Told::plain("inverted, as it must be"));
        for odd in [
            ("pass", ""),
            ("", "pass"),
            ("passed", "pass"),
            ("pass", "maybe"),
        ] {
            assert_eq!(result(odd.0, odd.1).tone, Tone::Unknown, "{odd:?}");
        }
    }

    #[test]
    fn waiters_matter_where_the_interval_leaves_zero_out() {
        let matter = |interval| {
            told(
                "semaphore",
                "waiters matter",
                &[("slope_interval_95", interval)],
            )
            .text
        };
        assert_eq!(matter("-0.100 to 0.200"), "no");
        assert_eq!(matter("0.000 to 0.000"), "no");
        assert_eq!(matter("0.100 to 0.200"), "yes");
        for odd in ["NaN to NaN", "0.1", "1 to -1"] {
            assert_eq!(matter(odd), "unknown", "{odd}");
        }
        let slope = [
            ("slope_ns_per_waiter", "1.234"),
            ("slope_interval_95", "1.000 to 1.500"),
        ];
        let slope_of = |settings| told("semaphore", "ns per waiter", settings).text;
        assert_eq!(slope_of(&slope[..]), "1.23 (1.00 to 1.50)");
        assert_eq!(slope_of(&slope[..1]), "unknown");
        let near = [
            ("slope_ns_per_waiter", "0.030"),
            ("slope_interval_95", "-0.004 to 0.060"),
        ];
        assert_eq!(slope_of(&near), "0.03 (0.00 to 0.06)");
    }

    #[test]
    fn a_word_and_why_are_told_apart() {
        let yes = [("interrupts_threaded", "yes: PREEMPT_RT, and 5 of 9 lines")];
        let yes = told("kthreads", "irqs threaded", &yes);
        assert_eq!(yes.text, "yes");
        assert_eq!(yes.more.as_deref(), Some("PREEMPT_RT, and 5 of 9 lines"));
        let text = told("footprint", "text", &[("kernel_text_bytes", "16777216")]);
        assert_eq!(text, Told::plain("16.0 MiB"));
        let text = told("footprint", "text", &[("kernel_text_bytes", "much")]);
        assert_eq!(text.tone, Tone::Unknown);
    }
}

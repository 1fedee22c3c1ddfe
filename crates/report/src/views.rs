//! How each probe's recordings are shown: one line per probe in [`ALL`].
//!
//! What a probe tells besides its samples stands in its recording's settings. A finding
//! takes one of them into the table. A setting that is missing is `unknown`, never a pass.

use std::collections::BTreeMap;

/// How a probe's recordings are shown.
#[derive(Debug)]
pub struct View {
    /// The probe's name.
    pub probe: &'static str,
    /// Which of its figures count.
    pub shape: Shape,
    /// What a sample is, as the summary calls it; empty where it speaks of none.
    pub spoken: &'static str,
    /// What it tells besides its samples.
    pub findings: &'static [Finding],
}

/// Which figures of a recording count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// How late or how long something was: the worst counts.
    Latency,
    /// How far an interval was from its nominal length, signed: both ends count.
    Jitter,
    /// As a latency, where variants differ by a number only: one line for each.
    Steps,
    /// The time that some work took: the middle counts.
    Work,
    /// It takes no samples: what counts are the findings.
    Findings,
    /// The same, and what it printed is a list that can be compared line by line.
    List,
}

/// A setting that is a result.
#[derive(Debug)]
pub struct Finding {
    /// The setting's name.
    key: &'static str,
    /// What the table calls it.
    pub label: &'static str,
    /// How its value is written.
    form: Form,
    /// The only variant that shows it, where all have the same; empty for each its own.
    variant: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// As it is.
    Text,
    /// A number of bytes.
    Bytes,
    /// `pass` or `fail`, beside what was to be expected.
    Verdict,
    /// A slope in nanoseconds, beside its interval.
    Slope,
    /// Whether a slope's interval leaves zero out.
    Matters,
}

const NONE: &[Finding] = &[];

/// All views, in the order in which the summary prefers to speak of them.
const ALL: &[View] = &[
    view("timer", Shape::Latency, "wake-up latency", NONE),
    view(
        "realfeel",
        Shape::Jitter,
        "jitter of a periodic interrupt",
        NONE,
    ),
    view(
        "tick",
        Shape::Latency,
        "interruption of a running thread",
        TICK,
    ),
    view("irq", Shape::Latency, "interrupt latency", NONE),
    view("irqrate", Shape::Findings, "", IRQRATE),
    view("signal", Shape::Latency, "signal travel", NONE),
    view("switch", Shape::Steps, "thread switch", NONE),
    view(
        "semaphore",
        Shape::Latency,
        "acquire or release of a semaphore",
        SEMAPHORE,
    ),
    view(
        "mutex",
        Shape::Latency,
        "acquire or release of a contended mutex",
        MUTEX,
    ),
    view(
        "clock",
        Shape::Latency,
        "step between two readings of the clock",
        NONE,
    ),
    view("inversion", Shape::Latency, "", INVERSION),
    view("hackbench", Shape::Work, "hackbench", NONE),
    view("image", Shape::Work, "image", NONE),
    view("program", Shape::Work, "", NONE),
    view("kthreads", Shape::List, "", KTHREADS),
    view("footprint", Shape::Findings, "", FOOTPRINT),
];

/// A probe that has no line above is shown by its worst sample.
const ANY: View = view("", Shape::Latency, "sample", NONE);

const IRQRATE: &[Finding] = &[finding("shortest_interval", "none lost at", Form::Text, "")];

const TICK: &[Finding] = &[
    finding("cpu_lost_to_ticks", "lost to ticks", Form::Text, "tick"),
    finding("cpu_lost", "lost in all", Form::Text, "tick"),
    finding("kernel_counter", "kernel's count", Form::Text, "tick"),
];

const SEMAPHORE: &[Finding] = &[
    finding("slope_interval_95", "waiters matter", Form::Matters, ""),
    finding("slope_ns_per_waiter", "ns per waiter", Form::Slope, ""),
    finding(
        "woken_highest_first",
        "highest first",
        Form::Text,
        "release",
    ),
];

const MUTEX: &[Finding] = &[finding("inversions", "inversions", Form::Text, "release")];

const INVERSION: &[Finding] = &[
    finding("result", "result", Form::Verdict, ""),
    finding("inverted", "inverted", Form::Text, ""),
];

const KTHREADS: &[Finding] = &[
    finding("interrupts_threaded", "irqs threaded", Form::Text, ""),
    finding("threads", "threads", Form::Text, ""),
    finding("real_time_threads", "real-time", Form::Text, ""),
];

const FOOTPRINT: &[Finding] = &[
    finding("kernel_text_bytes", "text", Form::Bytes, ""),
    finding("kernel_rodata_bytes", "rodata", Form::Bytes, ""),
    finding("kernel_data_bytes", "data", Form::Bytes, ""),
    finding("kernel_bss_bytes", "bss", Form::Bytes, ""),
    finding("modules_bytes", "modules", Form::Bytes, ""),
    finding("memory_in_use_bytes", "memory in use", Form::Bytes, ""),
];

const fn view(
    probe: &'static str,
    shape: Shape,
    spoken: &'static str,
    findings: &'static [Finding],
) -> View {
    View {
        probe,
        shape,
        spoken,
        findings,
    }
}

const fn finding(
    key: &'static str,
    label: &'static str,
    form: Form,
    variant: &'static str,
) -> Finding {
    Finding {
        key,
        label,
        form,
        variant,
    }
}

/// The view of a probe.
pub fn of(probe: &str) -> &'static View {
    ALL.iter().find(|view| view.probe == probe).unwrap_or(&ANY)
}

impl View {
    /// Its place in the order in which the summary prefers to speak.
    pub fn rank(&self) -> usize {
        let place = ALL.iter().position(|view| view.probe == self.probe);
        place.unwrap_or(ALL.len())
    }

    /// Whether it takes no samples by design.
    pub fn is_without_samples(&self) -> bool {
        matches!(self.shape, Shape::Findings | Shape::List)
    }

    /// The finding that says whether the subject did as it must, if it has one.
    pub fn verdict(&self) -> Option<&'static Finding> {
        self.findings.iter().find(|finding| finding.leads())
    }

    /// The findings that a variant shows.
    pub fn findings(&self, variant: &str) -> impl Iterator<Item = &'static Finding> {
        let variant = variant.to_owned();
        let shown = move |finding: &&Finding| ["", variant.as_str()].contains(&finding.variant);
        self.findings.iter().filter(shown)
    }
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

impl Finding {
    /// Whether it is what counts, more than any time does.
    pub fn leads(&self) -> bool {
        self.form == Form::Verdict
    }

    /// What a recording's settings say of it.
    pub fn told(&self, settings: &Settings) -> Told {
        let Some(value) = settings.get(self.key).filter(|value| !value.is_empty()) else {
            return Told::unknown(None);
        };
        // Targets write "unknown: this kernel does not tell Slab".
        if let Some(why) = value.strip_prefix("unknown") {
            return Told::unknown(why.strip_prefix(": "));
        }
        let setting = |key: &str| settings.get(key).map_or("", String::as_str);
        match self.form {
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
        finding.unwrap().told(&settings.collect())
    }

    #[test]
    fn nothing_told_is_unknown_everywhere() {
        for finding in ALL.iter().flat_map(|view| view.findings) {
            assert_eq!(finding.told(&Settings::new()), Told::unknown(None));
            let empty = Settings::from([(finding.key.into(), String::new())]);
            assert_eq!(finding.told(&empty).tone, Tone::Unknown);
            let said = Settings::from([(finding.key.into(), "unknown: no /proc".into())]);
            assert_eq!(finding.told(&said), Told::unknown(Some("no /proc")));
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

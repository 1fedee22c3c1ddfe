//! How each probe's recordings are shown: one line per probe in [`ALL`].
//!
//! What a probe tells besides its samples are its recording's findings; each of them that
//! is shown has a line here. One that is missing is `unknown`, never a pass.

use punctual_model::{Finding as Value, Findings};

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

/// A finding that is shown.
#[derive(Debug)]
pub struct Finding {
    /// Its name among a recording's findings.
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
    Plain,
    /// It counts more than any time does.
    Leading,
    /// Whether an estimate's interval leaves zero out.
    Matters,
    /// An answer in these words: `yes` and `no` would say too little.
    Agrees,
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

const IRQRATE: &[Finding] = &[finding(
    "shortest_interval",
    "none lost at",
    Form::Plain,
    "",
)];

const TICK: &[Finding] = &[
    finding("cpu_lost_to_ticks", "lost to ticks", Form::Plain, "tick"),
    finding("cpu_lost", "lost in all", Form::Plain, "tick"),
    finding(
        "kernel_counter_agrees",
        "kernel's count",
        Form::Agrees,
        "tick",
    ),
];

const SEMAPHORE: &[Finding] = &[
    finding("slope_ns_per_waiter", "waiters matter", Form::Matters, ""),
    finding("slope_ns_per_waiter", "ns per waiter", Form::Plain, ""),
    finding(
        "woken_highest_first",
        "highest first",
        Form::Plain,
        "release",
    ),
];

const MUTEX: &[Finding] = &[finding("inversions", "inversions", Form::Plain, "release")];

const INVERSION: &[Finding] = &[
    finding("result", "result", Form::Leading, ""),
    finding("inverted", "inverted", Form::Plain, ""),
];

const KTHREADS: &[Finding] = &[
    finding("interrupts_threaded", "irqs threaded", Form::Plain, ""),
    finding("threads", "threads", Form::Plain, ""),
    finding("real_time_threads", "real-time", Form::Plain, ""),
];

const FOOTPRINT: &[Finding] = &[
    finding("kernel_text_bytes", "text", Form::Plain, ""),
    finding("kernel_rodata_bytes", "rodata", Form::Plain, ""),
    finding("kernel_data_bytes", "data", Form::Plain, ""),
    finding("kernel_bss_bytes", "bss", Form::Plain, ""),
    finding("modules_bytes", "modules", Form::Plain, ""),
    finding("memory_in_use_bytes", "memory in use", Form::Plain, ""),
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

impl Finding {
    /// Whether it is what counts, more than any time does.
    pub fn leads(&self) -> bool {
        self.form == Form::Leading
    }

    /// What a recording's findings say of it.
    pub fn told(&self, findings: &Findings) -> Told {
        match (findings.get(self.key), self.form) {
            (None, _) => Told::unknown(None),
            (Some(Value::Absent(reason)), _) => Told::unknown(Some(&reason.to_string())),
            (Some(Value::Estimate { low, high, .. }), Form::Matters) => {
                Told::plain(yes_or_no(*low > 0.0 || *high < 0.0))
            }
            (Some(Value::Answer { yes, why }), Form::Agrees) => Told {
                more: Some(why.clone()),
                ..Told::plain(if *yes { "agrees" } else { "does not agree" })
            },
            (Some(_), Form::Matters | Form::Agrees) => Told::unknown(None),
            (Some(value), Form::Plain | Form::Leading) => shown(value),
        }
    }
}

/// A finding as it is, rounded for a reader.
fn shown(value: &Value) -> Told {
    match value {
        Value::Count(count) => Told::plain(count.to_string()),
        Value::Share { count, of } => Told::plain(format!("{count} of {of}")),
        Value::Bytes(size) => Told::plain(bytes(*size)),
        Value::Nanos(time) => Told::plain(time.to_string()),
        Value::Ratio(ratio) => Told::plain(format!("{:.4} %", ratio * 100.0)),
        Value::Estimate { value, low, high } => {
            let [value, low, high] = [*value, *low, *high].map(short);
            Told::plain(format!("{value} ({low} to {high})"))
        }
        Value::Verdict { passed, expected } => verdict(*passed, *expected),
        Value::Answer { yes, why } => Told {
            more: Some(why.clone()),
            ..Told::plain(yes_or_no(*yes))
        },
        Value::Text(text) if text.is_empty() => Told::unknown(None),
        Value::Text(text) => Told::plain(text),
        Value::Absent(reason) => Told::unknown(Some(&reason.to_string())),
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

    fn told(probe: &str, label: &str, value: Value) -> Told {
        let finding = of(probe).findings.iter().find(|one| one.label == label);
        let finding = finding.unwrap();
        finding.told(&Findings::from([(finding.key.into(), value)]))
    }

    #[test]
    fn nothing_told_is_unknown_everywhere() {
        for finding in ALL.iter().flat_map(|view| view.findings) {
            assert_eq!(finding.told(&Findings::new()), Told::unknown(None));
            let told = |value| finding.told(&Findings::from([(finding.key.into(), value)]));
            assert_eq!(told(Value::Text(String::new())).tone, Tone::Unknown);
            let absent = told(Value::Absent("no /proc".into()));
            assert_eq!(absent, Told::unknown(Some("no /proc")));
        }
    }

    #[test]
    fn only_what_was_expected_to_pass_can() {
        let result =
            |passed, expected| told("inversion", "result", Value::Verdict { passed, expected });
        assert_eq!(result(true, true), Told::plain("pass"));
        assert_eq!(result(false, true).tone, Tone::Wrong);
        assert_eq!(result(true, false).tone, Tone::Wrong);
        let control = result(false, false);
        assert_eq!(control, Told::plain("inverted, as it must be"));
    }

    #[test]
    fn waiters_matter_where_the_interval_leaves_zero_out() {
        let slope = |label, value, low, high| {
            told("semaphore", label, Value::Estimate { value, low, high }).text
        };
        let matter = |low, high| slope("waiters matter", low, low, high);
        assert_eq!(matter(-0.1, 0.2), "no");
        assert_eq!(matter(0.0, 0.0), "no");
        assert_eq!(matter(0.0001, 0.2), "yes");
        assert_eq!(matter(-0.2, -0.1), "yes");
        let text = |value, low, high| slope("ns per waiter", value, low, high);
        assert_eq!(text(1.234, 1.0, 1.5), "1.23 (1.00 to 1.50)");
        assert_eq!(text(0.03, -0.004, 0.06), "0.03 (0.00 to 0.06)");
        let odd = told("semaphore", "waiters matter", Value::Count(3));
        assert_eq!(odd.tone, Tone::Unknown);
    }

    #[test]
    fn values_are_rounded_here_and_only_here() {
        let why = || "PREEMPT_RT, and 5 of 9 lines".to_owned();
        let yes = Value::Answer {
            yes: true,
            why: why(),
        };
        let threaded = told("kthreads", "irqs threaded", yes.clone());
        assert_eq!((&*threaded.text, threaded.more), ("yes", Some(why())));
        assert_eq!(told("tick", "kernel's count", yes).text, "agrees");
        let text = |probe, label, value| told(probe, label, value).text;
        assert_eq!(
            text("footprint", "text", Value::Bytes(16 << 20)),
            "16.0 MiB"
        );
        assert_eq!(
            text("tick", "lost in all", Value::Ratio(1.0 / 300.0)),
            "0.3333 %"
        );
        let share = Value::Share { count: 3, of: 100 };
        assert_eq!(text("semaphore", "highest first", share), "3 of 100");
        let limit = Value::Nanos(Nanos(7_300));
        assert_eq!(text("irqrate", "none lost at", limit), "7.30 µs");
    }
}

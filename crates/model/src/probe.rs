// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the workstation must know of a probe: how its recordings are shown, and where the
//! scope finds its samples.
//!
//! Each probe says it in its own file, beside what it measures. The target side never looks
//! at it, so that it is no part of the program that measures.

/// What the workstation must know of a probe.
#[derive(Debug)]
pub struct ProbeInfo {
    /// The name by which suites call it.
    pub name: &'static str,
    /// How its recordings are shown.
    pub view: View,
    /// From when to when its samples are, and where the scope finds them; or why it does not:
    /// a sentence's rest, which begins with the recording's name.
    pub scope: Result<Watched, &'static str>,
}

/// How a probe's recordings are shown.
#[derive(Debug)]
pub struct View {
    /// Which of its figures count.
    pub shape: Shape,
    /// What a sample is, as the summary calls it; empty where it speaks of none.
    pub spoken: &'static str,
    /// What it finds besides its samples.
    pub findings: &'static [FindingView],
}

/// Whether a variant holds the beginnings of what others hold: its name ends with `first`.
pub fn is_beginning(variant: &str) -> bool {
    variant.ends_with(" first")
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

/// How a finding is shown.
#[derive(Debug)]
pub struct FindingView {
    /// The finding's name among a recording's findings.
    pub key: &'static str,
    /// What the table calls it.
    pub label: &'static str,
    /// How its value is written.
    pub form: Form,
    /// The only variant that shows it, where all have the same, by its name or the last words of
    /// it; empty for each its own.
    pub variant: &'static str,
}

/// How a finding's value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// As it is.
    Plain,
    /// As it is, and it counts more than any time does.
    Leading,
    /// An answer in these words: `yes` and `no` would say too little.
    Agrees,
}

/// From when to when a probe's samples are, and where the scope finds them.
#[derive(Debug)]
pub struct Watched {
    /// From when to when a sample is.
    pub span: SampleSpan,
    /// Which of the windows that its step marks is a sample's.
    pub windows: Windows,
    /// Variants that are stages of one sample and share its window, each group in the order
    /// of time; none where each variant is a sample of its own.
    pub stages: &'static [&'static [&'static str]],
}

/// From when to when a sample is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleSpan {
    /// From the moment when it was due to the one when it was taken: an interrupt begins it.
    Lateness,
    /// From a thread's reading of the clock to another thread's.
    Handover,
    /// From a thread's reading of the clock to its next one.
    Gap,
    /// From the moment when a thread was due to the one when it waits again, or one of both to
    /// when it had the CPU: a cycle of a program.
    Cycle,
}

/// Which of the windows that a step marks is a sample's. A window is what lies between the
/// two markers that a probe sets around a sample; they are counted from the step's begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Windows {
    /// Each sample has the window of its own number, in all variants; warm-up has none.
    BySample,
    /// All windows of a recording, those of its warm-up first, come before those of the next
    /// one of its step.
    OneAfterTheOther,
    /// One loop found them all, and they were sorted into variants afterwards: the order of
    /// time is that of the windows.
    ByTime,
    /// The same in each of several loops, of which one follows the other; what a loop missed
    /// has windows too.
    ByTimeWithin {
        /// The setting that all recordings of a loop share.
        setting: &'static str,
    },
    /// Nothing is marked: its recording says between which switches of threads it is, among those
    /// that the kernel's tracer noted in its step ([`crate::place`]).
    BySwitch,
}

impl Watched {
    /// Samples that were due at a moment, each in the window of its number.
    pub const LATENESS: Self = Self {
        span: SampleSpan::Lateness,
        windows: Windows::BySample,
        stages: &[],
    };

    /// Samples that one thread begins and another ends, in such windows.
    pub const fn handover(windows: Windows) -> Self {
        Self {
            span: SampleSpan::Handover,
            windows,
            stages: &[],
        }
    }
}

impl View {
    /// A probe of which samples count, and nothing else.
    pub const fn of_samples(shape: Shape, spoken: &'static str) -> Self {
        Self {
            shape,
            spoken,
            findings: &[],
        }
    }

    /// Whether it takes no samples by design.
    pub fn is_without_samples(&self) -> bool {
        matches!(self.shape, Shape::Findings | Shape::List)
    }

    /// The finding that says whether the subject did as it must, if it has one.
    pub fn verdict(&self) -> Option<&'static FindingView> {
        self.findings.iter().find(|finding| finding.leads())
    }

    /// The findings that a variant shows.
    pub fn findings(&self, variant: &str) -> impl Iterator<Item = &'static FindingView> {
        let variant = variant.to_owned();
        let shown = move |finding: &&FindingView| {
            let before = variant.strip_suffix(finding.variant);
            finding.variant.is_empty()
                || before.is_some_and(|before| before.is_empty() || before.ends_with(' '))
        };
        self.findings.iter().filter(shown)
    }
}

impl FindingView {
    /// A finding that each variant shows.
    pub const fn new(key: &'static str, label: &'static str, form: Form) -> Self {
        Self {
            key,
            label,
            form,
            variant: "",
        }
    }

    /// The same, where all variants have it and one is to show it.
    #[must_use]
    pub const fn only_of(self, variant: &'static str) -> Self {
        Self { variant, ..self }
    }

    /// Whether it is what counts, more than any time does.
    pub fn leads(&self) -> bool {
        matches!(self.form, Form::Leading)
    }
}

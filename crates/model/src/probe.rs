// SPDX-License-Identifier: MIT OR Apache-2.0
//! Facts about a probe that the workstation needs: how to show its recordings, and where the
//! scope finds its samples.
//!
//! Each probe states them in its own file, beside its measurement. The target side never reads
//! them, so they are no part of the program that measures.

/// Facts about a probe that the workstation needs.
#[derive(Debug)]
pub struct ProbeInfo {
    /// The name by which suites call it.
    pub name: &'static str,
    /// The way in which its recordings are shown.
    pub view: View,
    /// The times at which its samples begin and end, and where the scope finds them; or the reason
    /// why it does not: the rest of a sentence that begins with the recording's name.
    pub scope: Result<Watched, &'static str>,
}

/// The way in which a probe's recordings are shown.
#[derive(Debug)]
pub struct View {
    /// The figures that count.
    pub shape: Shape,
    /// The summary's name for a sample; empty if the summary does not mention any.
    pub spoken: &'static str,
    /// Its findings besides its samples.
    pub findings: &'static [FindingView],
}

/// Returns true if a variant holds the beginnings of other variants: its name ends with `first`.
pub fn is_beginning(variant: &str) -> bool {
    variant.ends_with(" first")
}

/// The figures of a recording that count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Lateness or duration: the worst counts.
    Latency,
    /// Deviation of an interval from its nominal length, signed: both ends count.
    Jitter,
    /// Like a latency, with variants that differ only by a number: one line for each.
    Steps,
    /// The time that some work took: the median counts.
    Work,
    /// No samples are taken: only the findings count.
    Findings,
    /// Like `Findings`, with a printed list that can be compared line by line.
    List,
}

/// The way in which a finding is shown.
#[derive(Debug)]
pub struct FindingView {
    /// The finding's name among a recording's findings.
    pub key: &'static str,
    /// The finding's label in the table.
    pub label: &'static str,
    /// The form in which its value is written.
    pub form: Form,
    /// The only variant that shows it, if all variants share the value: the variant's name or its
    /// last words. Empty if each variant shows its own.
    pub variant: &'static str,
}

/// The form in which a finding's value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// As it is.
    Plain,
    /// As it is, and more important than any time.
    Leading,
    /// An answer in these words: `yes` and `no` would say too little.
    Agrees,
}

/// The times at which a probe's samples begin and end, and where the scope finds them.
#[derive(Debug)]
pub struct Watched {
    /// The beginning and end of a sample.
    pub span: SampleSpan,
    /// The assignment of samples to the windows that its step marks.
    pub windows: Windows,
    /// Variants that are stages of one sample and share its window, each group in order of time;
    /// empty if each variant is a sample of its own.
    pub stages: &'static [&'static [&'static str]],
}

/// The beginning and end of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleSpan {
    /// From the moment when it was due until it was taken: an interrupt begins it.
    Lateness,
    /// From one thread's reading of the clock to another thread's.
    Handover,
    /// From a thread's reading of the clock to its next reading.
    Gap,
    /// From the moment when a thread was due until it waits again, or from either of these moments
    /// to when it got the CPU: a cycle of a program.
    Cycle,
}

/// The assignment of samples to the windows that a step marks. A window is the time between the
/// two markers that a probe sets around a sample. Windows are counted from the step's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Windows {
    /// Each sample has the window of its own number, in all variants; warm-up has no window.
    BySample,
    /// All windows of a recording, starting with its warm-up, come before those of the step's next
    /// recording.
    OneAfterTheOther,
    /// One loop found all samples, which were sorted into variants afterwards: the windows are in
    /// order of time.
    ByTime,
    /// Like `ByTime`, with several loops that follow one another; periods that a loop missed have
    /// windows too.
    ByTimeWithin {
        /// The setting that all recordings of a loop share.
        setting: &'static str,
    },
    /// Nothing is marked. The recording says between which thread switches each sample lies, among
    /// those that the kernel's tracer noted in its step ([`crate::place`]).
    BySwitch,
}

impl Watched {
    /// Samples that were due at a given moment, each in the window of its number.
    pub const LATENESS: Self = Self {
        span: SampleSpan::Lateness,
        windows: Windows::BySample,
        stages: &[],
    };

    /// Samples that one thread begins and another ends, in the given windows.
    pub const fn handover(windows: Windows) -> Self {
        Self {
            span: SampleSpan::Handover,
            windows,
            stages: &[],
        }
    }
}

impl View {
    /// A probe whose samples count, and nothing else.
    pub const fn of_samples(shape: Shape, spoken: &'static str) -> Self {
        Self {
            shape,
            spoken,
            findings: &[],
        }
    }

    /// Returns true if the probe takes no samples by design.
    pub fn is_without_samples(&self) -> bool {
        matches!(self.shape, Shape::Findings | Shape::List)
    }

    /// Returns the finding that says whether the subject did as it must, if there is one.
    pub fn verdict(&self) -> Option<&'static FindingView> {
        self.findings.iter().find(|finding| finding.leads())
    }

    /// Iterates over the findings that a variant shows.
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
    /// Creates a finding that each variant shows.
    pub const fn new(key: &'static str, label: &'static str, form: Form) -> Self {
        Self {
            key,
            label,
            form,
            variant: "",
        }
    }

    /// Restricts the finding to one variant, for a finding that all variants share.
    #[must_use]
    pub const fn only_of(self, variant: &'static str) -> Self {
        Self { variant, ..self }
    }

    /// Returns true if the finding is more important than any time.
    pub fn leads(&self) -> bool {
        matches!(self.form, Form::Leading)
    }
}

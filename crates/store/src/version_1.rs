// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stores of schema version 1, in which results and machines were texts: read once, when a
//! store is brought to the present version.

use std::collections::BTreeMap;

use punctual_model::machine::{HostMachine, VirtualMachine};
use punctual_model::record::{Preemption, Provenance};
use punctual_model::recording::{Samples, Work};
use punctual_model::{
    Fact, Facts, Finding, Findings, Histogram, MachineRecord, Nanos, Reason, Recording,
    RecordingKey, Sample,
};
use serde::Deserialize;

/// Facts and results, all as texts.
pub type Texts = BTreeMap<String, String>;

/// A recording's body.
#[derive(Deserialize)]
pub struct Body {
    probe: String,
    load: String,
    variant: String,
    step: Option<u32>,
    interval: Option<Nanos>,
    count: u64,
    warmup: u64,
    sum: Nanos,
    extremes: Option<(Nanos, Nanos)>,
    missed: u64,
    histogram: Histogram,
    worst: Vec<Sample>,
    samples: Samples,
    settings: Texts,
    /// What the load did in its step; each recording of the step had the same.
    pub work: Vec<Work>,
    output: Option<String>,
}

/// How often each probe, load and variant has come in a run.
#[derive(Default)]
pub struct Repetitions(BTreeMap<(String, String, String), u32>);

impl Repetitions {
    /// The variant and the repetition of a label: `cpu0 (2)` is the second of `cpu0`, but
    /// only where there was a first.
    fn split(&mut self, probe: &str, load: &str, label: &str) -> (String, u32) {
        let name = |variant: &str| (probe.to_owned(), load.to_owned(), variant.to_owned());
        let parts = label
            .strip_suffix(')')
            .and_then(|text| text.rsplit_once('('));
        if let Some((plain, times)) = parts {
            let plain = plain.trim_end();
            let seen = self.0.get(&name(plain)).copied().unwrap_or(0);
            if seen > 0 && times.parse() == Ok(seen + 1) {
                self.0.insert(name(plain), seen + 1);
                return (plain.to_owned(), seen + 1);
            }
        }
        self.0.insert(name(label), 1);
        (label.to_owned(), 1)
    }
}

/// The provenance that a target wrote.
#[derive(Deserialize)]
pub struct OldProvenance {
    release: String,
    version: String,
    cmdline: String,
    preemption: String,
    facts: Texts,
}

impl OldProvenance {
    /// The same in the present form.
    pub fn migrated(self) -> Provenance {
        let preemption = match unknown(&self.preemption) {
            Some(reason) => Preemption::Unknown(reason),
            None => Preemption::of_name(&self.preemption)
                .unwrap_or_else(|| Preemption::Unknown(self.preemption.into())),
        };
        Provenance {
            release: self.release,
            version: self.version,
            cmdline: self.cmdline,
            preemption,
            tsc_khz: None,
            facts: facts(self.facts),
        }
    }
}

/// The machine that a bench's facts speak of, and the version that made the run.
pub fn machine(
    facts: &Texts,
    ns_per_insn: Option<u32>,
    provenance: Option<&Provenance>,
) -> (MachineRecord, String) {
    let fact = |name: &str| facts.get(name).cloned();
    let text = |name: &str| fact(name).unwrap_or_default();
    let release = provenance.map(|provenance| provenance.release.clone());
    let punctual = text("punctual");
    let Some(ns_per_insn) = ns_per_insn else {
        let host = HostMachine {
            host: text("host"),
            release,
            cpus: None,
            target_sha256: fact("target sha256").filter(|sum| unknown(sum).is_none()),
            ssh: None,
        };
        return (MachineRecord::Host(host), punctual);
    };
    let qemu_command = text("qemu command line");
    let memory = text("memory");
    let memory = memory.strip_suffix(" MiB").and_then(|mib| mib.parse().ok());
    let machine = VirtualMachine {
        release,
        image_sha256: text("kernel image sha256"),
        origin: text("kernel origin"),
        initramfs_sha256: text("initramfs sha256"),
        cmdline: cmdline(&qemu_command),
        memory_mib: memory.unwrap_or(0),
        cpus: 1,
        turn_us: None,
        network: None,
        ns_per_insn,
        qemu: text("qemu"),
        qemu_command,
    };
    (MachineRecord::Virtual(machine), punctual)
}

/// The kernel's command line in QEMU's: the quoted word behind `-append`.
fn cmdline(qemu: &str) -> String {
    let behind = qemu.split_once("-append ").map_or("", |(_, behind)| behind);
    let quoted = behind
        .strip_prefix('\'')
        .and_then(|rest| rest.split_once('\''));
    let word = || behind.split(' ').next().unwrap_or_default();
    quoted.map_or_else(word, |(line, _)| line).to_owned()
}

impl Body {
    /// The recording in the present form. A step that was not noted is the first of the plan
    /// with the recording's probe and load: `steps` has those names.
    pub fn migrated(
        self,
        repetitions: &mut Repetitions,
        steps: &[(String, String)],
    ) -> (Recording, Vec<Work>) {
        let (variant, repetition) = repetitions.split(&self.probe, &self.load, &self.variant);
        let of_plan = || {
            let mut names = steps.iter();
            let place = names.position(|(probe, load)| (probe, load) == (&self.probe, &self.load));
            place.unwrap_or_default() as u32
        };
        let key = RecordingKey {
            step: self.step.unwrap_or_else(of_plan),
            probe: self.probe,
            load: self.load,
            variant,
            repetition,
        };
        let longest = self.extremes.map(|(_, longest)| longest);
        let (settings, findings) = sorted(&key.probe, self.settings, longest);
        let recording = Recording {
            key,
            interval: self.interval,
            count: self.count,
            warmup: self.warmup,
            sum: self.sum,
            extremes: self.extremes,
            missed: self.missed,
            interrupted: false,
            histogram: self.histogram,
            worst: self.worst,
            samples: self.samples,
            maxima: Vec::new(),
            captures: Vec::new(),
            settings,
            findings,
            output: self.output,
        };
        (recording, self.work)
    }
}

/// The reason in `unknown: …`.
fn unknown(text: &str) -> Option<Reason> {
    let why = text.strip_prefix("unknown")?;
    Some(why.strip_prefix(": ").unwrap_or("it was not told").into())
}

fn facts(texts: Texts) -> Facts {
    let fact = |text: String| unknown(&text).map_or_else(|| Fact::parse(&text), Fact::from);
    let facts = texts.into_iter();
    facts.map(|(name, text)| (name, fact(text))).collect()
}

/// Settings and findings, which were one; `longest` is the longest sample.
fn sorted(probe: &str, mut texts: Texts, longest: Option<Nanos>) -> (Facts, Findings) {
    let mut findings = Findings::new();
    let mut add = |name: &str, finding| _ = findings.insert(name.to_owned(), finding);
    if let Some(slope) = texts.remove("slope_ns_per_waiter") {
        let interval = texts.remove("slope_interval_95").unwrap_or_default();
        add("slope_ns_per_waiter", estimate(&slope, &interval));
    }
    if let Some(result) = texts.remove("result") {
        let expected = texts.remove("expected").unwrap_or_default();
        let verdict = Finding::Verdict {
            passed: result == "pass",
            expected: expected.starts_with("pass"),
        };
        add("result", verdict);
    }
    if texts.remove("shortest_interval").is_some() {
        add(
            "shortest_interval",
            longest.map_or_else(absent, Finding::Nanos),
        );
    }
    for (old, new, read) in FINDINGS {
        // `threads` is what was asked of `switch`, and what `kthreads` found.
        if *old == "threads" && probe != "kthreads" {
            continue;
        }
        if let Some(text) = texts.remove(*old) {
            let finding = unknown(&text).map(Finding::Absent);
            add(
                new,
                finding
                    .or_else(|| read(&text))
                    .unwrap_or(Finding::Text(text)),
            );
        }
    }
    for name in texts
        .keys()
        .filter(|name| name.ends_with("_bytes"))
        .cloned()
        .collect::<Vec<_>>()
    {
        if let Some(text) = texts.remove(&name) {
            let size = || Some(Finding::Bytes(text.parse().ok()?));
            let finding = unknown(&text).map(Finding::Absent).or_else(size);
            add(
                &name,
                finding.unwrap_or_else(|| Finding::Text(text.clone())),
            );
        }
    }
    (facts(texts), findings)
}

type Read = fn(&str) -> Option<Finding>;

/// Settings that are findings: the name that each had, that it has now, and how it is read.
const FINDINGS: &[(&str, &str, Read)] = &[
    ("woken_highest_first", "woken_highest_first", share),
    ("inverted", "inverted", share),
    ("same_order", "same_order", share),
    ("inversions", "inversions", count),
    (
        "priority_of_owner_while_wanted",
        "priority_of_owner_while_wanted",
        count,
    ),
    ("tick_length_ns", "tick_length", nanos),
    ("tick_phase_ns", "tick_phase", nanos),
    ("clock_step_ns", "clock_step", nanos),
    ("observed_ns", "observed", nanos),
    ("cpu_lost_ns", "cpu_lost_time", nanos),
    ("cpu_lost", "cpu_lost", percent),
    ("cpu_lost_to_ticks", "cpu_lost_to_ticks", percent),
    ("preempted", "preempted", count),
    ("kernel_counter", "kernel_counter_agrees", answer),
    ("modules_loaded", "modules_loaded", count),
    ("threads", "threads", count),
    ("real_time_threads", "real_time_threads", count),
    ("interrupts_threaded", "interrupts_threaded", answer),
    ("raised", "raised", count),
    ("handled", "handled", count),
    ("extra", "extra", count),
    ("dropped", "dropped", count),
    ("skipped", "skipped", count),
    ("stall_kind", "stall_kind", text),
    ("stall_us", "stall", micros),
    ("stall_start_ns", "stall_start", nanos),
    ("stall_end_ns", "stall_end", nanos),
    ("stalled_sample", "stalled_sample", count),
    ("stalled_value_ns", "stalled_value", nanos),
];

fn absent() -> Finding {
    Finding::Absent("it was not told".into())
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "it stands in a table with those that may fail"
)]
fn text(text: &str) -> Option<Finding> {
    Some(Finding::Text(text.into()))
}

fn count(text: &str) -> Option<Finding> {
    text.parse().ok().map(Finding::Count)
}

fn nanos(text: &str) -> Option<Finding> {
    text.parse().ok().map(|ns| Finding::Nanos(Nanos(ns)))
}

fn micros(text: &str) -> Option<Finding> {
    let micros = text.parse().ok()?;
    Some(Finding::Nanos(Nanos::from_micros(micros)))
}

/// `3 of 100 rounds`.
fn share(text: &str) -> Option<Finding> {
    let (count, of) = text.strip_suffix(" rounds")?.split_once(" of ")?;
    let (count, of) = (count.parse().ok()?, of.parse().ok()?);
    Some(Finding::Share { count, of })
}

/// `0.1234 %`.
fn percent(text: &str) -> Option<Finding> {
    let percent: f64 = text.strip_suffix(" %")?.parse().ok()?;
    Some(Finding::Ratio(percent / 100.0))
}

/// `yes: …`, `no: …`, `agrees: …`.
fn answer(text: &str) -> Option<Finding> {
    let (word, why) = text.split_once(": ")?;
    let yes = match word {
        "yes" | "agrees" => true,
        "no" => false,
        _ => return None,
    };
    let why = why.into();
    Some(Finding::Answer { yes, why })
}

/// A slope, and the two ends of `-0.012 to 0.034`.
fn estimate(slope: &str, interval: &str) -> Finding {
    let read = || {
        let (low, high) = interval.split_once(" to ")?;
        let ends = (low.parse().ok()?, high.parse().ok()?);
        Some(Finding::estimate(slope.parse().ok()?, ends))
    };
    read().unwrap_or_else(|| Finding::Absent(slope.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(pairs: &[(&str, &str)]) -> Texts {
        let pairs = pairs.iter();
        pairs
            .map(|(name, text)| ((*name).into(), (*text).into()))
            .collect()
    }

    #[test]
    fn a_repetition_is_one_only_behind_its_first() {
        let mut seen = Repetitions::default();
        let mut split = |label| seen.split("timer", "idle", label);
        assert_eq!(split("cpu0"), ("cpu0".into(), 1));
        assert_eq!(split("cpu0 (2)"), ("cpu0".into(), 2));
        assert_eq!(split("cpu0 (3)"), ("cpu0".into(), 3));
        assert_eq!(split("echo (2)"), ("echo (2)".into(), 1));
        assert_eq!(split(""), (String::new(), 1));
        assert_eq!(split("(2)"), (String::new(), 2));
    }

    #[test]
    fn results_that_were_texts_are_values() {
        let old = texts(&[
            ("policy", "SCHED_FIFO"),
            ("priority", "98"),
            ("slope_ns_per_waiter", "0.020"),
            ("slope_interval_95", "-0.010 to 0.050"),
            ("inverted", "3 of 100 rounds"),
            ("result", "fail"),
            ("expected", "fail (the control)"),
            ("cpu_lost", "0.1234 %"),
            ("kernel_counter", "agrees: 100 ticks found"),
            ("kernel_bss_bytes", "unknown: hidden"),
            ("kernel_text_bytes", "16777216"),
            ("interrupts_threaded", "unknown: PREEMPT_RT, but 0 of 1"),
            ("threads", "10"),
        ]);
        let (settings, findings) = sorted("kthreads", old.clone(), None);
        assert_eq!(settings["priority"], Fact::Number(98));
        assert_eq!(settings.len(), 2);
        let slope = Finding::estimate(0.02, (-0.01, 0.05));
        assert_eq!(findings["slope_ns_per_waiter"], slope);
        assert_eq!(findings["inverted"], Finding::Share { count: 3, of: 100 });
        let control = Finding::Verdict {
            passed: false,
            expected: false,
        };
        assert_eq!(findings["result"], control);
        assert_eq!(findings["cpu_lost"], Finding::Ratio(0.1234 / 100.0));
        let agreed = &findings["kernel_counter_agrees"];
        assert!(matches!(agreed, Finding::Answer { yes: true, .. }));
        assert_eq!(
            findings["kernel_bss_bytes"],
            Finding::Absent("hidden".into())
        );
        assert_eq!(findings["kernel_text_bytes"], Finding::Bytes(16 << 20));
        assert!(matches!(
            findings["interrupts_threaded"],
            Finding::Absent(_)
        ));
        assert_eq!(findings["threads"], Finding::Count(10));
        let (settings, findings) = sorted("switch", old, None);
        assert_eq!(settings["threads"], Fact::Number(10));
        assert!(!findings.contains_key("threads"));
    }

    #[test]
    fn a_machine_is_read_from_its_facts() {
        let facts = texts(&[
            ("memory", "512 MiB"),
            (
                "qemu command line",
                "qemu -m 512 -append 'quiet preempt=full' -kernel x",
            ),
            ("punctual", "0.1.0"),
        ]);
        let (machine, version) = machine(&facts, Some(2), None);
        let machine = machine.as_virtual().unwrap();
        assert_eq!((machine.memory_mib, machine.ns_per_insn), (512, 2));
        assert_eq!(
            (&*machine.cmdline, &*version),
            ("quiet preempt=full", "0.1.0")
        );
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The scope: it reports stalls as they were, its parts add up, and the watched run is the same
//! run.

use punctual_tests::explained::{check_sum, explain, number, samples};
use punctual_tests::{Scratch, assert_has, digests, finding, schema, sized, suite};
use serde_json::Value;

/// The entry of the interrupt that `stall` asks for.
const IRQ_WORK: &str = "asm_sysvec_irq_work";

/// A kind of stall.
pub(super) struct Kind {
    /// Its name in `stall`.
    pub(super) name: &'static str,
    /// The names that the scope must give it on the stock kernels, and on RT; `None` if it delays
    /// no sample there.
    pub(super) stock: Option<&'static str>,
    pub(super) rt: Option<&'static str>,
    /// The function that holds the CPU.
    function: &'static str,
    /// The name that the survey must give it, and the function that it must attribute it to.
    surveyed: (&'static str, &'static str),
}

pub(super) const KINDS: [Kind; 5] = [
    Kind {
        name: "irqs-off",
        stock: Some("interrupts off"),
        rt: Some("interrupts off"),
        function: "stall_irqs_off [stall]",
        surveyed: ("interrupts off", IRQ_WORK),
    },
    Kind {
        name: "preempt-off",
        stock: Some("preemption off"),
        rt: Some("preemption off"),
        function: "stall_preempt_off [stall]",
        surveyed: ("preemption off", "stall_preempt_off [stall]"),
    },
    Kind {
        name: "softirq",
        stock: Some("soft interrupt"),
        rt: None,
        function: "stall_softirq [stall]",
        surveyed: ("soft interrupt", "tasklet_action"),
    },
    Kind {
        name: "raw-spinlock",
        stock: Some("spinning lock"),
        rt: Some("spinning lock"),
        function: "stall_raw_spinlock [stall]",
        surveyed: ("preemption off", "stall_raw_spinlock [stall]"),
    },
    Kind {
        name: "spinlock",
        stock: Some("spinning lock"),
        rt: None,
        function: "stall_spinlock [stall]",
        surveyed: ("preemption off", "stall_spinlock [stall]"),
    },
];

/// The two lengths of each kind, in µs.
pub(super) const LENGTHS: [i64; 2] = [300, 700];

/// The guest's clock and the scope's count of instructions round to a nanosecond each, and the
/// guest knows its counter's rate to a millionth.
const ROUNDING_NS: i64 = 2;

/// Two subjects of the demo, or all four, with these steps.
fn stalls(steps: &str) -> String {
    let modules = "modules = [\"backfire\", \"pulse\", \"stall\"]\n";
    let subjects = sized(&["full", "rt"][..], &["none", "voluntary", "full", "rt"]);
    suite("stalls", subjects, &format!("{modules}{steps}"))
}

pub(super) fn timer_step(kind: &str, us: i64) -> String {
    format!(
        "[[step]]\nprobe = \"timer\"\nsamples = 30\n\
         stall = {{ kind = \"{kind}\", us = {us}, sample = 20 }}\n"
    )
}

/// The time for which the stall held the CPU, by its own account on the guest's clock.
fn told(recording: &Value) -> i64 {
    finding(recording, "stall_end") - finding(recording, "stall_start")
}

#[test]
fn a_stall_is_named_with_its_kind_and_its_length() {
    let scratch = Scratch::new();
    let suite = &scratch.file("known.toml", stalls(&every_stall()));
    for run in scratch.measure(&[suite, "--jobs", "1"]) {
        let is_rt = run["subject"]["name"] == "rt";
        check_stories(&scratch, &run, &|kind| {
            if is_rt { kind.rt } else { kind.stock }
        });
        let surveyed = Surveyed {
            irq_work: IRQ_WORK,
            way_ns: 1_000,
            // On RT the holder of a spin lock, which sleeps there, can be preempted.
            is_there: &|kind| !is_rt || kind.name != "spinlock",
        };
        check_survey(&scratch, &run, &surveyed);
    }
}

/// A step for each kind and length.
pub(super) fn every_stall() -> String {
    let lengths = |kind: &Kind| LENGTHS.map(|us| timer_step(kind.name, us)).concat();
    KINDS.iter().map(lengths).collect()
}

/// Checks that each stalled sample of such a run has the stall for its culprit, called as `hold`
/// says; `None` if it is not late.
pub(super) fn check_stories(
    scratch: &Scratch,
    run: &Value,
    hold: &dyn Fn(&Kind) -> Option<&'static str>,
) {
    let subject = run["subject"]["name"].as_str().unwrap();
    let id = run["id"].as_str().unwrap();
    let explained = explain(scratch, &[id, "--sample", "20", "--worst", "10"]);
    let recordings = run["recordings"].as_array().unwrap();
    assert_eq!(samples(&explained).len(), recordings.len());
    assert_eq!(recordings.len(), KINDS.len() * LENGTHS.len());
    for (kind, recordings) in KINDS.iter().zip(recordings.chunks(LENGTHS.len())) {
        let named = format!("{subject}, {}", kind.name);
        let hold = hold(kind);
        let besides = recordings
            .iter()
            .map(|recording| check_story(&explained, recording, kind, hold, &named));
        let besides: Vec<Option<i64>> = besides.collect();
        // What the function does besides is the same: each instruction of what one stall
        // is longer than the other is found. What switches preemption off and on alone may be
        // preempted within its end; the survey, whose section ends before, is exact there, too.
        if let ([Some(short), Some(long)], true) = (&besides[..], kind.name != "preempt-off") {
            assert!((short - long).abs() <= ROUNDING_NS, "{named}: {besides:?}");
        }
    }
}

/// Checks the stalled sample's story: the culprit is the stall, and has its length. Returns how
/// much longer its function ran than the stall itself reports.
fn check_story(
    explained: &Value,
    recording: &Value,
    kind: &Kind,
    hold: Option<&str>,
    named: &str,
) -> Option<i64> {
    let late = finding(recording, "stalled_value");
    let mut found = samples(explained).iter();
    let sample = found.find(|sample| sample["step"] == recording["step"]);
    let sample = sample.unwrap_or_else(|| panic!("{named}: {explained:#}"));
    assert_eq!(number(&sample["late_ns"]), late, "{named}");
    check_sum(sample);
    let Some(hold) = hold else {
        assert!(late < 20_000, "{named}: {late}");
        return None;
    };
    let culprit = sample["story"]["culprit"].as_u64();
    let culprit = culprit.unwrap_or_else(|| panic!("{named}: {sample:#}"));
    let culprit = &sample["story"]["parts"][culprit as usize];
    assert_eq!(culprit["cause"], hold, "{named}: {sample:#}");
    assert_eq!(
        culprit["main"]["function"], kind.function,
        "{named}: {sample:#}"
    );
    // From the moment when the sample was due until the stall's end, without the interrupts
    // that came meanwhile.
    let delay = finding(recording, "stall_end");
    let parts = sample["story"]["parts"].as_array().unwrap().iter();
    let is_meanwhile = |part: &&Value| number(&part["from_ns"]) < delay;
    let interrupts = parts.filter(|part| part["cause"] == "interrupt" && is_meanwhile(part));
    let interrupts: i64 = interrupts.map(|part| number(&part["length_ns"])).sum();
    let length = number(&sample["story"]["held_ns"]) + interrupts;
    assert!(
        (delay - length).abs() < 5_000,
        "{named}: {length} ns for {delay}"
    );
    // Around its loop the function switches something off and on again; to switch preemption
    // on, as the end of a spinning lock does, calls the scheduler. Where that takes the CPU from
    // it, its end is not watched.
    let main = &culprit["main"];
    if main["whole_ns"] == main["time_ns"] {
        let switches = ["preempt-off", "raw-spinlock", "spinlock"];
        assert!(switches.contains(&kind.name), "{named}: {sample:#}");
        return None;
    }
    let besides = number(&main["whole_ns"]) - told(recording);
    assert!((0..1_500).contains(&besides), "{named}: {besides}");
    Some(besides)
}

/// The expected content of a kernel's survey of stalls.
pub(super) struct Surveyed<'a> {
    /// The entry of the interrupt that `stall` asks for.
    pub(super) irq_work: &'a str,
    /// The longest way into an interrupt and out of it.
    pub(super) way_ns: i64,
    /// Returns true if a kind of stall is among its places.
    pub(super) is_there: &'a dyn Fn(&Kind) -> bool,
}

/// Checks that the survey has each stall among its places, to the nanosecond: everything else in
/// its section is the same for both lengths.
pub(super) fn check_survey(scratch: &Scratch, run: &Value, expected: &Surveyed<'_>) {
    let recordings = run["recordings"].as_array().unwrap();
    let run = run["id"].as_str().unwrap();
    let ended = scratch.run(&["survey", run, "--quiet", "--json"]);
    assert_eq!(ended.status, Some(0), "{}", ended.stderr);
    let survey: Value = serde_json::from_str(&ended.stdout).unwrap();
    schema::check("survey", &survey).unwrap();
    assert_eq!(survey["mended"], 0, "{run}");
    let places = survey["places"].as_array().unwrap();
    for (kind, recordings) in KINDS.iter().zip(recordings.chunks(LENGTHS.len())) {
        let (what, function) = match kind.surveyed {
            (what, IRQ_WORK) => (what, expected.irq_work),
            known => known,
        };
        let mut found = places.iter();
        let found = found.find(|place| place["what"] == what && place["function"] == function);
        if !(expected.is_there)(kind) {
            assert_eq!(found, None, "{run}");
            continue;
        }
        let found = found.unwrap_or_else(|| panic!("{run}, {}: {places:#?}", kind.name));
        let (longest, sum) = (number(&found["longest_ns"]), number(&found["sum_ns"]));
        let besides = longest - told(&recordings[1]);
        assert!((0..expected.way_ns).contains(&besides), "{run}: {found}");
        // An interrupt's way back depends on what else has come meanwhile.
        if what == "interrupts off" {
            continue;
        }
        assert_eq!(found["count"], 2, "{run}: {found}");
        let of_short = sum - longest - told(&recordings[0]);
        assert!(
            (besides - of_short).abs() <= ROUNDING_NS,
            "{run}: {besides}, {of_short}: {found}"
        );
    }
}

#[test]
fn the_stages_of_an_interrupt_and_a_signal_are_explained_too() {
    let scratch = Scratch::new();
    let steps = "[[step]]\nprobe = \"signal\"\nsamples = 30\n\
        stall = { kind = \"irqs-off\", us = 300, sample = 20 }\n\
        [[step]]\nprobe = \"irq\"\nsource = \"hpet\"\nsamples = 30\n\
        stall = { kind = \"irqs-off\", us = 300, sample = 20 }\n\
        [[step]]\nprobe = \"realfeel\"\nsamples = 60\n\
        [[step]]\nprobe = \"hackbench\"\nloops = 1\n";
    let suite = &scratch.file("known.toml", stalls(steps));
    scratch.measure(&[suite, "--subject", "rt"]);
    for (probe, variant) in [("signal", "to"), ("irq", "hard"), ("irq", "whole")] {
        let of = ["r1", "--probe", probe, "--variant", variant, "--worst", "1"];
        let explained = explain(&scratch, &of);
        let sample = &samples(&explained)[0];
        check_sum(sample);
        let sentence = sample["story"]["sentence"].as_str().unwrap();
        assert!(
            sentence.contains("`stall_irqs_off [stall]`"),
            "{probe}: {sentence}"
        );
    }
    let irq = explain(&scratch, &["r1", "--probe", "irq", "--worst", "150"]);
    assert_eq!(samples(&irq).len(), 150);
    samples(&irq).iter().for_each(check_sum);
    let late = explain(&scratch, &["r1", "--probe", "realfeel", "--worst", "5"]);
    samples(&late).iter().for_each(check_sum);
    let refused = scratch.run(&["explain", "r1", "--probe", "hackbench"]);
    assert_eq!(refused.status, Some(2));
    for word in ["not explained: hackbench", "throughput"] {
        assert_has(&refused.stderr, &[word]);
    }
}

/// Longer than any way by itself: from the interrupt to the reading of the clock it takes 4 to 8
/// µs.
const WAY_NS: i64 = 15_000;

/// The measurements of the subjects of `demo`, shortened.
fn small() -> String {
    let samples = sized(150, 300);
    format!(
        "[[step]]\nprobe = \"timer\"\nsamples = {samples}\n\
         [[step]]\nprobe = \"timer\"\nload = \"stress\"\nsamples = {samples}\n"
    )
}

/// The plugin sees every instruction and changes none: the survey repeats the whole run with it,
/// and reports the outcome.
#[test]
fn the_watched_run_is_the_run_and_the_parts_of_its_hundred_worst_samples_add_up() {
    let scratch = Scratch::new();
    let suite = &scratch.file("small.toml", stalls(&small()));
    let runs = scratch.measure(&[suite, "--jobs", "1"]);
    assert_eq!(runs.len(), sized(2, 4));
    for (run, (subject, digest)) in runs.iter().zip(digests(&runs)) {
        let id = run["id"].as_str().unwrap();
        let ended = scratch.run(&["survey", id, "--quiet", "--json"]);
        assert_eq!(ended.status, Some(0), "{subject}: {}", ended.stderr);
        let survey: Value = serde_json::from_str(&ended.stdout).unwrap();
        assert_eq!(survey["digest_watched"], digest, "{subject}");
        add_up(&explain(&scratch, &[id, "--worst", "100"]));
    }
}

fn add_up(explained: &Value) {
    assert_eq!(samples(explained).len(), 100);
    samples(explained).iter().for_each(check_sum);
    let notes = samples(explained)
        .iter()
        .filter_map(|s| s["story"]["notes"].as_array());
    let notes: Vec<&Value> = notes.flatten().collect();
    let mended = notes.iter().any(|note| note.to_string().contains("mended"));
    assert!(!mended, "{notes:?}");
    for sample in samples(explained) {
        let story = &sample["story"];
        let is_told = story["culprit"].is_u64() || number(&sample["late_ns"]) < WAY_NS;
        assert!(is_told, "late, and nothing stood in the way: {sample:#}");
    }
    let told = explained["in_the_way"].as_array().unwrap().iter();
    let told: i64 = told.map(|one| number(&one["times"])).sum();
    assert_eq!(told, 100);
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel's own tracer, read when a sample is above a limit: stalls of known length are named,
//! and anything unavailable has a reason.

use punctual_model::frame::Decoder;
use punctual_model::{Fact, Facts, Record};
use punctual_tests::{Scratch, finding, has_fair_qemu, schema};
use serde_json::Value;

/// The stalls of a sample of `timer`, each in a step of its own, and the answer of the events for
/// each: the stage, the cause, and the function.
const STALLS: [(&str, [&str; 3]); 3] = [
    ("irqs-off", ["interrupt", "interrupt", "irq_work"]),
    ("raw-spinlock", ["switch", "spinning lock", "stall_run"]),
    (
        "preempt-off",
        ["switch", "preemption off", "stall_preempt_off"],
    ),
];

/// A stall of 200 µs begins 50 µs before its sample is due.
const HELD_NS: std::ops::Range<i64> = 140_000..170_000;

fn stalls() -> String {
    let steps = STALLS.map(|(kind, _)| {
        format!(
            "[[step]]\nprobe = \"timer\"\nsamples = 40\n\
             stall = {{ kind = \"{kind}\", us = 200, sample = 20 }}\n"
        )
    });
    format!(
        "modules = [\"backfire\", \"pulse\", \"stall\"]\n{}",
        steps.concat()
    )
}

/// The culprit of a capture: its stage, its cause, its function, and the time for which it held.
fn culprit(capture: &Value) -> ([&str; 3], i64) {
    let story = &capture["story"];
    let number = story["culprit"]
        .as_u64()
        .unwrap_or_else(|| panic!("{story}"));
    let part = &story["parts"][number as usize];
    let words = [&part["stage"], &part["cause"], &part["main"]["function"]];
    let words = words.map(|word| word.as_str().unwrap_or("none"));
    (words, story["held_ns"].as_i64().unwrap())
}

fn recordings(run: &Value) -> &[Value] {
    run["recordings"].as_array().unwrap()
}

#[test]
fn a_stall_of_known_length_is_named_by_the_events_and_runs_stay_repeatable() {
    let scratch = Scratch::new();
    let suite = &scratch.suite("caught", &["full", "rt"], &stalls());
    let measured = scratch.measure(&[suite, "--trace-above", "100us"]);
    for run in &measured {
        let subject = run["subject"]["name"].as_str().unwrap();
        assert!(subject.ends_with("+events"), "{subject}");
        for (recording, (kind, expected)) in recordings(run).iter().zip(STALLS) {
            let named = format!("{subject}, {kind}");
            assert_eq!(recording["settings"]["tracer"], "events", "{named}");
            assert_eq!(recording["settings"]["minor_faults"], 0, "{named}");
            let captures = recording["captures"].as_array().unwrap();
            assert_eq!(captures.len(), 1, "{named}");
            let sample = &captures[0]["sample"];
            assert_eq!(sample["value"], recording["max"], "{named}");
            assert_eq!(
                sample["value"],
                finding(recording, "stalled_value"),
                "{named}"
            );
            let (found, held) = culprit(&captures[0]);
            assert_eq!(found, expected, "{named}");
            assert!(HELD_NS.contains(&held), "{named}: {held}");
            let parts = captures[0]["story"]["parts"].as_array().unwrap();
            let sum: i64 = parts
                .iter()
                .map(|part| part["length_ns"].as_i64().unwrap())
                .sum();
            assert_eq!(Some(sum), sample["value"].as_i64(), "{named}");
        }
    }
    let again = scratch.measure(&[suite, "--trace-above", "100us"]);
    for (run, again) in measured.iter().zip(&again) {
        assert_eq!(run["digest"], again["digest"]);
        for (one, other) in recordings(run).iter().zip(recordings(again)) {
            assert_eq!(one["captures"], other["captures"]);
        }
    }
    let told = scratch.run(&["explain", "r1", "--captured", "--worst", "3"]);
    assert_eq!(told.status, Some(0), "{}", told.stderr);
    assert!(
        told.stdout.contains("`stall_preempt_off`"),
        "{}",
        told.stdout
    );
    let events = scratch.run(&["explain", "r1", "--captured", "--trace"]);
    assert!(
        events.stdout.contains("interrupt local_timer begins"),
        "{}",
        events.stdout
    );
}

/// A process has interrupts off in a function of its own: the interrupt finally leads to the
/// release, and its stack has the function.
#[test]
fn interrupts_off_in_a_process_are_told_by_the_function_that_has_them_off() {
    const MASKED: &str = "modules = [\"backfire\", \"pulse\", \"stall\"]\n[load.masked]\nsummary = \"\"\n\
        [[load.masked.worker]]\nunit = \"stalls\"\ncount = \"lines\"\nendless = true\n\
        run = [\"sh\", \"-c\", 'exec 3<>/dev/stall; while :; do echo irqs-off 200 >&3; echo; \
        usleep 700; done']\n\
        [[step]]\nprobe = \"timer\"\nload = \"masked\"\nsamples = 60\n";
    let scratch = Scratch::new();
    let suite = &scratch.suite("masked", &["full", "rt"], MASKED);
    for run in scratch.measure(&[suite, "--trace-above", "100us"]) {
        let captures = recordings(&run)[0]["captures"].as_array().unwrap();
        assert!(!captures.is_empty(), "{run:#}");
        for capture in captures {
            let (found, held) = culprit(capture);
            assert_eq!(found, ["interrupt", "interrupts off", "stall_irqs_off"]);
            assert!((50_000..200_000).contains(&held), "{held}");
        }
    }
}

/// A thread that never sleeps learns what came in between two of its readings; and after a step
/// nothing of its tracer is left.
#[test]
fn an_interruption_is_named_and_the_tracer_goes_with_its_step() {
    const GONE: &str = "mkdir /t && mount -t tracefs none /t && [ -z \"$(ls /t/instances)\" ]";
    let text = format!(
        "modules = [\"backfire\", \"pulse\", \"stall\"]\n\
         [[step]]\nprobe = \"noise\"\nduration_ms = 200\n\
         stall = {{ kind = \"irqs-off\", us = 200, sample = 0 }}\n\
         [[step]]\nprobe = \"program\"\nrun = [\"sh\", \"-c\", '{GONE}']\nsamples = 1\n"
    );
    let scratch = Scratch::new();
    let suite = &scratch.suite("interrupted", &["full", "rt"], &text);
    for run in scratch.measure(&[suite, "--trace-above", "100us"]) {
        assert_eq!(run["unsupported"], Value::Array(Vec::new()));
        let noise = &recordings(&run)[0];
        let captures = noise["captures"].as_array().unwrap();
        assert_eq!(captures.len(), 1, "{noise:#}");
        assert_eq!(captures[0]["sample"]["value"], noise["max"]);
        let (found, held) = culprit(&captures[0]);
        assert_eq!(found, ["return", "interrupt", "irq_work"]);
        assert!((195_000..215_000).contains(&held), "{held}");
        // The time in which the trace was read was not observed.
        let observed = finding(noise, "observed");
        assert!(
            (200_000_000 - 10_000_000..200_000_000).contains(&observed),
            "{observed}"
        );
    }
}

#[test]
fn the_first_sample_above_the_limit_is_the_last_of_its_step_if_one_wants() {
    let scratch = Scratch::new();
    let suite = &scratch.suite("stopped", &["full"], &stalls());
    let measured = scratch.measure(&[suite, "--stop-above", "100us"]);
    assert_eq!(measured[0]["state"], "finished");
    for recording in recordings(&measured[0]) {
        let stalled = finding(recording, "stalled_sample");
        assert_eq!(recording["settings"]["stopped_at_sample"], stalled);
        assert_eq!(recording["count"], stalled + 1);
        assert_eq!(recording["captures"].as_array().unwrap().len(), 1);
    }
}

#[test]
fn without_a_limit_there_is_no_tracer_and_explain_says_how_one_is_had() {
    let scratch = Scratch::new();
    let timer = ["--probe", "timer", "-p", "samples=20"];
    let plain = [&timer[..], &["--kernel", "debian-6.12"]].concat();
    let measured = scratch.measure(&plain);
    assert_eq!(measured[0]["subject"]["name"], "debian-6.12");
    let recording = &recordings(&measured[0])[0];
    assert!(recording["settings"].get("tracer").is_none());
    assert!(recording.get("captures").is_none());
    let told = scratch.run(&["explain", "r1", "--captured"]);
    assert_eq!(told.status, Some(2), "{}", told.stdout);
    assert!(
        told.stderr.contains("--trace-above TIME"),
        "{}",
        told.stderr
    );
    scratch.measure(&[&plain[..], &["--trace-above", "1s"]].concat());
    let told = scratch.run(&["explain", "r2", "--captured"]);
    assert!(
        told.stderr.contains("no sample was above the limit"),
        "{}",
        told.stderr
    );
}

#[test]
fn a_tracer_that_the_kernel_lacks_is_not_had_and_the_record_says_so() {
    let scratch = Scratch::new();
    let timer = [
        "--probe",
        "timer",
        "-p",
        "samples=20",
        "--kernel",
        "debian-6.12",
    ];
    let traced = ["--trace-above", "1us", "--tracer", "osnoise"];
    let measured = scratch.measure(&[&timer[..], &traced].concat());
    let recording = &recordings(&measured[0])[0];
    assert_eq!(recording["count"], 20);
    assert!(recording.get("captures").is_none());
    let told = recording["settings"]["tracer"]["unknown"].to_string();
    assert!(
        told.contains("the kernel has no tracer osnoise: it has"),
        "{told}"
    );
    let ended = scratch.run(&["run", "demo", "--trace-above", "1us", "--tracer", "ftrace"]);
    assert_eq!(ended.status, Some(2));
    assert!(
        ended.stderr.contains("expected events, osnoise"),
        "{}",
        ended.stderr
    );
}

/// The findings of `osnoise` and `wakeup_rt` for the same stall: the thread, and the time.
#[test]
fn tracers_of_the_rt_kernel_are_read_too() {
    let scratch = Scratch::new();
    let suite = &scratch.suite("traced", &["rt"], &stalls());
    for (tracer, expected) in [
        ("osnoise", ["switch", "another thread", "none"]),
        ("wakeup", ["switch", "not watched", "none"]),
    ] {
        let measured = scratch.measure(&[suite, "--trace-above", "100us", "--tracer", tracer]);
        let lock = &recordings(&measured[0])[1];
        let captures = lock["captures"].as_array().unwrap();
        let (found, held) = culprit(captures.last().unwrap());
        assert_eq!(found, expected, "{tracer}");
        assert!(held > HELD_NS.start, "{tracer}: {held}");
    }
}

#[test]
fn the_command_sets_tracers_beside_the_scope() {
    let scratch = Scratch::new();
    let tracers = [
        "tracers",
        "--quiet",
        "--kernel",
        "debian-6.12",
        "--load",
        "idle",
    ];
    let few = ["--samples", "60", "--seeds", "1", "--above", "1us"];
    let chosen = ["--tracer", "events", "--tracer", "irqsoff"];
    let ended = scratch.run(&[&tracers[..], &few, &chosen].concat());
    assert_eq!(ended.status, Some(0), "{}", ended.stderr);
    let line = |begin: &str| {
        let found = ended.stdout.lines().find(|line| line.starts_with(begin));
        found
            .unwrap_or_else(|| panic!("{}", ended.stdout))
            .to_owned()
    };
    let plain = line("debian-6.12      none");
    let median: i64 = plain
        .split_whitespace()
        .nth(2)
        .unwrap()
        .replace(',', "")
        .parse()
        .unwrap();
    assert!((1_000..20_000).contains(&median), "{plain}");
    let added = line("debian-6.12      events");
    let more = added.split_whitespace().nth(2).unwrap();
    assert!(more.starts_with('+'), "{added}");
    assert!(line("debian-6.12      irqsoff").ends_with("not had"));
    assert!(
        ended.stdout.contains("Whom a tracer blames"),
        "{}",
        ended.stdout
    );

    // The runs are in the store: the same as values.
    let ended = scratch.run(&[&tracers[..], &few, &chosen, &["--json"]].concat());
    let told: Value = serde_json::from_str(&ended.stdout).unwrap();
    schema::check("tracers", &told).unwrap();
    let measured = told["measured"].as_array().unwrap();
    let of = |tracer: Value| measured.iter().find(|one| one["tracer"] == tracer).unwrap();
    assert_eq!(of(Value::Null)["median_ns"], median);
    assert_eq!(of("irqsoff".into())["median_ns"], Value::Null);
    let events = of("events".into());
    assert!(events["median_ns"].as_i64() > Some(median));
    let caught = events["caught"].as_array().unwrap().len();
    let counted: u64 = events["agreement"]
        .as_object()
        .unwrap()
        .values()
        .filter_map(Value::as_u64)
        .sum();
    assert!(caught > 0 && counted == caught as u64, "{events:#}");
}

/// `--hwlat` asks for the kernel's tracer `hwlat` before a run and after it. A guest of one CPU has
/// nothing below its kernel that could take time from it. A guest of two has: the turns of the
/// other CPU.
#[test]
fn the_longest_gap_of_the_hardware_is_a_fact_of_the_run() {
    // The target runs a plan of its own within the guest.
    const SUITE: &str = r#"
        [[step]]
        probe = "program"
        run = ["sh", "-c", '''
            printf 'hwlat_s = 1\n[[step]]\nprobe = "timer"\nsamples = 9\n' |
                punctual-target run | busybox hexdump -v -e '1/1 "%02x"'
        ''']
    "#;
    if !punctual_skip::long("PUNCTUAL_LONG") || !has_fair_qemu() {
        return;
    }
    let scratch = Scratch::new();
    let suite = &scratch.suite("gaps", &[], SUITE);
    let gaps = |cpus: &str, kernel: &str| {
        let runs = scratch.measure(&[suite, "--kernel", kernel, "--cpus", cpus]);
        let stream = runs[0]["recordings"][0]["output"].as_str();
        let facts = facts_of(stream.expect("the target's stream"));
        ["hwlat_before_us", "hwlat_after_us"].map(|name| facts[name].clone())
    };
    let none = Fact::Number(0);
    assert_eq!(gaps("1", "debian-6.12-rt"), [none.clone(), none]);
    for gap in gaps("2", "debian-6.12-rt") {
        let Fact::Number(micros) = gap else {
            panic!("{gap:?}")
        };
        // A turn has 10 µs.
        assert!((5..1_000).contains(&micros), "{micros}");
    }
    for gap in gaps("1", "debian-6.12") {
        assert!(gap.to_string().contains("CONFIG_HWLAT_TRACER"), "{gap}");
    }
}

/// All facts of a stream's provenance, the stream in hexadecimal digits.
fn facts_of(stream: &str) -> Facts {
    let byte = |at: usize| u8::from_str_radix(&stream[at..at + 2], 16).unwrap();
    let stream: Vec<u8> = (0..stream.len() / 2).map(|at| byte(2 * at)).collect();
    let mut decoder = Decoder::default();
    decoder.feed(&stream);
    let mut facts = Facts::default();
    while let Some(record) = decoder.next_record().unwrap() {
        if let Record::Provenance(provenance) = record {
            facts.extend(provenance.facts);
        }
    }
    facts
}

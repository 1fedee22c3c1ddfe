//! The scope: what it tells of stalls is what they were, its parts add up, and the watched
//! run is the run.

use std::fs;

use punctual_tests::explained::{check_sum, explain, number, samples};
use punctual_tests::{Ended, Scratch, digests, user_cache};
use serde_json::Value;

/// The samples of every probe that the scope explains, each with a stall of 300 µs in it.
const STALLS: &str = r#"
name = "known"
summary = "stalls of 300 µs"
modules = ["stall", "pulse", "backfire"]
[[subject]]
name = "none"
kernel = "debian-6.12"
boot = "preempt=none"
[[subject]]
name = "voluntary"
kernel = "debian-6.12"
boot = "preempt=voluntary"
[[subject]]
name = "full"
kernel = "debian-6.12"
boot = "preempt=full"
[[subject]]
name = "rt"
kernel = "debian-6.12-rt"
"#;

/// Each step is a stall: its kind, what the scope must call it on the stock kernels and on
/// RT (`None`: it does not delay the sample there), and the function that holds the CPU.
const KINDS: [(&str, Option<&str>, Option<&str>, &str); 5] = [
    (
        "irqs-off",
        Some("interrupts off"),
        Some("interrupts off"),
        "stall_irqs_off [stall]",
    ),
    (
        "preempt-off",
        Some("preemption off"),
        Some("preemption off"),
        "stall_preempt_off [stall]",
    ),
    (
        "softirq",
        Some("soft interrupt"),
        None,
        "stall_softirq [stall]",
    ),
    (
        "raw-spinlock",
        Some("spinning lock"),
        Some("spinning lock"),
        "stall_raw_spinlock [stall]",
    ),
    (
        "spinlock",
        Some("spinning lock"),
        None,
        "stall_spinlock [stall]",
    ),
];

const STALL_NS: i64 = 300_000;

fn stalls(steps: &str) -> String {
    format!("{STALLS}{steps}")
}

fn timer_step(kind: &str) -> String {
    format!(
        "[[step]]\nprobe = \"timer\"\nsamples = 30\n\
         stall = {{ kind = \"{kind}\", us = 300, sample = 20 }}\n"
    )
}

#[test]
fn a_stall_is_named_with_its_kind_and_its_length() {
    let scratch = Scratch::new();
    let steps: String = KINDS.iter().map(|(kind, ..)| timer_step(kind)).collect();
    let suite = &scratch.file("known.toml", stalls(&steps));
    for run in scratch.measure(&[suite, "--jobs", "1"]) {
        let subject = run["subject"]["name"].as_str().unwrap();
        let explained = explain(
            &scratch,
            &[
                run["id"].as_str().unwrap(),
                "--sample",
                "20",
                "--worst",
                "5",
            ],
        );
        assert_eq!(samples(&explained).len(), KINDS.len());
        for (step, (kind, stock, rt, function)) in KINDS.iter().enumerate() {
            let named = format!("{subject}, {kind}");
            let recording = &run["recordings"][step];
            let late = recording["settings"]["stalled_value_ns"].as_str().unwrap();
            let of_step = |sample: &&Value| number(&sample["late_ns"]).to_string() == late;
            let sample = samples(&explained).iter().find(of_step);
            let sample = sample.unwrap_or_else(|| panic!("{named}: {explained:#}"));
            check_sum(sample);
            let culprit = sample["story"]["culprit"].as_u64();
            let Some(hold) = (if subject == "rt" { rt } else { stock }) else {
                assert!(number(&sample["late_ns"]) < 20_000, "{named}");
                continue;
            };
            let culprit = culprit.unwrap_or_else(|| panic!("{named}: {sample:#}"));
            let culprit = &sample["story"]["parts"][culprit as usize];
            assert_eq!(culprit["hold"], *hold, "{named}: {sample:#}");
            assert_eq!(
                culprit["main"]["function"], *function,
                "{named}: {sample:#}"
            );
            check_length(
                recording,
                culprit,
                number(&sample["story"]["held_ns"]),
                &named,
            );
        }
    }
}

/// The stall says itself from where to where it held the CPU, by the same clock: what the
/// function ran is that, and what it does around it: to switch preemption on again calls the
/// scheduler.
fn check_length(recording: &Value, culprit: &Value, held: i64, named: &str) {
    let setting = |name: &str| -> i64 {
        recording["settings"][name]
            .as_str()
            .unwrap()
            .parse()
            .unwrap()
    };
    let told = setting("stall_end_ns") - setting("stall_start_ns");
    let whole = number(&culprit["main"]["whole_ns"]);
    assert!(
        (STALL_NS..STALL_NS + 5_000).contains(&told),
        "{named}: {told}"
    );
    assert!(
        (told..told + 1_500).contains(&whole),
        "{named}: {whole} for {told}"
    );
    // From the moment when the sample was due until the stall's end.
    let delay = setting("stall_end_ns");
    let length = held;
    assert!(
        (delay - length).abs() < 5_000,
        "{named}: {length} for {delay}"
    );
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
    let irq = explain(&scratch, &["r1", "--probe", "irq", "--worst", "120"]);
    assert_eq!(samples(&irq).len(), 120);
    samples(&irq).iter().for_each(check_sum);
    let late = explain(&scratch, &["r1", "--probe", "realfeel", "--worst", "5"]);
    samples(&late).iter().for_each(check_sum);
    let refused = scratch.run(&["explain", "r1", "--probe", "hackbench"]);
    self::refused(&refused, &["not explained: hackbench", "throughput"]);
}

/// What is measured in the four subjects of `demo`, shortened.
const SMALL: &str = "[[step]]\nprobe = \"timer\"\nsamples = 300\n\
    [[step]]\nprobe = \"timer\"\nload = \"stress\"\nsamples = 300\n";

#[test]
fn the_parts_of_the_hundred_worst_samples_add_up() {
    let scratch = Scratch::new();
    let suite = &scratch.file("small.toml", stalls(SMALL).replace("\"stall\", ", ""));
    for run in scratch.measure(&[suite, "--subject", "full", "--subject", "rt"]) {
        let explained = explain(&scratch, &[run["id"].as_str().unwrap(), "--worst", "100"]);
        assert_eq!(samples(&explained).len(), 100);
        samples(&explained).iter().for_each(check_sum);
        let notes = samples(&explained)
            .iter()
            .filter_map(|s| s["story"]["notes"].as_array());
        let notes: Vec<&Value> = notes.flatten().collect();
        let mended = notes.iter().any(|note| note.to_string().contains("mended"));
        assert!(!mended, "{notes:?}");
    }
}

/// The plugin sees every instruction and changes none: the survey repeats the whole run with
/// it, and says what came out.
#[test]
fn the_watched_run_is_the_run_on_all_four_subjects() {
    let scratch = Scratch::new();
    let suite = &scratch.file("small.toml", stalls(SMALL));
    let runs = scratch.measure(&[suite, "--jobs", "1"]);
    assert_eq!(runs.len(), 4);
    for (run, (subject, digest)) in runs.iter().zip(digests(&runs)) {
        let id = run["id"].as_str().unwrap();
        let ended = scratch.run(&["survey", id, "--quiet", "--json"]);
        assert_eq!(ended.status, Some(0), "{subject}: {}", ended.stderr);
        let survey: Value = serde_json::from_str(&ended.stdout).unwrap();
        assert_eq!(survey["digest_watched"], digest, "{subject}");
    }
}

fn one_run(scratch: &Scratch) {
    let steps = "[[step]]\nprobe = \"timer\"\nsamples = 20\n";
    let suite = &scratch.file("one.toml", stalls(steps));
    scratch.measure(&[suite, "--subject", "rt"]);
}

fn refused(ended: &Ended, words: &[&str]) {
    assert_eq!(ended.status, Some(1), "{}", ended.stderr);
    for word in words {
        assert!(ended.stderr.contains(word), "{word}: {}", ended.stderr);
    }
}

#[test]
fn what_cannot_be_repeated_is_said_and_nothing_is_lost() {
    let scratch = Scratch::new();
    one_run(&scratch);
    let missing = scratch.run(&["explain", "r1", "--plugin", "/no/such/plugin.so"]);
    refused(&missing, &["/no/such/plugin.so", "./build"]);
    let no_plugin = scratch.file("not-a-plugin.so", "this is no shared library");
    let broken = scratch.run(&["explain", "r1", "--plugin", &no_plugin]);
    refused(&broken, &["does not load the scope's plugin"]);

    // A QEMU that was built without plugins says that it does not know the option.
    let bin = scratch.path("bin");
    fs::create_dir(&bin).unwrap();
    let qemu = "#!/bin/sh\nfor w; do case $w in -plugin) \
        echo \"$0: -plugin: invalid option\" >&2; exit 1;; esac; done\n\
        PATH=${PATH#*:} exec qemu-system-x86_64 \"$@\"\n";
    let program = bin.join("qemu-system-x86_64");
    fs::write(&program, qemu).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&program, mode).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let other = Ended::of(scratch.punctual(&["explain", "r1"]).env("PATH", path));
    refused(
        &other,
        &[
            "does not load the scope's plugin",
            "-plugin: invalid option",
        ],
    );

    // All is still there, and can be explained.
    let explained = explain(&scratch, &["r1"]);
    check_sum(&samples(&explained)[0]);
}

#[test]
fn a_guest_that_is_gone_from_the_cache_is_named() {
    let scratch = Scratch::with_new_cache();
    one_run(&scratch);
    let cache = scratch.path("cache/punctual");
    fs::rename(cache.join("initramfs"), cache.join("gone")).unwrap();
    refused(
        &scratch.run(&["explain", "r1"]),
        &["initramfs", "gone from the cache"],
    );
    fs::rename(cache.join("gone"), cache.join("initramfs")).unwrap();
    let removed = scratch.run(&["kernel", "remove", "debian-6.12-rt"]);
    assert_eq!(removed.status, Some(0), "{}", removed.stderr);
    refused(&scratch.run(&["explain", "r1"]), &["debian-6.12-rt"]);
    assert_eq!(scratch.run(&["show", "r1"]).status, Some(0));
    assert!(user_cache().is_dir());
}

#[test]
fn a_run_that_comes_out_otherwise_is_not_explained() {
    let scratch = Scratch::new();
    one_run(&scratch);
    let db = scratch.path("data/punctual/runs.db");
    let changed = std::process::Command::new("sqlite3")
        .arg(&db)
        .arg("UPDATE runs SET plan = replace(plan, 'seed = 1', 'seed = 2');")
        .status();
    if !changed.is_ok_and(|status| status.success()) {
        eprintln!("sqlite3 is not here: this is not tested");
        return;
    }
    let ended = scratch.run(&["explain", "r1"]);
    refused(&ended, &["is not what comes out", "timer / idle / cpu0"]);
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks that every load that can run in a guest does what it says.

use punctual_tests::explained::{check_sum, explain, samples};
use punctual_tests::{Scratch, runs, sized};
use serde_json::{Value, json};

/// The loads, except those that are parts of others here, and those that need what only a host may
/// have: a kernel's source, the Linux Test Project. One is a mix, one pauses.
const LOADS: [&str; 19] = [
    "celf-20",
    "compile",
    "dd-sync-rm",
    "dd-zero",
    "disk-read",
    "du",
    "find-and-ls",
    "interrupts",
    "ping-flood",
    "stress",
    "stress-ng:vm,fork",
    "worst-buffers",
    "worst-counters",
    "worst-fork",
    "worst-locks",
    "worst-polls",
    "worst-rcu",
    "worst-semaphores",
    "worst-timeouts",
];

/// Loads that do the same as others, but more of it or several at once: with `PUNCTUAL_LONG=1`.
const LARGER: [&str; 16] = [
    "celf-50",
    "combined",
    "dd-urandom",
    "find",
    "hackbench-50",
    "hackbench-100",
    "hardcore-stress-ng",
    "linux-journal",
    "ls-recursive",
    "osadl",
    "ping-flood-1400",
    "random-and-ping",
    "rteval",
    "worst-bpf",
    "worst-mlock",
    "worst-tcp",
];

/// Runs these steps, all on one kernel, in a guest in which each load fits.
fn run(scratch: &Scratch, steps: &str) -> Value {
    run_to(scratch, &format!("memory_mib = 3072\n{steps}"), 0)
}

/// Makes a run that ends with this exit status: 3 if something was unsupported.
fn run_to(scratch: &Scratch, steps: &str, status: i32) -> Value {
    let text = format!("name = \"loads\"\nsummary = \"\"\n{steps}");
    let suite = &scratch.file("loads.toml", text);
    let kernel = ["--kernel", "debian-6.12-rt", "--quiet", "--json", "--raw"];
    let ended = scratch.run(&[&["run", suite][..], &kernel].concat());
    let run = runs(&ended.stdout).remove(0);
    let absent = &run["unsupported"];
    assert_eq!(ended.status, Some(status), "{}{absent:#}", ended.stderr);
    run
}

fn step(load: &str, samples: u32) -> String {
    format!("[[step]]\nprobe = \"timer\"\nload = \"{load}\"\nsamples = {samples}\n")
}

/// The work of each worker of a step.
fn work<'a>(run: &'a Value, load: &str) -> &'a [Value] {
    let steps = run["steps"].as_array().unwrap();
    let step = steps.iter().find(|step| step["load"] == load);
    let step = step.unwrap_or_else(|| panic!("{load}: {:#}", run["unsupported"]));
    step["work"].as_array().unwrap()
}

#[test]
fn every_load_of_a_guest_proves_its_work_while_samples_are_taken() {
    let scratch = Scratch::new();
    let count = sized(150, 1_000);
    let loads = [&LOADS[..], sized(&[], &LARGER)].concat();
    // A stressor counts its work when its round of a second is over. One that is ended while it
    // starts says that it failed: not within so many samples, all of them in virtual time.
    let count = |load: &str| match load {
        "hardcore-stress-ng" => count.max(1_300),
        _ if load.contains("stress-ng") => count.max(1_100),
        _ => count,
    };
    let steps: String = loads.iter().map(|load| step(load, count(load))).collect();
    let run = run(&scratch, &steps);
    assert_eq!(run["unsupported"], json!([]), "{:#}", run["unsupported"]);
    for load in loads {
        let (work, count) = (work(&run, load), count(load));
        assert!(!work.is_empty(), "{load}");
        for worker in work {
            println!("{load}: {worker}");
            let number = |field: &str| worker[field].as_i64().unwrap();
            // The samples, one each millisecond, and the warm-up.
            let (least, span) = (i64::from(count) * 1_000_000, number("span_ns"));
            assert!((least..least + 100_000_000).contains(&span), "{worker}");
            assert!(number("cpu_ns") <= span, "{worker}");
            // By its recipe it may pause all the time.
            let may_pause = number("period_ns") >= 300_000_000_000;
            assert!(
                may_pause || number("cpu_ns") > 1_000_000,
                "{load}: {worker}"
            );
            // What tells its work in the end of a round may have begun none that ended.
            let tells_late = worker["unit"] == "bytes" && load == "dd-sync-rm"
                || ["worst-counters", "hardcore-stress-ng"].contains(&load)
                || worker["unit"] == "bytes of object code";
            assert!(
                may_pause || tells_late || number("amount") > 0,
                "{load}: {worker}"
            );
        }
        let cpu = work.iter().map(|worker| worker["cpu_ns"].as_i64().unwrap());
        // A disk is waited for.
        let least = if load == "disk-read" {
            i64::from(count) * 20_000
        } else {
            i64::from(count) * 500_000
        };
        assert!(cpu.sum::<i64>() > least, "{load}: {work:?}");
    }
}

/// Two periods long.
#[test]
fn a_storm_is_played_as_it_is_written() {
    if !punctual_skip::long("PUNCTUAL_LONG") {
        return;
    }
    let scratch = Scratch::new();
    let run = run(&scratch, &step("storm", 10_500));
    let work = work(&run, "storm");
    let hackbench = work.iter().find(|worker| worker["unit"] == "messages");
    let hackbench = hackbench.unwrap();
    assert_eq!(hackbench["period_ns"], 5_000_000_000_i64);
    assert!(hackbench["rounds"].as_i64() >= Some(2), "{hackbench}");
    assert!(hackbench["amount"].as_i64() > Some(0), "{hackbench}");
}

/// Requests are answered one by one, each after 2.5 ms, by a timer of the guest's.
#[test]
fn a_disk_answers_in_the_guests_time_and_twice_the_same() {
    if !punctual_skip::long("PUNCTUAL_LONG") {
        return;
    }
    let scratch = Scratch::new();
    let steps = step("disk-read", 4_000) + &step("dd-sync-rm", 1_000);
    let twice = [(); 2].map(|()| run(&scratch, &steps));
    assert!(twice[0]["digest"].is_string());
    assert_eq!(twice[0]["digest"], twice[1]["digest"]);
    let read = &work(&twice[0], "disk-read")[0];
    let (bytes, span) = (&read["amount"], &read["span_ns"]);
    let rate = bytes.as_f64().unwrap() / span.as_f64().unwrap() * 1e9 / f64::from(1 << 20);
    // 128 KiB in 2.5 ms are 50 MiB/s; what is counted are whole MiB that dd has written.
    assert!((45.0..=50.5).contains(&rate), "{rate} MiB/s, {read}");
}

/// A load that is not loaded is not called loaded: the reason is one of a kind.
#[test]
fn a_load_that_does_not_run_as_written_is_refused_and_says_how() {
    let scratch = Scratch::new();
    let own = |name: &str, script: &str| {
        format!(
            "[load.{name}]\nsummary = \"\"\n[[load.{name}.worker]]\nunit = \"lines\"\n\
             count = \"lines\"\nrun = [\"sh\", \"-c\", \"{script}\"]\n"
        )
    };
    let cases = [
        ("starved", "stress"),
        ("stopped", "stops"),
        ("not-up", "sleeps"),
        ("failed", "ltp"),
        ("failed", "fails"),
        ("failed", "prints"),
    ];
    let tick = "[[step]]\nprobe = \"tick\"\nload = \"stress\"\nduration_ms = 200\n";
    let steps = [
        tick.to_owned(),
        step("stops", 1_000),
        step("sleeps", 1_000),
        step("ltp", 1_000),
        step("fails", 1_000),
        step("prints", 100),
        // At work before the first sample, and in the middle; then no more.
        own(
            "stops",
            "ls -lRa /proc/self; sleep 0.5; ls -lRa /proc/self; exec sleep 1000",
        ),
        own("sleeps", "exec sleep 1000"),
        own("fails", "exit 7"),
        // What it prints is no work: each round fails.
        own("prints", "echo no such file; exit 1"),
    ];
    let run = run_to(&scratch, &steps.concat(), 3);
    assert_eq!(run["recordings"], json!([]));
    let unsupported = run["unsupported"].as_array().unwrap();
    assert_eq!(unsupported.len(), cases.len());
    for (absent, (why, load)) in unsupported.iter().zip(cases) {
        assert_eq!(absent["load"], load);
        assert_eq!(absent["cause"]["not-loaded"]["why"], why, "{absent:#}");
        println!("{}", absent["reason"]);
    }
}

/// A load's processes are started during the measurement. If the target forked for that, each page
/// that it writes to afterwards would be copied by a fault, within a sample.
#[test]
fn whoever_measures_has_no_page_fault() {
    let scratch = Scratch::new();
    let step = |probe: &str| format!("[[step]]\nload = \"interrupts\"\n{probe}\n");
    let steps = [
        "probe = \"timer\"
samples = 60",
        "probe = \"mutex\"
ticks = 2",
    ];
    let suite = format!(
        "name = \"faults\"\nsummary = \"\"\n{}",
        steps.map(step).concat()
    );
    let suite = &scratch.file("faults.toml", suite);
    scratch.measure(&[suite, "--kernel", "debian-6.12-rt"]);
    // Whoever writes first after each start of a process would fault: a few samples show it.
    for (probe, worst) in [("timer", 60), ("mutex", 100)] {
        let worst_samples = ["r1", "--probe", probe, "--worst", &worst.to_string()];
        let explained = explain(&scratch, &worst_samples);
        assert_eq!(samples(&explained).len(), worst, "{probe}");
        for sample in samples(&explained) {
            check_sum(sample);
            let parts = sample["story"]["parts"].as_array().unwrap();
            let faults = parts.iter().any(|part| part["cause"] == "exception");
            assert!(!faults, "{sample:#}");
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! A program as the subject, with its cycles as it sees them itself.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use punctual_tests::explained::{check_sum, explain, number};
use punctual_tests::{Ended, Scratch, assert_ends, assert_has, json, markdown, programs};
use serde_json::Value;

/// The cycles of `tests/app/loop.c` that are known to be odd.
const LONG_ONE: usize = 60;
const LOCKED_ONE: usize = 120;
/// The figure that it prints.
const FIGURE: &str = "figure.latest={ after = \"max_ns \", unit = \"ns\" }";
/// The path from the switch to a thread to its own first reading of the clock, and from its last
/// one to the switch away, in virtual time: the end of a system call, and a whole one until it
/// sleeps.
const TO_ITS_CLOCK: Range<i64> = 1_000..2_500;
const TO_ITS_SLEEP: Range<i64> = 2_500..6_500;

/// `tests/app/loop.c` or another one of these, compiled.
fn compiled(scratch: &Scratch, name: &str) -> String {
    let program = scratch.path(name).display().to_string();
    let source = markdown::root().join(format!("tests/app/{name}.c"));
    let mut compiler = Command::new("cc");
    compiler
        .args(["-O1", "-g", "-Wall", "-Werror", "-pthread", "-o", &program])
        .arg(source);
    assert!(compiler.status().expect("a compiler").success());
    program
}

/// The samples of the recording of this variant.
fn samples(run: &Value, variant: &str) -> Vec<i64> {
    let samples = recording(run, variant)["samples"].as_array();
    let value = |sample: &Value| sample[1].as_i64().expect("a number");
    samples.expect("samples").iter().map(value).collect()
}

/// The recording of this variant.
fn recording<'a>(run: &'a Value, variant: &str) -> &'a Value {
    let mut all = run["recordings"].as_array().expect("recordings").iter();
    let found = all.find(|one| one["variant"] == variant);
    found.unwrap_or_else(|| panic!("{variant}: {run:#}"))
}

/// The recordings of one step of a run.
fn of_step(run: &Value, step: u32) -> Value {
    let all = run["recordings"].as_array().expect("recordings").iter();
    let own: Vec<&Value> = all.filter(|one| one["step"] == step).collect();
    serde_json::json!({ "recordings": own })
}

/// The faults found in the design of a thread, by kind, without the remedies.
fn faults<'a>(run: &'a Value, variant: &str) -> BTreeMap<&'a str, &'a str> {
    let findings = recording(run, variant)["findings"].as_object();
    let findings = findings.expect("findings").iter();
    let kinds = findings.filter(|(key, _)| key.starts_with("fault_"));
    let told = |(kind, what): (&'a String, &'a Value)| {
        let (told, advice) = what["text"]
            .as_str()
            .and_then(|told| told.split_once("; "))?;
        assert!(!advice.is_empty(), "{kind}: {told}");
        Some((kind.as_str(), told))
    };
    kinds
        .map(|one| told(one).expect("what it is, and what to do"))
        .collect()
}

/// The times that the loop printed for each of its cycles: due, begin, end.
fn printed(run: &Value) -> Vec<[i64; 3]> {
    let output = run["recordings"][0]["output"].as_str().expect("output");
    let cycle = |line: &str| -> [i64; 3] {
        let words = line.split(' ').skip(1);
        let numbers: Vec<i64> = words.map(|word| word.parse().expect("a number")).collect();
        numbers.try_into().expect("three")
    };
    let of_cycles = output
        .lines()
        .filter(|line| line.starts_with(|letter: char| letter.is_ascii_digit()));
    of_cycles.map(cycle).collect()
}

#[test]
fn the_cycles_of_a_loop_are_those_that_it_sees_of_itself() {
    let scratch = Scratch::new();
    let program = compiled(&scratch, "loop");
    let measure = |work: u32| {
        let command = format!("{program} {work}");
        let words = ["--program", &command, "--subject", "rt"];
        let more = ["-p", "period_us=1000", "-p", FIGURE];
        let run = scratch.measure(&[&words[..], &more].concat());
        run[0].clone()
    };
    let run = measure(2_500_000);
    let told = printed(&run);
    let [lateness, execution, response] =
        ["loop lateness", "loop execution", "loop response"].map(|name| samples(&run, name));
    assert_eq!([told.len(), lateness.len(), response.len()], [200; 3]);
    // An interrupt may fall between the thread's turn and its readings of the clock.
    let mut interrupted = 0;
    for (number, [due, begin, end]) in told.iter().enumerate() {
        let later = begin - due - lateness[number];
        let longer = response[number] - (end - due);
        if !TO_ITS_CLOCK.contains(&later) || !TO_ITS_SLEEP.contains(&longer) {
            interrupted += 1;
            let with_it = TO_ITS_CLOCK.start..20_000;
            assert!(with_it.contains(&later), "cycle {number}: {later}");
            assert!(with_it.contains(&longer), "cycle {number}: {longer}");
        }
        let usual = 3_000..15_000;
        match number {
            LONG_ONE => assert!((2_500_000..2_515_000).contains(&execution[number])),
            // It sleeps until the other thread has gone on for 200 us.
            LOCKED_ONE => {
                assert!(usual.contains(&execution[number]));
                assert!((200_000..230_000).contains(&response[number]));
            }
            // Those that were due while it worked begin late, and take no longer for it.
            _ => assert!(usual.contains(&execution[number]), "{}", execution[number]),
        }
    }
    assert!(interrupted <= 52, "one tick in four cycles: {interrupted}");
    assert!((1_500_000..1_530_000).contains(&lateness[LONG_ONE + 1]));
    assert!((500_000..530_000).contains(&lateness[LONG_ONE + 2]));
    let of = |name| recording(&run, name);
    // Two periods begin within the long one, and none within the next but the second of them.
    assert_eq!(of("loop response")["missed"], 2);
    assert_eq!(of("loop lateness")["missed"], Value::Null);
    let latest = told.iter().map(|[due, begin, _]| begin - due).max();
    assert_eq!(
        samples(&run, "latest"),
        [latest.expect("cycles")],
        "its own figure"
    );
    let finding = |name: &str| &of("loop execution")["findings"][name];
    assert_eq!(finding("slept_within")["count"], 1);
    assert_eq!(finding("period")["nanos"], 1_000_000);
    assert_eq!(finding("exit")["text"], "status 0");

    // The same program is the same to the last sample; one that works for longer is another.
    assert_eq!(measure(2_500_000)["digest"], run["digest"]);
    assert_ne!(measure(2_500_200)["digest"], run["digest"]);
}

/// Compiles `tests/app/control.c` as `control` in a directory of its own, and takes the steps of a
/// job of CI there, beside a baseline if there is one.
fn job(scratch: &Scratch, name: &str, define: &str, more: &[&str]) -> (Ended, PathBuf) {
    let directory = scratch.path(name);
    fs::create_dir(&directory).expect("a directory");
    let root = markdown::root();
    let mut compiler = Command::new("cc");
    compiler
        .args(["-O1", define, "-o"])
        .arg(directory.join("control"))
        .arg(root.join("tests/app/control.c"));
    assert!(compiler.status().expect("a compiler").success());
    let mut steps = Command::new(root.join("tools/gate-program"));
    scratch.prepare(&mut steps);
    steps
        .arg("./control")
        .args(more)
        .args([
            "--out",
            "out",
            "--",
            "--kernel",
            "debian-6.12-rt",
            "-p",
            "duration_ms=200",
        ])
        .env("PUNCTUAL", programs().join("punctual"))
        .env("GITHUB_STEP_SUMMARY", directory.join("step-summary.md"))
        .current_dir(&directory);
    (Ended::of(&mut steps), directory.join("out"))
}

#[test]
fn a_job_gates_a_program_by_what_it_does_and_not_by_how_it_is_linked() {
    let scratch = Scratch::new();
    let limits = scratch.file(
        "limits.toml",
        "[[limit]]\ndeadline = \"50 us\"\n[[limit]]\njitter = \"20 us\"\nthread = \"control\"\n",
    );
    let (first, before) = job(&scratch, "first", "-DPLANTED=0", &["--limits", &limits]);
    assert_ends(&first, 0, &[]);
    let told = [
        "control response",
        "### Limits",
        "fit",
        "nothing was compared",
    ];
    assert_has(&first.stdout, &told);
    let summary = fs::read_to_string(scratch.path("first").join("step-summary.md"));
    assert_eq!(
        summary.expect("a summary"),
        fs::read_to_string(before.join("summary.md")).expect("it")
    );
    let verdicts = fs::read_to_string(before.join("limits.xml")).expect("JUnit");
    assert_has(&verdicts, &["control response", "failures=\"0\""]);

    let baseline = before.join("new.punctual").display().to_string();
    let beside = |name: &str, define: &str, more: &[&str]| {
        job(
            &scratch,
            name,
            define,
            &[&["--baseline", &baseline], more].concat(),
        )
    };
    let (other, _) = beside("other", "-DOTHER_ORDER", &[]);
    assert_ends(&other, 0, &[]);
    assert_has(&other.stdout, &["### Beside the baseline"]);

    // 333 rounds of six instructions are 2 us.
    let strict = scratch.file("strict.toml", "[[limit]]\ndeadline = \"10 us\"\n");
    let (worse, after) = beside("worse", "-DPLANTED=333", &["--limits", &strict]);
    assert_ends(&worse, 4, &[]);
    assert_has(&worse.stdout, &["worse", "unfit", "control execution"]);
    for verdicts in ["gate.xml", "limits.xml"] {
        let verdicts = fs::read_to_string(after.join(verdicts)).expect("JUnit");
        assert_has(&verdicts, &["<failure"]);
    }
}

#[test]
fn the_steps_of_a_job_say_what_is_wrong() {
    let steps = |words: &[&str]| {
        let mut steps = Command::new(markdown::root().join("tools/gate-program"));
        Ended::of(
            steps
                .args(words)
                .env("PUNCTUAL", programs().join("punctual")),
        )
    };
    assert_ends(&steps(&[]), 2, &["expected a program"]);
    assert_ends(&steps(&["./x", "--luck"]), 2, &["found --luck"]);
    assert_ends(
        &steps(&["./x", "--seeds", "none"]),
        2,
        &["a number from 1, found none"],
    );
    assert_ends(
        &steps(&["./x", "--limits", "/no/limits"]),
        2,
        &["no file /no/limits"],
    );
    assert_ends(
        &steps(&["./x", "--baseline", "/no/file", "--last", "/no/other"]),
        2,
        &["expected a file of punctual export, found no file /no/file"],
    );
    // The last result is no baseline where it lies: this one would take its place.
    let scratch = Scratch::new();
    let own = scratch.file("new.punctual", "runs");
    let out = Path::new(&own).parent().expect("a directory");
    let out = out.display().to_string();
    assert_ends(
        &steps(&["./x", "--out", &out, "--baseline", &own]),
        2,
        &["which is written anew"],
    );
    // Both forges take these steps, and say of each of their own what it is.
    for form in ["action.yml", "gitlab/gate-program.yml"] {
        let form = fs::read_to_string(markdown::root().join(form)).expect("a form");
        assert_has(
            &form,
            &[
                "tools/gate-program\"",
                "--last",
                "--baseline",
                "--limits",
                "--seeds",
            ],
        );
    }
}

/// A program in place of `punctual` that writes down how it is called, and has three runs.
const WRITES_DOWN: &str = "#!/bin/sh
echo \"$*\" >>calls
case $1 in
    run) echo table; exit \"${FAILS:-0}\" ;;
    runs) printf 'schema,runs.id,boot\\nx,r10,\"a,b\"\\nx,r9,\\nx,r2,\\n' ;;
esac
";

#[test]
fn a_job_takes_the_runs_of_all_subjects_and_always_leaves_a_summary() {
    let scratch = Scratch::new();
    let punctual = scratch.file("punctual", WRITES_DOWN);
    fs::set_permissions(&punctual, fs::Permissions::from_mode(0o755)).expect("its mode");
    let limits = scratch.file("limits.toml", "");
    let steps = |fails: &str| {
        let mut steps = Command::new(markdown::root().join("tools/gate-program"));
        let words = ["./x", "--limits", &limits, "--", "--kernel", "a"];
        steps.args(words).args(["--kernel", "b"]);
        let step_summary = format!("summary-{fails}");
        steps
            .env("PUNCTUAL", &punctual)
            .env("FAILS", fails)
            .env("GITHUB_STEP_SUMMARY", &step_summary);
        let ended = Ended::of(steps.current_dir(scratch.path("")));
        let summary = fs::read_to_string(scratch.path(&step_summary));
        (ended, summary.expect("a summary"))
    };
    let (whole, summary) = steps("0");
    assert_ends(&whole, 0, &[]);
    assert_has(&summary, &["### Cycles", "table", "### Limits"]);
    let calls = fs::read_to_string(scratch.path("calls")).expect("calls");
    assert_has(
        &calls,
        &["baseline set new r2 r9 r10 --db", "judge r2 r9 r10 --db"],
    );
    let (failed, summary) = steps("1");
    assert_ends(&failed, 1, &[]);
    assert_has(&summary, &["### Cycles", "table"]);
}

#[test]
fn each_fault_in_a_design_is_found_in_its_cycle_and_none_where_there_is_none() {
    let scratch = Scratch::new();
    let program = compiled(&scratch, "loop");
    let measure = |mode: &str, more: &[&str]| {
        let command = format!("{program} 0 {mode}");
        let words = ["--program", &command, "--subject", "rt"];
        scratch.measure(&[&words[..], more].concat()).remove(0)
    };
    let sound = measure("sound", &[]);
    assert!(faults(&sound, "loop execution").is_empty(), "{sound:#}");
    let answer = &recording(&sound, "loop execution")["findings"]["design_faults"]["answer"];
    assert_eq!(answer["yes"], false);
    // It slept for the lock all the same: its priority was inherited.
    let slept = &recording(&sound, "loop execution")["findings"]["slept_within"];
    assert_eq!(slept["count"], 1);

    let faulty = measure("faulty", &[]);
    let expected = [
        (
            "fault_blocking_call",
            "system calls that may block: 2, first in cycle 31 (openat, write to its output)",
        ),
        (
            "fault_inherited_priority",
            "helpers that inherited a real-time priority: 1 (loop)",
        ),
        ("fault_memory_not_locked", "memory not locked"),
        (
            "fault_no_inheritance",
            "sleeps for a lock without priority inheritance: 1, in cycle 120",
        ),
        ("fault_page", "page faults: 1, in cycle 30"),
        (
            "fault_settable_clock",
            "timers of CLOCK_REALTIME: 1, in cycle 34",
        ),
        (
            "fault_sleep",
            "sleeps within a cycle: 1, in cycle 33 (read)",
        ),
        ("fault_timer_slack", "timer slack: 1, in cycle 35 (50.0 µs)"),
        (
            "fault_woken_by_lower",
            "woken by a thread of lower priority: 1, in cycle 120",
        ),
    ];
    assert_eq!(faults(&faulty, "loop execution"), BTreeMap::from(expected));

    // Each has the line that does it: of a wake-up, that of whoever wakes.
    let id = faulty["id"].as_str().expect("an id");
    let told = explain(&scratch, &[id, "--faults"]);
    let told = told["samples"].as_array().expect("samples");
    let notes: Vec<&str> = told
        .iter()
        .flat_map(|sample| sample["story"]["notes"].as_array().expect("notes"))
        .map(|note| note.as_str().expect("a text"))
        .collect();
    for (kind, text) in [
        ("fault_page", "*(volatile char *)page = 1;"),
        ("fault_blocking_call", "close(open("),
        ("fault_sleep", "read(filled[0]"),
        // Where the straight code begins that ends with the call.
        ("fault_settable_clock", "due += real.tv_sec"),
        ("fault_timer_slack", "/* waiting */"),
        ("fault_no_inheritance", "\t\t\tpthread_mutex_lock(&lock);"),
        ("fault_woken_by_lower", "pthread_mutex_unlock(&lock);"),
    ] {
        let what = faults(&faulty, "loop execution")[kind];
        let line = line_with("loop.c", text);
        let is_it = |note: &&str| note.starts_with(what) && note.contains(&line);
        assert!(notes.iter().any(is_it), "{kind}, {line}: {notes:#?}");
    }
    let none = sound["id"].as_str().expect("an id");
    let none = scratch.run(&["explain", none, "--faults"]);
    assert_ends(&none, 2, &["no cycle of a program with a fault"]);

    // What was not looked for is not known.
    let blind = measure("sound", &["-p", "design_faults=false"]);
    let unknown = &recording(&blind, "loop execution")["findings"]["design_faults"];
    assert_has(&unknown["absent"].to_string(), &["were not noted"]);
}

/// `tests/app/marked.c` as C and as C++, and `tests/app/marked.rs`, each a step of one run: a guest
/// has all of them, and is booted once. The second step runs the first program again, which then
/// does not say when its cycles are due.
fn marked(scratch: &Scratch) -> [Value; 4] {
    let rust = (["rustc", "--edition", "2024"], "marked.rs");
    let cpp = (["c++", "-x", "c++"], "marked.c");
    let mut programs = vec![compiled(scratch, "marked")];
    for (name, (words, source)) in [("marked-rs", rust), ("marked-cpp", cpp)] {
        let program = scratch.path(name).display().to_string();
        let mut compiler = Command::new(words[0]);
        compiler
            .args(&words[1..])
            .args(["-o", &program])
            .arg(markdown::root().join("tests/app").join(source));
        assert!(compiler.status().expect("a compiler").success());
        programs.push(program);
    }
    let steps = format!(
        "programs = {programs:?}\n\
         [[step]]\nprobe = \"app\"\nrun = [\"marked\"]\nperiod_us = 1000\n\
         [[step]]\nprobe = \"app\"\nrun = [\"marked\", \"silent\"]\n\
         [[step]]\nprobe = \"app\"\nrun = [\"marked-rs\"]\n\
         [[step]]\nprobe = \"app\"\nrun = [\"marked-cpp\"]\n"
    );
    let suite = scratch.suite("marked", &["rt"], &steps);
    let run = scratch.measure(&[&suite]).remove(0);
    [0, 1, 2, 3].map(|step| of_step(&run, step))
}

#[test]
fn a_loop_that_waits_without_the_kernel_has_the_cycles_that_it_marks() {
    const LONG_ONE: usize = 7;
    // From the reading of the clock that ends its wait to the mark, and from its last reading to
    // the mark: a write into the trace, at most.
    const TO_ITS_MARK: Range<i64> = 500..4_000;
    let [run, silent, rust, cpp] = marked(&Scratch::new());
    let told = printed(&run);
    let [lateness, execution, response] =
        ["marked lateness", "marked execution", "marked response"].map(|name| samples(&run, name));
    assert_eq!([told.len(), lateness.len(), response.len()], [20; 3]);
    for (number, [due, begin, end]) in told.iter().enumerate() {
        let until_begin = begin - due;
        assert!(
            (0..until_begin).contains(&lateness[number]),
            "cycle {number}: {lateness:?}"
        );
        let longer = response[number] - (end - due);
        assert!(TO_ITS_MARK.contains(&longer), "cycle {number}: {longer}");
        assert_eq!(
            execution[number],
            response[number] - lateness[number],
            "it has the CPU"
        );
        let long = execution[number] > 300_000;
        assert_eq!(
            long,
            number == LONG_ONE,
            "cycle {number}: {}",
            execution[number]
        );
    }
    assert!(faults(&run, "marked execution").is_empty());

    let recordings = silent["recordings"].as_array().expect("recordings");
    assert_eq!(
        recordings.len(),
        1,
        "when it was due is not known: {silent:#}"
    );
    assert_eq!(samples(&silent, "marked execution").len(), 20);

    for (name, run) in [("marked-rs", rust), ("marked-cpp", cpp)] {
        let execution = samples(&run, &format!("{name} execution"));
        assert_eq!(execution.len(), 20);
        for (number, took) in execution.iter().enumerate() {
            assert_eq!(
                *took > 300_000,
                number == LONG_ONE,
                "{name}, cycle {number}: {took}"
            );
        }
        assert_eq!(samples(&run, &format!("{name} lateness")).len(), 20);
    }
}

#[test]
fn cyclictest_as_the_program_prints_the_lateness_that_is_measured() {
    let scratch = Scratch::new();
    // The guest of other tests with programs of rt-tests.
    let steps = "programs = [\"cyclictest\", \"hackbench\", \"oslat\"]\n\
        [[step]]\nprobe = \"app\"\nload = \"stress\"\n\
        run = [\"cyclictest\", \"-v\", \"-q\", \"-N\", \"-m\", \"-p\", \"90\", \
        \"-i\", \"1000\", \"-l\", \"100\"]\n";
    let suite = scratch.suite("cyclictest", &["rt"], steps);
    let run = scratch.measure(&[&suite]).remove(0);
    // The thread that prints is not one of real time.
    let lateness = samples(&run, "cyclictest lateness");
    let output = run["recordings"][0]["output"].as_str().expect("output");
    let value = |line: &str| -> Option<i64> { line.rsplit(':').next()?.trim().parse().ok() };
    let own = output.lines().filter(|line| line.matches(':').count() == 2);
    let own: Vec<i64> = own.filter_map(value).collect();
    assert!(own.len() >= 99, "{output}");
    // An interrupt of the load may fall between the thread's turn and its reading of the clock.
    let mut interrupted = Vec::new();
    for (number, (own, measured)) in own.iter().zip(&lateness).enumerate() {
        let later = own - measured;
        if later >= TO_ITS_CLOCK.end {
            interrupted.push(later);
            continue;
        }
        assert!(
            TO_ITS_CLOCK.contains(&later),
            "cycle {number}: {own}, {measured}"
        );
    }
    let most = interrupted.iter().max().copied().unwrap_or(0);
    assert!(interrupted.len() <= 3 && most < 20_000, "{interrupted:?}");
}

/// A program that hangs is late by as much as was seen, and one that fails or sleeps for ever is no
/// measurement: a deadline that each of its cycles kept is then kept by none of them. Nor is it
/// kept by a cycle that was due but did not get the CPU; a thread that has ended is late for
/// nothing.
#[test]
fn a_program_that_does_not_end_well_is_never_fit() {
    let scratch = Scratch::new();
    let ends = compiled(&scratch, "ends");
    // To start a thread takes some 300 us.
    let deadline = "[[limit]]\ndeadline = \"1 ms\"\n";
    let limits = scratch.file("limits.toml", deadline);
    let ended = |how: &str, status: i32| {
        let program = format!("{ends} {how}");
        let words = [
            "run",
            "--quiet",
            "--json",
            "--raw",
            "--subject",
            "rt",
            "--program",
        ];
        let ran = scratch.run(&[&words[..], &[&program, "-p", "duration_ms=300"]].concat());
        let is_whole = ["hang", "robbed", "helped", "overrun", "well"].contains(&how);
        let (ran_to, told) = if is_whole {
            (0, String::new())
        } else {
            (3, ": app / idle: ".to_owned())
        };
        assert_ends(&ran, ran_to, &[&told]);
        let run: Value = serde_json::from_str(&ran.stdout).expect("JSON");
        let run = run["runs"][0].clone();
        let id = run["id"].as_str().expect("an id");
        let judged = scratch.run(&["judge", id, "--limits", &limits, "--no-explain"]);
        assert_eq!(judged.status, Some(status), "{how}: {}", judged.stdout);
        // No command is told that cannot work.
        assert!(
            !judged.stdout.contains("punctual explain"),
            "{how}: {}",
            judged.stdout
        );
        (run, judged.stdout)
    };
    let (hangs, _) = ended("hang", 4);
    let [response, execution] =
        ["response", "execution"].map(|part| samples(&hangs, &format!("ends {part}")));
    assert_eq!(response.len(), 100);
    // It was asked to end after 300 ms, and the hundredth cycle began after some 100.
    let (response, execution) = (response[99], execution[99]);
    assert!((180_000_000..320_000_000).contains(&response), "{response}");
    assert!(execution <= response, "{execution} of {response}");
    let (robbed, _) = ended("robbed", 4);
    let [response, execution] =
        ["response", "execution"].map(|part| samples(&robbed, &format!("ends {part}")));
    let late = *response.last().expect("cycles");
    assert!((180_000_000..450_000_000).contains(&late), "{late}");
    assert_eq!(execution.last(), Some(&0));
    assert_has(
        faults(&robbed, "ends execution")["fault_never_waits"],
        &["threads of real time that do not wait: 1 (ends for "],
    );
    // A run is too few for a verdict, and nothing in it is late.
    let (helped, _) = ended("helped", 5);
    let of_helper = samples(&helped, "ends 2 response");
    assert_eq!(of_helper.len(), 49);
    assert!(of_helper.iter().all(|took| *took < 20_000), "{of_helper:?}");
    assert_eq!(recording(&helped, "ends 2 response")["interrupted"], false);
    // A cycle that is too long, and the last: whoever ends well may have ended for that.
    let (overrun, judged) = ended("overrun", 5);
    let last = &recording(&overrun, "ends response")["findings"]["ended_within"]["nanos"];
    assert!(
        (5_000_000..5_100_000).contains(&last.as_i64().expect("ns")),
        "{last}"
    );
    assert_has(&judged, &["its last cycle"]);
    let (_, judged) = ended("well", 5);
    assert!(!judged.contains("its last cycle"), "{judged}");
    for (how, why) in [
        ("crash", "the program ended with signal: 11 (SIGSEGV)"),
        ("fail", "the program ended with status 7"),
        ("stuck", "its thread ends slept in the end"),
        ("dead", "its thread ends slept in the end"),
        ("behind", "the program ended before what it left"),
        ("child", "a signal killed the process of its thread ends"),
    ] {
        let (run, judged) = ended(how, 5);
        let name = match how {
            "dead" | "child" => "ends 2 response",
            _ => "ends response",
        };
        let recording = recording(&run, name);
        assert_eq!(recording["interrupted"], true, "{how}");
        let judged = judged.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_has(&judged, &["interrupted after", why]);
    }
}

#[test]
fn a_program_without_cycles_is_told_with_why() {
    let scratch = Scratch::new();
    // All are commands of one shell, whose guest is booted once.
    let unsupported = |command: &str, parts: &[&str]| {
        let words = ["run", "--quiet", "--json", "--subject", "rt"];
        // Some of them never end by themselves, and one works until it is ended.
        let program = ["--program", command, "-p", "duration_ms=300"];
        let ended = scratch.run(&[&words[..], &program].concat());
        assert_eq!(ended.status, Some(3), "{command}: {}", ended.stderr);
        let run: Value = serde_json::from_str(&ended.stdout).expect("JSON");
        let why = &run["runs"][0]["unsupported"][0]["reason"];
        assert_has(why.as_str().expect("a reason"), parts);
    };
    unsupported(
        "sh -c 'echo here; kill -9 $$'",
        &["no cycle", "signal: 9", "here"],
    );
    unsupported(
        "sh -c 'while :; do :; done'",
        &["no cycle", "the signal that asked it to end"],
    );
    unsupported("sh -c true", &["no cycle", "status 0", "printed nothing"]);
    // A device that is not there: it gives up, or waits for it for ever.
    unsupported(
        "sh -c 'exec 3</dev/ttyUSB0'",
        &["no cycle", "status ", "/dev/ttyUSB0"],
    );
    unsupported(
        "sh -c 'until [ -e /dev/ttyUSB0 ]; do sleep 9; done'",
        &["no cycle", "it slept in the end"],
    );
    // Its standard input is empty.
    unsupported("sh -c 'exec cat'", &["no cycle", "status 0"]);
    // What goes to the background ends with the step.
    unsupported(
        "sh -c 'echo gone >&2; setsid sleep 1000 & sleep 0.1'",
        &[
            "no cycle",
            "1 process that it had left",
            "foreground",
            "gone",
        ],
    );
    let missing = scratch.run(&["run", "--program", "./no-such-loop"]);
    assert_eq!(missing.status, Some(2), "{}", missing.stderr);
    assert_has(&missing.stderr, &["no-such-loop"]);
}

/// The known cycles of `tests/app/story.c`.
const FAULT: usize = 10;
const WORK: usize = 15;
const INVERSION: usize = 20;

/// `story.c:17`: the first line of a program of these that has this text.
fn line_with(name: &str, text: &str) -> String {
    let source = markdown::root().join(format!("tests/app/{name}"));
    let source = fs::read_to_string(source).expect("a source");
    let at = source.lines().position(|line| line.contains(text));
    format!("{name}:{}", at.expect("a line") + 1)
}

/// The line of the mark in a comment of `tests/app/story.c`.
fn line_of(mark: &str) -> String {
    line_with("story.c", &format!("/* {mark} */"))
}

/// The story of a cycle, with its parts added up, and the time of those parts that have this cause
/// and this line: by whom, or in what.
struct Told(Value);

impl Told {
    fn of(scratch: &Scratch, run: &str, variant: &str, cycle: usize) -> Self {
        let cycle = cycle.to_string();
        let words = [run, "--variant", variant, "--sample", &cycle];
        Self::of_sample(&explain(scratch, &words)["samples"][0])
    }

    /// The same of each cycle, for which the run is repeated once.
    fn each(scratch: &Scratch, run: &str, variant: &str) -> impl Fn(usize) -> Self {
        let all = explain(scratch, &[run, "--variant", variant, "--worst", "100"]);
        move |cycle: usize| {
            let mut all = all["samples"].as_array().expect("samples").iter();
            let sample = all.find(|sample| sample["seq"] == cycle);
            Self::of_sample(sample.unwrap_or_else(|| panic!("no cycle {cycle}")))
        }
    }

    fn of_sample(sample: &Value) -> Self {
        check_sum(sample);
        Self(sample["story"].clone())
    }

    fn parts(&self) -> &Vec<Value> {
        self.0["parts"].as_array().expect("parts")
    }

    fn time(&self, cause: &str, place: &str) -> i64 {
        let is_there = |part: &&Value| {
            let places = [&part["by"], &part["main"]["function"]];
            let mut places = places.into_iter().filter_map(Value::as_str);
            part["cause"] == cause && places.any(|one| one.contains(place))
        };
        let lengths = self
            .parts()
            .iter()
            .filter(is_there)
            .map(|part| number(&part["length_ns"]));
        lengths.sum()
    }
}

#[test]
fn a_late_cycle_is_explained_across_kernel_and_program_by_its_lines() {
    let scratch = Scratch::new();
    let program = compiled(&scratch, "story");
    let measure = |command: &str| {
        let words = ["--program", command, "--subject", "rt"];
        let run = scratch.measure(&words).remove(0);
        let id = run["id"].as_str().expect("an id").to_owned();
        (run, id)
    };
    let (run, id) = measure(&program);
    let variant = "story response";
    let responses = samples(&run, variant);
    let told = Told::each(&scratch, &id, variant);

    // The page is there when the next cycle comes.
    let faulting = line_of("faulting");
    let fault = told(FAULT);
    assert!(fault.time("exception", &faulting) > 500, "{:#}", fault.0);
    assert_eq!(told(FAULT + 1).time("exception", ""), 0);

    // Two instructions a round, and no more than the call around them.
    let work = told(WORK);
    let working = work.time("the program", "work (story.c");
    assert!((200_000..200_400).contains(&working), "{:#}", work.0);
    assert_has(
        &work.0["sentence"].to_string(),
        &["work (story.c", "in the program itself"],
    );

    // It sleeps for the lock; then who holds it is kept from the CPU by who meddles.
    let inversion = told(INVERSION);
    let (locking, meddling) = (line_of("locking"), line_of("meddling"));
    let asleep = inversion.time("asleep", &locking);
    let slept = responses[INVERSION] - responses[INVERSION - 1];
    assert!(
        (slept - 20_000..slept + 20_000).contains(&asleep),
        "{asleep} of {slept}"
    );
    assert!(asleep > 400_000, "{:#}", inversion.0);
    let meddled: Vec<&Value> = inversion
        .parts()
        .iter()
        .filter(|part| part["main"].to_string().contains("work (story.c"))
        .collect();
    assert!(!meddled.is_empty(), "{:#}, {meddling}", inversion.0);
    let unlocking = line_of("unlocking");
    let notes = inversion.0["notes"].as_array().expect("notes");
    let mut woken = notes.iter().filter_map(Value::as_str);
    let woken = woken.find(|note| note.contains("it slept until "));
    assert_has(
        woken.expect("who woke it"),
        &["story in holder", &unlocking],
    );

    // A cycle in which nothing is planted has nothing of it.
    let sound = told(FAULT - 1);
    for cause in ["exception", "asleep", "another thread"] {
        assert_eq!(sound.time(cause, ""), 0, "{cause}: {:#}", sound.0);
    }
    assert!(sound.time("the program", "") < 2_000, "{:#}", sound.0);

    // Lateness and execution are told, too.
    let lateness = Told::of(&scratch, &id, "story lateness", WORK);
    assert!(lateness.parts().iter().all(|part| part["stage"] != "wait"));

    // With its memory locked and a lock that lends priority none of both is there.
    let (run, id) = measure(&format!("{program} sound"));
    let fault = Told::of(&scratch, &id, variant, FAULT);
    assert_eq!(fault.time("exception", ""), 0, "{:#}", fault.0);
    let inversion = samples(&run, variant)[INVERSION];
    assert!(inversion < responses[INVERSION] - 300_000, "{inversion}");
}

/// The option that is planted makes a program late, and a release has its figures: `ablate` and
/// `series` take it as it is.
#[test]
fn options_and_releases_are_held_against_a_program() {
    let scratch = Scratch::new();
    let program = compiled(&scratch, "control");
    let measured = [
        "--program",
        &program,
        "-p",
        "duration_ms=150",
        "--quiet",
        "--json",
        "--no-explain",
    ];
    let options = "[[option]]\nname = \"planted\"\nboot = \"trace_event=sched\"\n";
    let options = scratch.file("options.toml", options);
    let words = [
        "ablate",
        "--kernel",
        "debian-6.12-rt",
        "--options",
        &options,
    ];
    let ended = scratch.run(&[&words[..], &["--seeds", "1..6"], &measured].concat());
    assert_ends(&ended, 0, &[]);
    let options = json(&ended)["options"].clone();
    let mut options = options.as_array().expect("options").iter();
    let first = options.find(|one| one["names"] == serde_json::json!(["planted"]));
    let first = first.expect("the option that is planted");
    let of_program = |one: &&Value| one["variant"] == "control response";
    let figures = first["figures"].as_array().expect("figures");
    let median = figures
        .iter()
        .find(|one| of_program(one) && one["figure"] == "median");
    let median = median.unwrap_or_else(|| panic!("{first:#}"));
    assert_eq!(median["verdict"]["verdict"], "higher");

    // The release that is fetched already, if the line has none since: its last one.
    let line = "debian-6.12-rt";
    let releases = json(&scratch.run(&["kernel", "series", line, "--json"]));
    let last = releases.as_array().expect("releases").last();
    let version = last.expect("a release")["version"].as_str();
    let version = version.expect("a version");
    let words = ["series", line, "--since", version, "--until", version];
    let ended = scratch.run(&[&words[..], &["--seeds", "1..2"], &measured].concat());
    assert_ends(&ended, 0, &[]);
    let found = json(&ended);
    let figures = found["lines"][0]["figures"].as_array().expect("figures");
    let of_response = figures.iter().filter(of_program).count();
    assert_eq!(of_response, 2, "worst and median: {found:#}");
    assert!(
        found["lines"][0]["releases"][0]["gaps"]
            .as_array()
            .is_none_or(Vec::is_empty)
    );

    let both = scratch.run(&["series", line, "--suite", "demo", "--program", &program]);
    assert_ends(
        &both,
        2,
        &["expected a suite or --program, found both: demo"],
    );
}

/// A userland with `tests/app/marked.c`, static, and `tests/app/story.c` with its libraries.
fn userland(scratch: &Scratch, name: &str) -> PathBuf {
    let root = scratch.path(name);
    let bin = root.join("usr/bin");
    fs::create_dir_all(&bin).expect("a directory");
    let story = compiled(scratch, "story");
    fs::copy(&story, bin.join("story")).expect("a copy");
    let mut compiler = Command::new("cc");
    compiler
        .args(["-O1", "-static", "-pthread", "-o"])
        .arg(bin.join("marked"))
        .arg(markdown::root().join("tests/app/marked.c"));
    assert!(compiler.status().expect("a compiler").success());
    std::os::unix::fs::symlink("usr/bin", root.join("bin")).expect("a link");
    let told = Command::new("ldd").arg(&story).output().expect("ldd");
    let told = String::from_utf8(told.stdout).expect("text");
    for library in told.split_whitespace().filter(|word| word.starts_with('/')) {
        let place = root.join(&library[1..]);
        fs::create_dir_all(place.parent().expect("a directory")).expect("a directory");
        fs::copy(library, place).expect("a copy");
    }
    root
}

#[test]
fn a_program_of_a_whole_userland_runs_with_that_as_its_root() {
    let scratch = Scratch::new();
    let root = userland(&scratch, "root");
    let image = scratch.path("image.tar");
    let mut tar = Command::new("tar");
    tar.arg("-cf").arg(&image).arg("-C").arg(&root).arg(".");
    assert!(tar.status().expect("tar").success());
    let (root, image) = (root.display().to_string(), image.display().to_string());

    // Into its own root the marks are written that it makes: it has /sys, and its variables.
    let words = [
        "--root",
        &image,
        "--program",
        "A=1 /bin/marked",
        "--subject",
        "rt",
    ];
    let run = scratch.measure(&words).remove(0);
    assert_eq!(samples(&run, "marked lateness").len(), 20);
    let all = recording(&run, "marked execution");
    assert_eq!(all["findings"]["exit"]["text"], "status 0", "{run:#}");

    // A directory and its tar file are one userland, and a suite has it as well.
    let words = ["--root", &root, "--program", "story", "--subject", "rt"];
    let run = scratch.measure(&words).remove(0);
    let suite = "name = \"app\"\nsummary = \"s\"\nroot = \"image.tar\"\n[[step]]\nprobe = \"app\"\n\
                 run = [\"story\"]\n";
    let suite = scratch.file("suite.toml", suite);
    let same = scratch
        .measure(&[&suite, "--kernel", "debian-6.12-rt"])
        .remove(0);
    assert_eq!(same["digest"], run["digest"]);

    // Its lines are told.
    let id = run["id"].as_str().expect("an id");
    let work = Told::of(&scratch, id, "story response", WORK);
    let working = work.time("the program", "work (story.c");
    assert!((200_000..200_400).contains(&working), "{:#}", work.0);

    // What cannot be is said before anything boots.
    let refused = |words: &[&str], why: &[&str]| {
        let ended = scratch.run(&[&["run", "--subject", "rt"], words].concat());
        assert_ends(&ended, 2, why);
    };
    let of_root = ["--root", &*root, "--program"];
    refused(
        &[&of_root[..], &["loop"]].concat(),
        &["expected the program loop in it"],
    );
    refused(
        &["--root", "/no/root", "--program", "x"],
        &["expected a userland"],
    );
    let small = [&of_root[..], &["story", "--memory", "100"]].concat();
    refused(
        &small,
        &["needs 192 MiB of memory, and has 100: --memory 192"],
    );
    let here = [&of_root[..], &["story", "--bench", "host"]].concat();
    let here = scratch.run(&[&["run"], &here[..]].concat());
    assert_ends(&here, 2, &["only guests get a root"]);
}

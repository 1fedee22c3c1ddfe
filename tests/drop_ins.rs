// SPDX-License-Identifier: MIT OR Apache-2.0
//! The programs that people's scripts know, except cyclictest, against those of rt-tests: the same
//! options give lines of the same form, and programs that read theirs read ours.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use punctual_formats::cyclictest_lines::ThreadLine;
use punctual_formats::{hackbench, realfeel};
use punctual_tests::originals::{
    are_as_wide, is_root, masked, masked_lines, ours, run_ours, run_theirs, send, waits,
};
use punctual_tests::{Ended, Scratch, assert_has, has_fair_qemu, is_alive, until};
use rustix::process::Signal;

/// The lines of a table that have a number, and the text before it.
fn table_of(text: &str) -> Vec<String> {
    masked_lines(text)
        .into_iter()
        .filter(|line| line.contains('#'))
        .collect()
}

#[test]
fn cyclicdeadline_has_the_lines_of_the_original() {
    if !punctual_skip::root() {
        return;
    }
    let scratch = Scratch::new();
    let file = scratch.path("threads.json").display().to_string();
    // A runtime of less than 2 ms needs more of the original.
    let options = ["-t2", "-i5000", "-s0", "-D1", "-q", "--json", &file];
    let written = |ended: Ended, what: &str| {
        assert_eq!(ended.status, Some(0), "{what}: {}", ended.stderr);
        let of_threads = |line: &&str| line.starts_with("T:");
        let lines: Vec<&str> = ended.stdout.lines().filter(of_threads).collect();
        assert_eq!(lines.len(), 2, "{what}: {}", ended.stdout);
        let masks: Vec<String> = lines.iter().map(|line| masked(line)).collect();
        let json = fs::read_to_string(&file).unwrap();
        let json: serde_json::Value = serde_json::from_str(&json.replace('\t', " ")).unwrap();
        let keys = |value: &serde_json::Value| -> Vec<String> {
            value.as_object().unwrap().keys().cloned().collect()
        };
        let first = lines[0].to_owned();
        (first, (masks, keys(&json), keys(&json["thread"]["1"])))
    };
    let ((line, ours), (other, theirs)) = (
        written(run_ours("cyclicdeadline", &options), "ours"),
        written(run_theirs("cyclicdeadline", &options), "theirs"),
    );
    assert_eq!(ours, theirs);
    assert!(are_as_wide(&line, &other), "{line}\n{other}");
    // One that is short, which the original refuses, and a limit that everything is above.
    let ended = run_ours("cyclicdeadline", &["-i1000", "-D5", "-q", "-b1"]);
    assert_eq!(ended.status, Some(0), "{}", ended.stderr);
    assert_has(
        &ended.stdout,
        &["interval: 600:1000", "# Break thread: ", "# Break value: "],
    );
}

#[test]
fn oslat_has_the_lines_of_the_original() {
    if !punctual_skip::root() {
        return;
    }
    let scratch = Scratch::new();
    for options in [
        &["-D1", "-c0"][..],
        &["-D1", "-q", "-b", "5", "-w", "memmove", "-m4K"],
        &["-D1", "-c0", "-s", "-f", "1", "-b8"],
    ] {
        let lines = |name: &str, of: fn(&str, &[&str]) -> Ended| {
            let file = scratch.path(name).display().to_string();
            let ended = of("oslat", &[options, &["--json", &file]].concat());
            assert_eq!(ended.status, Some(0), "{name}: {}", ended.stderr);
            let json = fs::read_to_string(file).unwrap();
            let json: serde_json::Value = serde_json::from_str(&json).unwrap();
            let keys = json.as_object().unwrap().keys().cloned();
            let thread = json["thread"]["0"].as_object().unwrap().keys().cloned();
            let mut table = table_of(&ended.stdout);
            // Theirs warns of what ours ends by itself.
            table.retain(|line| !line.starts_with("WARNING"));
            (table, keys.collect::<Vec<_>>(), thread.collect::<Vec<_>>())
        };
        assert_eq!(
            lines("ours", run_ours),
            lines("theirs", run_theirs),
            "{options:?}"
        );
    }
    let ended = run_ours("oslat", &["-D5", "-c0", "-T1"]);
    assert_eq!(ended.status, Some(1));
    assert_has(
        &ended.stderr,
        &["Trace threshold (1 us) triggered on cpu0 with "],
    );
}

#[test]
fn hackbench_prints_what_that_of_rt_tests_prints() {
    let cases: &[&[&str]] = &[
        &["-p", "-g1", "-l5"],
        &["-T", "-g2", "-l5"],
        &["-P", "-g1", "-l5", "-f4"],
        &["-i", "-g1", "-l5", "-f4"],
    ];
    for options in cases {
        let (ours, theirs) = (
            run_ours("hackbench", options),
            run_theirs("hackbench", options),
        );
        assert_eq!(ours.status, theirs.status, "{}", ours.stderr);
        let work = |text: &str| text.lines().take(2).map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(work(&ours.stdout), work(&theirs.stdout));
        assert_eq!(masked_lines(&ours.stdout), masked_lines(&theirs.stdout));
        // Both say milliseconds: so little work may be zero of them.
        for ended in [ours, theirs] {
            assert!(hackbench::read_time(&ended.stdout).is_ok());
        }
    }
}

/// Command lines of other people's scripts, and the output of both programs for them.
const LINES: &[(&str, &[&str], &str)] = &[
    (
        "hackbench",
        &["-s 100 -l 10 -g 3 -f 5", "-g1"],
        "with 1 groups using 40 file",
    ),
    (
        "hackbench",
        &["-g", "2", "-T", "25", "-l", "3"],
        "threaded mode with 2 groups",
    ),
    (
        "hackbench",
        &["-g", "2", "-l", "3", "7"],
        "with 2 groups using 40 file",
    ),
    (
        "hackbench",
        &["-l1", "2", "process", "10"],
        "with 10 groups using 40 file",
    ),
    (
        "hackbench",
        &["--thr", "--pip", "-g", "1", "-l", "3"],
        "threaded mode with 1 groups",
    ),
    (
        "hackbench",
        &["-g", "2x", "-l3"],
        "with 2 groups using 40 file",
    ),
    ("cyclictest", &["-q", "--int=500", "-l", "20"], "I:500 C:"),
    ("cyclictest", &["-q", "-l", "20", "--dur=1"], "T: 0 ("),
    (
        "cyclictest",
        &["-q", "-l", "20", "-i", "1000us"],
        "I:1000 C:",
    ),
    (
        "cyclictest",
        &["-q", "-l", "20", "--latency=PM_QOS"],
        "T: 0 (",
    ),
    (
        "cyclictest",
        &["-q", "-l", "20", "-c", "1", "-A", "500"],
        "T: 0 (",
    ),
    (
        "cyclictest",
        &["-D", "1", "-q", "-r", "-R", "--secaligned", "-s"],
        "T: 0 (",
    ),
    (
        "cyclictest",
        &["-D", "1", "-q", "--dbg_cyclictest"],
        "T: 0 (",
    ),
    ("cyclictest", &["-q", "-l", "20", "-D", "1m0s"], "T: 0 ("),
    ("cyclictest", &["-q", "-D", "1S"], "T: 0 ("),
    (
        "cyclictest",
        &["-S", "-a", "65535", "-l", "20", "-q"],
        "T: 0 (",
    ),
    (
        "cyclictest",
        &["-l", "20"],
        "policy: other/other: loadavg: ",
    ),
    (
        "cyclictest",
        &["-smp", "-p", "80", "-l", "20", "-q"],
        "P: 2 I:1000",
    ),
    (
        "cyclictest",
        &["-p", "80x", "-l", "20", "-q"],
        "P:80 I:1000",
    ),
    (
        "oslat",
        &["--dur", "1", "--cpu-list", "0"],
        "CPU list: \t\t0\n",
    ),
    ("oslat", &["-D", "1x"], "CPU list: \t\tall\n"),
];

#[test]
fn lines_of_other_peoples_scripts_do_what_they_do_with_the_originals() {
    if !punctual_skip::root() {
        return;
    }
    for (name, options, has) in LINES {
        for (whose, run) in [
            ("ours", run_ours as fn(&str, &[&str]) -> Ended),
            ("theirs", run_theirs),
        ] {
            let ended = run(name, options);
            assert_eq!(
                ended.status,
                Some(0),
                "{whose}: {name} {options:?}: {}",
                ended.stderr
            );
            assert!(
                ended.stdout.contains(has),
                "{whose}: {name} {options:?}: {}",
                ended.stdout
            );
        }
    }
    // What is not read as it stands is said.
    let told = |name: &str, options: &[&str]| run_ours(name, options).stderr;
    assert_has(
        &told(
            "cyclictest",
            &["-S", "-a", "1", "-t", "3", "-l5", "-q", "-i", "1000us"],
        ),
        &[
            "WARN: -a ignored due to smp mode",
            "WARN: -t ignored due to smp mode",
            "WARN: -i: \"1000us\" is read as 1000",
        ],
    );
    assert_has(
        &told("hackbench", &["-g1", "-l1", "20"]),
        &["WARN: \"20\" belongs to no option"],
    );
    // Both refuse these.
    for (name, option) in [("hackbench", "--p"), ("oslat", "-b4"), ("hackbench", "-g0")] {
        assert_eq!(run_ours(name, &[option]).status, Some(1), "{name} {option}");
        assert_eq!(
            run_theirs(name, &[option]).status,
            Some(1),
            "{name} {option}"
        );
    }
}

/// Runs a drop-in as an ordinary user with these limits. It is killed after a minute, which the
/// status then shows (137).
fn limited(name: &str, limits: &[&str], options: &[&str]) -> Ended {
    // The program must be where anybody may read it.
    let copy = Scratch::new();
    let program = copy.path(name);
    fs::copy(ours(name), &program).unwrap();
    let all = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(program.parent().unwrap(), all).unwrap();
    let mut command = Command::new("timeout");
    // A user that nobody else is, for RLIMIT_NPROC counts all of a user's.
    command.args([
        "-s",
        "KILL",
        "60",
        "setpriv",
        "--reuid=64999",
        "--regid=64999",
    ]);
    command.args(["--clear-groups", "prlimit"]).args(limits);
    Ended::of(command.arg(program).args(options))
}

#[test]
fn where_threads_cannot_be_made_a_program_ends_and_says_so() {
    if !punctual_skip::root() {
        return;
    }
    let few: &[&str] = &["--nproc=2:2"];
    let small: &[&str] = &["--memlock=8388608:8388608"];
    let cases: &[(&str, &[&str], &[&str])] = &[
        ("oslat", small, &["-D1"]),
        ("oslat", &["--nproc=1:1"], &["-D1"]),
        ("cyclictest", few, &["-q", "-t8", "-D1"]),
        ("cyclictest", small, &["-q", "-m", "-t64", "-D1"]),
        ("cyclicdeadline", few, &["-q", "-t8", "-D1"]),
        ("hackbench", few, &["-T", "-g1", "-l1"]),
        ("hackbench", few, &["-g1", "-l1"]),
        (
            "realfeel",
            &["--nproc=1:1"],
            &["--samples", "5", "--hertz", "64"],
        ),
        ("sendme", &["--nproc=1:1"], &["-l3"]),
    ];
    for (name, limits, options) in cases {
        let ended = limited(name, limits, options);
        assert_eq!(
            ended.status,
            Some(1),
            "{name} {limits:?} {options:?}: {}",
            ended.stderr
        );
        assert!(
            ended.stderr.contains(&format!("{name}: ")),
            "{name}: {}",
            ended.stderr
        );
    }
}

#[test]
fn a_killed_hackbench_takes_its_workers_along() {
    for signal in [Signal::INT, Signal::TERM] {
        kill_hackbench(signal);
    }
}

fn kill_hackbench(signal: Signal) {
    // Whoever started the tests in the background may have had them ignore Ctrl-C.
    let mut command = Command::new("env");
    let mut child = command
        .arg("--default-signal=INT,TERM")
        .arg(ours("hackbench"))
        .args(["-g10", "-l100000"])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut below = Vec::new();
    until("400 workers are there", || {
        below = punctual_tests::descendants(child.id());
        below.len() >= 400
    });
    send(child.id(), signal);
    child.wait().unwrap();
    until("all workers have ended", || {
        !below.iter().any(|(pid, _)| is_alive(*pid))
    });
}

#[test]
fn realfeel_writes_a_histogram_of_what_it_read() {
    if !punctual_skip::root() {
        return;
    }
    let scratch = Scratch::new();
    let path = scratch.path("rt.hist");
    let file = path.to_str().unwrap();
    let ended = run_ours("realfeel", &["--samples", "40", "--hertz", "64", file]);
    assert_eq!(ended.status, Some(0), "{}", ended.stderr);
    let bins = realfeel::read(&fs::read_to_string(&path).unwrap()).unwrap();
    let counted: u64 = bins.iter().map(|(_, count)| count).sum();
    let past = ended
        .stderr
        .lines()
        .find_map(|line| line.split_once(" past the histogram"));
    let past: u64 = past.map_or(0, |(past, _)| past.parse().unwrap());
    assert_eq!(counted + past, 40, "{}", ended.stderr);
    assert!(ended.stderr.starts_with("40 intervals"), "{}", ended.stderr);
    let (head, _) = ended.stdout.split_once("64 Hz\n").unwrap();
    assert_has(head, &[" MHz\nsecondsPerTick=0.0"]);
    assert!(
        ended
            .stdout
            .lines()
            .skip(4)
            .all(|line| line.ends_with(" msec"))
    );
    let jitters = realfeel::read_jitters(&ended.stdout).unwrap();
    assert_eq!(jitters.len(), 40, "{}", ended.stdout);
    // What a bin of 0.1 ms holds is what was printed, to the microsecond that is printed.
    let printed = jitters.iter().filter(|jitter| **jitter < 0.0995).count() as u64;
    let first = bins
        .iter()
        .find(|(bin, _)| *bin == 0)
        .map_or(0, |(_, count)| *count);
    assert!(printed <= first && first <= 40, "{printed} {first}");
    let ended = run_ours("realfeel", &["--samples", "5", "--hertz", "64"]);
    assert_eq!(realfeel::read_jitters(&ended.stdout).unwrap().len(), 5);
}

#[test]
fn realfeel_keeps_what_it_has_when_it_is_interrupted() {
    if !punctual_skip::root() {
        return;
    }
    let scratch = Scratch::new();
    let path = scratch.path("rt.hist");
    let mut command = Command::new(ours("realfeel"));
    let child = command
        .args(["--hertz", "64"])
        .arg(&path)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    until("a thread of it has read twenty times", || {
        waits(child.id()).iter().any(|waits| *waits > 20)
    });
    send(child.id(), Signal::INT);
    let ended = Ended::from(child.wait_with_output().unwrap());
    assert_eq!(ended.status, Some(0));
    assert_has(&ended.stderr, &[" intervals, jitter "]);
    assert!(
        !realfeel::read(&fs::read_to_string(&path).unwrap())
            .unwrap()
            .is_empty()
    );
}

#[test]
fn what_cannot_be_done_is_said_with_what_to_do() {
    let error = |name: &str, options: &[&str]| {
        let ended = run_ours(name, options);
        assert_eq!(
            ended.status,
            Some(1),
            "{name} {options:?}: {}",
            ended.stderr
        );
        assert!(
            ended.stderr.starts_with(&format!("{name}: ")),
            "{}",
            ended.stderr
        );
        ended.stderr
    };
    assert!(error("cyclictest", &["-U"]).contains("use -S"));
    assert!(error("cyclictest", &["-F", "/dev/null"]).contains("Error creating fifo /dev/null"));
    assert!(error("cyclicdeadline", &["-a0"]).contains("cpuset"));
    assert!(error("oslat", &["-b", "3"]).contains("5 to 1024"));
    assert!(error("realfeel", &["--hertz", "1000"]).contains("power of two"));
    assert!(error("realfeel", &["/no/such/directory/file"]).contains("/no/such"));
    if is_root() && !PathBuf::from("/dev/backfire").exists() {
        assert!(error("sendme", &["-l3"]).contains("modprobe backfire"));
    }
    let copy = Scratch::new();
    let public = copy.path("cyclictest");
    fs::copy(ours("cyclictest"), &public).unwrap();
    assert_refused_without_privileges(&public);
}

/// Checks that a program reports a missing privilege without any other right.
fn assert_refused_without_privileges(program: &Path) {
    let mut command = Command::new(program);
    if is_root() {
        // The program must be where anybody may read it.
        let directory = program.parent().unwrap();
        let all = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(directory, all).unwrap();
        command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
        command.arg(program);
    }
    let ended = Ended::of(command.args(["-q", "-l3", "-p80"]));
    assert_eq!(ended.status, Some(1), "{}", ended.stdout);
    assert_has(&ended.stderr, &["run as root"]);
    assert!(
        !ended.stdout.contains("T: 0"),
        "nothing was measured: {}",
        ended.stdout
    );
}

#[test]
fn they_run_in_a_guest_too() {
    const SUITE: &str = r#"
        modules = ["backfire", "pulse", "stall"]
        [[step]]
        probe = "program"
        run = ["punctual-target", "cyclictest", "-q", "-l200", "-i1000", "-p80"]
        [[step]]
        probe = "program"
        run = ["punctual-target", "sendme", "-i1000", "-p80", "-l50"]
    "#;
    let scratch = Scratch::new();
    let suite = &scratch.suite("drop-ins", &[], SUITE);
    let run = scratch.run(&["run", suite, "--kernel", "debian-6.12", "--quiet", "--json"]);
    let run = &punctual_tests::runs(&run.stdout)[0];
    let text = run["recordings"][0]["output"].as_str().unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("T:"));
    let line = ThreadLine::read(1, line.expect(text)).unwrap();
    // Virtual time: each cycle is due when it should be, and late by some microseconds.
    assert_eq!((line.cycles, line.interval_us), (200, 1_000));
    assert!((1..100).contains(&line.max), "{text}");
    let absent = run["unsupported"].as_array().unwrap();
    if absent.is_empty() {
        let text = run["recordings"][1]["output"].as_str().unwrap_or_default();
        let travel = punctual_formats::sendme::read(text).unwrap();
        assert_eq!(travel.samples, 50);
        assert!(travel.from.max < 100, "{text}");
    } else {
        let reason = absent[0]["reason"].as_str().unwrap();
        assert_has(reason, &["backfire"]);
        punctual_skip::skip(reason);
    }
}

/// A guest of one CPU has nothing below its kernel that could take time from it. A guest of two
/// has: the turns of the other CPU, which are to it what a hypervisor is to a real machine.
#[test]
fn hwlatdetect_finds_what_is_below_the_kernel_and_nothing_else() {
    const SUITE: &str = r#"
        [[step]]
        probe = "program"
        run = ["sh", "-c", "punctual-target hwlatdetect --duration 2 --threshold 2us 2>&1 || true; echo instances; ls /sys/kernel/tracing/instances || true"]
    "#;
    if !has_fair_qemu() {
        return;
    }
    let scratch = Scratch::new();
    let suite = &scratch.suite("hwlat", &[], SUITE);
    let said = |cpus: &str, kernel: &str| {
        let words = [
            "run", suite, "--kernel", kernel, "--cpus", cpus, "--quiet", "--json",
        ];
        let ended = scratch.run(&words);
        let runs = punctual_tests::runs(&ended.stdout);
        runs[0]["recordings"][0]["output"]
            .as_str()
            .expect(&ended.stderr)
            .to_owned()
    };
    let alone = said("1", "debian-6.12-rt");
    assert_has(
        &alone,
        &[
            "Latency threshold: 2us",
            "Below threshold",
            "Samples recorded: 0\n",
        ],
    );
    // The sample of each second, but for a first one that the tracer may begin with.
    let beside = said("2", "debian-6.12-rt");
    let recorded = beside
        .lines()
        .find_map(|line| line.strip_prefix("Samples recorded: "));
    let recorded: usize = recorded.expect(&beside).parse().unwrap();
    assert!((1..=3).contains(&recorded), "{beside}");
    assert_eq!(beside.matches("\nts: ").count(), recorded, "{beside}");
    assert!(!beside.contains("Max Latency: Below"), "{beside}");
    // Neither has left anything.
    for said in [&alone, &beside] {
        let (_, left) = said.split_once("\ninstances\n").expect(said);
        assert_eq!(left.trim(), "", "{said}");
    }
    // Debian's other flavour has no such tracer, and says so.
    let without = said("1", "debian-6.12");
    assert_has(&without, &["CONFIG_HWLAT_TRACER", "--probe noise"]);
}

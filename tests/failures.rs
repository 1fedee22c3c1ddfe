// SPDX-License-Identifier: MIT OR Apache-2.0
//! Failures give a clear error, lose nothing, and leave nothing behind.

use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use punctual_tests::{Ended, Scratch, assert_has, is_alive, programs, qemus_of, runs, until};
use rustix::process::{Pid, Signal, kill_process};

/// A suite whose first step is soon over, and whose second would take for ever.
const LONG: &str = r#"
[[step]]
probe = "timer"
samples = 50
[[step]]
probe = "timer"
load = "stress"
samples = 1000000000
"#;

/// Five runs of `demo`: one for each seed.
const GUESTS: [&str; 4] = ["run", "demo", "--subject", "rt"];

fn fails(scratch: &Scratch, arguments: &[&str], expected: &[&str]) -> String {
    let ended = scratch.run(arguments);
    assert_eq!(ended.status, Some(1), "{arguments:?}: {}", ended.stderr);
    for text in expected {
        assert!(
            ended.stderr.contains(text),
            "expected {text}: {}",
            ended.stderr
        );
    }
    ended.stderr
}

#[test]
fn a_kernel_that_is_none_is_refused() {
    let scratch = Scratch::with_new_cache();
    let text = &scratch.file("vmlinuz", "This is a text.\n".repeat(1000));
    fails(
        &scratch,
        &["kernel", "add", "--id", "text", text],
        &["vmlinuz", "expected"],
    );
    let arm = &scratch.file(
        "Image",
        [&b"MZ\0\x91"[..], &[0; 52], b"ARMd", &[0; 4096]].concat(),
    );
    fails(
        &scratch,
        &["kernel", "add", "--id", "arm", arm],
        &["expected", "arm64"],
    );
    let ended = scratch.run(&["kernel", "add", "--id", "none", "/nowhere"]);
    assert_eq!(ended.status, Some(2), "{}", ended.stderr);
    let none = "/nowhere: expected a file, found none of this name";
    assert_has(&ended.stderr, &[none]);
    let ended = scratch.run(&["run", "demo", "--kernel", "text"]);
    assert_eq!(ended.status, Some(2), "{}", ended.stderr);
    assert_has(&ended.stderr, &["punctual kernel add --id text"]);
}

#[test]
fn a_guest_that_panics_ends_its_run_at_once_with_its_last_words() {
    let scratch = Scratch::new();
    let no_init = [&GUESTS[..], &["--boot", "rdinit=/nowhere"]].concat();
    let said = fails(
        &scratch,
        &no_init,
        &[
            "the kernel has panicked",
            "| ",
            "Kernel panic - not syncing",
        ],
    );
    // It would do so with each seed.
    assert_eq!(said.matches(": boots").count(), 1, "{said}");
    assert_eq!(said.matches("Call Trace").count(), 1, "{said}");
    for id in ["r1", "r5"] {
        let runs = runs(&scratch.run(&["show", id, "--json"]).stdout);
        assert_eq!(runs[0]["state"], "failed");
        assert!(runs[0]["digest"].is_null(), "half a run has no digest");
        let console = scratch.run(&["show", id, "--console"]).stdout;
        assert!(console.contains("Kernel panic"), "the console is kept");
    }
}

#[test]
fn a_guest_with_too_little_memory_says_so() {
    let scratch = Scratch::new();
    fails(
        &scratch,
        &[&GUESTS[..], &["--memory", "40"]].concat(),
        &["memory", "| "],
    );
}

#[test]
fn a_silent_guest_is_ended() {
    let scratch = Scratch::new();
    let suite = LONG.replace("samples = 1000000000", "samples = 20000");
    let suite = suite.replace(
        "probe = \"timer\"\nload = \"stress\"",
        "probe = \"hackbench\"\ngroups = 50\nloops = 10000",
    );
    let suite = suite.replace("samples = 20000", "samples = 9");
    let suite = &scratch.suite("silent", &["rt"], &suite);
    fails(
        &scratch,
        &["run", suite, "--patience", "3"],
        &["said nothing", "--patience"],
    );
}

#[test]
fn a_missing_qemu_is_named_with_the_way_to_get_it() {
    let scratch = Scratch::new();
    let ended = Ended::of(scratch.punctual(&["run", "demo"]).env("PATH", "/nowhere"));
    assert_eq!(ended.status, Some(1));
    assert_has(&ended.stderr, &["apt-get install qemu-system-x86"]);
}

#[test]
fn a_missing_target_program_is_named_with_the_way_to_get_it() {
    let scratch = Scratch::new();
    let mut command = scratch.punctual(&["run", "demo"]);
    let ended = Ended::of(command.env("PUNCTUAL_TARGET", "/nowhere/punctual-target"));
    assert_eq!(ended.status, Some(1));
    assert_has(&ended.stderr, &["./build", "PUNCTUAL_TARGET"]);
    for (probe, variable) in [("timer", "PUNCTUAL_TARGET"), ("packet", "PUNCTUAL_WIRE")] {
        let mut command = scratch.punctual(&["run", "--probe", probe, "--bench", "host"]);
        let ended = Ended::of(command.env(variable, "/nowhere/program"));
        assert_eq!(ended.status, Some(1), "{}", ended.stderr);
        let expected = "/nowhere/program: expected the program that measures, found no such file";
        let remedy = format!("or name it by {variable}");
        assert_has(&ended.stderr, &[expected, &remedy]);
    }
    assert_eq!(scratch.run(&["runs"]).stdout, "", "nothing was begun");
}

#[test]
fn a_full_disk_is_said_and_what_was_measured_is_shown() {
    let scratch = Scratch::new();
    let suite = LONG
        .replace("1000000000", "25000")
        .replace("stress", "idle");
    let suite = &scratch.suite("long", &["rt"], &suite);
    // The store may grow to 256 KiB, in which the first step fits and the second does not.
    let script = "trap '' XFSZ; ulimit -f 512; exec \"$0\" \"$@\"";
    let with_little_room = |scratch: &Scratch, words: &[&str]| {
        let mut command = Command::new("sh");
        command
            .args(["-c", script])
            .arg(programs().join("punctual"))
            .args(words);
        scratch.prepare(&mut command);
        Ended::of(&mut command)
    };
    let ended = with_little_room(&scratch, &["run", suite, "--json"]);
    assert_eq!(ended.status, Some(1), "{}", ended.stderr);
    assert_has(&ended.stderr, &["disk is full"]);
    let shown = &runs(&ended.stdout)[0];
    assert_eq!(shown["recordings"][1]["count"], 25_000);
    // What fitted is there, and can be read.
    let stored = &runs(&scratch.run(&["show", "r1", "--json"]).stdout)[0];
    assert_eq!(stored["recordings"][0], shown["recordings"][0]);
    assert_eq!(stored["state"], "interrupted");
    // No verdict rests on what nobody can look up.
    let other = Scratch::new();
    let limit = "[[limit]]\nprobe = \"timer\"\nwhat = \"worst\"\nat_most = \"1 s\"\n";
    let limits = other.file("limits.toml", limit);
    let judge = [
        "judge", suite, "--limits", &limits, "--seeds", "1", "--quiet",
    ];
    let ended = with_little_room(&other, &judge);
    assert_eq!(
        (ended.status, &*ended.stdout),
        (Some(1), ""),
        "{}",
        ended.stderr
    );
    assert_has(&ended.stderr, &["disk is full"]);
}

/// Starts a long run, and waits until its second step is under way.
fn begin_long_run(scratch: &Scratch) -> (Child, Vec<u32>) {
    let suite = &scratch.suite("long", &["rt"], LONG);
    let mut command = scratch.punctual(&["run", suite]);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .unwrap();
    let progress = BufReader::new(child.stderr.take().unwrap());
    let mut lines = progress.lines().map_while(Result::ok);
    assert!(
        lines.any(|line| line.contains("2/2  timer / stress")),
        "it has begun"
    );
    // Who reads no further must not make the writer fail.
    thread::spawn(move || lines.count());
    let qemus = qemus_of(child.id());
    assert_eq!(qemus.len(), 1);
    (child, qemus)
}

fn signal(child: &Child, signal: Signal) {
    let pid = Pid::from_raw(child.id() as i32).unwrap();
    kill_process(pid, signal).unwrap();
}

fn assert_gone(qemus: &[u32]) {
    until("QEMU has ended", || !qemus.iter().any(|pid| is_alive(*pid)));
}

fn assert_kept_what_it_had(scratch: &Scratch) {
    let run = &runs(&scratch.run(&["show", "r1", "--json"]).stdout)[0];
    assert_eq!(run["state"], "interrupted");
    assert_eq!(run["recordings"][0]["count"], 50);
    assert!(run["digest"].is_null());
    assert!(run["provenance"]["release"].is_string());
    assert!(scratch.run(&["show", "r1"]).stdout.contains("interrupted"));
}

#[test]
fn ctrl_c_ends_a_run_in_good_order() {
    for ending in [Signal::INT, Signal::TERM] {
        let scratch = Scratch::new();
        let (child, qemus) = begin_long_run(&scratch);
        signal(&child, ending);
        let ended: Ended = child.wait_with_output().unwrap().into();
        assert_eq!(ended.status, Some(3));
        assert_has(&ended.stdout, &["interrupted"]);
        // What was measured until then is shown.
        assert_has(&ended.stdout, &["timer, idle, cpu0"]);
        assert_gone(&qemus);
        assert_kept_what_it_had(&scratch);
    }
}

/// How long the interrupted step measured depends on the host: the wait grows until it has measured
/// at all.
#[test]
fn ctrl_c_keeps_the_samples_of_the_step_that_it_ends() {
    for seconds in [1, 4, 16, 64] {
        let scratch = Scratch::new();
        let (child, qemus) = begin_long_run(&scratch);
        thread::sleep(Duration::from_secs(seconds));
        signal(&child, Signal::INT);
        let ended: Ended = child.wait_with_output().unwrap().into();
        assert_eq!(ended.status, Some(3));
        assert_gone(&qemus);
        let run = &runs(&scratch.run(&["show", "r1", "--json"]).stdout)[0];
        assert_eq!(run["state"], "interrupted");
        assert!(run["unsupported"].as_array().unwrap().is_empty());
        let kept = run["recordings"].as_array().unwrap();
        if let Some(cut_short) = kept.get(1) {
            assert_eq!(cut_short["load"], "stress");
            assert!(cut_short["count"].as_u64().unwrap() > 0);
            return;
        }
    }
    panic!("nothing was ever kept");
}

#[test]
fn a_killed_run_leaves_no_qemu_and_keeps_what_it_had() {
    let scratch = Scratch::new();
    let (mut child, qemus) = begin_long_run(&scratch);
    signal(&child, Signal::KILL);
    child.wait().unwrap();
    assert_gone(&qemus);
    assert_kept_what_it_had(&scratch);
    assert_eq!(
        scratch.run(&["remove", "r1"]).status,
        Some(0),
        "nobody owns it any more"
    );
}

#[test]
fn a_killed_qemu_is_an_error_that_keeps_what_there_was() {
    let scratch = Scratch::new();
    let (child, qemus) = begin_long_run(&scratch);
    kill_process(Pid::from_raw(qemus[0] as i32).unwrap(), Signal::KILL).unwrap();
    let ended: Ended = child.wait_with_output().unwrap().into();
    assert_eq!(ended.status, Some(1));
    let run = &runs(&scratch.run(&["show", "r1", "--json"]).stdout)[0];
    assert_eq!(run["state"], "failed");
    assert!(
        run["error"].as_str().unwrap().contains("signal 9"),
        "{}",
        run["error"]
    );
    assert_eq!(run["recordings"][0]["count"], 50);
}

#[test]
fn a_damaged_snapshot_is_made_anew() {
    let scratch = Scratch::with_new_cache();
    let suite = &scratch.suite("long", &["rt"], &LONG.replace("1000000000", "50"));
    let expected = punctual_tests::digests(&scratch.measure(&[suite]));
    let snapshots = scratch.path("cache/punctual/snapshots");
    let directory = std::fs::read_dir(snapshots)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.is_dir())
        .unwrap();
    let devices = directory.join("devices");
    let mut bytes = std::fs::read(&devices).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&devices, bytes).unwrap();
    assert_eq!(
        punctual_tests::digests(&scratch.measure(&[suite])),
        expected
    );
}

#[test]
fn ctrl_c_ends_a_survey_at_once_and_tells_how_far_it_was() {
    let scratch = Scratch::new();
    let suite = &scratch.suite("long", &["rt"], &LONG.replace("1000000000", "300"));
    scratch.measure(&[suite]);
    let mut child = scratch
        .punctual(&["survey", "r1"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .unwrap();
    let mut progress = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(
        progress.any(|line| line.unwrap().contains("2/2  timer / stress")),
        "it has begun"
    );
    let qemus = qemus_of(child.id());
    signal(&child, Signal::INT);
    let rest: Vec<String> = progress.map_while(Result::ok).collect();
    let ended: Ended = child.wait_with_output().unwrap().into();
    assert_eq!(ended.status, Some(3), "{rest:?}");
    assert!(rest.join("\n").contains("in step 2/2"), "{rest:?}");
    assert!(
        ended.stdout.is_empty(),
        "a survey of a part would look like one of all"
    );
    assert_gone(&qemus);
}

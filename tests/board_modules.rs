// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kernel modules on a board that has a compiler and the headers of its kernel, a guest of QEMU.
//! They are built there, and loaded for as long as a job runs, whoever is gone.
//!
//! An emulated compiler takes minutes, so this needs `PUNCTUAL_LONG=1`.

use std::fs::File;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Stdio};

use punctual_model::Run;
use punctual_model::run::State;
use punctual_store::Store;
use punctual_tests::board::{Board, DIRECTORY};
use punctual_tests::{Ended, assert_has, descendants, until};
use rustix::process::{Pid, Signal, kill_process};

/// A suite of probes that need a module each.
const SUITE: &str = r#"
name = "modules"
summary = "what needs kernel modules"
modules = ["backfire", "pulse"]
[[step]]
probe = "signal"
samples = 100
interval_us = 5000
[[step]]
probe = "irq"
source = "ipi"
interval_us = 5000
"#;

/// More samples than any run here takes.
const ENDLESS: u64 = 100_000_000;

#[test]
fn modules_are_built_there_and_loaded_for_a_job() {
    if !punctual_skip::long("PUNCTUAL_LONG") {
        return;
    }
    let Some(board) = Board::with_compiler() else {
        return;
    };
    are_built_once(&board);
    are_unloaded_when_nobody_is_there(&board);
    are_unloaded_when_all_is_killed(&board);
    are_left_alone_where_others_have_loaded_them(&board);
    are_refused_with_the_reason(&board);
}

/// The command line that measures this many interrupts.
fn words<'a>(suite: &'a str, bench: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let fixed = ["run", suite, "--build-modules", "--bench", bench];
    // However long it takes to build.
    [&fixed[..], &["--patience", "3600"], more].concat()
}

fn suite(board: &Board, samples: u64) -> String {
    let text = format!("{SUITE}samples = {samples}\n");
    board.scratch.file(&format!("{samples}.toml"), text)
}

/// Measures to the end.
fn measure(board: &Board, samples: u64, more: &[&str]) -> Ended {
    let (suite, bench) = (suite(board, samples), Board::bench());
    Ended::of(&mut board.punctual(&words(&suite, &bench, more)))
}

/// Begins the same measurement.
fn begin(board: &Board, samples: u64) -> Child {
    let (suite, bench) = (suite(board, samples), Board::bench());
    let mut command = board.punctual(&words(&suite, &bench, &["--quiet"]));
    let stderr = File::create(board.scratch.path("stderr")).unwrap();
    command.stdout(Stdio::null()).stderr(stderr);
    command.process_group(0).spawn().unwrap()
}

/// Kills a workstation, with its clients of `ssh`.
fn kill(mut punctual: Child) {
    let clients = descendants(punctual.id());
    punctual.kill().unwrap();
    punctual.wait().unwrap();
    for (pid, _) in clients {
        // It may have ended with its parent.
        let _ = kill_process(Pid::from_raw(pid as i32).unwrap(), Signal::KILL);
    }
}

/// All runs, the oldest first.
fn runs(board: &Board) -> Vec<Run> {
    let store = Store::open(&board.scratch.path("data/punctual/runs.db")).unwrap();
    let mut runs = store.list().unwrap();
    runs.sort_by_key(|run| run.id[1..].parse::<u64>().unwrap());
    runs.iter()
        .map(|run| store.load(&run.id).unwrap())
        .collect()
}

fn last_run(board: &Board) -> Run {
    runs(board).pop().expect("it is stored")
}

fn assert_measured(run: &Run) {
    assert_eq!(run.state, State::Finished, "{:?}", run.error);
    assert!(run.unsupported.is_empty(), "{:?}", run.unsupported);
    for probe in ["signal", "irq"] {
        let mut own = run.recordings.iter().filter(|one| one.key.probe == probe);
        assert!(own.any(|one| one.count > 0), "{probe}");
    }
}

/// Punctual's modules that are loaded there.
fn loaded(board: &Board) -> Vec<String> {
    let names = board.answer("lsmod | cut -d ' ' -f 1 | grep -E '^(backfire|pulse|stall)$'; :");
    let mut names: Vec<String> = names.lines().map(str::to_owned).collect();
    names.sort();
    names
}

fn wait_for_none(board: &Board) {
    until("none is loaded", || loaded(board).is_empty());
}

/// Waits until the threaded handlers of a job are at work.
fn wait_for_both(board: &Board, child: &mut Child) {
    until("both are loaded", || {
        assert!(child.try_wait().unwrap().is_none(), "it has ended");
        loaded(board) == ["backfire", "pulse"] && is_begun(board)
    });
}

fn is_begun(board: &Board) -> bool {
    board
        .ask(&format!("cat {DIRECTORY}/jobs/*/process"))
        .is_some()
}

fn are_built_once(board: &Board) {
    let first = measure(board, 100, &[]);
    assert_eq!(first.status, Some(0), "{}", first.stderr);
    assert_has(
        &first.stderr,
        &["building kernel modules", "backfire, pulse"],
    );
    assert_measured(&last_run(board));
    wait_for_none(board);
    let left = board.answer(&format!("cd {DIRECTORY} && ls && ls modules-*"));
    let left: Vec<&str> = left.lines().skip(1).collect();
    assert_eq!(left[1..], ["backfire.ko", "kernel", "pulse.ko"], "{left:?}");
    // Two jobs, one right behind the other.
    let again = measure(board, 100, &["--seeds", "2..3"]);
    assert_eq!(again.status, Some(0), "{}", again.stderr);
    assert!(!again.stderr.contains("building"), "{}", again.stderr);
    let runs = runs(board);
    assert_eq!(runs.len(), 3);
    runs.iter().for_each(assert_measured);
    wait_for_none(board);
}

fn are_unloaded_when_nobody_is_there(board: &Board) {
    let mut child = begin(board, 2_000);
    wait_for_both(board, &mut child);
    kill(child);
    board.kill_sessions();
    until("it has ended by itself", || {
        board
            .ask(&format!("cat {DIRECTORY}/jobs/*/ended"))
            .is_some()
    });
    wait_for_none(board);
    let resumed = measure(board, 2_000, &["--quiet", "--resume"]);
    assert_eq!(resumed.status, Some(0), "{}", resumed.stderr);
    assert_measured(&last_run(board));
    wait_for_none(board);
}

fn are_unloaded_when_all_is_killed(board: &Board) {
    let mut child = begin(board, ENDLESS);
    wait_for_both(board, &mut child);
    kill(child);
    board.kill_sessions();
    assert_eq!(loaded(board), ["backfire", "pulse"]);
    // The supervisor and the target.
    board.answer(&format!(
        "read -r a b _ <\"$(ls {DIRECTORY}/jobs/*/process)\" && kill -9 $a $b"
    ));
    wait_for_none(board);
    board.answer(&format!("rm -rf {DIRECTORY}/jobs"));
}

fn are_left_alone_where_others_have_loaded_them(board: &Board) {
    board.answer(&format!("insmod {DIRECTORY}/modules-*/pulse.ko"));
    let ended = measure(board, 100, &["--quiet"]);
    assert_eq!(ended.status, Some(0), "{}", ended.stderr);
    assert_measured(&last_run(board));
    until("one of them is loaded", || loaded(board) == ["pulse"]);
    board.answer("rmmod pulse");
}

fn are_refused_with_the_reason(board: &Board) {
    board.answer(&format!(
        "cd {DIRECTORY}/modules-* && echo 'this is no module' >backfire.ko"
    ));
    let ended = measure(board, 100, &[]);
    assert_eq!(ended.status, Some(3), "{}", ended.stderr);
    assert_has(
        &ended.stderr,
        &["no kernel module backfire: the kernel refuses it"],
    );
    let reasons = last_run(board).unsupported;
    let reasons: Vec<String> = reasons.iter().map(|one| one.reason.to_string()).collect();
    assert_has(
        &reasons.join("\n"),
        &["/dev/backfire", "the kernel refuses it"],
    );
    wait_for_none(board);
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The scope explains the outcome, or says why it cannot; and nothing is lost either way.

use std::fs;
use std::process::Command;

use punctual_model::{MachineRecord, Run};
use punctual_store::{End, Store};
use punctual_tests::{Ended, Scratch, explained, programs, user_cache};
use serde_json::Value;

/// Checks that the worst sample of a run is explained; it is the run's worst.
fn explain(scratch: &Scratch, run: &str) {
    let explained = explained::explain(scratch, &[run]);
    let shown = scratch.run(&["show", run, "--json"]);
    let shown: Value = serde_json::from_str(&shown.stdout).expect("JSON");
    let sample = &explained::samples(&explained)[0];
    assert_eq!(sample["late_ns"], shown["runs"][0]["recordings"][0]["max"]);
    explained::check_sum(sample);
}

fn suite(scratch: &Scratch) -> String {
    let step = "[[step]]\nprobe = \"timer\"\nsamples = 20\n";
    scratch.suite("one", &["rt"], step)
}

fn one_run(scratch: &Scratch) {
    scratch.measure(&[&suite(scratch)]);
}

/// Checks that a command reports something impossible.
fn refused(ended: &Ended, words: &[&str]) {
    told(ended, 1, words);
}

/// Checks that a command reports something missing.
fn not_there(ended: &Ended, words: &[&str]) {
    told(ended, 2, words);
}

fn told(ended: &Ended, status: i32, words: &[&str]) {
    assert_eq!(ended.status, Some(status), "{}", ended.stderr);
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

    // What there is not is told with what there is.
    let misspelt = scratch.run(&["explain", "r1", "--probe", "tmer"]);
    not_there(&misspelt, &["no recording with", "timer / idle"]);
    let beyond = scratch.run(&["explain", "r1", "--sample", "20"]);
    not_there(&beyond, &["no sample 20: expected one of 0 to 19"]);

    // All is still there, and can be explained.
    explain(&scratch, "r1");
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
    // Its lock has been asked for: the directory is there again.
    fs::remove_dir_all(cache.join("initramfs")).unwrap();
    fs::rename(cache.join("gone"), cache.join("initramfs")).unwrap();
    let removed = scratch.run(&["kernel", "remove", "debian-6.12-rt"]);
    assert_eq!(removed.status, Some(0), "{}", removed.stderr);
    refused(&scratch.run(&["explain", "r1"]), &["debian-6.12-rt"]);
    assert_eq!(scratch.run(&["show", "r1"]).status, Some(0));
    assert!(user_cache().is_dir());
}

/// Stores the first run once more, with a change; returns its name.
fn stored_anew(scratch: &Scratch, change: impl FnOnce(&mut Run)) -> String {
    let store = Store::open(&scratch.path("data/punctual/runs.db")).expect("the store");
    let mut run = store.load("r1").expect("the run");
    change(&mut run);
    let id = store.begin(&run).expect("a run");
    let provenance = run.provenance.as_ref().expect("its provenance");
    store.set_provenance(&id, provenance).unwrap();
    for step in &run.steps {
        store.add_step(&id, step).unwrap();
    }
    for recording in &run.recordings {
        store.put_recording(&id, recording).unwrap();
    }
    let digest = run.digest();
    let end = End {
        state: run.state,
        error: None,
        finished: run.finished.as_deref().unwrap_or_default(),
        console: &run.console,
        digest: digest.as_deref(),
    };
    store.end(&id, &end).unwrap();
    id
}

#[test]
fn a_run_that_comes_out_otherwise_is_not_explained() {
    let scratch = Scratch::new();
    one_run(&scratch);
    let id = &stored_anew(&scratch, |run| {
        run.plan = run.plan.replace("seed = 1", "seed = 2");
    });
    let ended = scratch.run(&["explain", id]);
    refused(&ended, &["is not what comes out", "timer / idle / cpu0"]);
    refused(&scratch.run(&["survey", id]), &["is not what comes out"]);
}

/// A measurement that was not possible is a part of the outcome.
#[test]
fn a_run_that_lacked_something_else_is_not_surveyed() {
    let scratch = Scratch::new();
    let steps = "[[step]]\nprobe = \"signal\"\nsamples = 20\n";
    let suite = fs::read_to_string(suite(&scratch)).unwrap() + steps;
    let suite = scratch.file("two.toml", suite);
    let ended = scratch.run(&["run", "--quiet", &suite]);
    assert_eq!(ended.status, Some(3), "{}", ended.stderr);
    let survey = scratch.run(&["survey", "r1"]);
    assert_eq!(survey.status, Some(0), "{}", survey.stderr);
    let id = &stored_anew(&scratch, |run| run.unsupported.clear());
    let survey = scratch.run(&["survey", id]);
    refused(&survey, &["is not what comes out", "the digest differs"]);
}

#[test]
fn a_run_of_another_qemu_is_not_explained() {
    let scratch = Scratch::new();
    one_run(&scratch);
    let id = &stored_anew(&scratch, |run| {
        let MachineRecord::Virtual(machine) = &mut run.machine else {
            panic!("{:?}", run.machine);
        };
        machine.qemu = machine.qemu.replace("emulator version", "emulator v");
    });
    let ended = scratch.run(&["explain", id]);
    refused(&ended, &["qemu was QEMU emulator v ", "measure again"]);
}

/// A run is repeated with its own guest, whatever the program is now.
#[test]
fn a_run_of_another_program_revision_is_repeated_with_its_own_program() {
    if !punctual_skip::long("PUNCTUAL_LONG") {
        return;
    }
    let scratch = Scratch::new();
    let target = fs::read(programs().join("punctual-target")).unwrap();
    // The same program in another file.
    let other = [target.as_slice(), b"another revision"].concat();
    run_with(&scratch, &other);
    // One that does not tell when it takes its samples.
    run_with(&scratch, &without_markers(target));
    one_run(&scratch);
    explain(&scratch, "r1");
    refused(
        &scratch.run(&["explain", "r2"]),
        &["1 of the chosen samples did not come by", "measure again"],
    );
    let survey = scratch.run(&["survey", "r2"]);
    refused(
        &survey,
        &["did not mark where its plan ends", "measure again"],
    );
    explain(&scratch, "r3");
}

/// Makes a run with another target.
fn run_with(scratch: &Scratch, target: &[u8]) {
    let path = scratch.file("punctual-target", target);
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&path, mode).unwrap();
    let mut command: Command = scratch.punctual(&["run", &suite(scratch), "--quiet"]);
    let ended = Ended::of(command.env("PUNCTUAL_TARGET", path));
    assert_eq!(ended.status, Some(0), "{}", ended.stderr);
}

/// Replaces each marker with a plain `nop` of the same length.
fn without_markers(mut target: Vec<u8>) -> Vec<u8> {
    const NOP: [u8; 3] = [0x0f, 0x1f, 0x80];
    let is_marker = |at: &usize| {
        let code = &target[*at..*at + 7];
        code.starts_with(&NOP) && code.ends_with(&[0x50, 0x4e, 0x43])
    };
    let markers: Vec<usize> = (0..target.len() - 7).filter(is_marker).collect();
    assert!(markers.len() >= 4, "{markers:?}");
    for at in markers {
        target[at + 3..at + 7].fill(0);
    }
    target
}

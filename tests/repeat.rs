// SPDX-License-Identifier: MIT OR Apache-2.0
//! "To repeat it": the instructions on a page, followed word for word, give the same digests.

use std::fs;
use std::process::Command;

use punctual_tests::{Ended, Scratch, digests, programs, runs};

/// A step of some periods.
const SMALL: &str = "[[step]]\nprobe = \"timer\"\nload = \"ls-recursive\"\n";

/// The commands on a page, as a reader would copy them.
fn commands(page: &str) -> Vec<String> {
    let (_, rest) = page.split_once("To repeat it</h2>").expect("the chapter");
    let (_, rest) = rest.split_once("<pre>").expect("its commands");
    let (block, _) = rest.split_once("</pre>").expect("their end");
    let plain = block
        .replace("&quot;", "\"")
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&");
    plain.lines().map(str::to_owned).collect()
}

/// Measures, then follows the page; returns the digests of both, and the commands.
fn measured_twice(arguments: &[&str]) -> (Vec<String>, Vec<String>, Vec<String>) {
    let scratch = Scratch::new();
    let page = scratch.path("page.html");
    let report = ["--quiet", "--json", "--report", page.to_str().unwrap()];
    let first = scratch.run(&[&["run"], arguments, &report].concat());
    assert_eq!(first.status, Some(0), "{}", first.stderr);
    let of = |text: &str| -> Vec<String> {
        let digests = digests(&runs(text)).into_iter();
        digests.map(|(_, digest)| digest).collect()
    };
    let commands = commands(&fs::read_to_string(page).unwrap());
    let again = Scratch::new();
    let mut found = Vec::new();
    for command in &commands {
        let mut shell = Command::new("sh");
        let path = format!("PATH={}:$PATH; ", programs().display());
        again.prepare(shell.args(["-c", &format!("{path}{command} --quiet --json")]));
        let ended = Ended::of(&mut shell);
        assert_eq!(ended.status, Some(0), "{command}: {}", ended.stderr);
        found.extend(of(&ended.stdout));
    }
    (of(&first.stdout), found, commands)
}

#[test]
fn what_a_page_says_repeats_its_runs() {
    let scratch = Scratch::new();
    let suite = scratch.suite("small", &["rt"], SMALL);
    let (first, again, commands) = measured_twice(&[
        &suite,
        "--samples",
        "50",
        "--memory",
        "256",
        "--ns-per-insn",
        "2",
        "--seeds",
        "2..3",
    ]);
    assert_eq!((first.len(), commands.len()), (2, 1), "{commands:?}");
    assert_eq!(first, again, "{commands:?}");
    // The command says what matters: with another size the digests are others.
    let other = measured_twice(&[&suite, "--samples", "49", "--seed", "2"]).0;
    assert!(other.iter().all(|digest| !first.contains(digest)));
}

#[test]
fn a_run_without_a_suite_and_on_other_boot_arguments_is_repeated_too() {
    if !punctual_skip::long("PUNCTUAL_LONG") {
        return;
    }
    let (first, again, commands) = measured_twice(&[
        "--probe",
        "timer",
        "--load",
        "stress",
        "--samples",
        "60",
        "--kernel",
        "debian-6.12",
        "--boot",
        "preempt=none nohz=off",
        "--boot",
        "preempt=full",
    ]);
    assert_eq!(first.len(), 2, "{commands:?}");
    assert_eq!(first, again, "{commands:?}");
}

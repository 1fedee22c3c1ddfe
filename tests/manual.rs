// SPDX-License-Identifier: MIT OR Apache-2.0
//! The manual: a page for each command and program, of this build, without warnings.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use punctual_tests::{Ended, Scratch, programs};

/// All pages that `./build` made.
fn pages() -> Vec<PathBuf> {
    let sections = ["man1", "man4", "man8"].map(|section| programs().join("man").join(section));
    let entries = sections
        .iter()
        .flat_map(|section| fs::read_dir(section).unwrap());
    let mut pages: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    pages.sort();
    pages
}

#[test]
fn every_page_is_clean() {
    let pages = pages();
    assert!(pages.len() > 20, "{pages:?}");
    for page in &pages {
        let groff = ["-k", "-mandoc", "-Tutf8", "-ww", "-z"];
        let ended = Ended::of(Command::new("groff").args(groff).arg(page));
        assert_eq!(
            (ended.status, ended.stderr.as_str()),
            (Some(0), ""),
            "{}",
            page.display()
        );
    }
}

#[test]
fn every_command_has_a_page_of_this_build() {
    let scratch = Scratch::new();
    let help = scratch.run(&["--help"]).stdout;
    let made = scratch.path("man");
    scratch.run(&["man", made.to_str().unwrap()]);
    // The groups of commands stand before the options. A description may go on in lines that are
    // indented further.
    let commands = help.split("\nOptions:").next().unwrap();
    let words = commands
        .lines()
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next());
    let words: Vec<&str> = words.collect();
    assert!(words.len() > 25, "{words:?}");
    assert!(
        words.contains(&"run") && words.contains(&"show"),
        "{words:?}"
    );
    for word in words {
        let name = format!("punctual-{word}.1");
        let page = fs::read_to_string(made.join(&name)).expect(&name);
        let built = fs::read_to_string(programs().join("man/man1").join(&name)).expect(&name);
        assert_eq!(page, built, "{name}: ./build makes it");
    }
}

/// Each option that a program takes is in its page, in the form in which groff shows it.
#[test]
fn the_pages_of_programs_tell_their_options() {
    for (name, page) in [("sendme", "man8/sendme.8"), ("realfeel", "man8/realfeel.8")] {
        let program = programs().join("drop-in").join(name);
        let help = Ended::of(Command::new(program).arg("--help")).stdout;
        let page = fs::read_to_string(programs().join("man").join(page)).unwrap();
        let options = help
            .split_whitespace()
            .filter_map(|word| word.strip_prefix("--"));
        let mut told = 0;
        for option in options.filter(|option| *option != "help") {
            assert!(page.contains(&format!("-{option} ")), "{name} --{option}");
            told += 1;
        }
        assert!(told >= 3, "{help}");
    }
}

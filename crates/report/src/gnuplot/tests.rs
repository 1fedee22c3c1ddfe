// SPDX-License-Identifier: MIT OR Apache-2.0
use std::process::Command;

use super::*;
use crate::fixtures::{self, assert_has};

fn file<'a>(files: &'a [File], name: &str) -> &'a str {
    let found = files.iter().find(|file| file.name == name);
    let names = || files.iter().map(|file| &file.name).collect::<Vec<_>>();
    let found = found.unwrap_or_else(|| panic!("{name} is not among {:?}", names()));
    &found.text
}

fn lines(text: &str) -> Vec<&str> {
    text.lines().filter(|line| !line.starts_with('#')).collect()
}

#[test]
fn every_sample_is_in_the_histogram_and_in_the_series() {
    let runs = fixtures::whole();
    let files = files(&runs);
    let series = file(&files, "timer_stress_cpu0_rt.series.dat");
    assert_eq!(lines(series).len(), 2_000);
    assert_eq!(lines(series)[1_234], "1234 1230298000 8070");
    let histogram = file(&files, "timer_stress_cpu0_rt.hist.dat");
    let counts = lines(histogram).into_iter().map(|line| {
        let count = line.rsplit(' ').next().unwrap();
        count.parse::<u64>().unwrap()
    });
    assert_eq!(counts.sum::<u64>(), 2_000);
    for text in [series, histogram] {
        assert!(text.contains(&format!("# digest: {}\n", runs[3].digest().unwrap())));
        assert!(text.contains("# unit: nanoseconds\n") && text.contains("# priority: 98\n"));
        assert!(text.contains("virtual time, 1 ns per instruction"));
    }
    let bars = lines(file(&files, "hackbench_idle_pipe-process-1.bars.dat"));
    let expected = "\"none\" 100400000 101100000 101000000 101900000 3";
    assert_eq!(bars[0], expected);
}

#[test]
fn samples_below_zero_are_in_the_histogram_of_a_jitter() {
    let files = files(&fixtures::all_probes());
    let text = file(&files, "realfeel_idle_rtc-2048-Hz_rt.hist.dat");
    let expected = ["-12100 -12100 1", "-4000 -4000 1", "12000 12000 1"];
    assert_eq!(lines(text), expected);
}

#[test]
fn a_scale_is_logarithmic_only_if_each_value_has_a_place_on_it() {
    for (least, is_logarithmic) in [(0, false), (-3, false), (1, true)] {
        let timer = fixtures::recording(["timer", "idle", "cpu0"], &[least, 4_000, 90_000]);
        let files = files(&[fixtures::run_with(vec![timer])]);
        let series = file(&files, "timer_idle_cpu0.series.gp");
        assert_eq!(
            series.contains("set logscale y\n"),
            is_logarithmic,
            "{least}"
        );
        // What is below zero has no bin.
        let histogram = file(&files, "timer_idle_cpu0.hist.gp");
        assert_eq!(
            histogram.contains("set logscale x\n"),
            least != 0,
            "{least}"
        );
    }
}

#[test]
fn names_are_safe_and_each_is_given_once() {
    let mut names = Names::default();
    let mut name = |variant| names.new_one(&["timer", "../etc", variant]);
    assert_eq!(name("a/b c"), "timer_..-etc_a-b-c");
    assert_eq!(name("a b/c"), "timer_..-etc_a-b-c-2");
    assert_eq!(names.new_one(&["..", ""]), "_..");
    let mut runs = fixtures::seeds(2);
    runs[0].subject.name = "a\nb'\"".into();
    let files = files(&runs);
    let all: BTreeSet<&String> = files.iter().map(|file| &file.name).collect();
    assert_eq!(all.len(), files.len());
}

#[test]
fn what_was_not_measured_has_no_number() {
    let files = files(&fixtures::with_gaps());
    let bars = lines(file(&files, "timer_idle_cpu0.bars.dat"));
    assert_eq!(bars[2], "\"full\" - - - - 0");
    assert!(!files.iter().any(|file| file.name.starts_with("irq_")));
}

/// The real program must take every script.
#[test]
fn gnuplot_draws_every_figure() {
    if !punctual_skip::program("gnuplot") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let mut runs = fixtures::with_gaps();
    runs[0].subject.name = "it's \"odd\" $x".into();
    runs.extend(fixtures::all_probes());
    let files = files(&runs);
    for file in &files {
        std::fs::write(directory.join(&file.name), &file.text).unwrap();
    }
    let is_script = |file: &&File| file.text.starts_with("# gnuplot ");
    let scripts: Vec<&File> = files.iter().filter(is_script).collect();
    assert!(scripts.len() > 20, "{}", scripts.len());
    for File { name, .. } in scripts {
        let mut gnuplot = Command::new("gnuplot");
        let done = gnuplot.arg(name).current_dir(directory).output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{name}: {said}");
        assert!(!said.contains("warning"), "{name}: {said}");
        let svg = directory.join(name.replace(".gp", ".svg"));
        assert_has(&std::fs::read_to_string(&svg).unwrap(), &["</svg>"]);
    }
}

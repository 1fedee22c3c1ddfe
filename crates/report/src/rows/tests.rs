// SPDX-License-Identifier: MIT OR Apache-2.0
use punctual_model::machine::HostMachine;
use punctual_model::{MachineRecord, Reason};

use super::*;
use crate::fixtures;

#[test]
fn an_imported_run_of_which_nothing_is_known_is_told_in_one_sentence() {
    let mut run = fixtures::run("board", 1);
    run.machine = MachineRecord::default();
    let provenance = run.provenance.as_mut().unwrap();
    provenance.release = "unknown".to_owned();
    provenance.preemption = Preemption::default();
    provenance.facts = [(IMPORTED.to_owned(), Fact::from("0123"))].into();
    let told = |run: &Run| places(&Matrix::new(std::slice::from_ref(run)));
    let nothing = "board: the file does not say which kernel, CPU or governor this was.";
    assert!(told(&run).contains(&nothing.to_owned()), "{:?}", told(&run));
    let several = places(&Matrix::new(&[run.clone(), run.clone()]));
    let nothing_of_several = "board: the files do not say which kernel, CPU or governor this was.";
    assert!(
        several.contains(&nothing_of_several.to_owned()),
        "{several:?}"
    );
    let provenance = run.provenance.as_mut().unwrap();
    provenance.release = "6.12.1".to_owned();
    assert!(!told(&run).contains(&nothing.to_owned()));
    assert!(told(&run).iter().any(|one| one.contains("Linux 6.12.1")));
}

#[test]
fn no_cell_is_empty_and_none_is_lost() {
    for runs in [fixtures::whole(), fixtures::with_gaps(), fixtures::seeds(5)] {
        let matrix = Matrix::new(&runs);
        let sheet = Sheet::new(&matrix, Range::Beside);
        assert_eq!(sheet.sections.len(), matrix.rows.len());
        for line in sheet.sections.iter().flat_map(|section| &section.lines) {
            assert_eq!(line.cells.len(), matrix.columns.len());
            assert!(line.cells.iter().all(|cell| !cell.text.trim().is_empty()));
        }
    }
}

#[test]
fn what_is_separated_is_marked_and_a_bare_number_is_not() {
    let ranks = |runs: &[Run]| -> Vec<Rank> {
        let sheet = Sheet::new(&Matrix::new(runs), Range::Beside);
        let worst = &sheet.sections[1].lines[0];
        worst.cells.iter().map(|cell| cell.rank).collect()
    };
    let plain = Rank::Plain;
    let separated = [plain, plain, Rank::Higher, Rank::Lower];
    assert_eq!(ranks(&fixtures::seeds(5)), separated);
    assert_eq!(ranks(&fixtures::whole()), [plain; 4]);
    // The same seed again is no further run.
    let again = vec![fixtures::whole(); 5].concat();
    assert_eq!(ranks(&again), [plain; 4]);
    // What did not measure the same is not compared.
    let mut others = fixtures::seeds(5);
    others[15].plan = "[[step]]\nprobe = \"timer\"\nsamples = 7\n".into();
    assert_eq!(ranks(&others), [plain, plain, Rank::Higher, plain]);
}

#[test]
fn the_same_reason_is_one_note() {
    let runs = fixtures::with_gaps();
    let sheet = Sheet::new(&Matrix::new(&runs), Range::Beside);
    for text in [fixtures::NO_MODULE, fixtures::NO_BOOT] {
        let about = sheet.notes.iter().filter(|note| note.contains(text));
        assert_eq!(about.count(), 1, "{text}");
    }
}

#[test]
fn a_reason_of_several_measurements_is_told_once() {
    let mut runs = fixtures::with_gaps();
    for run in &mut runs {
        let more = run.unsupported.first().cloned().map(|mut absent| {
            absent.probe = "irqrate".into();
            absent
        });
        run.unsupported.extend(more);
    }
    let reason = fixtures::NO_MODULE;
    assert_note(&runs, &format!("irq, idle; irqrate, idle: {reason}"));
}

#[test]
fn a_quantile_is_one_that_all_can_support() {
    let mut runs = fixtures::whole();
    let mut few = runs[1].recordings[2].clone();
    few.key = runs[1].recordings[1].key.clone();
    runs[1].recordings[1] = few;
    let sheet = Sheet::new(&Matrix::new(&runs), Range::Beside);
    let labels = |at: usize| {
        let lines = sheet.sections[at].lines.iter();
        lines.map(|line| line.label.as_str()).collect::<Vec<_>>()
    };
    assert_eq!(labels(0), ["worst", "mean", "p99.9", "missed", "samples"]);
    assert_eq!(labels(1), ["worst", "mean", "median", "missed", "samples"]);
}

#[test]
fn seeds_show_their_range() {
    let runs = fixtures::seeds(5);
    let matrix = Matrix::new(&runs);
    let line = |range, line: usize| {
        let sheet = Sheet::new(&matrix, range);
        sheet.sections[1].lines[line].cells[0].text.clone()
    };
    assert_eq!(line(Range::Beside, 0), "381 µs (355–381)");
    assert_eq!(line(Range::Below, 0), "381 µs");
    assert_eq!(line(Range::Below, 1), "355–381 µs");
}

fn assert_note(runs: &[punctual_model::Run], note: &str) {
    let notes = Sheet::new(&Matrix::new(runs), Range::Beside).notes;
    assert!(notes.iter().any(|one| one == note), "{notes:?}");
}

/// The texts of a line of the runs' table.
fn texts(runs: &[punctual_model::Run], title: &str, label: &str) -> Vec<String> {
    let sheet = Sheet::new(&Matrix::new(runs), Range::Beside);
    let section = sheet.sections.iter().find(|section| section.title == title);
    let section = section.unwrap_or_else(|| panic!("no section {title}"));
    let line = section.lines.iter().find(|line| line.label == label);
    let line = line.unwrap_or_else(|| panic!("no line {label} in {title}"));
    line.cells.iter().map(|cell| cell.text.clone()).collect()
}

#[test]
fn what_takes_no_samples_shows_what_it_found() {
    let runs = fixtures::all_probes();
    let kthreads = |label| texts(&runs, "kthreads, idle", label);
    assert_eq!(kthreads("each irq threaded"), ["no", "yes"]);
    assert_eq!(kthreads("threads"), ["40", "59"]);
    let footprint = |label| texts(&runs, "footprint, idle", label);
    assert_eq!(footprint("text"), ["16.0 MiB", "16.0 MiB"]);
    assert_eq!(footprint("bss"), ["unknown", "unknown"]);
    assert_eq!(footprint("memory in use"), ["unknown", "unknown"]);
    assert_note(&runs, "rt, footprint, idle, bss: hidden");
}

/// A program's last cycle, and the kernel's omissions, are told if there are any.
#[test]
fn what_is_an_exception_has_a_line_where_there_is_one() {
    let mut runs = fixtures::whole();
    for run in &mut runs {
        let recording = &mut run.recordings[0];
        recording.key.probe = "app".into();
        recording.key.variant = "loop lateness".into();
    }
    let labels = |runs: &[punctual_model::Run]| {
        let sheet = Sheet::new(&Matrix::new(runs), Range::Beside);
        let sections = sheet.sections.iter();
        let mut of_app = sections.filter(|section| section.title.contains("loop lateness"));
        let lines = of_app.next().expect("a section").lines.iter();
        let labels = lines.map(|line| line.label.clone());
        labels.collect::<Vec<_>>()
    };
    let exceptions = ["last, not counted", "begin not told"];
    let none = labels(&runs);
    assert!(
        !exceptions
            .iter()
            .any(|one| none.contains(&(*one).to_owned()))
    );
    let untold = punctual_model::Finding::Count(3);
    let findings = &mut runs[1].recordings[0].findings;
    findings.insert("switches_untold".into(), untold);
    let one = labels(&runs);
    assert!(!one.contains(&exceptions[0].to_owned()));
    assert!(one.contains(&exceptions[1].to_owned()), "{one:?}");
}

#[test]
fn a_verdict_stands_before_the_time_and_is_never_a_pass_by_default() {
    let mut runs = fixtures::all_probes();
    let inversion = |runs: &[_], variant: &str, label| {
        texts(runs, &format!("inversion, idle, {variant}"), label)
    };
    assert_eq!(inversion(&runs, "inherit", "result"), ["pass", "pass"]);
    let control = inversion(&runs, "none", "result");
    assert_eq!(control, ["inverted, as it must be"; 2]);
    assert_eq!(inversion(&runs, "protect", "worst"), ["5.10 µs", "5.10 µs"]);
    runs[0].recordings[2].findings.remove("result");
    runs[1].recordings[2]
        .findings
        .insert("result".into(), fixtures::verdict(false, true));
    assert_eq!(inversion(&runs, "inherit", "result"), ["unknown", "FAIL"]);
}

#[test]
fn one_seed_that_fails_is_not_outvoted() {
    let mut runs = fixtures::all_probes();
    runs[0] = runs[1].clone();
    runs[0].seed = 2;
    runs[0].recordings[2]
        .findings
        .insert("result".into(), fixtures::verdict(false, true));
    let result = || texts(&runs, "inversion, idle, inherit", "result");
    assert_eq!(result(), ["FAIL"]);
    let note = "rt, inversion, idle, inherit, result: seed 2 FAIL, seed 1 pass";
    assert_note(&runs, note);
    // On a machine seeds tell no run from another.
    for (run, id) in runs.iter_mut().zip(["r7", "r8"]) {
        (run.machine, run.seed, run.id) = (MachineRecord::default(), 1, id.to_owned());
    }
    let note = "rt, inversion, idle, inherit, result: r7 FAIL, r8 pass";
    assert_note(&runs, note);
}

#[test]
fn steps_are_one_section_with_a_line_for_each() {
    let mut runs = fixtures::all_probes();
    let title = "switch, idle: worst / mean, n = 3";
    let line = |runs: &[_], label| texts(runs, title, label);
    assert_eq!(line(&runs, "N=2"), ["21.8 / 8.20 µs", "21.8 / 8.20 µs"]);
    let is_ten = |recording: &punctual_model::Recording| recording.key.variant == "N=10";
    runs[1].recordings.retain(|recording| !is_ten(recording));
    runs[0].recordings[5].missed = 3;
    assert_eq!(line(&runs, "N=10"), ["9.80 / 4.23 µs", "not measured"]);
    assert_note(&runs, "none, switch, idle, N=2: 3 missed");
}

#[test]
fn each_kind_of_figure_has_its_lines() {
    let runs = fixtures::all_probes();
    for (title, label, text) in [
        ("semaphore, idle, release", "waiters matter", "no"),
        (
            "semaphore, idle, release",
            "ns per waiter",
            "0.02 (-0.01 to 0.05)",
        ),
        ("semaphore, idle, acquire", "waiters matter", "unknown"),
        ("realfeel, idle, rtc 2048 Hz", "longest", "12.0 µs"),
        ("realfeel, idle, rtc 2048 Hz", "shortest", "-12.1 µs"),
        ("image, idle, user", "spread", "0.900–0.910 s"),
    ] {
        assert_eq!(texts(&runs, title, label)[0], text);
    }
}

#[test]
fn a_real_machine_is_told_of_with_the_gaps_of_its_hardware() {
    let with = |facts: &[(&str, Fact)]| {
        let mut run = fixtures::run("rt", 1);
        run.machine = MachineRecord::Host(HostMachine::default());
        let provenance = run.provenance.as_mut().expect("it has one");
        let facts = facts.iter().cloned();
        provenance.facts = facts.map(|(name, fact)| (name.to_owned(), fact)).collect();
        let runs = [run];
        machine(&Matrix::new(&runs).columns[0]).expect("a real machine")
    };
    let governors = ("governors", Fact::from("performance"));
    let told = with(std::slice::from_ref(&governors));
    assert!(told.contains("governor performance;"), "{told}");
    assert!(!told.contains("gap"), "{told}");
    let (before, after) = ("hwlat_before_us", "hwlat_after_us");
    let told = with(&[(before, 0.into()), (after, 12.into())]);
    assert!(told.contains("governor unknown;"), "{told}");
    assert!(told.ends_with("0 µs before, 12 µs after."), "{told}");
    // What was not looked for, or could not be, is no zero.
    let told = with(&[(before, 3.into())]);
    assert!(
        told.ends_with("3 µs before, not looked for after."),
        "{told}"
    );
    let absent = || Fact::from(Reason::from("no tracer"));
    let told = with(&[(before, absent()), (after, absent())]);
    assert!(
        told.ends_with("before and after: unknown (no tracer)."),
        "{told}"
    );
}

#[test]
fn facts_in_which_the_runs_of_a_machine_differ_are_told_with_their_runs() {
    let run = |id: &str, facts: &[(&str, Fact)]| {
        let mut run = fixtures::run("rt", 1);
        run.id = id.to_owned();
        run.machine = MachineRecord::Host(HostMachine::default());
        let provenance = run.provenance.as_mut().expect("it has one");
        let facts = facts.iter().cloned();
        provenance.facts = facts.map(|(name, fact)| (name.to_owned(), fact)).collect();
        run
    };
    let told = |runs: &[Run]| machine(&Matrix::new(runs).columns[0]).expect("a real machine");
    let governor = |word: &str| ("governors", Fact::from(word));
    let held = ("cpu_dma_latency_us", Fact::from(0));
    let free = (
        "cpu_dma_latency_us",
        Fact::from("not held: idle states are allowed"),
    );
    let gaps = |before: i64, after: i64| {
        let fact = |name, micros: i64| (name, Fact::from(micros));
        [
            fact("hwlat_before_us", before),
            fact("hwlat_after_us", after),
        ]
    };
    let same = run("r1", &[governor("powersave"), held.clone()]);
    let alone = told(std::slice::from_ref(&same));
    assert!(
        alone.contains("governor powersave; virtualised: unknown."),
        "{alone}"
    );
    let agreed = run("r2", &[governor("powersave"), held]);
    assert_eq!(told(&[same.clone(), agreed]), alone);

    let other = run("r2", &[governor("performance"), free]);
    let differ = told(&[same, other.clone()]);
    for part in [
        "governor powersave (r1), performance (r2); virtualised: unknown; idle",
        "; idle states not held (r2).",
    ] {
        assert!(differ.contains(part), "{differ}");
    }
    let all = told(&[other]);
    assert!(all.ends_with("; idle states not held."), "{all}");

    let watched = run("r1", &gaps(3, 9));
    let more = run("r2", &gaps(40, 0));
    let unwatched = run("r3", &[]);
    let told = told(&[watched, more, unwatched]);
    assert!(
        told.ends_with("; longest gap of the hardware: 40 µs (r2), not always looked for (r3)."),
        "{told}"
    );
}

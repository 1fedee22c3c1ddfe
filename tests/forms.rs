// SPDX-License-Identifier: MIT OR Apache-2.0
//! Verdicts in foreign forms, read by their intended readers: the kernel's parser of KTAP, LAVA's
//! dispatcher, `KernelCI`'s own validation, the schema by which Jenkins has `JUnit`.
//!
//! `PUNCTUAL_READERS` is the directory that `tools/readers` prints. Each reader is also shown to
//! refuse broken input.

use std::path::{Path, PathBuf};
use std::process::Command;

use punctual_tests::{Ended, Scratch};
use serde_json::{Value, json};

/// The directory of a reader; skips the test if it is missing.
fn reader(name: &str) -> Option<PathBuf> {
    let all = std::env::var_os("PUNCTUAL_READERS").map(PathBuf::from);
    let directory = all.filter(|all| all.join(name).join("complete").is_file());
    if directory.is_none() {
        let reason = format!("PUNCTUAL_READERS names no directory with the reader {name}");
        punctual_skip::skip(&reason);
    }
    directory
}

/// Judges five measurements of another program; one limit is kept, one broken, and one cannot be
/// decided.
fn judged(form: &[&str]) -> (Scratch, Ended) {
    let (scratch, judge) = to_judge();
    let judge: Vec<&str> = judge.iter().map(String::as_str).collect();
    let ended = scratch.run(&[&judge[..], form].concat());
    // A test of the kernel's that fails ends with 1: its 4 is one that was skipped.
    let expected = if form.contains(&"--ktap") { 1 } else { 4 };
    assert_eq!(ended.status, Some(expected), "{}", ended.stderr);
    (scratch, ended)
}

/// The input for [`judged`], and the words of its command.
fn to_judge() -> (Scratch, Vec<String>) {
    let scratch = Scratch::new();
    let file = |run: u32| {
        let (worst, lines) = (
            40 + run,
            ["# Histogram\n000003 000100\n", "# Min Latencies: 00003\n"],
        );
        let text = format!(
            "{}{worst:06} 000001\n{}# Avg Latencies: 00003\n# Max Latencies: {worst:05}\n\
             # Histogram Overflows: 00000\n",
            lines[0], lines[1]
        );
        scratch.file(&format!("{run}.hist"), text)
    };
    let files: Vec<String> = (0..5).map(file).collect();
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let imported = scratch.run(&[&["import"], &files[..], &["--subject", "a & b"]].concat());
    assert_eq!(imported.status, Some(0), "{}", imported.stderr);
    let limit = |demand: &str| format!("[[limit]]\nprobe = \"timer\"\n{demand}\n");
    let limits = [
        "name = \"#1 <kept>\"\nwhat = \"worst\"\nat_most = \"100 us\"",
        "name = \"broken\"\nwhat = \"worst\"\nat_most = \"41 us\"",
        "name = \"unknown\"\nwhat = \"missed\"\nat_most = 0",
    ];
    let limits = scratch.file("limits.toml", limits.map(limit).concat());
    let words = ["judge", "r1", "r2", "r3", "r4", "r5", "--limits", &limits];
    let words = words.map(str::to_owned).to_vec();
    (scratch, words)
}

/// The content that a reader finds in a text.
fn read(form: &str, readers: &Path, scratch: &Scratch, text: &str) -> Result<Value, String> {
    let file = scratch.file("form", text);
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("forms.py");
    let mut python = Command::new("/usr/bin/python3");
    let ended = Ended::of(python.arg(program).arg(readers).args([form, &file]));
    match ended.status {
        Some(0) => Ok(serde_json::from_str(&ended.stdout).expect("JSON")),
        _ => Err(ended.stderr),
    }
}

#[test]
fn the_kernels_parser_reads_ktap() {
    let Some(readers) = reader("kernel") else {
        return;
    };
    let (scratch, ended) = judged(&["--ktap"]);
    let found = read("ktap", &readers, &scratch, &ended.stdout).unwrap();
    let name = found[0][0].as_str().unwrap();
    assert!(name.contains("no.1 <kept>"), "{found}");
    // The three limits, and the subject that they are all about.
    assert_eq!(
        results(&found),
        ["SUCCESS", "FAILURE", "FAILURE", "FAILURE"]
    );
    // A plan of more cases than there are, a number that is not the next, no header.
    for (part, wrong) in [
        ("1..3", "1..4"),
        ("\n  ok 1 ", "\n  ok 7 "),
        ("KTAP version 1\n", ""),
        ("KTAP version 1", "KTAP version 9"),
    ] {
        let broken = ended.stdout.replacen(part, wrong, 1);
        assert_ne!(broken, ended.stdout, "{part}");
        read("ktap", &readers, &scratch, &broken).expect_err(wrong);
    }
}

/// A test in a directory of the kernel's selftests, run as `make run_tests` does: one that is unfit
/// must not be taken for one that was skipped.
#[test]
fn the_kernels_selftests_run_it() {
    let Some(readers) = reader("kernel") else {
        return;
    };
    let (scratch, mut judge) = to_judge();
    judge.push("--ktap".to_owned());
    let tests = scratch.path("selftests");
    let own = tests.join("punctual");
    std::fs::create_dir_all(&own).unwrap();
    let kselftest = readers.join("kernel/selftests/kselftest");
    std::os::unix::fs::symlink(kselftest, tests.join("kselftest")).unwrap();
    let program = punctual_tests::programs().join("punctual");
    let program = program.to_str().unwrap();
    let fit = scratch.file(
        "fit.toml",
        "[[limit]]\nprobe = \"timer\"\nwhat = \"worst\"\nat_most = \"100 us\"\n",
    );
    for (name, limits) in [("fit.sh", Some(&fit)), ("unfit.sh", None)] {
        let mut words = judge.clone();
        if let Some(limits) = limits {
            words[7].clone_from(limits);
        }
        let line = format!("#!/bin/sh\nexec {program} {}\n", words.join(" "));
        let script = own.join(name);
        std::fs::write(&script, line).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&script, mode).unwrap();
    }
    let run = "BASE_DIR=$1; . \"$1/kselftest/runner.sh\"; cd \"$1/punctual\"; \
               run_many fit.sh unfit.sh";
    let mut shell = Command::new("sh");
    let shell = shell.args(["-c", run, "sh"]).arg(&tests);
    scratch.prepare(shell);
    let ended = Ended::of(shell);
    for line in [
        "1..2\n",
        "\nok 1 selftests: punctual: fit.sh\n",
        "\n#   not ok 2 broken (timer: worst at most 41.0 µs)",
        "\nnot ok 2 selftests: punctual: unfit.sh # exit=1\n",
    ] {
        assert!(ended.stdout.contains(line), "{line}: {}", ended.stdout);
    }
}

/// The mail that a list would get: a subject, what is unfit and by how much, what is unknown, and
/// that nothing here repeats a measurement of another program.
#[test]
fn a_mail_says_what_is_unfit_and_what_nobody_knows() {
    let scratch = Scratch::new();
    let file = scratch.path("mail.txt");
    let (own, _) = judged(&["--mail", file.to_str().unwrap()]);
    let mail = std::fs::read_to_string(&file).unwrap();
    let (subject, body) = mail.split_once("\n\n").unwrap();
    let found = "Subject: unfit: a & b, unknown, thread 0: worst at most 41.0 us: 44.0 us";
    assert_eq!(subject, found, "{mail}");
    let body = body.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "Of 3 verdicts 1 is unfit, 1 is not wholly measured and 1 is fit. Judged: a & b: ",
        " of r5 was 44.0 us, 1.1 times 41.0 us; 3 of 5 runs have such a",
        " not wholly measured: a & b, ",
        "unknown (timer: at most 0 missed): ",
        " Another program measured it, so that no command here repeats it: files of SHA-256 ",
    ] {
        assert!(body.contains(part), "{part}: {mail}");
    }
    assert!(!body.contains("git clone"), "{mail}");
    let is_long = |line: &&str| line.len() > 72 || !line.is_ascii();
    assert_eq!(mail.lines().find(is_long), None);
    assert!(mail.lines().count() <= 25, "{mail}");
    // A file that cannot be written is found before anything is judged.
    let nowhere = own.path("none/mail.txt");
    let refused = own.run(&["judge", "r1", "--mail", nowhere.to_str().unwrap()]);
    assert_eq!(refused.status, Some(2), "{}", refused.stderr);
    let expected = "expected a file in an existing directory, found no ";
    assert!(refused.stderr.contains(expected), "{}", refused.stderr);
}

/// The reader's result for each case, without the case's name.
fn results(found: &Value) -> Vec<&Value> {
    let cases = found.as_array().unwrap();
    cases.iter().map(|case| &case[1]).collect()
}

#[test]
fn lavas_dispatcher_reads_signals() {
    let Some(readers) = reader("lava") else {
        return;
    };
    let (scratch, ended) = judged(&["--lava"]);
    let found = read("lava", &readers, &scratch, &ended.stdout).unwrap();
    assert_eq!(results(&found), ["pass", "fail", "unknown"]);
    assert_eq!(found[1][2], 44_000.0, "{found}");
    // Two limits on one figure are two cases.
    assert_eq!(found[1][0], format!("{}-2", found[0][0].as_str().unwrap()));
    for (part, wrong) in [
        ("RESULT=pass", "RESULT=fit"),
        ("TEST_CASE_ID=", ""),
        ("MEASUREMENT=44000", "MEASUREMENT=44 us"),
        ("<LAVA_SIGNAL_TESTCASE", "<LAVA_SIGNAL TESTCASE"),
    ] {
        let broken = ended.stdout.replacen(part, wrong, 1);
        assert_ne!(broken, ended.stdout, "{part}");
        read("lava", &readers, &scratch, &broken).expect_err(wrong);
    }
}

#[test]
fn kernelcis_validation_takes_the_tests() {
    let Some(readers) = reader("kcidb") else {
        return;
    };
    let scratch = Scratch::new();
    let file = scratch.path("kcidb.json");
    judged(&["--kcidb", file.to_str().unwrap()]);
    let text = std::fs::read_to_string(file).unwrap();
    let found = read("kcidb", &readers, &scratch, &text).unwrap();
    assert_eq!(results(&found), ["PASS", "FAIL", "MISS"]);
    let sound: Value = serde_json::from_str(&text).unwrap();
    for (path, wrong) in [
        ("/tests/0/status", json!("GOOD")),
        ("/tests/0/id", json!("Punctual 1")),
        ("/tests/0/start_time", json!("yesterday")),
        ("/tests/1/number/prefix", json!("u")),
        ("/version/minor", json!(4_000)),
    ] {
        let mut broken = sound.clone();
        *broken.pointer_mut(path).unwrap() = wrong;
        read("kcidb", &readers, &scratch, &broken.to_string()).expect_err(path);
    }
}

#[test]
fn a_table_of_verdicts_has_a_row_for_each() {
    let scratch = Scratch::new();
    let file = scratch.path("verdicts.csv");
    judged(&["--csv", file.to_str().unwrap()]);
    let text = std::fs::read_to_string(file).unwrap();
    let found = read("csv", Path::new("-"), &scratch, &text).unwrap();
    let rows = found.as_array().unwrap();
    let column = |name: &str| -> Vec<&str> {
        let all = rows.iter().map(|row| row[name].as_str().expect("a column"));
        all.collect()
    };
    assert_eq!(column("verdict"), ["pass", "fail", "missing"]);
    assert_eq!(column("subject"), ["a & b"; 3]);
    assert_eq!(column("measured_ns"), ["44000", "44000", ""]);
    assert_eq!(column("runs"), ["5"; 3]);
    // More of a row than columns is under no name.
    assert!(
        rows.iter().all(|row| row.get("null").is_none()),
        "{rows:#?}"
    );
    let broken = format!("{text}\"open\n");
    read("csv", Path::new("-"), &scratch, &broken).expect_err("an open quotation");
}

#[test]
fn junit_is_as_the_schema_of_jenkins_has_it() {
    if !punctual_skip::program("xmllint") {
        return;
    }
    let Some(readers) = reader("junit") else {
        return;
    };
    let scratch = Scratch::new();
    let file = scratch.path("junit.xml");
    judged(&["--junit", file.to_str().unwrap()]);
    let sound = std::fs::read_to_string(file).unwrap();
    let validate = |text: &str| {
        let file = scratch.file("form.xml", text);
        let schema = readers.join("junit/junit-10.xsd");
        let mut xmllint = Command::new("xmllint");
        let xmllint = xmllint.args(["--noout", "--schema"]).arg(schema).arg(file);
        let ended = Ended::of(xmllint);
        (ended.status == Some(0)).then_some(()).ok_or(ended.stderr)
    };
    validate(&sound).unwrap();
    for part in ["&lt;kept&gt;", "<failure ", "<error ", "a &amp; b"] {
        assert!(sound.contains(part), "{part}: {sound}");
    }
    for (part, wrong) in [
        ("<failure ", "<broken "),
        ("a &amp; b", "a & b"),
        (" tests=\"3\"", ""),
        ("<property name=", "<property title="),
        ("time=\"", "time=\"about "),
    ] {
        let broken = sound.replacen(part, wrong, 1);
        assert_ne!(broken, sound, "{part}");
        validate(&broken).expect_err(wrong);
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs as one file: exported, imported elsewhere, and verified by repeating them.

use std::fs;
use std::io::{Read as _, Write as _};
use std::process::Command;

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use punctual_model::digest::sha256;
use punctual_tests::{Ended, Scratch, assert_has, markdown, programs, schema};
use serde_json::Value;

const SUITE: &str = "[[step]]\nprobe = \"timer\"\nsamples = 60\n";

fn shown(scratch: &Scratch, run: &str) -> Value {
    let ended = scratch.run(&["show", run, "--json", "--raw"]);
    assert_eq!(ended.status, Some(0), "{}", ended.stderr);
    let shown: Value = serde_json::from_str(&ended.stdout).expect("JSON");
    shown["runs"][0].clone()
}

fn verdict(scratch: &Scratch, arguments: &[&str]) -> (Option<i32>, Value) {
    let ended = scratch.run(&[&["verify", "--quiet", "--json"], arguments].concat());
    let parsed = serde_json::from_str(&ended.stdout);
    (
        ended.status,
        parsed.unwrap_or_else(|error| panic!("{error}: {}", ended.stderr)),
    )
}

fn lines(path: &str) -> String {
    let mut text = String::new();
    let file = fs::read(path).expect("the file");
    let read = GzDecoder::new(file.as_slice()).read_to_string(&mut text);
    read.expect("text");
    text
}

/// The output of the document's example, which reads the runs r1 and r2 as a table.
fn example_in_python(scratch: &Scratch) -> String {
    let document = fs::read_to_string(markdown::root().join("docs/json.md")).expect("it");
    let (_, example) = document.split_once("```python\n").expect("an example");
    let (example, _) = example.split_once("```").expect("its end");
    let mut python = Command::new("python3");
    scratch.prepare(&mut python);
    let path = std::env::var("PATH").expect("PATH");
    python.env("PATH", format!("{}:{path}", programs().display()));
    let ended = Ended::of(python.args(["-c", example]));
    assert_eq!(ended.status, Some(0), "{}", ended.stderr);
    ended.stdout
}

/// A file of these lines with a correct checksum.
fn forge(scratch: &Scratch, name: &str, lines: &str) -> String {
    let body: String = lines
        .split_inclusive('\n')
        .filter(|line| !line.starts_with("{\"end\""))
        .collect();
    let runs = body.matches("{\"run\":").count() / 2;
    let sum = sha256(body.as_bytes());
    let end = format!("{{\"end\":{{\"runs\":{runs},\"sha256\":\"{sum}\"}}}}\n");
    let mut file = GzEncoder::new(Vec::new(), Compression::default());
    file.write_all((body + &end).as_bytes()).expect("memory");
    scratch.file(name, file.finish().expect("memory"))
}

#[test]
fn what_is_exported_is_imported_once_and_verified_by_repeating_it() {
    let scratch = Scratch::new();
    let suite = scratch.suite("short", &["rt"], SUITE);
    let measured = scratch.measure(&[&suite, "--seeds", "1..2"]);
    let worst = |run: &Value| {
        run["recordings"][0]["max"]
            .as_i64()
            .expect("a worst sample")
    };
    let worst = measured.iter().map(worst).max().expect("runs") as f64 / 1_000.0;
    let table = example_in_python(&scratch);
    assert_has(&table, &[&format!("rt timer idle cpu0 {worst:.2} µs at ")]);

    let file = scratch.path("a.punctual").display().to_string();
    let ended = scratch.run(&["export", "r1", "r2", "r1", "-o", &file]);
    assert_eq!(ended.status, Some(0), "{}", ended.stderr);
    assert_has(&ended.stderr, &["holds 2 runs"]);
    assert!(
        lines(&file).contains("{\"suite\":"),
        "the suite comes along"
    );
    let bytes = fs::read(&file).expect("the file");
    scratch.run(&["export", "--all", "-o", &file]);
    assert_eq!(fs::read(&file).expect("the file"), bytes, "the same again");

    // Elsewhere, where the suite is not: each once, to the last sample.
    let other = Scratch::new();
    for words in [
        "2 new runs, 0 that were here",
        "0 new runs, 2 that were here",
    ] {
        let ended = other.run(&["import", &file]);
        assert_eq!(ended.status, Some(0), "{}", ended.stderr);
        assert_has(&ended.stderr, &[words]);
    }
    for (id, there) in ["r1", "r2"].iter().zip(&measured) {
        assert_eq!(shown(&other, id), *there);
    }
    fs::remove_file(&suite).expect("the suite");
    let (status, verified) = verdict(&other, &[&file]);
    assert_eq!(
        (status, &verified["outcome"]),
        (Some(0), &"equal".into()),
        "{verified:#}"
    );
    for run in verified["runs"].as_array().expect("runs") {
        assert_eq!(run["here"]["digest"], run["digest"]);
        assert_eq!(run["changes"].as_array().map(Vec::len), Some(0));
    }
    let text = other.run(&["verify", "--quiet", "--only", "r2", &file]);
    assert_eq!(text.status, Some(0), "{}", text.stderr);
    assert_has(
        &text.stdout,
        &["r2 (short, rt, seed 2): equal", "1 run: 1 equal."],
    );

    // A claim with a seed that was not measured with: consistent in itself, and refuted.
    let claim = lines(&file).replace("seed = 1\\n", "seed = 7\\n");
    let claim = claim.replace("\"seed\":1,", "\"seed\":7,");
    let forged = forge(&scratch, "forged.punctual", &claim);
    let (status, refuted) = verdict(&other, &["--only", "r1", &forged]);
    assert_eq!(
        (status, &refuted["outcome"]),
        (Some(4), &"differs".into()),
        "{refuted:#}"
    );
    let run = &refuted["runs"][0];
    assert_eq!(run["changes"].as_array().map(Vec::len), Some(0), "{run:#}");
    assert!(
        run["recordings"][0]["differing"].as_u64() > Some(0),
        "{run:#}"
    );

    // Another QEMU and another target may well give the same: then it is the same.
    let elsewhere = lines(&file).replace("\"qemu\":\"", "\"qemu\":\"another ");
    let elsewhere = forge(&scratch, "elsewhere.punctual", &elsewhere);
    let (status, same) = verdict(&other, &["--only", "r1", &elsewhere]);
    assert_eq!(
        (status, &same["runs"][0]["changes"][0]["what"]),
        (Some(0), &"QEMU".into())
    );
    // And where it does not, nothing is refuted.
    let both = claim.replace("\"qemu\":\"", "\"qemu\":\"another ");
    let both = forge(&scratch, "both.punctual", &both);
    let (status, open) = verdict(&other, &["--only", "r1", &both]);
    assert_eq!(
        (status, &open["outcome"]),
        (Some(5), &"undecided".into()),
        "{open:#}"
    );
    assert_has(
        open["runs"][0]["why"].as_str().expect("why"),
        &["QEMU is not the same"],
    );
}

/// A key of this name, made for the test.
fn key(scratch: &Scratch, name: &str) -> String {
    let path = scratch.path(name).display().to_string();
    let words = ["-q", "-t", "ed25519", "-N", "", "-C", "", "-f", &path];
    let made = Command::new("ssh-keygen").args(words).status();
    assert!(made.expect("OpenSSH's client").success());
    path
}

/// Checks that signers are listed by name, and that a changed word, another file's signature and an
/// owner whom nobody named count for nothing.
fn witnessed(scratch: &Scratch, file: &str) {
    let listed = |file: &str, words: &[&str]| {
        let ended = scratch.run(&[&["verify", file, "--witnesses", "--json"], words].concat());
        let told: Value = serde_json::from_str(&ended.stdout).expect("JSON");
        schema::check("witnesses", &told).expect("as its schema has it");
        (ended.status, told)
    };
    assert_eq!(listed(file, &[]).0, Some(5));
    let (alice, bob) = (key(scratch, "alice"), key(scratch, "bob"));
    let whole = fs::read(file).expect("the file");
    for key in [&alice, &bob] {
        let signed = scratch.run(&["verify", file, "--quiet", "--sign", key]);
        assert_eq!(signed.status, Some(0), "{}", signed.stderr);
    }
    let signed = fs::read(file).expect("the file");
    assert!(signed.starts_with(&whole), "nothing of it was changed");
    assert_eq!(
        listed(file, &[]).0,
        Some(5),
        "nobody knows whose keys they are"
    );
    let public = fs::read_to_string(format!("{alice}.pub")).expect("a key");
    let allowed = scratch.file("allowed", format!("alice@example.org {public}"));
    let allowed = ["--allowed-signers", &allowed];
    let (status, told) = listed(file, &allowed);
    assert_eq!(status, Some(0), "{told:#}");
    assert_eq!(told["witnesses"][0]["name"], "alice@example.org");
    assert_eq!(told["witnesses"][0]["runs"][0]["outcome"], "equal");
    assert_eq!(told["witnesses"][1]["name"], Value::Null, "{told:#}");
    // What they signed, with another outcome.
    let mut member = String::new();
    let read = GzDecoder::new(&signed[whole.len()..]).read_to_string(&mut member);
    read.expect("a witness");
    let append = |name: &str, to: &[u8], member: &str| {
        let mut packed = GzEncoder::new(Vec::new(), Compression::default());
        packed.write_all(member.as_bytes()).expect("memory");
        scratch.file(name, [to, &packed.finish().expect("memory")].concat())
    };
    let changed = member.replace("\\\"equal\\\"", "\\\"undecided\\\"");
    assert_ne!(changed, member);
    let changed = append("changed.punctual", &whole, &changed);
    let (status, told) = listed(&changed, &allowed);
    assert_eq!(status, Some(4), "{told:#}");
    assert!(told["witnesses"][0]["refused"].is_string(), "{told:#}");
    // The signature of another file.
    let other = lines(file).replace("\"punctual\":\"", "\"punctual\":\"0");
    let other = fs::read(forge(scratch, "other.punctual", &other)).expect("a file");
    let moved = append("moved.punctual", &other, &member);
    let (status, told) = listed(&moved, &allowed);
    assert_eq!(status, Some(4), "{told:#}");
    let why = told["witnesses"][0]["refused"].as_str().expect("a reason");
    assert_eq!(why, "it was signed for another file");
    // A key that is not there is found before anything is measured.
    let none = scratch.run(&["verify", file, "--sign", "./nokey"]);
    assert_eq!(none.status, Some(2), "{}", none.stderr);
    assert_has(&none.stderr, &["./nokey: ssh-keygen: "]);
}

#[test]
fn what_cannot_be_repeated_is_undecided_with_the_reason() {
    let scratch = Scratch::new();
    let suite = scratch.suite("short", &["rt"], SUITE);
    scratch.measure(&[&suite]);
    let file = scratch.path("a.punctual").display().to_string();
    scratch.run(&["export", "last", "-o", &file]);
    let text = lines(&file);
    let why = |name: &str, from: &str, to: &str| {
        assert!(text.contains(from), "{from}: {text}");
        let forged = forge(&scratch, name, &text.replace(from, to));
        let (status, verified) = verdict(&scratch, &[&forged]);
        assert_eq!(status, Some(5), "{verified:#}");
        let run = &verified["runs"][0];
        assert_eq!(run["here"], Value::Null, "nothing is measured");
        run["why"].as_str().expect("a reason").to_owned()
    };
    let sum = text.split("\"image_sha256\":\"").nth(1).expect("the image");
    let sum = &sum[..64];
    let zeros = "0".repeat(64);
    assert_has(
        &why("kernel", sum, &zeros),
        &["kernel debian-6.12-rt", "image 000000000000"],
    );
    assert_has(
        &why("memory", "\"memory_mib\":512", "\"memory_mib\":99000000"),
        &["99000000 MiB of memory"],
    );
    assert_has(
        &why("cpus", "\"cpus\":1,", "\"cpus\":64,"),
        &["none that this bench makes"],
    );
    assert_has(
        &why("files", "files = []", "files = [\\\"/etc/**\\\"]"),
        &["whole trees of files"],
    );
    let before = scratch.run(&["runs", "--json"]).stdout;
    assert_eq!(
        before.matches("\"id\"").count(),
        1,
        "no repeat was begun: {before}"
    );
    witnessed(&scratch, &file);
}

#[test]
fn a_damaged_file_is_refused_and_nothing_of_it_is_stored() {
    let scratch = Scratch::new();
    let suite = scratch.suite("short", &["rt"], SUITE);
    scratch.measure(&[&suite, "--seeds", "1..2"]);
    let file = scratch.path("a.punctual").display().to_string();
    scratch.run(&["export", "--all", "-o", &file]);
    let sound = fs::read(&file).expect("the file");
    let other = Scratch::new();
    let refused = |name: &str, bytes: &[u8], expected: &str| {
        let path = scratch.file(name, bytes);
        let gate = [
            "gate",
            &suite,
            "--kernel",
            "debian-6.12-rt",
            "--baseline",
            &path,
        ];
        for command in [&["import", &path][..], &["verify", "--quiet", &path], &gate] {
            let ended = other.run(command);
            assert_eq!(ended.status, Some(1), "{}", ended.stderr);
            assert_has(&ended.stderr, &[&path, expected]);
        }
    };
    let twice = lines(&file).replace("\"id\":\"r2\"", "\"id\":\"r1\"");
    let twice = forge(&scratch, "twice", &twice);
    let ended = other.run(&["import", &twice]);
    assert_eq!(ended.status, Some(1), "{}", ended.stderr);
    assert_has(&ended.stderr, &["expected each run once"]);
    refused("cut", &sound[..sound.len() / 2], "it was not copied whole");
    let mut flipped = sound.clone();
    flipped[sound.len() / 2] ^= 4;
    refused("flipped", &flipped, "");
    refused(
        "more",
        &[&sound[..], b"more"].concat(),
        "expected nothing after the last line",
    );
    let ended = other.run(&["runs", "--json"]);
    assert!(!ended.stdout.contains("\"id\""), "{}", ended.stdout);

    for (words, expected) in [
        (
            &["verify", &file, "--only", "r9"][..],
            "has no run r9, but r1, r2",
        ),
        (
            &["verify", &file, "--only", "r1-r2"],
            "--only: expected runs such as r1 or r1..r4, found r1-r2",
        ),
        (
            &["import", &file, "--load", "x"],
            "which say these things themselves",
        ),
        (&["export", "-o", &file], "required"),
        (
            &["export", "nothing", "-o", &file],
            "there is no baseline \"nothing\"",
        ),
        (&["export", "r9", "-o", &file], "there is no run \"r9\""),
    ] {
        let ended = scratch.run(words);
        assert_eq!(ended.status, Some(2), "{words:?}: {}", ended.stderr);
        assert_has(&ended.stderr, &[expected]);
    }
    assert_eq!(
        fs::read(&file).expect("the file"),
        sound,
        "it is not touched"
    );
}

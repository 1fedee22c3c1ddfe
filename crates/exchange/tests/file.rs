// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files of runs: what is written is read, and nothing else is.

use std::io::{Read as _, Write as _};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use punctual_exchange::{ExchangeError, Exported, Reader, Writer};
use punctual_model::digest::sha256;
use punctual_model::run::State;
use punctual_model::suite::Suite;
use punctual_model::{Finding, MachineRecord, Nanos, Recorder, Recording, Run};
use punctual_store::{Added, Store};

/// A file of Punctual 0.1.0, which later versions read as it was.
const VERSION_1: &[u8] = include_bytes!("fixtures/version-1.punctual");

const SUITE: &str = "name = \"demo\"\nsummary = \"\"\nprograms = [\"dd\"]\n\
    [[subject]]\nname = \"rt\"\nkernel = \"mine\"\n[[step]]\nprobe = \"timer\"\nsamples = 7\n";

/// Real runs.
fn runs() -> Vec<Run> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("runs.db");
    let stored = include_bytes!("../../store/tests/fixtures/runs.db");
    std::fs::write(&path, stored).unwrap();
    let store = Store::open(&path).unwrap();
    let ids = store.list().unwrap().into_iter().rev();
    let runs: Vec<Run> = ids.map(|run| store.load(&run.id).unwrap()).collect();
    assert!(runs.iter().any(|run| run.digest().is_some()));
    runs
}

fn written(runs: &[Run]) -> Vec<u8> {
    let suite = Suite::parse(SUITE).unwrap();
    let mut writer = Writer::new(Vec::new(), "0.1.0").unwrap();
    for (run, number) in runs.iter().zip(0..) {
        writer.add(run, (number != 1).then_some(&suite)).unwrap();
    }
    writer.finish().unwrap()
}

fn read(file: &[u8]) -> Result<Vec<Exported>, ExchangeError> {
    let mut reader = Reader::new(file)?;
    let mut all = Vec::new();
    while let Some(one) = reader.next_run()? {
        all.push(one);
    }
    Ok(all)
}

fn said(file: &[u8]) -> String {
    let read = read(file).map(|all| all.len());
    read.unwrap_err().to_string()
}

fn lines(file: &[u8]) -> String {
    let mut text = String::new();
    GzDecoder::new(file).read_to_string(&mut text).unwrap();
    text
}

fn compressed(text: &[u8]) -> Vec<u8> {
    let mut file = GzEncoder::new(Vec::new(), Compression::default());
    file.write_all(text).unwrap();
    file.finish().unwrap()
}

/// These lines, with an end whose checksum is right.
fn forged(lines: &str, runs: usize) -> Vec<u8> {
    let body = lines.split_inclusive('\n');
    let body: String = body.filter(|line| !line.starts_with("{\"end\"")).collect();
    let sum = sha256(body.as_bytes());
    let end = format!("{{\"end\":{{\"runs\":{runs},\"sha256\":\"{sum}\"}}}}\n");
    compressed((body + &end).as_bytes())
}

#[test]
fn what_is_written_is_read_to_the_last_bit() {
    let mut runs = runs();
    // A number that is read wrong by one bit where that is thought to be good enough.
    let odd = Finding::Ratio(0.100_000_000_000_000_02 + f64::EPSILON);
    runs[0].recordings[0].findings.insert("odd".into(), odd);
    let file = written(&runs);
    let back = read(&file).unwrap();
    let back_runs: Vec<Run> = back.iter().map(|one| one.run.clone()).collect();
    assert_eq!(back_runs, runs);
    assert!(back[1].suite.is_none());
    let suite = back[0].suite.as_deref().unwrap();
    assert_eq!(*suite, Suite::parse(SUITE).unwrap());
    assert_eq!(
        written(&back_runs),
        file,
        "the same runs are the same bytes"
    );
    // A suite is there once.
    assert_eq!(lines(&file).matches("{\"suite\":\"").count(), 1);
}

#[test]
fn a_file_of_version_1_is_read_as_it_was() {
    let all = read(VERSION_1).unwrap();
    let expected = runs();
    assert_eq!(all.len(), expected.len());
    for (one, run) in all.iter().zip(&expected) {
        assert_eq!(one.run, *run);
    }
}

#[test]
fn what_is_damaged_anywhere_is_refused() {
    let runs = runs();
    let file = written(&runs);
    for at in (0..file.len()).step_by(file.len() / 50) {
        let mut damaged = file.clone();
        damaged[at] ^= 0x10;
        // Bytes 4 to 9 of gzip's header say nothing of what is in it.
        if !(4..10).contains(&at) {
            assert!(read(&damaged).is_err(), "byte {at}");
        }
        assert!(read(&file[..at]).is_err(), "cut at {at}");
    }
    let more = [&file[..], b"x"].concat();
    assert!(said(&more).contains("expected nothing after the last line"));
    let cut = &file[..file.len() / 2];
    assert!(
        said(cut).contains("it was not copied whole"),
        "{}",
        said(cut)
    );
    // The last bytes are gzip's own: no line of the file is missing.
    for short in [1, 8, 9] {
        let told = said(&file[..file.len() - short]);
        assert!(told.contains("it was not copied whole"), "{told}");
    }
    let mut damaged = file.clone();
    let checksum = damaged.len() - 8;
    damaged[checksum] ^= 1;
    assert!(
        said(&damaged).ends_with(": the file is damaged"),
        "{}",
        said(&damaged)
    );
    let changed = lines(&file).replacen("\"missed\":0", "\"missed\":1", 1);
    assert!(said(&compressed(changed.as_bytes())).contains("expected digest"));
    let changed = lines(&file).replacen("\"punctual\":\"0.1.0\"", "\"punctual\":\"0.1.1\"", 1);
    assert!(said(&compressed(changed.as_bytes())).contains("expected SHA-256"));
}

#[test]
fn what_is_none_or_of_a_later_version_is_said_to_be() {
    for foreign in [&b""[..], b"hello\n", b"\x1f\x8b", &compressed(b"hello\n")] {
        let said = said(foreign);
        assert!(
            said.contains("punctual export") || said.contains("not copied"),
            "{said}"
        );
    }
    let file = written(&runs()[..1]);
    let later = lines(&file).replacen("punctual.export/1", "punctual.export/2", 1);
    let said = said(&compressed(later.as_bytes()));
    assert!(
        said.contains("found punctual.export/2") && said.contains("newer punctual"),
        "{said}"
    );
}

#[test]
fn a_forged_file_is_refused_though_its_checksum_is_right() {
    let runs = runs();
    let one = lines(&written(&runs[..1]));
    assert!(read(&forged(&one, 1)).is_ok(), "the forger knows the form");
    let refused = |from: &str, to: &str, expected: &str| {
        assert!(one.contains(from), "{from}");
        let said = said(&forged(&one.replacen(from, to, 1), 1));
        assert!(said.contains(expected), "{said}");
    };
    refused(
        "\"suite\":0",
        "\"suite\":9",
        "expected its suite before the run",
    );
    let count = |what: &str, count: usize| format!("\"{what}\":{count}");
    let [steps, recordings] = [runs[0].steps.len(), runs[0].recordings.len()];
    let (steps, recordings) = (count("steps", steps), count("recordings", recordings));
    refused(&steps, "\"steps\":999", "expected a step");
    refused(&recordings, "\"recordings\":99999", "at most");
    refused("\"missed\":0", "\"missed\":5", "expected digest");
    refused("\"count\":", "\"count\":1", "expected a sound recording");
    refused("{\"suite\":\"", "{\"suite\":\"[[", "expected a suite");
    refused("{\"run\":", "{\"rune\":", "unknown variant");
    assert!(said(&forged(&one, 2)).contains("expected 2 runs, found 1"));
    let running = one.replacen("\"state\":\"finished\"", "\"state\":\"running\"", 1);
    assert!(said(&forged(&running, 1)).contains("found it running"));
}

#[test]
fn baselines_that_no_store_can_have_are_refused() {
    let one = lines(&written(&runs()[..1]));
    for (baselines, expected) in [
        (r#"[{"name":"a","runs":["r1","r1"]}]"#, "found r1 twice"),
        (
            r#"[{"name":"a","runs":["r1"]},{"name":"a","runs":["r2"]}]"#,
            "expected each baseline once, found a twice",
        ),
        (
            r#"[{"name":"a\nb","runs":["r1"]}]"#,
            "a baseline's name in one line",
        ),
        (
            r#"[{"name":" ","runs":["r1"]}]"#,
            "a baseline's name in one line",
        ),
        (r#"[{"name":"a","runs":[]}]"#, "expected runs, found none"),
    ] {
        let with = format!("\"punctual\":\"0.1.0\",\"baselines\":{baselines}}}}}\n");
        let forged_lines = one.replacen("\"punctual\":\"0.1.0\"}}\n", &with, 1);
        assert_ne!(forged_lines, one);
        let told = said(&forged(&forged_lines, 1));
        assert!(told.contains(expected), "{told}");
    }
}

/// A finished run of which each figure is known, and that contradicts nothing.
fn sound() -> Run {
    let all = runs().into_iter();
    let mut all = all.filter(|run| run.digest().is_some() && run.is_virtual());
    let mut run = all.next().unwrap();
    // Of this step the plan says the interval.
    run.recordings.retain(|one| one.key.step == 1);
    let own = &mut run.recordings[0];
    let interval = own.interval.unwrap();
    let mut recorder = Recorder::new(100);
    for number in 0..100 {
        recorder.record(interval * number, Nanos(4_000 + number * 7));
    }
    *own = Recording {
        interval: Some(interval),
        ..recorder.finish(own.key.clone())
    };
    run
}

#[test]
fn no_figure_that_a_verdict_reads_is_taken_on_trust() {
    type Forgery = (fn(&mut Run), &'static str);
    let forgeries: [Forgery; 16] = [
        (
            |run| run.recordings[0].extremes = Some((Nanos(1), Nanos(2))),
            "extremes",
        ),
        (|run| run.recordings[0].extremes = None, "extremes"),
        (|run| run.recordings[0].sum = Nanos(1), "a sum"),
        (
            |run| run.recordings[0].interval = Some(Nanos(1_000_000_000_000_000)),
            "an interval",
        ),
        (
            |run| run.recordings[0].interval = Some(Nanos(1 << 62)),
            "an interval",
        ),
        (
            |run| run.recordings[0].interval = Some(Nanos(0)),
            "an interval",
        ),
        (
            |run| run.recordings[0].interval = Some(Nanos(7_000)),
            "the interval of its plan",
        ),
        (|run| run.recordings[0].worst.clear(), "worst samples"),
        (
            |run| run.recordings[0].worst[0].value = Nanos(1),
            "worst samples",
        ),
        (
            |run| {
                let few = Recorder::new(0).finish(run.recordings[0].key.clone());
                run.recordings[0].histogram = few.histogram;
            },
            "bins",
        ),
        (|run| run.plan = "not a plan [[".into(), "expected a plan"),
        (|run| run.seed += 1, "in its plan"),
        (
            |run| {
                if let MachineRecord::Virtual(machine) = &mut run.machine {
                    machine.cpus = 0;
                }
            },
            "a machine with CPUs",
        ),
        (
            |run| {
                if let MachineRecord::Virtual(machine) = &mut run.machine {
                    machine.ns_per_insn = 0;
                }
            },
            "ns per instruction",
        ),
        (
            |run| run.subject.bench = "host".into(),
            "expected the bench virtual",
        ),
        (
            |run| run.recordings[0].key.step = 9,
            "as step 10 of its plan",
        ),
    ];
    let file = |run: &Run| {
        let mut writer = Writer::new(Vec::new(), "0.1.0").unwrap();
        writer.add(run, None).unwrap();
        writer.finish().unwrap()
    };
    let sound = sound();
    assert_eq!(
        read(&file(&sound)).unwrap().len(),
        1,
        "the forger begins with a sound one"
    );
    for (forgery, expected) in forgeries {
        let mut forged = sound.clone();
        forgery(&mut forged);
        let told = said(&file(&forged));
        assert!(told.contains(expected), "{expected}: {told}");
    }
}

#[test]
fn a_file_that_takes_much_more_room_than_it_has_is_refused() {
    let head = "{\"header\":{\"schema\":\"punctual.export/1\",\"punctual\":\"0.1.0\"}}\n";
    // 300 MiB on one line, in 300 KiB.
    let mut file = GzEncoder::new(Vec::new(), Compression::fast());
    file.write_all(head.as_bytes()).unwrap();
    file.write_all(b"{\"suite\":\"").unwrap();
    let piece = vec![b'a'; 1 << 20];
    for _ in 0..300 {
        file.write_all(&piece).unwrap();
    }
    let file = file.finish().unwrap();
    assert!(file.len() < 4 << 20);
    assert!(
        said(&file).contains("line 1: expected 268435456 bytes at most"),
        "{}",
        said(&file)
    );
}

#[test]
fn suites_and_outputs_that_are_small_each_and_many_are_refused() {
    let head = "{\"header\":{\"schema\":\"punctual.export/1\",\"punctual\":\"0.1.0\"}}\n";
    let suite = |length: usize| {
        let text = SUITE.replace(
            "summary = \"\"",
            &format!("summary = \"{}\"", "a".repeat(length)),
        );
        format!("{{\"suite\":{}}}\n", serde_json::to_string(&text).unwrap())
    };
    // 40 suites of half a megabyte, each of which would be taken.
    let many = compressed(format!("{head}{}", suite(500_000).repeat(40)).as_bytes());
    assert!(many.len() < 200_000);
    let refused = said(&many);
    assert!(
        refused.contains("expected suites of 16777216 bytes at most"),
        "{refused}"
    );
    let refused = said(&compressed(format!("{head}{}", suite(2 << 20)).as_bytes()));
    assert!(
        refused.contains("expected a suite of 1048576 bytes at most"),
        "{refused}"
    );
    // One run whose recordings have printed two megabytes each.
    let mut run = runs().remove(0);
    let mut printed = run.recordings[0].clone();
    printed.output = Some("a".repeat(2 << 20));
    run.recordings = (1..=33)
        .map(|number| {
            let mut one = printed.clone();
            one.key.variant = format!("cpu{number}");
            one
        })
        .collect();
    let mut writer = Writer::new(Vec::new(), "0.1.0").unwrap();
    let refused = writer.add(&run, None).unwrap_err().to_string();
    assert!(
        refused.contains("67108864 bytes of output at most"),
        "{refused}"
    );
    // Somebody else's program has written it all the same.
    run.recordings.truncate(1);
    let one = lines(&written(&[run]));
    let recording = one
        .lines()
        .find(|line| line.starts_with("{\"recording\""))
        .unwrap();
    let bomb = one.replace("\"recordings\":1,", "\"recordings\":40,");
    assert_ne!(bomb, one);
    let bomb = bomb.replace(recording, &[recording; 40].join("\n"));
    let refused = said(&forged(&bomb, 1));
    assert!(
        refused.contains("67108864 bytes of output at most"),
        "{refused}"
    );
}

#[test]
fn a_run_that_goes_on_is_not_written_and_each_is_stored_once() {
    let mut running = runs().remove(0);
    running.state = State::Running;
    let mut writer = Writer::new(Vec::new(), "0.1.0").unwrap();
    let refused = writer.add(&running, None).unwrap_err().to_string();
    assert!(refused.contains("found it running"), "{refused}");

    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(&directory.path().join("new.db")).unwrap();
    let all = read(&written(&runs())).unwrap();
    for round in 0..2 {
        for one in &all {
            let added = store.add(&one.run).unwrap();
            assert_eq!(matches!(added, Added::New(_)), round == 0, "{added:?}");
            let (Added::New(id) | Added::Known(id)) = added;
            let stored = store.load(&id).unwrap();
            assert_eq!(
                Run {
                    id: one.run.id.clone(),
                    ..stored
                },
                one.run
            );
        }
    }
    assert_eq!(store.list().unwrap().len(), all.len());
}

#[test]
fn a_run_with_samples_is_none_of_another_program() {
    let mut run = runs()
        .into_iter()
        .find(|run| run.digest().is_some())
        .unwrap();
    let provenance = run.provenance.as_mut().unwrap();
    let facts = &mut provenance.facts;
    facts.insert(punctual_model::run::IMPORTED.into(), "a".to_owned().into());
    run.machine = MachineRecord::Host(punctual_model::machine::HostMachine::default());
    run.subject.bench = "host".into();
    let error = said(&written(std::slice::from_ref(&run)));
    assert!(error.contains("what only Punctual measures"), "{error}");
}

#[test]
fn a_run_that_has_less_than_its_plan_asks_for_is_none_that_finished() {
    let mut run = runs()
        .into_iter()
        .find(|run| run.digest().is_some())
        .unwrap();
    let whole = &mut run.recordings[0];
    let (step, count) = (whole.key.step as usize, whole.count);
    // Of another version: it says more than is known here.
    let plan: toml::Table = toml::from_str(&run.plan).unwrap();
    let with = |samples: u64| {
        let mut plan = plan.clone();
        let steps = plan.get_mut("step").and_then(toml::Value::as_array_mut);
        let step = steps.unwrap()[step].as_table_mut().unwrap();
        step.insert("samples".into(), (samples as i64).into());
        plan.to_string()
    };
    run.plan = with(count);
    assert!(read(&written(std::slice::from_ref(&run))).is_ok());
    run.plan = with(count + 1);
    let error = said(&written(std::slice::from_ref(&run)));
    let expected = format!("asks for: {count} samples of {}", count + 1);
    assert!(error.contains(&expected), "{error}");
    // What says that it was interrupted is no forgery, and no verdict is had of it.
    run.recordings[0].interrupted = true;
    run.state = State::Interrupted;
    assert!(read(&written(std::slice::from_ref(&run))).is_ok());
}

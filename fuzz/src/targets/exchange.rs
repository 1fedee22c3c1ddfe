// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files of runs, which strangers have written.

use std::io::{Read as _, Write as _};
use std::sync::LazyLock;

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use punctual_exchange::witness::{Seen, Statement};
use punctual_exchange::{Exported, Reader, Witness, Writer, is_export};
use punctual_model::suite::Suite;
use punctual_model::{Nanos, Recorder, Run, digest};

use super::fixtures;
use crate::Target;

const SUITE: &str = "name = \"s\"\nsummary = \"\"\n[[step]]\nprobe = \"timer\"\n";

/// A file, and the lines of one whose checksum is right.
pub const EXPORT: Target = Target {
    name: "export",
    seeds: || {
        let runs = [fixtures::run("rt", 1), fixtures::with_gaps().remove(2)];
        let file = written(&runs.map(few_samples));
        let mut lines = String::new();
        let read = GzDecoder::new(file.as_slice()).read_to_string(&mut lines);
        read.expect("what was written is read");
        let end = lines.rfind("{\"end\"").expect("the last line");
        lines.truncate(end);
        vec![file, lines.into_bytes()]
    },
    run: |bytes| {
        let read = if is_export(bytes) {
            read(bytes)
        } else {
            read(&whole(bytes))
        };
        let Ok(read) = read else {
            return false;
        };
        let runs: Vec<Run> = read.into_iter().map(|one| one.run).collect();
        let again = self::read(&written(&runs)).expect("what was written is read");
        let again: Vec<Run> = again.into_iter().map(|one| one.run).collect();
        assert!(again == runs || format!("{again:?}") == format!("{runs:?}"));
        true
    },
};

/// A file with one run.
static ONE_RUN: LazyLock<Vec<u8>> =
    LazyLock::new(|| written(&[few_samples(fixtures::run("rt", 1))]));

/// The lines of witnesses behind a sound file.
pub const WITNESS: Target = Target {
    name: "witness",
    seeds: || {
        let seen = Seen {
            run: "r1".to_owned(),
            outcome: "equal".to_owned(),
            digest: Some("0123456789ab".to_owned()),
            qemu: Some("7.2.22".to_owned()),
            initramfs: None,
        };
        let statement = Statement::new("cafe", "2026-11-29T12:00:00Z", vec![seen]);
        let statement = serde_json::to_string(&statement).expect("JSON");
        let signature = "-----BEGIN SSH SIGNATURE-----\nU1NIU0lH\n-----END SSH SIGNATURE-----\n";
        let witness = serde_json::json!({ "statement": statement, "signature": signature });
        let line = format!("{}\n", serde_json::json!({ "witness": witness }));
        vec![line.repeat(2).into_bytes(), line.into_bytes()]
    },
    run: |bytes| {
        let mut file = ONE_RUN.clone();
        // Each is a member of its own.
        for line in bytes
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
        {
            let mut member = GzEncoder::new(&mut file, Compression::fast());
            member.write_all(line).expect("memory");
            member.finish().expect("memory");
        }
        let Ok(mut reader) = Reader::new(file.as_slice()) else {
            return false;
        };
        let run = reader.next_run().expect("a sound run");
        assert!(run.is_some(), "the run is there whatever follows it");
        if reader.next_run().is_err() {
            return false;
        }
        let mut all = reader.witnesses().iter().map(Witness::statement);
        all.len() > 0 && all.all(|one| one.is_ok())
    },
};

/// The same run with so few samples that an input holds it.
fn few_samples(mut run: Run) -> Run {
    let steps = run.steps.iter().map(|step| {
        let (probe, load) = (&step.probe, &step.load);
        format!("\n[[step]]\nprobe = \"{probe}\"\nload = \"{load}\"\nsamples = 9\n")
    });
    let steps: String = steps.collect();
    run.plan = format!("seed = {}\n{steps}", run.seed);
    for recording in &mut run.recordings {
        let mut recorder = Recorder::new(9);
        for number in 0..9 {
            recorder.record(Nanos(number * 1_000), Nanos(4_000 + number));
        }
        *recording = recorder.finish(recording.key.clone());
    }
    run
}

fn written(runs: &[Run]) -> Vec<u8> {
    let suite = Suite::parse(SUITE).expect("a suite");
    let mut writer = Writer::new(Vec::new(), "0.1.0").expect("memory");
    for run in runs {
        writer.add(run, Some(&suite)).expect("a run that has ended");
    }
    writer.finish().expect("memory")
}

/// These lines as a file, with an end that fits.
fn whole(lines: &[u8]) -> Vec<u8> {
    let is_run = |line: &&[u8]| line.starts_with(b"{\"run\"");
    let runs = lines.split(|byte| *byte == b'\n').filter(is_run).count();
    let sha256 = digest::sha256(lines);
    let end = format!("{{\"end\":{{\"runs\":{runs},\"sha256\":\"{sha256}\"}}}}\n");
    let mut file = GzEncoder::new(Vec::new(), Compression::fast());
    file.write_all(lines).expect("memory");
    file.write_all(end.as_bytes()).expect("memory");
    file.finish().expect("memory")
}

fn read(file: &[u8]) -> Result<Vec<Exported>, punctual_exchange::ExchangeError> {
    let mut reader = Reader::new(file)?;
    let mut all = Vec::new();
    while let Some(one) = reader.next_run()? {
        all.push(one);
    }
    Ok(all)
}

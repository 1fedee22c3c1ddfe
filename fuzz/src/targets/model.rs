// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the target sends, what is stored of it, and what people write.

use punctual_model::board::{Answer, Hello, Refusal, Request};
use punctual_model::frame::{Decoder, Encoder};
use punctual_model::record::{Finished, Started, Unsupported};
use punctual_model::status_page::{
    COUNT_WORD, MAGIC, MAGIC_WORD, OF_WORD, PAGE_WORDS, Reader, SLOTS_WORD, STEP_WORD,
    WORKERS_WORD, WORST_WORD, slot_of,
};
use punctual_model::suite::Suite;
use punctual_model::{Nanos, Plan, Progress, Record, Recording};

use super::{fixtures, text};
use crate::Target;

/// What a board answers, and what it is asked, in a frame whose checksum is right.
pub const BOARD: Target = Target {
    name: "board",
    seeds: || {
        let job = || "0123456789abcdef".to_owned();
        let answers = [
            Answer::Hello(Hello::default()),
            Answer::Begun { job: job() },
            Answer::Refused(Refusal::NotAlone),
            Answer::Stream(stream(&records())),
            Answer::Progress(Progress::default()),
            Answer::Ended("exit status 0".into()),
        ];
        let requests = [
            Request::Begin {
                job: job(),
                plan: plans().next().expect("a step").to_toml(),
                take_up: true,
            },
            Request::Follow {
                job: job(),
                stream: 1,
                console: 0,
            },
            Request::Remove { job: job() },
        ];
        let answers = answers
            .iter()
            .map(|one| Encoder::default().encode(one).split_off(HEADER));
        let requests = requests
            .iter()
            .map(|one| Encoder::default().encode(one).split_off(HEADER));
        answers.chain(requests).collect()
    },
    run: |bytes| {
        let mut decoder = Decoder::default();
        decoder.feed(&frame(bytes));
        let answer = decoder.next_message::<Answer>();
        let mut decoder = Decoder::default();
        decoder.feed(&frame(bytes));
        let request = decoder.next_message::<Request>();
        matches!(answer, Ok(Some(_))) || matches!(request, Ok(Some(_)))
    },
};

/// The page in a guest's memory that says how far it is.
pub const STATUS: Target = Target {
    name: "status",
    seeds: || {
        let mut words = vec![0_u64; 2 * PAGE_WORDS];
        (words[MAGIC_WORD], words[STEP_WORD], words[SLOTS_WORD]) = (MAGIC, 3, 2);
        words[WORKERS_WORD] = 1;
        for slot in 0..2 {
            let at = slot_of(slot + 1);
            words[at + COUNT_WORD] = 7;
            words[at + OF_WORD] = 40;
            words[at + WORST_WORD] = 9_000;
        }
        vec![words.into_iter().flat_map(u64::to_le_bytes).collect()]
    },
    run: |bytes| {
        let mut reader = Reader::default();
        let first = reader.read(bytes);
        // The same page twice is no news.
        let again = reader.read(bytes);
        if let (Some(first), Some(again)) = (&first, &again) {
            assert!(!again.is_news_after(first));
        }
        first.is_some()
    },
};

/// The stream of records.
pub const FRAMES: Target = Target {
    name: "frames",
    seeds: || vec![stream(&records()), stream(&records()[..3])],
    run: |bytes| {
        let whole = decode(&[bytes]);
        let (first, second) = bytes.split_at(bytes.len() / 2);
        assert_eq!(whole, decode(&[first, second]), "pieces of another size");
        whole.0 > 0
    },
};

/// The plan of a run.
pub const PLAN: Target = Target {
    name: "plan",
    seeds: || plans().map(|plan| plan.to_toml().into_bytes()).collect(),
    run: |bytes| {
        let Ok(plan) = toml::from_str::<Plan>(&text(bytes)) else {
            return false;
        };
        let again = toml::from_str::<Plan>(&plan.to_toml()).expect("what was written is read");
        // NaN is not equal to itself.
        assert!(again == plan || format!("{again:?}") == format!("{plan:?}"));
        true
    },
};

/// The body of a frame whose checksum is right.
pub const RECORD: Target = Target {
    name: "record",
    seeds: || {
        let cbor = |record: &Record| Encoder::default().encode(record).split_off(HEADER);
        records().iter().map(cbor).collect()
    },
    run: |bytes| {
        let mut decoder = Decoder::default();
        decoder.feed(&frame(bytes));
        let record = decoder.next_record();
        if let Ok(Some(Record::Recording(recording) | Record::SoFar(recording))) = &record {
            let interval = recording.interval.unwrap_or(Nanos(1));
            let _ = recording.histogram.corrected_for(interval);
            let _ = (recording.mean(), recording.title(), recording.key.label());
            let _ = (
                recording.histogram.quantile(0.5),
                recording.samples.iter().last(),
            );
        }
        matches!(record, Ok(Some(_)))
    },
};

/// A suite.
pub const SUITE: Target = Target {
    name: "suite",
    seeds: || {
        let suites = [
            include_str!("../../../suites/demo.toml"),
            include_str!("../../../suites/latest-stable.toml"),
            STALLS,
        ];
        let mut seeds: Vec<_> = suites.iter().copied().flat_map(small_suites).collect();
        let load = include_str!("../../../loads/stress.toml")
            .replace("summary", "[load.own]\nsummary")
            .replace("[[worker]]", "[[load.own.worker]]");
        let step = "name = \"s\"\nsummary = \"\"\n[[step]]\nprobe = \"timer\"\nload = \"own\"\n";
        seeds.push(format!("{step}{load}").into_bytes());
        seeds
    },
    run: |bytes| {
        let Ok(suite) = Suite::parse(&text(bytes)) else {
            return false;
        };
        let _ = suite.plan(&suite.steps, &suite.loads, 1);
        true
    },
};

fn recordings() -> Vec<Recording> {
    fixtures::all_probes().remove(0).recordings
}

fn records() -> Vec<Record> {
    let run = fixtures::run_without_samples("rt", 1);
    let mut records = vec![
        Record::Provenance(run.provenance.expect("it has one")),
        Record::Started(Started {
            step: 0,
            probe: "timer".into(),
            load: "idle".into(),
            nominal: Nanos(5),
        }),
        Record::Unsupported(Unsupported {
            step: 0,
            probe: "irq".into(),
            load: "idle".into(),
            reason: "no module".to_owned().into(),
        }),
    ];
    let so_far = recordings().remove(0);
    let recordings = recordings().into_iter().take(2);
    records.extend(recordings.map(|one| Record::Recording(Box::new(one))));
    records.push(Record::SoFar(Box::new(so_far)));
    records.push(Record::Finished(Finished {
        recordings: 2,
        unsupported: 1,
    }));
    records
}

const HEADER: usize = 16;

/// The first frame of a stream, with this body.
fn frame(body: &[u8]) -> Vec<u8> {
    let fields = [0, body.len() as u32].map(u32::to_le_bytes);
    let checksum = crc32fast::hash(&[fields.as_flattened(), body].concat());
    [
        b"PNCT",
        fields.as_flattened(),
        &checksum.to_le_bytes(),
        body,
    ]
    .concat()
}

fn stream(records: &[Record]) -> Vec<u8> {
    let mut encoder = Encoder::default();
    records.iter().flat_map(|one| encoder.encode(one)).collect()
}

/// What comes of a stream: the number of its records, and whether all of it was right.
fn decode(pieces: &[&[u8]]) -> (usize, bool) {
    let mut decoder = Decoder::default();
    let mut records = 0;
    for piece in pieces {
        decoder.feed(piece);
        loop {
            match decoder.next_record() {
                Ok(Some(_)) => records += 1,
                Ok(None) => break,
                Err(_) => return (records, false),
            }
        }
    }
    (records, decoder.finish().is_ok())
}

const STALLS: &str = include_str!("../../../suites/stalls.toml");

/// The suite with one of its steps, limits and so on only: ten times as many inputs in the same
/// time, and each byte of them counts.
fn small_suites(suite: &str) -> impl Iterator<Item = Vec<u8>> {
    let mut tables = suite.split("\n[[");
    let head = tables.next().unwrap_or_default();
    tables.map(move |table| {
        let step = if table.starts_with("step") {
            ""
        } else {
            "\n[[step]]\nprobe = \"timer\"\n"
        };
        format!("{head}\n[[{table}{step}").into_bytes()
    })
}

/// A plan for each step of a suite.
fn plans() -> impl Iterator<Item = Plan> {
    let suite = Suite::parse(STALLS).expect("a suite");
    let idle = suite.steps.clone().into_iter();
    let idle = idle.filter(|step| step.load == "idle");
    idle.map(move |step| suite.plan(&[step], &suite.loads, 7).expect("a plan"))
}

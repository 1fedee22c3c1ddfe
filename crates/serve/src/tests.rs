// SPDX-License-Identifier: MIT OR Apache-2.0
//! No client may harm others: take the memory, or keep them waiting.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use punctual_model::campaign::{Asked, Setting};
use punctual_model::run::{Request, State};
use punctual_model::{MachineRecord, Nanos, Recorder, RecordingKey, Run, Subject};
use punctual_store::{PlannedRun, key};
use serde_json::Value;
use tempfile::TempDir;

use super::*;

/// Longer than any test.
const NEVER: Duration = Duration::from_secs(3_600);

/// Limits under which nothing ends by itself.
fn limits() -> Limits {
    Limits {
        head: NEVER,
        whole: NEVER,
        stall: NEVER,
        patience: Duration::from_millis(50),
        ..Limits::default()
    }
}

fn run_of(samples: i64) -> Run {
    let mut recorder = Recorder::new(samples as usize);
    for at in 0..samples {
        recorder.record(Nanos(at * 1_000_000), Nanos(3_000 + at % 977));
    }
    Run {
        request: Request::default(),
        id: String::new(),
        suite: "demo".into(),
        plan: "seed = 1\n[[step]]\nprobe = \"timer\"\n".into(),
        seed: 1,
        subject: Subject {
            name: "rt".into(),
            kernel: "6.12-rt".into(),
            boot: String::new(),
            bench: "virtual".into(),
        },
        state: State::Finished,
        error: None,
        started: "2026-01-01T00:00:00Z".into(),
        finished: Some("2026-01-01T00:01:00Z".into()),
        punctual: "0.1.0".into(),
        machine: MachineRecord::default(),
        shards: 1,
        provenance: None,
        steps: Vec::new(),
        recordings: vec![recorder.finish(RecordingKey::new("timer", "idle", "cpu0"))],
        unsupported: Vec::new(),
        console: String::new(),
        arrivals: Vec::new(),
    }
}

/// A store with a run for each of these numbers of samples.
pub(crate) fn fill(path: &Path, samples: &[i64]) {
    let store = Store::open(path).unwrap();
    for (seed, count) in (1..).zip(samples) {
        let run = Run {
            seed,
            ..run_of(*count)
        };
        store.add(&run).unwrap();
    }
}

/// Ends the site when it goes out of scope.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Does `work` while a site of these runs is served.
fn served(samples: &[i64], limits: Limits, work: impl FnOnce(SocketAddr, &Path)) {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("runs.db");
    fill(&path, samples);
    let options = Options {
        place: Place::File(path.clone()),
        listen: "127.0.0.1:0".parse().unwrap(),
        access: Access::Local,
        documents: Vec::new(),
    };
    let cancel = AtomicBool::new(false);
    let (send, receive) = std::sync::mpsc::channel();
    thread::scope(|scope| {
        let cancel = &cancel;
        // The sender goes with the thread: where the site does not begin, nobody waits for it.
        let serving = scope.spawn(move || {
            serve_within(options, limits, cancel, |address| {
                send.send(address).unwrap();
            })
        });
        // Also where an assertion fails.
        let ends = Ends(cancel);
        work(receive.recv().unwrap(), &path);
        drop(ends);
        serving.join().unwrap().unwrap();
    });
}

fn ask(address: SocketAddr, target: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    let request = format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    stream
}

/// The status and the body of an answer.
fn get(address: SocketAddr, target: &str) -> (u16, String) {
    let mut text = Vec::new();
    ask(address, target).read_to_end(&mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let is_chunked = head.contains("transfer-encoding: chunked");
    (
        status,
        if is_chunked {
            unchunked(body)
        } else {
            body.to_owned()
        },
    )
}

fn unchunked(mut body: &str) -> String {
    let mut text = String::new();
    loop {
        let (length, rest) = body.split_once("\r\n").unwrap();
        let length = usize::from_str_radix(length, 16).unwrap();
        if length == 0 {
            return text;
        }
        text.push_str(&rest[..length]);
        body = rest[length..].strip_prefix("\r\n").unwrap();
    }
}

/// A campaign of these runs; returns its id.
pub(crate) fn campaign(store: &Store, runs: &[&str]) -> String {
    let runs: Vec<Run> = runs.iter().map(|id| store.load(id).unwrap()).collect();
    let asked = Asked {
        name: "nightly".into(),
        summary: String::new(),
        left_out: Vec::new(),
        settings: vec![Setting {
            name: "demo".into(),
            subjects: vec!["none".into()],
            seeds: runs.iter().map(|run| run.seed).collect(),
        }],
    };
    let planned = runs.iter().map(|run| PlannedRun {
        setting: 0,
        subject: 0,
        seed: run.seed,
        key: key(run),
    });
    let planned: Vec<PlannedRun> = planned.collect();
    store
        .begin_campaign(&asked, &planned, "2026-01-09T00:00:00Z")
        .unwrap()
}

#[test]
fn the_list_has_each_runs_latest_sample_and_a_filter_that_is_folded_until_it_is_used() {
    served(&[300, 900], Limits::default(), |address, _| {
        let (status, page) = get(address, "/");
        assert_eq!(status, 200);
        for part in [
            ">3.30 µs</td><td data-of=\"of\">timer, idle</td>",
            ">3.90 µs</td>",
        ] {
            assert!(page.contains(part), "{page}");
        }
        assert!(page.contains("<details><summary>Filter "), "{page}");
        // A command line may be long.
        let kernel = "<span class=\"brief\">6.12-rt</span>";
        assert!(page.contains(kernel), "{page}");
        let (_, page) = get(address, "/?suite=demo");
        assert!(page.contains("<details open><summary>Filter <span>suite demo<"));
    });
}

#[test]
fn what_takes_too_much_memory_is_refused_and_what_is_left_is_answered() {
    let limits = Limits {
        request: 4 << 20,
        ..limits()
    };
    // 100,000 samples are half a megabyte or more in the store, and many times that on a page.
    served(&[100_000, 100], limits, |address, path| {
        let store = Store::open(path).unwrap();
        let heavy = campaign(&store, &["r1", "r2"]);
        let light = campaign(&store, &["r2"]);
        assert_eq!(get(address, &format!("/campaigns/{light}")).0, 200);
        let of_heavy = [
            format!("/campaigns/{heavy}"),
            format!("/api/campaigns/{heavy}"),
        ];
        for target in [
            of_heavy[0].as_str(),
            of_heavy[1].as_str(),
            "/runs/r1",
            "/api/runs/r1",
            "/show?run=r1",
            "/compare?run=r2&run=r1",
            "/api/compare?run=r2&run=r1",
            "/api/show?run=r1&run=r2&raw=true",
        ] {
            let (status, body) = get(address, target);
            let begin = body.get(..200).unwrap_or(&body);
            assert_eq!(status, 413, "{target}: {begin}");
            assert!(body.contains("4 MiB of memory at most"), "{body}");
        }
        assert_eq!(get(address, "/runs/r2").0, 200);
        assert_eq!(get(address, "/").0, 200);
    });
}

#[test]
fn no_run_is_judged_against_itself() {
    served(&[300, 900], limits(), |address, path| {
        let store = Store::open(path).unwrap();
        store.set_baseline("base", &["r1".into()]).unwrap();
        let (status, body) = get(address, "/api/gate?run=r1&baseline=base");
        assert_eq!(status, 400, "{body}");
        assert!(body.contains("r1 is of baseline base"), "{body}");
        assert_eq!(get(address, "/api/gate?run=r2&baseline=base").0, 200);
        // And none is offered a baseline that holds it, alone or beside others.
        let both = ["r1".to_owned(), "r2".to_owned()];
        store.set_baseline("both", &both).unwrap();
        let (_, page) = get(address, "/runs/r2");
        assert!(page.contains("<option value=\"base\">"), "{page}");
        assert!(!page.contains("<option value=\"both\">"), "{page}");
    });
}

#[test]
fn after_a_defect_too_a_program_gets_json() {
    let kind = |path: &str| {
        let path = path.to_owned();
        let query = String::new();
        NotDone::Broken
            .answer(&routes::Request { path, query })
            .kind
    };
    assert_eq!(kind("/api/runs"), "application/json");
    assert_eq!(kind("/runs/r1"), "text/html; charset=utf-8");
}

#[test]
fn raw_samples_are_written_one_by_one_and_are_all_there() {
    served(&[5_000, 100], limits(), |address, path| {
        let (status, body) = get(address, "/api/show?run=r1&run=r2&raw=true");
        assert_eq!(status, 200, "{body}");
        let found: Value = serde_json::from_str(&body).unwrap();
        let store = Store::open(path).unwrap();
        let runs = ["r1", "r2"].map(|id| store.load(id).unwrap());
        assert_eq!(found, punctual_report::runs_json(&runs, true));
        let samples = &found["runs"][0]["recordings"][0]["samples"];
        assert_eq!(samples.as_array().map(Vec::len), Some(5_000));
        // Nothing of it is laid out on lines.
        assert!(body.len() < 5_100 * 30, "{}", body.len());
        let bare: Value = serde_json::from_str(&get(address, "/api/runs/r1").1).unwrap();
        assert_eq!(bare, punctual_report::runs_json(&runs[..1], false));
    });
}

#[test]
fn who_reads_nothing_keeps_no_memory_from_others_but_his_own() {
    let limits = Limits {
        request: 64 << 20,
        ordinary: 4 << 20,
        ordinary_memory: 8 << 20,
        large_memory: 64 << 20,
        ..limits()
    };
    served(&[400_000, 100], limits, |address, _| {
        // Far more than the sockets hold: each waits for its reader, with what it has reserved.
        let target = "/api/runs/r1?raw=true";
        let mut silent = Vec::new();
        let refused = loop {
            assert!(silent.len() < 16, "each of them was taken");
            let mut stream = ask(address, target);
            let mut begin = [0; 12];
            stream.read_exact(&mut begin).unwrap();
            let begin = String::from_utf8_lossy(&begin).into_owned();
            silent.push(stream);
            if !begin.ends_with("200") {
                break begin;
            }
        };
        assert_eq!(refused, "HTTP/1.1 503");
        // Others have their answers all the same.
        assert_eq!(get(address, "/runs/r2").0, 200);
        assert_eq!(get(address, "/").0, 200);
    });
}

#[test]
fn half_requests_give_way_to_whole_ones() {
    let limits = Limits {
        connections: 8,
        ..limits()
    };
    served(&[100], limits, |address, _| {
        let half = || {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(b"GET / HTTP/1.1\r\nHost: local").unwrap();
            stream
        };
        let _waiting: Vec<TcpStream> = (0..40).map(|_| half()).collect();
        assert_eq!(get(address, "/runs/r1").0, 200);
    });
}

#[test]
fn a_store_that_was_replaced_is_the_new_one_and_a_deleted_one_is_none() {
    served(&[100, 200], limits(), |address, path| {
        assert_eq!(get(address, "/runs/r2").0, 200);
        let other = path.with_file_name("other.db");
        fill(&other, &[300]);
        for name in ["runs.db-wal", "runs.db-shm"] {
            _ = std::fs::remove_file(path.with_file_name(name));
        }
        std::fs::rename(&other, path).unwrap();
        assert_eq!(get(address, "/runs/r2").0, 404);
        let one: Value = serde_json::from_str(&get(address, "/api/runs/r1").1).unwrap();
        assert_eq!(one["runs"][0]["recordings"][0]["count"], 300);
        std::fs::remove_file(path).unwrap();
        let (status, body) = get(address, "/");
        assert_eq!(status, 503, "{body}");
    });
}

#[test]
fn a_store_that_others_cannot_use_meanwhile_is_not_kept_open() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("runs.db");
    fill(&path, &[100]);
    let idle = |stores: &Stores| stores.idle.lock().unwrap().len();
    let place = Place::File(path.clone());
    let stores = Stores::open(place.clone()).unwrap();
    assert_eq!(idle(&stores), 1);
    drop(stores);
    // Nothing can be made where this directory is, as on a full disk or in somebody else's place.
    std::fs::create_dir(directory.path().join("runs.db-wal")).unwrap();
    let stores = Stores::open(place).unwrap();
    assert_eq!(idle(&stores), 0);
    let (store, is_other) = stores.take().unwrap();
    assert!(is_other && !store.is_shared());
    stores.give_back(store);
    assert_eq!(idle(&stores), 0);
}

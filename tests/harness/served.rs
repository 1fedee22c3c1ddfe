// SPDX-License-Identifier: MIT OR Apache-2.0
//! `punctual serve` over some runs, a few of which have names that would do harm as markup.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::Duration;

use punctual_model::campaign::{Asked, Setting};
use punctual_model::run::{Request, State};
use punctual_model::{MachineRecord, Nanos, Recorder, RecordingKey, Run, Subject};
use punctual_store::{End, PlannedRun, Store, Story, key};
use serde_json::Value;

use crate::Scratch;

/// A text that would act if it were taken as markup.
pub const EVIL: &str = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>&amp;";

/// Some runs: of two subjects, with a foreign name, failed and interrupted ones.
///
/// # Panics
/// If they cannot be stored.
pub fn fill(scratch: &Scratch) -> Store {
    let store = Store::open(&scratch.path("data/punctual/runs.db")).expect("it works");
    let add = |seed, subject: &str, state, worst: i64| {
        let mut recorder = Recorder::new(100);
        for sample in 0..100 {
            recorder.record(Nanos(sample * 1_000_000), Nanos(3_000 + sample * worst));
        }
        let run = Run {
            request: Request::default(),
            id: String::new(),
            suite: "demo".into(),
            plan: format!("seed = {seed}\n[[step]]\nprobe = \"timer\"\n"),
            seed,
            subject: Subject {
                name: subject.into(),
                kernel: format!("kernel of {subject}"),
                boot: subject.into(),
                bench: "virtual".into(),
            },
            state: State::Running,
            error: None,
            started: format!("2026-01-0{}T00:00:00Z", 1 + seed % 9),
            finished: None,
            punctual: "0.1.0".into(),
            machine: MachineRecord::default(),
            shards: 1,
            provenance: None,
            steps: Vec::new(),
            recordings: vec![recorder.finish(RecordingKey::new("timer", "idle", "cpu0"))],
            unsupported: Vec::new(),
            console: String::new(),
            arrivals: Vec::new(),
        };
        let id = store.begin(&run).expect("it works");
        let digest = Run { state, ..run }.digest();
        let end = End {
            state,
            error: (state == State::Failed).then_some(EVIL),
            finished: "2026-01-09T00:01:00Z",
            console: &format!("booted\n{EVIL}\n\x1b[31mred\0"),
            digest: digest.as_deref(),
        };
        store.end(&id, &end).expect("it works");
        id
    };
    let mut ids = Vec::new();
    for seed in 1..=3 {
        ids.push(add(seed, "none", State::Finished, 40));
        add(seed, "rt", State::Finished, 10);
    }
    add(4, EVIL, State::Finished, 10);
    add(5, EVIL, State::Failed, 10);
    store.set_baseline("stable", &ids).expect("it works");
    store.set_baseline(EVIL, &ids[..1]).expect("it works");
    let told = Story {
        made: "2026-01-09T00:00:00Z".into(),
        told: format!("late because of {EVIL}"),
        json: "{\"late\":true}".into(),
    };
    store.add_story("r1", &told).expect("it works");
    store
}

/// Adds to a store that was [filled](fill) a campaign that has ended, and one that this process is
/// working on, which goes on with the run r9.
///
/// # Panics
/// If they cannot be stored.
pub fn add_campaigns(store: &Store) {
    let asked = |name: &str, subjects: &[&str], seeds: &[u64]| Asked {
        name: name.into(),
        summary: format!("what for {EVIL}"),
        left_out: vec![EVIL.into()],
        settings: vec![Setting {
            name: "demo".into(),
            subjects: subjects.iter().copied().map(str::to_owned).collect(),
            seeds: seeds.to_vec(),
        }],
    };
    let planned = |runs: &[&str]| -> Vec<PlannedRun> {
        let runs = runs.iter().map(|id| store.load(id).expect("it works"));
        runs.map(|run| PlannedRun {
            setting: 0,
            subject: usize::from(run.subject.name != "none"),
            seed: run.seed,
            key: key(&run),
        })
        .collect()
    };
    let begun = "2026-01-09T00:00:00Z";
    let ended = asked("nightly", &["none", "rt"], &[1, 2, 3]);
    let runs = planned(&["r1", "r2", "r3", "r4", "r5", "r6"]);
    let id = store
        .begin_campaign(&ended, &runs, begun)
        .expect("it works");
    let told = format!("nightly: 6 of 6 runs {EVIL}");
    store
        .end_campaign(&id, "2026-01-09T01:00:00Z", &told)
        .expect("it works");
    // One is finished, one goes on, and one waits.
    let going = Run {
        seed: 2,
        plan: "seed = 2".into(),
        ..store.load("r7").expect("it works")
    };
    store.begin(&going).expect("it works");
    let waits = Run {
        seed: 3,
        plan: "seed = 3".into(),
        ..going.clone()
    };
    let mut runs = planned(&["r7"]);
    runs.extend([going, waits].map(|run| PlannedRun {
        setting: 0,
        subject: 1,
        seed: run.seed,
        key: key(&run),
    }));
    let asked = asked(EVIL, &["none", EVIL], &[1, 2, 3]);
    store
        .begin_campaign(&asked, &runs, begun)
        .expect("it works");
}

/// A server and its address.
#[derive(Debug)]
pub struct Served {
    /// The server's process.
    pub process: Child,
    /// The address that it listens on, such as `127.0.0.1:8128`.
    pub address: String,
}

impl Served {
    /// Starts a server, with a token or without.
    ///
    /// # Panics
    /// If it does not report its address.
    pub fn new(scratch: &Scratch, arguments: &[&str], token: Option<&str>) -> Self {
        let listen = ["serve", "--listen", "127.0.0.1:0"];
        let mut command = scratch.punctual(&[&listen[..], arguments].concat());
        command.env_remove("PUNCTUAL_TOKEN");
        command.envs(token.map(|token| ("PUNCTUAL_TOKEN", token)));
        let mut process = command.stderr(Stdio::piped()).spawn().expect("it works");
        let said = BufReader::new(process.stderr.take().expect("it works"));
        let line = said
            .lines()
            .map_while(Result::ok)
            .find(|line| line.contains("http://"));
        let line = line.expect("it says where it is");
        let behind = line.split("http://").nth(1).expect("it works");
        let address = behind.split('/').next().expect("it works").to_owned();
        Self { process, address }
    }

    /// A connection.
    ///
    /// # Panics
    /// If there is none.
    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).expect("it works");
        stream
            .set_read_timeout(Some(Duration::from_secs(600)))
            .expect("it works");
        stream
    }

    /// Sends these bytes, and returns the reply.
    pub fn send(&self, request: &[u8]) -> Reply {
        let mut stream = self.connect();
        // Whoever is refused early may not be read to the end.
        _ = stream.write_all(request);
        let mut bytes = Vec::new();
        _ = stream.read_to_end(&mut bytes);
        Reply::parse(&bytes)
    }

    /// Sends a request with more headers.
    pub fn request(&self, method: &str, target: &str, headers: &str) -> Reply {
        let host = &self.address;
        let text = format!("{method} {target} HTTP/1.1\r\nHost: {host}\r\n{headers}\r\n");
        self.send(text.as_bytes())
    }

    /// Asks for a page.
    pub fn get(&self, target: &str) -> Reply {
        self.request("GET", target, "")
    }

    /// Asks for JSON, which must be the answer.
    ///
    /// # Panics
    /// If it is not.
    pub fn json(&self, target: &str) -> Value {
        let reply = self.get(target);
        assert_eq!(reply.status, 200, "{target}: {}", reply.body);
        assert_eq!(reply.header("content-type"), "application/json");
        serde_json::from_str(&reply.body).expect("it works")
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        _ = self.process.kill();
        _ = self.process.wait();
    }
}

/// The answer of a server.
#[derive(Debug)]
pub struct Reply {
    /// The status; 0 if there was no answer.
    pub status: u16,
    head: String,
    /// The body.
    pub body: String,
}

impl Reply {
    /// Parses an answer.
    pub fn parse(bytes: &[u8]) -> Self {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
        let (head, body) = bytes.split_at(end.unwrap_or(bytes.len()));
        let head = String::from_utf8_lossy(head);
        let status = head.split(' ').nth(1).and_then(|word| word.parse().ok());
        let mut reply = Self {
            status: status.unwrap_or(0),
            head: head.to_lowercase(),
            body: String::new(),
        };
        let body = body.get(4..).unwrap_or_default();
        let is_chunked = reply.header("transfer-encoding") == "chunked";
        let body = if is_chunked {
            joined(body)
        } else {
            body.to_owned()
        };
        reply.body = String::from_utf8_lossy(&body).into_owned();
        reply
    }

    /// The value of a header, whose name is in lower case; empty if there is none.
    pub fn header(&self, name: &str) -> &str {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(':'));
        lines
            .find(|(own, _)| *own == name)
            .map_or("", |(_, value)| value.trim())
    }
}

/// The chunks of a body, up to the empty one (RFC 9112, 7.1).
fn joined(mut chunked: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(end) = chunked.windows(2).position(|two| two == b"\r\n") {
        let size = std::str::from_utf8(&chunked[..end]).unwrap_or_default();
        let size = usize::from_str_radix(size, 16).unwrap_or(0);
        let rest = &chunked[end + 2..];
        if size == 0 || rest.len() < size + 2 {
            break;
        }
        body.extend_from_slice(&rest[..size]);
        chunked = &rest[size + 2..];
    }
    body
}

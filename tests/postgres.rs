// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs on a `PostgreSQL` server: the same as in a file, for many writers, whatever happens to the
//! server.

use std::collections::BTreeSet;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Barrier, Mutex};
use std::thread;

use punctual_model::record::StepRecord;
use punctual_model::run::{Request, State};
use punctual_model::{MachineRecord, Nanos, Recorder, Recording, RecordingKey, Run, Subject};
use punctual_store::{Begun, End, Store, StoreError};
use punctual_tests::cutter::{Cut, Cutter};
use punctual_tests::server::{Server, Stop, place};
use punctual_tests::{Ended, Scratch, assert_has, runs, until};
use serde_json::Value;

/// A short suite, with a load.
const SUITE: &str = "
[[step]]
probe = \"timer\"
samples = 50
[[step]]
probe = \"timer\"
load = \"stress\"
samples = 50
";

fn run(seed: u64) -> Run {
    Run {
        request: Request::default(),
        id: String::new(),
        suite: "synthetic".into(),
        plan: format!("seed = {seed}\n[[step]]\nprobe = \"timer\"\n"),
        seed,
        subject: Subject {
            name: "rt".into(),
            kernel: "mine".into(),
            ..Subject::default()
        },
        state: State::Running,
        error: None,
        started: "2026-01-01T00:00:00Z".into(),
        finished: None,
        punctual: env!("CARGO_PKG_VERSION").into(),
        machine: MachineRecord::default(),
        shards: 1,
        provenance: None,
        steps: Vec::new(),
        recordings: Vec::new(),
        unsupported: Vec::new(),
        console: String::new(),
        arrivals: Vec::new(),
    }
}

fn step(number: u32) -> StepRecord {
    StepRecord {
        step: number,
        probe: "timer".into(),
        load: "idle".into(),
        work: Vec::new(),
        marks: Vec::new(),
    }
}

fn recording(variant: &str) -> Recording {
    let mut recorder = Recorder::new(10);
    for sample in 0..10 {
        recorder.record(Nanos(sample * 1_000), Nanos(3_000 + sample));
    }
    recorder.finish(RecordingKey::new("timer", "idle", variant))
}

fn finished(console: &'static str) -> End<'static> {
    End {
        state: State::Finished,
        error: None,
        finished: "2026-01-01T00:01:00Z",
        console,
        digest: None,
    }
}

/// The output of a command, which must succeed.
fn said(scratch: &Scratch, arguments: &[&str]) -> String {
    let ended = scratch.run(arguments);
    assert_eq!(ended.status, Some(0), "{arguments:?}: {}", ended.stderr);
    ended.stdout
}

fn digest(run: &Value) -> &str {
    run["digest"].as_str().expect("a digest")
}

#[test]
fn the_same_runs_are_shown_alike_to_the_last_byte() {
    let Some(server) = Server::new() else { return };
    let url = &server.database("runs");
    let scratch = Scratch::new();
    let suite = &scratch.suite("short", &["none", "rt"], SUITE);
    scratch.measure(&[suite, "--seeds", "1..2"]);
    // One that never ended, and one whose console has what a server's text cannot hold.
    let file = scratch.path("data/punctual/runs.db");
    let odd = "a\0b \u{10ffff}0 µ\r\n";
    let store = Store::open(&file).unwrap();
    let id = store.begin(&run(7)).unwrap();
    store.put_recording(&id, &recording(odd)).unwrap();
    store.end(&id, &finished(odd)).unwrap();
    drop(store);
    said(&scratch, &["baseline", "set", "stable", "r1", "r3"]);
    said(&scratch, &["baseline", "set", "Other", "r2"]);
    let file = file.to_str().unwrap();
    assert_has(
        &said(&scratch, &["db", "copy", file, url]),
        &["r5\n", "baseline stable\n"],
    );

    let again = scratch.run(&["db", "copy", file, url]);
    assert_has(&again.stderr, &["0 copied, 5 there already, 0 left out"]);
    let all = ["r1", "r2", "r3", "r4", "r5"];
    for arguments in [
        &["runs"][..],
        &["runs", "--json"],
        &["runs", "--json", "--subject", "rt", "--limit", "1"],
        &["runs", "--json", "--probe", "timer", "--before", "r3"],
        &[&["show", "--json", "--raw"], &all[..]].concat(),
        &[&["show"], &all[..4]].concat(),
        &["show", "r5", "--console"],
        &["compare", "r1", "r2", "--json"],
        &["baseline", "list"],
        &["baseline", "list", "--json"],
        &["show", "last", "--json"],
    ] {
        let there = said(&scratch, &[arguments, &["--db", url]].concat());
        assert!(there == said(&scratch, arguments), "{arguments:?}: {there}");
    }

    // And measured there: with the same digests, found there when asked for again.
    let measured = scratch.measure(&[suite, "--seeds", "1..2", "--db", url]);
    let known = runs(&said(&scratch, &["show", "--json", "r1", "r2", "r3", "r4"]));
    let digests = |runs: &[Value]| -> BTreeSet<String> {
        runs.iter().map(|run| digest(run).to_owned()).collect()
    };
    assert_eq!(digests(&measured), digests(&known));
    assert_eq!(
        said(&scratch, &["runs", "--db", url]).lines().count(),
        1 + 9
    );
    scratch.measure(&[suite, "--seeds", "1..2", "--db", url, "--resume"]);
    assert_eq!(
        said(&scratch, &["runs", "--db", url]).lines().count(),
        1 + 9
    );

    // And back into a new file.
    let back = &scratch.path("back.db").to_str().unwrap().to_owned();
    said(&scratch, &["db", "copy", url, back]);
    let whole = [&["show", "--json", "--raw"], &all[..]].concat();
    let there = said(&scratch, &[&whole[..], &["--db", back]].concat());
    assert!(there == said(&scratch, &whole));
    said(&scratch, &["remove", "r5", "--db", url]);
    let gone = scratch.run(&["show", "r5", "--db", url]);
    assert_has(&gone.stderr, &["there is no run \"r5\"", "did you mean"]);
}

#[test]
fn fifty_writers_at_once_lose_nothing() {
    const WRITERS: u64 = 50;
    const RECORDINGS: usize = 8;
    // So few connections that most have to wait for theirs.
    let Some(server) = Server::with(&["--auth=trust"], &["-c", "max_connections=30"]) else {
        return;
    };
    let url = server.database("runs");
    let barrier = Barrier::new(WRITERS as usize);
    let write = |seed| {
        barrier.wait();
        let store = Store::at(&place(&url)).unwrap();
        let id = store.begin(&run(seed)).unwrap();
        for n in 0..RECORDINGS {
            store
                .put_recording(&id, &recording(&n.to_string()))
                .unwrap();
        }
        store.end(&id, &finished("")).unwrap();
        id
    };
    let ids: BTreeSet<String> = thread::scope(|scope| {
        let write = &write;
        let writers: Vec<_> = (0..WRITERS)
            .map(|seed| scope.spawn(move || write(seed)))
            .collect();
        writers
            .into_iter()
            .map(|writer| writer.join().unwrap())
            .collect()
    });
    assert_eq!(ids.len() as u64, WRITERS);
    let store = Store::at(&place(&url)).unwrap();
    let mut seeds = BTreeSet::new();
    for id in &ids {
        let run = store.load(id).unwrap();
        assert_eq!(
            (run.state, run.recordings.len()),
            (State::Finished, RECORDINGS)
        );
        seeds.insert(run.seed);
    }
    assert_eq!(seeds, (0..WRITERS).collect());
}

#[test]
fn what_was_acknowledged_is_there_and_nothing_twice_however_the_server_ends() {
    let Some(server) = Server::new() else { return };
    let url = server.database("runs");
    let server = Mutex::new(server);
    let acknowledged = AtomicUsize::new(0);
    let store = Store::at(&place(&url)).unwrap();
    let id = store.begin(&run(1)).unwrap();
    let count = thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut count = 0_u32;
            // Until the server has been away three times, and some more.
            while acknowledged.load(Ordering::SeqCst) < 1_000_000 {
                store
                    .put_recording(&id, &recording(&count.to_string()))
                    .unwrap();
                store.add_step(&id, &step(count)).unwrap();
                count += 1;
                acknowledged.fetch_add(1, Ordering::SeqCst);
            }
            count
        });
        for stop in [Stop::Crash, Stop::Orderly, Stop::Crash] {
            let before = acknowledged.load(Ordering::SeqCst);
            until("the writer writes", || {
                writer.is_finished() || acknowledged.load(Ordering::SeqCst) > before + 20
            });
            let mut server = server.lock().unwrap();
            server.stop(stop);
            server.start();
        }
        let before = acknowledged.load(Ordering::SeqCst);
        until("the writer goes on", || {
            writer.is_finished() || acknowledged.load(Ordering::SeqCst) > before + 20
        });
        acknowledged.fetch_add(1_000_000, Ordering::SeqCst);
        writer.join().unwrap()
    });
    store.end(&id, &finished("")).unwrap();
    let stored = store.load(&id).unwrap();
    let expected: Vec<_> = (0..count).collect();
    let steps: Vec<_> = stored.steps.iter().map(|step| step.step).collect();
    assert_eq!(steps, expected, "each once, in their order");
    assert_eq!(stored.recordings.len(), count as usize);
}

#[test]
fn what_is_lost_at_its_commit_is_done_once() {
    // Nothing reaches the disk by itself while the test runs: after a crash the server gives
    // the numbers of lost transactions to others.
    let Some(mut server) = Server::with(&["--auth=trust"], &["-c", "wal_writer_delay=10s"]) else {
        return;
    };
    let direct = server.database("runs");
    let cutter = Cutter::before(server.port());
    let store = Store::at(&place(&cutter.url("runs"))).unwrap();
    let id = store.begin(&run(1)).unwrap();
    let cuts = [Cut::Answer, Cut::Request];
    let all = cuts.map(|cut| [(cut, false), (cut, true)]).concat();
    for (n, (cut, is_crash)) in (0..).zip(&all) {
        cutter.cut(*cut);
        thread::scope(|scope| {
            let writer = scope.spawn(|| store.add_step(&id, &step(n)).unwrap());
            cutter.wait();
            if *is_crash {
                server.stop(Stop::Crash);
                server.start();
            }
            let other = Store::at(&place(&direct)).unwrap();
            for seed in 0..10 {
                other.begin(&run(100 + seed)).unwrap();
            }
            cutter.go_on();
            writer.join().unwrap();
        });
        let steps = store.load(&id).unwrap().steps;
        let steps: Vec<_> = steps.iter().map(|step| step.step).collect();
        let expected: Vec<_> = (0..=n).collect();
        assert_eq!(steps, expected, "{cut:?}, crash: {is_crash}");
    }
}

#[test]
fn a_run_goes_on_when_the_server_comes_back_and_ends_clearly_when_it_does_not() {
    let Some(mut server) = Server::new() else {
        return;
    };
    let url = &server.database("runs");
    let scratch = Scratch::new();
    let suite = &scratch.suite("longer", &["none"], &SUITE.replace("50", "500"));
    let expected = scratch.measure(&[suite]);
    let start = || {
        let arguments = ["run", suite, "--db", url, "--json", "--quiet"];
        let mut command = scratch.punctual(&arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    let begun = |count: usize| {
        let list = scratch.run(&["runs", "--db", url, "--state", "running"]);
        list.stdout.lines().count() > count
    };

    let child = start();
    until("the run has begun", || begun(1));
    server.stop(Stop::Crash);
    server.start();
    let ended = Ended::from(child.wait_with_output().unwrap());
    assert_eq!(ended.status, Some(0), "{}", ended.stderr);
    assert_eq!(digest(&runs(&ended.stdout)[0]), digest(&expected[0]));

    let child = start();
    until("the run has begun", || begun(1));
    server.stop(Stop::Orderly);
    let ended = Ended::from(child.wait_with_output().unwrap());
    assert_eq!(ended.status, Some(1), "{}", ended.stdout);
    assert_has(&ended.stderr, &["went away", "--resume"]);
    server.start();
    let interrupted = said(&scratch, &["runs", "--db", url, "--state", "interrupted"]);
    assert_eq!(interrupted.lines().count(), 2, "{interrupted}");
}

#[test]
fn a_process_elsewhere_is_alive_as_long_as_it_says_so() {
    let Some(server) = Server::new() else { return };
    let url = server.database("runs");
    let writer = Store::at(&place(&url)).unwrap();
    let id = writer.begin(&run(1)).unwrap();
    let reader = Store::at(&place(&url)).unwrap();
    let state = || reader.load(&id).unwrap().state;
    assert_eq!(state(), State::Running);
    // As if it were on another machine: this one cannot see it.
    let sql = |statement: &str| server.sql("runs", statement);
    sql("UPDATE punctual.runs SET owner_boot = 'elsewhere', owner_host = 'node7'");
    assert_eq!(state(), State::Interrupted);
    sql("UPDATE punctual.owners SET boot = 'elsewhere'");
    assert_eq!(state(), State::Running);
    let error = reader.remove(&id).unwrap_err();
    assert_has(
        &error.to_string(),
        &["is being written by process", "on node7"],
    );
    sql("UPDATE punctual.owners SET seen = seen - 100");
    assert_eq!(state(), State::Interrupted);
    // The writer says again and again that it is alive.
    until("the writer is seen", || {
        sql("SELECT count(*) FROM punctual.owners WHERE boot <> 'elsewhere'").trim() == "1"
    });
    drop(writer);
    reader.remove(&id).unwrap();
}

#[test]
fn what_goes_wrong_is_told_and_a_password_never() {
    let Some(server) = Server::with_password("s3cret") else {
        return;
    };
    let scratch = Scratch::new();
    let url = server.url_of_port("postgres");
    let ended = |url: &str, password: Option<&str>| {
        let mut command = scratch.punctual(&["runs", "--db", url]);
        command
            .env_remove("PGPASSWORD")
            .env("HOME", scratch.path(""));
        command.envs(password.map(|password| ("PGPASSWORD", password)));
        let ended = Ended::of(&mut command);
        assert!(!ended.stderr.contains("cret"), "{}", ended.stderr);
        ended
    };
    let fails = |url: &str, password, parts: &[&str]| {
        let ended = ended(url, password);
        assert!(matches!(ended.status, Some(1 | 2)), "{}", ended.stderr);
        assert_has(&ended.stderr, parts);
    };
    fails(
        &url,
        Some("not-the-s3cret"),
        &["does not let this user in", "PGPASSWORD"],
    );
    fails(&url, None, &["password", "~/.pgpass"]);
    let wrong = url.replace("ann@", "ann:wrong-s3cret@");
    fails(&wrong, None, &["does not let this user in"]);
    fails(
        &format!("{wrong}?colour=red"),
        None,
        &["postgres://USER@HOST/DATABASE", "colour"],
    );
    fails(
        "postgres://ann:s3cret@127.0.0.1:1/runs",
        None,
        &["cannot reach the server", "ann@"],
    );
    fails(
        "postgres://ann@nowhere.invalid/runs",
        None,
        &["cannot reach the server"],
    );
    let none = server.url_of_port("none");
    fails(
        &none,
        Some("s3cret"),
        &["there is no database of that name", "createdb"],
    );

    assert_eq!(ended(&url, Some("s3cret")).status, Some(0));
    assert_eq!(
        ended(&url.replace("ann@", "ann:s3cret@"), None).status,
        Some(0)
    );
    let line = scratch.file(".pgpass", "localhost:*:*:ann:s3cret\n");
    fails(&url, None, &["chmod 600"]);
    assert!(
        Command::new("chmod")
            .args(["600", &line])
            .status()
            .unwrap()
            .success()
    );
    assert_eq!(ended(&url, None).status, Some(0));
}

#[test]
fn what_is_no_store_of_this_version_is_left_as_it_is() {
    let Some(server) = Server::new() else { return };
    let url = server.database("runs");
    drop(Store::at(&place(&url)).unwrap());
    server.sql("runs", "UPDATE punctual.store SET version = 42");
    let error = Store::at(&place(&url)).unwrap_err();
    assert!(
        matches!(error, StoreError::Newer { found: 42, .. }),
        "{error}"
    );
    let other = server.database("other");
    server.sql(
        "other",
        "CREATE SCHEMA punctual; CREATE TABLE punctual.runs (a INT)",
    );
    let error = Store::at(&place(&other)).unwrap_err();
    assert!(matches!(error, StoreError::Foreign { .. }), "{error}");
    // Only to be read, nothing is made.
    let empty = server.database("empty");
    let error = Store::open_to_read(&place(&empty)).unwrap_err();
    assert!(matches!(error, StoreError::NoStore(_)), "{error}");
    let schemas = server.sql(
        "empty",
        "SELECT count(*) FROM pg_namespace WHERE nspname = 'punctual'",
    );
    assert_eq!(schemas.trim(), "0");
    // Beside tables of others there is room.
    server.sql("empty", "CREATE TABLE runs (a INT)");
    drop(Store::at(&place(&empty)).unwrap());
    assert!(
        Store::open_to_read(&place(&empty))
            .unwrap()
            .begin(&run(1))
            .is_err()
    );
}

#[test]
fn a_store_that_no_release_wrote_is_refused_and_left_as_it_is() {
    let Some(server) = Server::new() else { return };
    let url = server.database("runs");
    let store = Store::at(&place(&url)).unwrap();
    let id = store.begin(&run(1)).unwrap();
    drop(store);
    server.sql("runs", "UPDATE punctual.store SET version = 4");
    for store in [Store::open_to_read(&place(&url)), Store::at(&place(&url))] {
        let error = store.unwrap_err();
        assert!(
            matches!(error, StoreError::Earlier { found: 4, .. }),
            "{error}"
        );
    }
    server.sql("runs", "UPDATE punctual.store SET version = 5");
    assert_eq!(Store::at(&place(&url)).unwrap().load(&id).unwrap().seed, 1);
}

#[test]
fn processes_that_ask_for_the_same_runs_at_once_make_each_once() {
    let Some(server) = Server::new() else { return };
    let url = server.database("runs");
    drop(Store::at(&place(&url)).unwrap());
    // Each with a connection of its own, as processes have.
    let made = thread::scope(|scope| {
        let ask = || {
            let store = Store::at(&place(&url)).unwrap();
            let ask = |seed| store.begin_unless_known(&run(seed)).unwrap();
            let all: Vec<Begun> = (0..20).map(ask).collect();
            all.iter()
                .filter(|one| matches!(one, Begun::New(_)))
                .count()
        };
        let all: Vec<_> = (0..6).map(|_| scope.spawn(ask)).collect();
        all.into_iter()
            .map(|one| one.join().unwrap())
            .sum::<usize>()
    });
    assert_eq!(made, 20);
    assert_eq!(Store::at(&place(&url)).unwrap().list().unwrap().len(), 20);
}

#[test]
fn several_may_make_the_same_store_at_once() {
    let Some(server) = Server::new() else { return };
    let url = server.database("runs");
    let ids: BTreeSet<String> = thread::scope(|scope| {
        let begin = || Store::at(&place(&url)).unwrap().begin(&run(1)).unwrap();
        let all: Vec<_> = (0..6).map(|_| scope.spawn(begin)).collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert_eq!(ids.len(), 6);
}

#[test]
fn copies_that_run_at_once_copy_each_run_once() {
    let Some(server) = Server::new() else { return };
    let url = server.database("runs");
    let scratch = Scratch::new();
    let from = Store::open(&scratch.path("from.db")).unwrap();
    for seed in 0..40 {
        let id = from.begin(&run(seed)).unwrap();
        from.put_recording(&id, &recording("cpu0")).unwrap();
        from.end(&id, &finished("")).unwrap();
    }
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let from = Store::open(&scratch.path("from.db")).unwrap();
                let to = Store::at(&place(&url)).unwrap();
                from.copy_into(&to, |_| Ok(())).unwrap();
            });
        }
    });
    let to = Store::at(&place(&url)).unwrap();
    let seeds: Vec<u64> = to.list().unwrap().iter().map(|run| run.seed).collect();
    assert_eq!(seeds.len(), 40);
    assert_eq!(
        seeds.into_iter().collect::<BTreeSet<_>>(),
        (0..40).collect()
    );
    for run in to.list().unwrap() {
        assert_eq!(to.load(&run.id).unwrap().recordings.len(), 1);
    }
}

#[test]
fn a_connection_is_encrypted_and_the_server_proves_who_it_is() {
    if !punctual_skip::program("openssl") {
        return;
    }
    let Some(mut server) = Server::new() else {
        return;
    };
    let own = server.own();
    let (key, certificate) = (own.join("key.pem"), own.join("certificate.pem"));
    let made = Ended::of(
        Command::new("openssl")
            .args([
                "req", "-x509", "-newkey", "ed25519", "-nodes", "-days", "30",
            ])
            .args([
                "-subj",
                "/CN=localhost",
                "-addext",
                "subjectAltName=DNS:localhost",
            ])
            .args(["-addext", "basicConstraints=critical,CA:FALSE", "-keyout"])
            .arg(&key)
            .arg("-out")
            .arg(&certificate),
    );
    assert_eq!(made.status, Some(0), "{}", made.stderr);
    let owner = Command::new("chown")
        .arg("--reference")
        .arg(&own)
        .arg(&key)
        .status();
    assert!(owner.unwrap().success());
    server.sql(
        "postgres",
        &format!("ALTER SYSTEM SET ssl_key_file = '{}'", key.display()),
    );
    let file = format!(
        "ALTER SYSTEM SET ssl_cert_file = '{}'",
        certificate.display()
    );
    server.sql("postgres", &file);
    server.sql("postgres", "ALTER SYSTEM SET ssl = on");
    server.stop(Stop::Orderly);
    server.start();
    drop(server.database("runs"));

    let scratch = Scratch::new();
    let url = server.url_of_port("runs");
    let runs = |url: &str, roots: Option<&str>| {
        let mut command = scratch.punctual(&["runs", "--db", url]);
        command.env_remove("PGSSLROOTCERT");
        Ended::of(command.envs(roots.map(|roots| ("PGSSLROOTCERT", roots))))
    };
    let strict = &format!("{url}?sslmode=require");
    let ended = runs(strict, None);
    assert_eq!(ended.status, Some(1));
    assert_has(&ended.stderr, &["certificate"]);
    let ended = runs(strict, certificate.to_str());
    assert_eq!(ended.status, Some(0), "{}", ended.stderr);
    let _connected = Store::at(&place(&url)).unwrap();
    let encrypted = "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
        WHERE ssl AND application_name = 'punctual'";
    assert_eq!(server.sql("runs", encrypted).trim(), "1");
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of what a user relies on: data that went in comes out, whatever happens in between.

mod baselines;
mod campaigns;
mod damage;
mod processes;
mod scale;
mod transfer;

use std::path::PathBuf;
use std::sync::{Barrier, MutexGuard};
use std::thread;

use punctual_model::machine::VirtualMachine;
use punctual_model::record::Mark;
use punctual_model::recording::Work;
use punctual_model::{Finding, MachineRecord, Nanos, Preemption, Reason, Recorder, RecordingKey};
use tempfile::TempDir;

use super::*;

const STARTED: &str = "2026-01-01T00:00:00Z";
const FINISHED: &str = "2026-01-01T00:01:00Z";

/// A temporary directory, and the path of a file in it that does not exist yet.
fn scratch() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("runs.db");
    (directory, path)
}

fn fresh() -> (TempDir, Store) {
    let (directory, path) = scratch();
    let store = Store::open(&path).unwrap();
    (directory, store)
}

fn file(store: &Store) -> PathBuf {
    store.place.file().unwrap().to_owned()
}

fn connection(store: &Store) -> MutexGuard<'_, Connection> {
    match &store.database {
        Database::File(connection) => connection.lock().unwrap(),
        Database::Server(_) => panic!("expected a file"),
    }
}

/// A run at its beginning.
fn begun() -> Run {
    Run {
        id: String::new(),
        suite: "cyclictest".into(),
        plan: "[[step]]\nprobe = \"timer\"\n".into(),
        seed: u64::MAX,
        subject: Subject {
            name: "rt".into(),
            kernel: "6.12-rt".into(),
            boot: "preempt=full".into(),
            bench: "virtual".into(),
        },
        state: State::Running,
        error: None,
        started: STARTED.into(),
        finished: None,
        punctual: "0.1.0".into(),
        machine: MachineRecord::Virtual(VirtualMachine {
            qemu: "7.2 \"Debian\"".into(),
            image_sha256: "5f8c".into(),
            ns_per_insn: 1,
            ..VirtualMachine::default()
        }),
        shards: 1,
        request: punctual_model::run::Request::default(),
        provenance: None,
        steps: Vec::new(),
        recordings: Vec::new(),
        unsupported: Vec::new(),
        console: String::new(),
        arrivals: Vec::new(),
    }
}

fn provenance() -> Provenance {
    Provenance {
        release: "6.12.1-rt".into(),
        version: "Linux version 6.12.1-rt (gcc 12) #1 SMP PREEMPT_RT".into(),
        cmdline: "preempt=full nokaslr".into(),
        preemption: Preemption::Rt,
        tsc_khz: Some(999_993),
        facts: [("clocksource".to_owned(), "tsc".into())].into(),
    }
}

/// A recording with a value in each field; no two variants measured the same.
fn recording(variant: &str) -> Recording {
    let own = i64::from(crc32fast::hash(variant.as_bytes()));
    let mut recorder = Recorder::new(40);
    for (period, value) in [own, -7, 381_000, 1 << 41]
        .repeat(12)
        .into_iter()
        .enumerate()
    {
        recorder.record(Nanos(period as i64 * 1_000_000), Nanos(value));
    }
    recorder.miss(3);
    Recording {
        interval: Some(Nanos::from_millis(1)),
        warmup: 10,
        settings: [("priority".to_owned(), 98.into())].into(),
        findings: [("cpu_lost".to_owned(), Finding::ratio(1.0, 3.0))].into(),
        output: Some("Time: 0.101\n".into()),
        ..recorder.finish(key(variant))
    }
}

fn key(variant: &str) -> RecordingKey {
    RecordingKey {
        step: 2,
        repetition: 3,
        ..RecordingKey::new("timer", "hackbench", variant)
    }
}

fn step() -> StepRecord {
    let work = Work {
        worker: "hackbench".into(),
        rounds: 2,
        amount: 4_000,
        unit: "messages".into(),
        cpu: Nanos::from_millis(70),
        span: Nanos::from_millis(100),
        period: Nanos::from_millis(5_000),
        endless: true,
        cpus: "0-2".into(),
    };
    StepRecord {
        step: 2,
        probe: "timer".into(),
        load: "hackbench".into(),
        marks: vec![Mark {
            at: Nanos::from_millis(1_500),
            count: 40,
            worst: Some(Nanos(7_000)),
        }],
        work: vec![work],
    }
}

fn ended(state: State) -> End<'static> {
    End {
        state,
        error: None,
        finished: FINISHED,
        console: "",
        digest: None,
    }
}

fn recordings(count: usize) -> Vec<Recording> {
    (0..count).map(|n| recording(&n.to_string())).collect()
}

fn unsupported() -> Unsupported {
    Unsupported {
        step: 1,
        probe: "hpet".into(),
        load: "idle".into(),
        reason: Reason::no_device("/dev/hpet", "hpet", "No such file"),
    }
}

fn end(store: &Store, id: &str) -> Result<(), StoreError> {
    store.end(id, &ended(State::Finished))
}

/// A finished run without recordings.
fn add_finished(store: &Store) -> String {
    let id = store.begin(&begun()).unwrap();
    end(store, &id).unwrap();
    id
}

#[test]
fn a_run_comes_back_equal_to_what_went_in() {
    let (_directory, store) = fresh();
    let whole = Run {
        id: "r1".into(),
        state: State::Finished,
        error: Some("the guest was slow".into()),
        finished: Some(FINISHED.into()),
        provenance: Some(provenance()),
        steps: vec![step()],
        recordings: recordings(12),
        unsupported: vec![unsupported()],
        // A serial line may deliver anything.
        console: "[    0.000000] Linux\0 µ\r\n".into(),
        ..begun()
    };

    let id = store.begin(&begun()).unwrap();
    store.set_provenance(&id, &provenance()).unwrap();
    store.add_step(&id, &step()).unwrap();
    for recording in &whole.recordings {
        store.put_recording(&id, recording).unwrap();
    }
    store.add_unsupported(&id, &unsupported()).unwrap();
    let digest = whole.digest();
    let end = End {
        error: whole.error.as_deref(),
        console: &whole.console,
        digest: digest.as_deref(),
        ..ended(State::Finished)
    };
    store.end(&id, &end).unwrap();

    let loaded = store.load(&id).unwrap();
    assert_eq!(loaded, whole);
    assert_eq!(loaded.digest(), store.list().unwrap()[0].digest);
    assert!(digest.is_some());
}

#[test]
fn a_run_that_begins_with_recordings_keeps_them() {
    let (_directory, store) = fresh();
    let imported = Run {
        provenance: Some(provenance()),
        steps: vec![step()],
        recordings: recordings(2),
        unsupported: vec![unsupported()],
        ..begun()
    };
    let id = store.begin(&imported).unwrap();
    let expected = Run {
        id: id.clone(),
        ..imported
    };
    assert_eq!(store.load(&id).unwrap(), expected);
}

#[test]
fn a_run_in_progress_shows_as_running_with_what_it_has() {
    let (_directory, store) = fresh();
    let id = store.begin(&begun()).unwrap();
    store.put_recording(&id, &recording("cpu0")).unwrap();

    let loaded = store.load(&id).unwrap();
    assert_eq!((loaded.state, loaded.error), (State::Running, None));
    assert_eq!(loaded.recordings, [recording("cpu0")]);
    let listed = &store.list().unwrap()[0];
    assert_eq!((listed.state, listed.recordings), (State::Running, 1));
}

#[test]
fn what_was_measured_so_far_gives_its_place_to_what_comes_later() {
    let (_directory, store) = fresh();
    let id = store.begin(&begun()).unwrap();
    let mut so_far = recording("cpu0");
    so_far.interrupted = true;
    store.put_recording(&id, &recording("cpu1")).unwrap();
    store.put_recording(&id, &so_far).unwrap();
    assert_eq!(store.load(&id).unwrap().recordings[1], so_far);
    store.put_recording(&id, &recording("cpu0")).unwrap();
    let both = ["cpu1", "cpu0"].map(recording);
    assert_eq!(store.load(&id).unwrap().recordings, both);
    // Another repetition is another recording.
    so_far.key.repetition += 1;
    store.put_recording(&id, &so_far).unwrap();
    assert_eq!(store.load(&id).unwrap().recordings.len(), 3);
}

#[test]
fn the_list_says_of_each_run_what_it_is_newest_first() {
    let (_directory, store) = fresh();
    add_finished(&store);
    let failed = Run {
        suite: "hackbench".into(),
        machine: MachineRecord::default(),
        ..begun()
    };
    let id = store.begin(&failed).unwrap();
    let error = Some("the kernel did not boot");
    let end = End {
        error,
        ..ended(State::Failed)
    };
    store.end(&id, &end).unwrap();

    let list = store.list().unwrap();
    let expected = Summary {
        id: "r2".into(),
        suite: "hackbench".into(),
        subject: failed.subject,
        seed: u64::MAX,
        state: State::Failed,
        started: STARTED.into(),
        finished: Some(FINISHED.into()),
        digest: None,
        recordings: 0,
        host: Owner::this().unwrap().host,
    };
    assert_eq!(list[0], expected);
    assert_eq!((list[1].id.as_str(), list.len()), ("r1", 2));
    assert_eq!(store.load("r2").unwrap().error.as_deref(), error);
}

#[test]
fn an_ended_run_takes_nothing_more() {
    let (_directory, store) = fresh();
    let id = add_finished(&store);
    let before = store.load(&id).unwrap();
    for refused in [
        store.set_provenance(&id, &provenance()),
        store.put_recording(&id, &recording("cpu0")),
        store.add_unsupported(&id, &unsupported()),
        end(&store, &id),
    ] {
        let error = refused.unwrap_err();
        assert!(
            matches!(
                error,
                StoreError::Ended {
                    state: State::Finished,
                    ..
                }
            ),
            "{error}"
        );
    }
    assert_eq!(store.load(&id).unwrap(), before);
}

#[test]
fn a_wrong_id_is_answered_with_those_that_look_like_it() {
    let (_directory, store) = fresh();
    for _ in 0..12 {
        add_finished(&store);
    }
    let error = |id| store.load(id).unwrap_err().to_string();
    assert_eq!(
        error("R12"),
        "there is no run \"R12\": did you mean r12 or r11 or r10?"
    );
    assert_eq!(error("last"), "there is no run \"last\"");
    assert!(error("r012").contains("did you mean r12"));
    let (add, remove) = (
        store.put_recording("r99", &recording("")),
        store.remove("r99"),
    );
    assert!(matches!(add, Err(StoreError::Unknown { .. })));
    assert!(matches!(remove, Err(StoreError::Unknown { .. })));
}

#[test]
fn the_id_of_a_removed_run_is_not_given_again() {
    let (_directory, store) = fresh();
    add_finished(&store);
    let removed = add_finished(&store);
    store.remove(&removed).unwrap();
    let store = Store::open(&file(&store)).unwrap();
    assert_eq!(add_finished(&store), "r3");
    let error = store.load(&removed).unwrap_err();
    assert!(matches!(error, StoreError::Unknown { .. }), "{error}");
}

#[test]
fn a_removed_run_leaves_the_others_alone_and_gives_its_space_back() {
    let (_directory, store) = fresh();
    let path = file(&store);
    let kept = store.begin(&begun()).unwrap();
    store.put_recording(&kept, &recording("cpu0")).unwrap();
    drop(store);
    let size = || std::fs::metadata(&path).unwrap().len();
    let alone = size();
    let store = Store::open(&path).unwrap();
    let removed = store.begin(&begun()).unwrap();
    for recording in recordings(100) {
        store.put_recording(&removed, &recording).unwrap();
    }
    store.add_unsupported(&removed, &unsupported()).unwrap();
    end(&store, &removed).unwrap();
    drop(store);
    let before = size();

    let store = Store::open(&path).unwrap();
    store.remove(&removed).unwrap();
    assert_eq!(store.load(&kept).unwrap().recordings, [recording("cpu0")]);
    assert_eq!(store.list().unwrap().len(), 1);
    drop(store);
    let left = size();
    assert!(
        left - alone < (before - alone) / 10,
        "{alone}, {before}, {left} bytes"
    );
}

#[test]
fn a_run_that_is_being_written_is_not_removed() {
    let (_directory, store) = fresh();
    let id = store.begin(&begun()).unwrap();
    let error = store.remove(&id).unwrap_err();
    let this = std::process::id();
    assert!(
        matches!(error, StoreError::Alive { pid, .. } if pid == this),
        "{error}"
    );
    store.put_recording(&id, &recording("cpu0")).unwrap();
    end(&store, &id).unwrap();
    store.remove(&id).unwrap();
    assert!(store.list().unwrap().is_empty());
}

#[test]
fn threads_that_write_to_one_run_at_once_lose_nothing() {
    let (_directory, store) = fresh();
    let id = store.begin(&begun()).unwrap();
    thread::scope(|scope| {
        for thread in 0..4 {
            let (store, id) = (&store, &id);
            scope.spawn(move || {
                for n in 0..10 {
                    let variant = format!("{thread} {n}");
                    store.put_recording(id, &recording(&variant)).unwrap();
                }
            });
        }
    });
    let loaded = store.load(&id).unwrap().recordings;
    assert_eq!(loaded.len(), 40);
    for thread in ["0 ", "1 ", "2 ", "3 "] {
        let own = loaded
            .iter()
            .filter(|one| one.key.variant.starts_with(thread));
        let expected = (0..10).map(|n| recording(&format!("{thread}{n}")));
        assert!(
            own.cloned().eq(expected),
            "those of thread {thread}, in their order"
        );
    }
}

#[test]
fn recordings_of_another_run_are_not_those_of_this_one() {
    let (_directory, store) = fresh();
    for (name, text, value) in [("a", "1", 7), ("b", "2", 8)] {
        store.add(&imported(name, text, value)).unwrap();
    }
    // Each recording's own checksum is right.
    let taken = "UPDATE recordings SET body = (SELECT body FROM recordings WHERE run = 1), \
                 crc = (SELECT crc FROM recordings WHERE run = 1) WHERE run = 2";
    assert_eq!(connection(&store).execute(taken, []).unwrap(), 1);
    assert!(store.load("r1").is_ok());
    let error = store.load("r2").unwrap_err().to_string();
    assert!(error.contains("expected the digest"), "{error}");
}

#[test]
fn several_may_make_the_same_store_at_once() {
    let (_directory, path) = scratch();
    let barrier = Barrier::new(4);
    let begin = || {
        barrier.wait();
        Store::open(&path).unwrap().begin(&begun()).unwrap()
    };
    let mut ids: Vec<String> = thread::scope(|scope| {
        let threads = [(); 4].map(|()| scope.spawn(begin));
        threads.map(|thread| thread.join().unwrap()).into()
    });
    ids.sort();
    assert_eq!(ids, ["r1", "r2", "r3", "r4"]);
}

#[test]
fn a_full_disk_is_said_and_what_was_stored_before_is_readable() {
    let (_directory, store) = fresh();
    let id = store.begin(&begun()).unwrap();
    let limit = |pages: u32| {
        let connection = connection(&store);
        connection
            .pragma_update(None, "max_page_count", pages)
            .unwrap();
    };
    limit(40);
    let mut stored = Vec::new();
    let error = loop {
        let next = recording(&stored.len().to_string());
        match store.put_recording(&id, &next) {
            Ok(()) => stored.push(next),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, StoreError::Full { .. }), "{error}");
    assert!(
        error.to_string().contains("runs.db: the disk is full"),
        "{error}"
    );
    assert!(!stored.is_empty());
    assert_eq!(store.load(&id).unwrap().recordings, stored);

    // With space again, the run goes on.
    limit(4_000);
    stored.push(recording("after"));
    store.put_recording(&id, &recording("after")).unwrap();
    let reopened = Store::open(&file(&store)).unwrap();
    assert_eq!(reopened.load(&id).unwrap().recordings, stored);
}

#[test]
fn the_directories_of_a_store_are_made() {
    let (directory, _) = scratch();
    let path = directory.path().join("a/b/runs.db");
    assert_eq!(add_finished(&Store::open(&path).unwrap()), "r1");
    let inside_a_file = path.join("c/runs.db");
    let error = Store::open(&inside_a_file).unwrap_err();
    assert!(matches!(error, StoreError::Directory { .. }), "{error}");
}

#[test]
fn runs_are_kept_where_xdg_says() {
    let place = |xdg: &str, home: &str| resolve(Some(xdg.into()), Some(home.into()));
    let expected = |path: &str| Some(PathBuf::from(path));
    assert_eq!(
        place("/data", "/home/a"),
        expected("/data/punctual/runs.db")
    );
    let at_home = expected("/home/a/.local/share/punctual/runs.db");
    assert_eq!(place("", "/home/a"), at_home);
    assert_eq!(place("relative", "/home/a"), at_home);
    assert_eq!(place("", ""), None);
    assert_eq!(resolve(None, None), None);
}

/// A store with a run that has begun, whose file is then treated in this way.
fn after(treat: impl Fn(&std::path::Path)) -> (TempDir, Store, String) {
    let (directory, store) = fresh();
    let id = store.begin(&begun()).unwrap();
    treat(&file(&store));
    (directory, store, id)
}

#[test]
fn a_store_that_was_deleted_or_replaced_takes_nothing_more_and_says_so() {
    let delete = |path: &std::path::Path| std::fs::remove_file(path).unwrap();
    let replace = |path: &std::path::Path| {
        let other = path.with_file_name("other.db");
        drop(Store::open(&other).unwrap());
        std::fs::rename(other, path).unwrap();
    };
    let treatments: [&dyn Fn(&std::path::Path); 2] = [&delete, &replace];
    for treat in treatments {
        let (_directory, store, id) = after(treat);
        let recording = Recorder::new(1).finish(RecordingKey::new("timer", "idle", "cpu0"));
        let refused = store.put_recording(&id, &recording).unwrap_err();
        assert!(matches!(refused, StoreError::Replaced { .. }), "{refused}");
        let end = End {
            state: State::Finished,
            error: None,
            finished: FINISHED,
            console: "",
            digest: None,
        };
        let refused = store.end(&id, &end).unwrap_err().to_string();
        assert!(refused.contains("was deleted or replaced"), "{refused}");
        assert!(store.check_in_place().is_err());
    }
    let (_directory, store, _) = after(|_| {});
    store.check_in_place().unwrap();
}

#[test]
fn a_console_weighs_all_its_bytes() {
    let (_directory, store) = fresh();
    let run = Run {
        console: format!("\0{}", "ä".repeat(50_000)),
        ..begun()
    };
    let id = store.begin(&run).unwrap();
    assert!(store.weight(&id).unwrap() > 100_000);
}

#[test]
fn a_runs_weight_grows_with_its_samples_and_is_known_without_loading_it() {
    let (_directory, store) = fresh();
    let id = store.begin(&begun()).unwrap();
    let before = store.weight(&id).unwrap();
    let mut recorder = Recorder::new(10_000);
    for at in 0..10_000 {
        recorder.record(Nanos(at * 1_000_000), Nanos(at));
    }
    let recording = recorder.finish(RecordingKey::new("timer", "idle", "cpu0"));
    store.put_recording(&id, &recording).unwrap();
    let grown = store.weight(&id).unwrap() - before;
    // Each sample is some bytes, be its time and value kept as differences.
    assert!((20_000..400_000).contains(&grown), "{grown}");
    assert!(matches!(
        store.weight("r99"),
        Err(StoreError::Unknown { .. })
    ));
}

/// A run measured by another program, as its file is imported.
fn imported(subject: &str, sha256: &str, largest: i64) -> Run {
    let mut counted = Recorder::new(0);
    counted.record(Nanos(0), Nanos(largest));
    let key = RecordingKey::new("timer", "unknown", "thread 0");
    let facts = [(punctual_model::run::IMPORTED.to_owned(), sha256.into())];
    Run {
        plan: format!("# imported: sha256 {sha256}\nstep = []\n"),
        seed: 0,
        subject: Subject {
            name: subject.into(),
            bench: "host".into(),
            ..Subject::default()
        },
        machine: MachineRecord::default(),
        state: State::Finished,
        started: sha256.into(),
        finished: Some(FINISHED.into()),
        provenance: Some(Provenance {
            facts: facts.into(),
            ..Provenance::default()
        }),
        recordings: vec![counted.finish(key)],
        ..begun()
    }
}

#[test]
fn what_cannot_be_added_whole_leaves_nothing() {
    let (_directory, path) = scratch();
    let store = Store::open(&path).unwrap();
    let mut run = imported("a", "1", 7);
    let mut second = run.recordings[0].clone();
    second.key.variant = "thread 1".into();
    run.recordings.push(second);
    let file = rusqlite::Connection::open(&path).unwrap();
    let fails = "CREATE TRIGGER fails BEFORE INSERT ON recordings WHEN NEW.variant = 'thread 1'
        BEGIN SELECT RAISE(FAIL, 'the disk is full'); END";
    file.execute_batch(fails).unwrap();
    assert!(store.add(&run).is_err());
    assert!(store.list().unwrap().is_empty());
    file.execute_batch("DROP TRIGGER fails").unwrap();
    assert!(matches!(store.add(&run).unwrap(), Added::New(_)));
}

#[test]
fn what_another_program_has_measured_is_stored_once_however_many_import_it_at_once() {
    let (_directory, path) = scratch();
    drop(Store::open(&path).unwrap());
    // Copies: under other names, with other white space, imported at other times.
    let each = |thread: usize| {
        let store = Store::open(&path).unwrap();
        let copy = imported(
            &format!("board {}", thread % 3),
            &format!("{thread:064}"),
            7,
        );
        store.add(&copy).unwrap()
    };
    let barrier = Barrier::new(8);
    let added: Vec<Added> = thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|thread| {
                let barrier = &barrier;
                scope.spawn(move || {
                    barrier.wait();
                    each(thread)
                })
            })
            .collect();
        threads.into_iter().map(|one| one.join().unwrap()).collect()
    });
    let new = added.iter().filter(|one| matches!(one, Added::New(_)));
    assert_eq!(new.count(), 1, "{added:?}");
    let store = Store::open(&path).unwrap();
    assert_eq!(store.list().unwrap().len(), 1);
    // Other figures, and those of another machine, are other runs.
    assert!(matches!(
        store.add(&imported("a", "1", 8)).unwrap(),
        Added::New(_)
    ));
    let mut other = imported("a", "1", 7);
    if let MachineRecord::Host(machine) = &mut other.machine {
        machine.host = "elsewhere".into();
    }
    assert!(matches!(store.add(&other).unwrap(), Added::New(_)));
    // A copy of a store in which it was imported, too.
    let (_elsewhere, copy) = fresh();
    copy.add(&imported("mine", "9", 7)).unwrap();
    store.copy_into(&copy, |_| Ok(())).unwrap();
    assert_eq!(copy.list().unwrap().len(), 3);
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stores of earlier versions: brought to the present one, or left as they are.

use std::fs;

use punctual_model::Fact;

use super::*;
use crate::migrate;

/// Runs that version 1 stored: see `tests/fixtures/README.md`.
const VERSION_1: &[u8] = include_bytes!("../../tests/fixtures/version-1.db");

/// Runs that version 2 stored.
const VERSION_2: &[u8] = include_bytes!("../../tests/fixtures/version-2.db");

/// Runs and a baseline that version 3 stored.
const VERSION_3: &[u8] = include_bytes!("../../tests/fixtures/version-3.db");

/// Runs and a baseline that version 4 stored.
const VERSION_4: &[u8] = include_bytes!("../../tests/fixtures/version-4.db");

fn version_1() -> (TempDir, PathBuf) {
    stored(VERSION_1)
}

fn stored(bytes: &[u8]) -> (TempDir, PathBuf) {
    let (directory, path) = scratch();
    fs::write(&path, bytes).unwrap();
    (directory, path)
}

fn version_of(path: &Path) -> i64 {
    let connection = Connection::open(path).unwrap();
    connection
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .unwrap()
}

/// What the file holds, byte for byte where it matters.
fn dump(path: &Path) -> Vec<(String, Vec<u8>)> {
    let connection = Connection::open(path).unwrap();
    let select = "SELECT plan, bench_facts || ifnull(provenance, '') || ifnull(digest, '')
        FROM runs UNION ALL SELECT variant, hex(body) FROM recordings";
    let mut statement = connection.prepare(select).unwrap();
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get::<_, String>(1)?.into())));
    rows.unwrap().collect::<Result<_, _>>().unwrap()
}

#[test]
fn all_that_version_1_stored_is_read_with_its_digests_still_found_equal() {
    let (_directory, path) = version_1();
    let digests: Vec<(i64, Option<String>)> = {
        let connection = Connection::open(&path).unwrap();
        let mut select = connection
            .prepare("SELECT number, digest FROM runs")
            .unwrap();
        let rows = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
        rows.unwrap().collect::<Result<_, _>>().unwrap()
    };
    assert_eq!(version_of(&path), 1);
    let store = Store::open(&path).unwrap();
    assert_eq!(version_of(&path), sql::SCHEMA_VERSION);
    let mut with_digest = 0;
    for (number, digest) in &digests {
        let run = store.load(&format!("r{number}")).unwrap();
        assert_eq!(run.digest(), *digest, "r{number}");
        with_digest += usize::from(digest.is_some());
        let listed = store.list().unwrap();
        let listed = listed.iter().find(|one| one.id == run.id).unwrap();
        assert_eq!(listed.digest, *digest);
        assert_eq!(listed.recordings, run.recordings.len());
    }
    assert!(with_digest > 3 && with_digest < digests.len());
}

#[test]
fn what_version_1_had_as_texts_has_become_values() {
    let (_directory, path) = version_1();
    let store = Store::open(&path).unwrap();
    let runs: Vec<Run> = store
        .list()
        .unwrap()
        .iter()
        .map(|run| store.load(&run.id).unwrap())
        .collect();
    let states = |state| runs.iter().filter(|run| run.state == state).count();
    assert!(states(State::Failed) > 0 && states(State::Interrupted) > 0);
    let host = runs.iter().find(|run| run.subject.bench == "host").unwrap();
    assert!(matches!(&host.machine, MachineRecord::Host(host) if host.target_sha256.is_some()));
    let recordings = || {
        runs.iter()
            .flat_map(|run| run.recordings.iter().map(move |one| (run, one)))
    };
    for run in runs.iter().filter(|run| run.is_virtual()) {
        let machine = run.machine.as_virtual().unwrap();
        assert!(machine.memory_mib >= 64 && machine.ns_per_insn >= 1);
        assert_eq!(machine.image_sha256.len(), 64);
        assert!(machine.cmdline.contains("console="), "{}", machine.cmdline);
    }
    let finding = |name: &str| {
        let found = recordings().find_map(|(_, one)| one.findings.get(name));
        found.unwrap_or_else(|| panic!("no {name}")).clone()
    };
    assert!(matches!(
        finding("slope_ns_per_waiter"),
        Finding::Estimate { .. }
    ));
    assert!(matches!(
        finding("woken_highest_first"),
        Finding::Share { of: 5, .. }
    ));
    assert!(matches!(finding("cpu_lost"), Finding::Ratio(_)));
    assert!(matches!(finding("kernel_text_bytes"), Finding::Bytes(_)));
    for (_, one) in recordings().filter(|(_, one)| one.key.probe == "timer") {
        assert!(matches!(one.settings["priority"], Fact::Number(_)));
    }
    let second = recordings().find(|(_, one)| one.key.repetition == 2);
    assert_eq!(second.unwrap().1.key.variant, "cpu0");
    let (run, loaded) = recordings()
        .find(|(_, one)| one.key.load == "stress")
        .unwrap();
    assert!(!run.work(loaded).is_empty());
    let absent = runs.iter().flat_map(|run| &run.unsupported).next().unwrap();
    assert!(absent.step > 0 && !absent.reason.to_string().is_empty());
}

/// The tables, with their columns.
fn columns(path: &Path) -> Vec<(String, String, String, i64)> {
    let connection = Connection::open(path).unwrap();
    let select = "SELECT m.name, c.name, c.type, c.\"notnull\" FROM sqlite_schema m,
        pragma_table_info(m.name) c ORDER BY 1, 2";
    let mut select = connection.prepare(select).unwrap();
    let rows = select.query_map([], |row| {
        let text = |at| row.get::<_, String>(at);
        Ok((text(0)?, text(1)?, text(2)?, row.get::<_, i64>(3)?))
    });
    rows.unwrap().collect::<Result<Vec<_>, _>>().unwrap()
}

#[test]
fn a_store_that_was_brought_over_is_one_like_any_other() {
    let (_directory, path) = version_1();
    let store = Store::open(&path).unwrap();
    let id = add_finished(&store);
    assert_eq!(store.load(&id).unwrap().state, State::Finished);
    let (_other, new) = fresh();
    assert_eq!(columns(&path), columns(&file(&new)));
    drop(store);
    let again = Store::open(&path).unwrap();
    assert_eq!(again.load(&id).unwrap().id, id);
}

#[test]
fn a_store_of_version_2_keeps_its_runs_and_can_have_baselines() {
    let (_directory, path) = stored(VERSION_2);
    assert_eq!(version_of(&path), 2);
    let store = Store::open(&path).unwrap();
    assert_eq!(version_of(&path), sql::SCHEMA_VERSION);
    let runs = store.list().unwrap();
    assert_eq!(runs.len(), 4);
    for run in &runs {
        assert_eq!(store.load(&run.id).unwrap().digest(), run.digest);
        assert!(run.digest.is_some());
    }
    store.set_baseline("old", &["r3".into()]).unwrap();
    assert_eq!(store.baseline("old").unwrap(), ["r3"]);
    let (_other, new) = fresh();
    assert_eq!(columns(&path), columns(&file(&new)));
}

#[test]
fn a_store_of_version_3_keeps_all_and_its_runs_get_identities() {
    let (_directory, path) = stored(VERSION_3);
    assert_eq!(version_of(&path), 3);
    let store = Store::open(&path).unwrap();
    assert_eq!(version_of(&path), sql::SCHEMA_VERSION);
    let runs = store.list().unwrap();
    assert_eq!(runs.len(), 3);
    for run in &runs {
        assert_eq!(store.load(&run.id).unwrap().digest(), run.digest);
    }
    assert_eq!(store.baseline("stable").unwrap(), ["r1", "r3"]);
    let (_other, new) = fresh();
    assert_eq!(columns(&path), columns(&file(&new)));
    // Two copies of a store that were migrated apart have the same runs.
    let (_again, path) = stored(VERSION_3);
    let again = Store::open(&path).unwrap();
    let mut told = Vec::new();
    let each = |one| {
        told.push(one);
        Ok(())
    };
    again.copy_into(&store, each).unwrap();
    assert!(
        told.iter()
            .all(|one| !matches!(one, Transferred::Copied { .. })),
        "{told:?}"
    );
    assert_eq!(store.list().unwrap().len(), 3);
}

#[test]
fn runs_of_version_4_are_found_equal_by_what_they_measure() {
    let (_directory, path) = stored(VERSION_4);
    assert_eq!(version_of(&path), 4);
    let store = Store::open(&path).unwrap();
    assert_eq!(version_of(&path), sql::SCHEMA_VERSION);
    let (_other, new) = fresh();
    assert_eq!(columns(&path), columns(&file(&new)));
    assert_eq!(store.baseline("stable").unwrap(), ["r1"]);
    for id in ["r1", "r2"] {
        let run = store.load(id).unwrap();
        let known = store.begin_unless_known(&run).unwrap();
        assert_eq!(known, Begun::Known(id.into()));
        let other = Run {
            seed: 9,
            plan: "seed = 9".into(),
            ..run
        };
        assert_eq!(store.id_of_equal(&other).unwrap(), None);
    }
    assert!(store.campaigns().unwrap().is_empty());
}

#[test]
fn a_damaged_recording_of_version_1_stays_damaged_and_nothing_else_does() {
    let (_directory, path) = version_1();
    let connection = Connection::open(&path).unwrap();
    let change = "UPDATE recordings SET crc = crc + 1 WHERE run = 1";
    connection.execute(change, []).unwrap();
    let change = "UPDATE runs SET provenance = '{' WHERE number = 2";
    connection.execute(change, []).unwrap();
    drop(connection);
    let store = Store::open(&path).unwrap();
    for (id, part) in [("r1", "recording \""), ("r2", "provenance")] {
        let error = store.load(id).unwrap_err();
        let named =
            matches!(&error, StoreError::Part { part: found, .. } if found.starts_with(part));
        assert!(named, "{error}");
    }
    assert!(store.load("r3").is_ok());
}

/// The process that is killed in the middle: see `processes.rs`.
pub fn migrate_until_killed(path: &Path) {
    let mut connection = Connection::open(path).unwrap();
    let mut runs = 0;
    migrate::migrate(&mut connection, path, &mut || {
        runs += 1;
        if runs == 2 {
            eprintln!("in the middle");
            std::io::stdin().read_line(&mut String::new()).unwrap();
        }
    })
    .unwrap();
}

#[test]
fn a_process_killed_while_it_brings_a_store_over_leaves_it_as_it_was() {
    let (_directory, path) = version_1();
    let before = dump(&path);
    processes::kill_in_the_middle("migrate until killed", &path);
    assert_eq!((version_of(&path), dump(&path)), (1, before));
    assert_eq!(beside(&path), ["runs.db", "runs.db.version-1.part"]);
    let store = Store::open(&path).unwrap();
    assert!(!store.load("r1").unwrap().recordings.is_empty());
    drop(store);
    assert_eq!(beside(&path), ["runs.db", "runs.db.version-1"]);
}

/// The files beside a store that is closed.
fn beside(path: &Path) -> Vec<String> {
    let entries = fs::read_dir(path.parent().unwrap()).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.filter(|name| !name.contains("db-")).collect();
    names.sort();
    names
}

#[test]
fn the_earlier_version_stays_as_a_copy_that_can_be_migrated_again() {
    let (_directory, path) = version_1();
    let before = dump(&path);
    let store = Store::open(&path).unwrap();
    let copy = store.copy_of_earlier().unwrap().to_owned();
    assert_eq!(copy, path.with_extension("db.version-1"));
    assert_eq!((version_of(&copy), dump(&copy)), (1, before.clone()));
    drop(store);
    assert_eq!(Store::open(&path).unwrap().copy_of_earlier(), None);
    // Another store of the same name takes nobody's place.
    fs::write(&path, VERSION_1).unwrap();
    let again = Store::open(&path).unwrap();
    let second = again.copy_of_earlier().unwrap();
    assert_eq!(second, path.with_extension("db.version-1.2"));
    assert_eq!(dump(second), before);
    let digests = |store: &Store| -> Vec<_> {
        let runs = store.list().unwrap().into_iter();
        runs.map(|run| run.digest).collect()
    };
    assert_eq!(digests(&Store::open(&copy).unwrap()), digests(&again));
}

#[test]
fn a_store_that_cannot_be_copied_is_not_migrated() {
    let (_directory, path) = version_1();
    let before = dump(&path);
    fs::create_dir(path.with_extension("db.version-1.part")).unwrap();
    let error = Store::open(&path).unwrap_err();
    assert!(matches!(error, StoreError::Copy { .. }), "{error}");
    assert_eq!((version_of(&path), dump(&path)), (1, before));
}

#[test]
fn a_migration_that_fails_leaves_the_store_as_it_was_and_no_copy() {
    let (_directory, path) = version_1();
    let change = "CREATE TRIGGER no BEFORE UPDATE ON recordings WHEN old.number > 2
        BEGIN SELECT RAISE(ABORT, 'no'); END";
    Connection::open(&path)
        .unwrap()
        .execute_batch(change)
        .unwrap();
    let before = dump(&path);
    let error = Store::open(&path).unwrap_err();
    assert!(matches!(error, StoreError::Sqlite { .. }), "{error}");
    assert_eq!((version_of(&path), dump(&path)), (1, before));
    assert_eq!(beside(&path), ["runs.db"]);
}

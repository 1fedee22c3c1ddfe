// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files that are not stores, and stores that differ from what was stored.

use std::fs;

use super::*;

/// A closed store with two runs of three recordings each.
fn two_runs() -> (TempDir, PathBuf) {
    let (directory, store) = fresh();
    for _ in 0..2 {
        let run = Run {
            provenance: Some(provenance()),
            steps: vec![step()],
            unsupported: vec![unsupported()],
            recordings: recordings(3),
            ..begun()
        };
        let id = store.begin(&run).unwrap();
        end(&store, &id).unwrap();
    }
    (directory, file(&store))
}

fn execute(path: &Path, statements: &str) {
    Connection::open(path)
        .unwrap()
        .execute_batch(statements)
        .unwrap();
}

#[test]
fn a_file_that_is_no_database_is_refused_and_left_as_it_is() {
    for content in [
        "hello",
        "not a database\n",
        &"0123456789abcdef".repeat(1_000),
    ] {
        let (_directory, path) = scratch();
        fs::write(&path, content).unwrap();
        let error = Store::open(&path).unwrap_err();
        assert!(matches!(error, StoreError::NotADatabase { .. }), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), content);
    }
}

#[test]
fn an_empty_file_becomes_a_store() {
    let (_directory, path) = scratch();
    fs::write(&path, "").unwrap();
    assert_eq!(add_finished(&Store::open(&path).unwrap()), "r1");
}

#[test]
fn a_database_of_another_program_is_refused_and_left_as_it_is() {
    for theirs in [
        "CREATE TABLE bookmarks (url TEXT)",
        "PRAGMA application_id = 7",
    ] {
        let (_directory, path) = scratch();
        execute(&path, theirs);
        let before = fs::read(&path).unwrap();
        let error = Store::open(&path).unwrap_err();
        assert!(matches!(error, StoreError::Foreign { .. }), "{error}");
        assert!(fs::read(&path).unwrap() == before);
    }
}

#[test]
fn a_store_that_no_release_wrote_is_refused_and_left_as_it_is() {
    let (_directory, path) = two_runs();
    execute(&path, "PRAGMA user_version = 4");
    for _ in 0..2 {
        let error = Store::open(&path).unwrap_err();
        assert!(
            matches!(error, StoreError::Earlier { found: 4, .. }),
            "{error}"
        );
    }
    let version = format!("PRAGMA user_version = {}", sql::SCHEMA_VERSION);
    execute(&path, &version);
    assert_eq!(Store::open(&path).unwrap().list().unwrap().len(), 2);
}

#[test]
fn a_store_of_a_later_version_is_refused_with_both_versions() {
    let (_directory, path) = two_runs();
    execute(&path, "PRAGMA user_version = 42");
    let error = Store::open(&path).unwrap_err();
    let shown = format!(
        "{} has schema version 42, this program knows versions up to {}: \
         use a newer punctual",
        path.display(),
        sql::SCHEMA_VERSION
    );
    assert_eq!(error.to_string(), shown);
    let version = format!("PRAGMA user_version = {}", sql::SCHEMA_VERSION);
    execute(&path, &version);
    assert_eq!(Store::open(&path).unwrap().list().unwrap().len(), 2);
}

#[test]
fn a_flipped_bit_in_a_recording_is_found_and_named() {
    let (_directory, path) = two_runs();
    let connection = Connection::open(&path).unwrap();
    let select = "SELECT number, body FROM recordings WHERE run = 1 AND variant = '1'";
    let (number, mut body): (i64, Vec<u8>) = connection
        .query_row(select, [], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap();
    let middle = body.len() / 2;
    body[middle] ^= 1;
    let update = "UPDATE recordings SET body = ?2 WHERE number = ?1";
    connection.execute(update, (number, body)).unwrap();

    let store = Store::open(&path).unwrap();
    let error = store.load("r1").unwrap_err();
    let StoreError::Part { id, part, reason } = &error else {
        panic!("{error}");
    };
    assert_eq!(id, "r1");
    assert_eq!(part, "recording \"timer / hackbench / 1\"");
    assert!(reason.starts_with("expected checksum "), "{reason}");
    assert_eq!(store.load("r2").unwrap().recordings, recordings(3));
    assert_eq!(store.list().unwrap().len(), 2);
}

#[test]
fn a_change_in_any_part_of_a_run_is_found_and_named() {
    let cases = [
        (
            "UPDATE runs SET provenance = '{' WHERE number = 2",
            "its row",
        ),
        ("UPDATE runs SET machine = '{}' WHERE number = 2", "its row"),
        ("UPDATE runs SET seed = 7 WHERE number = 2", "its row"),
        (
            "UPDATE runs SET digest = 'equal' WHERE number = 2",
            "its row",
        ),
        ("UPDATE runs SET console = 'x' WHERE number = 2", "its row"),
        (
            "UPDATE steps SET body = '[]' WHERE run = 2",
            "what a load did",
        ),
        (
            "UPDATE unsupported SET body = '\"x\"' WHERE run = 2",
            "the reason of an unsupported probe",
        ),
    ];
    for (change, expected) in cases {
        let (_directory, path) = two_runs();
        execute(&path, change);
        let store = Store::open(&path).unwrap();
        let error = store.load("r2").unwrap_err();
        let named =
            matches!(&error, StoreError::Part { id, part, .. } if id == "r2" && part == expected);
        assert!(named, "{change}: {error}");
        assert!(store.load("r1").is_ok());
    }
}

#[test]
fn a_list_that_cannot_be_read_names_the_run_that_is_damaged() {
    let (_directory, path) = two_runs();
    let change = "UPDATE runs SET suite = CAST(x'ff' AS TEXT) WHERE number = 2";
    execute(&path, change);
    let store = Store::open(&path).unwrap();
    let error = store.list().unwrap_err();
    let named = matches!(&error, StoreError::Part { id, part, .. }
        if id == "r2" && part == "column suite");
    assert!(named, "{error}");
}

#[test]
fn a_run_whose_state_cannot_be_read_is_removed_unless_its_process_lives() {
    let (_directory, path) = two_runs();
    execute(&path, "UPDATE runs SET state = 'happy' WHERE number = 2");
    let store = Store::open(&path).unwrap();
    assert!(matches!(store.load("r2"), Err(StoreError::Part { .. })));
    // Its process is this one.
    let error = store.remove("r2").unwrap_err();
    assert!(matches!(error, StoreError::Alive { .. }), "{error}");
    execute(&path, "UPDATE runs SET owner_start = 1 WHERE number = 2");
    store.check_removable(&["r2".to_owned()]).unwrap();
    store.remove("r2").unwrap();
    assert_eq!(store.list().unwrap().len(), 1);
}

#[test]
fn a_file_with_pages_overwritten_is_an_error_and_never_a_wrong_run() {
    let (_directory, path) = two_runs();
    let mut bytes = fs::read(&path).unwrap();
    bytes[4_096..].fill(0xa5);
    fs::write(&path, bytes).unwrap();
    let error = Store::open(&path)
        .and_then(|store| store.load("r1"))
        .unwrap_err();
    assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Several processes on one store, and the remains of one that was killed.

use std::env;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Command, Output, Stdio};

use super::*;
use crate::connect::beside;

const ROLE: &str = "PUNCTUAL_STORE_TEST_ROLE";
const FILE: &str = "PUNCTUAL_STORE_TEST_FILE";

/// The number of recordings that [`write_a_run`] stores.
const WRITTEN: usize = 15;

/// The output of a child that has done its work.
const DONE: &str = "done";

/// Starts this program again, as a process of its own that runs only `other_process`. With `limit`,
/// none of its files may grow.
fn start(role: &str, path: &Path, limit: &str) -> Child {
    // In a shell, because only a process itself can limit what it may do.
    Command::new("sh")
        .args(["-c", &format!("{limit} exec \"$0\" \"$@\"")])
        .arg(env::current_exe().unwrap())
        .args(["--exact", "tests::processes::other_process"])
        .args(["--ignored", "--nocapture"])
        .env(ROLE, role)
        .env(FILE, path)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn assert_done(output: &Output) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && said.lines().any(|line| line == DONE),
        "{said}"
    );
}

#[test]
#[ignore = "it is the other process of the tests below, and nothing by itself"]
fn other_process() {
    let (Ok(role), Some(path)) = (env::var(ROLE), env::var_os(FILE)) else {
        return;
    };
    let opened = Store::open(Path::new(&path));
    let role: fn(&Store) = match role.as_str() {
        "write a run" => write_a_run,
        "write until killed" => write_until_killed,
        "read where nothing can be written" => read_where_nothing_can_be_written,
        "read what others own" => read_what_others_own,
        "be refused" => {
            let error = opened.unwrap_err();
            assert!(matches!(error, StoreError::NotWritable { .. }), "{error}");
            eprintln!("{DONE}");
            return;
        }
        _ => panic!("{role}"),
    };
    role(&opened.unwrap());
    eprintln!("{DONE}");
}

fn write_a_run(store: &Store) {
    let id = store.begin(&begun()).unwrap();
    for recording in recordings(WRITTEN) {
        store.put_recording(&id, &recording).unwrap();
    }
    end(store, &id).unwrap();
}

fn write_until_killed(store: &Store) {
    let id = store.begin(&begun()).unwrap();
    store.set_provenance(&id, &provenance()).unwrap();
    store.add_unsupported(&id, &unsupported()).unwrap();
    for n in 0.. {
        store
            .put_recording(&id, &recording(&n.to_string()))
            .unwrap();
        eprintln!("stored {n}");
        if n == 4 {
            // So that the other process gets to look.
            std::io::stdin().read_line(&mut String::new()).unwrap();
        }
    }
}

fn read_what_others_own(store: &Store) {
    assert!(!store.is_shared());
    assert_eq!(store.load("r1").unwrap().recordings, recordings(3));
    let error = store.begin(&begun()).unwrap_err();
    assert!(matches!(error, StoreError::NotWritable { .. }), "{error}");
    assert_eq!(store.list().unwrap().len(), 1);
}

fn read_where_nothing_can_be_written(store: &Store) {
    assert!(!store.is_shared());
    assert_eq!(store.load("r1").unwrap().recordings, recordings(3));
    let error = store.begin(&begun()).unwrap_err();
    assert!(matches!(error, StoreError::Full { .. }), "{error}");
    assert_eq!(store.list().unwrap().len(), 1);
}

#[test]
fn a_process_killed_in_mid_run_leaves_an_interrupted_run_with_all_that_was_stored() {
    let (_directory, store) = fresh();
    let mut child = start("write until killed", &file(&store), "");
    let said = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut seen = said
        .map_while(Result::ok)
        .filter(|line| line.starts_with("stored "));
    assert_eq!(seen.by_ref().take(5).last().as_deref(), Some("stored 4"));

    assert_eq!(store.load("r1").unwrap().state, State::Running);
    let pid = child.id();
    let error = store.remove("r1").unwrap_err();
    assert!(
        matches!(error, StoreError::Alive { pid: owner, .. } if owner == pid),
        "{error}"
    );

    writeln!(child.stdin.take().unwrap()).unwrap();
    assert_eq!(seen.by_ref().take(3).last().as_deref(), Some("stored 7"));
    child.kill().unwrap(); // SIGKILL, wherever in its writing the child is
    child.wait().unwrap();
    let said_to_be_stored = 8 + seen.count();

    let left = store.load("r1").unwrap();
    assert_eq!((left.state, left.finished), (State::Interrupted, None));
    let expected = format!("process {pid} was gone before it ended the run");
    assert_eq!(left.error, Some(expected));
    assert_eq!(left.provenance, Some(provenance()));
    assert_eq!(left.unsupported, [unsupported()]);
    assert!(left.recordings.len() >= said_to_be_stored);
    assert_eq!(left.recordings, recordings(left.recordings.len()));
    assert_eq!(store.list().unwrap()[0].state, State::Interrupted);

    let error = store.put_recording("r1", &recording("")).unwrap_err();
    assert!(
        matches!(
            error,
            StoreError::Ended {
                state: State::Interrupted,
                ..
            }
        ),
        "{error}"
    );
    store.remove("r1").unwrap();
}

#[test]
fn processes_that_write_at_once_lose_nothing() {
    let (_directory, path) = scratch();
    let children = [(); 3].map(|()| start("write a run", &path, ""));
    for child in children {
        assert_done(&child.wait_with_output().unwrap());
    }
    let store = Store::open(&path).unwrap();
    for id in ["r1", "r2", "r3"] {
        let run = store.load(id).unwrap();
        assert_eq!(
            (run.state, run.recordings),
            (State::Finished, recordings(WRITTEN))
        );
    }
}

#[test]
fn where_no_file_may_grow_a_store_still_opens_for_reading() {
    let (_directory, store) = fresh();
    let run = Run {
        recordings: recordings(3),
        ..begun()
    };
    let id = store.begin(&run).unwrap();
    end(&store, &id).unwrap();
    let path = file(&store);
    drop(store);
    // The signal of that limit would kill the process: a full disk sends none.
    let child = start(
        "read where nothing can be written",
        &path,
        "trap '' XFSZ; ulimit -f 0;",
    );
    assert_done(&child.wait_with_output().unwrap());
    assert_eq!(
        Store::open(&path).unwrap().load(&id).unwrap().recordings,
        recordings(3)
    );
}

/// Takes from root the right to write everywhere.
const AS_ANYBODY: &str =
    "test \"$(id -u)\" -ne 0 || exec setpriv --bounding-set=-all \"$0\" \"$@\";";

/// Calls `work` while nobody may write to a file, or to its directory.
fn write_protected(path: &Path, work: impl FnOnce()) {
    let directory = path.parent().unwrap();
    let set = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode));
    set(path, 0o444).unwrap();
    set(directory, 0o555).unwrap();
    work();
    set(directory, 0o755).unwrap();
}

#[test]
fn what_can_only_be_read_is_read_without_a_file_beside_it() {
    let (directory, store) = fresh();
    let run = Run {
        recordings: recordings(3),
        ..begun()
    };
    let id = store.begin(&run).unwrap();
    end(&store, &id).unwrap();
    let usual = file(&store);
    drop(store);
    // A name that a URL would take for more than a path.
    let path = directory.path().join("runs ?&#%41.db");
    fs::rename(usual, &path).unwrap();
    write_protected(&path, || {
        let child = start("read what others own", &path, AS_ANYBODY);
        assert_done(&child.wait_with_output().unwrap());
    });
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
}

#[test]
fn what_a_killed_process_left_beside_a_store_is_not_read_without_permission() {
    let (directory, store) = fresh();
    end(&store, &store.begin(&begun()).unwrap()).unwrap();
    let copy = directory.path().join("copy");
    fs::create_dir(&copy).unwrap();
    let path = copy.join("runs.db");
    fs::copy(file(&store), &path).unwrap();
    fs::copy(beside(&file(&store), "-wal"), beside(&path, "-wal")).unwrap();
    write_protected(&path, || {
        let child = start("be refused", &path, AS_ANYBODY);
        assert_done(&child.wait_with_output().unwrap());
    });
}

#[test]
fn a_store_that_is_written_to_while_it_is_read_without_locks_is_not_believed() {
    let (_directory, store) = fresh();
    end(&store, &store.begin(&begun()).unwrap()).unwrap();
    let path = file(&store);
    drop(store);
    // As where it cannot be made.
    fs::create_dir(beside(&path, "-wal")).unwrap();
    let store = Store::open(&path).unwrap();
    assert!(!store.is_shared());
    assert_eq!(store.list().unwrap().len(), 1);
    let mut bytes = fs::read(&path).unwrap();
    bytes.extend([0; 4096]);
    fs::write(&path, bytes).unwrap();
    let error = store.list().unwrap_err();
    assert!(matches!(error, StoreError::Written { .. }), "{error}");
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs under a name.

use super::*;

fn ids(ids: &[&str]) -> Vec<String> {
    ids.iter().map(|id| (*id).to_owned()).collect()
}

#[test]
fn a_baseline_is_kept_replaced_and_forgotten() {
    let (_directory, store) = fresh();
    for _ in 0..3 {
        add_finished(&store);
    }
    store.set_baseline("stable", &ids(&["r3", "r1"])).unwrap();
    store.set_baseline("other", &ids(&["r1"])).unwrap();
    assert_eq!(store.baseline("stable").unwrap(), ["r3", "r1"]);
    store.set_baseline("stable", &ids(&["r2"])).unwrap();
    let all = store.baselines().unwrap();
    let expected = [("other", ids(&["r1"])), ("stable", ids(&["r2"]))];
    assert_eq!(all, expected.map(|(name, runs)| (name.to_owned(), runs)));
    store.remove_baseline("stable").unwrap();
    let error = store.remove_baseline("othr").unwrap_err().to_string();
    assert!(error.ends_with("did you mean other?"), "{error}");
    assert!(store.baseline("stable").is_err());
    // Two runs of a file may be one here.
    store
        .set_baseline("twice", &ids(&["r3", "r2", "r3"]))
        .unwrap();
    assert_eq!(store.baseline("twice").unwrap(), ["r3", "r2"]);
    // What was wrong changes nothing.
    assert!(store.set_baseline("other", &ids(&["r2", "r9"])).is_err());
    assert_eq!(store.baseline("other").unwrap(), ["r1"]);
}

#[test]
fn a_run_that_a_baseline_needs_stays() {
    let (_directory, store) = fresh();
    let id = add_finished(&store);
    store
        .set_baseline("stable", std::slice::from_ref(&id))
        .unwrap();
    let refused = store.remove(&id).unwrap_err();
    assert!(matches!(refused, StoreError::Needed { .. }), "{refused}");
    store.remove_baseline("stable").unwrap();
    store.remove(&id).unwrap();
}

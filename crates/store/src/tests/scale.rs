// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stores of many runs: no query takes longer with each run in the store.

use super::*;

/// The plan by which `SQLite` executes a statement.
fn plan(store: &Store, statement: &str) -> String {
    let connection = connection(store);
    let mut explain = connection
        .prepare(&format!("EXPLAIN QUERY PLAN {statement}"))
        .unwrap();
    let mut rows = explain.raw_query();
    let mut plan = Vec::new();
    while let Some(row) = rows.next().unwrap() {
        plan.push(row.get::<_, String>("detail").unwrap());
    }
    plan.join("; ")
}

#[test]
fn what_is_asked_for_each_run_is_found_by_an_index() {
    let (_directory, store) = fresh();
    for statement in [
        sql::SELECT_NUMBER,
        sql::SELECT_RUN,
        sql::SELECT_OWNER,
        sql::SELECT_EQUAL,
        sql::SELECT_STEPS,
        sql::SELECT_RECORDINGS,
        sql::SELECT_UNSUPPORTED,
        sql::UPDATE_PROVENANCE,
        sql::END_RUN,
        sql::SEAL_RUN,
        sql::DELETE_RUN,
    ] {
        let plan = plan(&store, statement);
        assert!(
            plan.contains("SEARCH") && !plan.contains("SCAN"),
            "{plan}: {statement}"
        );
    }
    let list = plan(&store, sql::SELECT_SUMMARIES);
    assert_eq!(list.matches("SCAN").count(), 1, "{list}");
    for filter in ["suite", "subject", "kernel", "bench", "owner_host", "state"] {
        let page = format!(
            "{} WHERE {filter} = :value AND number < :before ORDER BY number DESC LIMIT 1",
            sql::SELECT_SUMMARIES
        );
        let page = plan(&store, &page);
        assert!(
            !page.contains("SCAN") && !page.contains("TEMP B-TREE"),
            "{filter}: {page}"
        );
    }
    assert!(plan(&store, "SELECT plan FROM runs").contains("SCAN"));
}

/// A query that looks at all runs for each of them would take long; `benches/store.rs` has fifty
/// times as many.
#[test]
fn two_thousand_runs_are_stored_found_and_listed() {
    const RUNS: u64 = 2_000;
    let (_directory, store) = fresh();
    let digest = "0".repeat(64);
    let owner = Owner::this().unwrap();
    let end = End {
        digest: Some(&digest),
        ..ended(State::Finished)
    };
    // As a run is stored, but in one transaction: each commit waits for the disk.
    store
        .transact(Kind::Write, |transaction| {
            for seed in 0..RUNS {
                let run = Run { seed, ..begun() };
                assert!(rows::select_equal(transaction, &crate::key(&run))?.is_none());
                let number = rows::insert_run(transaction, &run, &seed.to_string(), &owner)?;
                assert_eq!(rows::find(transaction, &rows::id_of(number))?, number);
                rows::end_run(transaction, number, &end)?;
            }
            Ok(())
        })
        .unwrap();
    let seed = RUNS / 2;
    let found = store.find_equal(&Run { seed, ..begun() }).unwrap().unwrap();
    assert_eq!((found.id, found.seed), (format!("r{}", seed + 1), seed));
    assert_eq!(store.list().unwrap().len() as u64, RUNS);
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names of runs with which others are compared.

use std::collections::BTreeSet;

use rusqlite::named_params;

use crate::database::{Row, Transaction};
use crate::error::{Fault, StoreError};
use crate::{rows, sql};

/// A baseline's name, and the ids of its runs.
type Baseline = (String, Vec<String>);

pub fn set(transaction: &Transaction, name: &str, ids: &[String]) -> Result<(), Fault> {
    transaction.hold_baselines()?;
    transaction.execute(sql::DELETE_BASELINE, named_params! { ":name": name })?;
    // Two equal runs of another store are one here.
    let mut known = BTreeSet::new();
    for id in ids {
        let run = rows::find(transaction, id)?;
        if known.insert(run) {
            let values = named_params! { ":name": name, ":run": run };
            transaction.execute(sql::INSERT_BASELINE, values)?;
        }
    }
    Ok(())
}

pub fn all(transaction: &Transaction) -> Result<Vec<Baseline>, Fault> {
    let rows: Vec<(String, i64)> = transaction.all(sql::SELECT_BASELINES, &[], |row| {
        Ok((row.get("name")?, row.get("run")?))
    })?;
    let mut all: Vec<Baseline> = Vec::new();
    for (name, run) in rows {
        match all.last_mut() {
            Some((last, runs)) if *last == name => runs.push(rows::id_of(run)),
            _ => all.push((name, vec![rows::id_of(run)])),
        }
    }
    Ok(all)
}

pub fn runs_of(transaction: &Transaction, name: &str) -> Result<Vec<String>, Fault> {
    let mut all = all(transaction)?;
    match all.iter().position(|(own, _)| own == name) {
        Some(at) => Ok(all.swap_remove(at).1),
        None => Err(unknown(name, &all).into()),
    }
}

pub fn remove(transaction: &Transaction, name: &str) -> Result<(), Fault> {
    runs_of(transaction, name)?;
    transaction.execute(sql::DELETE_BASELINE, named_params! { ":name": name })?;
    Ok(())
}

/// Returns an error if a baseline holds the run of this number.
pub fn check_not_needed(transaction: &Transaction, run: i64) -> Result<(), Fault> {
    let of_run = named_params! { ":run": run };
    let name = |row: &Row| row.get("name");
    match transaction.first(sql::SELECT_BASELINES_OF, of_run, name)? {
        Some(baseline) => {
            let id = rows::id_of(run);
            Err(StoreError::Needed { id, baseline }.into())
        }
        None => Ok(()),
    }
}

fn unknown(name: &str, all: &[Baseline]) -> StoreError {
    let is_close = |(own, _): &&Baseline| strsim::osa_distance(own, name) <= 2;
    let close = all.iter().filter(is_close);
    StoreError::UnknownBaseline {
        name: name.to_owned(),
        close: close.map(|(own, _)| own.clone()).collect(),
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names of runs that others are compared with.

use rusqlite::{Transaction, named_params};

use crate::error::{Fault, StoreError};
use crate::{rows, sql};

/// A baseline's name, and the ids of its runs.
type Baseline = (String, Vec<String>);

pub fn set(transaction: &Transaction, name: &str, ids: &[String]) -> Result<(), Fault> {
    transaction.execute(sql::DELETE_BASELINE, named_params! { ":name": name })?;
    for id in ids {
        let values = named_params! { ":name": name, ":run": rows::find(transaction, id)? };
        transaction.execute(sql::INSERT_BASELINE, values)?;
    }
    Ok(())
}

pub fn all(transaction: &Transaction) -> Result<Vec<Baseline>, Fault> {
    let mut statement = transaction.prepare_cached(sql::SELECT_BASELINES)?;
    let rows = statement.query_map([], |row| Ok((row.get("name")?, row.get("run")?)))?;
    let mut all: Vec<Baseline> = Vec::new();
    for row in rows {
        let (name, run): (String, i64) = row?;
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

/// An error where a baseline holds the run of this number.
pub fn check_not_needed(transaction: &Transaction, run: i64) -> Result<(), Fault> {
    let mut statement = transaction.prepare_cached(sql::SELECT_BASELINES_OF)?;
    let mut rows = statement.query(named_params! { ":run": run })?;
    let Some(row) = rows.next()? else {
        return Ok(());
    };
    let (id, baseline) = (rows::id_of(run), row.get("name")?);
    Err(StoreError::Needed { id, baseline }.into())
}

fn unknown(name: &str, all: &[Baseline]) -> StoreError {
    let is_close = |(own, _): &&Baseline| strsim::osa_distance(own, name) <= 2;
    let close = all.iter().filter(is_close);
    StoreError::UnknownBaseline {
        name: name.to_owned(),
        close: close.map(|(own, _)| own.clone()).collect(),
    }
}

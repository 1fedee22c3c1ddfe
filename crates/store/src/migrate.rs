// SPDX-License-Identifier: MIT OR Apache-2.0
//! Brings a store of an earlier schema version to the present one: forward only, and in one
//! transaction, so that whatever ends the process leaves either version whole. The earlier one
//! stays as a [`Copy`] beside it. A server's stores begin with version 4, and have no copy.

use std::path::{Path, PathBuf};

use punctual_model::record::{Provenance, StepRecord};
use rusqlite::{Connection, TransactionBehavior, named_params};
use serde::Deserialize;

use crate::copy::Copy;
use crate::database::{Row, Transaction};
use crate::error::Fault;
use crate::version_1::{Body, OldProvenance, Repetitions, Texts, machine};
use crate::{body, key, rows, sql};

/// Migrates the store in `path`, if another process has not done so meanwhile, and returns where
/// the copy of the earlier version is; `step` is called after each of its runs.
pub fn migrate(
    connection: &mut Connection,
    path: &Path,
    step: &mut dyn FnMut(),
) -> Result<Option<PathBuf>, Fault> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let version = "user_version";
    let found: i64 = transaction.pragma_query_value(None, version, |row| row.get(0))?;
    if found == sql::SCHEMA_VERSION {
        return Ok(None);
    }
    let copy = Copy::take(path, found)?;
    transaction.pragma_update(None, version, sql::SCHEMA_VERSION)?;
    let transaction = Transaction::File(transaction);
    if found == 1 {
        from_version_1(&transaction, step)?;
    }
    if found <= 2 {
        transaction.batch(sql::MIGRATE_2)?;
    }
    if found <= 3 {
        from_version_3(&transaction)?;
    }
    from_version_4(&transaction)?;
    let copy = copy.keep()?;
    transaction.commit()?;
    Ok(Some(copy))
}

fn from_version_1(transaction: &Transaction, step: &mut dyn FnMut()) -> Result<(), Fault> {
    transaction.batch(sql::MIGRATE_1_BEGIN)?;
    for number in numbers(transaction, sql::SELECT_NUMBERS)? {
        run(transaction, number)?;
        step();
    }
    transaction.batch(sql::MIGRATE_1_END)?;
    for number in numbers(transaction, sql::SELECT_NUMBERS)? {
        rows::seal(transaction, number)?;
    }
    Ok(())
}

fn from_version_3(transaction: &Transaction) -> Result<(), Fault> {
    transaction.batch(sql::MIGRATE_3)?;
    for number in numbers(transaction, sql::SELECT_NUMBERS)? {
        let uid = rows::uid_of_earlier(transaction, number)?;
        let values = named_params! { ":run": number, ":uid": uid };
        transaction.execute(sql::MIGRATE_3_RUN, values)?;
    }
    transaction.batch(sql::MIGRATE_3_END)
}

/// What leads to the present version from the first one that a server can have.
pub fn from_version_4(transaction: &Transaction) -> Result<(), Fault> {
    transaction.batch(sql::MIGRATE_4)?;
    for number in numbers(transaction, sql::SELECT_NUMBERS)? {
        // What is damaged equals nothing.
        let Ok(run) = rows::select_head(transaction, number) else {
            continue;
        };
        let values = named_params! { ":run": number, ":key": key(&run) };
        transaction.execute(sql::MIGRATE_4_RUN, values)?;
    }
    Ok(())
}

fn numbers(transaction: &Transaction, select: &str) -> Result<Vec<i64>, Fault> {
    transaction.all(select, &[], |row| row.get("number"))
}

/// Some columns of the row with a number.
fn one<T>(
    transaction: &Transaction,
    select: &str,
    number: i64,
    of: impl FnMut(&Row) -> Result<T, Fault>,
) -> Result<T, Fault> {
    let row = transaction.first(select, named_params! { ":number": number }, of)?;
    Ok(row.ok_or(rusqlite::Error::QueryReturnedNoRows)?)
}

/// What is needed of a plan.
#[derive(Deserialize)]
struct Steps {
    #[serde(default)]
    step: Vec<Step>,
}

#[derive(Deserialize)]
struct Step {
    probe: String,
    #[serde(default = "idle")]
    load: String,
}

fn idle() -> String {
    punctual_model::plan::IDLE.to_owned()
}

fn run(transaction: &Transaction, number: i64) -> Result<(), Fault> {
    let columns =
        "SELECT plan, bench_facts, ns_per_insn, provenance FROM runs WHERE number = :number";
    let (plan, facts, ns_per_insn, provenance) = one(transaction, columns, number, |row| {
        let (plan, facts): (String, String) = (row.get("plan")?, row.get("bench_facts")?);
        let provenance: Option<String> = row.get("provenance")?;
        Ok((plan, facts, row.get("ns_per_insn")?, provenance))
    })?;
    // What cannot be read stays as it is: whoever loads the run is told which part it is.
    let old: Option<OldProvenance> = provenance.as_deref().and_then(rows::parsed);
    let read_back: Option<Provenance> = old.map(OldProvenance::migrated);
    let facts: Option<Texts> = rows::parsed(&facts);
    let known = facts.map(|facts| machine(&facts, ns_per_insn, read_back.as_ref()));
    let image = known
        .as_ref()
        .and_then(|(machine, _)| machine.image_sha256());
    let values = named_params! {
        ":run": number,
        ":machine": known.as_ref().map_or_else(String::new, |(machine, _)| rows::json(machine)),
        ":punctual": known.as_ref().map_or("", |(_, version)| version),
        ":image_sha256": image,
        ":provenance": read_back.as_ref().map(rows::json).or(provenance),
    };
    transaction.execute(sql::MIGRATE_1_RUN, values)?;
    let steps = toml::from_str::<Steps>(&plan).map_or_else(|_| Vec::new(), |plan| plan.step);
    let steps: Vec<_> = steps
        .into_iter()
        .map(|step| (step.probe, step.load))
        .collect();
    recordings(transaction, number, &steps)?;
    unsupported(transaction, number, &steps)
}

fn recordings(
    transaction: &Transaction,
    run: i64,
    steps: &[(String, String)],
) -> Result<(), Fault> {
    let mut repetitions = Repetitions::default();
    let mut last = None;
    let select = format!("SELECT number FROM recordings WHERE run = {run} ORDER BY number");
    for number in numbers(transaction, &select)? {
        let select = "SELECT body, crc FROM recordings WHERE number = :number";
        let (bytes, crc): (Vec<u8>, u32) = one(transaction, select, number, |row| {
            Ok((row.get("body")?, row.get("crc")?))
        })?;
        // A damaged one stays damaged, and is named when its run is loaded.
        let Ok(old) = read(&bytes, crc) else { continue };
        let (recording, work) = old.migrated(&mut repetitions, steps);
        let bytes = body::encode(&recording);
        let values = named_params! {
            ":number": number, ":step": recording.key.step, ":variant": recording.key.variant,
            ":repetition": recording.key.repetition, ":crc": crc32fast::hash(&bytes),
            ":body": bytes,
        };
        transaction.execute(sql::MIGRATE_1_RECORDING, values)?;
        if last != Some(recording.key.step) {
            last = Some(recording.key.step);
            let step = StepRecord {
                step: recording.key.step,
                probe: recording.key.probe,
                load: recording.key.load,
                work,
                marks: Vec::new(),
            };
            rows::insert_step(transaction, run, &step)?;
        }
    }
    Ok(())
}

fn read(bytes: &[u8], crc: u32) -> Result<Body, String> {
    body::check(bytes, crc)?;
    ciborium::from_reader(bytes).map_err(|error| error.to_string())
}

fn unsupported(
    transaction: &Transaction,
    run: i64,
    steps: &[(String, String)],
) -> Result<(), Fault> {
    let select = format!("SELECT number FROM unsupported WHERE run = {run} ORDER BY number");
    let mut taken = vec![false; steps.len()];
    for number in numbers(transaction, &select)? {
        let select = "SELECT probe, load, reason FROM unsupported WHERE number = :number";
        let (probe, load, reason): (String, String, String) =
            one(transaction, select, number, |row| {
                Ok((row.get("probe")?, row.get("load")?, row.get("reason")?))
            })?;
        // The first step of that name that is not spoken for.
        let mut places = 0..steps.len();
        let free = |place: &usize| !taken[*place] && steps[*place] == (probe.clone(), load.clone());
        let place = places.find(free);
        if let Some(place) = place {
            taken[place] = true;
        }
        let reason = rows::json(&reason);
        let values = named_params! {
            ":number": number, ":step": place.unwrap_or_default() as i64,
            ":crc": crc32fast::hash(reason.as_bytes()), ":body": reason,
        };
        transaction.execute(sql::MIGRATE_1_UNSUPPORTED, values)?;
    }
    Ok(())
}

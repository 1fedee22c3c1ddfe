// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rows of the tables, converted to and from the model's types.

use std::str::FromStr as _;

use punctual_model::record::{Mark, Provenance, StepRecord, Unsupported};
use punctual_model::recording::Work;
use punctual_model::run::State;
use punctual_model::{Nanos, Recording, Run, Subject};
use rusqlite::named_params;
use rusqlite::types::{Value, ValueRef};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::database::{Row, Transaction};
use crate::error::{Fault, StoreError};
use crate::owner::Owner;
use crate::{End, Summary, body, is_orphan, key, sql};

/// The most ids that an error names.
const HINTS: usize = 3;

/// The id of the run with this number.
pub fn id_of(number: i64) -> String {
    format!("r{number}")
}

/// The number in an id, if the id has the form that [`id_of`] gives.
pub fn number_of(id: &str) -> Option<i64> {
    let number = id.strip_prefix('r')?.parse().ok()?;
    (id_of(number) == id).then_some(number)
}

/// The number of the run with this id. All runs are looked at only if there is no such run.
pub fn find(transaction: &Transaction, id: &str) -> Result<i64, Fault> {
    if let Some(number) = number_of(id) {
        let of_run = named_params! { ":run": number };
        let found: Option<i64> =
            transaction.first(sql::SELECT_NUMBER, of_run, |row| row.get("number"))?;
        if found.is_some() {
            return Ok(number);
        }
    }
    let numbers: Vec<i64> = transaction.all(sql::SELECT_NUMBERS, &[], |row| row.get("number"))?;
    let close = close_to(id, &numbers);
    let id = id.into();
    Err(StoreError::Unknown { id, close }.into())
}

/// The ids from which a typing error could have made `id`, nearest and newest first.
fn close_to(id: &str, numbers: &[i64]) -> Vec<String> {
    let id = id.trim().to_lowercase();
    let newest_first = numbers.iter().rev().map(|number| id_of(*number));
    let mut close: Vec<(usize, String)> = newest_first
        .map(|known| (strsim::osa_distance(&id, &known), known))
        .filter(|(distance, _)| *distance <= 1)
        .collect();
    close.sort_by_key(|(distance, _)| *distance);
    close.truncate(HINTS);
    close.into_iter().map(|(_, known)| known).collect()
}

/// Stores the facts about a run that are known at its beginning; returns its new number.
pub fn insert_run(
    transaction: &Transaction,
    run: &Run,
    uid: &str,
    owner: &Owner,
) -> Result<i64, Fault> {
    let values = named_params! {
        ":suite": run.suite, ":plan": run.plan,
        ":seed": run.seed as i64, ":ns_per_insn": run.clock().map(|clock| clock.ns_per_insn),
        ":subject": run.subject.name, ":kernel": run.subject.kernel,
        ":boot": run.subject.boot, ":bench": run.subject.bench,
        ":machine": json(&run.machine), ":punctual": run.punctual,
        ":request": json(&run.request), ":image_sha256": run.machine.image_sha256(), ":state": State::Running.name(),
        ":error": run.error, ":started": run.started, ":console": run.console,
        ":owner_pid": owner.pid, ":owner_start": owner.start as i64,
        ":owner_boot": owner.boot, ":owner_host": owner.host, ":uid": uid, ":key": key(run),
    };
    let number = transaction.first(sql::INSERT_RUN, values, |row| row.get("number"))?;
    let number = number.ok_or(rusqlite::Error::QueryReturnedNoRows)?;
    seal(transaction, number)?;
    Ok(number)
}

/// The number of the newest finished run with this key.
pub fn select_equal(transaction: &Transaction, key: &str) -> Result<Option<i64>, Fault> {
    let values = named_params! { ":key": key };
    transaction.first(sql::SELECT_EQUAL, values, |row| row.get("number"))
}

/// The number of a run with this key that is in progress.
pub fn select_running_equal(transaction: &Transaction, key: &str) -> Result<Option<i64>, Fault> {
    let values = named_params! { ":key": key };
    let numbers: Vec<i64> =
        transaction.all(sql::SELECT_RUNNING_EQUAL, values, |row| row.get("number"))?;
    for number in numbers {
        if select_owner(transaction, number)?.0 == State::Running {
            return Ok(Some(number));
        }
    }
    Ok(None)
}

/// Stores the facts that the target read back, in place of the former ones.
pub fn update_provenance(
    transaction: &Transaction,
    number: i64,
    provenance: &Provenance,
) -> Result<(), Fault> {
    let values = named_params! { ":run": number, ":provenance": json(provenance) };
    transaction.execute(sql::UPDATE_PROVENANCE, values)?;
    seal(transaction, number)
}

/// Stores a probe's recording.
pub fn insert_recording(
    transaction: &Transaction,
    number: i64,
    recording: &Recording,
) -> Result<(), Fault> {
    transaction.execute(
        sql::DELETE_RECORDING,
        named_params! {
            ":run": number, ":step": recording.key.step, ":probe": recording.key.probe,
            ":load": recording.key.load, ":variant": recording.key.variant,
            ":repetition": recording.key.repetition,
        },
    )?;
    let body = body::encode(recording);
    let ns = |time: Option<Nanos>| time.map(|time| time.0);
    let values = named_params! {
        ":run": number, ":step": recording.key.step,
        ":probe": recording.key.probe, ":load": recording.key.load,
        ":variant": recording.key.variant, ":repetition": recording.key.repetition, ":count": recording.count as i64,
        ":min_ns": ns(recording.min()), ":mean_ns": ns(recording.mean()),
        ":max_ns": ns(recording.max()), ":missed": recording.missed as i64,
        ":overflow": recording.histogram.overflow() as i64,
        ":crc": crc32fast::hash(&body), ":body": body,
    };
    transaction.execute(sql::INSERT_RECORDING, values)?;
    Ok(())
}

/// Stores that a probe could not run.
pub fn insert_unsupported(
    transaction: &Transaction,
    number: i64,
    unsupported: &Unsupported,
) -> Result<(), Fault> {
    let body = json(&unsupported.reason);
    let values = named_params! {
        ":run": number, ":step": unsupported.step, ":probe": unsupported.probe,
        ":load": unsupported.load, ":reason": unsupported.reason.to_string(),
        ":crc": crc32fast::hash(body.as_bytes()), ":body": body,
    };
    transaction.execute(sql::INSERT_UNSUPPORTED, values)?;
    Ok(())
}

/// Stores the work that the load of a step did.
pub fn insert_step(transaction: &Transaction, run: i64, step: &StepRecord) -> Result<(), Fault> {
    let body = json(&StepBody::of(step));
    let values = named_params! {
        ":run": run, ":step": step.step, ":probe": step.probe, ":load": step.load,
        ":crc": crc32fast::hash(body.as_bytes()), ":body": body,
    };
    transaction.execute(sql::INSERT_STEP, values)?;
    Ok(())
}

/// Stores the end of a run.
pub fn end_run(transaction: &Transaction, number: i64, end: &End) -> Result<(), Fault> {
    let values = named_params! {
        ":run": number, ":state": end.state.name(), ":error": end.error,
        ":finished": end.finished, ":console": end.console, ":digest": end.digest,
    };
    transaction.execute(sql::END_RUN, values)?;
    seal(transaction, number)
}

/// Stores the end of a run that ended elsewhere. A run whose process was gone before has none.
pub fn end_as(transaction: &Transaction, number: i64, run: &Run) -> Result<(), Fault> {
    let values = named_params! {
        ":run": number, ":state": run.state.name(), ":error": run.error,
        ":finished": run.finished, ":console": run.console, ":digest": run.digest(),
    };
    transaction.execute(sql::END_RUN, values)?;
    seal(transaction, number)
}

/// The number of the stored run that is equal to this one to the last sample.
pub fn select_same(transaction: &Transaction, run: &Run) -> Result<Option<i64>, Fault> {
    let values = named_params! {
        ":seed": run.seed as i64, ":suite": run.suite, ":subject": run.subject.name,
        ":started": run.started,
    };
    let alike: Vec<i64> = transaction.all(sql::SELECT_ALIKE, values, |row| row.get("number"))?;
    for number in alike {
        let kept = match select_run(transaction, number) {
            // What is damaged is not the same any more.
            Err(Fault::Store(StoreError::Part { .. })) => continue,
            kept => kept?,
        };
        let id = run.id.clone();
        if (Run { id, ..kept }) == *run {
            return Ok(Some(number));
        }
    }
    Ok(None)
}

/// All columns of a row, with their values.
pub fn cells(row: &Row) -> Result<Vec<(String, Value)>, Fault> {
    let columns = row.columns().into_iter();
    let cell = |column: String| {
        let value = match row.cell(&column)?.value() {
            // A damaged text may be no UTF-8.
            ValueRef::Text(_) => Value::Text(row.get(&column)?),
            other => other.into(),
        };
        Ok((column, value))
    };
    columns.map(cell).collect()
}

/// Stores the checksum of a run's row, after each change to it.
pub fn seal(transaction: &Transaction, number: i64) -> Result<(), Fault> {
    let of_run = named_params! { ":run": number };
    let crc = transaction.first(sql::SELECT_ROW, of_run, checksum)?;
    transaction.execute(sql::SEAL_RUN, named_params! { ":run": number, ":crc": crc })?;
    Ok(())
}

/// CRC-32 over a run's row: the type, length and bytes of each column in [`COVERED`].
fn checksum(row: &Row) -> Result<u32, Fault> {
    let mut hasher = crc32fast::Hasher::new();
    for column in COVERED {
        hash(row, column, &mut |bytes| hasher.update(bytes))?;
    }
    Ok(hasher.finalize())
}

/// Hashes the type, the length and the bytes of a column.
fn hash(row: &Row, column: &str, update: &mut dyn FnMut(&[u8])) -> Result<(), Fault> {
    let cell = row.cell(column)?;
    let value = cell.value();
    let number;
    let bytes: &[u8] = match value {
        ValueRef::Null => &[],
        ValueRef::Integer(integer) => {
            number = integer.to_le_bytes();
            &number
        }
        ValueRef::Real(real) => {
            number = real.to_le_bytes();
            &number
        }
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes,
    };
    update(&[value.data_type() as u8]);
    update(&(bytes.len() as u64).to_le_bytes());
    update(bytes);
    Ok(())
}

/// The columns of a run's row that its checksum covers.
const COVERED: &[&str] = &[
    "number",
    "suite",
    "plan",
    "seed",
    "ns_per_insn",
    "subject",
    "kernel",
    "boot",
    "bench",
    "machine",
    "punctual",
    "image_sha256",
    "provenance",
    "state",
    "error",
    "started",
    "finished",
    "digest",
    "console",
];

/// All runs in one line each, newest first.
pub fn select_summaries(transaction: &Transaction) -> Result<Vec<Summary>, Fault> {
    let newest_first = format!("{} ORDER BY number DESC", sql::SELECT_SUMMARIES);
    transaction.all(&newest_first, &[], summary)
}

/// The summary of a run in the list.
pub fn summary(row: &Row) -> Result<Summary, Fault> {
    let number = row.get("number")?;
    let read = || -> Result<Summary, Fault> {
        let (state, owner) = state_and_owner(row)?;
        let recordings = row.get::<i64>("recordings")? as usize;
        Ok(Summary {
            id: id_of(number),
            suite: row.get("suite")?,
            subject: subject(row)?,
            seed: row.get::<i64>("seed")? as u64,
            state,
            started: row.get("started")?,
            finished: row.get("finished")?,
            // Earlier versions gave one to runs in which nothing was measured.
            digest: row
                .get("digest")
                .map(|digest: Option<String>| digest.filter(|_| recordings > 0))?,
            recordings,
            host: owner.host,
        })
    };
    read().map_err(|fault| name_run(number, fault))
}

/// The current state of a run, and its owner.
pub fn select_owner(transaction: &Transaction, number: i64) -> Result<(State, Owner), Fault> {
    let of_run = named_params! { ":run": number };
    let found = transaction.first(sql::SELECT_OWNER, of_run, state_and_owner)?;
    Ok(found.ok_or(rusqlite::Error::QueryReturnedNoRows)?)
}

/// The living process that writes a run, or, if the run's state cannot be read, that may do so.
pub fn select_writer(transaction: &Transaction, number: i64) -> Result<Option<Owner>, Fault> {
    let writer = |row: &Row| {
        let (owner, is_alive) = owner(row)?;
        let state = row.get::<String>("state").ok();
        let state = state.and_then(|state| State::from_str(&state).ok());
        let may_write = state.is_none_or(|state| state == State::Running);
        Ok((is_alive && may_write).then_some(owner))
    };
    let of_run = named_params! { ":run": number };
    let found = transaction.first(sql::SELECT_OWNER, of_run, writer)?;
    Ok(found.ok_or(rusqlite::Error::QueryReturnedNoRows)?)
}

/// A whole run; returns an error if any part of it differs from what was stored.
pub fn select_run(transaction: &Transaction, number: i64) -> Result<Run, Fault> {
    let read = || -> Result<Run, Fault> {
        let mut run = select_head(transaction, number)?;
        run.steps = select_steps(transaction, number)?;
        run.recordings = select_recordings(transaction, number)?;
        run.unsupported = select_unsupported(transaction, number)?;
        check_digest(transaction, number, &run)?;
        Ok(run)
    };
    read().map_err(|fault| name_run(number, fault))
}

/// Checks that a run's recordings are those that it had when it ended.
fn check_digest(transaction: &Transaction, number: i64, run: &Run) -> Result<(), Fault> {
    let of_run = named_params! { ":run": number };
    let kept: Option<Option<String>> =
        transaction.first(sql::SELECT_RUN, of_run, |row| row.get("digest"))?;
    // A run of which nothing was measured has none, whatever its row says.
    let has_one = run.state == State::Finished && !run.recordings.is_empty();
    let Some(kept) = kept.flatten().filter(|_| has_one) else {
        return Ok(());
    };
    let found = run.digest().unwrap_or_else(|| "none".to_owned());
    if found == kept {
        return Ok(());
    }
    let reason = format!("expected the digest {kept}, found {found}");
    Err(damage(number, "what it measured", reason).into())
}

/// A run without its probes' recordings.
pub fn select_head(transaction: &Transaction, number: i64) -> Result<Run, Fault> {
    let of_run = named_params! { ":run": number };
    let found = transaction.first(sql::SELECT_RUN, of_run, |row| head(row, number))?;
    Ok(found.ok_or(rusqlite::Error::QueryReturnedNoRows)?)
}

/// The run in a row; returns an error if the row differs from what was stored.
pub fn head(row: &Row, number: i64) -> Result<Run, Fault> {
    let (expected, found): (u32, u32) = (row.get("crc")?, checksum(row)?);
    if expected != found {
        let reason = format!("expected checksum {expected:08x}, found {found:08x}");
        return Err(damage(number, "its row", reason).into());
    }
    let provenance: Option<String> = row.get("provenance")?;
    let (state, owner) = state_and_owner(row)?;
    let finished: Option<String> = row.get("finished")?;
    let died = is_orphan(state, finished.as_deref())
        .then(|| format!("process {} was gone before it ended the run", owner.pid));
    Ok(Run {
        id: id_of(number),
        suite: row.get("suite")?,
        plan: row.get("plan")?,
        seed: row.get::<i64>("seed")? as u64,
        subject: subject(row)?,
        state,
        error: row.get::<Option<String>>("error")?.or(died),
        started: row.get("started")?,
        finished,
        punctual: row.get("punctual")?,
        machine: from_json(number, "machine", &row.get::<String>("machine")?)?,
        shards: 1,
        request: from_json(number, "request", &row.get::<String>("request")?)?,
        provenance: provenance
            .map(|text| from_json(number, "provenance", &text))
            .transpose()?,
        steps: Vec::new(),
        recordings: Vec::new(),
        unsupported: Vec::new(),
        console: row.get("console")?,
        arrivals: Vec::new(),
    })
}

fn subject(row: &Row) -> Result<Subject, Fault> {
    Ok(Subject {
        name: row.get("subject")?,
        kernel: row.get("kernel")?,
        boot: row.get("boot")?,
        bench: row.get("bench")?,
    })
}

/// The current state of a run, and its owner: a run whose owner is gone is no longer running.
pub fn state_and_owner(row: &Row) -> Result<(State, Owner), Fault> {
    let (owner, is_alive) = owner(row)?;
    let stored = State::from_str(&row.get::<String>("state")?)
        .map_err(|reason| damage(row.get("number").unwrap_or(0), "state", reason))?;
    match stored {
        State::Running if !is_alive => Ok((State::Interrupted, owner)),
        state => Ok((state, owner)),
    }
}

/// The process that writes the run or campaign in a row; true if it is alive.
pub fn owner(row: &Row) -> Result<(Owner, bool), Fault> {
    let was_seen = row.get::<i64>("owner_seen")? != 0;
    let owner = Owner {
        pid: row.get("owner_pid")?,
        start: row.get::<i64>("owner_start")? as u64,
        boot: row.get("owner_boot")?,
        host: row.get("owner_host")?,
    };
    let is_alive = owner.is_alive() || (was_seen && !owner.is_here());
    Ok((owner, is_alive))
}

fn select_unsupported(transaction: &Transaction, number: i64) -> Result<Vec<Unsupported>, Fault> {
    let of_run = named_params! { ":run": number };
    transaction.all(sql::SELECT_UNSUPPORTED, of_run, |row| {
        Ok(Unsupported {
            step: row.get("step")?,
            probe: row.get("probe")?,
            load: row.get("load")?,
            reason: checked_json(row, number, "the reason of an unsupported probe")?,
        })
    })
}

fn select_steps(transaction: &Transaction, number: i64) -> Result<Vec<StepRecord>, Fault> {
    let of_run = named_params! { ":run": number };
    transaction.all(sql::SELECT_STEPS, of_run, |row| {
        let body: StepBody = checked_json(row, number, "what a load did")?;
        let (work, marks) = body.parts();
        Ok(StepRecord {
            step: row.get("step")?,
            probe: row.get("probe")?,
            load: row.get("load")?,
            work,
            marks,
        })
    })
}

/// The body of a step's row.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum StepBody {
    /// A step without marks, as stored before marks existed.
    Work(Vec<Work>),
    Marked {
        work: Vec<Work>,
        marks: Vec<Mark>,
    },
}

impl StepBody {
    fn of(step: &StepRecord) -> Self {
        let (work, marks) = (step.work.clone(), step.marks.clone());
        if marks.is_empty() {
            return Self::Work(work);
        }
        Self::Marked { work, marks }
    }

    fn parts(self) -> (Vec<Work>, Vec<Mark>) {
        match self {
            Self::Work(work) => (work, Vec::new()),
            Self::Marked { work, marks } => (work, marks),
        }
    }
}

/// The JSON in a row's body, checked against its checksum.
fn checked_json<T: DeserializeOwned>(row: &Row, run: i64, part: &str) -> Result<T, Fault> {
    let body: String = row.get("body")?;
    body::check(body.as_bytes(), row.get("crc")?).map_err(|why| damage(run, part, why))?;
    Ok(from_json(run, part, &body)?)
}

fn select_recordings(transaction: &Transaction, number: i64) -> Result<Vec<Recording>, Fault> {
    let of_run = named_params! { ":run": number };
    let recording = |row: &Row| recording(row, number);
    transaction.all(sql::SELECT_RECORDINGS, of_run, recording)
}

fn recording(row: &Row, number: i64) -> Result<Recording, Fault> {
    let text = |column| row.get::<String>(column);
    let (probe, load, variant) = (text("probe")?, text("load")?, text("variant")?);
    let part = format!("recording \"{probe} / {load} / {variant}\"");
    let cell = row.cell("body")?;
    let bytes = cell.value().as_blob().map_err(|source| Fault::Value {
        column: "body".into(),
        source,
    })?;
    Ok(body::decode(bytes, row.get("crc")?).map_err(|reason| damage(number, &part, reason))?)
}

/// An error that names the damaged part of a run.
pub fn damage(number: i64, part: &str, reason: String) -> StoreError {
    StoreError::Part {
        id: id_of(number),
        part: part.into(),
        reason,
    }
}

/// Names the run to which a damaged column belongs.
pub fn name_run(number: i64, fault: Fault) -> Fault {
    match fault {
        Fault::Value { column, source } => {
            damage(number, &format!("column {column}"), source.to_string()).into()
        }
        fault => fault,
    }
}

/// A value as JSON.
pub fn json(value: &(impl Serialize + ?Sized)) -> String {
    serde_json::to_string(value).expect("the model's types can be written as JSON")
}

fn from_json<T: DeserializeOwned>(number: i64, column: &str, text: &str) -> Result<T, StoreError> {
    serde_json::from_str(text).map_err(|error| damage(number, column, error.to_string()))
}

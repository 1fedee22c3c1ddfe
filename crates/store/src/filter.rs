// SPDX-License-Identifier: MIT OR Apache-2.0
//! A choice of some runs among many.

use punctual_model::run::State;
use punctual_model::{Nanos, RecordingKey};
use rusqlite::ToSql;

use crate::database::Transaction;
use crate::error::Fault;
use crate::{Longest, Summary, rows, sql};

/// A choice of runs: those that meet all of these conditions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// The suite's name.
    pub suite: Option<String>,
    /// The subject's name.
    pub subject: Option<String>,
    /// The kernel's id.
    pub kernel: Option<String>,
    /// The bench: `virtual`, `host`, `ssh:…`.
    pub bench: Option<String>,
    /// The name of the machine that wrote the run.
    pub host: Option<String>,
    /// A probe that has delivered a recording.
    pub probe: Option<String>,
    /// The state of the run.
    pub state: Option<State>,
    /// The earliest beginning: RFC 3339, UTC, or the first part of such a text.
    pub from: Option<String>,
    /// The time before which it began, in the same form.
    pub until: Option<String>,
}

impl Filter {
    /// The conditions on a run's row, each with its parameter and the value asked for.
    fn conditions(&self) -> Vec<(&'static str, &'static str, &dyn ToSql)> {
        fn given(value: Option<&String>) -> Option<&dyn ToSql> {
            value.map(|value| value as &dyn ToSql)
        }
        let all = [
            ("suite = :suite", ":suite", given(self.suite.as_ref())),
            (
                "subject = :subject",
                ":subject",
                given(self.subject.as_ref()),
            ),
            ("kernel = :kernel", ":kernel", given(self.kernel.as_ref())),
            ("bench = :bench", ":bench", given(self.bench.as_ref())),
            ("owner_host = :host", ":host", given(self.host.as_ref())),
            ("started >= :from", ":from", given(self.from.as_ref())),
            ("started < :until", ":until", given(self.until.as_ref())),
        ];
        let said = all
            .into_iter()
            .filter_map(|(is_so, name, value)| Some((is_so, name, value?)));
        said.collect()
    }
}

/// The runs that pass a filter: see [`crate::Store::page`].
pub fn page(
    transaction: &Transaction,
    filter: &Filter,
    before: Option<&str>,
    limit: usize,
) -> Result<Vec<Summary>, Fault> {
    let mut before = match before {
        Some(id) => rows::number_of(id).unwrap_or(0),
        None => i64::MAX,
    };
    let batch = limit.clamp(1, BATCH);
    let mut found = Vec::new();
    while found.len() < limit {
        let numbers = candidates(transaction, filter, before, batch)?;
        let is_last = numbers.len() < batch;
        before = numbers.last().copied().unwrap_or(0);
        let rows = summaries(transaction, filter, &numbers)?.into_iter();
        // Whether a run still runs is not known to the database.
        found.extend(rows.filter(|run| filter.state.is_none_or(|state| run.state == state)));
        if is_last {
            break;
        }
    }
    found.truncate(limit);
    Ok(found)
}

/// The longest sample of each recording: see [`crate::Store::longest`].
pub fn longest(transaction: &Transaction, ids: &[&str]) -> Result<Vec<Longest>, Fault> {
    let numbers = ids.iter().filter_map(|id| rows::number_of(id));
    let numbers: Vec<String> = numbers.map(|number| number.to_string()).collect();
    if numbers.is_empty() {
        return Ok(Vec::new());
    }
    let statement = format!(
        "SELECT run, probe, load, variant, max_ns FROM recordings
         WHERE max_ns IS NOT NULL AND run IN ({}) ORDER BY number",
        numbers.join(", ")
    );
    transaction.all(&statement, &[], |row| {
        let text = |name| row.get::<String>(name);
        Ok(Longest {
            run: rows::id_of(row.get("run")?),
            key: RecordingKey::new(&text("probe")?, &text("load")?, &text("variant")?),
            value: Nanos(row.get("max_ns")?),
        })
    })
}

/// The number of runs that one statement looks at.
const BATCH: usize = 1000;

/// Conditions with their parameters and values, including those on the state.
type Conditions<'a> = Vec<(&'static str, &'static str, &'a dyn ToSql)>;

/// The condition for a state. A run whose owner is gone is stored as running.
fn of_state(state: State) -> &'static str {
    match state {
        State::Interrupted => "state IN (:state, 'running')",
        _ => "state = :state",
    }
}

fn values<'a>(conditions: &Conditions<'a>) -> Vec<(&'static str, &'a dyn ToSql)> {
    let values = conditions.iter().map(|(_, name, value)| (*name, *value));
    values.collect()
}

fn all_of(conditions: &Conditions) -> String {
    let all: Vec<&str> = conditions.iter().map(|(is_so, _, _)| *is_so).collect();
    all.join(" AND ")
}

/// The next runs that may be wanted, found by an index alone, so that neither a rare probe nor a
/// time long ago makes it read all rows.
fn candidates(
    transaction: &Transaction,
    filter: &Filter,
    before: i64,
    batch: usize,
) -> Result<Vec<i64>, Fault> {
    let batch = i64::try_from(batch).unwrap_or(i64::MAX);
    let name = filter.state.map(State::name);
    let (statement, mut conditions) = match &filter.probe {
        Some(probe) => {
            let conditions: Conditions = vec![("probe = :probe", ":probe", probe)];
            ("SELECT DISTINCT run AS number FROM recordings", conditions)
        }
        None => ("SELECT number FROM runs", filter.conditions()),
    };
    let (number, order) = match filter.probe {
        Some(_) => ("run < :before", "run"),
        // Not by the order of numbers, which would have all newer rows read.
        None if filter.from.is_some() || filter.until.is_some() => {
            ("number < :before", "number + 0")
        }
        None => ("number < :before", "number"),
    };
    if let (None, Some(state), Some(name)) = (&filter.probe, filter.state, &name) {
        conditions.push((of_state(state), ":state", name));
    }
    conditions.push((number, ":before", &before));
    let mut values = values(&conditions);
    values.push((":limit", &batch));
    let conditions = all_of(&conditions);
    let statement = format!("{statement} WHERE {conditions} ORDER BY {order} DESC LIMIT :limit");
    transaction.all(&statement, &values, |row| row.get("number"))
}

/// The summaries of those of these runs that are wanted, newest first.
fn summaries(
    transaction: &Transaction,
    filter: &Filter,
    numbers: &[i64],
) -> Result<Vec<Summary>, Fault> {
    if numbers.is_empty() {
        return Ok(Vec::new());
    }
    let name = filter.state.map(State::name);
    let mut conditions = filter.conditions();
    if let (Some(state), Some(name)) = (filter.state, &name) {
        conditions.push((of_state(state), ":state", name));
    }
    let numbers: Vec<String> = numbers.iter().map(ToString::to_string).collect();
    let mut all = format!("number IN ({})", numbers.join(", "));
    if !conditions.is_empty() {
        all = format!("{all} AND {}", all_of(&conditions));
    }
    let statement = format!("{} WHERE {all} ORDER BY number DESC", sql::SELECT_SUMMARIES);
    transaction.all(&statement, &values(&conditions), rows::summary)
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which runs of many are wanted.

use punctual_model::run::State;
use rusqlite::ToSql;

use crate::database::Transaction;
use crate::error::Fault;
use crate::{Summary, rows, sql};

/// Which runs are wanted: those of which all is so that is said here.
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
    /// How far the run got.
    pub state: Option<State>,
    /// Begun at this time or later: RFC 3339, UTC, or the beginning of such a text.
    pub from: Option<String>,
    /// Begun before this time, likewise.
    pub until: Option<String>,
}

impl Filter {
    /// What must be so, and the values that are asked for.
    fn conditions(&self) -> Vec<(&'static str, &'static str, &dyn ToSql)> {
        fn given(value: Option<&String>) -> Option<&dyn ToSql> {
            value.map(|value| value as &dyn ToSql)
        }
        let probe = "EXISTS (SELECT 1 FROM recordings WHERE run = runs.number AND probe = :probe)";
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
            (probe, ":probe", given(self.probe.as_ref())),
            ("started >= :from", ":from", given(self.from.as_ref())),
            ("started < :until", ":until", given(self.until.as_ref())),
        ];
        let said = all
            .into_iter()
            .filter_map(|(is_so, name, value)| Some((is_so, name, value?)));
        said.collect()
    }
}

/// The runs that a filter lets through: see [`crate::Store::page`].
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
    let mut found = Vec::new();
    while found.len() < limit {
        let rows = next(transaction, filter, before, limit)?;
        let is_last = rows.len() < limit;
        before = rows.last().map_or(0, |(number, _)| *number);
        let rows = rows.into_iter().map(|(_, run)| run);
        // Whether a run still runs is not known to the database.
        found.extend(rows.filter(|run| filter.state.is_none_or(|state| run.state == state)));
        if is_last {
            break;
        }
    }
    found.truncate(limit);
    Ok(found)
}

fn next(
    transaction: &Transaction,
    filter: &Filter,
    before: i64,
    limit: usize,
) -> Result<Vec<(i64, Summary)>, Fault> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut conditions = filter.conditions();
    let state = filter.state.map(State::name);
    match (filter.state, &state) {
        // One whose owner is gone is stored as running.
        (Some(State::Interrupted), Some(state)) => {
            conditions.push(("state IN (:state, 'running')", ":state", state));
        }
        (Some(_), Some(state)) => conditions.push(("state = :state", ":state", state)),
        _ => {}
    }
    conditions.push(("number < :before", ":before", &before));
    let all: Vec<&str> = conditions.iter().map(|(is_so, _, _)| *is_so).collect();
    let statement = format!(
        "{} WHERE {} ORDER BY number DESC LIMIT :limit",
        sql::SELECT_SUMMARIES,
        all.join(" AND ")
    );
    let mut values: Vec<(&str, &dyn ToSql)> = Vec::new();
    values.extend(conditions.iter().map(|(_, name, value)| (*name, *value)));
    values.push((":limit", &limit));
    transaction.all(&statement, &values, |row| {
        Ok((row.get("number")?, rows::summary(row)?))
    })
}

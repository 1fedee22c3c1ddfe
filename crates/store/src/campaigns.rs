// SPDX-License-Identifier: MIT OR Apache-2.0
//! Campaigns: the runs that each asks for, and the progress of these. A run belongs to a campaign
//! by what it measures, whoever made it.

use punctual_model::campaign::Asked;
use punctual_model::run::State;
use rusqlite::named_params;

use crate::database::{Row, Transaction};
use crate::error::{Fault, StoreError};
use crate::owner::Owner;
use crate::transfer::insert_row;
use crate::{body, rows, sql};

/// A run that a campaign asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedRun {
    /// The number of its setting, from 0.
    pub setting: usize,
    /// The number of its subject in the setting, from 0.
    pub subject: usize,
    /// Its seed.
    pub seed: u64,
    /// The [`key`](crate::key) of what it measures.
    pub key: String,
}

/// A campaign in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CampaignSummary {
    /// Its id: `c3`.
    pub id: String,
    /// The request: its name, summary and settings.
    pub asked: Asked,
    /// The time at which it was first begun, RFC 3339, UTC.
    pub begun: String,
    /// The time at which it ended, RFC 3339, UTC; `None` if its process never reported an end.
    pub ended: Option<String>,
    /// True if a process is working on it.
    pub is_under_way: bool,
    /// The machine of the process that last worked on it.
    pub host: String,
    /// The text that the process left at its end, for people.
    pub told: String,
    /// The number of runs that it asks for.
    pub runs: usize,
    /// The number of these runs that are finished.
    pub finished: usize,
}

/// A campaign, and its runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Campaign {
    /// The campaign in one line.
    pub summary: CampaignSummary,
    /// The runs that were begun, with their states, in the campaign's order.
    pub runs: Vec<RunAt>,
}

/// A run and its place in a campaign.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunAt {
    /// The number of its setting, from 0.
    pub setting: usize,
    /// The number of its subject in the setting, from 0.
    pub subject: usize,
    /// Its seed.
    pub seed: u64,
    /// Its id.
    pub run: String,
    /// Its state.
    pub state: State,
    /// The number of its stories: with `--arrivals` they come after the run.
    pub stories: usize,
}

pub fn begin(
    transaction: &Transaction,
    asked: &Asked,
    planned: &[PlannedRun],
    begun: &str,
    owner: &Owner,
) -> Result<String, Fault> {
    let body = rows::json(asked);
    let number = if let Some(number) = like(transaction, &asked.name, &body)? {
        let values = named_params! {
            ":campaign": number, ":owner_pid": owner.pid, ":owner_start": owner.start as i64,
            ":owner_boot": owner.boot, ":owner_host": owner.host,
        };
        transaction.execute(sql::TAKE_UP_CAMPAIGN, values)?;
        number
    } else {
        let values = named_params! {
            ":name": asked.name, ":begun": begun, ":owner_pid": owner.pid,
            ":owner_start": owner.start as i64, ":owner_boot": owner.boot,
            ":owner_host": owner.host, ":crc": crc32fast::hash(body.as_bytes()), ":body": body,
        };
        let number = transaction.first(sql::INSERT_CAMPAIGN, values, |row| row.get("number"))?;
        number.ok_or(rusqlite::Error::QueryReturnedNoRows)?
    };
    let of_campaign = named_params! { ":campaign": number };
    transaction.execute(sql::DELETE_PLANNED, of_campaign)?;
    for run in planned {
        let values = named_params! {
            ":campaign": number, ":setting": run.setting as i64,
            ":subject": run.subject as i64, ":seed": run.seed as i64, ":key": run.key,
        };
        transaction.execute(sql::INSERT_PLANNED, values)?;
    }
    Ok(id_of(number))
}

/// The newest campaign with this name and an equal request.
fn like(transaction: &Transaction, name: &str, body: &str) -> Result<Option<i64>, Fault> {
    let values = named_params! { ":name": name, ":crc": crc32fast::hash(body.as_bytes()) };
    let found: Vec<(i64, String)> = transaction.all(sql::SELECT_CAMPAIGN_LIKE, values, |row| {
        Ok((row.get("number")?, row.get("body")?))
    })?;
    let mut found = found.into_iter();
    Ok(found.find(|(_, own)| own == body).map(|(number, _)| number))
}

pub fn end(
    transaction: &Transaction,
    id: &str,
    ended: &str,
    told: &str,
    owner: &Owner,
) -> Result<(), Fault> {
    let values = named_params! {
        ":campaign": number_of(id)?, ":ended": ended, ":told": told, ":owner_pid": owner.pid,
        ":owner_start": owner.start as i64, ":owner_boot": owner.boot,
    };
    transaction.execute(sql::END_CAMPAIGN, values)?;
    Ok(())
}

pub fn all(transaction: &Transaction) -> Result<Vec<CampaignSummary>, Fault> {
    let newest_first = format!("{} ORDER BY number DESC", sql::SELECT_CAMPAIGNS);
    transaction.all(&newest_first, &[], |row| {
        let asked = match asked(row) {
            Err(Fault::Store(why @ StoreError::Campaign { .. })) => Asked {
                name: row.get("name")?,
                summary: why.to_string(),
                ..Asked::default()
            },
            asked => asked?,
        };
        summary(row, asked)
    })
}

pub fn one(transaction: &Transaction, id: &str) -> Result<Campaign, Fault> {
    let of_campaign = named_params! { ":campaign": number_of(id)? };
    let statement = format!("{} WHERE number = :campaign", sql::SELECT_CAMPAIGNS);
    let summary = transaction.first(&statement, of_campaign, |row| summary(row, asked(row)?))?;
    let summary = summary.ok_or_else(|| StoreError::UnknownCampaign { id: id.into() })?;
    let mut runs: Vec<RunAt> = Vec::new();
    transaction.each(sql::SELECT_PLANNED, of_campaign, &mut |row| {
        let run = run_at(row)?;
        // Of several in one place the finished one counts, else the newest.
        let at = |one: &RunAt| (one.setting, one.subject, one.seed);
        match runs.last_mut().filter(|last| at(last) == at(&run)) {
            Some(last) if last.state == State::Finished && run.state != State::Finished => {}
            Some(last) => *last = run,
            None => runs.push(run),
        }
        Ok(())
    })?;
    Ok(Campaign { summary, runs })
}

/// Copies a campaign from one store to another.
pub fn copy(here: &Transaction, id: &str, there: &Transaction) -> Result<(), Fault> {
    let of_campaign = named_params! { ":campaign": number_of(id)? };
    let row = here.first(sql::SELECT_CAMPAIGN_ROW, of_campaign, |row| {
        asked(row)?;
        rows::cells(row)
    })?;
    let row = row.ok_or_else(|| StoreError::UnknownCampaign { id: id.into() })?;
    insert_row(there, "campaigns", &row, None, "")?;
    let last = there.first(sql::SELECT_LAST_CAMPAIGN, &[], |row| {
        row.get::<i64>("number")
    })?;
    let new = Some((
        "campaign",
        last.ok_or(rusqlite::Error::QueryReturnedNoRows)?,
    ));
    here.each(sql::SELECT_PLANNED_ROWS, of_campaign, &mut |row| {
        insert_row(there, "planned_runs", &rows::cells(row)?, new, "")?;
        Ok(())
    })
}

/// The request in a row; an error if it differs from what was stored.
fn asked(row: &Row) -> Result<Asked, Fault> {
    let number: i64 = row.get("number")?;
    let damaged = |reason: String| StoreError::Campaign {
        id: id_of(number),
        reason,
    };
    let body: String = match row.get("body") {
        // A damaged text may be no UTF-8.
        Err(Fault::Value { source, .. }) => return Err(damaged(source.to_string()).into()),
        body => body?,
    };
    body::check(body.as_bytes(), row.get("crc")?).map_err(damaged)?;
    Ok(serde_json::from_str(&body).map_err(|error| damaged(error.to_string()))?)
}

fn summary(row: &Row, asked: Asked) -> Result<CampaignSummary, Fault> {
    let ended: Option<String> = row.get("ended")?;
    let (owner, is_alive) = rows::owner(row)?;
    Ok(CampaignSummary {
        id: id_of(row.get("number")?),
        asked,
        begun: row.get("begun")?,
        is_under_way: ended.is_none() && is_alive,
        ended,
        host: owner.host,
        told: row.get("told")?,
        runs: row.get::<i64>("asked")? as usize,
        finished: row.get::<i64>("finished")? as usize,
    })
}

fn run_at(row: &Row) -> Result<RunAt, Fault> {
    Ok(RunAt {
        setting: row.get::<i64>("setting")? as usize,
        subject: row.get::<i64>("subject")? as usize,
        seed: row.get::<i64>("planned_seed")? as u64,
        run: rows::id_of(row.get("number")?),
        state: rows::state_and_owner(row)?.0,
        stories: row.get::<i64>("stories")? as usize,
    })
}

fn id_of(number: i64) -> String {
    format!("c{number}")
}

fn number_of(id: &str) -> Result<i64, Fault> {
    let number = id.strip_prefix('c').and_then(|number| number.parse().ok());
    let known = number.filter(|number| id_of(*number) == id);
    known.ok_or_else(|| StoreError::UnknownCampaign { id: id.into() }.into())
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Explanations of samples, kept beside their runs. No digest covers them: a story can be told
//! again at any time.

use rusqlite::named_params;

use crate::database::Transaction;
use crate::error::Fault;
use crate::{body, rows, sql};

/// An explanation of late samples of a run, as it was told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Story {
    /// The time at which it was told, RFC 3339, UTC.
    pub made: String,
    /// The text for people.
    pub told: String,
    /// The JSON for programs.
    pub json: String,
}

/// Stores a story, unless the run already has the very same; returns true if it is new.
pub fn add(transaction: &Transaction, run: i64, story: &Story) -> Result<bool, Fault> {
    if all(transaction, run)?
        .iter()
        .any(|known| known.json == story.json)
    {
        return Ok(false);
    }
    let values = named_params! {
        ":run": run, ":made": story.made, ":told": story.told,
        ":crc": crc32fast::hash(story.json.as_bytes()), ":body": story.json,
    };
    transaction.execute(sql::INSERT_STORY, values)?;
    Ok(true)
}

/// The stories of a run, in the order in which they were told.
pub fn all(transaction: &Transaction, run: i64) -> Result<Vec<Story>, Fault> {
    let stories = transaction.all(sql::SELECT_STORIES, named_params! { ":run": run }, |row| {
        let json: String = row.get("body")?;
        body::check(json.as_bytes(), row.get("crc")?)
            .map_err(|why| rows::damage(run, "a story", why))?;
        Ok(Story {
            made: row.get("made")?,
            told: row.get("told")?,
            json,
        })
    });
    stories.map_err(|fault| rows::name_run(run, fault))
}

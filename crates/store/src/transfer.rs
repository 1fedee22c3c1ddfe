// SPDX-License-Identifier: MIT OR Apache-2.0
//! Copies runs from one store into another: each once, however often it is tried and whoever else
//! tries it, because a run has the same `uid` in all stores.

use std::collections::BTreeMap;

use punctual_model::run::State;
use rusqlite::types::Value;
use rusqlite::{ToSql, named_params};

use crate::database::{Kind, Transaction};
use crate::error::{Fault, StoreError};
use crate::{CampaignSummary, Store, baselines, campaigns, rows, sql, stories};

/// The result of copying a run, a baseline or a campaign.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transferred {
    /// The run is now in the other store, too.
    Copied {
        /// Its id in the store it comes from.
        from: String,
        /// Its id in the other store. It keeps its id if that store has never given it.
        to: String,
    },
    /// The run was there already.
    Known {
        /// Its id in the store it comes from.
        from: String,
        /// Its id in the other store.
        to: String,
        /// The number of its stories that are new there.
        stories: usize,
    },
    /// The run is being written, and is left out.
    Running {
        /// Its id.
        from: String,
    },
    /// The run or campaign is damaged, and is left out.
    Damaged {
        /// Its id.
        from: String,
        /// The damage.
        why: String,
    },
    /// The baseline is now in the other store, too.
    Baseline {
        /// Its name.
        name: String,
    },
    /// The campaign is now in the other store, too.
    Campaign {
        /// Its name.
        name: String,
    },
    /// A process is working on the campaign, which is left out.
    CampaignUnderWay {
        /// Its name.
        name: String,
    },
    /// The other store has a baseline of that name with other runs, and keeps it.
    OtherBaseline {
        /// Its name.
        name: String,
    },
}

/// A row as it is stored: the names of its columns, and their values.
pub type Cells = Vec<(String, Value)>;

/// The tables with the parts of a run, by its number.
const PARTS: &[&str] = &["steps", "recordings", "unsupported", "stories"];

impl Store {
    /// Copies all runs into another store, oldest first, and then baselines and campaigns; calls
    /// `each` after each of them. Each run is one transaction there, so copying that was cut short
    /// can be begun again.
    pub fn copy_into(
        &self,
        to: &Self,
        mut each: impl FnMut(Transferred) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let numbers = self.transact(Kind::Read, |transaction| {
            transaction.all(sql::SELECT_NUMBERS, &[], |row| row.get::<i64>("number"))
        })?;
        let mut ids = BTreeMap::new();
        for number in numbers {
            let done = match self.copy_run(number, to) {
                // What is damaged does not spread, and keeps nothing else back.
                Err(error @ StoreError::Part { .. }) => Some(Transferred::Damaged {
                    from: rows::id_of(number),
                    why: error.to_string(),
                }),
                done => done?,
            };
            if let Some(Transferred::Copied { from, to } | Transferred::Known { from, to, .. }) =
                &done
            {
                ids.insert(from.clone(), to.clone());
            }
            if let Some(done) = done {
                each(done)?;
            }
        }
        for (name, runs) in self.baselines()? {
            each(copy_baseline(name, &runs, &ids, to)?)?;
        }
        for campaign in self.campaigns()?.into_iter().rev() {
            let done = match self.copy_campaign(&campaign, to) {
                Err(error @ StoreError::Campaign { .. }) => Transferred::Damaged {
                    from: campaign.id,
                    why: error.to_string(),
                },
                done => done?,
            };
            each(done)?;
        }
        Ok(())
    }

    /// Copies a run; returns `None` if the run was removed meanwhile.
    fn copy_run(&self, number: i64, to: &Self) -> Result<Option<Transferred>, StoreError> {
        let from = rows::id_of(number);
        let known = self.read(
            |transaction| {
                let of_run = named_params! { ":run": number };
                let row = transaction.first(sql::SELECT_RUN, of_run, |row| {
                    rows::head(row, number)?;
                    rows::cells(row)
                });
                let row = row.map_err(|fault| rows::name_run(number, fault))?;
                let Some(row) = row else { return Ok(None) };
                Ok(Some((row, rows::select_owner(transaction, number)?.0)))
            },
            |known| {
                let known = known.as_ref();
                known.is_some_and(|(row, state)| {
                    *state == State::Interrupted && text(row, "finished").is_empty()
                })
            },
        )?;
        let Some((row, state)) = known else {
            return Ok(None);
        };
        if state == State::Running {
            return Ok(Some(Transferred::Running { from }));
        }
        let (uid, key) = (text(&row, "uid"), text(&row, "key"));
        let known = to.transact(Kind::Read, |there| {
            let by_uid = number_by_uid(there, &uid)?;
            // A file of another program is one run, wherever it was imported.
            let is_imported = key.starts_with(crate::IMPORTED);
            match by_uid {
                None if is_imported => rows::select_equal(there, &key),
                by_uid => Ok(by_uid),
            }
        })?;
        if let Some(known) = known {
            let stories = self.copy_stories(number, known, to)?;
            let to = rows::id_of(known);
            return Ok(Some(Transferred::Known { from, to, stories }));
        }
        // Each of its parts is read, and checked.
        let read = self.load(&from);
        let run = match read.and_then(|run| self.stories(&from).map(|_| run)) {
            Err(StoreError::Unknown { .. }) => return Ok(None),
            read => read?,
        };
        // A run that came there by a file has another uid.
        let same = to.transact(Kind::Read, |there| rows::select_same(there, &run))?;
        if let Some(known) = same {
            let stories = self.copy_stories(number, known, to)?;
            let to = rows::id_of(known);
            return Ok(Some(Transferred::Known { from, to, stories }));
        }
        let (is_new, there) = to.transact(Kind::Write, |there| {
            self.transact(Kind::Read, |here| Ok(insert(here, number, &row, there)))
                .map_err(Fault::from)?
                .map_err(|fault| rows::name_run(number, fault))
        })?;
        let to = rows::id_of(there);
        Ok(Some(if is_new {
            Transferred::Copied { from, to }
        } else {
            // Somebody else copied it just now.
            let stories = 0;
            Transferred::Known { from, to, stories }
        }))
    }

    /// Copies the stories of a run that the other store has; returns the number of new ones.
    fn copy_stories(&self, number: i64, known: i64, to: &Self) -> Result<usize, StoreError> {
        let told = self.transact(Kind::Read, |here| stories::all(here, number))?;
        if told.is_empty() {
            return Ok(0);
        }
        to.transact(Kind::Write, |there| {
            there.hold_run(known)?;
            let added = told.iter().map(|story| stories::add(there, known, story));
            let added = added.collect::<Result<Vec<bool>, Fault>>()?;
            Ok(added.into_iter().filter(|is_new| *is_new).count())
        })
    }

    fn copy_campaign(
        &self,
        campaign: &CampaignSummary,
        to: &Self,
    ) -> Result<Transferred, StoreError> {
        let name = campaign.asked.name.clone();
        if campaign.is_under_way {
            return Ok(Transferred::CampaignUnderWay { name });
        }
        to.transact(Kind::Write, |there| {
            there.hold_adding()?;
            let known = campaigns::all(there)?;
            let is_same = |own: &CampaignSummary| {
                (&own.asked, &own.begun) == (&campaign.asked, &campaign.begun)
            };
            if known.iter().any(is_same) {
                return Ok(());
            }
            self.transact(Kind::Read, |here| {
                Ok(campaigns::copy(here, &campaign.id, there))
            })
            .map_err(Fault::from)?
        })?;
        Ok(Transferred::Campaign { name })
    }
}

/// Copies a baseline of these runs; `ids` has their ids in the other store.
fn copy_baseline(
    name: String,
    runs: &[String],
    ids: &BTreeMap<String, String>,
    to: &Store,
) -> Result<Transferred, StoreError> {
    let there: Option<Vec<String>> = runs.iter().map(|id| ids.get(id).cloned()).collect();
    let fits = to.transact(Kind::Write, |transaction| {
        transaction.hold_baselines()?;
        let known = baselines::all(transaction)?;
        match (known.into_iter().find(|(known, _)| *known == name), &there) {
            (Some((_, known)), Some(there)) => Ok(known == *there),
            (None, Some(there)) => baselines::set(transaction, &name, there).map(|()| true),
            // One of its runs is being written, is damaged, or was removed.
            (_, None) => Ok(false),
        }
    })?;
    Ok(if fits {
        Transferred::Baseline { name }
    } else {
        Transferred::OtherBaseline { name }
    })
}

/// Copies a run's row, and everything that belongs to it, unless the other store has the run.
/// Returns true if it was copied, and its number there.
fn insert(
    here: &Transaction,
    number: i64,
    row: &Cells,
    there: &Transaction,
) -> Result<(bool, i64), Fault> {
    let new = there.next_number(number)?;
    let inserted = insert_row(
        there,
        "runs",
        row,
        Some(("number", new)),
        " ON CONFLICT (uid) DO NOTHING",
    )?;
    if inserted == 0 {
        let known = number_by_uid(there, &text(row, "uid"))?;
        return Ok((false, known.unwrap_or_default()));
    }
    rows::seal(there, new)?;
    for part in PARTS {
        let select = format!("SELECT * FROM {part} WHERE run = :run ORDER BY number");
        here.each(&select, named_params! { ":run": number }, &mut |row| {
            insert_row(there, part, &rows::cells(row)?, Some(("run", new)), "")?;
            Ok(())
        })?;
    }
    Ok((true, new))
}

/// Inserts a row, with another value in one column. Parts get new numbers.
pub fn insert_row(
    transaction: &Transaction,
    table: &str,
    row: &Cells,
    other: Option<(&str, i64)>,
    conflict: &str,
) -> Result<usize, Fault> {
    let is_kept = |name: &str| {
        name != "number" && name != "owner_seen" && other.is_none_or(|(other, _)| name != other)
    };
    let kept = row.iter().filter(|(name, _)| is_kept(name));
    let mut values: Vec<(String, &dyn ToSql)> = kept
        .map(|(name, value)| (format!(":{name}"), value as &dyn ToSql))
        .collect();
    if let Some((name, value)) = &other {
        values.push((format!(":{name}"), value));
    }
    let markers: Vec<&str> = values.iter().map(|(marker, _)| marker.as_str()).collect();
    let names: Vec<&str> = markers.iter().map(|marker| &marker[1..]).collect();
    let statement = format!(
        "INSERT INTO {table} ({}) VALUES ({}){conflict}",
        names.join(", "),
        markers.join(", ")
    );
    let values: Vec<(&str, &dyn ToSql)> = values
        .iter()
        .map(|(marker, value)| (marker.as_str(), *value))
        .collect();
    transaction.execute(&statement, &values)
}

fn number_by_uid(transaction: &Transaction, uid: &str) -> Result<Option<i64>, Fault> {
    let with_uid = named_params! { ":uid": uid };
    transaction.first(sql::SELECT_BY_UID, with_uid, |row| row.get("number"))
}

/// The text in a column of a row; empty if there is none.
fn text(row: &Cells, column: &str) -> String {
    let cell = row.iter().find(|(name, _)| name == column);
    match cell {
        Some((_, Value::Text(text))) => text.clone(),
        _ => String::new(),
    }
}

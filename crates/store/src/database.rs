// SPDX-License-Identifier: MIT OR Apache-2.0
//! A transaction of either database, with one text for each statement.
//!
//! Statements are written for `SQLite`, and [`crate::postgresql`] translates them. The types of
//! values are rusqlite's.

use rusqlite::types::{FromSql, Value, ValueRef};
use rusqlite::{CachedStatement, ToSql, named_params};

use crate::error::Fault;
use crate::{postgresql, sql};

/// The parameters of a statement, by name.
pub type Parameters<'p> = &'p [(&'p str, &'p dyn ToSql)];

/// The purpose of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It sees one moment of the store, and changes nothing.
    Read,
    /// It may change something.
    Write,
}

/// A transaction, which takes effect as a whole or not at all.
pub enum Transaction<'a> {
    /// Of an `SQLite` file.
    File(rusqlite::Transaction<'a>),
    /// Of a `PostgreSQL` server.
    Server(postgresql::Transaction<'a>),
}

impl Transaction<'_> {
    /// Executes a statement; returns the number of rows that it changed.
    pub fn execute(&self, statement: &str, parameters: Parameters) -> Result<usize, Fault> {
        match self {
            Self::File(file) => Ok(file.prepare_cached(statement)?.execute(parameters)?),
            Self::Server(server) => server.execute(statement, parameters),
        }
    }

    /// Passes each row that a statement finds to `of`, which must not use the transaction.
    pub fn each(
        &self,
        statement: &str,
        parameters: Parameters,
        of: &mut dyn FnMut(&Row) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        match self {
            Self::File(file) => {
                let mut statement: CachedStatement = file.prepare_cached(statement)?;
                let mut rows = statement.query(parameters)?;
                while let Some(row) = rows.next()? {
                    of(&Row::File(row))?;
                }
                Ok(())
            }
            Self::Server(server) => server.each(statement, parameters, of),
        }
    }

    /// All rows that a statement finds, each as read by `of`.
    pub fn all<T>(
        &self,
        statement: &str,
        parameters: Parameters,
        mut of: impl FnMut(&Row) -> Result<T, Fault>,
    ) -> Result<Vec<T>, Fault> {
        let mut all = Vec::new();
        self.each(statement, parameters, &mut |row| {
            all.push(of(row)?);
            Ok(())
        })?;
        Ok(all)
    }

    /// The first of the rows that a statement finds.
    pub fn first<T>(
        &self,
        statement: &str,
        parameters: Parameters,
        of: impl FnMut(&Row) -> Result<T, Fault>,
    ) -> Result<Option<T>, Fault> {
        Ok(self.all(statement, parameters, of)?.into_iter().next())
    }

    /// Makes all changes permanent.
    pub fn commit(self) -> Result<(), Fault> {
        match self {
            Self::File(file) => Ok(file.commit()?),
            Self::Server(server) => server.commit(),
        }
    }

    /// Returns a number that no run has had: `wanted`, unless that one or a later one was given.
    pub fn next_number(&self, wanted: i64) -> Result<i64, Fault> {
        let last = |row: &Row| row.get::<i64>("last");
        let number = match self {
            Self::File(_) => {
                let last = self.first(sql::SELECT_LAST, &[], last)?;
                last.map(|last| wanted.max(last + 1))
            }
            Self::Server(_) => {
                let wanted = named_params! { ":wanted": wanted };
                self.first(sql::TAKE_NUMBERS, wanted, last)?
            }
        };
        Ok(number.ok_or(rusqlite::Error::QueryReturnedNoRows)?)
    }

    /// Keeps other writers away from a run until the transaction ends. A file has one writer at a
    /// time anyway.
    pub fn hold_run(&self, number: i64) -> Result<(), Fault> {
        match self {
            Self::File(_) => Ok(()),
            Self::Server(server) => server.hold_run(number),
        }
    }

    /// Keeps others from adding runs that have ended elsewhere until the transaction ends. If two
    /// add the same run, one of them finds it.
    pub fn hold_adding(&self) -> Result<(), Fault> {
        match self {
            Self::File(_) => Ok(()),
            // Any number, the same for all.
            Self::Server(server) => server.batch("SELECT pg_advisory_xact_lock(72019)"),
        }
    }

    /// Keeps other writers away from all baselines until the transaction ends.
    pub fn hold_baselines(&self) -> Result<(), Fault> {
        match self {
            Self::File(_) => Ok(()),
            Self::Server(server) => server.batch("LOCK TABLE baselines IN EXCLUSIVE MODE"),
        }
    }
}

/// A row that a statement has found.
pub enum Row<'a> {
    /// Of an `SQLite` file.
    File(&'a rusqlite::Row<'a>),
    /// Of a `PostgreSQL` server.
    Server(&'a postgresql::ServerRow),
}

impl Row<'_> {
    /// The value in a column.
    pub fn get<T: FromSql>(&self, column: &str) -> Result<T, Fault> {
        let cell = self.cell(column)?;
        T::column_result(cell.value()).map_err(|source| Fault::Value {
            column: column.to_owned(),
            source,
        })
    }

    /// The value in a column, of any type.
    pub fn cell(&self, column: &str) -> Result<Cell<'_>, Fault> {
        match self {
            Self::File(row) => Ok(Cell::Borrowed(row.get_ref(column)?)),
            Self::Server(row) => postgresql::cell(row, column),
        }
    }

    /// The names of the columns.
    pub fn columns(&self) -> Vec<String> {
        match self {
            Self::File(row) => {
                let names = row.as_ref().column_names();
                names.into_iter().map(str::to_owned).collect()
            }
            Self::Server(row) => postgresql::columns(row),
        }
    }
}

/// The value in a column.
pub enum Cell<'a> {
    /// Borrowed from the row.
    Borrowed(ValueRef<'a>),
    /// Made from the content of the row.
    Owned(Value),
}

impl Cell<'_> {
    /// The value.
    pub fn value(&self) -> ValueRef<'_> {
        match self {
            Self::Borrowed(value) => *value,
            Self::Owned(value) => value.into(),
        }
    }
}

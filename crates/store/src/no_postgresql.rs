// SPDX-License-Identifier: MIT OR Apache-2.0
//! Replaces [`crate::postgresql`] if Punctual is built without the feature `postgresql`: no server
//! can be named, so none of these types has a value.

use std::fmt;
use std::marker::PhantomData;

use thiserror::Error;

use crate::database::{self, Cell, Kind, Parameters, Row};
use crate::error::{Fault, StoreError};
use crate::place::Place;

/// A database of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {}

impl Address {
    /// # Errors
    /// Always: [`StoreError::NoServers`].
    pub fn parse(_: &str) -> Result<Self, StoreError> {
        Err(StoreError::NoServers)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {}
    }
}

/// An error of a server.
#[derive(Debug, Error)]
pub enum Error {}

/// A row that a server has found.
pub enum ServerRow {}

/// A connection to a server.
pub enum Server {}

impl Server {
    /// Reaches the server.
    pub fn open(address: &Address, _: bool) -> Result<Self, StoreError> {
        match *address {}
    }

    /// Runs a transaction.
    pub fn transact<T>(
        &self,
        _: Kind,
        _: impl Fn(&database::Transaction) -> Result<T, Fault>,
    ) -> Result<T, StoreError> {
        match *self {}
    }

    /// Runs a transaction, tried once.
    pub fn transact_at_once<T>(
        &self,
        _: Kind,
        _: impl Fn(&database::Transaction) -> Result<T, Fault>,
    ) -> Result<T, StoreError> {
        match *self {}
    }
}

/// A transaction of a server.
pub struct Transaction<'a> {
    server: Server,
    life: PhantomData<&'a ()>,
}

impl Transaction<'_> {
    pub fn execute(&self, _: &str, _: Parameters) -> Result<usize, Fault> {
        match self.server {}
    }

    pub fn each(
        &self,
        _: &str,
        _: Parameters,
        _: &mut dyn FnMut(&Row) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        match self.server {}
    }

    pub fn batch(&self, _: &str) -> Result<(), Fault> {
        match self.server {}
    }

    pub fn commit(self) -> Result<(), Fault> {
        match self.server {}
    }

    pub fn hold_run(&self, _: i64) -> Result<(), Fault> {
        match self.server {}
    }
}

/// The value in a column of a row.
pub fn cell<'r>(row: &'r ServerRow, _: &str) -> Result<Cell<'r>, Fault> {
    match *row {}
}

/// The names of a row's columns.
pub fn columns(row: &ServerRow) -> Vec<String> {
    match *row {}
}

/// Turns an error of a server into one that names the store.
#[allow(clippy::needless_pass_by_value)] // As the other one is.
pub fn error(source: Error, _: &Place) -> StoreError {
    match source {}
}

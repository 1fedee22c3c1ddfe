// SPDX-License-Identifier: MIT OR Apache-2.0
//! A store on a `PostgreSQL` server: in the schema `punctual` of a database.
//!
//! The statements are those of `SQLite`, translated: see [`translated`] and [`definitions`]. A lost
//! connection is made again, and its unfinished transaction is repeated, with effect exactly once:
//! each transaction that writes leaves its number, which tells whether it was committed. The
//! server's own numbers (`pg_xact_status`) cannot tell: after a crash the server gives numbers
//! again that had not reached its disk.

use std::cell::RefCell;
use std::collections::HashMap;
use std::error::Error as _;
use std::io;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use bytes::{BufMut as _, BytesMut};
use postgres::error::SqlState;
use postgres::fallible_iterator::FallibleIterator as _;
use postgres::types::{IsNull, ToSql, Type, to_sql_checked};
use postgres::{Client, IsolationLevel, Statement};
use rusqlite::named_params;
use rusqlite::types::{ToSqlOutput, Value, ValueRef};

use crate::database::{self, Cell, Kind, Parameters, Row};
use crate::error::{Fault, PATIENCE_S, StoreError};
use crate::place::Place;
use crate::{owner, sql, tls};

pub use crate::address::Address;
pub use postgres::{Error, Row as ServerRow};

const PATIENCE: Duration = Duration::from_secs(PATIENCE_S);

/// The pause before a server that does not answer is asked again.
const PAUSE: Duration = Duration::from_millis(200);

/// The most prepared statements that a connection remembers.
const MOST_PREPARED: usize = 100;

/// A database of a server.
pub struct Server {
    address: Address,
    /// The identity that tells this writer from every other.
    writer: String,
    /// The number of transactions that it has begun.
    begun: AtomicI64,
    connection: Mutex<Connection>,
}

/// A connection, and the statements that it has prepared.
struct Connection {
    client: Client,
    prepared: HashMap<String, Prepared>,
    /// True if nothing may be changed.
    read_only: bool,
    /// True if it was lost and no other could be made in time.
    is_given_up: bool,
}

#[derive(Clone)]
struct Prepared {
    statement: Statement,
    /// The names of its parameters, ordered by their numbers.
    names: Vec<String>,
}

impl Server {
    /// Connects to a store; makes it if it is missing, unless it is only read.
    pub fn open(address: &Address, read_only: bool) -> Result<Self, StoreError> {
        let until = Instant::now() + PATIENCE;
        let opened = Connection::patient(address, read_only, until, false);
        Ok(Self {
            address: address.clone(),
            writer: owner::new_uid().map_err(StoreError::Owner)?,
            begun: AtomicI64::new(0),
            connection: Mutex::new(opened.map_err(|fault| fault.at(&address.clone().into()))?),
        })
    }

    /// Runs a transaction. If the connection is lost, it is made again, and the transaction is
    /// repeated unless it was committed.
    pub fn transact<T>(
        &self,
        kind: Kind,
        work: impl Fn(&database::Transaction) -> Result<T, Fault>,
    ) -> Result<T, StoreError> {
        self.within(PATIENCE, kind, work)
    }

    /// The same, but gives a server that is away no time to come back.
    pub fn transact_at_once<T>(
        &self,
        kind: Kind,
        work: impl Fn(&database::Transaction) -> Result<T, Fault>,
    ) -> Result<T, StoreError> {
        self.within(Duration::ZERO, kind, work)
    }

    fn within<T>(
        &self,
        patience: Duration,
        kind: Kind,
        work: impl Fn(&database::Transaction) -> Result<T, Fault>,
    ) -> Result<T, StoreError> {
        let connection = self.connection.lock();
        let mut connection = connection.unwrap_or_else(PoisonError::into_inner);
        let begun = Instant::now();
        // Who waited in vain once does not wait again for each thing that is left to be done.
        let patience = if connection.is_given_up {
            Duration::ZERO
        } else {
            patience
        };
        let number = self.begun.fetch_add(1, Ordering::Relaxed);
        let name = (self.writer.as_str(), number);
        let mut uncertain = None;
        let mut tries = 0;
        let fault = loop {
            let fault = match connection.attempt(name, kind, &work, &mut uncertain) {
                Ok(value) => return Ok(value),
                Err(fault) => fault,
            };
            tries += 1;
            if tries > 1 && begun.elapsed() > patience {
                break fault;
            }
            if fault.is_conflict() {
                thread::sleep(PAUSE / 20);
            } else if fault.is_lost() {
                let until = begun + patience;
                match Connection::patient(&self.address, connection.read_only, until, true) {
                    Ok(new) => *connection = new,
                    Err(fault) => break fault,
                }
            } else {
                break fault;
            }
        };
        let place = self.address.clone().into();
        if patience > Duration::ZERO {
            connection.is_given_up = fault.is_unreachable();
        }
        Err(match fault {
            Fault::Server(source) if connection.is_given_up => StoreError::Lost {
                place,
                waited_s: PATIENCE_S,
                source,
            },
            fault => fault.at(&place),
        })
    }
}

impl Connection {
    /// Connects to a store. A server that has begun to start, or that has as many clients as it
    /// can, gets time. After a lost connection, any server does.
    fn patient(
        address: &Address,
        read_only: bool,
        until: Instant,
        was_lost: bool,
    ) -> Result<Self, Fault> {
        loop {
            match Self::new(address, read_only) {
                Err(fault)
                    if Instant::now() < until
                        && (fault.is_starting() || (was_lost && fault.is_unreachable())) =>
                {
                    thread::sleep(PAUSE);
                }
                done => return done,
            }
        }
    }

    fn new(address: &Address, read_only: bool) -> Result<Self, Fault> {
        let config = address.config();
        let tls = tls::connector(config.get_ssl_mode()).map_err(StoreError::Roots)?;
        let mut new = Self {
            client: config.connect(tls)?,
            prepared: HashMap::new(),
            read_only,
            is_given_up: false,
        };
        new.prepare_session(address)?;
        Ok(new)
    }

    fn prepare_session(&mut self, address: &Address) -> Result<(), Fault> {
        // What is acknowledged has reached the disk, however the server is set up.
        self.client.batch_execute(
            "SELECT set_config('synchronous_commit', 'on', false)
                WHERE current_setting('synchronous_commit') = 'off';
            SET search_path TO punctual; SET client_min_messages TO warning",
        )?;
        // A server that has not noticed that a writer is gone keeps the writer's next try waiting.
        let quiet = format!("SET idle_in_transaction_session_timeout TO '{PATIENCE_S}s'");
        self.client.batch_execute(&quiet)?;
        match self.version(address)? {
            Some(sql::SCHEMA_VERSION) => {}
            Some(found) => {
                return Err(StoreError::Earlier {
                    place: address.clone().into(),
                    found,
                    known: sql::SCHEMA_VERSION,
                }
                .into());
            }
            None if self.read_only => {
                return Err(StoreError::NoStore(address.clone().into()).into());
            }
            None => self.make(address)?,
        }
        if self.read_only {
            let only = "SET default_transaction_read_only TO on";
            self.client.batch_execute(only)?;
        }
        Ok(())
    }

    /// The version of the schema; `None` if there is no store yet.
    fn version(&mut self, address: &Address) -> Result<Option<i64>, Fault> {
        version(&mut self.client.transaction()?, address)
    }

    /// Makes a store; only one process does so at a time.
    fn make(&mut self, address: &Address) -> Result<(), Fault> {
        let mut transaction = self.client.transaction()?;
        let alone = "SELECT pg_advisory_xact_lock($1)";
        transaction.execute(alone, &[&sql::APPLICATION_ID])?;
        // Another process may have been the first.
        if version(&mut transaction, address)?.is_some() {
            return Ok(());
        }
        transaction.batch_execute("CREATE SCHEMA IF NOT EXISTS punctual")?;
        transaction.batch_execute(&definitions(sql::SCHEMA))?;
        transaction.batch_execute(&definitions(sql::COMMITS))?;
        transaction.batch_execute("CREATE TABLE store (version BIGINT NOT NULL)")?;
        let version = "INSERT INTO store VALUES ($1)";
        transaction.execute(version, &[&sql::SCHEMA_VERSION])?;
        Ok(transaction.commit()?)
    }

    /// Tries a transaction, known by its writer and number. If its very last step fails, only the
    /// server knows whether it was committed. `uncertain` then holds its result. The next attempt
    /// waits for the lost one if that is still ending, and does the work only if it was not
    /// committed.
    fn attempt<T>(
        &mut self,
        (writer, number): (&str, i64),
        kind: Kind,
        work: impl Fn(&database::Transaction) -> Result<T, Fault>,
        uncertain: &mut Option<T>,
    ) -> Result<T, Fault> {
        let builder = self.client.build_transaction();
        let transaction = match kind {
            Kind::Read => builder
                .isolation_level(IsolationLevel::RepeatableRead)
                .read_only(true),
            Kind::Write => builder.isolation_level(IsolationLevel::ReadCommitted),
        }
        .start()?;
        let transaction = database::Transaction::Server(Transaction {
            transaction: RefCell::new(transaction),
            prepared: RefCell::new(&mut self.prepared),
        });
        if kind == Kind::Read {
            return work(&transaction);
        }
        let name = named_params! { ":writer": writer, ":number": number };
        let was_committed = transaction.execute(sql::COMMIT_ONCE, name)? == 0;
        if let Some(value) = uncertain.take_if(|_| was_committed) {
            return Ok(value);
        }
        let value = work(&transaction)?;
        match transaction.commit() {
            Ok(()) => Ok(value),
            Err(fault) => {
                *uncertain = Some(value);
                Err(fault)
            }
        }
    }
}

fn version(
    transaction: &mut postgres::Transaction,
    address: &Address,
) -> Result<Option<i64>, Fault> {
    // Not by `to_regclass`, which may remember what was so before another process made it; and
    // both at once, because one may be making it.
    let tables = "SELECT count(*), count(*) FILTER (WHERE tablename = 'store')
        FROM pg_catalog.pg_tables
        WHERE schemaname = 'punctual' AND tablename IN ('store', 'runs')";
    let tables = transaction.query_one(tables, &[])?;
    let place = || address.clone().into();
    match (tables.get(0), tables.get(1)) {
        (0_i64, _) => return Ok(None),
        (2, 1_i64) => {}
        _ => return Err(StoreError::Foreign { place: place() }.into()),
    }
    let found = transaction.query_one("SELECT version FROM punctual.store", &[])?;
    match found.get(0) {
        found if found > sql::SCHEMA_VERSION => Err(StoreError::Newer {
            place: place(),
            found,
            known: sql::SCHEMA_VERSION,
        }
        .into()),
        found => Ok(Some(found)),
    }
}

/// A transaction of a server.
pub struct Transaction<'a> {
    transaction: RefCell<postgres::Transaction<'a>>,
    prepared: RefCell<&'a mut HashMap<String, Prepared>>,
}

impl Transaction<'_> {
    pub fn execute(&self, statement: &str, parameters: Parameters) -> Result<usize, Fault> {
        let prepared = self.prepare(statement)?;
        let values = bound(&prepared, parameters)?;
        let values: Vec<&(dyn ToSql + Sync)> = values.iter().map(|value| value as _).collect();
        let mut transaction = self.transaction.borrow_mut();
        Ok(transaction.execute(&prepared.statement, &values)? as usize)
    }

    pub fn each(
        &self,
        statement: &str,
        parameters: Parameters,
        of: &mut dyn FnMut(&Row) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let prepared = self.prepare(statement)?;
        let values = bound(&prepared, parameters)?;
        let mut transaction = self.transaction.borrow_mut();
        let mut rows = transaction.query_raw(&prepared.statement, values)?;
        while let Some(row) = rows.next()? {
            of(&Row::Server(&row))?;
        }
        Ok(())
    }

    pub fn batch(&self, statements: &str) -> Result<(), Fault> {
        let mut transaction = self.transaction.borrow_mut();
        Ok(transaction.batch_execute(statements)?)
    }

    pub fn commit(self) -> Result<(), Fault> {
        Ok(self.transaction.into_inner().commit()?)
    }

    pub fn hold_run(&self, number: i64) -> Result<(), Fault> {
        let hold = "SELECT number FROM runs WHERE number = $1 FOR UPDATE";
        self.transaction.borrow_mut().execute(hold, &[&number])?;
        Ok(())
    }

    fn prepare(&self, statement: &str) -> Result<Prepared, Fault> {
        let mut known = self.prepared.borrow_mut();
        if let Some(prepared) = known.get(statement) {
            return Ok(prepared.clone());
        }
        let (text, names) = translated(statement);
        let prepared = Prepared {
            statement: self.transaction.borrow_mut().prepare(&text)?,
            names,
        };
        // Some statements name runs by their numbers: those are not asked again.
        if known.len() > MOST_PREPARED {
            known.clear();
        }
        known.insert(statement.to_owned(), prepared.clone());
        Ok(prepared)
    }
}

/// Translates a statement: numbers replace its parameters, whose names are returned. `:run` becomes
/// `$1`.
fn translated(statement: &str) -> (String, Vec<String>) {
    let statement = statement.replace(sql::NOW_S, "extract(epoch FROM now())::bigint");
    let (mut text, mut names) = (String::new(), Vec::<String>::new());
    let mut rest = statement.as_str();
    while let Some(at) = rest.find(':') {
        let (before, behind) = rest.split_at(at);
        let is_of_name = |c: char| c == '_' || c.is_ascii_lowercase() || c.is_ascii_digit();
        let length = behind[1..].find(|c| !is_of_name(c));
        let (name, after) = behind.split_at(length.map_or(behind.len(), |length| length + 1));
        text.push_str(before);
        if name.len() == 1 {
            // A cast, or a colon in a text.
            let both = if behind.starts_with("::") { 2 } else { 1 };
            text.push_str(&behind[..both]);
            rest = &behind[both..];
            continue;
        }
        let known = names.iter().position(|known| known == name);
        let number = known.unwrap_or_else(|| {
            names.push(name.to_owned());
            names.len() - 1
        });
        text.extend(["$", &(number + 1).to_string()]);
        rest = after;
    }
    text.push_str(rest);
    (text, names)
}

/// Translates statements that make or change tables: `SQLite`'s types get their names here. Texts
/// are ordered by their bytes, as in `SQLite`.
fn definitions(statements: &str) -> String {
    let key = "BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY";
    statements
        .replace("INTEGER PRIMARY KEY AUTOINCREMENT", key)
        .replace("INTEGER PRIMARY KEY", key)
        .replace("INTEGER", "BIGINT")
        .replace("TEXT", "TEXT COLLATE \"C\"")
        .replace("BLOB", "BYTEA")
        .replace(") STRICT", ")")
}

/// The values of a statement's parameters, ordered by their numbers.
fn bound<'p>(prepared: &Prepared, parameters: Parameters<'p>) -> Result<Vec<Bound<'p>>, Fault> {
    let value = |name: &String| {
        let (_, value) = parameters
            .iter()
            .find(|(own, _)| own == name)
            .unwrap_or_else(|| panic!("no value for {name}"));
        Ok(Bound(value.to_sql()?))
    };
    prepared.names.iter().map(value).collect()
}

/// A value for a parameter.
#[derive(Debug)]
struct Bound<'p>(ToSqlOutput<'p>);

impl ToSql for Bound<'_> {
    fn to_sql(
        &self,
        kind: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        let value = match &self.0 {
            ToSqlOutput::Borrowed(value) => *value,
            ToSqlOutput::Owned(value) => ValueRef::from(value),
            _ => return Err("expected a plain value".into()),
        };
        match value {
            ValueRef::Null => return Ok(IsNull::Yes),
            ValueRef::Integer(value) if *kind == Type::INT4 => {
                out.put_i32(value.try_into()?);
            }
            ValueRef::Integer(value) => out.put_i64(value),
            ValueRef::Real(value) => out.put_f64(value),
            ValueRef::Text(bytes) => put_text(bytes, out),
            ValueRef::Blob(bytes) => out.put_slice(bytes),
        }
        Ok(IsNull::No)
    }

    fn accepts(kind: &Type) -> bool {
        let kinds = [
            Type::INT4,
            Type::INT8,
            Type::FLOAT8,
            Type::TEXT,
            Type::BYTEA,
        ];
        kinds.contains(kind)
    }

    to_sql_checked!();
}

/// The character put before one that the server's texts cannot hold, and before itself. A byte that
/// never begins a UTF-8 character would do, but the server refuses it. Nobody uses the last
/// character of Unicode.
const ESCAPE: char = '\u{10ffff}';

/// Writes a text, in which a zero byte, which the server refuses, is escaped.
fn put_text(bytes: &[u8], out: &mut BytesMut) {
    let mut escape = [0; 4];
    let escape = ESCAPE.encode_utf8(&mut escape).as_bytes();
    if !bytes.contains(&0) && !bytes.windows(escape.len()).any(|part| part == escape) {
        return out.put_slice(bytes);
    }
    let text = String::from_utf8_lossy(bytes);
    for character in text.chars() {
        match character {
            '\0' => out.put_slice(format!("{ESCAPE}0").as_bytes()),
            ESCAPE => out.put_slice(format!("{ESCAPE}1").as_bytes()),
            other => out.put_slice(other.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
}

/// The value in a column of a row.
pub fn cell<'r>(row: &'r ServerRow, column: &str) -> Result<Cell<'r>, Fault> {
    let kinds = row.columns().iter();
    let mut places = kinds
        .enumerate()
        .filter(|(_, known)| known.name() == column);
    let Some((at, known)) = places.next() else {
        panic!("no column {column}");
    };
    let kind = known.type_().clone();
    let plain = |value: Option<ValueRef<'r>>| Cell::Borrowed(value.unwrap_or(ValueRef::Null));
    let integer = |value: Option<i64>| plain(value.map(ValueRef::Integer));
    Ok(match kind {
        Type::INT8 => integer(row.try_get(at)?),
        Type::INT4 => integer(row.try_get::<_, Option<i32>>(at)?.map(i64::from)),
        Type::BOOL => integer(row.try_get::<_, Option<bool>>(at)?.map(i64::from)),
        Type::FLOAT8 => plain(row.try_get::<_, Option<f64>>(at)?.map(ValueRef::Real)),
        Type::BYTEA => plain(row.try_get::<_, Option<&[u8]>>(at)?.map(ValueRef::Blob)),
        _ => match row.try_get::<_, Option<&str>>(at)? {
            Some(text) if text.contains(ESCAPE) => {
                let plain = text.replace(&format!("{ESCAPE}0"), "\0");
                let plain = plain.replace(&format!("{ESCAPE}1"), &ESCAPE.to_string());
                Cell::Owned(Value::Text(plain))
            }
            text => plain(text.map(|text| ValueRef::Text(text.as_bytes()))),
        },
    })
}

/// The names of a row's columns.
pub fn columns(row: &ServerRow) -> Vec<String> {
    let columns = row.columns().iter();
    columns.map(|column| column.name().to_owned()).collect()
}

/// Turns an error of a server, or of the connection to it, into one that names the store.
pub fn error(source: Error, place: &Place) -> StoreError {
    let place = place.clone();
    let Some(code) = source.code() else {
        // A password is asked for, and none is known.
        let has_none = source.to_string().starts_with("invalid configuration");
        return if has_none {
            StoreError::Login { place, source }
        } else {
            StoreError::Unreachable { place, source }
        };
    };
    let refused = [
        SqlState::INVALID_PASSWORD,
        SqlState::INVALID_AUTHORIZATION_SPECIFICATION,
    ];
    match code {
        code if refused.contains(code) => StoreError::Login { place, source },
        code if *code == SqlState::UNDEFINED_DATABASE => StoreError::NoDatabase { place },
        _ => StoreError::Server { place, source },
    }
}

impl Fault {
    fn code(&self) -> Option<&SqlState> {
        match self {
            Self::Server(error) => error.code(),
            _ => None,
        }
    }

    /// Returns true if two writers were in each other's way, and one of them may try again.
    fn is_conflict(&self) -> bool {
        let codes = [
            SqlState::T_R_SERIALIZATION_FAILURE,
            SqlState::T_R_DEADLOCK_DETECTED,
        ];
        self.code().is_some_and(|code| codes.contains(code))
    }

    /// Returns true if the connection is gone, so that the transaction can be tried with another.
    fn is_lost(&self) -> bool {
        let Self::Server(error) = self else {
            return false;
        };
        let codes = [
            SqlState::ADMIN_SHUTDOWN,
            SqlState::CRASH_SHUTDOWN,
            SqlState::IDLE_SESSION_TIMEOUT,
            SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
            SqlState::CONNECTION_FAILURE,
        ];
        error.is_closed() || self.io().is_some() || error.code().is_some_and(|c| codes.contains(c))
    }

    /// Returns true if the server will accept connections later.
    fn is_starting(&self) -> bool {
        let codes = [SqlState::CANNOT_CONNECT_NOW, SqlState::TOO_MANY_CONNECTIONS];
        self.code().is_some_and(|code| codes.contains(code))
    }

    /// Returns true if no server answers, or none that lets anybody in.
    fn is_unreachable(&self) -> bool {
        self.is_lost() || self.is_starting()
    }

    fn io(&self) -> Option<&io::Error> {
        let Self::Server(error) = self else {
            return None;
        };
        error.source()?.downcast_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_get_numbers_and_casts_stay() {
        let (text, names) = translated("SELECT a::text FROM t WHERE b = :b AND c = :c_2 OR b < :b");
        assert_eq!(
            text,
            "SELECT a::text FROM t WHERE b = $1 AND c = $2 OR b < $1"
        );
        assert_eq!(names, [":b", ":c_2"]);
        assert_eq!(translated("SELECT ':' LIMIT :n").0, "SELECT ':' LIMIT $1");
    }

    #[test]
    fn types_have_the_servers_names() {
        let text = definitions("CREATE TABLE t (number INTEGER PRIMARY KEY, b BLOB) STRICT;");
        let key = "number BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY";
        assert_eq!(text, format!("CREATE TABLE t ({key}, b BYTEA);"));
    }
}

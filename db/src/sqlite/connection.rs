//! One connection to a file.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{CachedStatement, Error, ErrorCode, OpenFlags};

use super::row::SqliteRow;
use crate::value::{Value, for_sqlite};

/// How long it waits for another process's lock.
pub(crate) const BUSY_TIMEOUT: Duration = Duration::from_secs(10);
/// Pages of 4 KiB that the log takes before they are copied into the file. In a storm few pages are written again and again, and
/// copied once each time.
pub(super) const CHECKPOINT_PAGES: u32 = 8192;
/// KiB of the file that each connection keeps in memory. The pages that gates and reports of 100,000 hosts read fit in; only what is read takes
/// memory.
const CACHE_KIB: i32 = 16_384;
/// Statements that it keeps prepared: those for many rows come in several lengths.
const PREPARED_STATEMENTS: usize = 400;

/// Steps of SQLite's machine between two looks at the time; a step takes some 20 ns.
const STEPS_PER_LOOK: i32 = 1000;

/// What a file is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keeps {
    /// A commit is on the disk before a caller is told of it.
    Lasting,
    /// The file is removed with the process that has made it, and nothing waits for the disk.
    Passing,
}

/// A connection. What it does, it does at once, on the thread that asks for it.
pub(crate) struct Connection(rusqlite::Connection);

impl Connection {
    /// Opens a file; one that is not there is made.
    pub fn open(path: &Path, keeps: Keeps) -> Result<Self, Error> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = rusqlite::Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        connection.set_prepared_statement_cache_capacity(PREPARED_STATEMENTS);
        connection.execute_batch("PRAGMA journal_mode = WAL; PRAGMA foreign_keys = ON")?;
        connection.execute_batch(match keeps {
            Keeps::Lasting => "PRAGMA synchronous = FULL",
            Keeps::Passing => "PRAGMA synchronous = OFF",
        })?;
        connection.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)?;
        // A number below zero counts in KiB.
        connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
        Ok(Self(connection))
    }

    /// All rows of a statement.
    pub fn rows(&mut self, sql: &str, values: Vec<Value>) -> Result<Vec<SqliteRow>, Error> {
        let found = read(&mut self.prepared(sql, values)?, || true)?;
        Ok(found.unwrap_or_default())
    }

    /// Reads rows if they are found within some time: no more than that is to be done on the thread that asks. `None` if not, and for a
    /// statement that changes something as well, which cannot be ended half-way; then nothing was done.
    pub fn rows_within(
        &self,
        time: Duration,
        sql: &str,
        values: Vec<Value>,
    ) -> Result<Option<Vec<SqliteRow>>, Error> {
        let end = Instant::now() + time;
        self.without_waiting(|| {
            let mut statement = self.prepared(sql, values)?;
            if !statement.readonly() {
                return Ok(None);
            }
            self.0
                .progress_handler(STEPS_PER_LOOK, Some(move || Instant::now() >= end))?;
            let found = read(&mut statement, || Instant::now() < end);
            drop(statement);
            self.0.progress_handler(0, None::<fn() -> bool>)?;
            found
        })
    }

    /// The number of rows that a statement changed.
    pub fn change(&self, sql: &str, values: Vec<Value>) -> Result<u64, Error> {
        run(&mut self.prepared(sql, values)?)?;
        Ok(self.0.changes())
    }

    /// Runs a statement for each of some rows; the number of rows that it changed.
    pub fn change_each(&self, sql: &str, rows: Vec<Vec<Value>>) -> Result<u64, Error> {
        let mut statement = self.0.prepare_cached(sql)?;
        let mut changed = 0;
        for values in rows {
            bind(&mut statement, values)?;
            run(&mut statement)?;
            changed += self.0.changes();
        }
        Ok(changed)
    }

    /// Runs statements outside of a transaction, all of them or none.
    pub fn change_all(&self, sql: &str, rows: Vec<Vec<Value>>) -> Result<u64, Error> {
        if rows.len() == 1 {
            return self.change_each(sql, rows);
        }
        self.begin()?;
        let changed = self.change_each(sql, rows)?;
        self.commit()?;
        Ok(changed)
    }

    /// Runs a text of several statements without values.
    pub fn script(&mut self, sql: &str) -> Result<(), Error> {
        self.0.execute_batch(sql)
    }

    /// Begins a transaction that may write. It waits for its turn here, and never fails half-way for want of it.
    pub fn begin(&self) -> Result<(), Error> {
        self.change("BEGIN IMMEDIATE", Vec::new()).map(|_| ())
    }

    /// Tries without waiting: whether the connection was free at once.
    pub fn begin_at_once(&self) -> Result<bool, Error> {
        let begun = self.without_waiting(|| self.begin().map(Some))?;
        Ok(begun.is_some())
    }

    /// Makes everything that was done in the transaction last.
    pub fn commit(&self) -> Result<(), Error> {
        self.change("COMMIT", Vec::new()).map(|_| ())
    }

    /// Undoes what was done in the transaction; without one, nothing.
    pub fn roll_back(&self) -> Result<(), Error> {
        if self.0.is_autocommit() {
            return Ok(());
        }
        self.change("ROLLBACK", Vec::new()).map(|_| ())
    }

    /// Does something as far as it need not wait for another process's lock; `None` if it would have to, or was interrupted.
    fn without_waiting<T>(
        &self,
        work: impl FnOnce() -> Result<Option<T>, Error>,
    ) -> Result<Option<T>, Error> {
        self.0.busy_timeout(Duration::ZERO)?;
        let done = work();
        self.0.busy_timeout(BUSY_TIMEOUT)?;
        match done {
            Err(error) if error.sqlite_error_code().is_some_and(ends_a_try) => Ok(None),
            done => done,
        }
    }

    fn prepared(&self, sql: &str, values: Vec<Value>) -> Result<CachedStatement<'_>, Error> {
        let mut statement = self.0.prepare_cached(sql)?;
        bind(&mut statement, values)?;
        Ok(statement)
    }
}

/// Gives a statement its values. To SQLite `$3` is a name: the value with that number belongs to it, whichever parameter it is.
fn bind(statement: &mut CachedStatement<'_>, mut values: Vec<Value>) -> Result<(), Error> {
    let given = values.len();
    for parameter in 1..=statement.parameter_count() {
        let number = statement.parameter_name(parameter).and_then(number_of);
        let value = number.and_then(|number| values.get_mut(number - 1));
        let value = value.ok_or(Error::InvalidParameterCount(given, number.unwrap_or(parameter)))?;
        let value = std::mem::replace(value, Value::Text(None));
        statement.raw_bind_parameter(parameter, for_sqlite(value))?;
    }
    Ok(())
}

fn number_of(name: &str) -> Option<usize> {
    let number = name.strip_prefix('$')?.parse().ok()?;
    (number > 0).then_some(number)
}

fn run(statement: &mut CachedStatement<'_>) -> Result<(), Error> {
    let mut rows = statement.raw_query();
    while rows.next()?.is_some() {}
    Ok(())
}

/// All rows of a statement; `None` if it may not go on so long.
fn read(
    statement: &mut CachedStatement<'_>,
    may_go_on: impl Fn() -> bool,
) -> Result<Option<Vec<SqliteRow>>, Error> {
    let columns = SqliteRow::columns(statement);
    let mut rows = statement.raw_query();
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        if !found.is_empty() && !may_go_on() {
            return Ok(None);
        }
        found.push(SqliteRow::read(&columns, row)?);
    }
    Ok(Some(found))
}

fn ends_a_try(code: ErrorCode) -> bool {
    matches!(code, ErrorCode::DatabaseBusy | ErrorCode::OperationInterrupted)
}

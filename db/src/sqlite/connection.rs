//! One connection to a file.

use std::cell::Cell;
use std::ffi::c_int;
use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::hooks::Wal;
use rusqlite::{CachedStatement, Error, ErrorCode, OpenFlags};

use super::row::SqliteRow;
use crate::value::{Value, for_sqlite};

/// How long it waits for another process's lock.
pub(crate) const BUSY_TIMEOUT: Duration = Duration::from_secs(10);
/// Pages of 4 KiB that the log takes before they are copied into the file. In a storm the same pages are written again and again, and
/// copied once each time.
pub(super) const CHECKPOINT_PAGES: u32 = 8192;
/// Statements that it keeps prepared: those for many rows come in several lengths.
const PREPARED_STATEMENTS: usize = 400;

/// Steps of SQLite's machine between two looks at the time; a step takes some 20 ns.
const STEPS_PER_LOOK: i32 = 1000;

thread_local! {
    /// How long the log was when a commit on this thread had ended, in pages.
    static LOG_PAGES: Cell<Option<u32>> = const { Cell::new(None) };
}

/// What is known of a commit.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Committed {
    /// How long the log is with it, in pages; `None` if it has written nothing.
    pub log_pages: Option<u32>,
}

impl Committed {
    /// Whether the log was long enough to be copied into the file as a part of the commit.
    pub fn has_copied_the_log(self) -> bool {
        self.log_pages.is_some_and(|pages| pages >= CHECKPOINT_PAGES)
    }
}

/// Whether a statement that is asked for its rows may change something as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MayChange {
    Yes,
    No,
}

/// Does something, and tells what is known of the last commit that it has made.
pub(super) fn noting_commits<T>(work: impl FnOnce() -> T) -> (T, Committed) {
    LOG_PAGES.set(None);
    let done = work();
    let log_pages = LOG_PAGES.get();
    (done, Committed { log_pages })
}

/// A connection. What it does, it does at once, on the thread that asks for it.
pub(crate) struct Connection(rusqlite::Connection);

impl Connection {
    /// Opens a file; one that is not there is made.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = rusqlite::Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        connection.set_prepared_statement_cache_capacity(PREPARED_STATEMENTS);
        // A commit is on the disk before anybody is told of it.
        connection.execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON",
        )?;
        connection.wal_hook(Some(after_commit));
        Ok(Self(connection))
    }

    /// All rows of a statement.
    pub fn rows(&mut self, sql: &str, values: Vec<Value>) -> Result<Vec<SqliteRow>, Error> {
        let found = read(&mut self.prepared(sql, values)?, || true)?;
        Ok(found.unwrap_or_default())
    }

    /// The same, if they are found within some time: no more than that is to be done on the thread that asks. A statement that changes
    /// something as well cannot be ended half-way, and is carried out only where it may take as long as it takes. `None` if not; then
    /// nothing was done.
    pub fn rows_within(
        &self,
        time: Duration,
        sql: &str,
        values: Vec<Value>,
        may_change: MayChange,
    ) -> Result<Option<Vec<SqliteRow>>, Error> {
        let end = Instant::now() + time;
        self.without_waiting(|| {
            let mut statement = self.prepared(sql, values)?;
            if !statement.readonly() {
                return match may_change {
                    MayChange::Yes => read(&mut statement, || true),
                    MayChange::No => Ok(None),
                };
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
        let mut statement = self.prepared(sql, values)?;
        let mut rows = statement.raw_query();
        while rows.next()?.is_some() {}
        drop(rows);
        drop(statement);
        Ok(self.0.changes())
    }

    /// Runs a text of several statements without values.
    pub fn script(&mut self, sql: &str) -> Result<(), Error> {
        self.0.execute_batch(sql)
    }

    /// Begins a transaction that may write. It waits for its turn here, and never fails half-way for want of it.
    pub fn begin(&self) -> Result<(), Error> {
        self.change("BEGIN IMMEDIATE", Vec::new()).map(|_| ())
    }

    /// The same without waiting: whether the turn was this one's at once.
    pub fn begin_at_once(&self) -> Result<bool, Error> {
        let begun = self.without_waiting(|| self.begin().map(Some))?;
        Ok(begun.is_some())
    }

    /// Makes everything that was done in the transaction last.
    pub fn commit(&mut self) -> Result<Committed, Error> {
        let (done, committed) = noting_commits(|| self.change("COMMIT", Vec::new()));
        done.map(|_| committed)
    }

    /// Undoes what was done in the transaction; without one, nothing.
    pub fn roll_back(&mut self) -> Result<(), Error> {
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
        let mut statement = self.0.prepare_cached(&with_numbers(sql))?;
        let needed = statement.parameter_count();
        if values.len() < needed {
            return Err(Error::InvalidParameterCount(values.len(), needed));
        }
        for (index, value) in (1..=needed).zip(for_sqlite(values)) {
            statement.raw_bind_parameter(index, value)?;
        }
        Ok(statement)
    }
}

/// What SQLite calls after each commit, on its thread. It would copy the log by itself, and tell nobody how long that is.
fn after_commit(log: &Wal, pages: c_int) -> Result<(), Error> {
    let pages = u32::try_from(pages).unwrap_or_default();
    LOG_PAGES.set(Some(pages));
    if pages >= CHECKPOINT_PAGES {
        // The commit holds all the same: if somebody else is at the file, a later one copies it.
        let _ = log.checkpoint();
    }
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

/// To SQLite `$3` is a name, which it looks up; `?3` is a number.
fn with_numbers(sql: &str) -> String {
    let mut numbered = sql.to_owned();
    let starts: Vec<_> = sql.match_indices('$').map(|(at, _)| at).collect();
    for at in starts {
        let is_number = sql.as_bytes().get(at + 1).is_some_and(u8::is_ascii_digit);
        if is_number {
            numbered.replace_range(at..=at, "?");
        }
    }
    numbered
}

#[cfg(test)]
mod tests {
    use super::with_numbers;

    #[test]
    fn what_is_no_number_stays() {
        assert_eq!(
            with_numbers("a = $12 OR b -> '$.c' OR d = $1"),
            "a = ?12 OR b -> '$.c' OR d = ?1"
        );
        assert_eq!(with_numbers("$"), "$");
    }
}

//! Opening a database, transactions, and reading outside of one.

use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

use chrono::{DateTime, Utc};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{Connection, PgConnection, PgPool, Postgres, SqlStr, Sqlite, SqlitePool, Transaction};

use crate::DbError;
use crate::dialect::Dialect;
use crate::row::Row;
use crate::run::{Run, Values, Write, sealed::Sealed};
use crate::value::{for_postgres, for_sqlite};

/// Connections that change things: their statements find their rows by their keys, whatever the values are and however few rows there
/// were when they were planned. A plan that is made anew for each set of values costs a quarter of the database's time in a storm; one
/// that reads the whole table, or all of an index over what is live, because there was little in it once, costs more with every row.
const BY_KEYS: &str = "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; SET enable_bitmapscan = off; \
    SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_material = off";
/// For statements over much of a table: the planner chooses freely, and they may take longer than those that somebody waits for.
const BEGIN_POSTGRES_PATIENT: &str =
    "BEGIN; SET LOCAL statement_timeout = '50s'; SET LOCAL lock_timeout = '50s'";
/// Statements that a connection keeps prepared: those for many rows come in several lengths.
const PREPARED_STATEMENTS: usize = 400;
/// Seconds to wait for a free connection before the database counts as unavailable.
const ACQUIRE_TIMEOUT_S: u64 = 5;
/// A connection to PostgreSQL that was idle for so long is tested before it is used.
const TESTED_AFTER_IDLE: Duration = Duration::from_secs(1);
/// Seconds that SQLite waits for another process's lock.
const SQLITE_BUSY_TIMEOUT_S: u64 = 10;
/// What one statement may take, unless somebody says otherwise. Locks and idle transactions are bounded by the same.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(30);
/// Connections of SQLite that read beside the one that writes.
const SQLITE_READERS: u32 = 4;

/// An open database.
#[derive(Clone, Debug)]
pub struct Database {
    pub(crate) pool: Pool,
    address: String,
}

#[derive(Clone, Debug)]
pub(crate) enum Pool {
    /// Transactions have connections of their own, with settings that suit them.
    Postgres { write: PgPool, read: PgPool },
    /// One connection writes; several read what is committed.
    Sqlite { write: SqlitePool, read: SqlitePool },
}

impl Database {
    /// Opens `postgres://user:password@host:port/name` or `sqlite:///path/to/file`. For PostgreSQL no connection is made yet;
    /// `connections` bounds them: half are for transactions and half for what is read outside of them, at least one each.
    ///
    /// A statement of PostgreSQL may take 30 s; see [`Database::open_within`].
    pub async fn open(url: &str, connections: u32) -> Result<Self, DbError> {
        Self::open_within(url, connections, STATEMENT_TIMEOUT).await
    }

    /// The same with another bound for statements, at least 1 ms. PostgreSQL ends a statement that runs longer or waits longer for a
    /// lock, and a transaction that does nothing for so long; the error is [`DbError::Unavailable`]. SQLite has bounds of its own.
    pub async fn open_within(url: &str, connections: u32, statement: Duration) -> Result<Self, DbError> {
        let address = without_credentials(url);
        let bad = |why: String| DbError::Address {
            address: address.clone(),
            why,
        };
        let pool = match url.split_once("://") {
            Some(("postgres" | "postgresql", _)) => {
                open_postgres(url, connections, statement).map_err(bad)?
            }
            Some(("sqlite", path)) => {
                open_sqlite(Path::new(path))
                    .await
                    .map_err(|e| match DbError::from_sqlx(&address, e) {
                        DbError::Statement(e) => bad(e.to_string()),
                        other => other,
                    })?
            }
            Some(_) | None => {
                return Err(bad(
                    "write postgres://user@host:port/name or sqlite:///absolute/path".to_owned(),
                ));
            }
        };
        Ok(Self { pool, address })
    }

    /// Its address, without credentials.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Whether it is SQLite.
    #[must_use]
    pub fn is_sqlite(&self) -> bool {
        matches!(self.pool, Pool::Sqlite { .. })
    }

    /// Begins a transaction that may write. SQLite's is immediate: it waits for its turn here and never fails half-way.
    pub async fn begin(&self) -> Result<Tx, DbError> {
        let inner = match &self.pool {
            Pool::Postgres { write, .. } => write.begin().await.map(TxInner::Postgres),
            Pool::Sqlite { write, .. } => write.begin_with("BEGIN IMMEDIATE").await.map(TxInner::Sqlite),
        };
        self.tx(inner)
    }

    /// The same for work in the background: whatever bound the database was opened with, a statement may take 50 s.
    pub(crate) async fn begin_patient(&self) -> Result<Tx, DbError> {
        match &self.pool {
            Pool::Postgres { read, .. } => {
                let inner = read.begin_with(BEGIN_POSTGRES_PATIENT).await;
                self.tx(inner.map(TxInner::Postgres))
            }
            Pool::Sqlite { .. } => self.begin().await,
        }
    }

    fn tx(&self, inner: Result<TxInner, sqlx::Error>) -> Result<Tx, DbError> {
        let inner = inner.map_err(|e| DbError::from_sqlx(&self.address, e))?;
        Ok(Tx {
            inner,
            address: self.address.clone(),
        })
    }

    /// Something to read with, outside a transaction.
    #[must_use]
    pub fn reader(&self) -> Reader<'_> {
        Reader {
            db: self,
            by_keys: false,
        }
    }

    /// The same for what a change is decided upon: by its keys, on a connection for transactions.
    #[must_use]
    pub fn reader_by_keys(&self) -> Reader<'_> {
        Reader {
            db: self,
            by_keys: true,
        }
    }

    /// The database's own time; for SQLite, that of this machine.
    pub async fn now(&self) -> Result<DateTime<Utc>, DbError> {
        match &self.pool {
            Pool::Postgres { read, .. } => {
                sqlx::query_scalar("SELECT clock_timestamp()")
                    .fetch_one(read)
                    .await
            }
            Pool::Sqlite { .. } => Ok(machine_time()),
        }
        .map_err(|e| DbError::from_sqlx(&self.address, e))
    }

    /// Whether it answers.
    pub async fn ping(&self) -> Result<(), DbError> {
        crate::run::fetch_all(&mut self.reader(), "SELECT 1", Vec::new())
            .await
            .map(|_| ())
    }

    /// Closes all connections.
    pub async fn close(&self) {
        match &self.pool {
            Pool::Postgres { write, read } => {
                read.close().await;
                write.close().await;
            }
            Pool::Sqlite { write, read } => {
                read.close().await;
                write.close().await;
            }
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "SQLite has no clock of its own; the engine's clock starts from this one"
)]
fn machine_time() -> DateTime<Utc> {
    Utc::now()
}

fn open_postgres(url: &str, connections: u32, statement: Duration) -> Result<Pool, String> {
    let options = PgConnectOptions::from_str(url)
        .map_err(|e| e.to_string())?
        .statement_cache_capacity(PREPARED_STATEMENTS)
        .application_name("ringfence");
    let bound = statement.as_millis().to_string();
    let for_writing = (connections / 2).max(1);
    let for_reading = connections.saturating_sub(for_writing).max(1);
    Ok(Pool::Postgres {
        write: postgres_pool(options.clone(), for_writing, bound.clone(), Some(BY_KEYS)),
        read: postgres_pool(options, for_reading, bound, None),
    })
}

fn postgres_pool(
    options: PgConnectOptions,
    connections: u32,
    bound: String,
    settings: Option<&'static str>,
) -> PgPool {
    PgPoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(Duration::from_secs(ACQUIRE_TIMEOUT_S))
        // A round trip before every statement is dear. One before a connection that was idle finds those that died in a restart of
        // the database; a busy connection that dies shows in its statement, which is tried again.
        .test_before_acquire(false)
        // As statements: poolers that stand between refuse such settings in the first packet of a connection.
        .after_connect(move |connection, _| {
            let bound = bound.clone();
            Box::pin(async move {
                if let Some(settings) = settings {
                    sqlx::raw_sql(settings).execute(&mut *connection).await?;
                }
                set_bounds(connection, &bound).await
            })
        })
        .before_acquire(|connection, meta| {
            Box::pin(async move {
                if meta.idle_for >= TESTED_AFTER_IDLE {
                    connection.ping().await?;
                }
                Ok(true)
            })
        })
        .connect_lazy_with(options)
}

/// What hangs in the database must not hold a connection, a lock and whoever waits for it for ever.
async fn set_bounds(connection: &mut PgConnection, milliseconds: &str) -> Result<(), sqlx::Error> {
    let sql = "SELECT set_config('statement_timeout', $1, false), set_config('lock_timeout', $1, false),
        set_config('idle_in_transaction_session_timeout', $1, false)";
    sqlx::query(sql).bind(milliseconds).execute(connection).await?;
    Ok(())
}

async fn open_sqlite(path: &Path) -> Result<Pool, sqlx::Error> {
    let options = SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .foreign_keys(true)
        .busy_timeout(Duration::from_secs(SQLITE_BUSY_TIMEOUT_S));
    let pool = |connections| {
        SqlitePoolOptions::new()
            .max_connections(connections)
            .acquire_timeout(Duration::from_secs(SQLITE_BUSY_TIMEOUT_S))
            .test_before_acquire(false)
            .idle_timeout(None)
            .max_lifetime(None)
    };
    let write = pool(1).connect_with(options.clone()).await?;
    let read = pool(SQLITE_READERS).connect_with(options).await?;
    Ok(Pool::Sqlite { write, read })
}

/// `scheme://user:password@rest` without what stands before the `@`, and without a query.
fn without_credentials(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        return "(no scheme)".to_owned();
    };
    match rest.split_once('?') {
        // The `?` may be a character of the password that should have been escaped: then all before it is secret.
        Some((_, query)) if query.contains('@') => format!("{scheme}://(not shown)"),
        Some((plain, _)) => format!("{scheme}://{}", after_credentials(plain)),
        None => format!("{scheme}://{}", after_credentials(rest)),
    }
}

fn after_credentials(rest: &str) -> &str {
    rest.rsplit_once('@').map_or(rest, |(_, tail)| tail)
}

/// A transaction. Dropped without [`Tx::commit`], it changes nothing.
pub struct Tx {
    inner: TxInner,
    address: String,
}

enum TxInner {
    Postgres(Transaction<'static, Postgres>),
    Sqlite(Transaction<'static, Sqlite>),
}

impl Tx {
    /// Makes everything that was done in it last.
    pub async fn commit(self) -> Result<(), DbError> {
        match self.inner {
            TxInner::Postgres(tx) => tx.commit().await,
            TxInner::Sqlite(tx) => tx.commit().await,
        }
        .map_err(|e| DbError::from_sqlx(&self.address, e))
    }
}

impl Sealed for Tx {}

impl Write for Tx {
    fn dialect(&self) -> Dialect {
        match self.inner {
            TxInner::Postgres(_) => Dialect::Postgres,
            TxInner::Sqlite(_) => Dialect::Sqlite,
        }
    }

    async fn write(&mut self, sql: SqlStr, values: Values) -> Result<(), DbError> {
        self.change(sql, values).await.map(|_| ())
    }
}

impl Run for Tx {
    async fn rows(&mut self, sql: SqlStr, values: Values) -> Result<Vec<Row>, DbError> {
        let rows = match &mut self.inner {
            TxInner::Postgres(tx) => match for_postgres(values.0) {
                Ok(arguments) => sqlx::query_with(sql, arguments)
                    .fetch_all(&mut **tx)
                    .await
                    .map(|rows| rows.into_iter().map(Row::Postgres).collect()),
                Err(e) => Err(e),
            },
            TxInner::Sqlite(tx) => match for_sqlite(values.0) {
                Ok(arguments) => sqlx::query_with(sql, arguments)
                    .fetch_all(&mut **tx)
                    .await
                    .map(|rows| rows.into_iter().map(Row::Sqlite).collect()),
                Err(e) => Err(e),
            },
        };
        rows.map_err(|e| DbError::from_sqlx(&self.address, e))
    }

    async fn change(&mut self, sql: SqlStr, values: Values) -> Result<u64, DbError> {
        let changed = match &mut self.inner {
            TxInner::Postgres(tx) => match for_postgres(values.0) {
                Ok(arguments) => sqlx::query_with(sql, arguments)
                    .execute(&mut **tx)
                    .await
                    .map(|r| r.rows_affected()),
                Err(e) => Err(e),
            },
            TxInner::Sqlite(tx) => match for_sqlite(values.0) {
                Ok(arguments) => sqlx::query_with(sql, arguments)
                    .execute(&mut **tx)
                    .await
                    .map(|r| r.rows_affected()),
                Err(e) => Err(e),
            },
        };
        changed.map_err(|e| DbError::from_sqlx(&self.address, e))
    }
}

/// Reads what is committed; changes single rows where no transaction is needed.
pub struct Reader<'a> {
    db: &'a Database,
    by_keys: bool,
}

impl Reader<'_> {
    fn postgres<'p>(&self, write: &'p PgPool, read: &'p PgPool) -> &'p PgPool {
        if self.by_keys { write } else { read }
    }
}

impl Sealed for Reader<'_> {}

impl Write for Reader<'_> {
    fn dialect(&self) -> Dialect {
        match self.db.pool {
            Pool::Postgres { .. } => Dialect::Postgres,
            Pool::Sqlite { .. } => Dialect::Sqlite,
        }
    }

    async fn write(&mut self, sql: SqlStr, values: Values) -> Result<(), DbError> {
        self.change(sql, values).await.map(|_| ())
    }
}

impl Run for Reader<'_> {
    async fn rows(&mut self, sql: SqlStr, values: Values) -> Result<Vec<Row>, DbError> {
        let rows = match &self.db.pool {
            Pool::Postgres { write, read } => match for_postgres(values.0) {
                Ok(arguments) => sqlx::query_with(sql, arguments)
                    .fetch_all(self.postgres(write, read))
                    .await
                    .map(|rows| rows.into_iter().map(Row::Postgres).collect()),
                Err(e) => Err(e),
            },
            Pool::Sqlite { read, .. } => match for_sqlite(values.0) {
                Ok(arguments) => sqlx::query_with(sql, arguments)
                    .fetch_all(read)
                    .await
                    .map(|rows| rows.into_iter().map(Row::Sqlite).collect()),
                Err(e) => Err(e),
            },
        };
        rows.map_err(|e| DbError::from_sqlx(&self.db.address, e))
    }

    async fn change(&mut self, sql: SqlStr, values: Values) -> Result<u64, DbError> {
        let changed = match &self.db.pool {
            Pool::Postgres { write, read } => match for_postgres(values.0) {
                Ok(arguments) => sqlx::query_with(sql, arguments)
                    .execute(self.postgres(write, read))
                    .await
                    .map(|r| r.rows_affected()),
                Err(e) => Err(e),
            },
            Pool::Sqlite { write, .. } => match for_sqlite(values.0) {
                Ok(arguments) => sqlx::query_with(sql, arguments)
                    .execute(write)
                    .await
                    .map(|r| r.rows_affected()),
                Err(e) => Err(e),
            },
        };
        changed.map_err(|e| DbError::from_sqlx(&self.db.address, e))
    }
}

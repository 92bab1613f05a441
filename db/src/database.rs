//! A database, transactions, and reading outside of one.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use sqlx::postgres::PgRow;
use sqlx::{Connection, PgConnection, SqlStr};
use tokio::time::timeout;

use crate::DbError;
use crate::changes::HostTransaction;
use crate::dialect::Dialect;
use crate::error::ClientError;
use crate::open::{open_postgres, open_sqlite, without_credentials};
use crate::postgres::{Connections, OpenTransaction, Pessimistic};
use crate::row::Row;
use crate::run::{Run, Values, sealed::Sealed};
use crate::sqlite::{self, Keeps, SqliteRow};
use crate::table_rows::TableRows;
use crate::value::{Value, for_postgres};

/// For statements over much of a table: the planner chooses freely, and they may take longer than those that a request waits for.
const BEGIN_POSTGRES_PATIENT: &str =
    "BEGIN; SET LOCAL statement_timeout = '50s'; SET LOCAL lock_timeout = '50s'";
/// What one statement may take, unless the caller says otherwise. It bounds locks and idle transactions too.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(30);

/// A server that does not answer for so long is not there.
const REACHED_WITHIN: Duration = Duration::from_secs(5);

/// An open database.
#[derive(Clone, Debug)]
pub struct Database {
    pub(crate) pool: Pool,
    pub(crate) address: Arc<str>,
}

#[derive(Clone, Debug)]
pub(crate) enum Pool {
    /// Transactions have connections of their own, with settings that suit them.
    Postgres { write: Connections, read: Connections },
    /// One connection writes; several read what is committed.
    Sqlite {
        write: sqlite::Connections,
        read: sqlite::Connections,
    },
}

impl Database {
    /// Opens `postgres://user:password@host:port/name` or `sqlite:///path/to/file`. For PostgreSQL no connection is made yet;
    /// `connections` bounds them: half are for transactions and half for what is read outside of them, at least one each.
    ///
    /// A statement of PostgreSQL may take 30 s; see [`Database::open_within`].
    pub async fn open(url: &str, connections: u32) -> Result<Self, DbError> {
        Self::open_within(url, connections, STATEMENT_TIMEOUT).await
    }

    /// Opens it with another bound for statements, at least 1 ms. PostgreSQL ends a statement that runs longer or waits longer for a
    /// lock, and a transaction that does nothing for so long; the error is [`DbError::Unavailable`]. SQLite has bounds of its own.
    pub async fn open_within(url: &str, connections: u32, statement: Duration) -> Result<Self, DbError> {
        let address: Arc<str> = without_credentials(url).into();
        let bad = |why: String| DbError::Address {
            address: address.to_string(),
            why,
        };
        let pool =
            match url.split_once("://") {
                Some(("postgres" | "postgresql", _)) => {
                    open_postgres(url, connections, statement).map_err(bad)?
                }
                Some(("sqlite", path)) => open_sqlite(Path::new(path), Keeps::Lasting).await.map_err(
                    |e| match DbError::from_client(&address, e) {
                        DbError::Statement(e) => bad(e.to_string()),
                        other => other,
                    },
                )?,
                Some(_) | None => {
                    return Err(bad(
                        "write postgres://user@host:port/name or sqlite:///absolute/path".to_owned(),
                    ));
                }
            };
        Ok(Self { pool, address })
    }

    /// Opens a file of SQLite that the caller removes when it is closed: nothing waits for the disk, and a crash of the machine leaves nothing
    /// that can be used.
    pub async fn open_passing(path: &Path) -> Result<Self, DbError> {
        let address: Arc<str> = path.display().to_string().into();
        let pool = open_sqlite(path, Keeps::Passing).await;
        let pool = pool.map_err(|error| DbError::from_client(&address, error))?;
        Ok(Self { pool, address })
    }

    /// Connects once, beside the connections that are kept: what keeps them from being made is told as it is.
    pub(crate) async fn reach(&self) -> Result<(), DbError> {
        let Pool::Postgres { read, .. } = &self.pool else {
            return Ok(());
        };
        let connecting = async { PgConnection::connect_with(&read.options()).await };
        let late = |_| sqlx::Error::Io(std::io::ErrorKind::TimedOut.into());
        let connected = timeout(REACHED_WITHIN, connecting).await.map_err(late);
        match connected.and_then(|connected| connected) {
            // Whether it was told goodbye makes no difference to the server.
            Ok(connection) => drop(connection.close().await),
            Err(error) => return Err(DbError::from_client(&self.address, error)),
        }
        Ok(())
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
        match &self.pool {
            Pool::Postgres { write, .. } => self.tx(write.begin("BEGIN").await.map(TxInner::Postgres)),
            Pool::Sqlite { write, .. } => self.tx(write.begin().await.map(TxInner::Sqlite)),
        }
    }

    /// A reader for work in the background: whatever bound the database was opened with, a statement may take 50 s.
    pub(crate) async fn begin_patient(&self) -> Result<Tx, DbError> {
        match &self.pool {
            Pool::Postgres { read, .. } => {
                let inner = read.begin(BEGIN_POSTGRES_PATIENT).await;
                self.tx(inner.map(TxInner::Postgres))
            }
            Pool::Sqlite { .. } => self.begin().await,
        }
    }

    fn tx(&self, inner: Result<TxInner, impl Into<ClientError>>) -> Result<Tx, DbError> {
        let inner = inner.map_err(|e| DbError::from_client(&self.address, e))?;
        Ok(Tx {
            inner,
            address: Arc::clone(&self.address),
        })
    }

    /// Something to read with, outside a transaction.
    #[must_use]
    pub fn reader(&self) -> Reader<'_> {
        Reader {
            db: self,
            plans: Plans::Kept,
        }
    }

    /// A reader for what a change is decided upon, and what else is found by its keys and has to be found quickly, on a connection for
    /// transactions.
    #[must_use]
    pub fn reader_by_keys(&self) -> Reader<'_> {
        Reader {
            db: self,
            plans: Plans::ByKeys,
        }
    }

    /// A reader with a plan for each statement: for what grows while it is read, and for filters. A plan that was made, and kept, while there
    /// was little, or for other values, could read all of a table for ever.
    #[must_use]
    pub fn reader_of_what_grows(&self) -> Reader<'_> {
        Reader {
            db: self,
            plans: Plans::Anew,
        }
    }

    /// The database's own time; for SQLite, that of this machine.
    pub async fn now(&self) -> Result<DateTime<Utc>, DbError> {
        if self.is_sqlite() {
            return Ok(machine_time());
        }
        let sql = "SELECT clock_timestamp() AS now";
        let row = crate::run::fetch_optional(&mut self.reader(), sql, Vec::new()).await?;
        let missing = || DbError::Unreadable {
            column: "now",
            why: "there is no row".to_owned(),
        };
        row.ok_or_else(missing)?.time("now")
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

/// A transaction. Dropped without [`Tx::commit`], it changes nothing.
pub struct Tx {
    inner: TxInner,
    address: Arc<str>,
}

enum TxInner {
    Postgres(OpenTransaction),
    Sqlite(sqlite::OpenTransaction),
}

/// Runs a statement on a connection.
macro_rules! run {
    ($connection:expr, $method:ident, $sql:expr, $arguments:expr) => {
        sqlx::query_with($sql, $arguments?).$method($connection).await?
    };
}

/// Runs on a connection that is lent for it.
macro_rules! run_on_lent {
    ($kept:expr, $method:ident, $sql:expr, $arguments:expr) => {{
        let mut lent = $kept.take().await?;
        let done = run!(lent.connection()?, $method, $sql, $arguments);
        lent.release();
        done
    }};
}

impl Tx {
    /// It ends by what is written of hosts.
    pub(crate) fn for_hosts(self) -> Box<dyn HostTransaction> {
        let address = self.address;
        match self.inner {
            TxInner::Postgres(open) => Box::new(Pessimistic { open, address }),
            TxInner::Sqlite(open) => Box::new(sqlite::Transaction { open, address }),
        }
    }

    /// Makes everything that was done in it last.
    pub async fn commit(self) -> Result<(), DbError> {
        match self.inner {
            TxInner::Postgres(tx) => tx.commit().await.map_err(ClientError::from),
            TxInner::Sqlite(tx) => tx.commit().await,
        }
        .map_err(|e| DbError::from_client(&self.address, e))
    }
}

impl Sealed for Tx {}

impl TxInner {
    async fn rows(&mut self, sql: SqlStr, values: Vec<Value>) -> Result<Vec<Row>, ClientError> {
        Ok(match self {
            Self::Postgres(open) => {
                of_postgres(run!(open.connection()?, fetch_all, sql, for_postgres(values)))
            }
            Self::Sqlite(open) => of_sqlite(open.rows(sql, values).await?),
        })
    }

    async fn change(&mut self, sql: SqlStr, values: Vec<Value>) -> Result<u64, ClientError> {
        Ok(match self {
            Self::Postgres(open) => {
                run!(open.connection()?, execute, sql, for_postgres(values)).rows_affected()
            }
            Self::Sqlite(open) => {
                open.work(move |connection| connection.change(sql.as_str(), values))
                    .await?
            }
        })
    }

    async fn write(&mut self, rows: TableRows) -> Result<(), ClientError> {
        match self {
            Self::Postgres(_) => {
                let (sql, values) = rows.for_all();
                self.change(sql, values).await?;
            }
            Self::Sqlite(open) => {
                let (sql, rows) = rows.for_each();
                open.work(move |connection| connection.change_each(&sql, rows))
                    .await?;
            }
        }
        Ok(())
    }
}

fn of_postgres(rows: Vec<PgRow>) -> Vec<Row> {
    rows.into_iter().map(Row::Postgres).collect()
}

fn of_sqlite(rows: Vec<SqliteRow>) -> Vec<Row> {
    rows.into_iter().map(Row::Sqlite).collect()
}

impl Run for Tx {
    fn dialect(&self) -> Dialect {
        match self.inner {
            TxInner::Postgres(_) => Dialect::Postgres,
            TxInner::Sqlite(_) => Dialect::Sqlite,
        }
    }

    async fn rows(&mut self, sql: SqlStr, values: Values) -> Result<Vec<Row>, DbError> {
        let rows = self.inner.rows(sql, values.0).await;
        rows.map_err(|e| DbError::from_client(&self.address, e))
    }

    async fn change(&mut self, sql: SqlStr, values: Values) -> Result<u64, DbError> {
        let changed = self.inner.change(sql, values.0).await;
        changed.map_err(|e| DbError::from_client(&self.address, e))
    }

    async fn write(&mut self, rows: TableRows) -> Result<(), DbError> {
        let written = self.inner.write(rows).await;
        written.map_err(|e| DbError::from_client(&self.address, e))
    }
}

/// Reads what is committed; changes single rows where no transaction is needed.
pub struct Reader<'a> {
    db: &'a Database,
    plans: Plans,
}

/// How PostgreSQL plans what is read. SQLite's plans do not depend on how much there is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Plans {
    /// As it chooses; after a few times the plan is kept.
    Kept,
    /// By the keys, and the plan is kept.
    ByKeys,
    /// As it chooses, for each statement anew.
    Anew,
}

impl Reader<'_> {
    fn postgres<'p>(&self, write: &'p Connections, read: &'p Connections) -> &'p Connections {
        match self.plans {
            Plans::ByKeys => write,
            Plans::Kept | Plans::Anew => read,
        }
    }

    async fn read(&self, sql: SqlStr, values: Vec<Value>) -> Result<Vec<Row>, ClientError> {
        Ok(match &self.db.pool {
            Pool::Postgres { write, read } => {
                let mut lent = self.postgres(write, read).take().await?;
                let statement = sqlx::query_with(sql, for_postgres(values)?);
                let statement = statement.persistent(self.plans != Plans::Anew);
                let rows = statement.fetch_all(lent.connection()?).await?;
                lent.release();
                of_postgres(rows)
            }
            Pool::Sqlite { read, .. } => of_sqlite(read.rows(sql, values).await?),
        })
    }

    async fn run(&self, sql: SqlStr, values: Vec<Value>) -> Result<u64, ClientError> {
        Ok(match &self.db.pool {
            Pool::Postgres { write, read } => {
                let kept = self.postgres(write, read);
                run_on_lent!(kept, execute, sql, for_postgres(values)).rows_affected()
            }
            Pool::Sqlite { write, .. } => {
                write
                    .work(move |connection| connection.change(sql.as_str(), values))
                    .await?
            }
        })
    }

    async fn write_rows(&self, rows: TableRows) -> Result<(), ClientError> {
        match &self.db.pool {
            Pool::Postgres { .. } => {
                let (sql, values) = rows.for_all();
                self.run(sql, values).await?;
            }
            Pool::Sqlite { write, .. } => {
                let (sql, rows) = rows.for_each();
                write
                    .work(move |connection| connection.change_all(&sql, rows))
                    .await?;
            }
        }
        Ok(())
    }
}

impl Sealed for Reader<'_> {}

impl Run for Reader<'_> {
    fn dialect(&self) -> Dialect {
        match self.db.pool {
            Pool::Postgres { .. } => Dialect::Postgres,
            Pool::Sqlite { .. } => Dialect::Sqlite,
        }
    }

    async fn rows(&mut self, sql: SqlStr, values: Values) -> Result<Vec<Row>, DbError> {
        let rows = self.read(sql, values.0).await;
        rows.map_err(|e| DbError::from_client(&self.db.address, e))
    }

    async fn change(&mut self, sql: SqlStr, values: Values) -> Result<u64, DbError> {
        let changed = self.run(sql, values.0).await;
        changed.map_err(|e| DbError::from_client(&self.db.address, e))
    }

    async fn write(&mut self, rows: TableRows) -> Result<(), DbError> {
        let written = self.write_rows(rows).await;
        written.map_err(|e| DbError::from_client(&self.db.address, e))
    }
}

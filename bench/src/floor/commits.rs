//! A small transaction like that of a decision: one row changed, one row added, durable.

use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ringfence_tests::{Ground, Site};
use sqlx::postgres::PgPoolOptions;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{PgPool, SqlitePool};

use crate::error::BenchError;

const UPDATE: &str = "UPDATE floor_hosts SET revision = revision + 1, body = $2 WHERE id = $1";
const INSERT: &str = "INSERT INTO floor_log (host, body) VALUES ($1, $2)";
/// The rows that are changed; each client has its own, so that none waits for another's lock.
const ROWS: i64 = 1000;
/// About the size of an operation with three tasks, in bytes.
const BODY_BYTES: usize = 2000;

/// Measures commits in a database of its own, with the durability of the product.
#[derive(Clone)]
pub struct Commits {
    pool: Pool,
    body: Arc<str>,
    _site: Arc<Site>,
}

#[derive(Clone)]
enum Pool {
    Postgres(PgPool),
    Sqlite(SqlitePool),
}

impl Commits {
    /// Opens so many connections; SQLite has one that writes.
    pub async fn prepare(ground: Ground, connections: u32) -> Result<Self, BenchError> {
        let site = Site::new(ground).await;
        let pool = match ground {
            Ground::Distributed => Pool::Postgres(
                PgPoolOptions::new()
                    .max_connections(connections)
                    .test_before_acquire(false)
                    .connect(&site.database_url)
                    .await?,
            ),
            Ground::Standalone => Pool::Sqlite(open_sqlite(&site.database_url).await?),
        };
        let commits = Self {
            pool,
            body: "x".repeat(BODY_BYTES).into(),
            _site: Arc::new(site),
        };
        commits.make_tables().await?;
        Ok(commits)
    }

    async fn make_tables(&self) -> Result<(), BenchError> {
        let identity = match self.pool {
            Pool::Postgres(_) => "bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
            Pool::Sqlite(_) => "integer PRIMARY KEY",
        };
        let tables = [
            "CREATE TABLE floor_hosts (id bigint PRIMARY KEY, revision bigint NOT NULL, body text NOT NULL)"
                .to_owned(),
            format!("CREATE TABLE floor_log (position {identity}, host bigint NOT NULL, body text NOT NULL)"),
        ];
        for sql in tables {
            let sql = sqlx::AssertSqlSafe(sql);
            match &self.pool {
                Pool::Postgres(pool) => sqlx::query(sql).execute(pool).await.map(|_| ())?,
                Pool::Sqlite(pool) => sqlx::query(sql).execute(pool).await.map(|_| ())?,
            }
        }
        let fill = "INSERT INTO floor_hosts (id, revision, body) VALUES ($1, 0, $2)";
        for id in 0..ROWS {
            match &self.pool {
                Pool::Postgres(pool) => sqlx::query(fill)
                    .bind(id)
                    .bind("")
                    .execute(pool)
                    .await
                    .map(|_| ())?,
                Pool::Sqlite(pool) => sqlx::query(fill)
                    .bind(id)
                    .bind("")
                    .execute(pool)
                    .await
                    .map(|_| ())?,
            }
        }
        Ok(())
    }

    /// Commits once; returns the milliseconds.
    pub async fn once(&self, row: u64) -> Result<f64, BenchError> {
        let id = i64::try_from(row).unwrap_or_default() % ROWS;
        let begun = Instant::now();
        match &self.pool {
            Pool::Postgres(pool) => {
                let mut tx = pool.begin().await?;
                sqlx::query(UPDATE)
                    .bind(id)
                    .bind(&*self.body)
                    .execute(&mut *tx)
                    .await?;
                sqlx::query(INSERT)
                    .bind(id)
                    .bind(&*self.body)
                    .execute(&mut *tx)
                    .await?;
                tx.commit().await?;
            }
            Pool::Sqlite(pool) => {
                let mut tx = pool.begin_with("BEGIN IMMEDIATE").await?;
                sqlx::query(UPDATE)
                    .bind(id)
                    .bind(&*self.body)
                    .execute(&mut *tx)
                    .await?;
                sqlx::query(INSERT)
                    .bind(id)
                    .bind(&*self.body)
                    .execute(&mut *tx)
                    .await?;
                tx.commit().await?;
            }
        }
        Ok(begun.elapsed().as_secs_f64() * 1000.0)
    }

    /// Commits per second with so many concurrent clients, over `time`.
    pub async fn rate(&self, clients: u32, time: Duration) -> Result<f64, BenchError> {
        let (begun, count) = (Instant::now(), Arc::new(AtomicU64::new(0)));
        let work = (0..clients).map(|client| {
            let (commits, count) = (self.clone(), Arc::clone(&count));
            tokio::spawn(async move {
                while begun.elapsed() < time {
                    commits.once(u64::from(client)).await?;
                    count.fetch_add(1, Ordering::Relaxed);
                }
                Ok::<_, BenchError>(())
            })
        });
        for client in work.collect::<Vec<_>>() {
            client.await.map_err(|error| BenchError::Unexpected {
                what: "a client of commits".to_owned(),
                found: error.to_string(),
            })??;
        }
        #[expect(clippy::cast_precision_loss, reason = "a count of some thousands")]
        let count = count.load(Ordering::Relaxed) as f64;
        Ok(count / begun.elapsed().as_secs_f64())
    }
}

async fn open_sqlite(url: &str) -> Result<SqlitePool, BenchError> {
    let options = SqliteConnectOptions::from_str(url)?
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .foreign_keys(true);
    let pool = SqlitePoolOptions::new()
        .max_connections(1)
        .test_before_acquire(false);
    Ok(pool.connect_with(options).await?)
}

//! The product's database, read without the product.

use sqlx::postgres::PgPoolOptions;
use sqlx::sqlite::SqlitePoolOptions;
use sqlx::{PgPool, SqlitePool};

use super::CLIENTS;
use crate::error::BenchError;
use crate::plant::Plant;

/// The readers of SQLite, as many as the product has.
const SQLITE_READERS: u32 = 4;
/// The host that is copied.
pub const TEMPLATE: &str = "g1";

/// The columns that the gates are decided from.
macro_rules! select {
    () => {
        "SELECT hosts.id, hosts.name, hosts.segment_id, hosts.backend, hosts.host_type, hosts.zone, hosts.parameters,
             hosts.sources, hosts.failure_state, hosts.failure_source, hosts.failure_observed_at, hosts.failure_since,
             hosts.generation, hosts.fence, hosts.is_silence_answered, hosts.released_at, hosts.last_off_at, hosts.applied_fencing,
             hosts.in_flight, hosts.event_sequence, hosts.revision, hosts.created_at, hosts.updated_at,
             segments.policy AS policy, operations.body AS body, operations.methods AS methods
         FROM hosts
         JOIN segments ON segments.id = hosts.segment_id"
    };
}
/// In this form PostgreSQL uses the index whatever its statistics say.
macro_rules! live_of_postgres {
    () => {
        " LEFT JOIN LATERAL (SELECT body, methods FROM operations
                 WHERE operations.host_id = hosts.id AND operations.finished_at IS NULL LIMIT 1) AS operations ON TRUE"
    };
}
macro_rules! live_of_sqlite {
    () => {
        " LEFT JOIN operations ON operations.host_id = hosts.id AND operations.finished_at IS NULL"
    };
}

/// The database.
#[derive(Clone)]
pub enum Bare {
    Postgres(PgPool),
    Sqlite(SqlitePool),
}

impl Bare {
    pub async fn open(plant: &Plant) -> Result<Self, BenchError> {
        match &plant.site {
            Some(site) => {
                let pool = PgPoolOptions::new()
                    .max_connections(CLIENTS)
                    .test_before_acquire(false);
                Ok(Self::Postgres(pool.connect(&site.database_url).await?))
            }
            None => {
                let pool = SqlitePoolOptions::new()
                    .max_connections(SQLITE_READERS)
                    .test_before_acquire(false);
                let url = format!("sqlite://{}", plant.machine.file("data/ringfence.db").display());
                Ok(Self::Sqlite(pool.connect(&url).await?))
            }
        }
    }

    /// Reads all columns that the gates of a host are decided from.
    pub async fn read(&self, host: &str) -> Result<(), BenchError> {
        match self {
            Self::Postgres(pool) => {
                let sql = sqlx::query(concat!(select!(), live_of_postgres!(), " WHERE hosts.name = $1"));
                sql.bind(host).fetch_all(pool).await.map(|_| ())?;
            }
            Self::Sqlite(pool) => {
                let sql = sqlx::query(concat!(select!(), live_of_sqlite!(), " WHERE hosts.name = $1"));
                sql.bind(host).fetch_all(pool).await.map(|_| ())?;
            }
        }
        Ok(())
    }

    /// Adds hosts as copies of the one that is there; adding them one by one would take minutes.
    pub async fn fill(&self, hosts: u32) -> Result<(), BenchError> {
        let columns = self.columns().await?;
        let (numbers, id, name) = match self {
            Self::Postgres(_) => (
                format!("SELECT n FROM generate_series(0, {hosts} - 1) AS n"),
                "gen_random_uuid()",
                "'p' || lpad(n::text, 6, '0')",
            ),
            Self::Sqlite(_) => (
                format!(
                    "WITH RECURSIVE count(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM count WHERE n + 1 < {hosts}) SELECT n FROM count"
                ),
                // The product's form of an id.
                "lower(hex(randomblob(4))) || '-' || lower(hex(randomblob(2))) || '-4' || substr(lower(hex(randomblob(2))), 2) \
                 || '-a' || substr(lower(hex(randomblob(2))), 2) || '-' || lower(hex(randomblob(6)))",
                "printf('p%06d', n)",
            ),
        };
        let fill = format!(
            "INSERT INTO hosts (id, name, {columns}) SELECT {id}, {name}, {columns} FROM ({numbers}) AS numbers, \
             (SELECT {columns} FROM hosts WHERE name = '{TEMPLATE}') AS one"
        );
        for sql in [fill, "ANALYZE".to_owned()] {
            self.run(sql).await?;
        }
        Ok(())
    }

    /// Gives so many of those hosts a live operation: copies of this host's operation. Statistics were taken before, as in most databases.
    pub async fn go_live(&self, host: &str, operations: u32) -> Result<(), BenchError> {
        // In the copies, the operation's id equals the host's. The document holds both.
        let go_live = format!(
            "INSERT INTO operations (id, host_id, kind, status, generation, body, methods, created_at, updated_at)
             SELECT those.id, those.id, one.kind, one.status, one.generation,
                 replace(replace(one.body, CAST(one.id AS text), CAST(those.id AS text)),
                     CAST(one.host_id AS text), CAST(those.id AS text)),
                 one.methods, one.created_at, one.updated_at
             FROM (SELECT id FROM hosts WHERE name LIKE 'p%' ORDER BY random() LIMIT {operations}) AS those,
                 (SELECT * FROM operations WHERE finished_at IS NULL
                     AND host_id = (SELECT id FROM hosts WHERE name = '{host}')) AS one"
        );
        let generation = "UPDATE hosts SET generation = 1 WHERE id IN (SELECT host_id FROM operations WHERE finished_at IS NULL)";
        self.run(go_live).await?;
        self.run(generation.to_owned()).await
    }

    async fn run(&self, sql: String) -> Result<(), BenchError> {
        let sql = sqlx::AssertSqlSafe(sql);
        match self {
            Self::Postgres(pool) => sqlx::query(sql).execute(pool).await.map(|_| ())?,
            Self::Sqlite(pool) => sqlx::query(sql).execute(pool).await.map(|_| ())?,
        }
        Ok(())
    }

    /// All columns of a host but its id and name.
    async fn columns(&self) -> Result<String, BenchError> {
        let names: Vec<String> = match self {
            Self::Postgres(pool) => {
                let sql =
                    "SELECT column_name::text FROM information_schema.columns WHERE table_name = 'hosts'";
                sqlx::query_scalar(sql).fetch_all(pool).await?
            }
            Self::Sqlite(pool) => {
                let sql = "SELECT name FROM pragma_table_info('hosts')";
                sqlx::query_scalar(sql).fetch_all(pool).await?
            }
        };
        let others = names.into_iter().filter(|name| name != "id" && name != "name");
        Ok(others.collect::<Vec<_>>().join(", "))
    }
}

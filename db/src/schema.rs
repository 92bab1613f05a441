//! The schema and its migrations.

use sqlx::SqlSafeStr;
use sqlx::migrate::{MigrateError, Migration, MigrationType, Migrator};

use crate::database::{Database, Pool};
use crate::postgres::Connections;
use crate::run::{Run, fetch_all};
use crate::sqlite::carry_out;
use crate::value::args;
use crate::{DbError, dialect::Dialect};

/// A migration: its number, its name, its text for PostgreSQL and for SQLite.
struct Script {
    version: i64,
    name: &'static str,
    postgres: &'static str,
    sqlite: &'static str,
}

const SCRIPTS: &[Script] = &[Script {
    version: 1,
    name: "foundation",
    postgres: include_str!("../migrations/postgres/0001_foundation.sql"),
    sqlite: include_str!("../migrations/sqlite/0001_foundation.sql"),
}];

/// How the schema of a database stands to this build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchemaState {
    /// It is this build's own.
    Current,
    /// There is none yet.
    Missing,
    /// It is older: `ringfence db migrate` brings it up to date.
    Older {
        /// What it is.
        found: i64,
        /// What this build needs.
        needed: i64,
    },
    /// It is newer: this build must not touch it.
    Newer {
        /// What it is.
        found: i64,
        /// What this build needs.
        needed: i64,
    },
}

impl SchemaState {
    /// `Ok` if a service may start on it; else what to do.
    pub fn require_current(self, address: &str) -> Result<(), DbError> {
        let text = match self {
            Self::Current => return Ok(()),
            Self::Missing => {
                format!("the database at {address} has no schema yet; run `ringfence db migrate`")
            }
            Self::Older { found, needed } => format!(
                "the database at {address} has schema {found}, and this build needs {needed}; run `ringfence db migrate`"
            ),
            Self::Newer { found, needed } => format!(
                "the database at {address} has schema {found}, which is newer than this build's {needed}; start the newer build"
            ),
        };
        Err(DbError::Schema(text))
    }
}

/// How the schema stands.
pub async fn schema_state(db: &Database) -> Result<SchemaState, DbError> {
    let needed = newest_schema();
    let found = match version(db).await {
        // Who waits for a free connection in vain is not told why there is none.
        Err(error) if error.is_passing() => return Err(db.reach().await.err().unwrap_or(error)),
        found => found?,
    };
    Ok(match found {
        None => SchemaState::Missing,
        Some(found) if found < needed => SchemaState::Older { found, needed },
        Some(found) if found > needed => SchemaState::Newer { found, needed },
        Some(_) => SchemaState::Current,
    })
}

/// The number of this build's schema.
#[must_use]
pub fn newest_schema() -> i64 {
    SCRIPTS.last().map_or(0, |script| script.version)
}

/// The number of the schema that is there.
pub(crate) async fn version(db: &Database) -> Result<Option<i64>, DbError> {
    let mut reader = db.reader();
    let known = match reader.dialect() {
        Dialect::Postgres => "SELECT 1 AS found WHERE to_regclass('_sqlx_migrations') IS NOT NULL",
        Dialect::Sqlite => "SELECT 1 AS found FROM sqlite_master WHERE name = '_sqlx_migrations'",
    };
    if fetch_all(&mut reader, known, args![]).await?.is_empty() {
        return Ok(None);
    }
    let newest = "SELECT max(version) AS version FROM _sqlx_migrations WHERE success";
    let rows = fetch_all(&mut reader, newest, args![]).await?;
    Ok(rows
        .first()
        .map(|row| row.opt_int("version"))
        .transpose()?
        .flatten())
}

/// Brings the schema up to date, also while services use it. Safe to run twice and from several machines at once. One that is newer is
/// left alone.
pub async fn migrate(db: &Database) -> Result<(), DbError> {
    if let state @ SchemaState::Newer { .. } = schema_state(db).await? {
        return state.require_current(db.address());
    }
    let done = match &db.pool {
        Pool::Postgres { read, .. } => migrate_postgres(read).await,
        Pool::Sqlite { write, .. } => {
            let done = write.work(|connection| Ok(carry_out(connection, &migrator(Dialect::Sqlite))));
            done.await.map_err(|e| DbError::from_client(db.address(), e))?
        }
    };
    done.map_err(|why| not_migrated(why, db.address()))
}

/// A build from between two releases has migrations that no release has.
fn not_migrated(why: MigrateError, address: &str) -> DbError {
    match why {
        MigrateError::VersionMismatch(version) => DbError::Schema(format!(
            "the database at {address} was made by another build, whose schema {version} is not this build's; start that build, or give this one another database (ringfence standalone: another --data-dir)"
        )),
        other => DbError::Migrate(other),
    }
}

/// Migrates on a connection that is closed afterwards: the migrator does not release its lock when a migration fails, and a connection that
/// went back to the pool would keep every other process from migrating.
async fn migrate_postgres(connections: &Connections) -> Result<(), MigrateError> {
    let mut connection = connections.take().await?.detach()?.detach();
    // A migration takes as long as it takes, and waits for the one that another machine has begun.
    sqlx::query("SELECT set_config('statement_timeout', '0', false), set_config('lock_timeout', '0', false)")
        .execute(&mut connection)
        .await?;
    let done = migrator(Dialect::Postgres)
        .run_direct(None, &mut connection, false)
        .await;
    // The server frees the lock when the socket is gone. Closing it in order would wait over TLS for an answer that never comes.
    drop(connection);
    done
}

fn migrator(dialect: Dialect) -> Migrator {
    let scripts = SCRIPTS.iter().map(|script| {
        let text = match dialect {
            Dialect::Postgres => script.postgres,
            Dialect::Sqlite => script.sqlite,
        };
        Migration::new(
            script.version,
            script.name.into(),
            MigrationType::Simple,
            text.into_sql_str(),
            false,
        )
    });
    Migrator::with_migrations(scripts.collect())
}

#[cfg(test)]
mod tests {
    use sqlx::{Connection, Executor, SqliteConnection};

    use super::*;

    async fn past(url: &str) -> SqliteConnection {
        SqliteConnection::connect(&format!("{url}?mode=rwc"))
            .await
            .unwrap()
    }

    #[tokio::test]
    async fn the_library_finds_on_record_what_was_carried_out_here() {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite://{}", folder.path().join("t.db").display());
        let db = Database::open(&url, 1).await.unwrap();
        migrate(&db).await.unwrap();
        db.close().await;
        let library = migrator(Dialect::Sqlite);
        let mut connection = past(&url).await;
        library.run_direct(None, &mut connection, false).await.unwrap();
    }

    #[tokio::test]
    async fn a_migration_that_was_another_one_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite://{}", folder.path().join("t.db").display());
        let db = Database::open(&url, 1).await.unwrap();
        migrate(&db).await.unwrap();
        let other = "UPDATE _sqlx_migrations SET checksum = x'00' WHERE version = 1";
        past(&url).await.execute(other).await.unwrap();
        let error = migrate(&db).await.unwrap_err();
        let told = error.to_string();
        assert!(
            told.contains("t.db") && told.contains("another --data-dir"),
            "{told}"
        );
    }
}

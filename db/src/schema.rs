//! The schema and its migrations.

use sqlx::migrate::{MigrateError, Migration, MigrationType, Migrator};
use sqlx::{AssertSqlSafe, SqlSafeStr};

use crate::compatible::{first_break, goes_on, note};
use crate::database::{Database, Pool};
use crate::postgres::Connections;
use crate::run::{Write, fetch_all};
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

const SCRIPTS: &[Script] = &[
    Script {
        version: 1,
        name: "foundation",
        postgres: include_str!("../migrations/postgres/0001_foundation.sql"),
        sqlite: include_str!("../migrations/sqlite/0001_foundation.sql"),
    },
    Script {
        version: 2,
        name: "subscriptions",
        postgres: include_str!("../migrations/postgres/0002_subscriptions.sql"),
        sqlite: include_str!("../migrations/sqlite/0002_subscriptions.sql"),
    },
    Script {
        version: 3,
        name: "outlets",
        postgres: include_str!("../migrations/postgres/0003_outlets.sql"),
        sqlite: include_str!("../migrations/sqlite/0003_outlets.sql"),
    },
    Script {
        version: 4,
        name: "method checks",
        postgres: include_str!("../migrations/postgres/0004_method_checks.sql"),
        sqlite: include_str!("../migrations/sqlite/0004_method_checks.sql"),
    },
    Script {
        version: 5,
        name: "workloads",
        postgres: include_str!("../migrations/postgres/0005_workloads.sql"),
        sqlite: include_str!("../migrations/sqlite/0005_workloads.sql"),
    },
    Script {
        version: 6,
        name: "silence",
        postgres: include_str!("../migrations/postgres/0006_silence.sql"),
        sqlite: include_str!("../migrations/sqlite/0006_silence.sql"),
    },
    Script {
        version: 7,
        name: "shared devices",
        postgres: include_str!("../migrations/postgres/0007_shared_devices.sql"),
        sqlite: include_str!("../migrations/sqlite/0007_shared_devices.sql"),
    },
];

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
    /// It is newer, and builds of this one's schema can go on beside those of the newer.
    Ahead {
        /// What it is.
        found: i64,
        /// What this build is made for.
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
            Self::Current | Self::Ahead { .. } => return Ok(()),
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
        Some(found) if found > needed && goes_on(&mut db.reader(), needed, needed + 1..=found).await? => {
            SchemaState::Ahead { found, needed }
        }
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

/// The first migration that would end the services which run on the schema as it is now; `None` if they can all go on.
pub async fn breaking_migration(db: &Database) -> Result<Option<i64>, DbError> {
    Ok(match schema_state(db).await? {
        SchemaState::Older { found, .. } => first_break(found, SCRIPTS.iter().map(|script| script.version)),
        SchemaState::Current
        | SchemaState::Missing
        | SchemaState::Ahead { .. }
        | SchemaState::Newer { .. } => None,
    })
}

/// Brings the schema up to date, whoever may be using it. Safe to run twice and from several machines at once. One that is newer is
/// left alone.
pub async fn migrate(db: &Database) -> Result<(), DbError> {
    if let state @ (SchemaState::Newer { .. } | SchemaState::Ahead { .. }) = schema_state(db).await? {
        return state.require_current(db.address());
    }
    match &db.pool {
        Pool::Postgres { read, .. } => migrate_postgres(read).await.map_err(DbError::Migrate),
        Pool::Sqlite { write, .. } => {
            let done = write.work(|connection| Ok(carry_out(connection, &migrator(Dialect::Sqlite))));
            let done = done.await.map_err(|e| DbError::from_client(db.address(), e))?;
            done.map_err(DbError::Migrate)
        }
    }
}

/// On a connection that ends with it: the migrator does not give its lock back when a migration fails, and a connection that went
/// back to the pool would keep everybody else from migrating.
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
            AssertSqlSafe(text.to_owned() + &note(script.version).unwrap_or_default()).into_sql_str(),
            false,
        )
    });
    Migrator::with_migrations(scripts.collect())
}

#[cfg(test)]
mod tests {
    use sqlx::{Connection, Executor, SqliteConnection};

    use super::*;

    /// A host that was FENCED by an earlier build, with what it rests on.
    const FENCED: &str = "
        INSERT INTO segments (id, name, description, policy, revision, created_at, updated_at) VALUES ('s', 'rack', '', '{}', 1, 0, 0);
        INSERT INTO hosts (id, name, segment_id, backend, zone, parameters, failure_state, fencing_state, generation, needs_boot,
            proof_spent, standing, in_flight, event_sequence, revision, created_at, updated_at)
            VALUES ('h', 'h1', 's', 'none', 'z', '{}', 'UNREACHABLE', 'UNFENCED', 1, 0, 0, '[]', '[]', 1, 1, 0, 0);
        INSERT INTO operations (id, host_id, kind, status, generation, body, methods, created_at, updated_at, finished_at)
            VALUES ('o', 'h', 'fence', 'succeeded', 1, '{}', '[]', 0, 0, 5);
        INSERT INTO proofs (host_id, generation, kind, operation_id, source, observed_at, detail)
            VALUES ('h', 1, 'power.off', 'o', 'bmc', 5, 'off');
        UPDATE hosts SET fencing_state = 'FENCED', fenced_generation = 1, fenced_proof = 'power.off', fenced_at = 5;";

    #[tokio::test]
    async fn a_table_that_is_made_anew_keeps_what_is_proven() {
        let mut connection = SqliteConnection::connect("sqlite::memory:").await.unwrap();
        connection.execute("PRAGMA foreign_keys = ON").await.unwrap();
        for script in SCRIPTS.iter().filter(|script| script.version < 5) {
            connection.execute(AssertSqlSafe(script.sqlite)).await.unwrap();
        }
        connection.execute(FENCED).await.unwrap();

        let mut tx = connection.begin().await.unwrap();
        tx.execute(AssertSqlSafe(SCRIPTS[4].sqlite)).await.unwrap();
        tx.commit().await.unwrap();

        let kept = "SELECT fencing_state || ' ' || proofs.kind || ' ' || operations.status FROM hosts
                    JOIN proofs ON proofs.host_id = hosts.id JOIN operations ON operations.id = proofs.operation_id";
        let kept: Vec<String> = sqlx::query_scalar(kept).fetch_all(&mut connection).await.unwrap();
        assert_eq!(kept, ["FENCED power.off succeeded"]);
        let broken = connection.fetch_all("PRAGMA foreign_key_check").await.unwrap();
        assert!(broken.is_empty());
    }

    async fn past(url: &str) -> SqliteConnection {
        SqliteConnection::connect(&format!("{url}?mode=rwc"))
            .await
            .unwrap()
    }

    /// Files of earlier builds were migrated by the library itself.
    #[tokio::test]
    async fn a_file_that_the_library_has_migrated_goes_on_and_back_again() {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite://{}", folder.path().join("t.db").display());
        let all = migrator(Dialect::Sqlite);
        let some = Migrator::with_migrations(all.iter().take(4).cloned().collect());
        let mut connection = past(&url).await;
        some.run_direct(None, &mut connection, false).await.unwrap();
        connection.close().await.unwrap();

        let db = Database::open(&url, 1).await.unwrap();
        let needed = newest_schema();
        assert_eq!(
            schema_state(&db).await.unwrap(),
            SchemaState::Older { found: 4, needed }
        );
        migrate(&db).await.unwrap();
        assert_eq!(schema_state(&db).await.unwrap(), SchemaState::Current);
        db.close().await;

        let mut connection = past(&url).await;
        all.run_direct(None, &mut connection, false).await.unwrap();
    }

    #[tokio::test]
    async fn a_migration_that_was_another_one_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite://{}", folder.path().join("t.db").display());
        let db = Database::open(&url, 1).await.unwrap();
        migrate(&db).await.unwrap();
        let other = "UPDATE _sqlx_migrations SET checksum = x'00' WHERE version = 3";
        past(&url).await.execute(other).await.unwrap();
        let error = migrate(&db).await.unwrap_err();
        assert!(
            matches!(error, DbError::Migrate(MigrateError::VersionMismatch(3))),
            "{error:?}"
        );
    }
}

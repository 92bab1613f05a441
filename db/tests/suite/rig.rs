//! A fresh database for a test, with direct access past the crate under test.

use std::sync::OnceLock;

use ringfence_db::{Database, migrate};
use ringfence_lab::PostgreSql;
use sqlx::{AssertSqlSafe, Connection, PgConnection, SqliteConnection};
use tempfile::TempDir;
use uuid::Uuid;

const CONNECTIONS: u32 = 32;

/// A database with only the rows that the test writes.
pub struct Rig {
    /// The database, with the schema, unless the rig was made without.
    pub db: Database,
    /// The database's address, with credentials.
    pub url: String,
    place: Place,
}

enum Place {
    Folder { _kept: TempDir },
    Server { admin: String, name: String },
}

impl Rig {
    pub async fn sqlite() -> Self {
        let rig = Self::empty_sqlite().await;
        migrate(&rig.db).await.unwrap();
        rig
    }

    pub async fn postgresql() -> Self {
        let rig = Self::empty_postgresql().await;
        migrate(&rig.db).await.unwrap();
        rig
    }

    pub async fn empty_sqlite() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite://{}", folder.path().join("ringfence.db").display());
        Self::open(url, Place::Folder { _kept: folder }).await
    }

    pub async fn empty_postgresql() -> Self {
        let admin = tokio::task::spawn_blocking(server).await.unwrap();
        let name = format!("t{}", Uuid::new_v4().simple());
        run_on_postgres(&admin, &format!("CREATE DATABASE {name}"))
            .await
            .unwrap();
        let url = with_database(&admin, &name);
        Self::open(url, Place::Server { admin, name }).await
    }

    async fn open(url: String, place: Place) -> Self {
        let db = Database::open(&url, CONNECTIONS).await.unwrap();
        Self { db, url, place }
    }

    /// Opens the database once more, as another service would.
    pub async fn another(&self) -> Database {
        Database::open(&self.url, CONNECTIONS).await.unwrap()
    }

    /// A fresh database of this kind, without a schema.
    pub async fn fresh(&self) -> Self {
        match self.place {
            Place::Folder { .. } => Self::empty_sqlite().await,
            Place::Server { .. } => Self::empty_postgresql().await,
        }
    }

    /// A fresh database of this kind, with the schema.
    pub async fn fresh_with_schema(&self) -> Self {
        let rig = self.fresh().await;
        migrate(&rig.db).await.unwrap();
        rig
    }

    /// Runs statements without the crate.
    pub async fn past(&self, sql: &str) -> Result<(), sqlx::Error> {
        match self.place {
            Place::Folder { .. } => {
                let options = std::str::FromStr::from_str(&self.url);
                let options: sqlx::sqlite::SqliteConnectOptions = options?;
                let mut connection = SqliteConnection::connect_with(&options.foreign_keys(true)).await?;
                sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut connection).await?;
                connection.close().await
            }
            Place::Server { .. } => run_on_postgres(&self.url, sql).await,
        }
    }

    /// Opens another transaction on PostgreSQL that has run a statement, and stays open until it is dropped.
    pub async fn hold(&self, sql: &str) -> PgConnection {
        let mut connection = PgConnection::connect(&self.url).await.unwrap();
        let sql = format!("BEGIN; {sql}");
        sqlx::raw_sql(AssertSqlSafe(sql))
            .execute(&mut connection)
            .await
            .unwrap();
        connection
    }

    /// Removes the database of a successful test; that of a failed test is kept.
    pub async fn end(self) {
        self.db.close().await;
        if let Place::Server { admin, name } = &self.place {
            run_on_postgres(admin, &format!("DROP DATABASE {name} WITH (FORCE)"))
                .await
                .unwrap();
        }
    }
}

async fn run_on_postgres(url: &str, sql: &str) -> Result<(), sqlx::Error> {
    let mut connection = PgConnection::connect(url).await?;
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut connection).await?;
    connection.close().await
}

fn with_database(admin: &str, name: &str) -> String {
    let (address, query) = admin.split_once('?').map_or((admin, None), |(a, q)| (a, Some(q)));
    let (server, _) = address.rsplit_once('/').expect("the address has no database");
    query.map_or_else(
        || format!("{server}/{name}"),
        |query| format!("{server}/{name}?{query}"),
    )
}

/// The administrator's address of the test run's server, or of one that ends with this process.
fn server() -> String {
    static OWN: OnceLock<PostgreSql> = OnceLock::new();
    match std::env::var("RINGFENCE_TEST_DATABASE_URL") {
        Ok(url) if !url.is_empty() => url,
        Ok(_) | Err(_) => OWN.get_or_init(|| PostgreSql::start().unwrap()).url("postgres"),
    }
}

//! The database and bus of a test: SQLite and the in-process bus, or PostgreSQL and RabbitMQ.

use std::path::Path;
use std::sync::Arc;

use ringfence_bus::{AmqpBus, AmqpConfig, Bus, InProcessBus};
use ringfence_lab::{PostgreSql, RabbitMq};
use uuid::Uuid;

/// What is in the tables that a statement names, each with the statement that reads its rows.
macro_rules! rows_of {
    ($connection:expr, $tables:expr) => {{
        let connection = $connection;
        let tables: Vec<(String, String)> =
            sqlx::query_as($tables).fetch_all(&mut *connection).await.unwrap();
        let mut all = Vec::new();
        for (table, sql) in tables {
            let sql = sqlx::AssertSqlSafe(sql);
            let rows: Vec<(String,)> = sqlx::query_as(sql).fetch_all(&mut *connection).await.unwrap();
            all.extend(rows.into_iter().map(|(row,)| (table.clone(), row)));
        }
        all.sort();
        all
    }};
}

/// Which database and bus a test uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ground {
    /// SQLite and the in-process bus.
    Standalone,
    /// PostgreSQL and RabbitMQ.
    Distributed,
}

/// A database and a bus that belong to one test.
pub struct Site {
    pub database_url: String,
    /// `None` for the in-process bus.
    pub amqp_url: Option<String>,
    /// Part of the names of this site's queues, because tests share the broker.
    pub prefix: String,
    in_process: Arc<InProcessBus>,
    pub dir: tempfile::TempDir,
    /// Peers that belong to this test alone, because the test stops them.
    pub postgres: Option<PostgreSql>,
    pub rabbit: Option<RabbitMq>,
}

impl Site {
    /// A fresh database and fresh queues, on the peers that the test run has started.
    pub async fn new(ground: Ground) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let name = format!("t{}", Uuid::new_v4().simple());
        let (database_url, amqp_url) = match ground {
            Ground::Standalone => (sqlite_url(&dir.path().join("ringfence.db")), None),
            Ground::Distributed => {
                let postgres = std::env::var("RINGFENCE_TEST_DATABASE_URL")
                    .expect("RINGFENCE_TEST_DATABASE_URL is not set; run the tests with `cargo xtask test`");
                let amqp = std::env::var("RINGFENCE_TEST_AMQP_URL")
                    .expect("RINGFENCE_TEST_AMQP_URL is not set; run the tests with `cargo xtask test`");
                (create_database(&postgres, &name).await, Some(amqp))
            }
        };
        Self {
            database_url,
            amqp_url,
            prefix: name,
            in_process: Arc::new(InProcessBus::new()),
            dir,
            postgres: None,
            rabbit: None,
        }
    }

    /// Starts a PostgreSQL and a RabbitMQ for this test alone, for a test that stops them.
    pub async fn with_own_peers() -> Self {
        let (postgres, rabbit) =
            tokio::task::spawn_blocking(|| (PostgreSql::start().unwrap(), RabbitMq::start().unwrap()))
                .await
                .unwrap();
        let name = format!("t{}", Uuid::new_v4().simple());
        let database_url = create_database(&postgres.url("postgres"), &name).await;
        Self {
            database_url,
            amqp_url: Some(rabbit.url()),
            prefix: name,
            in_process: Arc::new(InProcessBus::new()),
            dir: tempfile::tempdir().unwrap(),
            postgres: Some(postgres),
            rabbit: Some(rabbit),
        }
    }

    /// Makes a database and queues on peers that the caller keeps.
    pub async fn on(admin_url: &str, amqp_url: String) -> Self {
        let name = format!("t{}", Uuid::new_v4().simple());
        Self {
            database_url: create_database(admin_url, &name).await,
            amqp_url: Some(amqp_url),
            prefix: name,
            in_process: Arc::new(InProcessBus::new()),
            dir: tempfile::tempdir().unwrap(),
            postgres: None,
            rabbit: None,
        }
    }

    /// Runs SQL statements directly on the database, past Ringfence.
    pub async fn past(&self, sql: &str) {
        use sqlx::Connection;
        let sql = sqlx::raw_sql(sqlx::AssertSqlSafe(sql));
        if self.database_url.starts_with("sqlite:") {
            let mut connection = sqlx::SqliteConnection::connect(&self.database_url).await.unwrap();
            sql.execute(&mut connection).await.unwrap();
            connection.close().await.unwrap();
        } else {
            let mut connection = sqlx::PgConnection::connect(&self.database_url).await.unwrap();
            sql.execute(&mut connection).await.unwrap();
            connection.close().await.unwrap();
        }
    }

    /// Every row of every table, as text: the table and the row, in order.
    pub async fn rows(&self) -> Vec<(String, String)> {
        use sqlx::Connection;
        if self.database_url.starts_with("sqlite:") {
            let mut connection = sqlx::SqliteConnection::connect(&self.database_url).await.unwrap();
            let tables = "SELECT name, 'SELECT ' || (SELECT group_concat('quote(' || c.name || ')', '||'',''||') FROM pragma_table_info(t.name) c)
                          || ' FROM ' || name FROM sqlite_master t WHERE type = 'table' AND name NOT LIKE 'sqlite_%'";
            rows_of!(&mut connection, tables)
        } else {
            let mut connection = sqlx::PgConnection::connect(&self.database_url).await.unwrap();
            let tables = "SELECT table_name::text, 'SELECT CAST(t AS text) FROM ' || quote_ident(table_name) || ' t' FROM information_schema.tables
                          WHERE table_schema = 'public' AND table_type = 'BASE TABLE'";
            rows_of!(&mut connection, tables)
        }
    }

    /// Opens the bus as a service of this site would.
    pub async fn bus(&self, name: &str) -> Arc<dyn Bus> {
        match &self.amqp_url {
            None => Arc::clone(&self.in_process) as Arc<dyn Bus>,
            Some(url) => {
                let config = AmqpConfig::new(url, name).unwrap().with_prefix(&self.prefix);
                Arc::new(AmqpBus::connect(config).await.unwrap())
            }
        }
    }
}

fn sqlite_url(path: &Path) -> String {
    format!("sqlite://{}", path.display())
}

async fn create_database(admin_url: &str, name: &str) -> String {
    use sqlx::Connection;
    let mut connection = sqlx::PgConnection::connect(admin_url).await.unwrap();
    let sql = format!("CREATE DATABASE {name}");
    sqlx::query(sqlx::AssertSqlSafe(sql))
        .execute(&mut connection)
        .await
        .unwrap();
    connection.close().await.unwrap();
    let mut url = url::Url::parse(admin_url).unwrap();
    url.set_path(name);
    url.to_string()
}

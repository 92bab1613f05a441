//! How connections are opened.

use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{Connection, PgConnection, PgPool};

use crate::database::Pool;
use crate::error::ClientError;
use crate::postgres::Connections;
use crate::sqlite::{self, Keeps};

/// Connections that change things: their statements find their rows by their keys, whatever the values are and however few rows there
/// were when they were planned. A plan that is made anew for each set of values costs a quarter of the database's time in a storm; one
/// that reads the whole table, or all of an index over what is live, because there was little in it once, costs more with every row.
const BY_KEYS: &str = "SET jit = off; SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; SET enable_bitmapscan = off; \
    SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_material = off";
/// The other connections: the planner chooses. Compiling a statement takes longer than any of ours runs.
const FREELY: &str = "SET jit = off";
/// Statements that a connection keeps prepared: those for many rows come in several lengths.
const PREPARED_STATEMENTS: usize = 400;
/// Seconds to wait for a free connection before the database counts as unavailable.
const ACQUIRE_TIMEOUT_S: u64 = 5;
/// A connection to PostgreSQL that was idle for so long is tested before it is used.
const TESTED_AFTER_IDLE: Duration = Duration::from_secs(1);
/// Connections of SQLite that read beside the one that writes.
const SQLITE_READERS: u32 = 4;

pub(crate) fn open_postgres(url: &str, connections: u32, statement: Duration) -> Result<Pool, String> {
    let options = PgConnectOptions::from_str(url)
        .map_err(|e| e.to_string())?
        .statement_cache_capacity(PREPARED_STATEMENTS)
        .application_name("ringfence");
    let bound = statement.as_millis().to_string();
    let for_writing = (connections / 2).max(1);
    let for_reading = connections.saturating_sub(for_writing).max(1);
    let kept = |pool, connections| {
        let wait = Duration::from_secs(ACQUIRE_TIMEOUT_S);
        Connections::new(pool, connections, wait, TESTED_AFTER_IDLE)
    };
    let write = postgres_pool(options.clone(), for_writing, bound.clone(), BY_KEYS);
    // One of them hears announcements for as long as it lives.
    let read = postgres_pool(options, for_reading.saturating_add(1), bound, FREELY);
    Ok(Pool::Postgres {
        write: kept(write, for_writing),
        read: kept(read, for_reading),
    })
}

fn postgres_pool(
    options: PgConnectOptions,
    connections: u32,
    bound: String,
    settings: &'static str,
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
                sqlx::raw_sql(settings).execute(&mut *connection).await?;
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

/// What hangs in the database must not hold a connection, a lock and the callers that wait for it for ever.
async fn set_bounds(connection: &mut PgConnection, milliseconds: &str) -> Result<(), sqlx::Error> {
    let sql = "SELECT set_config('statement_timeout', $1, false), set_config('lock_timeout', $1, false),
        set_config('idle_in_transaction_session_timeout', $1, false)";
    sqlx::query(sql).bind(milliseconds).execute(connection).await?;
    Ok(())
}

pub(crate) async fn open_sqlite(path: &Path, keeps: Keeps) -> Result<Pool, ClientError> {
    Ok(Pool::Sqlite {
        write: sqlite::Connections::open(path.to_owned(), keeps, 1).await?,
        read: sqlite::Connections::open(path.to_owned(), keeps, SQLITE_READERS).await?,
    })
}

/// `scheme://user:password@rest` without what stands before the `@`, and without a query.
pub(crate) fn without_credentials(url: &str) -> String {
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

//! The outbox: work that was decided and has to reach the bus.

use ringfence_core::Timestamp;
use serde_json::Value as Json;
use sqlx::AssertSqlSafe;
use uuid::Uuid;

use crate::columns::table;
use crate::row::Row;
use crate::run::{Run, execute, fetch_all, fetch_optional, write};
use crate::table_rows::TableRows;
use crate::value::{Value, args};
use crate::{Database, DbError};

/// A message that waits to be published.
#[derive(Clone, Debug, PartialEq)]
pub struct OutboxRow {
    /// Its id, and that of the message: published twice, it is one message.
    pub id: Uuid,
    /// What the task acts on.
    pub resource: String,
    /// The zone.
    pub zone: String,
    /// The task.
    pub payload: Json,
    /// The span that it was decided in.
    pub trace: Option<String>,
    /// From when on any process may publish it.
    pub available_at: Timestamp,
    /// Later than this it is pointless.
    pub expires_at: Timestamp,
    /// How often publishing has failed.
    pub tries: u64,
}

table! { "outbox": id, resource, zone, payload, trace, available_at, expires_at, tries }

fn read(row: &Row) -> Result<OutboxRow, DbError> {
    Ok(OutboxRow {
        id: row.id(column::id)?,
        resource: row.text(column::resource)?,
        zone: row.text(column::zone)?,
        payload: row.document(column::payload)?,
        trace: row.opt_text(column::trace)?,
        available_at: row.time(column::available_at)?,
        expires_at: row.time(column::expires_at)?,
        tries: row.count(column::tries)?,
    })
}

/// Writes messages.
pub async fn append_outbox(run: &mut impl Run, rows: &[OutboxRow]) -> Result<(), DbError> {
    write(run, outbox_rows(rows)).await
}

pub(crate) fn outbox_rows(messages: &[OutboxRow]) -> TableRows {
    let rows = messages.iter().map(|message| {
        args![
            message.id,
            &message.resource,
            &message.zone,
            Value::document(&message.payload),
            message.trace.clone(),
            message.available_at,
            message.available_at,
            message.expires_at,
            message.tries
        ]
    });
    let columns = "id, resource, zone, payload, trace, available_at, waits_since, expires_at, tries";
    TableRows::insert("outbox", columns, rows.collect(), "")
}

/// Takes messages that no engine has published in time, and keeps others from taking them until `until`.
pub async fn take_outbox(
    db: &Database,
    now: Timestamp,
    until: Timestamp,
    limit: u32,
) -> Result<Vec<OutboxRow>, DbError> {
    let mut tx = db.begin().await?;
    let (skip, columns) = (tx.dialect().for_update_skip_locked(), columns!());
    // Chosen once: as a plain subquery, PostgreSQL may choose again for each row and take more than the limit.
    let sql = format!(
        "WITH due AS MATERIALIZED
             (SELECT id FROM outbox WHERE available_at <= $1 ORDER BY available_at LIMIT {limit}{skip})
         UPDATE outbox SET available_at = $2, tries = tries + 1 WHERE id IN (SELECT id FROM due)
         RETURNING {columns}"
    );
    let rows = fetch_all(&mut tx, AssertSqlSafe(sql), args![now, until]).await?;
    let rows = rows.iter().map(read).collect::<Result<Vec<_>, DbError>>()?;
    tx.commit().await?;
    Ok(rows)
}

/// How many messages have not been published, or were a moment ago.
pub async fn count_outbox(run: &mut impl Run) -> Result<u64, DbError> {
    let row = fetch_optional(run, "SELECT count(*) AS n FROM outbox", Vec::new()).await?;
    row.map_or(Ok(0), |row| row.count("n"))
}

/// Removes messages that were published or are pointless.
pub async fn delete_outbox(run: &mut impl Run, ids: Vec<Uuid>) -> Result<u64, DbError> {
    let sql = format!(
        "DELETE FROM outbox WHERE {}",
        run.dialect().in_first_argument("id")
    );
    execute(run, AssertSqlSafe(sql), args![ids]).await
}

/// Lets any process publish a message again from `at` on.
pub async fn postpone_outbox(run: &mut impl Run, ids: Vec<Uuid>, at: Timestamp) -> Result<u64, DbError> {
    let sql = format!(
        "UPDATE outbox SET available_at = $2 WHERE {}",
        run.dialect().in_first_argument("id")
    );
    execute(run, AssertSqlSafe(sql), args![ids, at]).await
}

/// Lets messages stay good until `until` at least.
pub async fn prolong_outbox(run: &mut impl Run, ids: Vec<Uuid>, until: Timestamp) -> Result<u64, DbError> {
    let sql = format!(
        "UPDATE outbox SET expires_at = $2 WHERE expires_at < $2 AND {}",
        run.dialect().in_first_argument("id")
    );
    execute(run, AssertSqlSafe(sql), args![ids, until]).await
}

//! What became of each delivery.

use ringfence_core::{SubscriptionId, Timestamp};
use sqlx::AssertSqlSafe;
use uuid::Uuid;

use crate::columns::table;
use crate::row::Row;
use crate::run::{Run, execute, fetch_all, fetch_optional, write};
use crate::table_rows::TableRows;
use crate::value::args;
use crate::{Database, DbError};

/// Why something is delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum DeliveryKind {
    /// An event happened.
    Event,
    /// A client asked for an event again.
    Redelivery,
    /// A client tries whether it works.
    Test,
}

ringfence_core::words!(DeliveryKind);

/// How a delivery stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum DeliveryStatus {
    /// It is tried (again).
    Pending,
    /// The receiver has it.
    Delivered,
    /// It is not tried any more.
    Failed,
}

ringfence_core::words!(DeliveryStatus);

/// One delivery.
#[derive(Clone, Debug, PartialEq)]
pub struct DeliveryRow {
    /// Its id.
    pub id: Uuid,
    /// To whom.
    pub subscription_id: SubscriptionId,
    /// Why.
    pub kind: DeliveryKind,
    /// The event's number; a test has none.
    pub sequence: Option<u64>,
    /// What the receiver knows it by; the event's id.
    pub message_id: Uuid,
    /// The event's type.
    pub event_type: String,
    /// The event's host.
    pub host: Option<String>,
    /// How it stands.
    pub status: DeliveryStatus,
    /// How often it was tried.
    pub tries: u32,
    /// When it was tried first, or asked for.
    pub created_at: Timestamp,
    /// When it was tried last.
    pub tried_at: Option<Timestamp>,
    /// When it is tried next.
    pub next_at: Option<Timestamp>,
    /// The HTTP status of the last answer.
    pub answer: Option<u16>,
    /// What went wrong.
    pub detail: Option<String>,
    /// How long the last try took, in milliseconds.
    pub took_ms: Option<u64>,
}

table! {
    pub "deliveries":
    id, subscription_id, kind, sequence, message_id, event_type, host, status, tries, created_at, tried_at,
    next_at, answer, detail, took_ms,
}

fn read(row: &Row) -> Result<DeliveryRow, DbError> {
    let answer = row.opt_int(column::answer)?;
    Ok(DeliveryRow {
        id: row.id(column::id)?,
        subscription_id: SubscriptionId(row.id(column::subscription_id)?),
        kind: row.word(column::kind, DeliveryKind::from_word)?,
        sequence: row.opt_count(column::sequence)?,
        message_id: row.id(column::message_id)?,
        event_type: row.text(column::event_type)?,
        host: row.opt_text(column::host)?,
        status: row.word(column::status, DeliveryStatus::from_word)?,
        tries: u32::try_from(row.count(column::tries)?).unwrap_or(u32::MAX),
        created_at: row.time(column::created_at)?,
        tried_at: row.opt_time(column::tried_at)?,
        next_at: row.opt_time(column::next_at)?,
        answer: answer.and_then(|status| u16::try_from(status).ok()),
        detail: row.opt_text(column::detail)?,
        took_ms: row.opt_count(column::took_ms)?,
    })
}

/// Writes what became of deliveries: new ones, and what has changed of known ones.
pub async fn save_deliveries(run: &mut impl Run, deliveries: &[DeliveryRow]) -> Result<(), DbError> {
    let rows = deliveries.iter().map(|delivery| {
        args![
            delivery.id,
            delivery.subscription_id.0,
            delivery.kind.as_str(),
            delivery.sequence,
            delivery.message_id,
            &delivery.event_type,
            delivery.host.clone(),
            delivery.status.as_str(),
            delivery.tries,
            delivery.created_at,
            delivery.tried_at,
            delivery.next_at,
            delivery.answer.map(i64::from),
            delivery.detail.clone(),
            delivery.took_ms
        ]
    });
    let columns = "id, subscription_id, kind, sequence, message_id, event_type, host, status, tries, created_at, tried_at, next_at, answer, detail, took_ms";
    let end = " ON CONFLICT (id) DO UPDATE SET status = excluded.status, tries = excluded.tries,
        created_at = excluded.created_at, tried_at = excluded.tried_at, next_at = excluded.next_at, answer = excluded.answer,
        detail = excluded.detail, took_ms = excluded.took_ms";
    write(run, TableRows::insert("deliveries", columns, rows.collect(), end)).await
}

/// Deliveries of events with a number above `after`, by number, at most `limit`: what was begun, and whether it is done. There is no
/// bound on how many have been delivered behind one that is not.
pub async fn deliveries_after(
    run: &mut impl Run,
    id: SubscriptionId,
    after: u64,
    limit: u32,
) -> Result<Vec<DeliveryRow>, DbError> {
    let sql = concat!(
        "SELECT ",
        columns!(),
        " FROM deliveries WHERE subscription_id = $1 AND kind = 'event' AND sequence > $2
               ORDER BY sequence LIMIT $3"
    );
    let rows = fetch_all(run, sql, args![id.0, after, limit]).await?;
    rows.iter().map(read).collect()
}

/// Takes deliveries that a client has asked for, and keeps others from taking them until `until`.
pub async fn take_deliveries(
    db: &Database,
    now: Timestamp,
    until: Timestamp,
    limit: u32,
) -> Result<Vec<DeliveryRow>, DbError> {
    let due = "SELECT 1 AS due FROM deliveries WHERE status = 'pending' AND kind <> 'event' AND next_at <= $1 LIMIT 1";
    if fetch_optional(&mut db.reader(), due, args![now]).await?.is_none() {
        return Ok(Vec::new());
    }
    let mut tx = db.begin().await?;
    let (skip, columns) = (tx.dialect().for_update_skip_locked(), columns!());
    let sql = format!(
        "WITH due AS MATERIALIZED
             (SELECT id FROM deliveries WHERE status = 'pending' AND kind <> 'event' AND next_at <= $1
              ORDER BY next_at LIMIT $3{skip})
         UPDATE deliveries SET next_at = $2 WHERE id IN (SELECT id FROM due)
         RETURNING {columns}"
    );
    let rows = fetch_all(&mut tx, AssertSqlSafe(sql), args![now, until, limit]).await?;
    let rows = rows.iter().map(read).collect::<Result<Vec<_>, DbError>>()?;
    tx.commit().await?;
    Ok(rows)
}

/// Which deliveries to list.
#[derive(Clone, Debug, Default)]
pub struct DeliveryFilter {
    /// Only those that stand so.
    pub status: Option<DeliveryStatus>,
}

/// Deliveries of a subscription, the newest first, after the one with the id `marker`.
pub async fn deliveries_page(
    run: &mut impl Run,
    id: SubscriptionId,
    filter: &DeliveryFilter,
    marker: Option<Uuid>,
    limit: u32,
) -> Result<Vec<DeliveryRow>, DbError> {
    let sql = concat!(
        "SELECT ",
        columns!(),
        " FROM deliveries
               WHERE subscription_id = $1 AND (CAST($2 AS text) IS NULL OR status = $2)
                   AND (CAST($3 AS text) IS NULL
                        OR (created_at, id) < (SELECT created_at, id FROM deliveries WHERE id = $3))
               ORDER BY created_at DESC, id DESC LIMIT $4"
    );
    let status = filter.status.map(DeliveryStatus::as_str);
    let rows = fetch_all(run, sql, args![id.0, status, marker, limit]).await?;
    rows.iter().map(read).collect()
}

/// One delivery of a subscription.
pub async fn delivery(
    run: &mut impl Run,
    subscription_id: SubscriptionId,
    id: Uuid,
) -> Result<Option<DeliveryRow>, DbError> {
    let sql = concat!(
        "SELECT ",
        columns!(),
        " FROM deliveries WHERE subscription_id = $1 AND id = $2"
    );
    let row = fetch_optional(run, sql, args![subscription_id.0, id]).await?;
    row.as_ref().map(read).transpose()
}

/// Begins anew with deliveries of events that were not taken: their day starts now.
pub async fn restart_deliveries(
    run: &mut impl Run,
    id: SubscriptionId,
    now: Timestamp,
) -> Result<(), DbError> {
    let sql = "UPDATE deliveries SET tries = 0, created_at = $2, tried_at = NULL, next_at = $2
               WHERE subscription_id = $1 AND kind = 'event' AND status = 'pending'";
    execute(run, sql, args![id.0, now]).await.map(|_| ())
}

//! What is old enough to be removed, and its removal. What something still rests on is never old enough.

use ringfence_core::Timestamp;
use serde_json::{Value as Json, json};
use sqlx::AssertSqlSafe;
use uuid::Uuid;

use crate::operations::{self, read_operation};
use crate::row::Row;
use crate::run::{Run, execute, fetch_all, fetch_optional};
use crate::value::args;
use crate::{Database, DbError, Tx, audit, deliveries, events};

/// What is kept for some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum Kept {
    /// Events.
    Events,
    /// Operations that are over.
    Operations,
    /// The audit trail.
    Audit,
    /// The log of webhooks' deliveries.
    Deliveries,
}

ringfence_core::words!(Kept);

/// A row that may go.
#[derive(Clone, Debug, PartialEq)]
pub struct OldRow {
    key: Key,
    /// All of it, as the API would show it.
    pub json: Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    Id(Uuid),
    Position(i64),
}

/// Events may go, from the lowest number on, if they are older than the bound, but not
/// - before they have a number, or before an event with a lower number may go: below the mark everything may be missing, above it
///   nothing is;
/// - before every subscription and every event sink was told of them, also a subscription that is disabled and will go on where it stopped;
///   event sinks that no engine tells any more are forgotten one day ([`crate::forget_event_sink`]);
/// - the newest one of a host: the next one's number is checked against it;
/// - the one with the highest number of all: the next number is counted from it.
const EVENTS: &str = "events.sequence IS NOT NULL AND events.occurred_at < $BOUND
    AND events.sequence < coalesce(
        (SELECT min(young.sequence) FROM events young WHERE young.occurred_at >= $BOUND AND young.sequence IS NOT NULL),
        (SELECT max(newest.sequence) FROM events newest))
    AND events.sequence <= coalesce((SELECT min(after_sequence) FROM subscriptions), events.sequence)
    AND events.sequence <= coalesce((SELECT min(after_sequence) FROM event_sinks), events.sequence)
    AND (NOT EXISTS (SELECT 1 FROM hosts WHERE hosts.id = events.host_id)
         OR EXISTS (SELECT 1 FROM events later
                    WHERE later.host_id = events.host_id AND later.host_sequence > events.host_sequence))";

/// Operations may go if they ended before the bound, but not a host's newest one, not the one that makes it FENCED (its proofs go with
/// it), and none of which something still stands or may still be acting.
const OPERATIONS: &str = "operations.status IN ('succeeded', 'cancelled')
    AND operations.created_at < $BOUND AND operations.finished_at < $BOUND
    AND EXISTS (SELECT 1 FROM operations later
                WHERE later.host_id = operations.host_id AND later.generation > operations.generation)
    AND NOT EXISTS (SELECT 1 FROM hosts WHERE hosts.id = operations.host_id
        AND (hosts.fenced_generation = operations.generation
             OR CAST(hosts.applied_fencing AS text) LIKE '%' || CAST(operations.id AS text) || '%'
             OR CAST(hosts.in_flight AS text) LIKE '%' || CAST(operations.id AS text) || '%'))";

const AUDIT: &str = "audit.at < $BOUND";

/// Deliveries that are over; one of an event beyond what its subscription has got to says that it needs no second one.
const DELIVERIES: &str = "deliveries.status <> 'pending' AND deliveries.created_at < $BOUND
    AND (deliveries.kind <> 'event' OR deliveries.sequence <=
        (SELECT after_sequence FROM subscriptions WHERE subscriptions.id = deliveries.subscription_id))";

fn may_go(what: Kept, bound: &str) -> String {
    let condition = match what {
        Kept::Events => EVENTS,
        Kept::Operations => OPERATIONS,
        Kept::Audit => AUDIT,
        Kept::Deliveries => DELIVERIES,
    };
    condition.replace("$BOUND", bound)
}

/// What is older than `before` and may go, the oldest first, at most `limit`. PostgreSQL may take 50 s for it, whatever the bound of
/// other statements is; so is [`remove_rows`].
pub async fn old_rows(
    db: &Database,
    what: Kept,
    before: Timestamp,
    limit: u32,
) -> Result<Vec<OldRow>, DbError> {
    let (select, order) = match what {
        Kept::Events => (
            concat!(
                "SELECT ",
                events::columns!(),
                ", segments.name AS segment FROM events LEFT JOIN segments ON segments.id = events.segment_id"
            ),
            "events.sequence",
        ),
        Kept::Operations => (
            concat!("SELECT id, ", operations::columns!(), " FROM operations"),
            "created_at, id",
        ),
        Kept::Audit => (
            concat!("SELECT ", audit::columns!(), " FROM audit"),
            "at, position",
        ),
        Kept::Deliveries => (
            concat!("SELECT ", deliveries::columns!(), " FROM deliveries"),
            "created_at, id",
        ),
    };
    let sql = format!("{select} WHERE {} ORDER BY {order} LIMIT $2", may_go(what, "$1"));
    let values = args![before, limit];
    let rows = match db.is_sqlite() {
        // No transaction has to wait for one that only reads.
        true => fetch_all(&mut db.reader(), AssertSqlSafe(sql), values).await?,
        false => fetch_all(&mut db.begin_patient().await?, AssertSqlSafe(sql), values).await?,
    };
    rows.iter().map(|row| read(what, row)).collect()
}

/// Removes these rows, as far as they may still go; returns how many it has removed.
pub async fn remove_rows(
    db: &Database,
    what: Kept,
    before: Timestamp,
    rows: &[OldRow],
) -> Result<u64, DbError> {
    if rows.is_empty() {
        return Ok(0);
    }
    let mut tx = db.begin_patient().await?;
    let removed = match what {
        Kept::Events => remove_events(&mut tx, before, ids(rows)).await?,
        Kept::Audit => remove_audit(&mut tx, before, rows).await?,
        Kept::Operations => remove(&mut tx, "operations", what, before, ids(rows)).await?,
        Kept::Deliveries => remove(&mut tx, "deliveries", what, before, ids(rows)).await?,
    };
    tx.commit().await?;
    Ok(removed)
}

/// Events with a number up to this one may be missing; those above are all there.
pub async fn events_removed_up_to(run: &mut impl Run) -> Result<u64, DbError> {
    let row = fetch_optional(run, "SELECT up_to FROM events_removed", args![]).await?;
    row.map_or(Ok(0), |row| row.count("up_to"))
}

fn ids(rows: &[OldRow]) -> Vec<Uuid> {
    let id = |row: &OldRow| match row.key {
        Key::Id(id) => Some(id),
        Key::Position(_) => None,
    };
    rows.iter().filter_map(id).collect()
}

async fn remove(
    tx: &mut Tx,
    table: &'static str,
    what: Kept,
    before: Timestamp,
    ids: Vec<Uuid>,
) -> Result<u64, DbError> {
    let sql = format!(
        "DELETE FROM {table} WHERE {} AND {}",
        tx.dialect().in_first_argument("id"),
        may_go(what, "$2")
    );
    execute(tx, AssertSqlSafe(sql), args![ids, before]).await
}

async fn remove_events(tx: &mut Tx, before: Timestamp, ids: Vec<Uuid>) -> Result<u64, DbError> {
    let sql = format!(
        "DELETE FROM events WHERE {} AND {} RETURNING sequence",
        tx.dialect().in_first_argument("id"),
        may_go(Kept::Events, "$2")
    );
    let gone = fetch_all(tx, AssertSqlSafe(sql), args![ids, before]).await?;
    let numbers = gone.iter().map(|row| row.count("sequence"));
    let Some(highest) = numbers.collect::<Result<Vec<_>, _>>()?.into_iter().max() else {
        return Ok(0);
    };
    let mark = "UPDATE events_removed SET up_to = $1 WHERE up_to < $1";
    execute(tx, mark, args![highest]).await?;
    Ok(gone.len() as u64)
}

/// Through the one opening that the trail has.
async fn remove_audit(tx: &mut Tx, before: Timestamp, rows: &[OldRow]) -> Result<u64, DbError> {
    let position = |row: &OldRow| match row.key {
        Key::Position(position) => Some(position.to_string()),
        Key::Id(_) => None,
    };
    let positions: Vec<_> = rows.iter().filter_map(position).collect();
    execute(
        tx,
        "INSERT INTO audit_retention (older_than) VALUES ($1)",
        args![before],
    )
    .await?;
    let sql = format!(
        "DELETE FROM audit WHERE position IN ({}) AND {}",
        positions.join(", "),
        may_go(Kept::Audit, "$1")
    );
    let removed = execute(tx, AssertSqlSafe(sql), args![before]).await?;
    execute(tx, "DELETE FROM audit_retention", args![]).await?;
    Ok(removed)
}

fn read(what: Kept, row: &Row) -> Result<OldRow, DbError> {
    let json = match what {
        Kept::Events => event(row)?,
        Kept::Operations => json!(read_operation(row)?),
        Kept::Audit => audit(row)?,
        Kept::Deliveries => delivery(row)?,
    };
    let key = match what {
        Kept::Audit => Key::Position(row.int("position")?),
        Kept::Events | Kept::Operations | Kept::Deliveries => Key::Id(row.id("id")?),
    };
    Ok(OldRow { key, json })
}

fn event(row: &Row) -> Result<Json, DbError> {
    use crate::events::column;
    Ok(json!({
        "sequence": row.count(column::sequence)?, "id": row.id(column::id)?, "type": row.text(column::kind)?,
        "host": row.opt_text(column::host)?, "host_id": row.opt_id(column::host_id)?,
        "host_sequence": row.opt_count(column::host_sequence)?, "segment": row.opt_text("segment")?,
        "generation": row.opt_count(column::generation)?, "occurred_at": row.time(column::occurred_at)?,
        "data": row.json::<Json>(column::data)?,
    }))
}

fn audit(row: &Row) -> Result<Json, DbError> {
    use crate::audit::column;
    Ok(json!({
        "id": row.count(column::position)?, "at": row.time(column::at)?, "actor": row.text(column::actor)?,
        "origin": row.opt_text(column::origin)?, "request_id": row.opt_text(column::request_id)?,
        "action": row.text(column::action)?, "target": row.opt_text(column::target)?,
        "host_id": row.opt_id(column::host_id)?, "detail": row.json::<Json>(column::detail)?,
    }))
}

fn delivery(row: &Row) -> Result<Json, DbError> {
    use crate::deliveries::column;
    Ok(json!({
        "id": row.id(column::id)?, "subscription_id": row.id(column::subscription_id)?,
        "kind": row.text(column::kind)?, "sequence": row.opt_count(column::sequence)?,
        "event_id": row.id(column::message_id)?, "event_type": row.text(column::event_type)?,
        "host": row.opt_text(column::host)?, "status": row.text(column::status)?,
        "tries": row.count(column::tries)?, "created_at": row.time(column::created_at)?,
        "tried_at": row.opt_time(column::tried_at)?, "answer": row.opt_int(column::answer)?,
        "detail": row.opt_text(column::detail)?, "took_ms": row.opt_count(column::took_ms)?,
    }))
}

//! Events: written with the change, numbered after it.

use ringfence_core::{EventKind, Generation, HostId, HostProblem, SegmentId, Timestamp};
use serde_json::Value as Json;
use sqlx::AssertSqlSafe;
use uuid::Uuid;

use crate::columns::table;
use crate::row::Row;
use crate::run::{Run, fetch_all, fetch_optional, write};
use crate::table_rows::TableRows;
use crate::value::{Value, args};
use crate::wanted::Wanted;
use crate::{Database, DbError};

/// How many events one pass numbers. One that numbers fewer has left none behind.
pub const NUMBERED_AT_ONCE: u64 = 1000;

/// An event to write.
#[derive(Clone, Debug, PartialEq)]
pub struct NewEvent {
    /// A new id.
    pub id: Uuid,
    /// The host; none where something of Ringfence's own has changed.
    pub host: Option<EventHost>,
    /// What happened.
    pub kind: EventKind,
    /// When.
    pub occurred_at: Timestamp,
    /// What goes with it.
    pub data: Json,
}

/// The host of an event, as it was then.
#[derive(Clone, Debug, PartialEq)]
pub struct EventHost {
    /// The host.
    pub id: HostId,
    /// Its name.
    pub name: String,
    /// Its segment.
    pub segment_id: SegmentId,
    /// The event's number among the host's events, without gaps.
    pub sequence: u64,
    /// The host's generation.
    pub generation: Generation,
}

/// An event as it is read.
#[derive(Clone, Debug, PartialEq)]
pub struct EventRow {
    /// Its number among all events, in the order of the commits.
    pub sequence: u64,
    /// The event.
    pub event: NewEvent,
    /// Its segment's name, unless the segment has been removed.
    pub segment: Option<String>,
}

table! {
    pub "events":
    id, host_id, host, segment_id, host_sequence, kind, generation, occurred_at, data, sequence,
}

fn read(row: &Row) -> Result<EventRow, DbError> {
    let event = NewEvent {
        id: row.id(column::id)?,
        host: read_host(row)?,
        kind: row.word(column::kind, EventKind::from_word)?,
        occurred_at: row.time(column::occurred_at)?,
        data: row.json(column::data)?,
    };
    Ok(EventRow {
        sequence: row.count(column::sequence)?,
        event,
        segment: row.opt_text("segment")?,
    })
}

fn read_host(row: &Row) -> Result<Option<EventHost>, DbError> {
    let Some(id) = row.opt_id(column::host_id)? else {
        return Ok(None);
    };
    Ok(Some(EventHost {
        id: HostId(id),
        name: row.text(column::host)?,
        segment_id: SegmentId(row.id(column::segment_id)?),
        sequence: row.count(column::host_sequence)?,
        generation: row.generation(column::generation)?,
    }))
}

/// Writes events, in order.
pub async fn append_events(run: &mut impl Run, events: &[NewEvent]) -> Result<(), DbError> {
    write(run, event_rows(events)).await
}

const COLUMNS: &str =
    "id, host_id, host, segment_id, host_sequence, kind, problem, generation, occurred_at, data";

/// Events that are numbered later; on SQLite by the database itself.
pub(crate) fn event_rows(events: &[NewEvent]) -> TableRows {
    TableRows::insert("events", COLUMNS, events.iter().map(values).collect(), "")
}

/// Writes events with the number of each among them, counted from 1, as its number among all events.
pub(crate) fn counted_event_rows(events: &[NewEvent]) -> TableRows {
    let rows = events.iter().zip(1_u32..).map(|(event, nth)| {
        let mut values = values(event);
        values.push(nth.into());
        values
    });
    TableRows::insert("events", &format!("{COLUMNS}, sequence"), rows.collect(), "")
}

fn values(event: &NewEvent) -> Vec<Value> {
    let host = event.host.as_ref();
    let problem = HostProblem::told_by(event.kind, &event.data);
    args![
        event.id,
        host.map(|host| host.id.0),
        host.map(|host| host.name.clone()),
        host.map(|host| host.segment_id.0),
        host.map(|host| host.sequence),
        event.kind.as_str(),
        problem.map(|(problem, _)| problem.as_str()),
        host.map(|host| host.generation.0),
        event.occurred_at,
        event.data.clone()
    ]
}

/// Numbers what was committed since the last call; returns how many events it numbered.
///
/// Where transactions run side by side, a number taken inside one could become visible after a higher one, and a reader would miss
/// it for ever. Numbers are therefore given here, to committed events only, by one caller at a time; or by a change that is a single
/// statement, while no other transaction gives any and none wait.
pub async fn number_events(db: &Database) -> Result<u64, DbError> {
    if db.is_sqlite() {
        return Ok(0);
    }
    let mut tx = db.begin().await?;
    if let Some(lock) = tx.dialect().lock_event_numbers() {
        fetch_all(&mut tx, lock, args![]).await?;
    }
    let sql = "WITH done AS (
                   UPDATE events SET sequence = numbered.sequence
                   FROM (SELECT fresh.position,
                                row_number() OVER (ORDER BY fresh.position)
                                    + (SELECT coalesce(max(sequence), 0) FROM events) AS sequence
                         FROM (SELECT position FROM events WHERE sequence IS NULL ORDER BY position LIMIT $1) AS fresh
                        ) AS numbered
                   WHERE events.position = numbered.position
                   RETURNING 1)
               SELECT count(*) AS n, pg_notify('ringfence_events', '') FROM done HAVING count(*) > 0";
    let numbered = fetch_optional(&mut tx, sql, args![NUMBERED_AT_ONCE]).await?;
    tx.commit().await?;
    numbered.map_or(Ok(0), |row| row.count("n"))
}

/// Which events.
#[derive(Clone, Copy, Debug, Default)]
pub struct EventTest {
    /// Those with a number above this one.
    pub after: u64,
    /// Those of this host.
    pub host_id: Option<HostId>,
    /// Those of this kind.
    pub kind: Option<EventKind>,
}

/// Events with a number above `after`, in order.
pub async fn events_after(
    run: &mut impl Run,
    after: u64,
    host_id: Option<HostId>,
    limit: u32,
) -> Result<Vec<EventRow>, DbError> {
    let test = EventTest {
        after,
        host_id,
        kind: None,
    };
    events_page(run, test, false, limit).await
}

/// Events, in order or the newest first.
pub async fn events_page(
    run: &mut impl Run,
    test: EventTest,
    is_newest_first: bool,
    limit: u32,
) -> Result<Vec<EventRow>, DbError> {
    let mut wanted = Wanted::default();
    wanted.compare("events.sequence", ">", Some(test.after));
    wanted.compare("events.host_id", "=", test.host_id.map(|id| id.0));
    wanted.compare("events.kind", "=", test.kind.map(EventKind::as_str));
    let direction = if is_newest_first { " DESC" } else { "" };
    // The limit is a part of the text: SQLite prepares a statement anew for each value of one that is given to it.
    let sql = format!(
        "SELECT {}, segments.name AS segment FROM events
         LEFT JOIN segments ON segments.id = events.segment_id{}
         ORDER BY events.sequence{direction} LIMIT {limit}",
        columns!(),
        wanted.conditions(),
    );
    let rows = fetch_all(run, AssertSqlSafe(sql), wanted.values()).await?;
    rows.iter().map(read).collect()
}

/// The event with this number, if it is still kept.
pub async fn event_numbered(run: &mut impl Run, sequence: u64) -> Result<Option<EventRow>, DbError> {
    let sql = concat!(
        "SELECT ",
        columns!(),
        ", segments.name AS segment FROM events
         LEFT JOIN segments ON segments.id = events.segment_id WHERE events.sequence = $1"
    );
    let row = fetch_optional(run, sql, args![sequence]).await?;
    row.as_ref().map(read).transpose()
}

/// The number of the newest event; 0 if there is none.
pub async fn last_sequence(run: &mut impl Run) -> Result<u64, DbError> {
    let row = fetch_optional(
        run,
        "SELECT coalesce(max(sequence), 0) AS last FROM events",
        args![],
    )
    .await?;
    row.map_or(Ok(0), |row| row.count("last"))
}

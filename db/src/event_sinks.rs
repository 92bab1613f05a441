//! EventSinks: how far each has been told of events, and by whom.

use ringfence_core::Timestamp;

use crate::DbError;
use crate::run::{Run, execute, fetch_all, fetch_optional};
use crate::value::args;

/// Whether the event sink was ever told of anything.
pub async fn has_event_sink(run: &mut impl Run, name: &str) -> Result<bool, DbError> {
    let sql = "SELECT 1 AS found FROM event_sinks WHERE name = $1";
    Ok(fetch_optional(run, sql, args![name]).await?.is_some())
}

/// Adds an event sink that is told of events with a number above `after`; one that is there stays as it is.
pub async fn insert_event_sink(
    run: &mut impl Run,
    name: &str,
    after: u64,
    now: Timestamp,
) -> Result<(), DbError> {
    let sql = "INSERT INTO event_sinks (name, after_sequence, held_by, held_until) VALUES ($1, $2, '', $3)
               ON CONFLICT (name) DO NOTHING";
    execute(run, sql, args![name, after, now]).await.map(|_| ())
}

/// Takes an event sink until `until`; `None` if another engine has it. Returns the number that it has got to.
pub async fn hold_event_sink(
    run: &mut impl Run,
    name: &str,
    holder: &str,
    now: Timestamp,
    until: Timestamp,
) -> Result<Option<u64>, DbError> {
    let sql = "UPDATE event_sinks SET held_by = $2, held_until = $4
               WHERE name = $1 AND held_until <= $3 RETURNING after_sequence";
    let row = fetch_optional(run, sql, args![name, holder, now, until]).await?;
    row.map(|row| row.count("after_sequence")).transpose()
}

/// Keeps an event sink that one holds, and notes how far it has got; `false` if one does not hold it any more.
pub async fn keep_event_sink(
    run: &mut impl Run,
    name: &str,
    holder: &str,
    told_up_to: Option<u64>,
    until: Timestamp,
) -> Result<bool, DbError> {
    let sql = "UPDATE event_sinks SET after_sequence = coalesce($3, after_sequence), held_until = $4
               WHERE name = $1 AND held_by = $2";
    Ok(execute(run, sql, args![name, holder, told_up_to, until]).await? == 1)
}

/// Lets others have an event sink. Until when it was held stays on record.
pub async fn free_event_sink(
    run: &mut impl Run,
    name: &str,
    holder: &str,
    now: Timestamp,
) -> Result<(), DbError> {
    let sql = "UPDATE event_sinks SET held_until = $3 WHERE name = $1 AND held_by = $2 AND held_until > $3";
    execute(run, sql, args![name, holder, now]).await.map(|_| ())
}

/// An event sink that no engine tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SilentSink {
    /// Its name.
    pub name: String,
    /// The number that it has got to.
    pub told_up_to: u64,
    /// Until when an engine held it.
    pub since: Timestamp,
}

/// The event sinks that no engine has held since `since`, by name.
pub async fn silent_event_sinks(run: &mut impl Run, since: Timestamp) -> Result<Vec<SilentSink>, DbError> {
    let sql = "SELECT name, after_sequence, held_until FROM event_sinks WHERE held_until <= $1 ORDER BY name";
    let rows = fetch_all(run, sql, args![since]).await?;
    rows.iter()
        .map(|row| {
            Ok(SilentSink {
                name: row.text("name")?,
                told_up_to: row.count("after_sequence")?,
                since: row.time("held_until")?,
            })
        })
        .collect()
}

/// Forgets an event sink unless an engine has held it since `since`; tells whether it did.
pub async fn forget_event_sink(run: &mut impl Run, name: &str, since: Timestamp) -> Result<bool, DbError> {
    let sql = "DELETE FROM event_sinks WHERE name = $1 AND held_until <= $2";
    Ok(execute(run, sql, args![name, since]).await? == 1)
}

/// All event sinks with the number that each has got to.
pub async fn list_event_sinks(run: &mut impl Run) -> Result<Vec<(String, u64)>, DbError> {
    let rows = fetch_all(
        run,
        "SELECT name, after_sequence FROM event_sinks ORDER BY name",
        args![],
    )
    .await?;
    rows.iter()
        .map(|row| Ok((row.text("name")?, row.count("after_sequence")?)))
        .collect()
}

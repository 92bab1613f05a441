//! Work that one engine at a time does.

use ringfence_core::Timestamp;

use crate::DbError;
use crate::run::{Run, execute, fetch_optional};
use crate::value::args;

/// What is held until later than this was taken before a clock was set back: no lease is longer than twice the longest one.
pub(crate) fn out_of_reach(now: Timestamp, until: Timestamp) -> Timestamp {
    until + (until - now)
}

/// Takes (or keeps) the work of this name until `until`; `false` if another engine has it.
pub async fn take_lease(
    run: &mut impl Run,
    name: &str,
    holder: &str,
    now: Timestamp,
    until: Timestamp,
) -> Result<bool, DbError> {
    let sql = "INSERT INTO leases (name, held_by, held_until) VALUES ($1, $2, $3)
               ON CONFLICT (name) DO UPDATE SET held_by = excluded.held_by, held_until = excluded.held_until
                   WHERE leases.held_until <= $4 OR leases.held_until > $5 OR leases.held_by = excluded.held_by";
    let values = args![name, holder, until, now, out_of_reach(now, until)];
    Ok(execute(run, sql, values).await? == 1)
}

/// Writes something down, for the sake of it alone: whether the database takes it.
pub async fn note_write(run: &mut impl Run, now: Timestamp) -> Result<(), DbError> {
    let sql = "INSERT INTO leases (name, held_by, held_until) VALUES ('writes', 'all', $1)
               ON CONFLICT (name) DO UPDATE SET held_until = excluded.held_until";
    execute(run, sql, args![now]).await.map(|_| ())
}

/// Takes the work of this name if no engine has done it since: the engine that takes it has it until `until`, also if it had it before.
pub async fn take_turn(
    run: &mut impl Run,
    name: &str,
    holder: &str,
    now: Timestamp,
    until: Timestamp,
) -> Result<bool, DbError> {
    let sql = "INSERT INTO leases (name, held_by, held_until) VALUES ($1, $2, $3)
               ON CONFLICT (name) DO UPDATE SET held_by = excluded.held_by, held_until = excluded.held_until
                   WHERE leases.held_until <= $4 OR leases.held_until > $5";
    let values = args![name, holder, until, now, out_of_reach(now, until)];
    Ok(execute(run, sql, values).await? == 1)
}

/// The engine that has the work of this name at this moment.
pub async fn lease_holder(run: &mut impl Run, name: &str, now: Timestamp) -> Result<Option<String>, DbError> {
    let sql = "SELECT held_by FROM leases WHERE name = $1 AND held_until > $2";
    let row = fetch_optional(run, sql, args![name, now]).await?;
    row.map(|row| row.text("held_by")).transpose()
}

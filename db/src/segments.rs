//! Segments.

use ringfence_core::{Segment, SegmentId};
use sqlx::AssertSqlSafe;

use crate::DbError;
use crate::columns::table;
use crate::row::Row;
use crate::run::{Run, execute, fetch_all, fetch_optional};
use crate::value::{Value, args, key};

table! {
    "segments":
    id, name, description, policy, revision, created_at, updated_at,
}

fn read(row: &Row) -> Result<Segment, DbError> {
    Ok(Segment {
        id: SegmentId(row.id(column::id)?),
        name: row.text(column::name)?,
        description: row.text(column::description)?,
        policy: row.json(column::policy)?,
        revision: row.count(column::revision)?,
        created_at: row.time(column::created_at)?,
        updated_at: row.time(column::updated_at)?,
    })
}

/// All segments by name, at most `limit`.
pub async fn list_segments(run: &mut impl Run, limit: u32) -> Result<Vec<Segment>, DbError> {
    let sql = concat!("SELECT ", columns!(), " FROM segments ORDER BY name LIMIT $1");
    let rows = fetch_all(run, sql, args![limit]).await?;
    rows.iter().map(read).collect()
}

/// The segment with this id or name.
pub async fn segment(run: &mut impl Run, id_or_name: &str) -> Result<Option<Segment>, DbError> {
    let (column, key) = key(id_or_name);
    let sql = format!("SELECT {} FROM segments WHERE {column} = $1", columns!());
    let row = fetch_optional(run, AssertSqlSafe(sql), vec![key]).await?;
    row.as_ref().map(read).transpose()
}

fn values(segment: &Segment) -> Vec<Value> {
    args![
        segment.id.0,
        &segment.name,
        &segment.description,
        Value::json(&segment.policy),
        segment.revision,
        segment.created_at,
        segment.updated_at
    ]
}

/// Adds a segment.
pub async fn insert_segment(run: &mut impl Run, segment: &Segment) -> Result<(), DbError> {
    let sql = "INSERT INTO segments (id, name, description, policy, revision, created_at, updated_at)
               VALUES ($1, $2, $3, $4, $5, $6, $7)";
    execute(run, sql, values(segment)).await.map(|_| ())
}

/// Replaces a segment if it is still at `revision`; tells whether it was.
pub async fn update_segment(run: &mut impl Run, segment: &Segment, revision: u64) -> Result<bool, DbError> {
    let sql = "UPDATE segments SET name = $2, description = $3, policy = $4, revision = $5, created_at = $6,
                      updated_at = $7
               WHERE id = $1 AND revision = $8";
    let values = [values(segment), args![revision]].concat();
    Ok(execute(run, sql, values).await? == 1)
}

/// Removes a segment; one that has hosts is kept by its foreign key.
pub async fn delete_segment(run: &mut impl Run, id: SegmentId) -> Result<bool, DbError> {
    Ok(execute(run, "DELETE FROM segments WHERE id = $1", args![id.0]).await? == 1)
}

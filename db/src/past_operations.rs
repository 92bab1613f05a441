//! The newest operations, from which it is seen how long each part of a fence takes.

use ringfence_core::{HostId, Operation};
use sqlx::AssertSqlSafe;

use crate::DbError;
use crate::operations::{self, read_operation};
use crate::row::Row;
use crate::run::{Run, fetch_all, fetch_optional};
use crate::value::args;

/// The fences and rejoins among the last `limit` operations of the host, the newest first.
pub async fn newest_operations_of_host(
    run: &mut impl Run,
    host_id: HostId,
    limit: u32,
) -> Result<Vec<Operation>, DbError> {
    // The bound stands before the filter: whatever the host has been through, no more rows are read.
    let sql = format!(
        "SELECT {} FROM
             (SELECT kind, generation, body, methods FROM operations WHERE host_id = $1
              ORDER BY generation DESC LIMIT {limit}) AS operations
         WHERE operations.kind <> 'evacuation' ORDER BY operations.generation DESC",
        operations::columns!()
    );
    read(&fetch_all(run, AssertSqlSafe(sql), args![host_id.0]).await?)
}

/// The last evacuation of the host.
pub async fn last_evacuation_of_host(
    run: &mut impl Run,
    host_id: HostId,
) -> Result<Option<Operation>, DbError> {
    let sql = format!(
        "SELECT {} FROM operations WHERE host_id = $1 AND kind = 'evacuation' ORDER BY created_at DESC, id DESC LIMIT 1",
        operations::columns!()
    );
    let row = fetch_optional(run, AssertSqlSafe(sql), args![host_id.0]).await?;
    Ok(row.as_ref().map(read_operation).transpose()?.flatten())
}

/// The fences and rejoins among the last `limit` operations of all hosts, the newest first.
pub async fn newest_operations(run: &mut impl Run, limit: u32) -> Result<Vec<Operation>, DbError> {
    let sql = format!(
        "SELECT {} FROM
             (SELECT id, kind, created_at, body, methods FROM operations
              ORDER BY created_at DESC, id DESC LIMIT {limit}) AS operations
         WHERE operations.kind <> 'evacuation' ORDER BY operations.created_at DESC, operations.id DESC",
        operations::columns!()
    );
    read(&fetch_all(run, AssertSqlSafe(sql), args![]).await?)
}

fn read(rows: &[Row]) -> Result<Vec<Operation>, DbError> {
    let operations = rows.iter().filter_map(|row| read_operation(row).transpose());
    operations.collect()
}

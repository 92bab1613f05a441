//! Methods that are filled in alike for several hosts.

use ringfence_core::{HostId, MethodId};
use sqlx::AssertSqlSafe;
use uuid::Uuid;

use crate::columns::table;
use crate::row::Row;
use crate::run::{Run, execute, fetch_all, write};
use crate::table_rows::TableRows;
use crate::value::args;
use crate::{Database, DbError};

/// A method as one host's plan uses it, and another host whose plan uses its device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedDevice {
    /// The row.
    pub id: Uuid,
    /// The host.
    pub host_id: HostId,
    /// The method, by which its plan acts on the device.
    pub method_id: MethodId,
    /// The other host; one of them if there are several.
    pub with_host_id: HostId,
    /// The method by which that one's plan acts on it.
    pub with_method_id: MethodId,
}

table! {
    "shared_devices":
    id, host_id, method_id, with_host_id, with_method_id,
}

fn read(row: &Row) -> Result<SharedDevice, DbError> {
    Ok(SharedDevice {
        id: row.id(column::id)?,
        host_id: HostId(row.id(column::host_id)?),
        method_id: MethodId(row.id(column::method_id)?),
        with_host_id: HostId(row.id(column::with_host_id)?),
        with_method_id: MethodId(row.id(column::with_method_id)?),
    })
}

/// All that are known, at most `limit`.
pub async fn shared_devices(run: &mut impl Run, limit: u32) -> Result<Vec<SharedDevice>, DbError> {
    let sql = concat!("SELECT ", columns!(), " FROM shared_devices ORDER BY id LIMIT $1");
    fetch_all(run, sql, args![limit])
        .await?
        .iter()
        .map(read)
        .collect()
}

/// Those of one host.
pub async fn shared_devices_of(run: &mut impl Run, host: HostId) -> Result<Vec<SharedDevice>, DbError> {
    let sql = concat!("SELECT ", columns!(), " FROM shared_devices WHERE host_id = $1");
    fetch_all(run, sql, args![host.0])
        .await?
        .iter()
        .map(read)
        .collect()
}

/// Adds some; what has been found of a host and a method before stays as it is.
///
/// # Errors
/// A host or a method has gone meanwhile.
pub async fn add_shared_devices(db: &Database, found: &[SharedDevice]) -> Result<(), DbError> {
    let rows = found.iter().map(|one| {
        args![
            one.id,
            one.host_id.0,
            one.method_id.0,
            one.with_host_id.0,
            one.with_method_id.0
        ]
    });
    let columns = "id, host_id, method_id, with_host_id, with_method_id";
    let rows = TableRows::insert(
        "shared_devices",
        columns,
        rows.collect(),
        " ON CONFLICT DO NOTHING",
    );
    write(&mut db.reader(), rows).await
}

/// Removes some.
pub async fn remove_shared_devices(db: &Database, ids: &[Uuid]) -> Result<(), DbError> {
    let mut reader = db.reader();
    let sql = format!(
        "DELETE FROM shared_devices WHERE {}",
        reader.dialect().in_first_argument("id")
    );
    execute(&mut reader, AssertSqlSafe(sql), args![ids.to_vec()])
        .await
        .map(|_| ())
}

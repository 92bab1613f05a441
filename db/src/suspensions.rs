//! Suspensions: those of hosts, of segments, and that of all hosts.

use ringfence_core::{SegmentId, Suspension, SuspensionScope};
use sqlx::AssertSqlSafe;
use uuid::Uuid;

use crate::DbError;
use crate::row::Row;
use crate::run::{Run, execute, fetch_all, fetch_optional};
use crate::value::{Value, args};

/// A host or a segment that is suspended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SuspendedOne {
    /// Its id.
    pub id: Uuid,
    /// Its name.
    pub name: String,
    /// Until when, by whom and why.
    pub suspension: Suspension,
}

/// All that is suspended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Suspended {
    /// The suspension of all hosts.
    pub everything: Option<Suspension>,
    /// Segments, by name.
    pub segments: Vec<SuspendedOne>,
    /// Hosts that are suspended themselves, by name.
    pub hosts: Vec<SuspendedOne>,
}

impl Suspended {
    /// All of them, each with what it is of.
    pub fn iter(&self) -> impl Iterator<Item = (SuspensionScope, &Suspension)> {
        let everything = self
            .everything
            .iter()
            .map(|one| (SuspensionScope::Everything, one));
        let segments = self
            .segments
            .iter()
            .map(|one| (SuspensionScope::Segment, &one.suspension));
        let hosts = self
            .hosts
            .iter()
            .map(|one| (SuspensionScope::Host, &one.suspension));
        everything.chain(segments).chain(hosts)
    }
}

fn read(row: &Row) -> Result<SuspendedOne, DbError> {
    Ok(SuspendedOne {
        id: row.id("id")?,
        name: row.text("name")?,
        suspension: row.document("suspension")?,
    })
}

/// All suspensions, those too whose end has come and that were not removed yet; at most `limit` segments and `limit` hosts.
pub async fn suspensions(run: &mut impl Run, limit: u32) -> Result<Suspended, DbError> {
    let sql = "SELECT suspension FROM everything WHERE one = 1";
    let row = fetch_optional(run, sql, args![]).await?;
    let everything = row
        .map(|row| row.opt_document("suspension"))
        .transpose()?
        .flatten();
    Ok(Suspended {
        everything,
        segments: suspended_in(run, "segments", limit).await?,
        hosts: suspended_in(run, "hosts", limit).await?,
    })
}

async fn suspended_in(
    run: &mut impl Run,
    table: &'static str,
    limit: u32,
) -> Result<Vec<SuspendedOne>, DbError> {
    let sql = format!(
        "SELECT id, name, suspension FROM {table} WHERE suspension IS NOT NULL ORDER BY name LIMIT $1"
    );
    let rows = fetch_all(run, AssertSqlSafe(sql), args![limit]).await?;
    rows.iter().map(read).collect()
}

fn value(suspension: Option<&Suspension>) -> Value {
    Value::from(suspension.map(Value::document))
}

/// Suspends a segment, or ends its suspension. `false` if that changes nothing.
pub async fn set_segment_suspension(
    run: &mut impl Run,
    id: SegmentId,
    suspension: Option<&Suspension>,
) -> Result<bool, DbError> {
    let sql = "UPDATE segments SET suspension = $2 WHERE id = $1 AND suspension IS DISTINCT FROM $2";
    Ok(execute(run, sql, args![id.0, value(suspension)]).await? == 1)
}

/// Suspends all hosts, or ends their suspension. `false` if that changes nothing.
pub async fn set_suspension_of_all(
    run: &mut impl Run,
    suspension: Option<&Suspension>,
) -> Result<bool, DbError> {
    let sql = "UPDATE everything SET suspension = $1 WHERE one = 1 AND suspension IS DISTINCT FROM $1";
    Ok(execute(run, sql, args![value(suspension)]).await? == 1)
}

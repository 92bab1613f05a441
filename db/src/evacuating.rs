//! The evacuations of all hosts, as their moves have to know of each other.

use ringfence_core::{Evacuating, HostId, SegmentId, Timestamp};

use crate::DbError;
use crate::run::{Run, fetch_all};
use crate::value::args;

/// Those that are under way, and those that were changed last after `since`: at most a few of each host.
pub async fn evacuations(run: &mut impl Run, since: Timestamp) -> Result<Vec<Evacuating>, DbError> {
    // Each half by an index of its own.
    let sql = "SELECT hosts.id, hosts.segment_id, evacuating.created_at, evacuating.moves
               FROM (SELECT host_id, created_at, moves FROM operations
                     WHERE status IN ('running', 'held', 'needs_operator') AND kind = 'evacuation'
                     UNION ALL
                     SELECT host_id, created_at, moves FROM operations
                     WHERE updated_at > $1 AND finished_at IS NOT NULL AND kind = 'evacuation') AS evacuating
                   JOIN hosts ON hosts.id = evacuating.host_id
               WHERE evacuating.moves IS NOT NULL";
    let rows = fetch_all(run, sql, args![since]).await?;
    rows.iter()
        .map(|row| {
            Ok(Evacuating {
                host_id: HostId(row.id("id")?),
                segment_id: SegmentId(row.id("segment_id")?),
                since: row.time("created_at")?,
                queue: row.document("moves")?,
            })
        })
        .collect()
}

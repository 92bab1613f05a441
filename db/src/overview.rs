//! All hosts at once, as briefly as an overview of them needs.

use ringfence_core::{FailureState, Fence, FencingState, Kdump, SegmentId, Suspension, Timestamp};
use sqlx::AssertSqlSafe;

use crate::DbError;
use crate::host_list::{LiveOperation, read_live};
use crate::row::Row;
use crate::run::{Run, fetch_all};
use crate::value::args;

/// The most hosts that an overview shows.
pub const MOST_HOSTS: u32 = 100_000;

/// A host as an overview shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BriefHost {
    /// Its name.
    pub name: String,
    /// Its segment.
    pub segment_id: SegmentId,
    /// What sources come to.
    pub failure_state: FailureState,
    /// Since when they do.
    pub failure_since: Option<Timestamp>,
    /// What has been proven.
    pub fencing_state: FencingState,
    /// Whether it is FENCED by proofs that something has ended.
    pub is_proof_ended: bool,
    /// Its own suspension, also one that is over.
    pub suspension: Option<Suspension>,
    /// Whether it is in quarantine.
    pub is_quarantined: bool,
    /// Whether an alarm of it stands.
    pub is_alarmed: bool,
    /// Whether it writes a crash dump.
    pub writes_kdump: bool,
    /// Its live operation.
    pub operation: Option<LiveOperation>,
}

fn read(row: &Row) -> Result<BriefHost, DbError> {
    let fence: Option<Fence> = row.opt_document("fence")?;
    let kdump: Option<Kdump> = row.opt_document("kdump")?;
    Ok(BriefHost {
        name: row.text("name")?,
        segment_id: SegmentId(row.id("segment_id")?),
        failure_state: row.word("failure_state", FailureState::from_word)?,
        failure_since: row.opt_time("failure_since")?,
        fencing_state: row.word("fencing_state", FencingState::from_word)?,
        is_proof_ended: fence.is_some_and(|fence| !fence.holds()),
        suspension: row.opt_document("suspension")?,
        is_quarantined: row.opt_time("quarantined_at")?.is_some(),
        is_alarmed: row.opt_time("alarmed_at")?.is_some(),
        writes_kdump: kdump.is_some_and(|kdump| !kdump.is_over),
        operation: read_live(row)?,
    })
}

/// All hosts by name, at most [`MOST_HOSTS`].
pub async fn brief_hosts(run: &mut impl Run) -> Result<Vec<BriefHost>, DbError> {
    let live = run.dialect().live_operation();
    let sql = format!(
        "SELECT hosts.name, hosts.segment_id, hosts.failure_state, hosts.failure_since, hosts.fencing_state,
             hosts.fence, hosts.suspension, hosts.quarantined_at, hosts.alarmed_at, hosts.kdump,
             operations.id AS live_id, operations.kind AS live_kind, operations.status AS live_status
         FROM hosts {live} ORDER BY hosts.name LIMIT $1"
    );
    let rows = fetch_all(run, AssertSqlSafe(sql), args![MOST_HOSTS]).await?;
    rows.iter().map(read).collect()
}

//! Hosts.

use std::collections::HashMap;

use ringfence_core::{
    Backend, FailureState, FencingState, Host, HostId, HostState, Operation, OperationId, OperationKind,
    OperationStatus, Proof, ProofKind, SegmentId, Timestamp,
};
use sqlx::AssertSqlSafe;
use uuid::Uuid;

use crate::row::Row;
use crate::run::{Run, execute, fetch_all, fetch_optional};
use crate::value::{Value, args};
use crate::{DbError, Page};

/// A host as it is listed: with its segment's name, its live operation and the proofs that make it FENCED.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostRow {
    /// The host.
    pub host: Host,
    /// Its segment's name.
    pub segment: String,
    /// Its live operation.
    pub operation: Option<(OperationId, OperationKind, OperationStatus)>,
    /// The proofs of its present fence.
    pub proofs: Vec<Proof>,
}

/// Which hosts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostFilter {
    /// Only with this fencing state.
    pub fencing_state: Option<FencingState>,
    /// Only with this failure state.
    pub failure_state: Option<FailureState>,
    /// Only with this backend.
    pub backend: Option<Backend>,
    /// Only of the segment with this id or name.
    pub segment: Option<String>,
    /// Only with this name.
    pub name: Option<String>,
}

const SELECT: &str = "SELECT hosts.*, segments.name AS segment_name,
        operations.id AS live_id, operations.kind AS live_kind, operations.status AS live_status
    FROM hosts
    JOIN segments ON segments.id = hosts.segment_id
    LEFT JOIN operations ON operations.host_id = hosts.id AND operations.status IN ('running', 'needs_operator')";

fn read(row: &Row) -> Result<Host, DbError> {
    Ok(Host {
        id: HostId(row.id("id")?),
        name: row.text("name")?,
        segment_id: SegmentId(row.id("segment_id")?),
        backend: row.word("backend", Backend::from_word)?,
        host_type: row.opt_text("host_type")?,
        zone: row.text("zone")?,
        parameters: row.json("parameters")?,
        failure_state: row.word("failure_state", FailureState::from_word)?,
        failure_source: row.opt_text("failure_source")?,
        failure_observed_at: row.opt_time("failure_observed_at")?,
        failure_since: row.opt_time("failure_since")?,
        boot: row.opt_json("boot")?,
        fencing_state: row.word("fencing_state", FencingState::from_word)?,
        generation: row.generation("generation")?,
        fenced_generation: row.opt_generation("fenced_generation")?,
        fenced_at: row.opt_time("fenced_at")?,
        boot_at_fence: row.opt_text("boot_at_fence")?,
        needs_boot: row.flag("needs_boot")?,
        proof_spent: row.flag("proof_spent")?,
        standing: row.json("standing")?,
        in_flight: row.json("in_flight")?,
        event_sequence: row.count("event_sequence")?,
        revision: row.count("revision")?,
        created_at: row.time("created_at")?,
        updated_at: row.time("updated_at")?,
    })
}

fn read_listed(row: &Row) -> Result<HostRow, DbError> {
    let operation = match row.opt_id("live_id")? {
        Some(id) => Some((
            OperationId(id),
            row.word("live_kind", OperationKind::from_word)?,
            row.word("live_status", OperationStatus::from_word)?,
        )),
        None => None,
    };
    Ok(HostRow {
        host: read(row)?,
        segment: row.text("segment_name")?,
        operation,
        proofs: Vec::new(),
    })
}

/// The host with this id or name, as it is listed.
pub async fn host_row(run: &mut impl Run, id_or_name: &str) -> Result<Option<HostRow>, DbError> {
    let row = match Uuid::parse_str(id_or_name) {
        Ok(id) => {
            fetch_optional(
                run,
                AssertSqlSafe(format!("{SELECT} WHERE hosts.id = $1")),
                args![id],
            )
            .await?
        }
        Err(_) => {
            fetch_optional(
                run,
                AssertSqlSafe(format!("{SELECT} WHERE hosts.name = $1")),
                args![id_or_name],
            )
            .await?
        }
    };
    let Some(row) = row else { return Ok(None) };
    let mut rows = vec![read_listed(&row)?];
    add_proofs(run, &mut rows).await?;
    Ok(rows.pop())
}

/// A page of hosts.
pub async fn hosts_page(
    run: &mut impl Run,
    filter: &HostFilter,
    page: &Page,
) -> Result<Vec<HostRow>, DbError> {
    let sql = format!("{SELECT} WHERE {}{}", conditions(), page.tail("hosts", 7, 6));
    let mut values = filter_values(filter);
    values.push(Value::from(page.limit));
    values.push(Value::from(page.marker));
    let rows = fetch_all(run, AssertSqlSafe(sql), values).await?;
    let mut rows = rows.iter().map(read_listed).collect::<Result<Vec<_>, _>>()?;
    add_proofs(run, &mut rows).await?;
    Ok(rows)
}

/// The number of hosts, for metrics and limits.
pub async fn count_hosts(run: &mut impl Run, filter: &HostFilter) -> Result<u64, DbError> {
    let sql = format!(
        "SELECT count(*) AS n FROM hosts JOIN segments ON segments.id = hosts.segment_id WHERE {}",
        conditions()
    );
    let row = fetch_optional(run, AssertSqlSafe(sql), filter_values(filter)).await?;
    row.map_or(Ok(0), |row| row.count("n"))
}

fn conditions() -> &'static str {
    "(CAST($1 AS text) IS NULL OR hosts.fencing_state = $1)
     AND (CAST($2 AS text) IS NULL OR hosts.failure_state = $2)
     AND (CAST($3 AS text) IS NULL OR hosts.backend = $3)
     AND (CAST($4 AS text) IS NULL OR segments.name = $4 OR CAST(segments.id AS text) = $4)
     AND (CAST($5 AS text) IS NULL OR hosts.name = $5)"
}

fn filter_values(filter: &HostFilter) -> Vec<Value> {
    args![
        filter.fencing_state.map(FencingState::as_str),
        filter.failure_state.map(FailureState::as_str),
        filter.backend.map(Backend::as_str),
        filter.segment.as_deref().map(id_as_written),
        filter.name.as_deref()
    ]
}

/// An id in the form in which both databases write ids as text; a name as it is.
fn id_as_written(id_or_name: &str) -> String {
    Uuid::parse_str(id_or_name).map_or_else(|_| id_or_name.to_owned(), |id| id.to_string())
}

/// Adds the proofs of the hosts that are FENCED, in one query for all.
async fn add_proofs(run: &mut impl Run, rows: &mut [HostRow]) -> Result<(), DbError> {
    let fenced = |row: &&HostRow| row.host.fencing_state == FencingState::Fenced;
    let ids: Vec<Uuid> = rows.iter().filter(fenced).map(|row| row.host.id.0).collect();
    if ids.is_empty() {
        return Ok(());
    }
    let sql = format!(
        "SELECT proofs.* FROM proofs
         JOIN hosts ON hosts.id = proofs.host_id AND hosts.fenced_generation = proofs.generation
         WHERE {} ORDER BY proofs.observed_at, proofs.kind",
        run.dialect().id_in_first_argument("proofs.host_id")
    );
    let mut by_host: HashMap<Uuid, Vec<Proof>> = HashMap::new();
    for row in fetch_all(run, AssertSqlSafe(sql), args![ids]).await? {
        by_host
            .entry(row.id("host_id")?)
            .or_default()
            .push(read_proof(&row)?);
    }
    for row in rows {
        row.proofs = by_host.remove(&row.host.id.0).unwrap_or_default();
    }
    Ok(())
}

fn read_proof(row: &Row) -> Result<Proof, DbError> {
    Ok(Proof {
        kind: row.word("kind", ProofKind::from_word)?,
        source: row.text("source")?,
        observed_at: row.time("observed_at")?,
        operation_id: OperationId(row.id("operation_id")?),
        generation: row.generation("generation")?,
        detail: row.text("detail")?,
    })
}

/// Locks a host until the transaction ends, and reads all that a decision needs.
///
/// The operation is read by a second statement on purpose: one statement that joins it would, after waiting for the lock, see the
/// new host beside the old operation.
pub async fn lock_host(run: &mut impl Run, id: HostId) -> Result<Option<HostState>, DbError> {
    let lock = run.dialect().for_update("hosts");
    let sql = format!("SELECT * FROM hosts WHERE id = $1{lock}");
    let Some(row) = fetch_optional(run, AssertSqlSafe(sql), args![id.0]).await? else {
        return Ok(None);
    };
    complete(run, read(&row)?).await.map(Some)
}

/// Reads the same without a lock, in one statement.
pub async fn load_state(run: &mut impl Run, id_or_name: &str) -> Result<Option<HostState>, DbError> {
    const FROM: &str = "SELECT hosts.*, segments.policy AS policy, operations.body AS body FROM hosts
        JOIN segments ON segments.id = hosts.segment_id
        LEFT JOIN operations ON operations.host_id = hosts.id AND operations.status IN ('running', 'needs_operator')";
    let row = match Uuid::parse_str(id_or_name) {
        Ok(id) => {
            fetch_optional(
                run,
                AssertSqlSafe(format!("{FROM} WHERE hosts.id = $1")),
                args![id],
            )
            .await?
        }
        Err(_) => {
            fetch_optional(
                run,
                AssertSqlSafe(format!("{FROM} WHERE hosts.name = $1")),
                args![id_or_name],
            )
            .await?
        }
    };
    row.map(|row| {
        Ok(HostState {
            host: read(&row)?,
            operation: row.opt_json("body")?,
            policy: row.json("policy")?,
        })
    })
    .transpose()
}

async fn complete(run: &mut impl Run, host: Host) -> Result<HostState, DbError> {
    let sql = "SELECT segments.policy AS policy, operations.body AS body FROM segments
               LEFT JOIN operations
                   ON operations.host_id = $2 AND operations.status IN ('running', 'needs_operator')
               WHERE segments.id = $1";
    let row = fetch_optional(run, sql, args![host.segment_id.0, host.id.0]).await?;
    let row = row.ok_or(DbError::Unreadable {
        column: "segment_id",
        why: "names no segment".to_owned(),
    })?;
    let operation: Option<Operation> = row.opt_json("body")?;
    Ok(HostState {
        host,
        operation,
        policy: row.json("policy")?,
    })
}

/// Hosts that time alone will change and whose time has come, the most overdue first.
pub async fn due_hosts(run: &mut impl Run, now: Timestamp, limit: u32) -> Result<Vec<HostId>, DbError> {
    let sql = "SELECT id FROM hosts WHERE wake_at <= $1 ORDER BY wake_at LIMIT $2";
    let rows = fetch_all(run, sql, args![now, limit]).await?;
    rows.iter().map(|row| row.id("id").map(HostId)).collect()
}

/// Adds a host.
pub async fn insert_host(run: &mut impl Run, host: &Host) -> Result<(), DbError> {
    let sql = "INSERT INTO hosts
            (id, name, segment_id, backend, host_type, zone, parameters, failure_state, fencing_state, generation,
             needs_boot, proof_spent, standing, in_flight, event_sequence, revision, created_at, updated_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)";
    let values = args![
        host.id.0,
        &host.name,
        host.segment_id.0,
        host.backend.as_str(),
        host.host_type.clone(),
        &host.zone,
        Value::json(&host.parameters),
        host.failure_state.as_str(),
        host.fencing_state.as_str(),
        host.generation.0,
        host.needs_boot,
        host.proof_spent,
        Value::json(&host.standing),
        Value::json(&host.in_flight),
        host.event_sequence,
        host.revision,
        host.created_at,
        host.updated_at
    ];
    execute(run, sql, values).await.map(|_| ())
}

/// Writes a host back. `fenced_proof` is one of the proofs of its present fence if that is new; they must be there already.
pub async fn update_host(
    run: &mut impl Run,
    host: &Host,
    fenced_proof: Option<ProofKind>,
    wake_at: Option<Timestamp>,
) -> Result<(), DbError> {
    let sql = "UPDATE hosts SET name = $2, segment_id = $3, backend = $4, host_type = $5, zone = $6, parameters = $7,
            failure_state = $8, failure_source = $9, failure_observed_at = $10, failure_since = $11, boot = $12,
            fencing_state = $13, generation = $14, fenced_generation = $15,
            fenced_proof = CASE WHEN $13 = 'FENCED' THEN COALESCE($16, fenced_proof) END,
            fenced_at = $17, boot_at_fence = $18, needs_boot = $19, proof_spent = $20, standing = $21, in_flight = $22,
            event_sequence = $23, wake_at = $24, revision = $25, updated_at = $26
        WHERE id = $1";
    let boot = host
        .boot
        .as_ref()
        .map(serde_json::to_value)
        .transpose()
        .unwrap_or_default();
    let values = args![
        host.id.0,
        &host.name,
        host.segment_id.0,
        host.backend.as_str(),
        host.host_type.clone(),
        &host.zone,
        Value::json(&host.parameters),
        host.failure_state.as_str(),
        host.failure_source.clone(),
        host.failure_observed_at,
        host.failure_since,
        Value::Json(boot),
        host.fencing_state.as_str(),
        host.generation.0,
        host.fenced_generation.map(|g| g.0),
        fenced_proof.map(ProofKind::as_str),
        host.fenced_at,
        host.boot_at_fence.clone(),
        host.needs_boot,
        host.proof_spent,
        Value::json(&host.standing),
        Value::json(&host.in_flight),
        host.event_sequence,
        wake_at,
        host.revision,
        host.updated_at
    ];
    execute(run, sql, values).await.map(|_| ())
}

/// Removes a host with its operations. Events and audit stay.
pub async fn delete_host(run: &mut impl Run, id: HostId) -> Result<bool, DbError> {
    Ok(execute(run, "DELETE FROM hosts WHERE id = $1", args![id.0]).await? == 1)
}

/// Hosts whose operation runs although nothing would ever wake it; there should be none.
pub async fn stranded_hosts(run: &mut impl Run, limit: u32) -> Result<Vec<HostId>, DbError> {
    let sql = "SELECT hosts.id AS id FROM hosts
               JOIN operations ON operations.host_id = hosts.id AND operations.status = 'running'
               WHERE hosts.wake_at IS NULL LIMIT $1";
    let rows = fetch_all(run, sql, args![limit]).await?;
    rows.iter().map(|row| row.id("id").map(HostId)).collect()
}

/// Whether a segment has hosts.
pub async fn segment_has_hosts(run: &mut impl Run, id: SegmentId) -> Result<bool, DbError> {
    let row = fetch_optional(
        run,
        "SELECT 1 AS n FROM hosts WHERE segment_id = $1 LIMIT 1",
        args![id.0],
    )
    .await?;
    Ok(row.is_some())
}

//! Hosts.

use std::collections::HashMap;

use ringfence_core::{
    Backend, FailureState, FencingState, Host, HostId, HostState, OperationId, OperationKind,
    OperationStatus, Proof, ProofKind, SegmentId, SegmentPolicy, Timestamp,
};
use sqlx::AssertSqlSafe;
use uuid::Uuid;

use crate::operations::read_operation;
use crate::row::Row;
use crate::run::{Run, execute, fetch_all, fetch_optional};
use crate::value::{Value, args, pieces, rows_of};
use crate::wanted::Wanted;
use crate::{DbError, Page, Test};

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

/// Which hosts: those for which all of it holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostFilter {
    /// The fencing state.
    pub fencing_state: Vec<Test<FencingState>>,
    /// The failure state.
    pub failure_state: Vec<Test<FailureState>>,
    /// The backend.
    pub backend: Vec<Test<Backend>>,
    /// The id or name of the segment; no order.
    pub segment: Vec<Test<String>>,
    /// The name.
    pub name: Vec<Test<String>>,
    /// The type; a host without one is not any.
    pub host_type: Vec<Test<String>>,
    /// The zone.
    pub zone: Vec<Test<String>>,
    /// The generation.
    pub generation: Vec<Test<u64>>,
    /// When it was fenced; a host that is not was not at any time.
    pub fenced_at: Vec<Test<Timestamp>>,
    /// When it was added.
    pub created_at: Vec<Test<Timestamp>>,
    /// When it was last changed.
    pub updated_at: Vec<Test<Timestamp>>,
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
        standing: row.document("standing")?,
        in_flight: row.document("in_flight")?,
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
    let mut wanted = wanted(filter);
    let end = page.close(&mut wanted, "hosts");
    let sql = format!("{SELECT}{}{end}", wanted.conditions());
    let values = wanted.values();
    let rows = fetch_all(run, AssertSqlSafe(sql), values).await?;
    let mut rows = rows.iter().map(read_listed).collect::<Result<Vec<_>, _>>()?;
    add_proofs(run, &mut rows).await?;
    Ok(rows)
}

/// The number of hosts, for metrics and limits.
pub async fn count_hosts(run: &mut impl Run, filter: &HostFilter) -> Result<u64, DbError> {
    let wanted = wanted(filter);
    let sql = format!("SELECT count(*) AS n FROM hosts{}", wanted.conditions());
    let row = fetch_optional(run, AssertSqlSafe(sql), wanted.values()).await?;
    row.map_or(Ok(0), |row| row.count("n"))
}

fn wanted(filter: &HostFilter) -> Wanted {
    let mut wanted = Wanted::default();
    wanted.test_word("hosts.fencing_state", &filter.fencing_state, FencingState::as_str);
    wanted.test_word("hosts.failure_state", &filter.failure_state, FailureState::as_str);
    wanted.test_word("hosts.backend", &filter.backend, Backend::as_str);
    for test in &filter.segment {
        of_segments(&mut wanted, test);
    }
    wanted.test("hosts.name", &filter.name);
    wanted.test("hosts.host_type", &filter.host_type);
    wanted.test("hosts.zone", &filter.zone);
    wanted.test("hosts.generation", &filter.generation);
    wanted.test("hosts.fenced_at", &filter.fenced_at);
    wanted.test("hosts.created_at", &filter.created_at);
    wanted.test("hosts.updated_at", &filter.updated_at);
    wanted
}

fn of_segments(wanted: &mut Wanted, test: &Test<String>) {
    let (is, segments) = match test {
        Test::OneOf(segments) => ("IN", segments.as_slice()),
        Test::NoneOf(segments) => ("NOT IN", segments.as_slice()),
        Test::Below(one) | Test::AtMost(one) | Test::Above(one) | Test::AtLeast(one) => {
            ("IN", std::slice::from_ref(one))
        }
    };
    let segments: Vec<String> = segments.iter().map(|segment| id_as_written(segment)).collect();
    let list = wanted.list(&segments);
    let condition = format!(
        "hosts.segment_id {is} (SELECT s.id FROM segments s WHERE s.name IN ({list}) OR CAST(s.id AS text) IN ({list}))"
    );
    wanted.add(&condition, Vec::new());
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

/// Locks hosts until the transaction ends, in one order for everybody, and reads all that decisions need. One that is not there is
/// left out.
///
/// The operations are read by a second statement on purpose: one statement that joins them would, after waiting for a lock, see the
/// new host beside the old operation.
pub async fn lock_hosts(run: &mut impl Run, ids: &[HostId]) -> Result<Vec<HostState>, DbError> {
    let ids: Vec<Uuid> = ids.iter().map(|id| id.0).collect();
    let dialect = run.dialect();
    let sql = format!(
        "SELECT * FROM hosts WHERE {} ORDER BY id{}",
        dialect.id_in_first_argument("id"),
        dialect.for_update("hosts")
    );
    let hosts = fetch_all(run, AssertSqlSafe(sql), args![ids.clone()]).await?;
    let hosts = hosts.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    if hosts.is_empty() {
        return Ok(Vec::new());
    }
    let sql = format!(
        "SELECT hosts.id AS id, segments.policy AS policy, operations.body AS body,
             operations.methods AS methods FROM hosts
         JOIN segments ON segments.id = hosts.segment_id
         LEFT JOIN operations
             ON operations.host_id = hosts.id AND operations.status IN ('running', 'needs_operator')
         WHERE {}",
        dialect.id_in_first_argument("hosts.id")
    );
    let mut rest = HashMap::new();
    for row in fetch_all(run, AssertSqlSafe(sql), args![ids]).await? {
        let operation = read_operation(&row)?;
        let policy: SegmentPolicy = row.json("policy")?;
        rest.insert(row.id("id")?, (operation, policy));
    }
    let complete = |host: Host| {
        let (operation, policy) = rest.remove(&host.id.0).ok_or(DbError::Unreadable {
            column: "segment_id",
            why: "names no segment".to_owned(),
        })?;
        Ok(HostState {
            host,
            operation,
            policy,
        })
    };
    hosts.into_iter().map(complete).collect()
}

/// The same for one host.
pub async fn lock_host(run: &mut impl Run, id: HostId) -> Result<Option<HostState>, DbError> {
    Ok(lock_hosts(run, &[id]).await?.pop())
}

/// Reads the same without a lock, in one statement.
pub async fn load_state(run: &mut impl Run, id_or_name: &str) -> Result<Option<HostState>, DbError> {
    const FROM: &str = "SELECT hosts.*, segments.policy AS policy, operations.body AS body,
             operations.methods AS methods FROM hosts
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
            operation: read_operation(&row)?,
            policy: row.json("policy")?,
        })
    })
    .transpose()
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
        Value::document(&host.standing),
        Value::document(&host.in_flight),
        host.event_sequence,
        host.revision,
        host.created_at,
        host.updated_at
    ];
    execute(run, sql, values).await.map(|_| ())
}

/// A host to write back.
#[derive(Clone, Copy, Debug)]
pub struct HostWrite<'a> {
    /// The host.
    pub host: &'a Host,
    /// One of the proofs of its present fence if that is new; it must be there already.
    pub fenced_proof: Option<ProofKind>,
    /// When time alone will change something.
    pub wake_at: Option<Timestamp>,
}

/// Writes hosts back.
pub async fn update_hosts(run: &mut impl Run, writes: &[HostWrite<'_>]) -> Result<(), DbError> {
    const COLUMNS: usize = 26;
    for writes in pieces(writes) {
        let sql = format!(
            "UPDATE hosts SET name = new.column2, segment_id = new.column3, backend = new.column4,
                 host_type = new.column5, zone = new.column6, parameters = new.column7, failure_state = new.column8,
                 failure_source = new.column9, failure_observed_at = new.column10, failure_since = new.column11,
                 boot = new.column12, fencing_state = new.column13, generation = new.column14,
                 fenced_generation = new.column15,
                 fenced_proof = CASE WHEN new.column13 = 'FENCED'
                     THEN coalesce(new.column16, hosts.fenced_proof) END,
                 fenced_at = new.column17, boot_at_fence = new.column18, needs_boot = new.column19,
                 proof_spent = new.column20, standing = new.column21, in_flight = new.column22,
                 event_sequence = new.column23, wake_at = new.column24, revision = new.column25,
                 updated_at = new.column26
             FROM (VALUES {}) AS new WHERE hosts.id = new.column1",
            rows_of(writes.len(), COLUMNS)
        );
        let values = writes.iter().flat_map(written).collect();
        execute(run, AssertSqlSafe(sql), values).await?;
    }
    Ok(())
}

fn written(write: &HostWrite<'_>) -> Vec<Value> {
    let host = write.host;
    let boot = host.boot.as_ref().map_or(Value::Json(None), Value::json);
    args![
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
        boot,
        host.fencing_state.as_str(),
        host.generation.0,
        host.fenced_generation.map(|g| g.0),
        write.fenced_proof.map(ProofKind::as_str),
        host.fenced_at,
        host.boot_at_fence.clone(),
        host.needs_boot,
        host.proof_spent,
        Value::document(&host.standing),
        Value::document(&host.in_flight),
        host.event_sequence,
        write.wake_at,
        host.revision,
        host.updated_at
    ]
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

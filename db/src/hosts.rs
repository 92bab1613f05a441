//! Hosts: as decisions need them, and as they are written back.

use std::collections::{HashMap, HashSet};

use ringfence_core::{
    Backend, FailureState, FencingState, Host, HostId, HostState, Labels, Listed, SegmentId, SegmentPolicy,
    SharedSuspensions, Source, Timestamp,
};
use sqlx::AssertSqlSafe;
use uuid::Uuid;

use crate::columns::table;
use crate::dialect::Dialect;
use crate::host_write::configuration;
use crate::operations::{self, read_operation};
use crate::row::Row;
use crate::run::{Run, execute, fetch_all, fetch_optional, write};
use crate::table_rows::TableRows;
use crate::value::{Value, args, key};
use crate::{DbError, Tx};

table! {
    pub "hosts":
    id, name, segment_id, backend, cloud, known_as, host_type, zone, labels, parameters, sources, failure_state,
    failure_source, failure_observed_at, failure_since, conditions, suspension, flapping, alarms, braked_at, kdump, generation, fence, is_silence_answered,
    released_at, last_off_at, applied_fencing, in_flight, event_sequence, revision, created_at, updated_at,
}

pub(crate) fn read(row: &Row) -> Result<Host, DbError> {
    Ok(Host {
        id: HostId(row.id(column::id)?),
        name: row.text(column::name)?,
        segment_id: SegmentId(row.id(column::segment_id)?),
        backend: row.word(column::backend, Backend::from_word)?,
        cloud: row.opt_text(column::cloud)?,
        known_as: row.opt_text(column::known_as)?,
        host_type: row.opt_text(column::host_type)?,
        zone: row.text(column::zone)?,
        labels: row.json(column::labels)?,
        parameters: row.json(column::parameters)?,
        sources: row.document(column::sources)?,
        failure_state: row.word(column::failure_state, FailureState::from_word)?,
        failure_source: row.opt_text(column::failure_source)?,
        failure_observed_at: row.opt_time(column::failure_observed_at)?,
        failure_since: row.opt_time(column::failure_since)?,
        conditions: row.opt_document(column::conditions)?.unwrap_or_default(),
        suspension: row.opt_document(column::suspension)?,
        flapping: row.opt_document(column::flapping)?.unwrap_or_default(),
        alarms: row.opt_document(column::alarms)?.unwrap_or_default(),
        braked_at: row.opt_time(column::braked_at)?,
        kdump: row.opt_document(column::kdump)?,
        generation: row.generation(column::generation)?,
        fence: row.opt_document(column::fence)?,
        is_silence_answered: row.flag(column::is_silence_answered)?,
        released_at: row.opt_time(column::released_at)?,
        last_off_at: row.opt_time(column::last_off_at)?,
        applied: row.document(column::applied_fencing)?,
        in_flight: row.document(column::in_flight)?,
        event_sequence: row.count(column::event_sequence)?,
        revision: row.count(column::revision)?,
        created_at: row.time(column::created_at)?,
        updated_at: row.time(column::updated_at)?,
    })
}

/// A host with its policy and its live operation, in one statement.
fn states(dialect: Dialect, condition: &str) -> String {
    let (columns, operation, version) = (columns!(), operations::columns!(), dialect.version("hosts"));
    let (read_at, live) = (dialect.read_at(), dialect.live_operation());
    format!(
        "SELECT {version} AS version, {read_at}, (SELECT revision FROM configuration WHERE one = 1) AS configuration, {columns}, {BY_SEGMENT}, {operation} FROM hosts
         JOIN segments ON segments.id = hosts.segment_id
         {live}
         WHERE {condition}"
    )
}

fn read_state(row: &Row) -> Result<HostState, DbError> {
    Ok(HostState {
        host: read(row)?,
        operation: read_operation(row)?,
        policy: row.json("policy")?,
        shared: shared(row)?,
        clock_set_at: None,
    })
}

/// What a host shares with others of its segment, and with all.
const BY_SEGMENT: &str = "segments.policy AS policy, segments.suspension AS segment_suspension,
    (SELECT suspension FROM everything WHERE one = 1) AS suspension_of_all";

fn shared(row: &Row) -> Result<SharedSuspensions, DbError> {
    Ok(SharedSuspensions {
        segment: row.opt_document("segment_suspension")?,
        everything: row.opt_document("suspension_of_all")?,
    })
}

/// A host never gets another id, so that rows which only refer to it (a check, an operation) need not wait for the lock.
const LOCKING: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM hosts WHERE id = ANY($1) ORDER BY id FOR NO KEY UPDATE OF hosts"
);

/// The operations are read by a second statement on purpose: one statement that joins them would, after waiting for a lock, see the
/// new host beside the old operation.
async fn with_operations(
    run: &mut impl Run,
    hosts: &[Row],
    ids: Vec<Uuid>,
) -> Result<(Vec<HostState>, Option<Timestamp>), DbError> {
    let hosts = hosts.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    if hosts.is_empty() {
        return Ok((Vec::new(), None));
    }
    let columns = operations::columns!();
    let sql = format!(
        "SELECT {}, hosts.id AS id, {BY_SEGMENT}, {columns} FROM hosts
         JOIN segments ON segments.id = hosts.segment_id
         {}
         WHERE {}",
        run.dialect().read_at(),
        run.dialect().live_operation(),
        run.dialect().in_first_argument("hosts.id")
    );
    let (mut rest, mut read_at) = (HashMap::new(), None);
    for row in fetch_all(run, AssertSqlSafe(sql), args![ids]).await? {
        read_at = row.opt_time("read_at")?;
        let operation = read_operation(&row)?;
        let policy: SegmentPolicy = row.json("policy")?;
        rest.insert(row.id("id")?, (operation, policy, shared(&row)?));
    }
    let complete = |host: Host| {
        let (operation, policy, shared) = rest.remove(&host.id.0).ok_or(DbError::Unreadable {
            column: "segment_id",
            why: "names no segment".to_owned(),
        })?;
        Ok(HostState {
            host,
            operation,
            policy,
            shared,
            clock_set_at: None,
        })
    };
    let states = hosts.into_iter().map(complete).collect::<Result<_, _>>()?;
    Ok((states, read_at))
}

/// Locks hosts until the transaction ends, in one order for all transactions, and reads all that decisions need, and when that was by the
/// database's clock. One that is not there is left out.
pub(crate) async fn lock_hosts(
    tx: &mut impl Run,
    ids: &[HostId],
) -> Result<(Vec<HostState>, Option<Timestamp>), DbError> {
    let ids: Vec<Uuid> = ids.iter().map(|id| id.0).collect();
    match tx.dialect() {
        Dialect::Postgres => {
            let rows = fetch_all(tx, LOCKING, args![ids.clone()]).await?;
            with_operations(tx, &rows, ids).await
        }
        // Its only writer holds all of them.
        Dialect::Sqlite => {
            let condition = Dialect::Sqlite.in_first_argument("hosts.id");
            let sql = AssertSqlSafe(states(Dialect::Sqlite, &condition));
            let rows = fetch_all(tx, sql, args![ids]).await?;
            Ok((rows.iter().map(read_state).collect::<Result<_, _>>()?, None))
        }
    }
}

/// Locks a host until the transaction ends, and reads all that decisions need.
pub async fn lock_host(tx: &mut Tx, id: HostId) -> Result<Option<HostState>, DbError> {
    Ok(lock_hosts(tx, &[id]).await?.0.pop())
}

/// A host as it was read without a lock, and what shows whether it was changed since.
#[derive(Clone, Debug)]
pub struct SeenHost {
    /// The host.
    pub state: HostState,
    /// When that was, by the database's clock; none on SQLite, whose clock is this machine's.
    pub read_at: Option<Timestamp>,
    /// How often plans and methods had been changed by then.
    pub configuration: u64,
    /// The transaction that wrote its row; none on SQLite.
    pub(crate) version: Option<String>,
}

/// Reads a host without a lock, in one statement.
pub async fn load_state(run: &mut impl Run, id_or_name: &str) -> Result<Option<HostState>, DbError> {
    Ok(see_host(run, id_or_name).await?.map(|seen| seen.state))
}

/// Reads the host that a cloud knows by this name.
pub async fn load_state_in_cloud(
    run: &mut impl Run,
    cloud: &str,
    known_as: &str,
) -> Result<Option<HostState>, DbError> {
    let condition = "hosts.cloud = $1 AND coalesce(hosts.known_as, hosts.name) = $2";
    let sql = AssertSqlSafe(states(run.dialect(), condition));
    let row = fetch_optional(run, sql, args![cloud, known_as]).await?;
    row.as_ref().map(read_state).transpose()
}

/// The hosts of a cloud that are FENCED, have a live operation, or are marked by it as being down.
pub async fn kept_states(run: &mut impl Run, cloud: &str) -> Result<Vec<HostState>, DbError> {
    // The member is not written where it has no value.
    let condition = format!(
        "hosts.cloud = $1 AND (hosts.fencing_state = '{}' OR operations.id IS NOT NULL OR hosts.applied_fencing LIKE '%\"marked_down_by\"%')",
        FencingState::Fenced.as_str()
    );
    let sql = AssertSqlSafe(states(run.dialect(), &condition));
    let rows = fetch_all(run, sql, args![cloud]).await?;
    rows.iter().map(read_state).collect()
}

/// Reads a host to change it if it was not changed by then.
pub async fn see_host(run: &mut impl Run, id_or_name: &str) -> Result<Option<SeenHost>, DbError> {
    let (column, key) = key(id_or_name);
    let sql = states(run.dialect(), &format!("hosts.{column} = $1"));
    let row = fetch_optional(run, AssertSqlSafe(sql), vec![key]).await?;
    row.map(|row| {
        Ok(SeenHost {
            read_at: row.opt_time("read_at")?,
            configuration: row.count("configuration")?,
            version: row.opt_text("version")?,
            state: read_state(&row)?,
        })
    })
    .transpose()
}

/// Hosts that time alone will change and whose time has come, the most overdue first.
pub async fn due_hosts(run: &mut impl Run, now: Timestamp, limit: u32) -> Result<Vec<HostId>, DbError> {
    let sql = format!("SELECT id FROM hosts WHERE wake_at <= $1 ORDER BY wake_at LIMIT {limit}");
    let rows = fetch_all(run, AssertSqlSafe(sql), args![now]).await?;
    rows.iter().map(|row| row.id("id").map(HostId)).collect()
}

/// When time alone changes a host next, of those hosts that have to wait until after this moment; `None`: of all hosts.
pub async fn next_due(run: &mut impl Run, after: Option<Timestamp>) -> Result<Option<Timestamp>, DbError> {
    let sql = "SELECT min(wake_at) AS wake_at FROM hosts WHERE $1 IS NULL OR wake_at > $1";
    let row = fetch_optional(run, sql, args![after]).await?;
    Ok(row.map(|row| row.opt_time("wake_at")).transpose()?.flatten())
}

/// Hosts that were written at a later time than this: since then a clock was set back, and nothing looks at them before it shows their
/// time again.
pub async fn hosts_ahead(run: &mut impl Run, of: Timestamp, limit: u32) -> Result<Vec<HostId>, DbError> {
    let sql = format!("SELECT id FROM hosts WHERE updated_at > $1 ORDER BY updated_at LIMIT {limit}");
    let rows = fetch_all(run, AssertSqlSafe(sql), args![of]).await?;
    rows.iter().map(|row| row.id("id").map(HostId)).collect()
}

/// What is written of a host that is new.
const NEW: &str = "id, name, segment_id, backend, cloud, known_as, host_type, zone, labels, parameters, sources, failure_state, fencing_state, generation, \
    is_silence_answered, applied_fencing, in_flight, event_sequence, revision, created_at, updated_at";

fn new_row(host: &Host) -> Vec<Value> {
    let rest = args![
        Value::document(&host.sources),
        host.failure_state.as_str(),
        FencingState::Unfenced.as_str(),
        host.generation.0,
        host.is_silence_answered,
        Value::document(&host.applied),
        Value::document(&host.in_flight),
        host.event_sequence,
        host.revision,
        host.created_at,
        host.updated_at
    ];
    [args![host.id.0], configuration(host), rest].concat()
}

/// Adds a host, which is UNFENCED.
pub async fn insert_host(run: &mut impl Run, host: &Host) -> Result<(), DbError> {
    write(run, TableRows::insert("hosts", NEW, vec![new_row(host)], "")).await
}

/// Adds those hosts, which are UNFENCED, whose name and whose name in their cloud no other host has; returns which these were.
pub async fn insert_hosts(run: &mut impl Run, hosts: &[&Host]) -> Result<HashSet<HostId>, DbError> {
    let mut hosts = hosts.to_vec();
    // In the order of their names, so that two transactions that add some of these hosts cannot wait for each other.
    hosts.sort_by(|a, b| a.name.cmp(&b.name));
    let ids: Vec<Uuid> = hosts.iter().map(|host| host.id.0).collect();
    let rows = hosts.into_iter().map(new_row).collect();
    write(
        run,
        TableRows::insert("hosts", NEW, rows, " ON CONFLICT DO NOTHING"),
    )
    .await?;
    let added = run.dialect().in_first_argument("id");
    let sql = AssertSqlSafe(format!("SELECT id FROM hosts WHERE {added}"));
    let rows = fetch_all(run, sql, args![ids]).await?;
    rows.iter().map(|row| row.id("id").map(HostId)).collect()
}

/// The ids of the hosts with these names. A name that no host has is left out.
pub async fn host_ids(run: &mut impl Run, names: Vec<String>) -> Result<HashMap<String, HostId>, DbError> {
    if names.is_empty() {
        return Ok(HashMap::new());
    }
    let named = run.dialect().in_first_argument("name");
    let sql = AssertSqlSafe(format!("SELECT id, name FROM hosts WHERE {named}"));
    let rows = fetch_all(run, sql, args![names]).await?;
    let entry = |row: &Row| Ok((row.text("name")?, HostId(row.id("id")?)));
    rows.iter().map(entry).collect()
}

/// The names of hosts, by name. A host that is not there is left out.
pub async fn host_names(run: &mut impl Run, ids: Vec<HostId>) -> Result<Vec<(HostId, String)>, DbError> {
    let ids: Vec<Uuid> = ids.into_iter().map(|id| id.0).collect();
    let wanted = run.dialect().in_first_argument("id");
    let sql = AssertSqlSafe(format!("SELECT id, name FROM hosts WHERE {wanted} ORDER BY name"));
    let rows = fetch_all(run, sql, args![ids]).await?;
    let entry = |row: &Row| Ok((HostId(row.id("id")?), row.text("name")?));
    rows.iter().map(entry).collect()
}

/// Writes down that a host was added by itself, because its cloud named it.
pub async fn set_adopted(run: &mut impl Run, id: HostId) -> Result<(), DbError> {
    let sql = "UPDATE hosts SET is_adopted = $1 WHERE id = $2";
    execute(run, sql, args![true, id.0]).await.map(drop)
}

/// Writes down since when the cloud of a host has not named it; `None`: it does.
pub async fn set_left(run: &mut impl Run, id: HostId, at: Option<Timestamp>) -> Result<(), DbError> {
    let sql = "UPDATE hosts SET left_at = $1 WHERE id = $2";
    execute(run, sql, args![at, id.0]).await.map(drop)
}

/// Since when the cloud of a host has not named it.
pub async fn left_at(run: &mut impl Run, id: HostId) -> Result<Option<Timestamp>, DbError> {
    let sql = "SELECT left_at FROM hosts WHERE id = $1";
    let row = fetch_optional(run, sql, args![id.0]).await?;
    row.map_or(Ok(None), |row| row.opt_time("left_at"))
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

/// Has the hosts of a segment that something may happen to looked at by the next engine that looks for due hosts, or those of all segments: what
/// is said of them has changed.
pub async fn wake_hosts(
    run: &mut impl Run,
    segment_id: Option<SegmentId>,
    now: Timestamp,
) -> Result<(), DbError> {
    let of_segment = if segment_id.is_some() {
        "segment_id = $2"
    } else {
        "$2 IS NULL"
    };
    let sql = format!(
        "UPDATE hosts SET wake_at = $1
         WHERE {of_segment} AND (wake_at IS NULL OR wake_at > $1)
           AND (failure_state = 'UNREACHABLE' OR fencing_state = 'FENCED' OR conditions IS NOT NULL
                OR id IN (SELECT host_id FROM operations WHERE finished_at IS NULL))"
    );
    let values = args![now, segment_id.map(|id| id.0)];
    execute(run, AssertSqlSafe(sql), values).await.map(|_| ())
}

/// Has every host with a live operation looked at by the next engine that looks for due hosts.
pub async fn wake_live(run: &mut impl Run, now: Timestamp) -> Result<(), DbError> {
    let sql = "UPDATE hosts SET wake_at = $1
               WHERE id IN (SELECT host_id FROM operations WHERE finished_at IS NULL)
                 AND (wake_at IS NULL OR wake_at > $1)";
    execute(run, sql, args![now]).await.map(|_| ())
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

/// Two at most of the hosts that are called so by their backends, or by themselves where these call them nothing else: enough to see
/// whether the name is a host's own. In any cloud, if none is named.
pub async fn hosts_called(
    run: &mut impl Run,
    name: &str,
    cloud: Option<&str>,
) -> Result<Vec<HostState>, DbError> {
    let called = match cloud {
        None => "coalesce(hosts.known_as, hosts.name) = $1",
        Some(_) => "coalesce(hosts.known_as, hosts.name) = $1 AND hosts.cloud = $2",
    };
    let sql = AssertSqlSafe(format!(
        "{} ORDER BY hosts.name LIMIT 2",
        states(run.dialect(), called)
    ));
    let args = match cloud {
        None => args![name],
        Some(cloud) => args![name, cloud],
    };
    let rows = fetch_all(run, sql, args).await?;
    rows.iter().map(read_state).collect()
}

/// Whether there are hosts of more than one cloud.
pub async fn has_several_clouds(run: &mut impl Run) -> Result<bool, DbError> {
    let sql = "SELECT 1 AS n FROM hosts WHERE cloud > (SELECT min(cloud) FROM hosts) LIMIT 1";
    Ok(fetch_optional(run, sql, args![]).await?.is_some())
}

/// Whether a cloud has hosts.
pub async fn cloud_has_hosts(run: &mut impl Run, cloud: &str) -> Result<bool, DbError> {
    let sql = "SELECT 1 AS n FROM hosts WHERE cloud = $1 LIMIT 1";
    Ok(fetch_optional(run, sql, args![cloud]).await?.is_some())
}

/// What an observer has to know of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CloudHost {
    /// Its id.
    pub id: HostId,
    /// Its name.
    pub name: String,
    /// What its backend calls it.
    pub known_as: String,
    /// What the observer itself has on record of it.
    pub own: Option<Source>,
    /// Whether its silence may prove that it has fenced itself: its segment says so, and it is UNFENCED.
    pub is_silence_counted: bool,
    /// Whether it is FENCED.
    pub is_fenced: bool,
    /// Its revision.
    pub revision: u64,
    /// Its labels.
    pub labels: Labels,
    /// Whether it was ever fenced, as far as is known.
    pub was_ever_fenced: bool,
    /// Whether it was added by itself, because its cloud named it.
    pub is_adopted: bool,
    /// Since when its cloud has not named it.
    pub left_at: Option<Timestamp>,
    /// Whether its segment does something about conditions.
    pub wants_conditions: bool,
    /// Whether conditions of it are known.
    pub has_conditions: bool,
}

/// The hosts of a cloud, as one source has them on record.
pub async fn hosts_of_cloud(
    run: &mut impl Run,
    cloud: &str,
    source: &str,
) -> Result<Vec<CloudHost>, DbError> {
    let own = run.dialect().entry_of_second_argument("hosts.sources", "by_name");
    let sql = format!(
        "SELECT hosts.id, hosts.name, coalesce(hosts.known_as, hosts.name) AS known_as, {own} AS own, hosts.labels AS labels, hosts.revision AS revision,
                hosts.fencing_state = '{}' AND segments.policy ->> 'self_fencing_timeout_s' IS NOT NULL AS is_silence_counted,
                hosts.fencing_state = '{}' AS is_fenced, hosts.generation > 0 AS was_ever_fenced, hosts.is_adopted AS is_adopted, hosts.left_at AS left_at,
                segments.policy ->> 'conditions' IS NOT NULL AS wants_conditions, hosts.conditions IS NOT NULL AS has_conditions
         FROM hosts JOIN segments ON segments.id = hosts.segment_id
         WHERE hosts.cloud = $1",
        FencingState::Unfenced.as_str(),
        FencingState::Fenced.as_str()
    );
    let rows = fetch_all(run, AssertSqlSafe(sql), args![cloud, source]).await?;
    let read = |row: &Row| {
        Ok(CloudHost {
            id: HostId(row.id("id")?),
            name: row.text("name")?,
            known_as: row.text("known_as")?,
            own: row.opt_document("own")?,
            revision: row.count("revision")?,
            labels: row.json("labels")?,
            is_silence_counted: row.flag("is_silence_counted")?,
            is_fenced: row.flag("is_fenced")?,
            was_ever_fenced: row.flag("was_ever_fenced")?,
            is_adopted: row.flag("is_adopted")?,
            left_at: row.opt_time("left_at")?,
            wants_conditions: row.flag("wants_conditions")?,
            has_conditions: row.flag("has_conditions")?,
        })
    };
    rows.iter().map(read).collect()
}

/// A host, as far as it matters where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedHost {
    /// Its name.
    pub name: String,
    /// Where its workloads live.
    pub backend: Backend,
    /// Its cloud.
    pub cloud: Option<String>,
    /// What its backend calls it.
    pub known_as: String,
}

impl<'a> From<&'a ListedHost> for Listed<'a> {
    fn from(host: &'a ListedHost) -> Self {
        Self {
            name: &host.name,
            cloud: host.cloud.as_deref(),
            known_as: &host.known_as,
        }
    }
}

/// All hosts, and where they are.
pub async fn listed_hosts(run: &mut impl Run) -> Result<Vec<ListedHost>, DbError> {
    let sql = "SELECT name, backend, cloud, coalesce(known_as, name) AS known_as FROM hosts ORDER BY name";
    let rows = fetch_all(run, sql, args![]).await?;
    let read = |row: &Row| {
        Ok(ListedHost {
            name: row.text("name")?,
            backend: row.word("backend", Backend::from_word)?,
            cloud: row.opt_text("cloud")?,
            known_as: row.text("known_as")?,
        })
    };
    rows.iter().map(read).collect()
}

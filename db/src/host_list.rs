//! Hosts as they are listed: filtered, in order, with their live operations.

use ringfence_core::{
    Backend, FailureState, FencingState, Host, OperationId, OperationKind, OperationStatus, Timestamp,
};
use sqlx::AssertSqlSafe;
use uuid::Uuid;

use crate::dialect::Dialect;
use crate::hosts;
use crate::row::Row;
use crate::run::{Run, fetch_all, fetch_optional};
use crate::value::args;
use crate::wanted::Wanted;
use crate::{DbError, Page, Test};

/// A host as it is listed: with its segment's name and its live operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostRow {
    /// The host.
    pub host: Host,
    /// Its segment's name.
    pub segment: String,
    /// Its live operation.
    pub operation: Option<(OperationId, OperationKind, OperationStatus)>,
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

/// Hosts as they are listed; `rest` says which.
fn select(dialect: Dialect, rest: &str) -> AssertSqlSafe<String> {
    let (columns, live) = (hosts::columns!(), dialect.live_operation());
    AssertSqlSafe(format!(
        "SELECT {columns}, segments.name AS segment_name,
             operations.id AS live_id, operations.kind AS live_kind, operations.status AS live_status
         FROM hosts
         JOIN segments ON segments.id = hosts.segment_id
         {live}{rest}"
    ))
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
        host: hosts::read(row)?,
        segment: row.text("segment_name")?,
        operation,
    })
}

/// The host with this id or name, as it is listed.
pub async fn host_row(run: &mut impl Run, id_or_name: &str) -> Result<Option<HostRow>, DbError> {
    let row = match Uuid::parse_str(id_or_name) {
        Ok(id) => {
            let sql = select(run.dialect(), " WHERE hosts.id = $1");
            fetch_optional(run, sql, args![id]).await?
        }
        Err(_) => {
            let sql = select(run.dialect(), " WHERE hosts.name = $1");
            fetch_optional(run, sql, args![id_or_name]).await?
        }
    };
    row.as_ref().map(read_listed).transpose()
}

/// A page of hosts.
pub async fn hosts_page(
    run: &mut impl Run,
    filter: &HostFilter,
    page: &Page,
) -> Result<Vec<HostRow>, DbError> {
    let mut wanted = wanted(filter);
    let end = page.close(&mut wanted, "hosts");
    let conditions = wanted.conditions();
    let sql = select(run.dialect(), &format!("{conditions}{end}"));
    let values = wanted.values();
    let rows = fetch_all(run, sql, values).await?;
    rows.iter().map(read_listed).collect()
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
    wanted.add(condition);
}

/// An id in the form in which both databases write ids as text; a name as it is.
fn id_as_written(id_or_name: &str) -> String {
    Uuid::parse_str(id_or_name).map_or_else(|_| id_or_name.to_owned(), |id| id.to_string())
}

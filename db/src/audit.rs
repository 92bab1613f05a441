//! The audit trail: who did what, from where, and why. Rows are only ever added; the database refuses anything else.

use ringfence_core::{EventKind, HostId, Timestamp};
use serde_json::Value as Json;
use sqlx::AssertSqlSafe;

use crate::DbError;
use crate::columns::table;
use crate::row::Row;
use crate::run::{Run, fetch_all, fetch_optional, write};
use crate::table_rows::TableRows;
use crate::value::args;
use crate::wanted::Wanted;

/// One line of the trail.
#[derive(Clone, Debug, PartialEq)]
pub struct AuditEntry {
    /// When.
    pub at: Timestamp,
    /// Who: a person, a service, a worker, or `ringfence` itself.
    pub actor: String,
    /// From where: a network address.
    pub origin: Option<String>,
    /// The API request.
    pub request_id: Option<String>,
    /// What, as a word for programs.
    pub action: String,
    /// To what.
    pub target: Option<String>,
    /// To which host.
    pub host_id: Option<HostId>,
    /// The particulars, the reason among them.
    pub detail: Json,
}

impl AuditEntry {
    /// The particular that holds what the caller calls the course of things that its request was a part of.
    pub const GLOBAL_REQUEST_ID: &str = "global_request_id";
}

/// A line as it was written down.
#[derive(Clone, Debug, PartialEq)]
pub struct AuditRow {
    /// Its number.
    pub id: u64,
    /// What it says.
    pub entry: AuditEntry,
}

/// Which lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// Only of this host, which may be gone.
    pub host_id: Option<HostId>,
    /// Only by this actor.
    pub actor: Option<String>,
    /// Only with an action that begins so.
    pub action_prefix: Option<String>,
    /// Only of this API request.
    pub request_id: Option<String>,
    /// Only of requests that came with this id. No index helps: give times as well where the trail is long.
    pub global_request_id: Option<String>,
    /// Only at this time or later.
    pub since: Option<Timestamp>,
    /// Only before this time.
    pub until: Option<Timestamp>,
}

/// Comes after every character that an action has.
const AFTER_ANY: char = char::MAX;

table! {
    pub "audit":
    position, at, actor, origin, request_id, action, target, host_id, detail,
}

fn read(row: &Row) -> Result<AuditRow, DbError> {
    Ok(AuditRow {
        id: row.count(column::position)?,
        entry: AuditEntry {
            at: row.time(column::at)?,
            actor: row.text(column::actor)?,
            origin: row.opt_text(column::origin)?,
            request_id: row.opt_text(column::request_id)?,
            action: row.text(column::action)?,
            target: row.opt_text(column::target)?,
            host_id: row.opt_id(column::host_id)?.map(HostId),
            detail: row.json(column::detail)?,
        },
    })
}

/// Adds a line.
pub async fn append_audit(run: &mut impl Run, entry: &AuditEntry) -> Result<(), DbError> {
    append_audit_lines(run, std::slice::from_ref(entry)).await
}

/// Adds lines, in order.
pub async fn append_audit_lines(run: &mut impl Run, entries: &[AuditEntry]) -> Result<(), DbError> {
    write(run, audit_rows(entries)).await
}

pub(crate) fn audit_rows(entries: &[AuditEntry]) -> TableRows {
    let rows = entries.iter().map(|entry| {
        args![
            entry.at,
            &entry.actor,
            entry.origin.clone(),
            entry.request_id.clone(),
            &entry.action,
            entry.target.clone(),
            entry.host_id.map(|id| id.0),
            entry.detail.clone()
        ]
    });
    let columns = "at, actor, origin, request_id, action, target, host_id, detail";
    TableRows::insert("audit", columns, rows.collect(), "")
}

/// The newest `limit` lines, newest first, or those that come after the line `after` in that order.
pub async fn audit_page(
    run: &mut impl Run,
    filter: &AuditFilter,
    after: Option<&AuditRow>,
    limit: u32,
) -> Result<Vec<AuditRow>, DbError> {
    let mut wanted = wanted(filter, after);
    let limit = wanted.bind(limit.into());
    let (columns, conditions) = (columns!(), wanted.conditions());
    let sql =
        format!("SELECT {columns} FROM audit{conditions} ORDER BY at DESC, position DESC LIMIT {limit}");
    let rows = fetch_all(run, AssertSqlSafe(sql), wanted.values()).await?;
    rows.iter().map(read).collect()
}

/// The line with this number.
pub async fn audit_row(run: &mut impl Run, id: u64) -> Result<Option<AuditRow>, DbError> {
    let row = fetch_optional(
        run,
        concat!("SELECT ", columns!(), " FROM audit WHERE position = $1"),
        args![id],
    )
    .await?;
    row.as_ref().map(read).transpose()
}

/// The host that had this name when it was removed, the last one if there were several: its lines outlive it.
pub async fn removed_host(run: &mut impl Run, name: &str) -> Result<Option<HostId>, DbError> {
    let sql =
        "SELECT host_id FROM audit WHERE action = $1 AND target = $2 ORDER BY at DESC, position DESC LIMIT 1";
    let row = fetch_optional(run, sql, args![EventKind::HostDeleted.as_str(), name]).await?;
    row.map(|row| row.id("host_id").map(HostId)).transpose()
}

fn wanted(filter: &AuditFilter, after: Option<&AuditRow>) -> Wanted {
    let mut wanted = Wanted::default();
    wanted.compare("host_id", "=", filter.host_id.map(|id| id.0));
    wanted.compare("actor", "=", filter.actor.as_deref());
    wanted.compare("request_id", "=", filter.request_id.as_deref());
    // Both databases read a field of an object so. What no request caused has none.
    let global_id = format!(
        "request_id IS NOT NULL AND detail ->> '{}'",
        AuditEntry::GLOBAL_REQUEST_ID
    );
    wanted.compare(&global_id, "=", filter.global_request_id.as_deref());
    wanted.compare("at", ">=", filter.since);
    wanted.compare("at", "<", filter.until);
    if let Some(prefix) = &filter.action_prefix {
        wanted.compare("action", ">=", Some(prefix));
        wanted.compare("action", "<", Some(format!("{prefix}{AFTER_ANY}")));
    }
    if let Some(after) = after {
        let (at, id) = (wanted.bind(after.entry.at.into()), wanted.bind(after.id.into()));
        wanted.add(format!("(at, position) < ({at}, {id})"));
    }
    wanted
}

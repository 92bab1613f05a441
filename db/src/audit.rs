//! The audit trail: who did what, from where, and why. Rows are only ever added.

use ringfence_core::{HostId, Timestamp};
use serde_json::Value as Json;
use sqlx::AssertSqlSafe;

use crate::DbError;
use crate::run::{Run, execute, fetch_all};
use crate::value::{MOST_ROWS, args, rows_of};

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

/// Adds a line.
pub async fn append_audit(run: &mut impl Run, entry: &AuditEntry) -> Result<(), DbError> {
    append_audit_lines(run, std::slice::from_ref(entry)).await
}

/// Adds lines, in order.
pub async fn append_audit_lines(run: &mut impl Run, entries: &[AuditEntry]) -> Result<(), DbError> {
    const COLUMNS: usize = 8;
    for entries in entries.chunks(MOST_ROWS) {
        let sql = format!(
            "INSERT INTO audit (at, actor, origin, request_id, action, target, host_id, detail) VALUES {}",
            rows_of(entries.len(), COLUMNS)
        );
        let values = entries.iter().flat_map(|entry| {
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
        execute(run, AssertSqlSafe(sql), values.collect()).await?;
    }
    Ok(())
}

/// The newest lines, of one host or of all, newest first.
pub async fn list_audit(
    run: &mut impl Run,
    host_id: Option<HostId>,
    limit: u32,
) -> Result<Vec<AuditEntry>, DbError> {
    let sql = "SELECT * FROM audit WHERE (CAST($1 AS text) IS NULL OR host_id = $1)
               ORDER BY position DESC LIMIT $2";
    let rows = fetch_all(run, sql, args![host_id.map(|id| id.0), limit]).await?;
    rows.iter()
        .map(|row| {
            Ok(AuditEntry {
                at: row.time("at")?,
                actor: row.text("actor")?,
                origin: row.opt_text("origin")?,
                request_id: row.opt_text("request_id")?,
                action: row.text("action")?,
                target: row.opt_text("target")?,
                host_id: row.opt_id("host_id")?.map(HostId),
                detail: row.json("detail")?,
            })
        })
        .collect()
}

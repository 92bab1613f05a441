//! Lines of the audit trail.

use chrono::{DateTime, Utc};
use ringfence_db::AuditRow;
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;
use uuid::Uuid;

/// Who did what, from where, and why.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AuditView {
    /// Its number; later lines have higher ones.
    pub id: u64,
    pub at: DateTime<Utc>,
    /// A person, a service, a worker, or Ringfence itself.
    pub actor: String,
    /// The network address that a request came from.
    pub origin: Option<String>,
    /// The id of that request.
    pub request_id: Option<String>,
    #[schema(example = "operation.started")]
    pub action: String,
    /// The name of what it was done to.
    pub target: Option<String>,
    pub host_id: Option<Uuid>,
    /// The particulars; `reason` among them where one was given.
    #[schema(value_type = Object)]
    pub detail: Value,
}

impl From<AuditRow> for AuditView {
    fn from(row: AuditRow) -> Self {
        let entry = row.entry;
        Self {
            id: row.id,
            at: entry.at,
            actor: entry.actor,
            origin: entry.origin,
            request_id: entry.request_id,
            action: entry.action,
            target: entry.target,
            host_id: entry.host_id.map(|id| id.0),
            detail: match entry.detail {
                Value::Null => json!({}),
                detail => detail,
            },
        }
    }
}

//! Events.

use chrono::{DateTime, Utc};
use ringfence_db::EventRow;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

/// One change of one host.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EventView {
    /// Its number among all events.
    pub sequence: u64,
    pub id: Uuid,
    #[serde(rename = "type")]
    #[schema(example = "host.fenced")]
    pub kind: &'static str,
    pub host: String,
    pub host_id: Uuid,
    /// Its number among the host's events, without gaps.
    pub host_sequence: u64,
    pub segment: Option<String>,
    pub generation: u32,
    pub occurred_at: DateTime<Utc>,
    #[schema(value_type = Object)]
    pub data: serde_json::Value,
}

impl From<&EventRow> for EventView {
    fn from(row: &EventRow) -> Self {
        let event = &row.event;
        Self {
            sequence: row.sequence,
            id: event.id,
            kind: event.kind.as_str(),
            host: event.host.clone(),
            host_id: event.host_id.0,
            host_sequence: event.host_sequence,
            segment: row.segment.clone(),
            generation: event.generation.0,
            occurred_at: event.occurred_at,
            data: event.data.clone(),
        }
    }
}

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
    /// null where something of Ringfence's own has changed; then so are the other fields of the host.
    pub host: Option<String>,
    pub host_id: Option<Uuid>,
    /// Its number among the host's events, without gaps.
    pub host_sequence: Option<u64>,
    pub segment: Option<String>,
    pub generation: Option<u32>,
    pub occurred_at: DateTime<Utc>,
    #[schema(value_type = Object)]
    pub data: serde_json::Value,
}

impl From<&EventRow> for EventView {
    fn from(row: &EventRow) -> Self {
        let event = &row.event;
        let host = event.host.as_ref();
        Self {
            sequence: row.sequence,
            id: event.id,
            kind: event.kind.as_str(),
            host: host.map(|host| host.name.clone()),
            host_id: host.map(|host| host.id.0),
            host_sequence: host.map(|host| host.sequence),
            segment: row.segment.clone(),
            generation: host.map(|host| host.generation.0),
            occurred_at: event.occurred_at,
            data: event.data.clone(),
        }
    }
}

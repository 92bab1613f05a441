//! All hosts at once.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use ringfence_core::{FailureState, FencingState, Segment, SegmentId, Timestamp};
use ringfence_db::{BriefHost, Suspended};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::host::LiveOperation;

/// All hosts by segment, briefly.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct OverviewView {
    /// The number of the last event that the answer includes for certain: where a stream of events goes on.
    pub sequence: u64,
    pub at: DateTime<Utc>,
    /// By name.
    pub segments: Vec<SegmentHosts>,
}

/// A segment with its hosts.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SegmentHosts {
    pub id: Uuid,
    pub name: String,
    /// Whether its hosts are fenced without being asked for.
    pub is_automatic: bool,
    /// Whether it is suspended, or all hosts are.
    pub is_suspended: bool,
    /// By name.
    pub hosts: Vec<BriefHostView>,
}

/// A host, briefly.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BriefHostView {
    pub name: String,
    /// UP, UNREACHABLE or UNKNOWN
    #[schema(value_type = String, example = "UP")]
    pub failure_state: FailureState,
    pub failure_since: Option<DateTime<Utc>>,
    /// UNFENCED or FENCED
    #[schema(value_type = String, example = "UNFENCED")]
    pub fencing_state: FencingState,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation: Option<LiveOperation>,
    /// What else there is: suspended (itself), quarantined, alarmed, kdump (it writes a crash dump), or proof_ended: FENCED, and evacuations wait for a new proof.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(example = json!(["suspended"]))]
    pub marks: Vec<&'static str>,
}

impl OverviewView {
    pub fn new(
        sequence: u64,
        at: Timestamp,
        segments: Vec<Segment>,
        hosts: Vec<BriefHost>,
        suspended: &Suspended,
    ) -> Self {
        let mut by_segment: HashMap<SegmentId, Vec<BriefHostView>> = HashMap::new();
        for host in hosts {
            let of_segment = by_segment.entry(host.segment_id).or_default();
            of_segment.push(BriefHostView::new(host, at));
        }
        let is_suspended = |id: SegmentId| {
            suspended.everything.is_some() || suspended.segments.iter().any(|one| one.id == id.0)
        };
        let segments = segments.into_iter().map(|segment| SegmentHosts {
            id: segment.id.0,
            is_automatic: segment.policy.fencing.automatic,
            is_suspended: is_suspended(segment.id),
            hosts: by_segment.remove(&segment.id).unwrap_or_default(),
            name: segment.name,
        });
        Self {
            sequence,
            at,
            segments: segments.collect(),
        }
    }
}

impl BriefHostView {
    fn new(host: BriefHost, now: Timestamp) -> Self {
        let is_suspended = host
            .suspension
            .is_some_and(|suspension| suspension.is_in_force(now));
        let marks = [
            (is_suspended, "suspended"),
            (host.is_quarantined, "quarantined"),
            (host.is_proof_ended, "proof_ended"),
            (host.is_alarmed, "alarmed"),
            (host.writes_kdump, "kdump"),
        ];
        Self {
            name: host.name,
            failure_state: host.failure_state,
            failure_since: host.failure_since,
            fencing_state: host.fencing_state,
            operation: host.operation.map(LiveOperation::from),
            marks: marks
                .into_iter()
                .filter(|(is_so, _)| *is_so)
                .map(|(_, mark)| mark)
                .collect(),
        }
    }
}

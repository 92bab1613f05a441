//! Segments.

use chrono::{DateTime, Utc};
use ringfence_core::{Segment, SegmentPolicy};
use ringfence_engine::SegmentDraft;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

/// A failure domain with its policy.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SegmentView {
    pub id: Uuid,
    pub name: String,
    pub description: String,
    pub policy: PolicyView,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

/// A segment to add, or to put in the place of one.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SegmentBody {
    /// 1 to 255 letters, digits, `.`, `_` and `-`.
    #[schema(pattern = "^[A-Za-z0-9][A-Za-z0-9._-]{0,254}$")]
    pub name: String,
    #[serde(default)]
    pub description: String,
    #[serde(default)]
    pub policy: PolicyView,
}

/// What holds for every host of a segment.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct PolicyView {
    /// Seconds after which a host that lost contact has certainly stopped its own workloads; 1 to 86400; null: it does not.
    pub self_fencing_timeout_s: Option<u32>,
    /// How often a fence that ended in needs_operator starts again by itself; 0 to 100.
    pub restarts: u32,
    /// Seconds between two such starts; 1 to 86400.
    pub restart_delay_s: u32,
    /// Whether a FENCED host that is seen UP again is taken back without being asked.
    pub auto_rejoin: bool,
    /// Seconds that a rejoin waits for the host; 1 to 86400.
    pub rejoin_wait_s: u32,
}

impl Default for PolicyView {
    fn default() -> Self {
        SegmentPolicy::default().into()
    }
}

impl From<SegmentPolicy> for PolicyView {
    fn from(policy: SegmentPolicy) -> Self {
        Self {
            self_fencing_timeout_s: policy.self_fencing_timeout_s,
            restarts: policy.restarts,
            restart_delay_s: policy.restart_delay_s,
            auto_rejoin: policy.auto_rejoin,
            rejoin_wait_s: policy.rejoin_wait_s,
        }
    }
}

impl From<PolicyView> for SegmentPolicy {
    fn from(view: PolicyView) -> Self {
        Self {
            self_fencing_timeout_s: view.self_fencing_timeout_s,
            restarts: view.restarts,
            restart_delay_s: view.restart_delay_s,
            auto_rejoin: view.auto_rejoin,
            rejoin_wait_s: view.rejoin_wait_s,
        }
    }
}

impl From<Segment> for SegmentView {
    fn from(segment: Segment) -> Self {
        Self {
            id: segment.id.0,
            name: segment.name,
            description: segment.description,
            policy: segment.policy.into(),
            created_at: segment.created_at,
            updated_at: segment.updated_at,
        }
    }
}

impl From<SegmentBody> for SegmentDraft {
    fn from(body: SegmentBody) -> Self {
        Self {
            name: body.name,
            description: body.description,
            policy: body.policy.into(),
        }
    }
}

//! What could prove a fence, and what would hold an automatic one.

use chrono::{DateTime, Utc};
use ringfence_core::{ProofProspect, SetProspect, StormBrake};
use serde::Serialize;
use utoipa::ToSchema;

/// A sufficient set, as things are.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SetProspectView {
    pub proofs: Vec<ProofProspectView>,
    /// Whether nothing that is known keeps it from being completed.
    pub can_be_completed: bool,
    /// Whether a person has to confirm something for it.
    pub needs_person: bool,
}

/// A proof of a sufficient set.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ProofProspectView {
    #[schema(example = "power.off")]
    pub kind: &'static str,
    /// What keeps it from being won; none if nothing that is known does.
    pub hindrances: Vec<String>,
    /// For self-fencing: a report of silence after this moment proves it.
    pub due_at: Option<DateTime<Utc>>,
}

/// The storm brake of the host's segment: whether an automatic fence of the host would wait for a person.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct StormBrakeView {
    /// Whether the segment wants silent hosts fenced without being asked.
    pub is_automatic: bool,
    /// Whether such a fence would be held.
    pub would_hold: bool,
    /// Why it would be.
    pub reason: Option<String>,
    /// When such a fence is due, as things are.
    pub due_at: Option<DateTime<Utc>>,
    /// Hosts of the segment.
    pub hosts: u64,
    /// Hosts of the segment that are UNREACHABLE or FENCED, this one counted in.
    pub out_of_service: u64,
    /// Those of them that have become so within `within_s`.
    pub lately: u64,
    /// Hosts of its cloud; 0 without one.
    pub in_cloud: u64,
    /// Those of them that are UNREACHABLE or FENCED.
    pub out_of_service_in_cloud: u64,
    /// The limit of `lately`.
    pub at_most: u32,
    pub within_s: u32,
    /// The limit of those that are out of service, in percent.
    pub at_most_percent: u32,
}

impl From<&SetProspect> for SetProspectView {
    fn from(set: &SetProspect) -> Self {
        Self {
            proofs: set.proofs.iter().map(ProofProspectView::from).collect(),
            can_be_completed: set.can_be_completed(),
            needs_person: set.needs_person(),
        }
    }
}

impl From<&ProofProspect> for ProofProspectView {
    fn from(proof: &ProofProspect) -> Self {
        Self {
            kind: proof.kind.as_str(),
            hindrances: proof.hindrances.clone(),
            due_at: proof.due_at,
        }
    }
}

impl From<&StormBrake> for StormBrakeView {
    fn from(brake: &StormBrake) -> Self {
        let (policy, around) = (&brake.policy, &brake.around);
        Self {
            is_automatic: policy.automatic,
            would_hold: brake.holds.is_some(),
            reason: brake.holds.clone(),
            due_at: brake.due_at,
            hosts: around.hosts,
            out_of_service: around.out_of_service,
            lately: around.lately,
            in_cloud: around.in_cloud,
            out_of_service_in_cloud: around.out_of_service_in_cloud,
            at_most: policy.at_most,
            within_s: policy.within_s,
            at_most_percent: policy.at_most_percent,
        }
    }
}

//! Hosts.

use chrono::{DateTime, Utc};
use std::collections::BTreeMap;

use ringfence_core::{Backend, FailureState, FencingState, Parameters, Proof};
use ringfence_db::HostRow;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

/// A host.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct HostView {
    pub id: Uuid,
    pub name: String,
    /// The segment's name.
    pub segment: String,
    #[schema(value_type = String, example = "none")]
    pub backend: Backend,
    /// In which cloud or cluster of the configuration its workloads live.
    pub cloud: Option<String>,
    /// What its backend calls it, where that is not its name.
    pub known_as: Option<String>,
    /// The group of hosts that share a plan.
    #[serde(rename = "type")]
    pub host_type: Option<String>,
    pub zone: String,
    /// Values for the parameters of methods, by method name.
    #[schema(value_type = Object)]
    pub parameters: BTreeMap<String, Parameters>,
    /// What the observers last saw: UP, UNREACHABLE or UNKNOWN.
    #[schema(value_type = String, example = "UNREACHABLE")]
    pub failure_state: FailureState,
    pub failure_source: Option<String>,
    pub failure_observed_at: Option<DateTime<Utc>>,
    /// The boot that was last seen.
    pub boot_id: Option<String>,
    /// What has been proven: UNFENCED or FENCED.
    #[schema(value_type = String, example = "FENCED")]
    pub fencing_state: FencingState,
    /// Advanced by each fence and rejoin; a confirmation has to name it.
    pub generation: u32,
    pub fenced_at: Option<DateTime<Utc>>,
    /// Whether the host has to show a boot newer than the fence before it is taken back.
    pub needs_boot: bool,
    /// Whether it was seen UP since the fence although it was proven to have stopped: it has to be fenced again before its
    /// workloads may be started elsewhere.
    pub proof_spent: bool,
    /// The proofs that make it FENCED.
    pub proofs: Vec<ProofView>,
    /// What a fence has taken from it and nobody has been seen to give back.
    pub standing: Vec<StandingView>,
    /// The operation that holds it.
    pub operation: Option<LiveOperation>,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

/// A proof.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ProofView {
    #[schema(example = "power.off")]
    pub kind: &'static str,
    /// The methods, the person, or the segment's timeout.
    pub source: String,
    pub observed_at: DateTime<Utc>,
    pub operation_id: Uuid,
    pub detail: String,
}

/// Something that stands between the host and its work.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct StandingView {
    #[schema(example = "storage.fence")]
    pub kind: &'static str,
    /// The method by which it was done.
    pub method: String,
}

/// The operation that holds a host.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LiveOperation {
    pub id: Uuid,
    #[schema(example = "fence")]
    pub kind: &'static str,
    #[schema(example = "running")]
    pub status: &'static str,
}

impl From<&Proof> for ProofView {
    fn from(proof: &Proof) -> Self {
        Self {
            kind: proof.kind.as_str(),
            source: proof.source.clone(),
            observed_at: proof.observed_at,
            operation_id: proof.operation_id.0,
            detail: proof.detail.clone(),
        }
    }
}

impl From<HostRow> for HostView {
    fn from(row: HostRow) -> Self {
        let host = row.host;
        let standing = host.standing.iter();
        Self {
            id: host.id.0,
            segment: row.segment,
            backend: host.backend,
            cloud: host.cloud,
            known_as: host.known_as,
            host_type: host.host_type,
            zone: host.zone,
            parameters: host.parameters,
            failure_state: host.failure_state,
            failure_source: host.failure_source,
            failure_observed_at: host.failure_observed_at,
            boot_id: host.boot.and_then(|boot| boot.id),
            fencing_state: host.fencing_state,
            generation: host.generation.0,
            fenced_at: host.fenced_at,
            needs_boot: host.needs_boot,
            proof_spent: host.proof_spent,
            proofs: row.proofs.iter().map(ProofView::from).collect(),
            standing: standing
                .map(|s| StandingView {
                    kind: s.kind.as_str(),
                    method: s.method.name.clone(),
                })
                .collect(),
            operation: row.operation.map(|(id, kind, status)| LiveOperation {
                id: id.0,
                kind: kind.as_str(),
                status: status.as_str(),
            }),
            name: host.name,
            created_at: host.created_at,
            updated_at: host.updated_at,
        }
    }
}

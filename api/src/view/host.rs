//! Hosts.

use chrono::{DateTime, Utc};
use std::collections::BTreeMap;

use ringfence_core::{
    AppliedFencing, Backend, Condition, ConditionAction, Ended, FailureState, Fence, FencingState, Kdump,
    Labels, OperationId, OperationKind, OperationStatus, Parameters, Proof, SeenBoot, Source, StepKind,
};
use ringfence_db::HostRow;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::problems::AlarmView;
use super::suspension::SuspensionView;

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
    /// What it is told apart by.
    pub labels: Labels,
    /// Values for the parameters of methods, by method name.
    #[schema(value_type = Object)]
    pub parameters: BTreeMap<String, Parameters>,
    /// What all that was seen comes to: UP, UNREACHABLE or UNKNOWN.
    #[schema(value_type = String, example = "UNREACHABLE")]
    pub failure_state: FailureState,
    /// The source that it rests on.
    pub failure_source: Option<String>,
    pub failure_observed_at: Option<DateTime<Utc>>,
    /// Since when it is so, by Ringfence's clock.
    pub failure_since: Option<DateTime<Utc>>,
    /// The boot that was last seen.
    pub boot_id: Option<String>,
    /// What each source saw.
    pub sources: Vec<SourceView>,
    /// What sources say is wrong with it, or right; absent where they say nothing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<ConditionView>,
    /// Its own suspension; absent where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspension: Option<SuspensionView>,
    /// Since when it is taken back only where a rejoin is asked for, because it was fenced too often lately; absent where it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quarantined_at: Option<DateTime<Utc>>,
    /// The alarms that stand: problems that come too often for its segment; absent where there is none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub alarms: Vec<AlarmView>,
    /// The crash dump that it writes, as its kdump messages tell, or has written since its operation began; absent where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kdump: Option<KdumpView>,
    /// What has been proven: UNFENCED or FENCED.
    #[schema(value_type = String, example = "FENCED")]
    pub fencing_state: FencingState,
    /// Advanced by each fence and rejoin; a confirmation has to name it.
    pub generation: u32,
    pub fenced_at: Option<DateTime<Utc>>,
    /// Whether the host has to show a newer boot than it has before it is taken back.
    pub needs_boot: bool,
    /// What ended the proofs that it is FENCED by, if they hold no more: it has to be fenced again before its workloads may be started
    /// elsewhere.
    pub proof_ended: Option<EndedView>,
    /// The proofs of its fence, those that have ended too.
    pub proofs: Vec<ProofView>,
    /// What a fence has taken from it, or may have taken, and that was not read as released.
    pub applied_fencing: Vec<AppliedView>,
    /// The operation that holds it.
    pub operation: Option<LiveOperation>,
    /// What would keep it from being fenced; told where it was just added or changed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

/// A crash dump of a host.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct KdumpView {
    pub since: DateTime<Utc>,
    pub last_message_at: DateTime<Utc>,
    /// Whether no message has come for 30 s.
    pub is_over: bool,
}

impl From<&Kdump> for KdumpView {
    fn from(kdump: &Kdump) -> Self {
        Self {
            since: kdump.since,
            last_message_at: kdump.last_at,
            is_over: kdump.is_over,
        }
    }
}

/// A proof.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ProofView {
    #[schema(example = "power.off")]
    pub kind: &'static str,
    /// The methods, the person, the segment's timeout, or the host's crash kernel.
    pub source: String,
    pub observed_at: DateTime<Utc>,
    pub operation_id: Uuid,
    pub detail: String,
    /// What ended it, if it has ended.
    pub ended: Option<EndedView>,
}

/// How a proof came to its end.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EndedView {
    /// In words.
    #[schema(example = "monitor saw the host UP at 2026-11-21T01:31:22Z")]
    pub by: String,
    pub at: DateTime<Utc>,
}

/// What one source saw of a host.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SourceView {
    pub name: String,
    /// What it said last: UP, UNREACHABLE or UNKNOWN.
    #[schema(value_type = String, example = "UP")]
    pub state: FailureState,
    pub observed_at: DateTime<Utc>,
    /// When it last had a sign of life of the host.
    pub alive_at: Option<DateTime<Utc>>,
    /// The boot that it saw last.
    pub boot_id: Option<String>,
}

/// A condition of a host.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ConditionView {
    /// Who says so.
    #[schema(example = "kubernetes:prod")]
    pub source: String,
    #[schema(example = "KernelDeadlock")]
    pub name: String,
    /// True, False or Unknown
    #[schema(example = "True")]
    pub status: &'static str,
    /// Since when that is known.
    pub since: DateTime<Utc>,
    pub reason: String,
    /// What is done about it, as the segment says: report, spare, hold_scheduling or fence; null: nothing, or not yet.
    #[schema(example = "hold_scheduling")]
    pub action: Option<&'static str>,
}

/// Something that a fence has taken from a host, or may have taken.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AppliedView {
    #[schema(example = "storage.fence")]
    pub kind: &'static str,
    /// The method; for `workloads.mark-down` the platform, as in nova:paris
    pub method: String,
    /// Whether it was read back after the last command. `false`: it was commanded, and may have been carried out or not. A rejoin gives
    /// it back either way. Absent for `workloads.mark-down`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confirmed: Option<bool>,
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

impl From<(OperationId, OperationKind, OperationStatus)> for LiveOperation {
    fn from((id, kind, status): (OperationId, OperationKind, OperationStatus)) -> Self {
        Self {
            id: id.0,
            kind: kind.as_str(),
            status: status.as_str(),
        }
    }
}

impl From<&Proof> for ProofView {
    fn from(proof: &Proof) -> Self {
        Self {
            kind: proof.kind.as_str(),
            source: proof.source.clone(),
            observed_at: proof.observed_at,
            operation_id: proof.operation_id.0,
            detail: proof.detail.clone(),
            ended: proof.ended.as_ref().map(EndedView::from),
        }
    }
}

impl From<&AppliedFencing> for AppliedView {
    fn from(applied: &AppliedFencing) -> Self {
        Self {
            kind: applied.kind.as_str(),
            method: applied.method.name.clone(),
            confirmed: Some(applied.is_shown),
        }
    }
}

impl From<&Ended> for EndedView {
    fn from(ended: &Ended) -> Self {
        Self {
            by: ended.undoing.to_string(),
            at: ended.at,
        }
    }
}

impl From<(&str, &Source)> for SourceView {
    fn from((name, source): (&str, &Source)) -> Self {
        Self {
            name: name.to_owned(),
            state: source.state,
            observed_at: source.observed_at,
            alive_at: source.alive_at,
            boot_id: boot_id(source.boots.latest()),
        }
    }
}

impl From<(&str, &str, &Condition)> for ConditionView {
    fn from((source, name, condition): (&str, &str, &Condition)) -> Self {
        Self {
            source: source.to_owned(),
            name: name.to_owned(),
            status: condition.status.as_str(),
            since: condition.since,
            reason: condition.reason.clone(),
            action: condition.action.map(ConditionAction::as_str),
        }
    }
}

fn boot_id(seen: Option<&SeenBoot>) -> Option<String> {
    seen?.boot.id.clone()
}

impl From<HostRow> for HostView {
    fn from(row: HostRow) -> Self {
        let host = row.host;
        let fence = host.fence.as_ref();
        let proofs = fence.into_iter().flat_map(|fence| &fence.proofs);
        let ended = fence.filter(|fence| !fence.holds()).and_then(Fence::ended);
        let marked_down = host.applied.marked_down_by.map(|_| AppliedView {
            kind: StepKind::MarkDown.as_str(),
            method: host.backend.label(host.cloud.as_deref().unwrap_or_default()),
            confirmed: None,
        });
        let applied = host
            .applied
            .fencing
            .iter()
            .map(AppliedView::from)
            .chain(marked_down);
        Self {
            id: host.id.0,
            segment: row.segment,
            backend: host.backend,
            failure_state: host.failure_state,
            failure_observed_at: host.failure_observed_at,
            failure_since: host.failure_since,
            boot_id: boot_id(host.sources.latest_boot()),
            sources: host.sources.iter().map(SourceView::from).collect(),
            conditions: host.conditions.iter().map(ConditionView::from).collect(),
            suspension: host.suspension.clone().map(SuspensionView::from),
            quarantined_at: host.flapping.quarantined_at,
            alarms: host.alarms.standing.iter().map(AlarmView::from).collect(),
            kdump: host.kdump.as_ref().map(KdumpView::from),
            fencing_state: host.fencing_state(),
            generation: host.generation.0,
            fenced_at: fence.map(|fence| fence.at),
            needs_boot: fence.is_some() && host.old_boot(None).is_some(),
            proof_ended: ended.map(EndedView::from),
            proofs: proofs.map(ProofView::from).collect(),
            applied_fencing: applied.collect(),
            cloud: host.cloud,
            known_as: host.known_as,
            host_type: host.host_type,
            zone: host.zone,
            labels: host.labels,
            parameters: host.parameters,
            failure_source: host.failure_source,
            operation: row.operation.map(LiveOperation::from),
            name: host.name,
            warnings: Vec::new(),
            created_at: host.created_at,
            updated_at: host.updated_at,
        }
    }
}

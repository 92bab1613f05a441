//! Operations.

use chrono::{DateTime, Utc};
use ringfence_core::{Attempt, AttemptBy, AttemptStatus, Observation, Operation, Outcome, Task, TaskStatus};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::host::ProofView;
use super::safeguard::HeldView;

/// One fence, rejoin or evacuation of one host.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct OperationView {
    pub id: Uuid,
    pub host_id: Uuid,
    /// The host's name; absent if the host has been removed.
    pub host: Option<String>,
    /// fence, rejoin or evacuation
    #[schema(example = "fence")]
    pub kind: &'static str,
    /// running, held, needs_operator, succeeded or cancelled
    #[schema(example = "running")]
    pub status: &'static str,
    /// What it waits for while it runs, else why it stands there.
    pub detail: String,
    pub generation: u32,
    pub reason: String,
    pub requested_by: String,
    /// The plan that it was begun with.
    pub plan: Option<String>,
    /// Whether it waits because too much has failed at once: retry it, or cancel it.
    pub is_held_by_brake: bool,
    /// The safeguards that hold it, where they do: a fence that was not asked for, or what stands still; they are looked at again by themselves.
    pub held: Option<HeldView>,
    /// How often it was started again.
    pub round: u32,
    /// When it starts again by itself.
    pub restart_at: Option<DateTime<Utc>>,
    pub proofs: Vec<ProofView>,
    pub stages: Vec<StageView>,
    /// Counts the changes, as in its entity tag.
    pub revision: u64,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
    pub finished_at: Option<DateTime<Utc>>,
}

/// Tasks that run in parallel.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct StageView {
    pub delay_s: u32,
    pub started_at: Option<DateTime<Utc>>,
    pub tasks: Vec<TaskView>,
}

/// One task.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TaskView {
    #[schema(example = "power.off")]
    pub kind: &'static str,
    /// pending, running, confirmed, failed, skipped or cancelled
    #[schema(value_type = String, example = "confirmed")]
    pub status: TaskStatus,
    /// The name of the workload that it is about, where it is about one.
    pub workload: Option<String>,
    pub detail: Option<String>,
    /// The ways to do it, by level: names of methods. Empty for a workload step, which the host's platform carries out.
    pub levels: Vec<Vec<String>>,
    pub attempts: Vec<AttemptView>,
}

/// One try.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AttemptView {
    /// Counts from 1 within the operation.
    pub number: u32,
    /// The level that it belongs to, from 1; null for a workload step
    pub level: Option<usize>,
    /// The method; for a workload step the platform, as in nova:paris
    pub method: String,
    /// What speaks to the device; for a workload step the backend
    #[schema(example = "ipmi")]
    pub driver: String,
    pub worker: Option<String>,
    /// dispatched, claimed, ended or cancelled
    #[schema(example = "ended")]
    pub status: &'static str,
    /// confirmed, refused or unknown, once it has ended
    pub outcome: Option<&'static str>,
    pub observation: Option<ObservationView>,
    pub detail: Option<String>,
    pub started_at: DateTime<Utc>,
    pub claimed_at: Option<DateTime<Utc>>,
    pub ended_at: Option<DateTime<Utc>>,
}

/// What was read back.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ObservationView {
    #[schema(example = "off")]
    pub state: &'static str,
    pub detail: String,
    /// By the worker's clock.
    pub observed_at: DateTime<Utc>,
    /// false where it is known to be no proof, whatever it shows; absent otherwise
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proves: Option<bool>,
}

impl From<&Observation> for ObservationView {
    fn from(observation: &Observation) -> Self {
        Self {
            state: observation.state.as_str(),
            detail: observation.detail.clone(),
            observed_at: observation.observed_at,
            proves: (!observation.proves).then_some(false),
        }
    }
}

impl From<&Attempt> for AttemptView {
    fn from(attempt: &Attempt) -> Self {
        let status = match attempt.state {
            AttemptStatus::Dispatched { .. } => "dispatched",
            AttemptStatus::Claimed { .. } => "claimed",
            AttemptStatus::Ended { .. } => "ended",
            AttemptStatus::Cancelled { .. } => "cancelled",
        };
        Self {
            number: attempt.number,
            level: match attempt.by {
                AttemptBy::Method { level, .. } => Some(level + 1),
                AttemptBy::Platform { .. } => None,
            },
            method: attempt.by.name(),
            driver: attempt.by.driver().to_owned(),
            worker: attempt.worker.clone(),
            status,
            outcome: attempt.outcome().map(Outcome::as_str),
            observation: attempt.observation.as_ref().map(ObservationView::from),
            detail: attempt.detail.clone(),
            started_at: attempt.started_at,
            claimed_at: attempt.claimed_at,
            ended_at: attempt.ended_at(),
        }
    }
}

impl From<&Task> for TaskView {
    fn from(task: &Task) -> Self {
        let names =
            |level: &Vec<ringfence_core::FrozenMethod>| level.iter().map(|m| m.name.clone()).collect();
        Self {
            kind: task.kind().as_str(),
            status: task.status,
            workload: task.workload().map(|workload| workload.name.clone()),
            detail: task.detail.clone(),
            levels: task.levels().iter().map(names).collect(),
            attempts: task.attempts.iter().map(AttemptView::from).collect(),
        }
    }
}

impl OperationView {
    /// The operation of the host with this name.
    pub fn new(operation: &Operation, host: Option<String>) -> Self {
        let stages = operation.stages.iter().map(|stage| StageView {
            delay_s: stage.delay_s,
            started_at: stage.started_at,
            tasks: stage.tasks.iter().map(TaskView::from).collect(),
        });
        Self {
            id: operation.id.0,
            host_id: operation.host_id.0,
            host,
            kind: operation.kind().as_str(),
            status: operation.status.as_str(),
            detail: operation.told(),
            generation: operation.generation.0,
            reason: operation.reason.clone(),
            requested_by: operation.requested_by.clone(),
            plan: operation.fence().and_then(|fence| fence.plan.clone()),
            is_held_by_brake: operation.is_held_by_brake(),
            held: operation.held().map(HeldView::from),
            round: operation.round,
            restart_at: operation.restart_at,
            proofs: operation.proofs.iter().map(ProofView::from).collect(),
            stages: stages.collect(),
            revision: operation.revision,
            created_at: operation.created_at,
            updated_at: operation.updated_at,
            finished_at: operation.finished_at,
        }
    }
}

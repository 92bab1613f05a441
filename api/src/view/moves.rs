//! What became of one workload.

use chrono::{DateTime, Utc};
use ringfence_core::{Task, TaskStatus, WorkloadState};
use serde::Serialize;
use utoipa::ToSchema;

/// One workload of an evacuation.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MoveView {
    /// Its id in its backend.
    #[schema(example = "7f5d8a52-6a0e-4e5e-9c1e-1d1c4b5c0a11")]
    pub id: String,
    /// Its name.
    pub name: String,
    /// What makes another in its place: the controller of a pod, as kind/name; null where it has none, and for servers of Nova.
    #[schema(example = "StatefulSet/db")]
    pub owner: Option<String>,
    /// How it stood before: running, stopped, failed or held (paused, suspended, being resized).
    #[schema(example = "running")]
    pub state: &'static str,
    /// pending, running, confirmed (it was seen elsewhere, or is no more), failed, skipped or cancelled
    #[schema(value_type = String, example = "confirmed")]
    pub status: TaskStatus,
    /// The host that it was on, as its backend calls it; absent if the host has been removed.
    pub from: Option<String>,
    /// The host that has it now, as its backend calls it. Of a pod, the node of the next pod with its name; null where its controller
    /// gives the next pod another name, and where no node had it when this one was gone.
    pub to: Option<String>,
    /// How it stood there when it had arrived, as state; null before that.
    #[schema(example = "running")]
    pub state_after: Option<&'static str>,
    /// The id under which the backend's log has the request.
    pub request_id: Option<String>,
    /// Why it was left or could not be moved; while it is not over, why the last try has not moved it.
    pub detail: Option<String>,
    /// How often a worker has tried.
    pub attempts: usize,
    /// When a worker first began.
    pub started_at: Option<DateTime<Utc>>,
    /// When it was over.
    pub ended_at: Option<DateTime<Utc>>,
}

impl MoveView {
    /// `None` for a task that is about no workload.
    pub fn of(task: &Task, from: Option<&str>) -> Option<Self> {
        let workload = task.workload()?;
        let moved = task.moved();
        let claimed = || task.attempts.iter().filter_map(|attempt| attempt.claimed_at);
        let last = task.attempts.last().and_then(ringfence_core::Attempt::ended_at);
        let tried = || {
            task.attempts
                .iter()
                .rev()
                .find_map(|attempt| attempt.detail.clone())
        };
        let goes_on = !task.status.is_over();
        Some(Self {
            id: workload.id.clone(),
            name: workload.name.clone(),
            owner: workload.owner.clone(),
            state: workload.state.as_str(),
            status: task.status,
            from: from.map(str::to_owned),
            to: moved.and_then(|moved| moved.to.clone()),
            state_after: moved
                .and_then(|moved| moved.state_after)
                .map(WorkloadState::as_str),
            request_id: moved.and_then(|moved| moved.request_id.clone()),
            detail: task.detail.clone().or_else(|| goes_on.then(tried).flatten()),
            attempts: claimed().count(),
            started_at: claimed().min(),
            ended_at: last.filter(|_| task.status.is_over()),
        })
    }
}

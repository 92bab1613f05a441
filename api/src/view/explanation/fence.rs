//! What a fence would do.

use chrono::{DateTime, Utc};
use ringfence_core::{Explanation, LastFence, Operation, Reply, StepKind, TaskKind};
use ringfence_engine::{DryRun, EngineError};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::plan::{LastTimeView, ResolvedPlanView};
use crate::view::safeguard::RulingView;

use super::sets::{SetProspectView, StormBrakeView};
use crate::error::engine_head;
use crate::view::gates::GatesView;

/// What a fence would do now.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FencePreviewView {
    pub verdict: VerdictView,
    /// The operation that would make way.
    pub supersedes: Option<SupersededView>,
    /// What workers would be told at once.
    pub begins_with: Vec<BeginningView>,
    /// The plan that applies to the host, filled in for it; null if there is none. A fence that is under way keeps the plan that it began with.
    pub plan: Option<ResolvedPlanView>,
    /// What is done once the host is FENCED: its platform is told; null if it has none.
    pub after_fenced: Option<PlatformStepView>,
    /// The sufficient sets, each with what keeps it from being completed.
    pub sufficient_sets: Vec<SetProspectView>,
    pub storm_brake: StormBrakeView,
    /// What every safeguard of the segment would say of an automatic fence, if the host were silent.
    pub safeguards: Vec<RulingView>,
    /// The gates after the request.
    pub gates_after: GatesView,
    /// The gates once the host is FENCED by it, as it is seen now; null if no fence would be begun or joined.
    pub gates_once_fenced: Option<GatesView>,
    /// How long the last fence of the host that was proven took; null if none is on record.
    pub last_fence: Option<LastFenceView>,
}

/// What the request would be answered.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct VerdictView {
    /// started: a fence would begin; joined: one is under way; already_fenced: there is nothing to do; refused
    #[schema(example = "started")]
    pub outcome: &'static str,
    /// The HTTP status.
    #[schema(example = 202)]
    pub status: u16,
    /// The code of the refusal.
    #[schema(example = "fencing.host.up")]
    pub code: Option<String>,
    /// The title of the refusal.
    pub title: Option<String>,
    /// In words.
    pub detail: String,
    /// The operation that would be joined.
    pub operation_id: Option<Uuid>,
}

/// An operation that would make way for the fence.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SupersededView {
    pub id: Uuid,
    #[schema(example = "rejoin")]
    pub kind: &'static str,
}

/// A task that a worker would be told at once.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BeginningView {
    #[schema(example = "power.off")]
    pub kind: &'static str,
    /// The method, or the platform.
    pub by: String,
}

/// What is asked of the host's platform.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PlatformStepView {
    #[schema(example = "workloads.mark-down")]
    pub kind: &'static str,
    /// The platform, as in nova:paris.
    pub platform: String,
    pub last_time: Option<LastTimeView>,
}

/// How long a fence took.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LastFenceView {
    pub operation_id: Uuid,
    pub began_at: DateTime<Utc>,
    /// Milliseconds until a sufficient set was proven and had settled.
    pub proven_after_ms: u64,
    /// Milliseconds until the operation was over; null if it is not.
    pub took_ms: Option<u64>,
}

impl FencePreviewView {
    pub fn new(run: &DryRun, explanation: &Explanation<'_>) -> Self {
        let fence = &explanation.fence;
        let kind = TaskKind::Step(StepKind::MarkDown);
        let host_id = run.state.host.id;
        let last_time = run.past.of(kind, None);
        // A request that is bound to another revision is refused, whatever the rules say to it.
        let is_done = run.verdict.is_ok();
        let superseded = fence.superseded.as_ref().filter(|_| is_done);
        let gates_after = if is_done {
            &fence.gates_after
        } else {
            &explanation.gates
        };
        let gates_once_fenced = fence.gates_once_fenced.clone().filter(|_| is_done);
        let begins_with = fence.begins_with.iter().filter(|_| is_done);
        let begins_with = begins_with.map(|(kind, by)| BeginningView {
            kind: kind.as_str(),
            by: by.clone(),
        });
        Self {
            verdict: VerdictView::new(&run.verdict),
            supersedes: superseded.map(SupersededView::from),
            begins_with: begins_with.collect(),
            plan: run
                .facts
                .plan
                .as_ref()
                .map(|plan| ResolvedPlanView::new(plan, run)),
            after_fenced: explanation.platform.as_ref().map(|platform| PlatformStepView {
                kind: kind.as_str(),
                platform: platform.label(),
                last_time: last_time.map(|time| LastTimeView::new(time, host_id)),
            }),
            sufficient_sets: explanation.sets.iter().map(SetProspectView::from).collect(),
            storm_brake: StormBrakeView::from(&explanation.brake),
            safeguards: explanation.safeguards.iter().map(RulingView::from).collect(),
            gates_after: gates_after.clone().into(),
            gates_once_fenced: gates_once_fenced.map(GatesView::from),
            last_fence: run.past.fence.as_ref().map(LastFenceView::from),
        }
    }
}

impl VerdictView {
    fn new(verdict: &Result<Reply, EngineError>) -> Self {
        let (outcome, status, detail, operation_id) = match verdict {
            Ok(Reply::Started(_)) => ("started", 202, "a fence would begin", None),
            Ok(Reply::Joined(id)) => ("joined", 202, "a fence of the host is under way", Some(id.0)),
            Ok(Reply::Done | Reply::AlreadySo | Reply::Granted { .. } | Reply::Ignored(_)) => {
                ("already_fenced", 200, "the host is FENCED already", None)
            }
            Err(error) => return Self::refused(error),
        };
        Self {
            outcome,
            status,
            code: None,
            title: None,
            detail: detail.to_owned(),
            operation_id,
        }
    }

    fn refused(error: &EngineError) -> Self {
        let (status, code, title) = engine_head(error);
        Self {
            outcome: "refused",
            status: status.as_u16(),
            code: Some(code),
            title: Some(title.to_owned()),
            detail: error.to_string(),
            operation_id: None,
        }
    }
}

impl From<&Operation> for SupersededView {
    fn from(operation: &Operation) -> Self {
        Self {
            id: operation.id.0,
            kind: operation.kind().as_str(),
        }
    }
}

impl From<&LastFence> for LastFenceView {
    fn from(fence: &LastFence) -> Self {
        Self {
            operation_id: fence.operation_id.0,
            began_at: fence.began_at,
            proven_after_ms: fence.proven_after_ms,
            took_ms: fence.took_ms,
        }
    }
}

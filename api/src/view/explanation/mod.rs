//! Why a host is in its state, and what a fence would do.

mod fence;
mod plan;
mod sets;

use chrono::{DateTime, Utc};
use ringfence_core::{FailureState, OperationStatus, Seen};
use ringfence_db::HostRow;
use ringfence_engine::DryRun;
use serde::Serialize;
use utoipa::ToSchema;

use self::fence::FencePreviewView;
use super::gates::GatesView;
use super::host::HostView;

/// Why a host is in its state, and what a fence would do now. Nothing was changed.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ExplanationView {
    /// The host as it is, with what each source saw, its proofs and what ended them.
    pub host: HostView,
    /// The verdict over the reports of all sources, and why.
    pub seen: SeenView,
    /// Since when the host's cloud or cluster has not named it, which proves nothing; null if it does, or the host has none.
    pub left_at: Option<DateTime<Utc>>,
    /// The gates now.
    pub gates: GatesView,
    /// What the live operation waits for, or why it stands where it does; null if no operation holds the host.
    pub waits_for: Option<String>,
    /// What a fence would do now.
    pub fence: FencePreviewView,
}

/// The verdict over the reports of all sources.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SeenView {
    #[schema(value_type = String, example = "UNREACHABLE")]
    pub failure_state: FailureState,
    /// The source that it rests on.
    pub source: Option<String>,
    /// Which rule says so.
    pub because: String,
    /// When time alone changes it, if it does.
    pub until: Option<DateTime<Utc>>,
}

impl From<Seen<'_>> for SeenView {
    fn from(seen: Seen<'_>) -> Self {
        Self {
            failure_state: seen.state,
            source: seen.source.map(ToOwned::to_owned),
            because: seen.because.to_string(),
            until: seen.until,
        }
    }
}

impl ExplanationView {
    /// For a host of the segment with this name.
    pub fn new(run: DryRun, segment: String) -> Self {
        let explanation = run.explanation();
        let live = run.state.operation.as_ref();
        let live = live.filter(|operation| OperationStatus::is_live(operation.status));
        let row = HostRow {
            host: run.state.host.clone(),
            segment,
            operation: live.map(|live| (live.id, live.kind(), live.status)),
        };
        Self {
            host: row.into(),
            seen: explanation.seen.into(),
            left_at: run.left_at,
            gates: explanation.gates.clone().into(),
            waits_for: explanation.waits_for.clone(),
            fence: FencePreviewView::new(&run, &explanation),
        }
    }
}

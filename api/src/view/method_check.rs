//! What methods' devices last answered.

use chrono::{DateTime, Utc};
use ringfence_core::Timestamp;
use ringfence_db::{CheckSummary, MethodCheckRow};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

/// The last answers for a method, in short.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ChecksView {
    /// The worst of the last answers: confirmed, unknown, worker_missing or refused; null before the first.
    #[schema(example = "confirmed")]
    pub outcome: Option<&'static str>,
    /// How often it is asked: once per host whose plan uses it (for cinder and neutron per cloud), or once without a host if no plan does.
    pub targets: u64,
    /// How many have answered, well or not.
    pub answered: u64,
    /// How many were last not answered well.
    pub failing: u64,
    /// Since when one of these was not.
    pub failing_since: Option<DateTime<Utc>>,
    /// When the latest answer came.
    pub last_checked_at: Option<DateTime<Utc>>,
    /// How old the oldest of the last answers is, in seconds.
    pub age_s: Option<u64>,
}

impl ChecksView {
    pub fn new(summary: &CheckSummary, now: Timestamp) -> Self {
        Self {
            outcome: summary.worst.map(|outcome| outcome.as_str()),
            targets: summary.targets,
            answered: summary.answered,
            failing: summary.failing,
            failing_since: summary.failing_since,
            last_checked_at: summary.last_at,
            age_s: summary.oldest_at.map(|at| age_s(at, now)),
        }
    }
}

/// The last answer for a method and one host.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MethodCheckView {
    pub id: Uuid,
    /// null if nothing of the question comes from the host.
    pub host: Option<String>,
    pub host_id: Option<Uuid>,
    /// confirmed: it showed its state; unknown: no answer, or none that can be trusted; worker_missing: no worker serves its resource
    /// and zone; refused: a definite no. null before the first check.
    #[schema(example = "confirmed")]
    pub outcome: Option<&'static str>,
    /// What it showed.
    #[schema(example = "on")]
    pub state: Option<String>,
    pub detail: Option<String>,
    pub worker: Option<String>,
    /// Milliseconds that it took.
    pub took_ms: Option<u64>,
    pub checked_at: Option<DateTime<Utc>>,
    pub age_s: Option<u64>,
    pub failing_since: Option<DateTime<Utc>>,
    pub next_at: DateTime<Utc>,
}

impl MethodCheckView {
    pub fn new(row: MethodCheckRow, now: Timestamp) -> Self {
        let (host_id, host) = row.host.unzip();
        let (checked_at, answer) = row.last.unzip();
        let outcome = answer.as_ref().map(|answer| answer.outcome.as_str());
        let answer = answer.map(|a| (a.state, a.detail, a.worker, a.took_ms));
        let (state, detail, worker, took_ms) = answer.unwrap_or_default();
        Self {
            id: row.id,
            host,
            host_id: host_id.map(|id| id.0),
            outcome,
            state,
            detail,
            worker,
            took_ms,
            checked_at,
            age_s: checked_at.map(|at| age_s(at, now)),
            failing_since: row.failing_since,
            next_at: row.next_at,
        }
    }
}

/// Whole seconds since then.
pub(crate) fn age_s(at: Timestamp, now: Timestamp) -> u64 {
    u64::try_from((now - at).num_seconds()).unwrap_or(0)
}

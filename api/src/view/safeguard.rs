//! What safeguards say of a fence that was not asked for.

use chrono::{DateTime, Utc};
use ringfence_core::{Held, Ruling};
use serde::Serialize;
use utoipa::ToSchema;

/// What one safeguard says.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RulingView {
    #[schema(example = "at_once")]
    pub safeguard: &'static str,
    /// allow, hold or unknown; unknown holds
    #[schema(example = "hold")]
    pub verdict: &'static str,
    pub reason: String,
    /// What would end the wait; null where there is none.
    pub release: Option<String>,
}

/// What holds an automatic fence.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct HeldView {
    pub since: DateTime<Utc>,
    /// When the safeguards were looked at last.
    pub looked_at: DateTime<Utc>,
    /// The safeguards that hold it.
    pub by: Vec<RulingView>,
}

impl From<&Ruling> for RulingView {
    fn from(ruling: &Ruling) -> Self {
        Self {
            safeguard: ruling.safeguard.as_str(),
            verdict: ruling.verdict.as_str(),
            reason: ruling.reason.clone(),
            release: ruling.release.clone(),
        }
    }
}

impl From<&Held> for HeldView {
    fn from(held: &Held) -> Self {
        Self {
            since: held.since,
            looked_at: held.looked_at,
            by: held.by.iter().map(RulingView::from).collect(),
        }
    }
}

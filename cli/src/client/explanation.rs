//! The API's explanation of a host's state and its preview of a fence, as far as commands show them.

use std::collections::BTreeMap;

use ringfence_core::Timestamp;
use serde::Deserialize;

use super::view::{Gates, Host, Scope};

/// Why a host is in its state, and what a fence would do.
#[derive(Clone, Debug, Deserialize)]
pub struct Explanation {
    pub host: Host,
    pub seen: Seen,
    pub left_at: Option<Timestamp>,
    pub gates: Gates,
    pub waits_for: Option<String>,
    pub fence: FencePreview,
}

/// The verdict over the reports of all sources.
#[derive(Clone, Debug, Deserialize)]
pub struct Seen {
    pub failure_state: String,
    pub source: Option<String>,
    pub because: String,
}

/// What a fence would do.
#[derive(Clone, Debug, Deserialize)]
pub struct FencePreview {
    pub verdict: Verdict,
    pub supersedes: Option<Superseded>,
    #[serde(default)]
    pub begins_with: Vec<Beginning>,
    pub plan: Option<ResolvedPlan>,
    pub after_fenced: Option<PlatformStep>,
    #[serde(default)]
    pub sufficient_sets: Vec<SetProspect>,
    pub storm_brake: StormBrake,
    #[serde(default)]
    pub safeguards: Vec<Ruling>,
    pub gates_once_fenced: Option<Gates>,
    pub last_fence: Option<LastFence>,
}

/// The answer that the request would get.
#[derive(Clone, Debug, Deserialize)]
pub struct Verdict {
    pub outcome: String,
    pub status: u16,
    pub code: Option<String>,
    pub detail: String,
    pub operation_id: Option<String>,
}

impl Verdict {
    /// Whether the fence would be refused.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        self.outcome == "refused"
    }
}

/// An operation that the fence would cancel.
#[derive(Clone, Debug, Deserialize)]
pub struct Superseded {
    pub id: String,
    pub kind: String,
}

/// A task that would be sent to a worker at once.
#[derive(Clone, Debug, Deserialize)]
pub struct Beginning {
    pub kind: String,
    pub by: String,
}

/// A step that the host's platform would be asked for.
#[derive(Clone, Debug, Deserialize)]
pub struct PlatformStep {
    pub kind: String,
    pub platform: String,
    pub last_time: Option<LastTime>,
}

/// The plan, with the host's values.
#[derive(Clone, Debug, Deserialize)]
pub struct ResolvedPlan {
    pub name: String,
    pub scope: Scope,
    #[serde(default)]
    pub stages: Vec<ResolvedStage>,
}

/// Tasks that run in parallel.
#[derive(Clone, Debug, Deserialize)]
pub struct ResolvedStage {
    #[serde(default)]
    pub delay_s: u32,
    #[serde(default)]
    pub tasks: Vec<ResolvedTask>,
}

/// One task.
#[derive(Clone, Debug, Deserialize)]
pub struct ResolvedTask {
    pub kind: String,
    #[serde(default)]
    pub levels: Vec<ResolvedLevel>,
}

/// Methods of one level, which are used together.
#[derive(Clone, Debug, Deserialize)]
pub struct ResolvedLevel {
    pub level: u32,
    #[serde(default)]
    pub methods: Vec<ResolvedMethod>,
}

/// A method, with the host's values.
#[derive(Clone, Debug, Deserialize)]
pub struct ResolvedMethod {
    pub name: String,
    pub driver: Option<String>,
    #[serde(default)]
    pub parameters: BTreeMap<String, String>,
    #[serde(default)]
    pub hindrances: Vec<String>,
    pub last_check: Option<LastCheck>,
    pub last_time: Option<LastTime>,
}

/// The last answer of a device.
#[derive(Clone, Debug, Deserialize)]
pub struct LastCheck {
    pub outcome: String,
    pub state: Option<String>,
    pub age_s: u64,
}

/// How long a task took the last time.
#[derive(Clone, Debug, Deserialize)]
pub struct LastTime {
    pub outcome: String,
    #[serde(default)]
    pub waited_ms: u64,
    pub took_ms: u64,
    #[serde(default)]
    pub is_of_another_host: bool,
}

/// A sufficient set, and whether it can be completed now.
#[derive(Clone, Debug, Deserialize)]
pub struct SetProspect {
    pub proofs: Vec<ProofProspect>,
    pub can_be_completed: bool,
    #[serde(default)]
    pub needs_person: bool,
}

/// A proof of a sufficient set.
#[derive(Clone, Debug, Deserialize)]
pub struct ProofProspect {
    pub kind: String,
    #[serde(default)]
    pub hindrances: Vec<String>,
    pub due_at: Option<Timestamp>,
}

/// Whether the storm brake would hold an automatic fence.
#[derive(Clone, Debug, Deserialize)]
pub struct StormBrake {
    pub is_automatic: bool,
    pub reason: Option<String>,
    pub hosts: u64,
    pub out_of_service: u64,
    pub lately: u64,
    pub at_most: u32,
    pub within_s: u32,
    pub at_most_percent: u32,
}

/// What a safeguard says of an automatic fence.
#[derive(Clone, Debug, Deserialize)]
pub struct Ruling {
    pub safeguard: String,
    pub verdict: String,
    pub reason: String,
    pub release: Option<String>,
}

/// How long the last fence took.
#[derive(Clone, Debug, Deserialize)]
pub struct LastFence {
    pub operation_id: String,
    pub began_at: Timestamp,
    pub proven_after_ms: u64,
    pub took_ms: Option<u64>,
}

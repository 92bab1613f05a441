//! Which workloads of a FENCED host are started elsewhere, in which order, and how.

use serde::{Deserialize, Serialize};

use crate::{MoveLimits, Problems, Workload, WorkloadState, validate_name};

/// The most spare hosts that a segment can name.
const MAX_SPARES: usize = 32;
/// The longest key of metadata, in characters, as in Nova.
const MAX_KEY_CHARS: usize = 255;

/// Whom an evacuation takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wanted {
    /// All but those whose metadata says no.
    #[default]
    All,
    /// Only those whose metadata says yes.
    OptedIn,
}

/// What a segment says of evacuations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EvacuationPolicy {
    /// Whether a host is evacuated as soon as it is FENCED, without being asked.
    pub automatic: bool,
    /// Whom it takes.
    pub workloads: Wanted,
    /// The key of a workload's metadata that says whether it is to be moved: `true` or `false`.
    pub metadata_key: String,
    /// The key of a workload's metadata that says when: whole numbers, the highest first; without one, 0.
    pub priority_key: String,
    /// Workloads of one host that are moved at one time, 1 to 64.
    pub at_once: u32,
    /// Workloads of one host whose move is begun within a second, 0 to 64; 0: as many as `at_once` allows.
    #[serde(skip_serializing_if = "is_unlimited")]
    pub per_second: u32,
    /// Moves of all hosts of the segment; with it the workloads of the highest priority come first, whichever host they are on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_segment: Option<MoveLimits>,
    /// Moves of all hosts of a host's platform, beside which one of this segment's hosts may begin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_platform: Option<MoveLimits>,
    /// Seconds that one workload may take, 10 to 900.
    pub timeout_s: u32,
    /// How often a move that failed is tried again, 0 to 10.
    pub retries: u32,
    /// Whether those that their owners have stopped are moved too. They stay stopped.
    pub stopped: bool,
    /// Whether those that the backend has given up are moved too.
    pub failed: bool,
    /// Whether those that the backend does not move as they are (paused, suspended, being resized) are made ready for it.
    pub held: bool,
    /// Whether a workload goes only when the disruption budgets that the backend has allow that.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub disruption_budgets: bool,
    /// Hosts, as the backend calls them, that are opened to workloads one after the other when there is no room for one.
    pub spare_hosts: Vec<String>,
}

impl Default for EvacuationPolicy {
    fn default() -> Self {
        Self {
            automatic: false,
            workloads: Wanted::All,
            metadata_key: "HA_Enabled".to_owned(),
            priority_key: "evacuation_priority".to_owned(),
            at_once: 16,
            per_second: 0,
            in_segment: None,
            on_platform: None,
            timeout_s: 300,
            retries: 2,
            stopped: true,
            failed: true,
            held: true,
            disruption_budgets: false,
            spare_hosts: Vec::new(),
        }
    }
}

impl EvacuationPolicy {
    /// Why a workload stays; `None` if it is moved.
    #[must_use]
    pub fn leaves(&self, workload: &Workload) -> Option<String> {
        let says = workload.metadata.get(&self.metadata_key).map(String::as_str);
        match (self.workloads, says.and_then(yes_or_no)) {
            (Wanted::All, Some(false)) => {
                return Some(format!("its metadata {} says no", self.metadata_key));
            }
            (Wanted::OptedIn, Some(false) | None) => {
                return Some(format!("its metadata {} does not say yes", self.metadata_key));
            }
            (Wanted::All, Some(true) | None) | (Wanted::OptedIn, Some(true)) => {}
        }
        let is_taken = match workload.state {
            WorkloadState::Running => true,
            WorkloadState::Stopped => self.stopped,
            WorkloadState::Failed => self.failed,
            WorkloadState::Held => self.held,
        };
        (!is_taken).then(|| format!("it is {}, and the segment leaves those", workload.state))
    }

    /// Whether each workload goes by a decision of its own: the backend must not let go of all of them by itself.
    #[must_use]
    pub fn moves_one_by_one(&self) -> bool {
        self.disruption_budgets
    }

    /// Whether the backend may let go of all workloads of a host together.
    #[must_use]
    pub fn lets_go_together(&self) -> bool {
        !self.moves_one_by_one() && !self.has_turns()
    }

    /// When a workload's turn comes: the highest first.
    #[must_use]
    pub fn priority(&self, workload: &Workload) -> i64 {
        let value = workload.metadata.get(&self.priority_key);
        value.and_then(|value| value.trim().parse().ok()).unwrap_or(0)
    }

    /// Whether the moves of a host wait until it is their turn among those of other hosts.
    #[must_use]
    pub fn has_turns(&self) -> bool {
        self.in_segment.or(self.on_platform).is_some()
    }

    pub(crate) fn check(&self, problems: &mut Problems) {
        let mut range = |field: &str, value: u32, min: u32, max: u32| {
            if !(min..=max).contains(&value) {
                problems.add(
                    format!("policy.evacuation.{field}"),
                    format!("is {value}; {min} to {max} is allowed"),
                );
            }
        };
        range("at_once", self.at_once, 1, 64);
        range("per_second", self.per_second, 0, 64);
        range("timeout_s", self.timeout_s, 10, 900);
        range("retries", self.retries, 0, 10);
        for (field, key) in [
            ("metadata_key", &self.metadata_key),
            ("priority_key", &self.priority_key),
        ] {
            check_key(field, key, problems);
        }
        for (field, limits) in [("in_segment", self.in_segment), ("on_platform", self.on_platform)] {
            if let Some(limits) = limits {
                limits.check(&format!("policy.evacuation.{field}"), problems);
            }
        }
        self.check_spares(problems);
    }

    fn check_spares(&self, problems: &mut Problems) {
        let field = "policy.evacuation.spare_hosts";
        let count = self.spare_hosts.len();
        if count > MAX_SPARES {
            problems.add(
                field,
                format!("names {count} hosts; at most {MAX_SPARES} are allowed"),
            );
        }
        for (at, name) in self.spare_hosts.iter().enumerate() {
            if let Err(problem) = validate_name(&format!("{field}[{at}]"), name) {
                problems.0.push(problem);
            }
            if self.spare_hosts[..at].contains(name) {
                problems.add(
                    format!("{field}[{at}]"),
                    format!("is {name:?}, which is named already"),
                );
            }
        }
    }
}

fn check_key(field: &str, key: &str, problems: &mut Problems) {
    let chars = key.chars().count();
    if chars == 0 || chars > MAX_KEY_CHARS || key.chars().any(char::is_control) {
        problems.add(
            format!("policy.evacuation.{field}"),
            format!("is {key:?}; 1 to {MAX_KEY_CHARS} characters without control characters are allowed"),
        );
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants it so")]
fn is_unlimited(per_second: &u32) -> bool {
    *per_second == 0
}

/// As people write it in metadata.
fn yes_or_no(value: &str) -> Option<bool> {
    match value.trim().to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" | "1" => Some(true),
        "false" | "no" | "off" | "0" => Some(false),
        _ => None,
    }
}

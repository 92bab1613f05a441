//! Problems of hosts, and alarms.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use ringfence_core::{HostProblem, StandingAlarm};
use ringfence_db::{ProblemCounts, TroubledHost};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

/// How often each problem came.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CountsView {
    /// How often a host became UNREACHABLE.
    pub failed: u64,
    /// How often a host became FENCED.
    pub fenced: u64,
    /// How often a host was taken back.
    pub returned: u64,
    /// How often a rule of the segment came to act on a condition, by the condition's name; at most 100 names.
    pub conditions: BTreeMap<String, u64>,
}

impl From<ProblemCounts> for CountsView {
    fn from(counts: ProblemCounts) -> Self {
        Self {
            failed: counts.of(HostProblem::Failed),
            fenced: counts.of(HostProblem::Fenced),
            returned: counts.of(HostProblem::Returned),
            conditions: counts.by_condition,
        }
    }
}

/// An alarm that stands.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AlarmView {
    /// What comes too often: failed, fenced, returned or condition.
    #[schema(value_type = String, example = "fenced")]
    pub problem: HostProblem,
    /// The name of the condition that is counted; null: any, or another problem.
    pub condition: Option<String>,
    /// How often it has to come.
    pub times: u32,
    /// Seconds within which it has to.
    pub within_s: u32,
    /// Since when the alarm stands.
    pub since: DateTime<Utc>,
}

impl From<&StandingAlarm> for AlarmView {
    fn from(alarm: &StandingAlarm) -> Self {
        let StandingAlarm { rule, since } = alarm;
        Self {
            problem: rule.problem,
            condition: rule.condition.clone(),
            times: rule.times,
            within_s: rule.within_s,
            since: *since,
        }
    }
}

/// A host with its problems.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TroubledHostView {
    pub host_id: Uuid,
    /// The host's name.
    pub host: String,
    /// The name of the segment that it is in now.
    pub segment: String,
    /// What it is listed by: all problems that are no return, or those of the kind that was asked for.
    pub problems: u64,
    #[serde(flatten)]
    pub counts: CountsView,
    /// Since when it is in quarantine.
    pub quarantined_at: Option<DateTime<Utc>>,
    /// Since when an alarm of it stands.
    pub alarmed_at: Option<DateTime<Utc>>,
}

impl From<TroubledHost> for TroubledHostView {
    fn from(host: TroubledHost) -> Self {
        Self {
            host_id: host.id.0,
            host: host.name,
            segment: host.segment,
            problems: host.problems,
            counts: host.counts.into(),
            quarantined_at: host.quarantined_at,
            alarmed_at: host.alarmed_at,
        }
    }
}

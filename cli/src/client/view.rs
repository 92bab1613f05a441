//! The API's objects, as far as commands use them. A field that a decision depends on is required; the others may be absent.

use std::collections::BTreeMap;

use ringfence_core::{GroupRule, Timestamp};
use serde::Deserialize;
use serde_json::Value;
use uuid::Uuid;

/// A host.
#[derive(Clone, Debug, Deserialize)]
pub struct Host {
    pub id: String,
    pub name: String,
    #[serde(default)]
    pub segment: String,
    #[serde(default)]
    pub backend: String,
    pub cloud: Option<String>,
    pub known_as: Option<String>,
    #[serde(default, rename = "type")]
    pub host_type: Option<String>,
    #[serde(default)]
    pub zone: String,
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    #[serde(default)]
    pub parameters: BTreeMap<String, BTreeMap<String, String>>,
    pub failure_state: String,
    pub failure_source: Option<String>,
    pub failure_observed_at: Option<Timestamp>,
    pub failure_since: Option<Timestamp>,
    pub boot_id: Option<String>,
    #[serde(default)]
    pub sources: Vec<Source>,
    #[serde(default)]
    pub conditions: Vec<Condition>,
    pub suspension: Option<Suspension>,
    pub quarantined_at: Option<Timestamp>,
    #[serde(default)]
    pub alarms: Vec<Alarm>,
    pub kdump: Option<Kdump>,
    pub fencing_state: String,
    pub generation: u32,
    pub fenced_at: Option<Timestamp>,
    #[serde(default)]
    pub needs_boot: bool,
    pub proof_ended: Option<Ended>,
    #[serde(default)]
    pub proofs: Vec<Proof>,
    #[serde(default)]
    pub applied_fencing: Vec<AppliedFencing>,
    pub operation: Option<LiveOperation>,
    #[serde(default)]
    pub created_at: Timestamp,
}

impl Host {
    /// Whether the host has been proven to neither run nor write.
    #[must_use]
    pub fn is_fenced(&self) -> bool {
        self.fencing_state == "FENCED"
    }
}

/// A crash dump of a host.
#[derive(Clone, Debug, Deserialize)]
pub struct Kdump {
    pub since: Timestamp,
    pub last_message_at: Timestamp,
    pub is_over: bool,
}

/// A condition of a host.
#[derive(Clone, Debug, Deserialize)]
pub struct Condition {
    pub source: String,
    pub name: String,
    pub status: String,
    pub since: Timestamp,
    #[serde(default)]
    pub reason: String,
    pub action: Option<String>,
}

/// What one source saw of a host.
#[derive(Clone, Debug, Deserialize)]
pub struct Source {
    pub name: String,
    pub state: String,
    pub observed_at: Timestamp,
    pub alive_at: Option<Timestamp>,
}

/// A proof.
#[derive(Clone, Debug, Deserialize)]
pub struct Proof {
    pub kind: String,
    pub source: String,
    pub observed_at: Option<Timestamp>,
    pub operation_id: Option<Uuid>,
    #[serde(default)]
    pub detail: String,
    pub ended: Option<Ended>,
}

/// What ended a proof.
#[derive(Clone, Debug, Deserialize)]
pub struct Ended {
    pub by: String,
    pub at: Timestamp,
}

/// Applied fencing: what a fence has taken from a host, or may have taken.
#[derive(Clone, Debug, Deserialize)]
pub struct AppliedFencing {
    pub kind: String,
    pub method: String,
    pub confirmed: Option<bool>,
}

/// The live operation of a host.
#[derive(Clone, Debug, Deserialize)]
pub struct LiveOperation {
    pub id: String,
    pub kind: String,
    pub status: String,
}

/// One fence, rejoin or evacuation of one host.
#[derive(Clone, Debug, Deserialize)]
pub struct Operation {
    pub id: String,
    pub host_id: String,
    pub host: Option<String>,
    pub kind: String,
    pub status: String,
    #[serde(default)]
    pub detail: String,
    pub generation: u32,
    #[serde(default)]
    pub reason: String,
    #[serde(default)]
    pub requested_by: String,
    pub plan: Option<String>,
    #[serde(default)]
    pub is_held_by_brake: bool,
    #[serde(default)]
    pub round: u32,
    pub restart_at: Option<Timestamp>,
    #[serde(default)]
    pub proofs: Vec<Proof>,
    #[serde(default)]
    pub stages: Vec<Stage>,
    pub created_at: Option<Timestamp>,
    pub finished_at: Option<Timestamp>,
}

impl Operation {
    /// The host's name, or its id if the host is deleted.
    #[must_use]
    pub fn host_name(&self) -> &str {
        self.host.as_deref().unwrap_or(&self.host_id)
    }

    /// Whether nothing happens any more without a request.
    #[must_use]
    pub fn is_over(&self) -> bool {
        match self.status.as_str() {
            "running" | "held" => false,
            "needs_operator" => self.restart_at.is_none(),
            _ => true,
        }
    }

    /// All tasks, in their order.
    pub fn tasks(&self) -> impl Iterator<Item = &Task> {
        self.stages.iter().flat_map(|stage| &stage.tasks)
    }
}

/// Tasks that run in parallel.
#[derive(Clone, Debug, Deserialize)]
pub struct Stage {
    #[serde(default)]
    pub tasks: Vec<Task>,
}

/// One task.
#[derive(Clone, Debug, Deserialize)]
pub struct Task {
    pub kind: String,
    pub status: String,
    pub workload: Option<String>,
    pub detail: Option<String>,
    #[serde(default)]
    pub attempts: Vec<Attempt>,
}

/// One attempt.
#[derive(Clone, Debug, Deserialize)]
pub struct Attempt {
    pub number: u32,
    pub level: Option<u32>,
    pub method: String,
    #[serde(default)]
    pub driver: String,
    pub worker: Option<String>,
    pub status: String,
    pub outcome: Option<String>,
    pub observation: Option<Observation>,
    pub detail: Option<String>,
    pub started_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
}

/// What was read back.
#[derive(Clone, Debug, Deserialize)]
pub struct Observation {
    pub state: String,
    #[serde(default)]
    pub detail: String,
}

/// One change of one host.
#[derive(Clone, Debug, Deserialize)]
pub struct Event {
    pub sequence: u64,
    #[serde(rename = "type")]
    pub kind: String,
    pub host: Option<String>,
    pub generation: Option<u32>,
    pub occurred_at: Timestamp,
    #[serde(default)]
    pub data: Value,
}

/// A line of the audit trail.
#[derive(Clone, Debug, Deserialize)]
pub struct AuditEntry {
    pub at: Timestamp,
    pub actor: String,
    pub origin: Option<String>,
    pub request_id: Option<String>,
    pub action: String,
    pub target: Option<String>,
    #[serde(default)]
    pub detail: Value,
}

/// The gates: "may workloads be scheduled here?" and "may they be started elsewhere?".
#[derive(Clone, Debug, Deserialize)]
pub struct Gates {
    pub schedule: Gate,
    pub evacuate: Gate,
    pub generation: u32,
}

/// One gate.
#[derive(Clone, Debug, Deserialize)]
pub struct Gate {
    pub allowed: bool,
    #[serde(default)]
    pub reason: String,
}

/// A configured way to do a task.
#[derive(Clone, Debug, Deserialize)]
pub struct Method {
    pub id: String,
    pub name: String,
    pub resource: String,
    pub driver: String,
    #[serde(default)]
    pub parameters: BTreeMap<String, String>,
    #[serde(default)]
    pub secrets: BTreeMap<String, String>,
    pub zone: Option<String>,
    #[serde(default)]
    pub times: Value,
    pub checks: Option<Checks>,
}

/// The drivers that methods may name.
#[derive(Clone, Debug, Deserialize)]
pub struct DriverList {
    pub drivers: Vec<Driver>,
}

/// A driver.
#[derive(Clone, Debug, Deserialize)]
pub struct Driver {
    pub name: String,
    pub about: String,
    pub resources: Vec<String>,
    pub parameters: Vec<DriverParameter>,
    pub secrets: Vec<DriverSecret>,
    pub other_parameters: Option<String>,
}

/// A parameter of a driver.
#[derive(Clone, Debug, Deserialize)]
pub struct DriverParameter {
    pub name: String,
    pub about: String,
    pub required: bool,
    pub default: Option<String>,
    pub allowed: Option<String>,
}

/// A secret of a driver.
#[derive(Clone, Debug, Deserialize)]
pub struct DriverSecret {
    pub name: String,
    pub required: bool,
}

/// A summary of the last answers for a method.
#[derive(Clone, Debug, Deserialize)]
pub struct Checks {
    pub outcome: Option<String>,
    pub targets: u64,
    #[serde(default)]
    pub answered: u64,
    pub failing: u64,
    pub failing_since: Option<Timestamp>,
    pub age_s: Option<u64>,
}

/// The last answer for a method and one host.
#[derive(Clone, Debug, Deserialize)]
pub struct MethodCheck {
    pub host: Option<String>,
    pub outcome: Option<String>,
    pub state: Option<String>,
    pub detail: Option<String>,
    pub worker: Option<String>,
    pub took_ms: Option<u64>,
    pub age_s: Option<u64>,
    pub failing_since: Option<Timestamp>,
}

/// The answer to a check.
#[derive(Clone, Debug, Deserialize)]
pub struct Check {
    pub observation: Observation,
    #[serde(default)]
    pub worker: String,
    #[serde(default)]
    pub took_ms: u64,
}

/// How hosts are fenced.
#[derive(Clone, Debug, Deserialize)]
pub struct Plan {
    pub id: String,
    pub name: String,
    pub scope: Scope,
    #[serde(default)]
    pub stages: Vec<PlanStage>,
    #[serde(default)]
    pub sufficient_sets: Vec<Vec<String>>,
}

/// The hosts that a plan is for.
#[derive(Clone, Debug, Deserialize)]
pub struct Scope {
    pub kind: String,
    pub value: Option<String>,
}

/// Tasks that run in parallel.
#[derive(Clone, Debug, Deserialize)]
pub struct PlanStage {
    #[serde(default)]
    pub delay_s: u32,
    #[serde(default)]
    pub tasks: Vec<PlanTask>,
}

/// One task of a plan.
#[derive(Clone, Debug, Deserialize)]
pub struct PlanTask {
    pub kind: String,
    #[serde(default)]
    pub levels: Vec<Level>,
}

/// Methods of one level, which are used together.
#[derive(Clone, Debug, Deserialize)]
pub struct Level {
    pub level: u32,
    #[serde(default)]
    pub methods: Vec<String>,
}

/// A failure domain with its policy.
#[derive(Clone, Debug, Deserialize)]
pub struct Segment {
    pub id: String,
    pub name: String,
    #[serde(default)]
    pub description: String,
    pub policy: Policy,
}

/// The results of an evacuation, by workload.
#[derive(Clone, Debug, Deserialize)]
pub struct Moves {
    pub moves: Vec<Move>,
}

/// The result of one workload.
#[derive(Clone, Debug, Deserialize)]
pub struct Move {
    pub id: String,
    pub name: String,
    pub owner: Option<String>,
    pub state: String,
    pub status: String,
    pub from: Option<String>,
    pub to: Option<String>,
    pub request_id: Option<String>,
    pub detail: Option<String>,
    pub attempts: u64,
    pub started_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
}

/// The policy of a segment.
#[derive(Clone, Debug, Deserialize)]
pub struct Policy {
    pub self_fencing_timeout_s: Option<u32>,
    #[serde(default)]
    pub settle_s: u32,
    pub restarts: u32,
    pub restart_delay_s: u32,
    pub auto_rejoin: bool,
    #[serde(default)]
    pub quarantine: Option<Quarantine>,
    pub rejoin_wait_s: u32,
    pub workloads_zone: Option<String>,
    #[serde(default)]
    pub heartbeats: Vec<String>,
    #[serde(default)]
    pub fencing: Fencing,
    #[serde(default)]
    pub conditions: Vec<ConditionRule>,
    #[serde(default)]
    pub alarms: Vec<AlarmRule>,
    #[serde(default)]
    pub evacuation: Evacuation,
}

/// A suspension.
#[derive(Clone, Debug, Deserialize)]
pub struct Suspension {
    pub since: Timestamp,
    pub until: Option<Timestamp>,
    pub by: String,
    pub reason: String,
}

/// A host or a segment that is suspended.
#[derive(Clone, Debug, Deserialize)]
pub struct SuspendedOne {
    pub name: String,
    pub suspension: Suspension,
}

/// All that is suspended.
#[derive(Clone, Debug, Deserialize)]
pub struct Suspensions {
    pub everything: Option<Suspension>,
    pub segments: Vec<SuspendedOne>,
    pub hosts: Vec<SuspendedOne>,
}

/// Whether hosts are fenced automatically.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Fencing {
    pub automatic: bool,
    pub after_s: u32,
    pub at_most: u32,
    pub within_s: u32,
    pub at_most_percent: u32,
    pub at_once: Option<u32>,
    pub per_minute: Option<u32>,
    pub quiet_s: Option<u32>,
    pub kdump_timeout_s: Option<u32>,
    pub sight: Option<Sight>,
    pub groups: Vec<GroupRule>,
    pub ceph: Vec<String>,
    pub queries: Vec<String>,
}

/// When a source's word that a host is silent counts.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Sight {
    pub at_most_percent: u32,
    pub quiet_s: u32,
}

/// When a host is in quarantine.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Quarantine {
    pub fences: u32,
    pub within_s: u32,
}

/// What is done about a condition of a host.
#[derive(Clone, Debug, Deserialize)]
pub struct ConditionRule {
    pub condition: String,
    pub status: String,
    pub for_s: u32,
    pub action: String,
}

/// When it is told that a problem of a host comes too often.
#[derive(Clone, Debug, Deserialize)]
pub struct AlarmRule {
    pub problem: String,
    pub condition: Option<String>,
    pub times: u32,
    pub within_s: u32,
}

/// An alarm that stands.
#[derive(Clone, Debug, Deserialize)]
pub struct Alarm {
    pub problem: String,
    pub condition: Option<String>,
    pub times: u32,
    pub within_s: u32,
    pub since: Timestamp,
}

/// How often each problem came.
#[derive(Clone, Debug, Deserialize)]
pub struct ProblemCounts {
    pub failed: u64,
    pub fenced: u64,
    pub returned: u64,
    pub conditions: BTreeMap<String, u64>,
}

/// The problems of a host.
#[derive(Clone, Debug, Deserialize)]
pub struct HostProblems {
    pub host: String,
    pub segment: String,
    pub counted_since: Timestamp,
    #[serde(flatten)]
    pub counts: ProblemCounts,
    pub alarms: Vec<Alarm>,
    pub quarantined_at: Option<Timestamp>,
}

/// A host in the list of those with problems.
#[derive(Clone, Debug, Deserialize)]
pub struct TroubledHost {
    pub host_id: String,
    pub host: String,
    pub segment: String,
    #[serde(flatten)]
    pub counts: ProblemCounts,
    pub quarantined_at: Option<Timestamp>,
    pub alarmed_at: Option<Timestamp>,
}

/// What happens to the workloads of a FENCED host.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Evacuation {
    pub automatic: bool,
    pub workloads: String,
    pub at_once: u32,
    #[serde(default)]
    pub per_second: u32,
    pub in_segment: Option<MoveLimits>,
    pub on_platform: Option<MoveLimits>,
    #[serde(default)]
    pub disruption_budgets: bool,
    pub spare_hosts: Vec<String>,
}

/// How many workloads of many hosts are moved.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub struct MoveLimits {
    pub at_once: Option<u32>,
    pub per_minute: Option<u32>,
}

/// A webhook for events.
#[derive(Clone, Debug, Deserialize)]
pub struct Subscription {
    pub id: String,
    pub name: String,
    #[serde(default)]
    pub description: String,
    pub url: String,
    #[serde(default)]
    pub format: String,
    pub types: Vec<String>,
    pub segments: Vec<String>,
    pub hosts: Vec<String>,
    pub enabled: bool,
    pub disabled_reason: Option<String>,
    pub after: u64,
    pub retrying: u64,
    pub previous_secret_until: Option<Timestamp>,
    pub secret: Option<String>,
}

/// The delivery of an event, a test or a redelivery.
#[derive(Clone, Debug, Deserialize)]
pub struct Delivery {
    pub id: String,
    pub kind: String,
    pub sequence: Option<u64>,
    pub event_id: String,
    pub event_type: String,
    pub host: Option<String>,
    pub status: String,
    pub tries: u32,
    pub tried_at: Option<Timestamp>,
    pub next_at: Option<Timestamp>,
    pub answer: Option<u16>,
    pub detail: Option<String>,
    pub took_ms: Option<u64>,
}

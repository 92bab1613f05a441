//! Segments: failure domain and policy group.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    AlarmRule, ConditionRule, EvacuationPolicy, FencingPolicy, FieldChange, Problems, QuarantinePolicy,
    SegmentId, Timestamp, fencing_policy::check_names, field_changes, validate_name, validate_zone,
};

/// The longest description, in characters.
const MAX_DESCRIPTION_CHARS: usize = 1000;
/// Methods for heartbeats that one segment may name.
const MAX_HEARTBEATS: usize = 4;

/// What holds for every host of a segment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SegmentPolicy {
    /// Seconds after which a host that lost contact has certainly stopped its own workloads (its watchdog, and whatever
    /// drift its clock can have, included). `null`: the hosts do not fence themselves.
    pub self_fencing_timeout_s: Option<u32>,
    /// Seconds that a proof has to settle which says that the host had stopped (its power is off, it has fenced itself, a person says
    /// so): until what the storage had accepted from it has landed, 0 to 600.
    pub settle_s: u32,
    /// How often a fence that ended in `needs_operator` starts again by itself.
    pub restarts: u32,
    /// Seconds between two such starts.
    pub restart_delay_s: u32,
    /// Whether a FENCED host that is seen UP again is taken back without being asked.
    pub auto_rejoin: bool,
    /// Seconds that a rejoin waits for the host to be seen UP (and, where it has to be, booted anew).
    pub rejoin_wait_s: u32,
    /// The zone whose workers reach the backends of the hosts; `null`: each host's own.
    pub workloads_zone: Option<String>,
    /// When a host that is fenced again and again is not taken back without being asked; `null`: never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quarantine: Option<QuarantinePolicy>,
    /// Methods for heartbeats by name, at most 4: the storages to which the hosts write that they are alive.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub heartbeats: Vec<String>,
    /// Whether hosts are fenced without being asked.
    pub fencing: FencingPolicy,
    /// What is done about conditions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<ConditionRule>,
    /// When it is told that a problem of a host comes too often.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub alarms: Vec<AlarmRule>,
    /// What is done with the workloads of a FENCED host.
    pub evacuation: EvacuationPolicy,
}

impl Default for SegmentPolicy {
    fn default() -> Self {
        Self {
            self_fencing_timeout_s: None,
            settle_s: 5,
            restarts: 0,
            restart_delay_s: 60,
            auto_rejoin: false,
            rejoin_wait_s: 600,
            workloads_zone: None,
            quarantine: None,
            heartbeats: Vec::new(),
            fencing: FencingPolicy::default(),
            conditions: Vec::new(),
            alarms: Vec::new(),
            evacuation: EvacuationPolicy::default(),
        }
    }
}

/// A failure domain with its policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Its id.
    pub id: SegmentId,
    /// Its name, unique.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// What holds for its hosts.
    pub policy: SegmentPolicy,
    /// Counts its changes; the API's entity tag.
    pub revision: u64,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// A segment as its author writes it. What is left out takes its default, with which nothing begins by itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SegmentDraft {
    /// Unique.
    pub name: String,
    /// What it is for, at most 1000 characters.
    #[serde(default)]
    pub description: String,
    /// What holds for its hosts.
    #[serde(default)]
    pub policy: SegmentPolicy,
}

impl SegmentDraft {
    /// Refuses values that are out of range.
    pub fn validate(&self) -> Result<(), Problems> {
        let mut problems = Problems::default();
        if let Err(problem) = validate_name("name", &self.name) {
            problems.0.push(problem);
        }
        let chars = self.description.chars().count();
        if chars > MAX_DESCRIPTION_CHARS {
            problems.add(
                "description",
                format!("has {chars} characters; at most {MAX_DESCRIPTION_CHARS} are allowed"),
            );
        }
        if let Err(found) = validate_policy(&self.policy) {
            problems.0.extend(found.0);
        }
        problems.into_result()
    }

    /// The segment with every field, also those that are left out elsewhere while they have their default.
    #[must_use]
    pub fn whole(&self) -> Value {
        let Self {
            name,
            description,
            policy,
        } = self;
        let (fencing, evacuation) = (&policy.fencing, &policy.evacuation);
        let mut whole = json!({ "name": name, "description": description, "policy": policy });
        let in_policy = &mut whole["policy"];
        in_policy["quarantine"] = json!(policy.quarantine);
        in_policy["heartbeats"] = json!(policy.heartbeats);
        in_policy["conditions"] = json!(policy.conditions);
        in_policy["alarms"] = json!(policy.alarms);
        in_policy["fencing"]["at_once"] = json!(fencing.at_once);
        in_policy["fencing"]["per_minute"] = json!(fencing.per_minute);
        in_policy["fencing"]["quiet_s"] = json!(fencing.quiet_s);
        in_policy["fencing"]["kdump_timeout_s"] = json!(fencing.kdump_timeout_s);
        in_policy["fencing"]["sight"] = json!(fencing.sight);
        in_policy["fencing"]["groups"] = json!(fencing.groups);
        in_policy["fencing"]["ceph"] = json!(fencing.ceph);
        in_policy["fencing"]["queries"] = json!(fencing.queries);
        in_policy["evacuation"]["per_second"] = json!(evacuation.per_second);
        in_policy["evacuation"]["in_segment"] = json!(evacuation.in_segment);
        in_policy["evacuation"]["on_platform"] = json!(evacuation.on_platform);
        in_policy["evacuation"]["disruption_budgets"] = json!(evacuation.disruption_budgets);
        whole
    }

    /// The fields in which `after` differs, each by its path.
    #[must_use]
    pub fn changes(&self, after: &Self) -> Vec<FieldChange> {
        field_changes(&self.whole(), &after.whole())
    }
}

impl From<Segment> for SegmentDraft {
    fn from(segment: Segment) -> Self {
        Self {
            name: segment.name,
            description: segment.description,
            policy: segment.policy,
        }
    }
}

/// Refuses values that are out of range.
pub fn validate_policy(policy: &SegmentPolicy) -> Result<(), Problems> {
    let mut problems = Problems::default();
    let mut range = |field: &str, value: u32, min: u32, max: u32| {
        if !(min..=max).contains(&value) {
            problems.add(
                format!("policy.{field}"),
                format!("is {value}; {min} to {max} is allowed"),
            );
        }
    };
    if let Some(timeout_s) = policy.self_fencing_timeout_s {
        range("self_fencing_timeout_s", timeout_s, 1, 86_400);
    }
    range("settle_s", policy.settle_s, 0, 600);
    range("restarts", policy.restarts, 0, 100);
    range("restart_delay_s", policy.restart_delay_s, 1, 86_400);
    range("rejoin_wait_s", policy.rejoin_wait_s, 1, 86_400);
    let zone = policy.workloads_zone.as_deref();
    if let Some(Err(problem)) = zone.map(|zone| validate_zone("policy.workloads_zone", zone)) {
        problems.0.push(problem);
    }
    if let Some(quarantine) = policy.quarantine {
        quarantine.check(&mut problems);
    }
    check_names(
        "policy.heartbeats",
        &policy.heartbeats,
        MAX_HEARTBEATS,
        &mut problems,
    );
    policy.fencing.check(&mut problems);
    ConditionRule::check_all(&policy.conditions, &mut problems);
    AlarmRule::check_all(&policy.alarms, &policy.conditions, &mut problems);
    policy.evacuation.check(&mut problems);
    problems.into_result()
}

//! Segments.

use chrono::{DateTime, Utc};
use ringfence_core::{
    AlarmRule, ConditionRule, EvacuationPolicy, FencingPolicy, GroupRule, MoveLimits, QuarantinePolicy,
    Segment, SegmentDraft, SegmentPolicy, SightPolicy, Wanted,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::shown::shown;

/// A failure domain with its policy.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SegmentView {
    pub id: Uuid,
    pub name: String,
    pub description: String,
    pub policy: PolicyView,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

/// A segment to add, or to put in the place of one.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SegmentBody {
    /// 1 to 255 letters, digits, `.`, `_` and `-`.
    #[schema(pattern = "^[A-Za-z0-9][A-Za-z0-9._-]{0,254}$")]
    pub name: String,
    #[serde(default)]
    pub description: String,
    #[serde(default)]
    pub policy: PolicyView,
}

/// What holds for every host of a segment.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct PolicyView {
    /// Seconds after which a host that lost contact has certainly stopped its own workloads; 1 to 86400; null: it does not.
    pub self_fencing_timeout_s: Option<u32>,
    /// Seconds that a proof which says that the host has stopped settles before it counts: until what the storage had accepted from it has
    /// landed; 0 to 600.
    pub settle_s: u32,
    /// How often a fence that ended in needs_operator starts again by itself; 0 to 100.
    pub restarts: u32,
    /// Seconds between two such starts; 1 to 86400.
    pub restart_delay_s: u32,
    /// Whether a FENCED host that is seen UP again is taken back without being asked.
    pub auto_rejoin: bool,
    /// Seconds that a rejoin waits for the host; 1 to 86400.
    pub rejoin_wait_s: u32,
    /// The zone whose workers reach the backends of the hosts; null: each host's own.
    #[schema(pattern = "^[A-Za-z0-9][A-Za-z0-9._-]{0,254}$")]
    pub workloads_zone: Option<String>,
    /// When a host that is fenced again and again is taken back only where a rejoin is asked for; null: never.
    #[schema(value_type = Option<QuarantineView>)]
    pub quarantine: Option<QuarantinePolicy>,
    /// Methods of resource heartbeat by name: the storages to which the hosts write that they are alive.
    #[schema(max_items = 4)]
    pub heartbeats: Vec<String>,
    /// Whether hosts are fenced without being asked.
    pub fencing: FencingView,
    /// What is done about conditions of hosts; at most 32.
    #[schema(value_type = Vec<ConditionRuleView>, max_items = 32)]
    pub conditions: Vec<ConditionRule>,
    /// When it is told that a problem of a host comes too often; at most 16.
    #[schema(value_type = Vec<AlarmRuleView>, max_items = 16)]
    pub alarms: Vec<AlarmRule>,
    /// What is done with the workloads of a FENCED host.
    pub evacuation: EvacuationView,
}

/// Whether a host that falls silent is fenced without being asked, and when so many have that a person is asked first.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct FencingView {
    /// Whether a host that is UNREACHABLE is fenced without being asked.
    pub automatic: bool,
    /// Seconds that it has to be UNREACHABLE before; 0 to 3600.
    pub after_s: u32,
    /// The brake: hosts of the segment that may fall silent or be fenced within within_s; 1 to 10000.
    pub at_most: u32,
    /// Seconds that the brake looks back; 10 to 86400.
    pub within_s: u32,
    /// The brake: the percentage of the segment's hosts that may be out of service; 1 to 100. One host may be out of service at any percentage, and two hosts while a third host is in service.
    pub at_most_percent: u32,
    /// Fences of the segment's hosts that may be under way at one time, one that begins by itself counted in; 1 to 10000; null: any number. Beyond them it is held.
    pub at_once: Option<u32>,
    /// Fences of the segment's hosts that may begin by themselves in one minute of the clock; 1 to 10000; null: any number. Beyond them a fence is held until the next minute.
    pub per_minute: Option<u32>,
    /// Seconds without a change of a host of the segment for which a fence waits after the storm brake has held one; 10 to 86400; null: none.
    pub quiet_s: Option<u32>,
    /// Seconds for which a fence that has begun by itself leaves the power to a host that writes a crash dump; 10 to 21600; null: it does not wait for dumps.
    pub kdump_timeout_s: Option<u32>,
    /// When a source's word that a host is silent counts, so that a source which is cut off itself has no host fenced; null: always.
    #[schema(value_type = Option<SightView>)]
    pub sight: Option<SightPolicy>,
    /// What is bounded for groups of hosts; at most 8.
    #[schema(value_type = Vec<GroupRuleView>, max_items = 8)]
    pub groups: Vec<GroupRule>,
    /// Methods of the driver ceph by name: a fence that begins by itself is held until every Ceph that they reach goes on without the host, and says so within 30 s.
    #[schema(max_items = 8)]
    pub ceph: Vec<String>,
    /// Methods of resource query by name: a fence that begins by itself is held until each of them allows it, and says so within 30 s.
    #[schema(max_items = 8)]
    pub queries: Vec<String>,
}

shown! { FencingPolicy, FencingView:
    automatic, after_s, at_most, within_s, at_most_percent, at_once, per_minute, quiet_s, kdump_timeout_s, sight, groups, ceph, queries,
}

/// What is bounded for the hosts that share a value of a label, in whichever segment, or for all hosts. One of the bounds is needed.
#[expect(dead_code, reason = "it describes GroupRule")]
#[derive(ToSchema)]
pub(crate) struct GroupRuleView {
    /// The label; hosts that do not have it are of no group. Without it all hosts are one group. A host has to have it already.
    #[schema(max_length = 317, example = "rack")]
    label: Option<String>,
    /// Fences of the group's hosts that may be under way at one time, one that begins by itself counted; 1 to 10000; absent: any number.
    #[schema(minimum = 1, maximum = 10_000, example = 1)]
    at_once: Option<u32>,
    /// Hosts of the group that may be out of service (not UP, FENCED or being fenced), the one that would be fenced counted; 1 to 10000, fewer than the largest group has; absent: any number.
    #[schema(minimum = 1, maximum = 10_000, example = 1)]
    at_most_out: Option<u32>,
    /// Whether more than half of the group's hosts have to stay in service; false if absent
    #[schema(required = false)]
    majority: bool,
}

/// How much of what it watches a source has to hear before a host is fenced by its word.
#[expect(dead_code, reason = "it describes SightPolicy")]
#[derive(ToSchema)]
pub(crate) struct SightView {
    /// The percentage of its hosts that a source may not hear (it has said UP of a host within 180 s); 1 to 99. Beyond it the source counts as cut off. One host of two or more never is too much.
    #[schema(minimum = 1, maximum = 99, example = 50)]
    at_most_percent: u32,
    /// Seconds for which it has to have heard enough of them without a break; 10 to 3600.
    #[schema(minimum = 10, maximum = 3_600, example = 60)]
    quiet_s: u32,
}

/// How often a host has to be fenced to be in quarantine.
#[expect(dead_code, reason = "it describes QuarantinePolicy")]
#[derive(ToSchema)]
pub(crate) struct QuarantineView {
    /// How often the host became FENCED; 2 to 32.
    #[schema(minimum = 2, maximum = 32, example = 3)]
    fences: u32,
    /// Seconds within which it did; 60 to 2592000.
    #[schema(minimum = 60, maximum = 2_592_000, example = 86_400)]
    within_s: u32,
}

/// What is done about a condition that stands for some time.
#[expect(dead_code, reason = "it describes ConditionRule")]
#[derive(ToSchema)]
pub(crate) struct ConditionRuleView {
    /// The name of the condition; 1 to 316 characters without blanks.
    #[schema(min_length = 1, max_length = 316, example = "KernelDeadlock")]
    condition: String,
    /// The status that it has to have: True, False or Unknown; True if absent
    #[schema(required = false, pattern = "^(True|False|Unknown)$", example = "True")]
    status: String,
    /// Seconds for which it has to stand; 0 to 86400; 0 if absent.
    #[schema(required = false)]
    for_s: u32,
    /// report: it is told; spare: no fence of the host begins by itself, too; hold_scheduling: the schedule gate is closed, too; fence: as hold_scheduling, and the host is fenced although it answers, where fencing.automatic is true. report if absent
    #[schema(
        required = false,
        pattern = "^(report|spare|hold_scheduling|fence)$",
        example = "hold_scheduling"
    )]
    action: String,
}

/// When it is told that a problem of a host comes too often.
#[expect(dead_code, reason = "it describes AlarmRule")]
#[derive(ToSchema)]
pub(crate) struct AlarmRuleView {
    /// failed: the host became UNREACHABLE; fenced: it became FENCED; returned: it was taken back; condition: a rule of conditions came to act
    #[schema(pattern = "^(failed|fenced|returned|condition)$", example = "fenced")]
    problem: String,
    /// The name of the condition that is counted, one that a rule of conditions has; absent: any. With the problem condition alone.
    #[schema(min_length = 1, max_length = 316)]
    condition: Option<String>,
    /// How often it has to come; 1 to 32.
    #[schema(minimum = 1, maximum = 32, example = 3)]
    times: u32,
    /// Seconds within which it has to; 60 to 2592000.
    #[schema(minimum = 60, maximum = 2_592_000, example = 86_400)]
    within_s: u32,
}

/// Which workloads of a FENCED host are started elsewhere, in which order, and how.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct EvacuationView {
    /// Whether a host is evacuated as soon as it is FENCED, without being asked.
    pub automatic: bool,
    /// all: all but those whose metadata says no; opted_in: only those whose metadata says yes
    #[schema(value_type = String, pattern = "^(all|opted_in)$", example = "all")]
    pub workloads: Wanted,
    /// The key of a workload's metadata that says whether it is to be moved: true or false.
    #[schema(min_length = 1, max_length = 255)]
    pub metadata_key: String,
    /// The key of a workload's metadata that says when: whole numbers, the highest first; without one, 0.
    #[schema(min_length = 1, max_length = 255)]
    pub priority_key: String,
    /// Workloads of one host that are moved at one time; 1 to 64.
    pub at_once: u32,
    /// Workloads of one host whose move is begun within one second; 0 to 64. 0: as many as at_once allows.
    pub per_second: u32,
    /// How many workloads of all hosts of the segment are moved; with it those of the highest priority come first, whichever host they are on. null: any number.
    #[schema(value_type = Option<MoveLimitsView>)]
    pub in_segment: Option<MoveLimits>,
    /// How many workloads of all hosts of the host's cloud or cluster are moved, in whichever segment, beside which those of this segment's hosts may be; null: any number.
    #[schema(value_type = Option<MoveLimitsView>)]
    pub on_platform: Option<MoveLimits>,
    /// Seconds that one try of one workload may take; 10 to 900.
    pub timeout_s: u32,
    /// How often a move that failed is tried again; 0 to 10.
    pub retries: u32,
    /// Whether those that their owners have stopped are moved too; they stay stopped.
    pub stopped: bool,
    /// Whether those that the backend has given up are moved too.
    pub failed: bool,
    /// Whether those that the backend does not move as they are (paused, suspended, being resized) are made ready for it.
    pub held: bool,
    /// Whether a pod goes only when the PodDisruptionBudgets of its cluster allow it. Clouds have no budgets.
    pub disruption_budgets: bool,
    /// Hosts, as the backend calls them, that are opened to workloads one after the other when there is no room; at most 32.
    pub spare_hosts: Vec<String>,
}

shown! { EvacuationPolicy, EvacuationView:
    automatic, workloads, metadata_key, priority_key, at_once, per_second, in_segment, on_platform, timeout_s, retries, stopped, failed, held,
    disruption_budgets, spare_hosts,
}

/// How many workloads of many hosts are moved. One of the bounds is needed.
#[expect(dead_code, reason = "it describes MoveLimits")]
#[derive(ToSchema)]
pub(crate) struct MoveLimitsView {
    /// At one time; 1 to 10000; absent: any number.
    #[schema(minimum = 1, maximum = 10_000, example = 32)]
    at_once: Option<u32>,
    /// How many moves begin within 60 s; 1 to 10000; absent: any number.
    #[schema(minimum = 1, maximum = 10_000, example = 120)]
    per_minute: Option<u32>,
}

shown! { SegmentPolicy, PolicyView:
    self_fencing_timeout_s, settle_s, restarts, restart_delay_s, auto_rejoin, rejoin_wait_s, workloads_zone,
    quarantine, heartbeats, fencing, conditions, alarms, evacuation,
}

impl From<Segment> for SegmentView {
    fn from(segment: Segment) -> Self {
        Self {
            id: segment.id.0,
            name: segment.name,
            description: segment.description,
            policy: segment.policy.into(),
            created_at: segment.created_at,
            updated_at: segment.updated_at,
        }
    }
}

impl From<SegmentBody> for SegmentDraft {
    fn from(body: SegmentBody) -> Self {
        Self {
            name: body.name,
            description: body.description,
            policy: body.policy.into(),
        }
    }
}

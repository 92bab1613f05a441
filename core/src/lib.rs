//! The fencing rules. Everything that decides lives here and nothing else does.
//!
//! The crate is pure: no I/O, no clock, no randomness. Time and ids are arguments, so that every decision can be
//! replayed. The one entry is [`decide`]: it takes the state of one host, one [`Input`] and the time, and returns the next
//! state with the [`Effect`]s that have to be committed together with it, or a [`Refusal`].

mod alarm;
mod attempt;
mod boot_watch;
mod boots;
mod by_scope;
mod census;
mod ceph;
mod check;
mod cluster;
mod conditions;
mod cool_down;
mod decide;
mod delivery;
mod departures;
mod driver;
mod effect;
mod error_chain;
mod evacuation_policy;
mod event;
mod explain;
mod fence;
mod fencing_policy;
mod field_change;
mod flapping;
mod gate;
mod group;
mod guard;
mod heartbeat;
mod host;
mod host_problem;
mod host_rules;
mod ids;
mod input;
mod kdump;
mod label;
mod latecomers;
mod method;
mod movable;
mod moves;
mod name;
mod observation;
mod operation;
mod opinions;
mod own_device;
mod permit;
mod plan;
mod platform;
mod problem;
mod proof;
mod provider_id;
mod query;
mod reach;
mod record;
mod refusal;
mod resolve;
mod resolved;
mod safeguard;
mod segment;
mod sight;
mod sources;
mod subscription;
mod suspension;
mod task;
mod task_kind;
mod template;
mod undoing;
mod waits;
mod warnings;
mod watch;
mod words;
mod workload;
mod workload_step;

pub use alarm::{AlarmRule, Alarms, CountedProblem, StandingAlarm};
pub use attempt::{Attempt, AttemptBy, AttemptStatus, Outcome};
pub use boot_watch::{BootSighting, BootSign, BootWatch};
pub use boots::{BOOT_CLOCK_MARGIN, Boot, Boots, SeenBoot};
pub use by_scope::ByScope;
pub use census::{Census, Listed, Newcomer, census};
pub use ceph::{CephMaps, CephMonitor, CephOsd, CephPool, CephSurvey, OsdId, PlacementGroup};
pub use check::{CheckAnswer, CheckOutcome, LastCheck};
pub use cluster::{ClusterUser, PodToEvict};
pub use conditions::{
    Condition, ConditionAction, ConditionRule, ConditionStatus, Conditions, MAX_CONDITION_CHARS,
    MAX_CONDITION_REASON_CHARS, MAX_CONDITION_SOURCES, MAX_CONDITIONS, ReportedCondition, check_conditions,
    validate_condition_name,
};
pub use cool_down::not_quiet_since;
pub use decide::{decide, look_due, unanswered_condition};
pub use delivery::{NextTry, TRIED_FOR, Tried, after_try};
pub use departures::{Departures, Resident, departures, may_remove_departed};
pub use driver::{Allowed, Catalogue, Declaration, Others, Parameter, Place, Role, Secret, value_of};
pub use effect::{Decision, Dispatch, Effect, Job, Note, Reply};
pub use error_chain::error_chain;
pub use evacuation_policy::{EvacuationPolicy, Wanted};
pub use event::{Event, EventKind};
pub use explain::{
    Explanation, Facts, FencePreview, LastFence, LastTime, MethodFacts, PastTimes, ProofProspect,
    SetProspect, StormBrake,
};
pub use fence::Fence;
pub use fencing_policy::{FencingPolicy, Neighbourhood, fence_due};
pub use field_change::{FieldChange, field_changes};
pub use flapping::{Flapping, QuarantinePolicy};
pub use gate::{Gate, Gates, Placing, gates, is_mark_left_over, schedule_gate, stays_isolated, unforce_gate};
pub use group::{Group, GroupCount, GroupCounts, GroupRule, check_groups};
pub use guard::Guard;
#[cfg(feature = "mutants")]
pub use guard::switch_off;
pub use heartbeat::{Heartbeat, HeartbeatReading, HeartbeatWatch};
pub use host::{
    Applied, AppliedFencing, Backend, FailureState, FencingState, Host, HostState, InFlight, OldBoot,
};
pub use host_problem::HostProblem;
pub use host_rules::{HostDescription, may_change, may_remove, validate_host};
pub use ids::{
    AttemptId, DEFAULT_SEGMENT_ID, DEFAULT_ZONE, Generation, HostId, MethodId, OperationId, PlanId,
    SegmentId, SubscriptionId, Timestamp,
};
pub use input::{Actor, Claim, Input, Queues, TaskQueue, TaskResult};
pub use kdump::{EngineTime, KDUMP, Kdump, KdumpAddresses, kdump_addresses, kdump_parameters};
pub use label::{CONTROL_PLANE, Labels, MAX_LABELS, check_label_name, is_of_backend};
pub use latecomers::{LookForLatecomers, are_latecomers, look_for_latecomers};
pub use method::{Method, MethodTimes, Parameters, SecretReference, is_secret_name, validate_method};
pub use movable::{Movable, NamedToGo, gate_of_all, gate_of_named, movable_now, proven_movable};
pub use moves::{BEGUN_WITHIN_S, Evacuating, MoveLimits, MoveQueue, Turn, Turns};
pub use name::{
    MAX_NAME_CHARS, MAX_REASON_CHARS, MAX_ZONE_CHARS, validate_name, validate_reason, validate_zone,
};
pub use observation::{Observation, ObservedState};
pub use operation::{
    Asks, Awaits, Cause, EvacuationWork, FenceWork, Operation, OperationKind, OperationStatus, RejoinWork,
    Stage, Work,
};
pub use opinions::Opinions;
pub use own_device::target_key;
pub use permit::Permit;
pub use plan::{
    Level, MAX_DELAY_S, Plan, PlanScope, PlanStage, SufficientSet, TaskSpec, default_sufficient_sets,
    validate_plan,
};
pub(crate) use platform::step_times;
pub use problem::{Problem, Problems};
pub use proof::{Proof, ProofKind};
pub use provider_id::{Metal3Host, ProviderId, ProviderIdError};
pub use query::{Answer, Question};
pub use record::{Due, Record, Restored, Unfinished};
pub use refusal::{Refusal, WORD_COUNTS_S};
pub use resolve::{FrozenMethod, FrozenPlan, FrozenStage, FrozenTask, resolve};
pub use resolved::{ResolvedLevel, ResolvedMethod, ResolvedPlan, ResolvedStage, ResolvedTask, Unusable};
pub use safeguard::{Held, Ruling, Safeguard, Verdict, asks_others, rulings};
pub use segment::{Segment, SegmentDraft, SegmentPolicy, validate_policy};
pub use sight::{HEARD_S, SightPolicy, Sights, SourceCount};
pub use sources::{
    CONTESTED_S, MAX_SOURCES, Report, Seen, SeenBecause, Silence, Source, Sources, WATCHED_GAP_S, Watched,
};
pub use subscription::{
    EventFilter, MAX_FILTER_WORDS, MessageFormat, SecretVersion, SecretVersions, Subscription,
    validate_subscription,
};
pub use suspension::{
    MAX_ADMIN_SUSPENSION_DAYS, MAX_SUSPENSION_DAYS, SharedSuspensions, Suspension, SuspensionScope,
    validate_suspension_end,
};
pub(crate) use task::{Executor, Executors};
pub use task::{FencingTask, StepTask, Task, TaskStatus, TaskWork};
pub use task_kind::{FencingKind, Resource, StepKind, TaskKind};
pub use undoing::{Ended, Undoing};
pub use warnings::{host_warnings, plan_warnings};
pub use watch::{Poll, Refresh, Sighting, Sign, Watch, is_news};
pub use words::Word;
pub use workload::{Finding, MAX_LISTED, MoveReport, Stuck, Workload, WorkloadState};
pub use workload_step::{MoveStep, PlatformHost, WorkloadStep};

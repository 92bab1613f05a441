//! The plan of a host, filled in for it.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use ringfence_core::{
    FrozenMethod, HostId, LastCheck, LastTime, MethodFacts, ResolvedLevel, ResolvedMethod, ResolvedPlan,
    ResolvedStage, ResolvedTask, TaskKind, Timestamp,
};
use ringfence_engine::DryRun;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::view::method_check::age_s;
use crate::view::plan::ScopeView;

/// The plan that applies to a host, filled in for it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ResolvedPlanView {
    pub name: String,
    /// Why it is this host's plan.
    pub scope: ScopeView,
    pub stages: Vec<ResolvedStageView>,
}

/// Tasks that run in parallel.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ResolvedStageView {
    /// Seconds to wait before it begins.
    pub delay_s: u32,
    pub tasks: Vec<ResolvedTaskView>,
}

/// One task.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ResolvedTaskView {
    #[schema(example = "power.off")]
    pub kind: &'static str,
    /// The ways to do it, in the order in which they are tried. None for power.on, which uses the devices that were seen off.
    pub levels: Vec<ResolvedLevelView>,
}

/// Methods that are used together.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ResolvedLevelView {
    /// 1 to 9.
    pub level: u8,
    pub methods: Vec<ResolvedMethodView>,
}

/// A method, filled in for the host.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ResolvedMethodView {
    pub name: String,
    /// null where the method does not exist or cannot be filled in: `hindrances` says why
    #[schema(example = "ipmi")]
    pub driver: Option<String>,
    pub zone: Option<String>,
    /// As the driver would get them, without secrets.
    pub parameters: BTreeMap<String, String>,
    /// What keeps it from being relied upon, as far as is known; none if nothing does.
    pub hindrances: Vec<String>,
    /// What its device last answered when it was asked for its state; null if it was not asked.
    pub last_check: Option<LastCheckView>,
    /// The last time that a worker tried it for a task of this kind; null if none is on record.
    pub last_time: Option<LastTimeView>,
}

/// What a device last answered.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LastCheckView {
    /// confirmed, unknown, worker_missing or refused
    #[schema(example = "confirmed")]
    pub outcome: &'static str,
    /// What it showed.
    #[schema(example = "on")]
    pub state: Option<String>,
    pub detail: Option<String>,
    /// Milliseconds that it took.
    pub took_ms: Option<u64>,
    pub checked_at: DateTime<Utc>,
    pub age_s: u64,
    pub failing_since: Option<DateTime<Utc>>,
}

/// How long a task took the last time that a worker tried it this way.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LastTimeView {
    /// confirmed, refused or unknown
    #[schema(example = "confirmed")]
    pub outcome: &'static str,
    /// Milliseconds until a worker had taken it.
    pub waited_ms: u64,
    /// Milliseconds from there to its result.
    pub took_ms: u64,
    pub ended_at: DateTime<Utc>,
    pub operation_id: Uuid,
    pub host_id: Uuid,
    /// Whether it was for another host than this one.
    pub is_of_another_host: bool,
}

impl ResolvedPlanView {
    pub fn new(plan: &ResolvedPlan, run: &DryRun) -> Self {
        let stage = |stage: &ResolvedStage| ResolvedStageView {
            delay_s: stage.delay_s,
            tasks: stage.tasks.iter().map(|task| of_task(task, run)).collect(),
        };
        Self {
            name: plan.name.clone(),
            scope: plan.scope.clone().into(),
            stages: plan.stages.iter().map(stage).collect(),
        }
    }
}

fn of_task(task: &ResolvedTask, run: &DryRun) -> ResolvedTaskView {
    let kind = TaskKind::Fencing(task.kind);
    let level = |level: &ResolvedLevel| ResolvedLevelView {
        level: level.level,
        methods: level
            .methods
            .iter()
            .map(|method| of_method(kind, method, run))
            .collect(),
    };
    ResolvedTaskView {
        kind: kind.as_str(),
        levels: task.levels.iter().map(level).collect(),
    }
}

fn of_method(kind: TaskKind, method: &ResolvedMethod, run: &DryRun) -> ResolvedMethodView {
    let nothing = MethodFacts::default();
    let facts = run.facts.methods.get(&method.name).unwrap_or(&nothing);
    let frozen: Option<&FrozenMethod> = method.filled_in.as_ref().ok();
    let last_time = frozen.and_then(|frozen| run.past.of(kind, Some(frozen.id)));
    ResolvedMethodView {
        name: method.name.clone(),
        driver: frozen.map(|frozen| frozen.driver.clone()),
        zone: frozen.map(|frozen| frozen.zone.clone()),
        parameters: frozen.map(|frozen| frozen.parameters.clone()).unwrap_or_default(),
        hindrances: method.hindrances(facts),
        last_check: facts
            .check
            .as_ref()
            .map(|check| LastCheckView::new(check, run.now)),
        last_time: last_time.map(|time| LastTimeView::new(time, run.state.host.id)),
    }
}

impl LastCheckView {
    fn new(check: &LastCheck, now: Timestamp) -> Self {
        let answer = &check.answer;
        Self {
            outcome: answer.outcome.as_str(),
            state: answer.state.clone(),
            detail: answer.detail.clone(),
            took_ms: answer.took_ms,
            checked_at: check.at,
            age_s: age_s(check.at, now),
            failing_since: check.failing_since,
        }
    }
}

impl LastTimeView {
    pub fn new(time: &LastTime, host_id: HostId) -> Self {
        Self {
            outcome: time.outcome.as_str(),
            waited_ms: time.waited_ms,
            took_ms: time.took_ms,
            ended_at: time.ended_at,
            operation_id: time.operation_id.0,
            host_id: time.host_id.0,
            is_of_another_host: time.host_id != host_id,
        }
    }
}

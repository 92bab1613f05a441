//! Plans.

use chrono::{DateTime, Utc};
use std::collections::BTreeSet;

use ringfence_core::{
    FencingKind, Level, Plan, PlanScope, PlanStage, Problems, ProofKind, TaskSpec, default_sufficient_sets,
};
use ringfence_engine::PlanDraft;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::ApiError;

/// How a group of hosts is fenced.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PlanView {
    pub id: Uuid,
    pub name: String,
    pub scope: ScopeView,
    pub stages: Vec<PlanStageView>,
    /// Each set of proofs is enough by itself.
    pub sufficient_sets: Vec<Vec<String>>,
    /// What would keep hosts from being fenced by it; told where it was just added or changed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

/// A plan to add, or to put in the place of one.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PlanBody {
    /// 1 to 255 letters, digits, `.`, `_` and `-`.
    #[schema(pattern = "^[A-Za-z0-9][A-Za-z0-9._-]{0,254}$")]
    pub name: String,
    #[serde(default)]
    pub scope: ScopeView,
    /// What is done, in order; none: the fence is done by hand and confirmed.
    #[serde(default)]
    pub stages: Vec<PlanStageView>,
    /// power.off, storage.fence, network.fence, self-fencing, kdump, operator; the default sets if absent.
    pub sufficient_sets: Option<Vec<Vec<String>>>,
}

/// Which hosts a plan is for.
#[derive(Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ScopeView {
    pub kind: ScopeKind,
    /// The host's name or the type; none for default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

/// What a plan's scope names.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ScopeKind {
    /// All hosts that no other plan is for.
    #[default]
    Default,
    /// The hosts of a type.
    HostType,
    /// One host.
    Host,
}

/// Tasks that run in parallel.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PlanStageView {
    /// Seconds to wait before it begins; 0 to 3600.
    #[serde(default)]
    pub delay_s: u32,
    pub tasks: Vec<PlanTaskView>,
}

/// One task of a plan.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PlanTaskView {
    /// power.off, power.on, storage.fence or network.fence
    #[schema(value_type = String, example = "power.off")]
    pub kind: FencingKind,
    /// None for power.on.
    #[serde(default)]
    pub levels: Vec<LevelView>,
}

/// Methods that are used together; all have to succeed.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LevelView {
    /// 1 to 9; the lowest is tried first.
    pub level: u8,
    /// Names of methods.
    pub methods: Vec<String>,
}

impl From<Plan> for PlanView {
    fn from(plan: Plan) -> Self {
        let words = |set: &BTreeSet<ProofKind>| set.iter().map(|kind| kind.as_str().to_owned()).collect();
        Self {
            warnings: Vec::new(),
            id: plan.id.0,
            name: plan.name,
            scope: plan.scope.into(),
            stages: plan.stages.into_iter().map(PlanStageView::from).collect(),
            sufficient_sets: plan.sufficient_sets.iter().map(words).collect(),
            created_at: plan.created_at,
            updated_at: plan.updated_at,
        }
    }
}

impl From<PlanScope> for ScopeView {
    fn from(scope: PlanScope) -> Self {
        let (kind, value) = match scope {
            PlanScope::Default => (ScopeKind::Default, None),
            PlanScope::HostType(value) => (ScopeKind::HostType, Some(value)),
            PlanScope::Host(value) => (ScopeKind::Host, Some(value)),
        };
        Self { kind, value }
    }
}

impl From<PlanStage> for PlanStageView {
    fn from(stage: PlanStage) -> Self {
        let level = |level: Level| LevelView {
            level: level.level,
            methods: level.methods,
        };
        let task = |task: TaskSpec| PlanTaskView {
            kind: task.kind,
            levels: task.levels.into_iter().map(level).collect(),
        };
        Self {
            delay_s: stage.delay_s,
            tasks: stage.tasks.into_iter().map(task).collect(),
        }
    }
}

impl From<PlanStageView> for PlanStage {
    fn from(view: PlanStageView) -> Self {
        let level = |view: LevelView| Level {
            level: view.level,
            methods: view.methods,
        };
        let task = |view: PlanTaskView| TaskSpec {
            kind: view.kind,
            levels: view.levels.into_iter().map(level).collect(),
        };
        Self {
            delay_s: view.delay_s,
            tasks: view.tasks.into_iter().map(task).collect(),
        }
    }
}

impl PlanBody {
    /// Refuses unknown proofs and a scope that does not fit; everything else is checked by the engine.
    pub fn draft(self) -> Result<PlanDraft, ApiError> {
        let mut problems = Problems::default();
        let scope = scope(self.scope, &mut problems);
        let sufficient_sets = match self.sufficient_sets {
            None => default_sufficient_sets(),
            Some(sets) => {
                let read = |(i, set): (usize, Vec<String>)| {
                    set.into_iter()
                        .enumerate()
                        .filter_map(|(j, word)| proof(i, j, &word, &mut problems))
                        .collect()
                };
                sets.into_iter().enumerate().map(read).collect()
            }
        };
        problems.into_result().map_err(ApiError::Malformed)?;
        let stages = self.stages.into_iter().map(PlanStage::from).collect();
        Ok(PlanDraft {
            name: self.name,
            scope,
            stages,
            sufficient_sets,
        })
    }
}

fn scope(view: ScopeView, problems: &mut Problems) -> PlanScope {
    match (view.kind, view.value) {
        (ScopeKind::Default, None) => PlanScope::Default,
        (ScopeKind::HostType, Some(value)) => PlanScope::HostType(value),
        (ScopeKind::Host, Some(value)) => PlanScope::Host(value),
        (ScopeKind::Default, Some(_)) => {
            problems.add("scope.value", "must not be given for the default plan");
            PlanScope::Default
        }
        (ScopeKind::HostType | ScopeKind::Host, None) => {
            problems.add("scope.value", "is missing; the host's name or the type is needed");
            PlanScope::Default
        }
    }
}

fn proof(set: usize, index: usize, word: &str, problems: &mut Problems) -> Option<ProofKind> {
    let kind = ProofKind::from_word(word);
    if kind.is_none() {
        let allowed: Vec<_> = ProofKind::ALL.iter().map(|kind| kind.as_str()).collect();
        problems.add(
            format!("sufficient_sets[{set}][{index}]"),
            format!("is {word:?}; {} are allowed", allowed.join(", ")),
        );
    }
    kind
}

//! Plans: how a group of hosts is fenced.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::driver::Catalogue;
use crate::{FencingKind, Method, PlanId, Problems, ProofKind, Timestamp, validate_name};

/// The most stages of a plan.
const MAX_STAGES: usize = 16;
/// The most tasks of a stage.
const MAX_TASKS: usize = 16;
/// The most methods of a level.
const MAX_METHODS: usize = 8;
/// The highest level.
const MAX_LEVEL: u8 = 9;
/// The longest delay of a stage.
pub const MAX_DELAY_S: u32 = 3600;
/// The most sufficient sets.
const MAX_SETS: usize = 16;

/// Proofs that together make a host FENCED.
pub type SufficientSet = BTreeSet<ProofKind>;

/// `{power.off}`, `{storage.fence, network.fence}`, `{self-fencing}`, `{operator}`.
#[must_use]
pub fn default_sufficient_sets() -> Vec<SufficientSet> {
    vec![
        SufficientSet::from([ProofKind::PowerOff]),
        SufficientSet::from([ProofKind::StorageFence, ProofKind::NetworkFence]),
        SufficientSet::from([ProofKind::SelfFencing]),
        SufficientSet::from([ProofKind::Operator]),
    ]
}

/// Which hosts a plan is for. The plan of the host itself is preferred to that of its type, and that to the default.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(
    tag = "kind",
    content = "value",
    rename_all = "snake_case",
    deny_unknown_fields
)]
pub enum PlanScope {
    /// All hosts.
    Default,
    /// Hosts of this type.
    HostType(String),
    /// The host of this name.
    Host(String),
}

/// Methods that are used together; all of them have to succeed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Level {
    /// 1 to 9; the lowest is tried first.
    pub level: u8,
    /// Names of methods.
    pub methods: Vec<String>,
}

/// One task of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskSpec {
    /// `power.off`, `power.on`, `storage.fence` or `network.fence`.
    pub kind: FencingKind,
    /// The ways to do it. None for `power.on`: it uses the devices that were seen off.
    #[serde(default)]
    pub levels: Vec<Level>,
}

/// Tasks that run in parallel; a stage begins when all tasks of the one before are over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanStage {
    /// Seconds to wait before the stage begins.
    #[serde(default)]
    pub delay_s: u32,
    /// Its tasks.
    pub tasks: Vec<TaskSpec>,
}

/// How a group of hosts is fenced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Its id.
    pub id: PlanId,
    /// Its name, unique.
    pub name: String,
    /// Which hosts it is for; unique.
    pub scope: PlanScope,
    /// What is done, in order. None: the fence is done by hand and confirmed.
    pub stages: Vec<PlanStage>,
    /// The proofs that make a host FENCED.
    pub sufficient_sets: Vec<SufficientSet>,
    /// Counts its changes; the API's entity tag.
    pub revision: u64,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// Checks a plan against the methods that exist.
pub fn validate_plan(
    drivers: &Catalogue,
    plan: &Plan,
    methods: &BTreeMap<String, Method>,
) -> Result<(), Problems> {
    let mut problems = Problems::default();
    if let Err(problem) = validate_name("name", &plan.name) {
        problems.0.push(problem);
    }
    match &plan.scope {
        PlanScope::Default => {}
        PlanScope::HostType(value) | PlanScope::Host(value) => {
            if let Err(problem) = validate_name("scope.value", value) {
                problems.0.push(problem);
            }
        }
    }
    if plan.stages.len() > MAX_STAGES {
        problems.add(
            "stages",
            format!(
                "has {} entries; at most {MAX_STAGES} are allowed",
                plan.stages.len()
            ),
        );
    }
    for (i, stage) in plan.stages.iter().enumerate() {
        check_stage(&format!("stages[{i}]"), stage, methods, &mut problems);
    }
    check_order(plan, &mut problems);
    check_sets(drivers, plan, methods, &mut problems);
    problems.into_result()
}

fn check_stage(at: &str, stage: &PlanStage, methods: &BTreeMap<String, Method>, problems: &mut Problems) {
    if stage.delay_s > MAX_DELAY_S {
        problems.add(
            format!("{at}.delay_s"),
            format!("is {}; 0 to {MAX_DELAY_S} is allowed", stage.delay_s),
        );
    }
    if stage.tasks.is_empty() || stage.tasks.len() > MAX_TASKS {
        problems.add(
            format!("{at}.tasks"),
            format!("has {} entries; 1 to {MAX_TASKS} are allowed", stage.tasks.len()),
        );
    }
    for (i, task) in stage.tasks.iter().enumerate() {
        check_task(&format!("{at}.tasks[{i}]"), task, methods, problems);
    }
}

fn check_task(at: &str, task: &TaskSpec, methods: &BTreeMap<String, Method>, problems: &mut Problems) {
    match task.kind {
        FencingKind::PowerOn => {
            if !task.levels.is_empty() {
                problems.add(
                    format!("{at}.levels"),
                    "must not be given for power.on, which switches on the devices that power.off was seen to switch off",
                );
            }
            return;
        }
        FencingKind::PowerOff | FencingKind::StorageFence | FencingKind::NetworkFence => {}
        FencingKind::StorageUnfence | FencingKind::NetworkUnfence => {
            problems.add(
                format!("{at}.kind"),
                format!(
                    "is {}, which no plan names; power.off, power.on, storage.fence and network.fence are allowed",
                    task.kind
                ),
            );
            return;
        }
    }
    if task.levels.is_empty() {
        problems.add(format!("{at}.levels"), "is empty; 1 to 9 levels are allowed");
    }
    let mut seen = BTreeSet::new();
    for (i, level) in task.levels.iter().enumerate() {
        let at = format!("{at}.levels[{i}]");
        if !(1..=MAX_LEVEL).contains(&level.level) {
            problems.add(
                format!("{at}.level"),
                format!("is {}; 1 to {MAX_LEVEL} is allowed", level.level),
            );
        }
        if !seen.insert(level.level) {
            problems.add(
                format!("{at}.level"),
                format!("is {}, which the task has already", level.level),
            );
        }
        check_level_methods(&at, task.kind, level, methods, problems);
    }
}

fn check_level_methods(
    at: &str,
    kind: FencingKind,
    level: &Level,
    methods: &BTreeMap<String, Method>,
    problems: &mut Problems,
) {
    if level.methods.is_empty() || level.methods.len() > MAX_METHODS {
        problems.add(
            format!("{at}.methods"),
            format!(
                "has {} entries; 1 to {MAX_METHODS} are allowed",
                level.methods.len()
            ),
        );
    }
    let mut seen = BTreeSet::new();
    for (i, name) in level.methods.iter().enumerate() {
        let at = format!("{at}.methods[{i}]");
        if !seen.insert(name) {
            problems.add(&at, format!("is {name:?}, which the level names already"));
        }
        match methods.get(name) {
            None => problems.add(&at, format!("is {name:?}, and there is no method of that name")),
            Some(method) if method.resource != kind.resource() => problems.add(
                &at,
                format!(
                    "is {name:?}, which acts on {}; {kind} needs a method for {}",
                    method.resource.as_str(),
                    kind.resource().as_str()
                ),
            ),
            Some(_) => {}
        }
    }
}

/// One `power.off`, and `power.on` only in a later stage than it.
fn check_order(plan: &Plan, problems: &mut Problems) {
    let stages_of = |kind: FencingKind| {
        plan.stages.iter().enumerate().flat_map(move |(i, stage)| {
            stage
                .tasks
                .iter()
                .filter(move |task| task.kind == kind)
                .map(move |_| i)
        })
    };
    let off: Vec<_> = stages_of(FencingKind::PowerOff).collect();
    let on: Vec<_> = stages_of(FencingKind::PowerOn).collect();
    if off.len() > 1 {
        problems.add(
            "stages",
            "names power.off more than once; give alternatives as levels of one task",
        );
    }
    if on.len() > 1 {
        problems.add("stages", "names power.on more than once");
    }
    if let Some(on) = on.first()
        && off.first().is_none_or(|off| off >= on)
    {
        problems.add(
            format!("stages[{on}].tasks"),
            "names power.on, which is allowed only in a later stage than power.off",
        );
    }
}

/// The proofs that the plan's tasks can win. One task of a kind that cannot prove it is enough for none of that kind to.
fn provable(drivers: &Catalogue, plan: &Plan, methods: &BTreeMap<String, Method>) -> BTreeSet<ProofKind> {
    let tasks = || plan.stages.iter().flat_map(|stage| &stage.tasks);
    // One that is missing is told elsewhere.
    let can_prove = |name: &String| methods.get(name).is_none_or(|method| drivers.can_prove(method));
    let has_a_level = |task: &TaskSpec| {
        let mut levels = task.levels.iter();
        task.levels.is_empty() || levels.any(|level| level.methods.iter().all(can_prove))
    };
    tasks()
        .filter(|task| tasks().filter(|t| t.kind == task.kind).all(has_a_level))
        .filter_map(|task| task.kind.proof_kind())
        .collect()
}

/// No empty set, and something that the plan does has to be able to prove something.
fn check_sets(drivers: &Catalogue, plan: &Plan, methods: &BTreeMap<String, Method>, problems: &mut Problems) {
    if plan.sufficient_sets.is_empty() || plan.sufficient_sets.len() > MAX_SETS {
        problems.add(
            "sufficient_sets",
            format!(
                "has {} entries; 1 to {MAX_SETS} are allowed, and without the field the default ones hold",
                plan.sufficient_sets.len()
            ),
        );
        return;
    }
    for (i, set) in plan
        .sufficient_sets
        .iter()
        .enumerate()
        .filter(|(_, set)| set.is_empty())
    {
        let _ = set;
        problems.add(
            format!("sufficient_sets[{i}]"),
            "is empty: it would call a host FENCED without any proof",
        );
    }
    let done = provable(drivers, plan, methods);
    let by_tasks = |kind: &ProofKind| done.contains(kind);
    let by_itself = |kind: &ProofKind| {
        matches!(
            kind,
            ProofKind::SelfFencing | ProofKind::Kdump | ProofKind::Operator
        )
    };
    let usable = |set: &SufficientSet| set.iter().all(|kind| by_tasks(kind) || by_itself(kind));
    let with_a_task = |set: &SufficientSet| usable(set) && set.iter().any(by_tasks);
    let only_by_itself = plan.sufficient_sets.iter().all(|set| set.iter().all(by_itself));
    let mut tasks = plan.stages.iter().flat_map(|stage| &stage.tasks);
    let does_something = tasks.any(|task| task.kind.proof_kind().is_some());
    let reachable = if !does_something || only_by_itself {
        plan.sufficient_sets.iter().any(usable)
    } else {
        plan.sufficient_sets.iter().any(with_a_task)
    };
    if !reachable {
        let words: Vec<_> = done.iter().map(|kind| kind.as_str()).collect();
        problems.add(
            "sufficient_sets",
            format!(
                "cannot be completed by what the plan does ({}), so that it could never prove a fence; add the missing tasks, or name a \
                 set that these tasks complete, or only sets of self-fencing, kdump and operator{}",
                if words.is_empty() { "nothing".to_owned() } else { words.join(", ") },
                hint(drivers, plan, methods)
            ),
        );
    }
}

/// Why a task that is there may not count.
fn hint(drivers: &Catalogue, plan: &Plan, methods: &BTreeMap<String, Method>) -> String {
    let levels = plan
        .stages
        .iter()
        .flat_map(|stage| &stage.tasks)
        .flat_map(|task| &task.levels);
    let names: BTreeSet<&str> = levels
        .flat_map(|level| &level.methods)
        .filter(|name| {
            methods
                .get(*name)
                .is_some_and(|method| !drivers.can_prove(method))
        })
        .map(String::as_str)
        .collect();
    if names.is_empty() {
        return String::new();
    }
    format!(
        ". What these methods show counts for nothing while their parameters do not say that it is trusted: {}",
        names.into_iter().collect::<Vec<_>>().join(", ")
    )
}

//! A plan as it would be carried out for one host, with what is wrong where it cannot be.

use std::collections::BTreeMap;

use crate::{
    Catalogue, FencingKind, FrozenMethod, FrozenPlan, FrozenStage, FrozenTask, Host, Level, Method, Plan,
    PlanScope, Problem, Problems, SufficientSet, TaskSpec,
};

/// The plan of one host, as far as it can be filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedPlan {
    /// The plan's name.
    pub name: String,
    /// Which hosts it is for: why it is the one of this host.
    pub scope: PlanScope,
    /// What is done, in order.
    pub stages: Vec<ResolvedStage>,
    /// The proofs that make the host FENCED.
    pub sufficient_sets: Vec<SufficientSet>,
}

/// Tasks that run in parallel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedStage {
    /// Seconds to wait before it begins.
    pub delay_s: u32,
    /// Its tasks.
    pub tasks: Vec<ResolvedTask>,
}

/// One task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedTask {
    /// What to make true.
    pub kind: FencingKind,
    /// The ways to do it, lowest level first.
    pub levels: Vec<ResolvedLevel>,
}

/// Methods that are used together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedLevel {
    /// 1 to 9.
    pub level: u8,
    /// Its methods.
    pub methods: Vec<ResolvedMethod>,
}

/// A method of a plan, for one host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedMethod {
    /// The name by which the plan knows it.
    pub name: String,
    /// The method with everything filled in, or why that is not possible.
    pub filled_in: Result<FrozenMethod, Unusable>,
}

/// Why a method cannot be used for a host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// The plan names a method that does not exist.
    #[error("there is no method of that name")]
    Missing,
    /// It cannot be filled in for the host.
    #[error(transparent)]
    NotFilledIn(Problems),
}

impl ResolvedPlan {
    /// Fills `plan` in for `host`, with methods by their names.
    #[must_use]
    pub fn new(drivers: &Catalogue, plan: &Plan, methods: &BTreeMap<String, Method>, host: &Host) -> Self {
        let fill_in = |name: &String| {
            let method = methods.get(name).ok_or(Unusable::Missing);
            let in_plan = |method| FrozenMethod::in_plan(drivers, &plan.scope, method, host);
            ResolvedMethod {
                name: name.clone(),
                filled_in: method.and_then(|method| in_plan(method).map_err(Unusable::NotFilledIn)),
            }
        };
        let level = |level: &Level| ResolvedLevel {
            level: level.level,
            methods: level.methods.iter().map(fill_in).collect(),
        };
        let task = |task: &TaskSpec| {
            let mut levels: Vec<_> = task.levels.iter().map(level).collect();
            levels.sort_by_key(|level| level.level);
            ResolvedTask {
                kind: task.kind,
                levels,
            }
        };
        let stages = plan.stages.iter().map(|stage| ResolvedStage {
            delay_s: stage.delay_s,
            tasks: stage.tasks.iter().map(task).collect(),
        });
        Self {
            name: plan.name.clone(),
            scope: plan.scope.clone(),
            stages: stages.collect(),
            sufficient_sets: plan.sufficient_sets.clone(),
        }
    }

    /// All its tasks, in order.
    pub fn tasks(&self) -> impl Iterator<Item = &ResolvedTask> {
        self.stages.iter().flat_map(|stage| &stage.tasks)
    }

    /// The methods of all its tasks; one that several tasks have comes several times.
    pub fn methods(&self) -> impl Iterator<Item = &ResolvedMethod> {
        let levels = self.tasks().flat_map(|task| &task.levels);
        levels.flat_map(|level| &level.methods)
    }

    /// The plan, if all of it can be carried out.
    ///
    /// # Errors
    /// What is wrong with each method that cannot be used, by its place in the plan.
    pub fn freeze(self) -> Result<FrozenPlan, Problems> {
        let mut problems = Problems::default();
        let mut stages = Vec::with_capacity(self.stages.len());
        for (i, stage) in self.stages.into_iter().enumerate() {
            let mut tasks = Vec::with_capacity(stage.tasks.len());
            for (j, task) in stage.tasks.into_iter().enumerate() {
                tasks.push(task.freeze(&format!("stages[{i}].tasks[{j}]"), &mut problems));
            }
            stages.push(FrozenStage {
                delay_s: stage.delay_s,
                tasks,
            });
        }
        problems.into_result()?;
        Ok(FrozenPlan {
            name: self.name,
            stages,
            sufficient_sets: self.sufficient_sets,
        })
    }
}

impl ResolvedTask {
    fn freeze(self, at: &str, problems: &mut Problems) -> FrozenTask {
        let mut usable = |method: ResolvedMethod| {
            let name = method.name;
            match method.filled_in {
                Ok(frozen) => return Some(frozen),
                Err(Unusable::Missing) => {
                    problems.add(at, format!("names the method {name:?}, and there is none"));
                }
                Err(Unusable::NotFilledIn(found)) => {
                    let placed =
                        |p: Problem| Problem::new(format!("{at}: method {name}: {}", p.field), p.detail);
                    problems.0.extend(found.0.into_iter().map(placed));
                }
            }
            None
        };
        let mut level = |level: ResolvedLevel| level.methods.into_iter().filter_map(&mut usable).collect();
        FrozenTask {
            kind: self.kind,
            levels: self.levels.into_iter().map(&mut level).collect(),
        }
    }
}

//! Tasks: the things that an operation makes true, with all that was tried for each.

use serde::{Deserialize, Serialize};

use crate::{
    Attempt, AttemptBy, FencingKind, FrozenMethod, MethodTimes, MoveReport, Operation, PlatformHost,
    SegmentPolicy, TaskKind, TaskQueue, Timestamp, Workload, WorkloadStep, step_times,
};

/// How far a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// Its stage has not begun.
    Pending,
    /// An attempt is under way, or waits for a pause or an opposite task to end.
    Running,
    /// It was observed done: on every device of one level, or on the platform.
    Confirmed,
    /// Everything that could be tried failed.
    Failed,
    /// There was nothing to do; `detail` says why.
    Skipped,
    /// Its operation ended before it did.
    Cancelled,
}

impl TaskStatus {
    /// Whether nothing more will come of the task in this round.
    #[must_use]
    pub fn is_over(self) -> bool {
        match self {
            Self::Pending | Self::Running => false,
            Self::Confirmed | Self::Failed | Self::Skipped | Self::Cancelled => true,
        }
    }
}

/// What a task makes true.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskWork {
    /// Something of the host's devices.
    Fencing(FencingTask),
    /// Something of the host's workloads, by the platform of the operation.
    Step(StepTask),
}

/// A task on devices.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FencingTask {
    /// What to make true.
    pub kind: FencingKind,
    /// The ways to do it, frozen when the operation began: every method of a level has to succeed, or the next level is tried.
    pub levels: Vec<Vec<FrozenMethod>>,
    /// The level in use, counted from 0.
    pub level: usize,
    /// How often it was begun again because the host was seen UP after the reading that had confirmed it.
    pub contradicted: u32,
}

/// A step on a platform.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepTask {
    /// What to make true.
    pub step: WorkloadStep,
    /// What became of the workload, as far as is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved: Option<Box<MoveReport>>,
}

/// One task of an operation, with all that was tried for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// What to make true.
    pub work: TaskWork,
    /// How far it is.
    pub status: TaskStatus,
    /// Why it was skipped, cancelled or failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// When what is in use was begun: the level of a fencing task, or the step; each of its methods has its own time from here. Moved
    /// on by the time that no device is to blame for: waiting for a free device, or for an engine that was away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begun_at: Option<Timestamp>,
    /// Attempts of earlier rounds stay in the list for the record; those before this index no longer count.
    pub first_attempt: usize,
    /// What was tried, oldest first.
    pub attempts: Vec<Attempt>,
}

/// One way to do a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Executor {
    /// By a method of a level.
    Method { level: usize, method: FrozenMethod },
    /// By the platform of the operation.
    Platform {
        at: PlatformHost,
        times: MethodTimes,
        only_looks: bool,
    },
}

impl Executor {
    pub fn times(&self) -> &MethodTimes {
        match self {
            Self::Method { method, .. } => &method.times,
            Self::Platform { times, .. } => times,
        }
    }

    pub fn zone(&self) -> &str {
        match self {
            Self::Method { method, .. } => &method.zone,
            Self::Platform { at, .. } => &at.zone,
        }
    }

    /// Seconds for which a command that was given up may still be carried out.
    pub fn lingers_s(&self) -> u32 {
        match self {
            Self::Method { method, .. } => method.lingers_s(),
            Self::Platform { .. } => STEP_LINGERS_S,
        }
    }

    pub fn method(&self) -> Option<&FrozenMethod> {
        match self {
            Self::Method { method, .. } => Some(method),
            Self::Platform { .. } => None,
        }
    }

    /// Whether an attempt was made this way.
    pub fn is_of(&self, attempt: &Attempt) -> bool {
        match (self, &attempt.by) {
            (Self::Method { level, method }, AttemptBy::Method { level: its, id, .. }) => {
                level == its && method.id == *id
            }
            (Self::Platform { .. }, AttemptBy::Platform { .. }) => true,
            (Self::Method { .. }, AttemptBy::Platform { .. })
            | (Self::Platform { .. }, AttemptBy::Method { .. }) => false,
        }
    }

    /// This way, by which nothing is asked for.
    pub fn only_looking(self) -> Self {
        match self {
            Self::Method { .. } => self,
            Self::Platform { at, times, .. } => Self::Platform {
                at,
                times,
                only_looks: true,
            },
        }
    }

    /// How an attempt made this way names it.
    pub fn name(&self) -> AttemptBy {
        match self {
            Self::Method { level, method } => AttemptBy::Method {
                level: *level,
                id: method.id,
                name: method.name.clone(),
                driver: method.driver.clone(),
            },
            Self::Platform { at, only_looks, .. } => AttemptBy::Platform {
                backend: at.backend,
                name: at.platform.clone(),
                only_looks: *only_looks,
            },
        }
    }
}

/// A service of a platform may carry out for so long what was asked for and given up.
const STEP_LINGERS_S: u32 = 10;

impl Task {
    /// A fencing task that waits for its stage.
    #[must_use]
    pub fn fencing(kind: FencingKind, levels: Vec<Vec<FrozenMethod>>) -> Self {
        Self::pending(TaskWork::Fencing(FencingTask {
            kind,
            levels,
            level: 0,
            contradicted: 0,
        }))
    }

    /// A workload step that waits for its stage.
    #[must_use]
    pub fn step(step: WorkloadStep) -> Self {
        Self::pending(TaskWork::Step(StepTask { step, moved: None }))
    }

    fn pending(work: TaskWork) -> Self {
        Self {
            work,
            status: TaskStatus::Pending,
            detail: None,
            begun_at: None,
            first_attempt: 0,
            attempts: Vec::new(),
        }
    }

    /// The task, with nothing to do.
    #[must_use]
    pub fn skipped(self, why: impl Into<String>) -> Self {
        Self {
            status: TaskStatus::Skipped,
            detail: Some(why.into()),
            ..self
        }
    }

    /// What to make true.
    #[must_use]
    pub fn kind(&self) -> TaskKind {
        match &self.work {
            TaskWork::Fencing(task) => TaskKind::Fencing(task.kind),
            TaskWork::Step(task) => TaskKind::Step(task.step.kind()),
        }
    }

    /// It as a fencing task, if it is one.
    #[must_use]
    pub fn as_fencing(&self) -> Option<&FencingTask> {
        match &self.work {
            TaskWork::Fencing(task) => Some(task),
            TaskWork::Step(_) => None,
        }
    }

    /// It as a fencing task to change, if it is one.
    pub fn as_fencing_mut(&mut self) -> Option<&mut FencingTask> {
        match &mut self.work {
            TaskWork::Fencing(task) => Some(task),
            TaskWork::Step(_) => None,
        }
    }

    /// It as a workload step, if it is one.
    #[must_use]
    pub fn as_step(&self) -> Option<&StepTask> {
        match &self.work {
            TaskWork::Step(task) => Some(task),
            TaskWork::Fencing(_) => None,
        }
    }

    /// The workload that it is about, where it is about one.
    #[must_use]
    pub fn workload(&self) -> Option<&Workload> {
        self.as_step()?.step.workload()
    }

    /// What became of its workload, as far as is known.
    #[must_use]
    pub fn moved(&self) -> Option<&MoveReport> {
        self.as_step()?.moved.as_deref()
    }

    /// The methods of every level; none for a workload step.
    #[must_use]
    pub fn levels(&self) -> &[Vec<FrozenMethod>] {
        self.as_fencing().map_or(&[], |task| &task.levels)
    }

    /// The methods of the level in use; `None` for a workload step, and when every level has failed.
    #[must_use]
    pub fn methods_in_use(&self) -> Option<&[FrozenMethod]> {
        let task = self.as_fencing()?;
        task.levels.get(task.level).map(Vec::as_slice)
    }

    /// The attempts of this round.
    #[must_use]
    pub fn round(&self) -> &[Attempt] {
        self.attempts.get(self.first_attempt..).unwrap_or_default()
    }

    /// The method with which an attempt was made; `None` for one by a platform, and if its level has no such method any more.
    #[must_use]
    pub fn method_of(&self, attempt: &Attempt) -> Option<&FrozenMethod> {
        let AttemptBy::Method { level, id, .. } = &attempt.by else {
            return None;
        };
        self.levels().get(*level)?.iter().find(|method| method.id == *id)
    }

    /// The last attempt of this round that was made with a method of the level in use.
    pub(crate) fn last_with(&self, method: &FrozenMethod) -> Option<&Attempt> {
        let level = self.as_fencing()?.level;
        let is_its = |attempt: &&Attempt| attempt.is_by(level, method.id);
        self.round().iter().rfind(is_its)
    }

    /// Sets it back to its beginning; what was tried stays on record.
    pub(crate) fn begin_anew(&mut self) {
        self.status = TaskStatus::Pending;
        self.detail = None;
        self.begun_at = None;
        self.first_attempt = self.attempts.len();
        if let TaskWork::Fencing(task) = &mut self.work {
            task.level = 0;
            task.contradicted = 0;
        }
    }

    /// Leaves the level in use. `false` if there is no other way.
    pub(crate) fn next_level(&mut self) -> bool {
        self.begun_at = None;
        match &mut self.work {
            TaskWork::Fencing(task) => {
                task.level += 1;
                task.level < task.levels.len()
            }
            TaskWork::Step(_) => false,
        }
    }

    /// Whether an attempt is of what is in use.
    pub(crate) fn uses(&self, attempt: &Attempt) -> bool {
        match (&self.work, &attempt.by) {
            (TaskWork::Fencing(task), AttemptBy::Method { level, .. }) => task.level == *level,
            (TaskWork::Step(_), AttemptBy::Platform { .. }) => true,
            (TaskWork::Fencing(_), AttemptBy::Platform { .. })
            | (TaskWork::Step(_), AttemptBy::Method { .. }) => false,
        }
    }
}

/// What an operation was begun with, as far as it says how a task is done.
#[derive(Clone, Copy)]
pub(crate) struct Executors<'a> {
    platform: Option<&'a PlatformHost>,
    policy: &'a SegmentPolicy,
}

impl Operation {
    pub(crate) fn executors(&self) -> Executors<'_> {
        Executors {
            platform: self.platform.as_deref(),
            policy: &self.policy,
        }
    }

    /// The queue that an attempt's message is in; `None` if its level has no such method any more.
    #[must_use]
    pub fn queue_of(&self, task: &Task, attempt: &Attempt) -> Option<TaskQueue> {
        self.executors().queue_of(task, attempt)
    }

    /// The tasks to change, and what they are done with.
    pub(crate) fn tasks_and_executors(&mut self) -> (impl Iterator<Item = &mut Task>, Executors<'_>) {
        let executors = Executors {
            platform: self.platform.as_deref(),
            policy: &self.policy,
        };
        (
            self.stages.iter_mut().flat_map(|stage| &mut stage.tasks),
            executors,
        )
    }
}

impl Executors<'_> {
    /// Everything that has to succeed for what a task has in use: the methods of its level, or the platform. `None` if nothing is left.
    pub fn of(self, task: &Task) -> Option<Vec<Executor>> {
        match &task.work {
            TaskWork::Fencing(fencing) => {
                let level = fencing.level;
                let methods = fencing.levels.get(level)?.iter().cloned();
                Some(methods.map(|method| Executor::Method { level, method }).collect())
            }
            TaskWork::Step(step) => Some(vec![self.by_platform(&step.step)?]),
        }
    }

    /// The way in which an attempt at a task was made; `None` if its level has no such method any more.
    pub fn executor_of(self, task: &Task, attempt: &Attempt) -> Option<Executor> {
        match (&task.work, &attempt.by) {
            (TaskWork::Fencing(_), AttemptBy::Method { level, .. }) => Some(Executor::Method {
                level: *level,
                method: task.method_of(attempt)?.clone(),
            }),
            (TaskWork::Step(step), AttemptBy::Platform { .. }) => self.by_platform(&step.step),
            (TaskWork::Fencing(_), AttemptBy::Platform { .. })
            | (TaskWork::Step(_), AttemptBy::Method { .. }) => None,
        }
    }

    /// The queue that an attempt's message is in; `None` if its level has no such method any more.
    pub fn queue_of(self, task: &Task, attempt: &Attempt) -> Option<TaskQueue> {
        Some(TaskQueue {
            resource: task.kind().resource(),
            zone: self.executor_of(task, attempt)?.zone().to_owned(),
        })
    }

    fn by_platform(self, step: &WorkloadStep) -> Option<Executor> {
        let at = self.platform.cloned()?;
        Some(Executor::Platform {
            times: step_times(step.kind(), at.backend, self.policy),
            at,
            only_looks: false,
        })
    }
}

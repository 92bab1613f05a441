//! Operations: one fence, rejoin or evacuation of one host.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use serde::{Deserialize, Serialize};

use crate::opinions::COUNTS_S;
use crate::{
    Attempt, AttemptId, FailureState, FencingKind, FrozenMethod, Generation, Held, Host, HostId, Movable,
    OperationId, Permit, PlatformHost, Proof, SegmentPolicy, StepKind, SufficientSet, Task, TaskStatus,
    Timestamp, words,
};

/// What an operation is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum OperationKind {
    /// Make the host FENCED.
    Fence,
    /// Take the host back.
    Rejoin,
    /// Start its workloads elsewhere.
    Evacuation,
}

words!(OperationKind);

/// Where an operation stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum OperationStatus {
    /// Tasks are under way or due.
    Running,
    /// Safeguards hold it, and are looked at again: a fence that was not asked for and has not begun, or what was asked for before the host was suspended.
    Held,
    /// Nothing more can be done without a person (or a restart that the segment allows).
    NeedsOperator,
    /// Done.
    Succeeded,
    /// Stopped, by a person or by a newer operation.
    Cancelled,
}

words!(OperationStatus);

impl OperationStatus {
    /// Whether it still holds its host.
    #[must_use]
    pub fn is_live(self) -> bool {
        match self {
            Self::Running | Self::Held | Self::NeedsOperator => true,
            Self::Succeeded | Self::Cancelled => false,
        }
    }
}

/// What a stage waits for before its tasks begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Awaits {
    /// The self-fencing timeout since the fence, or a newer boot: before that the host's own watchdog may still strike.
    SelfFencing,
    /// The host is seen UP and, where the fence demands it, booted anew.
    HostBack,
    /// The host is FENCED.
    Fenced,
}

/// Tasks that run in parallel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stage {
    /// Seconds to wait before it begins.
    pub delay_s: u32,
    /// How many of its tasks may be under way at one time; all of them if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_once: Option<u32>,
    /// What has to be true before it begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub awaits: Option<Awaits>,
    /// When its turn came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entered_at: Option<Timestamp>,
    /// When its tasks began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// Its tasks.
    pub tasks: Vec<Task>,
}

impl Stage {
    /// Whether everything in it is over.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.started_at.is_some() && self.tasks.iter().all(|task| task.status.is_over())
    }
}

/// What an operation is for, and what belongs to that alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Work {
    /// Make the host FENCED.
    Fence(FenceWork),
    /// Take the host back.
    Rejoin(RejoinWork),
    /// Start its workloads elsewhere.
    Evacuation(EvacuationWork),
}

/// Why a fence began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum Cause {
    /// A person asked for it.
    #[default]
    Request,
    /// A program asked for it, and safeguards hold it as they hold an automatic fence.
    Program,
    /// The host was silent for long enough.
    Silence,
    /// A condition of the host stood for long enough, and its segment fences for that.
    Condition,
}

words!(Cause);

impl Cause {
    /// Of an automatic fence: a host that answers is fenced for a condition, and no other host is.
    #[must_use]
    pub fn of_automatic(host: &Host) -> Self {
        match host.failure_state {
            FailureState::Up => Self::Condition,
            FailureState::Unreachable | FailureState::Unknown => Self::Silence,
        }
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
    fn is_request(&self) -> bool {
        *self == Self::Request
    }
}

/// What belongs to a fence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FenceWork {
    /// The plan's name; `None` where no plan can be carried out, and for a person's word.
    pub plan: Option<String>,
    /// The proofs that make the host FENCED.
    pub sufficient_sets: Vec<SufficientSet>,
    /// Why it began.
    #[serde(default, skip_serializing_if = "Cause::is_request")]
    pub cause: Cause,
    /// It is automatic, and too much has failed at once: it does nothing until a person says so.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_held_by_brake: bool,
    /// The safeguards that hold it, where they do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<Held>,
    /// Until when its next step may begin by what others have said; the step uses it up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_until: Option<Timestamp>,
    /// It waits before a step to hear what others say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asks: Option<Asks>,
    /// It has begun by itself, and a person has wanted it since: no safeguard holds it any more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_wanted: bool,
    /// What it has taken to begin.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub permits: Vec<Permit>,
}

/// What a fence that has begun by itself waits for before a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asks {
    /// Since when: what was asked before then counts for nothing.
    pub since: Timestamp,
}

impl FenceWork {
    /// A fence that nothing holds.
    #[must_use]
    pub fn new(plan: Option<String>, sufficient_sets: Vec<SufficientSet>) -> Self {
        Self {
            plan,
            sufficient_sets,
            cause: Cause::Request,
            is_held_by_brake: false,
            held: None,
            allowed_until: None,
            asks: None,
            is_wanted: false,
            permits: Vec::new(),
        }
    }

    /// No moment of the past lies after `now`, and what others have said counts no longer than it would if it was said now.
    pub(crate) fn adjust(&mut self, now: Timestamp) {
        let last = now + TimeDelta::seconds(COUNTS_S);
        self.allowed_until = self.allowed_until.map(|until| until.min(last));
        if let Some(asks) = &mut self.asks {
            asks.since = asks.since.min(now);
        }
        if let Some(held) = &mut self.held {
            held.since = held.since.min(now);
            held.looked_at = held.looked_at.min(now);
        }
    }
}

/// What belongs to a rejoin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RejoinWork {
    /// A person said that the host was booted anew.
    pub boot_confirmed: bool,
}

/// What belongs to an evacuation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvacuationWork {
    /// How often the backend has told what is on the host.
    pub listings: u32,
    /// How many of the spare hosts were opened.
    pub spares: u32,
    /// Whether the last listing may not have named all.
    pub is_cut: bool,
    /// Which workloads could be moved when the backend was asked last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listed_for: Option<Movable>,
    /// Since when the gate has been closed, where it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_since: Option<Timestamp>,
}

/// One fence, rejoin or evacuation of one host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operation {
    /// Its id.
    pub id: OperationId,
    /// Its host.
    pub host_id: HostId,
    /// What it is for.
    pub work: Work,
    /// Where it stands.
    pub status: OperationStatus,
    /// Why it stands there, in words.
    pub detail: String,
    /// The generation that it took.
    pub generation: Generation,
    /// Why it was asked for.
    pub reason: String,
    /// Who asked.
    pub requested_by: String,
    /// What the host's segment said when it began; later edits change nothing.
    pub policy: Box<SegmentPolicy>,
    /// The platform that carries out its workload steps, as the host knew it when the operation began; `None` if no platform does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub platform: Option<Box<PlatformHost>>,
    /// What is done, in order.
    pub stages: Vec<Stage>,
    /// What was proven in it, by kind; the last one of each.
    pub proofs: Vec<Proof>,
    /// What it stands still for, where it does although it has begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<Held>,
    /// The suspensions during which it began, or was asked for again, each by its beginning: it does not stand still for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub despite: Vec<Timestamp>,
    /// How often it has been started again, by itself or by hand.
    pub round: u32,
    /// How often it may still start again by itself.
    pub restarts_left: u32,
    /// When it starts again by itself.
    pub restart_at: Option<Timestamp>,
    /// The number of its last attempt.
    pub last_attempt: u32,
    /// Counts the changes that were committed.
    pub revision: u64,
    /// When it was asked for.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
}

impl Operation {
    /// What it is for.
    #[must_use]
    pub fn kind(&self) -> OperationKind {
        match self.work {
            Work::Fence(_) => OperationKind::Fence,
            Work::Rejoin(_) => OperationKind::Rejoin,
            Work::Evacuation(_) => OperationKind::Evacuation,
        }
    }

    /// What belongs to it as a fence, if it is one.
    #[must_use]
    pub fn fence(&self) -> Option<&FenceWork> {
        match &self.work {
            Work::Fence(fence) => Some(fence),
            Work::Rejoin(_) | Work::Evacuation(_) => None,
        }
    }

    /// Whether it is a fence that does nothing until a person says so.
    #[must_use]
    pub fn is_held_by_brake(&self) -> bool {
        self.fence().is_some_and(|fence| fence.is_held_by_brake)
    }

    /// Whether it is a fence of which nothing begins, for safeguards or for a person's word.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.fence()
            .is_some_and(|fence| fence.is_held_by_brake || fence.held.is_some())
    }

    /// Whether it is a fence of which nothing has begun, and nothing begins.
    pub(crate) fn is_held_before_it_begins(&self) -> bool {
        self.is_held() && self.fence().is_some_and(|fence| fence.asks.is_none())
    }

    /// The safeguards that hold it, if any do.
    #[must_use]
    pub fn held(&self) -> Option<&Held> {
        self.paused.as_ref().or_else(|| self.fence()?.held.as_ref())
    }

    /// Whether it is a fence that was not asked for, which waits until enough others are over, and for nothing else.
    #[must_use]
    pub fn is_in_line(&self) -> bool {
        let held = self.fence().and_then(|fence| fence.held.as_ref());
        held.is_some_and(|held| {
            !held.by.is_empty() && held.by.iter().all(|ruling| ruling.safeguard.is_line())
        })
    }

    /// Whether it is a fence for a condition of the host, which may answer.
    pub(crate) fn is_for_a_condition(&self) -> bool {
        self.fence().is_some_and(|fence| fence.cause == Cause::Condition)
    }

    /// The permits that it holds: as long as it is under way.
    #[must_use]
    pub fn permits(&self) -> &[Permit] {
        let fence = self.fence().filter(|_| self.status.is_live());
        fence.map_or(&[], |fence| &fence.permits)
    }

    /// What belongs to it as an evacuation, if it is one.
    pub(crate) fn evacuation(&self) -> Option<&EvacuationWork> {
        match &self.work {
            Work::Evacuation(evacuation) => Some(evacuation),
            Work::Fence(_) | Work::Rejoin(_) => None,
        }
    }

    /// What belongs to it as an evacuation, if it is one.
    pub(crate) fn evacuation_mut(&mut self) -> Option<&mut EvacuationWork> {
        match &mut self.work {
            Work::Evacuation(evacuation) => Some(evacuation),
            Work::Fence(_) | Work::Rejoin(_) => None,
        }
    }

    /// Whether a person said that the host was booted anew.
    #[must_use]
    pub fn is_boot_confirmed(&self) -> bool {
        matches!(&self.work, Work::Rejoin(rejoin) if rejoin.boot_confirmed)
    }

    /// All its tasks, in order.
    pub fn tasks(&self) -> impl Iterator<Item = &Task> {
        self.stages.iter().flat_map(|stage| &stage.tasks)
    }

    /// All its tasks, in order, to change.
    pub fn tasks_mut(&mut self) -> impl Iterator<Item = &mut Task> {
        self.stages.iter_mut().flat_map(|stage| &mut stage.tasks)
    }

    /// The devices that a fence has seen off, if it has.
    #[must_use]
    pub fn seen_off(&self) -> Option<&[FrozenMethod]> {
        let is_it =
            |task: &&Task| task.kind() == FencingKind::PowerOff && task.status == TaskStatus::Confirmed;
        self.tasks().find(is_it)?.methods_in_use()
    }

    /// What became of every workload at last, in the order in which they were taken up.
    #[must_use]
    pub fn moves(&self) -> Vec<&Task> {
        let mut last: BTreeMap<&str, (usize, &Task)> = BTreeMap::new();
        for (at, task) in self.tasks().enumerate() {
            if let Some(workload) = task.workload() {
                let first = last.get(workload.id.as_str()).map_or(at, |(first, _)| *first);
                last.insert(&workload.id, (first, task));
            }
        }
        let mut moves: Vec<_> = last.into_values().collect();
        moves.sort_by_key(|(first, _)| *first);
        moves.into_iter().map(|(_, task)| task).collect()
    }

    /// All its attempts.
    pub fn attempts(&self) -> impl Iterator<Item = &Attempt> {
        self.tasks().flat_map(|task| &task.attempts)
    }

    /// The attempt with this id, and its task.
    #[must_use]
    pub fn find(&self, id: AttemptId) -> Option<(&Task, &Attempt)> {
        if id.operation_id != self.id {
            return None;
        }
        self.tasks().find_map(|task| {
            task.attempts
                .iter()
                .find(|a| a.number == id.number)
                .map(|a| (task, a))
        })
    }

    /// Whether a worker ever claimed one of its attempts at anything that could have stopped the host.
    #[must_use]
    pub fn has_acted(&self) -> bool {
        let mut acting = self.tasks().filter(|task| task.kind() != StepKind::Isolate);
        acting.any(|task| task.attempts.iter().any(|attempt| attempt.claimed_at.is_some()))
    }
}

//! Effects: what has to be committed with the next state.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    AttemptId, Event, FencingKind, FrozenMethod, Generation, HostId, HostState, Movable, Operation,
    OperationId, PlatformHost, TaskKind, Timestamp, WorkloadStep,
};

/// What a worker is to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Job {
    /// A task on devices.
    Fencing {
        /// What to make true.
        kind: FencingKind,
        /// How.
        method: FrozenMethod,
    },
    /// A step on a platform.
    Step {
        /// What to make true.
        step: WorkloadStep,
        /// Of which host of which platform.
        at: PlatformHost,
        /// Which workloads may be let go, as things are.
        movable: Movable,
    },
}

impl Job {
    /// What to make true.
    #[must_use]
    pub fn kind(&self) -> TaskKind {
        match self {
            Self::Fencing { kind, .. } => TaskKind::Fencing(*kind),
            Self::Step { step, .. } => TaskKind::Step(step.kind()),
        }
    }

    /// The method, where it is a task on devices.
    #[must_use]
    pub fn method(&self) -> Option<&FrozenMethod> {
        match self {
            Self::Fencing { method, .. } => Some(method),
            Self::Step { .. } => None,
        }
    }

    /// The zone whose workers do it.
    #[must_use]
    pub fn zone(&self) -> &str {
        match self {
            Self::Fencing { method, .. } => &method.zone,
            Self::Step { at, .. } => &at.zone,
        }
    }

    /// The name of the method, or of the platform with its sort before it.
    #[must_use]
    pub fn by(&self) -> String {
        match self {
            Self::Fencing { method, .. } => method.name.clone(),
            Self::Step { at, .. } => at.label(),
        }
    }
}

/// Work for a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dispatch {
    /// The host.
    pub host_id: HostId,
    /// Its name, for people.
    pub host: String,
    /// The attempt.
    pub attempt: AttemptId,
    /// The generation that it is for.
    pub generation: Generation,
    /// What to do.
    pub job: Job,
    /// A claim later than this is refused.
    pub claim_by: Timestamp,
}

/// Something for the audit trail that no event tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// What was done or refused, as a word for programs.
    pub action: &'static str,
    /// The particulars.
    pub detail: Value,
}

/// One thing to commit with the next state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Tell a worker.
    Dispatch(Box<Dispatch>),
    /// Send an event.
    Event(Event),
    /// Put it on record.
    Note(Note),
}

/// What the one who asked is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// It was done at once.
    Done,
    /// It is so already.
    AlreadySo,
    /// An operation began.
    Started(OperationId),
    /// An operation that does it is running.
    Joined(OperationId),
    /// The worker may act.
    Granted {
        /// Milliseconds, counted by the worker from before it asked, after which it must have stopped.
        budget_ms: u64,
        /// Milliseconds within which it has to show that it lives.
        lease_ms: u64,
    },
    /// The input came too late or twice: put on record, nothing else.
    Ignored(&'static str),
}

/// A decision: the next state of the host, what goes with it, and the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The next state. An operation that has just ended is still in it.
    pub state: HostState,
    /// An operation that made way for the one in `state`, or ended just before that began.
    pub superseded: Option<Operation>,
    /// What goes with it, in order.
    pub effects: Vec<Effect>,
    /// When time alone may change something: the host has to be ticked then, and a tick before that changes nothing.
    pub wake_at: Option<Timestamp>,
    /// What the one who asked is told.
    pub answer: Reply,
}

//! Inputs: everything that can move a host.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{
    AttemptId, EngineTime, Finding, FrozenPlan, FrozenTask, Generation, HostId, Neighbourhood, Observation,
    OperationId, Opinions, Outcome, Report, ReportedCondition, Resource, SufficientSet, TaskKind, Timestamp,
};

/// Who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actor {
    /// The name of the person or service.
    pub name: String,
    /// Whether it may override.
    pub is_admin: bool,
}

/// A queue of tasks: those for one resource in one zone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskQueue {
    /// What its tasks act on.
    pub resource: Resource,
    /// Whose workers take them.
    pub zone: String,
}

/// What is known of the queues of tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Queues {
    /// The broker is there.
    There {
        /// From these workers have taken tasks lately: what waits in them waits for its turn.
        moving: BTreeSet<TaskQueue>,
        /// These are served, and no task waits in them.
        empty: BTreeSet<TaskQueue>,
        /// Every task that was sent before and was not claimed by then was lost with the bus that carried it.
        began_at: Option<Timestamp>,
    },
    /// The broker is away: no worker can take a task, and every task that waits, waits for the broker.
    Away,
}

impl Queues {
    /// Nothing is known of them.
    #[must_use]
    pub fn unknown() -> Self {
        Self::There {
            moving: BTreeSet::new(),
            empty: BTreeSet::new(),
            began_at: None,
        }
    }
}

/// A worker asks whether it may act. It names everything that the attempt was made for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// The host.
    pub host_id: HostId,
    /// The attempt.
    pub attempt: AttemptId,
    /// The generation that it was made for.
    pub generation: Generation,
    /// The task that it was made for.
    pub kind: TaskKind,
    /// The worker's name.
    pub worker: String,
    /// The claim's own id: a claim that is asked again gets the answer that it got first.
    pub claim_id: Uuid,
}

/// A worker says how an attempt ended. Sent after the driver has stopped for good.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskResult {
    /// What was claimed.
    pub claim: Claim,
    /// How it ended.
    pub outcome: Outcome,
    /// What was read back, if anything was.
    pub observation: Option<Observation>,
    /// What was found out beside the state, by a task on workloads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finding: Option<Finding>,
    /// In words, without secrets.
    pub detail: String,
}

/// Everything that can move a host. New ids come from outside; each is used only if something new begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// Fence the host.
    Fence {
        /// For the operation, if one begins.
        operation_id: OperationId,
        /// How; `None` if no plan can be carried out for the host.
        plan: Option<FrozenPlan>,
        /// Why.
        reason: String,
        /// Who asks.
        actor: Actor,
        /// A program asks: safeguards hold the fence as they hold an automatic one.
        heeds_safeguards: bool,
    },
    /// The host has been silent for long enough: fence it if its segment wants that.
    AutoFence {
        /// For the operation, if one begins.
        operation_id: OperationId,
        /// How; or why no plan can be carried out.
        plan: Result<FrozenPlan, String>,
        /// What counts where none can.
        sufficient_sets: Vec<SufficientSet>,
        /// How the hosts of its segment stand.
        around: Neighbourhood,
        /// What others were asked.
        opinions: Opinions,
    },
    /// Look again at the safeguards of a fence that they hold.
    LookAgain {
        /// How the hosts of its segment stand.
        around: Neighbourhood,
        /// What others were asked.
        opinions: Opinions,
    },
    /// A person says that the host was fenced by hand.
    Confirm {
        /// For the operation, if one begins.
        operation_id: OperationId,
        /// The generation that the person looked at.
        generation: Generation,
        /// When the person said so: it says nothing of what came after that.
        said_at: Timestamp,
        /// Why.
        reason: String,
        /// Who says so.
        actor: Actor,
        /// Although the host is seen UP; admins only.
        override_up: bool,
        /// What counts if no fence is running.
        sufficient_sets: Vec<SufficientSet>,
    },
    /// Take the host back.
    Rejoin {
        /// For the operation, if one begins.
        operation_id: OperationId,
        /// Why.
        reason: String,
        /// Who asks.
        actor: Actor,
        /// The person says that the host was booted anew since the fence.
        boot_confirmed: bool,
        /// A program asks: a host in quarantine, or one that is suspended, is not taken back for it.
        heeds_safeguards: bool,
    },
    /// Start the host's workloads elsewhere.
    Evacuate {
        /// For the operation, if one begins.
        operation_id: OperationId,
        /// Why.
        reason: String,
        /// Who asks.
        actor: Actor,
        /// A program asks: a host that is suspended is not evacuated for it.
        heeds_safeguards: bool,
    },
    /// Go on with an evacuation that was live when its engine lost the database. It begins although nothing has seen the host yet, and moves
    /// nothing before the gate is open.
    ResumeEvacuation {
        /// For the operation.
        operation_id: OperationId,
        /// Why it was asked for.
        reason: String,
        /// Who asked.
        actor: Actor,
        /// What was left to do on the host's devices.
        left: Vec<FrozenTask>,
    },
    /// Begin anew what was live when its engine lost the database.
    BeginAnew {
        /// The request for it.
        request: Box<Input>,
        /// The suspensions for which it does not stand still.
        despite: Vec<Timestamp>,
    },
    /// An admin confirms that applied fencing was released by hand, or is gone with its device.
    ConfirmReleased {
        /// The generation that the person looked at.
        generation: Generation,
        /// The names of the methods by which it was taken.
        methods: BTreeSet<String>,
        /// Why.
        reason: String,
        /// Who says so; has to be an admin.
        actor: Actor,
    },
    /// Stop an operation.
    Cancel {
        /// Which.
        operation_id: OperationId,
        /// Why.
        reason: String,
        /// Who asks.
        actor: Actor,
    },
    /// Try again what failed.
    Retry {
        /// Which.
        operation_id: OperationId,
        /// Why.
        reason: String,
        /// Who asks.
        actor: Actor,
    },
    /// A source saw the host.
    FailureState {
        /// For the rejoin, if the segment says that one begins.
        operation_id: OperationId,
        /// What was seen, by whom and when.
        report: Report,
    },
    /// A source says which conditions the host has.
    Conditions {
        /// Its name.
        source: String,
        /// What it says.
        conditions: Vec<ReportedCondition>,
        /// Which of its others are no more; `None`: all of them, for it says all that it knows.
        over: Option<Vec<String>>,
    },
    /// A person strikes off a source that reports no more.
    ForgetSource {
        /// Its name.
        source: String,
        /// Why.
        reason: String,
        /// Who says so.
        actor: Actor,
    },
    /// Suspend the host.
    Suspend {
        /// When that ends by itself; `None` if a person has to end it.
        until: Option<Timestamp>,
        /// Why.
        reason: String,
        /// Who asks.
        actor: Actor,
    },
    /// End the suspension of the host.
    Resume {
        /// Why.
        reason: String,
        /// Who asks.
        actor: Actor,
    },
    /// It is the turn of some of the host's moves among those of all hosts.
    BeginMoves {
        /// So many may begin with this decision.
        at_most: u32,
    },
    /// A kdump message came from an address of the host.
    KdumpMessage {
        /// A moment after which it was heard, as close as is known; without one it proves nothing.
        heard_after: Option<EngineTime>,
    },
    /// A worker asks whether it may act.
    Claim(Claim),
    /// The claim's device takes another command at the moment; the attempt waits.
    DeviceBusy(Claim),
    /// A worker is still at it.
    Renew(Claim),
    /// A worker is done.
    Result(TaskResult),
    /// Time has passed.
    Tick {
        /// What is known of the queues of tasks.
        queues: Queues,
    },
}

impl Input {
    /// Time has passed, and no queue is known to move.
    #[must_use]
    pub fn tick() -> Self {
        Self::Tick {
            queues: Queues::unknown(),
        }
    }
}

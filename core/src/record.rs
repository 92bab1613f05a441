//! What has to outlive the database where a cluster keeps it for Ringfence: the record of one host. The database is then a cache of the
//! records, and may vanish at any time.
//!
//! What is on no record is not proven: a host that is restored is UNKNOWN, and its gates stay closed until a source has reported it.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use serde::{Deserialize, Serialize};

use crate::decide;
use crate::guard::{Guard, on};
use crate::platform::platform_of;
use crate::{
    Actor, Alarms, Applied, AttemptId, Boots, Cause, Conditions, Fence, FenceWork, Flapping, FrozenPlan,
    FrozenStage, FrozenTask, Generation, Host, HostId, HostState, InFlight, Input, Operation, OperationId,
    OperationKind, OperationStatus, StepKind, Suspension, Task, TaskKind, TaskWork, Timestamp, Work,
};

/// Workloads are moved one after the other, each by an attempt of its own. A record names them together, as in flight until the end of a
/// span of so many seconds, so that it is not written for each.
const MOVES_SPAN_S: i64 = 30;

/// The record of one host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The host's id: what workers have claimed is named by it.
    pub host_id: HostId,
    /// The generation.
    pub generation: Generation,
    /// What FENCED rests on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fence: Option<Fence>,
    /// What fences have taken from the host.
    #[serde(default)]
    pub applied: Applied,
    /// What may be acting on the host.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub in_flight: Vec<InFlight>,
    /// Until when something may have been released to the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub released_at: Option<Timestamp>,
    /// Until when the host may last have been switched off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_off_at: Option<Timestamp>,
    /// Whether the host's silence was answered by a fence or by a person who ended one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_silence_answered: bool,
    /// The sources that have heard the host, each with the boots that it saw: as long as one of them does not report, silence proves
    /// nothing.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub witnesses: BTreeMap<String, Boots>,
    /// How often it was fenced lately.
    #[serde(default, skip_serializing_if = "Flapping::is_none")]
    pub flapping: Flapping,
    /// Which of its problems come too often.
    #[serde(default, skip_serializing_if = "Alarms::is_none")]
    pub alarms: Alarms,
    /// Its own suspension.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspension: Option<Suspension>,
    /// The live operation, which begins anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unfinished: Option<Unfinished>,
}

/// The request of a live operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unfinished {
    /// What it is for.
    pub kind: OperationKind,
    /// Why it was asked for.
    pub reason: String,
    /// Who asked.
    pub requested_by: String,
    /// How the host is fenced, where it is a fence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<FrozenPlan>,
    /// A person said that the host was booted anew, where it is a rejoin.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_boot_confirmed: bool,
    /// It is a program's fence that safeguards hold.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub heeds_safeguards: bool,
    /// The suspensions for which it does not stand still.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub despite: Vec<Timestamp>,
    /// What is left to do on the devices of a host that is FENCED: to switch its power on, for one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<FrozenTask>,
    /// The number of the last attempt at the fence that was proven, where that goes on: another number names another attempt.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub last_attempt: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl Record {
    /// The record of a host; `None` where nothing has to outlive the database.
    #[must_use]
    pub fn of(state: &HostState) -> Option<Self> {
        let host = &state.host;
        let live = state.operation.as_ref().filter(|live| live.status.is_live());
        let is_blank = host.generation == Generation::default()
            && host.fence.is_none()
            && host.applied.is_empty()
            && host.in_flight.is_empty()
            && host.suspension.is_none()
            && host.flapping.is_none()
            && live.is_none();
        let is_held = live.is_some_and(Operation::is_held_before_it_begins);
        // A host that fences itself is proven to have done so by the silence of all who have heard it.
        let has_witnesses =
            state.policy.self_fencing_timeout_s.is_some() && host.sources.alive_at().is_some();
        if is_blank && !has_witnesses {
            return None;
        }
        Some(Self {
            host_id: host.id,
            generation: host.generation,
            fence: host.fence.clone(),
            applied: host.applied.clone(),
            in_flight: in_flight(&host.in_flight),
            released_at: host.released_at,
            last_off_at: host.last_off_at,
            // An automatic fence that is held begins by itself, if it is due then.
            is_silence_answered: host.is_silence_answered && !is_held,
            witnesses: if on(Guard::RecordKeepsWitnesses) {
                host.sources.witnesses()
            } else {
                BTreeMap::new()
            },
            suspension: host.suspension.clone(),
            flapping: host.flapping.clone(),
            alarms: host.alarms.clone(),
            unfinished: live.and_then(|live| unfinished(live, host)),
        })
    }

    /// Restores a host that was taken in anew from its platform. The record was written at `written_at`, by the clock of another engine.
    #[must_use]
    pub fn restore(self, fresh: HostState, written_at: Timestamp) -> Restored {
        let mut sources = fresh.host.sources;
        sources.restore(self.witnesses, written_at);
        let fence = self.fence.clone();
        let host = Host {
            id: self.host_id,
            generation: self.generation,
            fence: self.fence,
            applied: self.applied,
            in_flight: self.in_flight,
            released_at: self.released_at,
            last_off_at: self.last_off_at,
            is_silence_answered: self.is_silence_answered,
            conditions: Conditions::forgotten(),
            suspension: self.suspension,
            flapping: self.flapping,
            alarms: self.alarms,
            sources,
            updated_at: fresh.host.updated_at.max(written_at),
            ..fresh.host
        };
        let state = HostState { host, ..fresh };
        let (rest, unfinished) = match self.unfinished {
            Some(unfinished) if unfinished.is_rest_of_fence(&state.host) => (Some(unfinished), None),
            unfinished => (None, unfinished),
        };
        let proven_by = fence.map(|fence| proven_by(fence, rest, &state));
        Restored {
            host: state.host,
            proven_by,
            unfinished,
        }
    }
}

/// What has to be so before a decision takes effect: another process may have taken the records over meanwhile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Due {
    /// Nothing: what the decision changes may be forgotten.
    Nothing,
    /// The record is still this process's to write.
    Own,
    /// This record is written, by the process that has written or taken over the one before.
    Written(Box<Record>),
}

impl Due {
    /// Before a decision that makes the host this one. `written` is the record as this process has written or read it last; `is_claimed`: a
    /// worker is to act upon it.
    #[must_use]
    pub fn before(written: Option<&Record>, state: &HostState, is_claimed: bool) -> Self {
        match Record::of(state) {
            Some(record) if Some(&record) != written && on(Guard::ChangeIsOnRecord) => {
                Self::Written(Box::new(record))
            }
            Some(_) if is_claimed => Self::Own,
            Some(_) | None => Self::Nothing,
        }
    }
}

/// A host that was restored from its record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    /// The host: UNKNOWN, and as fenced as the record says.
    pub host: Host,
    /// The operation that has proven its fence, as far as it is known. It is live where something of it is left to do.
    pub proven_by: Option<Operation>,
    /// The operation that was live, where it is another one: its request.
    pub unfinished: Option<Unfinished>,
}

/// With `rest` the operation is live, and goes on with that.
fn proven_by(fence: Fence, rest: Option<Unfinished>, state: &HostState) -> Operation {
    let work = Work::Fence(FenceWork::new(None, fence.sets));
    let over = Operation {
        id: fence.operation_id,
        host_id: state.host.id,
        work,
        status: OperationStatus::Succeeded,
        detail: "restored from the record of the host; its tasks are not known any more".to_owned(),
        generation: fence.generation,
        reason: "restored from the record of the host".to_owned(),
        requested_by: "ringfence".to_owned(),
        policy: Box::new(state.policy.clone()),
        platform: platform_of(state).map(Box::new),
        stages: Vec::new(),
        proofs: fence.proofs,
        paused: None,
        despite: Vec::new(),
        round: 0,
        restarts_left: 0,
        restart_at: None,
        last_attempt: 0,
        revision: 0,
        created_at: fence.at,
        updated_at: fence.at,
        finished_at: Some(fence.at),
    };
    let Some(rest) = rest else { return over };
    Operation {
        status: OperationStatus::Running,
        detail: String::new(),
        reason: rest.reason,
        requested_by: rest.requested_by,
        stages: decide::rest_of_fence(state, rest.left),
        restarts_left: state.policy.restarts,
        last_attempt: rest.last_attempt,
        finished_at: None,
        ..over
    }
}

impl Unfinished {
    /// Whether all that is left is what the fence that was proven had to do beside its proof.
    fn is_rest_of_fence(&self, host: &Host) -> bool {
        let is_it = match self.kind {
            OperationKind::Fence => host.current_fence().is_some(),
            // Its workloads had been let go: the power was on its way back.
            OperationKind::Evacuation => host.current_fence().is_some() && host.good_fence().is_none(),
            OperationKind::Rejoin => false,
        };
        is_it && on(Guard::RecordKeepsRestOfFence)
    }

    /// The request with which the operation begins anew, as another one of this id.
    #[must_use]
    pub fn request(self, operation_id: OperationId) -> Input {
        let reason = self.reason;
        let actor = Actor {
            name: self.requested_by,
            is_admin: false,
        };
        let request = match self.kind {
            OperationKind::Fence => Input::Fence {
                operation_id,
                plan: self.plan,
                reason,
                actor,
                heeds_safeguards: self.heeds_safeguards,
            },
            OperationKind::Rejoin => Input::Rejoin {
                operation_id,
                reason,
                actor,
                boot_confirmed: self.is_boot_confirmed,
                // It had begun.
                heeds_safeguards: false,
            },
            OperationKind::Evacuation => Input::ResumeEvacuation {
                operation_id,
                reason,
                actor,
                left: self.left,
            },
        };
        Input::BeginAnew {
            request: Box::new(request),
            despite: self.despite,
        }
    }
}

/// What only looks leaves nothing behind.
fn in_flight(all: &[InFlight]) -> Vec<InFlight> {
    let (moves, others): (Vec<_>, Vec<_>) = all
        .iter()
        .filter(|f| !f.only_looks)
        .partition(|f| f.kind == StepKind::Move);
    let acts = |f: &&InFlight| match f.kind {
        TaskKind::Fencing(_) => true,
        TaskKind::Step(step) => !step.only_looks(),
    };
    let moves = moves.into_iter().max_by_key(|f| f.until);
    others
        .into_iter()
        .filter(acts)
        .filter(|_| on(Guard::RecordKeepsInFlight))
        .cloned()
        .chain(moves.map(together).filter(|_| on(Guard::RecordKeepsMoves)))
        .collect()
}

/// One entry for all moves until the end of a span.
fn together(last: &InFlight) -> InFlight {
    let into_span_ms = last.until.timestamp_millis().rem_euclid(MOVES_SPAN_S * 1_000);
    let until = last.until + TimeDelta::milliseconds(MOVES_SPAN_S * 1_000 - into_span_ms);
    InFlight {
        attempt: AttemptId {
            number: 0,
            ..last.attempt
        },
        claim_id: None,
        until,
        lasts_ms: None,
        ..last.clone()
    }
}

/// An automatic fence that is held begins by itself, if it is due then. A program's does not: the program has asked, and may not ask again.
fn unfinished(live: &Operation, host: &Host) -> Option<Unfinished> {
    let is_fenced = host.current_fence().is_some();
    let is_held = live.is_held_before_it_begins();
    let (plan, is_boot_confirmed) = match &live.work {
        Work::Fence(fence) if is_held && fence.cause != Cause::Program => return None,
        Work::Fence(fence) => (Some(plan(live, fence)).filter(|_| !is_fenced), false),
        Work::Rejoin(rejoin) => (None, rejoin.boot_confirmed),
        Work::Evacuation(_) => (None, false),
    };
    let proven_by = host.current_fence().map(|fence| fence.operation_id);
    Some(Unfinished {
        kind: live.kind(),
        reason: live.reason.clone(),
        requested_by: live.requested_by.clone(),
        plan,
        is_boot_confirmed,
        heeds_safeguards: is_held,
        despite: live.despite.clone(),
        left: decide::left_to_do(live, host),
        last_attempt: if proven_by == Some(live.id) {
            live.last_attempt
        } else {
            0
        },
    })
}

/// The plan as it was frozen for the fence.
fn plan(live: &Operation, fence: &FenceWork) -> FrozenPlan {
    let frozen = |task: &Task| match &task.work {
        TaskWork::Fencing(fencing) => Some(FrozenTask {
            kind: fencing.kind,
            levels: fencing.levels.clone(),
        }),
        TaskWork::Step(_) => None,
    };
    let stages = live.stages.iter().map(|stage| FrozenStage {
        delay_s: stage.delay_s,
        tasks: stage.tasks.iter().filter_map(frozen).collect(),
    });
    FrozenPlan {
        name: fence.plan.clone().unwrap_or_default(),
        stages: stages.filter(|stage| !stage.tasks.is_empty()).collect(),
        sufficient_sets: fence.sufficient_sets.clone(),
    }
}

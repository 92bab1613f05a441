//! What can be read out of a record without asking the code under test what it thinks.

use std::collections::BTreeSet;

use chrono::TimeDelta;
use ringfence_core::*;

use super::deeds::wanted;
use ringfence_world::{Moment, World};

/// A claim that was granted.
#[derive(Clone, Debug)]
pub struct Grant {
    pub at: usize,
    pub claim: Claim,
    pub method: FrozenMethod,
    /// By the clock that nobody moves.
    pub real: Timestamp,
    pub budget_ms: u64,
    /// When its own result first arrived.
    pub over: Option<Timestamp>,
}

/// A device that was read in the wanted state for this claim.
#[derive(Clone, Debug)]
pub struct Reading {
    pub at: usize,
    pub operation_id: OperationId,
    pub generation: Generation,
    pub kind: TaskKind,
    pub method: FrozenMethod,
}

pub fn decisions(world: &World) -> impl Iterator<Item = (usize, &Moment, &Decision)> {
    let moments = world.trace.iter().enumerate();
    moments.filter_map(|(at, moment)| moment.said.as_ref().ok().map(|decision| (at, moment, decision)))
}

pub fn events(decision: &Decision) -> impl Iterator<Item = &Event> {
    decision.effects.iter().filter_map(|effect| match effect {
        Effect::Event(event) => Some(event),
        Effect::Dispatch(_) | Effect::Note(_) => None,
    })
}

pub fn has_event(decision: &Decision, kind: EventKind) -> bool {
    events(decision).any(|event| event.kind == kind)
}

/// Every claim that was granted for the first time.
pub fn grants(world: &World) -> Vec<Grant> {
    let mut grants: Vec<Grant> = Vec::new();
    for (at, moment, decision) in decisions(world) {
        match (&moment.input, &decision.answer) {
            (Input::Claim(claim), Answer::Granted { budget_ms, .. })
                if grants.iter().all(|g| g.claim.claim_id != claim.claim_id) =>
            {
                let sent = world.sent.iter().find(|sent| sent.attempt == claim.attempt);
                grants.push(Grant {
                    at,
                    claim: claim.clone(),
                    method: sent.expect("only what was sent can be claimed").method.clone(),
                    real: moment.real,
                    budget_ms: *budget_ms,
                    over: None,
                });
            }
            (Input::Result(result), _) => {
                let own = grants
                    .iter_mut()
                    .find(|g| g.claim == result.claim && g.over.is_none());
                if let Some(grant) = own {
                    grant.over = Some(moment.real);
                }
            }
            _ => {}
        }
    }
    grants
}

impl Grant {
    /// By the clock that nobody moves: its worker may act until then.
    pub fn may_act_until(&self) -> Timestamp {
        let budget = TimeDelta::milliseconds(i64::try_from(self.budget_ms).unwrap());
        self.over
            .map_or(self.real + budget, |over| over.min(self.real + budget))
    }
}

/// Every result that came first for its claim, said "confirmed", and had the wanted state read back.
pub fn readings(world: &World) -> Vec<Reading> {
    let mut open = grants(world);
    let mut readings = Vec::new();
    for (at, moment, _) in decisions(world) {
        let Input::Result(result) = &moment.input else {
            continue;
        };
        let Some(index) = open.iter().position(|g| g.at < at && g.claim == result.claim) else {
            continue;
        };
        let grant = open.remove(index);
        // What is known to be no proof shows nothing of a fence.
        let counts = |o: &&Observation| o.proves || grant.claim.kind.proof_kind().is_none();
        let read = result.observation.as_ref().filter(counts).map(|o| o.state);
        if result.outcome == Outcome::Confirmed && read == Some(wanted(grant.claim.kind)) {
            readings.push(Reading {
                at,
                operation_id: grant.claim.attempt.operation_id,
                generation: grant.claim.generation,
                kind: grant.claim.kind,
                method: grant.method,
            });
        }
    }
    readings
}

/// Whether every task of the kind has a level whose every device was read in the wanted state, for this operation.
pub fn tasks_done(plan: &FrozenPlan, kind: TaskKind, id: OperationId, readings: &[Reading]) -> bool {
    let was_read = |method: &FrozenMethod| {
        readings
            .iter()
            .any(|r| r.operation_id == id && r.kind == kind && r.method.id == method.id)
    };
    let mut tasks = plan
        .stages
        .iter()
        .flat_map(|stage| &stage.tasks)
        .filter(|task| task.kind == kind)
        .peekable();
    tasks.peek().is_some()
        && tasks.all(|task| {
            let is_done = |level: &Vec<FrozenMethod>| !level.is_empty() && level.iter().all(was_read);
            task.levels.iter().any(is_done)
        })
}

/// The kinds of proof that the record holds for an operation, up to and including the moment `at`.
pub fn proven(world: &World, at: usize, id: OperationId) -> BTreeSet<ProofKind> {
    let readings: Vec<Reading> = readings(world).into_iter().filter(|r| r.at <= at).collect();
    let mut proven = BTreeSet::new();
    for (kind, task) in [
        (ProofKind::PowerOff, TaskKind::PowerOff),
        (ProofKind::StorageFence, TaskKind::StorageFence),
        (ProofKind::NetworkFence, TaskKind::NetworkFence),
    ] {
        if tasks_done(&world.plan, task, id, &readings) {
            proven.insert(kind);
        }
    }
    if silent_for_the_timeout(world, at) {
        proven.insert(ProofKind::SelfFencing);
    }
    if person_said_so(world, at, id) {
        proven.insert(ProofKind::Operator);
    }
    proven
}

/// UNREACHABLE in every report that was taken since long enough ago, by the engine's clock.
fn silent_for_the_timeout(world: &World, at: usize) -> bool {
    let Some(timeout_s) = world.state.policy.self_fencing_timeout_s else {
        return false;
    };
    let now = world.trace[at].now;
    let mut since: Option<Timestamp> = None;
    for (_, moment, _) in decisions(world).filter(|(i, _, _)| *i <= at) {
        // Where the clock was moved back, the count begins anew from there.
        since = since.map(|since| since.min(moment.now));
        match &moment.input {
            Input::FailureState {
                state: FailureState::Unreachable,
                ..
            } => since = since.or(Some(moment.now)),
            Input::FailureState { .. } => since = None,
            _ => {}
        }
    }
    since.is_some_and(|since| since + TimeDelta::seconds(i64::from(timeout_s)) <= now)
}

/// Somebody named the generation that the host had then, and was heard, for this operation.
fn person_said_so(world: &World, at: usize, id: OperationId) -> bool {
    decisions(world)
        .filter(|(i, _, _)| *i <= at)
        .any(|(_, moment, decision)| {
            let Input::Confirm { generation, .. } = &moment.input else {
                return false;
            };
            *generation == moment.before.host.generation
                && decision.answer == Answer::Done
                && decision
                    .state
                    .operation
                    .as_ref()
                    .is_some_and(|operation| operation.id == id)
        })
}

/// Operations that began and have not ended, after the decision.
pub fn live_after(live: &mut BTreeSet<OperationId>, decision: &Decision) {
    let id_of = |event: &Event| -> OperationId {
        let id = event.data.get("operation_id").and_then(|id| id.as_str());
        id.expect("it names its operation").parse().expect("by its id")
    };
    for event in events(decision) {
        match event.kind {
            EventKind::OperationStarted => assert!(live.insert(id_of(event)), "it began twice"),
            EventKind::OperationSucceeded | EventKind::OperationCancelled => {
                assert!(live.remove(&id_of(event)), "it ended twice, or before it began");
            }
            _ => {}
        }
    }
}

//! Facts from a record, independent of the code under test.

use std::collections::BTreeSet;

use chrono::TimeDelta;
use ringfence_core::*;

use super::actions::wanted;
use ringfence_world::{Moment, World};

/// Seconds for which a simulated device, or a platform, may still carry out a command, unless its method has another number.
const LINGERS_S: u32 = 10;

/// A granted claim.
#[derive(Clone, Debug)]
pub struct Grant {
    pub at: usize,
    pub claim: Claim,
    /// None for a workload step.
    pub method: Option<FrozenMethod>,
    /// The time by the engine's clock.
    pub now: Timestamp,
    /// The time by a clock that is never set.
    pub real: Timestamp,
    pub budget_ms: u64,
    /// When the claim's own result first arrived, and whether it shows that the command has no effect any more.
    pub over: Option<(Timestamp, bool)>,
}

/// An observation of the wanted state for this claim.
#[derive(Clone, Debug)]
pub struct Reading {
    pub at: usize,
    /// The moment in which the claim was granted.
    pub granted: usize,
    pub operation_id: OperationId,
    pub generation: Generation,
    pub kind: TaskKind,
    /// None for a workload step.
    pub method: Option<FrozenMethod>,
    /// The time of the observation, by the engine's clock.
    pub read_at: Timestamp,
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

pub fn has_note(decision: &Decision, action: &str) -> bool {
    let is_it = |effect: &Effect| matches!(effect, Effect::Note(note) if note.action == action);
    decision.effects.iter().any(is_it)
}

/// The suspensions of the host that held just before this moment.
pub fn suspensions(moment: &Moment) -> impl Iterator<Item = &Suspension> {
    let HostState { host, shared, .. } = &moment.before;
    let all = [&host.suspension, &shared.segment, &shared.everything];
    let holds = |suspension: &&Suspension| suspension.until.is_none_or(|until| until > moment.now);
    all.into_iter().flatten().filter(holds)
}

pub fn is_suspended(moment: &Moment) -> bool {
    suspensions(moment).next().is_some()
}

/// The generation at which a host is FENCED.
pub fn fenced_generation(host: &Host) -> Option<Generation> {
    host.fence.as_ref().map(|fence| fence.generation)
}

/// Every claim that was granted, once.
pub fn grants(world: &World) -> Vec<Grant> {
    let mut grants: Vec<Grant> = Vec::new();
    for (at, moment, decision) in decisions(world) {
        match (&moment.input, &decision.answer) {
            (Input::Claim(claim), Reply::Granted { budget_ms, .. })
                if grants.iter().all(|g| g.claim.claim_id != claim.claim_id) =>
            {
                let sent = world.sent.iter().find(|sent| sent.attempt == claim.attempt);
                grants.push(Grant {
                    at,
                    claim: claim.clone(),
                    method: sent
                        .expect("only a sent attempt can be claimed")
                        .job
                        .method()
                        .cloned(),
                    now: moment.now,
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
                    grant.over = Some((moment.real, leaves_nothing(result)));
                }
            }
            _ => {}
        }
    }
    grants
}

/// Whether the attempt was refused, or its wanted state was read.
fn leaves_nothing(result: &TaskResult) -> bool {
    let read = result.observation.as_ref().map(|o| o.state);
    match result.outcome {
        Outcome::Refused => true,
        Outcome::Confirmed => read == Some(wanted(result.claim.kind)),
        Outcome::Unknown => false,
    }
}

impl Grant {
    /// The time, by the clock that is never set, until which the command may still take effect.
    pub fn may_act_until(&self) -> Timestamp {
        let deadline = self.real + TimeDelta::milliseconds(i64::try_from(self.budget_ms).unwrap());
        let lingers = TimeDelta::seconds(i64::from(
            self.method
                .as_ref()
                .and_then(|method| method.times.lingers_s)
                .unwrap_or(LINGERS_S),
        ));
        match self.over {
            Some((over, true)) => over.min(deadline),
            Some((over, false)) => over.min(deadline) + lingers,
            None => deadline + lingers,
        }
    }
}

/// The first result of every claim, if it is "confirmed" with the wanted state read back.
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
        // An observation that is marked as no proof shows nothing about the fence.
        let counts = |o: &&Observation| o.proves || grant.claim.kind.proof_kind().is_none();
        let Some(seen) = result.observation.as_ref().filter(counts) else {
            continue;
        };
        if result.outcome == Outcome::Confirmed && seen.state == wanted(grant.claim.kind) {
            let after = TimeDelta::milliseconds(i64::try_from(seen.after_ms).unwrap());
            readings.push(Reading {
                at,
                granted: grant.at,
                operation_id: grant.claim.attempt.operation_id,
                generation: grant.claim.generation,
                kind: grant.claim.kind,
                method: grant.method,
                read_at: (as_seen(world, grant.now, grant.at, at) + after).min(moment.now),
            });
        }
    }
    readings
}

/// A time that was noted at one decision, as known at a later one: setting the clock back also sets back a noted time that is in the
/// future.
pub fn as_seen(world: &World, moment: Timestamp, noted: usize, at: usize) -> Timestamp {
    let since = world.trace[noted..=at].iter().filter(|later| later.said.is_ok());
    since.fold(moment, |known, later| known.min(later.now))
}

/// Whether a task of this kind gives something back to a host, by the design.
pub fn releases(kind: TaskKind) -> bool {
    use {FencingKind as F, StepKind as S};
    match kind {
        TaskKind::Fencing(kind) => matches!(kind, F::PowerOn | F::StorageUnfence | F::NetworkUnfence),
        TaskKind::Step(kind) => matches!(kind, S::MarkUp | S::Start),
    }
}

/// Whether a task of this kind takes something from a host, by the design.
pub fn takes(kind: TaskKind) -> bool {
    use {FencingKind as F, StepKind as S};
    match kind {
        TaskKind::Fencing(kind) => matches!(kind, F::PowerOff | F::StorageFence | F::NetworkFence),
        TaskKind::Step(kind) => kind == S::MarkDown,
    }
}

/// Every accepted report, in the order of arrival.
pub fn reports(world: &World) -> impl Iterator<Item = (usize, &Moment, &Report)> {
    decisions(world).filter_map(|(at, moment, _)| match &moment.input {
        Input::FailureState { report, .. } => Some((at, moment, report)),
        _ => None,
    })
}

/// Updates the live operations with the events of a decision.
pub fn live_after(live: &mut BTreeSet<OperationId>, decision: &Decision) {
    let id_of = |event: &Event| -> OperationId {
        let id = event.data.get("operation_id").and_then(|id| id.as_str());
        id.expect("the event names no operation")
            .parse()
            .expect("the event's operation is no id")
    };
    for event in events(decision) {
        match event.kind {
            EventKind::OperationStarted => assert!(live.insert(id_of(event)), "the operation began twice"),
            EventKind::OperationSucceeded | EventKind::OperationCancelled => {
                assert!(
                    live.remove(&id_of(event)),
                    "the operation ended twice, or before it began"
                );
            }
            _ => {}
        }
    }
}

//! A message of the host's crash kernel as a proof: the boot before has ended. The messages are not signed, so that only a plan whose
//! sufficient sets name the proof takes it.

use crate::guard::{Guard, on};
use crate::kdump::OVER_AFTER_S;
use crate::undoing::{clearly_after, dated_from, may_be_after};
use crate::{EngineTime, FailureState, HostState, Operation, Proof, ProofKind, Timestamp};

use super::draft::{after_s, before_s};
use super::{Draft, proof};

/// Seconds for which a message may be under way from its host to the worker that hears it.
const UNDER_WAY_S: u32 = 5;

/// What the message that has just come proves of the live fence.
pub(super) fn won(draft: &Draft) -> Option<Proof> {
    let heard_after = draft.heard_after?;
    let operation = draft.live().filter(|live| counts(draft, live))?;
    let dated = Some(heard_after.at).filter(|_| on(Guard::KdumpIsDated));
    let read_at = before_s(dated.unwrap_or(draft.now), UNDER_WAY_S);
    let is_of_this_clock = is_of_clock(&draft.state, heard_after, read_at, draft.now);
    let is_new = is_since_all(draft, operation, read_at);
    (is_of_this_clock && is_new).then(|| Proof {
        kind: ProofKind::Kdump,
        source: "the host's crash kernel".to_owned(),
        observed_at: draft.now,
        read_at,
        claimed_at: None,
        settle_s: proof::settle_s(operation, ProofKind::Kdump),
        operation_id: operation.id,
        generation: operation.generation,
        detail: format!("a kdump message was sent after {}", read_at.format("%FT%TZ")),
        ended: None,
    })
}

/// Until when a fence with nothing left to do waits for a message: the one that told of the dump came before the fence, and others follow.
pub(super) fn awaited_until(draft: &Draft) -> Option<Timestamp> {
    let operation = draft.live().filter(|live| counts(draft, live))?;
    let dump = draft.state.host.kdump.as_ref()?;
    let until = after_s(operation.created_at, OVER_AFTER_S);
    (dump.is_on(draft.now) && until > draft.now).then_some(until)
}

/// Whether a message would prove something of this fence.
fn counts(draft: &Draft, operation: &Operation) -> bool {
    let host = &draft.state.host;
    let mut sets = operation
        .fence()
        .into_iter()
        .flat_map(|fence| &fence.sufficient_sets);
    let is_named = sets.any(|set| set.contains(&ProofKind::Kdump));
    let mut proofs = operation.proofs.iter();
    let is_won = proofs.any(|proof| proof.kind == ProofKind::Kdump && proof.ended.is_none());
    let is_silent = host.failure_state == FailureState::Unreachable || !on(Guard::KdumpOfUnreachable);
    is_named && !is_won && is_silent && host.current_fence().is_none()
}

/// Whether the moment is one of the clock that decides. What another clock says, or said before it was set, tells nothing of what came first,
/// and sources may still tell by the former time.
fn is_of_clock(state: &HostState, heard_after: EngineTime, read_at: Timestamp, now: Timestamp) -> bool {
    let set_at = state.clock_set_at;
    let is_clear = set_at.is_none_or(|set_at| !may_be_after(dated_from(set_at), read_at));
    let is_it = heard_after.clock_set_at == set_at && heard_after.at <= clearly_after(now) && is_clear;
    is_it || !on(Guard::KdumpOfThisClock)
}

/// Whether the message was sent after the fence began, after every sign of life, and after everything that may have started the host.
fn is_since_all(draft: &Draft, operation: &Operation, read_at: Timestamp) -> bool {
    let host = &draft.state.host;
    let is_since = |moment: Timestamp| !may_be_after(moment, read_at);
    let since_fence = is_since(operation.created_at) || !on(Guard::KdumpSinceFence);
    let since_life = host.sources.alive_by().is_none_or(is_since) || !on(Guard::KdumpSinceLife);
    let is_undoing = host.undoing_in_flight(ProofKind::Kdump, draft.now).is_some();
    let since_release = !is_undoing && host.released_at.is_none_or(is_since);
    since_fence && since_life && (since_release || !on(Guard::KdumpWaitsForUndoing))
}

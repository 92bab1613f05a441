//! A person's word that the host was fenced by hand (S10).

use crate::guard::{Guard, on};
use crate::undoing::{clearly_after, may_be_after};
use crate::{
    Actor, FailureState, Fence, FenceWork, Generation, Movable, Operation, OperationId, OperationKind, Proof,
    ProofKind, Refusal, Reply, SufficientSet, Timestamp, WORD_COUNTS_S, Work, proven_movable,
};

use super::draft::after_s;
use super::{Draft, pause, proof};

/// What the person said.
pub(super) struct Word {
    pub generation: Generation,
    pub said_at: Timestamp,
    pub reason: String,
    pub actor: Actor,
    pub override_up: bool,
}

pub(super) fn confirm(
    draft: &mut Draft,
    operation_id: OperationId,
    word: Word,
    sufficient_sets: Vec<SufficientSet>,
) -> Result<Reply, Refusal> {
    let current = draft.state.host.generation;
    if word.generation != current && on(Guard::WordNamesGeneration) {
        return Err(Refusal::StaleGeneration {
            given: word.generation,
            current,
        });
    }
    if let Some(fence) = draft.state.host.good_fence() {
        let is_known = adds_nothing(draft, fence);
        return if is_known {
            Ok(Reply::AlreadySo)
        } else {
            confirm_more(draft, word)
        };
    }
    if let Some(other) = draft.live().filter(|live| live.kind() != OperationKind::Fence) {
        return Err(Refusal::live(other));
    }
    refuse_if_passed(draft, &word)?;
    proof::finish_ended(draft);
    match draft.live() {
        Some(live) => {
            let is_said = |proof: &Proof| proof.kind == ProofKind::Operator && proof.ended.is_none();
            if live.proofs.iter().any(is_said) {
                return Ok(Reply::AlreadySo);
            }
            if !proof::would_complete(live, ProofKind::Operator) {
                return Err(Refusal::ConfirmationNotSufficient);
            }
            let why = format!("confirmed by {}: {}", word.actor.name, word.reason);
            if !pause::wanted(draft, &why) {
                pause::holds_no_more(draft);
            }
        }
        None => {
            let by_word = SufficientSet::from([ProofKind::Operator]);
            if !sufficient_sets.contains(&by_word) {
                return Err(Refusal::ConfirmationNotSufficient);
            }
            let operation = operation_of_a_word(draft, operation_id, &word, sufficient_sets);
            draft.begin(operation);
        }
    }
    add_word(draft, word);
    Ok(Reply::Done)
}

/// FENCED suffices for a platform that starts nothing by itself. Elsewhere the host may be cut off from some of its workloads' volumes alone.
fn adds_nothing(draft: &Draft, fence: &Fence) -> bool {
    let is_all = proven_movable(&draft.state, draft.now) == Some(Movable::All);
    let is_said = fence.standing().any(|proof| proof.kind == ProofKind::Operator);
    is_all || is_said || !draft.state.host.backend.starts_by_itself()
}

/// The host is FENCED by less: the word is one proof more.
fn confirm_more(draft: &mut Draft, word: Word) -> Result<Reply, Refusal> {
    if let Some(live) = draft.live().filter(|live| live.kind() == OperationKind::Rejoin) {
        return Err(Refusal::live(live));
    }
    refuse_if_passed(draft, &word)?;
    let by_word = SufficientSet::from([ProofKind::Operator]);
    let Some(fence) = draft
        .state
        .host
        .good_fence()
        .filter(|fence| fence.sets.contains(&by_word))
    else {
        return Err(Refusal::ConfirmationNotSufficient);
    };
    let (operation_id, generation) = (fence.operation_id, fence.generation);
    let settle_s = draft.state.policy.settle_s;
    let proof = proof_of(draft, word, operation_id, generation, settle_s);
    proof::add_to_fence(draft, proof);
    Ok(Reply::Done)
}

/// A word says what was so when it was said (S12 holds for the time until it is heard as it does for the time after).
fn refuse_if_passed(draft: &Draft, word: &Word) -> Result<(), Refusal> {
    refuse_if_not_dated(draft, word.said_at)?;
    refuse_if_alive(draft, word)?;
    refuse_if_undoing(draft, said_at(draft, word))
}

/// A clock that is a little ahead makes no word newer than the moment in which it is heard.
fn said_at(draft: &Draft, word: &Word) -> Timestamp {
    word.said_at.min(draft.now)
}

/// A word is dated by the clock of whom it was said to.
fn refuse_if_not_dated(draft: &Draft, said_at: Timestamp) -> Result<(), Refusal> {
    let not_dated = |why| Err(Refusal::WordNotDated { said_at, why });
    let is_before = |set_at| may_be_after(set_at, said_at);
    if said_at > clearly_after(draft.now) && on(Guard::WordIsDated) {
        not_dated("that is in the future by the engine's clock")
    } else if draft.state.clock_set_at.is_some_and(is_before) && on(Guard::WordIsDated) {
        not_dated("the engine's clock was set after that")
    } else if draft.state.host.created_at > said_at && on(Guard::WordOfKnownHost) {
        // An engine that began with the host's record alone, or with less, does not know when the host was alive before.
        not_dated("the database does not know what was seen of the host until then")
    } else if after_s(said_at, WORD_COUNTS_S) < draft.now {
        Err(Refusal::WordTooOld { said_at })
    } else {
        Ok(())
    }
}

fn refuse_if_alive(draft: &Draft, word: &Word) -> Result<(), Refusal> {
    if !contradicts(draft, word) {
        return Ok(());
    }
    match (word.override_up, word.actor.is_admin) {
        (true, true) => Ok(()),
        (true, false) => Err(Refusal::OverrideNeedsAdmin),
        (false, true | false) => {
            super::fence::refuse_if_up(draft)?;
            alive_since(draft, word).map_or(Ok(()), |alive_at| {
                Err(Refusal::AliveSince {
                    alive_at,
                    said_at: word.said_at,
                })
            })
        }
    }
}

/// Whether the host is seen UP, or may have been alive after the word.
fn contradicts(draft: &Draft, word: &Word) -> bool {
    draft.state.host.failure_state == FailureState::Up || alive_since(draft, word).is_some()
}

fn alive_since(draft: &Draft, word: &Word) -> Option<Timestamp> {
    let alive_by = draft.state.host.sources.alive_by()?;
    (may_be_after(alive_by, said_at(draft, word)) && on(Guard::LifeEndsWord)).then_some(alive_by)
}

/// A release that is under way, or was when the word was said, could undo what the person did.
fn refuse_if_undoing(draft: &Draft, said_at: Timestamp) -> Result<(), Refusal> {
    let host = &draft.state.host;
    if let Some(f) = host.undoing_in_flight(ProofKind::Operator, draft.now)
        && on(Guard::WordWaitsForUndoing)
    {
        return Err(Refusal::UndoingInFlight {
            kind: f.kind,
            generation: f.generation,
            until: f.until,
        });
    }
    match host.released_at {
        Some(released_at) if may_be_after(released_at, said_at) && on(Guard::UndoingEndsWord) => {
            Err(Refusal::ReleasedSince { released_at, said_at })
        }
        Some(_) | None => Ok(()),
    }
}

/// The fence that consists of a person's word.
fn operation_of_a_word(
    draft: &Draft,
    id: OperationId,
    word: &Word,
    sufficient_sets: Vec<SufficientSet>,
) -> Operation {
    let generation = draft.state.host.generation.next();
    Operation {
        stages: super::fence::after_fenced(&draft.state).into_iter().collect(),
        restarts_left: 0,
        ..draft.operation(
            id,
            Work::Fence(FenceWork::new(None, sufficient_sets)),
            generation,
            word.reason.clone(),
            &word.actor.name,
        )
    }
}

fn add_word(draft: &mut Draft, word: Word) {
    let Some(operation) = &draft.state.operation else {
        return;
    };
    let (operation_id, generation) = (operation.id, operation.generation);
    let settle_s = operation.policy.settle_s;
    let proof = proof_of(draft, word, operation_id, generation, settle_s);
    proof::add(draft, proof);
}

fn proof_of(
    draft: &Draft,
    word: Word,
    operation_id: OperationId,
    generation: Generation,
    settle_s: u32,
) -> Proof {
    let read_at = said_at(draft, &word);
    let overridden = if word.override_up && contradicts(draft, &word) {
        " (although the host was seen UP)"
    } else {
        ""
    };
    Proof {
        kind: ProofKind::Operator,
        source: word.actor.name,
        observed_at: draft.now,
        read_at,
        claimed_at: None,
        settle_s,
        operation_id,
        generation,
        detail: format!("{}{overridden}", word.reason),
        ended: None,
    }
}

//! A person's word that the host was fenced by hand (S10).

use crate::guard::{Guard, on};
use crate::{
    Actor, FailureState, FenceWork, Generation, Operation, OperationId, OperationKind, Proof, ProofKind,
    Refusal, Reply, SufficientSet, Work,
};

use super::{Draft, proof};

/// What the person said.
pub(super) struct Word {
    pub generation: Generation,
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
    if draft.state.host.good_fence().is_some() {
        return Ok(Reply::AlreadySo);
    }
    refuse_if_up(draft, &word)?;
    refuse_if_undoing(draft)?;
    proof::finish_ended(draft);
    match draft.live() {
        Some(live) if live.kind() == OperationKind::Fence => {
            let is_said = |proof: &Proof| proof.kind == ProofKind::Operator && proof.ended.is_none();
            if live.proofs.iter().any(is_said) {
                return Ok(Reply::AlreadySo);
            }
            if !proof::would_complete(live, ProofKind::Operator) {
                return Err(Refusal::ConfirmationNotSufficient);
            }
        }
        Some(live) => {
            return Err(Refusal::live(live));
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

fn refuse_if_up(draft: &Draft, word: &Word) -> Result<(), Refusal> {
    if draft.state.host.failure_state != FailureState::Up {
        return Ok(());
    }
    match (word.override_up, word.actor.is_admin) {
        (true, true) => Ok(()),
        (true, false) => Err(Refusal::OverrideNeedsAdmin),
        (false, true | false) => super::fence::refuse_if_up(draft),
    }
}

/// A release that is under way could undo what the person did.
fn refuse_if_undoing(draft: &Draft) -> Result<(), Refusal> {
    match draft.state.host.undoing_in_flight(ProofKind::Operator, draft.now) {
        Some(f) if on(Guard::WordWaitsForUndoing) => Err(Refusal::UndoingInFlight {
            kind: f.kind,
            generation: f.generation,
            until: f.until,
        }),
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
        stages: super::fence::after_fenced(draft).into_iter().collect(),
        restarts_left: 0,
        ..draft.operation(
            id,
            Work::Fence(FenceWork {
                plan: None,
                sufficient_sets,
                is_held_by_brake: false,
            }),
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
    let is_up = draft.state.host.failure_state == FailureState::Up;
    let overridden = if word.override_up && is_up {
        " (although the host was seen UP)"
    } else {
        ""
    };
    let proof = Proof {
        kind: ProofKind::Operator,
        source: word.actor.name,
        observed_at: draft.now,
        read_at: draft.now,
        claimed_at: None,
        settle_s: operation.policy.settle_s,
        operation_id: operation.id,
        generation: operation.generation,
        detail: format!("{}{overridden}", word.reason),
        ended: None,
    };
    proof::add(draft, proof);
}

//! A person's word that the host was fenced by hand (S10).

use crate::guard::{Guard, on};
use crate::{
    Actor, Answer, FailureState, FenceWork, Generation, Operation, OperationId, OperationKind, Proof,
    ProofKind, Refusal, SufficientSet, Work,
};

use super::{Step, proof};

/// What the person said.
pub(super) struct Word {
    pub generation: Generation,
    pub reason: String,
    pub actor: Actor,
    pub override_up: bool,
}

pub(super) fn confirm(
    step: &mut Step,
    operation_id: OperationId,
    word: Word,
    sufficient_sets: Vec<SufficientSet>,
) -> Result<Answer, Refusal> {
    let current = step.state.host.generation;
    if word.generation != current && on(Guard::WordNamesGeneration) {
        return Err(Refusal::StaleGeneration {
            given: word.generation,
            current,
        });
    }
    if step.state.host.good_fence().is_some() {
        return Ok(Answer::AlreadySo);
    }
    refuse_if_up(step, &word)?;
    refuse_if_undoing(step)?;
    proof::finish_ended(step);
    match step.live() {
        Some(live) if live.kind() == OperationKind::Fence => {
            let is_said = |proof: &Proof| proof.kind == ProofKind::Operator && proof.ended.is_none();
            if live.proofs.iter().any(is_said) {
                return Ok(Answer::AlreadySo);
            }
            if !proof::would_complete(live, ProofKind::Operator) {
                return Err(Refusal::ConfirmationNotSufficient);
            }
        }
        Some(live) => {
            return Err(Refusal::OperationLive {
                kind: live.kind(),
                id: live.id,
                status: live.status,
            });
        }
        None => {
            let by_word = SufficientSet::from([ProofKind::Operator]);
            if !sufficient_sets.contains(&by_word) {
                return Err(Refusal::ConfirmationNotSufficient);
            }
            let operation = operation_of_a_word(step, operation_id, &word, sufficient_sets);
            step.begin(operation);
        }
    }
    add_word(step, word);
    Ok(Answer::Done)
}

fn refuse_if_up(step: &Step, word: &Word) -> Result<(), Refusal> {
    if step.state.host.failure_state != FailureState::Up {
        return Ok(());
    }
    match (word.override_up, word.actor.is_admin) {
        (true, true) => Ok(()),
        (true, false) => Err(Refusal::OverrideNeedsAdmin),
        (false, true | false) => super::fence::refuse_if_up(step),
    }
}

/// What is being given back at this moment could undo what the person did.
fn refuse_if_undoing(step: &Step) -> Result<(), Refusal> {
    match step.state.host.undoing_in_flight(ProofKind::Operator, step.now) {
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
    step: &Step,
    id: OperationId,
    word: &Word,
    sufficient_sets: Vec<SufficientSet>,
) -> Operation {
    let generation = step.state.host.generation.next();
    Operation {
        stages: super::fence::after_fenced(step).into_iter().collect(),
        restarts_left: 0,
        ..step.draft(
            id,
            Work::Fence(FenceWork {
                plan: None,
                sufficient_sets,
                is_braked: false,
            }),
            generation,
            word.reason.clone(),
            &word.actor.name,
        )
    }
}

fn add_word(step: &mut Step, word: Word) {
    let Some(operation) = &step.state.operation else {
        return;
    };
    let is_up = step.state.host.failure_state == FailureState::Up;
    let overridden = if word.override_up && is_up {
        " (although the host was seen UP)"
    } else {
        ""
    };
    let proof = Proof {
        kind: ProofKind::Operator,
        source: word.actor.name,
        observed_at: step.now,
        read_at: step.now,
        claimed_at: None,
        settle_s: operation.policy.settle_s,
        operation_id: operation.id,
        generation: operation.generation,
        detail: format!("{}{overridden}", word.reason),
        ended: None,
    };
    proof::add(step, proof);
}

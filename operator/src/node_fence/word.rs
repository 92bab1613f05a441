//! A person's word in a `NodeFence`: it is given to the engine once, under the name that the cluster has authenticated.
//!
//! That it was heard is written into the status before the engine is asked: a word that was refused is not given again when the host has fallen
//! silent since. Only Ringfence may write the status.

use chrono::{SecondsFormat, TimeDelta};
use ringfence_backends::kubernetes::{WordGate, last_written};
use ringfence_core::{Generation, HostState, Proof, ProofKind, Timestamp};
use serde_json::json;

use super::object::{Confirmation, NodeFence, api};
use crate::OperatorError;
use crate::condition::Condition;
use crate::door::{Door, Standing};
use crate::marks::{made_at, name_of};
use crate::refusal::{Why, told};

/// A word that was written within so long after its check was installed may have been written unchecked: API servers take in a policy or a webhook
/// a moment later.
const TAKEN_IN_WITHIN: TimeDelta = TimeDelta::seconds(10);
/// The condition that tells of a word.
pub(super) const CONFIRMED: &str = "Confirmed";
/// The longest name of a user, in characters.
const MAX_NAME: usize = 255;

/// What is told of a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// It was taken.
    Taken(Why),
    /// It was not.
    Refused(Why),
}

impl Said {
    fn no(reason: &str, message: impl Into<String>) -> Self {
        Self::Refused(Why::new(reason, message))
    }
}

/// Gives the object's word to the engine, unless that was done. Returns the object as it is then, and what is told of the word; `None` if there is
/// none.
pub(super) async fn hear(
    door: &Door,
    object: NodeFence,
    standing: Option<&Standing>,
) -> Result<(NodeFence, Option<Said>), OperatorError> {
    let (Some(word), Some(standing)) = (object.spec.confirmation.clone(), standing) else {
        return Ok((object, None));
    };
    let name = match name_of_person(&word) {
        Ok(name) => name,
        Err(said) => return Ok((object, Some(said))),
    };
    let actor = actor(door, name);
    if let Some(proof) = known(standing, &word, &actor.actor) {
        return Ok((object, Some(taken(name, &word, Some(proof)))));
    }
    if heard(&object) == Some(&word) {
        let said = said_before(&object);
        return Ok((object, Some(said)));
    }
    if let Some(said) = unchecked(door, &object, &standing.state).await? {
        return Ok((object, Some(said)));
    }
    let written = last_written(&object.metadata, &["spec", "confirmation"]);
    // What follows is the word's one hearing.
    let object = write_down(door, &object, &word).await?;
    let Some(said_at) = written else {
        let said = Said::no(
            "WordNotDated",
            "the cluster does not say when the word was written (metadata.managedFields)",
        );
        return Ok((object, Some(said)));
    };
    let host = standing.state.host.id.to_string();
    let given = ringfence_engine::Word {
        generation: Generation(word.generation),
        said_at,
        reason: &word.reason,
        override_up: false,
    };
    let given = door.engine.confirm(&host, given, &actor).await;
    let said = match given {
        Ok(_) => {
            tracing::info!(
                cluster = door.cluster,
                node = name_of(&object.metadata),
                by = name,
                "a NodeFence confirmed a fence"
            );
            taken(name, &word, None)
        }
        Err(error) => Said::Refused(told(error)?),
    };
    Ok((object, Some(said)))
}

/// The word that was heard last; `None` once the object has none any more, so that it can be written again.
pub(super) fn to_remember(object: &NodeFence) -> Option<Confirmation> {
    let word = object.spec.confirmation.as_ref();
    heard(object).filter(|heard| word == Some(*heard)).cloned()
}

fn heard(object: &NodeFence) -> Option<&Confirmation> {
    object.status.as_ref()?.confirmation.as_ref()
}

/// The name is that of the audit trail and of the proof.
fn actor(door: &Door, name: &str) -> ringfence_engine::Context {
    door.asker(&format!("user {name}"))
}

fn name_of_person(word: &Confirmation) -> Result<&str, Said> {
    let Some(name) = word.confirmed_by.as_deref() else {
        return Err(Said::no(
            "NameMissing",
            "spec.confirmation.confirmedBy is missing; the name under which you are known to the cluster is allowed: kubectl auth whoami",
        ));
    };
    let length = name.chars().count();
    if length == 0 || length > MAX_NAME || name.chars().any(char::is_control) {
        let message = format!(
            "spec.confirmation.confirmedBy has {length} characters; 1 to {MAX_NAME} characters of plain text are allowed"
        );
        return Err(Said::no("NameInvalid", message));
    }
    Ok(name)
}

/// The proof that the word is, if it was taken: of the generation that it names, or of the fence that began with it.
fn known<'a>(standing: &'a Standing, word: &Confirmation, actor: &str) -> Option<&'a Proof> {
    let host = standing.state.host.fence.iter().flat_map(|fence| &fence.proofs);
    let live = standing.state.operation.iter().flat_map(|live| &live.proofs);
    let last = standing.last.iter().flat_map(|last| &last.proofs);
    let generation = Generation(word.generation);
    let is_it = |proof: &&Proof| {
        let is_of = proof.generation == generation || proof.generation == generation.next();
        let is_same = proof.source == actor && proof.detail == word.reason;
        proof.kind == ProofKind::Operator && is_same && is_of
    };
    host.chain(live).chain(last).find(is_it)
}

fn taken(name: &str, word: &Confirmation, proof: Option<&Proof>) -> Said {
    let generation = word.generation;
    let ended = proof.is_some_and(|proof| proof.ended.is_some());
    let message = match ended {
        true => {
            format!(
                "{name} has confirmed generation {generation}; something has happened since that ended it"
            )
        }
        false => format!("{name} has confirmed generation {generation}"),
    };
    Said::Taken(Why::new("Confirmed", message))
}

/// What was told when the word was heard.
fn said_before(object: &NodeFence) -> Said {
    let known = object
        .status
        .as_ref()
        .and_then(|status| status.conditions.as_deref());
    let mut known = known.unwrap_or_default().iter();
    let is_it = |one: &&Condition| one.kind == CONFIRMED;
    match known.find(is_it) {
        Some(told) if told.status == "True" => Said::Taken(Why::new(&told.reason, &told.message)),
        Some(told) => Said::no(&told.reason, &told.message),
        None => Said::no(
            "Interrupted",
            "Ringfence was stopped while it heard the word, and no proof shows that it was taken. Write it again: with another reason",
        ),
    }
}

/// Why it is not known who has written the word.
async fn unchecked(
    door: &Door,
    object: &NodeFence,
    state: &HostState,
) -> Result<Option<Said>, OperatorError> {
    let why = match door.gates.word_gate().await? {
        WordGate::Open(why) => {
            format!("the cluster does not check who writes it: {why}. Install what checks it")
        }
        WordGate::Holds { since } => {
            if made_at(&object.metadata).is_some_and(|made| made >= since + TAKEN_IN_WITHIN) {
                return Ok(None);
            }
            let since = told_time(since);
            format!(
                "this NodeFence was made before, or less than {} s after, what checks it was last changed ({since}). Make it anew",
                TAKEN_IN_WITHIN.num_seconds()
            )
        }
    };
    let (name, generation) = (&state.host.name, state.host.generation);
    let message = format!(
        "a confirmation counts only under a person's name, and {why} (docs/kubernetes-nodefence.md), or confirm with: ringfence host confirm \
         {name} --generation {generation} --reason TEXT"
    );
    Ok(Some(Said::no("NotAuthenticated", message)))
}

fn told_time(at: Timestamp) -> String {
    at.to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// Under the version that was read: the word that is given to the engine is the one that is written down, and one engine alone gives it.
async fn write_down(
    door: &Door,
    object: &NodeFence,
    word: &Confirmation,
) -> Result<NodeFence, OperatorError> {
    // What is told of an earlier word is not told of this one.
    let known = object
        .status
        .as_ref()
        .and_then(|status| status.conditions.as_ref());
    let others = known.iter().copied().flatten();
    let others: Vec<&Condition> = others.filter(|one| one.kind != CONFIRMED).collect();
    let change = json!({
        "metadata": { "resourceVersion": object.metadata.resource_version },
        "status": { "confirmation": word, "conditions": others },
    });
    door.merge_into_status(&api(&door.client), name_of(&object.metadata), &change)
        .await
}

#[cfg(test)]
mod tests {
    use kube::core::Object;
    use ringfence_core::{OperationId, OperationStatus};
    use uuid::Uuid;

    use super::*;
    use crate::node_fence::kind;
    use crate::node_fence::object::{Spec, Status};
    use crate::samples::{NOW, fence, host};

    const ACTOR: &str = "kubernetes:lab user alice";

    fn word(generation: u32) -> Confirmation {
        Confirmation {
            generation,
            reason: "I pulled its plug".to_owned(),
            confirmed_by: Some("alice".to_owned()),
        }
    }

    fn state(fenced: bool) -> HostState {
        HostState::new(host(fenced), None, ringfence_core::SegmentPolicy::default())
    }

    fn proof(generation: u32) -> Proof {
        Proof {
            kind: ProofKind::Operator,
            source: ACTOR.to_owned(),
            observed_at: NOW,
            read_at: NOW,
            claimed_at: None,
            settle_s: 0,
            operation_id: OperationId(Uuid::nil()),
            generation: Generation(generation),
            detail: "I pulled its plug".to_owned(),
            ended: None,
        }
    }

    #[test]
    fn a_word_that_was_taken_is_known_by_its_proof_wherever_that_is() {
        let mut of_fence = Standing {
            state: state(true),
            last: None,
        };
        assert!(known(&of_fence, &word(1), ACTOR).is_none());
        of_fence.state.host.fence.as_mut().unwrap().proofs = vec![proof(1)];
        for generation in [0, 1] {
            assert!(
                known(&of_fence, &word(generation), ACTOR).is_some(),
                "{generation}"
            );
        }
        for generation in [2, 3] {
            assert!(
                known(&of_fence, &word(generation), ACTOR).is_none(),
                "{generation}"
            );
        }
        assert!(known(&of_fence, &word(1), "kubernetes:lab user bob").is_none());
        let other = Confirmation {
            reason: "I looked".to_owned(),
            ..word(1)
        };
        assert!(known(&of_fence, &other, ACTOR).is_none());

        let mut settling = fence(OperationStatus::Running, Vec::new());
        settling.proofs = vec![proof(1)];
        let live = Standing {
            state: HostState {
                operation: Some(settling.clone()),
                ..state(false)
            },
            last: None,
        };
        assert!(known(&live, &word(1), ACTOR).is_some());
        let cancelled = Standing {
            state: state(false),
            last: Some(settling),
        };
        assert!(known(&cancelled, &word(1), ACTOR).is_some());
    }

    fn refusal(said: Option<Said>) -> String {
        match said {
            Some(Said::Refused(why)) => why.reason,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_word_needs_a_name_of_plain_text() {
        let named = |name: Option<&str>| {
            let word = Confirmation {
                confirmed_by: name.map(str::to_owned),
                ..word(1)
            };
            name_of_person(&word)
                .map(str::to_owned)
                .map_err(|said| refusal(Some(said)))
        };
        assert_eq!(named(Some("alice")), Ok("alice".to_owned()));
        assert_eq!(named(None), Err("NameMissing".to_owned()));
        let long = "a".repeat(256);
        for wrong in ["", "a\nb", long.as_str()] {
            assert_eq!(named(Some(wrong)), Err("NameInvalid".to_owned()), "{wrong:?}");
        }
    }

    fn object(word: Confirmation, heard: Option<Confirmation>, told: Option<Condition>) -> NodeFence {
        let spec = Spec {
            confirmation: Some(word),
            ..Spec::default()
        };
        let mut object: NodeFence = Object::new("n1", &kind(), spec);
        object.status = Some(Status {
            confirmation: heard,
            conditions: Some(told.into_iter().collect()),
            ..Status::default()
        });
        object
    }

    #[test]
    fn what_was_told_of_a_word_that_was_heard_is_told_again() {
        let told = Condition {
            kind: CONFIRMED.to_owned(),
            status: "False".to_owned(),
            reason: "HostUp".to_owned(),
            ..Condition::default()
        };
        let refused = object(word(1), Some(word(1)), Some(told));
        assert_eq!(refusal(Some(said_before(&refused))), "HostUp");
        let interrupted = object(word(1), Some(word(1)), None);
        assert_eq!(refusal(Some(said_before(&interrupted))), "Interrupted");
    }

    #[test]
    fn a_word_is_remembered_while_the_object_has_it() {
        let stays = object(word(1), Some(word(1)), None);
        assert_eq!(to_remember(&stays), Some(word(1)));
        let changed = object(word(2), Some(word(1)), None);
        assert_eq!(to_remember(&changed), None);
        let mut gone = object(word(1), Some(word(1)), None);
        gone.spec.confirmation = None;
        assert_eq!(to_remember(&gone), None);
    }
}

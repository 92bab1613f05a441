//! What a `NodeFence` shows of its host.

use chrono::SecondsFormat;
use ringfence_core::{Attempt, AttemptStatus, Operation, Proof, Task};

use super::automaton::place;
use super::object::{ShownAttempt, ShownProof, Status};
use crate::condition::{Condition, Conditions};
use crate::door::Standing;
use crate::refusal::Why;
use crate::shown_operation::ShownOperation;
use crate::text::{MESSAGE, cut, unless_empty};

/// Attempts that are shown, the last ones.
const ATTEMPTS: usize = 20;
/// The longest name of a method.
const METHOD: usize = 320;

/// The status for a host, with these conditions.
pub(super) fn status(standing: Option<&Standing>, conditions: Vec<Condition>) -> Status {
    let conditions = Some(conditions);
    let Some(standing) = standing else {
        return Status {
            conditions,
            ..Status::default()
        };
    };
    let Standing { state, last } = standing;
    let host = &state.host;
    let (step, stands) = place(host, last.as_ref());
    let shown = standing.shown();
    let proofs = match (&host.fence, last) {
        (Some(fence), _) => &fence.proofs[..],
        (None, Some(last)) => &last.proofs[..],
        (None, None) => &[],
    };
    Status {
        step: Some(step),
        status: Some(stands),
        retries: Some(last.as_ref().map_or(0, |last| last.round)),
        generation: Some(host.generation.0),
        fencing_state: Some(host.fencing_state().to_string()),
        failure_state: Some(host.failure_state.to_string()),
        operation: shown.map(ShownOperation::of),
        proofs: Some(proofs.iter().map(proof).collect()),
        attempts: shown.map(attempts),
        conditions,
        suspended_until: None,
        confirmation: None,
        record: None,
    }
}

/// The condition `Fenced`.
pub(super) fn tell_fenced(conditions: &mut Conditions<'_>, standing: &Standing) {
    let host = &standing.state.host;
    match (host.good_fence(), &host.fence) {
        (Some(fence), _) => {
            let proofs: Vec<String> = fence.standing().map(|proof| proof.kind.to_string()).collect();
            let message = format!(
                "generation {} is proven by {}",
                fence.generation,
                proofs.join(", ")
            );
            conditions.yes("Fenced", &Why::new("Proven", message));
        }
        (None, Some(fence)) => {
            let ended = fence.ended().map(|ended| ended.undoing.to_string());
            let why = ended.unwrap_or_else(|| "a rejoin or another fence has begun".to_owned());
            let message = format!("nothing proves any more that the host has stopped: {why}");
            conditions.yes("Fenced", &Why::new("ProofEnded", message));
        }
        (None, None) => {
            let message = "nothing is proven, or the host was taken back".to_owned();
            conditions.no("Fenced", &Why::new("NotProven", message));
        }
    }
}

fn proof(proof: &Proof) -> ShownProof {
    ShownProof {
        kind: proof.kind.to_string(),
        source: cut(&proof.source, MESSAGE),
        observed_at: proof.observed_at.to_rfc3339_opts(SecondsFormat::Millis, true),
        ended: proof.ended.is_some(),
    }
}

/// The last ones, in the order in which they were made.
fn attempts(operation: &Operation) -> Vec<ShownAttempt> {
    let of_task = |task: &'_ Task| {
        let kind = task.kind().to_string();
        let attempts = task.attempts.iter();
        let all: Vec<_> = attempts.map(|made| (made.number, attempt(&kind, made))).collect();
        all
    };
    let mut all: Vec<_> = operation.tasks().flat_map(of_task).collect();
    all.sort_by_key(|(number, _)| *number);
    let earlier = all.len().saturating_sub(ATTEMPTS);
    all.into_iter().skip(earlier).map(|(_, shown)| shown).collect()
}

/// The method's name, as it is shown.
pub(super) fn method(attempt: &Attempt) -> String {
    cut(&attempt.by.name(), METHOD)
}

fn attempt(task: &str, attempt: &Attempt) -> ShownAttempt {
    let outcome = match &attempt.state {
        AttemptStatus::Dispatched { .. } => "dispatched",
        AttemptStatus::Claimed { .. } => "claimed",
        AttemptStatus::Ended { outcome, .. } => outcome.as_str(),
        AttemptStatus::Cancelled { .. } => "cancelled",
    };
    ShownAttempt {
        task: task.to_owned(),
        method: method(attempt),
        outcome: outcome.to_owned(),
        detail: attempt.detail.as_deref().and_then(unless_empty),
    }
}

#[cfg(test)]
mod tests {
    use ringfence_core::{HostState, Operation, OperationStatus, SegmentPolicy};

    use super::*;
    use crate::samples::{fence, host};

    #[test]
    fn the_restarts_of_a_fence_are_its_retries() {
        let again = Operation {
            round: 2,
            ..fence(OperationStatus::Running, Vec::new())
        };
        let standing = |last: Option<Operation>| Standing {
            state: HostState::new(host(false), last.clone(), SegmentPolicy::default()),
            last,
        };
        let retries = |last| status(Some(&standing(last)), Vec::new()).retries;
        assert_eq!((retries(Some(again)), retries(None)), (Some(2), Some(0)));
        assert_eq!(status(None, Vec::new()).retries, None);
    }
}

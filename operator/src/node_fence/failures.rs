//! Attempts at devices that have failed, or of which it is not known what came, as Events on the node and its `NodeFence`.
//!
//! A fence tries again and again. One Event tells of all attempts of one method at one task with one outcome: its name is made of these.

use std::collections::BTreeSet;

use ringfence_core::{Attempt, AttemptBy, MethodId, Operation, Outcome, TaskKind, Timestamp, error_chain};

use super::object::{NodeFence, Status};
use super::status::method;
use crate::door::{Door, Standing};
use crate::events::{TOLD_FOR, Told, of_node, of_node_fence, publish_once};
use crate::marks::name_of;
use crate::text::cut_bytes;

/// The longest part of a note that is of a device, in bytes: what to do next follows it.
const DETAIL: usize = 512;
const METHOD: usize = 64;

/// What failed in an operation.
#[derive(Debug)]
struct Failure {
    /// Tells it from everything else that failed.
    key: String,
    told: Told,
}

/// Tells what failed and is not shown yet. `wanted` is about to be shown.
pub(super) async fn tell(door: &Door, object: &NodeFence, standing: &Standing, wanted: &Status) {
    let node = name_of(&object.metadata);
    let fence = object.metadata.uid.as_deref();
    for failure in new(object.status.as_ref(), wanted, standing, door.now()) {
        let on_fence = fence.map(|uid| ("nodefence", of_node_fence(node, uid)));
        for (kind, regarding) in [("node", of_node(node))].into_iter().chain(on_fence) {
            let name = format!("ringfence.{}.{kind}", failure.key);
            if let Err(error) = publish_once(door, &name, &failure.told, &regarding).await {
                let (cluster, error) = (&door.cluster, error_chain(&error));
                tracing::warn!(
                    cluster,
                    node,
                    error,
                    "an Event on a failed attempt could not be written"
                );
            }
        }
    }
}

fn new(shown: Option<&Status>, wanted: &Status, standing: &Standing, now: Timestamp) -> Vec<Failure> {
    let Some(operation) = standing.shown().filter(|operation| is_of(wanted, operation)) else {
        return Vec::new();
    };
    let shown = shown.filter(|shown| is_of(shown, operation));
    let mut keys = BTreeSet::new();
    let mut new = Vec::new();
    for task in operation.tasks() {
        for attempt in &task.attempts {
            let Some((id, outcome)) = failed(attempt, now) else {
                continue;
            };
            if shown.is_some_and(|shown| shows(shown, task.kind(), attempt, outcome)) {
                continue;
            }
            let key = format!("{}.{}.{id}.{outcome}", operation.id, task.kind());
            if keys.insert(key.clone()) {
                let told = told(
                    &standing.state.host.name,
                    operation,
                    task.kind(),
                    attempt,
                    outcome,
                );
                new.push(Failure { key, told });
            }
        }
    }
    new
}

fn is_of(status: &Status, operation: &Operation) -> bool {
    let shown = status.operation.as_ref();
    shown.is_some_and(|shown| shown.id == operation.id.to_string())
}

/// How a device's attempt failed lately.
fn failed(attempt: &Attempt, now: Timestamp) -> Option<(MethodId, Outcome)> {
    let AttemptBy::Method { id, .. } = attempt.by else {
        return None;
    };
    let is_late = attempt.ended_at().is_some_and(|at| now - at <= TOLD_FOR);
    match attempt.outcome().filter(|_| is_late)? {
        Outcome::Confirmed => None,
        outcome @ (Outcome::Refused | Outcome::Unknown) => Some((id, outcome)),
    }
}

fn shows(status: &Status, task: TaskKind, attempt: &Attempt, outcome: Outcome) -> bool {
    let (task, method) = (task.as_str(), method(attempt));
    let mut shown = status.attempts.iter().flatten();
    shown.any(|shown| shown.task == task && shown.method == method && shown.outcome == outcome.as_str())
}

fn told(host: &str, operation: &Operation, task: TaskKind, attempt: &Attempt, outcome: Outcome) -> Told {
    let (reason, meaning) = match outcome {
        Outcome::Refused => ("AttemptRefused", "mend the method, its secrets or the device"),
        Outcome::Confirmed | Outcome::Unknown => (
            "AttemptUnknown",
            "nothing is concluded from it, and the plan goes on",
        ),
    };
    let method = attempt.by.name();
    let detail = attempt.detail.as_deref().filter(|detail| !detail.is_empty());
    let detail = cut_bytes(detail.unwrap_or("no reason was given"), DETAIL);
    let (kind, generation) = (operation.kind(), operation.generation);
    let note = format!(
        "{task} with method {}, {kind} of generation {generation}: {outcome}, {detail}. Next: {meaning}; ask the device with: ringfence method \
         check {method} --host {host}",
        cut_bytes(&method, METHOD)
    );
    Told {
        is_warning: true,
        reason: reason.to_owned(),
        note,
    }
}

#[cfg(test)]
mod tests {
    use ringfence_core::{FencingKind, HostState, OperationStatus, SegmentPolicy, Task};
    use uuid::Uuid;

    use super::super::status::status;
    use super::*;
    use crate::samples::{NOW, ended, fence, host};

    fn attempt(number: u32, by: u128, outcome: Outcome, detail: &str) -> Attempt {
        Attempt {
            number,
            by: AttemptBy::Method {
                level: 0,
                id: MethodId(Uuid::from_u128(by)),
                name: format!("bmc-{by}"),
                driver: "ipmi".to_owned(),
            },
            detail: Some(detail.to_owned()),
            ..ended(outcome)
        }
    }

    fn standing(attempts: Vec<Attempt>) -> Standing {
        let task = Task {
            attempts,
            ..Task::fencing(FencingKind::PowerOff, Vec::new())
        };
        Standing {
            state: HostState::new(host(false), None, SegmentPolicy::default()),
            last: Some(fence(OperationStatus::Running, vec![task])),
        }
    }

    fn new_after(shown: Option<&Status>, standing: &Standing, now: Timestamp) -> Vec<Failure> {
        new(shown, &status(Some(standing), Vec::new()), standing, now)
    }

    #[test]
    fn a_failure_tells_the_task_the_method_the_outcome_and_what_to_do() {
        let standing = standing(vec![attempt(1, 7, Outcome::Unknown, "no answer within 5 s")]);
        let new = new_after(None, &standing, NOW);
        let told = &new[0].told;
        assert!(told.is_warning);
        assert_eq!(told.reason, "AttemptUnknown");
        assert_eq!(
            told.note,
            "power.off with method bmc-7, fence of generation 1: unknown, no answer within 5 s. Next: nothing is concluded from it, and the plan \
             goes on; ask the device with: ringfence method check bmc-7 --host n1"
        );
        assert!(new[0].key.len() < 200, "{}", new[0].key);
    }

    #[test]
    fn attempts_with_one_outcome_are_told_once_by_method_and_outcome() {
        let made = vec![
            attempt(1, 7, Outcome::Unknown, "no answer"),
            attempt(2, 8, Outcome::Unknown, "no answer"),
            attempt(3, 7, Outcome::Unknown, "no answer, once more"),
            attempt(4, 7, Outcome::Refused, "wrong password"),
            attempt(5, 8, Outcome::Confirmed, ""),
        ];
        let seen = standing(made.clone());
        let told: Vec<String> = new_after(None, &seen, NOW)
            .into_iter()
            .map(|one| one.told.note[..35].to_owned())
            .collect();
        assert_eq!(told.len(), 3, "{told:?}");
        let shown = status(Some(&seen), Vec::new());
        let mut again = made;
        again.push(attempt(6, 7, Outcome::Unknown, "no answer"));
        assert!(new_after(Some(&shown), &standing(again.clone()), NOW).is_empty());
        again.push(attempt(7, 9, Outcome::Unknown, "no answer"));
        assert_eq!(new_after(Some(&shown), &standing(again), NOW).len(), 1);
    }

    #[test]
    fn what_failed_long_ago_is_not_told_and_neither_is_what_is_not_shown() {
        let standing = standing(vec![attempt(1, 7, Outcome::Refused, "wrong password")]);
        let later = NOW + TOLD_FOR + chrono::TimeDelta::seconds(1);
        assert!(new_after(None, &standing, later).is_empty());
        let mut wanted = status(Some(&standing), Vec::new());
        wanted.begin_anew();
        assert!(new(None, &wanted, &standing, NOW).is_empty());
    }

    #[test]
    fn a_failure_with_a_long_detail_still_says_what_to_do() {
        let standing = standing(vec![attempt(1, 7, Outcome::Refused, &"ü".repeat(3000))]);
        let note = &new_after(None, &standing, NOW)[0].told.note;
        assert!(note.len() <= 1024, "{}", note.len());
        assert!(note.ends_with("ringfence method check bmc-7 --host n1"), "{note}");
    }
}

//! What is told of an evacuation and of each move.

use serde_json::{Value, json};

use crate::decide::MAX_LISTINGS;
use crate::{
    Host, MAX_LISTED, MoveReport, Operation, OperationId, StepKind, Task, TaskStatus, Work, WorkloadState,
};

/// What could not be moved, or the backend that does not answer: why a person is needed.
pub(in crate::decide) fn failed(operation: &Operation) -> Option<String> {
    let Work::Evacuation(evacuation) = &operation.work else {
        return None;
    };
    if evacuation.listings > MAX_LISTINGS {
        return Some(format!(
            "the host has new workloads each time that it is looked at; {}",
            told(operation)
        ));
    }
    let list = operation.tasks().filter(|task| task.kind() == StepKind::List);
    if let Some(list) = list.last().filter(|task| task.status == TaskStatus::Failed) {
        return Some(describe_list(list));
    }
    if evacuation.is_cut {
        return Some(format!(
            "{}; {MAX_LISTED} workloads stay on the host, and what is beyond them was not seen",
            told(operation)
        ));
    }
    let failed: Vec<String> = operation
        .moves()
        .into_iter()
        .filter(|task| task.status == TaskStatus::Failed)
        .map(describe)
        .collect();
    if !failed.is_empty() {
        return Some(format!("{}; not moved: {}", told(operation), failed.join("; ")));
    }
    let empty = operation.tasks().filter(|task| task.kind() == StepKind::Empty);
    let failed = empty.last().filter(|task| task.status == TaskStatus::Failed)?;
    let why = failed.detail.as_deref().unwrap_or("no detail");
    Some(format!(
        "{}; what they left with the host is not gone: {why}",
        told(operation)
    ))
}

fn describe_list(task: &Task) -> String {
    format!(
        "the backend does not tell what is left: {}",
        task.detail.as_deref().unwrap_or("no detail")
    )
}

fn describe(task: &Task) -> String {
    let name = task.workload().map_or("", |workload| workload.name.as_str());
    format!("{name} ({})", task.detail.as_deref().unwrap_or("no detail"))
}

/// How far it is, in words.
pub(in crate::decide) fn told(operation: &Operation) -> String {
    let moves = operation.moves();
    let count = |status: TaskStatus| moves.iter().filter(|task| task.status == status).count();
    let (moved, left) = (count(TaskStatus::Confirmed), count(TaskStatus::Skipped));
    let mut told = format!("{moved} of {} workloads moved", moves.len() - left);
    if left > 0 {
        told.push_str(&format!(", {left} left where they are"));
    }
    let stopped = moves.iter().filter(|task| has_stopped(task)).count();
    if stopped > 0 {
        told.push_str(&format!(", {stopped} that ran do not run where they are now"));
    }
    told
}

/// Whether a workload that ran was moved and does not run.
fn has_stopped(task: &Task) -> bool {
    let ran = task
        .workload()
        .is_some_and(|workload| workload.state == WorkloadState::Running);
    let state_after = task.moved().and_then(|moved| moved.state_after);
    ran && task.status == TaskStatus::Confirmed
        && state_after.is_some_and(|state| state != WorkloadState::Running)
}

/// What is told of a workload that is being moved.
pub(in crate::decide) fn news(operation_id: OperationId, host: &Host, task: &Task) -> Option<Value> {
    let workload = task.workload()?;
    let MoveReport {
        to,
        state_after,
        request_id,
        ..
    } = task.moved().cloned().unwrap_or_default();
    Some(json!({
        "operation_id": operation_id,
        "generation": host.generation,
        "workload": { "id": workload.id, "name": workload.name, "state": workload.state },
        "from": host.known_as(),
        "to": to,
        "state_after": state_after,
        "request_id": request_id,
        "detail": task.detail,
    }))
}

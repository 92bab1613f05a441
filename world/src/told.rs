//! The log of a history: one line for every event, message to a worker and note for the audit trail.

use std::fmt::Write;

use ringfence_core::{Effect, Event, EventKind, Timestamp};

use crate::plans::start;

/// The line of an effect: seconds since the start, and what it was.
pub(crate) fn line(effect: &Effect, now: Timestamp) -> String {
    let at = (now - start()).num_milliseconds();
    let mut line = format!("{}.{}", at / 1000, at % 1000 / 100);
    let written = match effect {
        Effect::Dispatch(dispatch) => {
            let (n, job) = (dispatch.attempt.number, &dispatch.job);
            write!(line, " send {n} {} {}", job.kind(), job.by())
        }
        Effect::Event(event) => write!(line, " {}{}", event.kind, particulars(event)),
        Effect::Note(note) => {
            let why = note.detail.get("why").and_then(|why| why.as_str());
            let why = why.map(|why| format!(": {why}")).unwrap_or_default();
            write!(line, " note {}{why}", note.action)
        }
    };
    // A string takes everything.
    debug_assert!(written.is_ok());
    line
}

fn particulars(event: &Event) -> String {
    let text = |name: &str| event.data.get(name).and_then(|v| v.as_str()).map(str::to_owned);
    let generation = event.data.get("generation").and_then(serde_json::Value::as_u64);
    let proof = event
        .data
        .get("proof")
        .and_then(|p| p.get("kind"))
        .and_then(|k| k.as_str());
    match event.kind {
        EventKind::OperationProof => format!(" {}", proof.unwrap_or_default()),
        EventKind::OperationStarted => {
            format!(
                " {} {}",
                text("kind").unwrap_or_default(),
                generation.unwrap_or_default()
            )
        }
        EventKind::HostFenced | EventKind::HostUnfenced => format!(" {}", generation.unwrap_or_default()),
        EventKind::HostCondition => {
            let action = text("action").map_or_else(|| "over".to_owned(), |action| action.replace('_', " "));
            format!(
                " {} {}: {action}",
                text("condition").unwrap_or_default(),
                text("status").unwrap_or_default()
            )
        }
        EventKind::HostFailureState => format!(" {}", text("to").unwrap_or_default()),
        EventKind::HostLeftOff
        | EventKind::OperationHeld
        | EventKind::OperationReleased
        | EventKind::OperationNeedsOperator
        | EventKind::OperationRestarted
        | EventKind::OperationSucceeded
        | EventKind::OperationCancelled => format!(": {}", text("detail").unwrap_or_default()),
        EventKind::WorkloadMoving | EventKind::WorkloadMoved | EventKind::WorkloadNotMoved => {
            let workload = event.data.get("workload").and_then(|w| w.get("name"));
            let name = workload
                .and_then(|name| name.as_str())
                .unwrap_or_default()
                .to_owned();
            text("to").map_or_else(|| format!(" {name}"), |to| format!(" {name} to {to}"))
        }
        EventKind::HostSuspended | EventKind::HostResumed | EventKind::HostQuarantineEnded => {
            format!(" by {}", text("by").unwrap_or_default())
        }
        EventKind::HostCreated
        | EventKind::HostUpdated
        | EventKind::HostDeleted
        | EventKind::HostQuarantined
        | EventKind::HostAlarmBegan
        | EventKind::HostAlarmEnded
        | EventKind::HostKdumpBegan
        | EventKind::HostKdumpEnded
        | EventKind::SubscriptionDisabled => String::new(),
    }
}

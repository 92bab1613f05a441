//! Proofs, and the moment at which they suffice (S1, S8).

use serde_json::json;

use crate::{
    Attempt, EventKind, FailureState, FencingState, Operation, OperationKind, OperationStatus, Outcome,
    Proof, ProofKind, Resource, SufficientSet, Task, TaskKind, TaskStatus, Timestamp,
};

use super::step::after_s;
use super::{Step, WATCH_SLACK_S};

/// Adds a proof to the live fence, and draws the consequences.
pub(super) fn add(step: &mut Step, proof: Proof) {
    let Some(operation) = step.state.operation.as_mut() else {
        return;
    };
    if operation.proofs.iter().any(|known| known.kind == proof.kind) {
        return;
    }
    operation.updated_at = step.now;
    operation.proofs.push(proof.clone());
    // As they are listed everywhere: by kind, whichever device answered first.
    operation.proofs.sort_by_key(|proof| proof.kind);
    tell(step, &proof);
    settle(step);
}

fn tell(step: &mut Step, proof: &Proof) {
    let data = json!({
        "operation_id": proof.operation_id,
        "generation": proof.generation,
        "proof": { "kind": proof.kind, "source": proof.source, "observed_at": proof.observed_at, "detail": proof.detail },
    });
    step.event(EventKind::OperationProof, data);
}

/// The first completed set makes the host FENCED; later proofs change no state.
fn settle(step: &mut Step) {
    // An evacuation has what its fence has left to do.
    let proves = |kind| matches!(kind, OperationKind::Fence | OperationKind::Evacuation);
    let Some(operation) = step.live().filter(|live| proves(live.kind)) else {
        return;
    };
    let counting: SufficientSet = operation
        .proven()
        .into_iter()
        .filter(|kind| still_counts(step, operation, *kind))
        .collect();
    let is_complete = |set: &SufficientSet| !set.is_empty() && set.is_subset(&counting);
    if operation.sufficient_sets.iter().any(is_complete) {
        become_fenced(step, &counting);
    }
}

/// Whether a proof that did not suffice alone may still be put together with others: power that is being read again does
/// not count meanwhile, and neither does the silence of a host that has spoken since.
fn still_counts(step: &Step, operation: &Operation, kind: ProofKind) -> bool {
    match kind {
        ProofKind::PowerOff | ProofKind::StorageFence | ProofKind::NetworkFence => operation
            .tasks()
            .filter(|task| task.kind.proof_kind() == Some(kind))
            .all(|task| task.status == TaskStatus::Confirmed),
        ProofKind::SelfFencing => {
            timeout_runs_out(step, operation).is_some_and(|due| due <= step.now && !is_counted_anew(step))
        }
        ProofKind::Operator => true,
    }
}

/// Turns what the tasks have shown, and the time that has passed, into proofs.
pub(super) fn collect(step: &mut Step) {
    for kind in [
        ProofKind::PowerOff,
        ProofKind::StorageFence,
        ProofKind::NetworkFence,
    ] {
        if let Some(proof) = step
            .live()
            .and_then(|operation| by_tasks(operation, kind, step.now))
        {
            add(step, proof);
        }
    }
    if let Some(proof) = by_self_fencing(step) {
        add(step, proof);
    }
    watch_the_new_count(step);
    settle(step);
}

/// Whether the silence that proved the self-fencing was broken before the proof could suffice, so that it counts anew.
fn is_counted_anew(step: &Step) -> bool {
    let Some(operation) = step.live() else {
        return false;
    };
    let mut proofs = operation.proofs.iter();
    let proof = proofs.find(|proof| proof.kind == ProofKind::SelfFencing);
    // When it was won, the time had run out.
    let due = timeout_runs_out(step, operation);
    proof.zip(due).is_some_and(|(proof, due)| due > proof.observed_at)
}

/// The second silence is watched as the first one was, and renews the proof at its end.
fn watch_the_new_count(step: &mut Step) {
    if !is_counted_anew(step) || step.state.host.is_fence_current() {
        return;
    }
    let due_of = |step: &Step| {
        step.live()
            .and_then(|operation| timeout_runs_out(step, operation))
    };
    let Some(mut due) = due_of(step) else { return };
    if due <= step.now && !is_witnessed(step, due) {
        step.state.host.given_back(step.now);
        due = due_of(step).unwrap_or(due);
    }
    if due > step.now {
        step.wake(due);
        return;
    }
    let now = step.now;
    let Some(operation) = step.state.operation.as_mut() else {
        return;
    };
    operation.updated_at = now;
    let renewed = operation
        .proofs
        .iter_mut()
        .find(|proof| proof.kind == ProofKind::SelfFencing);
    if let Some(proof) = renewed {
        proof.observed_at = now;
        let proof = proof.clone();
        tell(step, &proof);
    }
}

/// Proven if the operation has tasks of the kind and every one of them is confirmed.
fn by_tasks(operation: &Operation, kind: ProofKind, now: Timestamp) -> Option<Proof> {
    if operation.proofs.iter().any(|proof| proof.kind == kind) {
        return None;
    }
    let tasks: Vec<&Task> = operation
        .tasks()
        .filter(|task| task.kind.proof_kind() == Some(kind))
        .collect();
    if tasks.is_empty() || tasks.iter().any(|task| task.status != TaskStatus::Confirmed) {
        return None;
    }
    if !tasks.iter().all(|task| does_prove(task)) {
        return None;
    }
    let confirmed = || tasks.iter().flat_map(|task| confirmed_of(task));
    let methods: Vec<_> = confirmed().map(|attempt| attempt.method.as_str()).collect();
    let details: Vec<_> = confirmed()
        .filter_map(|attempt| attempt.observation.as_ref())
        .map(|o| o.detail.as_str())
        .collect();
    Some(Proof {
        kind,
        source: methods.join(", "),
        observed_at: now,
        operation_id: operation.id,
        generation: operation.generation,
        detail: details.join("; "),
    })
}

/// The attempts by which a confirmed task was confirmed.
fn confirmed_of(task: &Task) -> impl Iterator<Item = &Attempt> {
    task.round()
        .iter()
        .filter(|a| a.level == task.level && a.outcome() == Some(Outcome::Confirmed))
}

/// Whether what a confirmed task has shown counts: every method of the level in use has to be one that can prove something, and what was
/// read back last with it too. A worker cannot make more of a method than its configuration says.
pub(super) fn does_prove(task: &Task) -> bool {
    let Some(level) = task.levels.get(task.level) else {
        return false;
    };
    level.iter().all(|method| {
        let last = confirmed_of(task).filter(|a| a.method_id == method.id).last();
        let observation = last.and_then(|attempt| attempt.observation.as_ref());
        method.can_prove() && observation.is_some_and(|o| o.proves)
    })
}

/// When the live fence is proven by the host's own watchdog: only while the host has been UNREACHABLE all the time.
pub(super) fn self_fencing_due(step: &Step) -> Option<Timestamp> {
    let operation = step
        .live()
        .filter(|operation| operation.kind == OperationKind::Fence)?;
    let known = operation
        .proofs
        .iter()
        .any(|proof| proof.kind == ProofKind::SelfFencing);
    let counts = operation
        .sufficient_sets
        .iter()
        .any(|set| set.contains(&ProofKind::SelfFencing));
    let is_wanted = counts && !known && !step.state.host.is_fence_current();
    is_wanted.then(|| timeout_runs_out(step, operation)).flatten()
}

/// The end of the timeout, counted from when contact was lost, or from when something may last have been given back to the
/// host: what that has started knows nothing of the time before. Nor does a clock that was set.
fn timeout_runs_out(step: &Step, operation: &Operation) -> Option<Timestamp> {
    let host = &step.state.host;
    let timeout_s = operation.self_fencing_timeout_s?;
    let since = host
        .failure_since
        .filter(|_| host.failure_state == FailureState::Unreachable)?;
    let undone = host.undoing_in_flight(step.now).map(|f| f.until);
    let from = [undone, step.state.clock_set_at].into_iter().flatten();
    Some(after_s(from.fold(since, Timestamp::max), timeout_s))
}

fn by_self_fencing(step: &mut Step) -> Option<Proof> {
    let mut due = self_fencing_due(step)?;
    if due <= step.now && !is_witnessed(step, due) {
        step.state.host.given_back(step.now);
        due = self_fencing_due(step)?;
    }
    if due > step.now {
        step.wake(due);
        return None;
    }
    let operation = step.live()?;
    let timeout_s = operation.self_fencing_timeout_s?;
    Some(Proof {
        kind: ProofKind::SelfFencing,
        source: "the segment's self-fencing timeout".to_owned(),
        observed_at: step.now,
        operation_id: operation.id,
        generation: operation.generation,
        detail: format!("UNREACHABLE for {timeout_s} s and more"),
    })
}

/// Whether the host was seen UNREACHABLE after the timeout, or this operation was there when it ran out. If neither, the engine
/// was away or the clock was moved; the host may have come back meanwhile without a report, and the count begins anew.
fn is_witnessed(step: &Step, due: Timestamp) -> bool {
    let was_seen = step
        .state
        .host
        .failure_observed_at
        .is_some_and(|observed_at| observed_at >= due);
    // One that began in the future began before the clock was moved back.
    let was_there = step
        .live()
        .is_some_and(|live| live.created_at <= due || live.created_at > step.now);
    was_seen || (was_there && step.now <= after_s(due, WATCH_SLACK_S))
}

fn become_fenced(step: &mut Step, counting: &SufficientSet) {
    let Some(operation) = &step.state.operation else {
        return;
    };
    let host = &mut step.state.host;
    let dead = [ProofKind::PowerOff, ProofKind::SelfFencing, ProofKind::Operator];
    let needs_boot = !dead.iter().any(|kind| counting.contains(kind));
    if host.is_fence_current() {
        // A later proof can only make the way back easier: a host that was seen off has stopped for certain.
        host.needs_boot &= needs_boot;
        return;
    }
    host.fencing_state = FencingState::Fenced;
    host.fenced_generation = Some(operation.generation);
    host.fenced_at = Some(step.now);
    host.boot_at_fence = host.boot.as_ref().and_then(|boot| boot.id.clone());
    host.needs_boot = needs_boot;
    host.proof_spent = false;
    let proofs: Vec<_> = operation
        .proofs
        .iter()
        .map(|p| json!({ "kind": p.kind, "source": p.source, "observed_at": p.observed_at, "detail": p.detail }))
        .collect();
    let data = json!({
        "operation_id": operation.id,
        "generation": operation.generation,
        "reason": operation.reason,
        "requested_by": operation.requested_by,
        "proofs": proofs,
    });
    step.event(EventKind::HostFenced, data);
}

/// Ends a fence that was proven and only adds to its proofs, if the host was seen UP since: another one has to prove it anew.
pub(super) fn finish_spent(step: &mut Step) {
    let is_fence = step.live().is_some_and(|live| live.kind == OperationKind::Fence);
    if is_fence && step.state.host.is_fence_current() && step.state.host.proof_spent {
        succeed(step);
    }
}

/// Ends a fence that is proven and has nothing more to do.
pub(super) fn succeed(step: &mut Step) {
    let Some(operation) = &step.state.operation else {
        return;
    };
    let proofs: Vec<_> = operation.proofs.iter().map(|proof| proof.kind.as_str()).collect();
    let failed = operation
        .tasks()
        .filter(|task| task.status == TaskStatus::Failed)
        .map(|task| task.kind);
    let (fencing, others): (Vec<_>, Vec<_>) = failed.partition(|kind| kind.resource() != Resource::Workloads);
    let names = |kinds: Vec<TaskKind>| {
        kinds
            .iter()
            .map(|kind| kind.as_str())
            .collect::<Vec<_>>()
            .join(", ")
    };
    let mut detail = format!("FENCED, proven by {}", proofs.join(", "));
    if !fencing.is_empty() {
        detail.push_str(&format!("; {} failed and no longer mattered", names(fencing)));
    }
    if !others.is_empty() {
        detail.push_str(&format!("; {} failed", names(others)));
    }
    step.end(OperationStatus::Succeeded, detail);
}

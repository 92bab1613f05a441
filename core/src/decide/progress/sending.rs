//! Attempts on their way to a worker.

use crate::decide::draft::after_s;
use crate::decide::{CLAIM_WINDOW_S, Draft, evacuation};
use crate::{
    Attempt, AttemptStatus, Dispatch, Executor, Host, Job, Movable, Operation, Task, TaskWork, WorkloadStep,
    proven_movable,
};

pub(super) fn dispatch(draft: &mut Draft, operation: &mut Operation, task: &mut Task, executor: Executor) {
    let by = executor.name();
    // Where nothing holds, nothing is let go either.
    let movable = proven_movable(&draft.state, draft.now).unwrap_or(Movable::WithoutVolumes);
    let Some(job) = job(&draft.state.host, operation, task, executor, movable) else {
        return;
    };
    operation.last_attempt = operation.last_attempt.saturating_add(1);
    operation.updated_at = draft.now;
    let claim_by = after_s(draft.now, CLAIM_WINDOW_S);
    let number = operation.last_attempt;
    task.attempts.push(Attempt {
        number,
        by,
        started_at: draft.now,
        worker: None,
        claim_id: None,
        claimed_at: None,
        state: AttemptStatus::Dispatched { claim_by },
        was_away: false,
        observation: None,
        detail: None,
    });
    let host = &draft.state.host;
    let dispatch = Dispatch {
        host_id: host.id,
        host: host.name.clone(),
        attempt: crate::AttemptId {
            operation_id: operation.id,
            number,
        },
        generation: operation.generation,
        job,
        claim_by,
    };
    if let (
        Job::Step {
            step: WorkloadStep::List { .. },
            movable,
            ..
        },
        Some(evacuation),
    ) = (&dispatch.job, operation.evacuation_mut())
    {
        evacuation.listed_for = Some(*movable);
    }
    draft.dispatch(dispatch);
}

fn job(host: &Host, operation: &Operation, task: &Task, executor: Executor, movable: Movable) -> Option<Job> {
    match (&task.work, executor) {
        (TaskWork::Fencing(fencing), Executor::Method { method, .. }) => Some(Job::Fencing {
            kind: fencing.kind,
            method,
        }),
        (TaskWork::Step(own), Executor::Platform { at, only_looks, .. }) => {
            let mut step = own.step.clone();
            if let WorkloadStep::Move(moving) = &mut step {
                moving.cut_off_by = evacuation::cut_off_by(host, operation);
                moving.given_up = own.moved.as_ref().and_then(|moved| moved.given_up.clone());
                moving.only_look = only_looks;
            }
            Some(Job::Step { step, at, movable })
        }
        (TaskWork::Fencing(_), Executor::Platform { .. }) | (TaskWork::Step(_), Executor::Method { .. }) => {
            None
        }
    }
}

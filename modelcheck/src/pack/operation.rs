//! What is under way.

use ringfence_core::*;

use super::Packer;
use super::host::proof;

pub(super) fn operation(p: &mut Packer, operation: &Operation, in_flight: &[InFlight]) {
    let Operation {
        id,
        host_id: _,
        work: kind,
        status,
        detail: _,
        generation,
        reason: _,
        requested_by: _,
        // The segment's, which does not change here.
        policy: _,
        // The host's, which does not change here.
        platform: _,
        stages,
        proofs,
        paused,
        // With the suspensions of the host.
        despite: _,
        round: _,
        restarts_left,
        restart_at,
        // Attempts are told apart by the order in which they come up.
        last_attempt: _,
        revision: _,
        created_at,
        updated_at: _,
        finished_at: _,
    } = operation;
    p.id(id.0);
    work(p, kind);
    p.byte(*status as u8);
    p.generation(*generation);
    p.list(stages.iter(), |p, one| stage(p, one, *id, in_flight));
    p.list(proofs.iter(), proof);
    p.some(paused.as_ref().map(|paused| paused.since), Packer::at);
    p.number(u64::from(*restarts_left));
    p.some(*restart_at, Packer::at);
    p.some(Some(*created_at).filter(|_| p.matters.kdump), Packer::at);
}

fn work(p: &mut Packer, work: &Work) {
    match work {
        Work::Fence(FenceWork {
            plan,
            // Those of the plan.
            sufficient_sets: _,
            cause,
            is_held_by_brake,
            held,
            // There is one host, and no others are asked about it.
            allowed_until: _,
            asks: _,
            is_wanted: _,
            permits: _,
        }) => {
            p.byte(0);
            p.flag(plan.is_some());
            p.byte(*cause as u8);
            p.flag(*is_held_by_brake);
            p.some(held.as_ref().map(|held| held.looked_at), Packer::at);
        }
        Work::Rejoin(RejoinWork { boot_confirmed }) => {
            p.byte(1);
            p.flag(*boot_confirmed);
        }
        Work::Evacuation(EvacuationWork {
            listings,
            spares,
            is_cut,
            listed_for,
            held_since,
        }) => {
            p.byte(2);
            p.number(u64::from(*listings));
            p.number(u64::from(*spares));
            p.flag(*is_cut);
            p.some(*listed_for, |p, movable| p.byte(movable as u8));
            p.some(*held_since, Packer::at);
        }
    }
}

fn stage(p: &mut Packer, stage: &Stage, id: OperationId, in_flight: &[InFlight]) {
    let Stage {
        delay_s,
        at_once,
        awaits,
        entered_at,
        started_at,
        tasks,
    } = stage;
    p.number(u64::from(*delay_s));
    p.some(*at_once, |p, at_once| p.number(u64::from(at_once)));
    p.some(*awaits, |p, awaits| p.byte(awaits as u8));
    p.flag(started_at.is_some());
    // Once it has begun, no rule asks when its turn came.
    p.some(entered_at.filter(|_| started_at.is_none()), Packer::at);
    p.list(tasks.iter(), |p, one| task(p, one, id, in_flight));
}

fn task(p: &mut Packer, task: &Task, id: OperationId, in_flight: &[InFlight]) {
    let Task {
        work,
        status,
        detail: _,
        begun_at,
        first_attempt,
        attempts,
    } = task;
    match work {
        TaskWork::Fencing(task) => fencing(p, task),
        TaskWork::Step(task) => step(p, task),
    }
    p.byte(*status as u8);
    p.some(begun_at.filter(|_| !status.is_over()), Packer::at);
    // Those of an earlier round count no more, unless one is still open or acting.
    let is_acting = |number: u32| {
        let its = AttemptId {
            operation_id: id,
            number,
        };
        in_flight.iter().any(|f| f.attempt == its)
    };
    for (at, one) in attempts.iter().enumerate() {
        let is_of_the_round = at >= *first_attempt;
        if is_of_the_round || one.is_open() || is_acting(one.number) {
            p.flag(is_of_the_round);
            attempt(p, one, id);
        }
    }
    p.byte(u8::MAX);
}

fn fencing(p: &mut Packer, task: &FencingTask) {
    let FencingTask {
        kind,
        levels,
        level,
        contradicted,
    } = task;
    p.kind(TaskKind::Fencing(*kind));
    p.list(levels.iter(), |p, level| {
        p.list(level.iter(), |p, method| p.text(&method.name))
    });
    p.count(*level);
    p.number(u64::from(*contradicted));
}

fn step(p: &mut Packer, task: &StepTask) {
    let StepTask { step, moved } = task;
    p.kind(TaskKind::Step(step.kind()));
    match step {
        WorkloadStep::Move(step) => workload(p, &step.workload),
        WorkloadStep::AddCapacity { host } => p.text(host),
        WorkloadStep::Isolate { one_by_one: _ }
        | WorkloadStep::MarkUp
        | WorkloadStep::Empty
        | WorkloadStep::CleanUp
        // Of the segment's policy, and of the host's fence.
        | WorkloadStep::MarkDown { evacuation: _ }
        | WorkloadStep::List { metadata_keys: _ }
        | WorkloadStep::Start { fenced_at: _ } => {}
    }
    p.some(moved.as_deref(), moved_to);
}

fn workload(p: &mut Packer, workload: &Workload) {
    let Workload {
        id,
        // For people.
        name: _,
        owner: _,
        state,
        metadata: _,
    } = workload;
    p.text(id);
    p.byte(*state as u8);
}

fn moved_to(p: &mut Packer, moved: &MoveReport) {
    let MoveReport {
        to,
        // For people.
        state_after: _,
        request_id: _,
        no_room,
        unanswered,
        stuck,
        given_up,
    } = moved;
    p.some(to.as_deref(), Packer::text);
    p.flag(*no_room);
    p.flag(*unanswered);
    p.some(stuck.as_ref(), |p, stuck| {
        let Stuck { id, to } = stuck;
        p.text(id);
        p.text(to);
    });
    p.some(given_up.as_deref(), Packer::text);
}

fn attempt(p: &mut Packer, attempt: &Attempt, id: OperationId) {
    let read_at = attempt.read_at();
    let Attempt {
        number,
        by,
        started_at,
        // There is one of them.
        worker: _,
        claim_id,
        claimed_at,
        state,
        was_away,
        observation,
        detail: _,
    } = attempt;
    p.flag(*was_away);
    p.attempt(AttemptId {
        operation_id: id,
        number: *number,
    });
    match by {
        AttemptBy::Method {
            level,
            id,
            name: _,
            driver: _,
        } => {
            p.count(*level);
            p.method(*id);
        }
        AttemptBy::Platform {
            backend: _,
            name: _,
            only_looks,
        } => {
            p.byte(u8::MAX);
            p.flag(*only_looks);
        }
    }
    match state {
        AttemptStatus::Dispatched { claim_by } => {
            p.byte(0);
            p.at(*started_at);
            p.at(*claim_by);
        }
        AttemptStatus::Claimed {
            lease_until,
            deadline,
        } => {
            p.byte(1);
            p.some(*claim_id, Packer::id);
            p.some(*claimed_at, Packer::at);
            p.at(*lease_until);
            p.at(*deadline);
        }
        AttemptStatus::Ended { outcome, ended_at } => {
            p.byte(2);
            p.byte(*outcome as u8);
            p.flag(claimed_at.is_some());
            // What was confirmed counts from its reading on, anything else until its pause is over.
            match outcome {
                Outcome::Confirmed => {
                    p.some(read_at, Packer::at);
                    p.some(*claimed_at, Packer::at);
                    p.at(*ended_at);
                }
                Outcome::Unknown | Outcome::Refused => p.at(*ended_at),
            }
            p.some(observation.as_ref(), self::observation);
        }
        AttemptStatus::Cancelled { ended_at: _ } => p.byte(3),
    }
}

pub(super) fn observation(p: &mut Packer, observation: &Observation) {
    let Observation {
        state,
        detail: _,
        // By the worker's clock, which no rule compares.
        observed_at: _,
        // Part of when it was read.
        after_ms: _,
        before,
        proves,
    } = observation;
    p.byte(*state as u8);
    p.some(*before, |p, before| p.byte(before as u8));
    p.flag(*proves);
}

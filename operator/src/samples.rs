//! For tests: hosts and operations.

use std::collections::BTreeMap;

use ringfence_core::{
    Alarms, Applied, Attempt, AttemptBy, AttemptStatus, Backend, Conditions, EvacuationWork, FailureState,
    Fence, FenceWork, Flapping, Generation, Host, HostId, MethodId, Operation, OperationId, OperationStatus,
    Outcome, RejoinWork, SegmentId, SegmentPolicy, Sources, Stage, Task, Timestamp, Work,
    default_sufficient_sets,
};
use uuid::Uuid;

pub(crate) const NOW: Timestamp = Timestamp::UNIX_EPOCH;

pub(crate) fn host(fenced: bool) -> Host {
    Host {
        id: HostId(Uuid::nil()),
        name: "n1".to_owned(),
        segment_id: SegmentId(Uuid::nil()),
        backend: Backend::Kubernetes,
        cloud: Some("lab".to_owned()),
        known_as: None,
        host_type: None,
        labels: ringfence_core::Labels::new(),
        zone: "default".to_owned(),
        parameters: BTreeMap::new(),
        sources: Sources::default(),
        failure_state: FailureState::Unreachable,
        failure_source: None,
        failure_observed_at: None,
        failure_since: None,
        generation: Generation(1),
        fence: fenced.then(|| Fence {
            generation: Generation(1),
            operation_id: OperationId(Uuid::nil()),
            at: NOW,
            sets: Vec::new(),
            proofs: Vec::new(),
            off_until: None,
            is_evacuation_begun: false,
            is_emptied: false,
        }),
        conditions: Conditions::default(),
        suspension: None,
        flapping: Flapping::default(),
        alarms: Alarms::default(),
        braked_at: None,
        kdump: None,
        is_silence_answered: true,
        released_at: None,
        last_off_at: None,
        applied: Applied::default(),
        in_flight: Vec::new(),
        event_sequence: 0,
        revision: 0,
        created_at: NOW,
        updated_at: NOW,
    }
}

fn operation(work: Work, status: OperationStatus, tasks: Vec<Task>) -> Operation {
    Operation {
        id: OperationId(Uuid::nil()),
        host_id: HostId(Uuid::nil()),
        work,
        status,
        detail: String::new(),
        generation: Generation(1),
        reason: "dead".to_owned(),
        requested_by: "me".to_owned(),
        policy: Box::new(SegmentPolicy::default()),
        platform: None,
        stages: vec![Stage {
            delay_s: 0,
            at_once: None,
            awaits: None,
            entered_at: None,
            started_at: None,
            tasks,
        }],
        proofs: Vec::new(),
        paused: None,
        despite: Vec::new(),
        round: 0,
        restarts_left: 0,
        restart_at: None,
        last_attempt: 0,
        revision: 0,
        created_at: NOW,
        updated_at: NOW,
        finished_at: None,
    }
}

pub(crate) fn fence(status: OperationStatus, tasks: Vec<Task>) -> Operation {
    let work = FenceWork::new(None, default_sufficient_sets());
    operation(Work::Fence(work), status, tasks)
}

pub(crate) fn rejoin(status: OperationStatus) -> Operation {
    let work = RejoinWork {
        boot_confirmed: false,
    };
    operation(Work::Rejoin(work), status, Vec::new())
}

pub(crate) fn evacuation(status: OperationStatus) -> Operation {
    operation(Work::Evacuation(EvacuationWork::default()), status, Vec::new())
}

/// An attempt that has ended.
pub(crate) fn ended(outcome: Outcome) -> Attempt {
    Attempt {
        number: 1,
        by: AttemptBy::Method {
            level: 0,
            id: MethodId(Uuid::nil()),
            name: "bmc".to_owned(),
            driver: "ipmi".to_owned(),
        },
        started_at: NOW,
        worker: None,
        claim_id: None,
        claimed_at: Some(NOW),
        state: AttemptStatus::Ended {
            outcome,
            ended_at: NOW,
        },
        was_away: false,
        observation: None,
        detail: None,
    }
}

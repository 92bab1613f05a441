//! Small segments, hosts, operations and changes for the tests.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta};
use ringfence_core::{
    Applied, AttemptId, Backend, ConditionAction, Conditions, EventKind, FailureState, Fence, FenceWork,
    Generation, Host, HostId, Operation, OperationId, OperationStatus, Proof, ProofKind, Segment, SegmentId,
    SegmentPolicy, Sources, Timestamp, Work, default_sufficient_sets,
};
use ringfence_db::{
    Asked, Changes, Database, DbError, Ended, EventHost, Filters, HOSTS, HostWrite, Locking, NewEvent,
    OPERATIONS, Run, Test, insert_host, insert_segment,
};
use serde_json::json;
use uuid::Uuid;

/// A time of the test, in seconds after its start.
pub fn at(seconds: i64) -> Timestamp {
    DateTime::from_timestamp(1_800_000_000, 0).unwrap() + TimeDelta::seconds(seconds)
}

pub fn segment(name: &str) -> Segment {
    Segment {
        id: SegmentId(Uuid::new_v4()),
        name: name.to_owned(),
        description: String::new(),
        policy: SegmentPolicy::default(),
        revision: 1,
        created_at: at(0),
        updated_at: at(0),
    }
}

pub fn host(name: &str, segment: &Segment) -> Host {
    Host {
        id: HostId(Uuid::new_v4()),
        name: name.to_owned(),
        segment_id: segment.id,
        backend: Backend::None,
        cloud: None,
        known_as: None,
        host_type: None,
        labels: ringfence_core::Labels::new(),
        zone: "default".to_owned(),
        parameters: BTreeMap::new(),
        sources: Sources::default(),
        failure_state: FailureState::Unknown,
        failure_source: None,
        failure_observed_at: None,
        failure_since: None,
        conditions: Conditions::default(),
        suspension: None,
        flapping: ringfence_core::Flapping::default(),
        alarms: ringfence_core::Alarms::default(),
        braked_at: None,
        kdump: None,
        generation: Generation(0),
        fence: None,
        is_silence_answered: false,
        released_at: None,
        last_off_at: None,
        applied: Applied::default(),
        in_flight: Vec::new(),
        event_sequence: 0,
        revision: 1,
        created_at: at(0),
        updated_at: at(0),
    }
}

pub fn fence(host: &Host, generation: u32) -> Operation {
    Operation {
        id: OperationId(Uuid::new_v4()),
        platform: None,
        host_id: host.id,
        work: Work::Fence(FenceWork::new(
            Some("default".to_owned()),
            default_sufficient_sets(),
        )),
        status: OperationStatus::Running,
        detail: String::new(),
        generation: Generation(generation),
        reason: "the host does not answer".to_owned(),
        requested_by: "masakari".to_owned(),
        policy: Box::default(),
        stages: Vec::new(),
        proofs: Vec::new(),
        paused: None,
        despite: Vec::new(),
        round: 0,
        restarts_left: 0,
        restart_at: None,
        last_attempt: 0,
        revision: 0,
        created_at: at(1),
        updated_at: at(1),
        finished_at: None,
    }
}

/// A condition of the host that has stood since then, and what is done about it.
pub fn sick(since: i64, generation: u32, action: ConditionAction) -> Conditions {
    let condition = json!({
        "status": "True", "since": at(since), "reason": "DockerHung", "generation": generation, "action": action,
    });
    serde_json::from_value(json!({ "by_source": { "npd": { "KernelDeadlock": condition } } })).unwrap()
}

/// The operation after its successful end.
pub fn done(operation: &Operation) -> Operation {
    Operation {
        status: OperationStatus::Succeeded,
        finished_at: Some(at(9)),
        updated_at: at(9),
        ..operation.clone()
    }
}

pub fn proof(operation: &Operation, kind: ProofKind) -> Proof {
    Proof {
        kind,
        source: "bmc".to_owned(),
        observed_at: at(5),
        read_at: at(4),
        claimed_at: Some(at(3)),
        settle_s: 0,
        operation_id: operation.id,
        generation: operation.generation,
        detail: "off".to_owned(),
        ended: None,
    }
}

/// The host after this fence with these proofs, by the rules of `core`.
pub fn fenced(host: &Host, operation: &Operation, proofs: &[ProofKind]) -> Host {
    Host {
        generation: operation.generation,
        fence: Some(Fence {
            generation: operation.generation,
            operation_id: operation.id,
            at: at(5),
            sets: default_sufficient_sets(),
            proofs: proofs.iter().map(|kind| proof(operation, *kind)).collect(),
            off_until: None,
            is_evacuation_begun: false,
            is_emptied: false,
        }),
        ..host.clone()
    }
}

/// The host after its rejoin, by the rules of `core`.
pub fn taken_back(host: &Host) -> Host {
    Host {
        fence: None,
        ..host.clone()
    }
}

pub fn attempt(number: u32) -> AttemptId {
    AttemptId {
        operation_id: OperationId(Uuid::from_u128(7)),
        number,
    }
}

pub fn event(host: &Host, host_sequence: u64) -> NewEvent {
    NewEvent {
        id: Uuid::new_v4(),
        host: Some(EventHost {
            id: host.id,
            name: host.name.clone(),
            segment_id: host.segment_id,
            sequence: host_sequence,
            generation: host.generation,
        }),
        kind: EventKind::HostFailureState,
        occurred_at: at(1),
        data: json!({ "number": host_sequence }),
    }
}

/// A segment with one host.
pub async fn one_host(db: &Database) -> (Segment, Host) {
    let segment = segment("rack-1");
    let host = host("node-1", &segment);
    insert_segment(&mut db.reader(), &segment).await.unwrap();
    insert_host(&mut db.reader(), &host).await.unwrap();
    (segment, host)
}

/// Fences a host by power, with every row that the database requires, in one transaction.
pub async fn fence_by_power(db: &Database, host: &Host, generation: u32) -> (Host, Operation) {
    let operation = done(&fence(host, generation));
    let host = fenced(host, &operation, &[ProofKind::PowerOff]);
    let won = proof(&operation, ProofKind::PowerOff);
    let changes = Changes {
        new_operations: vec![&operation],
        proofs: vec![(host.id, &won)],
        hosts: vec![whole(&host, None)],
        ..Changes::default()
    };
    commit(db, &changes).await.unwrap();
    (host, operation)
}

/// Asserts that the database refused the statement, and not for a duplicate.
pub fn assert_refused<T: std::fmt::Debug>(result: Result<T, DbError>) {
    match result {
        Err(DbError::Constraint {
            is_duplicate: false, ..
        }) => {}
        other => panic!("not refused: {other:?}"),
    }
}

/// Asserts that the database refused the statement for a duplicate.
pub fn assert_duplicate<T: std::fmt::Debug>(result: Result<T, DbError>) {
    match result {
        Err(DbError::Constraint {
            is_duplicate: true, ..
        }) => {}
        other => panic!("not refused as a duplicate: {other:?}"),
    }
}

/// Adds hosts with these names, created one second apart in this order.
pub async fn add_hosts(run: &mut impl Run, segment: &Segment, names: &[&str]) -> Vec<Host> {
    let mut hosts = Vec::new();
    for (second, name) in (0..).zip(names) {
        let host = Host {
            created_at: at(second),
            updated_at: at(second),
            ..host(name, segment)
        };
        insert_host(run, &host).await.unwrap();
        hosts.push(host);
    }
    hosts
}

/// Commits changes in a transaction of their own.
pub async fn commit(db: &Database, changes: &Changes<'_>) -> Result<Ended, DbError> {
    let begun = db.begin_with_hosts(&[], Locking::Pessimistic).await?;
    begun.transaction.commit(changes).await
}

pub async fn insert_operations(db: &Database, operations: &[Operation]) -> Result<(), DbError> {
    let changes = Changes {
        new_operations: operations.iter().collect(),
        ..Changes::default()
    };
    commit(db, &changes).await.map(|_| ())
}

pub async fn insert_operation(db: &Database, operation: &Operation) -> Result<(), DbError> {
    insert_operations(db, std::slice::from_ref(operation)).await
}

pub async fn update_operation(db: &Database, operation: &Operation) -> Result<(), DbError> {
    let known = ringfence_db::operation(&mut db.reader(), operation.id.0).await?;
    let known = known.unwrap_or_else(|| operation.clone());
    let changes = Changes {
        changed_operations: vec![(operation, &known)],
        ..Changes::default()
    };
    commit(db, &changes).await.map(|_| ())
}

pub async fn save_proof(db: &Database, host_id: HostId, proof: &Proof) -> Result<(), DbError> {
    let changes = Changes {
        proofs: vec![(host_id, proof)],
        ..Changes::default()
    };
    commit(db, &changes).await.map(|_| ())
}

/// The write of a host with all its columns.
pub fn whole(host: &Host, wake_at: Option<Timestamp>) -> HostWrite<'_> {
    HostWrite {
        host,
        known: None,
        wake_at,
    }
}

pub async fn update_host(run: &mut impl Run, host: &Host, wake_at: Option<Timestamp>) -> Result<(), DbError> {
    ringfence_db::update_hosts(run, &[whole(host, wake_at)]).await
}

/// A filter of hosts with this test.
pub fn hosts_by(name: &str, test: Test<Asked>) -> Filters {
    and_hosts_by(Filters::default(), name, test)
}

/// Adds this test to a filter of hosts.
pub fn and_hosts_by(filters: Filters, name: &str, test: Test<Asked>) -> Filters {
    filters.and(HOSTS.filter(name).unwrap(), test)
}

/// A filter of operations with this test.
pub fn operations_by(name: &str, test: Test<Asked>) -> Filters {
    Filters::default().and(OPERATIONS.filter(name).unwrap(), test)
}

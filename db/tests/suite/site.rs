//! What the stories are told with: segments, hosts and what is done to them, all of it small.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta};
use ringfence_core::{
    AttemptId, Backend, EventKind, FailureState, FencingState, Generation, Host, HostId, Operation,
    OperationId, OperationKind, OperationStatus, Proof, ProofKind, Segment, SegmentId, SegmentPolicy,
    Timestamp, default_sufficient_sets,
};
use ringfence_db::{Database, DbError, EventHost, NewEvent, Run, insert_host, insert_segment};
use serde_json::json;
use uuid::Uuid;

/// A moment of the story, in seconds after it begins.
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
        zone: "default".to_owned(),
        parameters: BTreeMap::new(),
        failure_state: FailureState::Unknown,
        failure_source: None,
        failure_observed_at: None,
        failure_since: None,
        boot: None,
        fencing_state: FencingState::Unfenced,
        generation: Generation(0),
        fenced_generation: None,
        fenced_at: None,
        boot_at_fence: None,
        needs_boot: false,
        proof_spent: false,
        evacuation_begun: None,
        is_silence_answered: false,
        standing: Vec::new(),
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
        host_id: host.id,
        kind: OperationKind::Fence,
        status: OperationStatus::Running,
        detail: String::new(),
        generation: Generation(generation),
        reason: "it does not answer".to_owned(),
        requested_by: "masakari".to_owned(),
        plan: Some("default".to_owned()),
        stages: Vec::new(),
        sufficient_sets: default_sufficient_sets(),
        proofs: Vec::new(),
        self_fencing_timeout_s: None,
        is_braked: false,
        evacuation: None,
        round: 0,
        restarts_left: 0,
        restart_delay_s: 60,
        restart_at: None,
        rejoin_wait_s: 600,
        boot_confirmed: false,
        last_attempt: 0,
        revision: 0,
        created_at: at(1),
        updated_at: at(1),
        finished_at: None,
    }
}

/// The same operation when it has ended well.
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
        operation_id: operation.id,
        generation: operation.generation,
        detail: "off".to_owned(),
    }
}

/// The host as the rules leave it when a fence of this generation is proven.
pub fn fenced(host: &Host, generation: u32) -> Host {
    Host {
        fencing_state: FencingState::Fenced,
        generation: Generation(generation),
        fenced_generation: Some(Generation(generation)),
        fenced_at: Some(at(5)),
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

/// A segment with a host in it.
pub async fn one_host(db: &Database) -> (Segment, Host) {
    let segment = segment("rack-1");
    let host = host("node-1", &segment);
    insert_segment(&mut db.reader(), &segment).await.unwrap();
    insert_host(&mut db.reader(), &host).await.unwrap();
    (segment, host)
}

/// Fences a host by its power, with all that the database asks for, in one transaction.
pub async fn fence_by_power(db: &Database, host: &Host, generation: u32) -> (Host, Operation) {
    let mut tx = db.begin().await.unwrap();
    let operation = done(&fence(host, generation));
    let host = fenced(host, generation);
    insert_operation(&mut tx, &operation).await.unwrap();
    insert_proof(&mut tx, host.id, &proof(&operation, ProofKind::PowerOff))
        .await
        .unwrap();
    update_host(&mut tx, &host, Some(ProofKind::PowerOff), None)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    (host, operation)
}

/// That the database itself said no, and not because of a double.
pub fn assert_refused<T: std::fmt::Debug>(result: Result<T, DbError>) {
    match result {
        Err(DbError::Constraint {
            is_duplicate: false, ..
        }) => {}
        other => panic!("not refused: {other:?}"),
    }
}

/// That the database itself said that there is one already.
pub fn assert_duplicate<T: std::fmt::Debug>(result: Result<T, DbError>) {
    match result {
        Err(DbError::Constraint {
            is_duplicate: true, ..
        }) => {}
        other => panic!("not refused as a double: {other:?}"),
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

/// As the engine does, for one.
pub async fn insert_operation(run: &mut impl Run, operation: &Operation) -> Result<(), DbError> {
    ringfence_db::insert_operations(run, &[operation]).await
}

pub async fn update_operation(run: &mut impl Run, operation: &Operation) -> Result<(), DbError> {
    let known = ringfence_db::operation(run, operation.id.0).await?;
    let known = known.unwrap_or_else(|| operation.clone());
    ringfence_db::update_operations(run, &[(operation, &known)]).await
}

pub async fn insert_proof(run: &mut impl Run, host_id: HostId, proof: &Proof) -> Result<(), DbError> {
    ringfence_db::insert_proofs(run, &[(host_id, proof)]).await
}

pub async fn update_host(
    run: &mut impl Run,
    host: &Host,
    fenced_proof: Option<ProofKind>,
    wake_at: Option<Timestamp>,
) -> Result<(), DbError> {
    let write = ringfence_db::HostWrite {
        host,
        known: None,
        fenced_proof,
        wake_at,
    };
    ringfence_db::update_hosts(run, &[write]).await
}

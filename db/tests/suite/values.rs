//! Values are read as they were written.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use ringfence_core::{
    Alarms, Applied, AppliedFencing, AttemptId, Backend, ConditionAction, CountedProblem, Ended,
    FailureState, FencingKind, FrozenMethod, Generation, Host, HostProblem, InFlight, Kdump, MethodId,
    MethodTimes, Operation, PlatformHost, Proof, ProofKind, RejoinWork, Resource, Sources, Undoing, Work,
};
use ringfence_db::{
    Changes, append_events, events_after, host_row, insert_host, insert_segment, load_state, lock_host,
    number_events, operation,
};
use serde_json::json;
use uuid::Uuid;

use crate::rig::Rig;
use crate::site::{
    at, commit, event, fence, fence_by_power, host, insert_operation, one_host, proof, save_proof, segment,
    sick, update_host, update_operation,
};

/// Letters of several scripts, an emoji of several code points, quotes, and characters with a meaning in SQL and JSON.
const STRANGE: &str = "Zelle 7 „Süd“ – 機架 七 – стойка – 👩‍🚒 – \\u0041 \\ ' \" $1 ?; -- \u{1}\n\t%s {}";

crate::stories!(values:
    a_host_is_read_as_it_was_written,
    a_host_can_lose_all_optional_values,
    all_changed_columns_of_a_host_are_written,
    times_keep_their_microseconds,
    an_operation_is_read_as_it_was_written,
    a_fence_is_read_as_it_was_written,
    a_proof_that_is_won_again_replaces_the_first,
    events_carry_any_json,
    a_devices_nul_character_does_not_stop_a_decision,
);

/// Columns are changed group by group; unchanged columns are not written.
async fn all_changed_columns_of_a_host_are_written(rig: &Rig) {
    let (_, host) = one_host(&rig.db).await;
    let all = everything(&host);
    let changed: [fn(&mut Host, &Host); 6] = [
        |host, all| {
            host.backend = all.backend;
            host.host_type.clone_from(&all.host_type);
            host.zone.clone_from(&all.zone);
            host.parameters.clone_from(&all.parameters);
        },
        |host, all| {
            host.failure_state = all.failure_state;
            host.failure_source.clone_from(&all.failure_source);
            host.failure_observed_at = all.failure_observed_at;
            host.failure_since = all.failure_since;
            host.sources.clone_from(&all.sources);
        },
        |host, all| host.conditions.clone_from(&all.conditions),
        |host, all| host.alarms.clone_from(&all.alarms),
        |host, all| {
            host.generation = all.generation;
            host.is_silence_answered = all.is_silence_answered;
        },
        |host, all| *host = all.clone(),
    ];
    let mut known = host;
    for change in changed {
        let mut next = known.clone();
        change(&mut next, &all);
        let write = ringfence_db::HostWrite {
            host: &next,
            known: Some(&known),
            wake_at: None,
        };
        ringfence_db::update_hosts(&mut rig.db.reader(), &[write])
            .await
            .unwrap();
        let read = load_state(&mut rig.db.reader(), &all.name)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(read.host, next);
        known = next;
    }
    assert_eq!(known, all);
}

fn everything(host: &Host) -> Host {
    let method = FrozenMethod {
        id: MethodId(Uuid::new_v4()),
        name: "bmc".to_owned(),
        resource: Resource::Power,
        driver: "ipmi".to_owned(),
        service_of: None,
        can_prove: true,
        parameters: BTreeMap::from([("address".to_owned(), STRANGE.to_owned())]),
        secrets: BTreeMap::new(),
        zone: "cell-7".to_owned(),
        device: Some("ipmi:192.0.2.7".to_owned()),
        times: MethodTimes::default(),
    };
    let attempt = AttemptId {
        operation_id: ringfence_core::OperationId(Uuid::new_v4()),
        number: 3,
    };
    Host {
        backend: Backend::Nova,
        host_type: Some("gpu".to_owned()),
        zone: "cell-7".to_owned(),
        parameters: BTreeMap::from([(
            "bmc".to_owned(),
            BTreeMap::from([("ip".to_owned(), STRANGE.to_owned())]),
        )]),
        failure_state: FailureState::Unreachable,
        failure_source: Some(STRANGE.to_owned()),
        failure_observed_at: Some(at(2)),
        failure_since: Some(at(3)),
        sources: sources(),
        conditions: sick(3, u32::MAX, ConditionAction::Fence),
        alarms: Alarms {
            counted: vec![CountedProblem {
                problem: HostProblem::Condition,
                condition: Some("KernelDeadlock".to_owned()),
                at: vec![at(1), at(2)],
            }],
            standing: Vec::new(),
        },
        generation: Generation(u32::MAX),
        is_silence_answered: true,
        released_at: Some(at(5)),
        last_off_at: Some(at(6)),
        kdump: Some(Kdump {
            since: at(3),
            last_at: at(4),
            is_over: true,
        }),
        applied: Applied {
            fencing: vec![AppliedFencing {
                kind: FencingKind::StorageFence,
                method,
                attempt,
                by: at(7),
                is_shown: true,
            }],
            marked_down_by: Some(attempt),
        },
        in_flight: vec![InFlight {
            attempt,
            generation: Generation(2),
            kind: FencingKind::PowerOff.into(),
            method: Some(MethodId(Uuid::new_v4())),
            claim_id: Some(Uuid::new_v4()),
            until: at(30),
            only_looks: false,
            lasts_ms: Some(26_000),
        }],
        event_sequence: 41,
        revision: u64::try_from(i64::MAX).unwrap(),
        updated_at: at(4),
        ..host.clone()
    }
}

/// A source that has heard the host, and a source that reports its silence.
fn sources() -> Sources {
    let monitor = json!({
        "state": "UNREACHABLE", "observed_at": at(2), "reported_at": at(3), "late_ms": 7,
        "alive_by": at(2), "alive_at": at(1), "alive_reported_at": at(1),
        "silence": { "since": at(2), "watched_from": at(3), "is_dated": true },
        "boots": [{ "id": "b-1", "first_seen": at(0), "last_seen": at(1) }],
    });
    let agent = json!({
        "state": "UP", "observed_at": at(0), "reported_at": at(0), "late_ms": 0, "alive_at": at(0),
        "alive_reported_at": at(0), "up_since": at(0),
        "boots": [{ "booted_at": at(0), "first_seen": at(0), "last_seen": at(0) }],
    });
    serde_json::from_value(json!({
        "by_name": { STRANGE: monitor, "agent": agent },
        "struck_off": { "alive_by": at(1), "alive_reported_at": at(2) },
    }))
    .unwrap()
}

async fn a_host_is_read_as_it_was_written(rig: &Rig) {
    let (_, host) = one_host(&rig.db).await;
    assert_eq!(
        host_row(&mut rig.db.reader(), &host.name)
            .await
            .unwrap()
            .unwrap()
            .host,
        host
    );
    let changed = everything(&host);
    update_host(&mut rig.db.reader(), &changed, Some(at(30)))
        .await
        .unwrap();
    for id_or_name in [
        changed.name.clone(),
        changed.id.to_string(),
        changed.id.to_string().to_uppercase(),
    ] {
        assert_eq!(
            host_row(&mut rig.db.reader(), &id_or_name)
                .await
                .unwrap()
                .unwrap()
                .host,
            changed
        );
    }
    let mut tx = rig.db.begin().await.unwrap();
    assert_eq!(
        lock_host(&mut tx, changed.id).await.unwrap().unwrap().host,
        changed
    );
}

async fn a_host_can_lose_all_optional_values(rig: &Rig) {
    let (_, host) = one_host(&rig.db).await;
    update_host(&mut rig.db.reader(), &everything(&host), Some(at(30)))
        .await
        .unwrap();
    update_host(&mut rig.db.reader(), &host, None).await.unwrap();
    assert_eq!(
        host_row(&mut rig.db.reader(), &host.name)
            .await
            .unwrap()
            .unwrap()
            .host,
        host
    );
}

async fn times_keep_their_microseconds(rig: &Rig) {
    let rack = segment("rack-1");
    insert_segment(&mut rig.db.reader(), &rack).await.unwrap();
    let exact = at(0) + TimeDelta::microseconds(123_457);
    let last = at(0) + TimeDelta::nanoseconds(999_999_999);
    let written = Host {
        created_at: exact,
        updated_at: last,
        failure_observed_at: Some(exact),
        ..host("node-1", &rack)
    };
    insert_host(&mut rig.db.reader(), &written).await.unwrap();
    update_host(&mut rig.db.reader(), &written, None).await.unwrap();
    let read = host_row(&mut rig.db.reader(), "node-1")
        .await
        .unwrap()
        .unwrap()
        .host;
    assert_eq!(read.created_at, exact);
    assert_eq!(read.failure_observed_at, Some(exact));
    // A finer fraction is cut off, never rounded up: a time that was read back is not later than the original.
    assert_eq!(read.updated_at, at(0) + TimeDelta::microseconds(999_999));
}

async fn an_operation_is_read_as_it_was_written(rig: &Rig) {
    let (_, host) = one_host(&rig.db).await;
    let mut written: Operation = fence(&host, 1);
    written.reason = STRANGE.to_owned();
    written.work = Work::Rejoin(RejoinWork { boot_confirmed: true });
    written.platform = Some(Box::new(PlatformHost {
        backend: Backend::Nova,
        platform: "paris".to_owned(),
        host: STRANGE.to_owned(),
        zone: "west".to_owned(),
    }));
    written.restart_at = Some(at(3) + TimeDelta::nanoseconds(1));
    insert_operation(&rig.db, &written).await.unwrap();
    assert_eq!(
        operation(&mut rig.db.reader(), written.id.0).await.unwrap(),
        Some(written.clone())
    );
    written.proofs.push(proof(&written, ProofKind::PowerOff));
    written.detail = "{\"not\": \"json\"}".to_owned();
    update_operation(&rig.db, &written).await.unwrap();
    assert_eq!(
        operation(&mut rig.db.reader(), written.id.0).await.unwrap(),
        Some(written)
    );
    assert_eq!(
        operation(&mut rig.db.reader(), Uuid::new_v4()).await.unwrap(),
        None
    );
}

async fn a_fence_is_read_as_it_was_written(rig: &Rig) {
    let (_, host) = one_host(&rig.db).await;
    let (mut host, operation) = fence_by_power(&rig.db, &host, 1).await;
    let fence = host.fence.as_mut().unwrap();
    fence.is_evacuation_begun = true;
    fence.proofs[0].detail = STRANGE.to_owned();
    fence.proofs[0].ended = Some(Ended {
        undoing: Undoing::SignOfLife {
            source: STRANGE.to_owned(),
            observed_at: at(6),
        },
        at: at(7),
    });
    fence.proofs.push(proof(&operation, ProofKind::StorageFence));
    update_host(&mut rig.db.reader(), &host, None).await.unwrap();
    let listed = host_row(&mut rig.db.reader(), &host.name).await.unwrap().unwrap();
    assert_eq!(listed.host, host);
}

/// The test copies the source of the stored proof into the host's name, where it can be read.
async fn a_proof_that_is_won_again_replaces_the_first(rig: &Rig) {
    let (_, host) = one_host(&rig.db).await;
    let (host, operation) = fence_by_power(&rig.db, &host, 1).await;
    let anew = Proof {
        source: STRANGE.to_owned(),
        ..proof(&operation, ProofKind::PowerOff)
    };
    save_proof(&rig.db, host.id, &anew).await.unwrap();
    rig.past("UPDATE hosts SET name = (SELECT source FROM proofs)")
        .await
        .unwrap();
    assert!(host_row(&mut rig.db.reader(), STRANGE).await.unwrap().is_some());
}

async fn events_carry_any_json(rig: &Rig) {
    let (_, host) = one_host(&rig.db).await;
    let data = json!({
        "text": STRANGE, "b": [1, 2.5, -3, true, null, {}], "a": { STRANGE: "" },
        "large": u64::MAX, "small": i64::MIN, "float": 1e-7,
    });
    let mut written = event(&host, 1);
    written.data = data;
    if let Some(host) = &mut written.host {
        host.name = STRANGE.to_owned();
    }
    append_events(&mut rig.db.reader(), std::slice::from_ref(&written))
        .await
        .unwrap();
    number_events(&rig.db).await.unwrap();
    let read = events_after(&mut rig.db.reader(), 0, None, 10).await.unwrap();
    assert_eq!(read[0].event, written);
}

/// PostgreSQL stores no NUL, neither in text nor in JSON; a device may send one.
async fn a_devices_nul_character_does_not_stop_a_decision(rig: &Rig) {
    let (_, host) = one_host(&rig.db).await;
    let said = "off\0\0 (chassis)";
    let kept = "off\u{fffd}\u{fffd} (chassis)";
    let mut written = fence(&host, 1);
    written.detail = said.to_owned();
    let mut won = proof(&written, ProofKind::PowerOff);
    won.detail = said.to_owned();
    written.proofs.push(won.clone());
    let mut told = event(&host, 1);
    told.data = json!({ "detail": [said], "a\0b": 1 });

    let changes = Changes {
        new_operations: vec![&written],
        proofs: vec![(host.id, &won)],
        events: vec![told],
        ..Changes::default()
    };
    commit(&rig.db, &changes).await.unwrap();

    number_events(&rig.db).await.unwrap();
    let read = operation(&mut rig.db.reader(), written.id.0)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        (read.detail.as_str(), read.proofs[0].detail.as_str()),
        (kept, kept)
    );
    let read = events_after(&mut rig.db.reader(), 0, None, 10).await.unwrap();
    assert_eq!(read[0].event.data, json!({ "detail": [kept], "a\u{fffd}b": 1 }));
}

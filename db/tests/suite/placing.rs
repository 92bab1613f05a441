//! The state for the schedule gates of all hosts, read at once.

use std::collections::BTreeMap;

use ringfence_core::{
    Backend, ConditionAction, FailureState, FencingKind, Gate, Generation, Host, InFlight, MethodId, gates,
    schedule_gate,
};
use ringfence_db::{
    cloud_has_hosts, hosts_to_place, insert_host, insert_segment, load_state, load_state_in_cloud,
};

use crate::rig::Rig;
use crate::site::{
    at, attempt, done, fence, fence_by_power, host, insert_operation, segment, sick, update_host,
};

crate::stories!(placing: gates_of_all_hosts_read_at_once_equal_those_read_one_by_one, a_host_is_found_by_its_cloud_and_its_name_there);

fn of_cloud(name: &str, segment: &ringfence_core::Segment) -> Host {
    Host {
        backend: Backend::Nova,
        cloud: Some("east".to_owned()),
        known_as: Some(format!("{name}.example.org")),
        failure_state: FailureState::Up,
        ..host(name, segment)
    }
}

pub async fn gates_of_all_hosts_read_at_once_equal_those_read_one_by_one(rig: &Rig) {
    let (db, rack) = (&rig.db, segment("rack-1"));
    let mut reader = db.reader();
    insert_segment(&mut reader, &rack).await.unwrap();
    let names = [
        "plain",
        "down",
        "fenced",
        "fencing",
        "was-fenced",
        "struck",
        "sick",
    ];
    let mut hosts = names.map(|name| of_cloud(name, &rack));
    hosts[1].failure_state = FailureState::Unreachable;
    hosts[6].conditions = sick(1, 0, ConditionAction::HoldScheduling);
    for host in &hosts {
        insert_host(&mut reader, host).await.unwrap();
        // Observations of a host are written by an update, not by the insert.
        update_host(&mut rig.db.reader(), host, None).await.unwrap();
    }
    insert_host(&mut reader, &host("elsewhere", &rack)).await.unwrap();
    fence_by_power(db, &hosts[2], 1).await;
    for (host, operation) in [
        (&hosts[3], fence(&hosts[3], 1)),
        (&hosts[4], done(&fence(&hosts[4], 1))),
    ] {
        let host = Host {
            generation: Generation(1),
            ..host.clone()
        };
        insert_operation(&rig.db, &operation).await.unwrap();
        update_host(&mut rig.db.reader(), &host, None).await.unwrap();
    }
    let struck = InFlight {
        attempt: attempt(1),
        generation: Generation(0),
        kind: FencingKind::StorageFence.into(),
        method: Some(MethodId(uuid::Uuid::new_v4())),
        claim_id: None,
        until: at(60),
        only_looks: false,
        lasts_ms: None,
    };
    hosts[5].in_flight.push(struck);
    update_host(&mut rig.db.reader(), &hosts[5], None).await.unwrap();

    let rows = hosts_to_place(&mut reader).await.unwrap();
    let at_once: BTreeMap<String, Gate> = rows
        .iter()
        .map(|row| (row.known_as.clone(), schedule_gate(&row.placing(), at(30))))
        .collect();
    assert!(rows.iter().all(|row| row.cloud == "east"));
    let mut one_by_one = BTreeMap::new();
    for name in names {
        let state = load_state(&mut reader, name).await.unwrap().unwrap();
        one_by_one.insert(format!("{name}.example.org"), gates(&state, at(30)).schedule);
    }
    assert_eq!(at_once, one_by_one);
    let open = at_once.into_iter().filter(|(_, gate)| gate.allowed);
    let open: Vec<_> = open.map(|(name, _)| name).collect();
    assert_eq!(open, ["plain.example.org", "was-fenced.example.org"]);
}

pub async fn a_host_is_found_by_its_cloud_and_its_name_there(rig: &Rig) {
    let (rack, mut reader) = (segment("rack-1"), rig.db.reader());
    insert_segment(&mut reader, &rack).await.unwrap();
    let named = of_cloud("one", &rack);
    let plain = Host {
        known_as: None,
        ..of_cloud("two", &rack)
    };
    for host in [&named, &plain] {
        insert_host(&mut reader, host).await.unwrap();
    }
    let found = [
        ("east", "one.example.org", Some(named.id)),
        ("east", "two", Some(plain.id)),
        ("east", "one", None),
        ("west", "two", None),
    ];
    for (cloud, known_as, id) in found {
        let state = load_state_in_cloud(&mut reader, cloud, known_as).await.unwrap();
        assert_eq!(state.map(|state| state.host.id), id, "{cloud} {known_as}");
    }
    assert!(cloud_has_hosts(&mut reader, "east").await.unwrap());
    assert!(!cloud_has_hosts(&mut reader, "west").await.unwrap());
}

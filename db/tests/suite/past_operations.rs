//! The newest operations of one host and of all, and the last answers of devices that concern one host.

use chrono::TimeDelta;
use ringfence_core::{Backend, CheckOutcome, EvacuationWork, Host, Operation, Work};
use ringfence_db::{
    CheckTarget, add_check_targets, insert_host, insert_segment, last_check_of_cloud, last_checks_of_host,
    newest_operations, newest_operations_of_host, save_check,
};

use crate::checks::{answer, method, target};
use crate::rig::Rig;
use crate::site::{at, done, fence, host, insert_operations, segment};

crate::stories!(past_operations:
    the_newest_operations_come_first_up_to_the_limit,
    answers_of_devices_are_read_for_their_host_and_those_of_services_for_their_cloud,
);

fn began(operation: Operation, second: i64) -> Operation {
    Operation {
        created_at: at(second),
        ..operation
    }
}

fn evacuation(of: &Operation) -> Operation {
    Operation {
        id: ringfence_core::OperationId(uuid::Uuid::new_v4()),
        work: Work::Evacuation(EvacuationWork::default()),
        ..of.clone()
    }
}

async fn the_newest_operations_come_first_up_to_the_limit(rig: &Rig) {
    let rack = segment("rack");
    let (one, other) = (host("node-1", &rack), host("node-2", &rack));
    let mut reader = rig.db.reader();
    insert_segment(&mut reader, &rack).await.unwrap();
    insert_host(&mut reader, &one).await.unwrap();
    insert_host(&mut reader, &other).await.unwrap();
    let mut operations: Vec<_> = (1..=4)
        .map(|generation| began(done(&fence(&one, generation)), i64::from(generation) * 10))
        .collect();
    operations.push(began(evacuation(&operations[3]), 41));
    operations.push(began(done(&fence(&other, 1)), 35));
    insert_operations(&rig.db, &operations).await.unwrap();
    let ids = |found: Vec<Operation>| found.iter().map(|operation| operation.id).collect::<Vec<_>>();
    let expected = |of: &[usize]| of.iter().map(|index| operations[*index].id).collect::<Vec<_>>();

    let own = newest_operations_of_host(&mut reader, one.id, 10).await.unwrap();
    assert_eq!(ids(own), expected(&[3, 2, 1, 0]));
    // An evacuation counts towards the limit: it is read, and left out.
    let own = newest_operations_of_host(&mut reader, one.id, 3).await.unwrap();
    assert_eq!(ids(own), expected(&[3, 2]));
    let all = newest_operations(&mut reader, 10).await.unwrap();
    assert_eq!(ids(all), expected(&[3, 5, 2, 1, 0]));
    let all = newest_operations(&mut reader, 3).await.unwrap();
    assert_eq!(ids(all), expected(&[3, 5]));
}

async fn answers_of_devices_are_read_for_their_host_and_those_of_services_for_their_cloud(rig: &Rig) {
    let rack = segment("rack");
    let in_cloud = |name: &str, cloud: &str| Host {
        backend: Backend::Nova,
        cloud: Some(cloud.to_owned()),
        ..host(name, &rack)
    };
    let hosts = [
        in_cloud("node-1", "paris"),
        in_cloud("node-2", "paris"),
        in_cloud("node-3", "rome"),
    ];
    let mut reader = rig.db.reader();
    insert_segment(&mut reader, &rack).await.unwrap();
    for host in &hosts {
        insert_host(&mut reader, host).await.unwrap();
    }
    let (bmc, ports, shared) = (
        method(rig, "bmc").await,
        method(rig, "ports").await,
        method(rig, "shared").await,
    );
    let about = |method, host: Option<usize>| CheckTarget {
        host_id: host.map(|index| hosts[index].id),
        ..target(method, at(0))
    };
    let targets = [
        (about(&bmc, Some(0)), CheckOutcome::Refused),
        (about(&bmc, Some(1)), CheckOutcome::Confirmed),
        (about(&ports, Some(1)), CheckOutcome::Unknown),
        (about(&ports, Some(2)), CheckOutcome::Confirmed),
        (about(&shared, None), CheckOutcome::Confirmed),
    ];
    let rows: Vec<_> = targets.iter().map(|(target, _)| target.clone()).collect();
    add_check_targets(&rig.db, &rows).await.unwrap();
    let ids = [bmc.id, ports.id, shared.id];
    let own = last_checks_of_host(&mut reader, &ids, hosts[0].id).await.unwrap();
    assert_eq!(own, [], "no device has answered yet");
    for ((target, outcome), second) in targets.iter().zip(1..) {
        let now = at(second);
        assert!(
            save_check(&mut reader, target, &answer(*outcome), now)
                .await
                .unwrap()
        );
    }
    let own = last_checks_of_host(&mut reader, &ids, hosts[0].id).await.unwrap();
    let mut told: Vec<_> = own.iter().map(|(id, last)| (*id, last.answer.outcome)).collect();
    told.sort_by_key(|(_, outcome)| *outcome);
    assert_eq!(
        told,
        [
            (shared.id, CheckOutcome::Confirmed),
            (bmc.id, CheckOutcome::Refused)
        ]
    );
    let bad = own.iter().find(|(id, _)| *id == bmc.id).unwrap();
    assert_eq!((bad.1.at, bad.1.failing_since), (at(1), Some(at(1))));
    let of_cloud = async |cloud: &str| {
        let mut reader = rig.db.reader();
        last_check_of_cloud(&mut reader, ports.id, cloud).await.unwrap()
    };
    let paris = of_cloud("paris").await.unwrap();
    assert_eq!(
        (paris.answer.outcome, paris.at),
        (CheckOutcome::Unknown, at(2) + TimeDelta::seconds(1))
    );
    assert_eq!(
        of_cloud("rome").await.unwrap().answer.outcome,
        CheckOutcome::Confirmed
    );
    assert_eq!(of_cloud("oslo").await, None);
}

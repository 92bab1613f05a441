//! Hosts that an engine must find: due hosts, hosts of a cloud, and hosts whose operation nothing else would continue.

use ringfence_core::{Applied, AttemptId, Backend, Host, OperationId, OperationStatus};
use ringfence_db::{
    due_hosts, hosts_ahead, hosts_of_cloud, insert_host, insert_segment, kept_states, left_at, set_adopted,
    set_left, stranded_hosts,
};
use serde_json::json;

use crate::rig::Rig;
use crate::site::{add_hosts, at, fence, fence_by_power, host, insert_operation, segment, update_host};

crate::stories!(finding:
    hosts_are_due_from_their_wake_time_on,
    hosts_with_a_write_time_in_the_future_are_found,
    an_observer_reads_its_own_record_of_the_hosts_of_its_cloud,
    an_operation_without_a_wake_time_is_found,
    since_when_a_cloud_has_not_named_a_host_stays_when_the_host_is_written,
    hosts_that_their_cluster_was_told_of_are_read_whole,
);

async fn hosts_are_due_from_their_wake_time_on(rig: &Rig) {
    let rack = segment("rack-1");
    insert_segment(&mut rig.db.reader(), &rack).await.unwrap();
    let hosts = add_hosts(&mut rig.db.reader(), &rack, &["never", "late", "now", "soon"]).await;
    for (host, wake_at) in hosts.iter().zip([None, Some(at(5)), Some(at(10)), Some(at(11))]) {
        update_host(&mut rig.db.reader(), host, wake_at).await.unwrap();
    }
    let mut reader = rig.db.reader();
    assert_eq!(due_hosts(&mut reader, at(4), 10).await.unwrap(), []);
    assert_eq!(
        due_hosts(&mut reader, at(10), 10).await.unwrap(),
        [hosts[1].id, hosts[2].id]
    );
    assert_eq!(
        due_hosts(&mut reader, at(10), 1).await.unwrap(),
        [hosts[1].id],
        "the most overdue host comes first"
    );
    update_host(&mut rig.db.reader(), &hosts[1], None).await.unwrap();
    assert_eq!(due_hosts(&mut reader, at(10), 10).await.unwrap(), [hosts[2].id]);
}

async fn hosts_with_a_write_time_in_the_future_are_found(rig: &Rig) {
    let rack = segment("rack-1");
    insert_segment(&mut rig.db.reader(), &rack).await.unwrap();
    let hosts = add_hosts(&mut rig.db.reader(), &rack, &["first", "second", "third"]).await;
    let mut reader = rig.db.reader();
    let all = [hosts[1].id, hosts[2].id];
    assert_eq!(hosts_ahead(&mut reader, at(0), 10).await.unwrap(), all);
    assert_eq!(hosts_ahead(&mut reader, at(0), 1).await.unwrap(), all[..1]);
    assert_eq!(hosts_ahead(&mut reader, at(2), 10).await.unwrap(), []);
}

async fn an_observer_reads_its_own_record_of_the_hosts_of_its_cloud(rig: &Rig) {
    let source = "nova:\"east\" \\ Süd";
    let own = json!({ "state": "UP", "observed_at": at(3), "reported_at": at(4), "late_ms": 0, "alive_at": at(3), "boots": [] });
    let other = json!({ "state": "UNREACHABLE", "observed_at": at(5), "reported_at": at(5), "late_ms": 0, "boots": [] });
    let mut watched = segment("watched");
    watched.policy.self_fencing_timeout_s = Some(60);
    let plain = segment("plain");
    for segment in [&watched, &plain] {
        insert_segment(&mut rig.db.reader(), segment).await.unwrap();
    }
    let of_cloud = |name, segment, sources| Host {
        backend: Backend::Nova,
        cloud: Some("east".to_owned()),
        sources: serde_json::from_value(json!({ "by_name": sources, "struck_off": {} })).unwrap(),
        ..host(name, segment)
    };
    let hosts = [
        of_cloud("heard", &watched, json!({ source: own, "agent": other })),
        of_cloud("never", &plain, json!({ "agent": other })),
        of_cloud("fenced", &watched, json!({})),
    ];
    let mut reader = rig.db.reader();
    for host in &hosts {
        insert_host(&mut reader, host).await.unwrap();
    }
    insert_host(&mut reader, &host("elsewhere", &watched))
        .await
        .unwrap();
    fence_by_power(&rig.db, &hosts[2], 1).await;
    let mut read = hosts_of_cloud(&mut reader, "east", source).await.unwrap();
    read.sort_by(|a, b| a.name.cmp(&b.name));
    let read: Vec<_> = read
        .iter()
        .map(|host| (host.name.as_str(), host.own.is_some(), host.is_silence_counted))
        .collect();
    assert_eq!(
        read,
        [
            ("fenced", false, false),
            ("heard", true, true),
            ("never", false, false)
        ]
    );
}

async fn since_when_a_cloud_has_not_named_a_host_stays_when_the_host_is_written(rig: &Rig) {
    let rack = segment("rack-1");
    let mut db = rig.db.reader();
    insert_segment(&mut db, &rack).await.unwrap();
    let of_cloud = |name| Host {
        backend: Backend::Kubernetes,
        cloud: Some("east".to_owned()),
        ..host(name, &rack)
    };
    let [adopted, added] = ["adopted", "added"].map(of_cloud);
    for host in [&adopted, &added] {
        insert_host(&mut db, host).await.unwrap();
    }
    set_adopted(&mut db, adopted.id).await.unwrap();
    set_left(&mut db, adopted.id, Some(at(7))).await.unwrap();
    update_host(&mut db, &adopted, Some(at(9))).await.unwrap();
    let mut read = hosts_of_cloud(&mut db, "east", "kubernetes:east").await.unwrap();
    read.sort_by(|a, b| b.name.cmp(&a.name));
    let read: Vec<_> = read
        .iter()
        .map(|host| (host.name.as_str(), host.is_adopted, host.left_at))
        .collect();
    assert_eq!(read, [("adopted", true, Some(at(7))), ("added", false, None)]);
    assert_eq!(left_at(&mut db, adopted.id).await.unwrap(), Some(at(7)));
    set_left(&mut db, adopted.id, None).await.unwrap();
    for host in [&adopted, &added] {
        assert_eq!(left_at(&mut db, host.id).await.unwrap(), None);
    }
}

async fn hosts_that_their_cluster_was_told_of_are_read_whole(rig: &Rig) {
    let rack = segment("rack-1");
    insert_segment(&mut rig.db.reader(), &rack).await.unwrap();
    let in_cluster = |name, applied| Host {
        backend: Backend::Kubernetes,
        cloud: Some("east".to_owned()),
        applied,
        ..host(name, &rack)
    };
    let marked = Applied {
        marked_down_by: Some(AttemptId {
            operation_id: OperationId(uuid::Uuid::from_u128(1)),
            number: 1,
        }),
        ..Applied::default()
    };
    let hosts = [
        in_cluster("well", Applied::default()),
        in_cluster("marked", marked),
        in_cluster("fenced", Applied::default()),
        in_cluster("running", Applied::default()),
    ];
    for host in &hosts {
        insert_host(&mut rig.db.reader(), host).await.unwrap();
    }
    fence_by_power(&rig.db, &hosts[2], 1).await;
    insert_operation(&rig.db, &fence(&hosts[3], 1)).await.unwrap();
    let elsewhere = add_hosts(&mut rig.db.reader(), &rack, &["elsewhere"]).await;
    insert_operation(&rig.db, &fence(&elsewhere[0], 1)).await.unwrap();
    let mut reader = rig.db.reader();
    let mut kept = kept_states(&mut reader, "east").await.unwrap();
    kept.sort_by(|a, b| a.host.name.cmp(&b.host.name));
    let kept: Vec<_> = kept
        .iter()
        .map(|state| {
            (
                state.host.name.as_str(),
                state.host.fence.is_some(),
                state.operation.is_some(),
            )
        })
        .collect();
    assert_eq!(
        kept,
        [
            ("fenced", true, false),
            ("marked", false, false),
            ("running", false, true)
        ]
    );
}

async fn an_operation_without_a_wake_time_is_found(rig: &Rig) {
    let rack = segment("rack-1");
    insert_segment(&mut rig.db.reader(), &rack).await.unwrap();
    let hosts = add_hosts(
        &mut rig.db.reader(),
        &rack,
        &["idle", "waiting", "stranded", "woken"],
    )
    .await;
    let mut reader = rig.db.reader();
    let mut waiting = fence(&hosts[1], 1);
    waiting.status = OperationStatus::NeedsOperator;
    for operation in [waiting, fence(&hosts[2], 1), fence(&hosts[3], 1)] {
        insert_operation(&rig.db, &operation).await.unwrap();
    }
    update_host(&mut rig.db.reader(), &hosts[3], Some(at(5)))
        .await
        .unwrap();
    assert_eq!(stranded_hosts(&mut reader, 10).await.unwrap(), [hosts[2].id]);
}

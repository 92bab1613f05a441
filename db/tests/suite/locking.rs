//! Transactions: which one waits for which, and what remains of an aborted one.

use std::time::Duration;

use ringfence_core::Host;
use ringfence_db::{
    Changes, Locking, append_events, events_after, host_row, insert_host, last_sequence, load_state,
    lock_host, number_events,
};
use tokio::time::{sleep, timeout};

use crate::rig::Rig;
use crate::site::{
    at, done, event, fence, fence_by_power, host, insert_operation, one_host, update_host, whole,
};

/// Time after which a transaction counts as waiting.
const A_WHILE: Duration = Duration::from_millis(200);
const SOON: Duration = Duration::from_secs(20);

crate::stories!(locking:
    the_second_writer_of_a_host_reads_the_changes_of_the_first,
    five_concurrent_equal_requests_make_one_operation,
    a_reader_waits_for_no_writer,
    a_transaction_that_is_dropped_changes_nothing,
    an_aborted_task_releases_its_host,
    an_unknown_host_locks_nothing,
    a_host_is_loaded_with_its_operation_and_policy,
);

async fn the_second_writer_of_a_host_reads_the_changes_of_the_first(rig: &Rig) {
    let (_, host) = one_host(&rig.db).await;
    let first = rig
        .db
        .begin_with_hosts(&[host.id], Locking::Pessimistic)
        .await
        .unwrap();
    assert_eq!(first.hosts[0].operation, None);

    let (db, id) = (rig.another().await, host.id);
    let second = tokio::spawn(async move {
        let mut tx = db.begin().await.unwrap();
        lock_host(&mut tx, id).await.unwrap().unwrap()
    });
    sleep(A_WHILE).await;
    assert!(!second.is_finished(), "the second did not wait");

    let operation = fence(&host, 1);
    let changed = Host {
        revision: 2,
        generation: operation.generation,
        ..host
    };
    let changes = Changes {
        new_operations: vec![&operation],
        hosts: vec![whole(&changed, Some(at(60)))],
        ..Changes::default()
    };
    first.transaction.commit(&changes).await.unwrap();

    let seen = timeout(SOON, second)
        .await
        .expect("the second writer still waits")
        .unwrap();
    assert_eq!(seen.host, changed);
    assert_eq!(
        seen.operation,
        Some(operation),
        "the new host was read with the old operation"
    );
}

async fn five_concurrent_equal_requests_make_one_operation(rig: &Rig) {
    let (_, host) = one_host(&rig.db).await;
    let requests: Vec<_> = (0..5)
        .map(|_| {
            let (db, host) = (rig.db.clone(), host.clone());
            tokio::spawn(async move {
                let mut begun = db
                    .begin_with_hosts(&[host.id], Locking::Pessimistic)
                    .await
                    .unwrap();
                if let Some(operation) = begun.hosts.remove(0).operation {
                    return operation.id;
                }
                let operation = fence(&host, 1);
                let changes = Changes {
                    new_operations: vec![&operation],
                    ..Changes::default()
                };
                begun.transaction.commit(&changes).await.unwrap();
                operation.id
            })
        })
        .collect();
    let mut answers = Vec::new();
    for request in requests {
        answers.push(request.await.unwrap());
    }
    answers.dedup();
    assert_eq!(answers.len(), 1);
}

async fn a_reader_waits_for_no_writer(rig: &Rig) {
    let (_, host) = one_host(&rig.db).await;
    let mut tx = rig.db.begin().await.unwrap();
    lock_host(&mut tx, host.id).await.unwrap();
    let changed = Host {
        zone: "elsewhere".to_owned(),
        ..host.clone()
    };
    update_host(&mut tx, &changed, None).await.unwrap();
    let read = async {
        let state = load_state(&mut rig.db.reader(), &host.name)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(state.host, host, "an uncommitted change was read");
    };
    timeout(SOON, read).await.expect("the reader waited");
    tx.commit().await.unwrap();
    let state = load_state(&mut rig.db.reader(), &host.name).await.unwrap();
    assert_eq!(state.unwrap().host.zone, "elsewhere");
}

async fn a_transaction_that_is_dropped_changes_nothing(rig: &Rig) {
    let (segment, one) = one_host(&rig.db).await;
    {
        let mut tx = rig.db.begin().await.unwrap();
        insert_host(&mut tx, &host("node-2", &segment)).await.unwrap();
        append_events(&mut tx, &[event(&one, 1)]).await.unwrap();
        update_host(
            &mut tx,
            &Host {
                zone: "elsewhere".to_owned(),
                ..one.clone()
            },
            None,
        )
        .await
        .unwrap();
    }
    let state = load_state(&mut rig.db.reader(), &one.name)
        .await
        .unwrap()
        .unwrap();
    assert_eq!((state.host, state.operation), (one.clone(), None));
    assert!(host_row(&mut rig.db.reader(), "node-2").await.unwrap().is_none());
    append_events(&mut rig.db.reader(), &[event(&one, 1)])
        .await
        .unwrap();
    number_events(&rig.db).await.unwrap();
    assert_eq!(last_sequence(&mut rig.db.reader()).await.unwrap(), 1);
    assert_eq!(
        events_after(&mut rig.db.reader(), 0, None, 10)
            .await
            .unwrap()
            .len(),
        1
    );
}

async fn an_aborted_task_releases_its_host(rig: &Rig) {
    let (_, host) = one_host(&rig.db).await;
    let (db, id) = (rig.db.clone(), host.id);
    let (locked, is_locked) = tokio::sync::oneshot::channel();
    let task = tokio::spawn(async move {
        let mut tx = db.begin().await.unwrap();
        lock_host(&mut tx, id).await.unwrap();
        locked.send(()).unwrap();
        std::future::pending::<()>().await;
    });
    is_locked.await.unwrap();
    task.abort();
    let again = async {
        let mut tx = rig.db.begin().await.unwrap();
        lock_host(&mut tx, host.id).await.unwrap().unwrap();
    };
    timeout(SOON, again).await.expect("the lock outlived its owner");
}

async fn an_unknown_host_locks_nothing(rig: &Rig) {
    let (segment, _) = one_host(&rig.db).await;
    let mut tx = rig.db.begin().await.unwrap();
    assert!(
        lock_host(&mut tx, host("unknown", &segment).id)
            .await
            .unwrap()
            .is_none()
    );
    assert!(load_state(&mut tx, "unknown").await.unwrap().is_none());
    assert!(host_row(&mut tx, "unknown").await.unwrap().is_none());
}

async fn a_host_is_loaded_with_its_operation_and_policy(rig: &Rig) {
    let (segment, host) = one_host(&rig.db).await;
    insert_operation(&rig.db, &done(&fence(&host, 1))).await.unwrap();
    let (host, _) = fence_by_power(&rig.db, &host, 2).await;
    let live = fence(&host, 3);
    insert_operation(&rig.db, &live).await.unwrap();

    let mut tx = rig.db.begin().await.unwrap();
    let locked = lock_host(&mut tx, host.id).await.unwrap().unwrap();
    drop(tx);
    for id_or_name in [host.name.clone(), host.id.to_string()] {
        let loaded = load_state(&mut rig.db.reader(), &id_or_name)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(loaded, locked);
    }
    assert_eq!(locked.host, host);
    assert_eq!(locked.operation.as_ref(), Some(&live));
    assert_eq!(locked.policy, segment.policy);
    let listed = host_row(&mut rig.db.reader(), &host.name).await.unwrap().unwrap();
    assert_eq!(listed.operation, Some((live.id, live.kind(), live.status)));
    assert_eq!(listed.segment, segment.name);
}

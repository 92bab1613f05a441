//! Changes that go to the database as one statement.

use ringfence_core::{FencingState, ProofKind};
use ringfence_db::{
    AuditFilter, Batch, HostWrite, append_audit_lines, append_events, claim_devices, events_after, host_row,
    insert_operations, load_state, number_events, operation, release_devices, save_proofs, update_hosts,
    update_operations,
};

use crate::audit::{actions, line};
use crate::rig::Rig;
use crate::site::{
    assert_refused, at, attempt, done, event, fence, fenced, insert_operation, one_host, proof,
};

crate::stories!(batch:
    a_fence_and_all_that_rests_on_it_go_as_one,
    the_end_of_an_attempt_goes_as_one,
    with_one_that_is_refused_all_are,
    an_empty_one_changes_nothing,
);

async fn a_fence_and_all_that_rests_on_it_go_as_one(rig: &Rig) {
    let (_, host) = one_host(&rig.db).await;
    let mut tx = rig.db.begin().await.unwrap();
    let mut batch = Batch::of(&tx);
    let operation = done(&fence(&host, 1));
    let (power, storage) = (
        proof(&operation, ProofKind::PowerOff),
        proof(&operation, ProofKind::StorageFence),
    );
    let fenced = fenced(&host, &operation, &[ProofKind::PowerOff, ProofKind::StorageFence]);
    let write = HostWrite {
        host: &fenced,
        known: None,
        wake_at: Some(at(7)),
    };
    insert_operations(&mut batch, &[&operation]).await.unwrap();
    save_proofs(&mut batch, &[(host.id, &power), (host.id, &storage)])
        .await
        .unwrap();
    update_hosts(&mut batch, &[write]).await.unwrap();
    append_events(&mut batch, &[event(&host, 1), event(&host, 2)])
        .await
        .unwrap();
    let lines = ["one", "two", "three"].map(line);
    append_audit_lines(&mut batch, &lines).await.unwrap();
    let nothing_yet = ringfence_db::operation(&mut tx, operation.id.0).await.unwrap();
    assert_eq!(nothing_yet, None);
    batch.commit(tx).await.unwrap();

    let read = host_row(&mut rig.db.reader(), &host.name).await.unwrap().unwrap();
    assert_eq!(read.host, fenced);
    assert_eq!(
        actions(rig, &AuditFilter::default()).await,
        ["three", "two", "one"]
    );
    number_events(&rig.db).await.unwrap();
    let events = events_after(&mut rig.db.reader(), 0, None, 10).await.unwrap();
    let numbers: Vec<_> = events
        .iter()
        .map(|row| row.event.host.as_ref().unwrap().sequence)
        .collect();
    assert_eq!(numbers, [1, 2]);
}

async fn the_end_of_an_attempt_goes_as_one(rig: &Rig) {
    let (_, host) = one_host(&rig.db).await;
    let running = fence(&host, 1);
    insert_operation(&mut rig.db.reader(), &running).await.unwrap();
    let claim = ringfence_db::DeviceClaim {
        device: "bmc-1".to_owned(),
        attempt: attempt(1),
        until: at(30),
    };
    let taken = claim_devices(&mut rig.db.reader(), vec![claim.clone()], at(0))
        .await
        .unwrap();
    assert_eq!(taken.len(), 1);

    let tx = rig.db.begin().await.unwrap();
    let mut batch = Batch::of(&tx);
    release_devices(&mut batch, &[attempt(1)]).await.unwrap();
    let ended = done(&running);
    update_operations(&mut batch, &[(&ended, &running)])
        .await
        .unwrap();
    append_events(&mut batch, &[event(&host, 1)]).await.unwrap();
    batch.commit(tx).await.unwrap();

    let read = operation(&mut rig.db.reader(), running.id.0).await.unwrap();
    assert_eq!(read, Some(ended));
    let other = ringfence_db::DeviceClaim {
        attempt: attempt(2),
        ..claim
    };
    let taken = claim_devices(&mut rig.db.reader(), vec![other], at(1))
        .await
        .unwrap();
    assert_eq!(taken.len(), 1, "it was given back");
}

async fn with_one_that_is_refused_all_are(rig: &Rig) {
    let (_, host) = one_host(&rig.db).await;
    let tx = rig.db.begin().await.unwrap();
    let mut batch = Batch::of(&tx);
    let operation = fence(&host, 1);
    insert_operations(&mut batch, &[&operation]).await.unwrap();
    let fenced = fenced(&host, &operation, &[ProofKind::PowerOff]);
    let without_proof = HostWrite {
        host: &fenced,
        known: None,
        wake_at: None,
    };
    append_events(&mut batch, &[event(&host, 1)]).await.unwrap();
    update_hosts(&mut batch, &[without_proof]).await.unwrap();
    assert_refused(batch.commit(tx).await);
    let state = load_state(&mut rig.db.reader(), &host.name)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(state.operation, None);
    assert_eq!(state.host.fencing_state(), FencingState::Unfenced);
}

async fn an_empty_one_changes_nothing(rig: &Rig) {
    let tx = rig.db.begin().await.unwrap();
    let batch = Batch::of(&tx);
    batch.commit(tx).await.unwrap();
}

//! Constraints of the database, which no program can break.

use ringfence_core::{FencingState, Host, OperationStatus, ProofKind};
use ringfence_db::{
    append_events, delete_host, delete_segment, events_after, host_row, insert_host, insert_segment,
    load_state, number_events, operation,
};

use crate::rig::Rig;
use crate::site::{
    assert_duplicate, assert_refused, done, event, fence, fence_by_power, fenced, host, insert_operation,
    one_host, proof, save_proof, segment, taken_back, update_host, update_operation,
};

crate::stories!(promises:
    a_host_has_one_live_operation,
    an_operation_that_waits_for_a_person_holds_its_host,
    a_generation_has_one_operation,
    an_operation_has_an_end_time_exactly_if_it_has_ended,
    no_host_is_fenced_without_a_proof,
    a_proof_that_completes_no_set_fences_no_host,
    the_proof_of_another_generation_fences_no_host,
    the_proof_of_another_host_does_not_fence_the_host,
    no_host_is_fenced_for_a_later_generation,
    a_proof_belongs_to_an_operation_of_that_host_and_generation,
    the_proof_of_a_fenced_host_cannot_be_deleted,
    a_fenced_host_cannot_be_deleted_before_it_is_taken_back,
    a_deleted_host_loses_its_operations_and_keeps_its_events,
    events_of_a_host_have_no_gap,
    events_of_a_host_have_no_duplicates,
    a_segment_with_hosts_cannot_be_deleted,
);

async fn a_host_has_one_live_operation(rig: &Rig) {
    let (_, host) = one_host(&rig.db).await;
    let first = fence(&host, 1);
    insert_operation(&rig.db, &first).await.unwrap();
    let second = fence(&host, 2);
    assert_duplicate(insert_operation(&rig.db, &second).await);

    update_operation(&rig.db, &done(&first)).await.unwrap();
    insert_operation(&rig.db, &second).await.unwrap();
    assert_duplicate(update_operation(&rig.db, &first).await);
}

async fn an_operation_that_waits_for_a_person_holds_its_host(rig: &Rig) {
    let (_, host) = one_host(&rig.db).await;
    let mut waiting = fence(&host, 1);
    waiting.status = OperationStatus::NeedsOperator;
    insert_operation(&rig.db, &waiting).await.unwrap();
    assert_duplicate(insert_operation(&rig.db, &fence(&host, 2)).await);
}

async fn a_generation_has_one_operation(rig: &Rig) {
    let (_, host) = one_host(&rig.db).await;
    insert_operation(&rig.db, &done(&fence(&host, 1))).await.unwrap();
    assert_duplicate(insert_operation(&rig.db, &done(&fence(&host, 1))).await);
}

async fn an_operation_has_an_end_time_exactly_if_it_has_ended(rig: &Rig) {
    let (_, host) = one_host(&rig.db).await;
    let mut endless = done(&fence(&host, 1));
    endless.finished_at = None;
    assert_refused(insert_operation(&rig.db, &endless).await);
    let mut undead = done(&fence(&host, 1));
    undead.status = OperationStatus::Running;
    assert_refused(insert_operation(&rig.db, &undead).await);
}

async fn no_host_is_fenced_without_a_proof(rig: &Rig) {
    let (_, host) = one_host(&rig.db).await;
    let operation = fence(&host, 1);
    insert_operation(&rig.db, &operation).await.unwrap();
    for proofs in [&[] as &[ProofKind], &[ProofKind::PowerOff]] {
        let fenced = fenced(&host, &operation, proofs);
        assert_refused(update_host(&mut rig.db.reader(), &fenced, None).await);
    }
    let listed = host_row(&mut rig.db.reader(), &host.name).await.unwrap().unwrap();
    assert_eq!(listed.host.fencing_state(), FencingState::Unfenced);
    let id = host.id;
    for words in ["fencing_state = 'FENCED'", "fence = '{}'"] {
        let past = format!("UPDATE hosts SET {words} WHERE id = '{id}'");
        rig.past(&past).await.unwrap_err();
    }
}

async fn a_proof_that_completes_no_set_fences_no_host(rig: &Rig) {
    let (_, host) = one_host(&rig.db).await;
    let operation = fence(&host, 1);
    insert_operation(&rig.db, &operation).await.unwrap();
    save_proof(&rig.db, host.id, &proof(&operation, ProofKind::StorageFence))
        .await
        .unwrap();
    let half = fenced(&host, &operation, &[ProofKind::StorageFence]);
    assert_refused(update_host(&mut rig.db.reader(), &half, None).await);
}

async fn the_proof_of_another_generation_fences_no_host(rig: &Rig) {
    let (_, host) = one_host(&rig.db).await;
    let (old, new) = (done(&fence(&host, 1)), fence(&host, 2));
    insert_operation(&rig.db, &old).await.unwrap();
    save_proof(&rig.db, host.id, &proof(&old, ProofKind::PowerOff))
        .await
        .unwrap();
    insert_operation(&rig.db, &new).await.unwrap();
    for (operation, kind) in [(&new, ProofKind::PowerOff), (&old, ProofKind::Operator)] {
        let fenced = fenced(&host, operation, &[kind]);
        assert_refused(update_host(&mut rig.db.reader(), &fenced, None).await);
    }
}

async fn the_proof_of_another_host_does_not_fence_the_host(rig: &Rig) {
    let (segment, one) = one_host(&rig.db).await;
    let other = host("node-2", &segment);
    insert_host(&mut rig.db.reader(), &other).await.unwrap();
    fence_by_power(&rig.db, &one, 1).await;
    let operation = fence(&other, 1);
    insert_operation(&rig.db, &operation).await.unwrap();
    let fenced = fenced(&other, &operation, &[ProofKind::PowerOff]);
    assert_refused(update_host(&mut rig.db.reader(), &fenced, None).await);
}

async fn no_host_is_fenced_for_a_later_generation(rig: &Rig) {
    let (_, host) = one_host(&rig.db).await;
    let operation = fence(&host, 2);
    insert_operation(&rig.db, &operation).await.unwrap();
    save_proof(&rig.db, host.id, &proof(&operation, ProofKind::PowerOff))
        .await
        .unwrap();
    let early = Host {
        generation: ringfence_core::Generation(1),
        ..fenced(&host, &operation, &[ProofKind::PowerOff])
    };
    assert_refused(update_host(&mut rig.db.reader(), &early, None).await);
}

async fn a_proof_belongs_to_an_operation_of_that_host_and_generation(rig: &Rig) {
    let (segment, one) = one_host(&rig.db).await;
    let other = host("node-2", &segment);
    insert_host(&mut rig.db.reader(), &other).await.unwrap();
    let [first, second] = [done(&fence(&one, 1)), fence(&one, 2)];
    let elsewhere = fence(&other, 1);
    for operation in [&first, &second, &elsewhere] {
        insert_operation(&rig.db, operation).await.unwrap();
    }
    let mut stray = proof(&elsewhere, ProofKind::PowerOff);
    assert_refused(save_proof(&rig.db, one.id, &stray).await);
    stray = proof(&first, ProofKind::PowerOff);
    stray.generation = second.generation;
    assert_refused(save_proof(&rig.db, one.id, &stray).await);
    stray.generation = ringfence_core::Generation(3);
    assert_refused(save_proof(&rig.db, one.id, &stray).await);
    let good = proof(&first, ProofKind::PowerOff);
    save_proof(&rig.db, one.id, &good).await.unwrap();
}

async fn the_proof_of_a_fenced_host_cannot_be_deleted(rig: &Rig) {
    let (_, host) = one_host(&rig.db).await;
    let (host, operation) = fence_by_power(&rig.db, &host, 1).await;
    let (id, operation_id) = (host.id, operation.id);
    rig.past(&format!("DELETE FROM proofs WHERE host_id = '{id}'"))
        .await
        .unwrap_err();
    rig.past(&format!(
        "UPDATE proofs SET kind = 'operator' WHERE host_id = '{id}'"
    ))
    .await
    .unwrap_err();
    rig.past(&format!("DELETE FROM operations WHERE id = '{operation_id}'"))
        .await
        .unwrap_err();

    let back = taken_back(&host);
    update_host(&mut rig.db.reader(), &back, None).await.unwrap();
    rig.past(&format!("DELETE FROM proofs WHERE host_id = '{id}'"))
        .await
        .unwrap();
}

async fn a_fenced_host_cannot_be_deleted_before_it_is_taken_back(rig: &Rig) {
    let (_, host) = one_host(&rig.db).await;
    let (host, _) = fence_by_power(&rig.db, &host, 1).await;
    assert_refused(delete_host(&mut rig.db.reader(), host.id).await);
    assert!(
        host_row(&mut rig.db.reader(), &host.name)
            .await
            .unwrap()
            .is_some()
    );

    let back = taken_back(&host);
    update_host(&mut rig.db.reader(), &back, None).await.unwrap();
    assert!(delete_host(&mut rig.db.reader(), back.id).await.unwrap());
    assert!(!delete_host(&mut rig.db.reader(), back.id).await.unwrap());
}

async fn a_deleted_host_loses_its_operations_and_keeps_its_events(rig: &Rig) {
    let (_, host) = one_host(&rig.db).await;
    let ended = done(&fence(&host, 1));
    insert_operation(&rig.db, &ended).await.unwrap();
    save_proof(&rig.db, host.id, &proof(&ended, ProofKind::PowerOff))
        .await
        .unwrap();
    append_events(&mut rig.db.reader(), &[event(&host, 1)])
        .await
        .unwrap();
    number_events(&rig.db).await.unwrap();
    assert!(delete_host(&mut rig.db.reader(), host.id).await.unwrap());
    assert!(
        load_state(&mut rig.db.reader(), &host.name)
            .await
            .unwrap()
            .is_none()
    );
    assert!(
        operation(&mut rig.db.reader(), ended.id.0)
            .await
            .unwrap()
            .is_none()
    );
    assert_eq!(
        events_after(&mut rig.db.reader(), 0, Some(host.id), 10)
            .await
            .unwrap()
            .len(),
        1
    );
}

async fn events_of_a_host_have_no_gap(rig: &Rig) {
    let (segment, one) = one_host(&rig.db).await;
    let other = host("node-2", &segment);
    assert_refused(append_events(&mut rig.db.reader(), &[event(&one, 2)]).await);
    assert_refused(append_events(&mut rig.db.reader(), &[event(&one, 0)]).await);
    append_events(
        &mut rig.db.reader(),
        &[event(&one, 1), event(&other, 1), event(&one, 2)],
    )
    .await
    .unwrap();
    assert_refused(append_events(&mut rig.db.reader(), &[event(&one, 4)]).await);
    assert_refused(append_events(&mut rig.db.reader(), &[event(&other, 3)]).await);
    append_events(&mut rig.db.reader(), &[event(&one, 3)])
        .await
        .unwrap();
}

async fn events_of_a_host_have_no_duplicates(rig: &Rig) {
    let (_, host) = one_host(&rig.db).await;
    let first = event(&host, 1);
    append_events(&mut rig.db.reader(), std::slice::from_ref(&first))
        .await
        .unwrap();
    assert_duplicate(append_events(&mut rig.db.reader(), &[event(&host, 1)]).await);
    let again = ringfence_db::NewEvent {
        host: event(&host, 2).host,
        ..first
    };
    assert_duplicate(append_events(&mut rig.db.reader(), &[again]).await);
}

async fn a_segment_with_hosts_cannot_be_deleted(rig: &Rig) {
    let (used, host) = one_host(&rig.db).await;
    let empty = segment("rack-2");
    insert_segment(&mut rig.db.reader(), &empty).await.unwrap();
    assert_refused(delete_segment(&mut rig.db.reader(), used.id).await);
    assert!(
        ringfence_db::segment_has_hosts(&mut rig.db.reader(), used.id)
            .await
            .unwrap()
    );
    assert!(
        !ringfence_db::segment_has_hosts(&mut rig.db.reader(), empty.id)
            .await
            .unwrap()
    );
    assert!(delete_segment(&mut rig.db.reader(), empty.id).await.unwrap());
    let stray = Host {
        segment_id: empty.id,
        ..host
    };
    assert_refused(update_host(&mut rig.db.reader(), &stray, None).await);
}

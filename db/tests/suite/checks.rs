//! Checks of devices that are repeated, and their last answers.

use std::collections::{BTreeMap, HashSet};

use ringfence_core::{CheckAnswer, CheckOutcome, Method, MethodId, MethodTimes, Resource, Timestamp};
use ringfence_db::{
    CheckTarget, add_check_targets, check_summaries, check_targets, delete_host, delete_method,
    failing_checks, insert_host, insert_method, method_checks_page, postpone_check, remove_check_targets,
    save_check, take_checks, take_lease, take_turn,
};
use uuid::Uuid;

use crate::devices::{lease, release};
use crate::rig::Rig;
use crate::site::{at, attempt, done, fence, host, insert_operation, one_host, update_operation};

crate::stories!(checks:
    each_check_is_taken_by_one_engine_at_a_time,
    a_check_waits_for_operations_and_attempts,
    the_last_answer_of_a_check_is_kept_with_the_beginning_of_a_failure,
    answers_of_checks_are_counted_by_method,
    a_check_exists_once_and_is_removed_with_its_host_or_method,
    a_lease_can_be_prolonged_by_its_holder_and_a_turn_cannot,
    a_lease_from_before_the_clock_was_set_back_blocks_no_engine,
);

pub async fn method(rig: &Rig, name: &str) -> Method {
    let method = Method {
        id: MethodId(Uuid::new_v4()),
        name: name.to_owned(),
        resource: Resource::Power,
        driver: "simulated".to_owned(),
        parameters: BTreeMap::from([("device".to_owned(), "x".to_owned())]),
        secrets: BTreeMap::new(),
        zone: None,
        times: MethodTimes::default(),
        revision: 1,
        created_at: at(0),
        updated_at: at(0),
    };
    insert_method(&mut rig.db.reader(), &method).await.unwrap();
    method
}

pub fn target(method: &Method, due: Timestamp) -> CheckTarget {
    CheckTarget {
        id: Uuid::new_v4(),
        method_id: method.id,
        host_id: None,
        question: Uuid::new_v4(),
        device: None,
        next_at: due,
        missed: 0,
    }
}

pub fn answer(outcome: CheckOutcome) -> CheckAnswer {
    CheckAnswer {
        outcome,
        state: (outcome == CheckOutcome::Confirmed).then(|| "on".to_owned()),
        detail: Some("an answer".to_owned()),
        worker: Some("w1".to_owned()),
        took_ms: Some(12),
    }
}

async fn each_check_is_taken_by_one_engine_at_a_time(rig: &Rig) {
    let mut targets = Vec::new();
    for n in 0..120 {
        let method = method(rig, &format!("m{n}")).await;
        targets.push(target(&method, at(n % 7)));
    }
    add_check_targets(&rig.db, &targets).await.unwrap();
    let engines: Vec<_> = (0..4)
        .map(|_| {
            let db = rig.db.clone();
            tokio::spawn(async move {
                let mut mine = Vec::new();
                for _ in 0..5 {
                    mine.extend(take_checks(&db, at(10), at(100), 6).await.unwrap());
                }
                mine
            })
        })
        .collect();
    let mut all = Vec::new();
    for engine in engines {
        all.extend(engine.await.unwrap());
    }
    let different: HashSet<_> = all.iter().map(|target| target.id).collect();
    assert_eq!(different.len(), all.len(), "a check was taken twice");
    // The engines that have taken the checks have died.
    assert_eq!(
        take_checks(&rig.db, at(100), at(200), 1000).await.unwrap().len(),
        120
    );
    assert!(
        take_checks(&rig.db, at(199), at(300), 1000)
            .await
            .unwrap()
            .is_empty()
    );
}

async fn a_check_waits_for_operations_and_attempts(rig: &Rig) {
    let (_, host) = one_host(&rig.db).await;
    let method = method(rig, "bmc").await;
    let mine = CheckTarget {
        host_id: Some(host.id),
        device: Some("ipmi/10.0.0.1:623".to_owned()),
        ..target(&method, at(0))
    };
    add_check_targets(&rig.db, std::slice::from_ref(&mine))
        .await
        .unwrap();
    let taken = async |now: i64| take_checks(&rig.db, at(now), at(now), 10).await.unwrap().len();
    let operation = fence(&host, 1);
    insert_operation(&rig.db, &operation).await.unwrap();
    assert_eq!(taken(1).await, 0);
    update_operation(&rig.db, &done(&operation)).await.unwrap();
    assert_eq!(taken(1).await, 1);
    // Another host's attempt may use this device.
    assert!(lease(&rig.db, "ipmi/10.0.0.1:623", attempt(1), 2, 20).await);
    assert_eq!(taken(19).await, 0);
    assert_eq!(taken(20).await, 1, "the lease has run out");
    assert!(lease(&rig.db, "ipmi/10.0.0.1:623", attempt(2), 21, 81).await);
    assert_eq!(taken(30).await, 0);
    release(&rig.db, &[attempt(2)]).await;
    assert_eq!(taken(30).await, 1);
}

async fn the_last_answer_of_a_check_is_kept_with_the_beginning_of_a_failure(rig: &Rig) {
    let method = method(rig, "bmc").await;
    let mut target = target(&method, at(0));
    add_check_targets(&rig.db, std::slice::from_ref(&target))
        .await
        .unwrap();
    let mut reader = rig.db.reader();
    let rows = method_checks_page(&mut reader, method.id, None, None, 10)
        .await
        .unwrap();
    assert_eq!((&rows[0].last, rows[0].failing_since), (&None, None));
    let expected = [
        (10, CheckOutcome::Confirmed, None),
        (20, CheckOutcome::Unknown, Some(at(20))),
        (30, CheckOutcome::Refused, Some(at(20))),
        (40, CheckOutcome::WorkerMissing, Some(at(20))),
        (50, CheckOutcome::Confirmed, None),
    ];
    for (now, outcome, failing_since) in expected {
        target.next_at = at(now + 10);
        target.missed += 1;
        assert!(
            save_check(&mut reader, &target, &answer(outcome), at(now))
                .await
                .unwrap()
        );
        let rows = method_checks_page(&mut reader, method.id, None, None, 10)
            .await
            .unwrap();
        assert_eq!(rows[0].last, Some((at(now), answer(outcome))));
        assert_eq!(
            (rows[0].failing_since, rows[0].next_at),
            (failing_since, at(now + 10))
        );
    }
    assert_eq!(
        check_targets(&mut reader, None, 10).await.unwrap(),
        [target.clone()]
    );
    postpone_check(&mut reader, target.id, at(70)).await.unwrap();
    assert!(take_checks(&rig.db, at(69), at(99), 10).await.unwrap().is_empty());
    remove_check_targets(&rig.db, &[target.id]).await.unwrap();
    let saved = save_check(&mut reader, &target, &answer(CheckOutcome::Confirmed), at(80)).await;
    assert!(!saved.unwrap());
}

async fn answers_of_checks_are_counted_by_method(rig: &Rig) {
    let (segment, first) = one_host(&rig.db).await;
    let (bmc, pdu) = (method(rig, "bmc").await, method(rig, "pdu").await);
    let mut reader = rig.db.reader();
    let mut targets = vec![CheckTarget {
        host_id: Some(first.id),
        ..target(&bmc, at(0))
    }];
    for name in ["node-2", "node-3"] {
        let host = host(name, &segment);
        insert_host(&mut reader, &host).await.unwrap();
        targets.push(CheckTarget {
            host_id: Some(host.id),
            ..target(&bmc, at(0))
        });
    }
    targets.push(target(&pdu, at(0)));
    add_check_targets(&rig.db, &targets).await.unwrap();
    let summary = check_summaries(&mut reader, Some(bmc.id))
        .await
        .unwrap()
        .remove(0);
    assert_eq!((summary.targets, summary.answered, summary.worst), (3, 0, None));
    for (target, (now, outcome)) in targets.iter().zip([
        (5, CheckOutcome::Confirmed),
        (9, CheckOutcome::Refused),
        (7, CheckOutcome::Unknown),
        (8, CheckOutcome::Confirmed),
    ]) {
        save_check(&mut reader, target, &answer(outcome), at(now))
            .await
            .unwrap();
    }
    let summary = check_summaries(&mut reader, Some(bmc.id))
        .await
        .unwrap()
        .remove(0);
    assert_eq!((summary.targets, summary.answered, summary.failing), (3, 3, 2));
    assert_eq!(summary.worst, Some(CheckOutcome::Refused));
    assert_eq!((summary.oldest_at, summary.last_at), (Some(at(5)), Some(at(9))));
    assert_eq!(summary.failing_since, Some(at(7)));
    assert_eq!(check_summaries(&mut reader, None).await.unwrap().len(), 2);
    assert_eq!(
        failing_checks(&mut reader).await.unwrap(),
        [("simulated".to_owned(), 2)]
    );
    // In pages, sorted by host.
    let mut names = Vec::new();
    let mut marker = None;
    while let Some(row) = method_checks_page(&mut reader, bmc.id, None, marker, 1)
        .await
        .unwrap()
        .pop()
    {
        marker = Some(row.id);
        names.push(row.host.unwrap().1);
    }
    assert_eq!(names, ["node-1", "node-2", "node-3"]);
    let failing = method_checks_page(&mut reader, bmc.id, Some(true), None, 10)
        .await
        .unwrap();
    assert_eq!(failing.len(), 2);
    let well = method_checks_page(&mut reader, bmc.id, Some(false), None, 10)
        .await
        .unwrap();
    assert_eq!(well.len(), 1);
}

async fn a_check_exists_once_and_is_removed_with_its_host_or_method(rig: &Rig) {
    let (_, host) = one_host(&rig.db).await;
    let (bmc, pdu) = (method(rig, "bmc").await, method(rig, "pdu").await);
    let of_host = || CheckTarget {
        host_id: Some(host.id),
        ..target(&bmc, at(0))
    };
    let targets = [
        of_host(),
        of_host(),
        target(&pdu, at(0)),
        target(&pdu, at(0)),
        target(&bmc, at(0)),
    ];
    add_check_targets(&rig.db, &targets).await.unwrap();
    let mut reader = rig.db.reader();
    assert_eq!(check_targets(&mut reader, None, 10).await.unwrap().len(), 3);
    let first = check_targets(&mut reader, None, 1).await.unwrap()[0].id;
    assert_eq!(
        check_targets(&mut reader, Some(first), 10).await.unwrap().len(),
        2
    );
    delete_host(&mut reader, host.id).await.unwrap();
    assert_eq!(check_targets(&mut reader, None, 10).await.unwrap().len(), 2);
    delete_method(&mut reader, pdu.id).await.unwrap();
    assert_eq!(check_targets(&mut reader, None, 10).await.unwrap().len(), 1);
}

async fn a_lease_can_be_prolonged_by_its_holder_and_a_turn_cannot(rig: &Rig) {
    let mut reader = rig.db.reader();
    assert!(
        take_lease(&mut reader, "clean", "a", at(0), at(10))
            .await
            .unwrap()
    );
    assert!(
        !take_lease(&mut reader, "clean", "b", at(9), at(20))
            .await
            .unwrap()
    );
    assert!(
        take_lease(&mut reader, "clean", "a", at(9), at(20))
            .await
            .unwrap()
    );
    assert!(
        take_lease(&mut reader, "clean", "b", at(20), at(30))
            .await
            .unwrap()
    );
    assert!(
        !take_lease(&mut reader, "clean", "a", at(21), at(30))
            .await
            .unwrap()
    );
    assert!(take_turn(&mut reader, "look", "a", at(0), at(10)).await.unwrap());
    assert!(!take_turn(&mut reader, "look", "a", at(9), at(19)).await.unwrap());
    assert!(take_turn(&mut reader, "look", "a", at(10), at(20)).await.unwrap());
}

async fn a_lease_from_before_the_clock_was_set_back_blocks_no_engine(rig: &Rig) {
    let mut reader = rig.db.reader();
    let an_hour = 3_600;
    assert!(
        take_lease(&mut reader, "clean", "a", at(an_hour), at(an_hour + 10))
            .await
            .unwrap()
    );
    assert!(
        take_turn(&mut reader, "look", "a", at(an_hour), at(an_hour + 10))
            .await
            .unwrap()
    );
    assert!(
        take_lease(&mut reader, "clean", "b", at(0), at(10))
            .await
            .unwrap()
    );
    assert!(take_turn(&mut reader, "look", "b", at(0), at(10)).await.unwrap());
}

//! Old rows are removed, except those on which a present state rests.

use ringfence_core::{Host, Operation, ProofKind, Timestamp};
use ringfence_db::{
    AuditEntry, AuditFilter, Kept, NewEvent, Page, SilentSink, SortKey, append_audit, append_events,
    audit_page, delete_host, events_after, events_removed_up_to, forget_event_sink, free_event_sink,
    hold_event_sink, hold_subscription, insert_event_sink, insert_host, insert_subscription, keep_event_sink,
    keep_subscription, last_sequence, number_events, old_rows, operations_page, remove_rows,
    silent_event_sinks,
};
use serde_json::json;
use uuid::Uuid;

use crate::rig::Rig;
use crate::site::{
    assert_refused, at, done, event, fence, fence_by_power, host, insert_operation, one_host, operations_by,
    proof, save_proof, update_host,
};

crate::stories!(retention:
    old_events_are_removed_and_the_next_event_follows_without_a_gap,
    no_event_above_the_mark_is_missing,
    events_stay_until_every_subscription_has_them,
    events_stay_until_every_event_sink_has_them_or_is_removed,
    event_numbers_continue_after_all_hosts_are_removed,
    operations_stay_while_a_state_rests_on_them,
    the_audit_trail_loses_only_old_lines,
    a_removal_has_a_limit,
    a_row_is_archived_with_all_columns,
);

fn on(host: &Host, number: u64, when: Timestamp) -> NewEvent {
    NewEvent {
        occurred_at: when,
        ..event(host, number)
    }
}

async fn append(rig: &Rig, events: &[NewEvent]) {
    append_events(&mut rig.db.reader(), events).await.unwrap();
    while number_events(&rig.db).await.unwrap() > 0 {}
}

/// Removes the removable rows of this kind from before this time, and returns their number.
async fn remove(rig: &Rig, what: Kept, before: Timestamp) -> u64 {
    let old = old_rows(&rig.db, what, before, 1000).await.unwrap();
    let removed = remove_rows(&rig.db, what, before, &old).await.unwrap();
    assert_eq!(removed, old.len() as u64);
    removed
}

async fn numbers(rig: &Rig) -> Vec<u64> {
    let rows = events_after(&mut rig.db.reader(), 0, None, 1000).await.unwrap();
    rows.iter().map(|row| row.sequence).collect()
}

async fn mark(rig: &Rig) -> u64 {
    events_removed_up_to(&mut rig.db.reader()).await.unwrap()
}

async fn old_events_are_removed_and_the_next_event_follows_without_a_gap(rig: &Rig) {
    let (segment, first) = one_host(&rig.db).await;
    let quiet = host("quiet", &segment);
    insert_host(&mut rig.db.reader(), &quiet).await.unwrap();
    append(rig, &[on(&quiet, 1, at(1))]).await;
    append(rig, &(1..=4).map(|n| on(&first, n, at(10))).collect::<Vec<_>>()).await;
    append(rig, &[on(&first, 5, at(90))]).await;
    assert_eq!(mark(rig).await, 0);
    assert_eq!(remove(rig, Kept::Events, at(50)).await, 4);
    // The newest event of each host stays, and the mark says that others below it may be missing.
    assert_eq!(numbers(rig).await, [1, 6]);
    assert_eq!(mark(rig).await, 5);
    append(rig, &[on(&first, 6, at(91)), on(&quiet, 2, at(91))]).await;
    assert_eq!(numbers(rig).await, [1, 6, 7, 8]);
    assert_refused(append_events(&mut rig.db.reader(), &[on(&quiet, 4, at(92))]).await);
    assert_eq!(
        remove(rig, Kept::Events, at(50)).await,
        1,
        "the quiet host has a newer event now"
    );
    assert_eq!((numbers(rig).await, mark(rig).await), (vec![6, 7, 8], 5));
}

async fn no_event_above_the_mark_is_missing(rig: &Rig) {
    let (_, host) = one_host(&rig.db).await;
    // The times are out of order: the second event is young, and later events have old times.
    for (number, when) in [(1, 10), (2, 90), (3, 10), (4, 10), (5, 95)] {
        append(rig, &[on(&host, number, at(when))]).await;
    }
    assert_eq!(remove(rig, Kept::Events, at(50)).await, 1);
    assert_eq!((numbers(rig).await, mark(rig).await), (vec![2, 3, 4, 5], 1));
    // An event without a number has reached no listener.
    append_events(&mut rig.db.reader(), &[on(&host, 6, at(10))])
        .await
        .unwrap();
    let old = old_rows(&rig.db, Kept::Events, at(1000), 100).await.unwrap();
    let highest = old.iter().filter_map(|row| row.json["sequence"].as_u64()).max();
    assert!(highest.unwrap() <= 5, "{old:?}");
}

async fn events_stay_until_every_subscription_has_them(rig: &Rig) {
    let (_, host) = one_host(&rig.db).await;
    append(rig, &(1..=5).map(|n| on(&host, n, at(10))).collect::<Vec<_>>()).await;
    let mut reader = rig.db.reader();
    let told = crate::subscriptions::new("told");
    let slow = crate::subscriptions::new("slow");
    insert_subscription(&mut reader, &told, 5).await.unwrap();
    insert_subscription(&mut reader, &slow, 2).await.unwrap();
    assert_eq!(remove(rig, Kept::Events, at(50)).await, 2);
    assert_eq!((numbers(rig).await, mark(rig).await), (vec![3, 4, 5], 2));
    hold_subscription(&mut reader, slow.id, "e", at(0), at(9))
        .await
        .unwrap();
    assert!(
        keep_subscription(&mut reader, slow.id, "e", 4, at(9))
            .await
            .unwrap()
    );
    assert_eq!(remove(rig, Kept::Events, at(50)).await, 2);
    assert_eq!((numbers(rig).await, mark(rig).await), (vec![5], 4));
}

async fn events_stay_until_every_event_sink_has_them_or_is_removed(rig: &Rig) {
    let (_, host) = one_host(&rig.db).await;
    append(rig, &(1..=5).map(|n| on(&host, n, at(10))).collect::<Vec<_>>()).await;
    let mut reader = rig.db.reader();
    for (name, holder) in [("told", "a"), ("off", "b")] {
        insert_event_sink(&mut reader, name, 1, at(20)).await.unwrap();
        let held = hold_event_sink(&mut reader, name, holder, at(20), at(50))
            .await
            .unwrap();
        assert_eq!(held, Some(1));
    }
    assert!(
        keep_event_sink(&mut reader, "told", "a", Some(5), at(60))
            .await
            .unwrap()
    );
    assert_eq!(
        remove(rig, Kept::Events, at(50)).await,
        1,
        "the sink `off` has published only one event"
    );
    free_event_sink(&mut reader, "off", "b", at(30)).await.unwrap();
    free_event_sink(&mut reader, "told", "another engine", at(0))
        .await
        .unwrap();
    let silent = async |since| silent_event_sinks(&mut rig.db.reader(), at(since)).await.unwrap();
    assert!(silent(29).await.is_empty());
    let off = SilentSink {
        name: "off".to_owned(),
        told_up_to: 1,
        since: at(30),
    };
    assert_eq!(silent(30).await, [off]);
    // Another engine publishes to the sink after all.
    let held = hold_event_sink(&mut reader, "off", "c", at(30), at(70))
        .await
        .unwrap();
    assert_eq!(held, Some(1));
    assert!(!forget_event_sink(&mut reader, "off", at(69)).await.unwrap());
    assert!(forget_event_sink(&mut reader, "off", at(70)).await.unwrap());
    assert_eq!(remove(rig, Kept::Events, at(50)).await, 3);
    // A sink that no engine has held counts as silent from its insertion.
    insert_event_sink(&mut reader, "new", 5, at(90)).await.unwrap();
    assert!(silent(80).await.iter().all(|event_sink| event_sink.name != "new"));
    let silent = silent(90).await;
    assert_eq!(silent[0].name, "new");
    assert_eq!(silent[0].since, at(90));
}

async fn event_numbers_continue_after_all_hosts_are_removed(rig: &Rig) {
    let (_, first) = one_host(&rig.db).await;
    append(rig, &(1..=3).map(|n| on(&first, n, at(10))).collect::<Vec<_>>()).await;
    delete_host(&mut rig.db.reader(), first.id).await.unwrap();
    assert_eq!(remove(rig, Kept::Events, at(50)).await, 2);
    assert_eq!(last_sequence(&mut rig.db.reader()).await.unwrap(), 3);
    let other = host("another", &crate::site::segment("s"));
    append(rig, &[on(&other, 1, at(90))]).await;
    assert_eq!(last_sequence(&mut rig.db.reader()).await.unwrap(), 4);
}

async fn kept_generations(rig: &Rig, host: &Host) -> Vec<u32> {
    let filter = operations_by(
        "host",
        ringfence_db::Test::is(host.id.to_string().as_str().into()),
    );
    let page = Page {
        limit: 100,
        marker: None,
        sort: vec![SortKey::CreatedAt.ascending()],
    };
    let rows = operations_page(&mut rig.db.reader(), &filter, &page)
        .await
        .unwrap();
    let mut generations: Vec<_> = rows.iter().map(|operation| operation.generation.0).collect();
    generations.sort_unstable();
    generations
}

async fn operations_stay_while_a_state_rests_on_them(rig: &Rig) {
    let (segment, plain) = one_host(&rig.db).await;
    let mut reader = rig.db.reader();
    for generation in 1..=3 {
        insert_operation(&rig.db, &done(&fence(&plain, generation)))
            .await
            .unwrap();
    }
    insert_operation(&rig.db, &fence(&plain, 4)).await.unwrap();

    let fenced = host("fenced", &segment);
    insert_host(&mut reader, &fenced).await.unwrap();
    insert_operation(&rig.db, &done(&fence(&fenced, 1)))
        .await
        .unwrap();
    let (fenced, proving) = fence_by_power(&rig.db, &fenced, 2).await;
    for generation in 3..=4 {
        insert_operation(&rig.db, &done(&fence(&fenced, generation)))
            .await
            .unwrap();
    }

    let mut standing = host("standing", &segment);
    insert_host(&mut reader, &standing).await.unwrap();
    let stopped: Operation = done(&fence(&standing, 1));
    insert_operation(&rig.db, &stopped).await.unwrap();
    save_proof(&rig.db, standing.id, &proof(&stopped, ProofKind::StorageFence))
        .await
        .unwrap();
    insert_operation(&rig.db, &done(&fence(&standing, 2)))
        .await
        .unwrap();
    standing.in_flight = vec![serde_json::from_value(json!({
        "attempt": { "operation_id": stopped.id, "number": 1 }, "generation": 1, "method": uuid::Uuid::new_v4(), "kind": "storage.fence", "until": at(99),
    }))
    .unwrap()];
    standing.generation = ringfence_core::Generation(2);
    update_host(&mut rig.db.reader(), &standing, None).await.unwrap();

    assert_eq!(
        remove(rig, Kept::Operations, at(9)).await,
        0,
        "the operations ended at 9"
    );
    assert_eq!(remove(rig, Kept::Operations, at(1000)).await, 5);
    assert_eq!(kept_generations(rig, &plain).await, [4], "the live operation");
    assert_eq!(
        kept_generations(rig, &fenced).await,
        [2, 4],
        "the operation of the proof, and the newest operation"
    );
    assert_eq!(kept_generations(rig, &standing).await, [1, 2]);
    let proving = ringfence_db::operation(&mut reader, proving.id.0).await.unwrap();
    assert!(proving.is_some());
}

fn line(seconds: i64) -> AuditEntry {
    AuditEntry {
        at: at(seconds),
        actor: "anna".to_owned(),
        origin: Some("192.0.2.7".to_owned()),
        request_id: None,
        action: format!("at-{seconds}"),
        target: None,
        host_id: None,
        detail: json!({ "reason": "test" }),
    }
}

async fn trail(rig: &Rig) -> Vec<String> {
    let rows = audit_page(&mut rig.db.reader(), &AuditFilter::default(), None, 1000)
        .await
        .unwrap();
    rows.into_iter().map(|row| row.entry.action).collect()
}

async fn the_audit_trail_loses_only_old_lines(rig: &Rig) {
    for seconds in [5, 60, 10, 50, 49] {
        append_audit(&mut rig.db.reader(), &line(seconds)).await.unwrap();
    }
    assert_eq!(remove(rig, Kept::Audit, at(50)).await, 3);
    assert_eq!(trail(rig).await, ["at-60", "at-50"]);
    // A row that was read with another bound is not removed with this one.
    let old = old_rows(&rig.db, Kept::Audit, at(100), 10).await.unwrap();
    assert_eq!(remove_rows(&rig.db, Kept::Audit, at(55), &old).await.unwrap(), 1);
    assert_eq!(trail(rig).await, ["at-60"]);
    // Other transactions still cannot delete audit lines.
    assert!(rig.past("DELETE FROM audit").await.is_err());
}

async fn a_removal_has_a_limit(rig: &Rig) {
    let (_, host) = one_host(&rig.db).await;
    append(rig, &(1..=250).map(|n| on(&host, n, at(1))).collect::<Vec<_>>()).await;
    for (bite, left) in [(100, 150), (100, 50), (100, 1), (100, 1)] {
        let old = old_rows(&rig.db, Kept::Events, at(9), bite).await.unwrap();
        assert!(old.len() <= bite as usize);
        remove_rows(&rig.db, Kept::Events, at(9), &old).await.unwrap();
        assert_eq!(numbers(rig).await.len(), left);
    }
    assert_eq!(mark(rig).await, 249);
}

async fn a_row_is_archived_with_all_columns(rig: &Rig) {
    let (segment, host) = one_host(&rig.db).await;
    append(rig, &[on(&host, 1, at(1)), on(&host, 2, at(1))]).await;
    append_audit(&mut rig.db.reader(), &line(5)).await.unwrap();
    let operation = done(&fence(&host, 1));
    for operation in [operation.clone(), done(&fence(&host, 2))] {
        insert_operation(&rig.db, &operation).await.unwrap();
    }
    let read = async |what| {
        old_rows(&rig.db, what, at(100), 10).await.unwrap()[0]
            .json
            .clone()
    };
    let event = read(Kept::Events).await;
    assert_eq!(
        (
            &event["sequence"],
            &event["host"],
            &event["host_sequence"],
            &event["segment"],
            &event["data"]
        ),
        (
            &json!(1),
            &json!("node-1"),
            &json!(1),
            &json!(segment.name),
            &json!({ "number": 1 })
        )
    );
    assert!(event["id"].as_str().is_some_and(|id| Uuid::parse_str(id).is_ok()));
    let line = read(Kept::Audit).await;
    assert_eq!(
        (&line["actor"], &line["detail"]["reason"]),
        (&json!("anna"), &json!("test"))
    );
    assert_eq!(
        read(Kept::Operations).await,
        serde_json::to_value(&operation).unwrap()
    );
}

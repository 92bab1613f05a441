//! The outbox: each message is taken by one relay at a time, and not before its time.

use std::collections::HashSet;

use ringfence_db::{OutboxRow, append_outbox, delete_outbox, postpone_outbox, prolong_outbox, take_outbox};
use serde_json::json;
use uuid::Uuid;

use crate::rig::Rig;
use crate::site::at;

crate::stories!(outbox:
    a_message_is_never_taken_by_two_relays,
    a_relay_takes_no_more_messages_than_it_asked_for,
    a_message_that_another_relay_has_taken_is_not_taken,
    a_message_is_not_taken_before_its_time,
    a_message_that_was_postponed_waits,
    the_expiry_of_a_message_can_be_prolonged_and_not_shortened,
    published_messages_are_removed_by_their_ids,
);

pub fn message(available_at: i64) -> OutboxRow {
    OutboxRow {
        id: Uuid::new_v4(),
        resource: "power".to_owned(),
        zone: "default".to_owned(),
        payload: json!({ "kind": "power.off" }),
        trace: Some("00-1-1-01".to_owned()),
        available_at: at(available_at),
        expires_at: at(available_at + 60),
        tries: 0,
    }
}

async fn put(rig: &Rig, messages: &[OutboxRow]) {
    let mut tx = rig.db.begin().await.unwrap();
    append_outbox(&mut tx, messages).await.unwrap();
    tx.commit().await.unwrap();
}

async fn a_message_is_never_taken_by_two_relays(rig: &Rig) {
    let messages: Vec<_> = (0..120).map(|_| message(0)).collect();
    put(rig, &messages).await;
    let relays: Vec<_> = [rig.db.clone(), rig.another().await, rig.another().await]
        .into_iter()
        .map(|db| {
            tokio::spawn(async move {
                let mut mine = Vec::new();
                loop {
                    let rows = take_outbox(&db, at(10), at(20), 7).await.unwrap();
                    if rows.is_empty() {
                        return mine;
                    }
                    assert!(rows.len() <= 7);
                    mine.extend(rows.into_iter().map(|row| row.id));
                }
            })
        })
        .collect();
    let mut all = Vec::new();
    for relay in relays {
        all.extend(relay.await.unwrap());
    }
    let different: HashSet<_> = all.iter().copied().collect();
    assert_eq!(different.len(), all.len(), "a message was taken twice");
    // A message that a relay skipped, because another relay had locked it, comes in the next pass.
    all.extend(
        take_outbox(&rig.db, at(10), at(20), 1000)
            .await
            .unwrap()
            .into_iter()
            .map(|row| row.id),
    );
    assert_eq!(
        all.into_iter().collect::<HashSet<_>>(),
        messages.iter().map(|m| m.id).collect()
    );
}

async fn a_relay_takes_no_more_messages_than_it_asked_for(rig: &Rig) {
    put(rig, &(0..50).map(message).collect::<Vec<_>>()).await;
    let taken = take_outbox(&rig.db, at(100), at(200), 10).await.unwrap();
    let mut times: Vec<_> = taken.iter().map(|row| row.expires_at).collect();
    times.sort();
    assert_eq!(
        times,
        (0..10).map(|n| at(n + 60)).collect::<Vec<_>>(),
        "the oldest messages come first"
    );
}

async fn a_message_that_another_relay_has_taken_is_not_taken(rig: &Rig) {
    put(rig, &[message(0)]).await;
    let taken = take_outbox(&rig.db, at(10), at(20), 10).await.unwrap();
    assert_eq!((taken[0].tries, taken[0].available_at), (1, at(20)));
    assert!(take_outbox(&rig.db, at(19), at(30), 10).await.unwrap().is_empty());
    // The relay that took the message has died.
    let again = take_outbox(&rig.db, at(20), at(30), 10).await.unwrap();
    assert_eq!((again[0].id, again[0].tries), (taken[0].id, 2));
    assert_eq!(again[0].payload, taken[0].payload);
    assert_eq!(again[0].trace, taken[0].trace);
}

async fn a_message_is_not_taken_before_its_time(rig: &Rig) {
    put(rig, &[message(2)]).await;
    assert!(take_outbox(&rig.db, at(1), at(9), 10).await.unwrap().is_empty());
    assert_eq!(take_outbox(&rig.db, at(2), at(9), 10).await.unwrap().len(), 1);
}

async fn the_expiry_of_a_message_can_be_prolonged_and_not_shortened(rig: &Rig) {
    let [one, other] = [message(0), message(1)];
    put(rig, &[one.clone(), other.clone()]).await;
    let mut reader = rig.db.reader();
    assert_eq!(
        prolong_outbox(&mut reader, vec![one.id], at(90)).await.unwrap(),
        1
    );
    assert_eq!(
        prolong_outbox(&mut reader, vec![one.id], at(80)).await.unwrap(),
        0
    );
    let taken = take_outbox(&rig.db, at(10), at(20), 10).await.unwrap();
    let mut good: Vec<_> = taken.iter().map(|row| (row.expires_at, row.id)).collect();
    good.sort();
    assert_eq!(good, [(at(61), other.id), (at(90), one.id)]);
}

async fn a_message_that_was_postponed_waits(rig: &Rig) {
    let [one, other] = [message(0), message(0)];
    put(rig, &[one.clone(), other.clone()]).await;
    assert_eq!(
        postpone_outbox(&mut rig.db.reader(), vec![one.id], at(30))
            .await
            .unwrap(),
        1
    );
    let taken = take_outbox(&rig.db, at(29), at(100), 10).await.unwrap();
    assert_eq!(taken.iter().map(|row| row.id).collect::<Vec<_>>(), [other.id]);
    let taken = take_outbox(&rig.db, at(30), at(100), 10).await.unwrap();
    assert_eq!(taken.iter().map(|row| row.id).collect::<Vec<_>>(), [one.id]);
}

async fn published_messages_are_removed_by_their_ids(rig: &Rig) {
    let messages: Vec<_> = (0..300).map(|_| message(0)).collect();
    put(rig, &messages).await;
    let mut ids: Vec<_> = messages.iter().map(|m| m.id).collect();
    let kept = ids.split_off(299);
    ids.push(Uuid::new_v4());
    assert_eq!(
        delete_outbox(&mut rig.db.reader(), ids.clone()).await.unwrap(),
        299
    );
    assert_eq!(delete_outbox(&mut rig.db.reader(), ids).await.unwrap(), 0);
    assert_eq!(delete_outbox(&mut rig.db.reader(), Vec::new()).await.unwrap(), 0);
    let left = take_outbox(&rig.db, at(10), at(20), 1000).await.unwrap();
    assert_eq!(left.iter().map(|row| row.id).collect::<Vec<_>>(), kept);
}

/// PostgreSQL's statistics are from a time when the outbox was nearly empty, as it mostly is. With these it makes the choice of rows the
/// inner side of a loop, and would evaluate a plain subquery once for each row of the table.
#[tokio::test]
async fn an_outbox_that_has_grown_suddenly_is_taken_in_batches() {
    let rig = Rig::postgresql().await;
    put(&rig, &[message(1000)]).await;
    rig.past("ANALYZE outbox").await.unwrap();
    put(&rig, &(0..50).map(message).collect::<Vec<_>>()).await;
    let taken = take_outbox(&rig.db, at(100), at(200), 10).await.unwrap();
    assert_eq!(taken.len(), 10);
    rig.end().await;
}

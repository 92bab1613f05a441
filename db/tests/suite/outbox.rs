//! The outbox: each message is taken by one relay at a time, and not before its time.

use std::collections::HashSet;

use ringfence_db::{OutboxRow, append_outbox, delete_outbox, postpone_outbox, prolong_outbox, take_outbox};
use serde_json::json;
use uuid::Uuid;

use crate::rig::Rig;
use crate::site::at;

crate::stories!(outbox:
    two_relays_never_take_the_same_message,
    a_relay_takes_no_more_than_it_asked_for,
    what_another_has_in_hand_is_left_alone,
    a_head_start_is_respected,
    a_message_that_was_postponed_waits,
    a_message_can_stay_good_for_longer_and_not_for_less,
    what_was_published_is_removed_by_list,
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

async fn two_relays_never_take_the_same_message(rig: &Rig) {
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
    // What a relay skipped because another had it locked is there for the next sweep.
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

async fn a_relay_takes_no_more_than_it_asked_for(rig: &Rig) {
    put(rig, &(0..50).map(message).collect::<Vec<_>>()).await;
    let taken = take_outbox(&rig.db, at(100), at(200), 10).await.unwrap();
    let mut times: Vec<_> = taken.iter().map(|row| row.expires_at).collect();
    times.sort();
    assert_eq!(
        times,
        (0..10).map(|n| at(n + 60)).collect::<Vec<_>>(),
        "the oldest first"
    );
}

async fn what_another_has_in_hand_is_left_alone(rig: &Rig) {
    put(rig, &[message(0)]).await;
    let taken = take_outbox(&rig.db, at(10), at(20), 10).await.unwrap();
    assert_eq!((taken[0].tries, taken[0].available_at), (1, at(20)));
    assert!(take_outbox(&rig.db, at(19), at(30), 10).await.unwrap().is_empty());
    // The one who had it in hand has died.
    let again = take_outbox(&rig.db, at(20), at(30), 10).await.unwrap();
    assert_eq!((again[0].id, again[0].tries), (taken[0].id, 2));
    assert_eq!(again[0].payload, taken[0].payload);
    assert_eq!(again[0].trace, taken[0].trace);
}

async fn a_head_start_is_respected(rig: &Rig) {
    put(rig, &[message(2)]).await;
    assert!(take_outbox(&rig.db, at(1), at(9), 10).await.unwrap().is_empty());
    assert_eq!(take_outbox(&rig.db, at(2), at(9), 10).await.unwrap().len(), 1);
}

async fn a_message_can_stay_good_for_longer_and_not_for_less(rig: &Rig) {
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

async fn what_was_published_is_removed_by_list(rig: &Rig) {
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

/// PostgreSQL last looked when the outbox was nearly empty, as it mostly is. Believing it to be so still, it makes the choice of rows
/// the inner side of a loop, and a plain subquery is then evaluated once for each row of the table.
#[tokio::test]
async fn an_outbox_that_filled_up_suddenly_is_not_taken_all_at_once() {
    let rig = Rig::postgresql().await;
    put(&rig, &[message(1000)]).await;
    rig.past("ANALYZE outbox").await.unwrap();
    put(&rig, &(0..50).map(message).collect::<Vec<_>>()).await;
    let taken = take_outbox(&rig.db, at(100), at(200), 10).await.unwrap();
    assert_eq!(taken.len(), 10);
    rig.end().await;
}

//! Idempotency keys: which request holds one, and which may commit with it.

use ringfence_db::{
    KeyName, delete_old_keys, forget_old_key, insert_key, key_row, put_answer, put_receipt, release_key,
    take_key_over,
};
use serde_json::json;
use uuid::Uuid;

use crate::rig::Rig;
use crate::site::at;

crate::stories!(idempotency:
    a_key_is_inserted_once,
    a_request_that_lost_its_key_commits_no_change,
    a_key_with_a_receipt_cannot_be_taken_over,
    a_key_is_released_only_by_its_holder_and_only_without_a_receipt,
    old_keys_are_removed_in_batches,
);

const NAME: KeyName<'static> = KeyName {
    caller: "admin:alice",
    key: "k",
};

async fn held(rig: &Rig) -> Uuid {
    let holder = Uuid::new_v4();
    let is_new = insert_key(&mut rig.db.reader(), NAME, "digest", holder, at(0), at(60)).await;
    assert!(is_new.unwrap());
    holder
}

async fn a_key_is_inserted_once(rig: &Rig) {
    let first = held(rig).await;
    let mut run = rig.db.reader();
    let second = insert_key(&mut run, NAME, "other", Uuid::new_v4(), at(1), at(61)).await;
    assert!(!second.unwrap());
    let row = key_row(&mut run, NAME).await.unwrap().unwrap();
    assert_eq!((row.holder, row.digest.as_str()), (first, "digest"));
    assert_eq!((row.created_at, row.held_until), (at(0), at(60)));
    let others = KeyName {
        caller: "admin:bob",
        ..NAME
    };
    assert!(
        insert_key(&mut run, others, "other", Uuid::new_v4(), at(1), at(61))
            .await
            .unwrap()
    );
}

async fn a_request_that_lost_its_key_commits_no_change(rig: &Rig) {
    let (slow, fast) = (held(rig).await, Uuid::new_v4());
    let mut run = rig.db.reader();
    let early = take_key_over(&mut run, NAME, slow, fast, at(59), at(119)).await;
    assert!(!early.unwrap());
    assert!(
        take_key_over(&mut run, NAME, slow, fast, at(60), at(120))
            .await
            .unwrap()
    );
    let third = take_key_over(&mut run, NAME, slow, Uuid::new_v4(), at(200), at(260)).await;
    assert!(!third.unwrap(), "the slow request no longer holds the key");
    let mut tx = rig.db.begin().await.unwrap();
    assert!(!put_receipt(&mut tx, NAME, slow, json!("slow")).await.unwrap());
    assert!(put_receipt(&mut tx, NAME, fast, json!("fast")).await.unwrap());
    assert!(!put_receipt(&mut tx, NAME, fast, json!("twice")).await.unwrap());
    tx.commit().await.unwrap();
    assert!(
        !put_answer(&mut run, NAME, slow, json!({ "status": 200 }))
            .await
            .unwrap()
    );
    let row = key_row(&mut run, NAME).await.unwrap().unwrap();
    assert_eq!((row.receipt, row.answer), (Some(json!("fast")), None));
}

async fn a_key_with_a_receipt_cannot_be_taken_over(rig: &Rig) {
    let holder = held(rig).await;
    let mut run = rig.db.reader();
    assert!(put_receipt(&mut run, NAME, holder, json!("done")).await.unwrap());
    let taken = take_key_over(&mut run, NAME, holder, Uuid::new_v4(), at(500), at(560)).await;
    assert!(!taken.unwrap());
}

async fn a_key_is_released_only_by_its_holder_and_only_without_a_receipt(rig: &Rig) {
    let holder = held(rig).await;
    let mut run = rig.db.reader();
    assert!(!release_key(&mut run, NAME, Uuid::new_v4()).await.unwrap());
    assert!(release_key(&mut run, NAME, holder).await.unwrap());
    let holder = held(rig).await;
    assert!(put_receipt(&mut run, NAME, holder, json!("done")).await.unwrap());
    assert!(!release_key(&mut run, NAME, holder).await.unwrap());
    assert!(key_row(&mut run, NAME).await.unwrap().is_some());
}

async fn old_keys_are_removed_in_batches(rig: &Rig) {
    let mut run = rig.db.reader();
    for n in 0..7 {
        let key = format!("k{n}");
        let name = KeyName {
            caller: "admin:alice",
            key: &key,
        };
        assert!(
            insert_key(&mut run, name, "digest", Uuid::new_v4(), at(n), at(n + 60))
                .await
                .unwrap()
        );
    }
    assert_eq!(delete_old_keys(&mut run, at(5), 3).await.unwrap(), 3);
    assert_eq!(delete_old_keys(&mut run, at(5), 3).await.unwrap(), 2);
    assert_eq!(delete_old_keys(&mut run, at(5), 3).await.unwrap(), 0);
    let last = KeyName {
        caller: "admin:alice",
        key: "k6",
    };
    assert!(!forget_old_key(&mut run, last, at(6)).await.unwrap());
    assert!(forget_old_key(&mut run, last, at(7)).await.unwrap());
}

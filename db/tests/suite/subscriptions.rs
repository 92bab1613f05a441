//! Subscriptions: which engine holds one, its position, and its deliveries.

use ringfence_core::{EventFilter, SecretVersions, Subscription, SubscriptionId};
use ringfence_db::{
    Database, DeliveryFilter, DeliveryKind, DeliveryRow, DeliveryStatus, Kept, append_events,
    delete_subscription, deliveries_after, deliveries_page, event_numbered, forget_deliveries,
    free_subscription, free_subscriptions, give_up_deliveries, hold_subscription, insert_subscription,
    keep_subscription, lock_subscription, number_events, old_rows, remove_rows, restart_deliveries,
    save_deliveries, subscription, subscription_progress, take_deliveries, update_subscription,
};
use uuid::Uuid;

use crate::rig::Rig;
use crate::site::{assert_duplicate, assert_refused, at, event, one_host};

crate::stories!(subscriptions:
    a_subscription_is_read_as_it_was_written,
    one_engine_at_a_time_holds_a_subscription,
    a_change_takes_a_subscription_from_its_holder,
    deliveries_are_stored_once_per_event,
    a_move_of_a_subscription_gives_up_skipped_deliveries_and_forgets_repeated_ones,
    a_requested_delivery_is_taken_once,
    old_deliveries_are_removed_unless_they_are_still_needed,
    an_event_is_about_a_host_or_about_a_subscription,
);

pub fn new(name: &str) -> Subscription {
    Subscription {
        id: SubscriptionId(Uuid::new_v4()),
        name: name.to_owned(),
        description: "for the people on call".to_owned(),
        url: "https://example.org/hook".to_owned(),
        format: ringfence_core::MessageFormat::CloudEvents,
        filter: EventFilter {
            types: vec!["host.*".to_owned()],
            ..EventFilter::default()
        },
        enabled: true,
        disabled_reason: None,
        secret: SecretVersions::first("k1").rotate("k2", at(5)),
        revision: 1,
        created_at: at(1),
        updated_at: at(2),
    }
}

async fn added(db: &Database, name: &str) -> Subscription {
    let new = new(name);
    insert_subscription(&mut db.reader(), &new, 7).await.unwrap();
    new
}

pub fn delivery(of: &Subscription, kind: DeliveryKind, sequence: Option<u64>, created: i64) -> DeliveryRow {
    DeliveryRow {
        id: Uuid::new_v4(),
        subscription_id: of.id,
        kind,
        sequence,
        message_id: Uuid::new_v4(),
        event_type: "host.fenced".to_owned(),
        host: Some("c1".to_owned()),
        status: DeliveryStatus::Pending,
        tries: 1,
        created_at: at(created),
        tried_at: Some(at(created)),
        next_at: Some(at(created + 5)),
        answer: Some(500),
        detail: Some("answered 500".to_owned()),
        took_ms: Some(12),
    }
}

pub fn done(row: &DeliveryRow, status: DeliveryStatus) -> DeliveryRow {
    DeliveryRow {
        status,
        next_at: None,
        tries: row.tries + 1,
        ..row.clone()
    }
}

async fn a_subscription_is_read_as_it_was_written(rig: &Rig) {
    let written = added(&rig.db, "pager").await;
    let mut reader = rig.db.reader();
    for key in ["pager".to_owned(), written.id.to_string()] {
        assert_eq!(
            subscription(&mut reader, &key).await.unwrap().as_ref(),
            Some(&written)
        );
    }
    let progress = subscription_progress(&mut reader, written.id)
        .await
        .unwrap()
        .unwrap();
    assert_eq!((progress.after_sequence, progress.retrying), (7, 0));
    assert_duplicate(insert_subscription(&mut reader, &new("pager"), 0).await);
    let both = Subscription {
        disabled_reason: Some("gone".to_owned()),
        ..new("odd")
    };
    assert_refused(insert_subscription(&mut reader, &both, 0).await);
    assert!(delete_subscription(&mut reader, written.id).await.unwrap());
    assert_eq!(subscription(&mut reader, "pager").await.unwrap(), None);
}

async fn one_engine_at_a_time_holds_a_subscription(rig: &Rig) {
    let it = added(&rig.db, "pager").await;
    let mut reader = rig.db.reader();
    assert_eq!(
        free_subscriptions(&mut reader, at(10), 10).await.unwrap(),
        [it.id]
    );
    let held = hold_subscription(&mut reader, it.id, "a", at(10), at(40))
        .await
        .unwrap();
    assert_eq!(held, Some((it.clone(), 7)));
    assert!(
        free_subscriptions(&mut reader, at(39), 10)
            .await
            .unwrap()
            .is_empty()
    );
    assert_eq!(
        hold_subscription(&mut reader, it.id, "b", at(39), at(60))
            .await
            .unwrap(),
        None
    );
    assert!(
        keep_subscription(&mut reader, it.id, "a", 9, at(50))
            .await
            .unwrap()
    );
    assert!(
        !keep_subscription(&mut reader, it.id, "b", 99, at(50))
            .await
            .unwrap()
    );
    // The hold of engine `a` has run out.
    let held = hold_subscription(&mut reader, it.id, "b", at(50), at(80))
        .await
        .unwrap();
    assert_eq!(held.map(|(_, after)| after), Some(9));
    assert!(
        !keep_subscription(&mut reader, it.id, "a", 99, at(90))
            .await
            .unwrap()
    );
    free_subscription(&mut reader, it.id, "a").await.unwrap();
    assert!(
        free_subscriptions(&mut reader, at(51), 10)
            .await
            .unwrap()
            .is_empty()
    );
    free_subscription(&mut reader, it.id, "b").await.unwrap();
    assert_eq!(
        free_subscriptions(&mut reader, at(51), 10).await.unwrap(),
        [it.id]
    );
}

async fn a_change_takes_a_subscription_from_its_holder(rig: &Rig) {
    let it = added(&rig.db, "pager").await;
    let mut reader = rig.db.reader();
    hold_subscription(&mut reader, it.id, "a", at(10), at(40))
        .await
        .unwrap();
    let changed = Subscription {
        url: "https://example.org/other".to_owned(),
        format: ringfence_core::MessageFormat::Teams,
        revision: 2,
        ..it.clone()
    };
    assert!(!update_subscription(&mut reader, &changed, None, 7).await.unwrap());
    assert!(
        update_subscription(&mut reader, &changed, Some(3), 1)
            .await
            .unwrap()
    );
    assert!(
        !keep_subscription(&mut reader, it.id, "a", 99, at(90))
            .await
            .unwrap()
    );
    let held = hold_subscription(&mut reader, it.id, "b", at(11), at(40))
        .await
        .unwrap();
    assert_eq!(held, Some((changed.clone(), 3)));
    let disabled = Subscription {
        enabled: false,
        disabled_reason: Some("gone".to_owned()),
        revision: 3,
        ..changed
    };
    assert!(
        update_subscription(&mut reader, &disabled, None, 2)
            .await
            .unwrap()
    );
    assert!(
        free_subscriptions(&mut reader, at(90), 10)
            .await
            .unwrap()
            .is_empty()
    );
    assert_eq!(
        hold_subscription(&mut reader, it.id, "c", at(90), at(99))
            .await
            .unwrap(),
        None
    );
}

async fn deliveries_are_stored_once_per_event(rig: &Rig) {
    let it = added(&rig.db, "pager").await;
    let mut reader = rig.db.reader();
    let rows: Vec<_> = (8..=10)
        .map(|number| delivery(&it, DeliveryKind::Event, Some(number), 10))
        .collect();
    save_deliveries(&mut reader, &rows).await.unwrap();
    assert_eq!(deliveries_after(&mut reader, it.id, 7, 10).await.unwrap(), rows);
    let delivered = done(&rows[1], DeliveryStatus::Delivered);
    save_deliveries(&mut reader, std::slice::from_ref(&delivered))
        .await
        .unwrap();
    let read = deliveries_after(&mut reader, it.id, 8, 10).await.unwrap();
    assert_eq!(read, [delivered, rows[2].clone()]);
    assert_eq!(
        subscription_progress(&mut reader, it.id)
            .await
            .unwrap()
            .unwrap()
            .retrying,
        2
    );
    assert_duplicate(save_deliveries(&mut reader, &[delivery(&it, DeliveryKind::Event, Some(9), 10)]).await);
    restart_deliveries(&mut reader, it.id, at(100)).await.unwrap();
    let read = deliveries_after(&mut reader, it.id, 7, 10).await.unwrap();
    let times: Vec<_> = read
        .iter()
        .map(|row| (row.tries, row.created_at, row.next_at))
        .collect();
    assert_eq!(times[0], (0, at(100), Some(at(100))));
    assert_eq!(times[1], (2, at(10), None));
    let of_status = DeliveryFilter {
        status: Some(DeliveryStatus::Delivered),
    };
    assert_eq!(
        deliveries_page(&mut reader, it.id, &of_status, None, 10)
            .await
            .unwrap()
            .len(),
        1
    );
    delete_subscription(&mut reader, it.id).await.unwrap();
    assert!(
        deliveries_after(&mut reader, it.id, 0, 10)
            .await
            .unwrap()
            .is_empty()
    );
}

async fn a_move_of_a_subscription_gives_up_skipped_deliveries_and_forgets_repeated_ones(rig: &Rig) {
    let it = added(&rig.db, "pager").await;
    let other = added(&rig.db, "other").await;
    let mut reader = rig.db.reader();
    let mut rows: Vec<_> = (5..=9)
        .map(|number| delivery(&it, DeliveryKind::Event, Some(number), 10))
        .collect();
    rows[4] = done(&rows[4], DeliveryStatus::Delivered);
    rows.push(delivery(&it, DeliveryKind::Redelivery, Some(6), 10));
    rows.push(delivery(&other, DeliveryKind::Event, Some(6), 10));
    save_deliveries(&mut reader, &rows).await.unwrap();
    let retrying = async || {
        let progress = subscription_progress(&mut rig.db.reader(), it.id).await.unwrap();
        progress.unwrap().retrying
    };
    // The subscription's position is 7.
    assert_eq!(retrying().await, 1);
    give_up_deliveries(&mut reader, it.id, 7).await.unwrap();
    assert_eq!(retrying().await, 1);
    let numbers = async |of: &Subscription| {
        let rows = deliveries_after(&mut rig.db.reader(), of.id, 0, 10)
            .await
            .unwrap();
        let numbers = rows
            .iter()
            .map(|row| (row.sequence.unwrap(), row.status.as_str()));
        numbers.collect::<Vec<_>>()
    };
    assert_eq!(
        numbers(&it).await,
        [
            (5, "failed"),
            (6, "failed"),
            (7, "failed"),
            (8, "pending"),
            (9, "delivered")
        ]
    );
    assert_eq!(numbers(&other).await, [(6, "pending")]);
    let mut tx = rig.db.begin().await.unwrap();
    assert_eq!(lock_subscription(&mut tx, it.id).await.unwrap(), Some(7));
    assert_eq!(
        forget_deliveries(&mut tx, it.id, 5, 2).await.unwrap(),
        Some(7),
        "more deliveries are left"
    );
    assert_eq!(forget_deliveries(&mut tx, it.id, 7, 3).await.unwrap(), None);
    tx.commit().await.unwrap();
    assert_eq!(numbers(&it).await, [(5, "failed")]);
    assert_eq!(numbers(&other).await, [(6, "pending")]);
    let all = deliveries_page(&mut reader, it.id, &DeliveryFilter::default(), None, 10)
        .await
        .unwrap();
    assert_eq!(all.len(), 2, "requested deliveries stay");
}

async fn a_requested_delivery_is_taken_once(rig: &Rig) {
    let it = added(&rig.db, "pager").await;
    let asked = [
        delivery(&it, DeliveryKind::Test, None, 10),
        delivery(&it, DeliveryKind::Redelivery, Some(3), 10),
        delivery(&it, DeliveryKind::Event, Some(8), 10),
    ];
    save_deliveries(&mut rig.db.reader(), &asked).await.unwrap();
    let take = async |now| {
        take_deliveries(&rig.db, at(now), at(now + 30), 10)
            .await
            .unwrap()
            .len()
    };
    assert_eq!(take(14).await, 0);
    assert_eq!(take(15).await, 2);
    assert_eq!(take(16).await, 0);
    // The engine that took the deliveries has died.
    assert_eq!(take(45).await, 2);
}

async fn remove_old(rig: &Rig, limit: u32) -> u64 {
    let old = old_rows(&rig.db, Kept::Deliveries, at(20), limit).await.unwrap();
    remove_rows(&rig.db, Kept::Deliveries, at(20), &old)
        .await
        .unwrap()
}

async fn old_deliveries_are_removed_unless_they_are_still_needed(rig: &Rig) {
    let it = added(&rig.db, "pager").await;
    let of = |number, created| delivery(&it, DeliveryKind::Event, Some(number), created);
    let rows = [
        done(&of(6, 10), DeliveryStatus::Delivered),
        done(&of(7, 30), DeliveryStatus::Delivered),
        // After the position: this row says that the event needs no second delivery.
        done(&of(9, 10), DeliveryStatus::Delivered),
        of(8, 10),
        done(
            &delivery(&it, DeliveryKind::Test, None, 10),
            DeliveryStatus::Failed,
        ),
    ];
    save_deliveries(&mut rig.db.reader(), &rows).await.unwrap();
    assert_eq!(remove_old(rig, 1).await, 1);
    assert_eq!(remove_old(rig, 10).await, 1);
    assert_eq!(remove_old(rig, 10).await, 0);
    let left = deliveries_page(&mut rig.db.reader(), it.id, &DeliveryFilter::default(), None, 10)
        .await
        .unwrap();
    let mut left: Vec<_> = left.iter().filter_map(|row| row.sequence).collect();
    left.sort_unstable();
    assert_eq!(left, [7, 8, 9]);
}

async fn an_event_is_about_a_host_or_about_a_subscription(rig: &Rig) {
    let (_, host) = one_host(&rig.db).await;
    let of_host = event(&host, 1);
    let mut of_none = event(&host, 2);
    of_none.host = None;
    assert_refused(append_events(&mut rig.db.reader(), std::slice::from_ref(&of_none)).await);
    of_none.kind = ringfence_core::EventKind::SubscriptionDisabled;
    append_events(&mut rig.db.reader(), &[of_host.clone(), of_none.clone()])
        .await
        .unwrap();
    number_events(&rig.db).await.unwrap();
    let mut read = Vec::new();
    for number in [1, 2] {
        read.push(
            event_numbered(&mut rig.db.reader(), number)
                .await
                .unwrap()
                .unwrap()
                .event,
        );
    }
    assert_eq!(read, [of_host, of_none]);
    assert_eq!(event_numbered(&mut rig.db.reader(), 3).await.unwrap(), None);
}

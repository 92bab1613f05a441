//! From publishing a message to acknowledging it.

use std::collections::BTreeSet;
use std::sync::Arc;

use ringfence_bus::{Audience, BusError, MAX_BODY_BYTES, MAX_QUEUE_LENGTH, Queue};
use ringfence_core::Resource;
use tokio::task::JoinSet;

use crate::rig::{Note, Rig, SOON, next, note, nothing, number};

crate::stories!(delivery:
    a_message_arrives_as_it_was_sent,
    an_acknowledged_message_does_not_come_again,
    messages_wait_for_a_later_consumer,
    a_delivery_that_is_dropped_comes_again,
    a_delivery_that_is_requeued_comes_again,
    a_message_for_a_queue_without_a_former_consumer_is_unroutable,
    each_unroutable_message_of_many_concurrent_publishes_is_reported,
    a_consumer_holds_at_most_its_prefetch_of_messages,
    two_consumers_share_the_messages,
    another_consumer_gets_the_messages_of_one_that_has_gone,
    no_message_is_lost_while_consumers_come_and_go,
    a_body_over_the_bound_is_not_sent,
    a_full_queue_refuses_messages,
    a_closed_bus_ends_its_deliveries_and_takes_no_message,
);

async fn a_message_arrives_as_it_was_sent(rig: Rig) {
    let queue = rig.tasks();
    let mut deliveries = rig.bus.consume(&queue, 1).await.unwrap();
    let mut message = note(&rig.keys, Audience::Queue(queue.clone()), 5);
    message.trace = Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".to_owned());
    rig.bus.publish(&queue, &message).await.unwrap();
    let delivery = next(&mut deliveries).await;
    assert_eq!(delivery.message, message);
    assert!(!delivery.redelivered);
    assert_eq!(delivery.reply_to, None);
    assert_eq!(
        rig.keys
            .open::<Note>(&Audience::Queue(queue), &delivery.message)
            .unwrap(),
        Note { number: 5 }
    );
    delivery.settle.ack().await.unwrap();
}

async fn an_acknowledged_message_does_not_come_again(rig: Rig) {
    let queue = rig.tasks();
    let mut deliveries = rig.bus.consume(&queue, 1).await.unwrap();
    rig.put(&queue, 1).await;
    next(&mut deliveries).await.settle.ack().await.unwrap();
    nothing(&mut deliveries).await;
    drop(deliveries);
    nothing(&mut rig.bus.consume(&queue, 1).await.unwrap()).await;
}

async fn messages_wait_for_a_later_consumer(rig: Rig) {
    let queue = rig.tasks();
    drop(rig.bus.consume(&queue, 1).await.unwrap());
    for number in 0..3 {
        rig.put(&queue, number).await;
    }
    let mut deliveries = rig.bus.consume(&queue, 3).await.unwrap();
    let mut seen = BTreeSet::new();
    for _ in 0..3 {
        let delivery = next(&mut deliveries).await;
        seen.insert(number(&delivery));
        delivery.settle.ack().await.unwrap();
    }
    assert_eq!(seen, BTreeSet::from([0, 1, 2]));
}

async fn a_delivery_that_is_dropped_comes_again(rig: Rig) {
    let queue = rig.tasks();
    let mut deliveries = rig.bus.consume(&queue, 1).await.unwrap();
    let message = rig.put(&queue, 1).await;
    drop(next(&mut deliveries).await);
    let again = next(&mut deliveries).await;
    assert_eq!(again.message, message);
    assert!(again.redelivered);
    again.settle.ack().await.unwrap();
    nothing(&mut deliveries).await;
}

async fn a_delivery_that_is_requeued_comes_again(rig: Rig) {
    let queue = rig.tasks();
    let mut deliveries = rig.bus.consume(&queue, 1).await.unwrap();
    let message = rig.put(&queue, 1).await;
    next(&mut deliveries).await.settle.requeue().await.unwrap();
    let again = next(&mut deliveries).await;
    assert_eq!(again.message, message);
    assert!(again.redelivered);
    again.settle.ack().await.unwrap();
    nothing(&mut deliveries).await;
}

async fn a_message_for_a_queue_without_a_former_consumer_is_unroutable(rig: Rig) {
    let queue = rig.elsewhere();
    let message = note(&rig.keys, Audience::Queue(queue.clone()), 1);
    let error = rig.bus.publish(&queue, &message).await.unwrap_err();
    assert!(
        matches!(&error, BusError::Unroutable { queue: name } if *name == queue.to_string()),
        "{error}"
    );
}

async fn each_unroutable_message_of_many_concurrent_publishes_is_reported(rig: Rig) {
    let (served, nowhere) = (rig.tasks(), rig.elsewhere());
    let mut deliveries = rig.bus.consume(&served, 500).await.unwrap();
    let rig = Arc::new(rig);
    let mut publishes = JoinSet::new();
    for number in 0..400 {
        let (rig, lost) = (rig.clone(), number % 3 == 0);
        let queue = if lost { nowhere.clone() } else { served.clone() };
        publishes.spawn(async move {
            let message = note(&rig.keys, Audience::Queue(queue.clone()), number);
            (number, lost, rig.bus.publish(&queue, &message).await)
        });
    }
    let mut routed = BTreeSet::new();
    while let Some(done) = publishes.join_next().await {
        let (number, lost, result) = done.unwrap();
        assert_eq!(
            matches!(result, Err(BusError::Unroutable { .. })),
            lost,
            "note {number}: {result:?}"
        );
        if !lost {
            result.unwrap();
            routed.insert(number);
        }
    }
    let mut arrived = BTreeSet::new();
    while arrived.len() < routed.len() {
        let delivery = next(&mut deliveries).await;
        arrived.insert(number(&delivery));
        delivery.settle.ack().await.unwrap();
    }
    assert_eq!(arrived, routed);
}

async fn a_consumer_holds_at_most_its_prefetch_of_messages(rig: Rig) {
    let queue = rig.tasks();
    let mut deliveries = rig.bus.consume(&queue, 3).await.unwrap();
    for number in 0..6 {
        rig.put(&queue, number).await;
    }
    let mut out = Vec::new();
    for _ in 0..3 {
        out.push(next(&mut deliveries).await);
    }
    nothing(&mut deliveries).await;
    out.remove(0).settle.ack().await.unwrap();
    out.push(next(&mut deliveries).await);
    nothing(&mut deliveries).await;
    for delivery in out {
        delivery.settle.ack().await.unwrap();
    }
    for _ in 0..2 {
        next(&mut deliveries).await.settle.ack().await.unwrap();
    }
}

async fn two_consumers_share_the_messages(rig: Rig) {
    let queue = rig.tasks();
    let mut one = rig.bus.consume(&queue, 1).await.unwrap();
    let mut two = rig.bus.consume(&queue, 1).await.unwrap();
    rig.put(&queue, 1).await;
    rig.put(&queue, 2).await;
    let (first, second) = (next(&mut one).await, next(&mut two).await);
    assert_eq!(
        BTreeSet::from([number(&first), number(&second)]),
        BTreeSet::from([1, 2])
    );
    first.settle.ack().await.unwrap();
    second.settle.ack().await.unwrap();
}

async fn another_consumer_gets_the_messages_of_one_that_has_gone(rig: Rig) {
    let queue = rig.tasks();
    let mut leaver = rig.bus.consume(&queue, 2).await.unwrap();
    for number in 0..2 {
        rig.put(&queue, number).await;
    }
    let held = next(&mut leaver).await;
    let mut stayer = rig.bus.consume(&queue, 2).await.unwrap();
    drop(leaver);
    let prefetched = next(&mut stayer).await;
    assert_ne!(
        number(&prefetched),
        number(&held),
        "prefetched messages come first"
    );
    prefetched.settle.ack().await.unwrap();
    nothing(&mut stayer).await;
    drop(held);
    next(&mut stayer).await.settle.ack().await.unwrap();
}

async fn no_message_is_lost_while_consumers_come_and_go(rig: Rig) {
    const ALL: u64 = 300;
    let queue = rig.tasks();
    drop(rig.bus.consume(&queue, 1).await.unwrap());
    let rig = Arc::new(rig);
    let (report, mut done) = tokio::sync::mpsc::channel(16);
    let mut servers = JoinSet::new();
    for _ in 0..3 {
        let (rig, queue, report) = (rig.clone(), queue.clone(), report.clone());
        servers.spawn(async move {
            loop {
                let mut deliveries = rig.bus.consume(&queue, 2).await.unwrap();
                for _ in 0..20 {
                    let delivery = next(&mut deliveries).await;
                    let number = number(&delivery);
                    delivery.settle.ack().await.unwrap();
                    report.send(number).await.unwrap();
                }
            }
        });
    }
    let publish = async {
        for number in 0..ALL {
            rig.put(&queue, number).await;
        }
    };
    let collect = async {
        let mut seen = BTreeSet::new();
        while seen.len() < usize::try_from(ALL).unwrap() {
            let number = tokio::time::timeout(SOON, done.recv())
                .await
                .expect("not all messages came in time")
                .unwrap();
            assert!(seen.insert(number), "note {number} was acknowledged twice");
        }
    };
    tokio::join!(publish, collect);
}

async fn a_body_over_the_bound_is_not_sent(rig: Rig) {
    let queue = rig.tasks();
    let mut deliveries = rig.bus.consume(&queue, 1).await.unwrap();
    let mut message = note(&rig.keys, Audience::Queue(queue.clone()), 1);
    message.body = vec![b' '; MAX_BODY_BYTES + 1];
    let error = rig.bus.publish(&queue, &message).await.unwrap_err();
    assert!(
        matches!(error, BusError::TooLarge { bytes, .. } if bytes == MAX_BODY_BYTES + 1),
        "{error}"
    );
    message.body.pop();
    rig.bus.publish(&queue, &message).await.unwrap();
    assert_eq!(next(&mut deliveries).await.message.body.len(), MAX_BODY_BYTES);
}

async fn a_full_queue_refuses_messages(rig: Rig) {
    let queue = Queue::Tasks {
        resource: Resource::Network,
        zone: format!("{}-full", rig.tasks()),
    };
    drop(rig.bus.consume(&queue, 1).await.unwrap());
    let rig = Arc::new(rig);
    let mut publishers = JoinSet::new();
    for _ in 0..64 {
        let (rig, queue) = (rig.clone(), queue.clone());
        publishers.spawn(async move {
            let mut taken = 0;
            let error = loop {
                let message = note(&rig.keys, Audience::Queue(queue.clone()), taken);
                match rig.bus.publish(&queue, &message).await {
                    Ok(()) => taken += 1,
                    Err(error) => break error,
                }
                assert!(taken <= MAX_QUEUE_LENGTH as u64 + 64, "the queue has no limit");
            };
            assert!(matches!(error, BusError::Full { .. }), "{error}");
            taken
        });
    }
    let taken: u64 = publishers.join_all().await.into_iter().sum();
    assert!(taken >= MAX_QUEUE_LENGTH as u64, "{taken}");
}

async fn a_closed_bus_ends_its_deliveries_and_takes_no_message(rig: Rig) {
    let queue = rig.tasks();
    let mut deliveries = rig.bus.consume(&queue, 1).await.unwrap();
    rig.bus.health().await.unwrap();
    rig.bus.close().await;
    assert!(deliveries.recv().await.is_none());
    let message = note(&rig.keys, Audience::Queue(queue.clone()), 1);
    assert!(matches!(
        rig.bus.publish(&queue, &message).await,
        Err(BusError::Closed)
    ));
    assert!(matches!(rig.bus.consume(&queue, 1).await, Err(BusError::Closed)));
    assert!(matches!(rig.bus.health().await, Err(BusError::Closed)));
}

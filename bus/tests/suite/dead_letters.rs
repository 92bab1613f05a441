//! Messages that nobody could deal with.

use ringfence_bus::{DELIVERY_LIMIT, Queue};

use crate::rig::{Rig, next, nothing};

crate::stories!(dead_letters:
    a_message_that_is_given_back_too_often_ends_among_the_dead_letters,
    a_message_that_is_dropped_too_often_ends_there_too,
    a_rejected_task_goes_to_the_dead_letters_at_once,
    a_rejected_question_goes_to_the_dead_letters_at_once,
);

async fn a_message_that_is_given_back_too_often_ends_among_the_dead_letters(rig: Rig) {
    let queue = rig.tasks();
    let mut deliveries = rig.bus.consume(&queue, 1).await.unwrap();
    let message = rig.put(&queue, 1).await;
    for _ in 0..=DELIVERY_LIMIT {
        next(&mut deliveries).await.settle.requeue().await.unwrap();
    }
    nothing(&mut deliveries).await;
    let letters = rig.dead_letters_of(&queue).await;
    assert_eq!(letters.len(), 1);
    assert_eq!(letters[0].id, message.id.to_string());
    assert_eq!(letters[0].kind, message.kind);
    assert_eq!(letters[0].reason, "delivery_limit");
    assert_eq!(letters[0].body, message.body);
    assert_eq!(letters[0].bytes, message.body.len() as u64);
    assert!(rig.bus.dead_letter_count().await.is_ok());
}

async fn a_message_that_is_dropped_too_often_ends_there_too(rig: Rig) {
    let queue = rig.tasks();
    let mut deliveries = rig.bus.consume(&queue, 1).await.unwrap();
    rig.put(&queue, 1).await;
    for _ in 0..=DELIVERY_LIMIT {
        drop(next(&mut deliveries).await);
    }
    nothing(&mut deliveries).await;
    assert_eq!(rig.dead_letters_of(&queue).await[0].reason, "delivery_limit");
}

async fn a_rejected_task_goes_to_the_dead_letters_at_once(rig: Rig) {
    let queue = rig.tasks();
    rejected(rig, queue).await;
}

async fn a_rejected_question_goes_to_the_dead_letters_at_once(rig: Rig) {
    let queue = rig.questions();
    rejected(rig, queue).await;
}

async fn rejected(rig: Rig, queue: Queue) {
    let mut deliveries = rig.bus.consume(&queue, 1).await.unwrap();
    let message = rig.put(&queue, 1).await;
    next(&mut deliveries).await.settle.reject().await.unwrap();
    nothing(&mut deliveries).await;
    let letters = rig.dead_letters_of(&queue).await;
    assert_eq!(letters.len(), 1);
    assert_eq!(
        (letters[0].id.clone(), letters[0].reason.as_str()),
        (message.id.to_string(), "rejected")
    );
    assert_eq!(letters[0].body, message.body);
    // To look at one does not take it away.
    assert_eq!(rig.dead_letters_of(&queue).await, letters);
}

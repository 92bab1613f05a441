//! Messages that could not be handled.

use std::sync::Arc;

use ringfence_bus::{
    About, AmqpBus, AmqpConfig, Audience, ClaimRequest, DELIVERY_LIMIT, Message, Payload, Queue,
};
use ringfence_core::{AttemptId, Claim, FencingKind, Generation, HostId, OperationId, Outcome, TaskResult};
use uuid::Uuid;

use crate::rig::{Note, Rig, eventually, next, nothing};

crate::stories!(dead_letters:
    a_message_that_is_requeued_too_often_becomes_a_dead_letter,
    a_message_that_is_dropped_too_often_becomes_a_dead_letter,
    a_rejected_task_becomes_a_dead_letter_at_once,
    a_rejected_question_becomes_a_dead_letter_at_once,
    dead_letters_are_counted_by_queue_and_the_newest_are_shown_first,
    dead_letters_of_one_queue_are_removed_and_the_others_stay,
    a_dead_letter_names_its_host_and_attempt,
);

async fn a_message_that_is_requeued_too_often_becomes_a_dead_letter(rig: Rig) {
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
    assert!(letters[0].died_at.is_some());
    assert!(rig.bus.dead_letter_count().await.is_ok());
}

async fn a_message_that_is_dropped_too_often_becomes_a_dead_letter(rig: Rig) {
    let queue = rig.tasks();
    let mut deliveries = rig.bus.consume(&queue, 1).await.unwrap();
    rig.put(&queue, 1).await;
    for _ in 0..=DELIVERY_LIMIT {
        drop(next(&mut deliveries).await);
    }
    nothing(&mut deliveries).await;
    assert_eq!(rig.dead_letters_of(&queue).await[0].reason, "delivery_limit");
}

async fn a_rejected_task_becomes_a_dead_letter_at_once(rig: Rig) {
    let queue = rig.tasks();
    rejected(rig, queue).await;
}

async fn a_rejected_question_becomes_a_dead_letter_at_once(rig: Rig) {
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
    // Reading a dead letter does not remove it.
    assert_eq!(rig.dead_letters_of(&queue).await, letters);
}

/// Gives the rig queues of its own, with their dead letters, because tests share the broker.
async fn alone(mut rig: Rig) -> Rig {
    if rig.is_amqp() {
        let prefix = Uuid::new_v4().simple().to_string();
        let config = AmqpConfig::new(&rig.url(), "bus-suite")
            .unwrap()
            .with_prefix(prefix);
        rig.bus = Arc::new(AmqpBus::connect(config).await.unwrap());
    }
    rig
}

/// Publishes so many messages to a queue and rejects each.
async fn kill(rig: &Rig, queue: &Queue, count: u64) -> Vec<Message> {
    let mut deliveries = rig.bus.consume(queue, 1).await.unwrap();
    let mut messages = Vec::new();
    for number in 0..count {
        messages.push(rig.put(queue, number).await);
        next(&mut deliveries).await.settle.reject().await.unwrap();
    }
    messages
}

/// Waits until there are so many dead letters: the broker moves them after some time.
async fn until_there_are(rig: &Rig, count: u64) {
    eventually(async || match rig.bus.dead_letter_count().await.unwrap() {
        there if there == count => Ok(()),
        there => Err(there),
    })
    .await;
}

async fn dead_letters_are_counted_by_queue_and_the_newest_are_shown_first(rig: Rig) {
    let rig = alone(rig).await;
    let (many, few) = (rig.tasks(), rig.elsewhere());
    kill(&rig, &many, 3).await;
    until_there_are(&rig, 3).await;
    let last = kill(&rig, &few, 1).await.remove(0);
    until_there_are(&rig, 4).await;
    for limit in [2, 2, 100] {
        let survey = rig.bus.survey_dead_letters(limit).await.unwrap();
        assert_eq!(survey.queues.values().sum::<u64>(), 4, "{survey:?}");
        assert!(survey.queues.values().eq(&[3, 1]) || survey.queues.values().eq(&[1, 3]));
        assert_eq!(survey.newest.len(), usize::from(limit).min(4));
        assert_eq!(survey.newest[0].id, last.id.to_string());
        assert!(survey.newest[1].queue != survey.newest[0].queue);
        // Dead letters return to the broker after they were read.
        until_there_are(&rig, 4).await;
    }
    let none = rig.bus.survey_dead_letters(0).await.unwrap();
    assert_eq!(none.newest, []);
}

async fn dead_letters_of_one_queue_are_removed_and_the_others_stay(rig: Rig) {
    let rig = alone(rig).await;
    let (gone, kept) = (rig.tasks(), rig.elsewhere());
    kill(&rig, &gone, 2).await;
    until_there_are(&rig, 2).await;
    kill(&rig, &kept, 1).await;
    until_there_are(&rig, 3).await;
    let before = rig.bus.survey_dead_letters(100).await.unwrap();
    until_there_are(&rig, 3).await;
    let name = &before.newest.last().unwrap().queue;
    assert_eq!(rig.bus.remove_dead_letters(Some(name)).await.unwrap(), 2);
    until_there_are(&rig, 1).await;
    let after = rig.bus.survey_dead_letters(100).await.unwrap();
    assert_eq!(after.newest, before.newest[..1]);
    until_there_are(&rig, 1).await;
    assert_eq!(
        rig.bus
            .remove_dead_letters(Some("ringfence.nowhere"))
            .await
            .unwrap(),
        0
    );
    until_there_are(&rig, 1).await;
    assert_eq!(rig.bus.remove_dead_letters(None).await.unwrap(), 1);
    until_there_are(&rig, 0).await;
}

fn claim() -> Claim {
    Claim {
        host_id: HostId(Uuid::from_u128(7)),
        attempt: AttemptId {
            operation_id: OperationId(Uuid::from_u128(8)),
            number: 3,
        },
        generation: Generation(1),
        kind: FencingKind::PowerOff.into(),
        worker: "worker-1".to_owned(),
        claim_id: Uuid::from_u128(9),
    }
}

async fn dies(rig: &Rig, queue: &Queue, payload: &impl Payload) -> About {
    let mut deliveries = rig.bus.consume(queue, 1).await.unwrap();
    let sealed = rig
        .keys
        .seal(Uuid::new_v4(), &Audience::Queue(queue.clone()), payload)
        .unwrap();
    rig.bus.publish(queue, &sealed).await.unwrap();
    next(&mut deliveries).await.settle.reject().await.unwrap();
    rig.dead_letters_of(queue).await[0].about()
}

async fn a_dead_letter_names_its_host_and_attempt(rig: Rig) {
    let expected = About {
        host: Some(Uuid::from_u128(7).to_string()),
        attempt: Some(format!("{}/3", Uuid::from_u128(8))),
    };
    let asked = ClaimRequest::Claim(claim());
    assert_eq!(dies(&rig, &rig.questions(), &asked).await, expected);
    let result = TaskResult {
        claim: claim(),
        outcome: Outcome::Unknown,
        observation: None,
        finding: None,
        detail: String::new(),
    };
    assert_eq!(dies(&rig, &rig.tasks(), &result).await, expected);
    assert_eq!(
        dies(&rig, &rig.elsewhere(), &Note { number: 1 }).await,
        About::default()
    );
}

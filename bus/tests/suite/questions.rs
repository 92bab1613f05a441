//! Questions and answers.

use std::sync::Arc;
use std::time::Duration;

use ringfence_bus::{Audience, BusError, Delivery};
use tokio::task::JoinSet;

use crate::rig::{A_WHILE, Note, Rig, SOON, next, note, nothing, number};

crate::stories!(questions:
    the_asker_of_a_question_gets_the_answer,
    each_of_many_concurrent_questions_gets_its_own_answer,
    a_question_without_an_answer_in_time_fails,
    a_question_that_no_consumer_took_in_time_is_dropped,
    an_answer_that_comes_too_late_is_ignored,
    a_question_for_a_queue_without_a_consumer_fails_at_once,
);

async fn answer(rig: &Rig, delivery: Delivery) {
    let to = delivery.reply_to.as_ref().expect("a question");
    let audience = Audience::Reply(delivery.message.id);
    let answer = note(&rig.keys, audience, number(&delivery) * 2);
    rig.bus.respond(to, &delivery.message, &answer).await.unwrap();
    delivery.settle.ack().await.unwrap();
}

async fn the_asker_of_a_question_gets_the_answer(rig: Rig) {
    let queue = rig.questions();
    let mut deliveries = rig.bus.consume(&queue, 1).await.unwrap();
    let question = note(&rig.keys, Audience::Queue(queue.clone()), 21);
    let ask = rig.bus.request(&queue, &question, SOON);
    let (reply, ()) = tokio::join!(ask, async { answer(&rig, next(&mut deliveries).await).await });
    let audience = Audience::Reply(question.id);
    assert_eq!(
        rig.keys.open::<Note>(&audience, &reply.unwrap()).unwrap(),
        Note { number: 42 }
    );
}

async fn each_of_many_concurrent_questions_gets_its_own_answer(rig: Rig) {
    let queue = rig.questions();
    let mut deliveries = rig.bus.consume(&queue, 50).await.unwrap();
    let rig = Arc::new(rig);
    let mut asked = JoinSet::new();
    for number in 0..100 {
        let (rig, queue) = (rig.clone(), queue.clone());
        asked.spawn(async move {
            let question = note(&rig.keys, Audience::Queue(queue.clone()), number);
            let reply = rig.bus.request(&queue, &question, SOON).await.unwrap();
            let reply: Note = rig.keys.open(&Audience::Reply(question.id), &reply).unwrap();
            assert_eq!(reply.number, number * 2);
        });
    }
    for _ in 0..100 {
        answer(&rig, next(&mut deliveries).await).await;
    }
    asked.join_all().await;
}

async fn a_question_without_an_answer_in_time_fails(rig: Rig) {
    let queue = rig.questions();
    let mut deliveries = rig.bus.consume(&queue, 1).await.unwrap();
    let question = note(&rig.keys, Audience::Queue(queue.clone()), 1);
    let error = rig.bus.request(&queue, &question, A_WHILE).await.unwrap_err();
    assert!(
        matches!(error, BusError::NoAnswer { waited, .. } if waited == A_WHILE),
        "{error}"
    );
    next(&mut deliveries).await.settle.ack().await.unwrap();
}

async fn a_question_that_no_consumer_took_in_time_is_dropped(rig: Rig) {
    let queue = rig.questions();
    let mut deliveries = rig.bus.consume(&queue, 1).await.unwrap();
    rig.put(&queue, 1).await;
    let busy = next(&mut deliveries).await;
    let question = note(&rig.keys, Audience::Queue(queue.clone()), 2);
    rig.bus.request(&queue, &question, A_WHILE).await.unwrap_err();
    // The broker's clock may differ from the test's.
    tokio::time::sleep(Duration::from_millis(100)).await;
    busy.settle.ack().await.unwrap();
    nothing(&mut deliveries).await;
}

async fn an_answer_that_comes_too_late_is_ignored(rig: Rig) {
    let queue = rig.questions();
    let mut deliveries = rig.bus.consume(&queue, 2).await.unwrap();
    let question = note(&rig.keys, Audience::Queue(queue.clone()), 1);
    rig.bus.request(&queue, &question, A_WHILE).await.unwrap_err();
    let late = next(&mut deliveries).await;
    let question = note(&rig.keys, Audience::Queue(queue.clone()), 5);
    let ask = rig.bus.request(&queue, &question, SOON);
    let (reply, ()) = tokio::join!(ask, async {
        answer(&rig, late).await;
        answer(&rig, next(&mut deliveries).await).await;
    });
    let audience = Audience::Reply(question.id);
    assert_eq!(
        rig.keys.open::<Note>(&audience, &reply.unwrap()).unwrap(),
        Note { number: 10 }
    );
}

async fn a_question_for_a_queue_without_a_consumer_fails_at_once(rig: Rig) {
    let queue = rig.questions();
    let question = note(&rig.keys, Audience::Queue(queue.clone()), 1);
    let error = rig.bus.request(&queue, &question, SOON).await.unwrap_err();
    assert!(matches!(error, BusError::Unroutable { .. }), "{error}");
}

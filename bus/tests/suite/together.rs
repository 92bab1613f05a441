//! Messages for engines are bundled on a broker, and each message is still handled by itself.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures_util::future::join_all;
use lapin::options::{BasicGetOptions, BasicPublishOptions, QueueDeclareOptions};
use lapin::types::FieldTable;
use lapin::{BasicProperties, Channel, Connection, ConnectionProperties};
use ringfence_bus::{AmqpBus, AmqpConfig, Audience, Bus, DeadLetters, Message, Queue};
use uuid::Uuid;

use crate::rabbit::Rabbit;
use crate::rig::{Note, SOON, eventually, keys, next, note, nothing, number};

const MANY: u64 = 200;

async fn bus(rabbit: &Rabbit) -> Arc<AmqpBus> {
    let config = AmqpConfig::new(&rabbit.url(), "bus-suite").unwrap();
    Arc::new(AmqpBus::connect(config).await.unwrap())
}

async fn channel(rabbit: &Rabbit) -> Channel {
    let connection = Connection::connect(&rabbit.url(), ConnectionProperties::default())
        .await
        .unwrap();
    connection.create_channel().await.unwrap()
}

/// The number of AMQP messages that wait in a queue.
async fn waiting(channel: &Channel, queue: &Queue) -> u32 {
    let options = QueueDeclareOptions {
        passive: true,
        ..QueueDeclareOptions::durable()
    };
    let found = channel
        .queue_declare(queue.to_string().into(), options, FieldTable::default())
        .await;
    found.unwrap().message_count()
}

/// Publishes many messages at once to a queue that exists and has no consumer at the moment.
async fn publish_many(bus: &AmqpBus, queue: &Queue) -> BTreeMap<u64, Message> {
    drop(bus.consume(queue, 1).await.unwrap());
    let sealed = |number| (number, note(&keys(), Audience::Queue(queue.clone()), number));
    let messages: BTreeMap<_, _> = (0..MANY).map(sealed).collect();
    eventually(async || bus.publish(queue, &messages[&0]).await).await;
    let publishes = messages
        .values()
        .skip(1)
        .map(|message| bus.publish(queue, message));
    for published in join_all(publishes).await {
        published.unwrap();
    }
    messages
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bundled_messages_arrive_and_are_acknowledged_separately() {
    let rabbit = Rabbit::start().expect("rabbitmq-server");
    let (bus, queue) = (bus(&rabbit).await, Queue::Results);
    let messages = publish_many(&bus, &queue).await;
    let together = waiting(&channel(&rabbit).await, &queue).await;
    assert!(
        u64::from(together) < MANY / 2,
        "{MANY} messages were sent as {together} AMQP messages"
    );

    let mut deliveries = bus.consume(&queue, 4).await.unwrap();
    let (rejected, released, dropped) = (50, 51, 120);
    let mut dealt_with = BTreeSet::new();
    let (mut was_given_back, mut was_dropped) = (false, false);
    while (dealt_with.len() as u64) < MANY {
        let delivery = next(&mut deliveries).await;
        let number = number(&delivery);
        assert_eq!(delivery.message, messages[&number]);
        let read: Note = keys()
            .open(&Audience::Queue(queue.clone()), &delivery.message)
            .unwrap();
        assert_eq!(read.number, number);
        let is_new = dealt_with.insert(number);
        if number == rejected && is_new {
            delivery.settle.reject().await.unwrap();
        } else if number == released && !was_given_back {
            was_given_back = true;
            dealt_with.remove(&number);
            delivery.settle.requeue().await.unwrap();
        } else if number == dropped && !was_dropped {
            was_dropped = true;
            dealt_with.remove(&number);
        } else {
            delivery.settle.ack().await.unwrap();
        }
    }
    // Messages that came a second time, because they were bundled with one that was given back.
    while let Ok(Some(delivery)) = tokio::time::timeout(crate::rig::A_WHILE, deliveries.recv()).await {
        assert!(delivery.redelivered);
        delivery.settle.ack().await.unwrap();
    }
    let letters = bus.dead_letters(100).await.unwrap();
    let ids: Vec<_> = letters.iter().map(|letter| letter.id.clone()).collect();
    assert_eq!(ids, [messages[&rejected].id.to_string()]);
    assert_eq!(letters[0].reason, "rejected");
    drop(deliveries);
    eventually(async || match waiting(&channel(&rabbit).await, &queue).await {
        0 => Ok(()),
        left => Err(left),
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bundled_questions_each_get_their_own_answer() {
    let rabbit = Rabbit::start().expect("rabbitmq-server");
    let (asking, answering, queue) = (bus(&rabbit).await, bus(&rabbit).await, Queue::Claims);
    let mut deliveries = answering.consume(&queue, 64).await.unwrap();
    rabbit.settled().await;
    let answerer = Arc::clone(&answering);
    let serving = tokio::spawn(async move {
        for _ in 0..MANY {
            let delivery = next(&mut deliveries).await;
            let bus = Arc::clone(&answerer);
            tokio::spawn(async move {
                let answer = Note {
                    number: number(&delivery) + 1000,
                };
                let audience = Audience::Reply(delivery.message.id);
                let sealed = keys().seal(Uuid::new_v4(), &audience, &answer).unwrap();
                let to = delivery.reply_to.unwrap();
                bus.respond(&to, &delivery.message, &sealed).await.unwrap();
                delivery.settle.ack().await.unwrap();
            });
        }
        nothing(&mut deliveries).await;
    });
    let ask = async |number| {
        let question = note(&keys(), Audience::Queue(Queue::Claims), number);
        let answer = asking.request(&queue, &question, SOON).await.unwrap();
        let answer: Note = keys().open(&Audience::Reply(question.id), &answer).unwrap();
        assert_eq!(answer.number, number + 1000);
    };
    join_all((0..MANY).map(ask)).await;
    serving.await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bundle_that_cannot_be_read_becomes_one_dead_letter() {
    let rabbit = Rabbit::start().expect("rabbitmq-server");
    let (bus, queue) = (bus(&rabbit).await, Queue::Results);
    let mut deliveries = bus.consume(&queue, 4).await.unwrap();
    rabbit.settled().await;
    let channel = channel(&rabbit).await;
    let properties = BasicProperties::default().with_type("ringfence.bundle.v1".into());
    for body in [&b"[]"[..], b"[{\"id\":1}]", b"no"] {
        let (to, options) = (queue.to_string().into(), BasicPublishOptions::default());
        let sent = channel.basic_publish("".into(), to, options, body, properties.clone());
        sent.await.unwrap().await.unwrap();
    }
    eventually(async || match bus.dead_letter_count().await.unwrap() {
        3 => Ok(()),
        count => Err(count),
    })
    .await;
    for letter in bus.dead_letters(10).await.unwrap() {
        assert_eq!(
            (letter.reason.as_str(), letter.queue.as_str()),
            ("unreadable", "ringfence.results")
        );
    }
    nothing(&mut deliveries).await;
    let left = channel
        .basic_get(queue.to_string().into(), BasicGetOptions::default())
        .await;
    assert!(left.unwrap().is_none());
}

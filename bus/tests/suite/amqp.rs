//! Faults that only a broker has: outages, and messages of other programs.

use std::collections::BTreeSet;
use std::time::Duration;

use lapin::options::{BasicPublishOptions, QueueDeclareOptions};
use lapin::types::FieldTable;
use lapin::{BasicProperties, Connection, ConnectionProperties};
use ringfence_bus::{
    AmqpBus, AmqpConfig, Audience, Bus, BusError, Deliveries, MAX_BODY_BYTES, Message, Queue,
};
use ringfence_core::Resource;

use crate::rabbit::Rabbit;
use crate::rig::{A_WHILE, Rig, SOON, eventually, keys, next, note, nothing, number};

fn queue() -> Queue {
    Queue::Tasks {
        resource: Resource::Power,
        zone: "here".to_owned(),
    }
}

fn message(number: u64) -> Message {
    note(&keys(), Audience::Queue(queue()), number)
}

fn config(rabbit: &Rabbit) -> AmqpConfig {
    AmqpConfig::new(&rabbit.url(), "bus-suite").unwrap()
}

async fn publish(bus: &AmqpBus, number: u64) {
    let message = message(number);
    eventually(async || bus.publish(&queue(), &message).await).await;
}

async fn receive(deliveries: &mut Deliveries, wanted: BTreeSet<u64>) {
    let mut seen = BTreeSet::new();
    while !seen.is_superset(&wanted) {
        let delivery = next(deliveries).await;
        seen.insert(number(&delivery));
        let _ = delivery.settle.ack().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_that_dies_and_returns_loses_no_confirmed_message() {
    let mut rabbit = Rabbit::start().expect("rabbitmq-server");
    let bus = AmqpBus::connect(config(&rabbit)).await.unwrap();
    let mut deliveries = bus.consume(&queue(), 1).await.unwrap();
    rabbit.settled().await;
    for number in 0..20 {
        bus.publish(&queue(), &message(number)).await.unwrap();
    }
    let held = next(&mut deliveries).await;

    rabbit.kill();
    let error = bus.publish(&queue(), &message(99)).await.unwrap_err();
    assert!(matches!(error, BusError::Unavailable { .. }), "{error}");
    assert!(bus.health().await.is_err());
    // The acknowledgement may not reach the broker, which then delivers the message again.
    let _ = held.settle.ack().await;

    // Long enough that neither connection would be tried again for seconds.
    tokio::time::sleep(Duration::from_secs(8)).await;
    rabbit.go();
    drop(next(&mut deliveries).await);
    // The consumer is connected again: a publish must succeed at once, too.
    bus.publish(&queue(), &message(20)).await.unwrap();
    receive(&mut deliveries, (0..=20).collect()).await;
    nothing(&mut deliveries).await;
    eventually(async || bus.health().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_fails_when_the_broker_dies_and_the_next_is_answered() {
    let mut rabbit = Rabbit::start().expect("rabbitmq-server");
    let bus = AmqpBus::connect(config(&rabbit)).await.unwrap();
    let mut deliveries = bus.consume(&queue(), 1).await.unwrap();
    rabbit.settled().await;
    let (place, question) = (queue(), message(1));
    let (answer, ()) = tokio::join!(bus.request(&place, &question, SOON), async {
        drop(next(&mut deliveries).await);
        rabbit.kill();
    });
    assert!(matches!(answer, Err(BusError::Unavailable { .. })), "{answer:?}");

    rabbit.go();
    let reply = note(&keys(), Audience::Reply(question.id), 2);
    let serve = async {
        while let Some(delivery) = deliveries.recv().await {
            if let Some(to) = &delivery.reply_to {
                let _ = bus.respond(to, &delivery.message, &reply).await;
            }
            let _ = delivery.settle.ack().await;
        }
    };
    let ask = eventually(async || bus.request(&queue(), &message(3), Duration::from_secs(2)).await);
    tokio::select! {
        answer = ask => assert_eq!(answer, reply),
        () = serve => panic!("the deliveries ended"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_that_starts_before_its_broker_serves_once_the_broker_runs() {
    let mut rabbit = Rabbit::stopped().expect("rabbitmq-server");
    let bus = AmqpBus::connect_when_there(config(&rabbit));
    let mut deliveries = bus.consume(&queue(), 1).await.unwrap();
    let error = bus.publish(&queue(), &message(1)).await.unwrap_err();
    assert!(matches!(error, BusError::Unavailable { .. }), "{error}");
    assert!(bus.health().await.is_err());
    rabbit.go();
    publish(&bus, 1).await;
    assert_eq!(number(&next(&mut deliveries).await), 1);
    bus.health().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unreachable_broker_is_named_without_the_password() {
    let rabbit = Rabbit::stopped().expect("rabbitmq-server");
    let url = rabbit.url().replace("guest:guest", "ring:hush");
    let error = AmqpBus::connect(AmqpConfig::new(&url, "bus-suite").unwrap())
        .await
        .err()
        .unwrap();
    let said = format!("{error} {error:?}");
    assert!(matches!(error, BusError::Unavailable { .. }), "{said}");
    assert!(said.contains("127.0.0.1:") && !said.contains("hush"), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_password_is_refused_and_not_shown() {
    let rabbit = Rabbit::start().expect("rabbitmq-server");
    let url = rabbit.url().replace("guest:guest", "guest:hush");
    let error = AmqpBus::connect(AmqpConfig::new(&url, "bus-suite").unwrap())
        .await
        .err()
        .unwrap();
    let said = format!("{error} {error:?}");
    assert!(matches!(error, BusError::Refused { .. }), "{said}");
    assert!(said.contains("127.0.0.1:") && !said.contains("hush"), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_with_a_trusted_certificate_is_reached_over_tls() {
    let (_rabbit, url, pem) = Rabbit::start_with_tls().expect("rabbitmq-server");
    let (_other, _, stranger) = Rabbit::start_with_tls().expect("rabbitmq-server");
    let config = AmqpConfig::new(&url, "bus-suite").unwrap();
    for wrong in [config.clone(), config.clone().with_ca_pem(stranger)] {
        let refused = format!("{:?}", AmqpBus::connect(wrong).await.err().unwrap());
        assert!(
            refused.contains("UnknownIssuer") || refused.contains("BadSignature"),
            "{refused}"
        );
    }
    let bus = AmqpBus::connect(config.with_ca_pem(pem)).await.unwrap();
    let mut deliveries = bus.consume(&queue(), 1).await.unwrap();
    publish(&bus, 1).await;
    assert_eq!(number(&next(&mut deliveries).await), 1);
}

/// Writes to a queue without the crate, as any program with access to the broker could.
async fn smuggle(url: &str, queue: &Queue, properties: BasicProperties, body: &[u8]) {
    let connection = Connection::connect(url, ConnectionProperties::default())
        .await
        .unwrap();
    let channel = connection.create_channel().await.unwrap();
    let routing_key = queue.to_string().into();
    let options = BasicPublishOptions::default();
    channel
        .basic_publish("".into(), routing_key, options, body, properties)
        .await
        .unwrap()
        .await
        .unwrap();
    connection.close(200, "done".into()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_that_is_too_large_or_no_message_goes_to_the_dead_letters() {
    let rig = Rig::amqp().await;
    for (queue, body, reason, kept) in [
        (rig.tasks(), vec![b' '; MAX_BODY_BYTES + 1], "too_large", 0),
        (rig.questions(), b"{}".to_vec(), "unreadable", 2),
    ] {
        let mut deliveries = rig.bus.consume(&queue, 1).await.unwrap();
        smuggle(&rig.url(), &queue, BasicProperties::default(), &body).await;
        nothing(&mut deliveries).await;
        let letters = rig.dead_letters_of(&queue).await;
        assert_eq!(
            (letters[0].reason.as_str(), letters[0].bytes),
            (reason, body.len() as u64)
        );
        assert_eq!(letters[0].body.len(), kept);
        rig.put(&queue, 7).await;
        assert_eq!(number(&next(&mut deliveries).await), 7);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_is_sent_only_to_a_queue_for_answers() {
    let rig = Rig::amqp().await;
    let queue = rig.questions();
    let mut deliveries = rig.bus.consume(&queue, 1).await.unwrap();
    let headers = [("ringfence-key", "site"), ("ringfence-signature", "00")];
    let headers =
        headers.map(|(name, value)| (name.into(), lapin::types::AMQPValue::LongString(value.into())));
    let properties = BasicProperties::default()
        .with_message_id("4b1c2f0e-6f0a-4b55-9d43-0a4cf0f2b6ad".into())
        .with_type("note.v1".into())
        .with_headers(std::collections::BTreeMap::from(headers).into())
        .with_reply_to(rig.tasks().to_string().into());
    smuggle(&rig.url(), &queue, properties, br#"{"number":1}"#).await;
    assert_eq!(next(&mut deliveries).await.reply_to, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_expired_question_leaves_no_dead_letter() {
    let rig = Rig::amqp().await;
    let queue = rig.questions();
    let mut deliveries = rig.bus.consume(&queue, 1).await.unwrap();
    rig.put(&queue, 1).await;
    let busy = next(&mut deliveries).await;
    let question = note(&rig.keys, Audience::Queue(queue.clone()), 2);
    rig.bus.request(&queue, &question, A_WHILE).await.unwrap_err();
    tokio::time::sleep(Duration::from_millis(100)).await;
    busy.settle.ack().await.unwrap();
    nothing(&mut deliveries).await;
    let letters = rig.bus.dead_letters(100).await.unwrap();
    assert!(letters.iter().all(|letter| letter.queue != queue.to_string()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_queue_with_an_invalid_name_does_not_exist_and_gets_no_message() {
    let rabbit = Rabbit::start().expect("rabbitmq-server");
    let bus = AmqpBus::connect(config(&rabbit)).await.unwrap();
    let long = Queue::Tasks {
        resource: Resource::Power,
        zone: "z".repeat(255),
    };
    assert_eq!(bus.queue_load(&long).await.unwrap(), None);
    let error = bus.publish(&long, &message(1)).await.unwrap_err();
    assert!(error.to_string().contains("cannot be sent"), "{error}");
    assert!(bus.consume(&long, 1).await.is_err());
    bus.close().await;
}

/// Declares the queue with other properties, as an administrator or another build may have done.
async fn declare_with_other_properties(url: &str, queue: &Queue) {
    let connection = Connection::connect(url, ConnectionProperties::default())
        .await
        .unwrap();
    let channel = connection.create_channel().await.unwrap();
    let options = QueueDeclareOptions::durable();
    channel
        .queue_declare(queue.to_string().into(), options, FieldTable::default())
        .await
        .unwrap();
    connection.close(200, "made".into()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_queue_that_cannot_be_consumed_disturbs_no_other_queue() {
    let rabbit = Rabbit::start().expect("rabbitmq-server");
    let bus = AmqpBus::connect(config(&rabbit)).await.unwrap();
    let odd = Queue::Tasks {
        resource: Resource::Power,
        zone: "odd".to_owned(),
    };
    declare_with_other_properties(&rabbit.url(), &odd).await;
    let mut deliveries = bus.consume(&queue(), 1).await.unwrap();
    publish(&bus, 1).await;
    let held = next(&mut deliveries).await;

    for _ in 0..3 {
        let error = bus.consume(&odd, 1).await.err();
        assert!(matches!(error, Some(BusError::Refused { .. })), "{error:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
        bus.health().await.unwrap();
        assert_eq!(
            bus.queue_load(&queue()).await.unwrap().map(|load| load.consumers),
            Some(1)
        );
    }
    held.settle.ack().await.unwrap();
    publish(&bus, 2).await;
    assert_eq!(
        number(&next(&mut deliveries).await),
        2,
        "the first message is delivered again"
    );
    bus.close().await;
}

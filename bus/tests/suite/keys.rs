//! Signatures: which messages are accepted.

use ringfence_bus::{Audience, BusError, Key, Keys, MAX_BODY_BYTES, Message, Payload, Queue};
use ringfence_core::Resource;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::rig::{Note, Rig, key, keys, next, note};

#[derive(Debug, Serialize, Deserialize)]
struct OtherNote {
    number: u64,
}

impl Payload for OtherNote {
    const KIND: &'static str = "other-note.v1";
}

fn here() -> Audience {
    Audience::Queue(Queue::Tasks {
        resource: Resource::Power,
        zone: "here".to_owned(),
    })
}

fn assert_forged(message: &Message) {
    let error = keys().open::<Note>(&here(), message).unwrap_err();
    assert!(matches!(error, BusError::BadSignature { .. }), "{error}");
}

crate::stories!(keys: a_message_that_was_forged_on_its_way_is_refused);

async fn a_message_that_was_forged_on_its_way_is_refused(rig: Rig) {
    let queue = rig.tasks();
    let mut deliveries = rig.bus.consume(&queue, 1).await.unwrap();
    let mut message = note(&rig.keys, Audience::Queue(queue.clone()), 1);
    message.body = br#"{"number":2}"#.to_vec();
    rig.bus.publish(&queue, &message).await.unwrap();
    let delivery = next(&mut deliveries).await;
    let read = rig.keys.open::<Note>(&Audience::Queue(queue), &delivery.message);
    assert!(matches!(read, Err(BusError::BadSignature { .. })));
    delivery.settle.reject().await.unwrap();
}

#[test]
fn a_changed_body_type_or_id_is_refused() {
    let message = note(&keys(), here(), 1);
    assert_eq!(
        keys().open::<Note>(&here(), &message).unwrap(),
        Note { number: 1 }
    );
    assert_forged(&Message {
        body: br#"{"number":9}"#.to_vec(),
        ..message.clone()
    });
    assert_forged(&Message {
        kind: OtherNote::KIND.to_owned(),
        ..message.clone()
    });
    assert_forged(&Message {
        id: Uuid::new_v4(),
        ..message
    });
}

#[test]
fn a_missing_short_or_wrong_signature_is_refused() {
    let message = note(&keys(), here(), 1);
    assert_forged(&Message {
        signature: Vec::new(),
        ..message.clone()
    });
    assert_forged(&Message {
        signature: message.signature[..31].to_vec(),
        ..message.clone()
    });
    assert_forged(&Message {
        signature: vec![0; 32],
        ..message
    });
}

#[test]
fn a_message_of_an_unknown_key_is_refused() {
    let stranger = Keys::new(vec![key("stranger", 9)]).unwrap();
    assert_forged(&note(&stranger, here(), 1));
    let namesake = Keys::new(vec![key("site", 9)]).unwrap();
    assert_forged(&note(&namesake, here(), 1));
}

#[test]
fn a_message_is_accepted_only_in_its_own_queue() {
    let elsewhere = Audience::Queue(Queue::Tasks {
        resource: Resource::Power,
        zone: "elsewhere".to_owned(),
    });
    assert_forged(&note(&keys(), elsewhere, 1));
    assert_forged(&note(&keys(), Audience::Reply(Uuid::new_v4()), 1));
}

#[test]
fn a_signed_message_of_another_type_is_unreadable() {
    let message = keys()
        .seal(Uuid::new_v4(), &here(), &OtherNote { number: 1 })
        .unwrap();
    let error = keys().open::<Note>(&here(), &message).unwrap_err();
    assert!(
        matches!(
            error,
            BusError::Unreadable {
                wanted: "note.v1",
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn keys_are_changed_one_service_at_a_time() {
    let (old, new) = (key("2026", 1), key("2027", 2));
    let before = Keys::new(vec![old.clone()]).unwrap();
    let during = Keys::new(vec![new.clone(), old]).unwrap();
    let after = Keys::new(vec![new]).unwrap();
    assert!(during.open::<Note>(&here(), &note(&before, here(), 1)).is_ok());
    assert!(after.open::<Note>(&here(), &note(&during, here(), 1)).is_ok());
    assert!(before.open::<Note>(&here(), &note(&after, here(), 1)).is_err());
    assert!(after.open::<Note>(&here(), &note(&before, here(), 1)).is_err());
}

#[test]
fn a_body_over_the_bound_is_refused_before_it_is_read() {
    let message = Message {
        body: vec![b' '; MAX_BODY_BYTES + 1],
        ..note(&keys(), here(), 1)
    };
    assert!(matches!(
        keys().open::<Note>(&here(), &message),
        Err(BusError::TooLarge { .. })
    ));
}

#[test]
fn a_short_key_or_none_at_all_is_refused_without_being_shown() {
    let error = Key::new("site", b"hush").unwrap_err().to_string();
    assert!(
        error.contains("at least 32") && !error.contains("hush"),
        "{error}"
    );
    assert!(Keys::new(Vec::new()).is_err());
    assert!(!format!("{:?}", key("site", 0x41)).contains("65"));
}

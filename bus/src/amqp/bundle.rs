//! Several messages in one of AMQP's.
//!
//! What a message costs the broker hardly depends on its length. Messages that wait to go to one place go as one;
//! each stays itself, with its id, its signature and its trace, and is read and settled for itself.

use lapin::BasicProperties;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use uuid::Uuid;

use super::wire::{PERSISTENT, Unfit};
use crate::{BusError, MAX_BODY_BYTES, Message};

/// The type that says that a message holds others.
pub(super) const KIND: &str = "ringfence.bundle.v1";
/// The most that go together.
pub(super) const MOST: usize = 32;
/// What a message has besides its body, in bytes, at most.
const ENVELOPE_BYTES: usize = 1024;

/// One message of a bundle.
pub(super) struct Piece {
    pub message: Message,
    /// The question that it answers.
    pub question: Option<Uuid>,
}

impl Piece {
    /// What it adds to a bundle, at most.
    pub fn bytes(&self) -> usize {
        let trace = self.message.trace.as_ref().map_or(0, String::len);
        self.message.body.len() + trace + ENVELOPE_BYTES
    }
}

/// A piece as it is written.
#[derive(Serialize, Deserialize)]
struct Written<T> {
    id: Uuid,
    kind: String,
    key: String,
    signature: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    question: Option<Uuid>,
    /// Kept to the letter, as it was signed.
    body: T,
}

/// How many of these pieces fit into one message, at least one.
pub(super) fn fitting<'a>(pieces: impl Iterator<Item = &'a Piece>) -> usize {
    let mut bytes = 0;
    let fits = pieces.take(MOST).take_while(|piece| {
        bytes += piece.bytes();
        bytes <= MAX_BODY_BYTES
    });
    fits.count().max(1)
}

/// The body and the properties of the message that holds them.
pub(super) fn bind(pieces: &[Piece]) -> Result<(BasicProperties, Vec<u8>), BusError> {
    let written = pieces.iter().map(write).collect::<Result<Vec<_>, _>>()?;
    let body = serde_json::to_vec(&written).map_err(unwritable)?;
    let properties = BasicProperties::default()
        .with_content_type("application/json".into())
        .with_delivery_mode(PERSISTENT)
        .with_type(KIND.into());
    Ok((properties, body))
}

fn write(piece: &Piece) -> Result<Written<&RawValue>, BusError> {
    let message = &piece.message;
    Ok(Written {
        id: message.id,
        kind: message.kind.clone(),
        key: message.key_id.clone(),
        signature: hex::encode(&message.signature),
        trace: message.trace.clone(),
        question: piece.question,
        body: serde_json::from_slice(&message.body).map_err(unwritable)?,
    })
}

fn unwritable(source: serde_json::Error) -> BusError {
    BusError::Unreadable {
        kind: KIND.to_owned(),
        wanted: "JSON",
        source: Some(source),
    }
}

pub(super) fn is_one(properties: &BasicProperties) -> bool {
    properties
        .kind()
        .as_ref()
        .is_some_and(|kind| kind.as_str() == KIND)
}

/// The messages of a bundle, not yet believed.
pub(super) fn unbind(body: &[u8]) -> Result<Vec<Piece>, Unfit> {
    if body.len() > MAX_BODY_BYTES {
        return Err(Unfit::TooLarge);
    }
    let written: Vec<Written<&RawValue>> = serde_json::from_slice(body).map_err(|_| Unfit::Unreadable)?;
    if written.is_empty() || written.len() > MOST {
        return Err(Unfit::Unreadable);
    }
    written.into_iter().map(read).collect()
}

fn read(piece: Written<&RawValue>) -> Result<Piece, Unfit> {
    Ok(Piece {
        question: piece.question,
        message: Message {
            id: piece.id,
            kind: piece.kind,
            body: piece.body.get().as_bytes().to_vec(),
            key_id: piece.key,
            signature: hex::decode(piece.signature).map_err(|_| Unfit::Unreadable)?,
            trace: piece.trace,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(number: u128, body: &str) -> Piece {
        Piece {
            message: Message {
                id: Uuid::from_u128(number),
                kind: "result.v1".to_owned(),
                body: body.as_bytes().to_vec(),
                key_id: "k".to_owned(),
                signature: vec![1, 2, 255],
                trace: (number == 1).then(|| "00-a-b-01".to_owned()),
            },
            question: (number == 2).then(|| Uuid::from_u128(9)),
        }
    }

    #[test]
    fn every_message_of_a_bundle_comes_out_as_it_went_in() {
        let pieces = [piece(1, r#"{"b": 1,"a":"ü\n"}"#), piece(2, " [ 1e2 ] ")];
        let (properties, body) = bind(&pieces).unwrap();
        assert!(is_one(&properties));
        let read = unbind(&body).unwrap();
        assert_eq!(read[0].message, pieces[0].message);
        assert_eq!(
            (read[0].question, read[1].question),
            (None, Some(Uuid::from_u128(9)))
        );
        // White space around a body is not part of it; none of ours has any.
        assert_eq!(read[1].message.body, b"[ 1e2 ]");
    }

    #[test]
    fn what_is_no_bundle_is_unfit() {
        let without_body =
            br#"[{"id":"00000000-0000-0000-0000-000000000001","kind":"k","key":"k","signature":""}]"#;
        let odd = br#"[{"id":"00000000-0000-0000-0000-000000000001","kind":"k","key":"k","signature":"f","body":1}]"#;
        for body in [&b"[]"[..], b"{}", b"[1]", b"", without_body, odd] {
            assert!(matches!(unbind(body), Err(Unfit::Unreadable)));
        }
        let many: Vec<_> = (0..=MOST as u128).map(|number| piece(number, "1")).collect();
        let (_, body) = bind(&many).unwrap();
        assert!(matches!(unbind(&body), Err(Unfit::Unreadable)));
        assert!(matches!(
            unbind(&vec![b' '; MAX_BODY_BYTES + 1]),
            Err(Unfit::TooLarge)
        ));
    }

    #[test]
    fn a_bundle_has_bounds_and_takes_one_message_in_any_case() {
        let small: Vec<_> = (0..100).map(|number| piece(number, "1")).collect();
        assert_eq!(fitting(small.iter()), MOST);
        let large = "1".repeat(MAX_BODY_BYTES / 3);
        let large: Vec<_> = (0..10).map(|number| piece(number, &large)).collect();
        assert_eq!(fitting(large.iter()), 2);
        let (_, body) = bind(&large[..2]).unwrap();
        assert!(unbind(&body).is_ok());
        let largest = [piece(1, &"1".repeat(MAX_BODY_BYTES))];
        assert_eq!(fitting(largest.iter()), 1);
    }
}

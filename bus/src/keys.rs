//! The keys that messages are signed with.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use uuid::Uuid;

use crate::wire::check_size;
use crate::{Audience, BusError, Message, Payload};

/// The shortest key, in bytes: as long as the digest (RFC 2104, section 3).
pub const MIN_KEY_BYTES: usize = 32;

/// One key with the id by which messages name it.
#[derive(Clone)]
pub struct Key {
    id: String,
    /// With nothing but the secret in it yet.
    mac: Hmac<Sha256>,
}

impl Key {
    /// Refuses a key that is shorter than [`MIN_KEY_BYTES`].
    pub fn new(id: impl Into<String>, secret: &[u8]) -> Result<Self, BusError> {
        let id = id.into();
        if secret.len() < MIN_KEY_BYTES {
            return Err(BusError::Configuration(format!(
                "signing key {id:?} has {} bytes; at least {MIN_KEY_BYTES} are needed",
                secret.len()
            )));
        }
        let mac = Hmac::new_from_slice(secret)
            .map_err(|_| BusError::Configuration(format!("signing key {id:?} cannot be used")))?;
        Ok(Self { id, mac })
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Key")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

/// The first key signs; all of them are believed, so that keys can be changed one service at a time.
#[derive(Clone, Debug)]
pub struct Keys(Vec<Key>);

impl Keys {
    /// Refuses an empty list.
    pub fn new(keys: Vec<Key>) -> Result<Self, BusError> {
        if keys.is_empty() {
            return Err(BusError::Configuration("no signing key is configured".to_owned()));
        }
        Ok(Self(keys))
    }

    /// Makes a message of a payload. `id` must be new.
    pub fn seal<P: Payload>(&self, id: Uuid, audience: &Audience, payload: &P) -> Result<Message, BusError> {
        let body = serde_json::to_vec(payload).map_err(|source| BusError::Unreadable {
            kind: P::KIND.to_owned(),
            wanted: P::KIND,
            source: Some(source),
        })?;
        check_size(body.len())?;
        let key = self
            .0
            .first()
            .ok_or_else(|| BusError::Configuration("no signing key is configured".to_owned()))?;
        let signature = digest(key, P::KIND, id, audience, &body)
            .finalize()
            .into_bytes()
            .to_vec();
        Ok(Message {
            id,
            kind: P::KIND.to_owned(),
            body,
            key_id: key.id.clone(),
            signature,
            trace: None,
        })
    }

    /// Reads a message if it was signed for this audience with a known key; anything else is refused unread.
    pub fn open<P: Payload>(&self, audience: &Audience, message: &Message) -> Result<P, BusError> {
        check_size(message.body.len())?;
        let bad = || BusError::BadSignature {
            kind: message.kind.clone(),
        };
        let key = self
            .0
            .iter()
            .find(|key| key.id == message.key_id)
            .ok_or_else(bad)?;
        digest(key, &message.kind, message.id, audience, &message.body)
            .verify_slice(&message.signature)
            .map_err(|_| bad())?;
        let unreadable = |source| BusError::Unreadable {
            kind: message.kind.clone(),
            wanted: P::KIND,
            source,
        };
        if message.kind != P::KIND {
            return Err(unreadable(None));
        }
        serde_json::from_slice(&message.body).map_err(|source| unreadable(Some(source)))
    }
}

/// Each field is followed by a newline, which none of them can hold, and the body comes last: no two messages share a text.
fn digest(key: &Key, kind: &str, id: Uuid, audience: &Audience, body: &[u8]) -> Hmac<Sha256> {
    let mut mac = key.mac.clone();
    let audience = match audience {
        Audience::Queue(queue) => format!("queue {queue}"),
        Audience::Reply(request) => format!("reply {request}"),
    };
    for field in ["ringfence", kind, &id.to_string(), &audience] {
        mac.update(field.as_bytes());
        mac.update(b"\n");
    }
    mac.update(body);
    mac
}

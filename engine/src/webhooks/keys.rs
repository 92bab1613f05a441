//! Secrets and signatures.
//!
//! The secret of a subscription is derived from a master key that is in the configuration, so that it is kept nowhere else.
//! Signatures are those of the Standard Webhooks specification, version 1: HMAC-SHA-256 over `id.timestamp.body`, in base64.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use ringfence_core::{SecretVersion, SubscriptionId, Timestamp};
use sha2::Sha256;

use crate::EngineError;

/// The shortest master key, in bytes.
const MIN_KEY_BYTES: usize = 32;

/// A master key.
#[derive(Clone)]
pub struct WebhookKey {
    id: String,
    secret: Vec<u8>,
}

impl WebhookKey {
    /// Refuses a key of less than 32 bytes.
    pub fn new(id: impl Into<String>, secret: Vec<u8>) -> Result<Self, EngineError> {
        let id = id.into();
        if secret.len() < MIN_KEY_BYTES {
            return Err(EngineError::Webhooks(format!(
                "webhook key {id:?} has {} bytes; at least {MIN_KEY_BYTES} are needed",
                secret.len()
            )));
        }
        Ok(Self { id, secret })
    }
}

impl fmt::Debug for WebhookKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebhookKey")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

/// The master keys: new secrets are derived from the first, and those of the others stay good.
#[derive(Clone, Debug)]
pub struct WebhookKeys {
    first: WebhookKey,
    others: Vec<WebhookKey>,
}

impl WebhookKeys {
    /// Refuses an empty list.
    pub fn new(keys: Vec<WebhookKey>) -> Result<Self, EngineError> {
        let mut keys = keys.into_iter();
        let first = keys
            .next()
            .ok_or_else(|| EngineError::Webhooks("no webhook key is configured".to_owned()))?;
        Ok(Self {
            first,
            others: keys.collect(),
        })
    }

    /// What new secrets are derived from.
    pub(crate) fn newest(&self) -> &str {
        &self.first.id
    }

    /// The secret of a subscription; `None` if its master key is not configured.
    pub(crate) fn secret(&self, subscription: SubscriptionId, version: &SecretVersion) -> Option<Secret> {
        let mut keys = std::iter::once(&self.first).chain(&self.others);
        let key = keys.find(|key| key.id == version.key_id)?;
        let text = format!("ringfence webhook secret\n{subscription}\n{}", version.number);
        Some(Secret(digest(&key.secret, &[text.as_bytes()])?))
    }
}

/// A secret that a receiver shares.
#[derive(Clone)]
pub struct Secret(Vec<u8>);

impl Secret {
    /// As it is given to the receiver: `whsec_` and base64.
    #[must_use]
    pub fn expose(&self) -> String {
        format!("whsec_{}", STANDARD.encode(&self.0))
    }

    /// The signature of a message: `v1,` and base64.
    pub(crate) fn sign(&self, message_id: &str, at: Timestamp, body: &[u8]) -> Option<String> {
        let head = format!("{message_id}.{}.", at.timestamp());
        let signature = digest(&self.0, &[head.as_bytes(), body])?;
        Some(format!("v1,{}", STANDARD.encode(signature)))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(not shown)")
    }
}

fn digest(key: &[u8], parts: &[&[u8]]) -> Option<Vec<u8>> {
    // HMAC takes keys of any length.
    let mut mac = Hmac::<Sha256>::new_from_slice(key).ok()?;
    for part in parts {
        mac.update(part);
    }
    Some(mac.finalize().into_bytes().to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example in the specification's reference libraries.
    #[test]
    fn a_signature_equals_that_of_the_specification() {
        let secret = Secret(STANDARD.decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap());
        let at = Timestamp::from_timestamp(1_614_265_330, 0).unwrap();
        let signature = secret
            .sign("msg_p5jXN8AQM9LWM0D4loKWxJek", at, br#"{"test": 2432232314}"#)
            .unwrap();
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn every_subscription_and_every_version_has_a_secret_of_its_own() {
        let keys = WebhookKeys::new(vec![
            WebhookKey::new("new", vec![1; 32]).unwrap(),
            WebhookKey::new("old", vec![2; 32]).unwrap(),
        ])
        .unwrap();
        let version = |key: &str, number| SecretVersion {
            key_id: key.to_owned(),
            number,
        };
        let of = |id: u128, version: &SecretVersion| {
            keys.secret(SubscriptionId(uuid::Uuid::from_u128(id)), version)
                .map(|secret| secret.expose())
        };
        let all = [
            of(1, &version("new", 1)),
            of(1, &version("new", 2)),
            of(1, &version("old", 1)),
            of(2, &version("new", 1)),
        ];
        let different: std::collections::BTreeSet<_> = all.iter().flatten().collect();
        assert_eq!(different.len(), all.len());
        assert_eq!(of(1, &version("lost", 1)), None);
        assert!(!format!("{keys:?}").contains('1'));
    }
}

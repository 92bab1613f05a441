//! The secrets of subscriptions: derived from a master key that is in the configuration, so that they are kept nowhere else.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use ringfence_bus::WebhookSecret;
use ringfence_core::{SecretVersion, SubscriptionId};
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
    pub(crate) fn secret(
        &self,
        subscription: SubscriptionId,
        version: &SecretVersion,
    ) -> Option<WebhookSecret> {
        let mut keys = std::iter::once(&self.first).chain(&self.others);
        let key = keys.find(|key| key.id == version.key_id)?;
        let text = format!("ringfence webhook secret\n{subscription}\n{}", version.number);
        // HMAC takes keys of any length.
        let mut mac = Hmac::<Sha256>::new_from_slice(&key.secret).ok()?;
        mac.update(text.as_bytes());
        Some(WebhookSecret::new(mac.finalize().into_bytes().to_vec()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

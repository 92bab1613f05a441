//! Signatures of calls to others over HTTP: those of the Standard Webhooks specification, version 1, which are HMAC-SHA-256 over
//! `id.timestamp.body`, in base64.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

const PREFIX: &str = "whsec_";
/// The bytes that the specification asks for.
const MIN_BYTES: usize = 24;
const MAX_BYTES: usize = 64;

/// A secret that the one who is called shares.
#[derive(Clone)]
pub struct WebhookSecret(Vec<u8>);

impl WebhookSecret {
    /// Of these bytes.
    #[must_use]
    pub fn new(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// As it is written: `whsec_` and the base64 of 24 to 64 bytes.
    ///
    /// # Errors
    /// What is wrong with it, in words that do not show it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let allowed = format!("{PREFIX} and the base64 of {MIN_BYTES} to {MAX_BYTES} bytes is allowed");
        let encoded = text
            .trim()
            .strip_prefix(PREFIX)
            .ok_or_else(|| format!("does not begin with {PREFIX}; {allowed}"))?;
        let bytes = STANDARD
            .decode(encoded)
            .map_err(|_| format!("is not base64; {allowed}"))?;
        match bytes.len() {
            MIN_BYTES..=MAX_BYTES => Ok(Self(bytes)),
            length => Err(format!("has {length} bytes; {allowed}")),
        }
    }

    /// As it is given to the one who is called.
    #[must_use]
    pub fn expose(&self) -> String {
        format!("{PREFIX}{}", STANDARD.encode(&self.0))
    }

    /// The signature of a message at this second since 1970: `v1,` and base64.
    #[must_use]
    pub fn sign(&self, message_id: &str, timestamp: i64, body: &[u8]) -> Option<String> {
        // HMAC takes keys of any length.
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).ok()?;
        mac.update(format!("{message_id}.{timestamp}.").as_bytes());
        mac.update(body);
        Some(format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes())))
    }
}

impl fmt::Debug for WebhookSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WebhookSecret(not shown)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example in the specification's reference libraries.
    #[test]
    fn a_signature_equals_that_of_the_specification() {
        let secret = WebhookSecret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let signature = secret
            .sign(
                "msg_p5jXN8AQM9LWM0D4loKWxJek",
                1_614_265_330,
                br#"{"test": 2432232314}"#,
            )
            .unwrap();
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        assert_eq!(secret.expose(), "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
        assert!(!format!("{secret:?}").contains("MfKQ"));
    }

    #[test]
    fn a_secret_that_is_not_one_is_refused_without_being_shown() {
        for (text, why) in [
            ("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "does not begin with whsec_"),
            ("whsec_not base64", "is not base64"),
            ("whsec_c2hvcnQ=", "has 5 bytes"),
        ] {
            let said = WebhookSecret::parse(text).unwrap_err();
            assert!(said.starts_with(why), "{said}");
            assert!(!said.contains(text), "{said}");
        }
    }
}

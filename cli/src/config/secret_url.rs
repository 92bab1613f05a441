//! URLs with passwords in them.

use std::fmt;

use serde::{Deserialize, Serialize};
use url::Url;

/// A URL whose password only [`SecretUrl::expose`] shows.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct SecretUrl(String);

impl SecretUrl {
    /// Does not check the URL.
    pub fn new(url: impl Into<String>) -> Self {
        Self(url.into())
    }

    /// The whole URL, with its password.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SecretUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without an authority it is not known where the password is.
        let Some(mut url) = Url::parse(&self.0).ok().filter(Url::has_authority) else {
            return f.write_str("***");
        };
        if url.password().is_some() && url.set_password(Some("***")).is_err() {
            return f.write_str("***");
        }
        // A driver may take a password as a parameter too.
        let is_secret = |key: &str| key.contains("password") || key.contains("secret");
        if url.query_pairs().any(|(key, _)| is_secret(&key)) {
            url.set_query(Some("***"));
        }
        f.write_str(url.as_str())
    }
}

impl fmt::Debug for SecretUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for SecretUrl {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_in_urls_are_masked_wherever_they_stand() {
        for url in [
            "amqp://u:hush@h/v",
            "postgres://h/d?user=u&password=hush",
            "u:hush@nothing like a url",
        ] {
            assert!(!SecretUrl::new(url).to_string().contains("hush"));
        }
    }
}

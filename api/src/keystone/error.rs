//! Why Keystone could not be asked.

use std::time::Duration;

/// Why it is not known whether a token works. Never says anything of a token.
#[derive(Debug, thiserror::Error)]
pub enum KeystoneError {
    /// No connection, or one that broke.
    #[error("Keystone cannot be reached")]
    Unreachable(#[source] reqwest::Error),
    /// No answer in time.
    #[error("Keystone has not answered within {} ms", _0.as_millis())]
    Silent(Duration),
    /// An answer that means nothing here.
    #[error("Keystone answered with status {0}")]
    Status(u16),
    /// An answer that is none of Keystone's.
    #[error("Keystone's answer cannot be understood: {0}")]
    Rubbish(String),
    /// Our own user or password is wrong.
    #[error("Keystone does not let the service's own user in")]
    Refused,
    /// Our own user lacks a role.
    #[error(
        "the service's own user may not validate tokens in Keystone; it needs the role service or admin there"
    )]
    MayNotAsk,
    /// The password is not where it should be.
    #[error("the password of the service's own user cannot be read: {0}")]
    Password(String),
}

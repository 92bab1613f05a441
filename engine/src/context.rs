//! Who asks for a change, and from where.

use ringfence_core::Actor;

use crate::HeldKey;

/// Goes into the audit trail with every change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Context {
    /// The name of the person or service.
    pub actor: String,
    /// Whether it may override.
    pub is_admin: bool,
    /// The network address that it speaks from.
    pub origin: Option<String>,
    /// The API request.
    pub request_id: Option<String>,
    /// The key that the request came with, if it is to be carried out once only.
    pub key: Option<HeldKey>,
}

impl Context {
    /// Ringfence itself: timers and the like.
    #[must_use]
    pub fn own(actor: &str) -> Self {
        Self {
            actor: actor.to_owned(),
            is_admin: false,
            origin: None,
            request_id: None,
            key: None,
        }
    }

    /// As the rules see it.
    #[must_use]
    pub fn actor(&self) -> Actor {
        Actor {
            name: self.actor.clone(),
            is_admin: self.is_admin,
        }
    }
}

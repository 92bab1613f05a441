//! Whom a token belongs to, by the token file or by Keystone.

use std::sync::Arc;

use ringfence_core::Timestamp;

use crate::role::Role;
use crate::session::OwnSession;

/// A caller whose token works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    /// For the audit trail.
    pub actor: Arc<str>,
    /// What it allows, or why it allows nothing.
    pub role: Result<Role, Arc<str>>,
    /// When it stops working.
    pub expires_at: Option<Timestamp>,
}

/// What a caller shows.
#[derive(Clone)]
pub(crate) struct Credentials {
    pub token: String,
    /// Of the service that asks for the caller, where one does.
    pub service_token: Option<String>,
    /// Of the browser, where one asks that is signed in.
    pub session: Option<OwnSession>,
}

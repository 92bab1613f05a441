//! Sessions.

use chrono::{DateTime, Utc};
use ringfence_db::SessionRow;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

/// A browser that is signed in.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SessionView {
    pub id: Uuid,
    /// Whose it is, as in the audit trail.
    pub actor: String,
    /// reader, service, operator or admin; told of the session that asks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<&'static str>,
    /// The network address that was signed in from.
    pub address: Option<String>,
    pub signed_in_at: DateTime<Utc>,
    /// When it ends by itself.
    pub expires_at: DateTime<Utc>,
    /// Whether it is the one that asks.
    pub is_current: bool,
}

/// The sessions of a caller.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SessionList {
    pub sessions: Vec<SessionView>,
}

/// What can be signed in with.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct WaysView {
    /// token, and keystone where one is configured
    #[schema(example = json!(["token", "keystone"]))]
    pub ways: Vec<&'static str>,
}

impl SessionView {
    pub fn new(session: SessionRow, current: Option<Uuid>, role: Option<&'static str>) -> Self {
        let is_current = current == Some(session.id);
        Self {
            id: session.id,
            actor: session.actor,
            role: role.filter(|_| is_current),
            address: session.address,
            signed_in_at: session.signed_in_at,
            expires_at: session.expires_at,
            is_current,
        }
    }
}

//! Who asks for a change, and from where.

use ringfence_core::{Actor, HostId, Timestamp};
use ringfence_db::AuditEntry;
use serde_json::{Map, Value};

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
    /// What the caller calls the course of things that the request is a part of: OpenStack's global request id.
    pub global_request_id: Option<String>,
    /// The key that the request came with, if it is to be carried out once only.
    pub key: Option<HeldKey>,
    /// The revision that what is changed has to be at, as the caller has read it: a host, or the operation that is stopped or tried again.
    pub if_revision: Option<u64>,
    /// A program that asks by itself: safeguards hold its fence as they hold an automatic one, its rejoin is refused where the host is in quarantine or
    /// suspended, and its evacuation where the host is suspended.
    pub heeds_safeguards: bool,
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
            global_request_id: None,
            key: None,
            if_revision: None,
            heeds_safeguards: false,
        }
    }

    /// A caller that heeds safeguards.
    #[must_use]
    pub fn as_program(self) -> Self {
        Self {
            heeds_safeguards: true,
            ..self
        }
    }

    /// A caller who wants a change made only to what is at this revision.
    #[must_use]
    pub fn only_at(self, revision: Option<u64>) -> Self {
        Self {
            if_revision: revision,
            ..self
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

    /// A line of the audit trail about something that it does.
    pub(crate) fn line(
        &self,
        at: Timestamp,
        action: &str,
        target: Option<&str>,
        host_id: Option<HostId>,
        detail: Value,
    ) -> AuditEntry {
        AuditEntry {
            at,
            actor: self.actor.clone(),
            origin: self.origin.clone(),
            request_id: self.request_id.clone(),
            action: action.to_owned(),
            target: target.map(ToOwned::to_owned),
            host_id,
            detail: self.with_global_id(detail),
        }
    }

    /// Among the particulars, where a filter of the trail finds it.
    fn with_global_id(&self, detail: Value) -> Value {
        let Some(id) = &self.global_request_id else {
            return detail;
        };
        let mut fields = match detail {
            Value::Object(fields) => fields,
            Value::Null => Map::new(),
            other => return other,
        };
        fields.insert(AuditEntry::GLOBAL_REQUEST_ID.to_owned(), Value::from(id.as_str()));
        Value::Object(fields)
    }
}

//! Keystone's answers, as far as they matter here.

use ringfence_core::Timestamp;
use serde::Deserialize;

#[derive(Debug, Deserialize)]
pub(super) struct TokenAnswer {
    pub token: TokenBody,
}

#[derive(Debug, Deserialize)]
pub(super) struct TokenBody {
    pub user: UserBody,
    pub expires_at: Timestamp,
    pub issued_at: Timestamp,
    #[serde(default)]
    pub roles: Vec<RoleBody>,
    pub project: Option<ProjectBody>,
    pub domain: Option<DomainBody>,
    pub system: Option<SystemBody>,
}

#[derive(Debug, Deserialize)]
pub(super) struct UserBody {
    pub id: String,
    pub name: String,
    pub domain: DomainBody,
}

#[derive(Debug, Deserialize)]
pub(super) struct RoleBody {
    pub name: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct ProjectBody {
    pub id: String,
    pub name: String,
    pub domain: Option<DomainBody>,
}

/// A project that is a domain is in none: its domain has no name.
#[derive(Debug, Deserialize)]
pub(super) struct DomainBody {
    pub name: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct SystemBody {
    #[serde(default)]
    pub all: bool,
}

#[derive(Deserialize)]
struct ErrorAnswer {
    error: ErrorBody,
}

#[derive(Deserialize)]
struct ErrorBody {
    code: u16,
}

/// Whether this is an error in Keystone's form.
pub(super) fn is_error(body: &[u8], code: u16) -> bool {
    serde_json::from_slice::<ErrorAnswer>(body).is_ok_and(|answer| answer.error.code == code)
}

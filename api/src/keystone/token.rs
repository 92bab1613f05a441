//! Whom a token belongs to, as Keystone says.

use std::fmt;

use ringfence_core::Timestamp;

use super::KeystoneError;
use super::wire::{DomainBody, ProjectBody, TokenAnswer};

/// The longest name that is put on record, in characters.
const MAX_NAME_CHARS: usize = 255;

/// A user with the roles and the scope of one token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct User {
    id: String,
    name: String,
    domain: String,
    scope: UserScope,
    roles: Vec<String>,
    pub expires_at: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum UserScope {
    Project {
        id: String,
        name: String,
        domain: String,
    },
    Domain(String),
    System,
    None,
}

impl User {
    pub(super) fn read(body: &[u8]) -> Result<Self, KeystoneError> {
        let TokenAnswer { token } =
            serde_json::from_slice(body).map_err(|error| KeystoneError::Rubbish(error.to_string()))?;
        let scope = match (token.project, token.domain, token.system) {
            (Some(project), ..) => UserScope::project(&project),
            (None, Some(domain), _) => UserScope::Domain(domain_name(Some(&domain))),
            (None, None, Some(system)) if system.all => UserScope::System,
            (None, None, _) => UserScope::None,
        };
        Ok(Self {
            id: plain(&token.user.id),
            name: plain(&token.user.name),
            domain: domain_name(Some(&token.user.domain)),
            scope,
            roles: token.roles.into_iter().map(|role| role.name).collect(),
            expires_at: token.expires_at,
        })
    }

    /// With its domain.
    pub fn name(&self) -> String {
        format!("{}@{}", self.name, self.domain)
    }

    pub fn has_one_of(&self, roles: &[String]) -> bool {
        // OpenStack's own policies look past the case too.
        let is_it = |role: &String| roles.iter().any(|wanted| wanted.eq_ignore_ascii_case(role));
        self.roles.iter().any(is_it)
    }

    pub(super) fn is_system(&self) -> bool {
        self.scope == UserScope::System
    }

    pub(super) fn domain(&self) -> Option<&String> {
        match &self.scope {
            UserScope::Domain(name) => Some(name),
            UserScope::Project { .. } | UserScope::System | UserScope::None => None,
        }
    }

    /// Name and domain.
    pub(super) fn project(&self) -> Option<(&String, &String)> {
        match &self.scope {
            UserScope::Project { name, domain, .. } => Some((name, domain)),
            UserScope::Domain(_) | UserScope::System | UserScope::None => None,
        }
    }

    /// In the words of the configuration.
    pub(super) fn scope(&self) -> String {
        match &self.scope {
            UserScope::Project { name, domain, .. } => format!("project:{name}@{domain}"),
            UserScope::Domain(name) => format!("domain:{name}"),
            UserScope::System => "system".to_owned(),
            UserScope::None => "none".to_owned(),
        }
    }
}

impl UserScope {
    fn project(project: &ProjectBody) -> Self {
        Self::Project {
            id: plain(&project.id),
            name: plain(&project.name),
            domain: domain_name(project.domain.as_ref()),
        }
    }
}

/// For the audit trail: names for people, ids since names can be given to another.
impl fmt::Display for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{} (user {}", self.name, self.domain, self.id)?;
        match &self.scope {
            UserScope::Project { id, name, domain } => write!(f, ", project {name}@{domain} {id})"),
            UserScope::Domain(name) => write!(f, ", domain {name})"),
            UserScope::System => f.write_str(", system)"),
            UserScope::None => f.write_str(")"),
        }
    }
}

/// Empty, and then equal to none in the configuration, where there is none.
fn domain_name(domain: Option<&DomainBody>) -> String {
    let name = domain.and_then(|domain| domain.name.as_deref());
    plain(name.unwrap_or_default())
}

/// Names in Keystone may hold anything.
fn plain(text: &str) -> String {
    let visible = text.chars().filter(|c| !c.is_control());
    visible.take(MAX_NAME_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn user(scope: &serde_json::Value) -> User {
        let mut token = json!({
            "user": { "id": "u1", "name": "ali\nce", "domain": { "id": "d1", "name": "Default" } },
            "issued_at": "2026-01-01T00:00:00.000000Z", "expires_at": "2026-01-01T01:00:00.000000Z",
            "roles": [{ "id": "r1", "name": "Member" }],
        });
        let scope = scope.as_object().unwrap().clone();
        token.as_object_mut().unwrap().extend(scope);
        User::read(json!({ "token": token }).to_string().as_bytes()).unwrap()
    }

    #[test]
    fn every_scope_is_read_and_shown_in_the_audit_trail() {
        let project = |domain| json!({ "project": { "id": "p1", "name": "demo", "domain": domain } });
        for (scope, shown, recorded) in [
            (
                project(json!({ "id": "d1", "name": "Default" })),
                "project:demo@Default",
                "alice@Default (user u1, project demo@Default p1)",
            ),
            // A project that acts as a domain.
            (
                project(json!({ "id": null, "name": null })),
                "project:demo@",
                "alice@Default (user u1, project demo@ p1)",
            ),
            (
                json!({ "domain": { "id": "d2", "name": "site" } }),
                "domain:site",
                "alice@Default (user u1, domain site)",
            ),
            (
                json!({ "system": { "all": true } }),
                "system",
                "alice@Default (user u1, system)",
            ),
            (json!({}), "none", "alice@Default (user u1)"),
        ] {
            let user = user(&scope);
            assert_eq!(
                (user.scope().as_str(), user.to_string().as_str()),
                (shown, recorded)
            );
            assert!(user.has_one_of(&["member".to_owned()]));
        }
    }
}

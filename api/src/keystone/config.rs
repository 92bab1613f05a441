//! How Keystone is reached, and what its roles mean here.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use super::User;
use crate::role::Role;

/// How to reach Keystone and whom to let in.
#[derive(Clone, Debug)]
pub struct KeystoneConfig {
    url: String,
    /// Our own user, who may validate tokens.
    pub user: String,
    /// The name of the domain that it is in.
    pub user_domain: String,
    /// Looked up at each login.
    pub password: Password,
    /// The project that it logs in to.
    pub project: String,
    /// The name of the domain that the project is in.
    pub project_domain: String,
    /// Which of Keystone's roles mean what.
    pub roles: RoleNames,
    /// Tokens of another scope allow nothing. At least one.
    pub scopes: Vec<Scope>,
    /// PEM certificates that may have signed Keystone's, beside those that the system trusts.
    pub ca_pem: Option<Vec<u8>>,
    /// How long one question may take, with everything that it needs.
    pub timeout: Duration,
}

impl KeystoneConfig {
    /// With what most sites have: user `ringfence` of the project `service`, both in `Default`, and the usual roles. `url` may
    /// end with `/v3` or not.
    #[must_use]
    pub fn new(url: &str, password: Password, scopes: Vec<Scope>) -> Self {
        let url = url.trim_end_matches('/');
        Self {
            url: url.strip_suffix("/v3").unwrap_or(url).to_owned(),
            user: "ringfence".to_owned(),
            user_domain: "Default".to_owned(),
            password,
            project: "service".to_owned(),
            project_domain: "Default".to_owned(),
            roles: RoleNames::default(),
            scopes,
            ca_pem: None,
            timeout: Duration::from_secs(5),
        }
    }

    /// The address, without `/v3`.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Whether tokens of the user's scope count; if not, why not.
    pub(super) fn scope_of(&self, user: &User) -> Result<(), Arc<str>> {
        if self.scopes.iter().any(|scope| scope.covers(user)) {
            return Ok(());
        }
        let allowed: Vec<String> = self.scopes.iter().map(Scope::to_string).collect();
        let scope = user.scope();
        Err(format!("the token's scope is {scope}; {} is allowed", allowed.join(", ")).into())
    }

    /// The highest role that one of the user's means, or why there is none.
    pub(super) fn role_of(&self, user: &User) -> Result<Role, Arc<str>> {
        let roles = &self.roles;
        let ranks = [
            (Role::Admin, &roles.admin),
            (Role::Operator, &roles.operator),
            (Role::Service, &roles.service),
            (Role::Reader, &roles.reader),
        ];
        let role = ranks.into_iter().find(|(_, names)| user.has_one_of(names));
        role.map(|(role, _)| role).ok_or_else(|| {
            let all: Vec<&str> = ranks
                .iter()
                .flat_map(|(_, names)| names.iter().map(String::as_str))
                .collect();
            format!("the token has none of the roles {}", all.join(", ")).into()
        })
    }
}

/// Keystone's roles that mean each of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoleNames {
    /// Mean `reader`.
    pub reader: Vec<String>,
    /// Mean `service`; also those that `X-Service-Token` has to have.
    pub service: Vec<String>,
    /// Mean `operator`.
    pub operator: Vec<String>,
    /// Mean `admin`.
    pub admin: Vec<String>,
}

impl Default for RoleNames {
    fn default() -> Self {
        let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        Self {
            reader: names(&["reader"]),
            service: names(&["service"]),
            operator: names(&["manager", "member"]),
            admin: names(&["admin"]),
        }
    }
}

/// What a token has to be scoped to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Anything.
    Any,
    /// The system.
    System,
    /// The domain of this name.
    Domain(String),
    /// The project of this name in the domain of this name.
    Project {
        /// The project.
        name: String,
        /// Its domain.
        domain: String,
    },
}

impl Scope {
    fn covers(&self, user: &User) -> bool {
        match self {
            Self::Any => true,
            Self::System => user.is_system(),
            Self::Domain(domain) => user.domain() == Some(domain),
            Self::Project { name, domain } => user.project() == Some((name, domain)),
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("any"),
            Self::System => f.write_str("system"),
            Self::Domain(domain) => write!(f, "domain:{domain}"),
            Self::Project { name, domain } => write!(f, "project:{name}@{domain}"),
        }
    }
}

impl FromStr for Scope {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || format!("is {text:?}; any, system, domain:DOMAIN or project:PROJECT@DOMAIN is allowed");
        match text.split_once(':') {
            None if text == "any" => Ok(Self::Any),
            None if text == "system" => Ok(Self::System),
            Some(("domain", domain)) if !domain.is_empty() => Ok(Self::Domain(domain.to_owned())),
            Some(("project", project)) => match project.rsplit_once('@') {
                Some((name, domain)) if !name.is_empty() && !domain.is_empty() => Ok(Self::Project {
                    name: name.to_owned(),
                    domain: domain.to_owned(),
                }),
                Some(_) | None => Err(bad()),
            },
            Some(_) | None => Err(bad()),
        }
    }
}

/// Where the password is. It is looked up at each login and not kept.
#[derive(Clone)]
pub struct Password(Arc<LookUp>);

type LookUp = dyn Fn() -> Result<String, String> + Send + Sync;

impl Password {
    /// `look_up` may block on a file; its error says what is wrong without any part of the password.
    pub fn new(look_up: impl Fn() -> Result<String, String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(look_up))
    }

    pub(super) fn look_up(&self) -> Result<String, String> {
        (self.0)()
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_is_read_as_it_is_shown() {
        for text in ["any", "system", "domain:Default", "project:a@b@Default"] {
            assert_eq!(text.parse::<Scope>().unwrap().to_string(), text);
        }
        for text in [
            "",
            "all",
            "domain:",
            "project:service",
            "project:@d",
            "system:all",
        ] {
            let error = text.parse::<Scope>().unwrap_err();
            assert!(error.contains("project:PROJECT@DOMAIN"), "{error}");
        }
    }

    #[test]
    fn the_address_may_end_with_the_version() {
        let at = |url| {
            let config = KeystoneConfig::new(url, Password::new(|| Ok(String::new())), vec![Scope::Any]);
            config.url().to_owned()
        };
        for url in [
            "http://k:5000",
            "http://k:5000/",
            "http://k:5000/v3",
            "http://k:5000/v3/",
        ] {
            assert_eq!(at(url), "http://k:5000");
        }
        assert_eq!(at("https://k/identity/v3"), "https://k/identity");
    }
}

//! Which cloud, and who asks it.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use osauth::{CloudConfig, Session};
use serde_json::{Map, Value, json};
use url::Url;

use crate::BackendError;

/// Who asks, and where.
#[derive(Clone)]
pub enum Credentials {
    /// An entry of a `clouds.yaml`, which is looked for in the working directory, in `~/.config/openstack` and in `/etc/openstack`.
    CloudsYaml(String),
    /// A user with a password, in a project.
    Password(Box<PasswordCredentials>),
}

/// A user with a password, in a project.
#[derive(Clone)]
pub struct PasswordCredentials {
    /// Keystone's address, with `/v3`.
    pub auth_url: Url,
    /// The user.
    pub username: String,
    /// The user's password.
    pub password: String,
    /// The project that the token is for.
    pub project: String,
    /// The domain of the user.
    pub user_domain: String,
    /// The domain of the project.
    pub project_domain: String,
    /// The region, where there are several.
    pub region: Option<String>,
    /// `public`, `internal` or `admin`; public if absent.
    pub interface: Option<String>,
    /// Certificates of authorities that have signed the services' own, beside those that come with the program.
    pub ca_file: Option<PathBuf>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CloudsYaml(entry) => f.debug_tuple("CloudsYaml").field(entry).finish(),
            Self::Password(user) => {
                let mut told = f.debug_struct("Password");
                told.field("auth_url", &user.auth_url.as_str());
                told.field("username", &user.username).finish_non_exhaustive()
            }
        }
    }
}

/// One cloud.
#[derive(Clone, Debug)]
pub struct CloudSettings {
    /// Its name in the configuration, which hosts refer to.
    pub name: String,
    /// Who asks.
    pub credentials: Credentials,
    /// Addresses that count instead of those in the catalogue, by the type of the service.
    pub endpoints: BTreeMap<String, Url>,
    /// How long one call may take.
    pub timeout: Duration,
}

impl CloudSettings {
    /// A session with a fresh token.
    pub(super) async fn session(&self) -> Result<Session, BackendError> {
        let failed = |error: osauth::Error| BackendError::of(&self.name, "keystone", &error);
        let config = match &self.credentials {
            Credentials::CloudsYaml(entry) => CloudConfig::from_config(entry).map_err(failed)?,
            Credentials::Password(user) => self.config(user)?,
        };
        let opening = tokio::time::timeout(self.timeout, config.create_session());
        let opened = opening.await.map_err(|_| BackendError::Late {
            cloud: self.name.clone(),
            service: "keystone",
            limit: self.timeout,
        })?;
        let mut session = opened.map_err(failed)?;
        session.endpoint_overrides_mut().extend(self.endpoints.clone());
        Ok(session)
    }

    /// The same as an entry of a `clouds.yaml`.
    fn config(&self, user: &PasswordCredentials) -> Result<CloudConfig, BackendError> {
        let auth = json!({
            "auth_url": user.auth_url.as_str(),
            "username": user.username,
            "password": user.password,
            "project_name": user.project,
            "user_domain_name": user.user_domain,
            "project_domain_name": user.project_domain,
        });
        let mut entry = Map::from_iter([("auth".to_owned(), auth)]);
        let ca_file = user.ca_file.as_ref().map(|path| path.display().to_string());
        let optional = [
            ("region_name", &user.region),
            ("interface", &user.interface),
            ("cacert", &ca_file),
        ];
        for (key, value) in optional {
            if let Some(value) = value {
                entry.insert(key.to_owned(), Value::from(value.as_str()));
            }
        }
        // What serde says of a value could repeat it.
        serde_json::from_value(entry.into()).map_err(|_| BackendError::Settings {
            cloud: self.name.clone(),
            why: "the credentials cannot be put together".to_owned(),
        })
    }
}

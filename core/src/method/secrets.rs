//! References to secrets.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Method;
use super::parameters::{MAX_PARAMETERS, MAX_VALUE_CHARS, is_parameter_name, is_secret_name};
use crate::{Problems, validate_name};

/// Where a worker finds a secret. The secret itself is never in the database, in a message or in a log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum SecretReference {
    /// `env:NAME`: an environment variable of the worker.
    Env(String),
    /// `file:/absolute/path`: a file that the worker can read; one newline at the end is dropped.
    File(String),
    /// `secret:CLUSTER/SECRET/KEY`: a key of a Secret in Ringfence's own namespace of a Kubernetes cluster.
    Cluster {
        /// The cluster, as `kubernetes.clusters` of the worker names it.
        cluster: String,
        /// The name of the Secret.
        secret: String,
        /// The key of its data.
        key: String,
    },
}

/// The longest name of a Secret or of a key of its data, in characters.
const MAX_SECRET_NAME_CHARS: usize = 253;

impl SecretReference {
    /// Reads `env:NAME`, `file:/path` or `secret:CLUSTER/SECRET/KEY`. The error never repeats the text, which may be a secret put in the
    /// wrong place.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        const HELP: &str = "is not a reference; write env:NAME for an environment variable of the worker (letters, digits and _), \
                            file:/absolute/path for a file that the worker can read, or secret:CLUSTER/SECRET/KEY for a Secret of a \
                            Kubernetes cluster";
        let plain = |c: char| !c.is_control();
        if let Some(name) = text.strip_prefix("env:") {
            let ok = !name.is_empty()
                && name.len() <= 255
                && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            return if ok {
                Ok(Self::Env(name.to_owned()))
            } else {
                Err(HELP)
            };
        }
        if let Some(place) = text.strip_prefix("secret:") {
            return Self::in_cluster(place).ok_or(HELP);
        }
        match text.strip_prefix("file:") {
            Some(path)
                if path.starts_with('/') && path.len() <= MAX_VALUE_CHARS && path.chars().all(plain) =>
            {
                Ok(Self::File(path.to_owned()))
            }
            Some(_) | None => Err(HELP),
        }
    }

    fn in_cluster(place: &str) -> Option<Self> {
        let parts: Vec<&str> = place.split('/').collect();
        let [cluster, secret, key] = parts[..] else {
            return None;
        };
        let are_names =
            validate_name("cluster", cluster).is_ok() && is_object_name(secret) && is_data_key(key);
        are_names.then(|| Self::Cluster {
            cluster: cluster.to_owned(),
            secret: secret.to_owned(),
            key: key.to_owned(),
        })
    }
}

/// Whether Kubernetes takes it for the name of an object.
fn is_object_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let is_part = |part: &str| {
        part.starts_with(plain) && part.ends_with(plain) && part.chars().all(|c| plain(c) || c == '-')
    };
    name.len() <= MAX_SECRET_NAME_CHARS && name.split('.').all(is_part)
}

/// Whether Kubernetes takes it for a key of the data of a Secret.
fn is_data_key(key: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let is_path = key == "." || key.starts_with("..");
    !key.is_empty() && key.len() <= MAX_SECRET_NAME_CHARS && !is_path && key.chars().all(allowed)
}

impl TryFrom<String> for SecretReference {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text)
    }
}

impl From<SecretReference> for String {
    fn from(reference: SecretReference) -> Self {
        reference.to_string()
    }
}

impl fmt::Display for SecretReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Env(name) => write!(f, "env:{name}"),
            Self::File(path) => write!(f, "file:{path}"),
            Self::Cluster { cluster, secret, key } => write!(f, "secret:{cluster}/{secret}/{key}"),
        }
    }
}

/// The names of secrets reach an agent's input as those of parameters do.
pub(super) fn check_secrets(method: &Method, problems: &mut Problems) {
    if method.secrets.len() > MAX_PARAMETERS {
        problems.add(
            "secrets",
            format!(
                "has {} entries; at most {MAX_PARAMETERS} are allowed",
                method.secrets.len()
            ),
        );
    }
    for name in method.secrets.keys() {
        if !is_parameter_name(name) {
            problems.add(
                "secrets",
                format!("has the name {name:?}; 1 to 64 letters, digits, '_' and '-' are allowed"),
            );
        } else if matches!(name.as_str(), "action" | "agent" | "method") {
            problems.add(format!("secrets.{name}"), "must not be given; it is not a secret");
        } else if method.parameters.contains_key(name) && !is_secret_name(name) {
            problems.add(
                format!("secrets.{name}"),
                "is given under \"parameters\" as well; give it once",
            );
        }
    }
}

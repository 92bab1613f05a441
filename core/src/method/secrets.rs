//! References to secrets.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Method;
use super::parameters::{MAX_PARAMETERS, MAX_VALUE_CHARS, is_parameter_name, is_secret_name};
use crate::Problems;

/// Where a worker finds a secret. The secret itself is never in the database, in a message or in a log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum SecretReference {
    /// `env:NAME`: an environment variable of the worker.
    Env(String),
    /// `file:/absolute/path`: a file that the worker can read; one newline at the end is dropped.
    File(String),
}

impl SecretReference {
    /// Reads `env:NAME` or `file:/path`. The error never repeats the text, which may be a secret put in the wrong place.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        const HELP: &str = "is not a reference; write env:NAME for an environment variable of the worker (letters, digits and _) \
                            or file:/absolute/path for a file that the worker can read";
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
        match text.strip_prefix("file:") {
            Some(path)
                if path.starts_with('/') && path.len() <= MAX_VALUE_CHARS && path.chars().all(plain) =>
            {
                Ok(Self::File(path.to_owned()))
            }
            Some(_) | None => Err(HELP),
        }
    }
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

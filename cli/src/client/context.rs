//! Contexts: several services by name, in a file of the user. The file holds no secrets: a context names the file of its token.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use ringfence_core::validate_name;
use serde::{Deserialize, Serialize};

use crate::config::{Environment, config_dir};
use crate::error::CliError;
use crate::tokens::write_private;

const FILE: &str = "contexts.toml";
/// The longest file of contexts.
const MAX_BYTES: usize = 1024 * 1024;

/// How to reach one service.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Context {
    /// Base URL of the service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// File that holds the token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_file: Option<PathBuf>,
    /// PEM certificates to trust beside the system's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<PathBuf>,
    /// Data directory of a standalone service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_dir: Option<PathBuf>,
}

/// The file of contexts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Contexts {
    /// The context that is used where a command names none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current: Option<String>,
    /// All contexts, by name.
    pub contexts: BTreeMap<String, Context>,
    /// The path of the file.
    #[serde(skip)]
    path: PathBuf,
}

impl Contexts {
    /// The user's contexts; none if there is no file yet.
    pub fn read(environment: &Environment) -> Result<Self, CliError> {
        let Some(folder) = config_dir(environment) else {
            return Ok(Self::default());
        };
        let path = folder.join(FILE);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            Err(error) => return Err(CliError::file("read the contexts from", path, error)),
        };
        if text.len() > MAX_BYTES {
            return Err(CliError::content(path, "is longer than 1 MiB"));
        }
        let contexts: Self = toml::from_str(&text).map_err(|error| {
            CliError::content(&path, format!("is no file of contexts: {}", error.message()))
        })?;
        Ok(Self { path, ..contexts })
    }

    /// Writes the contexts, readable for the user alone.
    pub fn write(&self) -> Result<(), CliError> {
        let Some(folder) = self.path.parent().filter(|folder| *folder != Path::new("")) else {
            return Err(CliError::Usage(
                "there is no folder for contexts; set XDG_CONFIG_HOME or HOME".to_owned(),
            ));
        };
        std::fs::create_dir_all(folder).map_err(|error| CliError::file("make the folder", folder, error))?;
        let text = toml::to_string(self)
            .map_err(|error| CliError::service("context", "the contexts cannot be put into words", error))?;
        write_private(&self.path, &text)
    }

    /// The context of this name.
    pub fn named(&self, name: &str) -> Result<&Context, CliError> {
        self.contexts.get(name).ok_or_else(|| {
            let known: Vec<&str> = self.contexts.keys().map(String::as_str).collect();
            let known = if known.is_empty() {
                "there is none; ringfence context set NAME --url URL makes one".to_owned()
            } else {
                format!("there are {}", known.join(", "))
            };
            CliError::Usage(format!("there is no context {name:?}; {known}"))
        })
    }

    /// The context that is used where a command names none.
    pub fn current(&self) -> Result<Option<(&str, &Context)>, CliError> {
        let Some(name) = &self.current else {
            return Ok(None);
        };
        Ok(Some((name, self.named(name)?)))
    }

    /// Adds a context or replaces one. The first context becomes the current one.
    pub fn set(&mut self, name: &str, context: Context) -> Result<(), CliError> {
        validate_name("the name of the context", name)
            .map_err(|problem| CliError::Usage(problem.to_string()))?;
        self.contexts.insert(name.to_owned(), context);
        self.current.get_or_insert_with(|| name.to_owned());
        Ok(())
    }
}

//! A cloud's address and credentials.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use openstack::session::Session;
use osauth::CloudConfig;
use serde::Deserialize;

use super::faults;
use crate::BackendError;

/// The largest `clouds.yaml` that is read, in bytes.
const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// One cloud: an entry of a `clouds.yaml`, in the form that OpenStack's own clients read.
#[derive(Clone)]
pub struct CloudSettings {
    /// The entry's name, which hosts refer to.
    pub name: String,
    /// The file. If there is none, it is looked for in the working directory, in `~/.config/openstack` and in `/etc/openstack`, with a
    /// `secure.yaml` beside it.
    pub file: Option<PathBuf>,
    /// How long one call may take.
    pub timeout: Duration,
}

impl fmt::Debug for CloudSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CloudSettings")
            .field("name", &self.name)
            .field("file", &self.file)
            .finish_non_exhaustive()
    }
}

#[derive(Deserialize)]
struct File {
    clouds: BTreeMap<String, CloudConfig>,
}

impl CloudSettings {
    /// Reads the entry, and makes no call.
    ///
    /// # Errors
    /// There is no such file or entry, or it cannot be read.
    pub fn check(&self) -> Result<(), BackendError> {
        self.config().map(|_| ())
    }

    /// The file that the entry is read from, if there is one.
    #[must_use]
    pub fn path(&self) -> Option<PathBuf> {
        if self.file.is_some() {
            return self.file.clone();
        }
        let home = std::env::home_dir().map(|home| home.join(".config/openstack/clouds.yaml"));
        let places = [
            Some("clouds.yaml".into()),
            home,
            Some("/etc/openstack/clouds.yaml".into()),
        ];
        places.into_iter().flatten().find(|path: &PathBuf| path.is_file())
    }

    /// A session with a fresh token. The entry is read anew, so that a changed password counts.
    pub(super) async fn session(&self) -> Result<Session, BackendError> {
        let opening = tokio::time::timeout(self.timeout, self.config()?.create_session());
        let opened = opening.await.map_err(|_| BackendError::Late {
            platform: faults::label(&self.name),
            service: "keystone",
            limit: self.timeout,
        })?;
        opened.map_err(|error| faults::of(&self.name, "keystone", &error))
    }

    fn config(&self) -> Result<CloudConfig, BackendError> {
        match &self.file {
            Some(path) => self.entry_of(path),
            None => CloudConfig::from_config(&self.name)
                .map_err(|error| faults::of(&self.name, "keystone", &error)),
        }
    }

    fn entry_of(&self, path: &Path) -> Result<CloudConfig, BackendError> {
        let fault = |why: String| BackendError::Settings {
            platform: faults::label(&self.name),
            why: format!("{}: {why}", path.display()),
        };
        let size = std::fs::metadata(path)
            .map_err(|error| fault(error.to_string()))?
            .len();
        if size > MAX_FILE_BYTES {
            return Err(fault(format!(
                "has {size} bytes; at most {MAX_FILE_BYTES} are read"
            )));
        }
        let text = std::fs::read_to_string(path).map_err(|error| fault(error.to_string()))?;
        // A parser's message about a line could repeat a password in it.
        let mut file: File = serde_saphyr::from_str(&text)
            .map_err(|_| fault("is no clouds.yaml: a mapping `clouds` of entries is allowed".to_owned()))?;
        let known: Vec<String> = file.clouds.keys().cloned().collect();
        file.clouds.remove(&self.name).ok_or_else(|| {
            let known = if known.is_empty() {
                "none".to_owned()
            } else {
                known.join(", ")
            };
            fault(format!("has no entry of that name; it has: {known}"))
        })
    }
}

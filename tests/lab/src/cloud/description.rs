//! The addresses and files of an OpenStack, for the tests of its run.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::{During, LabError};

/// The variable with the paths of the descriptions' files, separated as those in `PATH` are: one for each OpenStack of a run.
pub const OPENSTACK: &str = "RINGFENCE_TEST_OPENSTACK";

/// Addresses and files of an OpenStack.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Description {
    /// The address of Keystone, with `/v3`.
    pub auth_url: String,
    /// The region of all services.
    pub region: String,
    /// The address of the services' RabbitMQ, which also has their notifications.
    pub broker_url: String,
    /// The folder of the services' files: `etc/nova.conf` and others like it, `log/`.
    pub folder: PathBuf,
    /// Where a scheduler hook must listen so that Nova's scheduler and API ask it; they send [`HOOK_TOKEN`](crate::HOOK_TOKEN).
    pub hook: SocketAddr,
    /// The addresses in Keystone's catalogue by type, such as `compute`.
    pub endpoints: BTreeMap<String, String>,
}

impl Description {
    /// Writes the description to a file.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(&self, file: &Path) -> Result<(), LabError> {
        let text = serde_json::to_string_pretty(self).map_err(|source| unreadable(file, source))?;
        std::fs::write(file, text).during(|| format!("writing {}", file.display()))
    }

    /// Reads a description that [`write`](Self::write) wrote.
    ///
    /// # Errors
    /// If the file cannot be read, or is no description.
    pub fn read(file: &Path) -> Result<Self, LabError> {
        let text = std::fs::read_to_string(file).during(|| format!("reading {}", file.display()))?;
        serde_json::from_str(&text).map_err(|source| unreadable(file, source))
    }

    pub(crate) fn etc(&self, name: &str) -> String {
        self.folder.join("etc").join(name).display().to_string()
    }
}

fn unreadable(file: &Path, source: serde_json::Error) -> LabError {
    LabError::Json {
        what: file.display().to_string(),
        source,
    }
}

//! What a test has to know of an OpenStack that somebody else has started.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::{During, LabError};

/// The variable that names the description's file.
pub const OPENSTACK: &str = "RINGFENCE_TEST_OPENSTACK";

/// Where everything is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Description {
    /// Keystone's address, with `/v3`.
    pub auth_url: String,
    /// The region that everything is in.
    pub region: String,
    /// The services' RabbitMQ, where their notifications are as well.
    pub broker_url: String,
    /// The services' files: `etc/nova.conf` and others like it, `log/`.
    pub folder: PathBuf,
    /// Where a hook has to listen for Nova's scheduler and API to ask it; they show [`HOOK_TOKEN`](crate::HOOK_TOKEN).
    pub hook: SocketAddr,
    /// The addresses in Keystone's catalogue by type, such as `compute`.
    pub endpoints: BTreeMap<String, String>,
}

impl Description {
    /// Writes it for [`read`](Self::read).
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, file: &Path) -> Result<(), LabError> {
        let text = serde_json::to_string_pretty(self).map_err(|source| unreadable(file, source))?;
        std::fs::write(file, text).during(|| format!("writing {}", file.display()))
    }

    /// Reads what [`write`](Self::write) wrote.
    ///
    /// # Errors
    /// The file cannot be read, or says something else.
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

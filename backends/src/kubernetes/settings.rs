//! How a cluster is reached.

use std::path::PathBuf;
use std::time::Duration;

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

use super::faults;
use crate::BackendError;

/// The address of a cluster, and the identity to use there.
#[derive(Clone, Debug)]
pub struct ClusterSettings {
    /// The cluster's name in the configuration.
    pub name: String,
    /// The kubeconfig file; `None` for the cluster that this process runs in.
    pub kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig; `None` for its current one.
    pub context: Option<String>,
    /// The namespace of Ringfence's own objects.
    pub namespace: String,
    /// The CSI drivers of the storage from which storage fencing cuts nodes off.
    pub fenced_storage: Vec<String>,
    /// The name of the gate object there.
    pub gate: String,
    /// How long one call may take.
    pub timeout: Duration,
    /// How long a node may be silent.
    pub down_after: Duration,
    /// How long a node that has returned has to be Ready before it takes pods.
    pub ready_for: Duration,
    /// Which pods are moved only with healthy volumes, and how storages are asked.
    pub volumes: VolumeSettings,
    /// What else the cluster is used for.
    pub uses: ClusterUses,
}

/// Which pods are moved only with healthy volumes, and how storages are asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeSettings {
    /// The label of pods that are moved only when all their volumes are healthy: key and value. `None` where no pod is.
    pub label: Option<(String, String)>,
    /// The Secret in Ringfence's own namespace that says how StorageOS is reached.
    pub storageos_secret: String,
    /// The namespace of Longhorn.
    pub longhorn_namespace: String,
    /// Between two looks at a volume that is not healthy.
    pub poll: Duration,
}

impl Default for VolumeSettings {
    fn default() -> Self {
        Self {
            label: Some(("storageos.com/fenced".to_owned(), "true".to_owned())),
            storageos_secret: "storageos".to_owned(),
            longhorn_namespace: "longhorn-system".to_owned(),
            poll: Duration::from_secs(5),
        }
    }
}

/// What a cluster is used for beside being watched and acted upon.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClusterUses {
    /// Its objects, such as `NodeFence`, are served.
    pub has_operator: bool,
    /// It keeps the records of its nodes.
    pub has_records: bool,
}

impl ClusterSettings {
    /// A client for the cluster. No call is made.
    ///
    /// # Errors
    /// The kubeconfig or the service account cannot be read.
    pub async fn client(&self) -> Result<Client, BackendError> {
        self.client_that(true).await
    }

    /// A client that does not ask again by itself where the API server says that it may. No call is made.
    pub(super) async fn client_that_asks_once(&self) -> Result<Client, BackendError> {
        self.client_that(false).await
    }

    async fn client_that(&self, asks_again: bool) -> Result<Client, BackendError> {
        let mut config = self.config().await?;
        config.connect_timeout = Some(self.timeout);
        config.write_timeout = Some(self.timeout);
        config.default_retry = asks_again;
        Client::try_from(config).map_err(|error| self.fault(faults::chain(&error)))
    }

    async fn config(&self) -> Result<Config, BackendError> {
        let Some(path) = &self.kubeconfig else {
            return Config::incluster().map_err(|error| self.fault(faults::chain(&error)));
        };
        let fault = |why: String| self.fault(format!("{}: {why}", path.display()));
        let kubeconfig = Kubeconfig::read_from(path).map_err(|error| fault(faults::chain(&error)))?;
        let options = KubeConfigOptions {
            context: self.context.clone(),
            ..KubeConfigOptions::default()
        };
        let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
        config.map_err(|error| fault(faults::chain(&error)))
    }

    fn fault(&self, why: String) -> BackendError {
        BackendError::Settings {
            platform: faults::label(&self.name),
            why,
        }
    }
}

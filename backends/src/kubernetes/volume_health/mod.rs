//! Whether a pod's volumes can be used on another node, by what their storage says of them.
//!
//! A pod that has opted in is moved only when all its volumes can: one whose single copy is on the dead node would wait elsewhere for data
//! that come back with its node. Each storage is asked in its own way. One that cannot be asked is not known to be healthy.

mod longhorn;
mod storageos;

use async_trait::async_trait;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;

use self::longhorn::Longhorn;
pub(in crate::kubernetes) use self::storageos::Session;
use self::storageos::StorageOs;
use super::Cluster;
use crate::Preflight;

/// A volume that a pod of a node uses.
#[derive(Clone, Debug)]
pub(super) struct UsedVolume {
    /// The name of the `PersistentVolume`.
    pub name: String,
    /// The namespace of its claim.
    pub namespace: String,
    /// Its CSI driver.
    pub driver: String,
    /// What the driver calls it.
    pub handle: String,
    /// The node that is fenced.
    pub node: String,
}

/// One sort of storage.
#[async_trait]
trait VolumeHealth: Send + Sync {
    /// Why the volume cannot be used without its node, or is not known to be usable, in words.
    async fn of(&self, volume: &UsedVolume) -> Result<(), String>;

    /// What the doctor says of the storage; nothing where the cluster does not have it.
    async fn preflight(&self) -> Option<Preflight>;
}

impl Cluster {
    /// Whether the pod is moved only with healthy volumes.
    pub(super) fn has_opted_in(&self, pod: &Pod) -> bool {
        let label = self.settings().volumes.label.as_ref();
        label.is_some_and(|(key, value)| pod.labels().get(key) == Some(value))
    }

    /// Why a volume cannot be used without its node, or is not known to be usable, in words.
    pub(super) async fn health_of(&self, volume: &UsedVolume) -> Result<(), String> {
        let of = |why| format!("volume {} {why}", volume.name);
        match volume.driver.as_str() {
            storageos::DRIVER => StorageOs(self).of(volume).await.map_err(of),
            longhorn::DRIVER => Longhorn(self).of(volume).await.map_err(of),
            other => Err(of(format!(
                "is of CSI driver {other}, which cannot be asked whether it is healthy"
            ))),
        }
    }
}

/// What the doctor says of them.
pub(super) async fn preflight(cluster: &Cluster) -> Vec<Preflight> {
    let Some((key, value)) = &cluster.settings().volumes.label else {
        return Vec::new();
    };
    let storages: [&dyn VolumeHealth; 2] = [&StorageOs(cluster), &Longhorn(cluster)];
    let mut found = Vec::new();
    for storage in storages {
        found.extend(storage.preflight().await);
    }
    if found.is_empty() {
        found.push(Preflight::Good(format!(
            "{}: pods with the label {key}={value} and a volume stay on a FENCED node, since there is no storage that can be asked whether \
             a volume is healthy",
            cluster.settings().name
        )));
    }
    found
}

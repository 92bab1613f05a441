//! Longhorn: a copy on another node, by the objects that it keeps in the cluster.
//!
//! The engine of a volume runs on the node that uses the volume. With that node Longhorn loses sight of the engine, and calls the volume's
//! robustness unknown: so its copies are asked for instead.

use async_trait::async_trait;
use kube::Api;
use kube::api::{ApiResource, GroupVersionKind, ListParams};
use kube::core::Object;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{UsedVolume, VolumeHealth};
use crate::kubernetes::Cluster;
use crate::{BackendError, Preflight};

/// Its CSI driver, which calls a volume as Longhorn does.
pub(super) const DRIVER: &str = "driver.longhorn.io";
const GROUP: &str = "longhorn.io";
/// On each copy, the name of its volume.
const VOLUME_LABEL: &str = "longhornvolume";
/// Copies of one volume: Longhorn makes 20 at most, and keeps some that have failed.
const MAX_COPIES: u32 = 200;

type Volume = Object<Ignored, VolumeStatus>;
type Replica = Object<ReplicaSpec, ReplicaStatus>;

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
struct Ignored {}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
struct VolumeStatus {
    robustness: String,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
struct ReplicaSpec {
    volume_name: String,
    #[serde(rename = "nodeID")]
    node_id: String,
    failed_at: String,
    healthy_at: String,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
struct ReplicaStatus {
    current_state: String,
}

/// The Longhorn of a cluster.
pub(super) struct Longhorn<'a>(pub &'a Cluster);

#[async_trait]
impl VolumeHealth for Longhorn<'_> {
    async fn of(&self, volume: &UsedVolume) -> Result<(), String> {
        let unasked = |error: BackendError| format!("is not known to be healthy: {error}");
        let name = &volume.handle;
        let found = self.volume(name).await.map_err(unasked)?;
        let found = found.ok_or_else(|| format!("is not known to Longhorn as {name}"))?;
        if found.status.unwrap_or_default().robustness == "faulted" {
            return Err("is faulted, says Longhorn".to_owned());
        }
        let replicas = self.replicas(name).await.map_err(unasked)?;
        match replicas
            .iter()
            .any(|replica| is_usable_without(&volume.node, name, replica))
        {
            true => Ok(()),
            false => Err(format!(
                "has no healthy replica outside {}, says Longhorn",
                volume.node
            )),
        }
    }

    async fn preflight(&self) -> Option<Preflight> {
        let name = &self.0.settings().name;
        if !self.is_there().await {
            return None;
        }
        match self.replicas("").await {
            Ok(_) => Some(Preflight::Good(format!(
                "{name}: Longhorn is asked for the replicas of volumes"
            ))),
            Err(error) => Some(Preflight::Warning(
                format!("{name}: whether volumes of Longhorn are healthy cannot be asked: {error}"),
                format!(
                    "allow get of volumes and list of replicas in longhorn.io in the namespace {}",
                    self.0.settings().volumes.longhorn_namespace
                ),
            )),
        }
    }
}

impl Longhorn<'_> {
    /// The API server refuses a user without rights whether Longhorn's objects are there or not.
    async fn is_there(&self) -> bool {
        let groups = async {
            let client = self.0.client().await?;
            self.0.call(client.list_api_groups()).await
        };
        let groups = groups.await;
        groups.is_ok_and(|all| all.groups.iter().any(|group| group.name == GROUP))
    }

    async fn volume(&self, name: &str) -> Result<Option<Volume>, BackendError> {
        let api: Api<Volume> = self.api("Volume", "volumes").await?;
        self.0.call(api.get_opt(name)).await
    }

    async fn replicas(&self, volume: &str) -> Result<Vec<Replica>, BackendError> {
        let api = self.api("Replica", "replicas").await?;
        let of = format!("{VOLUME_LABEL}={volume}");
        let list = ListParams::default().labels(&of).limit(MAX_COPIES);
        Ok(self.0.call(api.list(&list)).await?.items)
    }

    async fn api<S, U>(&self, kind: &str, plural: &str) -> Result<Api<Object<S, U>>, BackendError>
    where
        Object<S, U>: Clone + DeserializeOwned,
        S: Clone,
        U: Clone,
    {
        let kind = GroupVersionKind::gvk(GROUP, "v1beta2", kind);
        let kind = ApiResource::from_gvk_with_plural(&kind, plural);
        let client = self.0.client().await?.clone();
        let namespace = &self.0.settings().volumes.longhorn_namespace;
        Ok(Api::namespaced_with(client, namespace, &kind))
    }
}

/// A copy that was once complete, has not failed since, and whose own node has not lost it from sight.
fn is_usable_without(node: &str, volume: &str, replica: &Replica) -> bool {
    let ReplicaSpec {
        volume_name,
        node_id,
        failed_at,
        healthy_at,
    } = &replica.spec;
    let state = replica
        .status
        .as_ref()
        .map(|status| status.current_state.as_str());
    volume_name == volume
        && !node_id.is_empty()
        && node_id != node
        && failed_at.is_empty()
        && !healthy_at.is_empty()
        && matches!(state, Some("running" | "stopped"))
        && replica.metadata.deletion_timestamp.is_none()
}

//! One cluster, and the engine behind it.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams};
use kube::core::{GroupVersionKind, PartialObjectMeta};
use kube::{Api, Client};
use ringfence_backends::kubernetes::{Cluster, ClusterSettings};
use ringfence_core::{
    Backend, Host, HostId, HostState, Operation, OperationKind, OperationStatus, Timestamp,
};
use ringfence_engine::{Context, Engine};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::timeout;

use crate::OperatorError;
use crate::fence_config::Asking;
use crate::node_fence::Awaiting;

/// The group of Ringfence's objects.
pub(crate) const GROUP: &str = "ringfence.io";
/// The version of Ringfence's objects.
pub(crate) const VERSION: &str = "v1alpha1";
/// The name under which the cluster records what was written here.
pub(crate) const WRITER: &str = "ringfence-operator";
/// Fences and rejoins of a host that are looked through for the last one.
const LAST: u32 = 8;

/// How soon a host is looked at again: what changes within an operation, such as an attempt, is no event.
const AT_FIRST: Duration = Duration::from_millis(250);
const DURING_AN_OPERATION: Duration = Duration::from_secs(2);
const OTHERWISE: Duration = Duration::from_secs(60);
/// How long the beginning of a fence is.
const FIRST: TimeDelta = TimeDelta::seconds(10);

/// One cluster, and the engine behind it.
#[derive(Clone)]
pub(crate) struct Door {
    pub engine: Engine,
    pub cluster: String,
    /// The namespace of Ringfence's own objects.
    pub namespace: String,
    pub client: Client,
    /// The cluster as the one that has gates.
    pub gates: Arc<Cluster>,
    /// Objects that may have been made for a fence that is about to be committed.
    pub awaiting: Arc<Awaiting>,
    limit: Duration,
}

/// A host as it stands.
#[derive(Debug)]
pub(crate) struct Standing {
    /// The host with its live operation.
    pub state: HostState,
    /// The last fence or rejoin, whether it is live or not.
    pub last: Option<Operation>,
}

impl Standing {
    /// `newest` was read after the host. It may have ended since: the live operation is then shown as it was read with the host.
    fn new(state: HostState, newest: Option<Operation>) -> Self {
        let live = state.operation.as_ref();
        let live = live.filter(|live| live.kind() != OperationKind::Evacuation);
        let last = live.cloned().or(newest);
        Self { state, last }
    }

    /// The operation that objects show: the live one, or the last fence or rejoin.
    pub fn shown(&self) -> Option<&Operation> {
        self.state.operation.as_ref().or(self.last.as_ref())
    }
}

impl Door {
    /// # Errors
    /// The cluster cannot be reached as it is configured. No call is made.
    pub async fn open(engine: &Engine, cluster: &ClusterSettings) -> Result<Self, OperatorError> {
        Ok(Self {
            engine: engine.clone(),
            cluster: cluster.name.clone(),
            namespace: cluster.namespace.clone(),
            client: cluster.client().await?,
            gates: Arc::new(Cluster::new(cluster.clone())),
            awaiting: Arc::default(),
            limit: cluster.timeout,
        })
    }

    /// How the cluster is asked for its configuration.
    pub fn asking(&self) -> Asking {
        Asking {
            cluster: self.cluster.clone(),
            namespace: self.namespace.clone(),
            client: self.client.clone(),
            limit: self.limit,
        }
    }

    /// The time.
    pub fn now(&self) -> Timestamp {
        self.engine.clock().now()
    }

    /// Who asks: a kind of objects of this cluster. Which person made an object, the cluster does not tell.
    pub fn asker(&self, kind: &str) -> Context {
        Context::own(&format!("{} {kind}", Backend::Kubernetes.label(&self.cluster)))
    }

    /// Makes a call, within the time of one call.
    pub async fn call<T>(
        &self,
        call: impl Future<Output = Result<T, kube::Error>>,
    ) -> Result<T, OperatorError> {
        let done = timeout(self.limit, call).await.map_err(|_| OperatorError::Late {
            cluster: self.cluster.clone(),
            limit: self.limit,
        })?;
        done.map_err(|error| OperatorError::of(&self.cluster, error))
    }

    /// Merges a change into an object.
    pub async fn merge<K>(&self, api: &Api<K>, name: &str, change: &Value) -> Result<K, OperatorError>
    where
        K: Clone + DeserializeOwned + Debug,
    {
        self.call(api.patch(name, &writer(), &Patch::Merge(change))).await
    }

    /// Writes an object's status.
    pub async fn merge_status<K>(
        &self,
        api: &Api<K>,
        name: &str,
        status: &impl Serialize,
    ) -> Result<(), OperatorError>
    where
        K: Clone + DeserializeOwned + Debug,
    {
        let change = serde_json::json!({ "status": status });
        self.merge_into_status(api, name, &change).await.map(drop)
    }

    /// Merges a change into the status of an object, and only there.
    pub async fn merge_into_status<K>(
        &self,
        api: &Api<K>,
        name: &str,
        change: &Value,
    ) -> Result<K, OperatorError>
    where
        K: Clone + DeserializeOwned + Debug,
    {
        self.call(api.patch_status(name, &writer(), &Patch::Merge(change)))
            .await
    }

    /// The host of a node of this cluster, if Ringfence has one.
    pub async fn standing(&self, node: &str) -> Result<Option<Standing>, OperatorError> {
        self.standing_in(&self.cluster, node).await
    }

    /// The host of a node of any cluster, if Ringfence has one.
    pub async fn standing_in(&self, cluster: &str, node: &str) -> Result<Option<Standing>, OperatorError> {
        let mut reader = self.engine.db().reader();
        let state = ringfence_db::load_state_in_cloud(&mut reader, cluster, node).await?;
        let Some(state) = state else { return Ok(None) };
        let newest = ringfence_db::newest_operations_of_host(&mut reader, state.host.id, LAST).await?;
        Ok(Some(Standing::new(state, newest.into_iter().next())))
    }

    /// The node of a host; `None` if the host is not of this cluster, or was removed.
    pub async fn node_of(&self, host: HostId) -> Result<Option<String>, OperatorError> {
        let mut reader = self.engine.db().reader();
        let state = ringfence_db::load_state(&mut reader, &host.to_string()).await?;
        let own = |host: &Host| host.cloud.as_deref() == Some(&self.cluster);
        let host = state.map(|state| state.host).filter(own);
        Ok(host.map(|host| host.known_as.unwrap_or(host.name)))
    }
}

/// How soon a host is looked at again.
pub(crate) fn look_again(standing: Option<&Standing>, now: Timestamp) -> Duration {
    let live = standing.and_then(|standing| standing.state.operation.as_ref());
    match live.filter(|live| live.status == OperationStatus::Running) {
        Some(live) if live.kind() == OperationKind::Fence && now < live.created_at + FIRST => AT_FIRST,
        Some(_) => DURING_AN_OPERATION,
        None => OTHERWISE,
    }
}

/// How changes are signed.
fn writer() -> PatchParams {
    PatchParams {
        field_manager: Some(WRITER.to_owned()),
        ..PatchParams::default()
    }
}

/// How a kind of Ringfence's objects is asked for.
pub(crate) fn resource(kind: &str, plural: &str) -> ApiResource {
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(GROUP, VERSION, kind), plural)
}

/// The names and labels of all objects of a kind.
pub(crate) fn metadata(client: &Client, kind: &ApiResource) -> Api<PartialObjectMeta<DynamicObject>> {
    Api::all_with(client.clone(), kind)
}

#[cfg(test)]
mod tests {
    use ringfence_core::SegmentPolicy;

    use super::*;
    use crate::samples::{evacuation, host, rejoin};

    fn standing(live: Operation, newest: Operation) -> Option<(OperationKind, OperationStatus)> {
        let state = HostState::new(host(true), Some(live), SegmentPolicy::default());
        let last = Standing::new(state, Some(newest)).last;
        last.map(|last| (last.kind(), last.status))
    }

    #[test]
    fn a_rejoin_that_ends_between_two_reads_is_shown_as_it_was_read_with_its_host() {
        use OperationStatus::{Running, Succeeded};
        assert_eq!(
            standing(rejoin(Running), rejoin(Succeeded)),
            Some((OperationKind::Rejoin, Running))
        );
        assert_eq!(
            standing(evacuation(Running), rejoin(Succeeded)),
            Some((OperationKind::Rejoin, Succeeded))
        );
    }
}

//! What is read of a cluster for its configuration.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::net::IpAddr;
use std::time::Duration;

use futures_util::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{ApiResource, GroupVersionKind, ListParams};
use kube::core::Object;
use kube::{Api, Client};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::time::timeout;

use super::names::PREFIX;
use super::reading::{Node, SecretKeys};
use super::sources::{Source, Sources};
use crate::OperatorError;

/// ConfigMaps of one answer: each may have 1 MiB.
const CONFIG_MAPS_AT_ONCE: u32 = 20;
const NODES_AT_ONCE: u32 = 500;
/// Secrets that are asked for at a time.
const SECRETS_AT_ONCE: usize = 8;
/// The most objects of one kind.
const MOST: usize = 20_000;
/// The label with a node's type.
const TYPE: &str = "type";
/// The type of the addresses that count, and the most of one node.
const INTERNAL: &str = "InternalIP";
const MOST_ADDRESSES: usize = 8;

/// A node, and no more of it than is needed.
pub(crate) type NodeObject = Object<NodeSpec, NodeStatus>;

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct NodeSpec {
    #[serde(rename = "providerID")]
    provider_id: String,
}

/// Where it is reached.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct NodeStatus {
    addresses: Vec<NodeAddress>,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
struct NodeAddress {
    #[serde(rename = "type")]
    kind: String,
    address: String,
}

/// A cluster that is asked.
#[derive(Clone)]
pub(crate) struct Asking {
    pub cluster: String,
    pub namespace: String,
    pub client: Client,
    /// How long one call may take.
    pub limit: Duration,
}

impl Asking {
    /// All ConfigMaps whose names say that they are read here.
    pub async fn sources(&self) -> Result<Sources, OperatorError> {
        let all: Vec<(String, Source)> = self
            .list(&self.config_maps(), CONFIG_MAPS_AT_ONCE, |map| {
                let name = map.metadata.name.filter(|name| name.starts_with(PREFIX))?;
                let uid = map.metadata.uid.unwrap_or_default();
                Some((name, Source::new(uid, map.data.unwrap_or_default())))
            })
            .await?;
        Ok(Sources(all.into_iter().collect()))
    }

    /// All nodes.
    pub async fn nodes(&self) -> Result<Vec<Node>, OperatorError> {
        let api: Api<NodeObject> = Api::all_with(self.client.clone(), &nodes());
        self.list(&api, NODES_AT_ONCE, |node| Some(seen(node))).await
    }

    /// The keys of those of these Secrets that are there.
    pub async fn secret_keys(&self, names: &BTreeSet<String>) -> Result<SecretKeys, OperatorError> {
        let api: Api<Secret> = Api::namespaced(self.client.clone(), &self.namespace);
        let ask = |name: String| {
            let api = api.clone();
            async move {
                let secret = self.call(api.get_opt(&name)).await?;
                let keys = secret.map(|secret| secret.data.unwrap_or_default().into_keys().collect());
                Ok::<_, OperatorError>(keys.map(|keys: BTreeSet<String>| (name, keys)))
            }
        };
        let asked = stream::iter(names.iter().cloned().map(ask)).buffer_unordered(SECRETS_AT_ONCE);
        let found: Vec<_> = asked.try_collect().await?;
        Ok(found.into_iter().flatten().collect())
    }

    pub fn config_maps(&self) -> Api<ConfigMap> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    async fn list<K, T>(
        &self,
        api: &Api<K>,
        at_once: u32,
        take: impl Fn(K) -> Option<T>,
    ) -> Result<Vec<T>, OperatorError>
    where
        K: Clone + DeserializeOwned + Debug,
    {
        let mut found = Vec::new();
        let mut how = ListParams::default().limit(at_once);
        let mut seen = 0;
        loop {
            let page = self.call(api.list(&how)).await?;
            seen += page.items.len();
            found.extend(page.items.into_iter().filter_map(&take));
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(_) if seen >= MOST => {
                    return Err(OperatorError::TooMany {
                        cluster: self.cluster.clone(),
                        most: MOST,
                    });
                }
                Some(token) => how = ListParams::default().limit(at_once).continue_token(&token),
                None => return Ok(found),
            }
        }
    }

    async fn call<T>(&self, call: impl Future<Output = Result<T, kube::Error>>) -> Result<T, OperatorError> {
        let done = timeout(self.limit, call).await.map_err(|_| OperatorError::Late {
            cluster: self.cluster.clone(),
            limit: self.limit,
        })?;
        done.map_err(|error| OperatorError::of(&self.cluster, error))
    }
}

/// How nodes are asked for.
pub(crate) fn nodes() -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "Node"))
}

/// What matters of a node.
pub(crate) fn seen(node: NodeObject) -> Node {
    let mut labels = node.metadata.labels.unwrap_or_default();
    Node {
        name: node.metadata.name.unwrap_or_default(),
        kind: labels.remove(TYPE),
        provider_id: node.spec.provider_id,
        addresses: internal(node.status.unwrap_or_default()),
    }
}

/// The addresses by which the cluster's own nodes reach it.
fn internal(status: NodeStatus) -> Vec<IpAddr> {
    let own = status.addresses.into_iter().filter(|one| one.kind == INTERNAL);
    own.filter_map(|one| one.address.parse().ok())
        .take(MOST_ADDRESSES)
        .collect()
}

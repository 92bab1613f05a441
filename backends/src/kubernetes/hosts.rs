//! Nodes that are Ringfence's hosts, marked as such where the database does not outlive the process.
//!
//! A node that was silent before Ringfence ever saw it may have been left behind, and is not added. One that falls silent with the node of
//! Ringfence's own leader is no such node, and the next leader knows it by this mark.

use futures_util::{StreamExt, TryStreamExt, stream};
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use super::Cluster;
use super::beat::WRITER;
use super::objects::{NodeObject, nodes};
use crate::{BackendError, KeptHost};

/// On the Node of a host.
pub(super) const HOST: &str = "ringfence.io/host";
/// Nodes that are marked between two looks, so that the looks go on.
const MARKED: usize = 256;
const AT_ONCE: usize = 8;

/// Marks those that are not marked yet.
pub(super) async fn keep(cluster: &Cluster, hosts: &[KeptHost<'_>]) -> Result<(), BackendError> {
    if !cluster.settings().uses.has_records {
        return Ok(());
    }
    let looked = cluster.watching().await?.looked();
    let is_bare = |host: &&str| looked.marks.get(*host).is_some_and(|marks| !marks.is_host);
    let bare = hosts.iter().map(|host| host.host).filter(is_bare).take(MARKED);
    let marked = bare
        .map(|host| set(cluster, host, json!("true")))
        .collect::<Vec<_>>();
    stream::iter(marked).buffer_unordered(AT_ONCE).try_collect().await
}

/// Takes the mark away from a node whose host was removed.
pub(super) async fn forget(cluster: &Cluster, host: &str) -> Result<(), BackendError> {
    set(cluster, host, Value::Null).await
}

/// A node that is gone needs no mark.
async fn set(cluster: &Cluster, host: &str, value: Value) -> Result<(), BackendError> {
    let api: Api<NodeObject> = Api::all_with(cluster.client().await?.clone(), &nodes());
    let change = Patch::Merge(json!({ "metadata": { "annotations": { HOST: value } } }));
    let how = PatchParams {
        field_manager: Some(WRITER.to_owned()),
        ..PatchParams::default()
    };
    match cluster.call(api.patch(host, &how, &change)).await {
        Ok(_) | Err(BackendError::NotFound { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

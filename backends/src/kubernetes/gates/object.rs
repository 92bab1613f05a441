//! The gate object: a ConfigMap whose data has the nodes whose workloads may be started elsewhere, each with its generation.
//!
//! The entries of nodes that are no hosts here belong to another Ringfence, and stay.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use ringfence_core::Generation;
use serde_json::json;
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::super::{Cluster, beat::WRITER, faults};
use crate::{BackendError, KeptHost, TimeGiven};

/// Between two tries at a change that another program's change has overtaken.
const OVERTAKEN_PAUSE: Duration = Duration::from_millis(20);
/// Changed with every step: what was read before the step cannot be written after it.
const STEP: &str = "ringfence.io/step";

/// The gate object, as the cluster showed it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::kubernetes) struct SeenGate {
    /// `None` if there is none.
    version: Option<String>,
    data: BTreeMap<String, String>,
}

impl SeenGate {
    pub fn of(gate: &ConfigMap) -> Self {
        Self {
            version: gate.metadata.resource_version.clone(),
            data: gate.data.clone().unwrap_or_default(),
        }
    }

    /// The entries to be written, and to be removed, so that exactly those of these hosts are there which may be evacuated.
    fn changes(&self, hosts: &[KeptHost<'_>]) -> Entries {
        let wanted = |host: &KeptHost<'_>| host.may_evacuate.then(|| host.generation.to_string());
        let all = hosts.iter().map(|host| (host.host.to_owned(), wanted(host)));
        all.filter(|(host, wanted)| self.data.get(host) != wanted.as_ref())
            .collect()
    }
}

/// Entries of nodes; `None` for one that is to go.
type Entries = BTreeMap<String, Option<String>>;

/// Brings the entries of these hosts to what holds, if the object is as the last look has seen it.
pub(in crate::kubernetes) async fn keep(
    cluster: &Cluster,
    hosts: &[KeptHost<'_>],
) -> Result<(), BackendError> {
    let Some(seen) = cluster.watching().await?.looked().gate else {
        return Ok(());
    };
    let changes = seen.changes(hosts);
    if changes.is_empty() && seen.version.is_some() {
        return Ok(());
    }
    match write(cluster, &seen, &changes, None).await {
        // A step, or another engine, was first.
        Err(BackendError::Refused { .. }) => close_still_open(cluster, &seen, &changes).await,
        done => done,
    }
}

/// Removes what was to be removed and is there as it was seen: to close a gate does not wait for the next look.
async fn close_still_open(cluster: &Cluster, seen: &SeenGate, changes: &Entries) -> Result<(), BackendError> {
    let now = read(cluster).await?;
    let is_same = |node: &String| now.data.contains_key(node) && now.data.get(node) == seen.data.get(node);
    let gone = changes
        .iter()
        .filter(|(node, wanted)| wanted.is_none() && is_same(node));
    let gone: Entries = gone.map(|(node, _)| (node.clone(), None)).collect();
    if gone.is_empty() {
        return Ok(());
    }
    match write(cluster, &now, &gone, None).await {
        Err(BackendError::Refused { .. }) => Ok(()),
        done => done,
    }
}

async fn read(cluster: &Cluster) -> Result<SeenGate, BackendError> {
    let api = api(cluster).await?;
    let gate = cluster.call(api.get_opt(&cluster.settings().gate)).await?;
    Ok(gate.map(|gate| SeenGate::of(&gate)).unwrap_or_default())
}

/// The nodes that the object has.
pub(super) async fn open_nodes(cluster: &Cluster) -> Result<BTreeSet<String>, BackendError> {
    Ok(read(cluster).await?.data.into_keys().collect())
}

/// Writes entries into the object as it was read. The cluster refuses that if the object has changed since.
async fn write(
    cluster: &Cluster,
    seen: &SeenGate,
    changes: &Entries,
    step: Option<Uuid>,
) -> Result<(), BackendError> {
    let settings = cluster.settings();
    let api = api(cluster).await?;
    let mut metadata = json!({ "name": settings.gate, "labels": { "app.kubernetes.io/name": WRITER } });
    if let Some(step) = step {
        metadata["annotations"] = json!({ STEP: step });
    }
    match &seen.version {
        Some(version) => {
            metadata["resourceVersion"] = json!(version);
            let change = Patch::Merge(json!({ "metadata": metadata, "data": changes }));
            let how = PatchParams {
                field_manager: Some(WRITER.to_owned()),
                ..PatchParams::default()
            };
            cluster
                .call(api.patch(&settings.gate, &how, &change))
                .await
                .map(drop)
        }
        None => {
            let entries = changes.iter().filter(|(_, value)| value.is_some());
            let data: BTreeMap<_, _> = entries.collect();
            let gate = serde_json::from_value(json!({ "metadata": metadata, "data": data }));
            let gate: ConfigMap = gate.map_err(|error| BackendError::Unreadable {
                platform: faults::label(&settings.name),
                service: faults::API_SERVER,
                why: error.to_string(),
            })?;
            let how = PostParams::default();
            cluster.call(api.create(&how, &gate)).await.map(drop)
        }
    }
}

async fn api(cluster: &Cluster) -> Result<Api<ConfigMap>, BackendError> {
    let client = cluster.client().await?.clone();
    Ok(Api::namespaced(client, &cluster.settings().namespace))
}

/// The entry of one node, for a step of one generation.
pub(in crate::kubernetes) struct Entry<'a> {
    pub cluster: &'a Cluster,
    pub node: &'a str,
    pub generation: Generation,
    pub time: TimeGiven,
}

impl Entry<'_> {
    /// Says that the node's workloads may be started elsewhere, and reads it back.
    pub async fn open(&self) -> Result<(), BackendError> {
        self.set(Some(self.generation.to_string())).await
    }

    /// Takes that back, and reads it back.
    pub async fn close(&self) -> Result<(), BackendError> {
        self.set(None).await
    }

    /// The object is written although the entry may be so already: an older step that has read it cannot write any more.
    async fn set(&self, wanted: Option<String>) -> Result<(), BackendError> {
        let step = Some(Uuid::new_v4());
        let changes = BTreeMap::from([(self.node.to_owned(), wanted.clone())]);
        loop {
            let seen = read(self.cluster).await?;
            match write(self.cluster, &seen, &changes, step).await {
                Ok(()) => break,
                Err(BackendError::Refused { .. }) if self.has_time() => sleep(OVERTAKEN_PAUSE).await,
                Err(error) => return Err(error),
            }
        }
        let entry = read(self.cluster).await?.data.remove(self.node);
        if entry == wanted {
            return Ok(());
        }
        Err(BackendError::Refused {
            platform: faults::label(&self.cluster.settings().name),
            service: faults::API_SERVER,
            why: format!(
                "the entry of {} in the gate object was changed by another program; it is {entry:?} now",
                self.node
            ),
        })
    }

    fn has_time(&self) -> bool {
        Instant::now() + OVERTAKEN_PAUSE < self.time.until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(name: &str, generation: u32, may_evacuate: bool) -> KeptHost<'_> {
        KeptHost {
            host: name,
            generation: Generation(generation),
            may_evacuate,
            is_isolated: false,
        }
    }

    #[test]
    fn exactly_the_nodes_that_may_be_evacuated_are_written_and_those_of_others_stay() {
        let entry = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let seen = SeenGate {
            version: Some("1".to_owned()),
            data: BTreeMap::from([
                entry("stays", "3"),
                entry("older", "1"),
                entry("closed", "4"),
                entry("foreign", "9"),
            ]),
        };
        let hosts = [
            host("stays", 3, true),
            host("older", 2, true),
            host("closed", 4, false),
            host("new", 5, true),
            host("well", 0, false),
        ];
        let changes = seen.changes(&hosts);
        let wanted = [("closed", None), ("new", Some("5")), ("older", Some("2"))];
        let wanted =
            wanted.map(|(name, value): (&str, Option<&str>)| (name.to_owned(), value.map(str::to_owned)));
        assert_eq!(changes, BTreeMap::from(wanted));
    }
}

//! The gate object: a ConfigMap whose data has the nodes whose workloads may be started elsewhere, each with its generation. Of a node that is
//! cut off from some of its storage another entry names what may go.
//!
//! The entries of nodes that are no hosts here belong to another Ringfence, and stay.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use ringfence_core::{Generation, Movable, NamedToGo};
use serde_json::json;
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::super::{Cluster, beat::WRITER, faults};
use super::turns::{Batch, Data, Turn};
use crate::{BackendError, KeptHost, TimeGiven};

/// Between two tries at a change that another program's change has overtaken.
const OVERTAKEN_PAUSE: Duration = Duration::from_millis(20);
/// What the name of a node's other entry ends with.
const SOME: &str = "_only";
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

    /// The entries to be written, and to be removed, so that exactly those of these hosts are there all of whose workloads may go. What
    /// some may go of is written by steps, and only removed here.
    fn changes(&self, hosts: &[KeptHost<'_>]) -> Entries {
        let may_all = |host: &KeptHost<'_>| host.movable == Some(Movable::All);
        let wanted = |host: &KeptHost<'_>| may_all(host).then(|| host.generation.to_string());
        let all = hosts.iter().map(|host| (host.host.to_owned(), wanted(host)));
        let whole = all.filter(|(host, wanted)| self.data.get(host) != wanted.as_ref());
        let may_some = |host: &&KeptHost<'_>| host.movable.is_some() && !may_all(host);
        let closed = hosts.iter().filter(|host| !may_some(host));
        let some = closed.map(|host| (some_of(host.host), None));
        whole
            .chain(some.filter(|(entry, _)| self.data.contains_key(entry)))
            .collect()
    }
}

impl Cluster {
    /// What the gate object names of a node of which only some may go, as it is now; `None` if it names nothing.
    ///
    /// # Errors
    /// The cluster does not answer or refuses, or has no gate object.
    pub async fn named_to_go(&self, node: &str) -> Result<Option<NamedToGo>, BackendError> {
        let api = api(self).await?;
        let gate = self.call(api.get(&self.settings().gate)).await?;
        let entry = gate.data.as_ref().and_then(|data| data.get(&some_of(node)));
        Ok(entry.and_then(|entry| named(entry)))
    }
}

/// An entry as it is written: for which fence, and for what is proven, and below it the names, one a line.
fn entry_of(generation: Generation, movable: Movable, names: impl Iterator<Item = String>) -> String {
    let is_plain = |name: &String| !name.is_empty() && !name.contains(char::is_control);
    let mut lines = format!("\n{}\n", head(generation, movable));
    for name in names.filter(is_plain) {
        lines.push_str(&name);
        lines.push('\n');
    }
    lines
}

/// No name of a pod, an attachment or a volume has an equals sign before a space.
fn head(generation: Generation, movable: Movable) -> String {
    format!("generation={generation} movable={}", word(movable))
}

fn word(movable: Movable) -> &'static str {
    match movable {
        Movable::All => "all",
        Movable::OnFencedStorage => "on_fenced_storage",
        Movable::WithoutVolumes => "without_volumes",
    }
}

/// `None` where the entry does not say for what it was written.
fn named(entry: &str) -> Option<NamedToGo> {
    let mut lines = entry.lines().filter(|line| !line.is_empty());
    let (generation, movable) = lines
        .next()?
        .strip_prefix("generation=")?
        .split_once(" movable=")?;
    let all = [Movable::All, Movable::OnFencedStorage, Movable::WithoutVolumes];
    Some(NamedToGo {
        generation: Generation(generation.parse().ok()?),
        movable: all.into_iter().find(|one| word(*one) == movable)?,
        names: lines.map(str::to_owned).collect(),
    })
}

/// The entry that names what may go of a node. No node can have such a name.
fn some_of(node: &str) -> String {
    format!("{node}{SOME}")
}

/// Entries of nodes; `None` for one that is to go.
pub(super) type Entries = BTreeMap<String, Option<String>>;

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

/// The nodes that the object has, those of which only some may go too.
pub(super) async fn open_nodes(cluster: &Cluster) -> Result<BTreeSet<String>, BackendError> {
    let node = |entry: String| match entry.strip_suffix(SOME) {
        Some(node) => node.to_owned(),
        None => entry,
    };
    Ok(read(cluster).await?.data.into_keys().map(node).collect())
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
    /// Says that all workloads of the node may be started elsewhere, and reads it back.
    pub async fn open(&self) -> Result<(), BackendError> {
        self.set(Some(self.generation.to_string()), None).await
    }

    /// Says that these may, by what is proven now: pods and attachments by UID, and volumes that the node cannot use by name.
    pub async fn open_for(
        &self,
        movable: Movable,
        names: impl Iterator<Item = String>,
    ) -> Result<(), BackendError> {
        self.set(None, Some(entry_of(self.generation, movable, names)))
            .await
    }

    /// Whether the object lets this pod go at this moment.
    pub async fn lets_go(&self, uid: &str) -> Result<bool, BackendError> {
        let data = read(self.cluster).await?.data;
        let all = data.get(self.node) == Some(&self.generation.to_string());
        let some = data.get(&some_of(self.node)).and_then(|entry| named(entry));
        Ok(all || some.is_some_and(|some| some.generation == self.generation && some.names.contains(uid)))
    }

    /// Takes that back, and reads it back.
    pub async fn close(&self) -> Result<(), BackendError> {
        self.set(None, None).await
    }

    /// The object is written although the entries may be so already: an older step that has read it cannot write any more.
    async fn set(&self, all: Option<String>, some: Option<String>) -> Result<(), BackendError> {
        let changes = BTreeMap::from([(self.node.to_owned(), all), (some_of(self.node), some)]);
        let now = match self.cluster.gate_turns().take(&changes).await {
            Turn::Written(data) => data,
            Turn::Own(batch) => self.write(batch).await?,
        };
        let is_so = |(entry, wanted): (&String, &Option<String>)| now.get(entry) == wanted.as_ref();
        if changes.iter().all(is_so) {
            return Ok(());
        }
        Err(BackendError::Refused {
            platform: faults::label(&self.cluster.settings().name),
            service: faults::API_SERVER,
            why: format!(
                "the entries of {} in the gate object were changed by another program; they are {:?} and {:?} now",
                self.node,
                now.get(self.node),
                now.get(&some_of(self.node))
            ),
        })
    }

    /// Writes the changes of all steps that wait, and reads the object back.
    async fn write(&self, mut batch: Batch<'_>) -> Result<Arc<Data>, BackendError> {
        let step = Some(Uuid::new_v4());
        loop {
            let seen = read(self.cluster).await?;
            match write(self.cluster, &seen, &batch.entries(), step).await {
                Ok(()) => break,
                Err(BackendError::Refused { .. }) if self.has_time() => sleep(OVERTAKEN_PAUSE).await,
                Err(error) => return Err(error),
            }
        }
        let data = Arc::new(read(self.cluster).await?.data);
        batch.tell(&data);
        Ok(data)
    }

    fn has_time(&self) -> bool {
        Instant::now() + OVERTAKEN_PAUSE < self.time.until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(name: &str, generation: u32, may_all: bool) -> KeptHost<'_> {
        KeptHost {
            host: name,
            generation: Generation(generation),
            movable: may_all.then_some(Movable::All),
            is_isolated: false,
            is_mark_left_over: false,
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

    #[test]
    fn what_may_go_of_a_node_stays_written_while_some_may_go_and_no_longer() {
        let entry = |name: &str| (name.to_owned(), "\nu1\n".to_owned());
        let names = ["some_only", "all_only", "none_only", "foreign_only"];
        let mut data = BTreeMap::from(names.map(entry));
        data.insert("some".to_owned(), "1".to_owned());
        let seen = SeenGate {
            version: Some("1".to_owned()),
            data,
        };
        let of = |name, movable| KeptHost {
            movable,
            ..host(name, 2, false)
        };
        let changes = seen.changes(&[
            of("some", Some(Movable::OnFencedStorage)),
            of("all", Some(Movable::All)),
            of("none", None),
        ]);
        let wanted = [
            ("all", Some("2")),
            ("all_only", None),
            ("none_only", None),
            ("some", None),
        ];
        let wanted =
            wanted.map(|(name, value): (&str, Option<&str>)| (name.to_owned(), value.map(str::to_owned)));
        assert_eq!(changes, BTreeMap::from(wanted));
    }

    #[test]
    fn what_may_go_of_a_node_is_read_as_it_was_written() {
        let names = ["u1", "", "a b", "x\ny", "kubernetes.io/csi/csi.lab^v1"].map(str::to_owned);
        for movable in [Movable::OnFencedStorage, Movable::WithoutVolumes] {
            let entry = entry_of(Generation(3), movable, names.clone().into_iter());
            let wanted = ["u1", "a b", "kubernetes.io/csi/csi.lab^v1"].map(str::to_owned);
            let wanted = NamedToGo {
                generation: Generation(3),
                movable,
                names: wanted.into(),
            };
            assert_eq!(named(&entry), Some(wanted), "{entry}");
        }
        for unclear in [
            "",
            "\nu1\n",
            "\ngeneration=3\nu1\n",
            "\ngeneration=x movable=all\nu1\n",
        ] {
            assert_eq!(named(unclear), None, "{unclear:?}");
        }
    }
}

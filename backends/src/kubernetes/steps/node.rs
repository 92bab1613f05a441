//! One node of one cluster, and how it is changed.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::Taint;
use kube::Api;
use kube::api::{Patch, PatchParams};
use ringfence_core::{Generation, Movable};
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::kubernetes::Cluster;
use crate::kubernetes::beat::WRITER;
use crate::kubernetes::gates::Entry;
use crate::kubernetes::objects::{NodeObject, nodes};
use crate::{BackendError, TimeGiven};

/// Between two reads of a state that changes within seconds.
const PAUSE: Duration = Duration::from_millis(250);
/// Between two tries at a change that another program's change has overtaken.
const OVERTAKEN_PAUSE: Duration = Duration::from_millis(20);

/// One node, and the time limit of a step on it.
#[derive(Clone, Copy)]
pub(super) struct NodeOf<'a> {
    pub cluster: &'a Cluster,
    pub name: &'a str,
    /// The generation of the operation.
    pub generation: Generation,
    /// Which pods may be let go.
    pub movable: Movable,
    pub time: TimeGiven,
}

/// A node's marks, as a step wants them.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Marks {
    pub unschedulable: bool,
    pub taints: Vec<Taint>,
    /// Ringfence's own annotations; `None` for one that is to go.
    pub annotations: BTreeMap<&'static str, Option<String>>,
}

impl Marks {
    /// As they are.
    pub fn of(node: &NodeObject) -> Self {
        Self {
            unschedulable: node.spec.unschedulable,
            taints: node.spec.taints.clone(),
            annotations: BTreeMap::new(),
        }
    }

    /// Writes down what Ringfence has done, or takes that away.
    pub fn note(&mut self, what: &'static str, value: Option<&str>) {
        self.annotations.insert(what, value.map(str::to_owned));
    }
}

/// What Ringfence has written down, if it has set this.
pub(super) fn noted<'a>(node: &'a NodeObject, what: &str) -> Option<&'a str> {
    let annotations = node.metadata.annotations.as_ref()?;
    annotations.get(what).map(String::as_str)
}

impl NodeOf<'_> {
    pub async fn api(&self) -> Result<Api<NodeObject>, BackendError> {
        Ok(Api::all_with(self.cluster.client().await?.clone(), &nodes()))
    }

    /// The node, if the cluster has it.
    pub async fn read(&self) -> Result<Option<NodeObject>, BackendError> {
        let api = self.api().await?;
        self.cluster.call(api.get_opt(self.name)).await
    }

    /// Changes the node's marks, and returns the node as the cluster has it then. Taints are one list that other programs write too: a change
    /// of theirs in between is read first.
    pub async fn mark(
        &self,
        change: impl Fn(&NodeObject, &mut Marks),
    ) -> Result<Option<NodeObject>, BackendError> {
        loop {
            let Some(node) = self.read().await? else {
                return Ok(None);
            };
            match self.mark_as_read(node, &change).await {
                Err(BackendError::Refused { .. }) if self.has_time() => sleep(OVERTAKEN_PAUSE).await,
                done => return done.map(Some),
            }
        }
    }

    /// Changes the marks of the node as it was read. The cluster refuses that if the node has changed since.
    pub async fn mark_as_read(
        &self,
        node: NodeObject,
        change: impl Fn(&NodeObject, &mut Marks),
    ) -> Result<NodeObject, BackendError> {
        let mut marks = Marks::of(&node);
        change(&node, &mut marks);
        if !differs(&node, &marks) {
            return Ok(node);
        }
        let patch = json!({
            "metadata": {
                "resourceVersion": node.metadata.resource_version,
                "annotations": marks.annotations,
            },
            "spec": { "unschedulable": marks.unschedulable, "taints": marks.taints },
        });
        let how = PatchParams {
            field_manager: Some(WRITER.to_owned()),
            ..PatchParams::default()
        };
        let api = self.api().await?;
        self.cluster
            .call(api.patch(self.name, &how, &Patch::Merge(patch)))
            .await
    }

    /// The node's entry in the gate object.
    pub fn gate(&self) -> Entry<'_> {
        Entry {
            cluster: self.cluster,
            node: self.name,
            generation: self.generation,
            time: self.time,
        }
    }

    /// Whether there is time for one more look.
    pub fn has_time(&self) -> bool {
        Instant::now() + PAUSE * 2 < self.time.until
    }

    /// Waits so long before one more look; `false` if there is no time for that.
    pub async fn pause_for(&self, pause: Duration) -> bool {
        let has_time = Instant::now() + pause + PAUSE * 2 < self.time.until;
        if has_time {
            sleep(pause).await;
        }
        has_time
    }

    /// Waits before one more look.
    pub async fn pause(&self) {
        sleep(PAUSE).await;
    }
}

fn differs(node: &NodeObject, marks: &Marks) -> bool {
    let mut annotations = marks.annotations.iter();
    node.spec.unschedulable != marks.unschedulable
        || node.spec.taints != marks.taints
        || annotations.any(|(what, wanted)| noted(node, what) != wanted.as_deref())
}

//! The records of hosts in a cluster: each in the status of a `NodeFence` that has the node's name.
//!
//! A record names the process that may write it. Every write is a patch that first tests this name, and the API server carries a patch out
//! as a whole or not at all: two processes that both take themselves for the leader cannot both write. Changes of other parts of the
//! object, such as a person's, do not get into the way.

use std::sync::Arc;

use async_trait::async_trait;
use json_patch::Patch as Operations;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use ringfence_core::error_chain;
use serde_json::{Value, json};
use uuid::Uuid;

use super::beat::WRITER;
use super::{Cluster, faults};
use crate::{BackendError, Records, Writer, WrittenRecord};

/// Objects of one answer.
const PAGE: u32 = 500;
/// On a `NodeFence` that Ringfence has made.
const MADE_BY: &str = "ringfence.io/made-by";

/// The records in the `NodeFence` objects of a cluster.
#[derive(Debug)]
pub struct NodeFences {
    cluster: Arc<Cluster>,
    /// The name of this process in the records that it may write.
    writer: String,
}

impl NodeFences {
    /// Those of a cluster. No call is made.
    #[must_use]
    pub fn of(cluster: Arc<Cluster>) -> Self {
        let writer = Uuid::new_v4().to_string();
        Self { cluster, writer }
    }

    async fn api(&self) -> Result<Api<DynamicObject>, BackendError> {
        let kind = ApiResource {
            group: "ringfence.io".to_owned(),
            version: "v1alpha1".to_owned(),
            api_version: "ringfence.io/v1alpha1".to_owned(),
            kind: "NodeFence".to_owned(),
            plural: "nodefences".to_owned(),
        };
        Ok(Api::all_with(self.cluster.client().await?.clone(), &kind))
    }

    async fn patch(&self, host: &str, operations: Value) -> Result<DynamicObject, BackendError> {
        let operations: Operations = serde_json::from_value(operations).map_err(|e| self.unreadable(&e))?;
        let patch: Patch<()> = Patch::Json(operations);
        let api = self.api().await?;
        let how = PatchParams::default();
        self.cluster.call(api.patch_status(host, &how, &patch)).await
    }

    /// The first record of a host that may have a `NodeFence` already.
    async fn begin(&self, host: &str, record: &Value) -> Result<Writer, BackendError> {
        let object = match self.get(host).await? {
            Some(object) => object,
            None => self.create(host).await?,
        };
        if let Some(writer) = writer_of(&object) {
            return match self.is_own(writer) {
                // It was ours as well when the patch was refused.
                true => Err(self.fault(format!("NodeFence {host} does not take its record"))),
                false => Ok(Writer::Other),
            };
        }
        let place = match object.data.get("status") {
            Some(_) => json!({ "op": "add", "path": "/status/record", "value": record }),
            None => json!({ "op": "add", "path": "/status", "value": { "record": record } }),
        };
        let version = object.metadata.resource_version;
        let is_as_read = json!({ "op": "test", "path": "/metadata/resourceVersion", "value": version });
        self.patch(host, json!([is_as_read, place])).await?;
        Ok(Writer::Own)
    }

    async fn get(&self, host: &str) -> Result<Option<DynamicObject>, BackendError> {
        let api = self.api().await?;
        self.cluster.call(api.get_opt(host)).await
    }

    async fn create(&self, host: &str) -> Result<DynamicObject, BackendError> {
        let api = self.api().await?;
        let object = json!({
            "apiVersion": "ringfence.io/v1alpha1",
            "kind": "NodeFence",
            "metadata": { "name": host, "labels": { MADE_BY: WRITER } },
            "spec": { "nodeName": host },
        });
        let object = serde_json::from_value(object).map_err(|e| self.unreadable(&e))?;
        self.cluster
            .call(api.create(&PostParams::default(), &object))
            .await
    }

    fn is_own(&self, writer: &str) -> bool {
        writer == self.writer
    }

    fn fault(&self, why: String) -> BackendError {
        BackendError::Unreadable {
            platform: faults::label(&self.cluster.settings().name),
            service: faults::API_SERVER,
            why,
        }
    }

    fn undefined(&self, error: BackendError) -> BackendError {
        match error {
            BackendError::NotFound { platform, .. } => BackendError::Settings {
                platform,
                why:
                    "it has no NodeFence objects; define them: ringfence kubernetes crds | kubectl apply -f -"
                        .to_owned(),
            },
            error => error,
        }
    }

    fn unreadable(&self, error: &serde_json::Error) -> BackendError {
        self.fault(error_chain(error))
    }

    async fn take(&self, object: &DynamicObject) -> Result<Option<(String, WrittenRecord)>, BackendError> {
        let (Some(host), Some(writer)) = (&object.metadata.name, writer_of(object)) else {
            return Ok(None);
        };
        let is_as_read = json!({ "op": "test", "path": "/status/record/writer", "value": writer });
        let own = json!({ "op": "replace", "path": "/status/record/writer", "value": self.writer });
        // The process before may have written since.
        let taken = self.patch(host, json!([is_as_read, own])).await?;
        let record = taken.data.pointer("/status/record").cloned().unwrap_or_default();
        let record = serde_json::from_value(record).map_err(|e| self.unreadable(&e))?;
        Ok(Some((host.clone(), record)))
    }
}

fn writer_of(object: &DynamicObject) -> Option<&str> {
    object.data.pointer("/status/record/writer")?.as_str()
}

#[async_trait]
impl Records for NodeFences {
    fn platform(&self) -> &str {
        &self.cluster.settings().name
    }

    async fn take_over(&self) -> Result<Vec<(String, WrittenRecord)>, BackendError> {
        let api = self.api().await?;
        let mut records = Vec::new();
        let mut page = ListParams::default().limit(PAGE);
        loop {
            let objects = self.cluster.call(api.list(&page)).await;
            let objects = objects.map_err(|error| self.undefined(error))?;
            for object in &objects.items {
                records.extend(self.take(object).await?);
            }
            match objects.metadata.continue_.filter(|next| !next.is_empty()) {
                Some(next) => page = page.continue_token(&next),
                None => return Ok(records),
            }
        }
    }

    async fn write(&self, host: &str, record: &WrittenRecord) -> Result<Writer, BackendError> {
        let mut value = serde_json::to_value(record).map_err(|e| self.unreadable(&e))?;
        value["writer"] = json!(self.writer);
        let is_own = json!({ "op": "test", "path": "/status/record/writer", "value": self.writer });
        let write = json!({ "op": "replace", "path": "/status/record", "value": value });
        match self.patch(host, json!([is_own, write])).await {
            // The test has failed, or there is nothing to test.
            Err(BackendError::Refused { .. } | BackendError::NotFound { .. }) => {
                self.begin(host, &value).await
            }
            done => done.map(|_| Writer::Own),
        }
    }

    async fn writer(&self, host: &str) -> Result<Writer, BackendError> {
        let object = self.get(host).await?;
        let writer = object.as_ref().and_then(writer_of);
        match writer {
            Some(writer) if self.is_own(writer) => Ok(Writer::Own),
            Some(_) => Ok(Writer::Other),
            None => Err(self.fault(format!("NodeFence {host} has no record"))),
        }
    }
}

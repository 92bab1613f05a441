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
use ringfence_core::{HostId, error_chain};
use serde_json::{Value, json};
use uuid::Uuid;

use super::beat::WRITER;
use super::definitions::{DEFINE, GROUP, VERSION};
use super::{Cluster, Lead, faults, hosts};
use crate::{BackendError, Records, Writer, WrittenRecord};

/// How often a first record is tried to be written.
const MAX_TRIES: u32 = 4;
/// Objects of one answer.
const PAGE: u32 = 500;
/// On a `NodeFence` that Ringfence has made.
pub(super) const MADE_BY: &str = "ringfence.io/made-by";

/// The records in the `NodeFence` objects of a cluster.
#[derive(Debug)]
pub struct NodeFences {
    cluster: Arc<Cluster>,
    lead: Arc<Lead>,
    /// The name of this process in the records that it may write.
    writer: String,
}

impl NodeFences {
    /// Those of a cluster, for the process with this lead. No call is made.
    #[must_use]
    pub fn of(cluster: Arc<Cluster>, lead: Arc<Lead>) -> Self {
        let writer = Uuid::new_v4().to_string();
        Self {
            cluster,
            lead,
            writer,
        }
    }

    async fn api(&self) -> Result<Api<DynamicObject>, BackendError> {
        api(&self.cluster).await
    }

    async fn patch(&self, host: &str, operations: Value) -> Result<DynamicObject, BackendError> {
        let operations: Operations = serde_json::from_value(operations).map_err(|e| self.unreadable(&e))?;
        let patch: Patch<()> = Patch::Json(operations);
        let api = self.api().await?;
        let how = PatchParams::default();
        self.cluster.call(api.patch_status(host, &how, &patch)).await
    }

    /// The first record of a host that may have a `NodeFence` already. The object may be removed or changed between being read and written.
    async fn begin(&self, host: &str, record: &Value) -> Result<Writer, BackendError> {
        let mut tries = 1;
        loop {
            match self.try_to_begin(host, record).await {
                Err(BackendError::Refused { .. } | BackendError::NotFound { .. }) if tries < MAX_TRIES => {
                    tries += 1;
                }
                done => return done,
            }
        }
    }

    async fn try_to_begin(&self, host: &str, record: &Value) -> Result<Writer, BackendError> {
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
        let written = self.patch(host, json!([is_as_read, place])).await?;
        self.kept(host, &written, record)
    }

    /// A cluster drops what its definition of the objects does not have, and says nothing.
    fn kept(&self, host: &str, written: &DynamicObject, record: &Value) -> Result<Writer, BackendError> {
        let found = written.data.pointer("/status/record");
        if found.is_some_and(|found| has_all(found, record)) {
            return Ok(Writer::Own);
        }
        Err(BackendError::Settings {
            platform: faults::label(&self.cluster.settings().name),
            why: format!(
                "its definition of NodeFence is not that of this version and has dropped the record of {host}; define it: {DEFINE}"
            ),
        })
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
                why: format!("it has no NodeFence objects of version {VERSION}; define them: {DEFINE}"),
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

/// Whether a value has all of what was written. A field without a value may be left out.
fn has_all(found: &Value, written: &Value) -> bool {
    match (found, written) {
        (Value::Object(found), Value::Object(written)) => written.iter().all(|(field, value)| {
            value.is_null() || found.get(field).is_some_and(|found| has_all(found, value))
        }),
        (Value::Array(found), Value::Array(written)) => {
            found.len() == written.len()
                && found
                    .iter()
                    .zip(written)
                    .all(|(found, value)| has_all(found, value))
        }
        _ => found == written,
    }
}

/// The `NodeFence` objects of a cluster.
pub(super) async fn api(cluster: &Cluster) -> Result<Api<DynamicObject>, BackendError> {
    let kind = ApiResource {
        group: GROUP.to_owned(),
        version: VERSION.to_owned(),
        api_version: format!("{GROUP}/{VERSION}"),
        kind: "NodeFence".to_owned(),
        plural: "nodefences".to_owned(),
    };
    Ok(Api::all_with(cluster.client().await?.clone(), &kind))
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
            done => self.kept(host, &done?, &value),
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

    async fn remove(&self, host: &str, id: HostId) -> Result<(), BackendError> {
        let is_own = json!({ "op": "test", "path": "/status/record/writer", "value": self.writer });
        let is_of_host = json!({ "op": "test", "path": "/status/record/host/host_id", "value": id });
        let remove = json!({ "op": "remove", "path": "/status/record" });
        match self.patch(host, json!([is_own, is_of_host, remove])).await {
            // There is none, or it is of another host.
            Err(BackendError::Refused { .. } | BackendError::NotFound { .. }) => {}
            done => drop(done?),
        }
        hosts::forget(&self.cluster, host).await
    }

    async fn is_led_here(&self) -> Result<bool, BackendError> {
        self.lead.is_held().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_kept_only_if_all_of_it_was_kept() {
        let record = json!({ "writer": "w", "host": { "fence": { "proofs": [{ "kind": "power.off", "ended": null }] }, "plan": null } });
        assert!(has_all(&record, &record));
        let mut more = record.clone();
        more["host"]["later"] = json!(1);
        more["host"].as_object_mut().unwrap().remove("plan");
        assert!(has_all(&more, &record));
        for (pointer, value) in [
            ("/host", json!({})),
            ("/writer", json!("another")),
            ("/host/fence/proofs", json!([])),
            ("/host/fence/proofs/0", json!({})),
            ("/host/fence", Value::Null),
        ] {
            let mut less = record.clone();
            *less.pointer_mut(pointer).unwrap() = value;
            assert!(!has_all(&less, &record), "{pointer}");
        }
    }
}

//! Which of several processes leads in a cluster: the one that holds a lease. The lease spares the others the work, and proves nothing: a
//! process that takes itself for the leader and is not cannot write a record.

use std::sync::Arc;
use std::time::Duration;

use chrono::SecondsFormat;
use kube::Api;
use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use ringfence_core::Timestamp;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

use super::{Cluster, objects};
use crate::BackendError;

const NAME: &str = "ringfence-leader";
/// How long the lease counts without being written again.
const COUNTS_FOR: Duration = Duration::from_secs(10);
/// How long a leader goes on that cannot write it.
const GIVEN_UP_AFTER: Duration = Duration::from_secs(8);
/// Between two looks, and between two writes.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// The lead of one process in a cluster.
#[derive(Debug)]
pub struct Lead {
    cluster: Arc<Cluster>,
    holder: String,
    clock: fn() -> Timestamp,
}

/// The lease as it was last seen to change.
struct Seen {
    version: Option<String>,
    at: Instant,
}

impl Lead {
    /// The lead of a process of this name. No call is made.
    #[must_use]
    pub fn new(cluster: Arc<Cluster>, holder: String, clock: fn() -> Timestamp) -> Self {
        Self {
            cluster,
            holder,
            clock,
        }
    }

    /// Waits until this process leads. A fault is told each time that it changes, and waited for.
    pub async fn take(&self) {
        let mut told = None;
        let mut seen = Seen {
            version: None,
            at: Instant::now(),
        };
        loop {
            match self.try_to_take(&mut seen).await {
                Ok(true) => return,
                Ok(false) => told = None,
                Err(error) => {
                    let why = error.to_string();
                    if told.as_ref() != Some(&why) {
                        tracing::warn!(%error, "the lease of the leader cannot be had");
                        told = Some(why);
                    }
                }
            }
            sleep(LOOK_EVERY).await;
        }
    }

    /// Leads for as long as the lease can be written.
    pub async fn keep(&self) {
        let mut written_at = Instant::now();
        loop {
            sleep(LOOK_EVERY).await;
            let left = GIVEN_UP_AFTER.saturating_sub(written_at.elapsed());
            match timeout(left, self.write_again()).await {
                Ok(Ok(true)) => written_at = Instant::now(),
                Ok(Ok(false)) => return,
                Ok(Err(error)) => tracing::warn!(%error, "the lease of the leader cannot be written"),
                Err(_) => return,
            }
        }
    }

    /// Whether this process holds the lease, read from the API server. Only the holder counts, and no time: another process begins to lead by
    /// writing its own name, and this one never takes back a lead that it has lost.
    ///
    /// # Errors
    /// The API server is away or refuses.
    pub async fn is_held(&self) -> Result<bool, BackendError> {
        let lease = self.get().await?;
        Ok(lease.as_ref().and_then(holder_of) == Some(&self.holder))
    }

    /// Lets another process take the lead at once.
    pub async fn give_back(&self) {
        if let Err(error) = self.try_to_give_back().await {
            tracing::warn!(%error, "the lease of the leader cannot be given back; it runs out by itself");
        }
    }

    async fn try_to_take(&self, seen: &mut Seen) -> Result<bool, BackendError> {
        let Some(lease) = self.get().await? else {
            return self.create().await;
        };
        let version = lease.metadata.resource_version.clone();
        if seen.version != version {
            *seen = Seen {
                version,
                at: Instant::now(),
            };
        }
        let holder = holder_of(&lease);
        let is_free = holder.is_none_or(|holder| holder.is_empty() || holder == self.holder);
        // The clock of the process that writes it says nothing here.
        if !is_free && seen.at.elapsed() < COUNTS_FOR {
            return Ok(false);
        }
        self.write(&lease, json!(self.holder)).await
    }

    async fn write_again(&self) -> Result<bool, BackendError> {
        match self.get().await? {
            Some(lease) if holder_of(&lease) == Some(&self.holder) => {
                self.write(&lease, json!(self.holder)).await
            }
            Some(_) | None => Ok(false),
        }
    }

    async fn try_to_give_back(&self) -> Result<(), BackendError> {
        match self.get().await? {
            Some(lease) if holder_of(&lease) == Some(&self.holder) => {
                self.write(&lease, json!("")).await.map(drop)
            }
            Some(_) | None => Ok(()),
        }
    }

    async fn api(&self) -> Result<Api<DynamicObject>, BackendError> {
        let client = self.cluster.client().await?.clone();
        let namespace = &self.cluster.settings().namespace;
        Ok(Api::namespaced_with(client, namespace, &objects::leases()))
    }

    async fn get(&self) -> Result<Option<DynamicObject>, BackendError> {
        let api = self.api().await?;
        self.cluster.call(api.get_opt(NAME)).await
    }

    async fn create(&self) -> Result<bool, BackendError> {
        let mut lease = DynamicObject::new(NAME, &objects::leases());
        lease.data = json!({ "spec": self.spec(&json!(self.holder)) });
        let api = self.api().await?;
        let made = self
            .cluster
            .call(api.create(&PostParams::default(), &lease))
            .await;
        is_done(made)
    }

    /// As it was read: a write of another process between makes this one void.
    async fn write(&self, lease: &DynamicObject, holder: Value) -> Result<bool, BackendError> {
        let change = json!({
            "metadata": { "resourceVersion": lease.metadata.resource_version },
            "spec": self.spec(&holder),
        });
        let api = self.api().await?;
        let how = PatchParams::default();
        let patch = Patch::Merge(change);
        is_done(self.cluster.call(api.patch(NAME, &how, &patch)).await)
    }

    fn spec(&self, holder: &Value) -> Value {
        json!({
            "holderIdentity": holder,
            "leaseDurationSeconds": COUNTS_FOR.as_secs(),
            "renewTime": (self.clock)().to_rfc3339_opts(SecondsFormat::Micros, true),
        })
    }
}

fn holder_of(lease: &DynamicObject) -> Option<&str> {
    lease.data.pointer("/spec/holderIdentity")?.as_str()
}

/// Another process may have been quicker.
fn is_done<T>(made: Result<T, BackendError>) -> Result<bool, BackendError> {
    match made {
        Ok(_) => Ok(true),
        Err(BackendError::Refused { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

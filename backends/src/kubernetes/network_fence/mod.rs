//! A node's addresses, cut off from their storage by csi-addons.
//!
//! csi-addons has its CSI driver do what an object `NetworkFence` says, and writes the result into the status, which does not tell of which
//! version of the object it is. So each command is an object of its own, which nothing changes afterwards, and only its status counts.
//! csi-addons does an object again without being asked: when the driver has failed, and all of them when it starts. So an object that says
//! the opposite is removed before another is made, and is waited for until csi-addons has let go of it. Removing one undoes nothing.

mod addresses;
mod object;

use std::collections::BTreeSet;
use std::time::Duration;

use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::json;
use tokio::time::{Instant, sleep};
use uuid::Uuid;

pub use self::object::FenceState;
use self::object::{GROUP, NetworkFence, Status, has_succeeded, is_removed, kind};
use super::beat::WRITER;
use super::{Cluster, faults};
use crate::{Addresses, BackendError};

/// On what Ringfence has made.
const MADE_BY: &str = "ringfence.io/made-by";
/// The node that an object is for: a name may be too long for a label.
const NODE: &str = "ringfence.io/node";
/// Keeps an object that was removed until its addresses stand in the next one, and an unanswered one until it can have no more effect.
const HOLD: &str = "ringfence.io/network-fence";
/// Keeps an object that was removed until csi-addons does not act for it any more: it is there from before the first call.
const CSI_ADDONS_HOLD: &str = "csiaddons.openshift.io/network-fence";
/// The longest part of a node's name in that of an object, which has 253 characters at most.
const MAX_NODE: usize = 200;
/// Objects of one answer.
const PAGE: u32 = 500;
/// Between two looks at an object that is being removed.
const PAUSE: Duration = Duration::from_millis(250);
/// How long a storage may carry out a call on which its client has given up.
const LANDS_WITHIN: Duration = Duration::from_secs(10);

/// What the objects of a node say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NetworkFenceReading {
    /// The storage has done it, in words.
    Done(FenceState, String),
    /// Nothing that can be relied on, in words.
    Unclear(String),
    /// The node could not be fenced so, in words.
    Refused(String),
}

/// The fencing of one node's addresses by a class of fences.
#[derive(Clone, Copy, Debug)]
pub struct NetworkFencing<'a> {
    /// The cluster with the objects.
    pub cluster: &'a Cluster,
    /// The name of the `NetworkFenceClass`: the storage.
    pub class: &'a str,
    /// The name of the node, which its CSI driver has as the node's id.
    pub node: &'a str,
    /// The node's addresses; if absent, those that its CSI driver has reported.
    pub cidrs: Option<&'a Addresses>,
}

/// The objects that concern one node.
struct Found {
    /// Those of Ringfence for the node and the class.
    own: Vec<NetworkFence>,
    /// All others.
    others: Vec<NetworkFence>,
}

impl NetworkFencing<'_> {
    /// A name for an object that no other has.
    #[must_use]
    pub fn new_name(&self) -> String {
        let node: String = self.node.chars().take(MAX_NODE).collect();
        let node = node.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
        format!("{WRITER}-{node}-{}", Uuid::new_v4().simple())
    }

    /// Makes the object `name` that asks for it, once none of Ringfence asks for the opposite. The words say what was done; the inner error is
    /// a definite no.
    ///
    /// # Errors
    /// The API server does not answer, or refuses.
    pub async fn ask(
        &self,
        wanted: FenceState,
        name: &str,
        until: Instant,
    ) -> Result<Result<String, String>, BackendError> {
        if let Err(why) = self.find_class().await? {
            return Ok(Err(why));
        }
        let found = self.found().await?;
        let addresses = match self.addresses(&found, wanted).await? {
            Ok(addresses) => addresses,
            Err(why) => return Ok(Err(why)),
        };
        let others = match self.undoing(&found, wanted, &addresses) {
            Ok(others) => others,
            Err(why) => return Ok(Err(why)),
        };
        let opposite = found.own.iter().filter(|one| one.spec.fence_state != wanted);
        let opposite = opposite.chain(others.iter().copied());
        if let Err(why) = self.silence(opposite, until).await? {
            return Ok(Ok(why));
        }
        match self.create(name, wanted, &addresses).await {
            Err(error @ BackendError::Refused { .. }) => return Ok(Err(error.to_string())),
            made => made?,
        }
        for old in found.own.iter().chain(others) {
            self.remove(old).await?;
            self.let_go(old).await?;
        }
        Ok(Ok(format!("NetworkFence {name} was made")))
    }

    /// What became of the object that was made under this name.
    ///
    /// # Errors
    /// As [`ask`](Self::ask).
    pub async fn read_back(&self, name: &str) -> Result<NetworkFenceReading, BackendError> {
        let api = self.fences().await?;
        let object = self.cluster.call(api.get_opt(name)).await?;
        Ok(object.map_or_else(
            || NetworkFenceReading::Unclear(format!("there is no NetworkFence {name}")),
            |object| reading(&object),
        ))
    }

    /// What the objects of the node say, and whether it could be fenced now.
    ///
    /// # Errors
    /// As [`ask`](Self::ask).
    pub async fn look(&self) -> Result<NetworkFenceReading, BackendError> {
        if let Err(why) = self.find_class().await? {
            return Ok(NetworkFenceReading::Refused(why));
        }
        let found = self.found().await?;
        let addresses = match self.addresses(&found, FenceState::Fenced).await? {
            Ok(addresses) => addresses,
            Err(why) => return Ok(NetworkFenceReading::Refused(why)),
        };
        if let Err(why) = self.undoing(&found, FenceState::Fenced, &addresses) {
            return Ok(NetworkFenceReading::Refused(why));
        }
        let live = found.own.iter().filter(|one| !is_removed(one));
        let newest = live.max_by_key(|one| one.metadata.creation_timestamp.clone());
        Ok(newest.map_or_else(
            || {
                let words = format!(
                    "no NetworkFence of Ringfence is there for {}, which has {}",
                    self.node,
                    told(&addresses)
                );
                NetworkFenceReading::Done(FenceState::Unfenced, words)
            },
            reading,
        ))
    }

    /// That the class is there; why not, in words.
    async fn find_class(&self) -> Result<Result<(), String>, BackendError> {
        let client = self.cluster.client().await?.clone();
        let api: Api<DynamicObject> =
            Api::all_with(client, &kind("NetworkFenceClass", "networkfenceclasses"));
        match self.cluster.call(api.get(self.class)).await {
            Err(BackendError::NotFound { .. }) => {}
            found => return found.map(|_| Ok(())),
        }
        let classes = self.list(&api).await.map_err(|error| self.undefined(error))?;
        let names: Vec<String> = classes.iter().map(ResourceExt::name_any).collect();
        let there = match names.as_slice() {
            [] => "none".to_owned(),
            names => names.join(", "),
        };
        Ok(Err(format!(
            "there is no NetworkFenceClass {}; there is: {there}",
            self.class
        )))
    }

    fn undefined(&self, error: BackendError) -> BackendError {
        match error {
            BackendError::NotFound { platform, .. } => BackendError::Settings {
                platform,
                why: format!(
                    "it has no NetworkFence objects: csi-addons ({GROUP}/v1alpha1) has to be installed"
                ),
            },
            error => error,
        }
    }

    async fn found(&self) -> Result<Found, BackendError> {
        let all = self.list(&self.fences().await?).await?;
        let (own, others) = all.into_iter().partition(|one| self.is_own(one));
        Ok(Found { own, others })
    }

    fn is_own(&self, object: &NetworkFence) -> bool {
        is_made_here(object)
            && object
                .annotations()
                .get(NODE)
                .is_some_and(|node| node == self.node)
            && object.spec.network_fence_class_name == self.class
    }

    /// Removes objects, and waits until csi-addons does not act for them any more; why that is not so yet, in words.
    async fn silence(
        &self,
        objects: impl Iterator<Item = &NetworkFence>,
        until: Instant,
    ) -> Result<Result<(), String>, BackendError> {
        let mut may_land = false;
        for object in objects {
            self.remove(object).await?;
            if !self.is_let_go(object, until).await? {
                let name = object.name_any();
                return Ok(Err(format!(
                    "nothing was asked for, since csi-addons has not let go of NetworkFence {name} yet, which was removed"
                )));
            }
            // A cut that lands late keeps a host from its storage; a release that lands late lets it write.
            may_land |= object.spec.fence_state == FenceState::Unfenced && !has_succeeded(object);
        }
        if may_land && Instant::now() + LANDS_WITHIN > until {
            let why = "nothing was asked for: no time is left to wait for an unfencing without an answer";
            return Ok(Err(why.to_owned()));
        }
        if may_land {
            sleep(LANDS_WITHIN).await;
        }
        Ok(Ok(()))
    }

    async fn is_let_go(&self, object: &NetworkFence, until: Instant) -> Result<bool, BackendError> {
        let api = self.fences().await?;
        loop {
            let now = self.cluster.call(api.get_opt(&object.name_any())).await?;
            if !now.is_some_and(|one| may_act(&one)) {
                return Ok(true);
            }
            if Instant::now() + PAUSE * 2 > until {
                return Ok(false);
            }
            sleep(PAUSE).await;
        }
    }

    async fn create(
        &self,
        name: &str,
        wanted: FenceState,
        addresses: &BTreeSet<String>,
    ) -> Result<(), BackendError> {
        let object = json!({
            "apiVersion": format!("{GROUP}/v1alpha1"),
            "kind": "NetworkFence",
            "metadata": {
                "name": name, "labels": { MADE_BY: WRITER }, "annotations": { NODE: self.node }, "finalizers": [HOLD],
            },
            "spec": { "networkFenceClassName": self.class, "fenceState": wanted, "cidrs": addresses },
        });
        let object = serde_json::from_value(object).map_err(|error| BackendError::Unreadable {
            platform: faults::label(&self.cluster.settings().name),
            service: faults::API_SERVER,
            why: error.to_string(),
        })?;
        let api = self.fences().await?;
        let how = PostParams::default();
        self.cluster.call(api.create(&how, &object)).await.map(drop)
    }

    async fn remove(&self, object: &NetworkFence) -> Result<(), BackendError> {
        let api = self.fences().await?;
        let name = object.name_any();
        let how = DeleteParams::default();
        let removed = self.cluster.call(api.delete(&name, &how)).await;
        unless_gone(removed.map(drop))
    }

    /// Lets an object that was removed go.
    async fn let_go(&self, object: &NetworkFence) -> Result<(), BackendError> {
        let api = self.fences().await?;
        let name = object.name_any();
        let Some(now) = self.cluster.call(api.get_opt(&name)).await? else {
            return Ok(());
        };
        let others: Vec<&String> = now.finalizers().iter().filter(|one| *one != HOLD).collect();
        let version = &now.metadata.resource_version;
        let change = json!({ "metadata": { "resourceVersion": version, "finalizers": others } });
        let (how, change) = (PatchParams::default(), Patch::Merge(change));
        match self.cluster.call(api.patch(&name, &how, &change)).await {
            // csi-addons has changed it meanwhile; it is let go with the next command.
            Err(BackendError::Refused { .. }) => Ok(()),
            done => unless_gone(done.map(drop)),
        }
    }

    async fn fences(&self) -> Result<Api<NetworkFence>, BackendError> {
        let client = self.cluster.client().await?.clone();
        Ok(Api::all_with(client, &kind("NetworkFence", "networkfences")))
    }

    async fn list<T: Clone + DeserializeOwned + std::fmt::Debug>(
        &self,
        api: &Api<T>,
    ) -> Result<Vec<T>, BackendError> {
        let mut page = ListParams::default().limit(PAGE);
        let mut all = Vec::new();
        loop {
            let objects = self.cluster.call(api.list(&page)).await?;
            all.extend(objects.items);
            match objects.metadata.continue_.filter(|next| !next.is_empty()) {
                Some(next) => page = page.continue_token(&next),
                None => return Ok(all),
            }
        }
    }
}

fn is_made_here(object: &NetworkFence) -> bool {
    object.labels().get(MADE_BY).is_some_and(|by| by == WRITER)
}

/// Whether csi-addons may act for it, now or later.
fn may_act(object: &NetworkFence) -> bool {
    !is_removed(object) || object.finalizers().iter().any(|name| name == CSI_ADDONS_HOLD)
}

fn unless_gone(done: Result<(), BackendError>) -> Result<(), BackendError> {
    match done {
        Err(BackendError::NotFound { .. }) => Ok(()),
        done => done,
    }
}

fn told(addresses: &BTreeSet<String>) -> String {
    addresses
        .iter()
        .map(String::as_str)
        .collect::<Vec<_>>()
        .join(", ")
}

fn reading(object: &NetworkFence) -> NetworkFenceReading {
    let name = object.name_any();
    if is_removed(object) {
        return NetworkFenceReading::Unclear(format!("NetworkFence {name} was removed by another client"));
    }
    // The API server counts the changes of what was asked for.
    if object.metadata.generation != Some(1) {
        return NetworkFenceReading::Unclear(format!("NetworkFence {name} was changed by another client"));
    }
    let status = object.status.clone().unwrap_or_default();
    let Status { result, message } = &status;
    match result.as_str() {
        "" => NetworkFenceReading::Unclear(format!("csi-addons has not answered to NetworkFence {name}")),
        _ if has_succeeded(object) => {
            let addresses = object.spec.cidrs.join(", ");
            let words = format!("NetworkFence {name} says {message}, for {addresses}");
            NetworkFenceReading::Done(object.spec.fence_state, words)
        }
        _ => NetworkFenceReading::Unclear(format!("NetworkFence {name} says {result}: {message}")),
    }
}

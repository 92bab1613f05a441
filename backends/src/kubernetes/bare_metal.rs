//! A bare-metal host of Metal3: its operator switches it off for as long as an annotation of ours is there.
//!
//! The operator's `status.poweredOn` has no time, and says what Ironic last read. Only a change of it after our annotation is a proof: so
//! the annotation is written together with a mark where the object, in the very version that is changed, says that the host is on.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta};
use kube::Api;
use kube::api::{ApiResource, GroupVersionKind, Patch, PatchParams};
use kube::core::Object;
use ringfence_core::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::Cluster;
use super::beat::WRITER;
use crate::BackendError;

/// What holds a host off: the operator's own beginning, and our name.
const HOLD: &str = "reboot.metal3.io/ringfence";
/// At once. With anything else, also with a text that it cannot read, the operator waits for the system of the host to stop.
const AT_ONCE: &str = r#"{"mode":"hard"}"#;
/// When the hold began, where the host was on then.
const WAS_ON: &str = "ringfence.io/was-on";
/// How long that counts: longer than all attempts of one task. Later a report of off may be older than a switch by hand.
const WAS_ON_FOR: TimeDelta = TimeDelta::minutes(15);
/// The beginning of all holds.
const HOLDS: &str = "reboot.metal3.io";
/// With one of these the operator does nothing.
const IDLE: [&str; 2] = [
    "baremetalhost.metal3.io/paused",
    "baremetalhost.metal3.io/detached",
];

/// Tries at a change that the operator's changes overtake.
const MAX_TRIES: u32 = 5;

/// Annotations of ours; `None` for one that is to go.
type Changes = [(&'static str, Option<String>); 2];

type HostObject = Object<Spec, Status>;

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    online: bool,
    disable_power_off: bool,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    powered_on: Option<bool>,
    error_type: String,
    error_message: String,
}

/// One bare-metal host.
#[derive(Clone, Copy, Debug)]
pub struct BareMetalHost<'a> {
    /// The cluster that has the object.
    pub cluster: &'a Cluster,
    /// The namespace of the object.
    pub namespace: &'a str,
    /// Its name.
    pub name: &'a str,
}

/// What the object says of the power.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BareMetalPower {
    /// It is on.
    On,
    /// It was on when our hold began, and is off since.
    Off,
    /// What the object says is no proof of a state, in words.
    Unclear(String),
    /// The operator would not switch it off, in words.
    Refused(String),
}

impl BareMetalHost<'_> {
    /// What the object says now.
    ///
    /// # Errors
    /// The API server does not answer, or refuses.
    pub async fn power(&self) -> Result<BareMetalPower, BackendError> {
        Ok(power_of(&self.read().await?))
    }

    /// Has the operator switch the host off, for as long as it is not released. The inner error is a definite no. `now` is the time of the
    /// command.
    ///
    /// # Errors
    /// The API server does not answer, or refuses.
    pub async fn hold_off(&self, now: Timestamp) -> Result<Result<(), String>, BackendError> {
        self.change(|object| match refusal(object) {
            Some(why) => Err(why),
            None => Ok([(HOLD, Some(AT_ONCE.to_owned())), (WAS_ON, was_on(object, now))]),
        })
        .await
    }

    /// Takes our hold away, and no other.
    ///
    /// # Errors
    /// As [`hold_off`](Self::hold_off).
    pub async fn release(&self) -> Result<Result<(), String>, BackendError> {
        self.change(|_| Ok([(HOLD, None), (WAS_ON, None)])).await
    }

    /// Changes annotations of the object in the version that they were decided upon. The operator writes to the object, too.
    async fn change(
        &self,
        decide: impl Fn(&HostObject) -> Result<Changes, String>,
    ) -> Result<Result<(), String>, BackendError> {
        let mut tries = 1;
        loop {
            let object = self.read().await?;
            let changes = match decide(&object) {
                Ok(changes) => changes,
                Err(why) => return Ok(Err(why)),
            };
            match self.annotate(&object, changes).await {
                Err(BackendError::Refused { .. }) if tries < MAX_TRIES => tries += 1,
                done => return done.map(Ok),
            }
        }
    }

    async fn read(&self) -> Result<HostObject, BackendError> {
        let api = self.api().await?;
        self.cluster.call(api.get(self.name)).await
    }

    async fn annotate(&self, object: &HostObject, changes: Changes) -> Result<(), BackendError> {
        let changes = BTreeMap::from(changes);
        let version = &object.metadata.resource_version;
        let change = json!({ "metadata": { "resourceVersion": version, "annotations": changes } });
        let change = Patch::Merge(change);
        let parameters = PatchParams {
            field_manager: Some(WRITER.to_owned()),
            ..PatchParams::default()
        };
        let api = self.api().await?;
        let patched = api.patch(self.name, &parameters, &change);
        self.cluster.call(patched).await.map(|_| ())
    }

    async fn api(&self) -> Result<Api<HostObject>, BackendError> {
        let kind = GroupVersionKind::gvk("metal3.io", "v1alpha1", "BareMetalHost");
        let resource = ApiResource::from_gvk_with_plural(&kind, "baremetalhosts");
        let client = self.cluster.client().await?.clone();
        Ok(Api::namespaced_with(client, self.namespace, &resource))
    }
}

fn annotation<'a>(object: &'a HostObject, name: &str) -> Option<&'a str> {
    let all = object.metadata.annotations.as_ref()?;
    all.get(name).map(String::as_str)
}

/// The time at which the host was on: now, or when our hold began a short while ago.
fn was_on(object: &HostObject, now: Timestamp) -> Option<String> {
    if object.status.as_ref().and_then(|status| status.powered_on) == Some(true) {
        return Some(now.to_rfc3339());
    }
    let begun = annotation(object, HOLD).and_then(|_| annotation(object, WAS_ON))?;
    let at = DateTime::parse_from_rfc3339(begun).ok()?;
    let age = now.signed_duration_since(at);
    (TimeDelta::zero()..WAS_ON_FOR)
        .contains(&age)
        .then(|| begun.to_owned())
}

fn refusal(object: &HostObject) -> Option<String> {
    if object.spec.disable_power_off {
        let why = "spec.disablePowerOff is true: its operator would only reboot it; fence it by its BMC";
        return Some(why.to_owned());
    }
    let idle = IDLE.iter().find(|name| annotation(object, name).is_some())?;
    Some(format!(
        "its operator does nothing while annotation {idle} is there; remove it, or fence the host by its BMC"
    ))
}

fn power_of(object: &HostObject) -> BareMetalPower {
    if let Some(why) = refusal(object) {
        return BareMetalPower::Refused(why);
    }
    let status = object.status.clone().unwrap_or_default();
    if !status.error_type.is_empty() {
        let Status {
            error_type,
            error_message,
            ..
        } = status;
        return BareMetalPower::Unclear(format!("its operator reports {error_type}: {error_message}"));
    }
    let has = |name| annotation(object, name).is_some();
    match status.powered_on {
        Some(true) => BareMetalPower::On,
        Some(false) if annotation(object, HOLD) == Some(AT_ONCE) && has(WAS_ON) => BareMetalPower::Off,
        Some(false) => BareMetalPower::Unclear(format!(
            "status.poweredOn is false, but was not true when Ringfence's command came{}",
            others(object)
        )),
        None => BareMetalPower::Unclear("status.poweredOn is not set".to_owned()),
    }
}

/// What else keeps a host off, in words.
fn others(object: &HostObject) -> String {
    let names = object.metadata.annotations.iter().flat_map(BTreeMap::keys);
    let holds: Vec<_> = names
        .filter(|name| name.starts_with(HOLDS) && name.as_str() != HOLD)
        .map(String::as_str)
        .collect();
    match (holds.is_empty(), object.spec.online) {
        (false, _) => format!("; held off by {}", holds.join(", ")),
        (true, false) => "; spec.online is false".to_owned(),
        (true, true) => String::new(),
    }
}

//! Checks of a Nova before it is needed: its versions, its clock, and the rights of Ringfence's user.

use chrono::{DateTime, Utc};
use openstack::session::Session;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::json;

use crate::BackendError;
use crate::openstack::beyond::{NOVA, NOVA_WITHOUT_UPTIME, VERSIONS, pick};
use crate::openstack::cloud::unless_gone;
use crate::openstack::rights::{FailedCall, NO_SUCH_ID, failed};
use crate::openstack::{Cloud, faults};

const PROBE_HEADER: &str = "X-Ringfence-Probe";
const GATE_HEADER: &str = "X-Ringfence-Gate";

/// The state of Ringfence's plug-in in nova-api, as the plug-in reports it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct GateProbe {
    /// The cloud's name in the plug-in's configuration.
    #[serde(default)]
    pub cloud: String,
    /// `answers`, or why no scheduler hook does.
    pub hook: String,
    /// Whether nova.conf enables the scheduler's filter: `enabled`, `not enabled` or `unknown`.
    #[serde(default)]
    pub filter: String,
}

/// Versions of Nova's API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NovaVersions {
    /// The oldest version.
    pub oldest: String,
    /// The newest version.
    pub newest: String,
    /// The version that is used.
    pub used: String,
}

impl Cloud {
    /// The versions of Nova's API.
    ///
    /// # Errors
    /// Nova is away, or has none that can be used.
    pub async fn nova_versions(&self) -> Result<NovaVersions, BackendError> {
        let call = |session: Session| async move { session.get_api_versions(NOVA).await };
        let has = self.again(NOVA.name, call).await?;
        let used = pick(has, VERSIONS).map_err(|why| BackendError::Version {
            platform: faults::label(self.name()),
            service: NOVA.name,
            why,
        })?;
        let [oldest, newest] = has.map_or([used, used].map(|v| v.to_string()), |(oldest, newest)| {
            [oldest, newest].map(|version| version.to_string())
        });
        Ok(NovaVersions {
            oldest,
            newest,
            used: used.to_string(),
        })
    }

    /// The time of Nova's clock in whole seconds, if Nova's answers have one.
    ///
    /// # Errors
    /// Nova is away, or refuses.
    pub async fn nova_time(&self) -> Result<Option<DateTime<Utc>>, BackendError> {
        let date = self.get(NOVA, &["os-services"]).header_of_answer("date").await?;
        let date = date.and_then(|date| DateTime::parse_from_rfc2822(&date).ok());
        Ok(date.map(|date| date.to_utc()))
    }

    /// The state of the gate that Ringfence's plug-in puts before evacuations, if Nova has the plug-in.
    ///
    /// # Errors
    /// Nova is away, or refuses.
    pub async fn gate(&self) -> Result<Option<GateProbe>, BackendError> {
        let request = self.get(NOVA, &["os-services"]).header(PROBE_HEADER, "1");
        let told = request.header_of_answer(GATE_HEADER).await?;
        Ok(told.map(|told| {
            serde_json::from_str(&told).unwrap_or_else(|_| GateProbe {
                hook: format!("its answer cannot be read: {told:?}"),
                ..GateProbe::default()
            })
        }))
    }

    /// Makes the calls that a fence, an evacuation and a return need, as far as they change nothing, and returns the calls that failed. The
    /// right to evacuate shows only at the first evacuation.
    pub async fn failing_calls(&self) -> Vec<FailedCall> {
        failed([
            (
                "list the services (GET os-services)",
                self.services().await.map(drop),
            ),
            ("force a service down (PUT os-services)", self.try_change().await),
            (
                "list the servers of all projects (GET servers)",
                self.try_list(&["servers", "detail"], "servers", &[("all_tenants", "1")])
                    .await,
            ),
            (
                "list evacuations (GET os-migrations)",
                self.try_list(&["os-migrations"], "migrations", &[]).await,
            ),
            (
                "list hypervisors (GET os-hypervisors)",
                self.try_list(&["os-hypervisors"], "hypervisors", &[]).await,
            ),
            (
                "read the traits of a host (GET resource_providers of Placement)",
                unless_gone(self.traits(NO_SUCH_ID).await).map(drop),
            ),
        ])
    }

    async fn try_list(&self, path: &[&str], key: &str, query: &[(&str, &str)]) -> Result<(), BackendError> {
        let request = self.get(NOVA_WITHOUT_UPTIME, path).query(query);
        let one = request.query(&[("limit", "1")]);
        one.read::<IgnoredAny>(key).await.map(drop)
    }

    async fn try_change(&self) -> Result<(), BackendError> {
        let request = self.put(NOVA, &["os-services", NO_SUCH_ID]);
        let change = request.json(json!({ "forced_down": true })).repeatable();
        unless_gone(change.send().await).map(drop)
    }
}

//! What can be found out about a Nova before it is needed: its versions, its clock, and whether it lets us do our work.

use chrono::{DateTime, Utc};
use osauth::Session;
use osauth::services::COMPUTE;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{NOVA, VERSIONS, WITHOUT_UPTIME, get, put, versioned};
use crate::BackendError;
use crate::openstack::Cloud;
use crate::openstack::rights::{FailedCall, NOBODY, failed, none_is_fine};
use crate::openstack::versions::pick;

const PROBE_HEADER: &str = "X-Ringfence-Probe";
const GATE_HEADER: &str = "X-Ringfence-Gate";

/// How the plug-in in nova-api finds itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct GateProbe {
    /// By what name it knows the cloud.
    #[serde(default)]
    pub cloud: String,
    /// `answers`, or why no hook does.
    pub hook: String,
    /// Whether its configuration enables the scheduler's filter: `enabled`, `not enabled` or `unknown`.
    #[serde(default)]
    pub filter: String,
}

/// Versions of Nova's API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NovaVersions {
    /// The oldest that it has.
    pub oldest: String,
    /// The newest that it has.
    pub newest: String,
    /// The one that is used.
    pub used: String,
}

impl Cloud {
    /// The versions of Nova's API.
    ///
    /// # Errors
    /// Nova is away, or has none that can be used.
    pub async fn nova_versions(&self) -> Result<NovaVersions, BackendError> {
        let call = |session: Session| async move { session.get_api_versions(COMPUTE).await };
        let has = self.again(NOVA, call).await?;
        let used = pick(has, VERSIONS).map_err(|why| BackendError::Version {
            cloud: self.name().to_owned(),
            service: NOVA,
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

    /// What Nova's clock says, in whole seconds, if its answers tell.
    ///
    /// # Errors
    /// Nova is away, or refuses.
    pub async fn nova_time(&self) -> Result<Option<DateTime<Utc>>, BackendError> {
        let call = |session: Session| async move {
            let answer = get(&session, &["os-services"]).await?.send().await?;
            let date = answer.headers().get("date").and_then(|date| date.to_str().ok());
            Ok(date.and_then(|date| DateTime::parse_from_rfc2822(date).ok()))
        };
        let date = self.again(NOVA, call).await?;
        Ok(date.map(|date| date.to_utc()))
    }

    /// How the gate is that Ringfence's plug-in puts before evacuations, if Nova has it.
    ///
    /// # Errors
    /// Nova is away, or refuses.
    pub async fn gate(&self) -> Result<Option<GateProbe>, BackendError> {
        let call = |session: Session| async move {
            let request = get(&session, &["os-services"]).await?.header(PROBE_HEADER, "1");
            let answer = request.send().await?;
            let told = answer.headers().get(GATE_HEADER);
            let told = told.and_then(|told| told.to_str().ok()).map(str::to_owned);
            Ok(told)
        };
        let told = self.again(NOVA, call).await?;
        Ok(told.map(|told| {
            serde_json::from_str(&told).unwrap_or_else(|_| GateProbe {
                hook: format!("its answer cannot be read: {told:?}"),
                ..GateProbe::default()
            })
        }))
    }

    /// Makes the calls that a fence, an evacuation and a return need, as far as they can be made without changing anything, and gives
    /// those that failed. Whether a server may be evacuated shows only when one is.
    pub async fn failing_calls(&self) -> Vec<FailedCall> {
        failed([
            (
                "list the services (GET os-services)",
                self.services().await.map(drop),
            ),
            ("force a service down (PUT os-services)", self.try_change().await),
            (
                "list the servers of all projects (GET servers)",
                self.try_list("servers/detail", &[("all_tenants", "1"), ("limit", "1")])
                    .await,
            ),
            (
                "list evacuations (GET os-migrations)",
                self.try_list("os-migrations", &[("limit", "1")]).await,
            ),
            (
                "list hypervisors (GET os-hypervisors)",
                self.try_list("os-hypervisors", &[("limit", "1")]).await,
            ),
            (
                "read the traits of a host (GET resource_providers of Placement)",
                none_is_fine(self.traits(NOBODY).await.map(drop)),
            ),
        ])
    }

    async fn try_list(&self, path: &'static str, query: &[(&str, &str)]) -> Result<(), BackendError> {
        let call = |session: Session| async move {
            let path: Vec<&str> = path.split('/').collect();
            let request = versioned(&session, session.get(COMPUTE, &path), WITHOUT_UPTIME).await?;
            request.query(query).fetch::<Value>().await.map(drop)
        };
        self.again(NOVA, call).await
    }

    async fn try_change(&self) -> Result<(), BackendError> {
        let call = |session: Session| async move {
            let request = put(&session, &["os-services", NOBODY]).await?;
            request
                .json(&json!({ "forced_down": true }))
                .send()
                .await
                .map(drop)
        };
        none_is_fine(self.again(NOVA, call).await)
    }
}

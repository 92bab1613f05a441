//! Nova's and Placement's records of hosts.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::cloud::wait::{Seen, wait_for};
use crate::cloud::{Api, Cloud};
use crate::error::LabError;

const REMOVAL_LIMIT: Duration = Duration::from_secs(60);

/// Nova's record of a host's nova-compute.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ComputeService {
    /// The record's id.
    pub id: String,
    /// The host.
    pub host: String,
    /// `up` or `down`.
    pub state: String,
    /// `enabled` or `disabled`.
    pub status: String,
    /// Whether the service is forced down.
    pub forced_down: bool,
    /// The reason for which the service is disabled.
    pub disabled_reason: Option<String>,
    /// The time of the last heartbeat, in UTC to the microsecond; any other change of the record sets it, too.
    pub updated_at: Option<String>,
}

impl ComputeService {
    /// Whether Nova sees the service up.
    #[must_use]
    pub fn is_up(&self) -> bool {
        self.state == "up"
    }
}

impl Cloud {
    /// Nova's record of a host.
    ///
    /// # Errors
    /// If Nova cannot be reached, or does not know the host.
    pub fn compute_service(&self, host: &str) -> Result<ComputeService, LabError> {
        self.find_compute_service(host)?.ok_or_else(|| LabError::NotSeen {
            what: format!("a compute service of {host}"),
            seconds: 0,
            seen: "none".to_owned(),
        })
    }

    /// The records of all hosts.
    ///
    /// # Errors
    /// If Nova cannot be reached.
    pub fn compute_services(&self) -> Result<Vec<ComputeService>, LabError> {
        self.find(Api::Compute, "/os-services?binary=nova-compute", "services")
    }

    pub(crate) fn find_compute_service(&self, host: &str) -> Result<Option<ComputeService>, LabError> {
        let path = format!("/os-services?binary=nova-compute&host={host}");
        let mut found: Vec<ComputeService> = self.find(Api::Compute, &path, "services")?;
        Ok(found.pop())
    }

    /// Disables a host and forces it down, in one call: Nova would ask the host otherwise, and wait a minute.
    ///
    /// # Errors
    /// If Nova cannot be reached or refuses.
    pub fn force_down(&self, host: &str, reason: &str) -> Result<(), LabError> {
        self.change_service(
            host,
            json!({"forced_down": true, "status": "disabled", "disabled_reason": reason}),
        )
    }

    /// Ends the forcing down of a host. Nova refuses while an evacuation from the host is `done` and not `completed`.
    ///
    /// # Errors
    /// If Nova cannot be reached or refuses.
    pub fn unforce(&self, host: &str) -> Result<(), LabError> {
        self.change_service(host, json!({"forced_down": false}))
    }

    /// Enables a host.
    ///
    /// # Errors
    /// If Nova cannot be reached or refuses.
    pub fn enable(&self, host: &str) -> Result<(), LabError> {
        self.change_service(host, json!({"status": "enabled"}))
    }

    /// Disables a host.
    ///
    /// # Errors
    /// If Nova cannot be reached or refuses.
    pub fn disable(&self, host: &str, reason: &str) -> Result<(), LabError> {
        self.change_service(host, json!({"status": "disabled", "disabled_reason": reason}))
    }

    fn change_service(&self, host: &str, change: Value) -> Result<(), LabError> {
        let id = self.compute_service(host)?.id;
        self.put(Api::Compute, &format!("/os-services/{id}"), change)
            .map(|_| ())
    }

    /// Waits until Nova sees a host up or down.
    ///
    /// # Errors
    /// If that takes more than a minute.
    pub fn wait_state(&self, host: &str, up: bool) -> Result<ComputeService, LabError> {
        let state = if up { "up" } else { "down" };
        wait_for(
            || format!("{host} {state}"),
            REMOVAL_LIMIT,
            || {
                let service = self.compute_service(host)?;
                Ok(if service.is_up() == up {
                    Seen::Enough(service)
                } else {
                    Seen::NotYet(format!("{service:?}"))
                })
            },
        )
    }

    /// Nova's record of a hypervisor with its `uptime`, if the host is in a cell.
    ///
    /// # Errors
    /// If Nova cannot be reached.
    pub fn hypervisor(&self, host: &str) -> Result<Option<Value>, LabError> {
        let all: Vec<Value> = self.find(Api::Compute, "/os-hypervisors/detail", "hypervisors")?;
        Ok(all.into_iter().find(|one| one["hypervisor_hostname"] == host))
    }

    /// The id of a host's resource provider, if there is one.
    ///
    /// # Errors
    /// If Placement cannot be reached.
    pub fn provider(&self, host: &str) -> Result<Option<String>, LabError> {
        let path = format!("/resource_providers?name={host}");
        let found: Vec<Value> = self.find(Api::Placement, &path, "resource_providers")?;
        Ok(found
            .first()
            .and_then(|provider| provider["uuid"].as_str())
            .map(str::to_owned))
    }

    /// The traits of a host's resource provider; `COMPUTE_STATUS_DISABLED` keeps work away.
    ///
    /// # Errors
    /// If Placement cannot be reached, or does not know the host.
    pub fn traits(&self, host: &str) -> Result<Vec<String>, LabError> {
        let provider = self.provider(host)?.unwrap_or_default();
        let path = format!("/resource_providers/{provider}/traits");
        self.find(Api::Placement, &path, "traits")
    }

    /// Removes a host whose nova-compute has ended, and its servers.
    pub(crate) fn forget_host(&self, host: &str) -> Result<(), LabError> {
        let Some(service) = self.find_compute_service(host)? else {
            return Ok(());
        };
        // A host that is forced down is not asked, so that its servers are deleted at once.
        self.force_down(host, "removed")?;
        wait_for(
            || format!("removing the servers of {host}"),
            REMOVAL_LIMIT,
            || {
                let servers = self.servers_on(host)?;
                for server in &servers {
                    self.delete_server(&server.id)?;
                }
                Ok(if servers.is_empty() {
                    Seen::Enough(())
                } else {
                    Seen::NotYet(format!("{servers:?}"))
                })
            },
        )?;
        self.delete(Api::Compute, &format!("/os-services/{}", service.id))
    }
}

//! Servers.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::cloud::api::understand;
use crate::cloud::wait::{Seen, wait_for};
use crate::cloud::{Api, Call, Cloud, Compute, Port, User};
use crate::error::LabError;
use crate::openstack::{FLAVOR, IMAGE};

const BOOT_LIMIT: Duration = Duration::from_secs(120);

/// A server as Nova sees it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Server {
    /// The server's id.
    pub id: String,
    /// The server's name.
    pub name: String,
    /// `ACTIVE`, `SHUTOFF`, `ERROR`, `REBUILD` and others.
    pub status: String,
    /// The server's host.
    #[serde(rename = "OS-EXT-SRV-ATTR:host")]
    pub host: Option<String>,
    /// The task that is under way, if any.
    #[serde(rename = "OS-EXT-STS:task_state")]
    pub task_state: Option<String>,
    /// The owner's metadata.
    pub metadata: BTreeMap<String, String>,
}

/// A server to boot.
#[derive(Clone, Debug)]
pub struct NewServer<'a> {
    /// The server's name.
    pub name: &'a str,
    /// The server's owner. Only an administrator can choose the host.
    pub owner: User,
    /// The host, if the scheduler is not to choose one.
    pub host: Option<&'a Compute>,
    /// The owner's metadata.
    pub metadata: &'a [(&'a str, &'a str)],
    /// The server's ports; without ports it has no network.
    pub ports: &'a [&'a Port],
}

impl<'a> NewServer<'a> {
    /// A server of `admin` without a network.
    #[must_use]
    pub fn new(name: &'a str) -> Self {
        Self {
            name,
            owner: User::Admin,
            host: None,
            metadata: &[],
            ports: &[],
        }
    }

    fn body(&self) -> Value {
        let ports: Vec<_> = self.ports.iter().map(|port| json!({"port": port.id})).collect();
        let metadata: BTreeMap<_, _> = self.metadata.iter().copied().collect();
        let mut server = json!({
            "name": self.name,
            "imageRef": IMAGE,
            "flavorRef": FLAVOR,
            "metadata": metadata,
            "networks": if ports.is_empty() { json!("none") } else { json!(ports) },
        });
        if let Some(host) = self.host {
            server["host"] = json!(host.name());
        }
        json!({"server": server})
    }
}

impl Cloud {
    /// Boots a server of each name on a host, with this metadata, and waits until they are active.
    ///
    /// # Errors
    /// As [`boot_all`](Self::boot_all).
    pub fn boot(
        &self,
        host: &Compute,
        names: &[&str],
        metadata: &[(&str, &str)],
    ) -> Result<Vec<Server>, LabError> {
        let servers: Vec<_> = names
            .iter()
            .map(|name| NewServer {
                host: Some(host),
                metadata,
                ..NewServer::new(name)
            })
            .collect();
        self.boot_all(&servers)
    }

    /// Boots servers and waits until they are active.
    ///
    /// # Errors
    /// If Nova refuses a server, or a server fails or is not active within two minutes.
    pub fn boot_all(&self, servers: &[NewServer<'_>]) -> Result<Vec<Server>, LabError> {
        let mut ids = Vec::with_capacity(servers.len());
        for server in servers {
            let call = Call::new("POST", Api::Compute, "/servers")
                .by(server.owner)
                .json(server.body());
            let mut answer = self.demand(&call)?;
            ids.push(understand::<String>(&call, answer["server"]["id"].take())?);
        }
        ids.iter().map(|id| self.wait_active(id)).collect()
    }

    /// Waits until a server is active and no task is under way.
    ///
    /// # Errors
    /// If the server is in error, or is not active within two minutes.
    pub fn wait_active(&self, id: &str) -> Result<Server, LabError> {
        self.wait_server(id, "active", |server| {
            server.status == "ACTIVE" && server.task_state.is_none()
        })
    }

    /// Waits until `is_so` is true for a server, or the server is in error.
    ///
    /// # Errors
    /// If that takes more than two minutes, or the server is in error.
    pub fn wait_server(
        &self,
        id: &str,
        what: &str,
        is_so: impl Fn(&Server) -> bool,
    ) -> Result<Server, LabError> {
        wait_for(
            || format!("server {id} {what}"),
            BOOT_LIMIT,
            || {
                let server = self.server(id)?;
                if is_so(&server) {
                    return Ok(Seen::Enough(server));
                }
                if server.status == "ERROR" {
                    return Err(self.fault(id, what));
                }
                Ok(Seen::NotYet(format!("{server:?}")))
            },
        )
    }

    fn fault(&self, id: &str, what: &str) -> LabError {
        let server = self.get(Api::Compute, &format!("/servers/{id}"));
        let fault = server.map(|answer| answer["server"]["fault"].to_string());
        LabError::NotSeen {
            what: format!("server {id} {what}"),
            seconds: 0,
            seen: fault.unwrap_or_default(),
        }
    }

    /// The server with this id.
    ///
    /// # Errors
    /// If Nova cannot be reached, or does not know the server.
    pub fn server(&self, id: &str) -> Result<Server, LabError> {
        self.find(Api::Compute, &format!("/servers/{id}"), "server")
    }

    /// The servers on a host, of all projects.
    ///
    /// # Errors
    /// If Nova cannot be reached.
    pub fn servers_on(&self, host: &str) -> Result<Vec<Server>, LabError> {
        let path = format!("/servers/detail?all_tenants=1&host={host}");
        self.find(Api::Compute, &path, "servers")
    }

    /// Evacuates a server to this host, or to one that the scheduler chooses.
    ///
    /// # Errors
    /// If Nova cannot be reached or refuses.
    pub fn evacuate(&self, id: &str, to: Option<&Compute>) -> Result<(), LabError> {
        let order = to.map_or_else(|| json!({}), |host| json!({"host": host.name()}));
        self.act(id, json!({"evacuate": order}))
    }

    /// Runs an action on a server, such as `{"os-stop": null}`.
    ///
    /// # Errors
    /// If Nova cannot be reached or refuses.
    pub fn act(&self, id: &str, action: Value) -> Result<(), LabError> {
        self.post(Api::Compute, &format!("/servers/{id}/action"), action)
            .map(|_| ())
    }

    /// Deletes a server without waiting for its end.
    ///
    /// # Errors
    /// If Nova cannot be reached or refuses.
    pub fn delete_server(&self, id: &str) -> Result<(), LabError> {
        self.delete(Api::Compute, &format!("/servers/{id}"))
    }
}

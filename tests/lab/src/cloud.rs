//! The OpenStack of a test run, for one test.
//!
//! A process has an OpenStack of the run for itself while it lives. Its tests share the services; computes, servers, volumes and other
//! resources belong to the test that makes them, and have names of its own.

mod api;
mod baremetal;
mod compute;
mod description;
mod domains;
mod instance_ha;
mod migrations;
mod network;
mod nova_api;
mod pausing;
mod servers;
mod services;
mod session;
mod turn;
mod users;
mod volumes;
pub(crate) mod wait;

use std::sync::Arc;

use crate::error::LabError;

pub use api::{Answer, Api, Call};
pub use baremetal::BaremetalNode;
pub use compute::Compute;
pub use description::{Description, OPENSTACK};
pub use domains::{Change, Domain};
pub use instance_ha::Notification;
pub use migrations::Migration;
pub use network::Port;
pub use nova_api::{NovaApi, NovaApiOptions, WsgiFilter};
pub use pausing::Paused;
pub use servers::{NewServer, Server};
pub use services::ComputeService;
use session::Sessions;
pub use users::User;
pub use volumes::{Volume, VolumeAttachment};

/// A client of one OpenStack's services. Copies share their connections and tokens.
#[derive(Clone, Debug)]
pub struct Cloud {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    description: Description,
    sessions: Sessions,
}

impl Cloud {
    /// A cloud of this test run that no other process has, if the run has clouds. Waits for one while other processes have all of them.
    ///
    /// # Errors
    /// If a file that `RINGFENCE_TEST_OPENSTACK` names was not written by [`Description::write`].
    pub fn from_environment() -> Result<Option<Self>, LabError> {
        let files = std::env::var_os(OPENSTACK).unwrap_or_default();
        let file = turn::own(&files)?;
        let description = file.map(|file| Description::read(&file)).transpose()?;
        Ok(description.map(Self::new))
    }

    /// The cloud with this description.
    #[must_use]
    pub fn new(description: Description) -> Self {
        let inner = Inner {
            description,
            sessions: Sessions::default(),
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    /// The addresses and files of the cloud.
    #[must_use]
    pub fn description(&self) -> &Description {
        &self.inner.description
    }
}

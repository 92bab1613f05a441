//! The OpenStack of a test run, as one test uses it.
//!
//! The services are shared; computes, servers, volumes and whatever else a test makes there are its own, with names of its own.

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
mod users;
mod volumes;
pub(crate) mod wait;

use std::path::PathBuf;
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

/// A way to the services of one OpenStack. Copies share their connections and tokens.
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
    /// The cloud that whoever started the tests has handed on, if there is one.
    ///
    /// # Errors
    /// The file that the variable `RINGFENCE_TEST_OPENSTACK` names is not one that [`Description::write`] wrote.
    pub fn from_environment() -> Result<Option<Self>, LabError> {
        match std::env::var_os(OPENSTACK) {
            Some(file) if !file.is_empty() => Ok(Some(Self::new(Description::read(&PathBuf::from(file))?))),
            Some(_) | None => Ok(None),
        }
    }

    /// The cloud that this describes.
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

    /// Where everything is.
    #[must_use]
    pub fn description(&self) -> &Description {
        &self.inner.description
    }
}

//! Ironic: the power of nodes.

mod power;
mod rights;

pub use power::NodePower;

use osauth::services::{BAREMETAL, BareMetalService};
use osauth::{ServiceRequestBuilder, Session};
use serde::Deserialize;
use serde_json::json;

use super::Cloud;
use crate::BackendError;

/// How errors and methods call it.
pub const IRONIC: &str = "ironic";
/// The version of the API: from 1.8 on a node's fields can be chosen.
const VERSION: &str = "1.8";
const VERSION_HEADER: &str = "X-OpenStack-Ironic-API-Version";
const FIELDS: &str =
    "uuid,power_state,target_power_state,last_error,maintenance,maintenance_reason,reservation";

/// What a node is told to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PowerTarget {
    /// Without power.
    Off,
    /// With power.
    On,
}

impl PowerTarget {
    /// Ironic's word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "power off",
            Self::On => "power on",
        }
    }
}

/// A node.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Node {
    /// `power off`, `power on`, or nothing: what Ironic last did or read.
    pub power_state: Option<String>,
    /// What it is being told to be.
    pub target_power_state: Option<String>,
    /// Why the last thing that was done to it failed.
    pub last_error: Option<String>,
    /// Whether Ironic keeps its hands off it.
    pub maintenance: bool,
    /// Why.
    pub maintenance_reason: Option<String>,
    /// Who of Ironic's is at it.
    pub reservation: Option<String>,
}

impl Node {
    /// Whether nobody is at it.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.reservation.is_none() && self.target_power_state.is_none()
    }
}

type Request = ServiceRequestBuilder<BareMetalService>;

fn versioned(request: Request) -> Request {
    request.header(VERSION_HEADER, VERSION)
}

impl Cloud {
    /// A node by its id or name; `None` if there is none.
    pub async fn node(&self, node: &str) -> Result<Option<Node>, BackendError> {
        let call = |session: Session| async move {
            let request = session
                .get(BAREMETAL, &["nodes", node])
                .query(&[("fields", FIELDS)]);
            versioned(request).fetch::<Node>().await
        };
        match self.again(IRONIC, call).await {
            Ok(found) => Ok(Some(found)),
            Err(BackendError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Has Ironic keep its hands off a node: it would switch it on again by itself.
    pub async fn begin_maintenance(&self, node: &str, reason: &str) -> Result<(), BackendError> {
        let body = &json!({ "reason": reason });
        let call = |session: Session| async move {
            let request = session.put(BAREMETAL, &["nodes", node, "maintenance"]).json(body);
            versioned(request).send().await.map(|_| ())
        };
        self.again(IRONIC, call).await
    }

    /// Takes that back.
    pub async fn end_maintenance(&self, node: &str) -> Result<(), BackendError> {
        let call = |session: Session| async move {
            let request = session.delete(BAREMETAL, &["nodes", node, "maintenance"]);
            versioned(request).send().await.map(|_| ())
        };
        self.again(IRONIC, call).await
    }

    /// Tells a node to be off or on. Ironic reads the node's device first, and sends it something only if it has to. While somebody else
    /// is at the node this is refused.
    pub async fn set_power(&self, node: &str, target: PowerTarget) -> Result<(), BackendError> {
        let body = &json!({ "target": target.as_str() });
        let call = |session: Session| async move {
            let request = session
                .put(BAREMETAL, &["nodes", node, "states", "power"])
                .json(body);
            versioned(request).send().await.map(|_| ())
        };
        self.once(IRONIC, call).await
    }
}

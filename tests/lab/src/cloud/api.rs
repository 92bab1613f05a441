//! Raw calls of the services' APIs.

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::cloud::{Cloud, User};
use crate::error::LabError;
use crate::home::tail;

/// A service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Api {
    /// Keystone.
    Identity,
    /// Nova.
    Compute,
    /// Placement.
    Placement,
    /// Cinder.
    Volume,
    /// Neutron.
    Network,
    /// Ironic.
    Baremetal,
    /// Masakari.
    InstanceHa,
}

impl Api {
    pub(crate) fn kind(self) -> &'static str {
        match self {
            Self::Identity => "identity",
            Self::Compute => "compute",
            Self::Placement => "placement",
            Self::Volume => "volumev3",
            Self::Network => "network",
            Self::Baremetal => "baremetal",
            Self::InstanceHa => "instance-ha",
        }
    }

    /// The microversion that is asked for, where there are any. Nova's leaves evacuated servers running.
    pub(crate) fn version(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Compute => Some(("OpenStack-API-Version", "compute 2.93")),
            Self::Placement => Some(("OpenStack-API-Version", "placement 1.39")),
            Self::Volume => Some(("OpenStack-API-Version", "volume 3.70")),
            Self::Baremetal => Some(("X-OpenStack-Ironic-API-Version", "1.80")),
            // From 1.1 on Masakari tells of its workflow's steps as well, for which it needs a store that is not set up.
            Self::Identity | Self::Network | Self::InstanceHa => None,
        }
    }
}

/// Something to ask a service for.
#[derive(Clone, Debug)]
pub struct Call {
    /// Who asks.
    pub user: User,
    /// Which service.
    pub api: Api,
    /// Another address than the catalogue's, such as that of a [`NovaApi`](crate::NovaApi).
    pub base: Option<String>,
    /// The HTTP method.
    pub method: &'static str,
    /// What follows the service's address.
    pub path: String,
    /// The JSON to send.
    pub body: Option<Value>,
    /// Shows a second token, by which a service says that it acts for the user. It is `fencing`'s.
    pub with_service_token: bool,
}

impl Call {
    /// A call by `admin`.
    #[must_use]
    pub fn new(method: &'static str, api: Api, path: &str) -> Self {
        Self {
            user: User::Admin,
            api,
            base: None,
            method,
            path: path.to_owned(),
            body: None,
            with_service_token: false,
        }
    }

    /// The same with this body.
    #[must_use]
    pub fn json(self, body: Value) -> Self {
        Self {
            body: Some(body),
            ..self
        }
    }

    /// The same by this user.
    #[must_use]
    pub fn by(self, user: User) -> Self {
        Self { user, ..self }
    }

    pub(crate) fn text(&self) -> String {
        format!("{} {} of {}", self.method, self.path, self.api.kind())
    }
}

/// What a service answered.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The body; null if it is not JSON.
    pub body: Value,
}

impl Cloud {
    /// Asks, and takes any status for an answer.
    ///
    /// # Errors
    /// The service cannot be reached, or there is no token to be had.
    pub fn ask(&self, call: &Call) -> Result<Answer, LabError> {
        self.send(call).map(|(status, text)| Answer {
            status,
            body: serde_json::from_str(&text).unwrap_or_default(),
        })
    }

    /// Asks, and takes nothing but a success.
    ///
    /// # Errors
    /// The service cannot be reached, refuses, or answers with something that is not JSON.
    pub fn demand(&self, call: &Call) -> Result<Value, LabError> {
        let (status, text) = self.send(call)?;
        if !(200..300).contains(&status) {
            return Err(LabError::Refused {
                what: call.text(),
                status,
                body: tail(text.as_bytes()),
            });
        }
        if text.is_empty() {
            return Ok(Value::Null);
        }
        read(call, &text)
    }

    /// Reads.
    ///
    /// # Errors
    /// As [`demand`](Self::demand).
    pub fn get(&self, api: Api, path: &str) -> Result<Value, LabError> {
        self.demand(&Call::new("GET", api, path))
    }

    /// Makes something, or sets something off.
    ///
    /// # Errors
    /// As [`demand`](Self::demand).
    pub fn post(&self, api: Api, path: &str, body: Value) -> Result<Value, LabError> {
        self.demand(&Call::new("POST", api, path).json(body))
    }

    /// Changes something.
    ///
    /// # Errors
    /// As [`demand`](Self::demand).
    pub fn put(&self, api: Api, path: &str, body: Value) -> Result<Value, LabError> {
        self.demand(&Call::new("PUT", api, path).json(body))
    }

    /// Removes something; what is gone already is fine.
    ///
    /// # Errors
    /// As [`demand`](Self::demand).
    pub fn delete(&self, api: Api, path: &str) -> Result<(), LabError> {
        match self.demand(&Call::new("DELETE", api, path)) {
            Err(LabError::Refused { status: 404, .. }) => Ok(()),
            done => done.map(|_| ()),
        }
    }

    /// Reads what is under a name in the answer.
    pub(crate) fn find<T: DeserializeOwned>(&self, api: Api, path: &str, name: &str) -> Result<T, LabError> {
        let call = Call::new("GET", api, path);
        let mut answer = self.demand(&call)?;
        understand(&call, answer[name].take())
    }
}

pub(crate) fn understand<T: DeserializeOwned>(call: &Call, value: Value) -> Result<T, LabError> {
    serde_json::from_value(value).map_err(|source| LabError::Json {
        what: call.text(),
        source,
    })
}

fn read(call: &Call, text: &str) -> Result<Value, LabError> {
    serde_json::from_str(text).map_err(|source| LabError::Json {
        what: call.text(),
        source,
    })
}

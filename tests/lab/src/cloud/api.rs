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

    /// The microversion of requests, for services with microversions. Nova's lets the guests of evacuated servers start.
    pub(crate) fn version(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Compute => Some(("OpenStack-API-Version", "compute 2.93")),
            Self::Placement => Some(("OpenStack-API-Version", "placement 1.39")),
            Self::Volume => Some(("OpenStack-API-Version", "volume 3.70")),
            Self::Baremetal => Some(("X-OpenStack-Ironic-API-Version", "1.80")),
            // From 1.1 on Masakari also reports its workflow's steps, for which it needs a store that is not set up.
            Self::Identity | Self::Network | Self::InstanceHa => None,
        }
    }
}

/// A request to a service.
#[derive(Clone, Debug)]
pub struct Call {
    /// The user.
    pub user: User,
    /// The service.
    pub api: Api,
    /// An address instead of the catalogue's, such as that of a [`NovaApi`](crate::NovaApi).
    pub base: Option<String>,
    /// The HTTP method.
    pub method: &'static str,
    /// The path after the service's address.
    pub path: String,
    /// The JSON body.
    pub body: Option<Value>,
    /// Sends the token of `fencing` as a service token, by which a service acts for the user.
    pub with_service_token: bool,
}

impl Call {
    /// A request of `admin`.
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

    /// Sets the body.
    #[must_use]
    pub fn json(self, body: Value) -> Self {
        Self {
            body: Some(body),
            ..self
        }
    }

    /// Sets the user.
    #[must_use]
    pub fn by(self, user: User) -> Self {
        Self { user, ..self }
    }

    pub(crate) fn text(&self) -> String {
        format!("{} {} of {}", self.method, self.path, self.api.kind())
    }
}

/// A service's answer.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The body; null if it is not JSON.
    pub body: Value,
}

impl Cloud {
    /// Sends a request, and returns an answer with any status.
    ///
    /// # Errors
    /// If the service cannot be reached, or Keystone gives no token.
    pub fn ask(&self, call: &Call) -> Result<Answer, LabError> {
        self.send(call).map(|(status, text)| Answer {
            status,
            body: serde_json::from_str(&text).unwrap_or_default(),
        })
    }

    /// Sends a request, and returns the body of a successful answer.
    ///
    /// # Errors
    /// If the service cannot be reached, refuses the request, or answers with something that is not JSON.
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

    /// Sends a GET request.
    ///
    /// # Errors
    /// As [`demand`](Self::demand).
    pub fn get(&self, api: Api, path: &str) -> Result<Value, LabError> {
        self.demand(&Call::new("GET", api, path))
    }

    /// Sends a POST request.
    ///
    /// # Errors
    /// As [`demand`](Self::demand).
    pub fn post(&self, api: Api, path: &str, body: Value) -> Result<Value, LabError> {
        self.demand(&Call::new("POST", api, path).json(body))
    }

    /// Sends a PUT request.
    ///
    /// # Errors
    /// As [`demand`](Self::demand).
    pub fn put(&self, api: Api, path: &str, body: Value) -> Result<Value, LabError> {
        self.demand(&Call::new("PUT", api, path).json(body))
    }

    /// Sends a DELETE request; a resource that does not exist counts as deleted.
    ///
    /// # Errors
    /// As [`demand`](Self::demand).
    pub fn delete(&self, api: Api, path: &str) -> Result<(), LabError> {
        match self.demand(&Call::new("DELETE", api, path)) {
            Err(LabError::Refused { status: 404, .. }) => Ok(()),
            done => done.map(|_| ()),
        }
    }

    /// Reads the value of `name` in the answer.
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

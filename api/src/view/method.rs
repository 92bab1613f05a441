//! Methods.

use chrono::{DateTime, Utc};
use std::collections::BTreeMap;

use ringfence_core::{Method, MethodTimes, Problems, Resource, SecretReference};
use ringfence_engine::MethodDraft;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::method_check::ChecksView;
use super::shown::shown;
use crate::ApiError;

/// A configured way to do the tasks of one resource.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MethodView {
    pub id: Uuid,
    pub name: String,
    /// power, storage, network, query or heartbeat
    #[schema(value_type = String, example = "power")]
    pub resource: Resource,
    /// One of those that `GET /drivers` lists
    #[schema(example = "ipmi")]
    pub driver: String,
    pub parameters: BTreeMap<String, String>,
    /// References, never the secrets themselves.
    pub secrets: BTreeMap<String, String>,
    pub zone: Option<String>,
    pub times: TimesView,
    /// What its devices last answered when they were asked for their state; null if none is asked.
    pub checks: Option<ChecksView>,
    /// What would keep hosts from being fenced by it; told where it was just added or changed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

/// A method to add, or to put in the place of one.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MethodBody {
    /// 1 to 255 letters, digits, `.`, `_` and `-`.
    #[schema(pattern = "^[A-Za-z0-9][A-Za-z0-9._-]{0,254}$")]
    pub name: String,
    /// power, storage, network, query or heartbeat; power if absent
    #[serde(default = "power")]
    #[schema(value_type = String, example = "power")]
    pub resource: Resource,
    /// One of those that `GET /drivers` lists
    #[schema(example = "ipmi")]
    pub driver: String,
    /// The driver's parameters; `${host.name}`, `${host.id}` and `${host.zone}` stand for the host's own.
    #[serde(default)]
    pub parameters: BTreeMap<String, ParameterValue>,
    /// The driver's secrets: `env:NAME`, `file:/absolute/path` or `secret:CLUSTER/SECRET/KEY`, resolved by the worker.
    #[serde(default)]
    pub secrets: BTreeMap<String, String>,
    /// The zone whose workers reach the device; the host's own if absent.
    #[serde(default)]
    pub zone: Option<String>,
    #[serde(default)]
    pub times: TimesView,
}

fn power() -> Resource {
    Resource::Power
}

/// Text, a number or true/false; a device gets its text.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(untagged, expecting = "text, a number, true or false is allowed")]
pub(crate) enum ParameterValue {
    Text(String),
    Flag(bool),
    #[schema(value_type = f64)]
    Number(serde_json::Number),
}

impl From<ParameterValue> for String {
    fn from(value: ParameterValue) -> Self {
        match value {
            ParameterValue::Text(text) => text,
            ParameterValue::Flag(flag) => flag.to_string(),
            ParameterValue::Number(number) => number.to_string(),
        }
    }
}

/// How long and how often a method may be tried.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct TimesView {
    /// Seconds that one attempt may take; 1 to 300.
    pub attempt_timeout_s: u32,
    /// Seconds that all attempts of a task may take together; up to 900.
    pub timeout_s: u32,
    /// Retries after the first attempt; 0 to 10.
    pub retries: u32,
    /// Milliseconds between two attempts; 0 to 60000.
    pub pause_ms: u32,
    /// Seconds that a proof by this method settles before it counts; 0 to 600. 0 for a method that reads back the far end.
    pub settle_s: u32,
    /// Seconds for which the device may still carry out a command that was given up; 0 to 3600; null: what is known of the driver.
    pub lingers_s: Option<u32>,
}

shown! { MethodTimes, TimesView:
    attempt_timeout_s, timeout_s, retries, pause_ms, settle_s, lingers_s,
}

impl From<Method> for MethodView {
    fn from(method: Method) -> Self {
        Self {
            warnings: Vec::new(),
            id: method.id.0,
            name: method.name,
            resource: method.resource,
            driver: method.driver,
            parameters: method.parameters,
            secrets: method
                .secrets
                .into_iter()
                .map(|(name, reference)| (name, reference.to_string()))
                .collect(),
            zone: method.zone,
            times: method.times.into(),
            checks: None,
            created_at: method.created_at,
            updated_at: method.updated_at,
        }
    }
}

impl MethodBody {
    /// Refuses secrets that are not references; everything else is checked by the engine.
    pub fn draft(self) -> Result<MethodDraft, ApiError> {
        let mut problems = Problems::default();
        let mut secrets = BTreeMap::new();
        for (name, text) in self.secrets {
            match SecretReference::parse(&text) {
                Ok(reference) => {
                    secrets.insert(name, reference);
                }
                // The text may be the secret itself: it is not repeated.
                Err(why) => problems.add(format!("secrets.{name}"), why),
            }
        }
        problems.into_result().map_err(ApiError::Malformed)?;
        Ok(MethodDraft {
            name: self.name,
            resource: self.resource,
            driver: self.driver,
            parameters: self
                .parameters
                .into_iter()
                .map(|(name, value)| (name, value.into()))
                .collect(),
            secrets,
            zone: self.zone,
            times: self.times.into(),
        })
    }
}

//! `GET /drivers`: what a method may name, as each driver declares it.

use actix_web::HttpResponse;
use ringfence_core::{Declaration, Parameter};
use serde::Serialize;
use utoipa::ToSchema;

use crate::ApiError;
use crate::call::Call;
use crate::error::ErrorList;
use crate::role::Role;

/// All drivers.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DriverList {
    drivers: Vec<DriverView>,
}

/// A driver.
#[derive(Debug, Serialize, ToSchema)]
struct DriverView {
    #[schema(example = "ipmi")]
    name: &'static str,
    about: &'static str,
    /// What it can act on: power, storage, network; query: nothing, it asks others about a fence; heartbeat: nothing, it reads what hosts write
    resources: Vec<&'static str>,
    parameters: Vec<ParameterView>,
    secrets: Vec<SecretView>,
    /// Where it takes more parameters and secrets than these: which ones.
    other_parameters: Option<&'static str>,
    /// Seconds for which a device may still carry out a command that was given up, where a method says nothing else.
    lingers_s: u32,
}

/// A parameter of a driver.
#[derive(Debug, Serialize, ToSchema)]
struct ParameterView {
    #[schema(example = "port")]
    name: &'static str,
    about: &'static str,
    required: bool,
    default: Option<&'static str>,
    /// Which values are allowed; any where it is null.
    allowed: Option<&'static str>,
}

/// A secret of a driver.
#[derive(Debug, Serialize, ToSchema)]
struct SecretView {
    #[schema(example = "password")]
    name: &'static str,
    required: bool,
}

impl From<&'static Parameter> for ParameterView {
    fn from(parameter: &'static Parameter) -> Self {
        Self {
            name: parameter.name,
            about: parameter.about,
            required: parameter.is_required,
            default: parameter.default,
            allowed: parameter.allowed.map(|allowed| allowed.words),
        }
    }
}

impl From<&'static Declaration> for DriverView {
    fn from(declared: &'static Declaration) -> Self {
        let secrets = declared.secrets.iter().map(|secret| SecretView {
            name: secret.name,
            required: secret.is_required,
        });
        Self {
            name: declared.name,
            about: declared.about,
            resources: declared
                .resources
                .iter()
                .map(|resource| resource.as_str())
                .collect(),
            parameters: declared.parameters.iter().map(ParameterView::from).collect(),
            secrets: secrets.collect(),
            other_parameters: declared.others.map(|others| others.about),
            lingers_s: declared.lingers_s,
        }
    }
}

/// Lists the drivers that methods may name, with their parameters and secrets.
#[utoipa::path(get, path = "/drivers", operation_id = "list_drivers", tag = "configuration",
    responses((status = 200, body = DriverList), (status = 401, body = ErrorList)))]
pub(crate) async fn list(call: Call) -> Result<HttpResponse, ApiError> {
    call.require(Role::Reader)?;
    let drivers = call.engine.drivers().all().map(DriverView::from).collect();
    Ok(HttpResponse::Ok().json(DriverList { drivers }))
}

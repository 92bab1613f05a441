//! `/demo`: the simulated hosts of a demonstration, for a panel of the page that breaks them. Other services have none.

use std::time::Duration;

use actix_web::{HttpResponse, web};
use reqwest::RequestBuilder;
use serde_json::Value;

use crate::ApiError;
use crate::body::Body;
use crate::call::Call;
use crate::role::Role;

/// For one request to the simulators.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Where the simulated hosts are.
#[derive(Clone)]
pub(crate) struct Demo {
    http: reqwest::Client,
    url: String,
}

impl Demo {
    pub fn new(url: &str) -> Result<Self, reqwest::Error> {
        let http = reqwest::Client::builder().no_proxy().timeout(TIMEOUT);
        Ok(Self {
            http: http.build()?,
            url: url.to_owned(),
        })
    }
}

/// Shows every simulated host as it really is.
pub(crate) async fn show(call: Call) -> Result<HttpResponse, ApiError> {
    call.require(Role::Reader)?;
    let demo = demo(&call)?;
    forward(demo.http.get(format!("{}/hosts", demo.url))).await
}

/// Lets a simulated host run, hang or crash.
pub(crate) async fn change(
    call: Call,
    host: web::Path<String>,
    body: Body<Value>,
) -> Result<HttpResponse, ApiError> {
    call.require(Role::Operator)?;
    let demo = demo(&call)?;
    forward(demo.http.put(format!("{}/hosts/{host}", demo.url)).json(&body.0)).await
}

/// Gives a device of a simulated host a fault, or none.
pub(crate) async fn break_device(
    call: Call,
    device: web::Path<(String, String)>,
    body: Body<Value>,
) -> Result<HttpResponse, ApiError> {
    call.require(Role::Operator)?;
    let demo = demo(&call)?;
    let (host, resource) = device.into_inner();
    let url = format!("{}/devices/{host}/{resource}/fault", demo.url);
    forward(demo.http.put(url).json(&body.0)).await
}

fn demo(call: &Call) -> Result<web::Data<Demo>, ApiError> {
    let nothing = || ApiError::NoSuchPath(call.request.path().to_owned());
    let demo = call.request.app_data::<web::Data<Demo>>();
    demo.cloned().ok_or_else(nothing)
}

/// Answers what the simulators answer.
async fn forward(asked: RequestBuilder) -> Result<HttpResponse, ApiError> {
    let away = |_| ApiError::bad("demo", "the simulated hosts do not answer");
    let answer = asked.send().await.map_err(away)?;
    let is_refused = !answer.status().is_success();
    let bytes = answer.bytes().await.map_err(away)?;
    if is_refused {
        let told: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        let why = told["error"].as_str().unwrap_or("is refused");
        return Err(ApiError::bad("demo", why));
    }
    if bytes.is_empty() {
        return Ok(HttpResponse::NoContent().finish());
    }
    Ok(HttpResponse::Ok().content_type("application/json").body(bytes))
}

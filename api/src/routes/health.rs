//! `GET /healthcheck`: whether the service can do its work, without a token.

use std::time::Duration;

use actix_web::{HttpResponse, web};
use ringfence_engine::EngineError;
use ringfence_scheduler_hook::Hook;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::ApiError;
use crate::error::ErrorList;
use crate::state::State;

/// Seconds after which a part that has not answered counts as not there.
const PATIENCE_S: u64 = 2;

/// Which question is asked.
#[derive(Clone, Copy, Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum Probe {
    /// Whether the process answers: if not, start it again.
    Live,
    /// Whether it can do its work: if not, send it no requests for now. Starting it again would help nothing.
    #[default]
    Ready,
}

/// Which question.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct HealthQuery {
    /// ready if it is not there
    #[serde(default)]
    #[param(inline)]
    probe: Probe,
}

/// How the parts are.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Health {
    /// ok or unavailable
    status: &'static str,
    /// ok, or why not; not asked for live
    #[serde(skip_serializing_if = "Option::is_none")]
    database: Option<String>,
    /// ok, or why not; not asked for live
    #[serde(skip_serializing_if = "Option::is_none")]
    bus: Option<String>,
    /// ok, or how old what the scheduler hook knows is; only where it answers
    #[serde(skip_serializing_if = "Option::is_none")]
    scheduler_hook: Option<String>,
}

/// Whether the service lives, and whether it can do its work.
///
/// Ready: 503 if the database or the bus cannot be used, or what the scheduler hook knows is too old; the body says which. Live: 200 as
/// long as the process answers.
#[utoipa::path(get, path = "/healthcheck", operation_id = "healthcheck", tag = "service", security(()), params(HealthQuery),
    responses((status = 200, body = Health), (status = 400, body = ErrorList), (status = 503, body = Health)))]
pub(crate) async fn healthcheck(
    state: Option<web::Data<State>>,
    hook: Option<web::Data<Hook>>,
    query: web::Query<HealthQuery>,
) -> HttpResponse {
    match query.probe {
        Probe::Live => live(),
        Probe::Ready => ready(state.as_ref(), hook.as_ref()).await,
    }
}

/// Of a process that waits for the lead: it lives, and cannot do its work.
pub(crate) async fn healthcheck_waiting(query: web::Query<HealthQuery>) -> Result<HttpResponse, ApiError> {
    match query.probe {
        Probe::Live => Ok(live()),
        Probe::Ready => Err(ApiError::Waiting),
    }
}

fn live() -> HttpResponse {
    HttpResponse::Ok().json(Health {
        status: "ok",
        database: None,
        bus: None,
        scheduler_hook: None,
    })
}

async fn ready(state: Option<&web::Data<State>>, hook: Option<&web::Data<Hook>>) -> HttpResponse {
    let mut health = Health {
        status: "ok",
        database: None,
        bus: None,
        scheduler_hook: hook.map(|hook| word(hook.health())),
    };
    if let Some(state) = state {
        health.database = Some(told(state.engine.database_health()).await);
        health.bus = Some(told(state.engine.bus_health()).await);
    }
    let parts = [&health.database, &health.bus, &health.scheduler_hook];
    let is_ok = parts.into_iter().flatten().all(|part| part == "ok");
    if !is_ok {
        health.status = "unavailable";
    }
    if is_ok {
        HttpResponse::Ok().json(health)
    } else {
        HttpResponse::ServiceUnavailable().json(health)
    }
}

/// Every caller may ask, so that it names no address; the log does.
async fn told(part: impl Future<Output = Result<(), EngineError>>) -> String {
    match tokio::time::timeout(Duration::from_secs(PATIENCE_S), part).await {
        Ok(Err(EngineError::Db(_) | EngineError::Bus(_))) => "cannot be reached".to_owned(),
        Ok(result) => word(result),
        Err(_) => format!("no answer within {PATIENCE_S} s"),
    }
}

fn word<E: std::fmt::Display>(result: Result<(), E>) -> String {
    result.map_or_else(|error| error.to_string(), |()| "ok".to_owned())
}

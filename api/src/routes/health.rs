//! `GET /healthcheck`: whether the service can do its work, without a token.

use std::time::Duration;

use actix_web::{HttpResponse, web};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

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
}

/// Whether the service lives, and whether it can do its work.
///
/// Ready: 503 if the database or the bus cannot be used; the body says which. Live: 200 as long as the process answers.
#[utoipa::path(get, path = "/healthcheck", operation_id = "healthcheck", tag = "service", security(()), params(HealthQuery),
    responses((status = 200, body = Health), (status = 400, body = ErrorList), (status = 503, body = Health)))]
pub(crate) async fn healthcheck(state: web::Data<State>, query: web::Query<HealthQuery>) -> HttpResponse {
    match query.probe {
        Probe::Live => HttpResponse::Ok().json(Health {
            status: "ok",
            database: None,
            bus: None,
        }),
        Probe::Ready => ready(&state).await,
    }
}

async fn ready(state: &State) -> HttpResponse {
    let database = told(state.engine.db().ping()).await;
    let bus = told(state.engine.bus_health()).await;
    let is_ok = database == "ok" && bus == "ok";
    let health = Health {
        status: if is_ok { "ok" } else { "unavailable" },
        database: Some(database),
        bus: Some(bus),
    };
    if is_ok {
        HttpResponse::Ok().json(health)
    } else {
        HttpResponse::ServiceUnavailable().json(health)
    }
}

async fn told<E: std::fmt::Display>(part: impl Future<Output = Result<(), E>>) -> String {
    match tokio::time::timeout(Duration::from_secs(PATIENCE_S), part).await {
        Ok(Ok(())) => "ok".to_owned(),
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("no answer within {PATIENCE_S} s"),
    }
}

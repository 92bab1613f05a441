//! `GET /healthcheck`: whether the service can do its work, without a token.

use std::time::Duration;

use actix_web::{HttpResponse, web};
use serde::Serialize;
use utoipa::ToSchema;

use crate::application::State;

/// Seconds after which a part that has not answered counts as not there.
const PATIENCE_S: u64 = 2;

/// How the parts are.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Health {
    /// ok or unavailable
    status: &'static str,
    /// ok, or why not
    database: String,
    /// ok, or why not
    bus: String,
}

/// Whether the service can do its work.
///
/// 503 if the database or the bus cannot be used; the body says which.
#[utoipa::path(get, path = "/healthcheck", tag = "service",
    responses((status = 200, body = Health), (status = 503, body = Health)))]
pub(crate) async fn healthcheck(state: web::Data<State>) -> HttpResponse {
    let database = told(state.engine.db().ping()).await;
    let bus = told(state.engine.bus_health()).await;
    let is_ok = database == "ok" && bus == "ok";
    let health = Health {
        status: if is_ok { "ok" } else { "unavailable" },
        database,
        bus,
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

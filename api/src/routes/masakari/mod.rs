//! `POST /v1/notifications`: what Masakari's monitors send to Masakari, so that those that a site has can tell Ringfence instead.
//!
//! A host that has STOPPED is UNREACHABLE, one that has STARTED is UP; whether a fence begins is up to the host's segment. Requests and
//! answers have Masakari's form, faults included: the monitors act upon the status alone, and end their tries at a 409.

mod fault;
mod notification;
mod version;

use std::collections::BTreeMap;

use actix_web::error::PayloadError;
use actix_web::{HttpRequest, HttpResponse, web};
use chrono::{DateTime, TimeDelta, Utc};
use ringfence_core::{FailureState, FencingState, HostState, OperationKind, Refusal, Report};
use ringfence_engine::{Context, EngineError};
use serde_json::{Value, json};
use utoipa::IntoResponses;
use utoipa::openapi::{RefOr, Response};
use uuid::Uuid;

pub(crate) use self::fault::{Fault, FaultBody};
use self::notification::{Kind, Notification, NotificationBody};
use crate::auth::identify;
use crate::body::whole;
use crate::role::Role;
use crate::routes::configured::errors;
use crate::state::State;

/// The name under which the monitors' words are on record.
const SOURCE: &str = "masakari";
/// Seconds within which a repeated notification of a host counts as said twice, as in Masakari.
const DUPLICATE_WITHIN_S: i64 = 180;

/// Why a notification is not taken: for the description of the API.
struct NotTaken;

impl IntoResponses for NotTaken {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        errors("FaultBody", &[400, 401, 403, 406, 409, 413, 429, 503])
    }
}

/// Takes a notification of one of Masakari's monitors.
#[utoipa::path(post, path = "/v1/notifications", operation_id = "notify_as_masakari", tag = "masakari",
    request_body = NotificationBody,
    responses((status = 202, body = Object), NotTaken))]
pub(crate) async fn notify(
    state: web::Data<State>,
    request: HttpRequest,
    body: web::Payload,
) -> Result<HttpResponse, Fault> {
    take(state, None, request, body).await
}

/// The routes below a project, as the catalogue's endpoint of Masakari has it. Which project does not matter.
#[utoipa::path(post, path = "/v1/{project_id}/notifications", operation_id = "notify_as_masakari_in_project", tag = "masakari",
    params(("project_id" = String, Path, description = "any")),
    request_body = NotificationBody,
    responses((status = 202, body = Object), NotTaken))]
pub(crate) async fn notify_in_project(
    state: web::Data<State>,
    request: HttpRequest,
    body: web::Payload,
) -> Result<HttpResponse, Fault> {
    take(state, None, request, body).await
}

/// The routes for the monitors of one cloud, where hosts of several are here.
#[utoipa::path(post, path = "/clouds/{cloud}/v1/notifications", operation_id = "notify_as_masakari_of_cloud", tag = "masakari",
    params(("cloud" = String, Path, description = "By what name Ringfence knows the cloud")),
    request_body = NotificationBody,
    responses((status = 202, body = Object), NotTaken))]
pub(crate) async fn notify_of_cloud(
    state: web::Data<State>,
    cloud: web::Path<String>,
    request: HttpRequest,
    body: web::Payload,
) -> Result<HttpResponse, Fault> {
    take(state, Some(cloud.as_str()), request, body).await
}

/// Those routes below a project. Which project does not matter.
#[utoipa::path(post, path = "/clouds/{cloud}/v1/{project_id}/notifications", operation_id = "notify_as_masakari_of_cloud_in_project",
    tag = "masakari",
    params(("cloud" = String, Path, description = "By what name Ringfence knows the cloud"), ("project_id" = String, Path, description = "any")),
    request_body = NotificationBody,
    responses((status = 202, body = Object), NotTaken))]
pub(crate) async fn notify_of_cloud_in_project(
    state: web::Data<State>,
    path: web::Path<(String, String)>,
    request: HttpRequest,
    body: web::Payload,
) -> Result<HttpResponse, Fault> {
    let (cloud, _) = path.into_inner();
    take(state, Some(&cloud), request, body).await
}

async fn take(
    state: web::Data<State>,
    cloud: Option<&str>,
    request: HttpRequest,
    body: web::Payload,
) -> Result<HttpResponse, Fault> {
    // Who may not speak is told so before what is said is read.
    let by = identify(&request).await?.require(Role::Service)?;
    version::check(&request)?;
    let allowed = state.front.max_body_bytes;
    let read = async {
        let read = body.to_bytes_limited(allowed).await;
        read.unwrap_or_else(|_| Err(PayloadError::Overflow.into()))
    };
    let body = whole(read, allowed).await?;
    let given: Value = serde_json::from_slice(&body).map_err(|_| Fault::bad("Malformed request body"))?;
    let notification = Notification::read(&given).map_err(Fault::bad)?;
    let host = host_called(&state, &notification.hostname, cloud).await?;
    let status = act(&state, &host, &notification, &by).await?;
    Ok(answer(&host, &notification, status, state.engine.clock().now()))
}

/// The one host of that name. A monitor does not say in which cloud it is, unless its endpoint does, and the wrong one must not be fenced.
async fn host_called(state: &State, name: &str, cloud: Option<&str>) -> Result<HostState, Fault> {
    let mut reader = state.engine.db().reader();
    let found = ringfence_db::hosts_called(&mut reader, name, cloud).await;
    let mut found = found.map_err(crate::ApiError::from)?;
    let is_open = cloud.is_none() && !found.is_empty();
    // Another cloud may have a host of that name which is not here.
    if is_open
        && ringfence_db::has_several_clouds(&mut reader)
            .await
            .map_err(crate::ApiError::from)?
    {
        return Err(Fault::bad(format!(
            "Host with name {name} could be of more than one cloud here."
        )));
    }
    if found.len() > 1 {
        let names: Vec<_> = found.iter().map(|known| known.host.name.as_str()).collect();
        return Err(Fault::bad(format!(
            "Host with name {name} is known more than once ({}).",
            names.join(", ")
        )));
    }
    found
        .pop()
        .ok_or_else(|| Fault::bad(format!("Host with name {name} could not be found.")))
}

/// Does what the notification asks for; its status.
async fn act(
    state: &State,
    host: &HostState,
    notification: &Notification,
    by: &Context,
) -> Result<&'static str, Fault> {
    let (failure_state, status) = match notification.kind {
        // What a guest or a process does says nothing of its host.
        Kind::Other => return Ok("ignored"),
        Kind::HostStopped => (FailureState::Unreachable, "new"),
        Kind::HostStarted => (FailureState::Up, "finished"),
    };
    if failure_state == FailureState::Unreachable {
        refuse_again(host, notification, state.engine.clock().now())?;
    }
    let report = Report {
        state: failure_state,
        source: SOURCE.to_owned(),
        observed_at: notification.generated_at,
        last_seen_at: None,
        silent_since: None,
        boot: None,
    };
    let id = host.host.id.to_string();
    match state.engine.report_failure_state(&id, report, by).await {
        // Another source has had a newer sign of life of the host.
        Ok(known) if known.host.failure_state != failure_state => Ok("ignored"),
        Ok(_) => Ok(status),
        Err(EngineError::Refused(Refusal::StaleObservation { .. })) => Ok("ignored"),
        Err(error) => Err(crate::ApiError::from(error).into()),
    }
}

/// What Masakari refuses: a host that is dealt with already, and what was said a moment ago.
fn refuse_again(known: &HostState, notification: &Notification, now: DateTime<Utc>) -> Result<(), Fault> {
    let host = &known.host;
    let is_fence = known
        .operation
        .as_ref()
        .is_some_and(|live| live.kind() == OperationKind::Fence);
    // One that was seen UP meanwhile has fallen silent anew.
    let is_known = host.failure_state == FailureState::Unreachable;
    if is_known && (host.fencing_state() == FencingState::Fenced || is_fence) {
        return Err(Fault::conflict(format!(
            "Notification received from host {} of type '{}' is ignored as the host is already under maintenance.",
            notification.hostname, notification.kind_word
        )));
    }
    let own = host.sources.get(SOURCE);
    let own = own.filter(|own| own.state == FailureState::Unreachable);
    let is_fresh = own.is_some_and(|own| now - own.observed_at < TimeDelta::seconds(DUPLICATE_WITHIN_S));
    if is_known && is_fresh {
        return Err(Fault::conflict(format!(
            "Notification received from host {} of type {} is duplicate.",
            notification.hostname, notification.kind_word
        )));
    }
    Ok(())
}

fn answer(host: &HostState, notification: &Notification, status: &str, now: DateTime<Utc>) -> HttpResponse {
    let time = |at: DateTime<Utc>| at.format("%Y-%m-%dT%H:%M:%S%.6f").to_string();
    fault::said(HttpResponse::Accepted()).json(json!({ "notification": {
        "id": host.host.event_sequence,
        "notification_uuid": Uuid::now_v7(),
        "generated_time": time(notification.generated_at),
        "source_host_uuid": host.host.id.0,
        "type": notification.kind_word,
        "payload": notification.payload,
        "status": status,
        "created_at": time(now),
        "updated_at": null,
        "deleted_at": null,
        "deleted": false,
    }}))
}

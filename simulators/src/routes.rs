//! The HTTP API of the simulators.
//!
//! | call | does |
//! |---|---|
//! | `GET /devices/{device}/{resource}` | 200 `{"state":"on\|off\|fenced\|unfenced"}` |
//! | `PUT /devices/{device}/{resource}` | takes `{"state":...}`; 204 |
//! | `PUT /devices/{device}/{resource}/fault` | takes `{"fault":"lie\|slow\|silent\|flap\|refuse\|ghost\|none","times":N\|null,"delay_ms":N\|null}`; 204 |
//! | `GET /hosts` | 200 `{"hosts":[...]}`: the real state |
//! | `PUT /hosts/{name}` | takes `{"condition":"running\|hung\|crashed"}`; 204 |
//!
//! An unknown name is answered with 404, an invalid request with 400, both with a reason in `{"error":...}`.

use std::time::Duration;

use actix_web::error::{InternalError, JsonPayloadError};
use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse, ResponseError, web};
use ringfence_core::Resource;
use serde::Deserialize;
use serde_json::json;

use crate::fault::{Fault, FaultKind};
use crate::host::Condition;
use crate::port::{Behaviour, PortState, Verb};
use crate::server::Shared;
use crate::{SimulatorError, World};

/// Seconds for which a silent device keeps a connection. Clients give up much earlier.
const SILENCE_S: u64 = 3600;

type Answer = Result<HttpResponse, SimulatorError>;

pub(crate) fn configure(config: &mut web::ServiceConfig) {
    config
        .route("/hosts", web::get().to(list_hosts))
        .route("/hosts/{host}", web::put().to(put_host))
        .route("/devices/{device}/{resource}", web::get().to(get_state))
        .route("/devices/{device}/{resource}", web::put().to(put_state))
        .route("/devices/{device}/{resource}/fault", web::put().to(put_fault));
}

pub(crate) fn bad_body(error: JsonPayloadError, _: &HttpRequest) -> actix_web::Error {
    let response = HttpResponse::BadRequest().json(json!({ "error": error.to_string() }));
    InternalError::from_response(error, response).into()
}

impl ResponseError for SimulatorError {
    fn status_code(&self) -> StatusCode {
        match self {
            Self::UnknownHost(_) | Self::UnknownDevice { .. } => StatusCode::NOT_FOUND,
            Self::StateDoesNotFit { .. } | Self::Fault(_) | Self::Name(_) => StatusCode::BAD_REQUEST,
            Self::NotLoopback(_)
            | Self::Listen { .. }
            | Self::StateFile { .. }
            | Self::NotAState { .. }
            | Self::Stopping => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    fn error_response(&self) -> HttpResponse {
        HttpResponse::build(self.status_code()).json(json!({ "error": self.to_string() }))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StateBody {
    state: PortState,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ConditionBody {
    condition: Condition,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FaultBody {
    fault: FaultWord,
    #[serde(default)]
    times: Option<u32>,
    #[serde(default)]
    delay_ms: Option<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum FaultWord {
    Lie,
    Slow,
    Silent,
    Flap,
    Refuse,
    Ghost,
    None,
}

impl FaultBody {
    fn fault(&self) -> Result<Option<Fault>, SimulatorError> {
        let kind = match self.fault {
            FaultWord::Lie => FaultKind::Lie,
            FaultWord::Slow => FaultKind::Slow,
            FaultWord::Silent => FaultKind::Silent,
            FaultWord::Flap => FaultKind::Flap,
            FaultWord::Refuse => FaultKind::Refuse,
            FaultWord::Ghost => FaultKind::Ghost,
            FaultWord::None => return Ok(None),
        };
        Fault::new(kind, self.times, self.delay_ms).map(Some)
    }
}

async fn list_hosts(shared: web::Data<Shared>) -> Answer {
    Ok(HttpResponse::Ok().json(json!({ "hosts": shared.now().hosts() })))
}

async fn put_host(
    shared: web::Data<Shared>,
    path: web::Path<String>,
    body: web::Json<ConditionBody>,
) -> Answer {
    let host = path.into_inner();
    change(&shared, move |world| world.set_condition(&host, body.condition)).await?;
    Ok(HttpResponse::NoContent().finish())
}

async fn put_fault(
    shared: web::Data<Shared>,
    path: web::Path<(String, String)>,
    body: web::Json<FaultBody>,
) -> Answer {
    let (device, resource) = find(path)?;
    let fault = body.fault()?;
    change(&shared, move |world| world.set_fault(&device, resource, fault)).await?;
    Ok(HttpResponse::NoContent().finish())
}

async fn get_state(shared: web::Data<Shared>, path: web::Path<(String, String)>) -> Answer {
    let (device, resource) = find(path)?;
    answer(shared, device, resource, Verb::Read).await
}

async fn put_state(
    shared: web::Data<Shared>,
    path: web::Path<(String, String)>,
    body: web::Json<StateBody>,
) -> Answer {
    let (device, resource) = find(path)?;
    answer(shared, device, resource, Verb::Command(body.state)).await
}

async fn answer(shared: web::Data<Shared>, device: String, resource: Resource, verb: Verb) -> Answer {
    let asked = device.clone();
    match change(&shared, move |world| world.meet(&asked, resource, verb)).await? {
        Behaviour::Obey => obey(&shared, device, resource, verb, None).await,
        Behaviour::TakeBackAfter(delay_ms) => obey(&shared, device, resource, verb, Some(delay_ms)).await,
        Behaviour::ObeyAfter(delay_ms) => obey_late(shared, device, resource, verb, delay_ms).await,
        Behaviour::Lie => Ok(HttpResponse::NoContent().finish()),
        Behaviour::Silence => {
            tokio::time::sleep(Duration::from_secs(SILENCE_S)).await;
            Ok(HttpResponse::GatewayTimeout().finish())
        }
        Behaviour::Refuse => Ok(refuse(verb)),
    }
}

async fn obey(
    shared: &web::Data<Shared>,
    device: String,
    resource: Resource,
    verb: Verb,
    take_back_after_ms: Option<u64>,
) -> Answer {
    let Verb::Command(state) = verb else {
        let state = change(shared, move |world| world.shown(&device, resource)).await?;
        return Ok(HttpResponse::Ok().json(json!({ "state": state })));
    };
    let set =
        move |world: &mut World, now| world.set_state(&device, resource, state, take_back_after_ms, now);
    change_at(shared, set).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// Runs in a task of its own, because the request's task ends when its client closes the connection.
async fn obey_late(
    shared: web::Data<Shared>,
    device: String,
    resource: Resource,
    verb: Verb,
    delay_ms: u64,
) -> Answer {
    let work = actix_web::rt::spawn(async move {
        tokio::time::sleep(Duration::from_millis(delay_ms)).await;
        obey(&shared, device, resource, verb, None).await
    });
    work.await.map_err(|_| SimulatorError::Stopping)?
}

fn refuse(verb: Verb) -> HttpResponse {
    let body = json!({ "error": "the device refuses" });
    match verb {
        Verb::Read => HttpResponse::InternalServerError().json(body),
        Verb::Command(_) => HttpResponse::Conflict().json(body),
    }
}

fn find(path: web::Path<(String, String)>) -> Result<(String, Resource), SimulatorError> {
    let (device, resource) = path.into_inner();
    let known = [Resource::Power, Resource::Storage, Resource::Network];
    match known.into_iter().find(|known| known.as_str() == resource) {
        Some(resource) => Ok((device, resource)),
        None => Err(SimulatorError::UnknownDevice { device, resource }),
    }
}

async fn change<T: Send + 'static>(
    shared: &web::Data<Shared>,
    how: impl FnOnce(&mut World) -> Result<T, SimulatorError> + Send + 'static,
) -> Result<T, SimulatorError> {
    change_at(shared, move |world, _| how(world)).await
}

/// Runs outside the event loop, because a change waits for the disk.
async fn change_at<T: Send + 'static>(
    shared: &web::Data<Shared>,
    how: impl FnOnce(&mut World, ringfence_core::Timestamp) -> Result<T, SimulatorError> + Send + 'static,
) -> Result<T, SimulatorError> {
    let shared = shared.clone().into_inner();
    web::block(move || shared.change(how))
        .await
        .map_err(|_| SimulatorError::Stopping)?
}

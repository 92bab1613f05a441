//! `GET /hosts/{id}/gates`, read from the database, never from a cache.

use actix_web::{HttpResponse, web};
use ringfence_core::{Gate, gates as decide};
use serde::Serialize;
use utoipa::ToSchema;

use crate::ApiError;
use crate::auth::Caller;
use crate::error::ErrorList;
use crate::state::State;
use crate::tokens::Role;

/// Both gates.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct GatesView {
    /// May workloads be scheduled here?
    schedule: GateView,
    /// May this host's workloads be started elsewhere?
    evacuate: GateView,
    /// The generation that the answers hold for.
    generation: u32,
}

/// One gate.
#[derive(Debug, Serialize, ToSchema)]
struct GateView {
    allowed: bool,
    reason: String,
}

impl From<Gate> for GateView {
    fn from(gate: Gate) -> Self {
        Self {
            allowed: gate.allowed,
            reason: gate.reason,
        }
    }
}

/// May workloads be scheduled here, and may this host's workloads be started elsewhere?
#[utoipa::path(get, path = "/hosts/{id}/gates", operation_id = "show_gates", tag = "hosts", params(("id" = String, Path, description = "id or name")),
    responses((status = 200, body = GatesView), (status = 401, body = ErrorList), (status = 404, body = ErrorList)))]
pub(crate) async fn gates(
    state: web::Data<State>,
    caller: Caller,
    id: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    caller.require(Role::Reader)?;
    let host = ringfence_db::load_state(&mut state.engine.db().reader(), &id).await?;
    let host = host.ok_or_else(|| ApiError::not_found("host", &id))?;
    let gates = decide(&host, state.engine.clock().now());
    Ok(HttpResponse::Ok()
        .insert_header(("Cache-Control", "no-store"))
        .json(GatesView {
            schedule: gates.schedule.into(),
            evacuate: gates.evacuate.into(),
            generation: gates.generation.0,
        }))
}

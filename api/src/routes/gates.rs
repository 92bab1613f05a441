//! `GET /hosts/{id}/gates`, read from the database, never from a cache.

use actix_web::{HttpResponse, web};
use ringfence_core::gates as decide;

use crate::ApiError;
use crate::auth::Caller;
use crate::error::ErrorList;
use crate::state::State;
use crate::tokens::Role;
use crate::view::gates::GatesView;

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
        .json(GatesView::from(gates)))
}

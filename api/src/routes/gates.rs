//! `GET /hosts/{id}/gates`, read from the database, never from a cache.

use actix_web::HttpResponse;
use ringfence_core::gates as decide;

use crate::ApiError;
use crate::call::{Call, IdOrName};
use crate::error::ErrorList;
use crate::role::Role;
use crate::view::gates::GatesView;

/// May workloads be scheduled here, and may this host's workloads be started elsewhere?
#[utoipa::path(get, path = "/hosts/{id}/gates", operation_id = "show_gates", tag = "hosts", params(IdOrName),
    responses((status = 200, body = GatesView), (status = 401, body = ErrorList), (status = 404, body = ErrorList)))]
pub(crate) async fn gates(call: Call, id: IdOrName) -> Result<HttpResponse, ApiError> {
    call.require(Role::Reader)?;
    let host = ringfence_db::load_state(&mut call.engine.db().reader(), &id).await?;
    let host = host.ok_or_else(|| ApiError::not_found("host", &id))?;
    let gates = decide(&host, call.engine.clock().now());
    if gates.evacuate.allowed {
        call.engine.confirm_record(&host.host).await?;
    } else if gates.schedule.allowed {
        call.engine.confirm_lead().await?;
    }
    Ok(HttpResponse::Ok()
        .insert_header(("Cache-Control", "no-store"))
        .json(GatesView::from(gates)))
}

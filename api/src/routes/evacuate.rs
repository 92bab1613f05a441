//! `POST /hosts/{id}/evacuate`, and what became of each workload.

use actix_web::{HttpResponse, web};
use serde::Serialize;
use utoipa::ToSchema;

use crate::ApiError;
use crate::body::Body;
use crate::call::{Call, IdOrName};
use crate::error::ErrorList;
use crate::role::Role;
use crate::routes::configured::NotChanged;
use crate::routes::fence;
use crate::routes::operations::known_operation;
use crate::routes::reason::ReasonBody;
use crate::view::moves::MoveView;
use crate::view::operation::OperationView;

/// What became of the workloads of a host.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MoveList {
    /// In the order in which they were taken up.
    moves: Vec<MoveView>,
}

/// Starts the workloads of a FENCED host elsewhere.
///
/// Only while the host's evacuate gate is open, which is looked at in the transaction that begins it; 409 otherwise. Which workloads
/// are moved, in which order and how many at one time is said by the host's segment.
#[utoipa::path(post, path = "/hosts/{id}/evacuate", operation_id = "evacuate_host", tag = "fencing", request_body = ReasonBody, params(IdOrName),
    responses((status = 202, description = "An evacuation is running; see Location", body = OperationView),
        NotChanged))]
pub(crate) async fn evacuate(
    call: Call,
    id: IdOrName,
    body: Body<ReasonBody>,
) -> Result<HttpResponse, ApiError> {
    let by = call.require_to_change(Role::Service)?;
    let operated = call.engine.evacuate(&id, &body.0.reason, &by).await?;
    fence::answer(&call, operated).await
}

/// Shows what became of each workload of an evacuation.
///
/// Empty for a fence or a rejoin, and as long as the backend has not told what is on the host.
#[utoipa::path(get, path = "/operations/{id}/moves", operation_id = "list_moves", tag = "operations", params(("id" = Uuid, Path)),
    responses((status = 200, body = MoveList), (status = 400, body = ErrorList), (status = 401, body = ErrorList),
        (status = 404, body = ErrorList)))]
pub(crate) async fn moves(call: Call, id: web::Path<String>) -> Result<HttpResponse, ApiError> {
    call.require(Role::Reader)?;
    let (operation, from) = known_operation(&call, &id).await?;
    let moves = operation.moves();
    let moves = moves
        .into_iter()
        .filter_map(|task| MoveView::of(task, from.as_deref()))
        .collect();
    Ok(HttpResponse::Ok().json(MoveList { moves }))
}

//! `/segments`.

use actix_web::{HttpRequest, HttpResponse, web};
use serde::Serialize;
use utoipa::ToSchema;

use crate::ApiError;
use crate::auth::Caller;
use crate::body::Body;
use crate::conditional::if_match;
use crate::error::ErrorList;
use crate::paging::MAX_LIMIT;
use crate::routes::configured::{NotCreated, NotRemoved, NotReplaced, created, found, replaced};
use crate::state::State;
use crate::tokens::Role;
use crate::view::segment::{SegmentBody, SegmentView};

/// All segments, up to 1000.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SegmentList {
    segments: Vec<SegmentView>,
}

/// Lists segments.
#[utoipa::path(get, path = "/segments", operation_id = "list_segments", tag = "configuration",
    responses((status = 200, body = SegmentList), (status = 401, body = ErrorList)))]
pub(crate) async fn list(state: web::Data<State>, caller: Caller) -> Result<HttpResponse, ApiError> {
    caller.require(Role::Reader)?;
    let segments = ringfence_db::list_segments(&mut state.engine.db().reader(), MAX_LIMIT).await?;
    Ok(HttpResponse::Ok().json(SegmentList {
        segments: segments.into_iter().map(SegmentView::from).collect(),
    }))
}

/// Adds a segment. Admins only.
#[utoipa::path(post, path = "/segments", operation_id = "create_segment", tag = "configuration", request_body = SegmentBody,
    responses((status = 201, body = SegmentView), NotCreated))]
pub(crate) async fn create(
    state: web::Data<State>,
    caller: Caller,
    body: Body<SegmentBody>,
) -> Result<HttpResponse, ApiError> {
    let by = caller.require(Role::Admin)?;
    let segment = state.engine.create_segment(body.0.into(), &by).await?;
    Ok(created(segment, Vec::new()))
}

/// Shows a segment.
#[utoipa::path(get, path = "/segments/{id}", operation_id = "show_segment", tag = "configuration", params(("id" = String, Path, description = "id or name")),
    responses((status = 200, body = SegmentView), (status = 304, description = "`If-None-Match` names it as it is"), (status = 401, body = ErrorList), (status = 404, body = ErrorList)))]
pub(crate) async fn show(
    state: web::Data<State>,
    caller: Caller,
    request: HttpRequest,
    id: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    caller.require(Role::Reader)?;
    let segment = ringfence_db::segment(&mut state.engine.db().reader(), &id).await?;
    found(segment, &id, &request)
}

/// Puts a segment in the place of one. Admins only.
#[utoipa::path(put, path = "/segments/{id}", operation_id = "replace_segment", tag = "configuration", request_body = SegmentBody,
    params(("id" = String, Path, description = "id or name")),
    responses((status = 200, body = SegmentView), NotReplaced))]
pub(crate) async fn replace(
    state: web::Data<State>,
    caller: Caller,
    request: HttpRequest,
    id: web::Path<String>,
    body: Body<SegmentBody>,
) -> Result<HttpResponse, ApiError> {
    let by = caller.require(Role::Admin)?;
    let segment = state
        .engine
        .update_segment(&id, body.0.into(), if_match(&request)?, &by)
        .await?;
    Ok(replaced(segment, Vec::new()))
}

/// Removes a segment that has no hosts. Admins only.
#[utoipa::path(delete, path = "/segments/{id}", operation_id = "remove_segment", tag = "configuration", params(("id" = String, Path, description = "id or name")),
    responses((status = 204), NotRemoved))]
pub(crate) async fn remove(
    state: web::Data<State>,
    caller: Caller,
    request: HttpRequest,
    id: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    let by = caller.require(Role::Admin)?;
    state.engine.delete_segment(&id, if_match(&request)?, &by).await?;
    Ok(HttpResponse::NoContent().finish())
}

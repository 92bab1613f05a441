//! `/segments`.

use actix_web::HttpResponse;
use serde::Serialize;
use utoipa::ToSchema;

use crate::ApiError;
use crate::body::Body;
use crate::call::{Call, IdOrName};
use crate::error::ErrorList;
use crate::paging::MAX_LIMIT;
use crate::role::Role;
use crate::routes::configured::{NotChanged, NotCreated, NotRemoved, created, found, replaced};
use crate::view::segment::{SegmentBody, SegmentView};

/// Beside `/segments`, where a segment can have any name.
pub(crate) const CHECK: &str = "/segment-check";

/// All segments, up to 1000.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SegmentList {
    segments: Vec<SegmentView>,
}

/// Lists segments.
#[utoipa::path(get, path = "/segments", operation_id = "list_segments", tag = "configuration",
    responses((status = 200, body = SegmentList), (status = 401, body = ErrorList)))]
pub(crate) async fn list(call: Call) -> Result<HttpResponse, ApiError> {
    call.require(Role::Reader)?;
    let segments = ringfence_db::list_segments(&mut call.engine.db().reader(), MAX_LIMIT).await?;
    Ok(HttpResponse::Ok().json(SegmentList {
        segments: segments.into_iter().map(SegmentView::from).collect(),
    }))
}

/// Adds a segment. Admins only.
#[utoipa::path(post, path = "/segments", operation_id = "create_segment", tag = "configuration", request_body = SegmentBody,
    responses((status = 201, body = SegmentView), NotCreated))]
pub(crate) async fn create(call: Call, body: Body<SegmentBody>) -> Result<HttpResponse, ApiError> {
    let by = call.require(Role::Admin)?;
    let segment = call.engine.create_segment(body.0.into(), &by).await?;
    Ok(created(segment, Vec::new()))
}

/// Says whether a segment could be written so: its fields, and what else of the service it names. Nothing is written.
#[utoipa::path(post, path = "/segment-check", operation_id = "check_segment", tag = "configuration", request_body = SegmentBody,
    responses((status = 204, description = "It could be written, unless its name is taken"), (status = 400, body = ErrorList), (status = 401, body = ErrorList),
        (status = 403, body = ErrorList), (status = 413, body = ErrorList), (status = 415, body = ErrorList)))]
pub(crate) async fn check(call: Call, body: Body<SegmentBody>) -> Result<HttpResponse, ApiError> {
    call.require(Role::Reader)?;
    let draft = body.0.into();
    call.engine.check_segment(&draft, &draft.name).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// Shows a segment.
#[utoipa::path(get, path = "/segments/{id}", operation_id = "show_segment", tag = "configuration", params(IdOrName),
    responses((status = 200, body = SegmentView), (status = 304, description = "`If-None-Match` names it as it is"), (status = 401, body = ErrorList), (status = 404, body = ErrorList)))]
pub(crate) async fn show(call: Call, id: IdOrName) -> Result<HttpResponse, ApiError> {
    call.require(Role::Reader)?;
    let segment = ringfence_db::segment(&mut call.engine.db().reader(), &id).await?;
    found(segment, &id, &call.request)
}

/// Puts a segment in the place of one. Admins only.
#[utoipa::path(put, path = "/segments/{id}", operation_id = "replace_segment", tag = "configuration", request_body = SegmentBody, params(IdOrName),
    responses((status = 200, body = SegmentView), NotChanged))]
pub(crate) async fn replace(
    call: Call,
    id: IdOrName,
    body: Body<SegmentBody>,
) -> Result<HttpResponse, ApiError> {
    let by = call.require(Role::Admin)?;
    let segment = call
        .engine
        .update_segment(&id, body.0.into(), call.if_match()?, &by)
        .await?;
    Ok(replaced(segment, Vec::new()))
}

/// Removes a segment that has no hosts. Admins only.
#[utoipa::path(delete, path = "/segments/{id}", operation_id = "remove_segment", tag = "configuration", params(IdOrName),
    responses((status = 204), NotRemoved))]
pub(crate) async fn remove(call: Call, id: IdOrName) -> Result<HttpResponse, ApiError> {
    let by = call.require(Role::Admin)?;
    call.engine.delete_segment(&id, call.if_match()?, &by).await?;
    Ok(HttpResponse::NoContent().finish())
}

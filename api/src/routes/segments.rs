//! `/segments`.

use actix_web::{HttpRequest, HttpResponse, web};
use ringfence_core::Segment;
use serde::Serialize;
use utoipa::ToSchema;

use crate::ApiError;
use crate::application::State;
use crate::auth::Caller;
use crate::body::Body;
use crate::conditional::{if_match, tag};
use crate::error::ErrorList;
use crate::paging::MAX_LIMIT;
use crate::tokens::Role;
use crate::view::segment::{SegmentBody, SegmentView};

/// All segments, up to 1000.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SegmentList {
    segments: Vec<SegmentView>,
}

fn answer(mut answer: actix_web::HttpResponseBuilder, segment: Segment) -> HttpResponse {
    tag(&mut answer, segment.revision).json(SegmentView::from(segment))
}

/// Lists segments.
#[utoipa::path(get, path = "/segments", tag = "configuration",
    responses((status = 200, body = SegmentList), (status = 401, body = ErrorList)))]
pub(crate) async fn list(state: web::Data<State>, caller: Caller) -> Result<HttpResponse, ApiError> {
    caller.require(Role::Reader)?;
    let segments = ringfence_db::list_segments(&mut state.engine.db().reader(), MAX_LIMIT).await?;
    Ok(HttpResponse::Ok().json(SegmentList {
        segments: segments.into_iter().map(SegmentView::from).collect(),
    }))
}

/// Adds a segment. Admins only.
#[utoipa::path(post, path = "/segments", tag = "configuration", request_body = SegmentBody,
    responses((status = 201, body = SegmentView), (status = 400, body = ErrorList), (status = 401, body = ErrorList),
        (status = 403, body = ErrorList), (status = 409, body = ErrorList), (status = 413, body = ErrorList),
        (status = 415, body = ErrorList)))]
pub(crate) async fn create(
    state: web::Data<State>,
    caller: Caller,
    body: Body<SegmentBody>,
) -> Result<HttpResponse, ApiError> {
    let by = caller.require(Role::Admin)?;
    let segment = state.engine.create_segment(body.0.into(), &by).await?;
    let mut created = HttpResponse::Created();
    created.insert_header(("Location", format!("/segments/{}", segment.id)));
    Ok(answer(created, segment))
}

/// Shows a segment.
#[utoipa::path(get, path = "/segments/{id}", tag = "configuration", params(("id" = String, Path, description = "id or name")),
    responses((status = 200, body = SegmentView), (status = 401, body = ErrorList), (status = 404, body = ErrorList)))]
pub(crate) async fn show(
    state: web::Data<State>,
    caller: Caller,
    id: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    caller.require(Role::Reader)?;
    let segment = ringfence_db::segment(&mut state.engine.db().reader(), &id).await?;
    Ok(answer(
        HttpResponse::Ok(),
        segment.ok_or_else(|| ApiError::not_found("segment", &id))?,
    ))
}

/// Puts a segment in the place of one. Admins only.
#[utoipa::path(put, path = "/segments/{id}", tag = "configuration", request_body = SegmentBody,
    params(("id" = String, Path, description = "id or name")),
    responses((status = 200, body = SegmentView), (status = 400, body = ErrorList), (status = 401, body = ErrorList),
        (status = 403, body = ErrorList), (status = 404, body = ErrorList), (status = 409, body = ErrorList),
        (status = 412, body = ErrorList), (status = 413, body = ErrorList), (status = 415, body = ErrorList)))]
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
    Ok(answer(HttpResponse::Ok(), segment))
}

/// Removes a segment that has no hosts. Admins only.
#[utoipa::path(delete, path = "/segments/{id}", tag = "configuration", params(("id" = String, Path, description = "id or name")),
    responses((status = 204), (status = 401, body = ErrorList), (status = 403, body = ErrorList),
        (status = 404, body = ErrorList), (status = 409, body = ErrorList), (status = 412, body = ErrorList)))]
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

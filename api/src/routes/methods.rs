//! `/methods`.

use std::collections::HashMap;

use actix_web::HttpResponse;
use ringfence_core::Method;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::ApiError;
use crate::body::Body;
use crate::call::{Call, IdOrName};
use crate::conditional::{is_known, tag};
use crate::error::ErrorList;
use crate::paging::MAX_LIMIT;
use crate::role::Role;
use crate::routes::configured::{NotChanged, NotCreated, NotRemoved, created, replaced};
use crate::view::method::{MethodBody, MethodView};
use crate::view::method_check::ChecksView;
use crate::view::operation::ObservationView;

/// All methods, up to 1000.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MethodList {
    methods: Vec<MethodView>,
}

/// Whose values to use.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CheckBody {
    /// The id or name of a host; needed where the method's parameters name the host.
    #[serde(default)]
    host: Option<String>,
}

/// What the device showed.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CheckView {
    observation: ObservationView,
    worker: String,
    took_ms: u64,
}

/// Lists methods.
#[utoipa::path(get, path = "/methods", operation_id = "list_methods", tag = "configuration",
    responses((status = 200, body = MethodList), (status = 401, body = ErrorList)))]
pub(crate) async fn list(call: Call) -> Result<HttpResponse, ApiError> {
    call.require(Role::Reader)?;
    let mut reader = call.engine.db().reader();
    let methods = ringfence_db::list_methods(&mut reader, MAX_LIMIT).await?;
    let checks = ringfence_db::check_summaries(&mut reader, None).await?;
    let checks: HashMap<_, _> = checks.iter().map(|checks| (checks.method_id, checks)).collect();
    let now = call.engine.clock().now();
    let view = |method: Method| {
        let checks = checks.get(&method.id).map(|checks| ChecksView::new(checks, now));
        MethodView {
            checks,
            ..method.into()
        }
    };
    Ok(HttpResponse::Ok().json(MethodList {
        methods: methods.into_iter().map(view).collect(),
    }))
}

/// Adds a method.
///
/// A fence agent's parameters are checked against its own metadata by a worker of the zone. Admins only.
#[utoipa::path(post, path = "/methods", operation_id = "create_method", tag = "configuration", request_body = MethodBody,
    responses((status = 201, body = MethodView), NotCreated, (status = 502, body = ErrorList), (status = 503, body = ErrorList)))]
pub(crate) async fn create(call: Call, body: Body<MethodBody>) -> Result<HttpResponse, ApiError> {
    let by = call.require(Role::Admin)?;
    let method = call.engine.create_method(body.0.draft()?, &by).await?;
    Ok(created(method, Vec::new()))
}

/// Shows a method.
#[utoipa::path(get, path = "/methods/{id}", operation_id = "show_method", tag = "configuration", params(IdOrName),
    responses((status = 200, body = MethodView), (status = 304, description = "`If-None-Match` names it as it is"), (status = 401, body = ErrorList), (status = 404, body = ErrorList)))]
pub(crate) async fn show(call: Call, id: IdOrName) -> Result<HttpResponse, ApiError> {
    call.require(Role::Reader)?;
    let mut reader = call.engine.db().reader();
    let method = ringfence_db::method(&mut reader, &id)
        .await?
        .ok_or_else(|| ApiError::not_found("method", &id))?;
    // The tag is that of the configuration, which the last answers are no part of.
    if is_known(&call.request, method.revision) {
        return Ok(tag(&mut HttpResponse::NotModified(), method.revision).finish());
    }
    let checks = ringfence_db::check_summaries(&mut reader, Some(method.id)).await?;
    let now = call.engine.clock().now();
    let mut answer = HttpResponse::Ok();
    let answer = tag(&mut answer, method.revision);
    Ok(answer.json(MethodView {
        checks: checks.first().map(|checks| ChecksView::new(checks, now)),
        ..method.into()
    }))
}

/// Puts a method in the place of one. Admins only.
#[utoipa::path(put, path = "/methods/{id}", operation_id = "replace_method", tag = "configuration", request_body = MethodBody, params(IdOrName),
    responses((status = 200, body = MethodView), NotChanged, (status = 502, body = ErrorList), (status = 503, body = ErrorList)))]
pub(crate) async fn replace(
    call: Call,
    id: IdOrName,
    body: Body<MethodBody>,
) -> Result<HttpResponse, ApiError> {
    let by = call.require(Role::Admin)?;
    let method = call
        .engine
        .update_method(&id, body.0.draft()?, call.if_match()?, &by)
        .await?;
    let warnings = call.engine.method_warnings(&method).await;
    Ok(replaced(method, warnings))
}

/// Removes a method that no plan names. Admins only.
#[utoipa::path(delete, path = "/methods/{id}", operation_id = "remove_method", tag = "configuration", params(IdOrName),
    responses((status = 204), NotRemoved))]
pub(crate) async fn remove(call: Call, id: IdOrName) -> Result<HttpResponse, ApiError> {
    let by = call.require(Role::Admin)?;
    call.engine.delete_method(&id, call.if_match()?, &by).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// Asks a method's device for its state, through a worker. Nothing is changed.
#[utoipa::path(post, path = "/methods/{id}/check", operation_id = "check_method", tag = "configuration", request_body = CheckBody, params(IdOrName),
    responses((status = 200, body = CheckView), NotCreated, (status = 404, body = ErrorList), (status = 502, body = ErrorList), (status = 503, body = ErrorList)))]
pub(crate) async fn check(call: Call, id: IdOrName, body: Body<CheckBody>) -> Result<HttpResponse, ApiError> {
    call.require(Role::Service)?;
    let check = call.engine.check_method(&id, body.0.host.as_deref()).await?;
    Ok(HttpResponse::Ok().json(CheckView {
        observation: ObservationView::from(&check.observation),
        worker: check.worker,
        took_ms: check.took_ms,
    }))
}

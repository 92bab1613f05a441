//! `/plans`.

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
use crate::view::plan::{PlanBody, PlanView};

/// All plans, up to 1000.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PlanList {
    plans: Vec<PlanView>,
}

/// Lists plans.
#[utoipa::path(get, path = "/plans", operation_id = "list_plans", tag = "configuration",
    responses((status = 200, body = PlanList), (status = 401, body = ErrorList)))]
pub(crate) async fn list(call: Call) -> Result<HttpResponse, ApiError> {
    call.require(Role::Reader)?;
    let plans = ringfence_db::list_plans(&mut call.engine.db().reader(), MAX_LIMIT).await?;
    Ok(HttpResponse::Ok().json(PlanList {
        plans: plans.into_iter().map(PlanView::from).collect(),
    }))
}

/// Adds a plan. Admins only.
#[utoipa::path(post, path = "/plans", operation_id = "create_plan", tag = "configuration", request_body = PlanBody,
    responses((status = 201, body = PlanView), NotCreated))]
pub(crate) async fn create(call: Call, body: Body<PlanBody>) -> Result<HttpResponse, ApiError> {
    let by = call.require(Role::Admin)?;
    let plan = call.engine.create_plan(body.0.draft()?, &by).await?;
    let warnings = call.engine.plan_warnings(&plan).await;
    Ok(created(plan, warnings))
}

/// Shows a plan.
#[utoipa::path(get, path = "/plans/{id}", operation_id = "show_plan", tag = "configuration", params(IdOrName),
    responses((status = 200, body = PlanView), (status = 304, description = "`If-None-Match` names it as it is"), (status = 401, body = ErrorList), (status = 404, body = ErrorList)))]
pub(crate) async fn show(call: Call, id: IdOrName) -> Result<HttpResponse, ApiError> {
    call.require(Role::Reader)?;
    let plan = ringfence_db::plan(&mut call.engine.db().reader(), &id).await?;
    found(plan, &id, &call.request)
}

/// Puts a plan in the place of one.
///
/// Operations that are running keep the plan that they began with. Admins only.
#[utoipa::path(put, path = "/plans/{id}", operation_id = "replace_plan", tag = "configuration", request_body = PlanBody, params(IdOrName),
    responses((status = 200, body = PlanView), NotChanged))]
pub(crate) async fn replace(
    call: Call,
    id: IdOrName,
    body: Body<PlanBody>,
) -> Result<HttpResponse, ApiError> {
    let by = call.require(Role::Admin)?;
    let plan = call
        .engine
        .update_plan(&id, body.0.draft()?, call.if_match()?, &by)
        .await?;
    let warnings = call.engine.plan_warnings(&plan).await;
    Ok(replaced(plan, warnings))
}

/// Removes a plan. Admins only.
#[utoipa::path(delete, path = "/plans/{id}", operation_id = "remove_plan", tag = "configuration", params(IdOrName),
    responses((status = 204), NotRemoved))]
pub(crate) async fn remove(call: Call, id: IdOrName) -> Result<HttpResponse, ApiError> {
    let by = call.require(Role::Admin)?;
    call.engine.delete_plan(&id, call.if_match()?, &by).await?;
    Ok(HttpResponse::NoContent().finish())
}

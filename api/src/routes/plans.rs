//! `/plans`.

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
use crate::view::plan::{PlanBody, PlanView};

/// All plans, up to 1000.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PlanList {
    plans: Vec<PlanView>,
}

/// Lists plans.
#[utoipa::path(get, path = "/plans", operation_id = "list_plans", tag = "configuration",
    responses((status = 200, body = PlanList), (status = 401, body = ErrorList)))]
pub(crate) async fn list(state: web::Data<State>, caller: Caller) -> Result<HttpResponse, ApiError> {
    caller.require(Role::Reader)?;
    let plans = ringfence_db::list_plans(&mut state.engine.db().reader(), MAX_LIMIT).await?;
    Ok(HttpResponse::Ok().json(PlanList {
        plans: plans.into_iter().map(PlanView::from).collect(),
    }))
}

/// Adds a plan. Admins only.
#[utoipa::path(post, path = "/plans", operation_id = "create_plan", tag = "configuration", request_body = PlanBody,
    responses((status = 201, body = PlanView), NotCreated))]
pub(crate) async fn create(
    state: web::Data<State>,
    caller: Caller,
    body: Body<PlanBody>,
) -> Result<HttpResponse, ApiError> {
    let by = caller.require(Role::Admin)?;
    let plan = state.engine.create_plan(body.0.draft()?, &by).await?;
    let warnings = state.engine.plan_warnings(&plan).await;
    Ok(created(plan, warnings))
}

/// Shows a plan.
#[utoipa::path(get, path = "/plans/{id}", operation_id = "show_plan", tag = "configuration", params(("id" = String, Path, description = "id or name")),
    responses((status = 200, body = PlanView), (status = 304, description = "`If-None-Match` names it as it is"), (status = 401, body = ErrorList), (status = 404, body = ErrorList)))]
pub(crate) async fn show(
    state: web::Data<State>,
    caller: Caller,
    request: HttpRequest,
    id: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    caller.require(Role::Reader)?;
    let plan = ringfence_db::plan(&mut state.engine.db().reader(), &id).await?;
    found(plan, &id, &request)
}

/// Puts a plan in the place of one.
///
/// Operations that are running keep the plan that they began with. Admins only.
#[utoipa::path(put, path = "/plans/{id}", operation_id = "replace_plan", tag = "configuration", request_body = PlanBody,
    params(("id" = String, Path, description = "id or name")),
    responses((status = 200, body = PlanView), NotReplaced))]
pub(crate) async fn replace(
    state: web::Data<State>,
    caller: Caller,
    request: HttpRequest,
    id: web::Path<String>,
    body: Body<PlanBody>,
) -> Result<HttpResponse, ApiError> {
    let by = caller.require(Role::Admin)?;
    let plan = state
        .engine
        .update_plan(&id, body.0.draft()?, if_match(&request)?, &by)
        .await?;
    let warnings = state.engine.plan_warnings(&plan).await;
    Ok(replaced(plan, warnings))
}

/// Removes a plan. Admins only.
#[utoipa::path(delete, path = "/plans/{id}", operation_id = "remove_plan", tag = "configuration", params(("id" = String, Path, description = "id or name")),
    responses((status = 204), NotRemoved))]
pub(crate) async fn remove(
    state: web::Data<State>,
    caller: Caller,
    request: HttpRequest,
    id: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    let by = caller.require(Role::Admin)?;
    state.engine.delete_plan(&id, if_match(&request)?, &by).await?;
    Ok(HttpResponse::NoContent().finish())
}

//! `/plans`.

use actix_web::{HttpRequest, HttpResponse, web};
use ringfence_core::Plan;
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
use crate::view::plan::{PlanBody, PlanView};

/// All plans, up to 1000.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PlanList {
    plans: Vec<PlanView>,
}

fn answer(mut answer: actix_web::HttpResponseBuilder, plan: Plan) -> HttpResponse {
    tag(&mut answer, plan.revision).json(PlanView::from(plan))
}

/// Lists plans.
#[utoipa::path(get, path = "/plans", tag = "configuration",
    responses((status = 200, body = PlanList), (status = 401, body = ErrorList)))]
pub(crate) async fn list(state: web::Data<State>, caller: Caller) -> Result<HttpResponse, ApiError> {
    caller.require(Role::Reader)?;
    let plans = ringfence_db::list_plans(&mut state.engine.db().reader(), MAX_LIMIT).await?;
    Ok(HttpResponse::Ok().json(PlanList {
        plans: plans.into_iter().map(PlanView::from).collect(),
    }))
}

/// Adds a plan. Admins only.
#[utoipa::path(post, path = "/plans", tag = "configuration", request_body = PlanBody,
    responses((status = 201, body = PlanView), (status = 400, body = ErrorList), (status = 401, body = ErrorList),
        (status = 403, body = ErrorList), (status = 409, body = ErrorList), (status = 413, body = ErrorList),
        (status = 415, body = ErrorList)))]
pub(crate) async fn create(
    state: web::Data<State>,
    caller: Caller,
    body: Body<PlanBody>,
) -> Result<HttpResponse, ApiError> {
    let by = caller.require(Role::Admin)?;
    let plan = state.engine.create_plan(body.0.draft()?, &by).await?;
    let mut created = HttpResponse::Created();
    created.insert_header(("Location", format!("/plans/{}", plan.id)));
    Ok(answer(created, plan))
}

/// Shows a plan.
#[utoipa::path(get, path = "/plans/{id}", tag = "configuration", params(("id" = String, Path, description = "id or name")),
    responses((status = 200, body = PlanView), (status = 401, body = ErrorList), (status = 404, body = ErrorList)))]
pub(crate) async fn show(
    state: web::Data<State>,
    caller: Caller,
    id: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    caller.require(Role::Reader)?;
    let plan = ringfence_db::plan(&mut state.engine.db().reader(), &id).await?;
    Ok(answer(
        HttpResponse::Ok(),
        plan.ok_or_else(|| ApiError::not_found("plan", &id))?,
    ))
}

/// Puts a plan in the place of one.
///
/// Operations that are running keep the plan that they began with. Admins only.
#[utoipa::path(put, path = "/plans/{id}", tag = "configuration", request_body = PlanBody,
    params(("id" = String, Path, description = "id or name")),
    responses((status = 200, body = PlanView), (status = 400, body = ErrorList), (status = 401, body = ErrorList),
        (status = 403, body = ErrorList), (status = 404, body = ErrorList), (status = 409, body = ErrorList),
        (status = 412, body = ErrorList), (status = 413, body = ErrorList), (status = 415, body = ErrorList)))]
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
    Ok(answer(HttpResponse::Ok(), plan))
}

/// Removes a plan. Admins only.
#[utoipa::path(delete, path = "/plans/{id}", tag = "configuration", params(("id" = String, Path, description = "id or name")),
    responses((status = 204), (status = 401, body = ErrorList), (status = 403, body = ErrorList),
        (status = 404, body = ErrorList), (status = 409, body = ErrorList), (status = 412, body = ErrorList)))]
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

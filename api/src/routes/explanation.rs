//! `GET /hosts/{id}/explanation`.

use actix_web::HttpResponse;
use ringfence_engine::{Context, DryRun};

use crate::ApiError;
use crate::call::{Call, IdOrName};
use crate::error::ErrorList;
use crate::role::Role;
use crate::state::State;
use crate::view::explanation::ExplanationView;

/// What is said to be the reason of a fence that is only thought of.
const REASON: &str = "explanation";

/// Why a host is in its state, and what a fence would do now. Nothing is changed.
#[utoipa::path(get, path = "/hosts/{id}/explanation", operation_id = "explain_host", tag = "hosts", params(IdOrName),
    responses((status = 200, body = ExplanationView), (status = 401, body = ErrorList), (status = 404, body = ErrorList)))]
pub(crate) async fn explain(call: Call, id: IdOrName) -> Result<HttpResponse, ApiError> {
    let by: Context = call.require(Role::Reader)?;
    answer(&call, call.engine.dry_run_fence(&id, REASON, &by).await?).await
}

/// 200 with the explanation.
pub(crate) async fn answer(state: &State, run: DryRun) -> Result<HttpResponse, ApiError> {
    let segment_id = run.state.host.segment_id.to_string();
    let segment = ringfence_db::segment(&mut state.engine.db().reader(), &segment_id).await?;
    let segment = segment.ok_or_else(|| ApiError::not_found("segment", &segment_id))?;
    Ok(HttpResponse::Ok()
        .insert_header(("Cache-Control", "no-store"))
        .json(ExplanationView::new(run, segment.name)))
}

//! `DELETE /hosts/{id}/sources/{source}`: a person removes a source that reports no more.

use actix_web::{HttpRequest, HttpResponse, web};

use crate::ApiError;
use crate::auth::Caller;
use crate::body::Body;
use crate::conditional::if_match;
use crate::error::ErrorList;
use crate::routes::hosts;
use crate::routes::reason::ReasonBody;
use crate::state::State;
use crate::tokens::Role;
use crate::view::host::HostView;

/// Strikes off a source that reports no more.
///
/// What it said of the host counts no longer. One that reports again is there again.
#[utoipa::path(delete, path = "/hosts/{id}/sources/{source}", operation_id = "forget_source", tag = "hosts", request_body = ReasonBody,
    params(("id" = String, Path, description = "id or name"), ("source" = String, Path, description = "its name, as in the host's `sources`")),
    responses((status = 200, body = HostView), (status = 400, body = ErrorList), (status = 401, body = ErrorList),
        (status = 403, body = ErrorList), (status = 404, body = ErrorList), (status = 409, body = ErrorList),
        (status = 412, body = ErrorList), (status = 413, body = ErrorList), (status = 415, body = ErrorList)))]
pub(crate) async fn forget(
    state: web::Data<State>,
    caller: Caller,
    request: HttpRequest,
    path: web::Path<(String, String)>,
    body: Body<ReasonBody>,
) -> Result<HttpResponse, ApiError> {
    let by = caller.require(Role::Service)?.only_at(if_match(&request)?);
    let (id, source) = path.into_inner();
    let left = state
        .engine
        .forget_source(&id, &source, &body.0.reason, &by)
        .await?;
    hosts::answer(&state, &left.host.id.to_string(), HttpResponse::Ok()).await
}

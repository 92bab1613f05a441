//! `POST /hosts/{id}/fence`.

use actix_web::{HttpRequest, HttpResponse, web};
use ringfence_engine::Operated;

use crate::ApiError;
use crate::auth::Caller;
use crate::body::Body;
use crate::conditional::if_match;
use crate::error::ErrorList;
use crate::request_log::note_operation;
use crate::routes::reason::ReasonBody;
use crate::routes::{hosts, operations};
use crate::state::State;
use crate::tokens::Role;
use crate::view::host::HostView;
use crate::view::operation::OperationView;

/// Fences a host.
///
/// 200 if it is FENCED already; 202 with the operation that does it, a new one or the one that is running; 409 if the host is
/// seen UP or no plan applies to it.
#[utoipa::path(post, path = "/hosts/{id}/fence", operation_id = "fence_host", tag = "fencing", request_body = ReasonBody,
    params(("id" = String, Path, description = "id or name")),
    responses((status = 200, description = "It is FENCED already", body = HostView),
        (status = 202, description = "A fence is running; see Location", body = OperationView),
        (status = 400, body = ErrorList), (status = 401, body = ErrorList), (status = 403, body = ErrorList),
        (status = 404, body = ErrorList), (status = 409, body = ErrorList),
        (status = 412, body = ErrorList), (status = 413, body = ErrorList),
        (status = 415, body = ErrorList)))]
pub(crate) async fn fence(
    state: web::Data<State>,
    caller: Caller,
    request: HttpRequest,
    id: web::Path<String>,
    body: Body<ReasonBody>,
) -> Result<HttpResponse, ApiError> {
    let by = caller.require(Role::Service)?.only_at(if_match(&request)?);
    answer(&state, state.engine.fence(&id, &body.0.reason, &by).await?).await
}

/// 200 with the host if it is so already, else 202 with the operation.
pub(crate) async fn answer(state: &State, operated: Operated) -> Result<HttpResponse, ApiError> {
    match operated {
        Operated::Already(host) => hosts::answer(state, &host.host.id.to_string(), HttpResponse::Ok()).await,
        Operated::Started(id, now) | Operated::Joined(id, now) => {
            note_operation(id);
            let mut accepted = HttpResponse::Accepted();
            accepted.insert_header(("Location", format!("/operations/{id}")));
            match now.operation.filter(|operation| operation.id == id) {
                Some(operation) => Ok(operations::shown(accepted, &operation, Some(now.host.name))),
                None => operations::answer(state, id.0, accepted).await,
            }
        }
    }
}

//! `POST /hosts/{id}/rejoin`.

use actix_web::{HttpRequest, HttpResponse, web};
use serde::Deserialize;
use utoipa::ToSchema;

use crate::ApiError;
use crate::auth::Caller;
use crate::body::Body;
use crate::conditional::if_match;
use crate::error::ErrorList;
use crate::routes::fence;
use crate::state::State;
use crate::tokens::Role;
use crate::view::host::HostView;
use crate::view::operation::OperationView;

/// Why, and what is known of the host's boot.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RejoinBody {
    /// 1 to 255 characters of plain text.
    #[schema(
        min_length = 1,
        max_length = 255,
        pattern = r"^[^\x00-\x1f\x7f-\x9f]*[^\s\x00-\x1f\x7f-\x9f][^\x00-\x1f\x7f-\x9f]*$"
    )]
    reason: String,
    /// The person says that the host was booted anew since the fence.
    #[serde(default)]
    boot_confirmed: bool,
}

/// Takes a host back.
///
/// Power, workloads, storage, network, each read as released; then UNFENCED.
#[utoipa::path(post, path = "/hosts/{id}/rejoin", operation_id = "rejoin_host", tag = "fencing", request_body = RejoinBody,
    params(("id" = String, Path, description = "id or name")),
    responses((status = 200, description = "It is UNFENCED already", body = HostView),
        (status = 202, description = "A rejoin is running; see Location", body = OperationView),
        (status = 400, body = ErrorList), (status = 401, body = ErrorList), (status = 403, body = ErrorList),
        (status = 404, body = ErrorList), (status = 409, body = ErrorList),
        (status = 412, body = ErrorList), (status = 413, body = ErrorList),
        (status = 415, body = ErrorList)))]
pub(crate) async fn rejoin(
    state: web::Data<State>,
    caller: Caller,
    request: HttpRequest,
    id: web::Path<String>,
    body: Body<RejoinBody>,
) -> Result<HttpResponse, ApiError> {
    let by = caller.require(Role::Service)?.only_at(if_match(&request)?);
    let body = body.0;
    fence::answer(
        &state,
        state
            .engine
            .rejoin(&id, &body.reason, body.boot_confirmed, &by)
            .await?,
    )
    .await
}

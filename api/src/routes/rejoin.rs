//! `POST /hosts/{id}/rejoin`.

use actix_web::HttpResponse;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::ApiError;
use crate::body::Body;
use crate::call::{Call, IdOrName};
use crate::role::Role;
use crate::routes::configured::NotChanged;
use crate::routes::fence;
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
#[utoipa::path(post, path = "/hosts/{id}/rejoin", operation_id = "rejoin_host", tag = "fencing", request_body = RejoinBody, params(IdOrName),
    responses((status = 200, description = "It is UNFENCED already", body = HostView),
        (status = 202, description = "A rejoin is running; see Location", body = OperationView),
        NotChanged))]
pub(crate) async fn rejoin(
    call: Call,
    id: IdOrName,
    body: Body<RejoinBody>,
) -> Result<HttpResponse, ApiError> {
    let by = call.require_to_change(Role::Service)?;
    let body = body.0;
    fence::answer(
        &call,
        call.engine
            .rejoin(&id, &body.reason, body.boot_confirmed, &by)
            .await?,
    )
    .await
}

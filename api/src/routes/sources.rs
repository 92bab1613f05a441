//! `DELETE /hosts/{id}/sources/{source}`: a person removes a source that reports no more.

use actix_web::{HttpResponse, web};

use crate::ApiError;
use crate::body::Body;
use crate::call::Call;
use crate::role::Role;
use crate::routes::configured::NotChanged;
use crate::routes::hosts;
use crate::routes::reason::ReasonBody;
use crate::view::host::HostView;

/// Strikes off a source that reports no more.
///
/// What it said of the host counts no longer. One that reports again is there again.
#[utoipa::path(delete, path = "/hosts/{id}/sources/{source}", operation_id = "forget_source", tag = "hosts", request_body = ReasonBody,
    params(("id" = String, Path, description = "id or name"), ("source" = String, Path, description = "its name, as in the host's `sources`")),
    responses((status = 200, body = HostView), NotChanged))]
pub(crate) async fn forget(
    call: Call,
    path: web::Path<(String, String)>,
    body: Body<ReasonBody>,
) -> Result<HttpResponse, ApiError> {
    let by = call.require_to_change(Role::Service)?;
    let (id, source) = path.into_inner();
    let left = call
        .engine
        .forget_source(&id, &source, &body.0.reason, &by)
        .await?;
    hosts::answer(&call, &left.host.id.to_string(), HttpResponse::Ok()).await
}

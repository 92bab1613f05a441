//! `POST /hosts/{id}/confirm-fenced`: a person says that the host was fenced by hand.

use actix_web::{HttpRequest, HttpResponse, web};
use ringfence_core::Generation;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::ApiError;
use crate::auth::Caller;
use crate::body::Body;
use crate::conditional::if_match;
use crate::error::ErrorList;
use crate::request_log::note_operation;
use crate::routes::hosts;
use crate::state::State;
use crate::tokens::Role;
use crate::view::host::HostView;

/// A person's word.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ConfirmBody {
    /// The host's generation as the person saw it.
    generation: u32,
    /// How it was made certain: 1 to 255 characters of plain text.
    #[schema(
        min_length = 1,
        max_length = 255,
        pattern = r"^[^\x00-\x1f\x7f-\x9f]*[^\s\x00-\x1f\x7f-\x9f][^\x00-\x1f\x7f-\x9f]*$"
    )]
    reason: String,
    /// Although the host is seen UP; admins only.
    #[serde(default)]
    override_up: bool,
}

/// Takes a person's word that a host was fenced by hand.
///
/// The generation has to be the present one, so that a person does not confirm what has changed meanwhile. The host is FENCED once the word has
/// settled, as the segment's `settle_s` says: until then the answer shows it UNFENCED, with the fence as its operation.
#[utoipa::path(post, path = "/hosts/{id}/confirm-fenced", operation_id = "confirm_fenced", tag = "fencing", request_body = ConfirmBody,
    params(("id" = String, Path, description = "id or name")),
    responses((status = 200, body = HostView), (status = 400, body = ErrorList), (status = 401, body = ErrorList),
        (status = 403, body = ErrorList), (status = 404, body = ErrorList), (status = 409, body = ErrorList),
        (status = 412, body = ErrorList), (status = 413, body = ErrorList), (status = 415, body = ErrorList)))]
pub(crate) async fn confirm(
    state: web::Data<State>,
    caller: Caller,
    request: HttpRequest,
    id: web::Path<String>,
    body: Body<ConfirmBody>,
) -> Result<HttpResponse, ApiError> {
    let by = caller.require(Role::Service)?.only_at(if_match(&request)?);
    let body = body.0;
    let confirmed = state
        .engine
        .confirm(
            &id,
            Generation(body.generation),
            &body.reason,
            body.override_up,
            &by,
        )
        .await?;
    if let Some(operation) = &confirmed.state.operation {
        note_operation(operation.id);
    }
    hosts::answer(&state, &confirmed.state.host.id.to_string(), HttpResponse::Ok()).await
}

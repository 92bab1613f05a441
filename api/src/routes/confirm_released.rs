//! `POST /hosts/{id}/confirm-released`: an admin confirms that applied fencing was released by hand.

use std::collections::BTreeSet;

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

/// An admin's word.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ConfirmReleasedBody {
    /// The host's generation as the person saw it.
    generation: u32,
    /// The names of the methods, as in the host's `applied_fencing`: 1 to 72.
    #[schema(min_items = 1, max_items = 72)]
    methods: BTreeSet<String>,
    /// How it was released: 1 to 255 characters of plain text.
    #[schema(
        min_length = 1,
        max_length = 255,
        pattern = r"^[^\x00-\x1f\x7f-\x9f]*[^\s\x00-\x1f\x7f-\x9f][^\x00-\x1f\x7f-\x9f]*$"
    )]
    reason: String,
}

/// Takes an admin's word that applied fencing was released by hand, or is gone with its device.
///
/// For storage and network only, and only once a rejoin has begun or the fence was stopped: while the host is FENCED, what
/// stands holds it. A rejoin that waits for a person because of it goes on. Admins only.
#[utoipa::path(post, path = "/hosts/{id}/confirm-released", operation_id = "confirm_released", tag = "fencing", request_body = ConfirmReleasedBody,
    params(("id" = String, Path, description = "id or name")),
    responses((status = 200, body = HostView), (status = 400, body = ErrorList), (status = 401, body = ErrorList),
        (status = 403, body = ErrorList), (status = 404, body = ErrorList), (status = 409, body = ErrorList),
        (status = 412, body = ErrorList), (status = 413, body = ErrorList), (status = 415, body = ErrorList)))]
pub(crate) async fn confirm(
    state: web::Data<State>,
    caller: Caller,
    request: HttpRequest,
    id: web::Path<String>,
    body: Body<ConfirmReleasedBody>,
) -> Result<HttpResponse, ApiError> {
    let by = caller.require(Role::Admin)?.only_at(if_match(&request)?);
    let body = body.0;
    let confirmed = state
        .engine
        .confirm_released(&id, Generation(body.generation), body.methods, &body.reason, &by)
        .await?;
    if let Some(operation) = &confirmed.state.operation {
        note_operation(operation.id);
    }
    hosts::answer(&state, &confirmed.state.host.id.to_string(), HttpResponse::Ok()).await
}

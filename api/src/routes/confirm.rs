//! `POST /hosts/{id}/confirm-fenced` and `/confirm-released`: a person says what was done by hand.

use std::collections::BTreeSet;

use actix_web::HttpResponse;
use ringfence_core::Generation;
use ringfence_engine::{Applied, Word};
use serde::Deserialize;
use utoipa::ToSchema;

use crate::ApiError;
use crate::body::Body;
use crate::call::{Call, IdOrName};
use crate::request_log::note_operation;
use crate::role::Role;
use crate::routes::configured::NotChanged;
use crate::routes::hosts;
use crate::state::State;
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
#[utoipa::path(post, path = "/hosts/{id}/confirm-fenced", operation_id = "confirm_fenced", tag = "fencing", request_body = ConfirmBody, params(IdOrName),
    responses((status = 200, body = HostView), NotChanged))]
pub(crate) async fn confirm(
    call: Call,
    id: IdOrName,
    body: Body<ConfirmBody>,
) -> Result<HttpResponse, ApiError> {
    let by = call.require_to_change(Role::Service)?;
    let body = body.0;
    let word = Word {
        generation: Generation(body.generation),
        said_at: call.engine.clock().now(),
        reason: &body.reason,
        override_up: body.override_up,
    };
    let confirmed = call.engine.confirm(&id, word, &by).await?;
    answer(&call, &confirmed).await
}

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
#[utoipa::path(post, path = "/hosts/{id}/confirm-released", operation_id = "confirm_released", tag = "fencing", request_body = ConfirmReleasedBody, params(IdOrName),
    responses((status = 200, body = HostView), NotChanged))]
pub(crate) async fn confirm_released(
    call: Call,
    id: IdOrName,
    body: Body<ConfirmReleasedBody>,
) -> Result<HttpResponse, ApiError> {
    let by = call.require_to_change(Role::Admin)?;
    let body = body.0;
    let confirmed = call
        .engine
        .confirm_released(&id, Generation(body.generation), body.methods, &body.reason, &by)
        .await?;
    answer(&call, &confirmed).await
}

/// The host, after a person's word on it.
async fn answer(state: &State, confirmed: &Applied) -> Result<HttpResponse, ApiError> {
    if let Some(operation) = &confirmed.state.operation {
        note_operation(operation.id);
    }
    hosts::answer(state, &confirmed.state.host.id.to_string(), HttpResponse::Ok()).await
}

//! `POST /hosts/{id}/fence`.

use actix_web::HttpResponse;
use ringfence_engine::Operated;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::ApiError;
use crate::body::Body;
use crate::call::{Call, IdOrName};
use crate::request_log::note_operation;
use crate::role::Role;
use crate::routes::configured::NotChanged;
use crate::routes::{explanation, hosts, operations};
use crate::state::State;
use crate::view::explanation::ExplanationView;
use crate::view::host::HostView;
use crate::view::operation::OperationView;

/// The path of the call.
pub(crate) const PATH: &str = "/hosts/{id}/fence";

/// Why a host is to be fenced, and whether it is.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FenceBody {
    /// 1 to 255 characters of plain text; goes into the audit trail.
    #[schema(
        min_length = 1,
        max_length = 255,
        pattern = r"^[^\x00-\x1f\x7f-\x9f]*[^\s\x00-\x1f\x7f-\x9f][^\x00-\x1f\x7f-\x9f]*$"
    )]
    pub reason: String,
    /// Only tells what the fence would do now. Nothing is changed and nothing is put on record.
    #[serde(default)]
    pub dry_run: bool,
}

/// Whether a body asks for a dry run, which changes nothing and so needs no key.
pub(crate) fn is_dry_run(body: &[u8]) -> bool {
    serde_json::from_slice::<FenceBody>(body).is_ok_and(|body| body.dry_run)
}

/// What it is so already, or would be.
#[derive(ToSchema)]
#[schema(as = FencedOrExplained)]
#[serde(untagged)]
#[expect(
    dead_code,
    clippy::large_enum_variant,
    reason = "describes the two bodies of one status; no value is made"
)]
enum FencedOrExplained {
    /// Without `dry_run`.
    Fenced(HostView),
    /// With `dry_run`.
    Explained(ExplanationView),
}

/// Fences a host.
///
/// 200 if it is FENCED already; 202 with the operation that does it, a new one or the one that is running; 409 if the host is
/// seen UP or no plan applies to it. With `dry_run` 200 with what the fence would do, refusals included.
#[utoipa::path(post, path = "/hosts/{id}/fence", operation_id = "fence_host", tag = "fencing", request_body = FenceBody, params(IdOrName),
    responses((status = 200, description = "It is FENCED already, or what a dry run tells", body = FencedOrExplained),
        (status = 202, description = "A fence is running; see Location", body = OperationView),
        NotChanged))]
pub(crate) async fn fence(call: Call, id: IdOrName, body: Body<FenceBody>) -> Result<HttpResponse, ApiError> {
    let by = call.require_to_change(Role::Service)?;
    let FenceBody { reason, dry_run } = body.0;
    if dry_run {
        return explanation::answer(&call, call.engine.dry_run_fence(&id, &reason, &by).await?).await;
    }
    answer(&call, call.engine.fence(&id, &reason, &by).await?).await
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

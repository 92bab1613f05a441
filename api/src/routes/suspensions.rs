//! `/suspensions`, and the suspension of a host, of a segment, and of all hosts.

use actix_web::HttpResponse;
use chrono::{DateTime, Utc};
use ringfence_engine::{SuspensionDraft, SuspensionEnd};
use serde::Deserialize;
use utoipa::ToSchema;

use crate::ApiError;
use crate::body::Body;
use crate::call::{Call, IdOrName};
use crate::error::ErrorList;
use crate::moment;
use crate::paging::MAX_LIMIT;
use crate::role::Role;
use crate::routes::configured::{NotChanged, NotCreated};
use crate::routes::hosts;
use crate::routes::reason::ReasonBody;
use crate::view::host::HostView;
use crate::view::suspension::{SuspendedOneView, SuspendedView, SuspensionView};

/// A suspension that is asked for.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SuspensionBody {
    /// When it ends by itself: within 30 days, or within 366 days for admins. Without an end: admins only.
    #[serde(default, deserialize_with = "moment::optional")]
    until: Option<DateTime<Utc>>,
    /// Seconds after which it ends by itself, in the place of `until`; at least 1.
    #[schema(minimum = 1)]
    for_s: Option<u32>,
    /// 1 to 255 characters of plain text; goes into the audit trail.
    #[schema(
        min_length = 1,
        max_length = 255,
        pattern = r"^[^\x00-\x1f\x7f-\x9f]*[^\s\x00-\x1f\x7f-\x9f][^\x00-\x1f\x7f-\x9f]*$"
    )]
    reason: String,
}

impl SuspensionBody {
    fn draft(&self) -> Result<SuspensionDraft<'_>, ApiError> {
        let end = match (self.until, self.for_s) {
            (Some(_), Some(_)) => {
                return Err(ApiError::bad(
                    "for_s",
                    "is given beside until; one of the two is allowed",
                ));
            }
            (Some(until), None) => SuspensionEnd::At(until),
            (None, Some(seconds)) => SuspensionEnd::After(seconds),
            (None, None) => SuspensionEnd::ByHand,
        };
        Ok(SuspensionDraft {
            end,
            reason: &self.reason,
        })
    }
}

/// Shows all that is suspended.
#[utoipa::path(get, path = "/suspensions", operation_id = "list_suspensions", tag = "fencing",
    responses((status = 200, body = SuspendedView), (status = 401, body = ErrorList)))]
pub(crate) async fn list(call: Call) -> Result<HttpResponse, ApiError> {
    call.require(Role::Reader)?;
    let all = call.engine.suspended(MAX_LIMIT).await?;
    Ok(HttpResponse::Ok().json(SuspendedView::from(all)))
}

/// Suspends a host.
///
/// Until the end of the suspension no fence, evacuation or rejoin of the host begins by itself: a fence that is due is `held`. What was asked for
/// before stands still between two steps, as `held`, and goes on after that; what a worker is at ends by itself. What is asked for during the
/// suspension is done. A host that is suspended already gets the new end, by who asks and from now.
#[utoipa::path(put, path = "/hosts/{id}/suspension", operation_id = "suspend_host", tag = "fencing", request_body = SuspensionBody, params(IdOrName),
    responses((status = 200, body = HostView), NotChanged))]
pub(crate) async fn suspend_host(
    call: Call,
    id: IdOrName,
    body: Body<SuspensionBody>,
) -> Result<HttpResponse, ApiError> {
    let by = call.require_to_change(Role::Service)?;
    let state = call.engine.suspend_host(&id, body.0.draft()?, &by).await?;
    hosts::answer(&call, &state.host.id.to_string(), HttpResponse::Ok()).await
}

/// Ends the suspension of a host.
///
/// What its segment's suspension holds, or that of all hosts, stays held.
#[utoipa::path(delete, path = "/hosts/{id}/suspension", operation_id = "resume_host", tag = "fencing", request_body = ReasonBody, params(IdOrName),
    responses((status = 200, body = HostView), NotChanged))]
pub(crate) async fn resume_host(
    call: Call,
    id: IdOrName,
    body: Body<ReasonBody>,
) -> Result<HttpResponse, ApiError> {
    let by = call.require_to_change(Role::Service)?;
    let state = call.engine.resume_host(&id, &body.0.reason, &by).await?;
    hosts::answer(&call, &state.host.id.to_string(), HttpResponse::Ok()).await
}

/// Suspends the hosts of a segment.
///
/// As for a host, and for hosts too that come to the segment later.
#[utoipa::path(put, path = "/segments/{id}/suspension", operation_id = "suspend_segment", tag = "fencing", request_body = SuspensionBody, params(IdOrName),
    responses((status = 200, body = SuspendedOneView), (status = 404, body = ErrorList), NotCreated))]
pub(crate) async fn suspend_segment(
    call: Call,
    id: IdOrName,
    body: Body<SuspensionBody>,
) -> Result<HttpResponse, ApiError> {
    let by = call.require(Role::Operator)?;
    let one = call.engine.suspend_segment(&id, body.0.draft()?, &by).await?;
    Ok(HttpResponse::Ok().json(SuspendedOneView::from(one)))
}

/// Ends the suspension of a segment.
#[utoipa::path(delete, path = "/segments/{id}/suspension", operation_id = "resume_segment", tag = "fencing", request_body = ReasonBody, params(IdOrName),
    responses((status = 204), (status = 404, body = ErrorList), NotCreated))]
pub(crate) async fn resume_segment(
    call: Call,
    id: IdOrName,
    body: Body<ReasonBody>,
) -> Result<HttpResponse, ApiError> {
    let by = call.require(Role::Operator)?;
    call.engine.resume_segment(&id, &body.0.reason, &by).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// Suspends all hosts.
///
/// As for a host, and for hosts too that are added later.
#[utoipa::path(put, path = "/suspension", operation_id = "suspend_everything", tag = "fencing", request_body = SuspensionBody,
    responses((status = 200, body = SuspensionView), NotCreated))]
pub(crate) async fn suspend_everything(
    call: Call,
    body: Body<SuspensionBody>,
) -> Result<HttpResponse, ApiError> {
    let by = call.require(Role::Operator)?;
    let suspension = call.engine.suspend_everything(body.0.draft()?, &by).await?;
    Ok(HttpResponse::Ok().json(SuspensionView::from(suspension)))
}

/// Ends the suspension of all hosts.
///
/// What is suspended by itself, or by its segment, stays suspended.
#[utoipa::path(delete, path = "/suspension", operation_id = "resume_everything", tag = "fencing", request_body = ReasonBody,
    responses((status = 204), NotCreated))]
pub(crate) async fn resume_everything(call: Call, body: Body<ReasonBody>) -> Result<HttpResponse, ApiError> {
    let by = call.require(Role::Operator)?;
    call.engine.resume_everything(&body.0.reason, &by).await?;
    Ok(HttpResponse::NoContent().finish())
}

//! `PUT /hosts/{id}/failure-state`: what an outside monitor saw.

use actix_web::HttpResponse;
use chrono::{DateTime, Utc};
use ringfence_core::{Boot, FailureState, Report};
use serde::Deserialize;
use utoipa::ToSchema;

use crate::ApiError;
use crate::body::Body;
use crate::call::{Call, IdOrName};
use crate::moment;
use crate::role::Role;
use crate::routes::configured::NotChanged;
use crate::routes::hosts;
use crate::view::host::HostView;

/// What was seen.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FailureStateBody {
    /// UP, UNREACHABLE or UNKNOWN
    #[schema(value_type = String, pattern = "^(UP|UNREACHABLE|UNKNOWN)$", example = "UNREACHABLE")]
    failure_state: FailureState,
    /// The monitor's name, up to 255 characters.
    #[schema(min_length = 1, max_length = 255, pattern = r"^[^\x00-\x1f\x7f-\x9f]+$")]
    source: String,
    /// When it was seen, with its zone. Older than the monitor's own last report: 409, unless it is UP.
    #[serde(deserialize_with = "moment::required")]
    observed_at: DateTime<Utc>,
    /// When the monitor last had a sign of life of the host, for a report of something else than UP. Without it the report does not count
    /// for self-fencing.
    #[serde(default, deserialize_with = "moment::optional")]
    last_seen_at: Option<DateTime<Utc>>,
    /// The id of the host's present boot, if the monitor can tell.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 255, pattern = r"^[^\x00-\x1f\x7f-\x9f]+$")]
    boot_id: Option<String>,
    /// When the host says it booted; counts beside a boot_id.
    #[serde(default, deserialize_with = "moment::optional")]
    booted_at: Option<DateTime<Utc>>,
}

/// Takes down what a monitor saw.
///
/// What each source says is kept apart; `sources` of the host shows it. A monitor repeats UP at least every 120 s, and UNREACHABLE at least
/// every 30 s where hosts fence themselves. A host that is seen UP before a worker has acted on it ends its fence.
#[utoipa::path(put, path = "/hosts/{id}/failure-state", operation_id = "report_failure_state", tag = "hosts", request_body = FailureStateBody, params(IdOrName),
    responses((status = 200, body = HostView), NotChanged))]
pub(crate) async fn report(
    call: Call,
    id: IdOrName,
    body: Body<FailureStateBody>,
) -> Result<HttpResponse, ApiError> {
    let by = call.require_to_change(Role::Service)?;
    let body = body.0;
    let report = report_of(
        body.failure_state,
        body.source,
        (body.observed_at, body.last_seen_at),
        (body.boot_id, body.booted_at),
    );
    let seen = call.engine.report_failure_state(&id, report, &by).await?;
    hosts::answer(&call, &seen.host.id.to_string(), HttpResponse::Ok()).await
}

/// A monitor's report: when it saw the state and when it last had a sign of life, and what it knows of the boot.
pub(super) fn report_of(
    state: FailureState,
    source: String,
    (observed_at, last_seen_at): (DateTime<Utc>, Option<DateTime<Utc>>),
    (id, booted_at): (Option<String>, Option<DateTime<Utc>>),
) -> Report {
    let has_boot = id.is_some() || booted_at.is_some();
    Report {
        state,
        source,
        observed_at,
        last_seen_at,
        silent_since: None,
        boot: has_boot.then_some(Boot { id, booted_at }),
    }
}

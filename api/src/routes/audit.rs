//! `GET /audit`. There is no call that changes the trail.

use actix_web::{HttpResponse, web};
use ringfence_core::{HostId, Timestamp};
use ringfence_db::{AuditFilter, AuditRow};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use crate::ApiError;
use crate::call::Call;
use crate::error::ErrorList;
use crate::moment;
use crate::paging::{Link, limit, next_link};
use crate::role::Role;
use crate::state::State;
use crate::view::audit::AuditView;

/// The longest value of a filter, in characters: no name and no action is longer.
const MAX_FILTER_CHARS: usize = 255;

/// A page of the audit trail.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AuditList {
    audit: Vec<AuditView>,
    links: Vec<Link>,
}

/// Which lines.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct AuditQuery {
    /// Only of the host with this id or name; one that was removed is found by its last name.
    host: Option<String>,
    /// Only by this actor.
    #[param(min_length = 1, max_length = 255, pattern = r"^[^\x00-\x1f\x7f-\x9f]+$")]
    actor: Option<String>,
    /// Only actions that begin so, such as `operation.`
    #[param(min_length = 1, max_length = 255, pattern = r"^[^\x00-\x1f\x7f-\x9f]+$")]
    action: Option<String>,
    /// Only of the request with this id.
    #[param(min_length = 1, max_length = 255, pattern = r"^[^\x00-\x1f\x7f-\x9f]+$")]
    request_id: Option<String>,
    /// Only of requests that came with this id in their own `X-OpenStack-Request-ID`: the caller's global request id.
    #[param(min_length = 1, max_length = 255, pattern = r"^[^\x00-\x1f\x7f-\x9f]+$")]
    global_request_id: Option<String>,
    /// Only at this time or later; RFC 3339.
    #[param(value_type = Option<DateTime<chrono::Utc>>)]
    since: Option<String>,
    /// Only before this time; RFC 3339.
    #[param(value_type = Option<DateTime<chrono::Utc>>)]
    until: Option<String>,
    /// The most rows, 1 to 1000; 100 if absent.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 1000)]
    limit: Option<String>,
    /// The id of the last row of the page before.
    #[param(value_type = Option<u64>)]
    marker: Option<String>,
}

/// Lists the audit trail, the newest first. Admins only.
#[utoipa::path(get, path = "/audit", operation_id = "list_audit", tag = "audit", params(AuditQuery),
    responses((status = 200, body = AuditList), (status = 400, body = ErrorList), (status = 401, body = ErrorList),
        (status = 403, body = ErrorList), (status = 404, body = ErrorList)))]
pub(crate) async fn list(call: Call, query: web::Query<AuditQuery>) -> Result<HttpResponse, ApiError> {
    call.require(Role::Admin)?;
    let limit = limit(query.limit.as_deref())?;
    let filter = AuditFilter {
        host_id: None,
        actor: text("actor", query.actor.as_deref())?,
        action_prefix: text("action", query.action.as_deref())?,
        request_id: text("request_id", query.request_id.as_deref())?,
        global_request_id: text("global_request_id", query.global_request_id.as_deref())?,
        since: time("since", query.since.as_deref())?,
        until: time("until", query.until.as_deref())?,
    };
    refuse_if_empty(&filter)?;
    let filter = AuditFilter {
        host_id: host_id(&call, query.host.as_deref()).await?,
        ..filter
    };
    let after = marker(&call, query.marker.as_deref()).await?;
    let mut reader = call.engine.db().reader();
    let rows = ringfence_db::audit_page(&mut reader, &filter, after.as_ref(), limit).await?;
    let links = next_link(&call.request, limit, &rows, |row| row.id);
    Ok(HttpResponse::Ok().json(AuditList {
        audit: rows.into_iter().map(AuditView::from).collect(),
        links,
    }))
}

fn text(field: &str, given: Option<&str>) -> Result<Option<String>, ApiError> {
    let Some(text) = given else { return Ok(None) };
    let chars = text.chars().count();
    if chars == 0 || chars > MAX_FILTER_CHARS || text.chars().any(char::is_control) {
        return Err(ApiError::bad(
            field,
            format!("has {chars} characters; 1 to {MAX_FILTER_CHARS} characters of plain text are allowed"),
        ));
    }
    Ok(Some(text.to_owned()))
}

fn time(field: &str, given: Option<&str>) -> Result<Option<Timestamp>, ApiError> {
    let read = given.map(moment::read).transpose();
    read.map_err(|why| ApiError::bad(field, why))
}

fn refuse_if_empty(filter: &AuditFilter) -> Result<(), ApiError> {
    match (filter.since, filter.until) {
        (Some(since), Some(until)) if since >= until => Err(ApiError::bad(
            "until",
            format!("is {until}, which is not after since, {since}"),
        )),
        _ => Ok(()),
    }
}

/// The id of a host that may be gone.
async fn host_id(state: &State, host: Option<&str>) -> Result<Option<HostId>, ApiError> {
    let Some(host) = host else { return Ok(None) };
    if let Ok(id) = Uuid::parse_str(host) {
        return Ok(Some(HostId(id)));
    }
    let mut reader = state.engine.db().reader();
    if let Some(row) = ringfence_db::host_row(&mut reader, host).await? {
        return Ok(Some(row.host.id));
    }
    let removed = ringfence_db::removed_host(&mut reader, host).await?;
    removed.map(Some).ok_or_else(|| ApiError::not_found("host", host))
}

async fn marker(state: &State, given: Option<&str>) -> Result<Option<AuditRow>, ApiError> {
    let Some(text) = given else { return Ok(None) };
    let bad = || {
        ApiError::bad(
            "marker",
            format!("is {text:?}; the id of the last row of the page before is allowed"),
        )
    };
    // The databases count with 63 bits.
    let id = text.parse().ok().filter(|id| i64::try_from(*id).is_ok());
    let id: u64 = id.ok_or_else(bad)?;
    let row = ringfence_db::audit_row(&mut state.engine.db().reader(), id).await?;
    row.map(Some).ok_or_else(|| {
        ApiError::bad(
            "marker",
            format!("is {id}, and there is no such line of the audit trail"),
        )
    })
}

//! `GET /problems` and `GET /hosts/{id}/problems`.

use actix_web::{HttpResponse, web};
use chrono::{DateTime, TimeDelta, Utc};
use ringfence_core::{HostId, HostProblem, SegmentId, Timestamp};
use ringfence_db::{
    HOSTS, ProblemTest, events_kept_since, problems_of_all, problems_of_host, troubled_hosts,
};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use crate::ApiError;
use crate::call::{Call, IdOrName};
use crate::error::ErrorList;
use crate::paging::{Link, limit, next_link};
use crate::role::Role;
use crate::state::State;
use crate::view::problems::{AlarmView, CountsView, TroubledHostView};

/// A day.
const DEFAULT_WINDOW_S: u32 = 86_400;
/// An alarm looks back as far.
const WINDOW_S: std::ops::RangeInclusive<u32> = 60..=2_592_000;

/// Over which time.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct WindowQuery {
    /// Seconds until now, 60 to 2592000 (30 days); 86400 if absent.
    #[param(value_type = Option<u32>, minimum = 60, maximum = 2_592_000)]
    window_s: Option<String>,
}

/// Over which time, and of which hosts.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProblemQuery {
    /// Seconds until now, 60 to 2592000 (30 days); 86400 if absent.
    #[param(value_type = Option<u32>, minimum = 60, maximum = 2_592_000)]
    window_s: Option<String>,
    /// Only what came while the host was in the segment with this id or name.
    segment: Option<String>,
    /// Only hosts with this problem, those that had it most often first: failed, fenced, returned or condition; absent: any that is no return.
    #[param(pattern = "^(failed|fenced|returned|condition)$")]
    problem: Option<String>,
    /// The most hosts, 1 to 1000; 100 if absent.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 1000)]
    limit: Option<String>,
    /// The id of the last host of the page before.
    #[param(value_type = Option<Uuid>)]
    marker: Option<String>,
}

/// The problems of one host.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct HostProblems {
    host_id: Uuid,
    /// The host's name.
    host: String,
    /// The name of its segment.
    segment: String,
    window_s: u32,
    /// What came before is not counted: the window begins, the host was added, or older events have been removed.
    counted_since: DateTime<Utc>,
    #[serde(flatten)]
    counts: CountsView,
    /// The alarms that stand.
    alarms: Vec<AlarmView>,
    /// Since when it is in quarantine.
    quarantined_at: Option<DateTime<Utc>>,
}

/// Hosts with problems.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ProblemList {
    /// Those with the most problems first.
    problems: Vec<TroubledHostView>,
    /// Of all hosts, also of those that have been removed.
    total: CountsView,
    window_s: u32,
    /// What came before is not counted: the window begins, or older events have been removed.
    counted_since: DateTime<Utc>,
    links: Vec<Link>,
}

fn window_s(text: Option<&str>) -> Result<u32, ApiError> {
    let Some(text) = text else {
        return Ok(DEFAULT_WINDOW_S);
    };
    let seconds = text.parse().ok().filter(|seconds| WINDOW_S.contains(seconds));
    seconds.ok_or_else(|| {
        let (min, max) = (WINDOW_S.start(), WINDOW_S.end());
        ApiError::bad("window_s", format!("is {text:?}; {min} to {max} is allowed"))
    })
}

/// When the window begins.
fn since(call: &Call, window_s: u32) -> Timestamp {
    call.engine.clock().now() - TimeDelta::seconds(i64::from(window_s))
}

fn problem(text: Option<&str>) -> Result<Option<HostProblem>, ApiError> {
    let Some(text) = text else { return Ok(None) };
    let known = HostProblem::from_word(text).ok_or_else(|| {
        let allowed: Vec<_> = HostProblem::ALL.iter().map(|word| word.as_str()).collect();
        ApiError::bad(
            "problem",
            format!("is {text:?}; one of {} is allowed", allowed.join(", ")),
        )
    });
    known.map(Some)
}

async fn marker(state: &State, text: Option<&str>) -> Result<Option<HostId>, ApiError> {
    let Some(text) = text else { return Ok(None) };
    let id = Uuid::parse_str(text).map_err(|_| {
        ApiError::bad(
            "marker",
            format!("is {text:?}; the id of the last host of the page before is allowed"),
        )
    })?;
    if !HOSTS.has(&mut state.engine.db().reader(), id).await? {
        return Err(ApiError::bad(
            "marker",
            format!("is {id}, and there is no such host"),
        ));
    }
    Ok(Some(HostId(id)))
}

async fn segment_id(state: &State, segment: Option<&str>) -> Result<Option<SegmentId>, ApiError> {
    let Some(segment) = segment else { return Ok(None) };
    let row = ringfence_db::segment(&mut state.engine.db().reader(), segment).await?;
    row.map(|row| Some(row.id))
        .ok_or_else(|| ApiError::not_found("segment", segment))
}

/// How often a host failed, was fenced, was taken back, and had conditions, over a time.
#[utoipa::path(get, path = "/hosts/{id}/problems", operation_id = "list_problems_of_host", tag = "hosts", params(IdOrName, WindowQuery),
    responses((status = 200, body = HostProblems), (status = 400, body = ErrorList), (status = 401, body = ErrorList),
        (status = 404, body = ErrorList)))]
pub(crate) async fn of_host(
    call: Call,
    id: IdOrName,
    query: web::Query<WindowQuery>,
) -> Result<HttpResponse, ApiError> {
    call.require(Role::Reader)?;
    let window_s = window_s(query.window_s.as_deref())?;
    let mut reader = call.engine.db().reader_of_what_grows();
    let row = ringfence_db::host_row(&mut reader, &id).await?;
    let row = row.ok_or_else(|| ApiError::not_found("host", &id))?;
    let host = row.host;
    let since = since(&call, window_s);
    let counts = problems_of_host(&mut reader, host.id, since).await?;
    // Read afterwards: what was removed before the events were counted shows here.
    let kept_since = events_kept_since(&mut reader).await?;
    Ok(HttpResponse::Ok().json(HostProblems {
        host_id: host.id.0,
        host: host.name,
        segment: row.segment,
        window_s,
        counted_since: since.max(host.created_at).max(kept_since.unwrap_or(since)),
        counts: counts.into(),
        alarms: host.alarms.standing.iter().map(AlarmView::from).collect(),
        quarantined_at: host.flapping.quarantined_at,
    }))
}

/// Lists the hosts with the most problems over a time.
///
/// What comes while a list is read page by page can move a host from one page to another.
#[utoipa::path(get, path = "/problems", operation_id = "list_problems", tag = "hosts", params(ProblemQuery),
    responses((status = 200, body = ProblemList), (status = 400, body = ErrorList), (status = 401, body = ErrorList),
        (status = 404, body = ErrorList)))]
pub(crate) async fn list(call: Call, query: web::Query<ProblemQuery>) -> Result<HttpResponse, ApiError> {
    call.require(Role::Reader)?;
    let window_s = window_s(query.window_s.as_deref())?;
    let limit = limit(query.limit.as_deref())?;
    let problem = problem(query.problem.as_deref())?;
    let after = marker(&call, query.marker.as_deref()).await?;
    let since = since(&call, window_s);
    let test = ProblemTest {
        since,
        segment_id: segment_id(&call, query.segment.as_deref()).await?,
    };
    let mut reader = call.engine.db().reader_of_what_grows();
    let rows = troubled_hosts(&mut reader, test, problem, after, limit).await?;
    let total = problems_of_all(&mut reader, test).await?;
    // Read afterwards: what was removed before the events were counted shows here.
    let kept_since = events_kept_since(&mut reader).await?;
    let links = next_link(&call.request, limit, &rows, |row| row.id);
    Ok(HttpResponse::Ok().json(ProblemList {
        problems: rows.into_iter().map(TroubledHostView::from).collect(),
        total: total.into(),
        window_s,
        counted_since: since.max(kept_since.unwrap_or(since)),
        links,
    }))
}

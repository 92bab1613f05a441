//! `/hosts` and `/hosts/{id}`.

use std::collections::BTreeMap;

use actix_web::{HttpRequest, HttpResponse, web};
use ringfence_core::{Backend, DEFAULT_ZONE, FailureState, FencingState, Parameters};
use ringfence_db::{HostFilter, SortKey};
use ringfence_engine::{HostChange, HostDraft};
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::ApiError;
use crate::application::State;
use crate::auth::Caller;
use crate::body::Body;
use crate::conditional::{if_match, tag};
use crate::error::ErrorList;
use crate::paging::{Link, PageQuery, next_link};
use crate::tokens::Role;
use crate::view::host::HostView;
use crate::view::method::ParameterValue;

/// A page of hosts.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct HostList {
    hosts: Vec<HostView>,
    links: Vec<Link>,
}

/// Which hosts.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct HostQuery {
    /// UNFENCED or FENCED
    fencing_state: Option<String>,
    /// UP, UNREACHABLE or UNKNOWN
    failure_state: Option<String>,
    /// nova, kubernetes or none
    backend: Option<String>,
    /// The id or name of a segment.
    segment: Option<String>,
    /// A host's name.
    name: Option<String>,
    /// The most rows, 1 to 1000; 100 if absent.
    limit: Option<String>,
    /// The id of the last row of the page before.
    marker: Option<String>,
    /// name, created_at or updated_at, with :asc or :desc.
    sort: Option<String>,
}

/// A host to add.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct HostBody {
    /// 1 to 255 letters, digits, `.`, `_` and `-`; unique.
    name: String,
    /// The id or name of a segment; the default segment if absent.
    #[serde(default)]
    segment: Option<String>,
    /// nova, kubernetes or none; none if absent
    #[serde(default)]
    #[schema(value_type = String, example = "none")]
    backend: Backend,
    /// The group of hosts that share a plan.
    #[serde(default, rename = "type")]
    host_type: Option<String>,
    /// From where its devices can be reached; `default` if absent.
    #[serde(default)]
    zone: Option<String>,
    /// Values for the parameters of methods, by method name.
    #[serde(default)]
    #[schema(value_type = Object)]
    parameters: BTreeMap<String, BTreeMap<String, ParameterValue>>,
}

/// What to change of a host; what is absent stays.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct HostPatch {
    name: Option<String>,
    segment: Option<String>,
    #[schema(value_type = Option<String>)]
    backend: Option<Backend>,
    /// null takes it away
    #[serde(default, rename = "type", deserialize_with = "present")]
    #[schema(value_type = Option<String>)]
    host_type: Option<Option<String>>,
    zone: Option<String>,
    #[schema(value_type = Option<Object>)]
    parameters: Option<BTreeMap<String, BTreeMap<String, ParameterValue>>>,
}

/// Tells `null` from absent.
fn present<'de, D: Deserializer<'de>>(json: D) -> Result<Option<Option<String>>, D::Error> {
    Option::<String>::deserialize(json).map(Some)
}

fn parameters(given: BTreeMap<String, BTreeMap<String, ParameterValue>>) -> BTreeMap<String, Parameters> {
    let values =
        |values: BTreeMap<String, ParameterValue>| values.into_iter().map(|(k, v)| (k, v.into())).collect();
    given
        .into_iter()
        .map(|(method, given)| (method, values(given)))
        .collect()
}

/// A word of a vocabulary, or an error that names all of them.
pub(crate) fn word<T>(
    field: &str,
    text: Option<&str>,
    read: fn(&str) -> Option<T>,
    allowed: &[&str],
) -> Result<Option<T>, ApiError> {
    let Some(text) = text else { return Ok(None) };
    let value = read(text);
    value
        .map(Some)
        .ok_or_else(|| ApiError::bad(field, format!("is {text:?}; {} is allowed", allowed.join(", "))))
}

fn filter(query: &HostQuery) -> Result<HostFilter, ApiError> {
    let fencing_states = FencingState::ALL.iter().map(|s| s.as_str()).collect::<Vec<_>>();
    let failure_states = FailureState::ALL.iter().map(|s| s.as_str()).collect::<Vec<_>>();
    let backends = Backend::ALL.iter().map(|s| s.as_str()).collect::<Vec<_>>();
    Ok(HostFilter {
        fencing_state: word(
            "fencing_state",
            query.fencing_state.as_deref(),
            FencingState::from_word,
            &fencing_states,
        )?,
        failure_state: word(
            "failure_state",
            query.failure_state.as_deref(),
            FailureState::from_word,
            &failure_states,
        )?,
        backend: word("backend", query.backend.as_deref(), Backend::from_word, &backends)?,
        segment: query.segment.clone(),
        name: query.name.clone(),
    })
}

/// Lists hosts.
#[utoipa::path(get, path = "/hosts", tag = "hosts", params(HostQuery),
    responses((status = 200, body = HostList), (status = 400, body = ErrorList), (status = 401, body = ErrorList)))]
pub(crate) async fn list(
    state: web::Data<State>,
    caller: Caller,
    request: HttpRequest,
    query: web::Query<HostQuery>,
) -> Result<HttpResponse, ApiError> {
    caller.require(Role::Reader)?;
    let paging = PageQuery {
        limit: query.limit.clone(),
        marker: query.marker.clone(),
        sort: query.sort.clone(),
    };
    let page = paging.page(SortKey::Name)?;
    let mut reader = state.engine.db().reader();
    if let Some(marker) = page.marker
        && ringfence_db::host_row(&mut reader, &marker.to_string())
            .await?
            .is_none()
    {
        return Err(ApiError::bad(
            "marker",
            format!("is {marker}, and there is no such host"),
        ));
    }
    let rows = ringfence_db::hosts_page(&mut reader, &filter(&query)?, &page).await?;
    let last = rows.last().map(|row| row.host.id.0);
    let links = next_link("/hosts", request.query_string(), page.limit, rows.len(), last);
    Ok(HttpResponse::Ok().json(HostList {
        hosts: rows.into_iter().map(HostView::from).collect(),
        links,
    }))
}

/// A host as an answer, with its entity tag.
pub(crate) async fn answer(
    state: &State,
    id: &str,
    mut answer: actix_web::HttpResponseBuilder,
) -> Result<HttpResponse, ApiError> {
    let row = ringfence_db::host_row(&mut state.engine.db().reader(), id).await?;
    let row = row.ok_or_else(|| ApiError::not_found("host", id))?;
    Ok(tag(&mut answer, row.host.revision).json(HostView::from(row)))
}

/// Shows a host.
#[utoipa::path(get, path = "/hosts/{id}", tag = "hosts", params(("id" = String, Path, description = "id or name")),
    responses((status = 200, body = HostView), (status = 401, body = ErrorList), (status = 404, body = ErrorList)))]
pub(crate) async fn show(
    state: web::Data<State>,
    caller: Caller,
    id: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    caller.require(Role::Reader)?;
    answer(&state, &id, HttpResponse::Ok()).await
}

/// Adds a host.
///
/// It is UNFENCED, and UNKNOWN until somebody has seen it. Admins only.
#[utoipa::path(post, path = "/hosts", tag = "hosts", request_body = HostBody,
    responses((status = 201, body = HostView), (status = 400, body = ErrorList), (status = 401, body = ErrorList),
        (status = 403, body = ErrorList), (status = 404, body = ErrorList), (status = 409, body = ErrorList),
        (status = 413, body = ErrorList), (status = 415, body = ErrorList)))]
pub(crate) async fn create(
    state: web::Data<State>,
    caller: Caller,
    body: Body<HostBody>,
) -> Result<HttpResponse, ApiError> {
    let by = caller.require(Role::Admin)?;
    let body = body.0;
    let draft = HostDraft {
        name: body.name,
        segment: body.segment,
        backend: body.backend,
        host_type: body.host_type,
        zone: body.zone.unwrap_or_else(|| DEFAULT_ZONE.to_owned()),
        parameters: parameters(body.parameters),
    };
    let host = state.engine.create_host(draft, &by).await?;
    let mut created = HttpResponse::Created();
    created.insert_header(("Location", format!("/hosts/{}", host.id)));
    answer(&state, &host.id.to_string(), created).await
}

/// Changes what is configured of a host.
///
/// Admins only. With `If-Match`, only if nobody has changed it since.
#[utoipa::path(patch, path = "/hosts/{id}", tag = "hosts", request_body = HostPatch,
    params(("id" = String, Path, description = "id or name")),
    responses((status = 200, body = HostView), (status = 400, body = ErrorList), (status = 401, body = ErrorList),
        (status = 403, body = ErrorList), (status = 404, body = ErrorList), (status = 409, body = ErrorList),
        (status = 412, body = ErrorList), (status = 413, body = ErrorList), (status = 415, body = ErrorList)))]
pub(crate) async fn update(
    state: web::Data<State>,
    caller: Caller,
    request: HttpRequest,
    id: web::Path<String>,
    body: Body<HostPatch>,
) -> Result<HttpResponse, ApiError> {
    let by = caller.require(Role::Admin)?;
    let body = body.0;
    let change = HostChange {
        name: body.name,
        segment: body.segment,
        backend: body.backend,
        host_type: body.host_type,
        zone: body.zone,
        parameters: body.parameters.map(parameters),
    };
    let host = state
        .engine
        .update_host(&id, change, if_match(&request)?, &by)
        .await?;
    answer(&state, &host.id.to_string(), HttpResponse::Ok()).await
}

/// Removes a host.
///
/// One that is FENCED, partly fenced or in an operation is kept: 409. Admins only.
#[utoipa::path(delete, path = "/hosts/{id}", tag = "hosts", params(("id" = String, Path, description = "id or name")),
    responses((status = 204), (status = 401, body = ErrorList), (status = 403, body = ErrorList),
        (status = 404, body = ErrorList), (status = 409, body = ErrorList), (status = 412, body = ErrorList)))]
pub(crate) async fn remove(
    state: web::Data<State>,
    caller: Caller,
    request: HttpRequest,
    id: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    let by = caller.require(Role::Admin)?;
    state.engine.delete_host(&id, if_match(&request)?, &by).await?;
    Ok(HttpResponse::NoContent().finish())
}

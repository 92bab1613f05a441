//! `/hosts` and `/hosts/{id}`.

use std::collections::BTreeMap;

use actix_web::HttpResponse;
use ringfence_core::{Backend, DEFAULT_ZONE, Host, Labels};
use ringfence_db::HOSTS;
use ringfence_engine::{HostChange, HostDraft};
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::openapi::path::{Parameter, ParameterIn};
use utoipa::{IntoParams, ToSchema};

use crate::ApiError;
use crate::body::Body;
use crate::call::{Call, IdOrName};
use crate::conditional::tag;
use crate::error::ErrorList;
use crate::listing::{self, ListRequest};
use crate::paging::{Link, next_link};
use crate::role::Role;
use crate::routes::configured::{NotChanged, NotCreated, NotRemoved};
use crate::state::State;
use crate::view::host::HostView;
use crate::view::method::ParameterValue;

/// A page of hosts.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct HostList {
    hosts: Vec<HostView>,
    links: Vec<Link>,
}

/// Which hosts. Each filter can be given several times, and all of them hold.
pub(crate) struct HostQuery;

impl IntoParams for HostQuery {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        listing::parameters(&HOSTS)
    }
}

/// A host to add.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct HostBody {
    /// 1 to 255 letters, digits, `.`, `_` and `-`; unique.
    #[schema(pattern = "^[A-Za-z0-9][A-Za-z0-9._-]{0,254}$")]
    name: String,
    /// The id or name of a segment; the default segment if absent.
    #[serde(default)]
    segment: Option<String>,
    /// nova, kubernetes or none; none if absent
    #[serde(default)]
    #[schema(value_type = String, pattern = "^(nova|kubernetes|none)$", example = "none")]
    backend: Backend,
    /// In which cloud or cluster of the configuration its workloads live; without it they are left to the backend itself.
    #[serde(default)]
    #[schema(pattern = "^[A-Za-z0-9][A-Za-z0-9._-]{0,254}$")]
    cloud: Option<String>,
    /// What its backend calls it, where that is not its name.
    #[serde(default)]
    #[schema(pattern = "^[A-Za-z0-9][A-Za-z0-9._-]{0,254}$")]
    known_as: Option<String>,
    /// The group of hosts that share a plan.
    #[serde(default, rename = "type")]
    #[schema(pattern = "^[A-Za-z0-9][A-Za-z0-9._-]{0,254}$")]
    host_type: Option<String>,
    /// From where its devices can be reached; `default` if absent.
    #[serde(default)]
    #[schema(pattern = "^[A-Za-z0-9][A-Za-z0-9._-]{0,254}$")]
    zone: Option<String>,
    /// What it is told apart by, such as the rack that it stands in; at most 32.
    #[serde(default)]
    labels: Labels,
    /// Values for the parameters of methods, by method name.
    #[serde(default)]
    #[schema(value_type = Object)]
    parameters: BTreeMap<String, BTreeMap<String, ParameterValue>>,
}

impl From<HostBody> for HostDraft {
    fn from(body: HostBody) -> Self {
        Self {
            name: body.name,
            segment: body.segment,
            backend: body.backend,
            cloud: body.cloud,
            known_as: body.known_as,
            host_type: body.host_type,
            zone: body.zone.unwrap_or_else(|| DEFAULT_ZONE.to_owned()),
            labels: body.labels,
            parameters: parameters(body.parameters),
        }
    }
}

/// What to change of a host; what is absent stays.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct HostPatch {
    #[schema(pattern = "^[A-Za-z0-9][A-Za-z0-9._-]{0,254}$")]
    name: Option<String>,
    segment: Option<String>,
    #[schema(value_type = Option<String>, pattern = "^(nova|kubernetes|none)$")]
    backend: Option<Backend>,
    /// null takes it away
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<String>, pattern = "^[A-Za-z0-9][A-Za-z0-9._-]{0,254}$")]
    cloud: Option<Option<String>>,
    /// null takes it away
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<String>, pattern = "^[A-Za-z0-9][A-Za-z0-9._-]{0,254}$")]
    known_as: Option<Option<String>>,
    /// null takes it away
    #[serde(default, rename = "type", deserialize_with = "present")]
    #[schema(value_type = Option<String>, pattern = "^[A-Za-z0-9][A-Za-z0-9._-]{0,254}$")]
    host_type: Option<Option<String>>,
    #[schema(pattern = "^[A-Za-z0-9][A-Za-z0-9._-]{0,254}$")]
    zone: Option<String>,
    /// All of them
    labels: Option<Labels>,
    #[schema(value_type = Option<Object>)]
    parameters: Option<BTreeMap<String, BTreeMap<String, ParameterValue>>>,
}

/// Tells `null` from absent.
fn present<'de, D: Deserializer<'de>>(json: D) -> Result<Option<Option<String>>, D::Error> {
    Option::<String>::deserialize(json).map(Some)
}

fn parameters(
    given: BTreeMap<String, BTreeMap<String, ParameterValue>>,
) -> BTreeMap<String, ringfence_core::Parameters> {
    let values =
        |values: BTreeMap<String, ParameterValue>| values.into_iter().map(|(k, v)| (k, v.into())).collect();
    given
        .into_iter()
        .map(|(method, given)| (method, values(given)))
        .collect()
}

/// Lists hosts.
#[utoipa::path(get, path = "/hosts", operation_id = "list_hosts", tag = "hosts", params(HostQuery),
    responses((status = 200, body = HostList), (status = 400, body = ErrorList), (status = 401, body = ErrorList)))]
pub(crate) async fn list(call: Call) -> Result<HttpResponse, ApiError> {
    call.require(Role::Reader)?;
    let wanted = ListRequest::read(&HOSTS, call.request.query_string())?;
    let mut reader = wanted.reader(&HOSTS, &call).await?;
    let ListRequest { page, filters } = wanted;
    let rows = ringfence_db::hosts_page(&mut reader, &filters, &page).await?;
    let links = next_link(&call.request, page.limit, &rows, |row| row.host.id);
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

/// A host that was just added or changed, with what would keep it from being fenced.
async fn configured(
    state: &State,
    host: &Host,
    mut answer: actix_web::HttpResponseBuilder,
) -> Result<HttpResponse, ApiError> {
    let id = host.id.to_string();
    let row = ringfence_db::host_row(&mut state.engine.db().reader(), &id).await?;
    let row = row.ok_or_else(|| ApiError::not_found("host", &id))?;
    let warnings = state.engine.host_warnings(&row.host).await;
    let view = HostView {
        warnings,
        ..HostView::from(row)
    };
    Ok(tag(&mut answer, host.revision).json(view))
}

/// Shows a host.
#[utoipa::path(get, path = "/hosts/{id}", operation_id = "show_host", tag = "hosts", params(IdOrName),
    responses((status = 200, body = HostView), (status = 401, body = ErrorList), (status = 404, body = ErrorList)))]
pub(crate) async fn show(call: Call, id: IdOrName) -> Result<HttpResponse, ApiError> {
    call.require(Role::Reader)?;
    answer(&call, &id, HttpResponse::Ok()).await
}

/// Adds a host.
///
/// It is UNFENCED, and UNKNOWN until a source has seen it. Admins only.
#[utoipa::path(post, path = "/hosts", operation_id = "create_host", tag = "hosts", request_body = HostBody,
    responses((status = 201, body = HostView), NotCreated, (status = 404, body = ErrorList)))]
pub(crate) async fn create(call: Call, body: Body<HostBody>) -> Result<HttpResponse, ApiError> {
    let by = call.require(Role::Admin)?;
    let draft = HostDraft::from(body.0);
    let host = call.engine.create_host(draft, &by).await?;
    let mut created = HttpResponse::Created();
    created.insert_header(("Location", format!("/hosts/{}", host.id)));
    configured(&call, &host, created).await
}

/// Changes what is configured of a host.
///
/// Name, backend, cloud, known_as, zone and parameters say which machine it is: they stay while it is FENCED, partly fenced or in an
/// operation. Admins only. With `If-Match`, only if it was not changed since.
#[utoipa::path(patch, path = "/hosts/{id}", operation_id = "update_host", tag = "hosts", request_body = HostPatch, params(IdOrName),
    responses((status = 200, body = HostView), NotChanged))]
pub(crate) async fn update(
    call: Call,
    id: IdOrName,
    body: Body<HostPatch>,
) -> Result<HttpResponse, ApiError> {
    let by = call.require(Role::Admin)?;
    let body = body.0;
    let change = HostChange {
        name: body.name,
        segment: body.segment,
        backend: body.backend,
        cloud: body.cloud,
        known_as: body.known_as,
        host_type: body.host_type,
        zone: body.zone,
        labels: body.labels,
        parameters: body.parameters.map(parameters),
    };
    let host = call
        .engine
        .update_host(&id, change, call.if_match()?, &by)
        .await?;
    configured(&call, &host, HttpResponse::Ok()).await
}

/// Removes a host.
///
/// One that is FENCED, partly fenced or in an operation is kept: 409. Admins only.
#[utoipa::path(delete, path = "/hosts/{id}", operation_id = "remove_host", tag = "hosts", params(IdOrName),
    responses((status = 204), NotRemoved))]
pub(crate) async fn remove(call: Call, id: IdOrName) -> Result<HttpResponse, ApiError> {
    let by = call.require(Role::Admin)?;
    call.engine.delete_host(&id, call.if_match()?, &by).await?;
    Ok(HttpResponse::NoContent().finish())
}

//! `/hosts` and `/hosts/{id}`.

use std::collections::BTreeMap;

use actix_web::{HttpRequest, HttpResponse, web};
use ringfence_core::{Backend, DEFAULT_ZONE, FailureState, FencingState};
use ringfence_db::{HostFilter, SortKey};
use ringfence_engine::{HostChange, HostDraft};
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::ApiError;
use crate::auth::Caller;
use crate::body::Body;
use crate::conditional::{if_match, tag};
use crate::error::ErrorList;
use crate::filter::{Operators, Parameters, name, number, time, word};
use crate::paging::{Link, next_link, page};
use crate::state::State;
use crate::tokens::Role;
use crate::view::host::HostView;
use crate::view::method::ParameterValue;

/// A page of hosts.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct HostList {
    hosts: Vec<HostView>,
    links: Vec<Link>,
}

/// Which hosts. Each filter can be given several times, and all of them hold.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(
    dead_code,
    reason = "describes the parameters, which are read by `filter` and `paging`"
)]
pub(crate) struct HostQuery {
    /// UNFENCED or FENCED; after neq:, or several after in: or nin:
    #[param(pattern = "^((neq:)?(UNFENCED|FENCED)|n?in:(UNFENCED|FENCED)(,(UNFENCED|FENCED))*)$")]
    fencing_state: Option<String>,
    /// UP, UNREACHABLE or UNKNOWN; after neq:, or several after in: or nin:
    #[param(
        pattern = "^((neq:)?(UP|UNREACHABLE|UNKNOWN)|n?in:(UP|UNREACHABLE|UNKNOWN)(,(UP|UNREACHABLE|UNKNOWN))*)$"
    )]
    failure_state: Option<String>,
    /// nova, kubernetes or none; after neq:, or several after in: or nin:
    #[param(
        pattern = "^((neq:)?(nova|kubernetes|none)|n?in:(nova|kubernetes|none)(,(nova|kubernetes|none))*)$"
    )]
    backend: Option<String>,
    /// The id or name of a segment; after neq:, or several after in: or nin:
    #[param(
        pattern = "^((neq:)?[A-Za-z0-9][A-Za-z0-9._-]{0,254}|n?in:[A-Za-z0-9][A-Za-z0-9._-]{0,254}(,[A-Za-z0-9][A-Za-z0-9._-]{0,254}){0,99})$"
    )]
    segment: Option<String>,
    /// A host's name; after neq:, or several after in: or nin:
    #[param(
        pattern = "^((neq:)?[A-Za-z0-9][A-Za-z0-9._-]{0,254}|n?in:[A-Za-z0-9][A-Za-z0-9._-]{0,254}(,[A-Za-z0-9][A-Za-z0-9._-]{0,254}){0,99})$"
    )]
    name: Option<String>,
    /// A type of hosts; after neq:, or several after in: or nin:
    #[param(
        pattern = "^((neq:)?[A-Za-z0-9][A-Za-z0-9._-]{0,254}|n?in:[A-Za-z0-9][A-Za-z0-9._-]{0,254}(,[A-Za-z0-9][A-Za-z0-9._-]{0,254}){0,99})$"
    )]
    r#type: Option<String>,
    /// A zone; after neq:, or several after in: or nin:
    #[param(
        pattern = "^((neq:)?[A-Za-z0-9][A-Za-z0-9._-]{0,254}|n?in:[A-Za-z0-9][A-Za-z0-9._-]{0,254}(,[A-Za-z0-9][A-Za-z0-9._-]{0,254}){0,99})$"
    )]
    zone: Option<String>,
    /// The generation; after neq:, gt:, gte:, lt: or lte:, or several after in: or nin:
    #[param(pattern = "^(((neq|gte?|lte?):)?[0-9]{1,9}|n?in:[0-9]{1,9}(,[0-9]{1,9}){0,99})$")]
    generation: Option<String>,
    /// When it was fenced, RFC 3339; after neq:, gt:, gte:, lt: or lte:
    #[param(
        pattern = "^((neq|gte?|lte?):)?[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$"
    )]
    fenced_at: Option<String>,
    /// When it was added, RFC 3339; after neq:, gt:, gte:, lt: or lte:
    #[param(
        pattern = "^((neq|gte?|lte?):)?[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$"
    )]
    created_at: Option<String>,
    /// When it was last changed, RFC 3339; after neq:, gt:, gte:, lt: or lte:
    #[param(
        pattern = "^((neq|gte?|lte?):)?[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$"
    )]
    updated_at: Option<String>,
    /// The most rows; 100 if absent.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
    /// The id of the last row of the page before.
    marker: Option<uuid::Uuid>,
    /// name, created_at and updated_at with commas between them, each with :asc or :desc or nothing; name if absent.
    #[param(pattern = "^(name|created_at|updated_at)(:(asc|desc))?$")]
    sort: Option<String>,
}

/// The parameters of the listing.
const PARAMETERS: [&str; 14] = [
    "fencing_state",
    "failure_state",
    "backend",
    "segment",
    "name",
    "type",
    "zone",
    "generation",
    "fenced_at",
    "created_at",
    "updated_at",
    "limit",
    "marker",
    "sort",
];
/// What it can be sorted by.
const SORT_KEYS: [(&str, SortKey); 3] = [
    ("name", SortKey::Name),
    ("created_at", SortKey::CreatedAt),
    ("updated_at", SortKey::UpdatedAt),
];

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
    /// Values for the parameters of methods, by method name.
    #[serde(default)]
    #[schema(value_type = Object)]
    parameters: BTreeMap<String, BTreeMap<String, ParameterValue>>,
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

fn filter(given: &Parameters) -> Result<HostFilter, ApiError> {
    let names = |field: &str| given.tests(field, Operators::Same, name);
    let times = |field: &str| given.tests(field, Operators::Order, time);
    Ok(HostFilter {
        fencing_state: given.tests(
            "fencing_state",
            Operators::Same,
            word(FencingState::from_word, FencingState::ALL, FencingState::as_str),
        )?,
        failure_state: given.tests(
            "failure_state",
            Operators::Same,
            word(FailureState::from_word, FailureState::ALL, FailureState::as_str),
        )?,
        backend: given.tests(
            "backend",
            Operators::Same,
            word(Backend::from_word, Backend::ALL, Backend::as_str),
        )?,
        segment: names("segment")?,
        name: names("name")?,
        host_type: names("type")?,
        zone: names("zone")?,
        generation: given.tests("generation", Operators::Order, number)?,
        fenced_at: times("fenced_at")?,
        created_at: times("created_at")?,
        updated_at: times("updated_at")?,
    })
}

/// Lists hosts.
#[utoipa::path(get, path = "/hosts", operation_id = "list_hosts", tag = "hosts", params(HostQuery),
    responses((status = 200, body = HostList), (status = 400, body = ErrorList), (status = 401, body = ErrorList)))]
pub(crate) async fn list(
    state: web::Data<State>,
    caller: Caller,
    request: HttpRequest,
) -> Result<HttpResponse, ApiError> {
    caller.require(Role::Reader)?;
    let given = Parameters::read(request.query_string(), &PARAMETERS)?;
    let page = page(&given, &SORT_KEYS, SortKey::Name.ascending())?;
    let filter = filter(&given)?;
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
    if filter != HostFilter::default() {
        // Which index is best depends on what is asked for: a plan that was kept could read every host to find none.
        reader = state.engine.db().reader_of_what_grows();
    }
    let rows = ringfence_db::hosts_page(&mut reader, &filter, &page).await?;
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
#[utoipa::path(get, path = "/hosts/{id}", operation_id = "show_host", tag = "hosts", params(("id" = String, Path, description = "id or name")),
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
#[utoipa::path(post, path = "/hosts", operation_id = "create_host", tag = "hosts", request_body = HostBody,
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
        cloud: body.cloud,
        known_as: body.known_as,
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
/// Name, backend, cloud, known_as, zone and parameters say which machine it is: they stay while it is FENCED, partly fenced or in an
/// operation. Admins only. With `If-Match`, only if nobody has changed it since.
#[utoipa::path(patch, path = "/hosts/{id}", operation_id = "update_host", tag = "hosts", request_body = HostPatch,
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
        cloud: body.cloud,
        known_as: body.known_as,
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
#[utoipa::path(delete, path = "/hosts/{id}", operation_id = "remove_host", tag = "hosts", params(("id" = String, Path, description = "id or name")),
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

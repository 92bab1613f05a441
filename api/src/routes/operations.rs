//! `/operations`.

use actix_web::{HttpRequest, HttpResponse, HttpResponseBuilder, web};
use ringfence_core::{Operation, OperationId, OperationKind, OperationStatus};
use ringfence_db::{HostRow, OperationFilter, SortKey, Test};
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use crate::ApiError;
use crate::auth::Caller;
use crate::body::Body;
use crate::conditional::{if_match, tag};
use crate::error::ErrorList;
use crate::filter::{Operators, Parameters, name, number, time, word};
use crate::paging::{Link, next_link, page};
use crate::request_log::{note_operation, note_read_operation};
use crate::routes::reason::ReasonBody;
use crate::state::State;
use crate::tokens::Role;
use crate::view::operation::OperationView;

/// A page of operations.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct OperationList {
    operations: Vec<OperationView>,
    links: Vec<Link>,
}

/// Which operations. Each filter can be given several times, and all of them hold.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(
    dead_code,
    reason = "describes the parameters, which are read by `filter` and `paging`"
)]
pub(crate) struct OperationQuery {
    /// The id or name of a host; after neq:, or several after in: or nin:
    #[param(
        pattern = "^((neq:)?[A-Za-z0-9][A-Za-z0-9._-]{0,254}|n?in:[A-Za-z0-9][A-Za-z0-9._-]{0,254}(,[A-Za-z0-9][A-Za-z0-9._-]{0,254}){0,99})$"
    )]
    host: Option<String>,
    /// fence, rejoin or evacuation; after neq:, or several after in: or nin:
    #[param(
        pattern = "^((neq:)?(fence|rejoin|evacuation)|n?in:(fence|rejoin|evacuation)(,(fence|rejoin|evacuation))*)$"
    )]
    kind: Option<String>,
    /// running, needs_operator, succeeded or cancelled; after neq:, or several after in: or nin:
    #[param(
        pattern = "^((neq:)?(running|needs_operator|succeeded|cancelled)|n?in:(running|needs_operator|succeeded|cancelled)(,(running|needs_operator|succeeded|cancelled))*)$"
    )]
    status: Option<String>,
    /// The generation; after neq:, gt:, gte:, lt: or lte:, or several after in: or nin:
    #[param(pattern = "^(((neq|gte?|lte?):)?[0-9]{1,9}|n?in:[0-9]{1,9}(,[0-9]{1,9}){0,99})$")]
    generation: Option<String>,
    /// When it began, RFC 3339; after neq:, gt:, gte:, lt: or lte:
    #[param(
        pattern = "^((neq|gte?|lte?):)?[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$"
    )]
    created_at: Option<String>,
    /// When it was last changed, RFC 3339; after neq:, gt:, gte:, lt: or lte:
    #[param(
        pattern = "^((neq|gte?|lte?):)?[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$"
    )]
    updated_at: Option<String>,
    /// When it was over, RFC 3339; after neq:, gt:, gte:, lt: or lte:
    #[param(
        pattern = "^((neq|gte?|lte?):)?[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$"
    )]
    finished_at: Option<String>,
    /// The most rows; 100 if absent.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
    /// The id of the last row of the page before.
    marker: Option<Uuid>,
    /// created_at and updated_at with commas between them, each with :asc or :desc or nothing; created_at:desc if absent.
    #[param(
        pattern = "^(created_at(:(asc|desc))?(,updated_at(:(asc|desc))?)?|updated_at(:(asc|desc))?(,created_at(:(asc|desc))?)?)$"
    )]
    sort: Option<String>,
}

/// The parameters of the listing.
const PARAMETERS: [&str; 10] = [
    "host",
    "kind",
    "status",
    "generation",
    "created_at",
    "updated_at",
    "finished_at",
    "limit",
    "marker",
    "sort",
];
/// What it can be sorted by.
const SORT_KEYS: [(&str, SortKey); 2] = [
    ("created_at", SortKey::CreatedAt),
    ("updated_at", SortKey::UpdatedAt),
];

async fn filter(state: &State, given: &Parameters) -> Result<OperationFilter, ApiError> {
    let times = |field: &str| given.tests(field, Operators::Order, time);
    let mut filter = OperationFilter {
        host_id: Vec::new(),
        kind: given.tests(
            "kind",
            Operators::Same,
            word(
                OperationKind::from_word,
                OperationKind::ALL,
                OperationKind::as_str,
            ),
        )?,
        status: given.tests(
            "status",
            Operators::Same,
            word(
                OperationStatus::from_word,
                OperationStatus::ALL,
                OperationStatus::as_str,
            ),
        )?,
        generation: given.tests("generation", Operators::Order, number)?,
        created_at: times("created_at")?,
        updated_at: times("updated_at")?,
        finished_at: times("finished_at")?,
    };
    for test in given.tests("host", Operators::Same, name)? {
        filter.host_id.push(of_hosts(state, test).await?);
    }
    Ok(filter)
}

/// A test on hosts that are named by id or name as one on their ids.
async fn of_hosts(state: &State, test: Test<String>) -> Result<Test<Uuid>, ApiError> {
    let (is_one, hosts) = match test {
        Test::NoneOf(hosts) => (false, hosts),
        Test::OneOf(hosts) => (true, hosts),
        Test::Below(host) | Test::AtMost(host) | Test::Above(host) | Test::AtLeast(host) => {
            (true, vec![host])
        }
    };
    let mut ids = Vec::with_capacity(hosts.len());
    for host in hosts {
        let row = ringfence_db::host_row(&mut state.engine.db().reader(), &host).await?;
        ids.push(row.ok_or_else(|| ApiError::not_found("host", &host))?.host.id.0);
    }
    Ok(if is_one {
        Test::OneOf(ids)
    } else {
        Test::NoneOf(ids)
    })
}

fn operation_id(text: &str) -> Result<Uuid, ApiError> {
    Uuid::parse_str(text)
        .map_err(|_| ApiError::bad("id", format!("is {text:?}; the UUID of an operation is allowed")))
}

/// The operation that the path names, to be changed.
fn changed_operation(text: &str) -> Result<Uuid, ApiError> {
    let id = operation_id(text)?;
    note_operation(OperationId(id));
    Ok(id)
}

/// The operation that the path names, and what its host is called by its backend.
pub(crate) async fn known_operation(
    state: &State,
    text: &str,
) -> Result<(Operation, Option<String>), ApiError> {
    let id = operation_id(text)?;
    note_read_operation(OperationId(id));
    let (operation, host) = read(state, id).await?;
    Ok((operation, host.map(|row| row.host.known_as().to_owned())))
}

/// An operation and its host, unless that has been removed.
async fn read(state: &State, id: Uuid) -> Result<(Operation, Option<HostRow>), ApiError> {
    let mut reader = state.engine.db().reader();
    let operation = ringfence_db::operation(&mut reader, id).await?;
    let operation = operation.ok_or_else(|| ApiError::not_found("operation", &id.to_string()))?;
    let host = ringfence_db::host_row(&mut reader, &operation.host_id.to_string()).await?;
    Ok((operation, host))
}

/// An operation as an answer, with its entity tag.
pub(crate) async fn answer(
    state: &State,
    id: Uuid,
    answer: HttpResponseBuilder,
) -> Result<HttpResponse, ApiError> {
    let (operation, host) = read(state, id).await?;
    Ok(shown(answer, &operation, host.map(|row| row.host.name)))
}

/// The same for one that is at hand, with the name of its host.
pub(crate) fn shown(
    mut answer: HttpResponseBuilder,
    operation: &Operation,
    host: Option<String>,
) -> HttpResponse {
    tag(&mut answer, operation.revision).json(OperationView::new(operation, host))
}

/// Lists operations, the newest first.
#[utoipa::path(get, path = "/operations", operation_id = "list_operations", tag = "operations", params(OperationQuery),
    responses((status = 200, body = OperationList), (status = 400, body = ErrorList), (status = 401, body = ErrorList),
        (status = 404, body = ErrorList)))]
pub(crate) async fn list(
    state: web::Data<State>,
    caller: Caller,
    request: HttpRequest,
) -> Result<HttpResponse, ApiError> {
    caller.require(Role::Reader)?;
    let mut reader = state.engine.db().reader();
    let given = Parameters::read(request.query_string(), &PARAMETERS)?;
    let page = page(&given, &SORT_KEYS, SortKey::CreatedAt.descending())?;
    let filter = filter(&state, &given).await?;
    if let Some(marker) = page.marker
        && ringfence_db::operation(&mut reader, marker).await?.is_none()
    {
        return Err(ApiError::bad(
            "marker",
            format!("is {marker}, and there is no such operation"),
        ));
    }
    let rows = ringfence_db::operations_page(&mut reader, &filter, &page).await?;
    let links = next_link(
        "/operations",
        request.query_string(),
        page.limit,
        rows.len(),
        rows.last().map(|o| o.id.0),
    );
    let mut operations = Vec::with_capacity(rows.len());
    for operation in rows {
        let host = ringfence_db::host_row(&mut reader, &operation.host_id.to_string()).await?;
        operations.push(OperationView::new(&operation, host.map(|row| row.host.name)));
    }
    Ok(HttpResponse::Ok().json(OperationList { operations, links }))
}

/// Shows an operation: stages, tasks, attempts, observations, proofs.
#[utoipa::path(get, path = "/operations/{id}", operation_id = "show_operation", tag = "operations", params(("id" = Uuid, Path)),
    responses((status = 200, body = OperationView), (status = 400, body = ErrorList), (status = 401, body = ErrorList),
        (status = 404, body = ErrorList)))]
pub(crate) async fn show(
    state: web::Data<State>,
    caller: Caller,
    id: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    caller.require(Role::Reader)?;
    let id = operation_id(&id)?;
    note_read_operation(OperationId(id));
    answer(&state, id, HttpResponse::Ok()).await
}

/// Stops an operation.
///
/// What has been proven stays. Attempts that no worker has claimed never act; the others end by their deadline.
#[utoipa::path(post, path = "/operations/{id}/cancel", operation_id = "cancel_operation", tag = "operations", request_body = ReasonBody,
    params(("id" = Uuid, Path)),
    responses((status = 200, body = OperationView), (status = 400, body = ErrorList), (status = 401, body = ErrorList),
        (status = 403, body = ErrorList), (status = 404, body = ErrorList), (status = 409, body = ErrorList),
        (status = 412, body = ErrorList), (status = 413, body = ErrorList), (status = 415, body = ErrorList)))]
pub(crate) async fn cancel(
    state: web::Data<State>,
    caller: Caller,
    request: HttpRequest,
    id: web::Path<String>,
    body: Body<ReasonBody>,
) -> Result<HttpResponse, ApiError> {
    let by = caller.require(Role::Service)?.only_at(if_match(&request)?);
    let operation = state
        .engine
        .cancel(changed_operation(&id)?, &body.0.reason, &by)
        .await?;
    answer(&state, operation.id.0, HttpResponse::Ok()).await
}

/// Tries again what failed in an operation that waits for an operator.
#[utoipa::path(post, path = "/operations/{id}/retry", operation_id = "retry_operation", tag = "operations", request_body = ReasonBody,
    params(("id" = Uuid, Path)),
    responses((status = 200, body = OperationView), (status = 400, body = ErrorList), (status = 401, body = ErrorList),
        (status = 403, body = ErrorList), (status = 404, body = ErrorList), (status = 409, body = ErrorList),
        (status = 412, body = ErrorList), (status = 413, body = ErrorList), (status = 415, body = ErrorList)))]
pub(crate) async fn retry(
    state: web::Data<State>,
    caller: Caller,
    request: HttpRequest,
    id: web::Path<String>,
    body: Body<ReasonBody>,
) -> Result<HttpResponse, ApiError> {
    let by = caller.require(Role::Service)?.only_at(if_match(&request)?);
    let operation = state
        .engine
        .retry(changed_operation(&id)?, &body.0.reason, &by)
        .await?;
    answer(&state, operation.id.0, HttpResponse::Ok()).await
}

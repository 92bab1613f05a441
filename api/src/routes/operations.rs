//! `/operations`.

use actix_web::{HttpResponse, HttpResponseBuilder, web};
use ringfence_core::{Operation, OperationId};
use ringfence_db::{Asked, Filters, HostRow, OPERATIONS, Test};
use serde::Serialize;
use utoipa::openapi::path::{Parameter, ParameterIn};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use crate::ApiError;
use crate::body::Body;
use crate::call::Call;
use crate::conditional::tag;
use crate::error::ErrorList;
use crate::listing::{self, ListRequest};
use crate::paging::{Link, next_link};
use crate::request_log::{note_operation, note_read_operation};
use crate::role::Role;
use crate::routes::configured::NotChanged;
use crate::routes::reason::ReasonBody;
use crate::state::State;
use crate::view::operation::OperationView;

/// A page of operations.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct OperationList {
    operations: Vec<OperationView>,
    links: Vec<Link>,
}

/// Which operations. Each filter can be given several times, and all of them hold.
pub(crate) struct OperationQuery;

impl IntoParams for OperationQuery {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        listing::parameters(&OPERATIONS)
    }
}

/// Whether every host that is named is there.
async fn require_hosts(state: &State, filters: &Filters) -> Result<(), ApiError> {
    for test in filters.of("host") {
        let (Test::OneOf(hosts) | Test::NoneOf(hosts)) = test else {
            continue;
        };
        for host in hosts {
            if let Asked::Text(host) = host
                && ringfence_db::host_row(&mut state.engine.db().reader(), host)
                    .await?
                    .is_none()
            {
                return Err(ApiError::not_found("host", host));
            }
        }
    }
    Ok(())
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

/// Shows an operation that was read already, with the name of its host.
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
pub(crate) async fn list(call: Call) -> Result<HttpResponse, ApiError> {
    call.require(Role::Reader)?;
    let wanted = ListRequest::read(&OPERATIONS, call.request.query_string())?;
    let mut reader = wanted.reader(&OPERATIONS, &call).await?;
    let ListRequest { page, filters } = wanted;
    require_hosts(&call, &filters).await?;
    let rows = ringfence_db::operations_page(&mut reader, &filters, &page).await?;
    let links = next_link(&call.request, page.limit, &rows, |operation| operation.id);
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
pub(crate) async fn show(call: Call, id: web::Path<String>) -> Result<HttpResponse, ApiError> {
    call.require(Role::Reader)?;
    let id = operation_id(&id)?;
    note_read_operation(OperationId(id));
    answer(&call, id, HttpResponse::Ok()).await
}

/// Stops an operation.
///
/// What has been proven stays. Attempts that no worker has claimed never act; the others end by their deadline.
#[utoipa::path(post, path = "/operations/{id}/cancel", operation_id = "cancel_operation", tag = "operations", request_body = ReasonBody,
    params(("id" = Uuid, Path)),
    responses((status = 200, body = OperationView), NotChanged))]
pub(crate) async fn cancel(
    call: Call,
    id: web::Path<String>,
    body: Body<ReasonBody>,
) -> Result<HttpResponse, ApiError> {
    let by = call.require_to_change(Role::Service)?;
    let operation = call
        .engine
        .cancel(changed_operation(&id)?, &body.0.reason, &by)
        .await?;
    answer(&call, operation.id.0, HttpResponse::Ok()).await
}

/// Tries again what failed in an operation that waits for an operator.
#[utoipa::path(post, path = "/operations/{id}/retry", operation_id = "retry_operation", tag = "operations", request_body = ReasonBody,
    params(("id" = Uuid, Path)),
    responses((status = 200, body = OperationView), NotChanged))]
pub(crate) async fn retry(
    call: Call,
    id: web::Path<String>,
    body: Body<ReasonBody>,
) -> Result<HttpResponse, ApiError> {
    let by = call.require_to_change(Role::Service)?;
    let operation = call
        .engine
        .retry(changed_operation(&id)?, &body.0.reason, &by)
        .await?;
    answer(&call, operation.id.0, HttpResponse::Ok()).await
}

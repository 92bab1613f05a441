//! `/operations`.

use actix_web::{HttpRequest, HttpResponse, HttpResponseBuilder, web};
use ringfence_core::{OperationId, OperationKind, OperationStatus};
use ringfence_db::{OperationFilter, SortKey};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use crate::ApiError;
use crate::application::State;
use crate::auth::Caller;
use crate::body::Body;
use crate::error::ErrorList;
use crate::paging::{Link, PageQuery, next_link};
use crate::request_log::note_operation;
use crate::routes::fence::ReasonBody;
use crate::routes::hosts::word;
use crate::tokens::Role;
use crate::view::operation::OperationView;

/// A page of operations.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct OperationList {
    operations: Vec<OperationView>,
    links: Vec<Link>,
}

/// Which operations.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct OperationQuery {
    /// The id or name of a host.
    host: Option<String>,
    /// fence or rejoin
    kind: Option<String>,
    /// running, needs_operator, succeeded or cancelled
    status: Option<String>,
    /// The most rows, 1 to 1000; 100 if absent.
    limit: Option<String>,
    /// The id of the last row of the page before.
    marker: Option<String>,
    /// created_at or updated_at, with :asc or :desc.
    sort: Option<String>,
}

/// The operation that the path names.
fn operation_id(text: &str) -> Result<Uuid, ApiError> {
    let id = Uuid::parse_str(text)
        .map_err(|_| ApiError::bad("id", format!("is {text:?}; the UUID of an operation is allowed")))?;
    note_operation(OperationId(id));
    Ok(id)
}

/// An operation as an answer.
pub(crate) async fn answer(
    state: &State,
    id: Uuid,
    mut answer: HttpResponseBuilder,
) -> Result<HttpResponse, ApiError> {
    let mut reader = state.engine.db().reader();
    let operation = ringfence_db::operation(&mut reader, id).await?;
    let operation = operation.ok_or_else(|| ApiError::not_found("operation", &id.to_string()))?;
    let host = ringfence_db::host_row(&mut reader, &operation.host_id.to_string()).await?;
    Ok(answer.json(OperationView::new(&operation, host.map(|row| row.host.name))))
}

/// Lists operations, the oldest first.
#[utoipa::path(get, path = "/operations", tag = "operations", params(OperationQuery),
    responses((status = 200, body = OperationList), (status = 400, body = ErrorList), (status = 401, body = ErrorList),
        (status = 404, body = ErrorList)))]
pub(crate) async fn list(
    state: web::Data<State>,
    caller: Caller,
    request: HttpRequest,
    query: web::Query<OperationQuery>,
) -> Result<HttpResponse, ApiError> {
    caller.require(Role::Reader)?;
    let mut reader = state.engine.db().reader();
    let kinds = OperationKind::ALL.iter().map(|k| k.as_str()).collect::<Vec<_>>();
    let statuses = OperationStatus::ALL
        .iter()
        .map(|s| s.as_str())
        .collect::<Vec<_>>();
    let mut filter = OperationFilter {
        host_id: None,
        kind: word("kind", query.kind.as_deref(), OperationKind::from_word, &kinds)?,
        status: word(
            "status",
            query.status.as_deref(),
            OperationStatus::from_word,
            &statuses,
        )?,
    };
    if let Some(host) = &query.host {
        let row = ringfence_db::host_row(&mut reader, host).await?;
        filter.host_id = Some(row.ok_or_else(|| ApiError::not_found("host", host))?.host.id);
    }
    let paging = PageQuery {
        limit: query.limit.clone(),
        marker: query.marker.clone(),
        sort: query.sort.clone(),
    };
    let page = paging.page(SortKey::CreatedAt)?;
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
#[utoipa::path(get, path = "/operations/{id}", tag = "operations", params(("id" = Uuid, Path)),
    responses((status = 200, body = OperationView), (status = 400, body = ErrorList), (status = 401, body = ErrorList),
        (status = 404, body = ErrorList)))]
pub(crate) async fn show(
    state: web::Data<State>,
    caller: Caller,
    id: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    caller.require(Role::Reader)?;
    answer(&state, operation_id(&id)?, HttpResponse::Ok()).await
}

/// Stops an operation.
///
/// What has been proven stays. Attempts that no worker has claimed never act; the others end by their deadline.
#[utoipa::path(post, path = "/operations/{id}/cancel", tag = "operations", request_body = ReasonBody,
    params(("id" = Uuid, Path)),
    responses((status = 200, body = OperationView), (status = 400, body = ErrorList), (status = 401, body = ErrorList),
        (status = 403, body = ErrorList), (status = 404, body = ErrorList), (status = 409, body = ErrorList),
        (status = 413, body = ErrorList), (status = 415, body = ErrorList)))]
pub(crate) async fn cancel(
    state: web::Data<State>,
    caller: Caller,
    id: web::Path<String>,
    body: Body<ReasonBody>,
) -> Result<HttpResponse, ApiError> {
    let by = caller.require(Role::Service)?;
    let operation = state
        .engine
        .cancel(operation_id(&id)?, &body.0.reason, &by)
        .await?;
    answer(&state, operation.id.0, HttpResponse::Ok()).await
}

/// Tries again what failed in an operation that waits for an operator.
#[utoipa::path(post, path = "/operations/{id}/retry", tag = "operations", request_body = ReasonBody,
    params(("id" = Uuid, Path)),
    responses((status = 200, body = OperationView), (status = 400, body = ErrorList), (status = 401, body = ErrorList),
        (status = 403, body = ErrorList), (status = 404, body = ErrorList), (status = 409, body = ErrorList),
        (status = 413, body = ErrorList), (status = 415, body = ErrorList)))]
pub(crate) async fn retry(
    state: web::Data<State>,
    caller: Caller,
    id: web::Path<String>,
    body: Body<ReasonBody>,
) -> Result<HttpResponse, ApiError> {
    let by = caller.require(Role::Service)?;
    let operation = state
        .engine
        .retry(operation_id(&id)?, &body.0.reason, &by)
        .await?;
    answer(&state, operation.id.0, HttpResponse::Ok()).await
}

//! `/subscriptions/{id}/deliveries`, and trying a subscription.

use actix_web::{HttpResponse, web};
use ringfence_db::{DeliveryFilter, DeliveryRow, DeliveryStatus};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use crate::ApiError;
use crate::call::{Call, IdOrName};
use crate::error::ErrorList;
use crate::paging::{Link, limit, next_link};
use crate::role::Role;
use crate::routes::subscriptions::find;
use crate::state::State;
use crate::view::subscription::DeliveryView;

/// A page of deliveries.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DeliveryList {
    deliveries: Vec<DeliveryView>,
    links: Vec<Link>,
}

/// Which deliveries.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct DeliveryQuery {
    /// Only those that stand so: pending, delivered or failed.
    #[param(pattern = "^(pending|delivered|failed)$")]
    status: Option<String>,
    /// The most rows, 1 to 1000; 100 if absent.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 1000)]
    limit: Option<String>,
    /// The id of the last row of the page before.
    #[param(value_type = Option<Uuid>)]
    marker: Option<String>,
}

/// Lists deliveries, the newest first. They are kept for 7 days, or as `retention.deliveries_days` says.
#[utoipa::path(get, path = "/subscriptions/{id}/deliveries", operation_id = "list_deliveries", tag = "subscriptions",
    params(IdOrName, DeliveryQuery),
    responses((status = 200, body = DeliveryList), (status = 400, body = ErrorList), (status = 401, body = ErrorList),
        (status = 404, body = ErrorList)))]
pub(crate) async fn list(
    call: Call,
    id: IdOrName,
    query: web::Query<DeliveryQuery>,
) -> Result<HttpResponse, ApiError> {
    call.require(Role::Reader)?;
    let limit = limit(query.limit.as_deref())?;
    let filter = DeliveryFilter {
        status: query.status.as_deref().map(status).transpose()?,
    };
    let subscription = find(&call, &id).await?;
    let marker = match query.marker.as_deref() {
        None => None,
        Some(text) => Some(marker(&call, subscription.id, text).await?),
    };
    let mut reader = call.engine.db().reader();
    let rows = ringfence_db::deliveries_page(&mut reader, subscription.id, &filter, marker, limit).await?;
    let links = next_link(&call.request, limit, &rows, |row| row.id);
    Ok(HttpResponse::Ok().json(DeliveryList {
        deliveries: rows.into_iter().map(DeliveryView::from).collect(),
        links,
    }))
}

/// Shows a delivery.
#[utoipa::path(get, path = "/subscriptions/{id}/deliveries/{delivery}", operation_id = "show_delivery",
    tag = "subscriptions",
    params(("id" = String, Path, description = "id or name"), ("delivery" = String, Path, description = "id")),
    responses((status = 200, body = DeliveryView), (status = 401, body = ErrorList), (status = 404, body = ErrorList)))]
pub(crate) async fn show(call: Call, path: web::Path<(String, String)>) -> Result<HttpResponse, ApiError> {
    call.require(Role::Reader)?;
    let (id, delivery) = path.into_inner();
    let subscription = find(&call, &id).await?;
    let missing = || ApiError::not_found("delivery", &delivery);
    let id = Uuid::parse_str(&delivery).map_err(|_| missing())?;
    let found = ringfence_db::delivery(&mut call.engine.db().reader(), subscription.id, id).await?;
    Ok(HttpResponse::Ok().json(DeliveryView::from(found.ok_or_else(missing)?)))
}

/// Tries whether the receiver takes messages.
///
/// The call is made by an engine within seconds; the delivery tells what came of it. Admins only.
#[utoipa::path(post, path = "/subscriptions/{id}/test", operation_id = "test_subscription", tag = "subscriptions", params(IdOrName),
    responses((status = 202, body = DeliveryView), (status = 401, body = ErrorList), (status = 403, body = ErrorList),
        (status = 404, body = ErrorList), (status = 409, body = ErrorList)))]
pub(crate) async fn test(call: Call, id: IdOrName) -> Result<HttpResponse, ApiError> {
    let by = call.require(Role::Admin)?;
    Ok(accepted(call.engine.test_subscription(&id, &by).await?))
}

/// Delivers an event once more, out of order; with its first id, so that a receiver can tell that it had it before. Admins only.
#[utoipa::path(post, path = "/subscriptions/{id}/deliveries/{delivery}/redeliver", operation_id = "redeliver",
    tag = "subscriptions",
    params(("id" = String, Path, description = "id or name"), ("delivery" = String, Path, description = "id")),
    responses((status = 202, body = DeliveryView), (status = 401, body = ErrorList), (status = 403, body = ErrorList),
        (status = 404, body = ErrorList), (status = 409, body = ErrorList)))]
pub(crate) async fn redeliver(
    call: Call,
    path: web::Path<(String, String)>,
) -> Result<HttpResponse, ApiError> {
    let by = call.require(Role::Admin)?;
    let (id, delivery) = path.into_inner();
    let delivery = Uuid::parse_str(&delivery).map_err(|_| ApiError::not_found("delivery", &delivery))?;
    Ok(accepted(call.engine.redeliver(&id, delivery, &by).await?))
}

/// 202, with the delivery that was asked for.
pub(super) fn accepted(delivery: DeliveryRow) -> HttpResponse {
    let place = format!(
        "/subscriptions/{}/deliveries/{}",
        delivery.subscription_id, delivery.id
    );
    HttpResponse::Accepted()
        .insert_header(("Location", place))
        .json(DeliveryView::from(delivery))
}

fn status(text: &str) -> Result<DeliveryStatus, ApiError> {
    DeliveryStatus::from_word(text).ok_or_else(|| {
        ApiError::bad(
            "status",
            format!("is {text:?}; pending, delivered or failed is allowed"),
        )
    })
}

async fn marker(state: &State, id: ringfence_core::SubscriptionId, text: &str) -> Result<Uuid, ApiError> {
    let bad = || {
        ApiError::bad(
            "marker",
            format!("is {text:?}; the id of the last row of the page before is allowed"),
        )
    };
    let marker = Uuid::parse_str(text).map_err(|_| bad())?;
    let found = ringfence_db::delivery(&mut state.engine.db().reader(), id, marker).await?;
    found.map(|row| row.id).ok_or_else(bad)
}

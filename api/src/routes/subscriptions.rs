//! `/subscriptions`.

use actix_web::{HttpResponse, HttpResponseBuilder};
use ringfence_core::Subscription;
use ringfence_db::Progress;
use ringfence_engine::WebhookSecret;
use serde::Serialize;
use utoipa::ToSchema;

use crate::ApiError;
use crate::body::Body;
use crate::call::{Call, IdOrName};
use crate::conditional::tag;
use crate::error::ErrorList;
use crate::paging::MAX_LIMIT;
use crate::role::Role;
use crate::routes::configured::{NotChanged, NotCreated, NotRemoved};
use crate::state::State;
use crate::view::subscription::{SubscriptionBody, SubscriptionView};

/// All subscriptions, up to 100.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SubscriptionList {
    subscriptions: Vec<SubscriptionView>,
}

/// Lists subscriptions.
#[utoipa::path(get, path = "/subscriptions", operation_id = "list_subscriptions", tag = "subscriptions",
    responses((status = 200, body = SubscriptionList), (status = 401, body = ErrorList)))]
pub(crate) async fn list(call: Call) -> Result<HttpResponse, ApiError> {
    call.require(Role::Reader)?;
    let known = ringfence_db::list_subscriptions(&mut call.engine.db().reader(), MAX_LIMIT).await?;
    let is_for_admin = call.require(Role::Admin).is_ok();
    let mut subscriptions = Vec::with_capacity(known.len());
    for subscription in known {
        subscriptions.push(view(&call, is_for_admin, subscription).await?);
    }
    Ok(HttpResponse::Ok().json(SubscriptionList { subscriptions }))
}

/// Adds a subscription.
///
/// The answer holds the secret that deliveries are signed with; it is not shown again. Admins only.
#[utoipa::path(post, path = "/subscriptions", operation_id = "create_subscription", tag = "subscriptions",
    request_body = SubscriptionBody, responses((status = 201, body = SubscriptionView), NotCreated))]
pub(crate) async fn create(call: Call, body: Body<SubscriptionBody>) -> Result<HttpResponse, ApiError> {
    let by = call.require(Role::Admin)?;
    let (subscription, secret) = call.engine.create_subscription(body.0.into(), &by).await?;
    let mut created = HttpResponse::Created();
    created.insert_header(("Location", format!("/subscriptions/{}", subscription.id)));
    answer(created, &call, true, subscription, Some(&secret)).await
}

/// Shows a subscription.
#[utoipa::path(get, path = "/subscriptions/{id}", operation_id = "show_subscription", tag = "subscriptions", params(IdOrName),
    responses((status = 200, body = SubscriptionView), (status = 401, body = ErrorList), (status = 404, body = ErrorList)))]
pub(crate) async fn show(call: Call, id: IdOrName) -> Result<HttpResponse, ApiError> {
    call.require(Role::Reader)?;
    let subscription = find(&call, &id).await?;
    let is_for_admin = call.require(Role::Admin).is_ok();
    answer(HttpResponse::Ok(), &call, is_for_admin, subscription, None).await
}

/// Puts a subscription in the place of one; its secret stays. Admins only.
#[utoipa::path(put, path = "/subscriptions/{id}", operation_id = "replace_subscription", tag = "subscriptions",
    request_body = SubscriptionBody, params(IdOrName),
    responses((status = 200, body = SubscriptionView), NotChanged))]
pub(crate) async fn replace(
    call: Call,
    id: IdOrName,
    body: Body<SubscriptionBody>,
) -> Result<HttpResponse, ApiError> {
    let by = call.require(Role::Admin)?;
    let subscription = call
        .engine
        .update_subscription(&id, body.0.into(), call.if_match()?, &by)
        .await?;
    answer(HttpResponse::Ok(), &call, true, subscription, None).await
}

/// Removes a subscription with its log of deliveries. Admins only.
#[utoipa::path(delete, path = "/subscriptions/{id}", operation_id = "remove_subscription", tag = "subscriptions", params(IdOrName),
    responses((status = 204), NotRemoved))]
pub(crate) async fn remove(call: Call, id: IdOrName) -> Result<HttpResponse, ApiError> {
    let by = call.require(Role::Admin)?;
    call.engine
        .delete_subscription(&id, call.if_match()?, &by)
        .await?;
    Ok(HttpResponse::NoContent().finish())
}

/// Gives a subscription a new secret.
///
/// The answer holds it; it is not shown again. For a day, deliveries are signed with both. Admins only.
#[utoipa::path(post, path = "/subscriptions/{id}/rotate-secret", operation_id = "rotate_subscription_secret",
    tag = "subscriptions", params(IdOrName),
    responses((status = 200, body = SubscriptionView), NotRemoved))]
pub(crate) async fn rotate_secret(call: Call, id: IdOrName) -> Result<HttpResponse, ApiError> {
    let by = call.require(Role::Admin)?;
    let (subscription, secret) = call.engine.rotate_secret(&id, call.if_match()?, &by).await?;
    answer(HttpResponse::Ok(), &call, true, subscription, Some(&secret)).await
}

/// The subscription with this id or name.
pub(super) async fn find(state: &State, id: &str) -> Result<Subscription, ApiError> {
    let found = ringfence_db::subscription(&mut state.engine.db().reader(), id).await?;
    found.ok_or_else(|| ApiError::not_found("subscription", id))
}

/// A subscription as an answer, with its entity tag.
pub(super) async fn answer(
    mut answer: HttpResponseBuilder,
    state: &State,
    is_for_admin: bool,
    subscription: Subscription,
    secret: Option<&WebhookSecret>,
) -> Result<HttpResponse, ApiError> {
    let revision = subscription.revision;
    let mut view = view(state, is_for_admin, subscription).await?;
    if let Some(secret) = secret {
        view = view.with_secret(secret);
        // A secret belongs in no cache.
        answer.insert_header(("Cache-Control", "no-store"));
    }
    Ok(tag(&mut answer, revision).json(view))
}

async fn view(
    state: &State,
    is_for_admin: bool,
    subscription: Subscription,
) -> Result<SubscriptionView, ApiError> {
    let mut reader = state.engine.db().reader();
    let progress = ringfence_db::subscription_progress(&mut reader, subscription.id).await?;
    let progress = progress.unwrap_or(Progress {
        after_sequence: 0,
        retrying: 0,
    });
    Ok(SubscriptionView::new(subscription, progress, is_for_admin))
}

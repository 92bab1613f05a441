//! The answer to a POST that was carried out before, made from what is known of it: what it has changed.

use actix_web::{HttpResponse, HttpResponseBuilder};
use ringfence_engine::Receipt;

use crate::ApiError;
use crate::routes::configured::{Configured, created};
use crate::routes::{bulk, deliveries, hosts, operations, subscriptions};
use crate::state::State;

/// The answer to the request at the path `pattern`. It shows what was changed as it is now.
pub(crate) async fn answer(
    state: &State,
    pattern: Option<&str>,
    receipt: Receipt,
) -> Result<HttpResponse, ApiError> {
    let mut reader = state.engine.db().reader();
    match receipt {
        Receipt::Host(id) => {
            let place = format!("/hosts/{id}");
            let head = head(pattern == Some("/hosts"), place);
            hosts::answer(state, &id.to_string(), head).await
        }
        Receipt::Hosts(ids) => bulk::hosts::added(state, ids).await,
        Receipt::Operation(id) => {
            let mut head = HttpResponse::Ok();
            if pattern.is_some_and(|pattern| pattern.starts_with("/hosts/")) {
                head = HttpResponse::Accepted();
                head.insert_header(("Location", format!("/operations/{id}")));
            }
            operations::answer(state, id.0, head).await
        }
        Receipt::Segment(id) => {
            let id = id.to_string();
            made(ringfence_db::segment(&mut reader, &id).await?, &id)
        }
        Receipt::Method(id) => {
            let id = id.to_string();
            made(ringfence_db::method(&mut reader, &id).await?, &id)
        }
        Receipt::Plan(id) => {
            let id = id.to_string();
            made(ringfence_db::plan(&mut reader, &id).await?, &id)
        }
        Receipt::Subscription(id) => {
            let found = subscriptions::find(state, &id.to_string()).await?;
            let secret = state.engine.secret_of(&found)?;
            let place = format!("/subscriptions/{id}");
            let head = head(pattern == Some("/subscriptions"), place);
            subscriptions::answer(head, state, true, found, Some(&secret)).await
        }
        Receipt::Delivery(subscription, id) => {
            let found = ringfence_db::delivery(&mut reader, subscription, id).await?;
            let found = found.ok_or_else(|| ApiError::not_found("delivery", &id.to_string()))?;
            Ok(deliveries::accepted(found))
        }
    }
}

fn head(is_new: bool, place: String) -> HttpResponseBuilder {
    if !is_new {
        return HttpResponse::Ok();
    }
    let mut created = HttpResponse::Created();
    created.insert_header(("Location", place));
    created
}

fn made<T: Configured>(thing: Option<T>, id: &str) -> Result<HttpResponse, ApiError> {
    thing
        .map(|thing| created(thing, Vec::new()))
        .ok_or_else(|| ApiError::not_found(T::KIND, id))
}

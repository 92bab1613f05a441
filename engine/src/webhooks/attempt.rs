//! One try of a delivery: the letter, the call, and what follows from it.

use std::time::Duration;

use ringfence_core::{NextTry, Subscription, Timestamp, after_try};
use ringfence_db::{DeliveryKind, DeliveryRow, DeliveryStatus};
use url::Url;

use super::call::{Called, Letter};
use super::document::{content_type, document, test_document};
use super::target::validate_url;
use crate::{Engine, EngineError};

/// Calls for a delivery.
pub(super) async fn call(
    engine: &Engine,
    subscription: &Subscription,
    delivery: &DeliveryRow,
    document: &serde_json::Value,
) -> Called {
    match letter(engine, subscription, delivery, document) {
        Ok(letter) => engine.0.webhooks.caller.call(letter).await,
        Err(why) => Called {
            tried: ringfence_core::Tried::Failed { retry_after_s: None },
            answer: None,
            detail: Some(why),
            took: Duration::ZERO,
        },
    }
}

fn letter(
    engine: &Engine,
    subscription: &Subscription,
    delivery: &DeliveryRow,
    document: &serde_json::Value,
) -> Result<Letter, String> {
    let webhooks = &engine.0.webhooks;
    let url: Url = validate_url(&subscription.url, &webhooks.allowed_networks)
        .map_err(|problems| problems.to_string())?;
    let keys = webhooks.keys().map_err(|error| error.to_string())?;
    let body = serde_json::to_vec(document).map_err(|error| error.to_string())?;
    let now = engine.0.clock.now();
    let message_id = delivery.message_id.to_string();
    let mut signatures = Vec::new();
    for version in subscription.secret.signing(now) {
        let signature = keys
            .secret(subscription.id, version)
            .and_then(|secret| secret.sign(&message_id, now.timestamp(), &body));
        signatures.push(signature.ok_or_else(|| {
            format!(
                "was not called: the key {:?} is not in webhooks.keys_file of this engine",
                version.key_id
            )
        })?);
    }
    Ok(Letter {
        url,
        content_type: content_type(subscription.format),
        message_id,
        timestamp: now.timestamp(),
        signature: signatures.join(" "),
        body: body.into(),
    })
}

/// Writes into a delivery what came of a try, and says what follows.
pub(super) fn note(delivery: &mut DeliveryRow, called: &Called, now: Timestamp) -> NextTry {
    delivery.tries = delivery.tries.saturating_add(1);
    // A delivery that a client has asked for was made at that moment.
    if delivery.tried_at.is_none() && delivery.kind == DeliveryKind::Event {
        delivery.created_at = now;
    }
    let next = after_try(called.tried, delivery.tries, delivery.created_at, now, jitter());
    delivery.tried_at = Some(now);
    delivery.answer = called.answer;
    delivery.detail.clone_from(&called.detail);
    delivery.took_ms = Some(u64::try_from(called.took.as_millis()).unwrap_or(u64::MAX));
    (delivery.status, delivery.next_at) = match next {
        NextTry::Done => (DeliveryStatus::Delivered, None),
        NextTry::At(at) => (DeliveryStatus::Pending, Some(at)),
        // It goes on from here once the subscription is enabled again.
        NextTry::DisableGone | NextTry::DisableFailing => (DeliveryStatus::Pending, Some(now)),
    };
    next
}

#[expect(
    clippy::disallowed_methods,
    reason = "receivers must not be called by all engines at one moment"
)]
fn jitter() -> u16 {
    rand::random()
}

/// One try of a delivery that a client has asked for: a test, or an event once more.
pub(super) async fn try_once(engine: &Engine, mut delivery: DeliveryRow) -> Result<(), EngineError> {
    let mut reader = engine.0.db.reader();
    let id = delivery.subscription_id.to_string();
    let Some(subscription) = ringfence_db::subscription(&mut reader, &id).await? else {
        return Ok(());
    };
    let called = match document_of(engine, &subscription, &delivery).await? {
        Some(document) => call(engine, &subscription, &delivery, &document).await,
        None => Called {
            tried: ringfence_core::Tried::Failed { retry_after_s: None },
            answer: None,
            detail: Some("was not called: the event is not kept any more".to_owned()),
            took: Duration::ZERO,
        },
    };
    let next = note(&mut delivery, &called, engine.0.clock.now());
    if next != NextTry::Done {
        (delivery.status, delivery.next_at) = (DeliveryStatus::Failed, None);
    }
    engine.0.metrics.count_delivery(&delivery, called.took);
    Ok(ringfence_db::save_deliveries(&mut reader, &[delivery]).await?)
}

async fn document_of(
    engine: &Engine,
    subscription: &Subscription,
    delivery: &DeliveryRow,
) -> Result<Option<serde_json::Value>, EngineError> {
    let source = &engine.0.webhooks.source;
    let Some(sequence) = delivery.sequence else {
        let at = delivery.created_at;
        return Ok(Some(test_document(delivery.message_id, at, source, subscription)));
    };
    let row = ringfence_db::event_numbered(&mut engine.0.db.reader(), sequence).await?;
    Ok(row.map(|row| document(&row, source, subscription)))
}

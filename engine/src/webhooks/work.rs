//! Finds what there is to deliver: subscriptions that no engine delivers for, and deliveries that a client has asked for.

use std::time::Duration;

use chrono::TimeDelta;
use futures_util::StreamExt;
use futures_util::stream;
use ringfence_core::error_chain;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::attempt::try_once;
use super::deliver::deliver;
use crate::configure::MAX_SUBSCRIPTIONS;
use crate::pause::pause;
use crate::{Engine, EngineError};

/// An engine holds a subscription for so long, unless it says so again.
pub(super) const HELD_FOR: TimeDelta = TimeDelta::seconds(30);
/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Deliveries that a client has asked for: taken at once, and called side by side.
const ASKED_AT_ONCE: u32 = 32;
const SIDE_BY_SIDE: usize = 8;

/// Delivers until it is told to stop.
pub(crate) async fn work(engine: Engine, stop: CancellationToken) {
    if engine.0.webhooks.keys.is_none() {
        return;
    }
    let mut delivering = JoinSet::new();
    while pause(&stop, LOOK_EVERY).await {
        if let Err(error) = take_free(&engine, &mut delivering, &stop).await {
            tracing::warn!(error = %error_chain(&error), "subscriptions could not be looked for");
        }
        while delivering.try_join_next().is_some() {}
    }
    while delivering.join_next().await.is_some() {}
}

/// Makes the deliveries that clients ask for, until it is told to stop.
pub(crate) async fn answer_asked(engine: Engine, stop: CancellationToken) {
    if engine.0.webhooks.keys.is_none() {
        return;
    }
    while pause(&stop, LOOK_EVERY).await {
        if let Err(error) = deliver_asked(&engine).await {
            tracing::warn!(error = %error_chain(&error), "deliveries that were asked for could not be made");
        }
    }
}

async fn take_free(
    engine: &Engine,
    delivering: &mut JoinSet<()>,
    stop: &CancellationToken,
) -> Result<(), EngineError> {
    let now = engine.0.clock.now();
    let mut reader = engine.0.db.reader();
    for id in ringfence_db::free_subscriptions(&mut reader, now, MAX_SUBSCRIPTIONS).await? {
        // Each hold has a name of its own: this engine may hold it twice in a row, and the first time must not count any more.
        let holder = format!("{} {}", engine.0.config.name, Uuid::new_v4());
        let held = ringfence_db::hold_subscription(&mut reader, id, &holder, now, now + HELD_FOR).await?;
        if let Some((subscription, after)) = held {
            delivering.spawn(deliver(engine.clone(), subscription, after, holder, stop.clone()));
        }
    }
    Ok(())
}

async fn deliver_asked(engine: &Engine) -> Result<(), EngineError> {
    let now = engine.0.clock.now();
    let asked = ringfence_db::take_deliveries(&engine.0.db, now, now + HELD_FOR, ASKED_AT_ONCE).await?;
    stream::iter(asked)
        .for_each_concurrent(SIDE_BY_SIDE, |delivery| async move {
            let id = delivery.id;
            if let Err(error) = try_once(engine, delivery).await {
                tracing::warn!(delivery = %id, error = %error_chain(&error), "a delivery that was asked for was not made");
            }
        })
        .await;
    Ok(())
}

//! Delivers for one subscription, as long as this engine holds it.

use std::time::Duration;

use chrono::TimeDelta;
use ringfence_core::{NextTry, Subscription, error_chain};
use ringfence_db::DeliveryRow;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::attempt::{call, note};
use super::call::Called;
use super::coming::{Come, Coming};
use super::delivery_order::{DeliveryOrder, Job};
use super::document::document;
use super::work::HELD_FOR;
use crate::{Engine, EngineError};

/// Events under way at a time.
const SIDE_BY_SIDE: usize = 8;
/// After so many failures in a row the receiver counts as away, and one event at a time finds out when it is back.
const AWAY_AFTER: u32 = 8;
/// What has ended is written down so much later at most, many together.
const SAVE_EVERY: Duration = Duration::from_millis(200);
/// Between two looks whether the subscription is still as it was.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// What this engine holds it says again so often, if nothing else is to be written.
const KEEP_EVERY: Duration = Duration::from_secs(10);
/// The pause before a database that failed is asked again.
const PAUSE: Duration = Duration::from_secs(1);

/// Why delivering ends.
enum End {
    /// The service stops.
    Stopped,
    /// Another engine holds it, or it was changed: it is taken anew.
    Lost,
    /// It has to be disabled.
    Disable(String),
}

pub(super) async fn deliver(
    engine: Engine,
    subscription: Subscription,
    after: u64,
    holder: String,
    stop: CancellationToken,
) {
    let id = subscription.id;
    let name = subscription.name.clone();
    // The engine that delivered before may have written some down after the mark was moved on.
    let passed = ringfence_db::give_up_deliveries(&mut engine.0.db.reader(), id, after).await;
    if let Err(error) = passed {
        tracing::debug!(subscription = name, error = %error_chain(&error), "deliveries before the mark are still shown as tried");
    }
    let mut delivering = Delivering::new(&engine, subscription, after, holder.clone());
    delivering.run(&stop).await;
    if let Err(error) = ringfence_db::free_subscription(&mut engine.0.db.reader(), id, &holder).await {
        tracing::debug!(subscription = name, error = %error_chain(&error), "a subscription stays held until its time is over");
    }
}

struct Delivering {
    engine: Engine,
    subscription: Subscription,
    /// This hold's own name.
    holder: String,
    order: DeliveryOrder,
    coming: Coming,
    under_way: JoinSet<(Job, Called)>,
    failures: u32,
    /// What became of deliveries and is not written down yet.
    unsaved: Vec<DeliveryRow>,
    saved_up_to: u64,
    kept_at: Instant,
}

impl Delivering {
    fn new(engine: &Engine, subscription: Subscription, after: u64, holder: String) -> Self {
        Self {
            order: DeliveryOrder::new(subscription.id, subscription.filter.clone(), after),
            coming: Coming::after(engine, subscription.id, after),
            engine: engine.clone(),
            subscription,
            holder,
            under_way: JoinSet::new(),
            failures: 0,
            unsaved: Vec::new(),
            saved_up_to: after,
            kept_at: Instant::now(),
        }
    }

    async fn run(&mut self, stop: &CancellationToken) {
        let end = self.go_on(stop).await;
        self.finish().await;
        match self.save(true).await {
            Ok(_) => {}
            Err(error) => tracing::warn!(
                subscription = self.subscription.name,
                error = %error_chain(&error),
                "what was delivered could not be written down and may be delivered again"
            ),
        }
        if let End::Disable(why) = end {
            self.disable(&why).await;
        }
    }

    async fn go_on(&mut self, stop: &CancellationToken) -> End {
        let mut save = tokio::time::interval(SAVE_EVERY);
        save.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut look = tokio::time::interval(LOOK_EVERY);
        look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            self.start_what_is_due();
            let due_in = self.due_in();
            tokio::select! {
                () = stop.cancelled() => return End::Stopped,
                Some(ended) = self.under_way.join_next() => {
                    // A call that panicked is tried again by the engine that holds the subscription next.
                    let Ok((job, called)) = ended else { return End::Lost };
                    if let Some(why) = self.ended(job, &called) {
                        return End::Disable(why);
                    }
                }
                come = self.coming.next(), if self.order.has_room() => match come {
                    Some(Ok(come)) => self.take_in(come),
                    Some(Err(error @ EngineError::EventsGone { .. })) => return End::Disable(error.to_string()),
                    Some(Err(error)) => self.warn("the events cannot be read", &error),
                    None => return End::Lost,
                },
                () = tokio::time::sleep(due_in) => {}
                _ = save.tick() => match self.save(false).await {
                    Ok(true) => {}
                    Ok(false) => return End::Lost,
                    Err(error) => self.rest("what was delivered cannot be written down", &error).await,
                },
                _ = look.tick() => match self.is_as_it_was().await {
                    Ok(true) => {}
                    Ok(false) => return End::Lost,
                    Err(error) => self.rest("the subscription cannot be read", &error).await,
                },
            }
        }
    }

    fn warn(&self, what: &'static str, error: &EngineError) {
        tracing::warn!(subscription = self.subscription.name, error = %error_chain(error), "{what}");
    }

    async fn rest(&self, what: &'static str, error: &EngineError) {
        self.warn(what, error);
        tokio::time::sleep(PAUSE).await;
    }

    fn take_in(&mut self, (item, begun): Come) {
        let ended = self.order.take_in(item, begun, self.engine.0.clock.now());
        self.unsaved.extend(ended);
    }

    /// Until something is due, if there is room for it.
    fn due_in(&self) -> Duration {
        if self.under_way.len() >= self.room() {
            return KEEP_EVERY;
        }
        let now = self.engine.0.clock.now();
        let wait = self.order.due_at().map(|at| (at - now).max(TimeDelta::zero()));
        wait.and_then(|wait| wait.to_std().ok())
            .map_or(KEEP_EVERY, |wait| wait.min(KEEP_EVERY))
    }

    fn room(&self) -> usize {
        if self.failures >= AWAY_AFTER {
            1
        } else {
            SIDE_BY_SIDE
        }
    }

    fn start_what_is_due(&mut self) {
        let now = self.engine.0.clock.now();
        while self.under_way.len() < self.room() {
            let Some(job) = self.order.start(now) else { return };
            let engine = self.engine.clone();
            let subscription = self.subscription.clone();
            self.under_way.spawn(async move {
                let document = document(&job.item, &engine.0.webhooks.source, &subscription);
                let called = call(&engine, &subscription, &job.delivery, &document).await;
                (job, called)
            });
        }
    }

    /// Notes what came of a try; tells why the subscription has to be disabled, if it has.
    fn ended(&mut self, mut job: Job, called: &Called) -> Option<String> {
        let now = self.engine.0.clock.now();
        let next = note(&mut job.delivery, called, now);
        self.engine.0.metrics.count_delivery(&job.delivery, called.took);
        self.failures = if next == NextTry::Done {
            0
        } else {
            self.failures.saturating_add(1)
        };
        if next != NextTry::Done {
            tracing::info!(
                subscription = self.subscription.name,
                sequence = job.item.sequence,
                tries = job.delivery.tries,
                detail = job.delivery.detail,
                next_at = job.delivery.next_at.map(|at| at.to_rfc3339()),
                "an event was not taken"
            );
        }
        let detail = job.delivery.detail.clone().unwrap_or_default();
        self.unsaved.push(job.delivery.clone());
        self.order.ended(job, now);
        match next {
            NextTry::Done | NextTry::At(_) => None,
            NextTry::DisableGone => Some(format!("the receiver wants no more events: it {detail}")),
            NextTry::DisableFailing => {
                Some(format!("an event was not taken for a day: the receiver {detail}"))
            }
        }
    }

    /// Lets what is under way end.
    async fn finish(&mut self) {
        while let Some(ended) = self.under_way.join_next().await {
            let Ok((mut job, called)) = ended else { continue };
            let now = self.engine.0.clock.now();
            let _ = note(&mut job.delivery, &called, now);
            self.engine.0.metrics.count_delivery(&job.delivery, called.took);
            self.unsaved.push(job.delivery.clone());
            self.order.ended(job, now);
        }
    }

    /// Writes down what has happened; `false` if another engine holds the subscription: then nothing is written.
    async fn save(&mut self, is_last: bool) -> Result<bool, EngineError> {
        let done_up_to = self.order.done_up_to();
        let is_new = !self.unsaved.is_empty() || done_up_to != self.saved_up_to;
        if !is_new && (is_last || self.kept_at.elapsed() < KEEP_EVERY) {
            return Ok(true);
        }
        let until = self.engine.0.clock.now() + HELD_FOR;
        let mut tx = self.engine.0.db.begin().await?;
        let id = self.subscription.id;
        let is_held = ringfence_db::keep_subscription(&mut tx, id, &self.holder, done_up_to, until).await?;
        if !is_held {
            return Ok(false);
        }
        ringfence_db::save_deliveries(&mut tx, &self.unsaved).await?;
        tx.commit().await?;
        self.unsaved.clear();
        self.saved_up_to = done_up_to;
        self.kept_at = Instant::now();
        Ok(true)
    }

    async fn is_as_it_was(&self) -> Result<bool, EngineError> {
        let id = self.subscription.id.to_string();
        let now = ringfence_db::subscription(&mut self.engine.0.db.reader(), &id).await?;
        Ok(now.is_some_and(|now| now.revision == self.subscription.revision))
    }

    async fn disable(&self, why: &str) {
        if let Err(error) = self.engine.disable_subscription(&self.subscription, why).await {
            tracing::error!(
                subscription = self.subscription.name,
                error = %error_chain(&error),
                "a subscription that should be disabled could not be"
            );
        }
    }
}

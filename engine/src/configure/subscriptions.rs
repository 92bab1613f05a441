//! Adding, changing and removing subscriptions, trying them, and asking for deliveries again.

use chrono::TimeDelta;
use ringfence_bus::WebhookSecret;
use ringfence_core::{
    EventFilter, EventKind, MessageFormat, Problem, Problems, SecretVersions, Subscription, SubscriptionId,
    validate_subscription,
};
use ringfence_db::{DbError, DeliveryKind, DeliveryRow, DeliveryStatus, NewEvent, Tx};
use serde_json::{Value, json};
use uuid::Uuid;

use super::moving::Move;
use super::{check_revision, require_written};
use crate::idempotency::leave_receipt;
use crate::ids::new_id;
use crate::reconcile::number_all_events;
use crate::webhooks::{check_format, format_of, validate_url};
use crate::{Context, Engine, EngineError, Receipt};

/// The most subscriptions.
pub(crate) const MAX_SUBSCRIPTIONS: u32 = 100;
/// The most segments that are looked through.
const MAX_SEGMENTS: u32 = 10_000;
/// For so long after a change of the secret the one before signs as well.
const OLD_SECRET_SIGNS_FOR: TimeDelta = TimeDelta::hours(24);

/// A subscription to add, or to put in the place of one.
#[derive(Clone, Debug)]
pub struct SubscriptionDraft {
    /// Unique.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// Where the events go.
    pub url: String,
    /// In which form; absent: the one that the receiver is known to take, else CloudEvents.
    pub format: Option<MessageFormat>,
    /// Which events.
    pub filter: EventFilter,
    /// Whether events are delivered.
    pub enabled: bool,
    /// Go on after the event with this number. Absent: from now on where it is new, else where it was.
    pub after: Option<u64>,
}

impl Engine {
    /// Adds a subscription; returns it with its secret, which is never shown again.
    pub async fn create_subscription(
        &self,
        draft: SubscriptionDraft,
        by: &Context,
    ) -> Result<(Subscription, WebhookSecret), EngineError> {
        let keys = self.0.webhooks.keys()?;
        let last = self.check_subscription(&draft).await?;
        let mut tx = self.0.db.begin().await?;
        if ringfence_db::count_subscriptions(&mut tx).await? >= u64::from(MAX_SUBSCRIPTIONS) {
            return Err(EngineError::TooMany(format!(
                "there are {MAX_SUBSCRIPTIONS} subscriptions, which is the most; remove one"
            )));
        }
        let now = self.0.clock.now();
        let format = format_of(&draft.url, draft.format);
        let after = draft.after.unwrap_or(last);
        let subscription = Subscription {
            id: SubscriptionId(new_id()),
            name: draft.name,
            description: draft.description,
            format,
            url: draft.url,
            filter: draft.filter,
            enabled: draft.enabled,
            disabled_reason: None,
            secret: SecretVersions::first(keys.newest()),
            revision: 1,
            created_at: now,
            updated_at: now,
        };
        let secret = self.secret_of(&subscription)?;
        ringfence_db::insert_subscription(&mut tx, &subscription, after)
            .await
            .map_err(|e| taken(e, &subscription.name))?;
        let detail = detail(&subscription);
        leave_receipt(&mut tx, by, Receipt::Subscription(subscription.id)).await?;
        self.commit(tx, "subscription.created", &subscription.name, detail, by)
            .await?;
        Ok((subscription, secret))
    }

    /// Puts a subscription in the place of one. Its secret and, unless said otherwise, its place among the events stay. Moved back,
    /// it is told again of everything after its new place; moved on, it is not told of what it has been told of already.
    pub async fn update_subscription(
        &self,
        id: &str,
        draft: SubscriptionDraft,
        revision: Option<u64>,
        by: &Context,
    ) -> Result<Subscription, EngineError> {
        self.0.webhooks.keys()?;
        let known = self.subscription_of(id).await?;
        self.check_subscription(&draft).await?;
        check_revision(revision, known.revision)?;
        let format = format_of(&draft.url, draft.format);
        let is_enabled_again = draft.enabled && !known.enabled;
        let moved = match draft.after {
            Some(after) => Some(Move::prepare(self, known.id, after).await?),
            None => None,
        };
        let subscription = Subscription {
            name: draft.name,
            description: draft.description,
            format,
            url: draft.url,
            filter: draft.filter,
            enabled: draft.enabled,
            disabled_reason: known.disabled_reason.clone().filter(|_| !draft.enabled),
            ..known.clone()
        };
        let mut tx = self.0.db.begin().await?;
        if let Some(moved) = moved {
            moved.carry_out(&mut tx, known.id).await?;
        }
        if is_enabled_again {
            ringfence_db::restart_deliveries(&mut tx, known.id, self.0.clock.now()).await?;
        }
        let after = moved.map(Move::after);
        self.put(tx, &known, subscription, after, "subscription.updated", by)
            .await
    }

    /// Removes a subscription with its log of deliveries.
    pub async fn delete_subscription(
        &self,
        id: &str,
        revision: Option<u64>,
        by: &Context,
    ) -> Result<(), EngineError> {
        let known = self.subscription_of(id).await?;
        check_revision(revision, known.revision)?;
        let mut tx = self.0.db.begin().await?;
        ringfence_db::delete_subscription(&mut tx, known.id).await?;
        self.commit(tx, "subscription.deleted", &known.name, Value::Null, by)
            .await
    }

    /// Gives a subscription a new secret. For a day, deliveries are signed with both.
    pub async fn rotate_secret(
        &self,
        id: &str,
        revision: Option<u64>,
        by: &Context,
    ) -> Result<(Subscription, WebhookSecret), EngineError> {
        let keys = self.0.webhooks.keys()?;
        let known = self.subscription_of(id).await?;
        check_revision(revision, known.revision)?;
        let until = self.0.clock.now() + OLD_SECRET_SIGNS_FOR;
        let subscription = Subscription {
            secret: known.secret.rotate(keys.newest(), until),
            ..known.clone()
        };
        let secret = self.secret_of(&subscription)?;
        let mut tx = self.0.db.begin().await?;
        leave_receipt(&mut tx, by, Receipt::Subscription(known.id)).await?;
        let subscription = self
            .put(tx, &known, subscription, None, "subscription.secret_rotated", by)
            .await?;
        Ok((subscription, secret))
    }

    /// Stops delivering because the receiver does not take events, and says so by an event.
    pub(crate) async fn disable_subscription(
        &self,
        known: &Subscription,
        why: &str,
    ) -> Result<(), EngineError> {
        let subscription = Subscription {
            enabled: false,
            disabled_reason: Some(why.to_owned()),
            ..known.clone()
        };
        let mut tx = self.0.db.begin().await?;
        let event = NewEvent {
            id: new_id(),
            host: None,
            kind: EventKind::SubscriptionDisabled,
            occurred_at: self.0.clock.now(),
            data: json!({ "subscription": known.name, "subscription_id": known.id, "reason": why }),
        };
        ringfence_db::append_events(&mut tx, &[event]).await?;
        let by = Context::own("ringfence");
        match self
            .put(tx, known, subscription, None, "subscription.disabled", &by)
            .await
        {
            Ok(_) => {}
            // It was changed meanwhile, perhaps because of what is wrong: it is tried again as it is now.
            Err(EngineError::Changed { .. }) => return Ok(()),
            Err(error) => return Err(error),
        }
        tracing::warn!(
            subscription = known.name,
            reason = why,
            "a subscription was disabled"
        );
        self.events_written();
        Ok(())
    }

    /// Asks for a call that tries whether the receiver takes messages; returns its delivery, which tells what came of it.
    pub async fn test_subscription(&self, id: &str, by: &Context) -> Result<DeliveryRow, EngineError> {
        self.0.webhooks.keys()?;
        let known = self.subscription_of(id).await?;
        let delivery = self.asked_for(known.id, DeliveryKind::Test, None);
        self.ask(&known, delivery, "subscription.tested", by).await
    }

    /// Asks for an event to be delivered once more, out of order; returns its new delivery.
    pub async fn redeliver(
        &self,
        id: &str,
        delivery: Uuid,
        by: &Context,
    ) -> Result<DeliveryRow, EngineError> {
        self.0.webhooks.keys()?;
        let known = self.subscription_of(id).await?;
        let earlier = ringfence_db::delivery(&mut self.0.db.reader(), known.id, delivery)
            .await?
            .ok_or_else(|| EngineError::not_found("delivery", delivery))?;
        let kind = match earlier.kind {
            DeliveryKind::Test => DeliveryKind::Test,
            DeliveryKind::Event | DeliveryKind::Redelivery => DeliveryKind::Redelivery,
        };
        let delivery = self.asked_for(known.id, kind, Some(earlier));
        self.ask(&known, delivery, "subscription.redelivered", by).await
    }

    fn asked_for(&self, id: SubscriptionId, kind: DeliveryKind, of: Option<DeliveryRow>) -> DeliveryRow {
        let now = self.0.clock.now();
        let of = of.as_ref();
        DeliveryRow {
            id: new_id(),
            subscription_id: id,
            kind,
            sequence: of.and_then(|of| of.sequence),
            message_id: of.map_or_else(new_id, |of| of.message_id),
            event_type: of.map_or_else(|| "test".to_owned(), |of| of.event_type.clone()),
            host: of.and_then(|of| of.host.clone()),
            status: DeliveryStatus::Pending,
            tries: 0,
            created_at: now,
            tried_at: None,
            next_at: Some(now),
            answer: None,
            detail: None,
            took_ms: None,
        }
    }

    async fn ask(
        &self,
        known: &Subscription,
        delivery: DeliveryRow,
        action: &str,
        by: &Context,
    ) -> Result<DeliveryRow, EngineError> {
        let mut tx = self.0.db.begin().await?;
        ringfence_db::save_deliveries(&mut tx, std::slice::from_ref(&delivery)).await?;
        leave_receipt(&mut tx, by, Receipt::Delivery(known.id, delivery.id)).await?;
        let detail = json!({ "delivery": delivery.id, "event": delivery.message_id });
        self.commit(tx, action, &known.name, detail, by).await?;
        Ok(delivery)
    }

    async fn put(
        &self,
        mut tx: Tx,
        known: &Subscription,
        mut subscription: Subscription,
        after: Option<u64>,
        action: &str,
        by: &Context,
    ) -> Result<Subscription, EngineError> {
        subscription.revision = known.revision + 1;
        subscription.updated_at = self.0.clock.now();
        let is_written = ringfence_db::update_subscription(&mut tx, &subscription, after, known.revision)
            .await
            .map_err(|e| taken(e, &subscription.name))?;
        require_written(is_written, known.revision)?;
        self.commit(tx, action, &subscription.name, detail(&subscription), by)
            .await?;
        Ok(subscription)
    }

    async fn subscription_of(&self, id: &str) -> Result<Subscription, EngineError> {
        ringfence_db::subscription(&mut self.0.db.reader(), id)
            .await?
            .ok_or_else(|| EngineError::not_found("subscription", id))
    }

    /// The secret that deliveries of a subscription are signed with.
    pub fn secret_of(&self, subscription: &Subscription) -> Result<WebhookSecret, EngineError> {
        let secret = self
            .0
            .webhooks
            .keys()?
            .secret(subscription.id, &subscription.secret.current);
        secret.ok_or(EngineError::WebhooksOff)
    }

    /// Refuses a draft that cannot work; returns the number of the last event.
    async fn check_subscription(&self, draft: &SubscriptionDraft) -> Result<u64, EngineError> {
        let mut problems = Problems::default();
        let mut note = |checked: Result<(), Problems>| {
            if let Err(found) = checked {
                problems.0.extend(found.0);
            }
        };
        note(validate_subscription(
            &draft.name,
            &draft.description,
            &draft.filter,
        ));
        note(validate_url(&draft.url, &self.0.webhooks.allowed_networks).map(|_| ()));
        note(check_format(&draft.url, draft.format));
        let mut reader = self.0.db.reader();
        let segments = ringfence_db::list_segments(&mut reader, MAX_SEGMENTS).await?;
        for (i, name) in draft.filter.segments.iter().enumerate() {
            if !segments.iter().any(|segment| segment.name == *name) {
                let detail = format!("is {name:?}, and there is no such segment");
                problems.add(format!("segments[{i}]"), detail);
            }
        }
        // What happened before now has a number from here on, and "from now on" begins after it.
        number_all_events(self).await?;
        let last = ringfence_db::last_sequence(&mut reader).await?;
        let removed = ringfence_db::events_removed_up_to(&mut self.0.db.reader()).await?;
        if let Some(after) = draft.after.filter(|after| *after < removed) {
            problems.add(
                "after",
                format!(
                    "is {after}, and events up to {removed} have been removed; {removed} to {last} is allowed"
                ),
            );
        }
        if let Some(after) = draft.after.filter(|after| *after > last) {
            problems.0.push(Problem::new(
                "after",
                format!("is {after}; 0 to {last}, the number of the last event, is allowed"),
            ));
        }
        problems.into_result()?;
        Ok(last)
    }
}

/// For the audit trail. The path and the query of the URL may be secret.
fn detail(subscription: &Subscription) -> Value {
    json!({
        "url": origin_of(&subscription.url),
        "format": subscription.format,
        "filter": subscription.filter,
        "enabled": subscription.enabled,
        "reason": subscription.disabled_reason,
        "secret": subscription.secret.current.number,
    })
}

/// Scheme, host and port of a URL: what may be shown of it to those who do not administer it.
#[must_use]
pub fn origin_of(url: &str) -> String {
    url::Url::parse(url).map_or_else(|_| String::new(), |url| url.origin().ascii_serialization())
}

fn taken(error: DbError, name: &str) -> EngineError {
    EngineError::or_duplicate(error, || {
        format!("there is a subscription named {name:?} already")
    })
}

//! Subscriptions and their deliveries.

use chrono::{DateTime, Utc};
use ringfence_core::{EventFilter, MessageFormat, Subscription};
use ringfence_db::{DeliveryRow, Progress};
use ringfence_engine::{SubscriptionDraft, WebhookSecret, origin_of};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

/// A webhook that is told of events.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SubscriptionView {
    pub id: Uuid,
    pub name: String,
    pub description: String,
    /// Where the events go. Only admins see more of it than scheme, host and port.
    pub url: String,
    /// The form in which the receiver gets events: cloudevents, slack, mattermost or teams
    #[schema(value_type = String, example = "cloudevents")]
    pub format: MessageFormat,
    /// Types of events; empty: all.
    #[schema(example = json!(["host.fenced", "operation.*"]))]
    pub types: Vec<String>,
    /// Names of segments; empty: all.
    pub segments: Vec<String>,
    /// Names of hosts; empty: all.
    pub hosts: Vec<String>,
    pub enabled: bool,
    /// Why Ringfence has disabled it.
    pub disabled_reason: Option<String>,
    /// Every event with a number up to this one was delivered, does not pass, or was left behind.
    pub after: u64,
    /// Events that were tried and not taken yet.
    pub retrying: u64,
    /// Until when deliveries are signed with the secret before the present one as well.
    pub previous_secret_until: Option<DateTime<Utc>>,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
    /// The secret that deliveries are signed with. Shown once, when it is made.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo=")]
    pub secret: Option<String>,
}

/// A subscription to add, or to put in the place of one.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SubscriptionBody {
    /// 1 to 255 letters, digits, `.`, `_` and `-`.
    #[schema(pattern = "^[A-Za-z0-9][A-Za-z0-9._-]{0,254}$")]
    pub name: String,
    /// Up to 1000 characters.
    #[serde(default)]
    pub description: String,
    /// `https://HOST/PATH`, up to 2048 characters; no user, no password, and no address that is not public unless the
    /// configuration allows its network.
    pub url: String,
    /// The form in which the receiver gets events: cloudevents (for programs), slack, mattermost or teams. Absent: the one that the receiver
    /// is known to take by its address, else cloudevents.
    #[serde(default)]
    #[schema(value_type = Option<String>, pattern = "^(cloudevents|slack|mattermost|teams)$")]
    pub format: Option<MessageFormat>,
    /// Types of events such as `host.fenced`, or all of a kind: `host.*`; empty: all.
    #[serde(default)]
    pub types: Vec<String>,
    /// Names of segments; empty: all.
    #[serde(default)]
    pub segments: Vec<String>,
    /// Names of hosts, which may be added later; empty: all.
    #[serde(default)]
    pub hosts: Vec<String>,
    /// Whether events are delivered; true if absent.
    #[serde(default = "enabled")]
    pub enabled: bool,
    /// Go on after the event with this number. Absent: a new subscription begins now, a known one goes on where it was. With a lower
    /// number than it has got to, everything after it is sent again; with a higher one, what lies between is not tried any more.
    #[serde(default)]
    pub after: Option<u64>,
}

fn enabled() -> bool {
    true
}

impl From<SubscriptionBody> for SubscriptionDraft {
    fn from(body: SubscriptionBody) -> Self {
        Self {
            name: body.name,
            description: body.description,
            url: body.url,
            format: body.format,
            filter: EventFilter {
                types: body.types,
                segments: body.segments,
                hosts: body.hosts,
            },
            enabled: body.enabled,
            after: body.after,
        }
    }
}

impl SubscriptionView {
    /// With the fields for admins, or without them.
    pub fn new(subscription: Subscription, progress: Progress, is_for_admin: bool) -> Self {
        let Subscription { filter, secret, .. } = subscription;
        Self {
            id: subscription.id.0,
            name: subscription.name,
            description: subscription.description,
            url: if is_for_admin {
                subscription.url
            } else {
                origin_of(&subscription.url)
            },
            format: subscription.format,
            types: filter.types,
            segments: filter.segments,
            hosts: filter.hosts,
            enabled: subscription.enabled,
            disabled_reason: subscription.disabled_reason,
            after: progress.after_sequence,
            retrying: progress.retrying,
            previous_secret_until: secret.previous.map(|(_, until)| until),
            created_at: subscription.created_at,
            updated_at: subscription.updated_at,
            secret: None,
        }
    }

    /// With its secret.
    pub fn with_secret(mut self, secret: &WebhookSecret) -> Self {
        self.secret = Some(secret.expose());
        self
    }
}

/// What became of an event, a test or a redelivery.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DeliveryView {
    pub id: Uuid,
    /// event, redelivery or test
    #[schema(example = "event")]
    pub kind: &'static str,
    /// The number of the event; a test has none.
    pub sequence: Option<u64>,
    /// The id of the event, by which the receiver knows it (`webhook-id`).
    pub event_id: Uuid,
    #[schema(example = "host.fenced")]
    pub event_type: String,
    pub host: Option<String>,
    /// pending, delivered or failed
    #[schema(example = "delivered")]
    pub status: &'static str,
    pub tries: u32,
    /// When it was tried first, or asked for.
    pub created_at: DateTime<Utc>,
    pub tried_at: Option<DateTime<Utc>>,
    /// When it is tried next.
    pub next_at: Option<DateTime<Utc>>,
    /// The HTTP status of the last answer.
    pub answer: Option<u16>,
    /// What went wrong.
    pub detail: Option<String>,
    /// How long the last try took, in milliseconds.
    pub took_ms: Option<u64>,
}

impl From<DeliveryRow> for DeliveryView {
    fn from(row: DeliveryRow) -> Self {
        Self {
            id: row.id,
            kind: row.kind.as_str(),
            sequence: row.sequence,
            event_id: row.message_id,
            event_type: row.event_type,
            host: row.host,
            status: row.status.as_str(),
            tries: row.tries,
            created_at: row.created_at,
            tried_at: row.tried_at,
            next_at: row.next_at,
            answer: row.answer,
            detail: row.detail,
            took_ms: row.took_ms,
        }
    }
}

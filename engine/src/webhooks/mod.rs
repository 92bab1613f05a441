//! Webhooks: each subscription is told of its events, in the order of each host, until it has them or a day has passed.
//!
//! Everything said is read from the table of events. Messages are CloudEvents 1.0 in structured JSON, signed as the Standard Webhooks
//! specification says.

mod address;
mod attempt;
mod call;
mod chat;
mod coming;
mod deliver;
mod delivery_order;
mod document;
mod keys;
mod receiver;
mod target;
mod work;

use std::sync::Arc;

use ipnet::IpNet;
use ringfence_core::error_chain;

use crate::EngineError;

pub(crate) use call::Caller;
pub use document::cloud_event;
pub use keys::{WebhookKey, WebhookKeys};
pub(crate) use receiver::{check_format, format_of};
pub(crate) use target::validate_url;
pub(crate) use work::{answer_asked, work};

/// How webhooks are called.
#[derive(Clone, Debug, Default)]
pub struct WebhookConfig {
    /// What secrets are derived from; without, there are no subscriptions.
    pub keys: Option<WebhookKeys>,
    /// Networks that may be called although they are not public.
    pub allowed_networks: Vec<IpNet>,
    /// PEM certificates that may have signed a receiver's, beside those of public authorities.
    pub ca_pem: Option<String>,
    /// The `source` of the events: a URI reference that tells this Ringfence from others.
    pub source: Option<String>,
}

/// The `source` of a Ringfence that was given none.
const DEFAULT_SOURCE: &str = "/ringfence";

/// What deliveries need.
pub(crate) struct Webhooks {
    pub keys: Option<WebhookKeys>,
    pub allowed_networks: Arc<[IpNet]>,
    pub caller: Caller,
    pub source: String,
}

impl Webhooks {
    pub fn new(config: &WebhookConfig) -> Result<Self, EngineError> {
        let allowed_networks: Arc<[IpNet]> = config.allowed_networks.clone().into();
        let caller = Caller::new(Arc::clone(&allowed_networks), config.ca_pem.as_deref())
            .map_err(|error| EngineError::Webhooks(error_chain(&error)))?;
        Ok(Self {
            keys: config.keys.clone(),
            allowed_networks,
            caller,
            source: config.source.clone().unwrap_or_else(|| DEFAULT_SOURCE.to_owned()),
        })
    }

    /// The keys, or why there are no subscriptions.
    pub fn keys(&self) -> Result<&WebhookKeys, EngineError> {
        self.keys.as_ref().ok_or(EngineError::WebhooksOff)
    }
}

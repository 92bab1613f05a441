//! The only room that writes: everything that changes anything goes through here.
//!
//! Lock the host's row, decide in `core`, write state, events and outbox, commit; then publish what was committed. API handlers, timers,
//! and claims and results from workers all take this way. Any number of engines run side by side.

mod auto_fence;
mod by_hand;
mod checks;
mod clock;
mod commit;
mod configure;
mod context;
mod copied;
mod destinations;
mod device_lease;
mod devices;
mod error;
mod event_sink;
mod explain;
mod feed;
mod fence_request;
mod heartbeats;
mod host_plan;
mod idempotency;
mod ids;
mod intake;
mod kdump;
mod known_plans;
mod log;
mod many_reports;
mod metrics;
mod moves;
mod observer;
mod opinions;
mod pause;
mod reconcile;
mod records;
mod relay;
mod requests;
mod retention;
mod service;
mod services;
mod sessions;
mod shared_answer;
mod shared_devices;
mod sight;
mod task_queues;
mod turn;
mod waker;
mod warnings;
mod webhooks;
mod writes;

pub use checks::{CheckConfig, DeviceQuestion};
pub use clock::{Clock, ClockSource};
pub use commit::Applied;
pub use configure::{
    Configured, Declaration, HostChange, HostDraft, MethodDraft, PlanDraft, SubscriptionDraft,
    SuspensionDraft, SuspensionEnd, origin_of,
};
pub use context::Context;
pub use copied::SiteCopy;
pub use devices::MethodCheck;
pub use error::EngineError;
pub use event_sink::{EventSink, SinkForm};
pub use explain::DryRun;
pub use feed::{Feed, FeedItem, Listener};
pub use idempotency::{HeldKey, KeptAnswer, KeyState, KeyedRequest, Receipt};
pub use metrics::{Exposition, METRICS_CONTENT_TYPE};
pub use observer::ObserverConfig;
pub use requests::{Operated, Word, check_source};
pub use retention::RetentionConfig;
pub use ringfence_bus::WebhookSecret;
pub use service::{Engine, EngineConfig, Parts, Running};
pub use services::Services;
pub use webhooks::{WebhookConfig, WebhookKey, WebhookKeys, cloud_event};

//! What handlers share.

use std::sync::Arc;
use std::time::Duration;

use actix_web::web;
use ringfence_engine::{Clock, Engine, Exposition};
use tokio_util::sync::CancellationToken;

use crate::authenticators::Authenticators;
use crate::metrics::RequestMetrics;
use crate::streams::Streams;
use crate::tickets::Tickets;

/// What every request goes by, whichever service it is for.
pub(crate) struct Front {
    pub authenticators: Authenticators,
    pub tickets: Arc<Tickets>,
    pub clock: Clock,
    pub max_body_bytes: usize,
    pub exposition: Exposition,
    pub requests: RequestMetrics,
    pub are_metrics_public: bool,
}

/// What the handlers of the API share.
pub(crate) struct State {
    pub front: web::Data<Front>,
    pub engine: Engine,
    pub recheck_every: Duration,
    pub streams: Arc<Streams>,
    /// Ends the streams when the service stops.
    pub stop: CancellationToken,
}

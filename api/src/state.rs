//! What handlers share.

use std::time::Duration;

use ringfence_engine::{Engine, Exposition};
use tokio_util::sync::CancellationToken;

use crate::identity::Vouchers;
use crate::metrics::RequestMetrics;

/// What handlers share.
pub(crate) struct State {
    pub engine: Engine,
    pub vouchers: Vouchers,
    pub recheck_every: Duration,
    pub max_body_bytes: usize,
    pub exposition: Exposition,
    pub requests: RequestMetrics,
    pub are_metrics_public: bool,
    /// Ends the streams when the service stops.
    pub stop: CancellationToken,
}

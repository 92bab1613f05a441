//! Spans for a collector that takes OTLP over HTTP.
//!
//! The code that makes a span decides which fields it has: ids, names and words for programs only. Spans that belong to a trace (an
//! operation, a request to a device) are sent; others are not.

mod collector;
mod counts;
mod headers;
mod layer;
mod sending;
mod span;

use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use self::collector::Collector;
pub use self::counts::register_metrics;
pub use self::layer::SpanLayer;
use crate::config::Settings;
use crate::error::CliError;

/// How long the end of a service waits for the collector.
const FLUSH: Duration = Duration::from_secs(5);

/// The sending of spans, as long as the service runs.
pub struct Traces {
    stop: CancellationToken,
    sending: JoinHandle<()>,
}

impl Traces {
    /// Sends the remaining spans, as far as the collector accepts them within five seconds.
    pub async fn stop(self) {
        self.stop.cancel();
        if tokio::time::timeout(FLUSH, self.sending).await.is_err() {
            tracing::warn!("the collector took too long: the last spans are lost");
        }
    }
}

/// Begins to send, if a collector is configured; spans come through the layer.
pub fn start(role: &'static str, settings: &Settings) -> Result<Option<(SpanLayer, Traces)>, CliError> {
    let own = &settings.traces;
    let Some(endpoint) = &own.otlp_endpoint else {
        return Ok(None);
    };
    let collector = Collector::new(role, endpoint, settings)?;
    let (sender, queue) = mpsc::channel(own.queue_spans);
    let stop = CancellationToken::new();
    let sending = tokio::spawn(sending::run(collector, queue, stop.clone()));
    let layer = SpanLayer::new(sender, own.sample_percent);
    Ok(Some((layer, Traces { stop, sending })))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Environment, Sources, load};

    #[test]
    fn where_no_collector_is_configured_nothing_watches_spans_and_nothing_runs() {
        let sources = Sources {
            environment: Environment::from([("HOME", "/h")]),
            ..Sources::default()
        };
        let (settings, _) = load(&sources).unwrap();
        // A task would need the runtime that is not here.
        assert!(start("api", &settings).unwrap().is_none());
    }
}

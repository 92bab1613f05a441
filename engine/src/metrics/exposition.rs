//! All numbers of one process, as Prometheus reads them.

use std::fmt;

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;
use tokio::sync::Mutex;

use super::survey::look;
use crate::Engine;

/// The type of [`Exposition::text`].
pub const METRICS_CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The numbers of one process. Every name begins with `ringfence_`.
pub struct Exposition {
    registry: Registry,
    engine: Option<Engine>,
    /// One look at a time: requests that come meanwhile wait for it and read what it found.
    looking: Mutex<()>,
}

impl Exposition {
    /// Of a process with an engine, or of one without.
    #[must_use]
    pub fn new(engine: Option<Engine>) -> Self {
        let mut registry = Registry::with_prefix("ringfence");
        let version = [("version", env!("CARGO_PKG_VERSION"))];
        registry.register("build", "The version that runs", Info::new(version));
        if let Some(engine) = &engine {
            engine.0.metrics.register(&mut registry);
        }
        Self {
            registry,
            engine,
            looking: Mutex::new(()),
        }
    }

    /// Where other parts of the process put their numbers.
    pub fn registry(&mut self) -> &mut Registry {
        &mut self.registry
    }

    /// The numbers as they are now; those that come from the database and the broker are up to three seconds old. Takes a few seconds
    /// at most, although these may be away.
    pub async fn text(&self) -> Result<String, fmt::Error> {
        let _looking = self.looking.lock().await;
        if let Some(engine) = &self.engine {
            look(engine).await;
        }
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        Ok(text)
    }
}

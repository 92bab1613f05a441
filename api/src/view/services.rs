//! What runs.

use chrono::{DateTime, Utc};
use ringfence_engine::Services;
use serde::Serialize;
use utoipa::ToSchema;

/// Engines, and the workers of each zone.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ServicesView {
    /// Those of the last day, by name.
    pub engines: Vec<EngineView>,
    /// By zone, for each resource that a method of it uses.
    pub workers: Vec<WorkersView>,
}

/// An engine.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EngineView {
    pub name: String,
    #[schema(example = "0.1.0")]
    pub version: String,
    /// When it last said that it runs; it says so every 10 s.
    pub seen_at: DateTime<Utc>,
}

/// The workers of one resource in one zone.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct WorkersView {
    pub zone: String,
    #[schema(example = "power")]
    pub resource: &'static str,
    /// Workers that take tasks; null: not known, as in one process, which has no broker that could tell.
    pub workers: Option<u32>,
    /// Tasks that no worker has taken; null: not known.
    pub queued: Option<u32>,
}

impl From<Services> for ServicesView {
    fn from(services: Services) -> Self {
        let engines = services.engines.into_iter().map(|engine| EngineView {
            name: engine.name,
            version: engine.version,
            seen_at: engine.seen_at,
        });
        let workers = services.queues.into_iter().map(|(queue, load)| WorkersView {
            zone: queue.zone,
            resource: queue.resource.as_str(),
            workers: load.map(|load| load.consumers),
            queued: load.map(|load| load.messages),
        });
        Self {
            engines: engines.collect(),
            workers: workers.collect(),
        }
    }
}

//! Event sinks that no engine tells any more are forgotten, for events are kept until every event sink was told of them.
//!
//! No process knows what the others are configured for. An event sink that some engine tells, or tries to tell while its broker is away, is
//! held by that engine, which is seen in the database. An event sink that no engine has held for long has been turned off.

use std::collections::BTreeMap;

use ringfence_core::Timestamp;

use super::bound;
use crate::{Engine, EngineError};

/// EventSinks that the last look found silent, and since when.
#[derive(Default)]
pub(super) struct Silent(BTreeMap<String, Timestamp>);

impl Silent {
    /// Forgets the event sinks that were as silent when this was called the last time: after all of an installation was away, or a clock has
    /// leapt, those who tell get time to say so.
    pub async fn forget(&mut self, engine: &Engine) -> Result<(), EngineError> {
        let now = engine.0.clock.now();
        let Some(since) = bound(now, engine.0.config.retention.event_sinks) else {
            return Ok(());
        };
        let mut reader = engine.0.db.reader();
        let silent = ringfence_db::silent_event_sinks(&mut reader, since).await?;
        let before = std::mem::take(&mut self.0);
        for event_sink in silent {
            if before.get(&event_sink.name) != Some(&event_sink.since) {
                self.0.insert(event_sink.name, event_sink.since);
            } else if ringfence_db::forget_event_sink(&mut reader, &event_sink.name, since).await? {
                tracing::warn!(
                    event_sink = event_sink.name,
                    told_up_to = event_sink.told_up_to,
                    since = %event_sink.since.to_rfc3339(),
                    "no engine tells this event sink any more: no events are kept for it from now on, and should it be turned on again it begins anew"
                );
            }
        }
        Ok(())
    }
}

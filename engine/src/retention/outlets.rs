//! Outlets that nobody tells any more are forgotten, for events are kept until every outlet was told of them.
//!
//! No process knows what the others are configured for. An outlet that some engine tells, or tries to tell while its broker is away, is
//! held by that engine, which is seen in the database. One that nobody has held for long has been turned off.

use std::collections::BTreeMap;

use ringfence_core::Timestamp;

use super::bound;
use crate::{Engine, EngineError};

/// Outlets that the last look found silent, and since when.
#[derive(Default)]
pub(super) struct Silent(BTreeMap<String, Timestamp>);

impl Silent {
    /// Forgets the outlets that were as silent when this was called the last time: after all of an installation was away, or a clock has
    /// leapt, those who tell get time to say so.
    pub async fn forget(&mut self, engine: &Engine) -> Result<(), EngineError> {
        let now = engine.0.clock.now();
        let Some(since) = bound(now, engine.0.config.retention.outlets) else {
            return Ok(());
        };
        let mut reader = engine.0.db.reader();
        let silent = ringfence_db::silent_outlets(&mut reader, since).await?;
        let before = std::mem::take(&mut self.0);
        for outlet in silent {
            if before.get(&outlet.name) != Some(&outlet.since) {
                self.0.insert(outlet.name, outlet.since);
            } else if ringfence_db::forget_outlet(&mut reader, &outlet.name, since).await? {
                tracing::warn!(
                    outlet = outlet.name,
                    told_up_to = outlet.told_up_to,
                    since = %outlet.since.to_rfc3339(),
                    "nobody tells an outlet any more: no events are kept for it from now on, and should it be turned on again it begins anew"
                );
            }
        }
        Ok(())
    }
}

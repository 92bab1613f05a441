//! Work that one engine at a time does, beside the engine's own loops.

use chrono::TimeDelta;

use crate::{Engine, EngineError};

impl Engine {
    /// Takes (or keeps) the work of this name for a time; `false` if another engine has it.
    ///
    /// # Errors
    /// The database cannot be written.
    pub async fn take_work(&self, name: &str, time: TimeDelta) -> Result<bool, EngineError> {
        let now = self.0.clock.now();
        let mut reader = self.0.db.reader();
        Ok(ringfence_db::take_lease(&mut reader, name, &self.0.id, now, now + time).await?)
    }
}

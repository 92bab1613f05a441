//! Whether the database writes down what it is given. One that is full or may only be read answers every question as if nothing were
//! wrong, and a process that is asked for nothing else would not notice.

use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use ringfence_core::error_chain;
use ringfence_db::DbError;
use tokio_util::sync::CancellationToken;

use crate::pause::pause;
use crate::{Engine, EngineError};

/// How often it is tried.
const TRY_EVERY: Duration = Duration::from_secs(5);

/// What came of the last try.
#[derive(Debug, Default)]
pub(crate) struct Writes {
    is_refused: Mutex<bool>,
}

impl Writes {
    fn is_refused(&self) -> MutexGuard<'_, bool> {
        self.is_refused.lock()
    }
}

/// Tries it until it is told to stop.
pub(crate) async fn watch(engine: Engine, stop: CancellationToken) {
    loop {
        engine.try_to_write().await;
        if !pause(&stop, TRY_EVERY).await {
            return;
        }
    }
}

impl Engine {
    /// Whether the database can be used: it answers, and writes down what it is given.
    pub async fn database_health(&self) -> Result<(), EngineError> {
        self.0.db.ping().await?;
        if *self.0.writes.is_refused() {
            return Err(EngineError::NoWrites);
        }
        Ok(())
    }

    /// Whether it wrote down what it was last given to try.
    pub(crate) fn is_written(&self) -> bool {
        !*self.0.writes.is_refused()
    }

    async fn try_to_write(&self) {
        let now = self.0.clock.now();
        let tried = ringfence_db::note_write(&mut self.0.db.reader(), now).await;
        let is_refused = match &tried {
            Err(DbError::NoWrites { .. }) => true,
            Ok(()) => false,
            // It is not there, which is told elsewhere, and says nothing of what it would do.
            Err(_) => return,
        };
        let was_refused = std::mem::replace(&mut *self.0.writes.is_refused(), is_refused);
        match tried {
            Err(error) if !was_refused => {
                tracing::error!(error = %error_chain(&error), "the database writes nothing down; every change waits until it does again");
            }
            Ok(()) if was_refused => tracing::info!("the database writes again"),
            Ok(()) | Err(_) => {}
        }
    }
}

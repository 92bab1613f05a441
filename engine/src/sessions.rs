//! Browsers that sign in and out.

use ringfence_db::SessionRow;
use serde_json::json;
use uuid::Uuid;

use crate::{Context, Engine, EngineError};

/// Sessions that one caller has at most; the oldest ones end for new ones.
const OF_ONE_CALLER: u32 = 32;

impl Engine {
    /// Puts a session on record, and removes those that are over.
    ///
    /// # Errors
    /// The database cannot be written.
    pub async fn begin_session(&self, session: &SessionRow, by: &Context) -> Result<(), EngineError> {
        let mut tx = self.0.db.begin().await?;
        ringfence_db::delete_ended_sessions(&mut tx, self.0.clock.now()).await?;
        ringfence_db::insert_session(&mut tx, session).await?;
        ringfence_db::delete_oldest_sessions(&mut tx, &session.actor, OF_ONE_CALLER).await?;
        let detail = json!({ "expires_at": session.expires_at });
        let target = session.id.to_string();
        self.commit(tx, "session.began", &target, detail, by).await
    }

    /// Ends a session of the caller.
    ///
    /// # Errors
    /// The caller has none with this id, or the database cannot be written.
    pub async fn end_session(&self, id: Uuid, by: &Context) -> Result<(), EngineError> {
        let mut tx = self.0.db.begin().await?;
        if !ringfence_db::delete_session(&mut tx, id, &by.actor).await? {
            return Err(EngineError::NotFound {
                kind: "session",
                id: id.to_string(),
            });
        }
        self.commit(tx, "session.ended", &id.to_string(), json!({}), by)
            .await
    }
}

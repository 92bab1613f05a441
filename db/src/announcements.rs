//! Hearing of new events at once. PostgreSQL announces them; SQLite has only one process.

use sqlx::postgres::PgListener;

use crate::DbError;
use crate::database::{Database, Pool};

/// A connection that hears announcements.
pub struct Announcements {
    listener: PgListener,
    address: String,
}

impl Database {
    /// Begins to listen; `None` where there is nothing to hear.
    pub async fn announcements(&self) -> Result<Option<Announcements>, DbError> {
        let Pool::Postgres { read, .. } = &self.pool else {
            return Ok(None);
        };
        let fault = |e| DbError::from_client(self.address(), e);
        let mut listener = PgListener::connect_with(read.pool()).await.map_err(fault)?;
        listener.listen("ringfence_events").await.map_err(fault)?;
        Ok(Some(Announcements {
            listener,
            address: self.address().to_owned(),
        }))
    }
}

impl Announcements {
    /// Waits for the next announcement. One that was missed while the connection was lost is not repeated.
    pub async fn next(&mut self) -> Result<(), DbError> {
        self.listener
            .recv()
            .await
            .map(|_| ())
            .map_err(|e| DbError::from_client(&self.address, e))
    }
}

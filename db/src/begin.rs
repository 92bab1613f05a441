//! Beginning a transaction that changes hosts.

use std::sync::Arc;

use ringfence_core::HostId;

use crate::DbError;
use crate::changes::{Begun, Locking};
use crate::database::{Database, Pool};
use crate::hosts::{SeenHost, lock_hosts, see_host};
use crate::postgres::Optimistic;

impl Database {
    /// Begins a transaction that changes these hosts.
    pub async fn begin_with_hosts(&self, ids: &[HostId], locking: Locking) -> Result<Begun, DbError> {
        if let (Locking::Optimistic, [id], false) = (locking, ids, self.is_sqlite()) {
            let seen = see_host(&mut self.reader_by_keys(), &id.to_string()).await?;
            if let Some(seen) = seen {
                return self.begin_upon(seen).await;
            }
        }
        self.begin_locked(ids).await
    }

    async fn begin_locked(&self, ids: &[HostId]) -> Result<Begun, DbError> {
        let mut tx = self.begin().await?;
        let (hosts, read_at) = lock_hosts(&mut tx, ids).await?;
        Ok(Begun {
            hosts,
            read_at,
            transaction: tx.for_hosts(),
        })
    }

    /// Begins upon a host that was read a moment ago. On PostgreSQL that saves another look, and the host is not locked.
    pub async fn begin_upon(&self, seen: SeenHost) -> Result<Begun, DbError> {
        let (Pool::Postgres { write, .. }, Some(version)) = (&self.pool, seen.version) else {
            return self.begin_locked(&[seen.state.host.id]).await;
        };
        let transaction = Optimistic {
            connections: write.clone(),
            address: Arc::clone(&self.address),
            host: seen.state.host.id,
            version,
        };
        Ok(Begun {
            hosts: vec![seen.state],
            read_at: seen.read_at,
            transaction: Box::new(transaction),
        })
    }
}

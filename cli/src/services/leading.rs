//! Standalone beside others in a cluster that keeps the records of its hosts: one process at a time leads.

use std::sync::Arc;

use ringfence_backends::Records;
use ringfence_backends::kubernetes::{Lead, NodeFences};
use ringfence_engine::Engine;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::clock::now;
use crate::config::Settings;
use crate::error::CliError;
use crate::platforms::{self, RecordKeeper};

/// The lead of this process.
pub struct Leading {
    keeper: RecordKeeper,
    lead: Lead,
}

/// The watch of a leader over its lead: ends with the lead where that is not lost.
pub struct Watch(JoinHandle<Option<Lead>>);

impl Leading {
    /// Waits until this process leads; `None` where no cluster keeps records, or where the process is told to stop before.
    pub async fn wait(settings: &Settings, stop: &CancellationToken) -> Result<Option<Self>, CliError> {
        let Some(keeper) = platforms::record_keeper(settings)? else {
            return Ok(None);
        };
        let holder = format!("{} {}", settings.engine.name, Uuid::new_v4());
        let lead = Lead::new(Arc::clone(&keeper.cluster), holder, now);
        tracing::info!(cluster = settings.kubernetes.records, "waiting for the lead");
        tokio::select! {
            () = stop.cancelled() => return Ok(None),
            () = lead.take() => {}
        }
        tracing::info!("this process leads");
        Ok(Some(Self { keeper, lead }))
    }

    /// The records of the cluster's hosts.
    pub fn records(&self) -> Arc<dyn Records> {
        Arc::new(NodeFences::of(Arc::clone(&self.keeper.cluster)))
    }

    /// Adds the hosts of the records to the empty database.
    pub async fn restore(&self, engine: &Engine) -> Result<(), CliError> {
        let fault = |e| CliError::service("standalone", "cannot take the records of hosts over", e);
        let hosts = engine
            .restore_hosts(self.keeper.segment.as_deref())
            .await
            .map_err(fault)?;
        tracing::info!(hosts, "the records of hosts were taken over");
        Ok(())
    }

    /// Keeps the lead. `stop` is cancelled when the lead is lost or another process has taken the records over.
    pub fn watch(self, engine: Engine, stop: CancellationToken) -> Watch {
        Watch(tokio::spawn(async move {
            let is_lost = tokio::select! {
                () = stop.cancelled() => false,
                () = self.lead.keep() => true,
                () = engine.records_taken_over() => true,
            };
            stop.cancel();
            (!is_lost).then_some(self.lead)
        }))
    }
}

impl Watch {
    /// Ends the lead of a process that has stopped, so that another one takes over at once.
    ///
    /// # Errors
    /// The lead was lost: the process has to begin anew.
    pub async fn end(self) -> Result<(), CliError> {
        let Ok(Some(lead)) = self.0.await else {
            return Err(CliError::Usage(
                "another Ringfence leads, or the lease of the leader cannot be written; start this one again"
                    .to_owned(),
            ));
        };
        lead.give_back().await;
        Ok(())
    }
}

//! Standalone beside others in a cluster that keeps the records of its hosts: one process at a time leads.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use ringfence_api::{ApiConfig, StartError, serve_waiting};
use ringfence_backends::Records;
use ringfence_backends::kubernetes::{ClusterSettings, Lead, NodeFences};
use ringfence_engine::Engine;
use ringfence_operator::{Operator, OperatorError};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::clock::now;
use crate::config::Settings;
use crate::error::{CliError, error_chain};
use crate::platforms::{self, RecordKeeper};

/// The lead of this process.
pub struct Leading {
    keeper: RecordKeeper,
    lead: Arc<Lead>,
    waiting: Waiting,
    /// The cluster, if its objects are served: they have the configuration.
    configured_by: Option<ClusterSettings>,
}

/// Answers that this process waits, until it can serve.
struct Waiting {
    over: CancellationToken,
    answering: JoinHandle<Result<(), StartError>>,
}

impl Waiting {
    fn start(config: &ApiConfig) -> Self {
        let over = CancellationToken::new();
        let (config, ended) = (config.clone(), over.clone());
        let answering = tokio::spawn(async move { serve_waiting(&config, ended).await });
        Self { over, answering }
    }

    /// Waits until no answer can be given any more, which is a fault before the end.
    async fn failed(&mut self) -> Result<(), CliError> {
        let served = (&mut self.answering).await;
        let served = served.map_err(|error| CliError::service("standalone", "cannot serve", error))?;
        served.map_err(|error| CliError::service("standalone", "cannot serve", error))
    }

    /// Gives the address free.
    async fn end(mut self) -> Result<(), CliError> {
        self.over.cancel();
        self.failed().await
    }
}

/// The lead of a process that has taken the records over.
pub struct Led(Arc<Lead>);

/// The watch of a leader over its lead: ends with the lead where that is not lost.
pub struct Watch(JoinHandle<Option<Arc<Lead>>>);

impl Leading {
    /// Waits until this process leads, and answers meanwhile that it waits; `None` where no cluster keeps records, or where the process is told
    /// to stop before.
    pub async fn wait(
        settings: &Settings,
        config: &ApiConfig,
        stop: &CancellationToken,
    ) -> Result<Option<Self>, CliError> {
        let Some(keeper) = platforms::record_keeper(settings)? else {
            return Ok(None);
        };
        let holder = format!("{} {}", settings.engine.name, Uuid::new_v4());
        let lead = Arc::new(Lead::new(Arc::clone(&keeper.cluster), holder, now));
        tracing::info!(cluster = settings.kubernetes.records, "waiting for the lead");
        let mut waiting = Waiting::start(config);
        tokio::select! {
            () = stop.cancelled() => return waiting.end().await.map(|()| None),
            failed = waiting.failed() => return failed.map(|()| None),
            () = lead.take() => {}
        }
        tracing::info!("this process leads");
        let mut operated = platforms::operated(settings)?.into_iter();
        Ok(Some(Self {
            configured_by: operated
                .find(|cluster| Some(&cluster.name) == settings.kubernetes.records.as_ref()),
            keeper,
            lead,
            waiting,
        }))
    }

    /// The records of the cluster's hosts.
    pub fn records(&self) -> Arc<dyn Records> {
        Arc::new(NodeFences::of(
            Arc::clone(&self.keeper.cluster),
            Arc::clone(&self.lead),
        ))
    }

    /// Adds the hosts of the records to the empty database, and the configuration that the cluster's objects declare: nothing is to be
    /// fenced before it is there. The address is free for the API then.
    pub async fn restore(self, engine: &Engine) -> Result<Led, CliError> {
        self.configure(|cluster| Box::pin(Operator::declare_segments(engine, cluster)))
            .await;
        self.restore_hosts(engine).await?;
        self.configure(|cluster| Box::pin(Operator::declare(engine, cluster)))
            .await;
        self.waiting.end().await?;
        Ok(Led(self.lead))
    }

    /// What cannot be read now is read by the running operator.
    async fn configure<'a>(
        &'a self,
        declare: impl Fn(&'a ClusterSettings) -> BoxFuture<'a, Result<(), OperatorError>>,
    ) {
        let Some(cluster) = &self.configured_by else {
            return;
        };
        if let Err(error) = declare(cluster).await {
            let error = error_chain(&error);
            tracing::warn!(
                cluster = cluster.name,
                error,
                "the configuration that the cluster declares cannot be read yet"
            );
        }
    }

    async fn restore_hosts(&self, engine: &Engine) -> Result<(), CliError> {
        let fault = |e| CliError::service("standalone", "cannot take the records of hosts over", e);
        let hosts = engine
            .restore_hosts(self.keeper.segment.as_deref())
            .await
            .map_err(fault)?;
        tracing::info!(hosts, "the records of hosts were taken over");
        Ok(())
    }
}

impl Led {
    /// Keeps the lead. `stop` is cancelled when the lead is lost or another process has taken the records over.
    pub fn watch(self, engine: Engine, stop: CancellationToken) -> Watch {
        Watch(tokio::spawn(async move {
            let is_lost = tokio::select! {
                () = stop.cancelled() => false,
                () = self.0.keep() => true,
                () = engine.records_taken_over() => true,
            };
            stop.cancel();
            (!is_lost).then_some(self.0)
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

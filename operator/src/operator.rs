//! All doors of one engine.

use std::time::Duration;

use ringfence_backends::kubernetes::ClusterSettings;
use ringfence_core::error_chain;
use ringfence_engine::Engine;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::door::Door;
use crate::session::Session;
use crate::{OperatorError, fence_config};

/// Between two looks whether another engine has given a cluster up.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// The doors of some clusters, until it is stopped. One engine at a time serves a cluster.
pub struct Operator {
    stop: CancellationToken,
    tasks: JoinSet<()>,
}

impl Operator {
    /// Starts serving these clusters.
    #[must_use]
    pub fn start(engine: &Engine, clusters: Vec<ClusterSettings>) -> Self {
        let stop = CancellationToken::new();
        let mut tasks = JoinSet::new();
        for cluster in clusters {
            tasks.spawn(serve(engine.clone(), cluster, stop.clone()));
        }
        Self { stop, tasks }
    }

    /// Brings the policies of segments to what a cluster declares: before hosts are added that are in these segments.
    ///
    /// # Errors
    /// The cluster does not answer or refuses, or the engine has not made a change.
    pub async fn declare_segments(engine: &Engine, cluster: &ClusterSettings) -> Result<(), OperatorError> {
        let door = Door::open(engine, cluster).await?;
        fence_config::serve_segments(&door).await
    }

    /// Brings the whole configuration to what a cluster declares: before anything is fenced by it. What is wrong with it is told by the
    /// running operator.
    ///
    /// # Errors
    /// As [`declare_segments`](Self::declare_segments).
    pub async fn declare(engine: &Engine, cluster: &ClusterSettings) -> Result<(), OperatorError> {
        let door = Door::open(engine, cluster).await?;
        fence_config::apply(&door, &mut fence_config::Known::default())
            .await
            .map(drop)
    }

    /// Lets what is being served be finished, and waits for it.
    pub async fn stop(mut self) {
        self.stop.cancel();
        while self.tasks.join_next().await.is_some() {}
    }
}

async fn serve(engine: Engine, cluster: ClusterSettings, stop: CancellationToken) {
    loop {
        if let Err(error) = serve_once(&engine, &cluster, &stop).await {
            let error = error_chain(&error);
            tracing::warn!(
                cluster = cluster.name,
                error,
                "the objects of a cluster cannot be served"
            );
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
    }
}

/// Serves a cluster as long as no other engine does.
async fn serve_once(
    engine: &Engine,
    cluster: &ClusterSettings,
    stop: &CancellationToken,
) -> Result<(), OperatorError> {
    let door = Door::open(engine, cluster).await?;
    if !door.keep().await? {
        return Ok(());
    }
    tracing::info!(cluster = cluster.name, "the objects of the cluster are served");
    Session::begin(door).await?.run(stop).await
}

//! The end of a fence, as it is observed.

use std::time::{Duration, Instant};

use ringfence_tests::Ground;

use crate::commit_watch::CommitWatch;
use crate::error::BenchError;
use crate::listener::Listener;
use crate::plant::Plant;

/// How long an event may take that follows a change at once.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Observes the ends of fences: on the event stream, and by the announced commits where the database announces them.
pub struct Ends {
    pub stream: Listener,
    commits: Option<CommitWatch>,
}

/// The end of a fence.
pub struct End {
    /// When the commit was known.
    pub committed: Instant,
    /// When the event arrived.
    pub told: Instant,
}

/// The name of the figure from POST to the end.
pub const fn from_post_to_end(ground: Ground) -> &'static str {
    match ground {
        Ground::Standalone => "POST to host.fenced on the event stream",
        Ground::Distributed => "POST to the commit of FENCED announced",
    }
}

impl Ends {
    /// Begins to observe.
    pub async fn open(plant: &Plant) -> Result<Self, BenchError> {
        let commits = match &plant.site {
            Some(site) => Some(CommitWatch::open(&site.database_url).await?),
            None => None,
        };
        Ok(Self {
            stream: Listener::open(&plant.client).await?,
            commits,
        })
    }

    /// The end of the fence of a host that was asked for at `begun`.
    pub async fn of(&mut self, host: &str, begun: Instant) -> Result<End, BenchError> {
        let told = self.stream.until("host.fenced", host, PATIENCE).await?.at;
        let announced = match &self.commits {
            Some(commits) => commits.nearest_to(begun, told).await,
            None => None,
        };
        Ok(End {
            committed: announced.map_or(told, |announced| announced.min(told)),
            told,
        })
    }

    /// How much later the stream is than the commit, in milliseconds. Where commits are not announced: from the answer to a change of the
    /// host `beside`, which follows the commit, to the change's event. Each call needs another `number` than the one before.
    pub async fn added_by_the_stream(
        &mut self,
        end: &End,
        plant: &Plant,
        number: usize,
    ) -> Result<f64, BenchError> {
        let (from, to) = if self.commits.is_some() {
            (end.committed, end.told)
        } else {
            let state = ["UNREACHABLE", "UNKNOWN"][number % 2];
            plant.client.seen("beside", state).await.ok(200);
            let answered = Instant::now();
            let heard = self
                .stream
                .until("host.failure_state", "beside", PATIENCE)
                .await?;
            (answered, heard.at)
        };
        Ok(to.saturating_duration_since(from).as_secs_f64() * 1000.0)
    }
}

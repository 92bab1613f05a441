//! The dead letters, counted by the queue that they were in.

use std::collections::BTreeMap;
use std::time::Duration;

use parking_lot::Mutex;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use ringfence_bus::{BusError, DeadLetters};
use ringfence_core::error_chain;
use tokio::time::timeout;

/// How long the broker is waited for.
const PATIENCE: Duration = Duration::from_secs(3);
/// Queues that are told apart. A client with the broker's password can name any number of them.
const MAX_QUEUES: usize = 64;
/// All beyond that.
const OTHERS: &str = "(other)";
/// Where the queue is not known.
const UNKNOWN: &str = "(unknown)";

/// The gauge.
#[derive(Default)]
pub(crate) struct Letters {
    letters: Family<[(&'static str, String); 1], Gauge>,
    /// How many there were when their queues were looked at: each of them has to be taken from the broker for that.
    seen: Mutex<Option<u64>>,
}

impl Letters {
    pub fn register(&self, registry: &mut Registry) {
        registry.register(
            "dead_letters",
            "Messages that no service could process, by the queue that they were in",
            self.letters.clone(),
        );
    }

    pub async fn look(&self, letters: Option<&dyn DeadLetters>) {
        let Some(letters) = letters else { return };
        let counted = timeout(PATIENCE, letters.dead_letter_count()).await;
        let Ok(Ok(count)) = counted else {
            self.show(None, BTreeMap::new());
            return;
        };
        if *self.seen.lock() == Some(count) {
            return;
        }
        match timeout(PATIENCE, queues(letters, count)).await {
            Ok(Ok(queues)) => self.show(Some(count), queues),
            Ok(Err(error)) => {
                tracing::debug!(error = %error_chain(&error), "the dead letters could not be looked at");
                self.show(None, BTreeMap::from([(UNKNOWN.to_owned(), count)]));
            }
            Err(_) => self.show(None, BTreeMap::from([(UNKNOWN.to_owned(), count)])),
        }
    }

    fn show(&self, seen: Option<u64>, queues: BTreeMap<String, u64>) {
        *self.seen.lock() = seen;
        self.letters.clear();
        for (place, (queue, count)) in queues.into_iter().enumerate() {
            let queue = if place < MAX_QUEUES {
                queue
            } else {
                OTHERS.to_owned()
            };
            self.letters
                .get_or_create(&[("queue", queue)])
                .inc_by(i64::try_from(count).unwrap_or(i64::MAX));
        }
    }
}

async fn queues(letters: &dyn DeadLetters, count: u64) -> Result<BTreeMap<String, u64>, BusError> {
    if count == 0 {
        return Ok(BTreeMap::new());
    }
    Ok(letters.survey_dead_letters(0).await?.queues)
}

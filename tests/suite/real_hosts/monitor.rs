//! A monitor that watches a host over the network, and reports its failure state to Ringfence.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use chrono::{DateTime, Utc};
use ringfence_lab::VmAddress;
use ringfence_tests::{Client, eventually, now};
use serde_json::json;
use tokio::task::JoinHandle;

const BETWEEN: Duration = Duration::from_millis(200);
/// Number of unanswered questions in a row after which a host counts as silent.
const MISSES: usize = 3;

/// Asks a host for its boot id again and again, and reports the answers.
pub struct Monitor {
    asking: JoinHandle<()>,
    reports: Arc<AtomicUsize>,
}

/// What the monitor knows from earlier questions.
#[derive(Default)]
struct Heard {
    misses: usize,
    last_seen_at: Option<DateTime<Utc>>,
}

impl Monitor {
    /// Starts to watch the host.
    pub fn of(client: &Client, host: &'static str, address: VmAddress) -> Self {
        let reports = Arc::new(AtomicUsize::new(0));
        let (client, counted) = (client.clone(), Arc::clone(&reports));
        let asking = tokio::spawn(async move {
            let mut heard = Heard::default();
            loop {
                watch(&client, host, address, &mut heard).await;
                counted.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(BETWEEN).await;
            }
        });
        Self { asking, reports }
    }

    /// Waits until the monitor has asked and reported several times more.
    pub async fn goes_on(&self) {
        let before = self.reports.load(Ordering::Relaxed);
        eventually(async || self.reports.load(Ordering::Relaxed) > before + 2 * MISSES).await;
    }
}

/// The observation has the time before the question: the host may have changed by the time of the answer.
async fn watch(client: &Client, host: &str, address: VmAddress, heard: &mut Heard) {
    let observed_at = now();
    let boot = tokio::task::spawn_blocking(move || address.ask()).await.unwrap();
    heard.note(boot.is_some(), observed_at);
    let Some(state) = heard.state() else { return };
    let report = json!({
        "failure_state": state, "source": "monitor", "observed_at": observed_at,
        "last_seen_at": heard.last_seen_at, "boot_id": boot,
    });
    client
        .put(&format!("/hosts/{host}/failure-state"), report)
        .await
        .ok(200);
}

impl Heard {
    fn note(&mut self, has_answered: bool, asked_at: DateTime<Utc>) {
        if has_answered {
            *self = Self {
                misses: 0,
                last_seen_at: Some(asked_at),
            };
        } else {
            self.misses += 1;
        }
    }

    /// `None` between the first unanswered question and the last: then nothing is reported.
    fn state(&self) -> Option<&'static str> {
        match self.misses {
            0 => Some("UP"),
            MISSES.. => Some("UNREACHABLE"),
            _ => None,
        }
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        self.asking.abort();
    }
}

//! A monitor: it watches a host over its network, and tells Ringfence what it saw.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use chrono::{DateTime, Utc};
use ringfence_lab::VmAddress;
use ringfence_tests::{Client, eventually, now};
use serde_json::json;
use tokio::task::JoinHandle;

const BETWEEN: Duration = Duration::from_millis(200);
/// Questions without an answer, one after the other, until a host counts as silent.
const MISSES: usize = 3;

/// Asks a host which boot it is, again and again, and reports it.
pub struct Monitor {
    asking: JoinHandle<()>,
    reports: Arc<AtomicUsize>,
}

/// What it knows of the host from the questions before.
#[derive(Default)]
struct Heard {
    misses: usize,
    last_seen_at: Option<DateTime<Utc>>,
}

impl Monitor {
    /// Begins to watch.
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

    /// Waits until it has asked and told some times more.
    pub async fn goes_on(&self) {
        let before = self.reports.load(Ordering::Relaxed);
        eventually(async || self.reports.load(Ordering::Relaxed) > before + 2 * MISSES).await;
    }
}

/// What was seen counts from before the question: by the time of the answer it may be otherwise.
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

    /// Nothing is said of a host that has begun to miss questions.
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
